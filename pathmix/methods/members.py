"""Whether an object has every member of a protocol, found out when it is given as an option."""

from inspect import get_annotations
from typing import Any, Protocol

from pathmix.errors import OptionError


def check_members(what: str, value: Any, protocol: type, example: str) -> None:
    """Refuse an object that lacks a member of the protocol, by name; `example` is what to write instead."""
    if isinstance(value, type):
        raise OptionError(f"{what} must be an object, such as {example}, not the class {value.__name__}.")
    if lacking := missing_members(value, protocol):
        raise OptionError(
            f"{what} must be an object such as {example}, not {value!r}: it lacks {', '.join(lacking)}."
        )


def missing_members(value: Any, protocol: type) -> list[str]:
    """Members that the object does not have, or that it cannot call where the protocol has a method."""
    lacking = []
    for name, is_method in _members(protocol).items():
        if not hasattr(value, name):
            lacking.append(name)
        elif is_method and not callable(getattr(value, name)):
            lacking.append(f"a callable {name}")
    return lacking


def _members(protocol: type) -> dict[str, bool]:
    """The public names that a protocol and its bases declare, and which of them are methods."""
    found: dict[str, bool] = {}
    for base in reversed(protocol.__mro__):
        if base in (object, Protocol) or not getattr(base, "_is_protocol", False):
            continue
        declared = {**dict.fromkeys(get_annotations(base)), **base.__dict__}
        found |= {name: callable(member) for name, member in declared.items() if not name.startswith("_")}
    return found
