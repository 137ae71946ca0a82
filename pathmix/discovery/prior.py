"""Find paths by running the program forward (Sec. 4.3), a batch of seeds at a time."""

from collections import Counter
from dataclasses import dataclass

import numpy as np

from pathmix.checks import check_positive_int, check_positive_number
from pathmix.discovery.base import Discovered, DiscoveredPath, OnPath
from pathmix.discovery.cells import branches_of, cell_of
from pathmix.discovery.failures import Failures
from pathmix.discovery.repeatable import Replays
from pathmix.discovery.unseen import PriorMass, Sighting, prior_mass
from pathmix.errors import HiddenRandomnessError, NoLatentSiteError
from pathmix.program.batch_run import BatchRun
from pathmix.program.failures import FailedRun
from pathmix.program.path import Path
from pathmix.program.program import Limits, Program
from pathmix.program.seeds import Seed
from pathmix.program.slp import StraightLineProgram
from pathmix.program.values import SiteRows
from pathmix.warn import warn

# Prior runs of one batch. A front end divides batches that do not fit into memory.
_MAX_BATCH = 2**16
_KEPT_DRAWS = 1_024
_REPEATS = 3  # a hidden fair coin goes unnoticed once in sixteen times, replay included
_ENOUGH_DRAWS = 100  # as many as the paper takes to initialise a path


@dataclass(frozen=True)
class PriorDiscovery:
    """Follow `samples` runs from the prior and keep every path among them.

    A path is found by one slow Python run, which also tells which other seeds of its batch follow
    it. `max_paths` caps how many are kept; `max_sites` and `max_seconds` bound a single run. Of its time,
    only what the program itself computes in its own thread counts: neither waiting nor compiling does.

    >>> PriorDiscovery(2_000, max_paths=50).max_paths
    50
    """

    samples: int = 1_000
    max_paths: int = 1_000
    max_sites: int = 10_000
    max_seconds: float = 60.0

    def __post_init__(self) -> None:
        for name in ("samples", "max_paths", "max_sites"):
            check_positive_int(f"PriorDiscovery({name}=...)", getattr(self, name))
        check_positive_number("PriorDiscovery(max_seconds=...)", self.max_seconds)

    @property
    def limits(self) -> Limits:
        """What a single run of the program may do."""
        return Limits(self.max_sites, self.max_seconds)

    def discover(self, program: Program, seed: Seed, on_path: OnPath) -> Discovered:
        """Run the program forward and keep the paths that its runs take."""
        search = _Search(program, self.max_paths, on_path, seed)
        batch = min(self.samples, _MAX_BATCH)
        for done in range(0, self.samples, batch):
            # What the last batch has beyond the wanted number only fills it up.
            wanted = np.arange(batch) < self.samples - done
            search.explain(seed.child(done), wanted, done)
        return search.result(self.samples)


class _Search:
    """The paths found so far."""

    def __init__(self, program: Program, max_paths: int, on_path: OnPath, seed: Seed) -> None:
        self.program, self.max_paths, self.on_path = program, max_paths, on_path
        self.failures = Failures(seed)
        self.replays = Replays(program)
        self.invalid = Counter[str]()
        self.slps: dict[Path, StraightLineProgram] = {}
        self.counts: dict[Path, int] = {}  # of all paths that were seen, kept or not
        self.first: dict[Path, int] = {}  # the first run of each
        self.natural: dict[Path, _Rows] = {}  # draws of runs that took the path by themselves
        self.forced: dict[Path, _Rows] = {}  # draws of runs whose discrete sites were forced
        self.runs = 0

    def explain(self, seed: Seed, wanted: np.ndarray, done: int) -> None:
        """Find the path of every wanted run of a batch, which comes after so many others."""

        def failed(run: FailedRun) -> None:
            self.failures.add(run, done + np.flatnonzero(run.followed & wanted))

        explore = self.program.frontend.explore
        for batch_run in explore(self.program, seed, wanted, have=self._have, on_failure=failed):
            self.runs += batch_run.runs
            followers = batch_run.followed & wanted
            self.counts[batch_run.path] = self.counts.get(batch_run.path, 0) + int(followers.sum())
            self.first.setdefault(batch_run.path, done + int(np.argmax(followers)))
            for said, runs in batch_run.invalid.items():
                self.invalid[said] += int((runs & followers).sum())
            self._add(batch_run, seed, followers)

    def _have(self, path: Path) -> int:
        """Draws of a path so far."""
        return sum(rows[path].count for rows in (self.natural, self.forced) if path in rows)

    def _add(self, batch_run: BatchRun, seed: Seed, followers: np.ndarray) -> None:
        path = batch_run.path
        is_new = path not in self.slps
        if is_new and len(self.slps) == self.max_paths:
            return
        if is_new:
            self._check_repeatable(batch_run, seed, followers)
            self.slps[path] = self.replays.replay(batch_run)
            self.natural[path], self.forced[path] = _Rows(), _Rows()
        self.natural[path].add(batch_run.values, followers, _KEPT_DRAWS)
        self.forced[path].add(batch_run.values, batch_run.inside & ~batch_run.followed, _ENOUGH_DRAWS)
        if is_new:
            self.on_path(self.slps[path], self._draws(path))

    def _draws(self, path: Path) -> SiteRows:
        """Runs that took the path by themselves, filled up with forced ones where they are few."""
        natural, forced = self.natural[path], self.forced[path]
        kept = max(_ENOUGH_DRAWS, min(natural.count, _KEPT_DRAWS))
        parts = [*natural.parts, *forced.parts]
        return {name: np.concatenate([part[name] for part in parts])[:kept] for name in path.addresses}

    def _check_repeatable(self, batch_run: BatchRun, seed: Seed, followers: np.ndarray) -> None:
        """The first runs are repeated; later ones are compared with their replay."""
        only_leader = np.arange(len(followers)) == np.argmax(followers)
        for _ in range(_REPEATS if len(self.slps) < 2 else 0):
            again = next(iter(self.program.frontend.explore(self.program, seed, only_leader)))
            if again.path != batch_run.path:
                raise _changed(batch_run)

    def result(self, samples: int) -> Discovered:
        self.failures.tell(samples)
        if not any(path.addresses for path in self.slps):
            raise NoLatentSiteError(
                "The program draws no latent site in any run, so there is nothing to infer. "
                "Are all its sites observed?"
            )
        dropped = sum(count for path, count in self.counts.items() if path not in self.slps)
        if dropped:
            warn(
                f"{dropped / samples:.1%} of the prior runs follow paths beyond max_paths="
                f"{self.max_paths}; these paths were dropped and the posterior leaves them out. "
                "Raise max_paths in the discovery to keep them."
            )
        mass = self._mass(samples)
        paths = tuple(
            DiscoveredPath(
                slp=slp,
                draws=self._draws(path),
                followers=min(self.natural[path].count, _KEPT_DRAWS),
                prior_mass=own,
            )
            for (path, slp), own in zip(self.slps.items(), mass.masses, strict=True)
        )
        return Discovered(
            paths=paths,
            samples=samples,
            runs=self.runs,
            dropped_mass=dropped / samples,
            unseen_mass=mass.unseen,
            unseen_bound=mass.bound,
            unseen_is_exact=mass.is_exact,
            failed_runs=self.failures.count,
            invalid_runs=tuple((said, count) for said, count in self.invalid.items() if count),
        )

    def _mass(self, samples: int) -> PriorMass:
        sightings = []
        for path in (*self.slps, *(path for path in self.counts if path not in self.slps)):
            slp = self.slps.get(path)
            cell = None if slp is None else cell_of(slp)
            branches = None if slp is None or cell is None else branches_of(slp, cell)
            sightings.append(Sighting(cell, self.counts[path], self.first[path], branches))
        return prior_mass(sightings, samples, is_whole=not self.failures.count)


class _Rows:
    """Draws gathered over several runs, until there are enough."""

    def __init__(self) -> None:
        self.parts: list[SiteRows] = []
        self.count = 0

    def add(self, values: SiteRows, rows: np.ndarray, enough: int) -> None:
        chosen = np.flatnonzero(rows)[: enough - self.count]
        if len(chosen):
            self.parts.append({name: array[chosen] for name, array in values.items()})
            self.count += len(chosen)


def _changed(batch_run: BatchRun) -> HiddenRandomnessError:
    path = batch_run.path
    last = f" that ends with the site {path.addresses[-1]!r}" if path.addresses else ""
    where = f" at {batch_run.site_sources[path.addresses[-1]]}" if path.addresses else ""
    return HiddenRandomnessError(f"it followed a path{last}{where} once, and another one the next time")
