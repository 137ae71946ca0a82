"""Checks of option values, made when an object is constructed."""

from numbers import Integral
from typing import Any

from pathmix.errors import OptionError


def check_positive_int(what: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
        raise OptionError(f"{what} must be a whole number of at least 1, not {value!r}.")


def check_positive_number(what: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not value > 0:
        raise OptionError(f"{what} must be a positive number, not {value!r}.")


def check_method(options: Any) -> None:
    """What every method of inference has: a model, a discovery, a precision and a progress bar."""
    if not callable(options.model):
        raise OptionError(f"The model must be callable, not {options.model!r}.")
    if isinstance(options.discovery, type) or not hasattr(options.discovery, "discover"):
        raise OptionError(f"discovery must be an object like the default one, not {options.discovery!r}.")
    check_choice("precision", options.precision, ("float64", "float32"))
    if not isinstance(options.progress, bool):
        raise OptionError(f"progress must be True or False, not {options.progress!r}.")


def check_choice(what: str, value: Any, choices: tuple[str, ...]) -> None:
    if value not in choices:
        listed = ", ".join(map(repr, choices))
        raise OptionError(f"{what} must be one of {listed}, not {value!r}.")
