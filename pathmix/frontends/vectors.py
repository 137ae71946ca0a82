"""A decision on a value of many elements: Python can take one only."""

from collections.abc import Sequence

from pathmix.errors import VectorDecisionError
from pathmix.program.source import caller


def vector_decision(what: str, shape: Sequence[int], plates: Sequence[str], loop: str) -> VectorDecisionError:
    """For Python's asking what only a value with one element has: a truth value, an int, ..."""
    inside = "".join(f", inside the plate {name!r}" for name in plates)
    return VectorDecisionError(
        f"{caller()}: only a value with one element has {what}, and this one is a vector of shape "
        f"{tuple(shape)}{inside}. To decide for each element, choose with `where`, or draw the elements one "
        f"by one in {loop}; to decide for all of them at once, use any(), all() or a sum."
    )
