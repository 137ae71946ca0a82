"""Support decomposition variational inference; `SDVI.run` reads like Algorithm 1 of the paper."""

import os
from collections.abc import Callable, Hashable
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, Literal, cast

import jax
import optax

from pathmix.allocation import Allocation, AsynchronousHalving, OnlineAllocation, SuccessiveHalving
from pathmix.discovery import Discovery, Guided
from pathmix.discovery.base import GuidedDiscovery, Rating
from pathmix.discovery.contenders import Exploration
from pathmix.engine.cache import CacheOption
from pathmix.engine.executables import MEMORY_LIMIT, Executables
from pathmix.engine.jobs import Crew, Executor, Helpful
from pathmix.engine.precision import Engine, Precision, engine_scope
from pathmix.engine.progress import Progress, told
from pathmix.engine.threads import Threads
from pathmix.engine.timings import Stopwatch
from pathmix.evidence.weigh import weigh
from pathmix.frontends.recognise import bind
from pathmix.frontends.surroundings import check_surroundings
from pathmix.guides import FullRank, Guide, MeanField, StructuredGuide
from pathmix.methods.atoms import atom_flaws
from pathmix.methods.checkpoint import OnChange, checkpointed
from pathmix.methods.combine import combine, judge
from pathmix.methods.cuts import cut_flaws
from pathmix.methods.learning import Setting, learn
from pathmix.methods.online import train_online
from pathmix.methods.options import NAMED_GUIDES, GuideName, check_guide, check_options, check_shippable
from pathmix.methods.outcomes import outcome
from pathmix.methods.resuming import Earlier, resumable, with_budget
from pathmix.methods.scouting import Scouting, problems
from pathmix.posterior.evidence import Efforts
from pathmix.posterior.fitted import GradientKind
from pathmix.posterior.posterior import ParametersOption, Posterior
from pathmix.posterior.provenance import provenance
from pathmix.posterior.weights import Weighting
from pathmix.program.seeds import Seed
from pathmix.program.slp import StraightLineProgram
from pathmix.program.values import SiteRows
from pathmix.regions.region import read_region
from pathmix.target.labels import Label
from pathmix.target.layout import layout_of
from pathmix.target.target import Target, make_target
from pathmix.target.twins import as_twin, problem
from pathmix.training.fit import PathFit
from pathmix.training.notes import training_flaws, training_notes
from pathmix.training.options import TrainingOptions
from pathmix.training.phases import Schedule, Workshop, optimise, worth_weighing
from pathmix.training.starts import Starts, as_starts
from pathmix.training.unsynchronised import optimise_unsynchronised

_REHEARSED = 16  # structures, for which training is compiled while discovery goes on
_MOST_FULL = 32  # dimensions, up to which covariances are fitted
_DEFAULT_OPTIMIZER = optax.chain(optax.clip_by_global_norm(10.0), optax.adam(0.01))

GuideOption = (
    Literal["auto"]
    | GuideName
    | Guide
    | StructuredGuide
    | Callable[[StraightLineProgram], Guide | StructuredGuide]
)


@dataclass(frozen=True)
class SDVI:
    """Fit a program whose structure is random.

    The program is split into straight-line programs, one per path; a guide is fitted to each, with
    the budget going where it pays; and they are combined with weights that are ratios of evidences, with
    their errors.

    Args:
        guide: "meanfield", "fullrank", "lowrank", "flow", a Guide, or a callable that chooses one per path.
            "auto" is "fullrank" for paths of up to 32 dimensions, and "meanfield" for others.
        discovery: how paths are found.
        allocation: how iterations are shared between paths.
        optimizer: any optax optimiser. Adam, by default, with gradients clipped to a norm of 10: it would
            remember the first ones, which are often huge, for thousands of steps.
        particles: draws per gradient estimate.
        elbo_samples: draws for the ELBOs that rank paths.
        weights: "evidence" weighs paths by their evidences: importance sampling from the guide on,
            and tempered SMC where it is not enough. "elbo" is the paper's softmax(ELBO). "stacking" gives the
            weights that predict best: they maximise the leave-one-out density of the observations.
        evidence_draws: draws, at most, for the importance sampling of a path.
        smc_evaluations: densities, at most, for the tempered SMC of a path; 0 for none. Where densities are
            large, less is done.
        symmetry: whether exchangeable sites are looked for, whose orders all count.
        starts: how many starts of a path compete in each phase of training; 1 is the paper's method. For
            posteriors with several modes. A `Starts` says more. "auto" has six, until they end at one place.
        initial: where the first start is: a guide matched to the "prior" of the path, or one at its "mean" in
            unconstrained space, with scale one.
        annealing: for this share of a start's first stretch of training, the likelihood is raised to a
            power that grows from 0.001 to 1.
        stop_early: whether a path stops training once what is left of its iterations could bring next to
            nothing (0.05 nats, by the last third of its steps so far). What it leaves goes to other paths.
        gradient: "auto" takes reparameterised gradients where they are valid, the score function for what
            moves a jump of the density or goes through `while_loop`, and on general regions that of the
            truncated guide. "reparam",
            "score" (the paper's surrogate) and "truncated" force one.
        boxes: whether bounds on single variables get guides that live exactly on them; without,
            paths with continuous branching are truncated by rejection, as in the paper.
        precision: "float64" or "float32".
        threads: how many paths are worked on at once; None for one per core.
        executor: who works on paths: "threads" of this process, or the workers of a `pathmix.RayExecutor`.
        memory_limit: bytes that one batch of paths of the same structure may take.
        cache: whether what was compiled is kept for the next process: in the user's cache folder (or the one
            that the environment variable PATHMIX_CACHE names), in a folder of yours, or not at all.
        parameters: what becomes of `numpyro.param`, `pyro.param` and the parameters of modules. "fixed" keeps
            their values. "learn" looks for values at which the evidence of all paths together is largest; a
            parameter belongs to all paths that use it. "per-path" gives every path its own, at which its own
            evidence is largest. See `posterior.parameters` and `path.parameters`.
        label: a function that names paths in the notation of the program. It gets one with `addresses`,
            `pinned` (the values of discrete sites, by name) and `text`, which is its name otherwise.
        progress: show a progress bar in terminals and notebooks; or an object of yours that is told instead,
            a `pathmix.Progress`.
        checkpoint: a folder. A run that was ended, by a power cut or otherwise, goes on from there if it is
            started again with the same model, arguments, options and seed, and gives the same bits as one
            that was not.
        on_change: what to do with a folder of another run: "refuse" it with an error, or "restart".

    Examples:
        >>> import numpyro, numpyro.distributions as dist
        >>> def model(y):
        ...     x = numpyro.sample("x", dist.Normal(0, 1))
        ...     if x < 0:
        ...         z = numpyro.sample("z1", dist.Normal(-3, 1))
        ...     else:
        ...         z = numpyro.sample("z2", dist.Normal(3, 1))
        ...     numpyro.sample("y", dist.Normal(z, 2), obs=y)
        >>> posterior = SDVI(model, allocation=SuccessiveHalving(budget=4_000)).run(0, 2.0)
        >>> [path.label for path in posterior.paths]
        ['x >= 0', 'x < 0']
    """

    model: Callable[..., Any]
    guide: GuideOption = field(default="auto", kw_only=True)
    discovery: Discovery = field(default=Guided(), kw_only=True)
    allocation: Allocation = field(default=SuccessiveHalving(budget=100_000, keep=10), kw_only=True)
    optimizer: optax.GradientTransformation = field(default=_DEFAULT_OPTIMIZER, kw_only=True)
    particles: int = field(default=10, kw_only=True)
    elbo_samples: int = field(default=1_000, kw_only=True)
    weights: Weighting = field(default="evidence", kw_only=True)
    evidence_draws: int = field(default=200_000, kw_only=True)
    smc_evaluations: int = field(default=1_000_000, kw_only=True)
    symmetry: bool = field(default=True, kw_only=True)
    starts: int | Starts | Literal["auto"] = field(default="auto", kw_only=True)
    initial: Literal["prior", "mean"] = field(default="prior", kw_only=True)
    annealing: float = field(default=0.0, kw_only=True)
    stop_early: bool = field(default=True, kw_only=True)
    gradient: Literal["auto", "reparam", "score", "truncated"] = field(default="auto", kw_only=True)
    boxes: bool = field(default=True, kw_only=True)
    precision: Precision = field(default="float64", kw_only=True)
    threads: int | None = field(default=None, kw_only=True)
    executor: Literal["threads"] | Executor = field(default="threads", kw_only=True)
    memory_limit: int = field(default=MEMORY_LIMIT, kw_only=True)
    cache: CacheOption = field(default=True, kw_only=True)
    parameters: ParametersOption = field(default="fixed", kw_only=True)
    label: Label | None = field(default=None, kw_only=True)
    progress: bool | Progress = field(default=True, kw_only=True)
    checkpoint: str | os.PathLike[str] | None = field(default=None, kw_only=True)
    on_change: OnChange = field(default="refuse", kw_only=True)

    def __post_init__(self) -> None:
        check_options(self)

    def run(self, seed: int | jax.Array, /, *args: Any, **kwargs: Any) -> Posterior:
        """Fit the model, called with the given arguments. The same seed gives the same posterior."""
        check_surroundings("SDVI.run", (seed, args, kwargs))
        if self.parameters != "fixed":
            return self._learn(Seed.of(seed), args, kwargs)
        return self._run(Seed.of(seed), args, kwargs)

    def resume(self, posterior: Posterior, *, budget: int | None = None) -> Posterior:
        """Go on from a posterior, of this process or of a file, for `budget` more iterations.

        Guides start from where they were, and discovery looks for more paths; what was spent so far is
        counted. Paths are found once more, by the same seed, and optimisers start anew.
        """
        check_surroundings("SDVI.resume", ())
        seed, program = resumable(posterior, self.model, self.precision, self.parameters)
        allocation = with_budget(self.allocation, budget)
        if self.parameters != "fixed":
            return self._learn(seed, program.args, program.kwargs, Earlier(posterior, allocation))
        return self._run(seed, program.args, program.kwargs, Earlier(posterior, allocation))

    def _learn(
        self, root: Seed, args: tuple[Any, ...], kwargs: dict[str, Any], earlier: Earlier | None = None
    ) -> Posterior:
        """Run again and again, at parameters that get better."""
        assert self.parameters != "fixed"
        by_evidence = self if self.weights == "evidence" else replace(self, weights="evidence")
        posterior = learn(
            self.parameters,
            lambda setting, earlier: by_evidence._run(root, args, kwargs, earlier, setting),
            Earlier(None, self.allocation) if earlier is None else earlier,
            root.child(2),
        )
        return posterior if self.weights == "evidence" else posterior.reweight(self.weights)

    def _run(
        self,
        root: Seed,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        earlier: Earlier | None = None,
        setting: Setting | None = None,
    ) -> Posterior:
        engine = Engine(self.precision, self.cache)
        with (
            engine_scope(engine),
            told(self.progress) as progress,
            self._crew(engine) as crew,
            self._executables.at_work(engine, crew) as executables,
            Threads(self.threads if crew is None else crew.threads, self.precision) as executor,
            Stopwatch().running() as watch,
            ExitStack() as stack,
        ):
            program = bind(self.model, args, kwargs, self.discovery.limits)
            if setting is not None:
                program = program.with_parameters(setting.values, "inputs")
            allocation = self.allocation if earlier is None else earlier.allocation
            made = provenance(replace(self, allocation=allocation), program, root)
            answer = stack.enter_context(checkpointed(self, program, root, executables.answer))
            workshop = Workshop(executor, executables, answer)

            progress.stage("discovery")
            known: dict[Hashable, PathFit] = {}
            structures: set[Hashable] = set()

            def begin(slp: StraightLineProgram, draws: SiteRows, number: int) -> tuple[Target, PathFit]:
                if executor.stopping.is_set() and not scouting.has_found():
                    raise KeyboardInterrupt
                progress.stage(f"discovery: {number + 1} paths")
                slp = slp if setting is None else setting.on(slp)
                target = make_target(slp, read_region(slp, draws, boxes=self.boxes), draws)
                if crew is not None:
                    check_shippable(target)
                guide = self._guide_for(target) if target.dim else MeanField()
                same = (problem(target), guide)
                if same not in known:
                    known[same] = self._formulate(target, guide, executables, root.child(1, number))
                    structures.add(target.structure)
                    # With more structures, not all are going to be trained.
                    if len(structures) <= _REHEARSED and known[same].flaw is None:
                        workshop.rehearse(known[same])
                first = known[same].target
                return target if target is first else as_twin(target, first), known[same]

            efforts = Efforts(self.evidence_draws, self.smc_evaluations, self.symmetry)
            iterations = self.discovery.iterations if isinstance(self.discovery, GuidedDiscovery) else 0
            scouting = Scouting(
                workshop,
                progress,
                iterations,
                allocation,
                efforts,
                several=self.starts != 1,
                by_evidence=self.weights != "elbo",
            )
            with watch.stage("discovery"), executor.attentive(scouting.has_found):
                helped = replace(program, helpers=crew.each) if isinstance(crew, Helpful) else program
                exploration = Exploration(self.discovery, helped, root.child(0), begin, scouting, self.label)
                if earlier is not None and earlier.searches:
                    exploration.again(Rating(earlier.worth))
            fitting = problems(exploration.contenders)

            progress.stage(f"initialisation: {len(fitting)} problems of {len(structures)} structures")
            with watch.stage("initialisation"):
                resumed = earlier is not None and earlier.posterior is not None
                scouting.set_aside(exploration.contenders, resumed=resumed)
                left = [one for one in fitting if one.work.start is None and not one.work.was_set_aside]
                scouting.initialise(left)
                if earlier is not None:
                    earlier.take_over(exploration.contenders)

            schedule = Schedule(allocation, as_starts(self.starts))
            with watch.stage("training"):
                if isinstance(allocation, OnlineAllocation):
                    train_online(allocation, exploration, scouting, workshop, schedule, progress)
                elif isinstance(allocation, AsynchronousHalving):
                    watch.utilisation = optimise_unsynchronised(
                        workshop, allocation, schedule, fitting, scouting.log_c, progress
                    )
                else:
                    optimise(workshop, schedule, fitting, scouting.log_c, progress)
            contenders = exploration.contenders
            fitting = problems(contenders)
            fits = [one.work for one in fitting]
            interrupted = executor.stopping.is_set()
            if interrupted:
                scouting.set_aside(contenders)
                if not any(fit.steps or fit.was_set_aside for fit in fits):
                    raise KeyboardInterrupt  # nothing to keep yet

            progress.stage("weights")
            begun = worth_weighing(fitting) if interrupted else fitting
            with watch.stage("evaluation"):
                workshop.to_the_end([o for o in begun if o.work.start is not None], lambda o: o.work.weigh())
                thorough = self.weights != "elbo" and not interrupted
                weigh(workshop, begun, contenders, efforts if thorough else None)
            # Posteriors compile for themselves, so they hold nothing of what training needed.
            weighting: Weighting = "elbo" if self.weights == "elbo" else "evidence"
            drawing = self._new_executables() if setting is None else setting.executables
            judged = judge(contenders, partial(outcome, executables=drawing), weighting)
            notes = training_notes(
                fits, [one.fitted for one in judged], interrupted=interrupted, by_elbo=self.weights == "elbo"
            )
            timings = watch.timings(paths=len(contenders), problems=len(fits), structures=len(structures))
            progress.done(timings)
            posterior = combine(
                program,
                exploration.found,
                judged,
                notes,
                log_d_min=scouting.log_d_min,
                engine=engine,
                interrupted=interrupted,
                timings=timings,
                weighting=weighting,
                flaws=[
                    *training_flaws(fits),
                    *cut_flaws(judged, root.child(3)),
                    *atom_flaws(contenders),
                ],
                sought=thorough,
                seed=root,
                made=made,
            )
            return posterior.reweight("stacking") if self.weights == "stacking" else posterior

    @cached_property
    def _executables(self) -> Executables:
        """What runs have compiled, for further runs on data of the same shapes."""
        return self._new_executables()

    def _crew(self, engine: Engine) -> AbstractContextManager[Crew | None]:
        return nullcontext() if self.executor == "threads" else self.executor.crew(engine)

    def _new_executables(self) -> Executables:
        """Shared with all runs, unless guide or optimiser are the user's: what these call may change."""
        own_guide = isinstance(self.guide, str) or type(self.guide).__module__.startswith("pathmix.")
        shared = own_guide and self.optimizer is _DEFAULT_OPTIMIZER and self.executor == "threads"
        return Executables(self.memory_limit, shared=shared)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_executables"}

    def _formulate(self, target: Target, guide: Guide, executables: Executables, seed: Seed) -> PathFit:
        """A path with its guide, and the gradient estimator that its region allows."""
        estimator: GradientKind = "truncated" if target.region.kind == "general" else "reparam"
        if not target.graphs.density.has_slope:
            estimator = "score"
        if self.gradient != "auto":
            estimator = self.gradient
        adapts = self.gradient == "auto"
        options = TrainingOptions(
            self.optimizer,
            self.particles,
            self.elbo_samples,
            self.annealing,
            adapt_gradient=adapts,
            stop_early=self.stop_early,
            at_mean=self.initial == "mean",
        )
        return PathFit(target, guide, estimator, options, executables, seed)

    def _guide_for(self, target: Target) -> Guide:
        if self.guide == "auto":
            return FullRank() if target.dim <= _MOST_FULL else MeanField()
        guide = NAMED_GUIDES[cast(GuideName, self.guide)]() if isinstance(self.guide, str) else self.guide
        if not isinstance(guide, (Guide, StructuredGuide)):
            guide = guide(target.slp)
        if not isinstance(guide, StructuredGuide):
            check_guide("guide= was called for a path and gave", guide)
            return guide
        laid_out = guide.for_layout(layout_of(target.coordinates))
        check_guide("for_layout() of the guide gave", laid_out)
        return laid_out
