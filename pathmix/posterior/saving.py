"""What a file has of a posterior."""

import sys
from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from typing import Any, NamedTuple

import numpy as np

from pathmix.discovery.forks import DecisionTree, Fork, Way
from pathmix.discovery.report import DiscoveryReport
from pathmix.engine.code import Code
from pathmix.engine.executables import Executables
from pathmix.engine.timings import Timings
from pathmix.errors import ChangedError, FileError, UnwritableError
from pathmix.files.archive import Reader, Writer
from pathmix.files.codec import Codec
from pathmix.guides import Flow, FullRank, LowRank, MeanField
from pathmix.guides.flow import FlowLeaves
from pathmix.guides.fullrank import FullRankParams
from pathmix.guides.lowrank import LowRankParams
from pathmix.guides.meanfield import MeanFieldParams
from pathmix.posterior.components import Compiled, Component, ParticleDraws, TruncatedGuide, WeightedDraws
from pathmix.posterior.evidence import Particles
from pathmix.posterior.fitted import FittedGuide, FittedPath
from pathmix.posterior.provenance import Provenance
from pathmix.posterior.spot_checks import SpotCheck
from pathmix.posterior.stacking import Stacked
from pathmix.posterior.status import Status
from pathmix.program.fingerprints import of_arguments, of_model, of_objects, of_taken_along
from pathmix.program.outline import Outline, SiteOutline
from pathmix.program.path import Decision, Path
from pathmix.program.program import Program
from pathmix.program.seeds import Seed
from pathmix.regions.intervals import Interval
from pathmix.regions.region import Region
from pathmix.target.layout import Layout, SiteSlice
from pathmix.version import __version__

_LEAST_WEIGHT = 1e-14  # with less, a path is never drawn


class Fingerprints(NamedTuple):
    """What tells whether a model and its arguments are those of a posterior."""

    model: str | None  # None where there was no source to look at
    arguments: str
    # Files of earlier versions lack these.
    taken_along: str | None = None  # by the model, beside its source
    objects: str | None = None  # arguments that are no plain arrays


class _Code(NamedTuple):
    written: bytes
    example: tuple[Any, ...]


class _Compiled(NamedTuple):
    """A `Compiled`, for a file."""

    outline: Outline
    free: tuple[str, ...]
    inert: dict[str, np.ndarray]
    outcomes: _Code
    density: _Code | None
    recompute: _Code | None
    backward: _Code | None
    share: _Code | None
    fixed: tuple[Any, ...]
    rows: int


class _Guide(NamedTuple):
    compiled: _Compiled
    width: int
    label: str
    acceptance: float
    tries: int


class _Particles(NamedTuple):
    compiled: _Compiled
    particles: Particles
    log_evidence: float


class _Draws(NamedTuple):
    """Of a path that is never drawn from, none."""

    outline: Outline
    values: dict[str, np.ndarray]
    weights: np.ndarray
    inert: dict[str, np.ndarray]


_CODEC = Codec(
    [
        Path, Decision, Region, Interval, Layout, SiteSlice, Outline, SiteOutline, Status, Timings,
        DiscoveryReport, DecisionTree, Fork, Way, Stacked, Particles, FittedPath, FittedGuide, MeanField,
        FullRank, LowRank, Flow, MeanFieldParams, FullRankParams, LowRankParams, FlowLeaves, Fingerprints,
        _Code, _Compiled, _Guide, _Particles, _Draws, Seed, Provenance, SpotCheck,
    ]
)  # fmt: skip


def written(
    fields: dict[str, Any],
    components: tuple[Component, ...],
    program: Fingerprints | None,
    checks: Sequence[SpotCheck],
) -> bytes:
    """A posterior as a file has it."""
    writer, codes = Writer(), dict[Hashable, bytes]()
    weights = [path.weight for path in fields["paths"]]
    paths = [_with_params(path, lambda flow, params: flow.leaves(params)) for path in fields["paths"]]
    content = {
        "fields": {name: _CODEC.encode(value, writer) for name, value in {**fields, "paths": paths}.items()},
        "components": [
            _CODEC.encode(_plain(component, codes, drawn=weight > _LEAST_WEIGHT), writer)
            for component, weight in zip(components, weights, strict=True)
        ],
        "program": _CODEC.encode(program, writer),
        "spot checks": _CODEC.encode(checks, writer),
        "versions": {"pathmix": __version__, "jax": version("jax"), "python": sys.version.split()[0]},
    }
    return writer.as_bytes(content)


class Contents(NamedTuple):
    """A posterior as a file has it, read."""

    fields: dict[str, Any]
    components: tuple[Component, ...]
    program: Fingerprints
    checks: tuple[SpotCheck, ...]  # none in files of earlier versions


def contents(content: bytes, name: str) -> Contents:
    """Of a file of this name."""
    reader = Reader(content, name)
    try:
        given = reader.content
        fields = {key: _CODEC.decode(value, reader) for key, value in given["fields"].items()}
        fields["paths"] = tuple(
            _with_params(path, lambda flow, params: flow.with_leaves(params)) for path in fields["paths"]
        )
        executables = Executables()
        components = [_component(_CODEC.decode(value, reader), executables) for value in given["components"]]
        program = _CODEC.decode(given["program"], reader)
        checks = _CODEC.decode(given.get("spot checks", []), reader)
    except (KeyError, TypeError, ValueError) as error:
        raise FileError(f"{name} was written by another version of pathmix, and cannot be read.") from error
    return Contents(fields, tuple(components), program, checks)


def fingerprints(program: Program) -> Fingerprints:
    """Of a model and its arguments."""
    arguments = program.args, program.kwargs
    return Fingerprints(
        of_model(program.model),
        of_arguments(arguments),
        of_taken_along(program.model),
        of_objects(arguments).digest,
    )


def check_same(before: Fingerprints, program: Program, name: str) -> None:
    """Complain of a model or of arguments that are not what they were."""
    now = fingerprints(program)
    if _differ(before.model, now.model):
        raise ChangedError(f"The source of the model is not what it was when {name} was written.")
    if _differ(before.taken_along, now.taken_along):
        raise ChangedError(
            "What the model takes along beside its source (variables around it, defaults, arguments of a "
            f"partial, attributes) is not what it was when {name} was written."
        )
    if before.arguments != now.arguments or _differ(before.objects, now.objects):
        raise ChangedError(
            f"The arguments of the model are not those that {name} was written with. Load it with the same "
            "ones; posterior.predict(...) and posterior.log_likelihood(...) take others."
        )


def _differ(before: str | None, now: str | None) -> bool:
    """Of fingerprints that may not be known."""
    return None not in (before, now) and before != now


def _with_params(path: FittedPath, change: Callable[[Flow, Any], Any]) -> FittedPath:
    """With the parameters of a trained flow changed."""
    guide = path.guide
    if guide is None or guide.params is None or not isinstance(guide.family, Flow):
        return path
    return replace(path, guide=replace(guide, params=change(guide.family, guide.params)))


def _plain(component: Component, codes: dict[Hashable, bytes], *, drawn: bool) -> Any:
    match component:
        case TruncatedGuide() if drawn:
            return _Guide(
                _written(component.compiled, codes),
                component.width,
                component.label,
                component.acceptance,
                component.tries,
            )
        case ParticleDraws() if drawn:
            return _Particles(
                _written(component.compiled, codes), component.particles, component.log_evidence
            )
        case WeightedDraws() if drawn:
            return _Draws(component.outline, component.values, component.weights, component.inert)
    return _Draws(component.outline, {}, np.zeros(0), {})


def _written(compiled: Compiled, codes: dict[Hashable, bytes]) -> _Compiled:
    """With code that paths of one structure share, and that is traced once for them."""

    def code(function: Code) -> _Code:
        if function.key not in codes:
            codes[function.key] = function.as_bytes(compiled.fixed)
        return _Code(codes[function.key], function.example)

    density = None
    if compiled.density is not None:
        with suppress(UnwritableError):
            density = code(compiled.density)
    return _Compiled(
        compiled.outline,
        compiled.free,
        compiled.inert,
        code(compiled.outcomes),
        density,
        None if compiled.recompute is None else code(compiled.recompute),
        None if compiled.backward is None else code(compiled.backward),
        None if compiled.share is None else code(compiled.share),
        compiled.fixed,
        compiled.rows,
    )


def _component(plain: Any, executables: Executables) -> Component:
    if isinstance(plain, _Draws):
        return WeightedDraws(plain.outline, plain.values, plain.weights, inert=plain.inert)
    if not isinstance(plain, (_Guide, _Particles)):
        raise FileError("The file has a path without anything to draw from.")
    given = plain.compiled
    known = (given.outline, given.inert, None, partial(_read, given, executables))
    if isinstance(plain, _Guide):
        return TruncatedGuide(*known, plain.width, plain.label, plain.acceptance, plain.tries)
    return ParticleDraws(*known, plain.particles, plain.log_evidence)


def _read(plain: _Compiled, executables: Executables) -> Compiled:
    def code(function: _Code | None) -> Code | None:
        return None if function is None else Code.read(function.written, function.example)

    return Compiled(
        plain.outline,
        plain.free,
        plain.inert,
        Code.read(*plain.outcomes),
        code(plain.density),
        code(plain.recompute),
        code(plain.backward),
        code(plain.share),
        plain.fixed,
        plain.rows,
        executables,
    )
