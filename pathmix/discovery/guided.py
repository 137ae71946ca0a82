"""Find paths by what those already found are worth: neighbours of the best ones, round after round."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice, zip_longest
from typing import TypeVar

import numpy as np
from scipy.special import softmax

from pathmix.checks import check_positive_int
from pathmix.discovery.base import Discovered, OnPath, Rating
from pathmix.discovery.enumeration import check_cover, enumerate_values
from pathmix.discovery.grammar import Grammar, unordered
from pathmix.discovery.neighbours import Proposal, mirrored, nearest, neighbours, same_tree
from pathmix.discovery.prediction import Prediction
from pathmix.discovery.runs import PriorRuns
from pathmix.discovery.search import Search, SearchExpedition
from pathmix.program.path import Path, PinnedValue
from pathmix.program.program import Program
from pathmix.program.seeds import Seed
from pathmix.program.values import SiteRows

Known = TypeVar("Known")

_FIRST_SAMPLES = 300  # runs from the prior, after which there are more only if there is little to compile
_FEW_STRUCTURES = 50
_ROWS = 64  # runs of one batch
_COPIES = 3  # of a proposal: what it leaves open is drawn
_PARENTS = 8  # paths whose neighbours are looked at in a round
_SURE = 4  # of them, at most, are the best of each size, and the best of all; others come by chance
_OF_BEST, _OF_OTHERS = 16, 6  # neighbours in turn
_TURNS = 10
_DRY = 2  # turns without a new path, after which there are no more
_NEW = 0.05  # probability of an unseen path, below which a proposal is not run
_MIRRORED, _NEAR = 16, 5.0  # best paths, within so many nats of the best, whose twins are looked for
_TWINS = 4  # so small a part of a round may be added of them
_SMALL = 4  # so small a part of a round lies next to the best small trees
_TURNED = 32  # decisions of a round
_POOL = 4_000  # neighbours, of which the most promising are run
_SPENT = 256  # paths, at most, whose neighbours are asked for
_LEAST, _MOST = 0.1, 0.75  # of the new paths of a round come by prediction: more, if the last ranked high
_FIRST_TRUST = 0.25
_IDLE, _PAYS = 5, 0.01  # rounds that brought less of the weight all together are the last;
_IDLE_IN_GRAMMARS = 8  # so many, where sites nest: long ways lead past bad paths;
_VAIN, _FAIR = 2, 50  # so are two, where prior runs are worth so many draws from the posterior,
_NOTHING = 1e-3  # or if they brought less, where sites do not nest


@dataclass(frozen=True)
class Guided(PriorRuns):
    """Runs from the prior, enumeration while that is cheap, then neighbours of the paths with most weight.

    There are 300 runs from the prior, and up to `samples` if these show few structures. Where discrete sites
    alone decide, enumeration goes on to `cover` of the prior mass, if it can get there within `listed` paths
    of few structures. Where anything is left unseen, rounds begin: new paths are looked at, or trained for
    `iterations` steps if that does not tell enough, and the runs of the next round change a discrete site of
    the best of all, move, regrow and graft subtrees of their grammars, or exchange the values of two sites,
    those first whose relatives promise most, as far as such predictions paid. In grammars, what lies one
    value away from the best small trees is completed. A round has at most `round_paths` new paths (and a
    quarter more that differ from the best ones in the order of subtrees), and there are rounds until five in
    turn have brought less than 1% of the weight all together (eight, where sites nest as in grammars; two,
    where prior runs are as good as draws from the posterior, or where they brought next to nothing and sites
    do not nest), or there were `rounds`.

    Examples:
        >>> Guided(rounds=5).rounds
        5
    """

    samples: int = 1_000
    max_paths: int = 2_000
    cover: float = field(default=0.999, kw_only=True)
    listed: int = field(default=2_000, kw_only=True)
    rounds: int = field(default=30, kw_only=True)
    round_paths: int = field(default=64, kw_only=True)
    iterations: int = field(default=200, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_cover("Guided", self.cover)
        for name in ("listed", "rounds", "round_paths", "iterations"):
            check_positive_int(f"Guided({name}=...)", getattr(self, name))

    def discover(self, program: Program, seed: Seed, on_path: OnPath) -> Discovered:
        """Without anybody who says what paths are worth: prior runs and enumeration."""
        return self.begin(program, seed, on_path).result()

    def begin(self, program: Program, seed: Seed, on_path: OnPath) -> "GuidedExpedition":
        """The part of the way that needs no guidance."""
        search = Search(program, self.max_paths, on_path, seed)
        search.from_prior(min(_FIRST_SAMPLES, self.samples))
        if len(search.structures) <= _FEW_STRUCTURES:
            search.from_prior(self.samples)
        enumerate_values(search, self.cover, self.listed, _FEW_STRUCTURES)
        return GuidedExpedition(self, search, seed)


class GuidedExpedition(SearchExpedition):
    """Paths found so far, and the way on from them."""

    def __init__(self, options: Guided, search: Search, seed: Seed) -> None:
        super().__init__(search, min(_FIRST_SAMPLES, options.samples))
        self.options, self.seed = options, seed
        self.shares: list[float] = []  # of the weight, that the new paths of each round had
        self._latest: set[Path] = set()
        self._predicted: set[Path] = set()  # of the latest, those that came by prediction
        self._trust = _FIRST_TRUST  # in prediction
        self._is_fair = False  # prior runs are like draws from the posterior
        self._grammar, self._known = Grammar(), 0
        self._tried: set[tuple[tuple[str, PinnedValue], ...]] = set()

    def snapshot(self) -> Discovered:
        return self.search.discovered(tuple(self.shares))

    @property
    def goes_on(self) -> bool:
        """Whether there is anything unseen, and a discrete site to change, or a decision to turn round."""
        tree = self.search.tree
        can_go = any(path.pinned or tree.is_open_along(path) for path in self.search.slps)
        return can_go and not self.search.too_much and self.search.unseen_bound > 0

    def further(self, rating: Rating) -> bool:
        """Look for neighbours of the best paths; whether there are new ones."""
        worth = self._recorded(rating.worth)
        ranked = _ranked(worth)
        if not ranked:
            return False
        if self._latest:
            self._learn(worth, ranked)
            if self._is_done or len(self.shares) >= self.options.rounds:
                return False
        self._look_from(worth, ranked, self._recorded(rating.strays))
        return bool(self._latest)

    @property
    def _is_done(self) -> bool:
        """Whether the last rounds did not pay."""
        nests = bool(self._grammar.nests)
        few = _PAYS if self._is_fair else 0.0 if nests else _NOTHING
        rules = ((_IDLE_IN_GRAMMARS if nests else _IDLE, _PAYS), (_VAIN, few))
        return any(len(self.shares) >= count and sum(self.shares[-count:]) < least for count, least in rules)

    def again(self, rating: Rating) -> None:
        """Some runs more, and one more round, if there is anything unseen."""
        super().again(rating)
        if self.goes_on:
            worth = self._recorded(rating.worth)
            self._look_from(worth, _ranked(worth), self._recorded(rating.strays))

    def _recorded(self, known: Mapping[Path, Known]) -> dict[Path, Known]:
        """By paths as they were recorded: a front end may note decisions on data there."""
        return {path: known[slp.path] for path, slp in self.search.slps.items() if slp.path in known}

    def _learn(self, worth: Mapping[Path, float], ranked: list[Path]) -> None:
        """What the latest paths brought, and whether those that came by prediction rank higher."""
        weights = dict(zip(ranked, softmax([worth[path] for path in ranked]), strict=True))
        # Runs of one path are worth the same; a path that none took is as if half a run had.
        spread = sum(weight**2 / max(self.search.counts[path], 0.5) for path, weight in weights.items())
        self._is_fair = spread * _FAIR < 1
        share = float(sum(weights.get(path, 0.0) for path in self._latest))
        self.shares.append(share)
        ranks = {path: rank for rank, path in enumerate(_different(worth, ranked), 1)}
        credit = [
            float(np.mean([1 / ranks.get(path, np.inf) for path in paths])) if paths else 0.0
            for paths in (self._predicted, self._latest - self._predicted)
        ]
        if self._predicted and any(credit):
            self._trust = min(max(credit[0] / sum(credit), _LEAST), _MOST)

    def _look_from(
        self, worth: Mapping[Path, float], ranked: list[Path], strays: Mapping[Path, SiteRows]
    ) -> None:
        """Where draws of guides strayed to, the other sides of decisions, and neighbours."""
        before = set(self.search.slps)
        most = min(len(before) + self.options.round_paths, self.options.max_paths)
        for number, (path, rows) in enumerate(strays.items()):
            self.search.follow(path, rows, self.seed.child(1 << 22, len(before), number), most)
        different, seed = _different(worth, ranked), self.seed.child(1 << 21, len(before))
        parents = _parents(different, seed.child(3).generator())
        for slp in list(self.search.slps.values())[self._known :]:
            self._grammar.learn(dict(slp.path.pinned))
        self._known = len(self.search.slps)
        alone = len(self.search.slps)
        self._mirror(worth, ranked, seed.child(4))
        most = min(most + len(self.search.slps) - alone, self.options.max_paths)
        self._turn_round(parents, seed.child(0), most)
        self._complete_small(different, seed.child(5), most)
        self._as_predicted(worth, different, parents, seed.child(1), most)
        self._look_around(parents, seed.child(2), most)
        self._latest = set(self.search.slps) - before

    def _mirror(self, worth: Mapping[Path, float], ranked: list[Path], seed: Seed) -> None:
        """What the best paths are worth in the other orders of their subtrees: maybe the same."""
        if self._grammar.nests:
            best = [path for path in ranked[:_MIRRORED] if worth[path] > worth[ranked[0]] - _NEAR]
            twins = [one for path in best for one in mirrored(self.search.slps[path], self._grammar)]
            some = len(self.search.slps) + self.options.round_paths // _TWINS
            self._run([one for one in twins if self._is_new(one)], seed, min(some, self.options.max_paths))

    def _complete_small(self, ranked: list[Path], seed: Seed, most: int) -> None:
        """All that is one value away from the best tree of each size, the smallest first.

        These are few, and larger ones are made of them; around the best trees of all, which soon are large,
        only some of very many are looked at.
        """
        if not self._grammar.nests:
            return
        best: dict[int, Path] = {}
        for path in ranked:
            best.setdefault(len(path.pinned), path)
        known = {unordered(dict(path.pinned), self._grammar) for path in self.search.slps}
        proposals = (
            one
            for size in sorted(best)
            for one in same_tree(self.search.slps[best[size]], self._grammar)
            if unordered(one, self._grammar) not in known and self._is_new(one)
        )
        some = min(self.options.round_paths // _SMALL, most - len(self.search.slps))
        self._run(list(islice(proposals, max(some, 0))), seed, most)

    def _turn_round(self, parents: list[Path], seed: Seed, most: int) -> None:
        """The other sides of decisions, where nobody has been or looked."""
        tree = self.search.weighed_tree()
        places = {node: None for path in parents for node, _ in tree.ways(path) if node.is_open}
        for number, node in enumerate(list(places)[:_TURNED]):
            if len(self.search.slps) < most:
                self.search.force(node, seed.child(number), most)

    def _as_predicted(
        self, worth: Mapping[Path, float], ranked: list[Path], parents: list[Path], seed: Seed, most: int
    ) -> None:
        """The neighbours that promise most."""
        self._predicted = set()
        pool = self._pool(ranked, parents, seed.child(1 << 10))
        if not pool:
            return
        before = set(self.search.slps)
        settings = [dict(path.pinned) for path in ranked]
        prediction = Prediction(settings, [worth[path] for path in ranked], self._grammar)
        in_order = [pool[number] for number in np.argsort(-prediction(pool), kind="stable")]
        promising = _of_all_sizes(in_order) if self._grammar.nests else iter(in_order)
        most = min(len(self.search.slps) + round(self._trust * self.options.round_paths), most)
        for turn in range(_TURNS):
            wanted = max(most - len(self.search.slps), 0)
            self._run(list(islice(promising, wanted)), seed.child(turn), most)
        self._predicted = set(self.search.slps) - before

    def _pool(self, ranked: list[Path], parents: list[Path], seed: Seed) -> list[Proposal]:
        """New ones: all kinds of some paths, and the nearest of so many as it takes."""
        pool: dict[object, Proposal] = {}
        for stream in self._streams(parents, seed):
            pool.update((_key(one), one) for one in islice(stream, _POOL // (2 * _PARENTS)))
        for path in ranked[:_SPENT]:
            for one in nearest(self.search.slps[path]):
                if _key(one) not in pool and self._is_new(one):
                    pool[_key(one)] = one
            if len(pool) >= _POOL:
                break
        return list(pool.values())

    def _streams(self, parents: list[Path], seed: Seed) -> list[Iterator[Proposal]]:
        """New neighbours of each, to which the others lend."""
        slps = [self.search.slps[parent] for parent in parents]
        streams = []
        for rank, slp in enumerate(slps):
            lenders = [other for other in slps if other is not slp]
            around = neighbours(slp, lenders, self._grammar, seed.child(rank).generator())
            streams.append(filter(self._is_new, around))
        return streams

    def _look_around(self, parents: list[Path], seed: Seed, most: int) -> None:
        """Neighbours of each in turn, until there are enough."""
        streams = self._streams(parents, seed.child(0))
        dry = 0
        for turn in range(1, _TURNS + 1):
            before = len(self.search.slps)
            proposals = [
                one
                for rank, stream in enumerate(streams)
                for one in islice(stream, _OF_OTHERS if rank else _OF_BEST)
            ]
            if not proposals or dry == _DRY:
                return
            self._run(proposals, seed.child(turn), most)
            dry = dry + 1 if len(self.search.slps) == before else 0

    def _is_new(self, proposal: Proposal) -> bool:
        return _key(proposal) not in self._tried and self.search.tree.novelty(proposal, _NEW) >= _NEW

    def _run(self, proposals: list[Proposal], seed: Seed, most: int) -> None:
        """Each once, until there are enough paths."""
        different = {_key(one): one for one in proposals}
        for number, group in enumerate(_alike(list(different.values()))):
            if len(self.search.slps) >= most:
                return
            rows = min(_COPIES * len(group), _ROWS)
            if self.search.with_values(_rows(group), seed.child(number), rows=rows, most=most):
                self._tried.update(map(_key, group))


def _ranked(worth: Mapping[Path, float]) -> list[Path]:
    """The best first, without those of which nothing is known."""
    return sorted((path for path in worth if np.isfinite(worth[path])), key=lambda path: -worth[path])


def _different(worth: Mapping[Path, float], ranked: list[Path]) -> list[Path]:
    """Of twins, which are worth the same, one is enough."""
    return list({worth[path]: path for path in reversed(ranked)}.values())[::-1]


def _parents(ranked: list[Path], generator: np.random.Generator) -> list[Path]:
    """The best of each size and of all, since a small one may lead farther than a better one, then others.

    Those are drawn by rank: what is best now may be a place that nothing better is near to.
    """
    sizes: dict[int, Path] = {}
    for path in ranked:
        sizes.setdefault(len(path.addresses), path)
    sure = list(dict.fromkeys([*sizes.values(), *ranked]))[:_SURE]
    others = [path for path in ranked if path not in sure]
    chances = 1 / np.arange(1.0, len(others) + 1)
    drawn = min(_PARENTS - len(sure), len(others))
    chosen = generator.choice(len(others), drawn, replace=False, p=chances / chances.sum()) if drawn else ()
    return [*sure, *(others[number] for number in chosen)]


def _of_all_sizes(ranked: Sequence[Proposal]) -> Iterator[Proposal]:
    """The best trees of each size in turn: after little training, large ones may fit better than small."""
    sizes: dict[int, list[Proposal]] = {}
    for one in ranked:
        sizes.setdefault(len(one), []).append(one)
    for turn in zip_longest(*(sizes[size] for size in sorted(sizes))):
        yield from (one for one in turn if one is not None)


def _key(proposal: Proposal) -> tuple[tuple[str, PinnedValue], ...]:
    return tuple(sorted(proposal.items()))


def _alike(proposals: list[Proposal]) -> list[list[Proposal]]:
    """Groups that give values to the same sites, which one batch of runs can have."""
    groups: dict[object, list[Proposal]] = {}
    for one in proposals:
        key = tuple(sorted((name, np.shape(value)) for name, value in one.items()))
        groups.setdefault(key, []).append(one)
    return [
        group[start : start + _ROWS] for group in groups.values() for start in range(0, len(group), _ROWS)
    ]


def _rows(group: list[Proposal]) -> dict[str, np.ndarray]:
    """A batch of one size, filled up by repetition: what is drawn beside the given sites differs."""
    rows = np.arange(_ROWS) % len(group)
    return {name: np.array([one[name] for one in group])[rows] for name in group[0]}
