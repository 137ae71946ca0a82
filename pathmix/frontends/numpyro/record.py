"""Record: trace a NumPyro program along the path of one run of a batch.

The value of every latent site is an input of the trace. When Python looks at a traced value, what that value
depends on, and nothing else, is computed for all runs of the batch at once: draws of sites, and the
operations from them to the value. The decisions of one run, the leader, are followed; a mask keeps which
other runs agree. One slow Python run thus explains all runs that share a path, and its trace is the path's
straight-line program. What only the likelihood needs is traced, and never computed.
"""

import re
from collections.abc import Collection
from typing import Any

import jax.numpy as jnp
import numpy as np
from numpyro import distributions as dist

from pathmix.doors.jax import Tracer, trace_of
from pathmix.doors.numpyro import Messenger
from pathmix.errors import PathmixError, ProgramError, RunawayProgramError
from pathmix.frontends.decisions import agree, as_tuples, seen
from pathmix.frontends.numpyro.control_flow import (
    follow_wishes,
    marks_fixed_inside,
    put_in,
    statements_inside,
)
from pathmix.frontends.numpyro.inputs import traced
from pathmix.frontends.numpyro.lazily import Lazily
from pathmix.frontends.numpyro.parameters import refuse_inside
from pathmix.frontends.numpyro.routing import note_tracers, routed
from pathmix.frontends.numpyro.scope import frontend_scope
from pathmix.frontends.numpyro.sites import (
    freeze_plumbing,
    is_discrete,
    is_latent,
    is_observation,
    marks_fixed,
    unobserve,
)
from pathmix.frontends.numpyro.supply import Supply
from pathmix.frontends.numpyro.tracedrun import TracedRun
from pathmix.frontends.numpyro.widths import in_one_width, note_widths
from pathmix.frontends.parameters import parameters
from pathmix.frontends.shapes import failing_site, shape_error
from pathmix.frontends.sitelog import SiteLog
from pathmix.frontends.statements import only
from pathmix.frontends.tree import Node, Tree, Walk
from pathmix.frontends.undecided import by_element
from pathmix.program.arguments import take_data
from pathmix.program.batch_run import BatchRun
from pathmix.program.failures import FailedRun
from pathmix.program.path import Decision, DecisionKind, Path
from pathmix.program.program import Program
from pathmix.program.seeds import SeedBatch
from pathmix.program.slp import Settled
from pathmix.program.source import Source, caller, raised_at
from pathmix.program.wishes import SIMULATED, Wishes

# How a random value shows in a text.
_TRACED = re.compile(r"Traced<|Tracer[<(]")
_FEW_ELEMENTS = 64  # of a parameter of an observed site that is looked at


def record(
    program: Program,
    seeds: SeedBatch,
    leader: int,
    wishes: Wishes = Wishes(),
    tree: Tree | None = None,
    at_once: frozenset[str] = frozenset(),
) -> BatchRun | FailedRun:
    """Run `program` for a batch of seeds, along the path of the seed number `leader`.

    `tree` has what earlier runs of the same batch found. Discrete sites are pinned where they have a say, or
    `at_once`, if that is known.
    """
    tree = tree or Tree()
    recorder = _Recorder(program, seeds, leader, wishes, tree.walk(), at_once)
    with frontend_scope(), only("numpyro"), routed(recorder):
        try:
            recorder.traced_run.jaxpr = traced(recorder.run)
        except RecursionError as error:
            return recorder.failed(recorder.log.too_deep(error))
        except RunawayProgramError as error:
            return recorder.failed(error)
        except PathmixError:
            raise
        except Exception as error:
            note_tracers(error)
            note_widths(error)
            return recorder.failed(error)
        finally:
            recorder.lazily.end()
    if recorder.is_mixed:
        return record(program, seeds, leader, wishes, tree, frozenset(recorder.late))
    return recorder.batch_run()


class _Recorder(Messenger):
    """Sees every site and every decision of one traced run."""

    def __init__(
        self,
        program: Program,
        seeds: SeedBatch,
        leader: int,
        wishes: Wishes,
        walk: Walk,
        at_once: frozenset[str],
    ) -> None:
        super().__init__()
        self.at_once = at_once
        self.program, self.seeds, self.leader, self.wishes, self.walk = program, seeds, leader, wishes, walk
        self.size = len(seeds)
        self.log = SiteLog(program.limits)
        self.traced_run = TracedRun(program, is_kept=wishes.follows_prior)
        parameter = self.traced_run.parameters.rows
        self.lazily = Lazily(self.size)
        self.supply = Supply(seeds, wishes, self.lazily.of, parameter)
        self.lazily.begin(self.supply.rows)
        self.decisions: list[Decision] = []
        self.sources: list[Source] = []
        self.settled: list[bool] = []  # decisions in which free sites have no say
        self.inputs: dict[str, Any] = {}  # the tracer of each site's value
        self.nodes: dict[str, Node] = {}
        self.simulated: dict[str, Any] = {}
        self.pending: list[str] = []  # discrete sites that have decided nothing so far
        self.late: dict[str, Any] = {}  # those that were, and are pinned by now
        self.is_mixed = False  # other runs may have decided on a draw given a value of their own
        self.followed = np.ones(self.size, bool)
        self.inside = np.ones(self.size, bool)
        self.invalid: dict[str, np.ndarray] = {}

    def run(self, token: Any) -> list[Any]:
        """The program under tracing, to its end."""
        self.trace = trace_of(token)
        self.supply.begin(token)
        self.traced_run.begin(token)
        with self.log.own_time, self:  # from here: JAX counts the tracing itself as compilation
            self.program()
        if self.pending and self.program.split.get(self._path):
            self._settle(self.pending)
        self.walk.end()
        for name, node in self.nodes.items():
            if node.values is None and name not in self.supply.pinned:
                self.supply.sites[name] = self._values(name)
        self.observed = {name: self.lazily.of(value) for name, value in self.simulated.items()}
        outputs = self.traced_run.outputs(tuple(self.pending))
        drawn = self.traced_run.density.drawn
        self.traced_run.settled = Settled(
            tuple(self.settled), tuple(self._log_probability(name, drawn[name]) for name in drawn)
        )
        return outputs

    def _log_probability(self, name: str, value: Any) -> float | None:
        """That a discrete site has its value here, where free sites have no say in it."""
        known, pinned = self.nodes[name].log_probabilities, (self.supply.pinned[name], *self.late.items())
        if pinned not in known:
            is_open = isinstance(value, Tracer) and self.lazily.is_open(value)
            known[pinned] = None if is_open else float(self.lazily.of(value)[self.leader])
        return known[pinned]

    # The observer of decisions.

    def owns(self, tracer: Any) -> bool:
        return trace_of(tracer) is self.trace

    def decide(self, tracer: Any, kind: DecisionKind) -> Any:
        self.log.check_limits()
        if self.pending:
            self._settle(self.lazily.sites_behind(tracer))
        node = self.walk.look(kind)
        if node.values is None or node.source is None:
            node.source, node.is_settled = caller(), not self.lazily.is_open(tracer)
            self.walk.keep(node, self.lazily.of(tracer))
            assert node.values is not None
        decision = seen(node.values[self.leader], kind)
        agreeing = agree(node.values, decision)
        self.followed &= agreeing
        self.inside &= agreeing
        self.decisions.append(decision)
        self.sources.append(node.source)
        self.settled.append(node.is_settled)
        self.walk.take(node, decision)
        self.traced_run.decide(tracer, decision, len(self.inputs))
        return decision.value

    # The handler of sites.

    def process_message(self, msg: Any) -> None:
        self.traced_run.note_plate(msg)
        freeze_plumbing(msg)
        self.traced_run.hidden.give(msg)
        self.traced_run.parameters.give(msg)
        if msg["type"] == "control_flow":
            in_one_width(msg)
            marks_fixed_inside(msg)
            self._enter_control_flow(msg)
        if msg["type"] == "deterministic":
            self._note(msg["name"])
            if self.wishes.simulate is not None:
                self.simulated[msg["name"]] = jnp.asarray(msg["value"])
        if msg["type"] != "sample":
            return
        self._note(msg["name"])
        self.log.check_limits()
        take_data(msg, jnp.asarray)
        marks_fixed(msg)
        name, observed = msg["name"], is_observation(msg) or SIMULATED in msg["infer"]
        if name in self.inputs:  # from inside of control flow
            msg["value"] = self.inputs[name]
        elif self.wishes.puts_in(name, latent=is_latent(msg), observed=observed):
            msg["value"], msg["is_observed"] = None, False
            msg["value"] = self._site(msg)
        elif self.wishes.simulates(name, observed=observed):
            unobserve(msg)
            if msg["value"] is None:
                msg["value"] = self.supply.draw(msg, self.supply.next_key())
            self.simulated[name] = msg["value"]
        elif is_latent(msg):
            msg["value"] = self._site(msg)
        elif self.wishes.data and observed:
            self.simulated[name] = jnp.asarray(msg["value"])

    def postprocess_message(self, msg: Any) -> None:
        if msg["type"] == "sample" and msg["name"] not in self.inputs:
            self._check_parameters(msg, self.invalid, at_hand=True)
        self.traced_run.add(msg)

    def _site(self, msg: Any, drawn: Any = None) -> Any:
        """A new latent site, whose draw may be there already."""
        name, position = msg["name"], self.supply.next_key()
        self.nodes[name] = node = self.walk.site(name)
        if node.values is None:
            drawn = self.supply.latent(msg, position, drawn)
            if isinstance(drawn, Tracer) and not self.owns(drawn):
                raise _inside_a_transformation()
            self.supply.keep(name, drawn)
            if self.pending and isinstance(drawn, Tracer):
                behind = self.lazily.sites_behind(drawn)
                node.given = frozenset(self.pending) & behind
                node.given = node.given.union(*(self.nodes[other].given for other in behind))
            self._check_parameters(msg, node.invalid, at_hand=False)
            shape, dtype = jnp.shape(drawn), jnp.result_type(drawn)
        else:
            self.supply.keep(name, node.values)
            shape, dtype = node.values.shape[1:], node.values.dtype
        self.invalid.update(node.invalid)
        self.inputs[name] = value = self.supply.site(name, shape, dtype)
        if not self.owns(value):
            raise _inside_a_transformation()
        if not is_discrete(msg):
            self.walk.take(node)
        elif by_element(msg["fn"], dist) is None or name in self.at_once:
            self._pin(name, node)
        else:
            self.walk.take(node)
            self.pending.append(name)
        return value

    def _enter_control_flow(self, msg: Any) -> None:
        """Run what is inside once, to see its sites and how they are drawn; then again at their values."""
        wishes, supply = self.wishes, self.supply
        key = supply.key(supply.next_key())
        if not wishes.follows_prior:
            given = {name: supply.given(name) for name in wishes.given}
            follow_wishes(msg, wishes, given, supply.key(supply.next_key()))
        inside = statements_inside(msg, key)
        if self.program.parameter_use == "inputs":
            refuse_inside(inside)
        for site in inside:
            if is_latent(site) and SIMULATED not in site["infer"]:
                self._site(site, drawn=site["value"])
        put_in(msg, self.inputs)

    def _check_parameters(self, msg: Any, invalid: dict[str, np.ndarray], *, at_hand: bool) -> None:
        """Which seeds have a parameter that cannot be. What is not random is checked with the density.

        What a likelihood takes is not computed to look at it, unless it is `at_hand`.
        """
        for parameter in parameters(msg["fn"]):
            value = parameter.value
            if not isinstance(value, Tracer) or not self.owns(value):
                continue
            if at_hand and not self.lazily.is_at_hand(value, _FEW_ELEMENTS):
                continue
            bad = np.any(parameter.bad(self.lazily.of(value)).reshape(self.size, -1), axis=1)
            if np.any(bad):
                invalid[parameter.outside(msg["name"], caller())] = bad

    def _settle(self, names: Collection[str]) -> None:
        """Some sites have a say: paths differ in their values."""
        for name in [name for name in self.pending if name in names]:
            self.pending.remove(name)
            self._pin(name, self.walk.pin(name))
            if self.decisions and self._drawn_given(name):
                self.is_mixed = True
            self.late[name] = self.supply.pinned[name]
            self.lazily.forget()

    def _drawn_given(self, name: str) -> list[str]:
        """The free sites whose draw depends on a discrete one."""
        free = self.nodes.keys() - self.supply.pinned.keys() - set(self.pending)
        return [other for other in free if name in self.nodes[other].given]

    def _pin(self, name: str, place: Node) -> None:
        """Force every seed to the leader's value, from a place on, and note which had it by themselves."""
        values = self._values(name)
        pinned = values[self.leader]
        self.followed &= np.all((values == pinned).reshape(self.size, -1), axis=1)
        self.supply.pinned[name] = as_tuples(pinned)
        self.walk.take(place, self.supply.pinned[name])
        self.supply.keep(name, np.broadcast_to(pinned, values.shape))

    def _values(self, name: str) -> np.ndarray:
        """Of a site, in all runs."""
        node = self.nodes[name]
        if node.values is not None:
            return node.values
        values = self.lazily.of(self.inputs[name])
        if not node.given & self.late.keys():  # else other runs that come to the place have others
            self.walk.keep(node, values)
        return values

    def _note(self, name: str) -> None:
        self.log.add(name, is_random=_TRACED.search(name) is not None)

    def failed(self, error: Exception) -> FailedRun:
        """What Python does depends on decisions alone: all seeds that took the same ones fail alike."""
        if (msg := failing_site(error)) is not None and (wrong := shape_error(msg, raised_at(error))):
            raise wrong from error
        self.followed[self.leader] = True
        return FailedRun(error, raised_at(error), self.log.last, self.followed, len(self.log))

    @property
    def _path(self) -> Path:
        pinned = self.supply.pinned
        return Path(
            tuple(self.supply.sites),
            tuple(self.decisions),
            tuple((name, pinned[name]) for name in self.supply.sites if name in pinned),
            tuple(self.pending),
        )

    def batch_run(self) -> BatchRun:
        # Not even a NaN takes the leader off its own path.
        self.followed[self.leader] = self.inside[self.leader] = True
        values = self.supply.sites
        return BatchRun(
            path=self._path,
            sources=tuple(self.sources),
            site_sources=self.log.sources(),
            values=values,
            followed=self.followed,
            inside=self.inside,
            observed={**self.observed, **{name: values[name] for name in self.supply.fresh}},
            runs=1,
            invalid=self.invalid,
            trace=self.traced_run if self.traced_run.is_kept else None,
        )


def _inside_a_transformation() -> ProgramError:
    return ProgramError(
        f"The program at {caller()} draws a site inside a function that JAX transforms (jit, vmap, grad, "
        "scan, ...). Draw sites outside it, or use numpyro.contrib.control_flow.scan."
    )
