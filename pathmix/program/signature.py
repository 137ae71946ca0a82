"""Whether a model can be called with some arguments."""

import inspect
from collections.abc import Callable
from typing import Any

from pathmix.errors import ArgumentsError


def check_arguments(model: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """An error that shows the signature of a model, if it cannot be called with these."""
    signature = signature_of(model)
    if signature is None:
        return
    try:
        signature.bind(*args, **kwargs)
    except TypeError as error:
        raise ArgumentsError(
            f"The model cannot be called with these arguments: {error}. It is {described(model)}."
        ) from None


def signature_of(model: Callable[..., Any]) -> inspect.Signature | None:
    """None for something that does not tell."""
    try:
        return inspect.signature(getattr(model, "forward", model))  # of a module
    except (TypeError, ValueError):
        return None


def described(model: Callable[..., Any]) -> str:
    """Its name and signature."""
    return f"{getattr(model, '__name__', type(model).__name__)}{signature_of(model) or '(...)'}"
