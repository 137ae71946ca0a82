"""Grammars small enough to enumerate."""

from itertools import product

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pyro
import pyro.distributions as pdist
import torch
from scipy import stats

from trust import exact
from trust.case import both, count

LEAF = 0.6


def sums(y):
    """E -> number | E + E, three deep."""

    def expression(name, depth):
        if depth == 3 or numpyro.sample(f"leaf{name}", dist.Bernoulli(LEAF)):
            return numpyro.sample(f"number{name}", dist.Normal(1, 1))
        return expression(f"{name}l", depth + 1) + expression(f"{name}r", depth + 1)

    numpyro.sample("y", dist.Normal(expression("", 0), 0.5), obs=y)


def sums_pyro(y):
    def expression(name, depth):
        if depth == 3 or pyro.sample(f"leaf{name}", pdist.Bernoulli(LEAF)):
            return pyro.sample(f"number{name}", pdist.Normal(1, 1))
        return expression(f"{name}l", depth + 1) + expression(f"{name}r", depth + 1)

    pyro.sample("y", pdist.Normal(expression("", 0), 0.5), obs=y)


SUM = (3.3,)


def sums_answer():
    """By number of leaves, whose distribution is a polynomial for each depth."""
    counts = np.polynomial.Polynomial([0, 1])
    for _ in range(3):
        counts = np.polynomial.Polynomial([0, LEAF]) + (1 - LEAF) * counts**2
    return {
        k: np.log(mass) + exact.normal(SUM[0], k, np.sqrt(k + 0.25))
        for k, mass in enumerate(counts.coef)
        if mass > 0
    }


def products(y):
    """E -> number | E * E, two deep: signs make the posterior of a product's factors bimodal."""

    def expression(name, depth):
        if depth == 2 or numpyro.sample(f"leaf{name}", dist.Bernoulli(0.7)):
            return numpyro.sample(f"number{name}", dist.Normal(0, 1))
        return expression(f"{name}l", depth + 1) * expression(f"{name}r", depth + 1)

    numpyro.sample("y", dist.Normal(expression("", 0), 0.5), obs=y)


def products_pyro(y):
    def expression(name, depth):
        if depth == 2 or pyro.sample(f"leaf{name}", pdist.Bernoulli(0.7)):
            return pyro.sample(f"number{name}", pdist.Normal(0, 1))
        return expression(f"{name}l", depth + 1) * expression(f"{name}r", depth + 1)

    pyro.sample("y", pdist.Normal(expression("", 0), 0.5), obs=y)


PRODUCT = (1.1,)


def products_answer():
    """The last factor by algebra, the others on a grid of the size of their product."""
    # Log of the absolute value of a normal, on an even grid: products become convolutions.
    step = 0.005
    grid = np.arange(-40, 3, step)
    one = 2 * stats.norm.pdf(np.exp(grid)) * np.exp(grid)
    masses = {1: one * step}
    starts = {1: grid[0]}
    for factors in (2, 3):
        masses[factors] = np.convolve(masses[factors - 1], masses[1])
        starts[factors] = starts[factors - 1] + grid[0]

    def evidence(factors):
        if factors == 1:
            return exact.normal(PRODUCT[0], 0, np.sqrt(1.25))
        mass = masses[factors - 1]
        size = np.exp(starts[factors - 1] + step * np.arange(len(mass)))
        return np.log(np.sum(mass * stats.norm.pdf(PRODUCT[0], 0, np.sqrt(size**2 + 0.25))))

    prior = {1: 0.7, 2: 0.3 * 0.49, 3: 0.3 * 2 * 0.7 * 0.3, 4: 0.3 * 0.09}
    return {k: np.log(mass) + evidence(k) for k, mass in prior.items()}


RULES = np.array([0.5, 0.3, 0.2])


def brackets(length):
    """S -> a | bS | (SS), three deep, discrete sites only; the length of the string is seen with an error."""
    rules = []

    def string(depth):
        if depth == 3:
            return "a"
        rule = numpyro.sample(f"rule{len(rules)}", dist.Categorical(probs=RULES))
        rules.append(rule)
        if rule == 0:
            return "a"
        if rule == 1:
            return "b" + string(depth + 1)
        return "(" + string(depth + 1) + string(depth + 1) + ")"

    numpyro.sample("length", dist.Poisson(len(string(0))), obs=length)


def brackets_pyro(length):
    rules = []

    def string(depth):
        if depth == 3:
            return "a"
        rule = pyro.sample(f"rule{len(rules)}", pdist.Categorical(torch.tensor(RULES)))
        rules.append(rule)
        if rule == 0:
            return "a"
        if rule == 1:
            return "b" + string(depth + 1)
        return "(" + string(depth + 1) + string(depth + 1) + ")"

    pyro.sample("length", pdist.Poisson(float(len(string(0)))), obs=length)


LENGTH = (6.0,)


def brackets_answer():
    def strings(depth):
        """Rules, string and prior probability of everything below."""
        if depth == 3:
            return [((), "a", 1.0)]
        below = strings(depth + 1)
        found = [((0,), "a", RULES[0])]
        found += [((1, *rules), "b" + text, RULES[1] * mass) for rules, text, mass in below]
        for (left, first, p), (right, second, q) in product(below, below):
            found.append(((2, *left, *right), f"({first}{second})", RULES[2] * p * q))
        return found

    return {
        rules: np.log(mass) + stats.poisson.logpmf(LENGTH[0], len(text)) for rules, text, mass in strings(0)
    }


INPUTS = np.linspace(0, 3, 10)
OUTPUTS = 0.5 * INPUTS - 0.8 + 0.6 * np.sin(3.2 * INPUTS)


def covariance(part, size, x, library):
    """Of one part of a kernel, with a size of its own: length, slope or period."""
    gap = x[:, None] - x[None, :]
    if part == 0:
        return library.exp(-0.5 * (gap / size) ** 2)
    if part == 1:
        return size**2 * x[:, None] * x[None, :]
    return library.exp(-2 * library.sin(np.pi * gap / size) ** 2)


def kernels(x, y):
    """The kernel of a Gaussian process: one part, or the sum of two."""

    def part(number):
        kind = numpyro.sample(f"kind{number}", dist.Categorical(probs=jnp.ones(3) / 3))
        size = numpyro.sample(f"size{number}", dist.LogNormal(0.5, 0.5))
        return covariance(int(kind), size, x, jnp)

    total = 0.1 * jnp.eye(len(x)) + part(0)
    if numpyro.sample("more", dist.Bernoulli(0.5)):
        total = total + part(1)
    numpyro.sample("y", dist.MultivariateNormal(jnp.zeros(len(x)), total), obs=y)


def kernels_pyro(x, y):
    def part(number):
        kind = pyro.sample(f"kind{number}", pdist.Categorical(torch.ones(3)))
        size = pyro.sample(f"size{number}", pdist.LogNormal(0.5, 0.5))
        return covariance(int(kind), size, x, torch)

    total = 0.1 * torch.eye(len(x)) + part(0)
    if pyro.sample("more", pdist.Bernoulli(0.5)):
        total = total + part(1)
    pyro.sample("y", pdist.MultivariateNormal(torch.zeros(len(x)), total), obs=y)


def kernels_answer():
    nodes, masses = np.polynomial.hermite_e.hermegauss(60)
    sizes, log_masses = np.exp(0.5 + 0.5 * nodes), np.log(masses / masses.sum())
    parts = [np.stack([covariance(kind, size, INPUTS, np) for size in sizes]) for kind in range(3)]

    def log_density(matrices):
        matrices = matrices + 0.1 * np.eye(len(INPUTS))
        _, logdet = np.linalg.slogdet(2 * np.pi * matrices)
        solved = np.linalg.solve(matrices, OUTPUTS[:, None])[..., 0]
        return -0.5 * (logdet + solved @ OUTPUTS)

    logs = {}
    for first in range(3):
        logs[first,] = np.log(0.5 / 3) + exact.logsumexp(log_masses + log_density(parts[first]))
        for second in range(3):
            grid = log_density(parts[first][:, None] + parts[second][None])
            logs[first, second] = np.log(0.5 / 9) + exact.logsumexp(grid + log_masses[:, None] + log_masses)
    return logs


def kinds(path):
    return tuple(value for name, value in path.pinned.items() if name.startswith("kind"))


FAMILY = {"family": "grammars"}
CASES = [
    *both(sums, sums_pyro, args=SUM, key=count("number"), answer=sums_answer, method="analytic", **FAMILY),
    *both(
        products,
        products_pyro,
        args=PRODUCT,
        key=count("number"),
        answer=products_answer,
        method="quadrature",
        **FAMILY,
    ),
    *both(
        brackets,
        brackets_pyro,
        args=LENGTH,
        key=lambda path: tuple(path.pinned.values()),
        answer=brackets_answer,
        method="enumeration",
        **FAMILY,
    ),
    *both(
        kernels,
        kernels_pyro,
        args=(INPUTS, OUTPUTS),
        key=kinds,
        answer=kernels_answer,
        method="quadrature",
        **FAMILY,
    ),
]
