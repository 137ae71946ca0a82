"""A model bound to its arguments, and the limits put on one run of it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Limits:
    """What one forward run may do before it counts as a runaway."""

    max_sites: int = 10_000
    max_seconds: float = 60.0


@dataclass(frozen=True)
class Program:
    """The user's model and the arguments it is called with."""

    model: Callable[..., Any]
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)
    limits: Limits = Limits()

    def __call__(self) -> Any:
        return self.model(*self.args, **self.kwargs)

    def with_arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> "Program":
        return Program(self.model, args, kwargs, self.limits)
