"""The tree of decisions: where paths part, with the weight of each way, and what nobody saw."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from pathmix.discovery.forks import read
from pathmix.plots.axes import OTHERS, beside, colours, on
from pathmix.posterior.fitted import FittedPath
from pathmix.posterior.posterior import Posterior

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_NAMED = 12  # paths
_MOST_UNSEEN, _LITTLE = 6, 1e-3  # ways that nobody saw, of so much prior mass or more
_WIDEST = 16  # inches


@dataclass
class _Node:
    """A branch, with all paths beyond it."""

    text: str
    weight: float = 0.0
    inner: dict[str, "_Node"] = field(default_factory=dict)
    others: int = 0  # paths that leave it, and are not named
    other_weight: float = 0.0
    unseen: str = ""  # of a branch that nobody saw: what is known of it


def tree(posterior: Posterior, ax: "Axes | None" = None) -> "Axes":
    """Branches are as thick as the weight of the paths beyond them. The heaviest paths are named.

    What nobody saw is dotted, with the prior mass that is left there.
    """
    root = _Node("")
    for path in posterior.paths[:_MOST_NAMED]:
        node = root
        node.weight += path.weight
        for step in _steps(posterior, path):
            node = node.inner.setdefault(step, _Node(step))
            node.weight += path.weight
    for path in posterior.paths[_MOST_NAMED:]:
        _add_other(root, path, _steps(posterior, path))
    _add_unseen(root, posterior)
    root = _joined(root)
    leaves = _leaves(root)
    ax = on(ax, (min(2 + 3 * _depth(root), _WIDEST), 1 + 0.36 * leaves))
    _draw(ax, root, 0, 0.0)
    ax.set_ylim(leaves - 0.5, -0.8)
    ax.set_xlim(-0.05, _depth(root) + 0.1)
    ax.set_axis_off()
    return ax


def _steps(posterior: Posterior, path: FittedPath) -> list[str]:
    """Ways through the tree; in the end a path's own name, where that is in another notation."""
    steps = list(read(posterior.tree.ways(path.path)))
    return steps if any(step in path.label for step in steps) else [*steps, path.label]


def _add_other(root: _Node, path: FittedPath, steps: Sequence[str]) -> None:
    node = root
    for step in steps:
        node.weight += path.weight
        if step not in node.inner:
            break
        node = node.inner[step]
    node.others += 1
    node.other_weight += path.weight


def _add_unseen(root: _Node, posterior: Posterior) -> None:
    """The most probable of what nobody saw, where the way there is in the picture."""
    for left in posterior.tree.unexplored()[:_MOST_UNSEEN]:
        node: _Node | None = root
        for step in left.after:
            node = None if node is None else node.inner.get(step)
        if node is not None and left.mass >= _LITTLE:
            text = ", ".join(left.ways)
            about = "" if left.is_exact else "perhaps "
            node.inner[text] = _Node(text, unseen=f"unseen, {about}{left.mass:.2g} of the prior")


def _joined(node: _Node) -> _Node:
    """Without branches that do not branch; with one for the paths that are not named."""
    inner = [_joined(other) for other in node.inner.values()]
    if node.others:
        inner.append(_Node(f"{node.others} more", node.other_weight))
    if len(inner) == 1 and node.text:
        return replace(inner[0], text=f"{node.text}, {inner[0].text}")
    return replace(node, inner={str(number): other for number, other in enumerate(inner)})


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
        share = other.unseen or f"{other.weight:.3g}"
        ax.plot(
            [depth, depth + 0.25, depth + 1],
            [own, place, place],
            color=colour,
            linewidth=1.2 if other.unseen else 0.7 + 7 * other.weight,
            linestyle=":" if other.unseen else "-",
            solid_capstyle="round",
            solid_joinstyle="round",
            alpha=0.85,
        )
        ax.annotate(
            f"{beside(other.text)}   {share}",
            (depth + 0.28, place),
            xytext=(0, 4 + 3 * other.weight),
            textcoords="offset points",
            fontsize="small",
            va="bottom",
        )
    return own
