"""Which predictors matter, on real data: every subset is a path."""

from itertools import product

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pyro
import pyro.distributions as pdist
import torch

from trust import exact
from trust.case import both, numpyro_only

# Heat of hardening cement by its four ingredients (Hald, 1952).
HALD = np.array([
    [7, 26, 6, 60, 78.5], [1, 29, 15, 52, 74.3], [11, 56, 8, 20, 104.3], [11, 31, 8, 47, 87.6],
    [7, 52, 6, 33, 95.9], [11, 55, 9, 22, 109.2], [3, 71, 17, 6, 102.7], [1, 31, 22, 44, 72.5],
    [2, 54, 18, 22, 93.1], [21, 47, 4, 26, 115.9], [1, 40, 23, 34, 83.8], [11, 66, 9, 12, 113.3],
    [10, 68, 8, 12, 109.4],
])  # fmt: skip
# Miles per gallon of 32 cars (Motor Trend, 1974), then cyl, disp, hp, drat, wt, qsec, vs, am, gear, carb.
MOTOR_TREND = np.array([
    [21, 6, 160, 110, 3.9, 2.62, 16.46, 0, 1, 4, 4], [21, 6, 160, 110, 3.9, 2.875, 17.02, 0, 1, 4, 4],
    [22.8, 4, 108, 93, 3.85, 2.32, 18.61, 1, 1, 4, 1], [21.4, 6, 258, 110, 3.08, 3.215, 19.44, 1, 0, 3, 1],
    [18.7, 8, 360, 175, 3.15, 3.44, 17.02, 0, 0, 3, 2], [18.1, 6, 225, 105, 2.76, 3.46, 20.22, 1, 0, 3, 1],
    [14.3, 8, 360, 245, 3.21, 3.57, 15.84, 0, 0, 3, 4], [24.4, 4, 146.7, 62, 3.69, 3.19, 20, 1, 0, 4, 2],
    [22.8, 4, 140.8, 95, 3.92, 3.15, 22.9, 1, 0, 4, 2], [19.2, 6, 167.6, 123, 3.92, 3.44, 18.3, 1, 0, 4, 4],
    [17.8, 6, 167.6, 123, 3.92, 3.44, 18.9, 1, 0, 4, 4], [16.4, 8, 275.8, 180, 3.07, 4.07, 17.4, 0, 0, 3, 3],
    [17.3, 8, 275.8, 180, 3.07, 3.73, 17.6, 0, 0, 3, 3], [15.2, 8, 275.8, 180, 3.07, 3.78, 18, 0, 0, 3, 3],
    [10.4, 8, 472, 205, 2.93, 5.25, 17.98, 0, 0, 3, 4], [10.4, 8, 460, 215, 3, 5.424, 17.82, 0, 0, 3, 4],
    [14.7, 8, 440, 230, 3.23, 5.345, 17.42, 0, 0, 3, 4], [32.4, 4, 78.7, 66, 4.08, 2.2, 19.47, 1, 1, 4, 1],
    [30.4, 4, 75.7, 52, 4.93, 1.615, 18.52, 1, 1, 4, 2], [33.9, 4, 71.1, 65, 4.22, 1.835, 19.9, 1, 1, 4, 1],
    [21.5, 4, 120.1, 97, 3.7, 2.465, 20.01, 1, 0, 3, 1], [15.5, 8, 318, 150, 2.76, 3.52, 16.87, 0, 0, 3, 2],
    [15.2, 8, 304, 150, 3.15, 3.435, 17.3, 0, 0, 3, 2], [13.3, 8, 350, 245, 3.73, 3.84, 15.41, 0, 0, 3, 4],
    [19.2, 8, 400, 175, 3.08, 3.845, 17.05, 0, 0, 3, 2], [27.3, 4, 79, 66, 4.08, 1.935, 18.9, 1, 1, 4, 1],
    [26, 4, 120.3, 91, 4.43, 2.14, 16.7, 0, 1, 5, 2], [30.4, 4, 95.1, 113, 3.77, 1.513, 16.9, 1, 1, 5, 2],
    [15.8, 8, 351, 264, 4.22, 3.17, 14.5, 0, 1, 5, 4], [19.7, 6, 145, 175, 3.62, 2.77, 15.5, 0, 1, 5, 6],
    [15, 8, 301, 335, 3.54, 3.57, 14.6, 0, 1, 5, 8], [21.4, 4, 121, 109, 4.11, 2.78, 18.6, 1, 1, 4, 2],
])  # fmt: skip


def standardised(columns):
    return (columns - columns.mean(axis=0)) / columns.std(axis=0)


CEMENT = standardised(HALD[:, :4]), standardised(HALD[:, 4])
CARS = standardised(MOTOR_TREND[:, 1:]), standardised(MOTOR_TREND[:, 0])
HALF, FEW = 0.5, 0.3  # prior probability of a predictor


def cement(x, y):
    """Weights scale with the noise, as is usual for conjugate selection."""
    noise = jnp.sqrt(numpyro.sample("variance", dist.InverseGamma(2.0, 0.1)))
    mean = jnp.zeros(len(y))
    for j in range(x.shape[1]):
        if numpyro.sample(f"in{j}", dist.Bernoulli(HALF)):
            mean = mean + numpyro.sample(f"w{j}", dist.Normal(0, 3 * noise)) * x[:, j]
    numpyro.sample("y", dist.Normal(mean, noise), obs=y)


def cement_pyro(x, y):
    noise = pyro.sample("variance", pdist.InverseGamma(2.0, 0.1)).sqrt()
    mean = torch.zeros_like(y)
    for j in range(x.shape[1]):
        if pyro.sample(f"in{j}", pdist.Bernoulli(HALF)):
            mean = mean + pyro.sample(f"w{j}", pdist.Normal(0, 3 * noise)) * x[:, j]
    with pyro.plate("mixes", len(y)):
        pyro.sample("y", pdist.Normal(mean, noise), obs=y)


def cars(x, y):
    """Ten predictors, strongly correlated; the noise is known."""
    mean = 0.0
    for j in range(x.shape[1]):
        if numpyro.sample(f"in{j}", dist.Bernoulli(FEW)):
            mean = mean + numpyro.sample(f"w{j}", dist.Normal(0, 0.5)) * x[:, j]
    numpyro.sample("y", dist.Normal(mean, 0.4).expand([len(y)]), obs=y)


def subsets(x, probability, evidence):
    """Log evidences by the predictors that are in."""
    logs = {}
    for chosen in product((0, 1), repeat=x.shape[1]):
        prior = np.log(np.where(chosen, probability, 1 - probability)).sum()
        logs[tuple(np.flatnonzero(chosen).tolist())] = prior + evidence(x[:, np.flatnonzero(chosen)])
    return logs


def cement_answer():
    x, y = CEMENT
    return subsets(x, HALF, lambda part: exact.linear_unknown_noise(y, part, 3.0, 2.0, 0.1))


def cars_answer():
    x, y = CARS
    return subsets(x, FEW, lambda part: exact.linear(y, part, 0.5, 0.4))


def chosen(path):
    return tuple(int(name.removeprefix("in")) for name, value in path.pinned.items() if value)


FAMILY = {"family": "selection", "key": chosen, "method": "analytic"}
CASES = [
    *both(cement, cement_pyro, args=CEMENT, answer=cement_answer, **FAMILY),
    *numpyro_only(cars, args=CARS, answer=cars_answer, **FAMILY),
]
