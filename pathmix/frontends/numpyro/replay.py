"""Replay: the straight-line program of a recorded path.

A prior run that was recorded carries its trace, and costs no further run. Other runs are traced once more,
their decisions answered from the record; so are runs whose repetition is asked for, and the minibatches of a
program that subsamples.
"""

from typing import Any

import jax.numpy as jnp

from pathmix.doors.jax import trace_of
from pathmix.doors.numpyro import Messenger
from pathmix.errors import UnsupportedSiteError
from pathmix.frontends.following import Following
from pathmix.frontends.numpyro.control_flow import marks_fixed_inside, put_in
from pathmix.frontends.numpyro.inputs import Name, graph_of, make_input, traced
from pathmix.frontends.numpyro.routing import routed
from pathmix.frontends.numpyro.scope import frontend_scope
from pathmix.frontends.numpyro.sites import freeze_plumbing, is_latent, marks_fixed
from pathmix.frontends.numpyro.tracedrun import TracedRun
from pathmix.frontends.numpyro.widths import in_one_width
from pathmix.frontends.undecided import without_summed
from pathmix.program.arguments import take_data
from pathmix.program.batch_run import BatchRun
from pathmix.program.graph import Graph
from pathmix.program.lifting import captured, check_learnable
from pathmix.program.path import DecisionKind
from pathmix.program.program import Program
from pathmix.program.slp import Plate, StraightLineProgram


def replay(program: Program, batch_run: BatchRun) -> StraightLineProgram:
    """The straight-line program of a recorded path."""
    return batch_run.summed or without_summed(program, whole(program, batch_run), batch_run)


def whole(program: Program, batch_run: BatchRun) -> StraightLineProgram:
    """With all its sites."""
    run = batch_run.trace
    if not isinstance(run, TracedRun):
        run = _retraced(program, batch_run, plates=())
    graph, density = _graph(run, batch_run, ()), run.density
    minibatch = None
    if run.plates:
        minibatch = _graph(_retraced(program, batch_run, run.plates), batch_run, run.plates)
    here = density.ranges.known(graph, batch_run.known)
    # Along the path, pinned sites are numbers: a support that depends on them alone is as good as any.
    bounds = density.bounds | {name: here[name] for name in density.bijections.keys() & here.keys()}
    for name in batch_run.path.addresses:
        if name not in bounds:
            raise UnsupportedSiteError(
                f"The site {name!r} is inside of a scan or cond of numpyro.contrib.control_flow, and a "
                "handler around that (handlers.scope, handlers.block) renames or hides it. Put the handler "
                "around the function that scan or cond is given."
            )
    slp = StraightLineProgram(
        path=batch_run.path,
        recorded=batch_run.path,
        sources=batch_run.sources,
        sites=tuple(
            batch_run.site(
                name, density.bijections.get(name), bounds[name], here.get(name), density.priors.get(name)
            )
            for name in batch_run.path.addresses
        ),
        graph=graph,
        deterministics=tuple(density.deterministic_slots.items()),
        drawn=tuple(density.drawn_slots.items()),
        decided_after=tuple(density.decided_after),
        params=tuple(density.params),
        observed=tuple(density.observed),
        facts=density.facts(),
        masks=tuple(density.mask_slots.items()),
        pointwise=tuple(density.pointwise_slots.items()),
        indicators=tuple(where for where, _ in density.indicators),
        plates=run.plates,
        minibatch=minibatch,
        settled=run.settled,
        terms=density.term_slots,
        parameters=tuple(run.parameters.learned),
    )
    check_learnable(slp)
    return slp


def _graph(run: TracedRun, batch_run: BatchRun, plates: tuple[Plate, ...]) -> Graph:
    """The density as a function of all sites, in the order of the path, and of the rows of plates."""
    if run.error is not None:
        raise run.error
    assert run.jaxpr is not None
    parts = [parameter.part for parameter in run.parameters.learned]
    inputs = [Name("param", part) for part in parts]
    inputs += [Name("site", name) for name in batch_run.path.addresses]
    inputs += [Name("rows", plate.name) for plate in plates]
    return captured(graph_of(run.jaxpr, inputs), [run.parameters.rows(part) for part in parts])


def _retraced(program: Program, batch_run: BatchRun, plates: tuple[Plate, ...]) -> TracedRun:
    """The path once more; with `plates`, on minibatches of them."""
    replayer = _Replayer(program, batch_run, plates)
    with frontend_scope(), routed(replayer):
        replayer.traced_run.jaxpr = traced(replayer.run)
    replayer.following.check_complete()
    return replayer.traced_run


class _Replayer(Messenger):
    """Gives each site its value and each decision its answer."""

    def __init__(self, program: Program, batch_run: BatchRun, plates: tuple[Plate, ...]) -> None:
        super().__init__()
        self.program, self.values, self.plates = program, batch_run.values, plates
        self.following = Following(batch_run.path)
        self.traced_run = TracedRun(program, is_kept=True)
        self.summed = batch_run.path.summed

    def run(self, token: Any) -> list[Any]:
        """The program under tracing."""
        self.trace = trace_of(token)
        self.inputs = {
            name: make_input(token, Name("site", name), values.shape[1:], values.dtype)
            for name, values in self.values.items()
        }
        self.rows = {
            plate.name: make_input(
                token, Name("rows", plate.name), (plate.subsample_size,), jnp.arange(1).dtype
            )
            for plate in self.plates
        }
        self.traced_run.begin(token)
        with self:
            self.program()
        return self.traced_run.outputs(self.summed)

    # The observer of decisions.

    def owns(self, tracer: Any) -> bool:
        return trace_of(tracer) is self.trace

    def decide(self, tracer: Any, kind: DecisionKind) -> Any:
        decision = self.following.decide(kind)
        self.traced_run.decide(tracer, decision, self.following.sites)
        return decision.value

    # The handler of sites.

    def process_message(self, msg: Any) -> None:
        if msg["type"] == "plate" and msg["value"] is None and msg["name"] in self.rows:
            msg["value"] = self.rows[msg["name"]]
        self.traced_run.note_plate(msg)
        freeze_plumbing(msg)
        self.traced_run.hidden.give(msg)
        self.traced_run.parameters.give(msg)
        if msg["type"] == "control_flow":
            in_one_width(msg)
            marks_fixed_inside(msg)
            put_in(msg, self.inputs)
        if msg["type"] != "sample":
            return
        take_data(msg, jnp.asarray)
        marks_fixed(msg)
        if is_latent(msg):
            self.following.draw(msg["name"])
            msg["value"] = self._minibatch_of(msg, self.inputs[msg["name"]])

    def postprocess_message(self, msg: Any) -> None:
        self.traced_run.add(msg)

    def _minibatch_of(self, msg: Any, value: Any) -> Any:
        """A site inside a subsampled plate keeps a value for every element; a minibatch uses some."""
        sizes = {plate.name: plate.size for plate in self.plates}
        for frame in msg["cond_indep_stack"]:
            axis = frame.dim - len(msg["fn"].event_shape)
            if frame.name in sizes and value.shape[axis] == sizes[frame.name]:
                value = jnp.take(value, self.rows[frame.name], axis=axis)
        return value
