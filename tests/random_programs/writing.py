"""Programs as a NumPyro and as a Pyro user would write them."""

import itertools
import linecache
from dataclasses import dataclass
from textwrap import indent

from tests.random_programs import grammar as g

_files = itertools.count()


@dataclass(frozen=True)
class Library:
    """What differs between the two."""

    name: str
    array: str  # makes an array of numbers
    imports: str


NUMPYRO = Library(
    "numpyro",
    "jnp.array",
    "import jax.numpy as jnp\nimport numpyro\nimport numpyro.distributions as dist\n"
    "from jax.numpy import exp, tanh\nfrom jax.scipy.special import expit as sigmoid\n",
)
PYRO = Library(
    "pyro",
    "torch.tensor",
    "import pyro\nimport pyro.distributions as dist\nimport torch\nfrom torch import exp, sigmoid, tanh\n",
)


def source(program: g.Program, library: Library) -> str:
    body = "\n".join(_Writer(library).statement(statement, 0) for statement in program.statements)
    return f"{library.imports}\n\ndef model():\n{indent(body, '    ')}\n"


def both_sources(program: g.Program) -> str:
    return "\n\n".join(source(program, library) for library in (NUMPYRO, PYRO))


def model(program: g.Program, library: Library):
    """The program as a function, whose source tracebacks and `inspect` show."""
    text = source(program, library)
    filename = f"<{library.name} program {next(_files)}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    namespace = {"__name__": library.name + "_program"}
    exec(compile(text, filename, "exec"), namespace)
    return namespace["model"]


@dataclass(frozen=True)
class _Writer:
    library: Library

    def statement(self, statement: g.Statement, loops: int) -> str:
        match statement:
            case g.Let(name, value):
                return f"{name} = {self.start(value)}"
            case g.Deterministic(name, value):
                return f"{self.library.name}.deterministic({_site(name, loops)}, {expression(value)})"
            case g.Sample(name, distribution, None):
                return f"{name} = {self.sample(name, loops, distribution)}"
            case g.Sample(name, distribution, plate):
                drawn = f"{name} = {self.sample(name, loops, distribution)}"
                return self.plated(name, loops, plate, drawn)
            case g.Observe(name, distribution, data):
                observed = self.data(data)
                line = self.sample(name, loops, distribution, f", obs={observed}")
                return self.plated(name, loops, len(data), line) if isinstance(data, tuple) else line
            case g.If(target, tested, then, otherwise):
                lines = [f"if {condition(tested)}:", self.block(then, f"{target} = ", loops)]
                return "\n".join([*lines, "else:", self.block(otherwise, f"{target} = ", loops)])
            case g.For(target, count, body):
                head = f"for {g.INDICES[loops]} in range({_count(count)}):"
                rounds = self.block(body, f"{target} = {target} + ", loops + 1)
                return "\n".join([f"{target} = {self.start(g.Number(0.0))}", head, rounds])
            case g.While(target, limit, most, body):
                index = g.INDICES[loops]
                rounds = self.block(body, f"{target} = {target} + ", loops + 1)
                return "\n".join(
                    [
                        f"{target} = {self.start(g.Number(0.0))}",
                        f"{index} = 0",
                        f"while {index} < {most} and {target} < {limit}:",
                        rounds,
                        f"    {index} = {index} + 1",
                    ]
                )

    def block(self, block: g.Block, bind: str, loops: int) -> str:
        lines = [self.statement(statement, loops) for statement in block.statements]
        return indent("\n".join([*lines, f"{bind}{self.start(block.result)}"]), "    ")

    def start(self, value: g.Expression) -> str:
        """A variable that starts as a number is a tensor in Pyro: functions of PyTorch want one."""
        written = expression(value)
        is_number = isinstance(value, g.Number) and self.library is PYRO
        return f"{self.library.array}({written})" if is_number else written

    def sample(self, name: str, loops: int, distribution: g.Distribution, obs: str = "") -> str:
        return f"{self.library.name}.sample({_site(name, loops)}, {self.distribution(distribution)}{obs})"

    def plated(self, name: str, loops: int, plate: int | g.Count, inside: str) -> str:
        size = _count(plate) if isinstance(plate, g.Count) else plate
        return f"with {self.library.name}.plate({_site(g.plate_name(name), loops)}, {size}):\n    {inside}"

    def distribution(self, distribution: g.Distribution) -> str:
        written = [
            f"{self.library.array}({list(parameter)})"
            if isinstance(parameter, tuple)
            else expression(parameter)
            for parameter in distribution.parameters
        ]
        probs = "probs=" if distribution.family == "Categorical" else ""
        return f"dist.{distribution.family}({probs}{', '.join(written)})"

    def data(self, data: float | tuple[float, ...]) -> str:
        if isinstance(data, tuple):
            return f"{self.library.array}({list(data)})"
        return f"{self.library.array}({data})" if self.library is PYRO else str(data)


def _site(name: str, loops: int) -> str:
    rounds = "".join(f"_{{{index}}}" for index in g.INDICES[:loops])
    return f'f"{name}{rounds}"' if rounds else f'"{name}"'


def _count(count: g.Count) -> str:
    return f"int({count.variable}) + 1" if count.converted else f"{count.variable} + 1"


def condition(tested: g.Condition) -> str:
    match tested:
        case g.Truth(variable):
            return variable
        case g.Compare(left, operator, right):
            return f"{expression(left)} {operator} {right}"
        case g.Joined("and" | "or" as operator, left, right):
            return f"{condition(left)} {operator} {condition(right)}"
        case g.Joined(operator, left, right):
            return f"({condition(left)}) {operator} ({condition(right)})"


def expression(value: g.Expression) -> str:
    match value:
        case g.Number(number):
            return str(number)
        case g.Variable(name):
            return name
        case g.Element(vector, g.Variable(index)):
            return f"{vector}[{index}]"
        case g.Element(vector, index):
            return f"{vector}[{index}]"
        case g.Total(vector):
            return f"{vector}.sum()"
        case g.Binary("*", left, right):
            return f"{_factor(left)} * {_factor(right)}"
        case g.Binary(operator, left, right):
            return f"{expression(left)} {operator} {expression(right)}"
        case g.Apply(function, argument):
            return f"{function}({expression(argument)})"


def _factor(value: g.Expression) -> str:
    is_sum = isinstance(value, g.Binary) and value.operator == "+"
    return f"({expression(value)})" if is_sum else expression(value)
