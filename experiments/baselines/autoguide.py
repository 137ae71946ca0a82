"""The automatic guide of the program's own library, as something to compare with."""

from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import jax
import numpy as np

from experiments.baselines.assign import assign
from experiments.baselines.automatic import Automatic, no_discrete_site
from experiments.baselines.book import Book
from experiments.baselines.global_guide import Training, posterior_of
from experiments.baselines.known_path import KnownPath
from pathmix.checks import check_positive_int, check_positive_number
from pathmix.discovery import Discovered, Discovery, PriorDiscovery, refuse_impossible
from pathmix.engine.precision import Precision, engine_scope
from pathmix.engine.progress import Progress, told
from pathmix.errors import UnsupportedSiteError
from pathmix.frontends import numpyro as numpyro_frontend
from pathmix.frontends.recognise import bind
from pathmix.frontends.surroundings import check_surroundings
from pathmix.methods.options import check_method
from pathmix.posterior.posterior import Posterior
from pathmix.program.program import Program
from pathmix.program.seeds import Seed


@dataclass(frozen=True)
class WholeAutoGuide:
    """Fit the mean-field guide that the program's own library makes by itself.

    For a Pyro program, this is `AutoNormalMessenger`, trained with Pyro's `SVI`, `Trace_ELBO` and `Adam`: it
    keeps the program's control flow, and its gradients are biased where a continuous site decides a branch.
    For a NumPyro program, it is `AutoNormal` with NumPyro's `SVI`, which needs static support. Neither has
    discrete latent sites. Parameters of the model are kept at their initial values.

    Args:
        steps: gradient steps.
        learning_rate: of Adam.
        particles: draws per gradient estimate.
        elbo_samples: draws of the trained guide that make the posterior.
        discovery: how the first paths are found; draws of the guide find others.
        precision: "float64" or "float32".
        progress: show a progress bar in terminals and notebooks.

    >>> import numpyro, numpyro.distributions as dist
    >>> def model(y):
    ...     x = numpyro.sample("x", dist.Normal(0, 1))
    ...     numpyro.sample("y", dist.Normal(x, 1), obs=y)
    >>> posterior = WholeAutoGuide(model).run(0, 2.0)
    >>> round(float(posterior.sample(1, 1_000)["x"].mean()))
    1
    """

    model: Callable[..., Any]
    steps: int = field(default=2_000, kw_only=True)
    learning_rate: float = field(default=0.01, kw_only=True)
    particles: int = field(default=1, kw_only=True)
    elbo_samples: int = field(default=1_000, kw_only=True)
    discovery: Discovery = field(default=PriorDiscovery(1_000), kw_only=True)
    precision: Precision = field(default="float64", kw_only=True)
    progress: bool | Progress = field(default=True, kw_only=True)

    def __post_init__(self) -> None:
        check_method(self)
        for name in ("steps", "particles", "elbo_samples"):
            check_positive_int(name, getattr(self, name))
        check_positive_number("learning_rate", self.learning_rate)

    def run(self, seed: int | jax.Array, /, *args: Any, **kwargs: Any) -> Posterior:
        """Fit the model, called with the given arguments. The same seed gives the same posterior."""
        check_surroundings("WholeAutoGuide.run", (seed, args, kwargs))
        with engine_scope(self.precision), told(self.progress) as progress:
            root = Seed.of(seed)
            program = bind(self.model, args, kwargs, self.discovery.limits)
            progress.stage("discovery")
            found = self.discovery.discover(program, root.child(0), lambda *_: None)
            refuse_impossible([path.slp for path in found.paths])
            guide = _automatic(program, found)
            book = Book(program, root.child(1))
            book.enter(found)

            progress.stage("training")
            progress.budget(self.steps)
            history = guide.train(
                root.child(2),
                self.steps,
                self.particles,
                self.learning_rate,
                lambda steps, elbo: progress.advance(steps, "guide", elbo),
            )

            progress.stage("weights")
            values, log_q = guide.draw(root.child(3), self.elbo_samples)
            draws = assign(book, values, log_q)
            shares = {known: len(drawn.log_q) for known, drawn in draws.items()}
            evaluations = _shared_out(self.steps * self.particles, shares)
            log_d_min = _smallest_density(book, found, evaluations)
            training = Training(self.steps, history, evaluations, log_d_min)
            return posterior_of(
                book, found, training, draws, lambda _, values: guide.log_q(values), self.precision
            )


def _automatic(program: Program, found: Discovered) -> Automatic:
    """The library's guide for a program, if its paths allow one."""
    for path in found.paths:
        for site in path.slp.sites:
            if site.pinned is not None:
                raise no_discrete_site(site.name, str(site.source))
    if program.frontend is not numpyro_frontend:
        # Pyro is an extra, which a Pyro program has.
        return import_module("experiments.baselines.autoguide_pyro").PyroAutomatic(program)
    decided = [source for path in found.paths for source in path.slp.sources]
    if decided:
        raise UnsupportedSiteError(
            f"{decided[0]}: `{decided[0].text}` depends on a random value. NumPyro compiles models for its "
            "automatic guides, which need static support: the same sites in every run, and no decision on "
            "random values. Use SDVI or BBVI."
        )
    return import_module("experiments.baselines.autoguide_numpyro").NumPyroAutomatic(program)


def _shared_out(total: int, shares: dict[KnownPath, int]) -> dict[KnownPath, int]:
    """Evaluations of training by path: its runs are the library's, so they are told apart by draws."""
    edges = np.cumsum([0, *shares.values()]) * total // sum(shares.values())
    return dict(zip(shares, np.diff(edges).tolist(), strict=True))


def _smallest_density(book: Book, found: Discovered, evaluations: dict[KnownPath, int]) -> float:
    """The smallest finite log gamma among prior draws; the evaluations that this takes are counted."""
    smallest = np.inf
    for known, path in zip(book.paths, found.paths, strict=False):  # later paths come after these
        values = {name: array[: path.followers] for name, array in path.draws.items()}
        log_joint = known.evaluate(values, path.followers).log_joint
        smallest = np.min(log_joint, where=np.isfinite(log_joint), initial=smallest)
        evaluations[known] = evaluations.get(known, 0) + path.followers
    return float(smallest) if np.isfinite(smallest) else 0.0
