"""Sequences, plates, handlers and networks: the density of each path is the library's own."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as ndist
import pyro
import pyro.distributions as dist
import pytest
import torch
from numpyro import handlers
from numpyro.contrib.control_flow import cond, scan
from numpyro.infer import reparam as of_numpyro
from numpyro.infer.util import log_density
from pyro import poutine
from pyro.infer import reparam as of_pyro

from tests.frontends.pyro.against_torch import double_precision
from tests.paths import discover

Y = np.array([0.3, 1.1, -0.4, 0.8, 1.9])


def scanned(y):
    length = int(numpyro.sample("length", ndist.Categorical(np.ones(3) / 3))) + 1

    def step(state, _):
        state = numpyro.sample("state", ndist.Normal(0.9 * state, 1.0))
        return state, state

    last, states = scan(step, 0.0, jnp.arange(length))
    numpyro.deterministic("path", states)
    numpyro.sample("y", ndist.Normal(last, 1.0), obs=y[0])


def observed_in_a_scan(y):
    scale = 1.0 if numpyro.sample("calm", ndist.Bernoulli(0.5)) else 2.0

    def step(state, value):
        state = numpyro.sample("state", ndist.Normal(state, scale))
        numpyro.sample("y", ndist.Normal(state, 1.0), obs=value)
        return state, None

    scan(step, 0.0, y)


def conditional(y):
    z = numpyro.sample("z", ndist.Normal(0.0, 1.0))
    shifted = numpyro.sample("shifted", ndist.Bernoulli(0.5))
    mean = cond(shifted == 1, lambda z: z + 1.0, lambda z: -2.0 * z, z)
    if z > 0:
        mean = mean + numpyro.sample("more", ndist.Normal(0.0, 1.0))
    numpyro.sample("y", ndist.Normal(mean, 1.0).expand([5]), obs=y)


def pooled(y):
    if numpyro.sample("pooled", ndist.Bernoulli(0.5)):
        mean, scale = numpyro.sample("mean", ndist.Normal(0.0, 1.0)), 0.7
    else:
        mean, scale = 0.0, 1.0
    with numpyro.plate("group", 5):
        effect = numpyro.sample("effect", ndist.Normal(mean, scale))
        numpyro.sample("y", ndist.Normal(effect, 1.0), obs=y)


def projected(y):
    if numpyro.sample("turned", ndist.Bernoulli(0.5)):
        direction = numpyro.sample("direction", ndist.ProjectedNormal(jnp.array([1.0, 0.5])))
    else:
        direction = jnp.array([1.0, 0.0])
    numpyro.sample("y", ndist.Normal(direction, 0.5).to_event(1), obs=y[:2])


def transformed(y):
    if numpyro.sample("far", ndist.Bernoulli(0.5)):
        affine = ndist.transforms.AffineTransform(1.0, 2.0)
        mean = numpyro.sample("mean", ndist.TransformedDistribution(ndist.Normal(0.0, 1.0), affine))
    else:
        mean = numpyro.sample("near", ndist.Normal(0.0, 1.0))
    numpyro.sample("y", ndist.Normal(mean, 1.0).expand([5]), obs=y)


def with_parameter(y):
    weight = numpyro.param("weight", 0.0)
    if numpyro.sample("more", ndist.Bernoulli(0.5)):
        weight = weight + numpyro.sample("extra", ndist.Normal(0.0, 1.0))
    numpyro.sample("y", ndist.Normal(weight, 1.0).expand([5]), obs=y)


NUMPYRO = {
    "scan": scanned,
    "scan with data": observed_in_a_scan,
    "cond": conditional,
    "LocScaleReparam": handlers.reparam(pooled, config={"effect": of_numpyro.LocScaleReparam(0.0)}),
    "TransformReparam": handlers.reparam(transformed, config={"mean": of_numpyro.TransformReparam()}),
    "ProjectedNormalReparam": handlers.reparam(
        projected, config={"direction": of_numpyro.ProjectedNormalReparam()}
    ),
    "lift": handlers.lift(with_parameter, prior={"weight": ndist.Normal(0.0, 1.0)}),
    "scale": handlers.scale(pooled, scale=0.5),
    "scope": handlers.scope(pooled, prefix="inner"),
}


def one_by_one(y):
    for i in pyro.plate("data", 3):
        if pyro.sample(f"outlier_{i}", dist.Bernoulli(0.3)):
            mean = pyro.sample(f"mean_{i}", dist.Normal(3.0, 1.0))
        else:
            mean = torch.zeros(())
        pyro.sample(f"y_{i}", dist.Normal(mean, 1.0), obs=y[i])


def crossed(y, sizes=(2, 2)):
    table = y.outer(y[:3])
    columns = pyro.plate("columns", 3, subsample_size=sizes[0], dim=-1)
    rows = pyro.plate("rows", 5, subsample_size=sizes[1], dim=-2)
    if pyro.sample("own", dist.Bernoulli(0.5)):
        with columns:
            mean = pyro.sample("mean", dist.Normal(0.0, 1.0))
    else:
        mean = pyro.sample("mean", dist.Normal(0.0, 1.0))
    with columns as j, rows as i:
        pyro.sample("y", dist.Normal(mean, 1.0), obs=table[i][:, j])


def walk(y):
    length = int(pyro.sample("length", dist.Categorical(torch.ones(3)))) + 2
    state = torch.zeros(())
    for t in pyro.markov(range(length)):
        state = pyro.sample(f"state_{t}", dist.Normal(0.9 * state, 1.0))
        pyro.sample(f"y_{t}", dist.Normal(state, 1.0), obs=y[t])


def pooled_pyro(y):
    if pyro.sample("pooled", dist.Bernoulli(0.5)):
        mean, scale = pyro.sample("mean", dist.Normal(0.0, 1.0)), 0.7
    else:
        mean, scale = torch.zeros(()), 1.0
    with pyro.plate("group", 5):
        effect = pyro.sample("effect", dist.Normal(mean, scale))
        pyro.sample("y", dist.Normal(effect, 1.0), obs=y)


def vector(y):
    if pyro.sample("own", dist.Bernoulli(0.5)):
        mean = pyro.sample("mean", dist.Normal(torch.zeros(4), 1.0).to_event(1))
    else:
        mean = pyro.sample("level", dist.StudentT(4.0, 0.0, 1.0)).expand(4)
    pyro.sample("y", dist.Normal(mean, 1.0).to_event(1), obs=y[:4])


def stable(y):
    if pyro.sample("heavy", dist.Bernoulli(0.5)):
        mean = pyro.sample("mean", dist.Stable(1.5, 0.0, 1.0, 0.0))
    else:
        mean = pyro.sample("level", dist.Normal(0.0, 1.0))
    pyro.sample("y", dist.Normal(mean, 1.0).expand([5]).to_event(1), obs=y)


def with_parameter_pyro(y):
    weight = pyro.param("weight", torch.zeros(()))
    if pyro.sample("more", dist.Bernoulli(0.5)):
        weight = weight + pyro.sample("extra", dist.Normal(0.0, 1.0))
    pyro.sample("y", dist.Normal(weight, 1.0).expand([5]).to_event(1), obs=y)


def network_with_priors(y):
    """`random_module`, which Pyro calls deprecated; the weights that PyTorch draws first are not used."""
    width = int(pyro.sample("width", dist.Categorical(torch.ones(2)))) + 1
    network = torch.nn.Sequential(torch.nn.Linear(1, width), torch.nn.Tanh(), torch.nn.Linear(width, 1))
    priors = {
        name: dist.Normal(torch.zeros_like(value), torch.ones_like(value)).to_event(value.ndim)
        for name, value in network.named_parameters()
    }
    mean = pyro.random_module("network", network, priors)()(torch.linspace(0, 1, 5)[:, None])[:, 0]
    pyro.sample("y", dist.Normal(mean, 0.5).to_event(1), obs=y)


def attend(y):
    """Attend, infer, repeat: squares are drawn onto a canvas, as often as it takes."""
    image, square, number = y.outer(y), torch.ones(1, 1, 3, 3), 0
    canvas = torch.zeros(5, 5)
    while number < 2 and pyro.sample(f"more_{number}", dist.Bernoulli(0.5)):
        where = pyro.sample(f"where_{number}", dist.Normal(torch.zeros(2), 0.5).to_event(1))
        affine = torch.cat([3.0 * torch.eye(2), -3.0 * where[:, None]], dim=1)
        grid = torch.nn.functional.affine_grid(affine[None], [1, 1, 5, 5], align_corners=False)
        canvas = canvas + torch.nn.functional.grid_sample(square, grid, align_corners=False)[0, 0]
        number += 1
    pyro.sample("image", dist.Normal(canvas, 0.3).to_event(2), obs=image)


def drift(y):
    """A step along the gradient of an energy, which PyTorch computes inside the program."""
    x = pyro.sample("x", dist.Normal(0.0, 1.0))
    place = (1.0 * x).requires_grad_()
    (slope,) = torch.autograd.grad(place**4 / 4, place, create_graph=True)
    if x > 0:
        slope = pyro.sample("slope", dist.Normal(slope, 1.0))
    pyro.sample("y", dist.Normal(slope, 1.0).expand([5]).to_event(1), obs=y)


def shaped(y):
    """Shapes by a site: with `.long()`, `int`, `.item()` and as it is."""
    count = pyro.sample("count", dist.Categorical(torch.ones(3))).long() + 1
    weights = pyro.sample("weights", dist.Normal(torch.zeros(count), 1.0).to_event(1))
    matrix = torch.eye(count) + torch.ones(count, int(count)) + weights.view(count, 1).repeat(1, count)
    ends = torch.cat([torch.linspace(0, 1, count), torch.zeros(count.item())])
    mean = (
        (matrix @ weights).sum() + ends.sum() + torch.full((count,), 0.5).mean() + torch.arange(count).sum()
    )
    pyro.sample("y", dist.Normal(mean, 1.0).expand([5]).to_event(1), obs=y)


def reparam(model, **config):
    return poutine.reparam(model, config=config)


PYRO = {
    "sequential plate": one_by_one,
    "nested subsampling": crossed,
    "markov": walk,
    "LocScaleReparam": reparam(pooled_pyro, effect=of_pyro.LocScaleReparam(0.0)),
    "HaarReparam": reparam(vector, mean=of_pyro.HaarReparam(dim=-1)),
    "DiscreteCosineReparam": reparam(vector, mean=of_pyro.DiscreteCosineReparam(dim=-1)),
    "StudentTReparam": reparam(vector, level=of_pyro.StudentTReparam()),
    "LatentStableReparam": reparam(stable, mean=of_pyro.LatentStableReparam()),
    "lift": poutine.lift(with_parameter_pyro, prior={"weight": dist.Normal(0.0, 1.0)}),
    "random_module": network_with_priors,
    "affine_grid and grid_sample": attend,
    "autograd.grad": drift,
    "shapes": shaped,
}


def check(found, density):
    """The log-joint density of every path, at draws of the path."""
    assert len(found.paths) > 1
    for path in found.paths:
        slp = path.slp
        graph = slp.graph.outputs([slp.LOG_PRIOR, slp.LOG_LIKELIHOOD])
        for row in range(min(2, len(next(iter(path.draws.values()))))):
            values = {site.name: np.asarray(path.draws[site.name][row], site.dtype) for site in slp.sites}
            ours = sum(graph(graph.consts, list(values.values())))
            np.testing.assert_allclose(ours, density(values), rtol=1e-9, atol=1e-9)


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("name", NUMPYRO)
def test_numpyro(name):
    def density(values):
        return log_density(NUMPYRO[name], (Y,), {}, jax.tree.map(jnp.asarray, values))[0]

    check(discover(NUMPYRO[name], Y, samples=40), density)


@pytest.mark.usefixtures("engine")
@pytest.mark.filterwarnings("ignore:The `random_module` primitive")
@pytest.mark.parametrize("name", PYRO)
def test_pyro(name):
    own = partial(crossed, sizes=(3, 5)) if PYRO[name] is crossed else PYRO[name]

    def density(values):
        data = {site: torch.as_tensor(np.array(value)) for site, value in values.items()}
        data = {site: value.double() if value.ndim == 0 else value for site, value in data.items()}
        with double_precision():
            trace = poutine.trace(poutine.condition(own, data=data)).get_trace(torch.as_tensor(Y))
            return trace.log_prob_sum().item()

    check(discover(PYRO[name], torch.as_tensor(Y), samples=40), density)
