"""One mark for each path: its weight, how its training went, how far its evidence can be relied on."""

from typing import TYPE_CHECKING

import numpy as np

from pathmix.plots.axes import MOST_NAMED, OTHERS, bare, beside, colours, on
from pathmix.posterior.posterior import Posterior
from pathmix.target.labels import unique

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_ROWS = 20
_FEW_NAMED = 2  # of many, which are crowded
_WINDOW = 100  # steps of training that are averaged
_GOOD, _USABLE = 0.5, 0.7  # values of k-hat


def weights(posterior: Posterior, ax: "Axes | None" = None) -> "Axes":
    """The weights of the heaviest paths with their standard errors, and of all others together."""
    shown, hidden = posterior.paths[:_MOST_ROWS], posterior.paths[_MOST_ROWS:]
    names = unique([beside(path.label) for path in shown])
    sizes = [path.weight for path in shown]
    errors = [posterior.weight_errors[path.label] for path in shown]
    if hidden:
        names.append(f"{len(hidden)} more")
        sizes.append(sum(path.weight for path in hidden))
        errors.append(np.nan)
    ax = on(ax, (7, 1 + 0.28 * len(names)))
    rows = np.arange(len(names))
    ax.barh(rows, sizes, xerr=np.nan_to_num(errors), color=[*colours(1) * len(shown), OTHERS][: len(names)])
    ax.set_yticks(rows, names)
    ax.invert_yaxis()
    ax.set_xlim(left=0)
    ax.set_xlabel("weight")
    bare(ax)
    return ax


def elbos(posterior: Posterior, ax: "Axes | None" = None) -> "Axes":
    """The ELBO over the steps of training, averaged; bars stand where phases end, dots where training does.

    The heaviest paths have a colour. What is far below all of them at the end is left out of the picture.
    """
    ax = on(ax, (7, 4.2))
    trained = [path for path in posterior.paths if len(path.history)]
    tints = colours(len(trained))
    ends, starts, has_phases = [], [], False
    for number, path in reversed(list(enumerate(trained))):
        steps, values = _averaged(path.history)
        named = number < MOST_NAMED
        ax.plot(
            steps,
            values,
            color=tints[number],
            linewidth=1.5 if named else 0.6,
            label=beside(path.label) if named else None,
        )
        ax.plot(steps[-1:], values[-1:], "o", color=tints[number], markersize=3)
        ends_of_phases = [step for step in path.phases[:-1] if steps[0] <= step < steps[-1]]
        if named and ends_of_phases:
            levels = np.interp(ends_of_phases, steps, values)
            ax.plot(ends_of_phases, levels, "|", color=tints[number], markersize=11, markeredgewidth=1.5)
            has_phases = True
        if named and np.isfinite(values).any():
            ends.append(np.nanmax(values))
            starts.append(np.nanquantile(values, 0.02))
    if ends:
        top, bottom = max(ends), min(starts)
        room = max(top - max(bottom, min(ends) - 3 * (top - min(ends)) - 50), 1e-3)
        ax.set_ylim(top - 1.05 * room, top + 0.05 * room)
    ax.set_xlabel("steps of the path")
    ax.set_ylabel("ELBO")
    if has_phases:
        ax.plot([], [], "|", color="0.4", markersize=11, markeredgewidth=1.5, label="end of a phase")
    handles, names = ax.get_legend_handles_labels()
    own = len(handles) - has_phases  # drawn from the last to the first
    ax.legend(
        [*handles[:own][::-1], *handles[own:]],
        [*names[:own][::-1], *names[own:]],
        frameon=False,
        fontsize="small",
        loc="center left",
        bbox_to_anchor=(1, 0.5),
    )
    bare(ax)
    return ax


def khats(posterior: Posterior, ax: "Axes | None" = None) -> "Axes":
    """The Pareto shape of each path's importance weights over its weight: up to 0.7 they can be relied on."""
    ax = on(ax, (7, 4.2))
    known = [path for path in posterior.paths if np.isfinite(path.khat) and path.weight > 0]
    sizes = np.array([path.weight for path in known])
    ax.axhspan(_USABLE, max([1.0, *(path.khat for path in known)]) + 0.1, color="tab:red", alpha=0.08)
    ax.axhspan(_GOOD, _USABLE, color="tab:orange", alpha=0.08)
    ax.scatter(sizes, [path.khat for path in known], color=colours(len(known)), zorder=3)
    for path in known[: MOST_NAMED if len(known) <= MOST_NAMED else _FEW_NAMED]:
        ax.annotate(
            beside(path.label),
            (path.weight, path.khat),
            xytext=(5, 4),
            textcoords="offset points",
            fontsize="small",
        )
    ax.set_xscale("log")
    ax.set_xlim(max(sizes.min(initial=1.0) / 2, 1e-12), 3)
    ax.set_xlabel("weight")
    ax.set_ylabel("k-hat")
    bare(ax)
    return ax


def _averaged(history: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Means over windows of steps; windows without a number have none."""
    size = max(1, min(_WINDOW, len(history) // 20))
    count = len(history) // size
    windows = history[: count * size].reshape(count, size)
    finite = np.isfinite(windows)
    known = np.where(finite.any(axis=1), finite.sum(axis=1), np.nan)
    return size * np.arange(1, count + 1), np.where(finite, windows, 0.0).sum(axis=1) / known
