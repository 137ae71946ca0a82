"""What a front end offers: everything after it is the same for every probabilistic language."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from pathmix.execution import Execution
from pathmix.frontends.failures import OnFailure
from pathmix.frontends.wishes import Wishes
from pathmix.path import Path
from pathmix.seeds import Seed
from pathmix.slp import StraightLineProgram

if TYPE_CHECKING:
    from pathmix.posterior import Posterior
    from pathmix.program import Program

Have = Callable[[Path], int]


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
    ) -> Iterator[Execution]:
        """The path of every wanted run of a batch, one execution for each different path.

        `have` says how many draws of a path there are already; without it, no more than the runs
        themselves are wanted. `on_failure` is told of runs that the program ends with an error; without it,
        the error is raised.
        """
        ...

    def replay(self, program: "Program", execution: Execution) -> StraightLineProgram:
        """The straight-line program of a recorded path."""
        ...

    def as_guide(self, posterior: "Posterior") -> Callable[..., None]:
        """A posterior as a guide of this language."""
        ...
