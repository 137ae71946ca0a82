"""Where training starts: one guide matched to the prior, or several that compete."""

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from pathmix.checks import check_positive_int, check_positive_number
from pathmix.errors import OptionError

_MIN_CANDIDATES, _MOST_CANDIDATES = 256, 16_384
_FEWEST_FOR_AUTO = 280  # iterations: twenty for each of seven starts, in half of them
_LAST_RATE = 0.1  # of the learning rate, at the end of a stretch of training
_FIRST_POWER = 1e-3  # of the likelihood, while annealing


@dataclass(frozen=True)
class Starts:
    """How many starts a path gets, and how they compete.

    Each phase of training has two rounds. In a round, `count` new starts race with the best one so far:
    all get the same number of steps, and the one with the highest ELBO wins. `share` of the iterations
    go to the race, the rest to the winner.

    New starts are narrow guides at the best of many candidates, by density. Candidates lie around the
    prior: from its mean to twice as far out as a draw. From the second round on, a third of the starts
    are the best guide so far with one site changed, and a third take over what other paths found for
    sites of the same name (unless `borrow` is false). `screening` is the number of candidates of each
    kind per iteration; there are never fewer than 256, nor more than 16,384. With `until_agreed`, a path
    whose starts all ended at the same place gets no more of them.

    Examples:
        >>> Starts(6).candidates(iterations=2_000)
        500
    """

    count: int
    share: float = 0.5
    screening: float = 0.25
    borrow: bool = True
    until_agreed: bool = False

    def __post_init__(self) -> None:
        check_positive_int("Starts(count=...)", self.count)
        check_positive_number("Starts(screening=...)", self.screening)
        check_positive_number("Starts(share=...)", self.share)
        if not self.share < 1:
            raise OptionError(f"Starts(share=...) must be between 0 and 1, not {self.share!r}.")
        for name, value in (("borrow", self.borrow), ("until_agreed", self.until_agreed)):
            if not isinstance(value, bool):
                raise OptionError(f"Starts({name}=...) must be True or False, not {value!r}.")

    @property
    def third(self) -> int:
        """How many starts of each informed kind there are at most; none with fewer than three in all."""
        return self.count // 3

    def wanted(self, iterations: int, *, agreed: bool) -> bool:
        """Whether a path has a race in a round of so many iterations."""
        return not self.until_agreed or (not agreed and iterations >= _FEWEST_FOR_AUTO)

    def candidates(self, iterations: int) -> int:
        """How many points of each kind are tried as starts, in a phase of so many iterations."""
        return max(_MIN_CANDIDATES, self.count, min(int(self.screening * iterations), _MOST_CANDIDATES))


_AUTO = Starts(6, until_agreed=True)


def as_starts(starts: int | Starts | Literal["auto"]) -> Starts | None:
    """What the option means; None is a single start."""
    if isinstance(starts, Starts):
        return starts
    if starts == "auto":
        return _AUTO
    return Starts(starts) if starts > 1 else None


@dataclass(eq=False)
class Start:
    """A guide on its way from one starting point."""

    state: Any  # TrainingState
    steps: int = 0
    annealed: int = 0  # steps with a tempered likelihood
    history: list[np.ndarray] = field(default_factory=list)  # ELBO of each step
    phases: list[int] = field(default_factory=list)  # steps after which phases ended
    earlier: Any = None  # parameters before the last quarter of the latest stretch

    def level(self, steps: int) -> float:
        """The mean ELBO over the last steps; those with a tempered likelihood do not count."""
        newest = np.concatenate([np.zeros(0), *self.history])[self.annealed :][-steps:]
        usable = newest[np.isfinite(newest)]
        return float(usable.mean()) if len(usable) else -np.inf


def likelihood_powers(start: Start, steps: int) -> np.ndarray:
    """The power of the likelihood at each of the next steps: rises geometrically to 1 while annealing."""
    if start.annealed == 0:
        return np.ones(steps)
    age = start.steps + np.arange(steps)
    return _FIRST_POWER ** np.maximum(1 - age / start.annealed, 0.0)


def falling_rates(left: int, iterations: int, steps: int) -> np.ndarray:
    """What the next updates are multiplied by, with so many iterations left: it falls over the last eighth.

    A guide that has arrived fluctuates with the learning rate, by several nats in some programs; one that has
    not should not be slowed down for long.
    """
    ahead = left - np.arange(steps)
    return np.clip(8 * ahead / max(iterations, 1), _LAST_RATE, 1.0)
