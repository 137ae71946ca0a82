"""Programs with stochastic support, written as people write them. Each takes its data."""

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from numpyro import handlers


def two_branches(y):
    x = numpyro.sample("x", dist.Normal(0, 1))
    if x < 0:
        z = numpyro.sample("z1", dist.Normal(-3, 1))
    else:
        z = numpyro.sample("z2", dist.Normal(3, 1))
    numpyro.sample("y", dist.Normal(z, 2), obs=y)


def ten_branches(y):
    u = numpyro.sample("u", dist.Normal(0, 5))
    z = 9
    for k in range(9):
        if u <= -4 + k:
            z = k
            break
    x = numpyro.sample("x", dist.Normal(z, 1))
    numpyro.sample("y", dist.Normal(x, 1), obs=y)


def sum_branch(y):
    a = numpyro.sample("a", dist.Normal(0, 1))
    b = numpyro.sample("b", dist.Normal(0, 1))
    if a + b > 1:
        z = numpyro.sample("high", dist.Normal(2, 1))
    else:
        z = numpyro.sample("low", dist.Normal(-1, 1))
    numpyro.sample("y", dist.Normal(z + a, 1), obs=y)


def polynomial(x, y):
    degree = numpyro.sample("degree", dist.Categorical(probs=jnp.array([0.4, 0.3, 0.2, 0.1])))
    mean = 0.0
    for power in range(degree + 1):
        mean = mean + numpyro.sample(f"w{power}", dist.Normal(0, 1)) * x**power
    numpyro.sample("y", dist.Normal(mean, 0.5), obs=y)


def poisson_mixture(y):
    clusters = int(numpyro.sample("num_clusters", dist.Poisson(1.0))) + 1
    means = jnp.stack([numpyro.sample(f"mu_{k}", dist.Normal(0, 5)) for k in range(clusters)])
    mixture = dist.MixtureSameFamily(
        dist.Categorical(probs=jnp.ones(clusters) / clusters), dist.Normal(means, 0.5)
    )
    with numpyro.plate("data", len(y)):
        numpyro.sample("y", mixture, obs=y)


def pedestrian(distance_walked):
    """A pedestrian walks home from a random start, a random step at a time."""
    position = numpyro.sample("start", dist.Uniform(0, 2))
    distance, step = 0.0, 0
    while (position > 0) & (distance < 2):
        move = numpyro.sample(f"step_{step}", dist.Uniform(-1, 1))
        position, distance, step = position + move, distance + abs(move), step + 1
    numpyro.sample("distance", dist.Normal(distance, 0.1), obs=distance_walked)


def grammar(y):
    """A random arithmetic expression: E -> constant | E * E."""

    def expression(name, depth):
        if depth == 2 or numpyro.sample(f"{name}.leaf", dist.Bernoulli(0.7)):
            return numpyro.sample(f"{name}.value", dist.Normal(0, 1))
        return expression(f"{name}.l", depth + 1) * expression(f"{name}.r", depth + 1)

    numpyro.sample("y", dist.Normal(expression("e", 0), 0.5), obs=y)


def same_addresses(y):
    x = numpyro.sample("x", dist.Normal(0, 1))
    shift = -2.0 if x < 0.5 else 2.0
    z = numpyro.sample("z", dist.Normal(shift, 1))
    numpyro.sample("y", dist.Normal(z, 1), obs=y)


def one_path(y):
    z = numpyro.sample("z", dist.Normal(0, 1))
    numpyro.sample("y", dist.Normal(z, 1), obs=y)


def spike_and_slab(y):
    """One of the paths has no free latent site."""
    if numpyro.sample("active", dist.Bernoulli(0.5)):
        effect = numpyro.sample("effect", dist.Normal(0, 2))
    else:
        effect = 0.0
    numpyro.sample("y", dist.Normal(effect, 1), obs=y)


def comma_names(y):
    first = numpyro.sample("a,b", dist.Bernoulli(0.5))
    second = numpyro.sample("a", dist.Bernoulli(0.25))
    if first == 1 and second == 0:
        z = numpyro.sample("b,a", dist.Normal(1, 1))
    else:
        z = numpyro.sample("b", dist.Normal(-1, 1))
    numpyro.sample("y", dist.Normal(z, 1), obs=y)


def pinned_pairs(y):
    values = jnp.array([1, 11])
    i = values[numpyro.sample("i", dist.Bernoulli(0.5))]
    j = values[numpyro.sample("j", dist.Bernoulli(0.5))]
    z = numpyro.sample("z", dist.Normal(int(i) - int(j), 1))
    numpyro.sample("y", dist.Normal(z, 1), obs=y)


def tempered(y):
    """Data that count half, but for those that are masked out."""
    level = numpyro.sample("level", dist.Normal(0, 2))
    spread = 1.0
    if numpyro.sample("wide", dist.Bernoulli(0.3)):
        spread = numpyro.sample("spread", dist.HalfNormal(3))
    with handlers.scale(scale=0.5), handlers.mask(mask=y > -2), numpyro.plate("data", len(y)):
        numpyro.sample("y", dist.Normal(level, spread), obs=y)


def soft_budget(y):
    """A sum that is tracked, and held back by a factor."""
    total = 0.0
    for i in range(numpyro.sample("terms", dist.Categorical(probs=jnp.array([0.5, 0.3, 0.2]))) + 1):
        total = total + numpyro.sample(f"term_{i}", dist.Normal(0, 1))
    numpyro.deterministic("total", total)
    numpyro.factor("budget", -(total**2) / 8)
    numpyro.sample("y", dist.StudentT(3.0, total, 0.5), obs=y)


def minibatched(y, batch):
    shifted = numpyro.sample("shifted", dist.Bernoulli(0.5))
    mean = numpyro.sample("mean", dist.Normal(2.0 if shifted else -2.0, 1))
    with numpyro.plate("data", len(y), subsample_size=batch) as rows:
        local = numpyro.sample("local", dist.Normal(mean, 1))
        numpyro.sample("y", dist.Normal(local, 0.5), obs=y[rows])


def nested_supports(y):
    """Positive values, shares, and intervals that depend on other sites."""
    length = numpyro.sample("length", dist.Gamma(2.0, 1.0))
    cut = numpyro.sample("cut", dist.Uniform(0.0, length))
    shares = numpyro.sample("shares", dist.Dirichlet(jnp.array([1.0, 2.0, 3.0])))
    rate = numpyro.sample("rate", dist.Uniform(0, 1))
    if rate < 0.4:
        scale = numpyro.sample("scale", dist.Uniform(0.5, 0.5 + length))
    else:
        scale = 0.7 + rate
    location = jnp.stack([cut, shares[0] - shares[2]])
    numpyro.sample("y", dist.Normal(location, scale), obs=y)


def conditioned(y):
    """A part of the program is conditioned from outside."""

    def effects():
        base = numpyro.sample("base", dist.Normal(0, 1))
        slope = numpyro.sample("slope", dist.Normal(base, 1))
        return base - slope if base + slope > 1 else 2 * slope

    effect = handlers.condition(effects, data={"base": 0.25})()
    numpyro.sample("y", dist.Normal(effect, 0.8), obs=y)


class Regression:
    """A model as an object."""

    def __init__(self, features):
        self.features = features

    def __call__(self, x, y):
        weight = numpyro.sample("weight", dist.Normal(0, 1).expand([self.features]).to_event(1))
        mean = x @ weight
        if numpyro.sample("shifted", dist.Bernoulli(0.5)):
            mean = mean + numpyro.sample("shift", dist.Laplace(0.0, 1.0))
        numpyro.sample("y", dist.Normal(mean, 0.4).to_event(1), obs=y)


def regression(x, y):
    Regression(x.shape[1])(x, y)


POLYNOMIAL_X = np.linspace(-1, 1, 12)
POLYNOMIAL_Y = 0.5 - 1.2 * POLYNOMIAL_X + 0.3 * np.sin(9 * POLYNOMIAL_X)
MIXTURE_Y = np.concatenate([np.linspace(-3.6, -2.4, 12), np.linspace(1.5, 2.5, 12)])
TEMPERED_Y = np.array([0.3, 1.2, -3.5, 0.8, 2.1])
MINIBATCHED_Y = np.linspace(0.5, 2.5, 12)
REGRESSION_X = np.stack([np.linspace(-1, 1, 8), np.cos(3 * np.linspace(-1, 1, 8))], axis=1)
REGRESSION_Y = REGRESSION_X @ np.array([0.7, -0.4]) + 0.6

# Every program with arguments to call it with.
PROGRAMS = {
    two_branches: (2.0,),
    ten_branches: (2.0,),
    sum_branch: (1.0,),
    polynomial: (POLYNOMIAL_X, POLYNOMIAL_Y),
    poisson_mixture: (MIXTURE_Y,),
    pedestrian: (1.1,),
    grammar: (0.7,),
    same_addresses: (1.0,),
    one_path: (0.5,),
    spike_and_slab: (1.5,),
    comma_names: (0.3,),
    pinned_pairs: (4.0,),
    tempered: (TEMPERED_Y,),
    soft_budget: (1.3,),
    minibatched: (MINIBATCHED_Y, 4),
    nested_supports: (np.array([1.1, -0.2]),),
    conditioned: (0.6,),
    regression: (REGRESSION_X, REGRESSION_Y),
}

# Arguments with which a program sees all of its data at once.
WHOLE_DATA = {**PROGRAMS, minibatched: (MINIBATCHED_Y, None)}
