"""Batches of paths on a Ray cluster. Ray starts workers, moves arrays and replaces what was lost."""

import logging
import pickle
import threading
import time
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, NamedTuple

import jax
import numpy as np

from pathmix.checks import check_positive_int, check_positive_number
from pathmix.cluster.bench import Bench, Done
from pathmix.cluster.placement import Placement
from pathmix.engine.jobs import Crew, Function, Job
from pathmix.engine.precision import Engine
from pathmix.errors import ClusterError, MissingExtraError, OptionError

_log = logging.getLogger("pathmix")

_AHEAD = 2  # jobs for each worker: one is computed while the next is on its way
# Ray sends what is smaller than 100 kB with a call, and moves the rest between the stores of nodes. Where it
# moves things both ways at once, it comes to a halt for a second again and again (Ray 2.60).
_PIECE = 90_000
_PUT = 2**14  # bytes, from which on an array that comes again is put into the object store
_MOST_ARRAYS = 512  # that are kept there
_MOST_FUNCTIONS = 4_096
_LONGEST_NAME = 200
_MOST_TRIES = 20  # of a job whose workers are lost with others
_SHARES = 4  # parts of a task for each worker: some are quicker
_LOOK = 0.5  # seconds between looks for a worker


@dataclass(frozen=True)
class RayExecutor:
    """Paths are worked on by the workers of a Ray cluster.

    Without an `address`, the cluster of the environment (`RAY_ADDRESS`) is used, or one is started on this
    machine. Workers stay for the length of a run.

    Args:
        workers: how many; None for as many as the cluster has room for.
        cpus: that a worker takes.
        gpus: that a worker takes; None for one, where this process computes on GPUs.
        resources: others of Ray's that a worker needs.
        address: of the cluster.
        retries: how often a job is given to another worker, if one was lost while it computed it.
        patience: seconds to wait for a worker, if there is none.

    Examples:
        >>> RayExecutor(workers=4).workers
        4
    """

    workers: int | None = None
    cpus: float = field(default=1.0, kw_only=True)
    gpus: float | None = field(default=None, kw_only=True)
    resources: Mapping[str, float] = field(default_factory=dict, kw_only=True)
    address: str | None = field(default=None, kw_only=True)
    retries: int = field(default=3, kw_only=True)
    patience: float = field(default=120.0, kw_only=True)

    def __post_init__(self) -> None:
        if self.workers is not None:
            check_positive_int("RayExecutor(workers=...)", self.workers)
        check_positive_number("RayExecutor(cpus=...)", self.cpus)
        check_positive_number("RayExecutor(patience=...)", self.patience)
        if isinstance(self.retries, bool) or not isinstance(self.retries, int) or self.retries < 0:
            raise OptionError(f"RayExecutor(retries=...) is a number of times, not {self.retries!r}.")

    @contextmanager
    def crew(self, engine: Engine) -> Iterator[Crew]:
        """Workers for one run."""
        ray = _ray()
        if not ray.is_initialized():
            try:
                _connect(ray, self.address)
            except (ConnectionError, RuntimeError, ValueError) as error:
                raise ClusterError(
                    f"There is no Ray cluster to work on: {error}. If it wants a token, RAY_AUTH_MODE=token "
                    "must be in the environment here as well."
                ) from error
        made = _RayCrew(ray, self)
        try:
            made.wait()
            yield made
        finally:
            made.leave()


class _LostError(Exception):
    """A worker is gone, or cannot be reached."""

    def __init__(self, error: Exception, *, is_suspect: bool) -> None:
        super().__init__(str(error).splitlines()[0] if str(error) else type(error).__name__)
        self.is_suspect = is_suspect  # the job was being computed then, and did not only wait for its turn


class _Worker:
    """An actor, and whether it answers."""

    def __init__(self, actor: Any) -> None:
        self.actor = actor
        self.sign = actor.ready.remote()  # answered once it has started, and again after it was restarted
        self.is_there = False
        self.given: list[Job] = []  # of which it computes the first
        self.suspect: Job | None = None  # it was lost with


class _RayCrew:
    def __init__(self, ray: Any, options: RayExecutor) -> None:
        self._ray, self._options = ray, options
        gpus = options.gpus if options.gpus is not None else float(jax.default_backend() == "gpu")
        count = options.workers or _room(ray, options.cpus, gpus)
        # A lost worker is started again by Ray, wherever there is room. Its jobs are not: they would wait for
        # it, while others could do them.
        actor = ray.remote(_Actor).options(
            num_cpus=options.cpus,
            num_gpus=gpus,
            resources=dict(options.resources),
            max_restarts=-1,
            max_task_retries=0,
            max_concurrency=1,
            scheduling_strategy="SPREAD",
        )
        self._workers = [_Worker(actor.remote()) for _ in range(count)]
        self._placement = Placement(count)
        self._lock = threading.Lock()
        # With the arrays, whose identity is the key.
        self._put: OrderedDict[int, tuple[Any, Any]] = OrderedDict()
        self._functions: OrderedDict[str, Any] = OrderedDict()
        self._alone_since = time.monotonic()  # if no worker is there

    @property
    def threads(self) -> int:
        return _AHEAD * len(self._workers)

    def compute(self, job: Job) -> list[np.ndarray | None]:
        tries = losses = 0
        while True:
            try:
                return self._once(job)
            except _LostError as lost:
                tries, losses = tries + 1, losses + lost.is_suspect
                if losses > self._options.retries or tries == _MOST_TRIES:
                    told = f"{losses} workers in turn were lost with it" if losses else "No worker stayed"
                    raise ClusterError(f"{told}: {lost}") from lost

    def each(self, task: Callable[[list[Any]], list[Any]], items: list[Any]) -> list[Any]:
        """What the task gives for each of the items; None where no worker could tell."""
        try:
            written = self._ray.put(self._ray.cloudpickle.dumps(task))
        except Exception as error:  # of whatever the program refers to
            _log.info("The program is run by the driver alone, for it cannot be shipped: %s", error)
            return [None] * len(items)
        size = -(-len(items) // (_SHARES * len(self._workers)))
        parts = {start: items[start : start + size] for start in range(0, len(items), size)}
        left, asked, found = list(parts), {}, [None] * len(items)
        while left or asked:
            for number in self._present():  # more may come
                given = sum(other == number for other, _ in asked.values())
                for _ in range(min(_AHEAD - given, len(left))):
                    start = left.pop(0)
                    answer = self._workers[number].actor.each.remote(written, parts[start])
                    asked[answer] = (number, start)
            done, _ = self._ray.wait(list(asked), num_returns=1, timeout=_LOOK)
            for answer in done:
                number, start = asked.pop(answer)
                try:
                    found[start : start + size] = self._ray.get(answer)
                except self._ray.exceptions.RayTaskError as error:
                    _log.info("The driver makes some runs, for a worker could not: %s", error)
                except self._ray.exceptions.RayError as error:
                    self._mourn(number, error)  # its runs are the driver's
        return found

    def wait(self) -> None:
        """Until there is anybody."""
        self._present()

    def leave(self) -> None:
        for worker in self._workers:
            self._ray.kill(worker.actor)

    def _once(self, job: Job) -> list[np.ndarray | None]:
        errors = self._ray.exceptions
        digest = job.function.digest
        number, expected = self._placement.choose(digest, self._present())
        worker = self._workers[number]
        with self._lock:
            worker.given.append(job)
        name = job.name[:_LONGEST_NAME] or "batch"
        try:
            parts = 2 + job.size // _PIECE
            task = worker.actor.compute.options(name=name, num_returns=parts)
            fixed = [self._reference(leaf) for leaf in job.fixed]
            moving = in_pieces(pickle.dumps(job.moving, protocol=5))
            function = self._function(job.function)
            order = _Order(digest, function, job.members, job.engine, job.unread, parts, len(fixed))
            came = self._ray.get(task.remote(order, *fixed, *moving))
            done: Done = pickle.loads(b"".join(came))
        except errors.RayTaskError as error:  # of the job itself
            raise error.cause if isinstance(error.cause, Exception) else error from error
        except (errors.RayError, ConnectionError) as error:
            self._mourn(number, error)
            raise _LostError(error, is_suspect=worker.suspect is job) from error
        finally:
            with self._lock:
                worker.given.remove(job)
            self._placement.done(number, expected)
        self._placement.learn(digest, done.seconds, done.was_new)
        return done.results

    def _present(self) -> list[int]:
        """The workers that answer; at least one, unless nobody comes for too long."""
        while True:
            with self._lock:
                away = {worker.sign: worker for worker in self._workers if not worker.is_there}
                alone = len(away) == len(self._workers)
            if away:
                ready, _ = self._ray.wait(list(away), num_returns=1, timeout=_LOOK if alone else 0)
                for sign in ready:
                    self._greet(away[sign])
            with self._lock:
                found = [number for number, worker in enumerate(self._workers) if worker.is_there]
                if found:
                    self._alone_since = time.monotonic()
                    return found
                if time.monotonic() > self._alone_since + self._options.patience:
                    raise ClusterError(
                        f"No worker came within {self._options.patience:g} s. Has the cluster room for "
                        f"workers with {self._options.cpus:g} CPUs each? See `ray status`."
                    )

    def _greet(self, worker: _Worker) -> None:
        try:
            self._ray.get(worker.sign)
        except self._ray.exceptions.RayError:
            worker.sign = worker.actor.ready.remote()
            return
        with self._lock:
            worker.is_there = True

    def _mourn(self, number: int, error: Exception) -> None:
        worker = self._workers[number]
        with self._lock:
            if worker.is_there:
                _log.warning("A worker was lost: %s", str(error).splitlines()[0] if str(error) else error)
                worker.is_there, worker.suspect = False, next(iter(worker.given), None)
                worker.sign = worker.actor.ready.remote()
        self._placement.forget(number)

    def _reference(self, leaf: Any) -> Any:
        """Of an array that comes again; those that are small travel with the job."""
        array = np.asarray(leaf)
        if array.nbytes < _PUT:
            return array
        with self._lock:
            return _once_kept(self._put, _MOST_ARRAYS, id(leaf), lambda: (leaf, self._ray.put(array)))[1]

    def _function(self, function: Function) -> Any:
        with self._lock:
            return _once_kept(
                self._functions, _MOST_FUNCTIONS, function.digest, lambda: self._ray.put(function)
            )


class _Actor:
    """A worker's process."""

    def __init__(self) -> None:
        self._bench = Bench()
        self._functions: OrderedDict[str, Function] = OrderedDict()

    def ready(self) -> bool:
        return True

    def each(self, written: bytes, items: list[Any]) -> list[Any]:
        return pickle.loads(written)(items)

    def compute(self, order: "_Order", *given: Any) -> list[bytes]:
        function = _once_kept(
            self._functions, _MOST_FUNCTIONS, order.digest, lambda: _ray().get(order.function)
        )
        fixed, moving = list(given[: order.fixed]), pickle.loads(b"".join(given[order.fixed :]))
        job = Job(function, fixed, moving, order.members, order.engine, unread=order.unread)
        done = self._bench.compute(job)
        return in_pieces(pickle.dumps(done, protocol=5), order.parts)


class _Order(NamedTuple):
    """What is wanted of a worker, besides arrays."""

    digest: str
    function: Any  # a reference, which Ray does not follow: it is fetched where it is new
    members: int
    engine: Engine
    unread: frozenset[int]
    parts: int  # of the result
    fixed: int  # arrays among those that were given


def in_pieces(content: bytes, count: int | None = None) -> list[bytes]:
    """Small enough to travel with a call; of a given number of them, the last has all that is left."""
    count = max(1, -(-len(content) // _PIECE)) if count is None else count
    starts = [number * _PIECE for number in range(count)]
    return [content[start : start + _PIECE] for start in starts[:-1]] + [content[starts[-1] :]]


def _once_kept(kept: OrderedDict[Any, Any], most: int, key: Any, make: Callable[[], Any]) -> Any:
    """What was made for a key before, unless many others have been asked for since."""
    if key not in kept:
        kept[key] = make()
    kept.move_to_end(key)
    found = kept[key]
    while len(kept) > most:
        kept.popitem(last=False)
    return found


def _connect(ray: Any, address: str | None) -> None:
    with warnings.catch_warnings():
        # Ray starts processes of its own by a fork that runs another program at once.
        warnings.filterwarnings("ignore", "os.fork", RuntimeWarning)
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)


def _room(ray: Any, cpus: float, gpus: float) -> int:
    """Workers that the cluster has room for."""
    there = ray.cluster_resources()
    wanted = {"CPU": cpus, "GPU": gpus}
    return max(1, min(int(there.get(what, 0.0) // each) for what, each in wanted.items() if each))


def _ray() -> Any:
    try:
        return import_module("ray")
    except ImportError as error:
        raise MissingExtraError("RayExecutor", "ray") from error
