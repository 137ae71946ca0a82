"""Data whose explanation has unknown parts."""

import itertools
import math

import numpy as np
import pyro
import pyro.distributions as dist
import torch
from scipy import stats
from scipy.special import gammaln, logsumexp

from benchmarks.catalogue.entry import EVIDENCE, Entry

ACCIDENTS = [4, 5, 4, 6, 1, 0, 2, 1, 1, 3]


def change_points(counts):
    """Rates of accidents that changed any number of times."""
    years = torch.arange(len(counts)) + 0.5
    n = int(pyro.sample("changes", dist.Poisson(1.0)))
    times = []
    for i in range(n):
        times.append(pyro.sample(f"time_{i}", dist.Uniform(0.0, float(len(counts)))))
    rates = [pyro.sample(f"rate_{i}", dist.Gamma(2.0, 0.7)) for i in range(n + 1)]
    segment = torch.zeros(len(counts), dtype=torch.long)
    for time in times:
        segment += years > time
    with pyro.plate("years", len(counts)):
        pyro.sample("counts", dist.Poisson(torch.stack(rates)[segment]), obs=counts)


def change_points_answers():
    y, size, most = np.array(ACCIDENTS), len(ACCIDENTS), 14
    piece = np.zeros((size + 1, size + 1))
    for begin, end in itertools.combinations_with_replacement(range(size + 1), 2):
        alpha, beta = 2 + y[begin:end].sum(), 0.7 + end - begin
        log = 2 * math.log(0.7) - gammaln(2) + gammaln(alpha) - alpha * math.log(beta)
        piece[begin, end] = math.exp(log - gammaln(y[begin:end] + 1).sum())
    # reached[n, j]: the last of n changes, in order, has j years before it; over n!, for orders.
    reached = np.zeros((most + 1, size + 1))
    for j in range(size + 1):
        mass = (0.5 if j in (0, size) else 1.0) / size
        before = reached @ piece[:, j]
        before[0] = piece[0, j]
        for n in range(1, most + 1):
            reached[n, j] = sum(mass**m / math.factorial(m) * before[n - m] for m in range(1, n + 1))
    likes = reached @ piece[:, size] * np.array([math.factorial(n) for n in range(most + 1)])
    likes[0] = piece[0, size]
    chances = likes * stats.poisson(1).pmf(np.arange(most + 1))
    return {EVIDENCE: math.log(chances.sum()), "E[changes]": chances @ np.arange(most + 1) / chances.sum()}


X = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
Y = [0.2, 1.3, 1.8, 6.5, 4.1, 7.0, 6.3]


def outliers(xs, ys):
    """A line, from which single points may be far off."""
    slope = pyro.sample("slope", dist.Normal(0.0, 2.0))
    intercept = pyro.sample("intercept", dist.Normal(0.0, 2.0))
    for i, (x, y) in enumerate(zip(xs, ys, strict=True)):
        if pyro.sample(f"outlier_{i}", dist.Bernoulli(0.1)):
            pyro.sample(f"y_{i}", dist.Normal(0.0, 10.0), obs=y)
        else:
            pyro.sample(f"y_{i}", dist.Normal(intercept + slope * x, 0.5), obs=y)


def outliers_answers():
    logs, off, slopes = [], [], []
    for out in itertools.product((False, True), repeat=len(X)):
        kept = ~np.array(out)
        design, y = np.stack([np.array(X)[kept], np.ones(kept.sum())], 1), np.array(Y)
        log = kept.sum() * math.log(0.9) + sum(out) * math.log(0.1) + stats.norm(0, 10).logpdf(y[~kept]).sum()
        if kept.any():
            cov = 4 * design @ design.T + 0.25 * np.eye(kept.sum())
            log += stats.multivariate_normal(np.zeros(kept.sum()), cov).logpdf(y[kept])
        logs.append(log)
        off.append(out[5])
        slopes.append(np.linalg.solve(design.T @ design / 0.25 + np.eye(2) / 4, design.T @ y[kept] / 0.25)[0])
    weights = np.exp(logs - logsumexp(logs))
    return {EVIDENCE: logsumexp(logs), "P(sixth off)": weights @ off, "E[slope]": weights @ slopes}


POWERS_X = [-1.0, -0.6, -0.2, 0.2, 0.6, 1.0]
POWERS_Y = [0.4, 0.1, -0.5, 0.1, -0.1, 1.3]


def degrees(x, y):
    """A polynomial gets another power as long as a coin shows heads."""
    mean = pyro.sample("w0", dist.Normal(0.0, 1.0))
    degree = 0
    while pyro.sample(f"more_{degree}", dist.Bernoulli(0.5)):
        degree += 1
        mean = mean + pyro.sample(f"w{degree}", dist.Normal(0.0, 1.0)) * x**degree
    with pyro.plate("points", len(x)):
        pyro.sample("y", dist.Normal(mean, 0.3), obs=y)


def degrees_answers():
    x, cov, logs = np.array(POWERS_X), 0.09 * np.eye(len(POWERS_X)), []
    for degree in range(60):
        cov = cov + np.outer(x**degree, x**degree)
        log = stats.multivariate_normal(np.zeros(len(x)), cov).logpdf(POWERS_Y)
        logs.append(log - (degree + 1) * math.log(2))
    return {EVIDENCE: logsumexp(logs), "E[degree]": np.exp(logs - logsumexp(logs)) @ np.arange(60)}


def diagnosis(cough, fever):
    """Causes of symptoms, each asked only if none before explains them."""

    def flip(name, p):
        return bool(pyro.sample(name, dist.Bernoulli(p)))

    cold = flip("cold", 0.2)
    flu = flip("flu", 0.1)
    covid = flip("covid", 0.05)
    coughs = (
        (cold and flip("cold_cough", 0.5))
        or (flu and flip("flu_cough", 0.3))
        or (covid and flip("covid_cough", 0.7))
        or flip("other_cough", 0.01)
    )
    fevers = (
        (cold and flip("cold_fever", 0.1))
        or (flu and flip("flu_fever", 0.6))
        or (covid and flip("covid_fever", 0.5))
        or flip("other_fever", 0.02)
    )
    pyro.sample("cough", dist.Bernoulli(0.99 if coughs else 0.01), obs=cough)
    pyro.sample("fever", dist.Bernoulli(0.99 if fevers else 0.01), obs=fever)


def diagnosis_answers():
    total, sick = 0.0, np.zeros(3)
    for has in itertools.product((0, 1), repeat=3):
        p = math.prod(q if h else 1 - q for h, q in zip(has, (0.2, 0.1, 0.05), strict=True))
        for causes, leak in (((0.5, 0.3, 0.7), 0.01), ((0.1, 0.6, 0.5), 0.02)):
            none = (1 - leak) * math.prod(1 - q for h, q in zip(has, causes, strict=True) if h)
            p *= 0.99 * (1 - none) + 0.01 * none
        total, sick = total + p, sick + p * np.array(has)
    return {EVIDENCE: math.log(total), "P(flu)": sick[1] / total, "P(covid)": sick[2] / total}


ENTRIES = [
    Entry(
        change_points,
        "pyro",
        origin="Green 1995, coal mining, in small",
        args=(torch.tensor(ACCIDENTS),),
        against="recursion over conjugate evidences",
        answers=change_points_answers,
        read={"E[changes]": lambda draws: draws["changes"]},
    ),
    Entry(
        outliers,
        "pyro",
        origin="Hogg et al. 2010; Gen's tutorial",
        args=(torch.tensor(X), torch.tensor(Y)),
        against="conjugacy",
        answers=outliers_answers,
        read={"P(sixth off)": lambda draws: draws["outlier_5"], "E[slope]": lambda draws: draws["slope"]},
    ),
    Entry(
        degrees,
        "pyro",
        origin="MacKay 2003, Occam's razor",
        args=(torch.tensor(POWERS_X), torch.tensor(POWERS_Y)),
        against="conjugacy",
        answers=degrees_answers,
        read={
            "E[degree]": lambda draws: sum(np.nan_to_num(draws[k]) for k in draws if k.startswith("more_"))
        },
    ),
    Entry(
        diagnosis,
        "pyro",
        origin="probmods.org, noisy logic",
        args=(torch.tensor(1.0), torch.tensor(1.0)),
        against="enumeration",
        answers=diagnosis_answers,
        read={"P(flu)": lambda draws: draws["flu"], "P(covid)": lambda draws: draws["covid"]},
    ),
]
