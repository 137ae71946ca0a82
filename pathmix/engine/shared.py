"""What compiled functions there are in this process: two that compute the same are one."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar
from weakref import WeakValueDictionary

Entry = TypeVar("Entry")


class Shared(Generic[Entry]):
    """Knows what anybody holds, and holds beside that what was kept last."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._alive: WeakValueDictionary[Hashable, Entry] = WeakValueDictionary()
        self._latest: OrderedDict[Hashable, Entry] = OrderedDict()

    def get(self, key: Hashable, make: Callable[[], Entry]) -> Entry:
        """The one of this key, made if there is none."""
        with self._lock:
            found = self._alive.get(key)
            if found is None:
                found = self._alive[key] = make()
            if key in self._latest:
                self._latest.move_to_end(key)
            return found

    def keep(self, key: Hashable, entry: Entry) -> None:
        """Hold it for whoever asks next, until there are too many."""
        with self._lock:
            self._latest[key] = entry
            if len(self._latest) > self._most:
                self._latest.popitem(last=False)

    def let_go(self) -> None:
        """Hold no more than others do."""
        with self._lock:
            self._latest.clear()
