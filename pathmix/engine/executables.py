"""Compiled functions, one per structure, shared by all paths that have it."""

import threading
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import jax


@dataclass
class _Entry:
    function: Callable[..., Any]
    lock: threading.Lock = field(default_factory=threading.Lock)
    compiled: bool = False


class Executables:
    """Builds each function on first use; two threads never compile the same one."""

    def __init__(self) -> None:
        self._entries: dict[Hashable, _Entry] = {}
        self._lock = threading.Lock()

    def __contains__(self, key: Hashable) -> bool:
        return key in self._entries

    def call(self, key: Hashable, build: Callable[[], Callable[..., Any]], *args: Any) -> Any:
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                entry = self._entries[key] = _Entry(jax.jit(build(), compiler_options=_compiler_options()))
        if entry.compiled:
            return entry.function(*args)
        with entry.lock:
            result = entry.function(*args)
            entry.compiled = True
            return result


@lru_cache
def _compiler_options() -> dict[str, bool] | None:
    """On CPUs, XLA's fusion emitters take up to three times as long to compile code that is no faster."""
    options = {"xla_cpu_use_fusion_emitters": False}
    try:
        jax.jit(lambda: 0, compiler_options=options)()
    except jax.errors.JaxRuntimeError:  # another kind of device, or an XLA without them
        return None
    return options
