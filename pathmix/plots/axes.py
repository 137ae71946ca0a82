"""What all pictures have in common."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import numpy as np

from pathmix.errors import MissingExtraError
from pathmix.target.labels import shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes

OTHERS = "0.75"  # the colour of paths that are not named
MOST_NAMED = 8  # paths that get a colour of their own
_LONGEST = 36  # letters of a label beside an axis
_apart = ContextVar("_apart", default=False)


@contextmanager
def apart() -> Iterator[None]:
    """New axes inside of it are unknown to pyplot: they need no window, and no notebook shows them."""
    token = _apart.set(True)
    try:
        yield
    finally:
        _apart.reset(token)


def on(ax: "Axes | None", size: tuple[float, float]) -> "Axes":
    """The axes, or new ones."""
    if ax is not None:
        return ax
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError as error:
        raise MissingExtraError("pathmix.plots", error.name) from error
    if _apart.get():
        return Figure(figsize=size, layout="constrained").subplots()
    from matplotlib.pyplot import subplots

    return subplots(figsize=size, layout="constrained")[1]


def colours(count: int) -> list[Any]:
    """For the first paths; the others are grey."""
    from matplotlib import colormaps

    named = [colormaps["tab10"](number) for number in range(10) if number != 7][:MOST_NAMED]
    return (named + [OTHERS] * count)[:count]


def bare(ax: "Axes") -> None:
    """Without a frame on the right and above."""
    ax.spines[["right", "top"]].set_visible(False)


def explained(ax: "Axes", x: np.ndarray, y: np.ndarray | None = None) -> None:
    """With a legend where fewest points are: to the left or right of numbers, or in a corner of a curve.

    matplotlib can look for the best place itself, but warns if that takes it a second.
    """
    inside = np.isfinite(x) if y is None else np.isfinite(x) & np.isfinite(y)
    right = _upper(x[inside])
    corners = {"upper left": ~right, "upper right": right}
    if y is not None:
        upper = _upper(y[inside])
        lower = {"lower left": ~right & ~upper, "lower right": right & ~upper}
        corners = {name: side & upper for name, side in corners.items()} | lower
    place = min(corners, key=lambda name: np.sum(corners[name]))
    ax.legend(frameon=False, fontsize="small", loc=place)


def _upper(values: np.ndarray) -> np.ndarray:
    """Those in the upper half of the range."""
    if not len(values):
        return np.zeros(0, bool)
    low, high = np.quantile(values, (0.001, 0.999))
    return values > (low + high) / 2


def beside(label: str) -> str:
    """A label as short as fits beside an axis."""
    return plain(shortened(label, _LONGEST))


def plain(text: str) -> str:
    """For Matplotlib, which reads mathematics between dollars, and hides names that begin with _."""
    text = text.replace("$", r"\$")
    return f" {text}" if text.startswith("_") else text
