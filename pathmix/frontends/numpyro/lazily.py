"""Values of a program under tracing, for all runs of a batch: only what is asked for is computed."""

from collections.abc import Callable
from typing import Any

import numpy as np

from pathmix.doors.jax import Tracer, atom_of, captured, computed_by, operands
from pathmix.frontends.numpyro.inputs import Name, input_name, inputs_behind, sources
from pathmix.frontends.numpyro.operations import Rows, compute, is_simple, on_host

_MOST_BYTES = 2**27  # of one array
_KEPT_BYTES = 2**22  # of one array that more than one question may need


class TooManyRows(BaseException):
    """The batch does not fit into memory; so many rows would. No program may catch it."""

    def __init__(self, fitting: int) -> None:
        super().__init__(fitting)
        self.fitting = fitting


class Lazily:
    """What tracers of one trace stand for in each run."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._source: Callable[[Name], Any] = _unknown
        self._known: dict[Any, Rows] = {}  # by variable
        self._settled: set[Any] = set()  # variables

    def begin(self, source: Callable[[Name], Any]) -> None:
        """With the values of inputs: `Rows`, an array with runs along the first axis, or a tracer of it."""
        self._source = source

    def end(self) -> None:
        """Let go of all values: they are large, and whoever gives them knows who takes them."""
        self._source = _unknown
        self._known.clear()

    def of(self, value: Any) -> np.ndarray:
        """The values in all runs, along the first axis."""
        if not isinstance(value, Tracer):
            value = np.asarray(value)
            return np.broadcast_to(value, (self.size, *value.shape))
        rows = self._computed(value)
        found = np.asarray(rows.value)
        return found if rows.differs else np.broadcast_to(found, (self.size, *found.shape))

    def is_at_hand(self, value: Any, most_elements: int) -> bool:
        """Whether it takes next to nothing to compute a value from those of inputs."""
        asked = [value]
        while asked:
            tracer = asked.pop()
            equation = computed_by(tracer)
            if equation is None or atom_of(tracer) in self._known or input_name(tracer):
                continue
            if tracer.size > most_elements or not is_simple(equation):
                return False
            asked += operands(equation)
        return True

    def sites_behind(self, value: Any) -> set[str]:
        """The sites that a value depends on."""
        return {str(name.name) for name in inputs_behind(value) if name.kind == "site"}

    def forget(self) -> None:
        """What was computed: an input has other values from now on."""
        self._known.clear()

    def is_open(self, value: Any) -> bool:
        """Whether a value depends on inputs that differ from run to run."""
        asked, seen = [value], set[Any]()
        while asked:
            tracer = asked.pop()
            atom, equation = atom_of(tracer), computed_by(tracer)
            if equation is None or atom in seen or atom in self._settled:
                continue
            seen.add(atom)
            if (name := input_name(tracer)) is None:
                asked += sources(tracer)
            elif not isinstance(self._source(name), Rows):
                return True
        self._settled |= seen
        return False

    def _computed(self, tracer: Any) -> Rows:
        large: list[Any] = []
        asked = [tracer]
        while asked:
            last = asked[-1]
            if self._lookup(last) is not None:
                asked.pop()
                continue
            name, equation = input_name(last), computed_by(last)
            if name is not None:
                found = self._source(name)
                if not isinstance(found, Tracer):
                    rows = found if isinstance(found, Rows) else Rows(found, differs=True)
                    self._known[atom_of(last)] = rows
                elif (rows := self._lookup(found)) is not None:
                    self._known[atom_of(last)] = rows
                else:
                    asked.append(found)
            elif missing := [operand for operand in operands(equation) if self._lookup(operand) is None]:
                asked += missing
            else:
                self._check_memory(equation)
                results = compute(equation, [self._given(operand) for operand in operands(equation)])
                for variable, rows in zip(equation.outvars, results, strict=True):
                    self._known[variable] = rows
                    if getattr(rows.value, "nbytes", 0) > _KEPT_BYTES:
                        large.append(variable)
        rows = self._given(tracer)
        for variable in large:
            del self._known[variable]
        return rows

    def _lookup(self, tracer: Any) -> Rows | None:
        if computed_by(tracer) is None:
            return Rows(on_host(captured(tracer)), differs=False)
        return self._known.get(atom_of(tracer))

    def _given(self, tracer: Any) -> Rows:
        found = self._lookup(tracer)
        assert found is not None
        return found

    def _check_memory(self, equation: Any) -> None:
        for variable in equation.outvars:
            each = int(np.prod(variable.aval.shape, dtype=np.int64)) * 8
            if each * self.size > _MOST_BYTES and self.size > 1:
                raise TooManyRows(max(1, _MOST_BYTES // each))


def _unknown(name: Name) -> Any:
    raise KeyError(name)
