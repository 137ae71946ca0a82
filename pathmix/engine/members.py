"""Batches: one compiled function applied to many members.

On CPUs members go one after another inside the compiled call, as many as there are: what one of them gives
depends neither on the others nor on how batches are cut, not in a single bit. Accelerators need the members
side by side to be filled.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from pathmix.engine.noise import Normals
from pathmix.engine.packing import Packing
from pathmix.engine.requests import MemberFunction, Request

Member = TypeVar("Member")

_MOST_IN_TURNS = 8  # enough to make the cost of a call small, few enough for every thread to get a batch
_MOST = 512  # side by side
_COHORTS_EACH = 4  # that keep all threads busy, although some are done before others


class Form(NamedTuple):
    """What a batch is made of: one compiled function can take all batches of a form."""

    size: int
    fixed: Packing
    moving: Packing
    shared: tuple[bool, ...]  # which large fixed arrays all members have, and so are there once


class Batch(NamedTuple):
    form: Form
    arrays: Any  # members along the first axis


def cohorts(
    members: Sequence[Member], kind: Callable[[Member], Hashable], threads: int
) -> list[list[Member]]:
    """Members that are worked on together: of one kind, and no more than leaves every thread some.

    Where there are many kinds, a thread has enough to do without taking members of each.
    """
    groups: dict[Hashable, list[Member]] = {}
    for member in members:
        groups.setdefault(kind(member), []).append(member)
    found, enough = [], -(-len(members) // (_COHORTS_EACH * threads))
    for group in groups.values():
        size = min(_MOST_IN_TURNS, max(-(-len(group) // threads), enough)) if takes_turns() else _MOST
        found += [group[start : start + size] for start in range(0, len(group), size)]
    return found


def capacity(count: int, footprint: int, limit: int, before: int | None) -> int:
    """The size of the batches of an executable that shall compute for so many members.

    Every size is compiled anew, so that of `before` stays where it serves. Turns that nobody takes cost
    nothing: there, one size serves for all. (Side by side they do: with eight at least, the mixture in 100
    dimensions was not initialised after 100 s on an H200, instead of 12.)
    """
    most = max(1, min(_MOST_IN_TURNS if takes_turns() else _MOST, limit // max(footprint, 1)))
    largest = 1 << (most.bit_length() - 1)
    if takes_turns():
        return largest
    wanted = min(1 << (count - 1).bit_length(), largest)
    return before if before is not None and wanted <= before <= min(4 * wanted, most) else wanted


@dataclass(frozen=True, eq=False)
class Column:
    """An array of all members of a batch, which is made where it is needed.

    Until then it is small: noise is not drawn, and nothing fills the batch up.
    """

    members: tuple[Normals | np.ndarray, ...]
    size: int

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.size, *self.members[0].shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.members[0].dtype

    def made(self) -> Any:
        return _stack(self.members, self.size)


def stacked(requests: Sequence[Request], size: int, kept: "Kept", *, late: bool = False) -> Batch:
    """The arrays of all members of a batch, filled up to its size; those that change may be made later."""
    fixed, moving = Packing.of(requests[0].fixed), Packing.of(requests[0].moving)
    columns, large, shared = kept.stacked(fixed, [request.fixed for request in requests], size)
    arrays = (
        columns,
        large,
        _columns([moving.pack(request.moving) for request in requests], size, late=late),
        _columns([_large(moving, request.moving) for request in requests], size, late=late),
    )
    return Batch(Form(size, fixed, moving, shared), arrays)


class Kept:
    """What stays the same from call to call, stacked once for the cohorts that come again and again."""

    _MOST = 64

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # With the trees themselves, whose identity is the key.
        self._kept: OrderedDict[tuple[int, ...], tuple[Any, Any]] = OrderedDict()

    def stacked(
        self, packing: Packing, trees: Sequence[Any], size: int
    ) -> tuple[list[Any], list[Any], tuple[bool, ...]]:
        """The vectors of all trees; the large arrays, and which of them are there once for all."""
        key = (size, *map(id, trees))
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key][1]
        rows = list(zip(*(_large(packing, tree) for tree in trees), strict=True))
        shared = tuple(all(leaf is row[0] for leaf in row) for row in rows)
        large = [
            _stack(row[:1], 1) if once else _stack(row, size) for row, once in zip(rows, shared, strict=True)
        ]
        found = (_columns([packing.pack(tree) for tree in trees], size), large, shared)
        with self._lock:
            self._kept[key] = (trees, found)
            while len(self._kept) > self._MOST:
                self._kept.popitem(last=False)
        return found


def batched(function: MemberFunction, form: Form, results: list[Packing]) -> Any:
    """(count, common, arrays) -> the packed results of the first `count` members of a batch.

    How they are packed is left in `results` when the function is traced.
    """

    def member(common: Any, arrays: Any, number: Any) -> Any:
        fixed, large, moving, large_moving = arrays
        own = [
            leaf[0] if once else row_of(leaf, number) for leaf, once in zip(large, form.shared, strict=True)
        ]
        found = function(
            common,
            form.fixed.unpack([row_of(vector, number) for vector in fixed], own),
            form.moving.unpack(
                [row_of(vector, number) for vector in moving], [row_of(leaf, number) for leaf in large_moving]
            ),
        )
        results[:] = [Packing.of(found)]
        return results[0].pack_traced(found)

    def alone(count: Any, common: Any, arrays: Any) -> Any:
        del count
        return jax.tree.map(lambda result: result[None], member(common, arrays, 0))

    def in_turns(count: Any, common: Any, arrays: Any) -> Any:
        @jax.jit  # traced once, for the shapes and for the loop
        def one(number: Any) -> Any:
            return member(common, arrays, number)

        def turn(number: Any, done: Any) -> Any:
            return jax.tree.map(lambda column, row: with_row(column, row, number), done, one(number))

        first = jnp.zeros((), int)
        shapes = jax.eval_shape(one, first)
        blank = jax.tree.map(lambda result: jnp.zeros((form.size, *result.shape), result.dtype), shapes)
        return jax.lax.fori_loop(first, count, turn, blank)

    def side_by_side(count: Any, common: Any, arrays: Any) -> Any:
        del count
        return jax.vmap(lambda number: member(common, arrays, number))(jnp.arange(form.size))

    return alone if form.size == 1 else in_turns if takes_turns() else side_by_side


def with_row(column: Any, row: Any, number: Any) -> Any:
    """A column with another row, of which it is known that it is there: that compiles to less than `.at`."""
    return jax.lax.dynamic_update_index_in_dim(column, row, number, 0)


def row_of(column: Any, number: Any) -> Any:
    """A row, likewise."""
    return jax.lax.dynamic_index_in_dim(column, number, 0, keepdims=False)


def takes_turns() -> bool:
    """Whether members go one after another."""
    return jax.default_backend() == "cpu"


def _large(packing: Packing, tree: Any) -> list[Any]:
    leaves = jax.tree.leaves(tree)
    return [leaves[i] for i in packing.large]


def _columns(rows: Sequence[Sequence[Any]], size: int, *, late: bool = False) -> list[Any]:
    columns = zip(*rows, strict=True)
    return [Column(tuple(map(_small, column)), size) if late else _stack(column, size) for column in columns]


def _small(leaf: Any) -> Normals | np.ndarray:
    return leaf if isinstance(leaf, Normals) else np.asarray(leaf)


def _stack(column: Sequence[Any], size: int) -> Any:
    """One array of all members, filled up with the first one."""
    missing = size - len(column)
    if not takes_turns() and isinstance(column[0], (jax.Array, Normals)):
        # What is on the device stays there.
        arrays = [leaf.on_device() if isinstance(leaf, Normals) else leaf for leaf in column]
        return jnp.stack(arrays + arrays[:1] * missing)
    arrays = [np.asarray(leaf) for leaf in column]
    return np.stack(arrays + arrays[:1] * missing)
