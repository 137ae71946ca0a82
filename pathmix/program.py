"""A model bound to its arguments, and the limits put on one run of it."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from pathmix.frontends.arguments import Frames, taken
from pathmix.frontends.base import Frontend


@dataclass(frozen=True)
class Limits:
    """What one forward run may do before it counts as a runaway."""

    max_sites: int = 10_000
    max_seconds: float = 60.0  # of processor time, without compilation


@dataclass(frozen=True)
class Program:
    """The user's model, the arguments it is called with, and the language it is written in."""

    model: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    frontend: Frontend
    limits: Limits = Limits()
    params: dict[str, Any] = field(default_factory=dict, compare=False)  # initial values, kept between runs
    frames: Frames = "as given"  # what becomes of DataFrames among the arguments

    def __call__(self) -> Any:
        args, kwargs = self.frontend.adapt((self.args, self.kwargs))
        return self.model(*args, **kwargs)

    def with_arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> "Program":
        args, kwargs = taken((args, kwargs), self.frontend.make_array, self.frames)
        return replace(self, args=args, kwargs=kwargs)
