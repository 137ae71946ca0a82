"""Programs that branch on continuous values, in plain NumPy: keys and likelihoods of many prior runs."""

import numpy as np
from scipy import stats

from trust.programs import rare, rejection, supports, walks


def pedestrian(generator, size, most=14):
    moves = generator.uniform(-1, 1, (size, most))
    places = generator.uniform(0, 2, (size, 1)) + moves.cumsum(axis=1)
    distances = np.abs(moves).cumsum(axis=1)
    steps = ((places <= 0) | (distances >= 2)).argmax(axis=1)
    return steps + 1, stats.norm.pdf(1.1, distances[np.arange(size), steps], 0.1)


def first_passage(generator, size):
    moves = generator.normal(size=(size, walks.MOST_STEPS))
    places = moves.cumsum(axis=1)
    left = np.abs(places) >= walks.FENCE
    last = np.where(left.any(axis=1), left.argmax(axis=1), walks.MOST_STEPS - 1)
    return last + 1, stats.norm.pdf(walks.PASSAGE[0], places[np.arange(size), last], 0.5)


def polar(generator, size, most=30):
    u, v = generator.uniform(-1, 1, size=(2, size, most))
    s = u**2 + v**2
    tries = (s < 1).argmax(axis=1)
    u, s = u[np.arange(size), tries], s[np.arange(size), tries]
    return tries + 1, stats.norm.pdf(rejection.POLAR[0], u * np.sqrt(-2 * np.log(s) / s), 0.5)


def interval(generator, size, most=50):
    x = generator.normal(size=(size, most))
    tries = (np.abs(x) < rejection.EDGE).argmax(axis=1)
    return tries + 1, stats.norm.pdf(rejection.INTERVAL[0], x[np.arange(size), tries], 0.5)


def thin_band(generator, size):
    a, b, z = generator.normal(size=(3, size))
    close = np.abs(a - b) < 0.05
    z += np.where(close, 2, -2)
    return np.where(close, "close", "apart"), stats.norm.pdf(rejection.BAND[0], z, 1)


def cured(generator, size):
    rate, factor = generator.uniform(size=size), generator.beta(2, 2, size)
    high = rate >= 0.3
    return high, stats.binom.pmf(supports.CURED[0], 20, np.where(high, rate * factor, rate))


def tail(generator, size):
    x, level = generator.normal(size=(2, size))
    beyond = x > rare.EDGE
    return beyond, stats.norm.pdf(rare.FAR[0], np.where(beyond, 10 + level, 0), 1)


def unsigned(generator, size):
    x = 100 * generator.normal(size=size)
    return np.trunc(x).astype(np.int32).astype(np.uint8) > 100, np.ones(size)


SIMULATORS = {
    simulate.__name__: simulate
    for simulate in (pedestrian, first_passage, polar, interval, thin_band, cured, tail, unsigned)
}
