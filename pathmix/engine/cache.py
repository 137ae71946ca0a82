"""The persistent compilation cache: what one process has compiled, the next one loads.

JAX keeps one such cache for a whole process. A cache that the user has set up is left as it is; else ours is
switched on while the engine runs.
"""

import os
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

from pathmix.doors.jax import CacheSettings, cache_settings, use_cache

CacheOption = bool | str | os.PathLike[str]

_MOST_BYTES = 2**31
_BETWEEN_LOOKS = 600.0  # seconds


def default_folder() -> Path:
    """In the user's cache folder; `PATHMIX_CACHE` names another one."""
    if chosen := os.environ.get("PATHMIX_CACHE"):
        return Path(chosen).expanduser()
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home())) / "pathmix" / "cache"
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "pathmix"


class CompilationCache:
    """Switches the cache on while anybody is inside: the setting belongs to the process, not to a thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._before: CacheSettings | None = None  # where ours is on
        self._next_look = 0.0  # at how large the cache has become

    def enter(self, option: CacheOption) -> bool:
        """Whether the option was taken: who comes second takes what is there."""
        with self._lock:
            if option is False:
                return False
            before = cache_settings()
            if self._inside == 0 and before.jax_compilation_cache_dir is None:
                folder = default_folder() if option is True else Path(option).expanduser()
                if _is_writable(folder):
                    use_cache(CacheSettings(str(folder)))
                    self._before = before
            self._inside += 1
            return True

    def leave(self) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0 and self._before is not None:
                folder = cache_settings().jax_compilation_cache_dir
                use_cache(self._before)
                self._before = None
                # Thousands of files take a tenth of a second to look at, longer than a draw.
                if time.monotonic() > self._next_look:
                    self._next_look = time.monotonic() + _BETWEEN_LOOKS
                    _prune(Path(str(folder)))


def _is_writable(folder: Path) -> bool:
    """Without a place for it there is no cache, and no harm."""
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        return os.access(folder, os.W_OK)
    return False


def _prune(folder: Path) -> None:
    """Leave out what is oldest, where there is more than enough. Other processes may be at it, too."""
    files = []
    with suppress(OSError):
        for entry in os.scandir(folder):
            with suppress(OSError):
                found = entry.stat()
                files.append((found.st_mtime, found.st_size, entry.path))
    total = sum(size for _, size, _ in files)
    for _, size, path in sorted(files):
        if total <= _MOST_BYTES:
            return
        with suppress(OSError):
            os.remove(path)
        total -= size
