"""A model bound to its arguments, and what the language it is written in offers."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol

import jax
import numpy as np

from pathmix.program.arguments import Frames, taken
from pathmix.program.batch_run import BatchRun
from pathmix.program.failures import OnFailure
from pathmix.program.parameters import ParameterUse, Values, plain
from pathmix.program.path import Path
from pathmix.program.seeds import Seed
from pathmix.program.slp import StraightLineProgram
from pathmix.program.source import Place
from pathmix.program.wishes import Wishes

Have = Callable[[Path], int]
# What a function of several items gives for each of many; None where it could not be had.
Helpers = Callable[[Callable[[list[Any]], list[Any]], list[Any]], list[Any]]


MOST_SITES = 10_000  # that a run may draw, if nobody says


@dataclass(frozen=True)
class Limits:
    """What one forward run may do before it counts as a runaway."""

    max_sites: int | None = None  # ten times as many as others on average, but not too few or too many
    max_seconds: float = 60.0  # of processor time, without compilation


class JointDraw(NamedTuple):
    """All latent values of one run, drawn together."""

    path: int  # its number
    values: dict[str, np.ndarray]
    log_density: float
    open_sites: frozenset[str]  # that predictions simulate


class Frontend(Protocol):
    """A probabilistic language: a module with these functions."""

    def adapt(self, arguments: Any) -> Any:
        """The user's arguments as a program of this language takes them."""
        ...

    def make_array(self, array: np.ndarray) -> Any:
        """An array of this language."""
        ...

    def explore(
        self,
        program: "Program",
        seed: Seed,
        wanted: np.ndarray,
        *,
        wishes: Wishes = Wishes(),
        have: Have | None = None,
        on_failure: OnFailure | None = None,
    ) -> Iterator[BatchRun]:
        """The path of every wanted run of a batch, one `BatchRun` for each different path.

        `have` says how many draws of a path there are already; without it, no more than the runs
        themselves are wanted. `on_failure` is told of runs that the program ends with an error; without it,
        the error is raised.
        """
        ...

    def replay(self, program: "Program", batch_run: BatchRun) -> StraightLineProgram:
        """The straight-line program of a recorded path."""
        ...

    def repeats(self, program: "Program", batch_run: BatchRun, slp: StraightLineProgram) -> bool:
        """Whether the program does the same along the path once more, on the same numbers."""
        ...

    def as_guide(
        self, model: Callable[..., Any], shapes: dict[str, tuple[int, ...]], draw: Callable[[int], JointDraw]
    ) -> Callable[..., None]:
        """A distribution over all latent sites as a guide for a model of this language.

        `shapes` are those of all sites that some draw has; `draw` takes a seed.
        """
        ...


@dataclass(frozen=True)
class Program:
    """The user's model, the arguments it is called with, and the language it is written in."""

    model: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    frontend: Frontend
    limits: Limits = Limits()
    # Values of parameters: those of the first run that had them, kept between runs, or given ones.
    params: dict[str, Any] = field(default_factory=dict, compare=False)
    parameter_use: ParameterUse = "initial"
    frames: Frames = "as given"  # what becomes of DataFrames among the arguments
    # Paths with discrete sites that decide nothing, and whether each value of these is a path all the same.
    split: dict[Path, bool] = field(default_factory=dict, compare=False)
    # Discrete sites that decide nothing and could not be summed out, and why.
    unsummed: dict[str, str] = field(default_factory=dict, compare=False)
    watched: set[str] = field(
        default_factory=set, compare=False
    )  # what runs must follow beyond what is asked
    # Courses of runs, and which of the discrete sites that nobody looked at have a say in them.
    deciding: dict[Path, frozenset[str]] = field(default_factory=dict, compare=False)
    # On how many courses those of a place in the program had a say, as long as all had.
    always_deciding: dict[Place, int] = field(default_factory=dict, compare=False)
    helpers: Helpers | None = field(default=None, compare=False)  # who can make runs, where they take long

    def __call__(self) -> Any:
        """Run the model once."""
        args, kwargs = self.frontend.adapt((self.args, self.kwargs))
        return self.model(*args, **kwargs)

    def with_arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> "Program":
        """The same model with other arguments."""
        args, kwargs = taken((args, kwargs), self.frontend.make_array, self.frames)
        return replace(self, args=args, kwargs=kwargs, split={}, unsummed={}, deciding={}, always_deciding={})

    def with_parameters(self, values: Values, use: ParameterUse = "given") -> "Program":
        """The same program with other values of its parameters, or initial ones where there is none."""
        params = jax.tree.map(lambda leaf: self.frontend.make_array(leaf.copy()), plain(values))
        return replace(
            self, params=params, parameter_use=use, split={}, unsummed={}, deciding={}, always_deciding={}
        )
