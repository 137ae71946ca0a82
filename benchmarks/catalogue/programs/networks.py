"""Networks, and PyTorch beyond formulas."""

import numpy as np
import pyro
import pyro.distributions as dist
import torch
from pyro.nn import PyroModule, PyroSample
from scipy import integrate, special, stats
from scipy.special import logsumexp
from torch import nn

import pathmix
from benchmarks.catalogue.entry import EVIDENCE, Entry

IMAGE = np.zeros((8, 8))
IMAGE[2:5, 3:6] = 1.0


def squares(x, y):
    """Images with a square at each place."""
    affine = torch.zeros(len(x), 2, 3)
    affine[:, 0, 0] = affine[:, 1, 1] = 3.0
    affine[:, 0, 2], affine[:, 1, 2] = -3.0 * x, -3.0 * y
    grid = nn.functional.affine_grid(affine, [len(x), 1, 8, 8], align_corners=False)
    return nn.functional.grid_sample(torch.ones(len(x), 1, 3, 3), grid, align_corners=False)[:, 0]


def attend_infer_repeat(image):
    """How many squares are in the image, and where?"""
    canvas, number = torch.zeros(8, 8), 0
    while number < 2 and pyro.sample(f"more_{number}", dist.Bernoulli(0.5)):
        x = pyro.sample(f"x_{number}", dist.Normal(0.0, 1.0))
        y = pyro.sample(f"y_{number}", dist.Normal(0.0, 1.0))
        canvas = canvas + squares(x.reshape(1), y.reshape(1))[0]
        number += 1
    pyro.deterministic("number", torch.tensor(float(number)))
    pyro.sample("image", dist.Normal(canvas, 0.3).to_event(2), obs=image)


def attend_infer_repeat_answers():
    """On a grid of places; the squares of two add up, so that products of pairs are all it takes."""
    edge = np.linspace(-3.2, 3.2, 129)
    x, y = (axis.ravel() for axis in np.meshgrid(edge, edge))
    log_prior = stats.norm.logpdf(x) + stats.norm.logpdf(y) + 2 * np.log(edge[1] - edge[0])
    drawn = squares(torch.tensor(x), torch.tensor(y)).double().numpy().reshape(len(x), -1)
    data = IMAGE.ravel()
    constant = -64 * np.log(0.3 * np.sqrt(2 * np.pi))
    one = log_prior - 0.5 * np.sum((data - drawn) ** 2, axis=1) / 0.09
    near = one > one.max() - 40  # others are as good as empty
    log_one = logsumexp(one)
    rows = []
    for first in np.flatnonzero(near | (np.arange(len(x)) % 16 == 0)):
        pairs = np.sum((data - drawn[first]) ** 2) + np.sum(drawn**2, axis=1)
        pairs = pairs - 2 * drawn @ (data - drawn[first])
        weight = 0.0 if near[first] else np.log(16)
        rows.append(weight + log_prior[first] + logsumexp(log_prior - 0.5 * pairs / 0.09))
    logs = np.array([-0.5 * np.sum(data**2) / 0.09, log_one, logsumexp(rows)]) + constant
    logs = logs + np.log([0.5, 0.25, 0.25])
    return {EVIDENCE: logsumexp(logs), "P(one square)": np.exp(logs - logsumexp(logs))[1]}


X = torch.linspace(-1, 1, 20, dtype=torch.float64)[:, None]
SINE = torch.sin(3 * X[:, 0])


class Hidden(PyroModule):
    """One layer with priors on its weights."""

    def __init__(self, width):
        super().__init__()
        self.layer = PyroModule[nn.Linear](1, width)
        self.layer.weight = PyroSample(dist.Normal(0.0, 1.0).expand([width, 1]).to_event(2))
        self.layer.bias = PyroSample(dist.Normal(0.0, 1.0).expand([width]).to_event(1))

    def forward(self, x):
        return torch.tanh(self.layer(x)).sum(-1)


def width_of_network(x, y):
    """How many hidden units?"""
    width = int(pyro.sample("width", dist.Categorical(torch.ones(3)))) + 1
    mean = Hidden(width)(x)
    with pyro.plate("data", len(x)):
        pyro.sample("y", dist.Normal(mean, 0.5), obs=y)


def width_of_network_answers():
    generator, x, y = np.random.default_rng(0), X.numpy()[:, 0], SINE.numpy()
    logs = []
    for width in (1, 2, 3):
        parts = []
        for _ in range(40):
            slope, shift = generator.normal(size=(2, 50_000, width, 1))
            mean = np.tanh(slope * x + shift).sum(axis=1)
            parts.append(stats.norm.logpdf(y, mean, 0.5).sum(axis=1))
        drawn = np.concatenate(parts)
        logs.append(logsumexp(drawn) - np.log(3 * len(drawn)))
    total = logsumexp(logs)
    return {EVIDENCE: total, "P(one unit)": float(np.exp(logs[0] - total))}


def langevin(y):
    """A step along the gradient of an energy, by `torch.autograd.grad` inside the program."""
    x = pyro.sample("x", dist.Normal(0.0, 1.0))
    place = (1.0 * x).requires_grad_()
    (slope,) = torch.autograd.grad(place**4 / 4, place, create_graph=True)
    if x > 0:
        slope = pyro.sample("slope", dist.Normal(slope, 1.0))
        pyro.sample("y", dist.Normal(slope, 0.5), obs=y)
    else:
        pyro.sample("y", dist.Normal(0.0, 1.0), obs=y)


def langevin_answers():
    def above(x):
        return stats.norm.pdf(x) * stats.norm.pdf(1.0, x**3, 1.25**0.5)

    logs = [np.log(integrate.quad(above, 0, 9)[0]), np.log(0.5) + stats.norm.logpdf(1.0)]
    return {EVIDENCE: logsumexp(logs), "P(x > 0)": float(np.exp(logs[0] - logsumexp(logs)))}


class Bessel(torch.autograd.Function):
    """SciPy's function, with its derivative."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.as_tensor(special.jv(1.5, x.detach().numpy()))

    @staticmethod
    def backward(ctx, weight):
        (x,) = ctx.saved_tensors
        return weight * torch.as_tensor(special.jvp(1.5, x.detach().numpy()))


def scipy_inside(y):
    """A function of SciPy's in a `torch.autograd.Function`."""
    x = pyro.sample("x", dist.Uniform(0.0, 6.0))
    mean = Bessel.apply(x)
    if x < 3:
        mean = pyro.sample("mean", dist.Normal(mean, 1.0))
    pyro.sample("y", dist.Normal(mean, 0.1), obs=y)


def scipy_inside_answers():
    def density(scale):
        return lambda x: stats.norm.pdf(0.4, special.jv(1.5, x), scale) / 6

    logs = [np.log(integrate.quad(density(s), *ends)[0]) for s, ends in ((1.01**0.5, (0, 3)), (0.1, (3, 6)))]
    return {EVIDENCE: logsumexp(logs), "P(x < 3)": float(np.exp(logs[0] - logsumexp(logs)))}


ENTRIES = [
    Entry(
        attend_infer_repeat,
        "pyro",
        origin="Eslami et al. 2016; Pyro's AIR example",
        args=(torch.tensor(IMAGE),),
        against="sums over a grid",
        answers=attend_infer_repeat_answers,
        read={"P(one square)": lambda draws: draws["number"] == 1},
    ),
    Entry(
        width_of_network,
        "pyro",
        origin="Pyro's Bayesian regression",
        args=(X, SINE),
        against="2e6 prior draws for each width",
        answers=width_of_network_answers,
        read={"P(one unit)": lambda draws: draws["width"] == 0},
    ),
    Entry(
        langevin,
        "pyro",
        origin="programs with gradients inside",
        args=(torch.tensor(1.0),),
        against="quadrature",
        answers=langevin_answers,
        read={"P(x > 0)": lambda draws: draws["x"] > 0},
    ),
    Entry(
        scipy_inside,
        "pyro",
        origin="black-box simulators with a derivative",
        args=(torch.tensor(0.4),),
        against="quadrature",
        answers=scipy_inside_answers,
        read={"P(x < 3)": lambda draws: draws["x"] < 3},
        options={"allocation": pathmix.SuccessiveHalving(budget=20_000)},  # each call takes 0.1 ms
    ),
]
