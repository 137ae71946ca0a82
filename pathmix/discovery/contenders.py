"""Contenders: paths on their way from discovery to the posterior."""

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from pathmix.discovery.base import (
    Discovered,
    Discovery,
    Expedition,
    OpenDiscovery,
    Rating,
    refuse_impossible,
)
from pathmix.program.path import Path
from pathmix.program.program import Program
from pathmix.program.seeds import Seed
from pathmix.program.slp import Flaw, StraightLineProgram
from pathmix.program.values import SiteRows
from pathmix.target.labels import Label, named, unique
from pathmix.target.target import Target


class PathWork(Protocol):
    """What a method does on one path."""

    failure: Exception | None  # what ended it


Work = TypeVar("Work", bound=PathWork)
# With the number of paths before.
Begin = Callable[[StraightLineProgram, SiteRows, int], tuple[Target, Work]]


@dataclass(eq=False)
class Contender(Generic[Work]):
    """A path: what discovery knows of it, and what a method makes of it.

    Paths that are the same problem share the work.
    """

    target: Target
    work: Work
    draws: SiteRows  # prior draws inside the region
    followers: int = 0  # the first so many draws took the path by themselves
    prior_mass: float = math.nan
    text: str = ""  # what it is called, of which there may be several
    label: str = ""

    @property
    def slp(self) -> StraightLineProgram:
        return self.target.slp

    @property
    def failure(self) -> Exception | None:
        return self.work.failure

    @property
    def flaw(self) -> Flaw | None:
        return self.target.flaw


Rate = Callable[[Sequence[Contender[Work]]], Rating]


class Exploration(Generic[Work]):
    """The paths that a discovery finds. Work on one begins as soon as it is announced.

    A discovery that can be led is told what its paths are worth, if `rate` can tell.
    """

    def __init__(
        self,
        discovery: Discovery,
        program: Program,
        seed: Seed,
        begin: Begin[Work],
        rate: Rate[Work] | None = None,
        label: Label | None = None,
    ) -> None:
        self._begin, self._label = begin, label
        self._announced: dict[Path, Contender[Work]] = {}
        self._expedition: Expedition | None = None
        if not isinstance(discovery, OpenDiscovery):
            self._take(discovery.discover(program, seed, self._announce))
            return
        expedition = self._expedition = discovery.begin(program, seed, self._announce)
        rated = 0
        while rate is not None and expedition.goes_on:
            rated = len(self._announced)
            if not expedition.further(rate(self._listed(expedition.snapshot()))):
                break
        if rate is not None and 0 < rated < len(self._announced):  # the last ones
            rate(self._listed(expedition.snapshot()))
        self._take(expedition.result())

    def again(self, rating: Rating) -> None:
        """Look for more, if the discovery can."""
        if self._expedition is not None:
            self._expedition.again(rating)
            self._take(self._expedition.snapshot())

    def _take(self, found: Discovered) -> None:
        """What was found so far, and its paths in the order of finding."""
        self.found, self.contenders = found, self._listed(found)

    def _announce(self, slp: StraightLineProgram, draws: SiteRows) -> Hashable:
        contender = Contender(*self._begin(slp, draws, len(self._announced)), draws)
        contender.text = named(slp, contender.target.region, self._label)
        self._announced[slp.path] = contender
        return contender.target.structure

    def _listed(self, found: Discovered) -> list[Contender[Work]]:
        refuse_impossible([path.slp for path in found.paths])
        contenders = []
        for path in found.paths:
            if path.slp.path not in self._announced:
                self._announce(path.slp, path.draws)
            contender = self._announced[path.slp.path]
            contender.draws, contender.followers = path.draws, path.followers
            contender.prior_mass = path.prior_mass
            contenders.append(contender)
        texts = unique([contender.text for contender in contenders])
        for contender, text in zip(contenders, texts, strict=True):
            contender.label = text
        return contenders
