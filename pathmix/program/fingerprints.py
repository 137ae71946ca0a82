"""Fingerprints of a model and of what it is called with: whether they are the same in another process."""

import hashlib
import inspect
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

import jax

from pathmix.program.contents import UntoldError, content, plain_content
from pathmix.program.taken_along import source_of, taken_along


class Objects(NamedTuple):
    """Arguments that are no plain arrays."""

    digest: str
    untold: tuple[str, ...]  # those of which only the type is known, in words


def of_model(model: Callable[..., Any]) -> str | None:
    """Of its source, and of the functions inside it; None where there is no source to look at."""
    text = source_of(model)
    return None if text is None else hashlib.sha256(inspect.cleandoc(text).encode()).hexdigest()


def of_taken_along(model: Callable[..., Any]) -> str:
    """Of what its source leaves open, as far as that can be told."""
    digest = hashlib.sha256()
    for name, value in taken_along(model):
        with suppress(UntoldError):
            digest.update(name.encode() + content(value, (model,)))
    return digest.hexdigest()


def of_arguments(arguments: Any) -> str:
    """Of numbers, texts and arrays; of other things, only what type they have."""
    digest = hashlib.sha256()
    leaves, tree = jax.tree.flatten(arguments)
    digest.update(str(tree).encode())
    for leaf in leaves:
        plain = plain_content(leaf)
        digest.update(type(leaf).__qualname__.encode() if plain is None else plain)
    return digest.hexdigest()


def of_objects(arguments: Any) -> Objects:
    """Of those arguments which `of_arguments` knows by their type."""
    digest, untold = hashlib.sha256(), []
    for place, leaf in jax.tree_util.tree_leaves_with_path(arguments):
        if plain_content(leaf) is not None:
            continue
        try:
            digest.update(content(leaf))
        except UntoldError as error:
            untold.append(f"{jax.tree_util.keystr(place[1:])} ({error})")
    return Objects(digest.hexdigest(), tuple(untold))
