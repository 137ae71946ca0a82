"""The tree of what paths have in common: their discrete sites in order, then what else tells them apart."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pathmix.plots.axes import OTHERS, beside, colours, on
from pathmix.posterior.fitted import FittedPath
from pathmix.posterior.posterior import Posterior
from pathmix.target.labels import shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_NAMED = 12  # paths
_WIDEST = 16  # inches


@dataclass
class _Node:
    """A branch, with all paths beyond it."""

    text: str
    weight: float = 0.0
    inner: dict[str, "_Node"] = field(default_factory=dict)
    others: int = 0  # paths that leave it, and are not named
    other_weight: float = 0.0


def tree(posterior: Posterior, ax: "Axes | None" = None) -> "Axes":
    """Branches are as thick as the weight of the paths beyond them. The heaviest paths are named."""
    root = _Node("")
    for path in posterior.paths[:_MOST_NAMED]:
        node = root
        node.weight += path.weight
        for step in _steps(path):
            node = node.inner.setdefault(step, _Node(step))
            node.weight += path.weight
    for path in posterior.paths[_MOST_NAMED:]:
        _add_other(root, path, _steps(path))
    root = _joined(root)
    leaves = _leaves(root)
    ax = on(ax, (min(2 + 3 * _depth(root), _WIDEST), 1 + 0.36 * leaves))
    _draw(ax, root, 0, 0.0)
    ax.set_ylim(leaves - 0.5, -0.8)
    ax.set_xlim(-0.05, _depth(root) + 0.1)
    ax.set_axis_off()
    return ax


def _steps(path: FittedPath) -> list[str]:
    pinned = [f"{name}={shown(value)}" for name, value in path.path.pinned]
    rest = f", {path.label}, " if path.path.decisions else ""
    for text in pinned:
        rest = rest.replace(f", {text}, ", ", ")
    return [*pinned, *filter(None, rest.split(", "))] or [path.label]


def _add_other(root: _Node, path: FittedPath, steps: Sequence[str]) -> None:
    node = root
    for step in steps:
        node.weight += path.weight
        if step not in node.inner:
            break
        node = node.inner[step]
    node.others += 1
    node.other_weight += path.weight


def _joined(node: _Node) -> _Node:
    """Without branches that do not branch; with one for the paths that are not named."""
    inner = [_joined(other) for other in node.inner.values()]
    if node.others:
        inner.append(_Node(f"{node.others} more", node.other_weight))
    if len(inner) == 1 and node.text:
        return _Node(f"{node.text}, {inner[0].text}", node.weight, inner[0].inner)
    return _Node(node.text, node.weight, {str(number): other for number, other in enumerate(inner)})


def _leaves(node: _Node) -> int:
    return sum(map(_leaves, node.inner.values())) or 1


def _depth(node: _Node) -> int:
    return 1 + max((_depth(other) for other in node.inner.values()), default=-1)


def _draw(ax: "Axes", node: _Node, depth: int, top: float) -> float:
    """Draw what is below a node; returns where the node is."""
    if not node.inner:
        return top
    places, at = [], top
    for other in node.inner.values():
        places.append((other, _draw(ax, other, depth + 1, at)))
        at += _leaves(other)
    own = (places[0][1] + places[-1][1]) / 2
    for other, place in places:
        colour = colours(1)[0] if other.weight > 1e-3 else OTHERS
        ax.plot(
            [depth, depth + 0.25, depth + 1],
            [own, place, place],
            color=colour,
            linewidth=0.7 + 7 * other.weight,
            solid_capstyle="round",
            solid_joinstyle="round",
            alpha=0.85,
        )
        ax.annotate(
            f"{beside(other.text)}   {other.weight:.3g}",
            (depth + 0.28, place),
            xytext=(0, 4 + 3 * other.weight),
            textcoords="offset points",
            fontsize="small",
            va="bottom",
        )
    return own
