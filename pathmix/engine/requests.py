"""Requests: work on many paths, written path by path and computed in batches.

What a path needs computed it asks for, by yielding requests; whoever conducts it sends the answers. Tasks
that go on `together` ask at the same time, so that requests for one executable become one batch.
"""

from collections.abc import Callable, Generator, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import jax

Result = TypeVar("Result")
# One member's part of a batched call: what all members have in common, what stays the same from call to
# call, and the rest.
MemberFunction = Callable[[Any, Any, Any], Any]


@dataclass(frozen=True, eq=False)
class Request:
    """One member's part of a call of a compiled function."""

    key: Hashable  # of the executable
    build: Callable[[], MemberFunction]
    fixed: Any  # arrays that stay the same from call to call
    moving: Any
    common: tuple[Any, ...] = ()  # numbers; members with other ones are in another batch
    footprint: int = 0  # bytes that one member takes
    label: str = ""  # of the path
    ignored: Callable[[Any], Any] | None = None  # the part of the answer that nobody reads
    comes_again: bool = True  # in later phases, with others in between
    # The types of the answer, if they are known before it is traced: then that can be left to others.
    types: Callable[[], Any] | None = None

    def wanted(self, answer: Any) -> Any:
        """An answer, with None in the place of what nobody reads."""
        if self.ignored is None:
            return answer
        leaves, tree = jax.tree.flatten(answer)
        ignored = set(jax.tree.leaves(self.ignored(tree.unflatten(range(len(leaves))))))
        return tree.unflatten([None if place in ignored else leaf for place, leaf in enumerate(leaves)])


@dataclass(frozen=True)
class Failed:
    """The answer to a request that could not be computed."""

    error: Exception


Asking = Generator[list[Request], list[Any], Result]
Answer = Callable[[Sequence[Request]], list[Any]]


def together(tasks: Sequence[Asking[Result]]) -> Asking[list[Result]]:
    """Tasks side by side: each round of requests is answered for all of them at once."""
    results: dict[int, Result] = {}
    waiting: dict[int, list[Request]] = {}

    def go_on(number: int, step: Callable[[], list[Request]]) -> None:
        try:
            waiting[number] = step()
        except StopIteration as end:
            waiting.pop(number, None)
            results[number] = end.value

    try:
        for number, task in enumerate(tasks):
            go_on(number, lambda task=task: next(task))
        while waiting:
            asked = list(waiting.items())
            answers = iter((yield [request for _, requests in asked for request in requests]))
            for number, requests in asked:
                mine = [next(answers) for _ in requests]
                go_on(number, lambda task=tasks[number], mine=mine: task.send(mine))
    finally:
        for task in tasks:
            task.close()
    return [results[number] for number in range(len(tasks))]


def asked(requests: list[Request]) -> Asking[list[Any]]:
    """The answers to requests, or the error that took the place of one."""
    answers = yield requests
    for answer in answers:
        if isinstance(answer, Failed):
            raise answer.error
    return answers


def labelled(task: Asking[Result], label: str) -> Asking[Result]:
    """The task of a path, whose requests say so."""
    try:
        requests = next(task)
        while True:
            requests = task.send((yield [replace(request, label=label) for request in requests]))
    except StopIteration as end:
        return end.value
    finally:
        task.close()


def conducted(tasks: Sequence[Asking[Result]], answer: Answer) -> Generator[None, None, list[Result]]:
    """Tasks together, with their requests answered, a round each turn."""
    whole = together(tasks)
    try:
        requests = next(whole)
        while True:
            # Answers are large, and used at once: who waits for a turn holds the next requests only.
            requests = whole.send(answer(requests))
            yield
    except StopIteration as end:
        return end.value
    finally:
        whole.close()


def answered(task: Asking[Result], answer: Answer) -> Result:
    """The result of a task, with all its requests answered."""
    turns = conducted([task], answer)
    while True:
        try:
            next(turns)
        except StopIteration as end:
            return end.value[0]
