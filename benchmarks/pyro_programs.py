"""The programs of the Pyro benchmark, as a Pyro user writes them."""

import pyro
import pyro.contrib.gp as gp
import pyro.distributions as dist
import torch
from pyro.nn import PyroSample


def mixture(y):
    """A Gaussian mixture in many dimensions, with an unknown number of clusters."""
    clusters = int(pyro.sample("num_clusters", dist.Poisson(9.0))) + 1
    means = torch.zeros(clusters, y.shape[-1])
    for k in range(clusters):
        means[k] = pyro.sample(f"mu_{k}", dist.Normal(torch.zeros(y.shape[-1]), 10**0.5).to_event(1))
    components = dist.Normal(means, 0.1).to_event(1)
    mixed = dist.MixtureSameFamily(dist.Categorical(torch.ones(clusters) / clusters), components)
    with pyro.plate("data", len(y)):
        pyro.sample("y", mixed, obs=y)


LEAVES = {0: gp.kernels.RBF, 1: gp.kernels.RationalQuadratic, 2: gp.kernels.Periodic, 3: gp.kernels.Linear}
HYPERPARAMETERS = {
    0: ["lengthscale"],
    1: ["lengthscale", "scale_mixture"],
    2: ["lengthscale", "period"],
    3: [],
}


def kernel(name):
    """A random expression over kernels: SE | RQ | PER | LIN + bias | K * K | K + K."""
    choice = pyro.sample(f"{name}type", dist.Categorical(torch.tensor([0.2, 0.2, 0.2, 0.2, 0.1, 0.1])))
    if choice == 4:
        return gp.kernels.Product(kernel(f"{name}l."), kernel(f"{name}r."))
    if choice == 5:
        return gp.kernels.Sum(kernel(f"{name}l."), kernel(f"{name}r."))
    leaf = LEAVES[int(choice)](input_dim=1)
    leaf._pyro_name = f"{name}leaf"
    leaf.variance = torch.tensor(1.0)
    for parameter in HYPERPARAMETERS[int(choice)]:
        setattr(leaf, parameter, PyroSample(dist.InverseGamma(2.0, 1.0)))
    if choice == 3:
        bias = gp.kernels.Constant(input_dim=1)
        bias._pyro_name = f"{name}bias"
        bias.variance = PyroSample(dist.InverseGamma(2.0, 1.0))
        return gp.kernels.Sum(leaf, bias)
    return leaf


def gaussian_process(x, y):
    covariance = kernel("k.")(x)
    noise = pyro.sample("noise", dist.HalfNormal(1.0))
    covariance = covariance + (noise**2 + 1e-6) * torch.eye(len(x))
    pyro.sample("y", dist.MultivariateNormal(torch.zeros(len(x)), covariance), obs=y)


def coins(count, y):
    """Discrete sites only; no two outcomes are worth the same."""
    worth = 0.0
    for j in range(count):
        if pyro.sample(f"coin_{j}", dist.Bernoulli(0.5)):
            worth += 0.5**j
    pyro.sample("y", dist.Normal(worth, 1.0), obs=y)
