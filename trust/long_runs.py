"""Answers that no formula gives: means of many simulations, with their standard errors.

    python -m trust.long_runs

prints them again, in a minute or two on one core.
"""

import numpy as np
from scipy import stats

RUNS, BATCH = 200_000_000, 5_000_000


def pedestrian(generator, size, walked=1.1, most=40):
    """Likelihood and number of steps of each run; one with more than `most` steps has no likelihood."""
    position = generator.uniform(0, 2, size)
    distance, steps = np.zeros(size), np.zeros(size, dtype=int)
    going = np.arange(size)
    for _ in range(most):
        move = generator.uniform(-1, 1, len(going))
        position[going] += move
        distance[going] += np.abs(move)
        steps[going] += 1
        going = going[(position[going] > 0) & (distance[going] < 2)]
    return stats.norm.pdf(walked, distance, 0.1), steps


def moments(simulate, runs, seed=0, keys=16):
    """Mean and standard error of the likelihood on each key."""
    first, second = np.zeros(keys), np.zeros(keys)
    generator = np.random.default_rng(seed)
    for _ in range(runs // BATCH):
        likelihood, key = simulate(generator, BATCH)
        key = np.minimum(key, keys - 1)
        first += np.bincount(key, likelihood, keys)
        second += np.bincount(key, likelihood**2, keys)
    mean = first / runs
    return mean, np.sqrt((second / runs - mean**2) / runs)


# By number of steps: mean likelihood, which is the evidence, and its standard error.
PEDESTRIAN = {
    1: (3.7575e-02, 1.6e-05),
    2: (8.4860e-02, 3.4e-05),
    3: (3.2945e-02, 2.1e-05),
    4: (8.5843e-03, 1.1e-05),
    5: (1.7793e-03, 4.9e-06),
    6: (3.1184e-04, 2.0e-06),
    7: (4.7506e-05, 7.8e-07),
    8: (6.1138e-06, 2.8e-07),
    9: (7.1475e-07, 9.3e-08),
    10: (7.5211e-08, 2.7e-08),
    11: (1.0652e-08, 7.3e-09),
    12: (8.3327e-10, 8.1e-10),
}


if __name__ == "__main__":
    for steps, (mean, error) in enumerate(zip(*moments(pedestrian, RUNS), strict=True)):
        print(f"    {steps}: ({mean:.4e}, {error:.1e}),")
