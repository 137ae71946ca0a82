"""Replay: trace a NumPyro program along a recorded path into a straight-line program.

Every latent value, pinned ones too, is an input of the trace; decisions are answered from the
record, and the condition for each to come out so is an output. What depends on no random value is
computed while tracing (`ensure_compile_time_eval`), so decisions on data never reach the record.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpyro import distributions as dist
from numpyro.distributions import biject_to

from pathmix.doors.jax import Tracer, trace_of
from pathmix.doors.numpyro import Messenger
from pathmix.errors import UnsupportedSiteError
from pathmix.frontends.decisions import holds
from pathmix.frontends.emptiness import is_empty
from pathmix.frontends.following import Following
from pathmix.frontends.masks import unmasked
from pathmix.frontends.numpyro.routing import routed
from pathmix.frontends.numpyro.scope import frontend_scope
from pathmix.frontends.numpyro.sites import (
    freeze_plumbing,
    is_discrete,
    is_latent,
    is_observation,
    marks_fixed,
    mask_of,
)
from pathmix.frontends.observations import broadcast_remark, covered, covered_before, described, flaw_of
from pathmix.frontends.parameters import check_known, parameters
from pathmix.frontends.shapes import shape_error
from pathmix.frontends.supports import Ranges, SupportBounds, bounds, integer_bounds, template
from pathmix.program.arguments import take_data
from pathmix.program.batch_run import BatchRun
from pathmix.program.graph import Graph
from pathmix.program.path import Decision, DecisionKind
from pathmix.program.program import Program
from pathmix.program.slp import Facts, Flaw, Plate, StraightLineProgram
from pathmix.program.source import caller


def replay(program: Program, batch_run: BatchRun) -> StraightLineProgram:
    """The straight-line program of a recorded path."""
    avals = {
        name: jax.ShapeDtypeStruct(values.shape[1:], values.dtype)
        for name, values in batch_run.values.items()
    }
    graph, replayer = _trace(program, batch_run, avals, plates=None)
    minibatch = None
    if replayer.plates:
        minibatch, _ = _trace(program, batch_run, avals, plates=replayer.plates)
    here = replayer.ranges.known(graph, batch_run.known)
    return StraightLineProgram(
        path=batch_run.path,
        recorded=batch_run.path,
        sources=batch_run.sources,
        sites=tuple(
            batch_run.site(name, replayer.bijections.get(name), replayer.bounds[name], here.get(name))
            for name in batch_run.path.addresses
        ),
        graph=graph,
        deterministics=tuple(replayer.deterministic_slots.items()),
        drawn=tuple(replayer.drawn_slots.items()),
        decided_after=tuple(replayer.decided_after),
        params=tuple(replayer.params),
        observed=tuple(replayer.observed),
        facts=replayer.facts(),
        masks=tuple(replayer.mask_slots.items()),
        indicators=tuple(where for where, _ in replayer.indicators),
        plates=replayer.plates,
        minibatch=minibatch,
    )


def _trace(
    program: Program,
    batch_run: BatchRun,
    avals: dict[str, Any],
    plates: tuple[Plate, ...] | None,
) -> tuple[Graph, "_Replayer"]:
    replayer = _Replayer(batch_run, plates)

    def density(values: dict[str, Any], indices: tuple[Any, ...]) -> list[Any]:
        replayer.begin(values, indices)
        with replayer:
            program()
        return replayer.outputs()

    # A dict would sort the sites; the graph takes them in the order of the path.
    def ordered(inputs: list[Any], indices: tuple[Any, ...]) -> list[Any]:
        return density(dict(zip(avals, inputs, strict=True)), indices)

    indices = tuple(
        jax.ShapeDtypeStruct((plate.subsample_size,), jnp.arange(1).dtype) for plate in plates or ()
    )
    with frontend_scope(), routed(replayer), jax.ensure_compile_time_eval():
        closed = jax.make_jaxpr(ordered)(list(avals.values()), indices)
    replayer.following.check_complete()
    return Graph.of(closed), replayer


class _Replayer(Messenger):
    """Gives each site its value and each decision its answer, and collects the density."""

    def __init__(self, batch_run: BatchRun, plates: tuple[Plate, ...] | None) -> None:
        super().__init__()
        self.path = batch_run.path
        self.plates: tuple[Plate, ...] = plates or ()
        self.subsampling = plates is not None

    def begin(self, values: dict[str, Any], indices: tuple[Any, ...]) -> None:
        self.values = values
        self.indices = {plate.name: i for plate, i in zip(self.plates, indices, strict=True)}
        self.trace = next((trace_of(v) for v in values.values() if isinstance(v, Tracer)), None)
        self.log_prior: Any = jnp.zeros(())
        self.log_likelihood: Any = jnp.zeros(())
        self.following = Following(self.path)
        self.conditions: list[tuple[Any, Decision]] = []
        self.supports: dict[str, Any] = {}  # bijections of free sites
        self.bounds: dict[str, SupportBounds] = {}
        self.discrete: dict[str, Any] = {}  # supports that depend on other sites, or have no bounds
        self.ranges = Ranges()
        self.deterministics: dict[str, Any] = {}
        self.drawn: dict[str, Any] = {}  # log-probabilities of discrete sites
        self.decided_after: list[int] = []
        self.params: list[str] = []
        self.observed: list[str] = []
        self.is_conditioned = False
        # Observed sites with supports that depend on latent ones, and whether these cover the data.
        self.indicators: list[tuple[str, Any]] = []
        self.flaws: list[Flaw] = []
        self.remarks: list[str] = []
        self.masks: dict[str, Any] = {}  # of free sites: which elements have a density

    # The observer of decisions.

    def owns(self, tracer: Any) -> bool:
        return trace_of(tracer) is self.trace

    def decide(self, tracer: Any, kind: DecisionKind) -> Any:
        decision = self.following.decide(kind)
        # Compared at the end: inside a function that JAX transforms, the result would belong to it.
        self.conditions.append((tracer, decision))
        self.decided_after.append(self.following.sites)
        return decision.value

    # The handler of sites.

    def process_message(self, msg: Any) -> None:
        if msg["type"] == "plate" and msg["value"] is None:
            self._plate(msg)
        freeze_plumbing(msg)
        if msg["type"] == "control_flow":
            msg["kwargs"]["substitute_stack"].append(("substitute", self.values))
        if msg["type"] != "sample":
            return
        take_data(msg, jnp.asarray)
        marks_fixed(msg)
        if is_latent(msg):
            self.following.draw(msg["name"])
            msg["value"] = self._minibatch_of(msg, self.values[msg["name"]])

    def postprocess_message(self, msg: Any) -> None:
        if msg["type"] == "deterministic":
            self.deterministics[msg["name"]] = msg["value"]
        elif msg["type"] == "param":
            self.params.append(msg["name"])
        elif msg["type"] == "sample":
            self._add_density(msg)

    def _add_density(self, msg: Any) -> None:
        fn, value = msg["fn"], msg["value"]
        for parameter in parameters(fn):
            if not isinstance(parameter.value, Tracer):
                check_known(parameter, np.asarray(parameter.value), msg["name"], caller())
        if is_latent(msg) and is_discrete(msg):
            fn = unmasked(fn, dist)  # each value is a path of its own, and needs its probability
        if is_empty(fn, value):
            terms = jnp.zeros(())
        else:
            terms = _log_prob(msg, fn)
        if is_latent(msg) and is_discrete(msg):
            self.drawn[msg["name"]] = jnp.sum(terms)
        if is_observation(msg):
            self.observed.append(msg["name"])
            terms = terms if is_empty(fn, value) else self._covered(msg, terms)
        elif is_latent(msg) and not is_discrete(msg) and not is_empty(fn, value):
            terms = self._covered_before(msg, terms)
        if msg["scale"] is not None:
            terms = msg["scale"] * terms
        total = jnp.sum(terms)
        if msg["is_observed"]:
            self.is_conditioned = True
            self.log_likelihood = self.log_likelihood + total
        else:
            self.log_prior = self.log_prior + total
        if is_latent(msg):
            self._support(msg)

    def _covered(self, msg: Any, terms: Any) -> Any:
        """The density of observed values, which is zero outside of the support."""
        name, fn, value, source = msg["name"], msg["fn"], jnp.asarray(msg["value"]), caller()
        batch = value.shape[: value.ndim - len(fn.event_shape)]
        if remark := broadcast_remark(name, source, batch, fn.batch_shape):
            self.remarks.append(remark)
        known = None if isinstance(value, Tracer) else np.asarray(value)
        mask = jnp.asarray(mask_of(fn))
        for inside, binds in covered(fn, value, mask, lambda x: x.astype(jnp.float32)):
            if isinstance(inside, Tracer) and not binds:
                continue
            if isinstance(inside, Tracer):
                self.indicators.append((f"{name!r} at {source}", jnp.all(inside)))
                terms = jnp.where(inside, terms, -jnp.inf)
            elif flaw := flaw_of(name, source, known, np.asarray(inside), described(fn.support)):
                self.flaws.append(flaw)
                terms = jnp.where(inside, terms, -jnp.inf)
        return terms

    def _covered_before(self, msg: Any, terms: Any) -> Any:
        """The density of a latent site, which is zero where no transform could lead to its value."""
        mask = jnp.asarray(mask_of(msg["fn"]))
        for inside, _ in covered_before(msg["fn"], msg["value"], mask, lambda x: x.astype(jnp.float32)):
            self.indicators.append((f"{msg['name']!r} at {caller()}", jnp.all(inside)))
            terms = jnp.where(inside, terms, -jnp.inf)
        return terms

    def _support(self, msg: Any) -> None:
        name, support = msg["name"], msg["fn"].support
        if is_discrete(msg):
            self.bounds[name] = integer_bounds(support)
            if self.bounds[name] is None:
                self.discrete[name] = support
            return
        if (mask := mask_of(msg["fn"])) is not True:
            self.masks[name] = jnp.broadcast_to(mask, msg["fn"].shape())
        self.bounds[name] = bounds(support)
        try:
            self.supports[name] = biject_to(support)
        except NotImplementedError as error:
            raise UnsupportedSiteError(
                f"The site {name!r} at {caller()} has the support {support!r}, onto which no smooth map from "
                "R^n is known. Reparameterise the site."
            ) from error

    def _plate(self, msg: Any) -> None:
        size, subsample_size = msg["args"]
        plate = Plate(msg["name"], size, subsample_size)
        if self.subsampling:
            msg["value"] = self.indices[plate.name]
        elif plate not in self.plates:
            self.plates = (*self.plates, plate)

    def _minibatch_of(self, msg: Any, value: Any) -> Any:
        """A site inside a subsampled plate keeps a value for every element; a minibatch uses some."""
        sizes = {plate.name: plate.size for plate in self.plates}
        for frame in msg["cond_indep_stack"] if self.subsampling else ():
            axis = frame.dim - len(msg["fn"].event_shape)
            if frame.name in sizes and value.shape[axis] == sizes[frame.name]:
                value = jnp.take(value, self.indices[frame.name], axis=axis)
        return value

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
            *(holds(tracer, decision) for tracer, decision in self.conditions),
            *(inside for _, inside in self.indicators),
        ]
        self.bijections = {name: template(bijection, outputs) for name, bijection in self.supports.items()}
        self.deterministic_slots = {
            name: len(outputs) + position for position, name in enumerate(self.deterministics)
        }
        outputs += self.deterministics.values()
        for name, support in self.discrete.items():
            self.ranges.add(name, support, outputs)
        self.drawn_slots = {name: len(outputs) + position for position, name in enumerate(self.drawn)}
        outputs += self.drawn.values()
        self.mask_slots = {name: len(outputs) + position for position, name in enumerate(self.masks)}
        return [*outputs, *self.masks.values()]


def _log_prob(msg: Any, fn: Any) -> Any:
    rest = (msg["intermediates"],) if msg["intermediates"] else ()
    try:
        return fn.log_prob(msg["value"], *rest)
    except Exception as error:
        if wrong := shape_error(msg, caller()):
            raise wrong from error
        raise
