"""Programs of kinds on which inference was once wrong without a word."""

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pyro
import pyro.distributions as pdist
import torch
from scipy import stats
from scipy.special import gammainc, gammaln

from trust import exact
from trust.case import both, has, numpyro_only, pinned

# Disasters in British coal mines by year, 1851 to 1962 (Jarrett, 1979).
DISASTERS = np.array([
    4, 5, 4, 0, 1, 4, 3, 4, 0, 6, 3, 3, 4, 0, 2, 6, 3, 3, 5, 4, 5, 3, 1, 4, 4, 1, 5, 5, 3, 4, 2, 5,
    2, 2, 3, 4, 2, 1, 3, 2, 2, 1, 1, 1, 1, 3, 0, 0, 1, 0, 1, 1, 0, 0, 3, 1, 0, 3, 2, 2, 0, 1, 1, 1,
    0, 1, 0, 1, 0, 0, 0, 2, 1, 0, 0, 0, 1, 1, 0, 2, 3, 3, 1, 1, 2, 1, 1, 1, 1, 2, 4, 2, 0, 0, 1, 4,
    0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0, 0, 1, 0, 1, 0,
])  # fmt: skip
YEARS = np.arange(len(DISASTERS)) + 0.0


def coal(t, y):
    """How many times did the rate change? Every change is uniform on what is left of the time."""
    changes = numpyro.sample("changes", dist.Categorical(probs=jnp.ones(4) / 4))
    rate, moment = numpyro.sample("rate0", dist.Gamma(1.0, 0.6)), 0.0
    for k in range(changes):
        moment = moment + (len(t) - moment) * numpyro.sample(f"u{k}", dist.Uniform(0, 1))
        rate = jnp.where(t < moment, rate, numpyro.sample(f"rate{k + 1}", dist.Gamma(1.0, 0.6)))
    numpyro.sample("y", dist.Poisson(rate), obs=y)


def coal_pyro(t, y):
    changes = pyro.sample("changes", pdist.Categorical(torch.ones(4)))
    rate, moment = pyro.sample("rate0", pdist.Gamma(1.0, 0.6)), 0.0
    for k in range(changes):
        moment = moment + (len(t) - moment) * pyro.sample(f"u{k}", pdist.Uniform(0, 1))
        rate = torch.where(t < moment, rate, pyro.sample(f"rate{k + 1}", pdist.Gamma(1.0, 0.6)))
    with pyro.plate("years", len(t)):
        pyro.sample("y", pdist.Poisson(rate), obs=y)


def coal_answer():
    """Moments are a Poisson process in s = -log(1 - moment / n): a year weighs by its length in s.

    Several moments may share a year; there are no data between them.
    """
    n = len(DISASTERS)
    ends = -np.log1p(-np.arange(n) / n)
    lengths = np.append(np.diff(ends), np.inf)
    part = {
        (i, j): exact.poisson_gamma(DISASTERS[i:j], 1.0, 0.6) for i in range(n + 1) for j in range(i, n + 1)
    }

    def last(cell, number):
        """Log mass of the last `number` moments, all in one cell."""
        upper = lengths[cell]
        return np.log(gammainc(number, upper)) - ends[cell] if number else -np.inf

    # ways[k][c]: log sum over k moments, the latest of them in cell c, without the data after them.
    ways = [np.full(n, -np.inf) for _ in range(4)]
    totals = {0: part[0, n]}
    for k in range(1, 4):
        final = []
        for cell in range(n):
            options, closing = [], []
            for number in range(1, k + 1):
                if number == k:
                    before = part[0, cell + 1]
                else:
                    earlier = [ways[k - number][c] + part[c + 1, cell + 1] for c in range(cell)]
                    before = exact.logsumexp(earlier) if earlier else -np.inf
                options.append(before + number * np.log(lengths[cell]) - gammaln(number + 1))
                closing.append(before + last(cell, number))
            if cell < n - 1:
                ways[k][cell] = exact.logsumexp(options)
            final.append(exact.logsumexp(closing) + part[cell + 1, n])
        totals[k] = exact.logsumexp(final)
    return {k: np.log(0.25) + total for k, total in totals.items()}


def nearly_equal():
    generator = np.random.default_rng(0)
    common = generator.normal(size=40)
    x = np.stack([common + 0.05 * generator.normal(size=40) for _ in range(4)], axis=1)
    return x, x[:, 0] + 0.6 * x[:, 2] - 0.4 * x[:, 3] + generator.normal(0, 0.3, 40)


EQUAL = nearly_equal()


def collinear(x, y):
    """Four covariates that are nearly equal, or the first of them."""
    if numpyro.sample("all", dist.Bernoulli(0.5)):
        mean = x @ numpyro.sample("weights", dist.Normal(0, 1).expand([4]).to_event(1))
    else:
        mean = x[:, 0] * numpyro.sample("first", dist.Normal(0, 1))
    numpyro.sample("y", dist.Normal(mean, 0.3), obs=y)


def collinear_pyro(x, y):
    if pyro.sample("all", pdist.Bernoulli(0.5)):
        mean = x @ pyro.sample("weights", pdist.Normal(0, 1).expand([4]).to_event(1))
    else:
        mean = x[:, 0] * pyro.sample("first", pdist.Normal(0, 1))
    with pyro.plate("rows", len(y)):
        pyro.sample("y", pdist.Normal(mean, 0.3), obs=y)


def collinear_answer():
    x, y = EQUAL
    return {k: np.log(0.5) + exact.linear(y, x[:, : 1 + 3 * k], 1.0, 0.3) for k in (0, 1)}


NEAR_ZERO = np.array([0.1, -0.1, 0.05, 0.0])


def empty(y):
    """A bounded site without elements."""
    k = int(numpyro.sample("k", dist.Bernoulli(0.5)))
    shift = numpyro.sample("shift", dist.Uniform(0, 1).expand([k]))
    level = numpyro.sample("level", dist.Normal(0, 1))
    numpyro.sample("y", dist.Normal(level + jnp.sum(shift), 0.3).expand([len(y)]), obs=y)


def empty_answer():
    def shifted(shifts):
        return np.array([exact.level(NEAR_ZERO, 1.0, 0.3, shift) for shift in shifts])

    return {
        0: np.log(0.5) + exact.level(NEAR_ZERO, 1.0, 0.3),
        1: np.log(0.5) + exact.log_integral(shifted, 0, 1, panels=4),
    }


TWO_GROUPS = 0.9 * np.array([-1.6, -1.5, -1.2, -0.9, -1.3, 1.5, 1.2, 1.4, 0.8, 1.3])


def exchangeable(y):
    """Clusters that can be renamed: as many equal modes as there are orders."""
    clusters = int(numpyro.sample("k", dist.Categorical(probs=jnp.ones(3) / 3))) + 1
    means = jnp.stack([numpyro.sample(f"mean{i}", dist.Normal(0, 2)) for i in range(clusters)])
    share = dist.Categorical(probs=jnp.ones(clusters) / clusters)
    numpyro.sample("y", dist.MixtureSameFamily(share, dist.Normal(means, 0.8)).expand([len(y)]), obs=y)


def exchangeable_pyro(y):
    clusters = int(pyro.sample("k", pdist.Categorical(torch.ones(3)))) + 1
    means = torch.stack([pyro.sample(f"mean{i}", pdist.Normal(0, 2)) for i in range(clusters)])
    with pyro.plate("data", len(y)):
        share = pdist.Categorical(torch.ones(clusters))
        pyro.sample("y", pdist.MixtureSameFamily(share, pdist.Normal(means, 0.8)), obs=y)


def exchangeable_answer():
    sums = exact.partitions(exact.cluster_evidences(TWO_GROUPS, 2.0, 0.8), 3)
    return {k: np.log(total / 3) - len(TWO_GROUPS) * np.log(k + 1) for k, total in enumerate(sums)}


def forgotten(x, y=None):
    """Nothing is observed, so that the posterior is the prior."""
    mean = 0.0
    if numpyro.sample("k", dist.Bernoulli(0.5)):
        mean = numpyro.sample("slope", dist.Normal(0, 1)) * x
    numpyro.sample("y", dist.Normal(mean, 0.1).expand([len(x)]), obs=y)


def forgotten_answer():
    return {0: np.log(0.5), 1: np.log(0.5)}


PLACES = np.linspace(0.05, 0.95, 10)
JUMP = np.where(PLACES > 0.7, 1.0, -1.0)


def jump(x, y, noise):
    """One change point in continuous time."""
    changed = numpyro.sample("k", dist.Bernoulli(0.5))
    mean = numpyro.sample("before", dist.Normal(0, 2)) * jnp.ones(len(x))
    if changed:
        t = numpyro.sample("t", dist.Uniform(0, 1))
        mean = jnp.where(x > t, numpyro.sample("after", dist.Normal(0, 2)), mean)
    numpyro.sample("y", dist.Normal(mean, noise), obs=y)


def jump_pyro(x, y, noise):
    changed = pyro.sample("k", pdist.Bernoulli(0.5))
    mean = pyro.sample("before", pdist.Normal(0, 2)).expand([len(x)])
    if changed:
        t = pyro.sample("t", pdist.Uniform(0, 1))
        mean = torch.where(x > t, pyro.sample("after", pdist.Normal(0, 2)), mean)
    with pyro.plate("places", len(x)):
        pyro.sample("y", pdist.Normal(mean, noise), obs=y)


def jump_answer(noise=1.0):
    edges = np.concatenate([[0], PLACES, [1]])
    parts = [exact.level(JUMP[:i], 2.0, noise) + exact.level(JUMP[i:], 2.0, noise) for i in range(11)]
    changed = exact.logsumexp(np.log(np.diff(edges)) + parts)
    return {0: np.log(0.5) + exact.level(JUMP, 2.0, noise), 1: np.log(0.5) + changed}


ROWS, SEEN = np.array([1.0, 0.0, 1.0, 2.0]), np.array([True, False, True, True])


def masked(y):
    """Two ways to write one likelihood; the first imputes the missing value."""
    if numpyro.sample("imputed", dist.Bernoulli(0.5)):
        with numpyro.plate("rows", 4):
            numpyro.sample("y", dist.Normal(0.0, 1.0), obs=y, obs_mask=SEEN)
    else:
        numpyro.sample("y_seen", dist.Normal(0.0, 1.0).expand([3]), obs=y[SEEN])


def masked_answer():
    return dict.fromkeys((0, 1), np.log(0.5) + exact.normal(ROWS[SEEN]))


def outside(y):
    """An observation that one path cannot have produced."""
    if numpyro.sample("k", dist.Bernoulli(0.5)):
        numpyro.sample("normal", dist.Normal(numpyro.sample("mean", dist.Normal(0, 1)), 1), obs=y)
    else:
        numpyro.sample("waiting", dist.Exponential(numpyro.sample("rate", dist.Exponential(1.0))), obs=y)


def outside_pyro(y):
    if pyro.sample("k", pdist.Bernoulli(0.5)):
        pyro.sample("normal", pdist.Normal(pyro.sample("mean", pdist.Normal(0, 1)), 1), obs=y)
    else:
        pyro.sample("waiting", pdist.Exponential(pyro.sample("rate", pdist.Exponential(1.0))), obs=y)


def outside_answer():
    return {1: np.log(0.5) + exact.normal(-1, 0, np.sqrt(2))}


def elsewhere(y):
    """A name that is latent on one path and observed on the other."""
    if numpyro.sample("k", dist.Bernoulli(0.5)):
        z = numpyro.sample("z", dist.Normal(0, 1))
    else:
        z = numpyro.sample("z", dist.Normal(0, 1), obs=0.5)
    numpyro.sample("y", dist.Normal(z, 0.1), obs=y)


def elsewhere_pyro(y):
    if pyro.sample("k", pdist.Bernoulli(0.5)):
        z = pyro.sample("z", pdist.Normal(0, 1))
    else:
        z = pyro.sample("z", pdist.Normal(0, 1), obs=torch.tensor(0.5))
    pyro.sample("y", pdist.Normal(z, 0.1), obs=y)


def elsewhere_answer():
    return {
        0: np.log(0.5) + exact.normal(0.5) + exact.normal(0.6, 0.5, 0.1),
        1: np.log(0.5) + exact.normal(0.6, 0, np.sqrt(1.01)),
    }


def steps(y):
    """The posterior is at twenty steps, which a prior run takes once in a million times."""
    i = 0
    while numpyro.sample(f"on{i}", dist.Bernoulli(0.5)):
        i += 1
    numpyro.sample("y", dist.Normal(i, 1.0), obs=y)


def steps_answer():
    return {i: (i + 1) * np.log(0.5) + exact.normal(20, i) for i in range(60)}


def fault(y):
    """A fault that prior runs seldom have, and the data certainly."""
    broken = numpyro.sample("fault", dist.Bernoulli(0.0002))
    numpyro.sample("y", dist.Normal(10.0 * broken, 1.0), obs=y)


def fault_pyro(y):
    broken = pyro.sample("fault", pdist.Bernoulli(0.0002))
    pyro.sample("y", pdist.Normal(10.0 * broken, 1.0), obs=y)


def fault_answer():
    return {k: np.log([0.9998, 0.0002][k]) + exact.normal(10, 10 * k) for k in (0, 1)}


def unsigned():
    """An integer conversion that wraps round; without data the weights are the prior masses."""
    x = numpyro.sample("x", dist.Normal(0.0, 100.0))
    if x.astype(jnp.int32).astype(jnp.uint8) > 100:
        numpyro.sample("a", dist.Normal(0, 1))


def unsigned_answer():
    whole = np.arange(-2_000, 2_001)
    # Conversion cuts off towards zero: the integer 0 has both sides.
    low = np.where(whole > 0, whole, whole - 1)
    high = np.where(whole < 0, whole, whole + 1)
    mass = np.diff(stats.norm.cdf(np.stack([low, high]) / 100), axis=0)[0]
    above = mass[whole % 256 > 100].sum()
    return {True: np.log(above), False: np.log(1 - above)}


FAMILY = {"family": "wrong answers", "method": "analytic"}
CASES = [
    *both(coal, coal_pyro, args=(YEARS, DISASTERS), key=pinned("changes"), answer=coal_answer, **FAMILY),
    *both(collinear, collinear_pyro, args=EQUAL, key=pinned("all"), answer=collinear_answer, **FAMILY),
    *numpyro_only(
        empty,
        family="wrong answers",
        args=(NEAR_ZERO,),
        key=pinned("k"),
        answer=empty_answer,
        method="quadrature",
    ),
    *both(
        exchangeable,
        exchangeable_pyro,
        family="wrong answers",
        args=(TWO_GROUPS,),
        key=pinned("k"),
        answer=exchangeable_answer,
        method="enumeration",
    ),
    *numpyro_only(
        forgotten, args=(np.linspace(0, 1, 10),), key=pinned("k"), answer=forgotten_answer, **FAMILY
    ),
    *both(jump, jump_pyro, args=(PLACES, JUMP, 1.0), key=pinned("k"), answer=jump_answer, **FAMILY),
    *numpyro_only(masked, args=(ROWS,), key=pinned("imputed"), answer=masked_answer, **FAMILY),
    *both(outside, outside_pyro, args=(-1.0,), key=pinned("k"), answer=outside_answer, **FAMILY),
    *both(elsewhere, elsewhere_pyro, args=(0.6,), key=pinned("k"), answer=elsewhere_answer, **FAMILY),
    *numpyro_only(
        steps, args=(20.0,), key=lambda path: len(path.addresses) - 1, answer=steps_answer, **FAMILY
    ),
    *both(fault, fault_pyro, args=(10.0,), key=pinned("fault"), answer=fault_answer, **FAMILY),
    *numpyro_only(unsigned, args=(), key=has("a"), answer=unsigned_answer, **FAMILY),
]
