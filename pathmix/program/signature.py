"""Whether a model can be called with some arguments."""

import inspect
from collections.abc import Callable
from typing import Any

from pathmix.errors import ArgumentsError


def check_arguments(model: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """An error that shows the signature of a model, if it cannot be called with these."""
    try:
        signature = inspect.signature(getattr(model, "forward", model))  # of a module
    except (TypeError, ValueError):  # something that does not tell
        return
    try:
        signature.bind(*args, **kwargs)
    except TypeError as error:
        name = getattr(model, "__name__", type(model).__name__)
        raise ArgumentsError(
            f"The model cannot be called with these arguments: {error}. It is {name}{signature}."
        ) from None
