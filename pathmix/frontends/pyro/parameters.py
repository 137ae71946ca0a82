"""The parameters of a Pyro program: kept from run to run, and inputs of its graph where they are learned."""

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import pyro
import torch
from numpyro.distributions import biject_to
from torch.overrides import TorchFunctionMode

from pathmix.errors import HiddenRandomnessError, ParameterError
from pathmix.frontends.pyro.lowering.dtypes import as_numpy
from pathmix.frontends.pyro.starts import check_start
from pathmix.frontends.pyro.supports import read_support
from pathmix.frontends.pyro.tape import replaced
from pathmix.program.parameters import Parameter, Part
from pathmix.program.program import Program
from pathmix.program.source import caller


class Parameters(TorchFunctionMode):
    """Gives `param` statements the values of the first run: initial values may be random. Or given ones.

    Modules register their tensors and go on to compute with them, so while this mode is active, a tensor that
    was registered is replaced wherever it is used. With initial values there is nothing to replace.
    """

    def __init__(self, program: Program) -> None:
        super().__init__()
        self.program = program
        # Those that are inputs of a graph: runs before have shown them.
        self.open = {
            name: value
            for name, value in program.params.items()
            if program.parameter_use == "inputs" and value.is_floating_point()
        }
        self.names: list[str] = []
        self.learned: dict[str, Parameter] = {}
        self.inputs: Mapping[str, torch.Tensor] = {}  # in the place of values
        self._stored = frozenset(pyro.get_param_store().keys())  # by the user
        self._registered: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}  # by id, kept alive

    def give(self, msg: Any) -> None:
        """The value of a statement, if there is one already."""
        name, known = msg["name"], self.program.params
        if name not in self.names:
            self.names.append(name)
        if name in self.inputs:
            msg["value"] = self.inputs[name]
            if name not in self.learned:
                self.learned[name] = _parameter(msg, tuple(known[name].shape))
        elif name in known:
            msg["value"] = known[name]
        elif self.inputs:
            raise HiddenRandomnessError(f"this time it came to the parameter {name!r} at {caller()}")
        if msg["value"] is not None:
            tensor = msg["args"][1] if len(msg["args"]) > 1 else None
            if isinstance(tensor, torch.nn.Parameter):
                self._registered[id(tensor)] = tensor, msg["value"]

    def check(self, msg: Any) -> None:
        """What a statement would start from, on a path that is replayed."""
        if len(msg["args"]) > 1:
            self.check_start(msg["name"], msg["args"][1], self.program.params.get(msg["name"]))

    def check_start(self, name: str, start: Any, value: Any) -> None:
        matters = self.program.parameter_use == "initial" and name not in self._stored
        check_start(name, start, value if matters else None)

    def in_place(self) -> AbstractContextManager[Any]:
        """This mode, where it is needed."""
        return nullcontext() if self.program.parameter_use == "initial" else self

    def keep(self, msg: Any) -> None:
        """The value of a first statement."""
        self.program.params.setdefault(msg["name"], msg["value"].detach())

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        positional, named = replaced((args, kwargs or {}), torch.Tensor, self._present)
        return func(*positional, **named)

    def _present(self, tensor: torch.Tensor) -> torch.Tensor:
        found = self._registered.get(id(tensor))
        return tensor if found is None else found[1]


def _parameter(msg: Any, shape: tuple[int, ...]) -> Parameter:
    # A statement tells its constraint the first time only; then the store has it.
    known = pyro.get_param_store().get_state()["constraints"]
    constraint = known.get(msg["name"], msg["kwargs"].get("constraint"))
    support = read_support(constraint)
    try:
        build, bounds = support or (None, ())
        numbers = [as_numpy(b) if isinstance(b, torch.Tensor) else b for b in bounds]
        bijection = biject_to(build(numbers)) if build is not None else None
    except NotImplementedError:
        bijection = None
    if bijection is None:
        raise ParameterError(
            f"The parameter {msg['name']!r} at {caller()} has the constraint {constraint!r}, onto which no "
            'smooth map from R^n is known. Give it another one, or keep it fixed (parameters="fixed").'
        )
    return Parameter(Part(msg["name"], 0), shape, caller(), bijection)
