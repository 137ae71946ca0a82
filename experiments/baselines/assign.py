"""Find the paths of draws that are known by the values of their sites, as those of a library's guide are."""

import numpy as np

from experiments.baselines.book import Book
from experiments.baselines.global_guide import PathDraws, joined
from experiments.baselines.known_path import KnownPath
from pathmix.program.values import SiteValues


def assign(book: Book, draws: list[SiteValues], log_q: np.ndarray) -> dict[KnownPath, PathDraws]:
    """Draws by path, with their densities. The program only runs for draws that no known path claims."""
    found: dict[KnownPath, list[PathDraws]] = {}
    open_ = np.ones(len(draws), bool)
    shapes = [_shapes(values) for values in draws]
    for known in book.paths:
        _claim(known, draws, shapes, log_q, open_, found)
    while np.any(open_):
        first = int(np.argmax(open_))
        known, _ = book.follow({n: v[None] for n, v in draws[first].items()}, complete=True)
        # The program itself took this path, whatever rounding makes of the conditions.
        only = np.arange(len(draws)) == first
        _claim(known, draws, shapes, log_q, only, found, certain=True)
        open_[first] = False
        _claim(known, draws, shapes, log_q, open_, found)
    return {known: joined(parts) for known, parts in found.items()}


def _claim(
    known: KnownPath,
    draws: list[SiteValues],
    shapes: list[dict[str, tuple[int, ...]]],
    log_q: np.ndarray,
    open_: np.ndarray,
    found: dict[KnownPath, list[PathDraws]],
    *,
    certain: bool = False,
) -> None:
    """Give a path the open draws that follow it, and take them out of `open_`."""
    own = {site.name: site.shape for site in known.slp.sites}
    rows = np.array([row for row in np.flatnonzero(open_) if shapes[row] == own], int)
    if not len(rows):
        return
    values = {site.name: np.stack([draws[row][site.name] for row in rows]) for site in known.slp.sites}
    evaluated = known.evaluate(values, len(rows))
    inside = evaluated.inside | certain
    for site in known.slp.sites:
        if site.pinned is not None:
            inside = inside & np.all((values[site.name] == site.pinned).reshape(len(rows), -1), axis=1)
    if np.any(inside):
        kept = {name: array[inside] for name, array in {**values, **evaluated.deterministics}.items()}
        found.setdefault(known, []).append(PathDraws(kept, evaluated.log_joint[inside], log_q[rows[inside]]))
        open_[rows[inside]] = False


def _shapes(values: SiteValues) -> dict[str, tuple[int, ...]]:
    return {name: np.shape(value) for name, value in values.items()}
