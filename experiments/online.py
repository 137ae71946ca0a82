"""Online halving against the offline one, on the paper's programs: what is reached by when?

Online, a run can end after any round. Offline, the budget is part of the question: each of its points is a
run of its own, with as many likelihood evaluations, of the same paths.

python -m experiments.online [--preset quick] [--methods two_branches,ten_branches]
"""

from dataclasses import dataclass
from types import ModuleType

import numpy as np

import pathmix
from experiments import gaussian_process, mixture, ten_branches, two_branches
from experiments.report import spread
from experiments.runner import Experiment, Preset, finished, main
from pathmix.discovery import Discovered
from pathmix.discovery.base import OnPath, Rating
from pathmix.program.program import Limits, Program
from pathmix.program.seeds import Seed


@dataclass(frozen=True)
class Subject:
    """A program, and what is measured there beside the ELBO, which is shown over `scale`."""

    module: ModuleType
    title: str
    measure: str
    measure_scale: float = 1.0
    scale: float = 1.0
    log_z: float | None = None  # where it is known


SUBJECTS = {
    "two_branches": Subject(
        two_branches, "two branches", "error of weight / 0.001", 1e-3, log_z=two_branches.truth()[0]
    ),
    "ten_branches": Subject(
        ten_branches, "ten branches", "squared error of weights / 0.001", 1e-3, log_z=ten_branches.truth()[0]
    ),
    "mixture": Subject(mixture, "mixture (/ 1,000)", "expected log predictive", 1e3, scale=1e3),
    "gaussian_process": Subject(gaussian_process, "Gaussian process", "expected log predictive"),
}
METHODS = ("online", "offline", "offline, same iterations")
_TRIES, _CLOSE = 3, 0.02  # offline runs for a point, and what their evaluations may lack of what is wanted


def _settings(name, size):
    """As the experiment with this program has them, but for what a round has."""
    return {**SUBJECTS[name].module.PRESETS["full"].settings, **size}


_TINY = {"starts": 1, "final_draws": 20, "rounds": [1, 2]}  # just to see that it works
_QUICK = {
    "two_branches": {"prior_runs": 25, "budget": 100, "keep": 1, "rounds": [1, 2, 4]},
    "ten_branches": {"prior_runs": 125, "budget": 2_000, "keep": 3, "rounds": [1, 2, 4]},
    "mixture": {"prior_runs": 3, "budget": 20, "keep": 1, **_TINY},
    "gaussian_process": {"prior_runs": 3, "budget": 60, "keep": 1, **_TINY},
}
_FULL = {
    "two_branches": {"prior_runs": 25, "budget": 100, "keep": 1, "rounds": [1, 2, 4, 8, 16]},
    "ten_branches": {"prior_runs": 125, "budget": 2_000, "keep": 3, "rounds": [1, 2, 4, 8, 16]},
    "mixture": {"prior_runs": 250, "budget": 5_000, "keep": 10, "rounds": [1, 2, 4]},
    "gaussian_process": {"prior_runs": 100, "budget": 10_000, "keep": 10, "rounds": [1, 2]},
}
PRESETS = {
    "quick": Preset({name: _settings(name, size) for name, size in _QUICK.items()}, dict.fromkeys(_QUICK, 1)),
    "full": Preset(
        {name: _settings(name, size) for name, size in _FULL.items()},
        {"two_branches": 10, "ten_branches": 10, "mixture": 5, "gaussian_process": 3},
    ),
}
DIFFERENCES = (
    "it has no experiment with its online algorithm. Guides, optimisers and starts are as in the other "
    "experiments, alpha is 0.5. Prior runs and iterations are shared between rounds; offline, all prior runs "
    "come first, and they are the same ones. One of the two branches and three of the ten are kept, since "
    "nothing is halved with the paper's two and ten. Offline has as many likelihood evaluations as online, "
    "within 2% where three tries come so close, or as many iterations. ± is over seeds."
)


@dataclass(frozen=True)
class InTurns:
    """All prior runs that an online run has made after so many rounds, at once: the same paths."""

    each: pathmix.PriorDiscovery
    turns: int

    @property
    def limits(self) -> Limits:
        return self.each.limits

    def discover(self, program: Program, seed: Seed, on_path: OnPath) -> Discovered:
        expedition = self.each.begin(program, seed, on_path)
        for _ in range(self.turns - 1):
            expedition.again(Rating({}))
        return expedition.result()


def run(name, seed, settings):
    """After each number of rounds: the online run, and the offline ones beside it."""
    settings = settings[name]
    figures = {"rounds": settings["rounds"], **{method: [] for method in METHODS}}
    for rounds in settings["rounds"]:
        online = _online(name, seed, settings, rounds)
        tries = _offline(name, seed, settings, rounds, online["likelihood_evaluations"])
        found = (online, min(tries, key=lambda one: _distance(one, online)), tries[0])
        for method, point in zip(METHODS, found, strict=True):
            figures[method].append(point)
    return figures


def _online(name, seed, settings, rounds):
    """The same computation, as far as it goes, whatever the number of rounds."""
    discovery = pathmix.PriorDiscovery(settings["prior_runs"])
    allocation = pathmix.OnlineSuccessiveHalving(
        settings["budget"], settings["keep"], rounds=rounds, tolerance=None
    )
    return _reached(name, seed, settings, discovery, allocation)


def _offline(name, seed, settings, rounds, evaluations):
    """Runs whose evaluations come closer and closer to those wanted; the first has the rounds' iterations."""
    discovery = InTurns(pathmix.PriorDiscovery(settings["prior_runs"]), rounds)
    budget, tries = rounds * settings["budget"], []
    while True:
        allocation = pathmix.SuccessiveHalving(budget, settings["keep"])
        tries.append(_reached(name, seed, settings, discovery, allocation))
        missing = evaluations - tries[-1]["likelihood_evaluations"]
        if len(tries) == _TRIES or abs(missing) <= _CLOSE * evaluations:
            return tries
        budget = max(1, budget + round(missing / _evaluations_per_step(tries)))


def _evaluations_per_step(tries):
    """One for each particle; with several starts more, of which two runs tell."""
    (few, some), (more, others) = (
        (one["budget"], one["likelihood_evaluations"]) for one in (tries[0], tries[-1])
    )
    particles = tries[0]["particles"]
    return max(particles, (others - some) / (more - few)) if more != few else particles


def _reached(name, seed, settings, discovery, allocation):
    module = SUBJECTS[name].module
    inference = module.sdvi(settings, discovery, allocation)
    posterior = finished(inference.run(seed, *module.arguments()))
    return {
        "budget": allocation.budget,
        "particles": inference.particles,
        "iterations": sum(path.steps for path in posterior.paths),
        "likelihood_evaluations": posterior.likelihood_evaluations,
        "paths": len(posterior.paths),
        "elbo": posterior.elbo,
        "quality": module.quality(posterior, seed, settings),
    }


def _distance(one, other):
    return abs(one["likelihood_evaluations"] - other["likelihood_evaluations"])


def _of(cells, method, what):
    """By cell and number of rounds."""
    return np.array([[point[what] for point in cell[method]] for cell in cells], float)


def rows(results):
    table = [("program", "rounds", "paths", "likelihood evaluations, online", "offline", "ELBO, online",
              "offline", "offline, same iterations", "online - offline", "measure", "online",
              "offline")]  # fmt: skip
    for name, cells in results.measured(tuple(SUBJECTS)):
        subject = SUBJECTS[name]
        elbos = {method: _of(cells, method, "elbo") for method in METHODS}
        qualities = {method: _of(cells, method, "quality") for method in METHODS}
        evaluations = {method: _of(cells, method, "likelihood_evaluations") for method in METHODS}
        paths = _of(cells, "online", "paths")
        for place, rounds in enumerate(cells[0]["rounds"]):
            table.append((
                subject.title,
                str(rounds),
                f"{paths[:, place].mean():.0f}",
                *(f"{evaluations[method][:, place].mean():,.0f}" for method in METHODS[:2]),
                *(spread(elbos[method][:, place], 3, subject.scale) for method in METHODS),
                spread(elbos["online"][:, place] - elbos["offline"][:, place], 4, subject.scale),
                subject.measure,
                *(spread(qualities[method][:, place], 3, subject.measure_scale) for method in METHODS[:2]),
            ))  # fmt: skip
    return table


def picture(results, plt):
    """The ELBO above, what else is measured below; each point of the offline curves is a run of its own."""
    found = list(results.measured(tuple(SUBJECTS)))
    figure, axes = plt.subplots(
        2, len(found), figsize=(4.2 * len(found), 7), layout="constrained", squeeze=False, sharex="col"
    )
    for (name, cells), (above, below) in zip(found, axes.T, strict=True):
        subject = SUBJECTS[name]
        for number, method in enumerate(METHODS):
            evaluations = _of(cells, method, "likelihood_evaluations").mean(axis=0)
            style = {"color": f"C{number}", "linestyle": ("-", "-", ":")[number], "label": method}
            elbos = _of(cells, method, "elbo") / subject.scale
            if subject.log_z is None:
                _band(above, evaluations, elbos, **style)
            else:  # what is missing is small, and falls by orders of magnitude
                _band(above, evaluations, subject.log_z - elbos, **style)
            _band(below, evaluations, _of(cells, method, "quality") / subject.measure_scale, **style)
        above.set(
            title=subject.title, xscale="log", ylabel="ELBO" if subject.log_z is None else "log Z - ELBO"
        )
        below.set(xlabel="likelihood evaluations", ylabel=subject.measure)
        if subject.log_z is not None:
            above.set_yscale("log")
            below.set_yscale("log")
        for axis in (above, below):
            axis.xaxis.set_major_locator(plt.LogLocator(subs=(1, 2, 5)))  # decades alone are too few
            axis.xaxis.set_major_formatter("{x:,.0f}")
            axis.xaxis.set_minor_formatter("")
            axis.legend(frameon=False, fontsize="small")
    figure.suptitle("Means over runs; thin lines are single runs", fontsize="medium")
    return figure


def _band(axis, x, values, **style):
    """The mean, and every run as a thin line."""
    axis.plot(x, values.mean(axis=0), "o", markersize=4, **style)
    for row in values:
        axis.plot(x, row, color=style["color"], alpha=0.2, linewidth=0.8)


EXPERIMENT = Experiment(
    "online",
    "Online against offline successive halving",
    PRESETS,
    run,
    rows,
    picture,
    DIFFERENCES,
)

if __name__ == "__main__":
    main(EXPERIMENT)
