"""Two branches, conjugate (the paper's first figure): what does each guide make of the branching variable?

python -m experiments.two_branches [--preset quick]
"""

from statistics import NormalDist

import numpy as np
import optax
import pyro
import pyro.distributions as dist
import torch

import pathmix
from experiments import paper
from experiments.baselines import BBVI, WholeAutoGuide
from experiments.report import spread
from experiments.runner import Experiment, Preset, finished, main

OBSERVED = 2.0
EDGES = np.linspace(-4, 4, 41)  # of the histogram; the branches meet at one of them


def model(y):
    x = pyro.sample("x", dist.Normal(0, 1))
    if x < 0:
        z = pyro.sample("z1", dist.Normal(-3, 1))
    else:
        z = pyro.sample("z2", dist.Normal(3, 1))
    pyro.sample("y", dist.Normal(z, 2), obs=y)


def truth():
    """log Z, and the posterior weight of x >= 0: y is normal with variance 1 + 4 on either branch."""
    low, high = (0.5 * NormalDist(mean, 5**0.5).pdf(OBSERVED) for mean in (-3, 3))
    return float(np.log(low + high)), high / (low + high)


def true_density(x):
    """Two half-normals: nothing but its sign ties x to the data."""
    _, weight = truth()
    return 2 * np.where(x < 0, 1 - weight, weight) * np.exp(-0.5 * x**2) / np.sqrt(2 * np.pi)


METHODS = ("SDVI", "BBVI", "AutoGuide")
_PAPER = {  # it gives a picture, and says this of it
    "SDVI": "accurate",
    "BBVI": "unsatisfactory: a limited family",
    "AutoGuide": "a picture only",
}
_SETTINGS = {
    "prior_runs": 200, "steps": 2_000, "particles": 10, "final_draws": 1_000, "learning_rate": 0.01,
    "histogram_draws": 10_000,
}  # fmt: skip
PRESETS = {
    "quick": Preset(_SETTINGS, dict.fromkeys(METHODS, 5)),
    "full": Preset(_SETTINGS, dict.fromkeys(METHODS, 100)),
}
DIFFERENCES = "the same. It does not say how many particles SDVI and BBVI had; here it is 10."


def run(method, seed, settings):
    posterior = finished(_inference(method, settings).run(seed, *arguments()))
    weight = _weight(posterior)
    drawn = posterior.sample(1_000 + seed, settings["histogram_draws"])["x"]
    counts, _ = np.histogram(drawn, EDGES)
    return {
        "weight": weight,
        "weight_error": quality(posterior, seed, settings),
        "elbo": posterior.elbo,
        "likelihood_evaluations": posterior.likelihood_evaluations,
        "density": (counts / len(drawn) / np.diff(EDGES)).tolist(),
    }


def arguments():
    return (torch.tensor(OBSERVED),)


def quality(posterior, _seed, _settings):
    """How far the weight is from the true one."""
    return abs(_weight(posterior) - truth()[1])


def _weight(posterior):
    """Of x >= 0."""
    return sum(path.weight for path in posterior.paths if "z2" in path.addresses)


def sdvi(settings, discovery, allocation):
    return paper.sdvi(model, settings, discovery, allocation, particles=settings["particles"])


def _inference(method, settings):
    discovery = pathmix.PriorDiscovery(settings["prior_runs"])
    if method == "SDVI":
        return sdvi(settings, discovery, pathmix.SuccessiveHalving(budget=settings["steps"], keep=2))
    common = {"discovery": discovery, "elbo_samples": settings["final_draws"]}
    if method == "AutoGuide":  # with one particle, as in the paper
        return WholeAutoGuide(
            model, steps=settings["steps"], learning_rate=settings["learning_rate"], particles=1, **common
        )
    optimizer = optax.adam(settings["learning_rate"])
    return BBVI(
        model, steps=settings["steps"], optimizer=optimizer, particles=settings["particles"], **common
    )


def rows(results):
    log_z, weight = truth()
    table = [("method", "weight of x >= 0", "its absolute error", "ELBO", "log Z", "likelihood evaluations",
              "paper")]  # fmt: skip
    for method, cells in results.measured(METHODS):
        table.append((
            method,
            spread([cell["weight"] for cell in cells], 4),
            spread([cell["weight_error"] for cell in cells], 4),
            spread([cell["elbo"] for cell in cells], 3), f"{log_z:.3f}",
            f"{np.mean([cell['likelihood_evaluations'] for cell in cells]):,.0f}",
            _PAPER[method],
        ))  # fmt: skip
    table.append(("truth", f"{weight:.4f}", "", "", f"{log_z:.3f}", "", ""))
    return table


def picture(results, plt):
    figure, axes = plt.subplots(
        1, len(METHODS), figsize=(11, 3.6), sharex=True, sharey=True, layout="constrained"
    )
    x = np.linspace(EDGES[0], EDGES[-1], 2_001)
    for number, (axis, method) in enumerate(zip(axes, METHODS, strict=True)):
        cells = results.of(method)
        if cells:
            densities = np.array([cell["density"] for cell in cells])
            mean, deviation = densities.mean(axis=0), densities.std(axis=0, ddof=min(len(cells) - 1, 1))
            axis.stairs(mean + deviation, EDGES, baseline=mean - deviation, fill=True, color=f"C{number}",
                        alpha=0.3, label="± 1 sd over runs")  # fmt: skip
            axis.stairs(mean, EDGES, color=f"C{number}", linewidth=1.8, label="mean over runs")
        axis.plot(x, true_density(x), color="black", linewidth=1, linestyle="--", label="true posterior")
        axis.set(title=f"{method}, {len(cells)} runs", xlabel="x", ylim=(0, None))
        axis.legend(frameon=False, loc="upper left", fontsize="small")
    axes[0].set_ylabel("posterior density of x")
    return figure


EXPERIMENT = Experiment(
    "two_branches", "Two branches with normal distributions", PRESETS, run, rows, picture, DIFFERENCES
)

if __name__ == "__main__":
    main(EXPERIMENT)
