"""What is in the numbers of airline passengers beside growth: a season, something smooth, both?

Data: international airline passengers, 1949 to 1960 (Box and Jenkins 1976, series G), as logarithms of the
means of quarters, which are cheaper than months and keep the season. Around a line there is a Gaussian
process, whose kernel comes from a grammar: something smooth, a season of a year, and sums and products of
two of them. Out come the probability of each kernel and a forecast of the last two years, which the fit has
not seen.
"""

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from common import axes, picture, save, table
from numpyro import handlers

import pathmix

KINDS = ("smooth", "season", "+", "*")
HELD_OUT = 8  # quarters


def kernel(x, name="k"):
    """The covariance of a random kernel between all times."""
    probs = (0.25, 0.25, 0.25, 0.25) if name == "k" else (0.5, 0.5, 0, 0)
    kind = KINDS[int(numpyro.sample(f"{name}.kind", dist.Categorical(probs=jnp.array(probs))))]
    if kind in "+*":
        left, right = kernel(x, f"{name}.l"), kernel(x, f"{name}.r")
        return left + right if kind == "+" else left * right
    size = numpyro.sample(f"{name}.size", dist.LogNormal(-2, 1))
    distance = jnp.abs(x[:, None] - x)
    if kind == "smooth":
        length = numpyro.sample(f"{name}.length", dist.LogNormal(0, 1))
        return size * jnp.exp(-0.5 * (distance / length) ** 2)
    roughness = numpyro.sample(f"{name}.roughness", dist.LogNormal(0, 1))
    return size * jnp.exp(-2 * (jnp.sin(jnp.pi * distance) / roughness) ** 2)


def covariance(x):
    """Of the logarithms, in standard deviations; a line, whose level and slope are normal, is part of it."""
    noise = numpyro.sample("noise", dist.LogNormal(-3, 1))
    return 1 + 0.25 * x[:, None] * x + kernel(x) + (noise**2 + 1e-6) * jnp.eye(len(x))


def model(x, y):
    numpyro.sample("y", dist.MultivariateNormal(jnp.zeros(len(x)), covariance_matrix=covariance(x)), obs=y)


def series():
    """Years from the middle of the series on, and passengers of each quarter."""
    quarters = table("airline")["passengers"].reshape(-1, 3).mean(axis=1)
    return np.arange(len(quarters)) / 4 - 6, quarters


def data():
    x, passengers = series()
    return x[:-HELD_OUT], scaled(passengers)[:-HELD_OUT]


def scaled(passengers):
    """Logarithms, in standard deviations of those that are fitted."""
    known = np.log(passengers[:-HELD_OUT])
    return (np.log(passengers) - known.mean()) / known.std()


def label(path, name="k"):
    kind = KINDS[path.pinned[f"{name}.kind"]]
    return kind if kind not in "+*" else f" {kind} ".join(label(path, f"{name}.{side}") for side in "lr")


def main():
    file = picture(__file__, __doc__)
    # A density is a factorisation of a matrix: fewer steps and draws than usual.
    inference = pathmix.SDVI(
        model, label=label, allocation=pathmix.SuccessiveHalving(12_000), smc_evaluations=100_000
    )
    posterior = inference.run(0, *data())
    print(posterior, "\n")
    kernels = posterior.group(lambda path: tuple(sorted(path.label.split(" "))))  # in either order
    for group in kernels.values():
        print(f"{group.paths[0].label:16} probability {group.weight:.4f} ± {group.error:.4f}")
    save(drawn(posterior, kernels), file)


def forecast(posterior, count=400):
    """Passengers of the quarters that were held out, for draws of the posterior."""
    x, passengers = series()
    y, known, generator = scaled(passengers), slice(len(x) - HELD_OUT), np.random.default_rng(0)
    found = []
    for run in posterior.sample(1, count).runs():
        with handlers.seed(rng_seed=0), handlers.substitute(data=dict(run)):
            among = np.asarray(covariance(x), dtype=float)
        gain = np.linalg.solve(among[known, known], among[known]).T
        mean, spread = gain @ y[known], among - gain @ among[known]
        found.append(generator.multivariate_normal(mean[-HELD_OUT:], spread[-HELD_OUT:, -HELD_OUT:]))
    logs = np.log(passengers[known])
    return np.exp(logs.mean() + logs.std() * np.array(found))


def drawn(posterior, kernels):
    figure, (left, right) = axes(1, 2, size=(10, 3.8), width_ratios=[3, 2])
    x, passengers = series()
    years = 1955 + x
    low, middle, high = np.quantile(forecast(posterior), (0.05, 0.5, 0.95), axis=0)
    left.plot(years[:-HELD_OUT], passengers[:-HELD_OUT], "k.-", linewidth=0.5, label="fitted")
    left.plot(years[-HELD_OUT:], passengers[-HELD_OUT:], "o", color="tab:red", markersize=4, label="held out")
    left.fill_between(years[-HELD_OUT:], low, high, alpha=0.3, label="forecast, 90%")
    left.plot(years[-HELD_OUT:], middle, color="tab:blue", label="forecast, median")
    left.set(xlabel="year", ylabel="passengers a month (thousands)")
    left.legend(frameon=False)
    groups = list(kernels.values())
    right.barh([group.paths[0].label for group in groups], [group.weight for group in groups])
    right.invert_yaxis()
    right.set(xlabel="probability of the kernel", xscale="log", xlim=(1e-18, 1))
    return figure


if __name__ == "__main__":
    main()
