"""Whether stated errors hold, and whether posteriors are calibrated.

    python -m trust.calibration [--seeds 200] [--simulations 1000] [--only coverage sbc] [--processes 2]

Coverage: the same data, many seeds; how often the truth lies within one and two stated errors of a weight
and of the log evidence. Simulation-based calibration (Talts et al. 2018): data drawn from the program itself;
the rank of the true path, number of latents, log-joint and a shared site among posterior draws is uniform,
and the largest distance of its distribution function from the diagonal stays inside a simultaneous band
(Kolmogorov-Smirnov). With weights that are wrong by a factor of three for one path it leaves it.
"""

import argparse
import math
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from scipy import stats

import pathmix
from trust.suite import CASES

PROGRAMS = ("polynomial (numpyro)", "exchangeable (numpyro)", "two_modes (numpyro)")
OPTIONS = {"allocation": pathmix.SuccessiveHalving(budget=4_000), "progress": False}
DRAWS = 63  # of a posterior, among which a truth has a rank
RISK = 0.01  # of leaving the band by chance, for all statistics together


def gaps(title, seeds):
    """Of the log evidence and of a weight, in stated errors, one row a seed."""
    case = CASES[title]
    inference = pathmix.SDVI(case.model, **OPTIONS)
    found = []
    for seed in seeds:
        posterior = inference.run(seed, *case.args)
        # The errors of weights go together, so one path stands for all.
        path = max(posterior.paths, key=lambda path: posterior.weight_errors[path.label])
        weight = (path.weight - case.weights[case.key(path)]) / posterior.weight_errors[path.label]
        evidence = (posterior.log_evidence - case.log_evidence) / posterior.log_evidence_error
        found.append((weight, evidence))
    return np.array(found)


def simulated(y):
    """A line or a level, with a noise that both have; four observations."""
    scale = numpyro.sample("scale", dist.HalfNormal(1.0))
    level = numpyro.sample("level", dist.Normal(0, 1))
    if numpyro.sample("slanted", dist.Bernoulli(0.4)):
        mean = level + numpyro.sample("slope", dist.Normal(0, 1)) * jnp.arange(-1.5, 2)
    else:
        mean = jnp.full(4, level)
    numpyro.sample("y", dist.Normal(mean, 0.2 + scale), obs=y)


def from_program(generator):
    """A run of it: the latent values, and data."""
    values = {
        "scale": abs(generator.normal()),
        "level": generator.normal(),
        "slanted": generator.random() < 0.4,
    }
    if values["slanted"]:
        values["slope"] = generator.normal()
    mean = values["level"] + values.get("slope", 0.0) * np.arange(-1.5, 2)
    return values, generator.normal(mean, 0.2 + values["scale"])


def log_joint(values, y):
    mean = values["level"] + values.get("slope", 0.0) * np.arange(-1.5, 2)
    found = stats.halfnorm.logpdf(values["scale"]) + stats.norm.logpdf(values["level"])
    if "slope" in values:
        found += stats.norm.logpdf(values["slope"])
    return found + stats.norm.logpdf(y, mean, 0.2 + values["scale"]).sum()


def statistics(values, y):
    """What is ranked: the path, the number of latents, the log-joint, and a site that all paths have."""
    slanted = bool(values.get("slanted"))
    return float(slanted), 3.0 + slanted, log_joint(values, y), float(values["level"])


NAMES = ("path", "number of latents", "log-joint", "level")


def ranks(numbers):
    """Of the truth, ties broken at random: a row for each simulation, with weights as they are and spoilt."""
    inference = pathmix.SDVI(simulated, **OPTIONS)
    found = []
    for number in numbers:
        generator = np.random.default_rng([7, number])
        values, y = from_program(generator)
        truth = statistics(values, y)
        posterior = inference.run(number, y)
        weights = np.array([path.weight for path in posterior.paths])
        wrong = weights * np.array([3 if path.pinned["slanted"] else 1 for path in posterior.paths])
        drawn = posterior.sample(number, 8 * DRAWS)
        found.append([])
        for chances in (weights, wrong):
            rows = resampled(generator, drawn.path, chances, weights)
            others = np.array([statistics(row(drawn, i), y) for i in rows])
            lower, same = (others < truth).sum(axis=0), (others == truth).sum(axis=0)
            found[-1].append(lower + np.array([generator.integers(count + 1) for count in same]))
    return np.array(found)


def resampled(generator, paths, chances, weights):
    """Rows of draws with other weights of paths than those they were drawn with."""
    share = (chances / np.maximum(weights, 1e-300))[paths]
    return generator.choice(len(paths), size=DRAWS, replace=False, p=share / share.sum())


def row(drawn, i):
    return {name: values[i] for name, values in drawn.items() if drawn.present(name)[i]}


def distances(found):
    """Of each statistic's ranks from uniform ones, in units of the band."""
    simulations = len(found)
    band = stats.kstwobign.isf(RISK / len(NAMES)) / math.sqrt(simulations)
    grid = np.arange(DRAWS + 1)
    seen = np.array([[np.mean(column <= rank) for rank in grid] for column in found.T])
    return np.abs(seen - (grid + 1) / (DRAWS + 1)).max(axis=1) / band


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=("coverage", "sbc"), default=("coverage", "sbc"))
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--simulations", type=int, default=1_000)
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    with ProcessPoolExecutor(options.processes, mp_context=get_context("spawn")) as pool:

        def divided(work, count):
            """Rows of all pieces of work, which takes a range."""
            pieces = [range(count)[i :: options.processes] for i in range(options.processes)]
            return np.concatenate(list(pool.map(work, pieces)))

        if "coverage" in options.only:
            print("truth within one and two stated errors (68% and 95% if normal), mean gap in errors:")
            for title in PROGRAMS:
                for what, z in zip(
                    ("weight", "log evidence"), divided(partial(gaps, title), options.seeds).T, strict=True
                ):
                    size = np.abs(z)
                    shares = f"{np.mean(size < 1):.1%} {np.mean(size < 2):.1%} {z.mean():+.2f}"
                    print(f"  {title:<26} {what:<14} {shares}", flush=True)
        if "sbc" in options.only:
            print("largest distance from uniform ranks, in units of the simultaneous band:")
            both = divided(ranks, options.simulations)
            for name, found in zip(
                ("as it is", "weights wrong by a factor of 3"), both.swapaxes(0, 1), strict=True
            ):
                shown = ", ".join(f"{n} {d:.2f}" for n, d in zip(NAMES, distances(found), strict=True))
                print(f"  {name}: {shown}", flush=True)


if __name__ == "__main__":
    main()
