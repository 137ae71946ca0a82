"""What new paths seem to be worth, after little training: for a discovery that is led by it."""

import math
from collections.abc import Hashable, Iterable, Sequence

import numpy as np

from pathmix.allocation import Allocation, OnlineAllocation, Uniform
from pathmix.discovery.base import Rating
from pathmix.discovery.contenders import Contender
from pathmix.discovery.prediction import Prediction
from pathmix.engine.progress import Progress
from pathmix.engine.requests import Asking
from pathmix.evidence.scout import place, scout
from pathmix.evidence.weigh import QUICK_VOLUME, look_at
from pathmix.methods.claims import small
from pathmix.methods.strays import strays
from pathmix.posterior.evidence import HOPELESS, UNKNOWN, Efforts
from pathmix.program.values import SiteValues
from pathmix.training.fit import PathFit
from pathmix.training.phases import FAR, Schedule, Workshop, initialise, optimise
from pathmix.training.starts import Starts

_MOST = 4  # a round has at most so small a part of the budget
_CROWD = 10  # paths
_FEWEST_STEPS = 100  # in a first phase: with fewer, training tells less than a first look
_CHUNK = 256  # paths of a crowd, after which Ctrl-C is noticed
_LENDERS = 4  # paths from which others take over what they have found
_STARTS = Starts(3)  # one of them from what other paths have found
_AGAIN = 2  # so small a part as many as are trained may be earlier ones
_RELATED = 0.5  # of its sites are the leading path's too
SURROGATE_SHARE = 0.01  # c = 0.01 d_min (Sec. 4.5)

Fitting = Contender[PathFit]


class Scouting:
    """Looks at new paths, and trains for a while those that this was not enough for."""

    def __init__(
        self,
        workshop: Workshop,
        progress: Progress,
        iterations: int,
        allocation: Allocation,
        efforts: Efforts,
        *,
        several: bool,
        by_evidence: bool = True,
    ) -> None:
        self.workshop, self.progress, self.efforts = workshop, progress, efforts
        self.iterations, self.allocation, self.by_evidence = iterations, allocation, by_evidence
        self.starts = _STARTS if several else None
        self._smallest = math.inf
        self._seen: set[PathFit] = set()
        self._places: dict[PathFit, SiteValues] = {}  # where the best paths were found to be
        self._tried: set[tuple[PathFit, PathFit]] = set()  # with what the other one had found

    def __call__(self, contenders: Sequence[Fitting]) -> Rating:
        """What every path is worth, as far as it is known; nothing after Ctrl-C."""
        if self.workshop.executor.stopping.is_set():
            return Rating({})
        fitting = problems(contenders)
        new = [one for one in fitting if one.work not in self._seen]
        self.progress.stage(f"scouting: {len(new)} of {len(fitting)} problems are new")
        self._seen.update(one.work for one in new)
        self._look_at(new)
        enough = self._looked_at_enough(contenders)
        rough = [one for one in new if self._needs_training(one) and one.work not in enough]
        self._train([*rough, *self._related(fitting, len(rough) // _AGAIN)], fitting)
        if self.workshop.executor.stopping.is_set():
            return Rating({})
        ranked = sorted(fitting, key=lambda one: -_worth(one.work))
        worth = {one.slp.path: _worth(one.work) for one in contenders}
        return Rating(worth, strays(self.workshop, ranked))

    def has_found(self) -> bool:
        """Whether any evidence is known so far."""
        return any(fit.evidence.is_known for fit in self._seen)

    def set_aside(self, contenders: Sequence[Fitting], *, resumed: bool = False) -> None:
        """Leave out what is far below the best, or claims next to nothing: its first evidence stays.

        Paths that prior runs took get the benefit of the doubt: a first look may miss a narrow mode. Where
        there are too many for training, all are looked at first, and whatever that settles is left out,
        unless this is a run that goes on, with guides that were trained. After Ctrl-C nothing more is
        trained, so what was looked at is left with that.
        """
        fitting, asked_for = problems(contenders), set(self._seen)
        crowded = self.by_evidence and not resumed and self._is_crowded(fitting)
        if crowded:
            self._look_at_crowd(fitting)
        interrupted = self.workshop.executor.stopping.is_set()
        enough = self._looked_at_enough(contenders, crowded=crowded)
        best = max((_worth(one.work) for one in fitting if one.work.evidence.is_known), default=-math.inf)
        for one in fitting:
            fit = one.work
            if one.followers or fit not in asked_for:
                far = fit.evidence.is_hopeless(best)
            else:
                far = fit.evidence is not UNKNOWN and _worth(fit) < best - FAR
            # Guides find out what masked elements do, and how often a density is NaN.
            unclear = fit.met_nan or (crowded and bool(fit.target.inert))
            hopeless = (far or fit in enough) and fit.start is None and not unclear
            begun = fit.steps or hopeless or not fit.trainable
            fit.was_cut_off = interrupted and fit.evidence.is_known and not begun
            fit.was_set_aside = fit in self._seen and (hopeless or fit.was_cut_off)

    def _is_crowded(self, fitting: Sequence[Fitting]) -> bool:
        """Whether the budget is next to nothing for each of so many."""
        count = sum(one.work.trainable for one in fitting)
        if count < _CROWD or isinstance(self.allocation, OnlineAllocation):  # which has more rounds
            return False
        return self.allocation.iterations(self.allocation.phases(count), count) < _FEWEST_STEPS

    def _look_at_crowd(self, fitting: Sequence[Fitting]) -> None:
        """At all that can be trained, until Ctrl-C."""
        new = [one for one in fitting if one.work.trainable and one.work not in self._seen]
        for start in range(0, len(new), _CHUNK):
            if self.workshop.executor.stopping.is_set():
                return
            chunk = new[start : start + _CHUNK]
            self.progress.stage(f"scouting: {start} of {len(new)} problems done")
            self._seen.update(one.work for one in chunk)
            self._look_at(chunk, crowded=True)

    def _looked_at_enough(self, contenders: Sequence[Fitting], *, crowded: bool = False) -> set[PathFit]:
        """ELBOs need guides."""
        return small(contenders, crowded=crowded) & self._seen if self.by_evidence else set()

    def _look_at(self, new: Sequence[Fitting], *, crowded: bool = False) -> None:
        """At paths whose densities are small, without compiling anything else."""
        small = [one for one in new if one.work.trainable and _is_quick(one.work)]
        best = max((_worth(fit) for fit in self._seen if fit.evidence.is_known), default=-math.inf)
        lenders = sorted(self._places, key=lambda fit: -_worth(fit))[:_LENDERS]

        kin = self.workshop.kin
        kin.learn(one.slp for one in small)

        def look(one: Fitting) -> Asking[None]:
            slp = one.work.target.slp
            lent = [kin.taken_over(self._places[fit], fit.target.slp, slp) for fit in lenders]
            seed = one.work.elbo_seed.child(2_000)
            lent = [values for values in lent if values]
            yield from scout(one.work, one.draws, lent, seed, crowded=crowded, hopeless=best - HOPELESS)

        self.workshop.to_the_end(small, look)
        known = [one for one in small if one.work.evidence.is_known]
        leading = sorted(known, key=lambda one: -_worth(one.work))[:_LENDERS]

        def find(one: Fitting) -> Asking[None]:
            self._places[one.work] = yield from place(one.work)

        self.workshop.to_the_end(leading, find)

    def _needs_training(self, one: Fitting) -> bool:
        """Whether there was no first look, or it found something rough that may matter."""
        fit = one.work
        if fit.evidence is UNKNOWN:
            return True
        best = max((_worth(other) for other in self._seen if other.evidence.is_known), default=-math.inf)
        return not fit.evidence.is_known and (one.followers > 0 or not _worth(fit) < best - FAR)

    def _related(self, fitting: Sequence[Fitting], most: int) -> list[Fitting]:
        """Paths that were trained before the leading one, and may take over what that has found since.

        Those that have at least half of their sites in common with it, once with each leading path, and first
        those that are worth much less than their relatives let expect: only guides tell of them, which may
        have got stuck.
        """
        guided = [one.work for one in fitting if one.work.steps and not _is_quick(one.work)]
        guided = [fit for fit in guided if np.isfinite(_worth(fit))]
        if self.starts is None or not guided or not most:
            return []
        kin, leading = self.workshop.kin, max(guided, key=_worth)
        kin.learn(fit.target.slp for fit in guided)
        settings = [dict(fit.target.slp.path.pinned) for fit in guided]
        missing = Prediction(settings, [_worth(fit) for fit in guided], kin.grammar).missing()
        roles, ranked = kin.roles(leading.target.slp), [guided[place] for place in np.argsort(-missing)]
        able = [fit for fit in ranked if fit.trainable and self._may_take_over(fit, leading, roles)]
        chosen = set(able[:most])
        self._tried.update((fit, leading) for fit in chosen)
        return [one for one in fitting if one.work in chosen]

    def _may_take_over(self, fit: PathFit, leading: PathFit, roles: set[Hashable]) -> bool:
        own = self.workshop.kin.roles(fit.target.slp)
        is_new = fit is not leading and (fit, leading) not in self._tried
        return is_new and len(own & roles) >= _RELATED * len(own)

    def _train(self, rough: Sequence[Fitting], lenders: Sequence[Fitting]) -> None:
        if not rough:
            return
        self.initialise([one for one in rough if one.work.start is None])
        iterations = min(self.iterations, self.allocation.budget // (_MOST * len(rough)))
        if iterations:
            schedule = Schedule(Uniform(iterations * len(rough)), self.starts)
            optimise(self.workshop, schedule, rough, self.log_c, self.progress, lenders=lenders)
        if self.workshop.executor.stopping.is_set():
            return  # what is promising among them is weighed in the end
        look_at(self.workshop, [one for one in rough if one.work.start is not None], self.efforts)

    def initialise(self, fittings: Sequence[Fitting]) -> None:
        """Start the guides of new paths."""
        self._smallest = min(self._smallest, initialise(self.workshop, fittings))

    @property
    def log_d_min(self) -> float:
        """The smallest log-density among the prior draws that were tried."""
        return self._smallest if math.isfinite(self._smallest) else 0.0

    @property
    def log_c(self) -> float:
        """Of the surrogate for draws outside of the region."""
        return math.log(SURROGATE_SHARE) + self.log_d_min


def problems(contenders: Iterable[Fitting]) -> list[Fitting]:
    """One of each kind: twins are fitted once."""
    return list({one.work: one for one in reversed(list(contenders))}.values())[::-1]


def _is_quick(fit: PathFit) -> bool:
    """Whether a search by its densities alone takes next to no time."""
    return fit.target.graphs.density.volume < QUICK_VOLUME


def _worth(fit: PathFit) -> float:
    found = fit.evidence.log_evidence
    return max(found, fit.elbo) if np.isfinite(found) else fit.elbo
