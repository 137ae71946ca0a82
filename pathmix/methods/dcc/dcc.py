"""Divide, conquer and combine: Markov chains on every path, and evidences by importance sampling."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import jax

from pathmix.checks import check_positive_int
from pathmix.discovery import Discovery, PriorDiscovery
from pathmix.discovery.contenders import Contender, Exploration
from pathmix.engine.executables import Executables
from pathmix.engine.guarded import guarded
from pathmix.engine.precision import Engine, Precision, engine_scope
from pathmix.engine.progress import Progress, told
from pathmix.engine.threads import Threads
from pathmix.errors import OptionError
from pathmix.frontends.recognise import bind
from pathmix.frontends.surroundings import check_surroundings
from pathmix.methods.atoms import atom_flaws
from pathmix.methods.combine import Judged, Outcome, combine, judge
from pathmix.methods.cuts import cut_flaws
from pathmix.methods.dcc.chains import ChainOptions, PathChains
from pathmix.methods.dcc.confidence import next_path
from pathmix.methods.dcc.kernels import NUTS, Kernel
from pathmix.methods.dcc.verdict import uncertain, verdict
from pathmix.methods.members import check_members
from pathmix.methods.options import check_method
from pathmix.posterior.evidence import Doubt, Evidence
from pathmix.posterior.posterior import Posterior
from pathmix.posterior.provenance import provenance
from pathmix.posterior.status import Status
from pathmix.program.seeds import Seed
from pathmix.program.slp import StraightLineProgram
from pathmix.program.values import SiteRows
from pathmix.regions.region import read_region
from pathmix.target.labels import Label
from pathmix.target.target import Target, make_target


@dataclass(frozen=True)
class DCC:
    """Sample a program whose structure is random (Zhou et al., AISTATS 2020).

    The program is split into straight-line programs, one per path. Each iteration visits the path that
    promises most: its chains go on for some samples, and importance draws around them improve the
    estimate of its evidence. Paths are combined with weights proportional to their evidences.

    Every path gets a visit before any gets a second one; with fewer iterations than paths, those with
    the largest prior mass get theirs, and the others carry no weight.

    Args:
        kernel: how chains move: NUTS(...), or RandomWalk(...), one site at a time as in the SDVI paper.
        discovery: how paths are found.
        iterations: visits in all.
        chains: chains of each path.
        samples: how many samples every chain takes in a visit.
        proposals: importance draws around every sample.
        precision: "float64" or "float32".
        threads: how many paths are begun at once; None for one per core.
        label: a function that names paths, as for `SDVI`.
        progress: show a progress bar in terminals and notebooks; or an object of yours that is told instead,
            a `pathmix.Progress`.

    Examples:
        >>> import numpyro, numpyro.distributions as dist
        >>> def model(y):
        ...     up = numpyro.sample("up", dist.Bernoulli(0.5))
        ...     z = numpyro.sample("z", dist.Normal(3 if up else -3, 1))
        ...     numpyro.sample("y", dist.Normal(z, 2), obs=y)
        >>> posterior = DCC(model, iterations=10).run(0, 2.0)
        >>> [path.label for path in posterior.paths]
        ['up=1', 'up=0']
    """

    model: Callable[..., Any]
    kernel: Kernel = field(default=NUTS(), kw_only=True)
    discovery: Discovery = field(default=PriorDiscovery(1_000), kw_only=True)
    iterations: int = field(default=200, kw_only=True)
    chains: int = field(default=10, kw_only=True)
    samples: int = field(default=10, kw_only=True)
    proposals: int = field(default=10, kw_only=True)
    precision: Precision = field(default="float64", kw_only=True)
    threads: int | None = field(default=None, kw_only=True)
    label: Label | None = field(default=None, kw_only=True)
    progress: bool | Progress = field(default=True, kw_only=True)

    def __post_init__(self) -> None:
        _check(self)

    def run(self, seed: int | jax.Array, /, *args: Any, **kwargs: Any) -> Posterior:
        """Sample the model, called with the given arguments. The same seed gives the same posterior."""
        check_surroundings("DCC.run", (seed, args, kwargs))
        with (
            engine_scope(self.precision),
            told(self.progress, measure="log Z") as progress,
            Threads(self.threads, self.precision) as executor,
        ):
            root, executables = Seed.of(seed), Executables()
            options = ChainOptions(self.kernel, self.chains, self.samples, self.proposals)
            program = bind(self.model, args, kwargs, self.discovery.limits)
            made = provenance(self, program, root)

            progress.stage("discovery")

            def begin(slp: StraightLineProgram, draws: SiteRows, number: int) -> tuple[Target, PathChains]:
                progress.stage(f"discovery: {number + 1} paths")
                target = make_target(slp, read_region(slp, draws), draws)
                return target, PathChains(target, options, executables, root.child(1, number))

            exploration = Exploration(self.discovery, program, root.child(0), begin, label=self.label)
            found, contenders = exploration.found, exploration.contenders
            self._iterate(executor, contenders, progress)
            interrupted = executor.stopping.is_set()
            if interrupted and not any(one.work.evidence.draws for one in contenders):
                raise KeyboardInterrupt  # nothing to keep yet

            progress.stage("draws")
            executor.map(lambda one: one.work.component, contenders)
            judged = judge(contenders, _outcome)
            return combine(
                program,
                found,
                judged,
                _notes(judged, interrupted=interrupted),
                log_d_min=math.nan,  # DCC has no use for the smallest density
                engine=Engine(self.precision),
                interrupted=interrupted,
                flaws=[*cut_flaws(judged, root.child(2)), *atom_flaws(contenders)],
                made=made,
            )

    def _iterate(
        self, executor: Threads, contenders: Sequence[Contender[PathChains]], progress: Progress
    ) -> None:
        """All visits: one to each path, and then where the rule says."""
        progress.budget(self.iterations)
        possible = [one for one in contenders if one.flaw is None]
        fixed = [one.work for one in possible if one.work.target.dim == 0]
        executor.map(guarded(PathChains.weigh_the_only_point), fixed)

        def visit(one: Contender[PathChains]) -> None:
            if one.work.worth_a_visit:
                guarded(PathChains.visit)(one.work)
            progress.advance(1, one.label, one.work.log_evidence)

        def begin(one: Contender[PathChains]) -> None:
            if not executor.stopping.is_set():
                guarded(partial(PathChains.start, draws=one.draws))(one.work)
                visit(one)

        free = [one for one in possible if one.work.target.dim > 0]
        likely = set(sorted(free, key=lambda one: -one.prior_mass)[: self.iterations])
        first = [one for one in free if one in likely]
        progress.stage("first visits")
        executor.map(begin, first)

        def go_on(left: int) -> None:
            for _ in range(left):
                open_paths = [one for one in first if one.work.worth_a_visit]
                if executor.stopping.is_set() or not open_paths:
                    return
                evidence, visits = zip(
                    *((one.work.evidence, one.work.visits) for one in open_paths), strict=True
                )
                visit(open_paths[next_path(evidence, visits)])

        progress.stage("visits")
        # In a thread of the pool: the main one waits for Ctrl-C.
        executor.map(go_on, [self.iterations - len(first)])


def _outcome(contender: Contender[PathChains]) -> Outcome:
    chains = contender.work
    status, message = verdict(chains)
    return Outcome(
        evidence=_evidence(chains),
        elbo=math.nan,
        elbo_error=math.nan,
        chain_acceptance=chains.acceptance,
        steps=chains.steps,
        evaluations=chains.evaluations,
        status=status,
        message=message,
        component=chains.component,
    )


def _evidence(chains: PathChains) -> Evidence:
    """By importance sampling, or exact."""
    seen, effective = chains.evidence, chains.evidence.effective_draws
    if chains.target.dim == 0:
        return Evidence(chains.log_evidence, 0.0, "exact", effective_draws=effective)
    error = math.sqrt(max(1 / effective - 1 / seen.draws, 0.0)) if effective > 0 else math.nan
    doubts: tuple[Doubt, ...] = ("khat",) if uncertain(chains) else ()
    return Evidence(chains.log_evidence, error, "importance", effective_draws=effective, doubts=doubts)


def _notes(judged: Sequence[Judged[PathChains]], *, interrupted: bool) -> list[str]:
    notes = []
    if interrupted:
        notes.append("Sampling was interrupted; draws and weights are those reached by then.")
    unvisited = sum(one.fitted.status is Status.UNTRAINED for one in judged)
    if unvisited and not interrupted:
        notes.append(f"{unvisited} paths got no visit and carry no weight; raise iterations to reach them.")
    shaky = sum(uncertain(one.contender.work) and one.fitted.weight > 0.01 for one in judged)
    if shaky:
        notes.append(
            f"The evidence of {shaky} path{'s' if shaky > 1 else ''} with weight rests on few importance "
            "draws; the weights are not settled. Raise iterations, or proposals."
        )
    return notes


def _check(options: DCC) -> None:
    check_method(options)
    check_members("kernel", options.kernel, Kernel, "NUTS() or RandomWalk()")
    try:
        hash(options.kernel)
    except TypeError:
        raise OptionError(
            f"The kernel {options.kernel!r} is not hashable; make it a frozen dataclass."
        ) from None
    for name in ("iterations", "chains", "samples", "proposals"):
        check_positive_int(name, getattr(options, name))
    if options.threads is not None:
        check_positive_int("threads", options.threads)
