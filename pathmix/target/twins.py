"""Twins: paths that are the same problem.

A sum of two kernels in either order, a coefficient under another name: where canonical graphs and all their
numbers agree, one fit serves, and draws carry the names of the path that they are drawn for.
"""

import hashlib
from collections.abc import Hashable
from dataclasses import replace

import jax
import numpy as np

from pathmix.target.boxes import Box
from pathmix.target.target import Target


def problem(target: Target) -> Hashable:
    """Equal for targets that are the same problem."""
    digest = hashlib.blake2b(digest_size=16)
    for leaf in jax.tree.leaves(_numbers(target)):
        digest.update(np.ascontiguousarray(leaf).tobytes())
    return target.structure, digest.digest()


def as_twin(target: Target, of: Target) -> Target:
    """A target that takes the vectors of its twin."""
    return replace(target, arguments=target.arguments._replace(map=of.arguments.map))


def _numbers(target: Target) -> object:
    """All that a target computes with; how a half-line is scaled belongs to the vector."""
    arguments = target.arguments
    known = [replace(k, scale=np.zeros(0)) if isinstance(k, Box) else k for k in arguments.map.known]
    return arguments.density, arguments.minibatch, arguments.conditions, known, arguments.map.supports
