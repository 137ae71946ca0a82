"""One bad path never kills the run: its error becomes its status."""

from collections.abc import Callable
from typing import Protocol, TypeVar

from pathmix.engine.requests import Asking


class _MayFail(Protocol):
    failure: Exception | None


Work = TypeVar("Work", bound=_MayFail)
Result = TypeVar("Result")


def guarded(task: Callable[[Work], Result]) -> Callable[[Work], Result | None]:
    """The task, which keeps an error as the `failure` of what it works on, and leaves alone what failed."""

    def run(work: Work) -> Result | None:
        if work.failure is not None:
            return None
        try:
            return task(work)
        except Exception as error:
            work.failure = error
            return None

    return run


def guarded_asking(work: _MayFail, task: Asking[Result]) -> Asking[Result | None]:
    """The same for work that asks for what it needs."""
    if work.failure is not None:
        return None
    try:
        return (yield from task)
    except Exception as error:
        work.failure = error
        return None
