"""What all pictures have in common."""

from typing import TYPE_CHECKING, Any

from pathmix.errors import MissingExtraError
from pathmix.target.labels import shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes

OTHERS = "0.75"  # the colour of paths that are not named
MOST_NAMED = 8  # paths that get a colour of their own
_LONGEST = 36  # letters of a label beside an axis


def on(ax: "Axes | None", size: tuple[float, float]) -> "Axes":
    """The axes, or new ones."""
    if ax is not None:
        return ax
    try:
        from matplotlib.figure import Figure
        from matplotlib.pyplot import subplots
    except ModuleNotFoundError as error:
        raise MissingExtraError("pathmix.plots", error.name) from error
    figure, made = subplots(figsize=size, layout="constrained")
    assert isinstance(figure, Figure)
    return made


def colours(count: int) -> list[Any]:
    """For the first paths; the others are grey."""
    from matplotlib import colormaps

    named = [colormaps["tab10"](number) for number in range(10) if number != 7][:MOST_NAMED]
    return (named + [OTHERS] * count)[:count]


def bare(ax: "Axes") -> None:
    """Without a frame on the right and above."""
    ax.spines[["right", "top"]].set_visible(False)


def beside(label: str) -> str:
    """A label as short as fits beside an axis."""
    return shortened(label, _LONGEST)
