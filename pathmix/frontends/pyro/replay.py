"""Replay: trace a Pyro program along a recorded path into a straight-line program.

The program runs once more, at the values of the leading run, while PyTorch writes down its operations
as a flat graph; the graph is then read by JAX. Latent values are its inputs; decisions are answered
from the record, and the condition for each to come out so is an output.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch
from jax.core import Tracer
from numpyro.distributions import biject_to
from pyro.distributions.util import scale_and_mask
from pyro.poutine.messenger import Messenger
from pyro.poutine.util import site_is_subsample

from pathmix.errors import HiddenRandomnessError, ProgramError, UnsupportedSiteError
from pathmix.execution import Execution
from pathmix.frontends.decisions import holds
from pathmix.frontends.pyro.flatten import FlatGraph, flatten
from pathmix.frontends.pyro.lookups import Lookups
from pathmix.frontends.pyro.lowering.dtypes import as_numpy
from pathmix.frontends.pyro.lowering.interpret import interpret
from pathmix.frontends.pyro.plates import subsampling
from pathmix.frontends.pyro.record import keep_initial_value
from pathmix.frontends.pyro.scope import frontend_scope
from pathmix.frontends.pyro.sites import (
    is_deterministic,
    is_discrete,
    is_latent,
    is_observation,
    marks_fixed,
)
from pathmix.frontends.pyro.supports import Support, read_support
from pathmix.frontends.source import Source, caller
from pathmix.frontends.supports import Bounds, bounds, integer_bounds
from pathmix.graph import Graph
from pathmix.path import DecisionKind, Path
from pathmix.program import Program
from pathmix.slp import BijectionTemplate, Plate, Site, StraightLineProgram


def replay(program: Program, execution: Execution) -> StraightLineProgram:
    """The straight-line program of a recorded path."""
    with frontend_scope():
        flat, seen = _trace(program, execution, plates=None)
        lowered = _lower(flat, seen, execution)
        minibatch = None
        if seen.plates:
            parts = _trace(program, execution, plates=seen.plates)
            minibatch = _lower(*parts, execution).graph
    return StraightLineProgram(
        path=lowered.path,
        recorded=execution.path,
        sources=lowered.sources,
        sites=tuple(_site(name, execution, lowered) for name in execution.path.addresses),
        graph=lowered.graph,
        deterministics=lowered.deterministics,
        params=tuple(seen.params),
        observed=tuple(seen.observed),
        plates=seen.plates,
        minibatch=minibatch,
        looked_at=lowered.looked_at,
    )


def _trace(
    program: Program, execution: Execution, plates: tuple[Plate, ...] | None
) -> tuple[FlatGraph, "_Replayer"]:
    leader = int(np.argmax(execution.followed))
    inputs = [_as_torch(values[leader]) for values in execution.values.values()]
    inputs += [torch.arange(plate.subsample_size) for plate in plates or ()]
    replayer = _Replayer(program, execution, plates)

    def density(*values: torch.Tensor) -> list[Any]:
        replayer.begin(values)
        with subsampling(replayer.choose), replayer.lookups, replayer:
            program()
        return replayer.outputs()

    flat = flatten(density, inputs)
    replayer.check_complete()
    return flat, replayer


class _Replayer(Messenger):
    """Gives each site its value and each decision its answer, and collects the density."""

    def __init__(self, program: Program, execution: Execution, plates: tuple[Plate, ...] | None) -> None:
        super().__init__()
        self.program = program
        self.path = execution.path
        self.plates: tuple[Plate, ...] = plates or ()
        self.subsampling = plates is not None
        self.lookups = Lookups(self)

    def begin(self, inputs: Sequence[torch.Tensor]) -> None:
        latent = len(self.path.addresses)
        self.values = dict(zip(self.path.addresses, inputs[:latent], strict=True))
        self.indices = {p.name: i for p, i in zip(self.plates, inputs[latent:], strict=self.subsampling)}
        self.log_prior: Any = torch.zeros(())
        self.log_likelihood: Any = torch.zeros(())
        self.decided: list[torch.Tensor] = []
        self.addresses: list[str] = []
        self.supports: dict[str, Support] = {}
        self.discrete: set[str] = set()
        self.deterministics: dict[str, torch.Tensor] = {}
        self.params: list[str] = []
        self.observed: list[str] = []

    # The observer of decisions.

    def decide(self, tensor: torch.Tensor, kind: DecisionKind) -> Any:
        position = len(self.decided)
        expected = self.path.decisions[position] if position < len(self.path.decisions) else None
        if expected is None or expected.kind != kind:
            raise HiddenRandomnessError(f"this time it took another decision at {caller()}")
        self.decided.append(tensor.clone())
        return expected.value

    def shown(self, tensor: torch.Tensor) -> str:
        return f"tensor(<shape {tuple(tensor.shape)}>)"

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
        marks_fixed(msg)
        if is_latent(msg):
            position = len(self.addresses)
            if self.path.addresses[position : position + 1] != (msg["name"],):
                raise HiddenRandomnessError(f"this time it drew the site {msg['name']!r} at {caller()}")
            self.addresses.append(msg["name"])
            msg["value"] = self._minibatch_of(msg, self.values[msg["name"]])

    def _pyro_post_sample(self, msg: Any) -> None:
        if site_is_subsample(msg):
            return
        if is_deterministic(msg):
            self.deterministics[msg["name"]] = msg["value"]
            return
        with self.lookups.paused():
            terms = scale_and_mask(msg["fn"].log_prob(msg["value"]), msg["scale"], msg["mask"])
            total = torch.as_tensor(terms).sum()
        if is_observation(msg):
            self.observed.append(msg["name"])
        if msg["is_observed"]:
            self.log_likelihood = self.log_likelihood + total
        else:
            self.log_prior = self.log_prior + total
        if is_latent(msg):
            self._support(msg)

    def _pyro_param(self, msg: Any) -> None:
        keep_initial_value(self.program, msg)
        self.params.append(msg["name"])

    def _support(self, msg: Any) -> None:
        support = read_support(msg["fn"].support)
        if is_discrete(msg):
            self.discrete.add(msg["name"])
        elif support is None:
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
        parameters = [p for _, parameters in self.supports.values() for p in parameters]
        return [
            self.log_prior,
            self.log_likelihood,
            *self.decided,
            *parameters,
            *self.deterministics.values(),
        ]

    def check_complete(self) -> None:
        if tuple(self.addresses) != self.path.addresses:
            missing = self.path.addresses[len(self.addresses)]
            raise HiddenRandomnessError(f"this time it ended without drawing the site {missing!r}")
        if len(self.decided) != len(self.path.decisions):
            raise HiddenRandomnessError("this time it ended without taking the same decisions")


@dataclass(frozen=True, eq=False)
class _Lowered:
    """The graph in JAX, and what its outputs are."""

    graph: Graph
    path: Path
    sources: tuple[Source, ...]
    bijections: dict[str, BijectionTemplate]
    bounds: dict[str, Bounds]
    deterministics: tuple[tuple[str, int], ...]
    looked_at: frozenset[str]


def _lower(flat: FlatGraph, seen: _Replayer, execution: Execution) -> _Lowered:
    looked_at = _looked_at(flat, execution)
    # What depends on no site is no decision of the path.
    first = StraightLineProgram.FIRST_CONDITION
    decided = range(first, first + len(seen.decided))
    random = [i for i in decided if flat.outputs[i] not in flat.constants]
    decisions = tuple(execution.path.decisions[i - first] for i in random)
    sources = tuple(execution.sources[i - first] for i in random)
    bijections: dict[str, BijectionTemplate] = {}
    limits: dict[str, Bounds] = {}
    deterministics: dict[str, int] = {}

    def density(*inputs: jax.Array) -> list[Any]:
        values = interpret(flat, inputs)
        nodes = iter(flat.outputs)
        outputs = [values[next(nodes)], values[next(nodes)]]
        raw = [values[next(nodes)] for _ in decided]
        outputs += [holds(raw[i - first], d) for i, d in zip(random, decisions, strict=True)]
        for name, (build, parameters) in seen.supports.items():
            parts = [next(nodes) for _ in parameters]
            known = [flat.constants[n] if n in flat.constants else values[n] for n in parts]
            support = build([as_numpy(v) if isinstance(v, torch.Tensor) else v for v in known])
            if name in seen.discrete:
                limits[name] = integer_bounds(support)
                continue
            limits[name] = bounds(support)
            leaves, treedef = jax.tree.flatten(biject_to(support))
            slots: list[Any] = []
            for leaf in leaves:
                is_output = isinstance(leaf, Tracer)
                slots.append(len(outputs) if is_output else np.asarray(leaf))
                outputs += [leaf] if is_output else []
            bijections[name] = BijectionTemplate(treedef, tuple(slots))
        for name in seen.deterministics:
            deterministics[name] = len(outputs)
            outputs.append(values[next(nodes)])
        return outputs

    avals = [jax.ShapeDtypeStruct(values.shape[1:], values.dtype) for values in execution.values.values()]
    avals += [
        jax.ShapeDtypeStruct((plate.subsample_size,), jnp.arange(1).dtype)
        for plate in (seen.plates if seen.subsampling else ())
    ]
    graph = Graph.of(jax.make_jaxpr(density)(*avals))
    path = replace(execution.path, decisions=decisions)
    return _Lowered(graph, path, sources, bijections, limits, tuple(deterministics.items()), looked_at)


def _looked_at(flat: FlatGraph, execution: Execution) -> frozenset[str]:
    """Sites whose values PyTorch looked at itself. That is no decision, so they must be discrete."""
    depends: dict[Any, frozenset[str]] = {
        node: frozenset([name]) for name, node in zip(execution.values, flat.inputs, strict=False)
    }
    for node in flat.operations:
        sources = (depends.get(source, frozenset()) for source in node.all_input_nodes)
        depends[node] = frozenset[str]().union(*sources)
    pinned = dict(execution.path.pinned)
    for node, source in flat.looked_at:
        if continuous := sorted(depends.get(node, frozenset()) - pinned.keys()):
            raise ProgramError(
                f"At {source} PyTorch needs a number, and gets a random value that depends on "
                f"{', '.join(map(repr, continuous))}. Make the number in the program, where it can be seen: "
                "int(k), or compare the value."
            )
    return frozenset[str]().union(*(depends.get(node, frozenset()) for node, _ in flat.looked_at))


def _site(name: str, execution: Execution, lowered: _Lowered) -> Site:
    values = execution.values[name]
    pinned = dict(execution.path.pinned)
    return Site(
        name=name,
        shape=values.shape[1:],
        dtype=values.dtype,
        source=execution.site_sources[name],
        pinned=np.asarray(pinned[name], dtype=values.dtype) if name in pinned else None,
        bijection=lowered.bijections.get(name),
        bounds=lowered.bounds.get(name),
    )


def _as_torch(values: np.ndarray) -> torch.Tensor:
    tensor = torch.as_tensor(np.array(values))
    return tensor if tensor.is_floating_point() or tensor.dtype is torch.bool else tensor.long()
