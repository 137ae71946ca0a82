"""Stacking: weights for prediction, from the leave-one-out density of each observation on each path.

They maximise sum_i log sum_k w_k p(y_i | y_-i, path k) (Yao et al. 2018; for programs with stochastic support
Reichelt et al. 2024). The densities are by Pareto-smoothed importance sampling from draws of the path.
"""

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from arviz_stats.base.array import array_stats

from pathmix.engine.batching import in_batches, over_rows
from pathmix.engine.executables import Executables
from pathmix.errors import PathmixError
from pathmix.posterior.components import Component
from pathmix.posterior.fitted import FittedPath
from pathmix.program.canonical import canonical
from pathmix.program.seeds import Seed

_DRAWS = 1_000  # of each path
_ROWS = 50  # of densities computed at once
_MOST_PATHS = 64  # the best ones; others get no weight
_MOST_SWEEPS = 10_000
_CONVERGED = 1e-10  # what a sweep adds to the mean log-density, at its end
_HEAVY = 0.7  # k-hat


class Stacked(NamedTuple):
    weights: np.ndarray
    heavy: int  # observations that change some path's posterior too much for importance sampling
    observations: int


def stack(paths: Sequence[FittedPath], components: Sequence[Component]) -> Stacked:
    """The weights of paths, best in evidence first."""
    ranked = sorted(range(len(paths)), key=lambda i: -paths[i].log_evidence)
    chosen = [i for i in ranked if paths[i].status.usable and np.isfinite(paths[i].log_evidence)][
        :_MOST_PATHS
    ]
    executables = Executables()
    found = [_pointwise(components[i], Seed.of(0).child(i), executables) for i in chosen]
    if not found or not found[0]:
        raise PathmixError("Stacking needs observed sites, and this posterior has none.")
    for i, other in zip(chosen, found, strict=True):
        if _shapes(other) != _shapes(found[0]):
            raise PathmixError(
                "Stacking needs the same observations on all paths, but there are "
                f"{_shown(found[0])} on {paths[chosen[0]].label}, and {_shown(other)} on {paths[i].label}."
            )
    names = sorted(found[0])
    tables = [np.concatenate([one[name].reshape(_DRAWS, -1) for name in names], axis=1) for one in found]
    masked = np.stack([np.all(table == 0, axis=0) for table in tables])
    if np.any(masked.any(axis=0) != masked.all(axis=0)):
        raise PathmixError("Stacking needs the same observations on all paths, but their masks differ.")
    scores, heavy = [], 0
    for table in tables:
        score, khat = left_out(table[:, ~masked[0]])
        scores.append(score)
        heavy = max(heavy, int(np.sum(khat > _HEAVY)))
    weights = np.zeros(len(paths))
    weights[chosen] = best_mixture(np.stack(scores, axis=1))
    return Stacked(weights, heavy, len(scores[0]))


def left_out(log_likelihood: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The leave-one-out log-density of each column, from rows of draws, and its k-hat."""
    count = len(log_likelihood)
    # By plain importance weights, which stay where there is nothing to smooth: nothing varies, or much ties.
    score = math.log(count) - np.logaddexp.reduce(-log_likelihood, axis=0)
    khat = np.where(np.ptp(log_likelihood, axis=0) == 0, 0.0, np.inf)
    for column in np.flatnonzero(khat):
        with np.errstate(all="ignore"), suppress(ValueError):
            found, own, _ = array_stats.loo(log_likelihood[None, :, column : column + 1], 0, 1)
            if np.isfinite(found).all():
                score[column], khat[column] = found[0], own[0]
    return score, khat


def best_mixture(scores: np.ndarray) -> np.ndarray:
    """Weights w that maximise the mean over rows of log sum_k w_k exp(score_k).

    It is concave; each sweep of expectation maximisation raises it.
    """
    top = scores.max(axis=1, keepdims=True)
    densities = np.exp(scores - np.where(np.isfinite(top), top, 0.0))
    densities = densities[densities.sum(axis=1) > 0]
    weights = np.full(scores.shape[1], 1 / scores.shape[1])
    if len(densities) == 0:
        return weights
    before = -np.inf
    for _ in range(_MOST_SWEEPS):
        mixed = densities @ weights
        level = float(np.mean(np.log(mixed)))
        if level - before < _CONVERGED:
            break
        before = level
        weights = weights * np.mean(densities / mixed[:, None], axis=0)
    return weights / weights.sum()


def _pointwise(component: Component, seed: Seed, executables: Executables) -> dict[str, np.ndarray]:
    """The log-likelihood of each element of the observed sites, for draws of a path."""
    if (slp := component.slp) is None:
        raise PathmixError("A loaded posterior cannot be stacked: do so before it is saved.")
    names, slots = [name for name, _ in slp.pointwise], [slot for _, slot in slp.pointwise]
    order = range(len(slp.sites))
    graph = canonical(slp.graph.outputs(slots), [None for _ in order], order=order).graph
    if not slp.sites:
        found = [np.broadcast_to(value, (_DRAWS, *np.shape(value))) for value in graph(graph.consts, ())]
        return dict(zip(names, found, strict=True))
    drawn = component.draw(seed, _DRAWS)
    columns = [np.asarray(drawn[site.name], site.dtype) for site in slp.sites]

    def make() -> Callable[..., Any]:
        return lambda consts, columns: over_rows(lambda *row: graph(consts, row))(*columns)

    call = partial(executables.call, graph.structure, make, graph.consts)
    return dict(zip(names, in_batches(call, columns, _ROWS), strict=True))


def _shapes(pointwise: dict[str, np.ndarray]) -> dict[str, tuple[int, ...]]:
    return {name: values.shape for name, values in pointwise.items()}


def _shown(pointwise: dict[str, np.ndarray]) -> str:
    counts = [f"{values[0].size} of {name!r}" for name, values in sorted(pointwise.items())]
    return " and ".join(counts) if counts else "none"
