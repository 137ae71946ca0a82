"""Black-box variational inference: a distribution for every address, trained by the score function."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import jax
import numpy as np
import optax

from experiments.baselines.address_guide import AddressGuide, GuideParams, Sheet, log_normal, log_softmax
from experiments.baselines.ascent import Ascent
from experiments.baselines.book import Book
from experiments.baselines.finder import Claim, Finder, addresses_met
from experiments.baselines.global_guide import PathDraws, Training, joined, posterior_of
from experiments.baselines.initialise import PriorDraws
from experiments.baselines.known_path import KnownPath
from pathmix.checks import check_positive_int
from pathmix.discovery import Discovered, Discovery, PriorDiscovery, refuse_impossible
from pathmix.engine.precision import Precision, engine_scope
from pathmix.engine.progress import Progress, told
from pathmix.frontends.recognise import bind
from pathmix.frontends.surroundings import check_surroundings
from pathmix.methods.options import check_method, check_optimizer
from pathmix.posterior.posterior import Posterior
from pathmix.program.seeds import Seed
from pathmix.program.values import SiteValues

_FLOOR_SHARE = 0.01  # of the smallest density of a prior draw, as SDVI counts zero densities
_DRAWS_AT_ONCE = 256
_REPORT_EVERY = 100  # steps


@dataclass(frozen=True)
class BBVI:
    """Fit one guide that keeps the program's control flow: every address has its own distribution.

    This is the scheme that support decomposition is measured against. Continuous addresses have
    independent normals in unconstrained space, discrete ones a categorical for every element, whatever
    the path; all start at the prior. The gradient is that of the score function with a leave-one-out
    baseline. Draws with zero density, or none, count as a hundredth of the smallest density of a prior draw.
    Subsampled plates see the whole data.

    Args:
        steps: gradient steps.
        particles: draws of the guide for each.
        optimizer: any optax optimiser.
        cap: how many values the guide gives to discrete sites with infinitely many.
        discovery: how the first paths are found; draws of the guide find others.
        elbo_samples: draws of the trained guide that make the posterior.
        precision: "float64" or "float32".
        progress: show a progress bar in terminals and notebooks.

    >>> import numpyro, numpyro.distributions as dist
    >>> def model(y):
    ...     shift = 0.0
    ...     if numpyro.sample("shifted", dist.Bernoulli(0.5)):
    ...         shift = numpyro.sample("shift", dist.Normal(3, 1))
    ...     numpyro.sample("y", dist.Normal(shift, 1), obs=y)
    >>> posterior = BBVI(model, steps=500).run(0, 4.0)
    >>> posterior.paths[0].label
    'shifted=1'
    """

    model: Callable[..., Any]
    steps: int = field(default=10_000, kw_only=True)
    particles: int = field(default=10, kw_only=True)
    optimizer: optax.GradientTransformation = field(default=optax.adam(0.01), kw_only=True)
    cap: int = field(default=25, kw_only=True)
    discovery: Discovery = field(default=PriorDiscovery(1_000), kw_only=True)
    elbo_samples: int = field(default=1_000, kw_only=True)
    precision: Precision = field(default="float64", kw_only=True)
    progress: bool | Progress = field(default=True, kw_only=True)

    def __post_init__(self) -> None:
        check_method(self)
        for name in ("steps", "particles", "cap", "elbo_samples"):
            check_positive_int(name, getattr(self, name))
        check_optimizer(self.optimizer)

    def run(self, seed: int | jax.Array, /, *args: Any, **kwargs: Any) -> Posterior:
        """Fit the model, called with the given arguments. The same seed gives the same posterior."""
        check_surroundings("BBVI.run", (seed, args, kwargs))
        with engine_scope(self.precision), told(self.progress) as progress:
            root = Seed.of(seed)
            program = bind(self.model, args, kwargs, self.discovery.limits)
            progress.stage("discovery")
            found = self.discovery.discover(program, root.child(0), lambda *_: None)
            refuse_impossible([path.slp for path in found.paths])
            book = Book(program, root.child(1))
            book.enter(found)
            finder = Finder(book, AddressGuide(), self.cap)
            finder.register(_prior_draws(book, found))
            log_d_min, floor = _smallest_densities(book, found)
            evaluations = {k: path.followers for k, path in zip(book.paths, found.paths, strict=True)}

            progress.stage("training")
            progress.budget(self.steps)
            history = self._train(finder, root.child(2).generator(), floor, evaluations, progress)

            progress.stage("weights")
            draws = _final_draws(finder, root.child(3).generator(), self.elbo_samples)
            training = Training(self.steps, history, evaluations, log_d_min)
            log_q = partial(_log_q, finder)
            return posterior_of(book, found, training, draws, log_q, self.precision)

    def _train(
        self,
        finder: Finder,
        generator: np.random.Generator,
        floor: float,
        evaluations: dict[KnownPath, int],
        progress: Progress,
    ) -> np.ndarray:
        """The ELBO estimate of every step."""
        guide, ascent, history = finder.guide, Ascent(self.optimizer), np.zeros(self.steps)
        for step in range(self.steps):
            sheet, claims = finder.find(guide.noise(generator, self.particles), generator)
            history[step], gradient = estimate(sheet, claims, floor)
            guide.params = ascent.step(guide.params, gradient)
            for claim in claims:
                evaluations[claim.known] = evaluations.get(claim.known, 0) + len(claim.rows)
            if (step + 1) % _REPORT_EVERY == 0:
                recent = history[step + 1 - _REPORT_EVERY : step + 1]
                progress.advance(_REPORT_EVERY, "guide", float(np.mean(recent)))
        return history


def estimate(sheet: Sheet, claims: list[Claim], floor: float) -> tuple[float, GuideParams]:
    """The mean of log gamma - log q over draws of the guide, and the score-function gradient of its mean.

    An address that a draw does not meet gets no gradient from it. In the gradient, a density that is zero
    or no number counts as exp(floor), or as the smallest other one where that is smaller.
    """
    size = len(sheet.u)
    met, log_gamma = addresses_met(sheet, claims), np.zeros(size)
    for claim in claims:
        log_gamma[claim.rows] = claim.log_gamma
    log_q = sheet.log_q(met)
    usable = np.isfinite(log_gamma)
    worst = np.min(log_gamma, where=usable, initial=floor)
    worth = np.where(usable, log_gamma, worst) - log_q
    baseline = (worth.sum() - worth) / (size - 1) if size > 1 else 0.0  # of the others: no bias
    return float(np.mean(log_gamma - log_q)), sheet.score(met, (worth - baseline) / size)


def _prior_draws(book: Book, found: Discovered) -> list[PriorDraws]:
    draws = []
    for known, path in zip(book.paths, found.paths, strict=True):
        rows = min((len(values) for values in path.draws.values()), default=1)
        draws.append(PriorDraws(known, path.draws, rows, path.prior_mass * found.samples))
    return draws


def _smallest_densities(book: Book, found: Discovered) -> tuple[float, float]:
    """The smallest log gamma among prior draws, and what counts as one where there is none.

    The first is in the coordinates of the program, the second in unconstrained ones.
    """
    smallest, floor = np.inf, np.inf
    for known, path in zip(book.paths, found.paths, strict=True):
        values = {name: array[: path.followers] for name, array in path.draws.items()}
        u, log_det = known.unconstrain(values, path.followers)
        log_gamma, _ = known.density(u)
        usable = np.isfinite(log_gamma) & np.isfinite(log_det)
        smallest = np.min(log_gamma - log_det, where=usable, initial=smallest)
        floor = np.min(log_gamma, where=usable, initial=floor)
    if not np.isfinite(smallest):
        return 0.0, 0.0
    return float(smallest), float(floor + np.log(_FLOOR_SHARE))


def _final_draws(finder: Finder, generator: np.random.Generator, count: int) -> dict[KnownPath, PathDraws]:
    """Draws of the trained guide, path by path."""
    parts: dict[KnownPath, list[PathDraws]] = {}
    for start in range(0, count, _DRAWS_AT_ONCE):
        rows = min(count - start, _DRAWS_AT_ONCE)
        sheet, claims = finder.find(finder.guide.noise(generator, rows), generator)
        log_q = sheet.log_q(addresses_met(sheet, claims))
        for known, places, own, log_gamma in claims:
            values, log_det = known.constrain(sheet.u[own[:, None], places.normals])
            if known.slp.deterministics:
                values |= known.evaluate(values, len(own)).deterministics
            drawn = PathDraws(values, log_gamma - log_det, log_q[own] - log_det)
            parts.setdefault(known, []).append(drawn)
    return {known: joined(pieces) for known, pieces in parts.items()}


def _log_q(finder: Finder, known: KnownPath, values: SiteValues) -> float:
    """log q of one draw of a path, in the coordinates of the program."""
    params, places = finder.guide.params, finder.places[known]
    u, log_det = known.unconstrain({name: np.asarray(value)[None] for name, value in values.items()}, 1)
    normals = log_normal(u[0], params.loc[places.normals], params.log_scale[places.normals])
    log_probs = log_softmax(params.logits, finder.guide.number)
    chosen = [choice for _, choices in places.pinned for choice in choices]
    covered = all(
        0 <= choice < finder.guide.number[place]
        for choice, place in zip(chosen, places.categoricals, strict=True)
    )
    if not covered:
        return -np.inf
    return float(normals.sum() - log_det[0] + log_probs[places.categoricals, chosen].sum())
