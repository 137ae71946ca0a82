"""The programs that `scaling`, `growth` and `peers` measure, each with one size that says how large it is.

Programs that have a known number of paths take the default budget, and eight prior runs for each path: of
1,024, a third of one is missed on average.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import optax

import pathmix

RUNS_PER_PATH = 8
ROWS = 100
GROWTH_BUDGET = 10_000  # iterations of the workloads that have one path


@dataclass(frozen=True)
class Job:
    """What is timed is `inference.run(0, *args)`."""

    inference: pathmix.SDVI
    args: tuple[Any, ...]


def selection(predictors):
    """Every subset of the predictors is a path; subsets of one size have one structure."""
    return Job(_all_paths(_selection, 2**predictors), _rows(ROWS, predictors))


def _selection(x, y):
    mean = jnp.zeros(len(y))
    for j in range(x.shape[1]):
        if numpyro.sample(f"chosen_{j}", dist.Bernoulli(0.5)):
            mean = mean + numpyro.sample(f"weight_{j}", dist.Normal(0.0, 1.0)) * x[:, j]
    noise = numpyro.sample("noise", dist.HalfNormal(1.0))
    numpyro.sample("y", dist.Normal(mean, noise), obs=y)


def one_structure(paths):
    """Paths that differ in a constant only."""

    def model(y):
        k = numpyro.sample("k", dist.Categorical(probs=jnp.full(paths, 1 / paths)))
        z = numpyro.sample("z", dist.Normal(int(k), 1.0))
        numpyro.sample("y", dist.Normal(z, 1.0), obs=y)

    return Job(_all_paths(model, paths), (paths / 2,))


LINKS = (jnp.sin, jnp.cos, jnp.tanh, jnp.arctan)


def many_structures(paths):
    """Every path is a chain of other functions, and a structure of its own."""

    def model(y):
        k = int(numpyro.sample("k", dist.Categorical(probs=jnp.full(paths, 1 / paths))))
        z = numpyro.sample("z", dist.Normal(0.0, 1.0))
        numpyro.sample("y", dist.Normal(chain(k, z, LINKS), 1.0), obs=y)

    return Job(_all_paths(model, paths), (0.5,))


def structures_and_variants(structures, variants):
    """A model: each chain of functions is a structure, which has a path for each number it starts from."""

    def model(y):
        k = int(numpyro.sample("structure", dist.Categorical(probs=jnp.full(structures, 1 / structures))))
        start = int(numpyro.sample("variant", dist.Categorical(probs=jnp.full(variants, 1 / variants))))
        z = numpyro.sample("z", dist.Normal(float(start), 1.0))
        numpyro.sample("y", dist.Normal(chain(k, z, LINKS), 1.0), obs=y)

    return model


def chain(number, value, links):
    """Links applied one after the other; no two numbers give the same ones.

    The number is written in bijective numeration, whose digits have no zero that could be left out.
    """
    while number:
        number, digit = divmod(number - 1, len(links))
        value = links[digit](value)
    return value


def discrete(coins):
    """A Pyro program that has discrete sites only: every outcome of the coins is a path."""
    import torch

    from benchmarks.pyro_programs import coins as model

    return Job(_all_paths(model, 2**coins), (coins, torch.tensor(0.3)))


def gaussian_process(prior_runs):
    """The experiment's kernel grammar; with 300 prior runs, its quick preset."""
    from experiments import gaussian_process as experiment

    return Job(_experiment(experiment, prior_runs), _training_months())


def published_grammar(iterations):
    """The same grammar with the settings of the paper, which its code and UPIX have."""
    from experiments.gaussian_process import model

    inference = pathmix.SDVI(
        model,
        discovery=pathmix.PriorDiscovery(1_000),
        allocation=pathmix.SuccessiveHalving(budget=iterations, keep=10),
        optimizer=optax.adam(0.005),
        particles=1,
        elbo_samples=100,
        progress=False,
    )
    return Job(inference, _training_months())


def _training_months():
    from experiments import airline

    x, y = airline.series()
    return x[: -airline.HELD_OUT], y[: -airline.HELD_OUT]


def mixture(prior_runs):
    """The experiment's mixture in 100 dimensions, in Pyro; with 1,000 prior runs, its quick preset."""
    import torch

    from experiments import mixture as experiment

    return Job(_experiment(experiment, prior_runs), (torch.as_tensor(experiment.data()[0]),))


def _experiment(experiment, prior_runs):
    """SDVI as in the quick preset, with more or fewer prior runs, and iterations in proportion."""
    settings = experiment.PRESETS["quick"].settings
    budget = settings["budget"] * prior_runs // settings["prior_runs"]
    return experiment.inference("SDVI", {**settings, "prior_runs": prior_runs, "budget": budget})


def rows(count):
    """One path, ten coefficients."""
    return Job(_one_path(), _rows(count, 10))


def coordinates(count):
    """One path, that many coefficients."""
    return Job(_one_path(), _rows(ROWS, count))


def _regression(x, y):
    weights = numpyro.sample("weights", dist.Normal(0.0, 1.0).expand([x.shape[1]]).to_event(1))
    numpyro.sample("y", dist.Normal(x @ weights, 1.0), obs=y)


def _one_path():
    allocation = pathmix.SuccessiveHalving(budget=GROWTH_BUDGET)
    return pathmix.SDVI(_regression, allocation=allocation, progress=False)


def _all_paths(model, paths):
    discovery = pathmix.PriorDiscovery(RUNS_PER_PATH * paths, max_paths=paths)
    return pathmix.SDVI(model, discovery=discovery, progress=False)


def _rows(count, predictors):
    """Every other predictor matters."""
    generator = np.random.default_rng(0)
    x = generator.normal(size=(count, predictors))
    weights = np.where(np.arange(predictors) % 2, 0.0, 1.0)
    return x, x @ weights + 0.5 * generator.normal(size=count)


WORKLOADS: dict[str, Callable[[int], Job]] = {
    "selection": selection,
    "one-structure": one_structure,
    "many-structures": many_structures,
    "discrete": discrete,
    "gaussian-process": gaussian_process,
    "published-grammar": published_grammar,
    "mixture": mixture,
    "rows": rows,
    "coordinates": coordinates,
}
