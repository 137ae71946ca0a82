"""Symbolic regression: which formula gave the data?"""

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pyro
import pyro.distributions as pdist
import torch
from scipy import stats

from trust import exact
from trust.case import both, pinned

X = np.linspace(-1.5, 1.5, 12)
Y = 0.7 * X**2 - 0.5 * np.sin(3 * X) + 0.25 * np.cos(11 * X)


def term(kind, x, library):
    if kind == 0:
        return x
    if kind == 1:
        return x**2
    if kind == 2:
        return library.sin(3 * x)
    return library.exp(-x)


def terms(x, y):
    """One to three terms, in any order, which may come twice."""
    number = numpyro.sample("number", dist.Categorical(probs=jnp.array([0.3, 0.4, 0.3]))) + 1
    mean = 0.0
    for i in range(number):
        kind = int(numpyro.sample(f"kind{i}", dist.Categorical(probs=jnp.ones(4) / 4)))
        mean = mean + numpyro.sample(f"factor{i}", dist.Normal(0, 1)) * term(kind, x, jnp)
    numpyro.sample("y", dist.Normal(mean, 0.4), obs=y)


def terms_pyro(x, y):
    number = pyro.sample("number", pdist.Categorical(torch.tensor([0.3, 0.4, 0.3]))) + 1
    mean = torch.zeros_like(x)
    for i in range(number):
        kind = pyro.sample(f"kind{i}", pdist.Categorical(torch.ones(4))).item()
        mean = mean + pyro.sample(f"factor{i}", pdist.Normal(0, 1)) * term(kind, x, torch)
    with pyro.plate("data", len(x)):
        pyro.sample("y", pdist.Normal(mean, 0.4), obs=y)


def terms_answer():
    prior = {1: 0.3, 2: 0.4, 3: 0.3}
    columns = [term(kind, X, np) for kind in range(4)]
    logs = {}
    for number, mass in prior.items():
        for kinds in np.ndindex(*[4] * number):
            design = np.stack([columns[kind] for kind in kinds], axis=1)
            logs[kinds] = np.log(mass / 4**number) + exact.linear(Y, design, 1.0, 0.4)
    return logs


def kinds(path):
    return tuple(value for name, value in path.pinned.items() if name.startswith("kind"))


TIME = np.linspace(0.2, 4, 9)
DECAY = 0.5 * np.exp(-0.5 * TIME) + 0.45 * np.sin(2.2 * TIME)


def shape(kind, inside, library):
    if kind == 0:
        return library.sin(inside)
    if kind == 1:
        return library.exp(-inside)
    return library.tanh(inside)


def formula(t, y):
    """A factor times a function of a rescaled time; a frequency has many modes."""
    kind = numpyro.sample("kind", dist.Categorical(probs=jnp.ones(3) / 3))
    factor = numpyro.sample("factor", dist.Normal(0, 1))
    speed = numpyro.sample("speed", dist.Gamma(2.0, 1.0))
    numpyro.sample("y", dist.Normal(factor * shape(int(kind), speed * t, jnp), 0.3), obs=y)


def formula_pyro(t, y):
    kind = pyro.sample("kind", pdist.Categorical(torch.ones(3)))
    factor = pyro.sample("factor", pdist.Normal(0, 1))
    speed = pyro.sample("speed", pdist.Gamma(2.0, 1.0))
    with pyro.plate("data", len(t)):
        pyro.sample("y", pdist.Normal(factor * shape(int(kind), speed * t, torch), 0.3), obs=y)


def formula_answer():
    def given(kind):
        def log_joint(speeds):
            logs = [exact.linear(DECAY, shape(kind, speed * TIME, np)[:, None], 1.0, 0.3) for speed in speeds]
            return np.array(logs) + stats.gamma.logpdf(speeds, 2)

        return log_joint

    return {k: np.log(1 / 3) + exact.log_integral(given(k), 0, 40, panels=80, order=10) for k in range(3)}


CASES = [
    *both(
        terms, terms_pyro, family="symbolic", args=(X, Y), key=kinds, answer=terms_answer, method="analytic"
    ),
    *both(
        formula,
        formula_pyro,
        family="symbolic",
        args=(TIME, DECAY),
        key=pinned("kind"),
        answer=formula_answer,
        method="quadrature",
    ),
]
