"""Draw the pictures of "Is my fit good?": python docs/pictures.py. Pages draw the others themselves."""

from pathlib import Path

import jax.numpy as jnp
import matplotlib
import numpy as np
import numpyro
import numpyro.distributions as dist

import pathmix
import pathmix.plots

matplotlib.use("Agg")
import matplotlib.pyplot as plt

FOLDER = Path(__file__).parent / "pictures"
GENERATOR = np.random.default_rng(1)
X = np.sort(GENERATOR.uniform(-1.5, 1.5, 30))
Y = 0.4 - 0.9 * X + 0.7 * X**2 + GENERATOR.normal(0, 0.3, len(X))


def curve(x, y, most=4):
    """A polynomial of random degree."""
    degree = numpyro.sample("degree", dist.Categorical(probs=jnp.ones(most + 1) / (most + 1)))
    mean = 0.0
    for power in range(degree + 1):
        mean = mean + numpyro.sample(f"w{power}", dist.Normal(0, 1)) * x**power
    noise = numpyro.sample("noise", dist.HalfNormal(1))
    numpyro.sample("y", dist.Normal(mean, noise), obs=y)


def line(x, y):
    """A polynomial whose degree is too small for the data."""
    curve(x, y, most=1)


def funnels(y):
    """Groups whose spread is hardly known: with few data, a funnel."""
    deep = numpyro.sample("deep", dist.Bernoulli(0.5))
    spread = numpyro.sample("log_spread", dist.Normal(0, 3)) if deep else 0.0
    group = numpyro.sample("group", dist.Normal(0, 1).expand([8])) * (jnp.exp(spread) if deep else 1.0)
    numpyro.sample("y", dist.Normal(group, 1.0), obs=y)


def fit(model, *args, budget=100_000, **options):
    return pathmix.SDVI(model, allocation=pathmix.SuccessiveHalving(budget=budget), **options).run(0, *args)


def pair(draw, good, bad, file, titles):
    """The same picture of a good fit, on the left, and of a bad one."""
    figure, axes = plt.subplots(1, 2, figsize=(11, 3.6), layout="constrained")
    for ax, posterior, title in zip(axes, (good, bad), titles, strict=True):
        draw(posterior, ax=ax)
        ax.set_title(title, fontsize="medium")
    figure.savefig(FOLDER / file, dpi=90)


def main():
    FOLDER.mkdir(exist_ok=True)
    good = fit(curve, X, Y)
    short = fit(curve, X, Y, budget=600)
    pair(
        pathmix.plots.elbos,
        good,
        short,
        "fit-elbos.png",
        ("flat: trained", "still rising: 120 steps for each path"),
    )
    noise = np.array([0.1, -0.2, 0.1, 0.3, -0.1, 0.0, 0.2, -0.3])
    rough = fit(funnels, noise, budget=2_000, guide="meanfield", smc_evaluations=0, evidence_draws=4_000)
    pair(pathmix.plots.khats, good, rough, "fit-khats.png", ("all below 0.5", "a funnel, with little effort"))

    def predictive(posterior, ax):
        pathmix.plots.predictive(posterior, "y", x=X, ax=ax)

    pair(
        predictive,
        good,
        fit(line, X, Y),
        "fit-predictive.png",
        ("the program can make such data", "it cannot: bent"),
    )


if __name__ == "__main__":
    main()
