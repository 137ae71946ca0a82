"""The plots, as drawings inside the page that take its colours."""

import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from html import escape
from io import StringIO
from typing import TYPE_CHECKING, Any

import pathmix.plots as plots
from pathmix.errors import MissingExtraError, PathmixError
from pathmix.plots.axes import apart
from pathmix.posterior.posterior import Posterior

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_INK = "#010203"  # stands for the colour of the page's text
_BROAD = 10  # inches, that take the whole width of the page
_MOST_SITES = 4
_MOST_OBSERVED = 2
_LEAST_WEIGHT = 0.01  # of the paths that have a site: with less, there are too few draws of it to look at
_STYLE = {
    "svg.fonttype": "none", "text.color": _INK, "axes.edgecolor": _INK, "axes.labelcolor": _INK,
    "xtick.color": _INK, "ytick.color": _INK, "axes.facecolor": "none", "figure.facecolor": "none",
    "legend.labelcolor": _INK,
}  # fmt: skip


def pictures(posterior: Posterior) -> str:
    """Every picture that this posterior has, or how to get them."""
    try:
        drawn = [_figure(number, *one) for number, one in enumerate(_wanted(posterior))]
    except MissingExtraError as error:
        return f"<p>{escape(str(error))}</p>"
    return f'<div class="pictures">{"".join(drawn)}</div>'


def _wanted(posterior: Posterior) -> Iterator[tuple[str, Callable[[], "Axes"]]]:
    yield "Weights of the paths, with their standard errors", partial(plots.weights, posterior)
    if len(posterior.paths) > 1:
        yield (
            "What paths have in common, as thick as their weight",
            partial(plots.tree, posterior),
        )
    for name in _numbers(posterior):
        yield f"{name}, over the paths that have it", partial(plots.marginal, posterior, name)
    for name in _notable(posterior, posterior.observed)[:_MOST_OBSERVED]:
        yield f"{name} as the posterior predicts it", partial(plots.predictive, posterior, name)
    if any(len(path.history) for path in posterior.paths):
        yield "The ELBO of each path during training", partial(plots.elbos, posterior)
    yield "Reliability of evidences: k-hat over weight, good below 0.5", partial(plots.khats, posterior)


def _numbers(posterior: Posterior) -> list[str]:
    """Continuous sites that are single numbers, the most probable ones first."""
    weights: dict[str, float] = {}
    for path in posterior.paths:
        for site in path.guide.layout.sites if path.guide is not None else ():
            if site.shape == ():
                weights[site.name] = weights.get(site.name, 0.0) + path.weight
    return _notable(posterior, sorted(weights, key=lambda name: -weights[name]))[:_MOST_SITES]


def _notable(posterior: Posterior, names: Sequence[str]) -> list[str]:
    return [name for name in names if posterior.exists(name) >= _LEAST_WEIGHT]


def _figure(number: int, caption: str, draw: Callable[[], "Axes"]) -> str:
    try:
        width, content = _drawing(number, draw)
    except MissingExtraError:
        raise
    except PathmixError as error:
        width, content = 0.0, f"<p>{escape(str(error))}</p>"
    kind = ' class="broad"' if width > _BROAD else ""
    return f"<figure{kind}>{content}<figcaption>{escape(caption)}</figcaption></figure>"


def _drawing(number: int, draw: Callable[[], "Axes"]) -> tuple[float, str]:
    try:
        from matplotlib import style
    except ModuleNotFoundError as error:
        raise MissingExtraError("The pictures of a report", error.name) from error
    # Salts keep the names inside of different drawings apart.
    salt: dict[str, Any] = {"svg.hashsalt": f"pathmix {number}"}
    with style.context({**_STYLE, **salt}, after_reset=True), apart(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph")  # browsers have more letters
        figure = draw().get_figure(root=True)
        assert figure is not None
        text = StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None})
    drawing = text.getvalue()
    drawing = drawing[drawing.index("<svg") :]
    for ink in (_INK, "#000000"):
        drawing = drawing.replace(ink, "currentColor")
    return float(figure.get_figwidth()), drawing
