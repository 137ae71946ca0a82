"""Ten branches, conjugate (Sec. 6.1): path weights and ELBOs against likelihood evaluations.

python -m experiments.ten_branches [--preset quick]
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
from pathmix.methods.dcc import DCC, RandomWalk

OBSERVED = 2.0
BRANCHES = 10


def model(y):
    u = pyro.sample("u", dist.Normal(0, 5))
    z = 9
    for k in range(9):
        if u <= -4 + k:
            z = k
            break
    x = pyro.sample("x", dist.Normal(z, 1))
    pyro.sample("y", dist.Normal(x, 1), obs=y)


def truth():
    """log Z, and the posterior weight of each z: y given z is normal with variance 1 + 1."""
    below = [0.0, *(NormalDist(0, 5).cdf(edge) for edge in range(-4, 5)), 1.0]
    joint = np.diff(below) * [NormalDist(z, 2**0.5).pdf(OBSERVED) for z in range(BRANCHES)]
    return float(np.log(joint.sum())), joint / joint.sum()


METHODS = ("SDVI", "SDVI (paper)", "BBVI", "AutoGuide", "DCC")
_PAPER = {  # it gives pictures, and says this of them
    "SDVI (paper)": "accurate weights, largest ELBO",
    "BBVI": "tends to a single path; ELBO varies widely",
    "AutoGuide": "u close to the prior, after 100,000 steps",
    "DCC": "squared error similar to SDVI's",
}
_COMMON = {
    "prior_runs": 1_000, "final_draws": 1_000, "learning_rate": 0.01,
    "particles": {"SDVI": 5, "SDVI (paper)": 5, "BBVI": 10, "AutoGuide": 1},
}  # fmt: skip
# Steps, or visits of DCC, of whole runs.
_QUICK = {
    "SDVI": [100, 1_000, 10_000],
    "SDVI (paper)": [100, 1_000, 10_000],
    "BBVI": [100, 1_000],
    "AutoGuide": [100, 1_000],
    "DCC": [10, 50],
}
_FULL = {
    "SDVI": [100, 1_000, 3_000, 10_000, 30_000, 100_000],
    "SDVI (paper)": [100, 1_000, 3_000, 10_000, 30_000, 100_000],
    "BBVI": [100, 300, 1_000, 3_000, 10_000],
    "AutoGuide": [100, 1_000, 10_000],
    "DCC": [10, 20, 50, 100, 200, 500],
}
PRESETS = {
    "quick": Preset({**_COMMON, "budgets": _QUICK}, dict.fromkeys(METHODS, 2)),
    "full": Preset({**_COMMON, "budgets": _FULL}, dict.fromkeys(METHODS, 10)),
}
DIFFERENCES = (
    "AutoGuide ends at a tenth of its 100,000 steps, because it runs Pyro eagerly, at 3 ms a step. SDVI "
    "(paper) is its method; SDVI has guides on the intervals themselves."
)


def run(method, seed, settings):
    """One run for each budget. Acceptances are lists by z, None where the path was not found."""
    budgets = settings["budgets"][method]
    figures = {"budgets": budgets, "likelihood_evaluations": [], "squared_errors": [], "elbos": [],
               "acceptances": [], "weights": []}  # fmt: skip
    for budget in budgets:
        posterior = finished(_inference(method, budget, settings).run(seed, *arguments()))
        acceptances = [None] * BRANCHES
        for path in posterior.paths:
            acceptances[_branch(path)] = path.acceptance
        figures["likelihood_evaluations"].append(posterior.likelihood_evaluations)
        figures["squared_errors"].append(quality(posterior, seed, settings))
        figures["elbos"].append(None if np.isnan(posterior.elbo) else posterior.elbo)
        figures["acceptances"].append(acceptances)
        figures["weights"].append(_weights(posterior).tolist())
    return figures


def arguments():
    return (torch.tensor(OBSERVED),)


def quality(posterior, _seed, _settings):
    """The squared error of the weights."""
    return float(np.sum((_weights(posterior) - truth()[1]) ** 2))


def _weights(posterior):
    weights = np.zeros(BRANCHES)
    for path in posterior.paths:
        weights[_branch(path)] = path.weight
    return weights


def _branch(path):
    """The loop asks about one edge after another, and z is how many of them u is above."""
    return sum(not decision.value for decision in path.path.decisions)


def sdvi(settings, discovery, allocation, method="SDVI"):
    # The paper has normal guides that are cut off by rejection, and the surrogate density.
    options = {"boxes": False, "gradient": "score"} if method == "SDVI (paper)" else {}
    return paper.sdvi(
        model, settings, discovery, allocation, particles=settings["particles"][method], **options
    )


def _inference(method, budget, settings):
    discovery = pathmix.PriorDiscovery(settings["prior_runs"])
    if method == "DCC":
        return DCC(model, kernel=RandomWalk(), discovery=discovery, iterations=budget)
    if method in ("SDVI", "SDVI (paper)"):
        return sdvi(settings, discovery, pathmix.SuccessiveHalving(budget=budget, keep=BRANCHES), method)
    common = {
        "discovery": discovery,
        "elbo_samples": settings["final_draws"],
        "particles": settings["particles"][method],
    }
    if method == "AutoGuide":
        return WholeAutoGuide(model, steps=budget, learning_rate=settings["learning_rate"], **common)
    return BBVI(model, steps=budget, optimizer=optax.adam(settings["learning_rate"]), **common)


def rows(results):
    log_z, _ = truth()
    table = [("method", "largest budget", "likelihood evaluations", "squared error of weights / 0.001",
              "ELBO", "log Z", "paper")]  # fmt: skip
    for method, cells in results.measured(METHODS):
        unit = "visits" if method == "DCC" else "steps"
        table.append((
            method,
            f"{cells[0]['budgets'][-1]:,} {unit}",
            f"{np.mean([cell['likelihood_evaluations'][-1] for cell in cells]):,.0f}",
            spread([cell["squared_errors"][-1] for cell in cells], 3, scale=0.001),
            spread([cell["elbos"][-1] for cell in cells], 3), f"{log_z:.3f}",
            _PAPER.get(method, ""),
        ))  # fmt: skip
    return table


def picture(results, plt):
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(14, 4.2), layout="constrained")
    for method, cells in results.measured(METHODS):
        number = METHODS.index(method)
        evaluations = np.mean([cell["likelihood_evaluations"] for cell in cells], axis=0)
        # On a logarithmic axis a band of mean ± deviation can reach below zero, so it is one of logarithms.
        logs = np.log([cell["squared_errors"] for cell in cells])
        _band(left, evaluations, logs, np.exp, color=f"C{number}", label=method)
        if cells[0]["elbos"][0] is not None:
            elbos = np.array([cell["elbos"] for cell in cells])
            _band(middle, evaluations, elbos, np.asarray, color=f"C{number}", label=method)
    left.set(xscale="log", yscale="log", xlabel="likelihood evaluations", ylabel="squared error",
             title="Path weights: geometric mean and deviation")  # fmt: skip
    middle.axhline(truth()[0], color="black", linewidth=1, linestyle="--", label="analytic log Z")
    middle.set(xscale="log", xlabel="likelihood evaluations", ylabel="ELBO",
               title="ELBO: mean and deviation")  # fmt: skip
    for axis in (left, middle):
        axis.legend(frameon=False, fontsize="small")
        axis.xaxis.set_minor_formatter("")  # on short axes, minor ticks are labelled too, and overlap
    _draw_acceptances(right, results, plt.get_cmap("viridis"))
    return figure


def _band(axis, x, values, shown, *, color, label):
    mean, deviation = values.mean(axis=0), values.std(axis=0, ddof=min(len(values) - 1, 1))
    axis.plot(x, shown(mean), "o-", markersize=3, color=color, label=label)
    axis.fill_between(
        x, shown(mean - deviation), shown(mean + deviation), color=color, alpha=0.2, linewidth=0
    )


def _draw_acceptances(axis, results, colors):
    cells = results.of("SDVI (paper)")
    if cells:
        found = np.nanmean(np.array([cell["acceptances"] for cell in cells], float), axis=0)
        for z in range(BRANCHES):
            axis.plot(cells[0]["budgets"], found[:, z], "o-", markersize=3, color=colors(z / BRANCHES),
                      label=f"z = {z}")  # fmt: skip
        axis.legend(frameon=False, fontsize="small", ncols=2, loc="lower right")
    axis.set(xscale="log", xlabel="budget T", ylabel="share of guide's draws inside the path",
             title="SDVI (paper): acceptance by path, mean")  # fmt: skip


EXPERIMENT = Experiment(
    "ten_branches", "Ten branches with normal distributions", PRESETS, run, rows, picture, DIFFERENCES
)

if __name__ == "__main__":
    main(EXPERIMENT)
