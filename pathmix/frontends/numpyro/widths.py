"""Numbers of 64 bits beside narrower ones, where JAX wants the same type of both.

A program that names a type of 32 bits (`jnp.int32`) runs in NumPyro, where all numbers have as many; here the
values of its sites have 64. NumPyro's `scan` and `cond` are given one width, as they have it there.
"""

import re
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from pathmix.doors.numpyro import is_scan
from pathmix.program.source import raised_at

_NARROW = {"int64": "int32", "uint64": "uint32", "float64": "float32", "complex128": "complex64"}
_MIXED = [re.compile(rf"(?s)(?=.*\b{narrow}\b).*\b{wide}\b") for wide, narrow in _NARROW.items()]


def in_one_width(msg: Any) -> None:
    """Give what `scan` hands on the types of what it was given, and branches of `cond` those of the first."""
    if is_scan(msg):
        step, first, *rest = msg["args"]

        def turn(carry: Any, row: Any) -> Any:
            after, result = step(carry, row)
            return _like(carry, after), result

        msg["args"] = (turn, first, *rest)
    else:
        decision, *branches, operand = msg["args"]
        given: list[Any] = []
        msg["args"] = (decision, *(_as_first(branch, given) for branch in branches), operand)


def _as_first(branch: Callable[[Any], Any], given: list[Any]) -> Callable[[Any], Any]:
    def cast(operand: Any) -> Any:
        result = branch(operand)
        if not given:
            given.append(jax.tree.map(jnp.result_type, result))
        return _like(given[0], result)

    return cast


def _like(wanted: Any, result: Any) -> Any:
    """With the types of the wanted tree, where they differ in width alone; JAX tells of the rest."""
    if jax.tree.structure(wanted) != jax.tree.structure(result):
        return result
    return jax.tree.map(_leaf_like, wanted, result)


def _leaf_like(wanted: Any, leaf: Any) -> Any:
    to, own = jnp.result_type(wanted), jnp.result_type(leaf)
    alike = len({_NARROW.get(dtype.name, dtype.name) for dtype in (to, own)}) == 1
    return jnp.asarray(leaf, to) if alike and own != to else leaf


def note_widths(error: Exception) -> None:
    """Say what to do where JAX complains of two widths elsewhere."""
    if isinstance(error, TypeError) and any(mixed.search(str(error)) for mixed in _MIXED):
        error.add_note(
            f"pathmix: at {raised_at(error)} numbers of 32 bits meet some of 64, which sites have here. Name "
            'no type of 32 bits in the program, or run it with SDVI(..., precision="float32").'
        )
