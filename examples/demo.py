"""Which degree has this curve? A regression whose number of coefficients is itself random.

Run with `make demo`. Prints the posterior over degrees and draws it, with predictions, to demo.png.
"""

from pathlib import Path

import jax.numpy as jnp
import matplotlib
import numpy as np
import numpyro
import numpyro.distributions as dist

import pathmix

matplotlib.use("Agg")
import matplotlib.pyplot as plt


def model(x, y=None):
    degree = numpyro.sample("degree", dist.Categorical(probs=jnp.ones(5) / 5))
    mean = 0.0
    for power in range(degree + 1):
        mean = mean + numpyro.sample(f"w{power}", dist.Normal(0, 1)) * x**power
    noise = numpyro.sample("noise", dist.HalfNormal(1))
    numpyro.sample("y", dist.Normal(mean, noise), obs=y)


def main():
    generator = np.random.default_rng(1)
    x = np.sort(generator.uniform(-1.5, 1.5, 30))
    y = 0.4 - 0.9 * x + 0.7 * x**2 + generator.normal(0, 0.3, len(x))

    posterior = pathmix.SDVI(model).run(0, x, y)
    print(posterior)

    grid = np.linspace(-2, 2, 80)
    predicted = posterior.predict(1, 1_000, grid)["y"]
    draw(posterior, x, y, grid, predicted, Path("demo.png"))


def draw(posterior, x, y, grid, predicted, file):
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), width_ratios=[1, 2], layout="constrained")
    labels = sorted(posterior.weights)
    left.barh(labels, [posterior.weights[label] for label in labels], color="tab:blue")
    left.invert_yaxis()
    left.set(xlabel="posterior weight", xlim=(0, 1), title="Which degree?")
    mean, spread = predicted.mean(axis=0), 2 * predicted.std(axis=0)
    right.fill_between(grid, mean - spread, mean + spread, alpha=0.2, label="two standard deviations")
    right.plot(grid, mean, label="posterior predictive mean")
    right.plot(x, y, "k.", label="data")
    right.set(xlabel="x", ylabel="y", title="Predictions, averaged over degrees")
    right.legend(loc="upper center", frameon=False)
    figure.savefig(file, dpi=120)
    print(f"\nPicture: {file.resolve()}")


if __name__ == "__main__":
    main()
