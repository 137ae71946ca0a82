"""The program along one path: its sites, and its density as one traced graph."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np

from pathmix.program.graph import Graph
from pathmix.program.outline import Outline, SiteOutline
from pathmix.program.parameters import Parameter
from pathmix.program.path import Path
from pathmix.program.source import Source


@dataclass(frozen=True, eq=False)
class BijectionTemplate:
    """The bijection from R^n onto a site's support, which may depend on the values of earlier sites.

    `leaves` are the parameters of the bijection: an array where it is known, an output of the
    graph where it depends on other sites.
    """

    treedef: Any
    leaves: tuple[np.ndarray | int, ...]

    @property
    def slots(self) -> tuple[int, ...]:
        """The outputs of the graph that the bijection needs."""
        return tuple(leaf for leaf in self.leaves if isinstance(leaf, int))


@dataclass(frozen=True, eq=False)
class Prior:
    """What each element of a site is drawn from, independently of the others: a distribution by its name.

    Its parameters are arrays where they are known, and outputs of the graph elsewhere.
    """

    family: str
    parameters: tuple[np.ndarray | int, ...]


@dataclass(frozen=True, eq=False)
class Site:
    """A latent site of a straight-line program."""

    name: str
    shape: tuple[int, ...]
    dtype: Any
    source: Source
    pinned: np.ndarray | None  # the value of a discrete site
    bijection: BijectionTemplate | None  # of a free site
    bounds: tuple[Any, Any] | None  # of the support, where it is a known interval for each element
    bounds_here: tuple[Any, Any] | None = None  # of a discrete support that other pinned sites decide
    prior: Prior | None = None  # of a free site
    never: frozenset[int] = frozenset()  # values that the probabilities of a discrete one exclude here
    is_summed: bool = False  # a discrete site that is summed out


@dataclass(frozen=True)
class Plate:
    """A plate that the program subsamples."""

    name: str
    size: int
    subsample_size: int


@dataclass(frozen=True)
class Flaw:
    """Why the data give a path no density, whatever its latent values."""

    kind: Literal["impossible", "zero", "NaN"]
    message: str


@dataclass(frozen=True)
class Facts:
    """What the run along a path showed beside its density."""

    is_conditioned: bool = False  # by observed sites or factors
    flaw: Flaw | None = None
    remarks: tuple[str, ...] = ()  # sentences for the user


class TermOutput(NamedTuple):
    """An output of the graph that has a term of the density, element by element."""

    name: str  # of the site
    slot: int
    is_prior: bool
    is_own: bool  # of a site that is summed out: its probabilities, which add up to one


@dataclass(frozen=True, eq=False)
class Summation:
    """How discrete sites that decide nothing were summed out of the density."""

    names: tuple[str, ...]
    joint: int  # the output that has the log-density of all sites, these among them
    before: Graph  # without any sum over them
    traced: Graph  # as the program has it
    plan: Any  # in which order what is summed, which is how they are drawn, too
    cut: tuple[str, ...]  # of them, those without an upper end, whose tail is left out


class Settled(NamedTuple):
    """What pinned sites alone settle."""

    decisions: tuple[bool, ...]  # whether they settle each
    log_probabilities: tuple[float | None, ...]  # of each drawn site, where they settle it


@dataclass(frozen=True, eq=False)
class StraightLineProgram:
    """The program along one path.

    `graph` takes the values of all latent sites in order and gives, in this order, the log-prior,
    the log-likelihood, one truth value per decision, one per observed site whose support depends on
    latent ones (whether it covers the data), the parameters of bijections that depend on other sites,
    the deterministic sites, the log-probability that each pinned site is drawn as it is, the masks
    of free sites, and the log-likelihood of each element of observed sites. `minibatch` is the same with
    the indices of each subsampled plate as further inputs; it exists only for programs that subsample.
    """

    path: Path
    recorded: Path  # the path as recorded; a front end may note decisions on data there too
    sources: tuple[Source, ...]
    sites: tuple[Site, ...]
    graph: Graph
    deterministics: tuple[tuple[str, int], ...]
    drawn: tuple[tuple[str, int], ...]  # pinned sites
    decided_after: tuple[int, ...]  # how many sites were drawn before each decision
    params: tuple[str, ...]
    observed: tuple[str, ...]
    facts: Facts
    masks: tuple[tuple[str, int], ...]  # free sites under a mask, and the output that has it
    pointwise: tuple[tuple[str, int], ...]  # observed sites, and the output that has their elements
    indicators: tuple[str, ...]  # observed sites with a condition on their support
    plates: tuple[Plate, ...]
    minibatch: Graph | None
    looked_at: frozenset[str] = frozenset()  # pinned sites that decide something which no condition shows
    settled: Settled | None = None  # where the run that found the path tells; the graph says it too
    fingerprint: str = ""  # of the trace, where a front end takes one
    # Those that are learned: their values are the last arrays that the graphs captured.
    parameters: tuple[Parameter, ...] = ()
    terms: tuple[TermOutput, ...] = ()  # of the density, where some sites are to be summed out
    unsummed: tuple[tuple[str, str], ...] = ()  # sites that could not be, as far as it is known, and why
    summation: Summation | None = None  # where they were: log-prior and log-likelihood are those of the rest

    LOG_PRIOR = 0
    LOG_LIKELIHOOD = 1
    FIRST_CONDITION = 2

    @property
    def conditions(self) -> range:
        """The outputs that must hold on the path: decisions first, then supports of observed sites."""
        count = len(self.path.decisions) + len(self.indicators)
        return range(self.FIRST_CONDITION, self.FIRST_CONDITION + count)

    @property
    def free(self) -> tuple[Site, ...]:
        """The latent sites that are neither pinned nor summed out, in order."""
        return tuple(site for site in self.sites if site.pinned is None and not site.is_summed)

    @property
    def known(self) -> list[np.ndarray | None]:
        """For each site, a value where it has one, or where the density does not depend on it."""
        return [np.zeros(site.shape, site.dtype) if site.is_summed else site.pinned for site in self.sites]

    @cached_property
    def outline(self) -> Outline:
        """Its names."""
        return Outline(
            recorded=self.recorded,
            sites=tuple(SiteOutline(s.name, s.shape, np.dtype(s.dtype).name) for s in self.sites),
            observed=self.observed,
            deterministics=tuple(name for name, _ in self.deterministics),
        )
