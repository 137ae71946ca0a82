"""Replays that repeat: a program traced twice along one path must give the same density.

Random numbers from elsewhere (Python, NumPy), clocks and state kept between calls would be frozen into the
density. Every place in the program where it can go another way is tried once: paths that take no new turn
at any place run no new code.
"""

import re
from dataclasses import replace
from typing import Any

import numpy as np

from pathmix.doors.jax import Jaxpr, Literal, literal
from pathmix.errors import HiddenRandomnessError
from pathmix.program.batch_run import BatchRun
from pathmix.program.graph import Graph
from pathmix.program.program import Program
from pathmix.program.slp import StraightLineProgram

_ADDRESS = re.compile(r"0x[0-9a-f]+")


class Replays:
    """Replays paths of a program, twice where they take a turn that no path before took."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._turns: set[Any] = set()

    def replay(self, batch_run: BatchRun) -> StraightLineProgram:
        frontend, program = self.program.frontend, self.program
        slp = frontend.replay(program, batch_run)
        turns = {(source, d.value) for source, d in zip(slp.sources, slp.path.decisions, strict=True)}
        turns |= {(site.source, None) for site in slp.sites}
        if self._turns and turns <= self._turns:
            return slp
        self._turns |= turns
        if not _same(slp.graph, frontend.replay(program, replace(batch_run, trace=None)).graph):
            raise HiddenRandomnessError(
                f"its density{_at_end(slp)} has other numbers in it the second time, at the same values"
            )
        return slp


def _same(first: Graph, second: Graph) -> bool:
    return (
        len(first.consts) == len(second.consts)
        and all(map(_equal, first.consts, second.consts))
        and (_alike(first.jaxpr, second.jaxpr) or _text(first) == _text(second))
    )


def _alike(first: Jaxpr, second: Jaxpr) -> bool:
    """Whether two jaxprs are the same at first sight: functions inside may be, and be other objects."""
    if len(first.invars) != len(second.invars) or len(first.eqns) != len(second.eqns):
        return False
    names: dict[Any, Any] = dict(zip(first.invars, second.invars, strict=True))

    def match(a: Any, b: Any) -> bool:
        if isinstance(a, Literal):
            return isinstance(b, Literal) and a.aval == b.aval and _equal(literal(a), literal(b))
        return names.get(a) is b

    for one, other in zip(first.eqns, second.eqns, strict=True):
        if (
            one.primitive is not other.primitive
            or len(one.invars) != len(other.invars)
            or not all(map(match, one.invars, other.invars))
            or one.params != other.params
        ):
            return False
        names.update(zip(one.outvars, other.outvars, strict=True))
    return len(first.outvars) == len(second.outvars) and all(map(match, first.outvars, second.outvars))


def _text(graph: Graph) -> str:
    return _ADDRESS.sub("", str(graph.jaxpr))


def _equal(a: Any, b: Any) -> bool:
    a, b = np.asarray(a), np.asarray(b)
    return np.array_equal(a, b, equal_nan=np.issubdtype(a.dtype, np.inexact))


def _at_end(slp: StraightLineProgram) -> str:
    if not slp.sites:
        return ""
    return f" on the path that ends with the site {slp.sites[-1].name!r} at {slp.sites[-1].source}"
