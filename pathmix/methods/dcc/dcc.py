"""Divide, conquer and combine: Markov chains on every path, and evidences by importance sampling."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import jax
import numpy as np

from pathmix.checks import check_positive_int
from pathmix.discovery import Discovered, DiscoveredPath, Discovery, PriorDiscovery, refuse_impossible
from pathmix.discovery.report import DiscoveryReport
from pathmix.engine.executables import Executables
from pathmix.engine.guarded import guarded
from pathmix.engine.noise import warm_up
from pathmix.engine.precision import Precision, engine_scope
from pathmix.engine.progress import ProgressBar
from pathmix.engine.threads import Threads
from pathmix.errors import OptionError
from pathmix.frontends.recognise import bind
from pathmix.frontends.surroundings import check_surroundings
from pathmix.methods.dcc.chains import ChainOptions, PathChains
from pathmix.methods.dcc.confidence import next_path
from pathmix.methods.dcc.kernels import NUTS, Kernel
from pathmix.methods.dcc.verdict import uncertain, verdict
from pathmix.methods.members import check_members
from pathmix.methods.options import check_method
from pathmix.posterior.components import WeightedDraws
from pathmix.posterior.fitted import FittedPath
from pathmix.posterior.notes import common_notes
from pathmix.posterior.posterior import Posterior
from pathmix.posterior.weights import path_weights
from pathmix.program.program import Program
from pathmix.program.seeds import Seed
from pathmix.program.slp import StraightLineProgram
from pathmix.regions.region import read_region
from pathmix.target.labels import label, unique
from pathmix.target.target import make_target


@dataclass(frozen=True)
class DCC:
    """Sample a program whose structure is random (Zhou et al., AISTATS 2020).

    The program is split into straight-line programs, one per path. Each iteration visits the path that
    promises most: its chains go on for some samples, and importance draws around them improve the
    estimate of its evidence. Paths are combined with weights proportional to their evidences.

    Every path gets a visit before any gets a second one; with fewer iterations than paths, those with
    the largest prior mass get theirs, and the others carry no weight.

    Options:
        kernel: how chains move: NUTS(...), or RandomWalk(...), one site at a time as in the SDVI paper.
        discovery: how paths are found.
        iterations: visits in all.
        chains: chains of each path.
        samples: how many samples every chain takes in a visit.
        proposals: importance draws around every sample.
        precision: "float64" or "float32".
        threads: how many paths are begun at once; None for one per core.
        progress: show a progress bar in terminals and notebooks.

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
    progress: bool = field(default=True, kw_only=True)

    def __post_init__(self) -> None:
        _check(self)

    def run(self, seed: int | jax.Array, /, *args: Any, **kwargs: Any) -> Posterior:
        """Sample the model, called with the given arguments. The same seed gives the same posterior."""
        check_surroundings("DCC.run", (seed, args, kwargs))
        with (
            engine_scope(self.precision),
            ProgressBar(wanted=self.progress, measure="log Z") as progress,
            Threads(self.threads, self.precision) as executor,
        ):
            root, executables = Seed.of(seed), Executables()
            options = ChainOptions(self.kernel, self.chains, self.samples, self.proposals)
            program = bind(self.model, args, kwargs, self.discovery.limits)

            executor.begin(warm_up)
            progress.stage("discovery")
            paths: list[PathChains] = []

            def formulate(slp: StraightLineProgram, draws: dict[str, np.ndarray]) -> None:
                target = make_target(slp, read_region(slp, draws), draws)
                paths.append(PathChains(target, options, executables, root.child(1, len(paths))))
                progress.stage(f"discovery: {len(paths)} paths")

            found = self.discovery.discover(program, root.child(0), formulate)
            refuse_impossible([path.slp for path in found.paths])
            labels = unique([label(path.target.slp, path.target.region) for path in paths])

            self._iterate(executor, paths, found.paths, labels, progress)
            interrupted = executor.stopping.is_set()
            if interrupted and not any(path.evidence.draws for path in paths):
                raise KeyboardInterrupt  # nothing to keep yet

            progress.stage("draws")
            components = executor.map(PathChains.component, paths)
            return self._combine(program, found, paths, labels, components, interrupted=interrupted)

    def _iterate(
        self,
        executor: Threads,
        paths: Sequence[PathChains],
        found: Sequence[DiscoveredPath],
        labels: Sequence[str],
        progress: ProgressBar,
    ) -> None:
        """All visits: one to each path, and then where the rule says."""
        progress.budget(self.iterations)
        fixed = [path for path in paths if path.target.dim == 0]
        executor.map(guarded(PathChains.weigh_the_only_point), fixed)

        def visit(index: int) -> None:
            if paths[index].worth_a_visit:
                guarded(PathChains.visit)(paths[index])
            progress.advance(1, labels[index], paths[index].log_evidence)

        def begin(index: int) -> None:
            if not executor.stopping.is_set():
                guarded(partial(PathChains.start, draws=found[index].draws))(paths[index])
                visit(index)

        free = [i for i, path in enumerate(paths) if path.target.dim > 0]
        first = sorted(sorted(free, key=lambda i: -found[i].prior_mass)[: self.iterations])
        progress.stage("first visits")
        executor.map(begin, first)

        def go_on(left: int) -> None:
            for _ in range(left):
                open_paths = [i for i in first if paths[i].worth_a_visit]
                if executor.stopping.is_set() or not open_paths:
                    return
                evidence, visits = zip(
                    *((paths[i].evidence, paths[i].visits) for i in open_paths), strict=True
                )
                visit(open_paths[next_path(evidence, visits)])

        progress.stage("visits")
        # In a thread of the pool: the main one waits for Ctrl-C.
        executor.map(go_on, [self.iterations - len(first)])

    def _combine(
        self,
        program: Program,
        found: Discovered,
        paths: Sequence[PathChains],
        labels: Sequence[str],
        components: Sequence[WeightedDraws],
        *,
        interrupted: bool,
    ) -> Posterior:
        """Weights from the evidences of all visited paths."""
        weights = path_weights([path.log_evidence for path in paths])
        fitted = []
        for path, text, weight, origin in zip(paths, labels, weights, found.paths, strict=True):
            status, message = verdict(path)
            fitted.append(
                FittedPath(
                    label=text,
                    path=origin.slp.path,
                    weight=float(weight),
                    log_evidence=path.log_evidence,
                    elbo=math.nan,
                    acceptance=path.acceptance,
                    steps=path.steps,
                    status=status,
                    message=message,
                    region=path.target.region.kind,
                    prior_mass=origin.prior_mass,
                    likelihood_evaluations=path.evaluations,
                )
            )
        order = sorted(range(len(paths)), key=lambda i: -fitted[i].log_evidence)
        report = DiscoveryReport.of(found, log_d_min=math.nan)  # DCC has no use for the smallest density
        return Posterior(
            paths=tuple(fitted[i] for i in order),
            discovery=report,
            notes=_notes(found, report, paths, fitted, interrupted=interrupted),
            interrupted=interrupted,
            _program=program,
            _components=tuple(components[i] for i in order),
            _precision=self.precision,
        )


def _notes(
    found: Discovered,
    report: DiscoveryReport,
    paths: Sequence[PathChains],
    fitted: Sequence[FittedPath],
    *,
    interrupted: bool,
) -> tuple[str, ...]:
    notes = []
    if interrupted:
        notes.append("Sampling was interrupted; draws and weights are those reached by then.")
    unvisited = sum(path.evidence.draws == 0 and path.failure is None for path in paths)
    if unvisited and not interrupted:
        notes.append(f"{unvisited} paths got no visit and carry no weight; raise iterations to reach them.")
    shaky = sum(uncertain(path) and result.weight > 0.01 for path, result in zip(paths, fitted, strict=True))
    if shaky:
        notes.append(
            f"The evidence of {shaky} path{'s' if shaky > 1 else ''} with weight rests on few importance "
            "draws; the weights are not settled. Raise iterations, or proposals."
        )
    return (*notes, *common_notes(found, report, [path.slp for path in found.paths], fitted))


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
