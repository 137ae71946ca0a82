"""What compiled functions there are in this process: two that compute the same are one."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar
from weakref import WeakValueDictionary

import jax

Entry = TypeVar("Entry")
_TRACED_WITH = (
    "enable_x64", "default_device", "default_matmul_precision", "default_prng_impl", "numpy_dtype_promotion",
    "debug_nans",
)  # fmt: skip


class Shared(Generic[Entry]):
    """Holds what anybody else holds, and beside that what was asked for last."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._alive: WeakValueDictionary[Hashable, Entry] = WeakValueDictionary()
        self._latest: OrderedDict[Hashable, Entry] = OrderedDict()

    def get(self, key: Hashable, make: Callable[[], Entry]) -> Entry:
        """The one of this key, made if there is none where JAX is set as it is now."""
        key = (key, _settings())
        with self._lock:
            found = self._alive.get(key)
            if found is None:
                found = self._alive[key] = make()
            self._latest[key] = found
            self._latest.move_to_end(key)
            if len(self._latest) > self._most:
                self._latest.popitem(last=False)
            return found

    def let_go(self) -> None:
        """Hold no more than others do."""
        with self._lock:
            self._latest.clear()


def _settings() -> Hashable:
    """Those of JAX that functions are traced with."""
    return tuple(str(getattr(jax.config, f"jax_{name}")) for name in _TRACED_WITH)
