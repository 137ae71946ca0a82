"""The density of a program along one path, gathered site by site while the program is traced."""

from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpyro import distributions as dist
from numpyro.distributions import biject_to

from pathmix.doors.jax import Tracer
from pathmix.errors import UnsupportedSiteError
from pathmix.frontends.atoms import check_atoms
from pathmix.frontends.decisions import holds
from pathmix.frontends.emptiness import is_empty
from pathmix.frontends.masks import unmasked
from pathmix.frontends.numpyro.inputs import inputs_behind
from pathmix.frontends.numpyro.sites import is_discrete, is_latent, is_observation, mask_of
from pathmix.frontends.numpyro.templates import by_template
from pathmix.frontends.numpyro.zeros import never_drawn
from pathmix.frontends.observations import broadcast_remark, covered, covered_before, described, flaw_of
from pathmix.frontends.parameters import check_known, parameters
from pathmix.frontends.priors import Named, of_elements, prior
from pathmix.frontends.shapes import shape_error
from pathmix.frontends.supports import Ranges, SupportBounds, bounds, integer_bounds, template
from pathmix.frontends.undecided import by_element
from pathmix.program.path import Decision, DecisionKind
from pathmix.program.slp import Facts, Flaw, TermOutput
from pathmix.program.source import caller


class Density:
    """What the sites and decisions so far say about log-prior, log-likelihood, conditions and supports."""

    def __init__(self) -> None:
        self.log_prior: Any = jnp.zeros(())
        self.log_likelihood: Any = jnp.zeros(())
        self.conditions: list[tuple[Any, Decision]] = []
        self.decided_after: list[int] = []
        self.supports: dict[str, Any] = {}  # bijections of free sites
        self.drawn_from: dict[str, Named] = {}  # of free sites whose elements are independent
        self.bounds: dict[str, SupportBounds] = {}
        self.unbounded: dict[str, Any] = {}  # supports that depend on other sites, or have no bounds
        self.ranges = Ranges()
        self.deterministics: dict[str, Any] = {}
        self.drawn: dict[str, Any] = {}  # log-probabilities of discrete sites
        self.terms: dict[str, tuple[Any, bool, bool]] = {}  # of the density: is it a prior, is it plain
        self.own: dict[str, Any] = {}  # of discrete sites: distribution, value, terms, scale
        self.summed: tuple[str, ...] = ()  # discrete sites that decide nothing
        self.params: list[str] = []
        self.observed: list[str] = []
        self.is_conditioned = False
        # Observed sites with supports that depend on latent ones, and whether these cover the data.
        self.indicators: list[tuple[str, Any]] = []
        self.flaws: list[Flaw] = []
        self.remarks: list[str] = []
        self.masks: dict[str, Any] = {}  # of free sites: which elements have a density
        self.pointwise: dict[str, Any] = {}  # log-likelihoods of the elements of observed sites

    def decide(self, tracer: Any, decision: Decision, sites: int) -> None:
        """A decision, after so many sites."""
        # Compared at the end: inside a function that JAX transforms, the result would belong to it.
        self.conditions.append((tracer, decision))
        self.decided_after.append(sites)

    def add(self, msg: Any) -> None:
        """A statement that has its value."""
        if msg["type"] == "deterministic":
            self.deterministics[msg["name"]] = msg["value"]
        elif msg["type"] == "param":
            self.params.append(msg["name"])
        elif msg["type"] == "sample":
            self._add_site(msg)

    def _add_site(self, msg: Any) -> None:
        fn, value = msg["fn"], msg["value"]
        for parameter in parameters(fn):
            if not isinstance(parameter.value, Tracer) and np.any(parameter.bad(np.asarray(parameter.value))):
                check_known(parameter, np.asarray(parameter.value), msg["name"], caller())
        is_pinned = is_latent(msg) and is_discrete(msg)
        if is_pinned:
            fn = unmasked(fn, dist)  # each value is a path of its own, and needs its probability
        drawn = "drawn" if is_pinned else "before" if is_latent(msg) else None
        checked = "all" if is_observation(msg) else drawn
        try:
            numbers, binds = by_template(_numbers, fn, value, msg["intermediates"], msg["scale"], checked)
        except Exception as error:
            if wrong := shape_error(msg, caller()):
                raise wrong from error
            raise
        terms, plain, total, *covers = numbers
        if is_pinned:
            self.drawn[msg["name"]] = plain
            self.own[msg["name"]] = fn, value, terms, msg["scale"]
        if covers:
            terms, total = self._covered(msg, terms, total, list(zip(covers, binds, strict=True)))
        scaled = terms if msg["scale"] is None else msg["scale"] * terms
        self.terms[msg["name"]] = scaled, not msg["is_observed"], msg["scale"] is None
        if is_observation(msg):
            self.observed.append(msg["name"])
            self.pointwise[msg["name"]] = scaled
        if msg["is_observed"]:
            self.is_conditioned = True
            self.log_likelihood = _added(self.log_likelihood, total)
        else:
            self.log_prior = _added(self.log_prior, total)
        if is_latent(msg):
            self._support(msg)

    def _covered(self, msg: Any, terms: Any, total: Any, covers: list[tuple[Any, bool]]) -> tuple[Any, Any]:
        """The density of a site and its elements, zero where its distribution cannot have given its value."""
        name, fn, value, source = msg["name"], msg["fn"], jnp.asarray(msg["value"]), caller()
        if is_observation(msg):
            batch = value.shape[: value.ndim - len(fn.event_shape)]
            if remark := broadcast_remark(name, source, batch, fn.batch_shape):
                self.remarks.append(remark)
        known = None if isinstance(value, Tracer) else np.asarray(value)
        outside = False
        for inside, is_binding in covers:
            if isinstance(inside, Tracer):
                if not is_binding:
                    continue
                self.indicators.append((f"{name!r} at {source}", jnp.all(inside)))
            elif flaw := flaw_of(name, source, known, np.asarray(inside), described(fn.support)):
                self.flaws.append(flaw)
            else:
                continue
            terms, outside = jnp.where(inside, terms, -jnp.inf), True
        if outside:
            total = jnp.sum(terms if msg["scale"] is None else msg["scale"] * terms)
        return terms, total

    def _support(self, msg: Any) -> None:
        name, support = msg["name"], msg["fn"].support
        if is_discrete(msg):
            self.bounds[name] = integer_bounds(support)
            if self.bounds[name] is None:
                self.unbounded[name] = support
            return
        check_atoms(name, msg["fn"])
        if (named := of_elements(msg["fn"], dist)) is not None:
            self.drawn_from[name] = named
        if (mask := mask_of(msg["fn"])) is not True:
            self.masks[name] = jnp.broadcast_to(mask, msg["fn"].shape())
        self.bounds[name] = bounds(support)
        if self.bounds[name] is None:
            self.unbounded[name] = support
        try:
            self.supports[name] = biject_to(support)
        except NotImplementedError as error:
            raise UnsupportedSiteError(
                f"The site {name!r} at {caller()} has the support {support!r}, onto which no smooth map from "
                "R^n is known. Reparameterise the site."
            ) from error

    def facts(self) -> Facts:
        return Facts(
            is_conditioned=self.is_conditioned,
            flaw=self.flaws[0] if self.flaws else None,
            remarks=tuple(self.remarks),
        )

    def outputs(self) -> list[Any]:
        outputs = [
            self.log_prior,
            self.log_likelihood,
            *(
                # What comes out of a function beside random values need not be random itself.
                _condition(tracer, decision) if any(inputs_behind(tracer)) else jnp.array(True)
                for tracer, decision in self.conditions
            ),
            *(inside for _, inside in self.indicators),
        ]
        self.bijections = {name: template(bijection, outputs) for name, bijection in self.supports.items()}
        self.deterministic_slots = {
            name: len(outputs) + position for position, name in enumerate(self.deterministics)
        }
        outputs += self.deterministics.values()
        for name, support in self.unbounded.items():
            self.ranges.add(name, support, outputs)
        for name in self.summed:
            self.drawn.pop(name, None)
        self.drawn_slots = {name: len(outputs) + position for position, name in enumerate(self.drawn)}
        outputs += self.drawn.values()
        self.mask_slots = {name: len(outputs) + position for position, name in enumerate(self.masks)}
        outputs += self.masks.values()
        self.pointwise_slots = {name: len(outputs) + position for position, name in enumerate(self.pointwise)}
        outputs += self.pointwise.values()
        self.priors = {name: prior(*named, outputs) for name, named in self.drawn_from.items()}
        self.term_slots = tuple(self._term_slots(outputs)) if self.summed else ()
        return outputs

    def _term_slots(self, outputs: list[Any]) -> Iterator[TermOutput]:
        """The terms of the density, for sums over discrete sites; what cannot be has no share."""
        for name, (terms, is_prior, is_plain) in self.terms.items():
            if is_own := name in self.summed:
                terms = _elements(*self.own[name])
            yield TermOutput(name, len(outputs), is_prior, is_own and is_plain)
            outputs.append(terms)


def _added(sum: Any, term: Any) -> Any:
    return jax.lax.add(sum, term) if sum.dtype == term.dtype and sum.shape == term.shape else sum + term


def _elements(fn: Any, value: Any, terms: Any, scale: Any) -> Any:
    """The terms of a site that is summed out, one for each element. What it cannot be has no share."""
    single = by_element(fn, dist)
    assert single is not None
    own = terms if single is fn else single.log_prob(value)
    own = own if scale is None else jnp.reshape(scale, jnp.shape(scale) + (1,) * fn.event_dim) * own
    return jnp.where(single.support(value), own, -jnp.inf)


def _condition(value: Any, decision: Decision) -> Any:
    (condition,), _ = by_template(_holds, value, decision.kind, decision.value)
    return condition


def _holds(value: Any, kind: DecisionKind, seen: Any) -> tuple[list[Any], None]:
    return [holds(value, Decision(kind, seen))], None


def _numbers(fn: Any, value: Any, intermediates: Any, scale: Any, checked: str | None) -> Any:
    """The log-density of each element, their sum, that with its scale, and whether the value can be.

    Observed values are checked against the support and what comes before transforms, continuous ones that are
    drawn against the latter. Pinned ones may be values that are never drawn, which only their sum tells.
    """
    if is_empty(fn, value):
        nothing = jnp.zeros(())
        return [nothing, nothing, nothing], ()
    terms = fn.log_prob(value, *((intermediates,) if intermediates else ()))
    mask = jnp.asarray(mask_of(fn))
    check = {"all": covered, "before": covered_before}.get(checked or "")
    covers = [] if check is None else check(fn, jnp.asarray(value), mask, lambda x: x.astype(jnp.float32))
    plain = total = jnp.sum(terms)
    if checked == "drawn" and (never := never_drawn(fn, value)) is not None:
        plain = jnp.where(never, -jnp.inf, plain)
    total = total if scale is None else jnp.sum(scale * terms)
    return [terms, plain, total, *(cover.inside for cover in covers)], tuple(cover.binds for cover in covers)
