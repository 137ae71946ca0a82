"""pathmix against `numpyro.contrib.stochastic_support.SDVI`, end to end on the ten-branch toy.

The toy is made discrete, as the peer needs it: ten values of an annotated Categorical, each with
the prior mass of its interval. Both get the paper's settings: 1,000 prior runs, 10,000 steps a path,
5 particles, Adam(0.01), 1,000 draws for the weights. Every measurement is a fresh process with an
empty compilation cache, so discovery and compilation count; imports do not. Runs alternate; the
ratio is of medians.

    python -m benchmarks.numpyro_contrib [--repeats 3]
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
from scipy import special, stats

from benchmarks.fresh import with_cache

STEPS, PARTICLES, SAMPLES, ELBO_SAMPLES = 10_000, 5, 1_000, 1_000
EDGES = np.array([-np.inf, *range(-4, 5), np.inf])
PROBABILITIES = np.diff(stats.norm.cdf(EDGES / 5))
OBSERVED = 2.0


def model(y):
    import jax.numpy as jnp
    import numpyro
    import numpyro.distributions as dist

    branch = dist.Categorical(probs=jnp.asarray(PROBABILITIES))
    k = numpyro.sample("k", branch, infer={"branching": True})
    z = 9
    for value in range(9):
        if k == value:
            z = value
            break
    x = numpyro.sample("x", dist.Normal(z, 1.0))
    numpyro.sample("y", dist.Normal(x, 1.0), obs=y)


def run_pathmix():
    import optax

    import pathmix

    start = time.perf_counter()
    posterior = pathmix.SDVI(
        model,
        discovery=pathmix.PriorDiscovery(SAMPLES),
        allocation=pathmix.Uniform(10 * STEPS),
        optimizer=optax.adam(0.01),
        particles=PARTICLES,
        elbo_samples=ELBO_SAMPLES,
        progress=False,
    ).run(0, OBSERVED)
    seconds = time.perf_counter() - start
    return seconds, {str(path.pinned["k"]): path.weight for path in posterior.paths}


def run_contrib():
    import jax
    import numpyro
    import optax
    from numpyro.contrib.stochastic_support.sdvi import SDVI
    from numpyro.infer import Trace_ELBO

    start = time.perf_counter()
    # In float32 the ten probabilities do not pass the library's own check that they sum to one.
    with numpyro.validation_enabled(False):
        result = SDVI(
            model,
            optax.adam(0.01),
            svi_num_steps=STEPS,
            combine_elbo_particles=ELBO_SAMPLES,
            loss=Trace_ELBO(num_particles=PARTICLES),
            num_slp_samples=SAMPLES,
        ).run(jax.random.key(0), OBSERVED)
        weights = {name: float(weight) for name, weight in result.slp_weights.items()}
    return time.perf_counter() - start, weights


SYSTEMS = {"pathmix": run_pathmix, "numpyro.contrib": run_contrib}


def measure(system):
    with tempfile.TemporaryDirectory(prefix="pathmix-benchmark-") as folder:
        out = subprocess.run(
            [sys.executable, "-m", "benchmarks.numpyro_contrib", "--one", system],
            capture_output=True,
            text=True,
            check=True,
            env=with_cache(folder),
        )
    return json.loads(out.stdout.splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--one", choices=SYSTEMS, help="measure one system in this process")
    options = parser.parse_args()
    if options.one:
        print(json.dumps(SYSTEMS[options.one]()))
        return
    truth = special.softmax(np.log(PROBABILITIES) + stats.norm.logpdf(OBSERVED, np.arange(10), np.sqrt(2)))
    seconds = {name: [] for name in SYSTEMS}
    errors = {}
    for _ in range(options.repeats):
        for name in SYSTEMS:
            elapsed, weights = measure(name)
            seconds[name].append(elapsed)
            errors[name] = max(abs(weights.get(str(k), 0.0) - truth[k]) for k in range(10))
    print(f"{'system':<18}{'median s':>10}{'largest weight error':>24}   all runs")
    for name, times in seconds.items():
        runs = " ".join(f"{t:.2f}" for t in times)
        print(f"{name:<18}{statistics.median(times):>10.2f}{errors[name]:>24.4f}   {runs}")
    ratio = statistics.median(seconds["numpyro.contrib"]) / statistics.median(seconds["pathmix"])
    print(f"pathmix is {ratio:.1f} times as fast")


if __name__ == "__main__":
    main()
