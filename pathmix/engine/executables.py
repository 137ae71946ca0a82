"""Compiled functions, one per structure, shared by all paths that have it."""

import ctypes
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import jax

from pathmix.engine.compiler import compiler_options
from pathmix.engine.jobs import Batches, Crew, Function, Job, Shipped
from pathmix.engine.members import Kept, capacity, stacked, takes_turns
from pathmix.engine.packing import Packing
from pathmix.engine.precision import Engine
from pathmix.engine.requests import Failed, Request
from pathmix.engine.shared import Shared
from pathmix.engine.shelf import Shelf
from pathmix.errors import UnwritableError

# How many are kept, of four to six megabytes each. The kernel limits the memory maps of a process, of which
# an executable takes some 70, with jax 0.11 up to 600, and a process that needs more just ends.
MOST_KEPT = 160
_ON_ACCELERATORS = 3  # times as many: there, they take few maps, and longer to trace again
_OF_MAPS, _USUAL_MAPS = 0.6, 65_530
_MOST_SHIPPED = 4_096  # that others compile: tens of kilobytes each
_UNKNOWN = object()
_LOOK_EVERY = 16  # executables
_KEPT_AT_REST = 64  # some megabytes each
_TRACED_WITH = (
    "enable_x64", "default_device", "default_matmul_precision", "default_prng_impl", "numpy_dtype_promotion",
    "threefry_partitionable",
)  # fmt: skip
MEMORY_LIMIT = 2**28  # bytes that a batch may take

_Build = Callable[[list[Packing]], Callable[..., Any]]  # adds what it returns, once it is traced
_Lower = Callable[[_Build, list[Packing], tuple[Any, ...]], Any]  # to be compiled, here or elsewhere

# Tracing is Python, which one thread at a time can run: many that try keep discovery from its turns.
_tracing = threading.Lock()


@dataclass(eq=False)
class _Entry:
    """A function of arguments of certain types, compiled when it is first called.

    What was traced, and who asked for it, is let go then: it is as large as the code, and may hold the user's
    data.
    """

    build: _Build | None
    lower: _Lower | None
    keep: Callable[["_Entry"], None]  # once it is compiled
    results: list[Packing] = field(default_factory=list)  # of a batch, once it is traced
    lock: threading.Lock = field(default_factory=threading.Lock)
    function: Any = None

    def __call__(self, *args: Any) -> Any:
        if self.function is None:
            with self.lock:
                if self.function is None:
                    assert self.build is not None and self.lower is not None
                    with _tracing:
                        lowered = self.lower(self.build, self.results, args)
                    self.function = lowered.compile()
                    self.build = self.lower = None
                    self.keep(self)
        return self.function(*args)


_everywhere: Shared[_Entry] = Shared(_KEPT_AT_REST)


class Executables:
    """Builds each function on first use; two threads never compile the same one.

    Those that were not used for longest make room for new ones; where there are so many, what was traced is
    put on a shelf. If they are `shared`, others in this process may have built them already: then keys have
    to tell all that a function depends on.
    """

    def __init__(self, memory_limit: int = MEMORY_LIMIT, *, shared: bool = False) -> None:
        self.memory_limit, self._shared = memory_limit, shared
        self._options = compiler_options(1)  # found by compiling, which is not to be counted later
        self._entries: OrderedDict[Hashable, _Entry] = OrderedDict()
        self._sizes: dict[Hashable, int] = {}  # of the batches of each executable
        self._facts: dict[Hashable, Any] = {}
        self._fixed, self._shelf = Kept(), Shelf()
        self._built = self._given_up = 0
        self._fitting: int | None = None  # in what the kernel allows, once there were too many
        self._lock = threading.Lock()
        self._crew: tuple[Crew, Engine] | None = None

    def __len__(self) -> int:
        return len(self._entries)

    def call(self, key: Hashable, build: Callable[[], Callable[..., Any]], *args: Any) -> Any:
        """A function of arrays, which `build` gives if it has not been compiled yet."""
        leaves, tree = jax.tree.flatten(args)
        types = (tree, *map(jax.typeof, leaves), *_places(leaves))
        return self._entry((key, types), lambda _: build(), self._lower)(*args)

    def answer(self, requests: Sequence[Request]) -> list[Any]:
        """The answers to requests; those that one executable can compute are batches of one call."""
        groups: dict[Hashable, list[int]] = {}
        for number, request in enumerate(requests):
            groups.setdefault((request.key, request.common), []).append(number)
        answers: list[Any] = [None] * len(requests)
        for numbers in groups.values():
            size = self._size(requests[numbers[0]], len(numbers))
            for start in range(0, len(numbers), size):
                part = numbers[start : start + size]
                found = self._answer([requests[number] for number in part], size)
                for number, result in zip(part, found, strict=True):
                    answers[number] = result
        return answers

    def once(self, key: Hashable, compute: Callable[[], Any]) -> Any:
        """What is the same for all paths of a structure."""
        found = self._facts.get(key, _UNKNOWN)
        return self._facts.setdefault(key, compute()) if found is _UNKNOWN else found

    @contextmanager
    def at_work(self, engine: Engine, crew: Crew | None = None) -> Iterator["Executables"]:
        """For a run. However it ends, what was used last is kept for the next one, and none of the data.

        A crew answers the requests, if there is one.
        """
        self._crew = None if crew is None else (crew, engine)
        try:
            yield self
        finally:
            with self._lock:
                self._crew = None
                self._keep(_KEPT_AT_REST)
                self._facts.clear()
                self._fixed = Kept()

    def _answer(self, requests: Sequence[Request], size: int) -> list[Any]:
        first = requests[0]
        try:
            batch = stacked(requests, size, self._fixed, late=self._crew is not None)
            key = (first.key, batch.form, _places(jax.tree.leaves(batch.arrays)))
            batches = Batches(first.build, batch.form, first.types)
            lower = partial(self._lower_once, (key, *_settings())) if first.comes_again else self._lower
            if self._crew is not None:
                lower = self._ship
            entry = self._entry(key, batches, lower)
            traced = list(entry.results)
            unread = traced[0].places(first.ignored) if traced and first.ignored else frozenset()
            with _told(_Told(", ".join(dict.fromkeys(request.label for request in requests)), unread)):
                vectors, large = entry(len(requests), first.common, batch.arrays)
            found = enumerate([*vectors, *large])
            arrays = jax.device_get([None if place in unread else array for place, array in found])
        except Exception as error:
            return [Failed(error)] * len(requests)
        (packing,) = entry.results
        return [
            request.wanted(packing.unpack(*_of_member(arrays, number, len(vectors))))
            for number, request in enumerate(requests)
        ]

    def _size(self, request: Request, count: int) -> int:
        with self._lock:
            found = capacity(count, request.footprint, self.memory_limit, self._sizes.get(request.key))
            self._sizes[request.key] = found
            return found

    @property
    def built(self) -> int:
        """How often a function was not there, and had to be compiled or read."""
        return self._built

    def _lower(self, build: _Build, results: list[Packing], args: tuple[Any, ...]) -> Any:
        return jax.jit(build(results), compiler_options=self._options).lower(*args)

    def _lower_once(self, key: Hashable, build: _Build, results: list[Packing], args: tuple[Any, ...]) -> Any:
        """From the shelf; where there are many, what is not there is put there first."""
        found = self._shelf.lowered(key, args, self._options)
        if found is None and len(self._entries) > self.room // 2:
            with suppress(UnwritableError):
                self._shelf.put(key, build(results), args, results)
                found = self._shelf.lowered(key, args, self._options)
        results.clear()
        if found is None:
            return self._lower(build, results, args)
        results += found.results
        return found

    def _ship(self, build: _Build, results: list[Packing], args: tuple[Any, ...]) -> Shipped:
        assert isinstance(build, Batches)
        return Shipped(self._send, build, results, args)

    def _send(self, function: Function, fixed: list[Any], moving: list[Any], members: int) -> list[Any]:
        """Have the present crew compute."""
        assert self._crew is not None
        (crew, engine), told = self._crew, _telling.get()
        return crew.compute(Job(function, fixed, moving, members, engine, told.name, told.unread))

    def _entry(
        self,
        key: Hashable,
        build: _Build,
        lower: _Lower,
    ) -> _Entry:
        key = (key, *_settings())
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                keep = partial(_everywhere.keep, key) if self._shared else _forget
                make = partial(_Entry, build, lower, keep)
                entry = self._entries[key] = _everywhere.get(key, make) if self._shared else make()
                self._built += 1
                self._make_room()
            self._entries.move_to_end(key)
            return entry

    @property
    def room(self) -> int:
        """How many are kept at a time."""
        most = MOST_KEPT if takes_turns() else _ON_ACCELERATORS * MOST_KEPT
        most = most if self._crew is None else _MOST_SHIPPED
        return most if self._fitting is None else min(most, self._fitting)

    def _make_room(self) -> None:
        if self._built % _LOOK_EVERY == 0:
            if _memory_maps() > _most_maps():
                self._fitting = max(3 * len(self._entries) // 4, _LOOK_EVERY)
                _everywhere.let_go()
            elif self._fitting is not None:  # others may have let go of theirs
                self._fitting += _LOOK_EVERY
        self._keep(self.room)

    def _keep(self, most: int) -> None:
        while len(self._entries) > most:
            self._entries.popitem(last=False)
            self._given_up += 1
        if self._given_up >= _LOOK_EVERY:
            self._given_up = 0
            _return_memory()


class _Told(NamedTuple):
    """What others are told of the requests that are answered."""

    name: str  # for people: the paths they are for
    unread: frozenset[int]  # the results that are not wanted


_telling: ContextVar[_Told] = ContextVar("telling")


@contextmanager
def _told(of: _Told) -> Iterator[None]:
    before = _telling.set(of)
    try:
        yield
    finally:
        _telling.reset(before)


def _of_member(arrays: list[Any], number: int, vectors: int) -> tuple[list[Any], list[Any]]:
    """Copies: who keeps a number of one member shall not keep the results of all."""
    found = [None if array is None else array[number].copy() for array in arrays]
    return found[:vectors], found[vectors:]


def _forget(_: _Entry) -> None:
    """Keep it for nobody else."""


def _settings() -> tuple[str, ...]:
    """Of JAX's, that what is traced depends on."""
    return tuple(str(getattr(jax.config, f"jax_{name}", None)) for name in _TRACED_WITH)


def _places(leaves: Sequence[Any]) -> tuple[Any, ...]:
    """The devices that the user has put arrays on."""
    return tuple(leaf.sharding for leaf in leaves if getattr(leaf, "committed", False))


def _return_memory() -> None:
    """To the system: glibc keeps what was freed between what is in use, and executables are large."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL("libc.so.6").malloc_trim(0)


@lru_cache
def _most_maps() -> int:
    """That this process shall have."""
    try:
        return int(_OF_MAPS * int(Path("/proc/sys/vm/max_map_count").read_text()))
    except (OSError, ValueError):
        return int(_OF_MAPS * _USUAL_MAPS)


def _memory_maps() -> int:
    """Of this process, where the kernel tells."""
    try:
        with open("/proc/self/maps", "rb") as maps:
            return sum(1 for _ in maps)
    except OSError:
        return 0
