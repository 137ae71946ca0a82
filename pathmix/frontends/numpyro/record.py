"""Record: run a NumPyro program forward for a batch of seeds, along the path of one of them.

The program runs eagerly under `jax.vmap` over the seeds. Every random value is then a batch tracer
whose concrete values are readable, so each decision is seen as it is taken. The decisions of one
seed, the leader, are followed; a mask keeps which other seeds agree. One slow Python run thus
explains all seeds that share a path, and no path is compiled to find out.
"""

import re
from collections.abc import Collection, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from numpyro.primitives import Messenger

from pathmix.errors import ProgramError, ValueLookupError
from pathmix.execution import Execution
from pathmix.frontends.decisions import agree, as_tuples, seen
from pathmix.frontends.numpyro.scope import frontend_scope
from pathmix.frontends.numpyro.sites import (
    freeze_plumbing,
    is_discrete,
    is_latent,
    is_observation,
    marks_fixed,
)
from pathmix.frontends.routing import routed
from pathmix.frontends.sitelog import SiteLog
from pathmix.frontends.source import Source, caller, raised_at
from pathmix.frontends.statements import only
from pathmix.path import Decision, DecisionKind, Path
from pathmix.program import Program
from pathmix.seeds import SeedBatch

# How a random value shows in a text.
_TRACED = re.compile(r"Traced<|Tracer[<(]")


def record(
    program: Program,
    seeds: SeedBatch,
    leader: int,
    *,
    given: Mapping[str, np.ndarray] | None = None,
    complete: bool = False,
    simulate: Collection[str] | None = None,
) -> Execution:
    """Run `program` for a batch of seeds, along the path of the seed number `leader`.

    `given` fixes latent sites (seeds along the first axis); `complete` makes a latent site that is
    not among them an error. With `simulate`, observed sites are drawn instead of conditioned on, and so
    are sites of these names that the present arguments leave unobserved.
    """
    recorder = _Recorder(program, len(seeds[0]), leader, complete=complete, simulate=simulate)

    def run(keys: SeedBatch, values: dict[str, Any]) -> None:
        recorder.begin(keys, values)
        with recorder:
            program()

    with frontend_scope(), only("numpyro"), routed(recorder):
        try:
            jax.vmap(run)(seeds, {name: jnp.asarray(v) for name, v in (given or {}).items()})
        except RecursionError as error:
            raise recorder.log.too_deep() from error
        except (jax.errors.ConcretizationTypeError, TypeError) as error:
            if "racer" in str(error) or "raced" in str(error):
                error.add_note(
                    f"pathmix: at {raised_at(error)} a number is needed; make one of the random value: "
                    "int(k), as in numpyro.plate('n', int(k)). Values inside a function that JAX transforms "
                    "(jit, vmap, scan, ...) cannot be looked at."
                )
            raise
    return recorder.execution()


class _Recorder(Messenger):
    """Sees every site and every decision of one batched run."""

    def __init__(
        self, program: Program, size: int, leader: int, *, complete: bool, simulate: Collection[str] | None
    ) -> None:
        super().__init__()
        self.log = SiteLog(program.limits)
        self.size, self.leader = size, leader
        self.complete, self.simulate = complete, simulate
        self.addresses: list[str] = []
        self.decisions: list[Decision] = []
        self.sources: list[Source] = []
        self.pinned: list[tuple[str, Any]] = []
        self.values: dict[str, np.ndarray] = {}
        self.observed: dict[str, np.ndarray] = {}
        self.followed = np.ones(size, bool)
        self.inside = np.ones(size, bool)

    def begin(self, keys: SeedBatch, given: dict[str, Any]) -> None:
        self.trace = getattr(keys[0], "_trace")
        self.keys = list(keys)
        self.given = given

    # The observer of decisions.

    def owns(self, tracer: Any) -> bool:
        return tracer._trace is self.trace

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
        if msg["type"] == "deterministic":
            self._note(msg["name"])
        if msg["type"] != "sample":
            return
        self._note(msg["name"])
        self.log.check_limits()
        marks_fixed(msg)
        if self.simulate is not None and (is_observation(msg) or msg["name"] in self.simulate):
            self._unobserve(msg)
        elif is_latent(msg) and msg["name"] in self.given:
            msg["value"] = self._given_value(msg)
        elif is_latent(msg) and self.complete:
            raise ValueLookupError(
                f"The values lack the site {msg['name']!r}, which the program draws at {caller()} "
                f"with these values. Given: {sorted(self.given)}."
            )
        self._give_key(msg)

    def postprocess_message(self, msg: Any) -> None:
        if msg["type"] != "sample":
            return
        name = msg["name"]
        if msg["infer"].get("_pathmix_simulated"):
            self.observed[name] = self._concrete(msg["value"])
        elif is_latent(msg):
            values = self._concrete(msg["value"])
            if is_discrete(msg):
                values = self._pin(msg, values)
            self.addresses.append(name)
            self.values[name] = values

    def _give_key(self, msg: Any) -> None:
        if msg["value"] is None and msg["kwargs"].get("rng_key") is None:
            if len(self.keys) == 1:
                self.keys = list(jax.random.split(self.keys[0]))
            msg["kwargs"]["rng_key"] = self.keys.pop(0)

    def _given_value(self, msg: Any) -> Any:
        value, shape = self.given[msg["name"]], msg["fn"].shape()
        if value.shape != shape:
            raise ValueLookupError(
                f"The site {msg['name']!r} at {caller()} has shape {shape} here, but its given value has "
                f"shape {value.shape}."
            )
        return value if is_discrete(msg) else value.astype(float)

    def _pin(self, msg: Any, values: np.ndarray) -> np.ndarray:
        """Force every seed to the leader's value, and note which seeds had it by themselves."""
        pinned = values[self.leader]
        self.followed &= np.all((values == pinned).reshape(self.size, -1), axis=1)
        self.pinned.append((msg["name"], as_tuples(pinned)))
        # `0 * value` keeps it a random value, so that a decision on it is still seen.
        msg["value"] = msg["value"] * 0 + jnp.asarray(pinned, dtype=msg["value"].dtype)
        return np.broadcast_to(pinned, values.shape)

    def _unobserve(self, msg: Any) -> None:
        fn = msg["fn"]
        shape = fn.shape() if msg["value"] is None else np.shape(msg["value"])
        if shape != fn.shape():
            # Values broadcast against their distribution; simulate as many as were observed.
            event = len(fn.event_shape)
            batch = np.broadcast_shapes(shape[: len(shape) - event], fn.batch_shape)
            msg["fn"] = fn.expand(batch)
        msg["value"], msg["is_observed"] = None, False
        msg["infer"] = {**msg["infer"], "_pathmix_simulated": True}

    def _concrete(self, value: Any) -> np.ndarray:
        """The values of all seeds, along the first axis."""
        if isinstance(value, Tracer):
            if value._trace is not self.trace:
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

    def execution(self) -> Execution:
        # Not even a NaN takes the leader off its own path.
        self.followed[self.leader] = self.inside[self.leader] = True
        path = Path(tuple(self.addresses), tuple(self.decisions), tuple(self.pinned))
        return Execution(
            path=path,
            sources=tuple(self.sources),
            site_sources=self.log.sources(),
            values=self.values,
            followed=self.followed,
            inside=self.inside,
            observed=self.observed,
            runs=1,
        )
