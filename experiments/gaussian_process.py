"""A grammar over Gaussian-process kernels (Sec. 6.3): what structure do the airline passengers have?

python -m experiments.gaussian_process [--preset quick]
"""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import optax
from numpyro import handlers

import pathmix
from experiments import DEFAULTS, paper
from experiments.airline import HELD_OUT, series, years
from experiments.baselines import BBVI
from experiments.report import spread
from experiments.runner import Experiment, Preset, finished, main
from pathmix.methods.dcc import DCC, RandomWalk

PROBABILITIES = (0.2, 0.2, 0.2, 0.2, 0.1, 0.1)  # of SE, RQ, PER, LIN, K * K, K + K
KINDS = ("SE", "RQ", "PER", "LIN", "*", "+")
JITTER = 1e-6


def kernel(name, x):
    """The covariance of a random expression over kernels."""
    kind = KINDS[int(numpyro.sample(f"{name}.kind", dist.Categorical(probs=jnp.array(PROBABILITIES))))]
    if kind in "*+":
        left, right = kernel(f"{name}.l", x), kernel(f"{name}.r", x)
        return left * right if kind == "*" else left + right

    def hyperparameter(what):
        return numpyro.sample(f"{name}.{kind}.{what}", dist.InverseGamma(2.0, 1.0))

    distance = jnp.abs(x[:, None] - x)
    if kind == "SE":
        return jnp.exp(-0.5 * (distance / hyperparameter("lengthscale")) ** 2)
    if kind == "RQ":
        scaled = (distance / hyperparameter("lengthscale")) ** 2
        mixture = hyperparameter("scale_mixture")
        return (1 + 0.5 * scaled / mixture) ** -mixture
    if kind == "PER":
        wave = jnp.sin(jnp.pi * distance / hyperparameter("period"))
        return jnp.exp(-2 * (wave / hyperparameter("lengthscale")) ** 2)
    return x[:, None] * x + hyperparameter("bias")


def process(x):
    return kernel("k", x), numpyro.sample("noise", dist.HalfNormal(1.0))


def model(x, y):
    covariance, noise = process(x)
    covariance = covariance + (noise**2 + JITTER) * jnp.eye(len(x))
    numpyro.sample("y", dist.MultivariateNormal(jnp.zeros(len(x)), covariance_matrix=covariance), obs=y)


def expression(pinned, name="k"):
    """How a path's kernel is written: `(PER * LIN) + RQ`."""
    kind = KINDS[int(pinned[f"{name}.kind"])]
    if kind not in "*+":
        return kind
    sides = (expression(pinned, f"{name}.{side}") for side in "lr")
    return f" {kind} ".join(f"({side})" if " " in side else side for side in sides)


def in_any_order(pinned, name="k"):
    """Equal for kernels that differ in the order of operands only."""
    kind = KINDS[int(pinned[f"{name}.kind"])]
    return (kind, *sorted(in_any_order(pinned, f"{name}.{side}") for side in "lr" if kind in "*+"))


SOUGHT = {
    "(LIN * PER) + RQ": ("+", ("*", ("LIN",), ("PER",)), ("RQ",)),
    "(RQ + PER) * SE": ("*", ("+", ("PER",), ("RQ",)), ("SE",)),
}
GUIDED = "SDVI (guided)"
NEIGHBOURS = pathmix.Guided(200, rounds=4, round_paths=32, iterations=400)
METHODS = ("SDVI", GUIDED, DEFAULTS, "BBVI", "DCC")
_PAPER = {
    "SDVI": ("2.05 ± 3.30", "34.53 ± 21.42"),
    GUIDED: ("", ""),
    DEFAULTS: ("", ""),
    "BBVI": ("-18.82 ± 1.20", "-48.48 ± 0.33"),
    "DCC": ("-58.92 ± 32.47", "none"),
}
_COMMON = {
    "final_draws": 100, "starts": 3, "learning_rate": 0.03, "keep": 10, "bbvi_particles": 10,
    "bbvi_learning_rate": 0.02,
}  # fmt: skip
_QUICK = {
    "prior_runs": 300, "budget": 30_000, "baseline_prior_runs": 50, "bbvi_steps": 300, "dcc_iterations": 50,
}  # fmt: skip
_FULL = {
    "prior_runs": 3_000, "budget": 300_000, "baseline_prior_runs": 1_000, "bbvi_steps": 2_000,
    "dcc_iterations": 200,
}  # fmt: skip
PRESETS = {
    "quick": Preset({**_COMMON, **_QUICK}, {"SDVI": 1, "BBVI": 1, "DCC": 1}),
    "full": Preset({**_COMMON, **_FULL}, {"SDVI": 5, GUIDED: 5, DEFAULTS: 3, "BBVI": 5, "DCC": 5}),
}
DIFFERENCES = (
    "SDVI has 3,000 prior runs and 300,000 iterations with 3 starts and a learning rate of 0.03, instead of "
    "1,000, 1,000,000, one and 0.005. BBVI has 2,000 steps at 0.02 instead of 100,000 at 0.005, DCC 200 "
    "iterations instead of 1,000. SDVI (guided) has 200 prior runs, from which `Guided` goes on for four "
    "rounds of 32 paths, with 400 iterations for each: the kernels that it finds beyond those of prior runs "
    "have more evidence, and predict the months held out worse. SDVI (defaults) is `SDVI(model)`."
)


def run(method, seed, settings):
    posterior = finished(inference(method, settings).run(seed, *arguments()))
    held_out = _held_out(posterior, seed, settings)
    mean, deviation = predictions(posterior, 1_000 + seed, settings["final_draws"])
    return {
        "elbo": None if np.isnan(posterior.elbo) else posterior.elbo,
        "expected_log_predictive": float(held_out.mean()),
        "log_predictive": float(np.logaddexp.reduce(held_out) - np.log(len(held_out))),
        "paths": len(posterior.paths),
        "best": [
            {"kernel": expression(path.pinned), "weight": path.weight, "log_evidence": path.log_evidence}
            for path in posterior.paths[:8]
        ],
        "sought": {
            name: [path.elbo for path in posterior.paths if in_any_order(path.pinned) == kernel]
            for name, kernel in SOUGHT.items()
        },
        "likelihood_evaluations": posterior.likelihood_evaluations,
        "verdict": str(posterior.verdict),
        "predicted_mean": mean.round(4).tolist(),
        "predicted_deviation": deviation.round(4).tolist(),
    }


def arguments():
    """The training months."""
    x, y = series()
    return x[:-HELD_OUT], y[:-HELD_OUT]


def quality(posterior, seed, settings):
    """The expected log-likelihood of the months held out."""
    return float(_held_out(posterior, seed, settings).mean())


def _held_out(posterior, seed, settings):
    """The log-likelihood of the months held out given the others, for each draw of the posterior."""
    all_months = posterior.log_likelihood(1_000 + seed, settings["final_draws"], *series())
    return all_months - posterior.log_likelihood(1_000 + seed, settings["final_draws"], *arguments())


def predictions(posterior, seed, count):
    """Mean and deviation of every month, given the training months, over draws of the posterior."""
    x, y = series()
    known = slice(len(x) - HELD_OUT)
    draws = posterior.sample(seed, count)
    means, variances = [], []
    with jax.enable_x64(True):
        for row in range(count):
            values = {site: draws[site][row] for site in posterior.paths[draws.path[row]].addresses}
            values = {site: jnp.asarray(value) for site, value in values.items()}
            covariance, noise = handlers.seed(handlers.substitute(process, values), 0)(jnp.asarray(x))
            covariance, variance = np.asarray(covariance), float(noise) ** 2 + JITTER
            among = covariance[known, known] + variance * np.eye(len(y[known]))
            gain = np.linalg.solve(among, covariance[known]).T
            means.append(gain @ y[known])
            variances.append(np.diag(covariance) - np.sum(gain * covariance[:, known], axis=1) + variance)
    mean = np.mean(means, axis=0)
    return mean, np.sqrt(np.mean(variances, axis=0) + np.var(means, axis=0))


def sdvi(settings, discovery, allocation):
    return paper.sdvi(model, settings, discovery, allocation, particles=1, starts=settings["starts"])


def inference(method, settings):
    if method == DEFAULTS:
        return pathmix.SDVI(model)
    if method in ("SDVI", GUIDED):
        discovery = pathmix.PriorDiscovery(settings["prior_runs"])
        if method == GUIDED:
            discovery = NEIGHBOURS
        allocation = pathmix.SuccessiveHalving(budget=settings["budget"], keep=settings["keep"])
        return sdvi(settings, discovery, allocation)
    discovery = pathmix.PriorDiscovery(settings["baseline_prior_runs"])
    if method == "DCC":
        return DCC(model, kernel=RandomWalk(), discovery=discovery, iterations=settings["dcc_iterations"])
    return BBVI(
        model,
        discovery=discovery,
        steps=settings["bbvi_steps"],
        particles=settings["bbvi_particles"],
        optimizer=optax.adam(settings["bbvi_learning_rate"]),
        elbo_samples=settings["final_draws"],
    )


def rows(results):
    table = [("method", "expected log predictive", "paper", "log predictive", "ELBO", "paper",
              "likelihood evaluations", "best kernel of each run")]  # fmt: skip
    for method, cells in results.measured(METHODS):
        predictive, elbo = _PAPER[method]
        table.append((
            method,
            spread([cell["expected_log_predictive"] for cell in cells]), predictive,
            spread([cell["log_predictive"] for cell in cells]),
            spread([cell["elbo"] for cell in cells]), elbo,
            f"{np.mean([cell['likelihood_evaluations'] for cell in cells]):,.0f}",
            "; ".join(cell["best"][0]["kernel"] for cell in cells),
        ))  # fmt: skip
    return table


def picture(results, plt):
    shown = [method for method, _ in results.measured(METHODS)]
    figure, axes = plt.subplots(
        len(shown), 1, figsize=(9, 3 * len(shown)), layout="constrained", squeeze=False
    )
    _, y = series()
    time = years()
    for axis, method in zip(axes[:, 0], shown, strict=True):
        ranked = sorted(results.of(method), key=lambda cell: cell["expected_log_predictive"])
        cell = ranked[len(ranked) // 2]
        mean, deviation = np.array(cell["predicted_mean"]), np.array(cell["predicted_deviation"])
        axis.fill_between(
            time, mean - 2 * deviation, mean + 2 * deviation, alpha=0.25, label="two deviations"
        )
        axis.plot(time, mean, label="posterior mean")
        axis.plot(time[:-HELD_OUT], y[:-HELD_OUT], "k.", markersize=4, label="training months")
        axis.plot(time[-HELD_OUT:], y[-HELD_OUT:], "r.", markersize=5, label="held out")
        axis.set(ylabel="passengers, scaled", title=f"{method}: run with the median expected log predictive")
        axis.legend(frameon=False, loc="upper left", fontsize=8)
    return figure


EXPERIMENT = Experiment(
    "gaussian_process",
    "Gaussian-process kernels, airline passengers",
    PRESETS,
    run,
    rows,
    picture,
    DIFFERENCES,
)

if __name__ == "__main__":
    main(EXPERIMENT)
