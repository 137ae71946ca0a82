"""Functions that may have to make room for others: what was traced is read again, and not traced again."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

import jax

from pathmix.engine import stablehlo
from pathmix.engine.packing import Packing

_MOST = 8_192  # some tens of kilobytes each


@dataclass(frozen=True)
class _Written:
    content: bytes
    tree: Any  # of what it returns
    results: tuple[Packing, ...]  # what tracing told beside


class Shelf:
    """Functions as StableHLO, a hundredth of the memory that they take once they are compiled."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Hashable, _Written] = OrderedDict()
        self._lock = threading.Lock()

    def put(
        self, key: Hashable, function: Callable[..., Any], args: tuple[Any, ...], results: list[Packing]
    ) -> None:
        """Trace a function of such arguments, and write it down; an error where that cannot be."""
        leaves, tree = jax.tree.flatten(args)
        found, content = stablehlo.written(
            lambda *given: function(*tree.unflatten(given)),
            *map(stablehlo.shape, leaves),
            where="kept for later",
        )
        with self._lock:
            self._kept[key] = _Written(content, found.out_tree, tuple(results))
            if len(self._kept) > _MOST:
                self._kept.popitem(last=False)

    def lowered(self, key: Hashable, args: tuple[Any, ...], options: dict[str, Any]) -> "_Lowered | None":
        """To be compiled, if it was put here."""
        with self._lock:
            found = self._kept.get(key)
        if found is None:
            return None
        function = jax.jit(stablehlo.read(found.content).call, compiler_options=options)
        return _Lowered(function.lower(*jax.tree.leaves(args)), found)


class _Lowered:
    def __init__(self, lowered: Any, written: _Written) -> None:
        self._lowered, self._tree, self.results = lowered, written.tree, written.results

    def compile(self) -> Callable[..., Any]:
        compiled, tree = self._lowered.compile(), self._tree
        return lambda *args: tree.unflatten(jax.tree.leaves(compiled(*jax.tree.leaves(args))))
