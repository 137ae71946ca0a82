"""Small probabilistic programs as data: what is generated, written for both libraries, and simulated.

Statements that open a block (a branch, a round of a loop) bind one variable to what the block gives, so every
variable is there wherever it may be used.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Number:
    value: float


@dataclass(frozen=True)
class Variable:
    """A scalar; or a vector, where a vector may stand."""

    name: str


@dataclass(frozen=True)
class Element:
    vector: str
    index: int | Variable  # a discrete site that no loop and no plate draws


@dataclass(frozen=True)
class Total:
    """The sum of a vector's elements."""

    vector: str


@dataclass(frozen=True)
class Binary:
    operator: Literal["+", "*"]
    left: Expression
    right: Expression


@dataclass(frozen=True)
class Apply:
    function: Literal["tanh", "sigmoid", "exp", "abs"]
    argument: Expression  # of a variable: PyTorch's functions take no plain numbers


Expression = Number | Variable | Element | Total | Binary | Apply


@dataclass(frozen=True)
class Truth:
    """`if k:`"""

    variable: str


@dataclass(frozen=True)
class Compare:
    left: Expression
    operator: Literal["<", "<=", ">", ">=", "=="]
    right: float


@dataclass(frozen=True)
class Joined:
    """`and` and `or` look at one value after the other; `&` and `|` make one of two."""

    operator: Literal["and", "or", "&", "|"]
    left: Compare
    right: Compare


Condition = Truth | Compare | Joined


@dataclass(frozen=True)
class Count:
    """A discrete site and one: `int(k) + 1`, or `k + 1` as it stands."""

    variable: str
    converted: bool = True


@dataclass(frozen=True)
class Distribution:
    """A family under the name that both libraries have for it; numbers in a tuple are a vector."""

    family: str
    parameters: tuple[Expression | tuple[float, ...], ...]


@dataclass(frozen=True)
class Let:
    name: str
    value: Expression


@dataclass(frozen=True)
class Sample:
    name: str
    distribution: Distribution
    plate: int | Count | None = None


@dataclass(frozen=True)
class Observe:
    name: str
    distribution: Distribution
    data: float | tuple[float, ...]  # several ones are in a plate


@dataclass(frozen=True)
class Deterministic:
    name: str
    value: Expression


@dataclass(frozen=True)
class Block:
    statements: tuple[Statement, ...]
    result: Expression


@dataclass(frozen=True)
class If:
    target: str
    condition: Condition
    then: Block
    otherwise: Block


@dataclass(frozen=True)
class For:
    """Adds up what each round gives."""

    target: str
    count: Count
    body: Block


@dataclass(frozen=True)
class While:
    """Adds up what each round gives, while the sum is below a limit, for a few rounds at most."""

    target: str
    limit: float
    most: int
    body: Block


Statement = Let | Sample | Observe | Deterministic | If | For | While


@dataclass(frozen=True)
class Program:
    statements: tuple[Statement, ...]


INDICES = "ij"  # of loops, from the outermost


def plate_name(site: str) -> str:
    return f"{site}_plate"
