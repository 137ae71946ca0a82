"""Sites: what they are on each path, and what is predicted for observed ones."""

from typing import TYPE_CHECKING, Any

import numpy as np

from pathmix.errors import PathmixError, ValueLookupError
from pathmix.plots.axes import MOST_NAMED, OTHERS, bare, beside, colours, explained, on, plain
from pathmix.posterior.draws import Draws
from pathmix.posterior.posterior import Posterior

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_DRAWS = 4_000
_MOST_BARS = 25  # values of a discrete site, each of which has a bar
_SAME = 1e-9  # relative to numbers: what is closer than this has one bar
_BANDS = ((0.05, 0.95), (0.25, 0.75))


def marginal(
    posterior: Posterior, name: str, ax: "Axes | None" = None, *, seed: int = 0, count: int = _DRAWS
) -> "Axes":
    """The posterior of a number, over all paths that have it: a histogram in which paths are stacked.

    An element of an array is named with its position: `"w[2]"`.
    """
    draws = posterior.sample(seed, count)
    values = _column(draws, name)
    finite = np.isfinite(values)
    if not finite.any():
        raise PathmixError(f"No draw has a finite value of {name!r}.")
    parts, tints, names = [], [], []
    for position, path in enumerate(posterior.paths[:MOST_NAMED]):
        own = values[finite & (draws.path == position)]
        if len(own):
            parts.append(own)
            tints.append(colours(MOST_NAMED)[position])
            names.append(beside(path.label))
    rest = values[finite & (draws.path >= MOST_NAMED)]
    if len(rest):
        parts, tints = [*parts, rest], [*tints, OTHERS]
        names.append("other paths")
    ax = on(ax, (7, 4.2))
    bins = _bins(values[finite])
    scale = [np.full(len(part), 1 / (count * (bins[1] - bins[0]))) for part in parts]
    whole = bins[1] - bins[0] == 1
    ax.hist(
        parts,
        bins=bins.tolist(),
        weights=scale,
        stacked=True,
        color=tints,
        label=names,
        rwidth=0.85 if whole else None,
    )
    if whole:
        ax.locator_params(axis="x", integer=True)
    ax.set_xlabel(plain(name))
    ax.set_ylabel("probability" if whole else "density")
    ax.set_title(f"exists with probability {np.mean(~np.isnan(values)):.3g}", fontsize="medium")
    explained(ax, values[finite])
    bare(ax)
    return ax


def predictive(
    posterior: Posterior,
    name: str,
    *args: Any,
    x: Any = None,
    ax: "Axes | None" = None,
    seed: int = 0,
    count: int = 1_000,
    **kwargs: Any,
) -> "Axes":
    """Bands of half and nine tenths of what is predicted for an observed site, over `x` or its position.

    A site that is a single number has a histogram, and one of zeros and ones the probability of a one.
    The arguments are those of the model; without any, they and the data are those of the run.
    """
    values = _of(posterior.predict(seed, count, *args, **kwargs), name).reshape(count, -1)
    data = np.zeros(0)
    if not args and not kwargs:
        data = np.ravel(posterior._data(posterior.sample(seed, count)).get(name, ()))
    if values.shape[1] == 1 and x is None:
        return _one_number(ax, name, values[:, 0], data)
    over = np.arange(values.shape[1]) if x is None else np.asarray(x).ravel()
    if len(over) != values.shape[1]:
        raise PathmixError(f"x has {len(over)} numbers, and the site {name!r} has {values.shape[1]}.")
    ax = on(ax, (7, 4.2))
    order = np.argsort(over, kind="stable")
    if np.isin(values[~np.isnan(values)], (0, 1)).all():
        middle, told = np.nanmean(values, axis=0), "probability of 1"
    else:
        middle, told = np.nanmedian(values, axis=0), "median, 50%, 90%"
        for low, high in _BANDS:
            ends = np.nanquantile(values, (low, high), axis=0)[:, order]
            ax.fill_between(over[order], *ends, color="tab:blue", alpha=0.25, linewidth=0)
    ax.plot(over[order], middle[order], color="tab:blue", label=told)
    if len(data) == len(over):
        ax.plot(over, data, "k.", markersize=4, label="data")
    ax.set_xlabel("position" if x is None else "x")
    ax.set_ylabel(plain(name))
    places = np.argsort(order)  # x may be dates
    explained(ax, np.tile(places, 2), np.append(middle, data if len(data) == len(over) else middle))
    bare(ax)
    return ax


def _one_number(ax: "Axes | None", name: str, values: np.ndarray, data: np.ndarray) -> "Axes":
    finite = values[np.isfinite(values)]
    if not len(finite):
        raise PathmixError(f"No prediction of {name!r} is finite.")
    ax = on(ax, (7, 4.2))
    bins = _bins(finite)
    ax.hist(finite, bins=bins.tolist(), density=True, color="tab:blue", alpha=0.5, label="predicted")
    if len(data) == 1:
        ax.axvline(float(data[0]), color="k", label="data")
    ax.set_xlabel(plain(name))
    ax.set_ylabel("probability" if bins[1] - bins[0] == 1 else "density")
    explained(ax, np.append(finite, data))
    bare(ax)
    return ax


def _of(draws: Draws, name: str) -> np.ndarray:
    if name not in draws:
        known = ", ".join(map(repr, draws)) or "none"
        raise ValueLookupError(f"No draw has a site called {name!r}; there are {known}.")
    return draws[name]


def _column(draws: Draws, name: str) -> np.ndarray:
    site, _, position = name.partition("[")
    values = _of(draws, name if name in draws else site)
    if name not in draws and position:
        try:
            values = values[:, *(int(part) for part in position.rstrip("]").split(","))]
        except (IndexError, ValueError):
            raise PathmixError(f"The site {site!r} has shape {values.shape[1:]}, and no {name}.") from None
    if values.ndim > 1:
        raise PathmixError(
            f"The site {name!r} has shape {values.shape[1:]}; name one of its numbers, {site}[0]"
            + ",0" * (values.ndim - 2)
            + "."
        )
    return values.astype(float)


def _bins(values: np.ndarray) -> np.ndarray:
    different = np.unique(values)
    if np.array_equal(different, np.round(different)) and np.ptp(different) <= _MOST_BARS:
        return np.arange(different[0] - 0.5, different[-1] + 1)
    low, high = np.quantile(values, (0.001, 0.999))
    if high - low <= _SAME * max(abs(low), abs(high)):
        low, high = low - 0.5, low + 0.5
    return np.linspace(low, high, 50)
