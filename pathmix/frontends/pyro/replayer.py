"""The run that a replay makes: sites get their values, decisions their answers; the density is collected."""

from collections.abc import Sequence
from typing import Any

import torch
from pyro import distributions as dist
from pyro.distributions.util import scale_and_mask

from pathmix.doors.pyro import Messenger, handlers, site_is_subsample
from pathmix.doors.torch import functional
from pathmix.errors import HiddenRandomnessError, UnsupportedSiteError
from pathmix.frontends.atoms import check_atoms
from pathmix.frontends.emptiness import is_empty
from pathmix.frontends.following import Following
from pathmix.frontends.masks import unmasked
from pathmix.frontends.observations import broadcast_remark, covered, covered_before, described
from pathmix.frontends.parameters import Parameter, parameters
from pathmix.frontends.priors import Named, of_elements
from pathmix.frontends.pyro.contents import Contents, Observation
from pathmix.frontends.pyro.lookups import Lookups
from pathmix.frontends.pyro.lowering.dtypes import as_numpy
from pathmix.frontends.pyro.parameters import Parameters
from pathmix.frontends.pyro.sites import (
    filled,
    is_deterministic,
    is_discrete,
    is_latent,
    is_observation,
    marks_fixed,
    mask_of,
)
from pathmix.frontends.pyro.supports import Support, read_support
from pathmix.frontends.pyro.wording import types_remark
from pathmix.frontends.pyro.zeros import excluded, never_drawn
from pathmix.frontends.shapes import shape_error
from pathmix.frontends.undecided import by_element
from pathmix.program.arguments import take_data
from pathmix.program.batch_run import BatchRun
from pathmix.program.path import DecisionKind
from pathmix.program.program import Program
from pathmix.program.slp import Plate
from pathmix.program.source import Source, caller


class Replayer(Messenger):
    """Gives each site its value and each decision its answer, and collects the density."""

    def __init__(
        self,
        program: Program,
        batch_run: BatchRun,
        plates: tuple[Plate, ...] | None,
        *,
        computed_indices: bool,
    ) -> None:
        super().__init__()
        self.model = program.model
        self.parameters = Parameters(program)
        self.path = batch_run.path
        self.plates: tuple[Plate, ...] = plates or ()
        self.subsampling = plates is not None
        self.lookups = Lookups(self, computed_indices=computed_indices, ranged=self._ranged)
        self.continuous = batch_run.continuous
        self.inside: list[torch.Tensor] = []  # of look-ups, below functionalization

    def begin(self, inputs: Sequence[torch.Tensor]) -> None:
        latent = len(self.path.addresses)
        self.values = dict(zip(self.path.addresses, inputs[:latent], strict=True))
        open = self.parameters.open
        rest = len(inputs) - len(open)
        self.indices = {p.name: i for p, i in zip(self.plates, inputs[latent:rest], strict=self.subsampling)}
        self.parameters.inputs = dict(zip(open, inputs[rest:], strict=True))
        self._answers = iter(self.continuous)
        self.log_prior: Any = torch.zeros(())
        self.log_likelihood: Any = torch.zeros(())
        self.following = Following(self.path)
        self.decided: list[torch.Tensor] = []
        self.supports: dict[str, Support] = {}
        self.drawn_from: dict[str, Named] = {}  # of free sites whose elements are independent
        self.discrete: set[str] = set()
        self.deterministics: dict[str, torch.Tensor] = {}
        self.drawn: dict[str, torch.Tensor] = {}  # log-probabilities of pinned sites
        self.never: dict[str, frozenset[int]] = {}  # values that they cannot have
        self.terms: dict[str, tuple[torch.Tensor, bool, bool]] = {}  # is it a prior, is it plain
        self.decided_after: list[int] = []
        self.checked: list[tuple[Parameter, str, Source]] = []  # of distributions, with their sites
        self.observed: list[str] = []
        self.is_conditioned = False
        self.observations: list[Observation] = []
        self.remarks: list[str] = []
        self.masks: dict[str, torch.Tensor] = {}  # of free sites: which elements have a density
        self.pointwise: dict[str, torch.Tensor] = {}  # log-likelihoods of the elements of observed sites

    # The observer of decisions.

    def decide(self, tensor: torch.Tensor, kind: DecisionKind) -> Any:
        decision = self.following.decide(kind)
        self.decided.append(tensor.clone())
        self.decided_after.append(self.following.sites)
        return decision.value

    def overlook(self, tensor: Any) -> None:
        del tensor  # the tape sees it

    @property
    def is_listening(self) -> bool:
        return any(handler is self for handler in handlers()) and not self.lookups.pauses

    def shown(self, tensor: torch.Tensor) -> str:
        return f"tensor(<shape {tuple(tensor.shape)}>)"

    def is_continuous(self, tensor: torch.Tensor) -> bool:
        """As in the run that was recorded: it asks the same, in the same order."""
        del tensor
        if (answer := next(self._answers, None)) is None:
            raise HiddenRandomnessError(f"this time it asked for another number at {caller()}")
        remark = types_remark(self.model) if answer else None
        if remark is not None and remark not in self.remarks:
            self.remarks.append(remark)
        return answer

    def _ranged(self, inside: torch.Tensor) -> None:
        """A run with numbers out of range fails, and runs that fail are left out."""
        terms = torch.where(inside, 0.0, -torch.inf)
        if self.path.summed:
            self.terms[f"range {len(self.terms)}"] = terms, False, False
        self.log_likelihood = self.log_likelihood + terms.sum()

    # The handler of sites.

    def choose(self, plate: Plate) -> torch.Tensor | None:
        if self.subsampling:
            return self.indices.get(plate.name)
        if plate not in self.plates:
            self.plates = (*self.plates, plate)
        return None

    def _pyro_sample(self, msg: Any) -> None:
        if site_is_subsample(msg):
            return
        # A plate that the program loops over names its sites by element; it always has all of them.
        looped = {frame.name for frame in msg["cond_indep_stack"] if not frame.vectorized}
        self.plates = tuple(plate for plate in self.plates if plate.name not in looped)
        take_data(msg, torch.as_tensor)
        marks_fixed(msg)
        if is_latent(msg):
            self.following.draw(msg["name"])
            msg["value"] = self._minibatch_of(msg, self.values[msg["name"]])

    def _pyro_post_sample(self, msg: Any) -> None:
        if site_is_subsample(msg):
            return
        if is_deterministic(msg):
            self.deterministics[msg["name"]] = msg["value"]
            return
        fn, mask, source = msg["fn"], msg["mask"], caller()
        looked_up = len(self.inside)
        self.checked += [(parameter, msg["name"], source) for parameter in parameters(fn)]
        if is_latent(msg) and is_discrete(msg):
            fn, mask = unmasked(fn, dist), None  # each value is a path of its own, and needs its probability
        with self.lookups.paused():
            empty = is_empty(fn, msg["value"])
            if empty:
                plain = terms = torch.zeros(())
            else:
                plain = _log_prob(msg, fn)
                terms = scale_and_mask(plain, msg["scale"], mask)
            if is_latent(msg) and is_discrete(msg) and msg["name"] not in self.path.summed:
                self.drawn[msg["name"]] = _log_probability(fn, msg["value"], plain.sum())
                self.never[msg["name"]] = excluded(fn)
            if is_observation(msg):
                self.observed.append(msg["name"])
                terms = terms if empty else self._covered(msg, terms)
                self.pointwise[msg["name"]] = torch.as_tensor(terms)
            elif is_latent(msg) and not is_discrete(msg) and not empty:
                terms = self._covered_before(msg, terms)
            elif msg["name"] in self.path.summed:
                terms = _by_element(msg, fn)
            if self.path.summed:
                is_plain = isinstance(msg["scale"], (int, float)) and msg["scale"] == 1
                self.terms[msg["name"]] = torch.as_tensor(terms), not msg["is_observed"], is_plain
            total = torch.as_tensor(terms).sum()
        del self.inside[looked_up:]  # densities look up values, of which supports tell
        if msg["is_observed"]:
            self.is_conditioned = True
            self.log_likelihood = self.log_likelihood + total
        else:
            self.log_prior = self.log_prior + total
        if is_latent(msg):
            self._support(msg)

    def _covered(self, msg: Any, terms: Any) -> Any:
        """The density of observed values, which is zero outside of the support."""
        name, fn, value, source = msg["name"], msg["fn"], torch.as_tensor(msg["value"]), caller()
        batch = value.shape[: value.ndim - len(fn.event_shape)]
        if remark := broadcast_remark(name, source, batch, fn.batch_shape):
            self.remarks.append(remark)
        mask = torch.as_tensor(mask_of(msg))
        for inside, binds in covered(fn, value, mask, torch.Tensor.float):
            self.observations.append(Observation(name, source, described(fn.support), inside, value, binds))
            terms = torch.where(inside, terms, -torch.inf) if binds else terms
        return terms

    def _covered_before(self, msg: Any, terms: Any) -> Any:
        """The density of a latent site, which is zero where no transform could lead to its value."""
        fn, value, mask = msg["fn"], msg["value"], torch.as_tensor(mask_of(msg))
        for inside, binds in covered_before(fn, value, mask, torch.Tensor.float):
            said = described(fn.support)
            self.observations.append(Observation(msg["name"], caller(), said, inside, value, binds))
            terms = torch.where(inside, terms, -torch.inf)
        return terms

    def _pyro_param(self, msg: Any) -> None:
        self.parameters.give(msg)
        self.parameters.check(msg)

    def _support(self, msg: Any) -> None:
        mask = mask_of(msg)
        if mask is not True and not is_discrete(msg):
            self.masks[msg["name"]] = torch.broadcast_to(mask, msg["fn"].shape())
        if not is_discrete(msg) and (named := of_elements(msg["fn"], dist)) is not None:
            self.drawn_from[msg["name"]] = named
        support = read_support(msg["fn"].support)
        if is_discrete(msg):
            self.discrete.add(msg["name"])
        else:
            check_atoms(msg["name"], msg["fn"])
        if support is None and not is_discrete(msg):
            raise UnsupportedSiteError(
                f"The site {msg['name']!r} at {caller()} has the support {msg['fn'].support!r}, onto "
                "which no smooth map from R^n is known. Reparameterise the site."
            )
        if support is not None:
            self.supports[msg["name"]] = support

    def _minibatch_of(self, msg: Any, value: torch.Tensor) -> torch.Tensor:
        """A site inside a subsampled plate keeps a value for every element; a minibatch uses some."""
        sizes = {plate.name: plate.size for plate in self.plates}
        for frame in msg["cond_indep_stack"] if self.subsampling else ():
            if frame.name in sizes and frame.dim is not None:
                axis = frame.dim - len(msg["fn"].event_shape)
                if value.shape[axis] == sizes[frame.name]:
                    value = value.index_select(axis, self.indices[frame.name])
        return value

    def outputs(self) -> list[Any]:
        for inside in self.inside:
            self._ranged(functional(inside))
        parameters = [p for _, parameters in self.supports.values() for p in parameters]
        return [
            self.log_prior,
            self.log_likelihood,
            *self.decided,
            *(tensor for seen in self.observations for tensor in (seen.inside, seen.value)),
            *parameters,
            *self.deterministics.values(),
            *self.drawn.values(),
            *self.masks.values(),
            *self.pointwise.values(),
            *(torch.as_tensor(value) for _, values in self.drawn_from.values() for value in values),
            *(terms for terms, _, _ in self.terms.values()),
            *(parameter.value for parameter, _, _ in self.checked),
        ]

    def contents(self) -> Contents:
        return Contents(
            decided_after=tuple(self.decided_after),
            observations=tuple(self.observations),
            supports=self.supports,
            discrete=frozenset(self.discrete),
            deterministics=tuple(self.deterministics),
            drawn=tuple(self.drawn),
            masks=tuple(self.masks),
            pointwise=tuple(self.pointwise),
            drawn_from=self.drawn_from,
            terms={name: (is_prior, is_plain) for name, (_, is_prior, is_plain) in self.terms.items()},
            subsampled=self.plates if self.subsampling else (),
            open={name: as_numpy(value) for name, value in self.parameters.open.items()},
            parameters=tuple(self.parameters.learned.values()),
        )


def _log_prob(msg: Any, fn: Any) -> torch.Tensor:
    try:
        return fn.log_prob(filled(msg) if is_observation(msg) else msg["value"])
    except Exception as error:
        if wrong := shape_error(msg, caller()):
            raise wrong from error
        if is_observation(msg) and not _is_covered(msg):
            return torch.zeros(())  # values that PyTorch does not compute with: the path is impossible
        raise


def _by_element(msg: Any, fn: Any) -> torch.Tensor:
    """The terms of a discrete site, one for each element. What it cannot be has no share."""
    single = by_element(fn, dist)
    assert single is not None
    plain = single.log_prob(msg["value"])
    scale = torch.as_tensor(msg["scale"])
    scale = scale.reshape(scale.shape + (1,) * fn.event_dim) if scale.ndim else scale
    return torch.where(single.support.check(msg["value"]), scale * plain, -torch.inf)


def _is_covered(msg: Any) -> bool:
    value, mask = torch.as_tensor(msg["value"]), torch.as_tensor(mask_of(msg))
    return all(bool(inside.all()) for inside, _ in covered(msg["fn"], value, mask, torch.Tensor.float))


def _log_probability(fn: Any, value: torch.Tensor, density: torch.Tensor) -> torch.Tensor:
    """That a pinned site has its value, which may be one that is never drawn."""
    never = never_drawn(fn, value)
    return density if never is None else torch.where(never, -torch.inf, density)
