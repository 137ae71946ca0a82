"""What every method tells about its result, beside its own remarks."""

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from pathmix.discovery import Discovered
from pathmix.discovery.report import DiscoveryReport
from pathmix.posterior.fitted import FittedPath
from pathmix.posterior.status import Status
from pathmix.program.program import Program
from pathmix.program.slp import StraightLineProgram
from pathmix.program.source import raised_at
from pathmix.warn import warn

_NOTABLE_UNSEEN = 0.01


def common_notes(
    program: Program,
    found: Discovered,
    report: DiscoveryReport,
    paths: Sequence[tuple[StraightLineProgram, FittedPath]],
) -> list[str]:
    notes = []
    slps, fitted = [slp for slp, _ in paths], [path for _, path in paths]
    if found.dropped_mass > 0:
        notes.append(f"Paths with {found.dropped_mass:.1%} of the prior mass were cut off by max_paths.")
    if found.failed_runs:
        notes.append(
            f"{found.failed_runs:,} of {found.samples:,} prior runs ended with an error of the program; the "
            "posterior is that of the prior restricted to runs that do not fail."
        )
    if found.endless_runs:
        notes.append(
            f"{found.endless_runs:,} of {found.samples:,} prior runs did not end within max_sites and "
            "max_seconds of the discovery; their paths are left out."
        )
    for said, count in found.invalid_runs:
        notes.append(
            f"{said} in {count:,} of {found.samples:,} prior runs, where the density means nothing. Keep it "
            "inside; exp or softplus make a number positive."
        )
    if report.unseen_bound > _NOTABLE_UNSEEN:
        share = f"{report.unseen_bound:.1%}" if report.unseen_is_exact else f"Up to {report.unseen_bound:.1%}"
        notes.append(
            f"{share} of the prior mass is on paths that no prior run took; the posterior leaves them out, "
            "even if the data favour them. More prior runs see more of them: "
            f"discovery=pathmix.PriorDiscovery({10 * found.samples:_})."
        )
    params = sorted({name for slp in slps for name in slp.params})
    if params and program.parameter_use == "initial":
        notes.append(f"Parameters are kept at their initial values: {', '.join(params)}.")
    notes += sorted({remark for slp in slps for remark in slp.facts.remarks})
    if not any(slp.facts.is_conditioned for slp in slps):
        notes.append(
            "Nothing is observed: no site has data, so this is the prior. Was the data argument left out?"
        )
    for slp, path in paths:
        if path.failure is not None:
            warn(_on_failure(slp, path))
    if all(path.weight == 0 for path in fitted):
        warn(f"No path carries weight. The first one says: {fitted[0].message}")
    return notes + _nan_arguments(program, fitted)


def _nan_arguments(program: Program, fitted: Sequence[FittedPath]) -> list[str]:
    """A note on arguments with NaN, where a path has no density for it."""
    if not any(path.status is Status.NAN for path in fitted):
        return []
    named = {**{f"number {i}": a for i, a in enumerate(program.args, 1)}, **program.kwargs}
    counts = {name: nans for name, argument in named.items() if (nans := _nans(argument))}
    listed = ", ".join(f"{name} ({count})" for name, count in counts.items())
    return [f"Arguments of the program have NaN, as has its density: argument {listed}."] if counts else []


def _nans(argument: Any) -> int:
    leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(argument) if hasattr(leaf, "__array__")]
    return sum(int(np.isnan(leaf).sum()) for leaf in leaves if leaf.dtype.kind == "f")


def _on_failure(slp: StraightLineProgram, path: FittedPath) -> str:
    error = path.failure
    assert error is not None
    place = raised_at(error)
    if place.line == 0 and slp.sites:  # not in the user's program: name the path by its last site
        where = f"; its last site is {slp.sites[-1].name!r} at {slp.sites[-1].source}"
    else:
        where = f", at {place}"
    return (
        f"The path {path.label!r} failed and carries no weight: {type(error).__name__}: {error}{where}. "
        "The exception is its `failure`."
    )
