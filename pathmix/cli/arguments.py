"""A model's arguments, filled by name."""

import inspect
from collections.abc import Callable
from typing import Any

from pathmix.errors import ArgumentsError
from pathmix.program.signature import described, signature_of

Arguments = tuple[tuple[Any, ...], dict[str, Any]]


def filled(model: Callable[..., Any], given: dict[str, Any]) -> Arguments:
    """The given values as the model takes them; an error with its signature where they do not fit."""
    signature = signature_of(model)
    if signature is None:
        return (), given
    parameters = signature.parameters.values()
    kinds = {parameter.kind for parameter in parameters}
    unknown = [name for name in given if name not in signature.parameters]
    if unknown and inspect.Parameter.VAR_KEYWORD not in kinds:
        raise ArgumentsError(
            f"The model has no parameter called {_listed(unknown)}. It is {described(model)}. "
            "Choose from the data with --column."
        )
    missing = [
        parameter.name
        for parameter in parameters
        if parameter.name not in given
        and parameter.default is parameter.empty
        and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    ]
    if missing:
        raise ArgumentsError(
            f"The model needs {_listed(missing)}. It is {described(model)}. Give it in --data, or with "
            f"--set {missing[0]}=VALUE."
        )
    first = [parameter.name for parameter in parameters if parameter.kind is parameter.POSITIONAL_ONLY]
    return (
        tuple(given[name] for name in first if name in given),
        {name: value for name, value in given.items() if name not in first},
    )


def _listed(names: list[str]) -> str:
    return ", ".join(map(repr, names))
