"""Record: run a NumPyro program forward for a batch of seeds, along the path of one of them.

The program runs eagerly under `jax.vmap` over the seeds. Every random value is then a batch tracer
whose concrete values are readable, so each decision is seen as it is taken. The decisions of one
seed, the leader, are followed; a mask keeps which other seeds agree. One slow Python run thus
explains all seeds that share a path, and no path is compiled to find out.
"""

import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpyro import distributions as dist

from pathmix.doors.jax import Tracer, trace_of
from pathmix.doors.numpyro import Messenger
from pathmix.errors import PathmixError, ProgramError
from pathmix.frontends.decisions import agree, as_tuples, seen
from pathmix.frontends.drawing import check_proper, not_drawn
from pathmix.frontends.numpyro.control_flow import follow_wishes
from pathmix.frontends.numpyro.routing import note_tracers, routed
from pathmix.frontends.numpyro.scope import frontend_scope
from pathmix.frontends.numpyro.sites import (
    freeze_plumbing,
    in_plate,
    is_discrete,
    is_latent,
    is_observation,
    marks_fixed,
    unobserve,
)
from pathmix.frontends.parameters import parameters
from pathmix.frontends.shapes import failing_site, shape_error
from pathmix.frontends.sitelog import SiteLog
from pathmix.frontends.statements import only
from pathmix.frontends.supports import inside
from pathmix.program.arguments import take_data
from pathmix.program.batch_run import BatchRun
from pathmix.program.failures import FailedRun
from pathmix.program.path import Decision, DecisionKind, Path
from pathmix.program.program import Program
from pathmix.program.seeds import SeedBatch
from pathmix.program.source import Source, caller, raised_at
from pathmix.program.wishes import SIMULATED, OutsideSupport, Wishes

# How a random value shows in a text.
_TRACED = re.compile(r"Traced<|Tracer[<(]")


def record(
    program: Program,
    seeds: SeedBatch,
    leader: int,
    wishes: Wishes = Wishes(),
) -> BatchRun | FailedRun:
    """Run `program` for a batch of seeds, along the path of the seed number `leader`."""
    recorder = _Recorder(program, len(seeds[0]), leader, wishes)

    def run(keys: SeedBatch, values: dict[str, Any]) -> None:
        recorder.begin(keys, values)
        with recorder:
            program()

    with frontend_scope(), only("numpyro"), routed(recorder), recorder.log.own_time:
        try:
            jax.vmap(run)(seeds, {name: jnp.asarray(v) for name, v in wishes.given.items()})
        except RecursionError as error:
            raise recorder.log.too_deep() from error
        except PathmixError:
            raise
        except Exception as error:
            note_tracers(error)
            return recorder.failed(error)
    return recorder.batch_run()


class _Recorder(Messenger):
    """Sees every site and every decision of one batched run."""

    def __init__(self, program: Program, size: int, leader: int, wishes: Wishes) -> None:
        super().__init__()
        self.log = SiteLog(program.limits)
        self.size, self.leader = size, leader
        self.wishes = wishes
        self.addresses: list[str] = []
        self.decisions: list[Decision] = []
        self.sources: list[Source] = []
        self.pinned: list[tuple[str, Any]] = []
        self.values: dict[str, np.ndarray] = {}
        self.observed: dict[str, np.ndarray] = {}
        self.fresh: set[str] = set()
        self.followed = np.ones(size, bool)
        self.inside = np.ones(size, bool)
        self.invalid: dict[str, np.ndarray] = {}
        self.drawing: Any = None  # the message of the site that its distribution is about to draw

    def begin(self, keys: SeedBatch, given: dict[str, Any]) -> None:
        self.trace = trace_of(keys[0])
        self.keys = list(keys)
        self.given = given

    # The observer of decisions.

    def owns(self, tracer: Any) -> bool:
        return trace_of(tracer) is self.trace

    def decide(self, tracer: Any, kind: DecisionKind) -> Any:
        self.log.check_limits()
        values = self._concrete(tracer)
        decision = seen(values[self.leader], kind)
        agreeing = agree(values, decision)
        self.followed &= agreeing
        self.inside &= agreeing
        self.decisions.append(decision)
        self.sources.append(caller())
        return decision.value

    # The handler of sites.

    def process_message(self, msg: Any) -> None:
        freeze_plumbing(msg)
        if msg["type"] == "control_flow":
            self._give_key(msg)
            if self.wishes.given or self.wishes.simulate is not None:
                follow_wishes(msg, self.wishes, self.given, self._next_key())
        if msg["type"] == "deterministic":
            self._note(msg["name"])
        if msg["type"] != "sample":
            return
        self._note(msg["name"])
        self.log.check_limits()
        take_data(msg, jnp.asarray)
        marks_fixed(msg)
        name, observed = msg["name"], is_observation(msg) or SIMULATED in msg["infer"]
        if self.wishes.puts_in(name, latent=is_latent(msg), observed=observed):
            self._put_in(msg)
        elif self.wishes.simulates(name, observed=observed):
            unobserve(msg)
        elif is_latent(msg):
            self.wishes.check_present(name, in_plate=in_plate(msg))
            self._draw_afresh(name)
        if isinstance(msg["fn"], dist.Uniform) and msg["value"] is None:
            check_proper(msg["name"], self._concrete(msg["fn"].low), self._concrete(msg["fn"].high))
        self._give_key(msg)
        self.drawing = msg if msg["value"] is None else None

    def postprocess_message(self, msg: Any) -> None:
        if msg["type"] != "sample":
            return
        self.drawing = None
        self._check_parameters(msg)
        name = msg["name"]
        if msg["infer"].get(SIMULATED):
            self.observed[name] = self._concrete(msg["value"])
        elif is_latent(msg):
            if name in self.wishes.gaps:
                given = self.given[name]
                msg["value"] = jnp.where(jnp.isnan(given), msg["value"], given)
            values = self._concrete(msg["value"])
            if is_discrete(msg):
                values = self._pin(msg, values)
            self.addresses.append(name)
            self.values[name] = values
            if name in self.fresh:
                self.observed[name] = values

    def _check_parameters(self, msg: Any) -> None:
        """Which seeds have a parameter that cannot be. What is not random is for the replay to check."""
        for parameter in parameters(msg["fn"]):
            if isinstance(parameter.value, Tracer) and self.owns(parameter.value):
                bad = np.any(parameter.bad(self._concrete(parameter.value)).reshape(self.size, -1), axis=1)
                if np.any(bad):
                    self.invalid[parameter.outside(msg["name"], caller())] = bad

    def _give_key(self, msg: Any) -> None:
        if msg["value"] is None and msg["kwargs"].get("rng_key") is None:
            msg["kwargs"]["rng_key"] = self._next_key()

    def _next_key(self) -> jax.Array:
        if len(self.keys) == 1:
            self.keys = list(jax.random.split(self.keys[0]))
        return self.keys.pop(0)

    def _put_in(self, msg: Any) -> None:
        """Give a site its given value; one that does not fit is drawn, where the wishes allow it."""
        name, value, fn = msg["name"], self.given[msg["name"]], msg["fn"]
        msg["value"], msg["is_observed"] = None, False
        if not self.wishes.fits(name, value.shape, fn.shape(), in_plate=in_plate(msg)):
            return self._draw_afresh(name)
        if name in self.wishes.gaps:  # drawn, and then put in
            return
        if self.wishes.supported and not np.all(self._concrete(inside(fn.support, value))):
            raise OutsideSupport
        if not is_discrete(msg):
            value = value.astype(float)
        elif not jnp.issubdtype(value.dtype, jnp.integer):
            value = value.astype(int)
        msg["value"] = value

    def _draw_afresh(self, name: str) -> None:
        """A prediction tells what it draws beside the given values."""
        if self.wishes.simulate is not None:
            self.fresh.add(name)

    def _pin(self, msg: Any, values: np.ndarray) -> np.ndarray:
        """Force every seed to the leader's value, and note which seeds had it by themselves."""
        pinned = values[self.leader]
        self.followed &= np.all((values == pinned).reshape(self.size, -1), axis=1)
        self.pinned.append((msg["name"], as_tuples(pinned)))
        # `0 * value` keeps it a random value, so that a decision on it is still seen.
        msg["value"] = msg["value"] * 0 + jnp.asarray(pinned, dtype=msg["value"].dtype)
        return np.broadcast_to(pinned, values.shape)

    def _concrete(self, value: Any) -> np.ndarray:
        """The values of all seeds, along the first axis."""
        if isinstance(value, Tracer):
            if trace_of(value) is not self.trace:
                raise ProgramError(
                    f"The program at {caller()} draws a site inside a function that JAX transforms "
                    "(jit, vmap, grad, scan, ...). Draw sites outside it, or use "
                    "numpyro.contrib.control_flow.scan."
                )
            values, axis = getattr(value, "val"), getattr(value, "batch_dim")
            if isinstance(axis, int):
                return np.moveaxis(np.asarray(values), axis, 0)
            value = values
        value = np.asarray(value)
        return np.broadcast_to(value, (self.size, *value.shape))

    def _note(self, name: str) -> None:
        self.log.add(name, is_random=_TRACED.search(name) is not None)

    def failed(self, error: Exception) -> FailedRun:
        """What Python does depends on decisions alone: all seeds that took the same ones fail alike."""
        if self.drawing is not None and isinstance(error, NotImplementedError):
            raise not_drawn(self.drawing["name"], self.drawing["fn"], raised_at(error)) from error
        if (msg := failing_site(error)) is not None and (wrong := shape_error(msg, raised_at(error))):
            raise wrong from error
        self.followed[self.leader] = True
        return FailedRun(error, raised_at(error), self.log.last, self.followed)

    def batch_run(self) -> BatchRun:
        # Not even a NaN takes the leader off its own path.
        self.followed[self.leader] = self.inside[self.leader] = True
        path = Path(tuple(self.addresses), tuple(self.decisions), tuple(self.pinned))
        return BatchRun(
            path=path,
            sources=tuple(self.sources),
            site_sources=self.log.sources(),
            values=self.values,
            followed=self.followed,
            inside=self.inside,
            observed=self.observed,
            runs=1,
            invalid=self.invalid,
        )
