"""Log-densities of the program at a few draws, which tell whether another program is the same."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import jax
import numpy as np

from pathmix.engine.batching import over_rows
from pathmix.engine.precision import Precision
from pathmix.posterior.components import Component
from pathmix.posterior.fitted import FittedPath
from pathmix.posterior.redraw import redraw
from pathmix.program.program import Program
from pathmix.program.seeds import Seed
from pathmix.program.values import SiteRows
from pathmix.program.wishes import Wishes

_PATHS, _DRAWS = 2, 2
_NOTABLE = 0.01  # a weight
# Rounding, absolute and relative: versions of JAX and machines sum in other orders.
_ROUNDING: dict[Precision, tuple[float, float]] = {"float64": (1e-4, 1e-6), "float32": (0.05, 1e-3)}


class SpotCheck(NamedTuple):
    """Of one path."""

    label: str
    latent: SiteRows
    log_prior: np.ndarray
    log_likelihood: np.ndarray


def spot_checks(
    paths: Sequence[FittedPath], components: Sequence[Component], program: Program
) -> Iterator[SpotCheck]:
    """Of the best paths; none of one that cannot be drawn from, or that the program does not repeat."""
    for path, component in list(zip(paths, components, strict=True))[:_PATHS]:
        if path.weight < _NOTABLE:
            return
        own = _of_path(program, path)
        try:
            drawn = component.draw(Seed.of(0), _DRAWS)
            if component.inert:
                drawn = redraw(own, component, Seed.of(1), drawn)
            latent = {name: drawn[name] for name in path.addresses}
            found = _densities(own, latent)
        except Exception:  # the file is worth having all the same
            continue
        if found is not None and np.all(np.isfinite(found)):
            yield SpotCheck(path.label, latent, *found)


def deviating(
    checks: Sequence[SpotCheck], paths: Sequence[FittedPath], program: Program, precision: Precision
) -> str | None:
    """The first path that the program goes another way on, or gives another density, in words."""
    known = {path.label: path for path in paths}
    absolute, relative = _ROUNDING[precision]
    for check in checks:
        if check.label not in known:
            continue
        try:
            found = _densities(_of_path(program, known[check.label]), check.latent)
        except Exception as error:  # of whatever kind it may be
            return f"at draws of the path {check.label!r} it ends with {type(error).__name__}: {error}"
        if found is None:
            return f"draws of the path {check.label!r} are on another path now"
        for name, before, now in zip(("prior", "likelihood"), check[2:], found, strict=True):
            if not np.allclose(now, before, rtol=relative, atol=absolute):
                row = int(np.argmax(np.nan_to_num(np.abs(now - before), nan=np.inf)))
                return (
                    f"at a draw of the path {check.label!r} its log {name} is {now[row]:.6g} now, "
                    f"and was {before[row]:.6g}"
                )
    return None


def _of_path(program: Program, path: FittedPath) -> Program:
    """With the parameters of the run, wherever the program would take others from."""
    return program.with_parameters({**program.params, **path.parameters}) if path.parameters else program


def _densities(program: Program, latent: SiteRows) -> tuple[np.ndarray, np.ndarray] | None:
    """Log-prior and log-likelihood of draws; None if they are not on one path."""
    wanted = np.ones(_DRAWS, bool)
    wishes = Wishes(latent, complete=True)
    batch_run = next(iter(program.frontend.explore(program, Seed.of(0), wanted, wishes=wishes)))
    if not batch_run.followed.all():
        return None
    slp = program.frontend.replay(program, batch_run)
    whole = slp.graph if slp.summation is None else slp.summation.before
    graph = whole.outputs([slp.LOG_PRIOR, slp.LOG_LIKELIHOOD])
    columns = [latent[name].astype(batch_run.values[name].dtype) for name in batch_run.path.addresses]
    log_prior, log_likelihood = jax.jit(over_rows(lambda *row: graph(graph.consts, row)))(*columns)
    return np.asarray(log_prior), np.asarray(log_likelihood)
