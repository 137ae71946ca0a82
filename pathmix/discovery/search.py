"""The paths that runs of a program have taken so far, from the prior or with discrete sites put in."""

from collections import Counter
from collections.abc import Hashable
from dataclasses import replace

import numpy as np

from pathmix.discovery.base import Discovered, DiscoveredPath, OnPath, Rating
from pathmix.discovery.cells import cell_of
from pathmix.discovery.failures import Failures
from pathmix.discovery.forced import other_side, strayed
from pathmix.discovery.forks import as_found
from pathmix.discovery.neighbours import is_supported
from pathmix.discovery.repeatable import Replays
from pathmix.discovery.steps import settled_of
from pathmix.discovery.tree import Node, Tree
from pathmix.discovery.unseen import PriorMass, Sighting, prior_mass
from pathmix.errors import HiddenRandomnessError, NoLatentSiteError, UnsupportedSiteError
from pathmix.program.batch_run import BatchRun
from pathmix.program.failures import FailedRun
from pathmix.program.path import Path
from pathmix.program.program import Program
from pathmix.program.seeds import Seed
from pathmix.program.slp import StraightLineProgram
from pathmix.program.values import SiteRows
from pathmix.program.wishes import Wishes
from pathmix.warn import warn

# Prior runs of one batch. A front end divides batches that do not fit into memory.
_MAX_BATCH = 2**16
KEPT_DRAWS = 1_024
_REPEATS = 3  # a hidden fair coin goes unnoticed once in sixteen times, replay included
_FORCED_ROWS = 64  # of a batch with values of continuous sites put in
_FORCED_COPIES = 2  # of each row, at most
_ENOUGH_DRAWS = 100  # as many as the paper takes to initialise a path


class Search:
    """The paths found so far."""

    def __init__(self, program: Program, max_paths: int, on_path: OnPath, seed: Seed) -> None:
        self.program, self.max_paths, self.on_path, self.seed = program, max_paths, on_path, seed
        self.failures = Failures(seed)
        self.replays = Replays(program)
        self.invalid = Counter[str]()
        self.slps: dict[Path, StraightLineProgram] = {}
        self.tree = Tree()
        self.counts: dict[Path, int] = {}  # prior runs along all paths that were seen, kept or not
        self.others = Counter[Path]()  # runs along them that were put on their way
        self.first: dict[Path, int] = {}  # the first run of each
        self.natural: dict[Path, _Rows] = {}  # draws of runs that took the path by themselves
        self.forced: dict[Path, _Rows] = {}  # draws of runs whose discrete sites were forced
        self.structures = Counter[Hashable]()  # of the paths, what is compiled for them
        self.samples = 0  # runs from the prior
        self.too_much = False  # there are paths whose sums are too wide
        self._is_warm = False  # caches of the program are filled
        self.runs = 0

    def from_prior(self, samples: int) -> None:
        """Follow runs from the prior, a batch of seeds at a time, until there were so many in all."""
        batch = min(max(samples - self.samples, 1), _MAX_BATCH)
        for done in range(self.samples, samples, batch):
            # What the last batch has beyond the wanted number only fills it up.
            self._explain(self.seed.child(done), np.arange(batch) < samples - done, done)
        self.samples = samples

    def with_values(
        self,
        given: SiteRows,
        seed: Seed,
        *,
        rows: int | None = None,
        counted: bool = False,
        most: int | None = None,
    ) -> bool:
        """Follow runs with the values of some sites put in, the first rows or all; whether to the end.

        Those that the program ends with an error leave no path. If they are `counted`, nothing was put in
        after a continuous value had a say: they are prior runs, given the sites before. It ends at `most`
        paths.
        """
        count = len(next(iter(given.values())))
        wanted = np.arange(count) < (count if rows is None else rows)
        explore = self.program.frontend.explore
        found = explore(
            self.program,
            seed,
            wanted,
            wishes=Wishes(given, proposed=True),
            have=self._have,
            on_failure=self._leave_out,
        )
        for batch_run in found:
            self.runs += batch_run.runs
            path = batch_run.path
            self._add(batch_run, np.zeros(len(wanted), bool), doubtful=True)
            if path in self.slps:
                self.counts.setdefault(path, 0)
                self.first.setdefault(path, self.samples)
                self.others[path] += int(batch_run.followed.sum()) if counted else 0
            if most is not None and len(self.slps) >= most:
                return False
        return True

    def _leave_out(self, run: FailedRun) -> None:
        """Of a run with values put in: what is not seen counts as unseen."""
        self.too_much = self.too_much or isinstance(run.error, UnsupportedSiteError)

    def weighed_tree(self) -> Tree:
        """The tree of decisions, by what runs have told so far."""
        self.tree.weigh(self.counts)
        return self.tree

    def leading_to(self, node: Node) -> SiteRows:
        """Values of the sites before a place, with which runs come there."""
        end = node.step.number if node.step.is_site else node.slp.decided_after[node.step.number]
        sites = node.slp.sites[:end]
        if node.is_discrete:  # then all else may be drawn
            sites = tuple(site for site in sites if site.pinned is not None)
        draws = self._draws(node.path)
        return {site.name: draws[site.name] for site in sites}

    def force(self, node: Node, seed: Seed, most: int | None = None) -> bool:
        """Follow runs to the other side of a decision, where values that lead there are found."""
        node.was_forced = True
        draws, number = self._draws(node.path), node.step.number
        given = other_side(node.slp, draws, number, seed.child(0).generator())
        if given is not None:
            self._with_rows(given, seed.child(1), most)
        return given is not None

    def follow(self, path: Path, strays: SiteRows, seed: Seed, most: int) -> None:
        """Follow runs to where draws outside of the region of a path lead."""
        for number, given in enumerate(strayed(self.slps[path], strays)):
            self._with_rows(given, seed.child(number), most)

    def _with_rows(self, given: SiteRows, seed: Seed, most: int | None) -> None:
        """In a batch of one size: what is drawn after the given sites differs."""
        count = len(next(iter(given.values())))
        filled = {name: values[np.arange(_FORCED_ROWS) % count] for name, values in given.items()}
        self.with_values(filled, seed, rows=_FORCED_COPIES * count, most=most)

    def _explain(self, seed: Seed, wanted: np.ndarray, done: int) -> None:
        """Find the path of every wanted run of a batch, which comes after so many others."""

        def failed(run: FailedRun) -> None:
            self.failures.add(run, done + np.flatnonzero(run.followed & wanted), ended=self.runs + run.ended)

        explore = self.program.frontend.explore
        for batch_run in explore(self.program, seed, wanted, have=self._have, on_failure=failed):
            self.runs += batch_run.runs
            followers = batch_run.followed & wanted
            self.counts[batch_run.path] = self.counts.get(batch_run.path, 0) + int(followers.sum())
            self.first.setdefault(batch_run.path, done + int(np.argmax(followers)))
            for said, runs in batch_run.invalid.items():
                self.invalid[said] += int((runs & followers).sum())
            is_early = len(self.slps) < 2 and batch_run.path not in self.slps
            if is_early and not self._repeats(batch_run, seed, followers):
                self._begin_again()
                return self._explain(seed, wanted, done)
            self._is_warm = True
            self._add(batch_run, followers)

    def _have(self, path: Path) -> int:
        """Draws of a path so far."""
        return sum(rows[path].count for rows in (self.natural, self.forced) if path in rows)

    def _add(self, batch_run: BatchRun, followers: np.ndarray, *, doubtful: bool = False) -> None:
        """Keep a path, unless there are too many, or it has values that were put in and cannot be drawn."""
        path = batch_run.path
        is_new = path not in self.slps
        if is_new and len(self.slps) == self.max_paths:
            return
        if is_new:
            slp = self.replays.replay(batch_run)
            slp = replace(slp, settled=settled_of(slp))
            if doubtful and not is_supported(slp):
                self.tree.rule_out(slp, batch_run.values)
                return
            self.slps[path] = slp
            self.natural[path], self.forced[path] = _Rows(), _Rows()
        self.natural[path].add(batch_run.values, followers, KEPT_DRAWS)
        self.forced[path].add(batch_run.values, batch_run.inside & ~followers, _ENOUGH_DRAWS)
        if is_new:
            self.tree.add(path, self.slps[path], self._draws(path))
            self.structures[self.on_path(self.slps[path], self._draws(path))] += 1

    def _draws(self, path: Path) -> SiteRows:
        """Runs that took the path by themselves, filled up with forced ones where they are few."""
        natural, forced = self.natural[path], self.forced[path]
        kept = max(_ENOUGH_DRAWS, min(natural.count, KEPT_DRAWS))
        parts = [*natural.parts, *forced.parts]
        return {name: np.concatenate([part[name] for part in parts])[:kept] for name in path.addresses}

    def _repeats(self, batch_run: BatchRun, seed: Seed, followers: np.ndarray) -> bool:
        """The first runs are repeated; all are compared with their replay.

        The very first one may have filled a cache of the program (`functools.cache`): then all begins again.
        """
        only_leader = np.arange(len(followers)) == np.argmax(followers)
        explore = self.program.frontend.explore
        again = [next(iter(explore(self.program, seed, only_leader))).path for _ in range(_REPEATS)]
        if any(path != again[0] for path in again) or (again[0] != batch_run.path and self._is_warm):
            raise _changed(batch_run)
        return again[0] == batch_run.path

    def _begin_again(self) -> None:
        self._is_warm = True
        self.counts.clear()
        self.first.clear()
        self.invalid.clear()
        self.failures = Failures(self.seed)

    def tell(self) -> None:
        """What went wrong in prior runs."""
        self.failures.tell(self.samples)
        if not any(path.addresses for path in self.slps):
            raise NoLatentSiteError(
                "The program draws no latent site in any run, so there is nothing to infer. "
                "Are all its sites observed?"
            )
        if dropped := self._dropped:
            warn(
                f"{dropped / self.samples:.1%} of the prior runs follow paths beyond max_paths="
                f"{self.max_paths}; these paths were dropped and the posterior leaves them out. "
                "Raise max_paths in the discovery to keep them."
            )

    @property
    def _dropped(self) -> int:
        """Prior runs along paths that are not kept."""
        return sum(count for path, count in self.counts.items() if path not in self.slps)

    def discovered(self, round_shares: tuple[float, ...] = ()) -> Discovered:
        """What is known by now, after rounds whose new paths had these shares."""
        mass = self._mass()
        paths = tuple(
            DiscoveredPath(
                slp=slp,
                draws=self._draws(path),
                followers=min(self.natural[path].count, KEPT_DRAWS),
                prior_mass=own,
                mass_is_exact=exact,
            )
            for (path, slp), own, exact in zip(self.slps.items(), mass.masses, mass.are_exact, strict=True)
        )
        return Discovered(
            paths=paths,
            samples=self.samples,
            runs=self.runs,
            dropped_mass=self._dropped / self.samples,
            unseen_mass=mass.unseen,
            unseen_bound=mass.bound,
            unseen_is_exact=mass.is_exact,
            failed_runs=self.failures.count,
            endless_runs=self.failures.endless,
            invalid_runs=tuple((said, count) for said, count in self.invalid.items() if count),
            round_shares=round_shares,
            tree=as_found(self.tree),
        )

    @property
    def unseen_bound(self) -> float:
        """What the prior mass of paths that were not seen is at most."""
        return self._mass().bound

    def _mass(self) -> PriorMass:
        tree = self.weighed_tree()
        sightings = []
        for path in (*self.slps, *(path for path in self.counts if path not in self.slps)):
            cell = cell_of(tree, path) if path in self.slps else None
            sightings.append(Sighting(cell, self.counts[path], self.first[path], self.others[path]))
        return prior_mass(
            sightings,
            self.samples,
            is_whole=not self.failures.count and not self.failures.endless,
            is_open=tree.is_open,
            hidden=tree.hidden,
            endless=self.failures.endless,
        )


class SearchExpedition:
    """A search that goes on with further runs from the prior, and is not led."""

    def __init__(self, search: Search, samples: int) -> None:
        self.search, self.samples = search, samples

    @property
    def goes_on(self) -> bool:
        return False

    def snapshot(self) -> Discovered:
        return self.search.discovered()

    def further(self, rating: Rating) -> bool:
        return False

    def again(self, rating: Rating) -> None:
        """So many runs more."""
        self.search.from_prior(self.search.samples + self.samples)

    def result(self) -> Discovered:
        """All of it, with a word on what went wrong."""
        self.search.tell()
        return self.snapshot()


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
