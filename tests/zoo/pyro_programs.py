"""The twins of `tests.zoo.programs` in Pyro: the same sites, the same numbers, as a Pyro user writes them."""

import numpy as np
import pyro
import pyro.distributions as dist
import torch
from pyro import poutine
from pyro.nn import PyroModule, PyroSample

from tests.zoo import programs as twins


def two_branches(y):
    x = pyro.sample("x", dist.Normal(0, 1))
    if x < 0:
        z = pyro.sample("z1", dist.Normal(-3, 1))
    else:
        z = pyro.sample("z2", dist.Normal(3, 1))
    pyro.sample("y", dist.Normal(z, 2), obs=y)


def ten_branches(y):
    u = pyro.sample("u", dist.Normal(0, 5))
    z = 9
    for k in range(9):
        if u <= -4 + k:
            z = k
            break
    x = pyro.sample("x", dist.Normal(z, 1))
    pyro.sample("y", dist.Normal(x, 1), obs=y)


def sum_branch(y):
    a = pyro.sample("a", dist.Normal(0, 1))
    b = pyro.sample("b", dist.Normal(0, 1))
    if a + b > 1:
        z = pyro.sample("high", dist.Normal(2, 1))
    else:
        z = pyro.sample("low", dist.Normal(-1, 1))
    pyro.sample("y", dist.Normal(z + a, 1), obs=y)


def polynomial(x, y):
    degree = pyro.sample("degree", dist.Categorical(torch.tensor([0.4, 0.3, 0.2, 0.1])))
    mean = torch.zeros_like(x)
    for power in range(degree + 1):
        mean += pyro.sample(f"w{power}", dist.Normal(0, 1)) * x**power
    with pyro.plate("data", len(x)):
        pyro.sample("y", dist.Normal(mean, 0.5), obs=y)


def poisson_mixture(y):
    clusters = int(pyro.sample("num_clusters", dist.Poisson(1.0))) + 1
    means = torch.zeros(clusters)
    for k in range(clusters):
        means[k] = pyro.sample(f"mu_{k}", dist.Normal(0, 5))
    mixture = dist.MixtureSameFamily(
        dist.Categorical(torch.ones(clusters) / clusters), dist.Normal(means, 0.5)
    )
    with pyro.plate("data", len(y)):
        pyro.sample("y", mixture, obs=y)


def pedestrian(distance_walked):
    position = pyro.sample("start", dist.Uniform(0, 2))
    distance, step = torch.tensor(0.0), 0
    while (position > 0) & (distance < 2):
        move = pyro.sample(f"step_{step}", dist.Uniform(-1, 1))
        position, distance, step = position + move, distance + move.abs(), step + 1
    pyro.sample("distance", dist.Normal(distance, 0.1), obs=distance_walked)


def grammar(y):
    def expression(name, depth):
        if depth == 2 or pyro.sample(f"{name}.leaf", dist.Bernoulli(0.7)):
            return pyro.sample(f"{name}.value", dist.Normal(0, 1))
        return expression(f"{name}.l", depth + 1) * expression(f"{name}.r", depth + 1)

    pyro.sample("y", dist.Normal(expression("e", 0), 0.5), obs=y)


def same_addresses(y):
    x = pyro.sample("x", dist.Normal(0, 1))
    shift = -2.0 if x < 0.5 else 2.0
    z = pyro.sample("z", dist.Normal(shift, 1))
    pyro.sample("y", dist.Normal(z, 1), obs=y)


def one_path(y):
    z = pyro.sample("z", dist.Normal(0, 1))
    pyro.sample("y", dist.Normal(z, 1), obs=y)


def spike_and_slab(y):
    if pyro.sample("active", dist.Bernoulli(0.5)):
        effect = pyro.sample("effect", dist.Normal(0, 2))
    else:
        effect = 0.0
    pyro.sample("y", dist.Normal(effect, 1), obs=y)


def comma_names(y):
    first = pyro.sample("a,b", dist.Bernoulli(0.5))
    second = pyro.sample("a", dist.Bernoulli(0.25))
    if first == 1 and second == 0:
        z = pyro.sample("b,a", dist.Normal(1, 1))
    else:
        z = pyro.sample("b", dist.Normal(-1, 1))
    pyro.sample("y", dist.Normal(z, 1), obs=y)


def pinned_pairs(y):
    i = 1 + 10 * pyro.sample("i", dist.Bernoulli(0.5))
    j = 1 + 10 * pyro.sample("j", dist.Bernoulli(0.5))
    z = pyro.sample("z", dist.Normal(i.long().item() - j.long().item(), 1))
    pyro.sample("y", dist.Normal(z, 1), obs=y)


def tempered(y):
    level = pyro.sample("level", dist.Normal(0, 2))
    spread = 1.0
    if pyro.sample("wide", dist.Bernoulli(0.3)):
        spread = pyro.sample("spread", dist.HalfNormal(3))
    with poutine.scale(scale=0.5), poutine.mask(mask=y > -2), pyro.plate("data", len(y)):
        pyro.sample("y", dist.Normal(level, spread), obs=y)


def soft_budget(y):
    total = torch.zeros(())
    for i in range(pyro.sample("terms", dist.Categorical(torch.tensor([0.5, 0.3, 0.2]))) + 1):
        total = total + pyro.sample(f"term_{i}", dist.Normal(0, 1))
    pyro.deterministic("total", total)
    pyro.factor("budget", -(total**2) / 8)
    pyro.sample("y", dist.StudentT(3.0, total, 0.5), obs=y)


def minibatched(y, batch):
    shifted = pyro.sample("shifted", dist.Bernoulli(0.5))
    mean = pyro.sample("mean", dist.Normal(2.0 if shifted else -2.0, 1))
    with pyro.plate("data", len(y), subsample_size=batch) as rows:
        local = pyro.sample("local", dist.Normal(mean, 1))
        pyro.sample("y", dist.Normal(local, 0.5), obs=y[rows])


def nested_supports(y):
    length = pyro.sample("length", dist.Gamma(2.0, 1.0))
    cut = pyro.sample("cut", dist.Uniform(0.0, length))
    shares = pyro.sample("shares", dist.Dirichlet(torch.tensor([1.0, 2.0, 3.0])))
    rate = pyro.sample("rate", dist.Uniform(0, 1))
    if rate < 0.4:
        scale = pyro.sample("scale", dist.Uniform(0.5, 0.5 + length))
    else:
        scale = 0.7 + rate
    location = torch.stack([cut, shares[0] - shares[2]])
    with pyro.plate("data", 2):
        pyro.sample("y", dist.Normal(location, scale), obs=y)


def conditioned(y):
    def effects():
        base = pyro.sample("base", dist.Normal(0, 1))
        slope = pyro.sample("slope", dist.Normal(base, 1))
        return base - slope if base + slope > 1 else 2 * slope

    effect = poutine.condition(effects, data={"base": torch.tensor(0.25)})()
    pyro.sample("y", dist.Normal(effect, 0.8), obs=y)


class Regression(PyroModule):
    def __init__(self, features):
        super().__init__()
        self.weight = PyroSample(dist.Normal(0, 1).expand([features]).to_event(1))
        self.shifted = PyroSample(dist.Bernoulli(0.5))
        self.shift = PyroSample(dist.Laplace(0.0, 1.0))

    def forward(self, x, y):
        mean = x @ self.weight
        if self.shifted:
            mean = mean + self.shift
        pyro.sample("y", dist.Normal(mean, 0.4).to_event(1), obs=y)


def regression(x, y):
    Regression(x.shape[1])(x, y)


def _as_torch(argument):
    return (
        torch.tensor(argument, dtype=torch.float64) if isinstance(argument, (float, np.ndarray)) else argument
    )


# Every program with the arguments of its twin.
PROGRAMS = {globals()[twin.__name__]: tuple(map(_as_torch, args)) for twin, args in twins.PROGRAMS.items()}
