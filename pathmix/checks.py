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


def check_choice(what: str, value: Any, choices: tuple[str, ...]) -> None:
    if value not in choices:
        listed = ", ".join(map(repr, choices))
        raise OptionError(f"{what} must be one of {listed}, not {value!r}.")
