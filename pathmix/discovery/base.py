"""What discovery hands over."""

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple, Protocol, runtime_checkable

from pathmix.discovery.forks import DecisionTree
from pathmix.errors import ImpossibleObservationError
from pathmix.program.path import Path
from pathmix.program.program import Limits, Program
from pathmix.program.seeds import Seed
from pathmix.program.slp import StraightLineProgram
from pathmix.program.values import SiteRows

# Told of every new path at once, so that work on it can begin while discovery goes on. Says what has to be
# compiled for it: paths that have it in common are cheap.
OnPath = Callable[[StraightLineProgram, SiteRows], Hashable]


@dataclass(frozen=True, eq=False)
class DiscoveredPath:
    """A path, its straight-line program, and prior draws inside its region."""

    slp: StraightLineProgram
    draws: SiteRows
    followers: int  # the first so many draws took the path by themselves
    prior_mass: float  # the probability of the path where that is known, else its share of the runs
    mass_is_exact: bool = False


@dataclass(frozen=True, eq=False)
class Discovered:
    """Everything that discovery found, in the order of finding."""

    paths: tuple[DiscoveredPath, ...]
    samples: int  # prior runs
    runs: int  # slow Python runs of the program
    dropped_mass: float  # prior mass of runs whose path was cut off by a cap
    unseen_mass: float = math.nan  # prior mass of the paths that no run took: an estimate of it
    unseen_bound: float = 1.0  # and what it is at most, with a confidence of 95%
    unseen_is_exact: bool = False
    failed_runs: int = 0  # prior runs that the program ended with an error
    endless_runs: int = 0  # prior runs that were given up
    invalid_runs: tuple[tuple[str, int], ...] = ()  # with parameters that cannot be: what to say, in how many
    round_shares: tuple[float, ...] = ()  # of the weight, that the new paths of each guided round had
    tree: DecisionTree | None = None  # where paths part; None where nobody kept it


def refuse_impossible(slps: Sequence[StraightLineProgram]) -> None:
    """An error where the data have no density on any path."""
    flaws = [slp.facts.flaw for slp in slps]
    if flaws and flaws[0] is not None and all(flaws):
        raise ImpossibleObservationError(f"No path can have produced the data. {flaws[0].message}")


class Discovery(Protocol):
    """A way to find the paths of a program."""

    @property
    def limits(self) -> Limits:
        """What a single run of the program may do."""
        ...

    def discover(self, program: Program, seed: Seed, on_path: OnPath) -> Discovered:
        """Find paths, and tell `on_path` of each new one at once; they may be returned in any order."""
        ...


class Rating(NamedTuple):
    """What is known of paths after some work on them."""

    worth: Mapping[Path, float]  # log-evidences
    strays: Mapping[Path, SiteRows] = MappingProxyType({})  # draws of guides outside of their paths' regions


class Expedition(Protocol):
    """A discovery that can go on."""

    def snapshot(self) -> Discovered:
        """All paths so far."""
        ...

    @property
    def goes_on(self) -> bool:
        """Whether it wants to be led, and there is anything left to look for."""
        ...

    def further(self, rating: Rating) -> bool:
        """Look for more, given what is known of paths; whether there are new ones."""
        ...

    def again(self, rating: Rating) -> None:
        """Look for more after paths were trained, for as long as before."""
        ...

    def result(self) -> Discovered:
        """All paths, with warnings and errors where something went wrong."""
        ...


@runtime_checkable
class OpenDiscovery(Discovery, Protocol):
    """A way to find paths that need not end."""

    def begin(self, program: Program, seed: Seed, on_path: OnPath) -> Expedition:
        """The part of the way that needs no guidance."""
        ...


@runtime_checkable
class GuidedDiscovery(OpenDiscovery, Protocol):
    """A way to find paths that can be led."""

    @property
    def iterations(self) -> int:
        """For each new path, before the next round."""
        ...
