"""Pyro programs as people write them. Their densities are Pyro's own, or the answer is known exactly."""

import copy
import functools
import random
import re
import warnings
from contextlib import contextmanager

import jax
import numpy as np
import pyro
import pyro.distributions as dist
import pytest
import torch
from pyro import poutine
from pyro.contrib.gp import kernels
from pyro.nn import PyroModule, PyroParam, PyroSample
from pyro.poutine.subsample_messenger import SubsampleMessenger
from scipy import integrate, stats

import pathmix
from pathmix.discovery import PriorDiscovery
from pathmix.engine.precision import engine_scope
from pathmix.frontends import pyro as frontend
from pathmix.frontends.pyro.texts import MARK
from pathmix.frontends.recognise import bind
from pathmix.program.seeds import Seed
from pathmix.program.slp import Plate
from pathmix.regions.region import read_region
from tests import exact
from tests.paths import discover

TWO = torch.tensor(2.0)


@contextmanager
def float64():
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def discovered(model, *args, samples=16):
    return PriorDiscovery(samples).discover(bind(model, args), Seed.of(0), lambda slp, draws: None).paths


def outputs(slp, values):
    graph = slp.graph.outputs(range(slp.FIRST_CONDITION + len(slp.path.decisions)))
    typed = [np.asarray(values[site.name], site.dtype) for site in slp.sites]
    return jax.jit(graph)(graph.consts, typed)


def densities_are_pyros(model, *args, samples=16, most=3, eager=None):
    """On the first paths, at a prior draw, the lowered density is that of an eager run; returns all paths.

    `eager` replaces the model in the eager run.
    """
    with engine_scope("float64"):
        paths = discovered(model, *args, samples=samples)
        for path in paths[:most]:
            row = {name: values[-1] for name, values in path.draws.items()}
            log_prior, log_likelihood, *conditions = outputs(path.slp, row)
            assert all(conditions)
            with float64():
                values = {name: torch.as_tensor(np.array(value)) for name, value in row.items()}
                arguments = frontend.adapt(args)
                trace = poutine.trace(poutine.condition(eager or model, values)).get_trace(*arguments)
                expected = trace.log_prob_sum().detach()
            assert float(log_prior + log_likelihood) == pytest.approx(float(expected), rel=1e-9, abs=1e-9)
    return paths


# Models of every kind.


def test_functions_methods_objects_and_partials():
    class Model:
        scale = 1.0

        def method(self, y):
            z = pyro.sample("z", dist.Normal(0, self.scale))
            pyro.sample("y", dist.Normal(z, 1), obs=y)

        __call__ = method

    def with_keywords(y, *, scale):
        z = pyro.sample("z", dist.Normal(0, scale))
        pyro.sample("y", dist.Normal(z, 1), obs=y)

    for model in (Model(), Model().method, functools.partial(with_keywords, scale=1.0)):
        assert len(densities_are_pyros(model, TWO)) == 1
    few = pathmix.Uniform(2_000)
    posterior = pathmix.SDVI(with_keywords, allocation=few, weights="elbo").run(0, 0.5, scale=1.0)
    assert posterior.elbo == pytest.approx(stats.norm.logpdf(0.5, 0, np.sqrt(2)), abs=0.01)


def test_a_pyro_module_with_random_weights():
    class Regression(PyroModule):
        def __init__(self):
            super().__init__()
            self.linear = PyroModule[torch.nn.Linear](2, 1)
            self.linear.weight = PyroSample(dist.Normal(0, 1).expand([1, 2]).to_event(2))
            self.linear.bias = PyroSample(lambda module: dist.Normal(0, 10).expand([1]).to_event(1))
            self.curved = PyroSample(dist.Bernoulli(0.5))

        def forward(self, x, y=None):
            mean = self.linear(x).squeeze(-1)
            if self.curved:
                mean = mean + pyro.sample("curve", dist.Normal(0, 1)) * x[:, 0] ** 2
            with pyro.plate("data", len(x)):
                return pyro.sample("y", dist.Normal(mean, 0.3), obs=y)

    x = torch.linspace(-1, 1, 10).reshape(5, 2)
    paths = densities_are_pyros(Regression(), x, x.sum(1))
    addresses = {path.slp.path.addresses for path in paths}
    assert addresses == {
        ("linear.weight", "linear.bias", "curved"),
        ("linear.weight", "linear.bias", "curved", "curve"),
    }


def test_a_network_with_fixed_weights_in_single_precision():
    torch.manual_seed(0)
    network = torch.nn.Sequential(torch.nn.Linear(2, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))

    def model(y):
        z = pyro.sample("z", dist.Normal(0, 1).expand([2]).to_event(1))
        pyro.sample("y", dist.Normal(network(z).squeeze(-1), 0.1), obs=y)

    def eager(y):
        z = pyro.sample("z", dist.Normal(0, 1).expand([2]).to_event(1))
        double = torch.nn.Sequential(torch.nn.Linear(2, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
        double.load_state_dict(network.state_dict())
        pyro.sample("y", dist.Normal(double(z).squeeze(-1), 0.1), obs=y)

    densities_are_pyros(model, torch.tensor(0.3), eager=eager)
    assert all(weight.dtype is torch.float32 for weight in network.parameters())


def test_a_module_that_pyro_makes_random():
    def model(x, y):
        network = torch.nn.Linear(2, 1, bias=False)
        lifted = pyro.random_module("net", network, {"weight": dist.Normal(0, 1).expand([1, 2]).to_event(2)})
        pyro.sample("y", dist.Normal(lifted()(x).squeeze(-1), 1.0).to_event(1), obs=y)

    with pytest.warns(FutureWarning, match="random_module"):
        densities_are_pyros(model, torch.ones(3, 2), torch.zeros(3))


# Gaussian processes.


HYPERPARAMETERS = {
    kernels.RBF: ("variance", "lengthscale"),
    kernels.RationalQuadratic: ("variance", "lengthscale", "scale_mixture"),
    kernels.Periodic: ("variance", "lengthscale", "period"),
    kernels.Linear: ("variance",),
}


def random_kernel(address="k"):
    """A base kernel with random hyperparameters, or the sum or product of two random kernels."""
    kind = pyro.sample(
        f"{address}.kind", dist.Categorical(torch.tensor([0.2, 0.2, 0.2, 0.2, 0.1, 0.1]))
    ).item()
    if kind == 4.0:
        return kernels.Sum(random_kernel(f"{address}0"), random_kernel(f"{address}1"))
    if kind == 5.0:
        return kernels.Product(random_kernel(f"{address}0"), random_kernel(f"{address}1"))
    base = list(HYPERPARAMETERS)[kind]
    kernel = base(input_dim=1)
    for name in HYPERPARAMETERS[base]:
        setattr(kernel, name, PyroSample(dist.InverseGamma(2.0, 1.0)))
    return kernel


def gaussian_process(x, y):
    kernel = random_kernel()
    noise = pyro.sample("noise", dist.HalfNormal(1.0))
    covariance = kernel(x)
    covariance.view(-1)[:: len(x) + 1] += noise**2 + 1e-6
    pyro.sample("y", dist.MultivariateNormal(torch.zeros(len(x)), covariance), obs=y)


@pytest.mark.trust
def test_a_grammar_of_gaussian_process_kernels():
    x = torch.linspace(-1, 1, 30)
    paths = densities_are_pyros(gaussian_process, x, torch.sin(5 * x) + 0.3 * x, most=4)
    addresses = [path.slp.path.addresses for path in paths]
    assert ("k.kind", "noise", "variance") in addresses
    assert any("kern0.variance" in names and "kern1.variance" in names for names in addresses)
    posterior = exact.fit(gaussian_process, x, torch.sin(5 * x), budget=60, discovery=PriorDiscovery(3))
    assert all(path.status.usable for path in posterior.paths), [path.message for path in posterior.paths]


def test_a_gaussian_process_model_of_pyros_own():
    from pyro.contrib import gp

    x = torch.linspace(0, 1, 8)

    def model(y):
        kernel = kernels.RBF(input_dim=1)
        kernel.lengthscale = PyroSample(dist.LogNormal(0.0, 1.0))
        if pyro.sample("wiggly", dist.Bernoulli(0.5)):
            kernel.variance = PyroSample(dist.LogNormal(0.0, 1.0))
        gp.models.GPRegression(x.to(y.dtype), y, kernel, noise=torch.tensor(0.1)).model()

    densities_are_pyros(model, torch.sin(6 * x))


# Mixtures and loops.


def infinite_mixture(y, most=6):
    clusters = int(pyro.sample("K", dist.Poisson(2.0)).item()) + 1
    dimension = y.shape[-1]
    means = torch.zeros(clusters, dimension)
    for k in range(clusters):
        means[k] = pyro.sample(f"mu_{k}", dist.Normal(torch.zeros(dimension), 10.0).to_event(1))
    components = dist.Normal(means, 0.1 * torch.ones(clusters, dimension)).to_event(1)
    mixture = dist.MixtureSameFamily(dist.Categorical(torch.ones(clusters) / clusters), components)
    with pyro.plate("data", y.shape[0]):
        pyro.sample("y", mixture, obs=y)


@pytest.mark.trust
def test_the_infinite_gaussian_mixture_in_100_dimensions():
    y = torch.arange(500.0).reshape(5, 100).cos()
    paths = densities_are_pyros(infinite_mixture, y, most=4)
    assert {len(path.slp.sites) - 1 for path in paths} >= {1, 2, 3}
    posterior = exact.fit(infinite_mixture, y, budget=60, discovery=PriorDiscovery(4))
    assert all(path.status.usable for path in posterior.paths), [path.message for path in posterior.paths]


def test_data_are_arguments_and_what_depends_on_no_site_is_computed_once():
    def model(x, y):
        gram = torch.linalg.cholesky(x @ x.T + torch.eye(3))
        w = pyro.sample("w", dist.Normal(torch.zeros(3), 1).to_event(1))
        pyro.sample("y", dist.Normal(gram @ w, 1).to_event(1), obs=y)

    def graph(x, y):
        (path,) = discovered(model, x, y, samples=2)
        return path.slp.graph

    y = torch.tensor([0.1, 0.2, 0.3])
    one, other = graph(torch.ones(3, 2), y), graph(torch.rand(3, 2), 2 * y)
    assert one.structure == other.structure  # so both share their executables
    assert any(np.array_equal(const, y) for const in one.consts)
    assert "cholesky" not in str(one.jaxpr) and str(one.jaxpr).count("dot_general") == 1


def test_a_while_loop_on_tensors():
    def model(y):
        total, steps = torch.zeros(()), torch.tensor(0)
        while total < 1 and steps < 4:
            total = total + pyro.sample(f"step_{steps.item()}", dist.Exponential(2.0))
            steps += 1
        pyro.sample("y", dist.Normal(total, 0.1), obs=y)

    paths = densities_are_pyros(model, TWO)
    assert {len(path.slp.sites) for path in paths} >= {1, 2, 3}


def test_drawn_values_may_be_written_to():
    """Pyro itself would take the density at what was written."""

    def model(y):
        x = pyro.sample("x", dist.Normal(0, 1))
        x += 1
        w = pyro.sample("w", dist.Normal(0, 1).expand([3]).to_event(1))
        w[0] = x
        if w[0] > 1:
            w[1:] *= 2
        pyro.sample("y", dist.Normal(w.sum(), 1), obs=y)

    def eager(y):
        x = pyro.sample("x", dist.Normal(0, 1))
        w = pyro.sample("w", dist.Normal(0, 1).expand([3]).to_event(1))
        rest = w[1:] * 2 if x > 0 else w[1:]
        pyro.sample("y", dist.Normal(x + 1 + rest.sum(), 1), obs=y)

    assert len(densities_are_pyros(model, TWO, eager=eager)) == 2


def test_tensors_made_like_the_data_may_be_written_to():
    def model(x, y):
        k = pyro.sample("k", dist.Bernoulli(0.5))
        mean, twice = torch.zeros_like(x), x * 2
        mean += pyro.sample("slope", dist.Normal(0, 1)) * x
        twice[0] = pyro.sample("first", dist.Normal(0, 1))
        if k:
            mean[1:] -= pyro.sample("shift", dist.Normal(0, 1))
        pyro.sample("y", dist.Normal(mean + twice, 1).to_event(1), obs=y)

    x = torch.arange(3.0, dtype=torch.float64)
    assert len(densities_are_pyros(model, x, torch.ones(3))) == 2
    assert x.tolist() == [0, 1, 2]


# Discrete values where Python and PyTorch want numbers.


USES = {
    "item": lambda k: torch.ones(3) * k.item(),
    "int and range": lambda k: torch.tensor([float(i) for i in range(int(k) + 1)]).sum(),
    "a comparison with a number": lambda k: torch.tensor(1.0 if k == 0.0 else -1.0),
    "a list index": lambda k: torch.tensor([0.5, 1.5, 2.5][k]),
    "a tensor index": lambda k: torch.arange(12.0).reshape(3, 4)[k, 0],
    "a tensor index with an ellipsis": lambda k: torch.arange(12.0).reshape(3, 4)[..., k].sum(),
    "a slice": lambda k: torch.arange(4.0)[: k + 1].sum(),
    "a written element": lambda k: torch.arange(3.0).index_fill_(0, k, 7.0).sum(),
    "a size": lambda k: torch.zeros(k).sum() + k,
    "a size with another": lambda k: torch.ones(k, 2).sum(),
    "a range of tensors": lambda k: torch.arange(k).sum() / 2,
    "a repetition": lambda k: torch.ones(2).repeat(k).sum(),
    "a list": lambda k: torch.tensor(float(sum(torch.stack([k, k + 1]).tolist()))),
    "an array": lambda k: torch.tensor(float(np.cumsum(torch.stack([k, k]).numpy())[-1])),
    "an array by NumPy": lambda k: torch.tensor(float(np.asarray(k) * 2)),
    "a one-hot": lambda k: torch.nn.functional.one_hot(k, 3) @ torch.tensor([1, 2, 3]) / 2,
    "a choice": lambda k: torch.where(k > 0, 1.0, -1.0),
    "membership": lambda k: torch.tensor(1.0 if k in torch.tensor([0, 2]) else 3.0),
    "a format": lambda k: torch.tensor(float(f"{k:d}.5")),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES.keys())
def test_discrete_values_may_be_used_as(use):
    def model(y):
        k = pyro.sample("k", dist.Categorical(torch.tensor([0.5, 0.3, 0.2])))
        z = pyro.sample("z", dist.Normal(use(k).sum(), 1))
        pyro.sample("y", dist.Normal(z, 1), obs=y)

    paths = densities_are_pyros(model, TWO)
    assert {path.slp.path.pinned for path in paths} == {(("k", k),) for k in range(3)}


MADE = {
    "a list of numbers": lambda x: torch.tensor([x[0], 2 * x[1], 3]),
    "a matrix of numbers": lambda x: torch.tensor([[x[0], 1.0], [0, x[1]]]),
    "a copy": lambda x: torch.tensor(x[0].detach()),
    "a deep copy": copy.deepcopy,
    "a constant tensor": lambda x: torch.full((3,), x[0]),
    "a filled tensor": lambda x: torch.empty(3).fill_(x[0]),
    "written elements": lambda x: torch.eye(3).index_put_((torch.tensor([0, 1]), torch.arange(2)), x[:2]),
    "elements written by a mask": lambda x: torch.ones(3).masked_scatter_(torch.arange(3) != 1, x),
    "a new tensor": lambda x: x.new_zeros(3).copy_(x),
    "unpacked elements": lambda x: (lambda a, b, c: a * b - c)(*x),
    "a sum over elements": lambda x: sum(element**2 for element in x),
    "a bound": lambda x: x.clamp(min=0.1) + torch.clamp(x, max=x[0]),
    "no gradient": torch.no_grad()(lambda x: x.detach() * 2),
    "a mapped function": lambda x: torch.vmap(lambda element: element * TWO)(x),
    "a derivative": torch.func.grad(lambda x: (x**3 * TWO).sum()),
    "the largest": lambda x: max(x[0], x[1]) - sorted([x[1], x[2]])[0],
    "a matrix product": lambda x: x @ torch.arange(9.0).reshape(3, 3) @ x,
    "text": lambda x: x * len(repr(x)[:3]),
}


@pytest.mark.parametrize("make", MADE.values(), ids=MADE.keys())
def test_continuous_values_may_be_made(make):
    def model(y):
        x = pyro.sample("x", dist.Normal(0, 1).expand([3]).to_event(1))
        pyro.sample("y", dist.Normal(make(x).sum(), 1), obs=y)

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "To copy construct from a tensor")  # from the eager run
        densities_are_pyros(model, TWO)


def test_questions_about_whole_tensors():
    def model(y):
        x = pyro.sample("x", dist.Normal(0, 1).expand([3]).to_event(1))
        total = x.sum()
        if torch.any(x > 1):
            total = total + pyro.sample("high", dist.Normal(0, 1))
        if (x < 1).all() and not torch.equal(x, x + 1):
            total = total + pyro.sample("low", dist.Normal(0, 1))
        assert torch.allclose(x, x)
        pyro.sample("y", dist.Normal(total, 1), obs=y)

    assert len(densities_are_pyros(model, TWO)) == 2


def test_branching_annotations_are_welcome():
    def model(y):
        k = pyro.sample("k", dist.Bernoulli(0.5), infer={"branching": True, "enumerate": "parallel"})
        z = pyro.sample("z", dist.Normal(k, 1))
        pyro.sample("y", dist.Normal(z, 1), obs=y)

    assert len(densities_are_pyros(model, TWO)) == 2


# Plates and handlers.


def test_plates_of_every_kind():
    def model(y):
        with pyro.plate("outer", 2, dim=-2):
            a = pyro.sample("a", dist.Normal(0, 1))
            with pyro.plate("inner", 3, dim=-1) as indices:
                b = pyro.sample("b", dist.Gamma(2.0 + indices, 1.0))
                pyro.sample("y", dist.Normal(a, b), obs=y)
        c = []
        for i in pyro.plate("loop", 2):
            c.append(pyro.sample(f"c_{i}", dist.Normal(a[i, 0], 1)))
        pyro.sample("end", dist.Normal(torch.stack(c), 1.0).to_event(1), obs=torch.ones(2))

    (path,) = densities_are_pyros(model, torch.ones(2, 3))
    assert [site.shape for site in path.slp.sites] == [(2, 1), (2, 3), (), ()]


@pytest.mark.parametrize("how", ["indices", "subsample", "subsample=", "loop"])
def test_subsampled_plates_see_all_data(how):
    y = torch.linspace(-1, 2, 6)

    def model(y, batch):
        mu = pyro.sample("mu", dist.Normal(0, 1))
        if how == "loop":
            for i in pyro.plate("data", len(y), subsample_size=batch):
                pyro.sample(f"y_{i}", dist.Normal(mu, 1), obs=y[i])
            return
        with pyro.plate("data", len(y), subsample_size=batch) as rows:
            local = pyro.sample("local", dist.Normal(mu, 1)) if how != "subsample=" else mu
            data = pyro.subsample(y, event_dim=0) if how == "subsample" else y[rows]
            pyro.sample("y", dist.Normal(local, 1), obs=data)

    def whole(y, batch):
        model(y, None)

    (path,) = densities_are_pyros(model, y, 2, eager=whole)
    # Sites in a loop over a plate are named by element, so training has all of them too.
    assert path.slp.plates == (() if how == "loop" else (Plate("data", 6, 2),))


def test_a_subsample_given_by_the_program_is_left_alone():
    def model(y):
        mu = pyro.sample("mu", dist.Normal(0, 1))
        with pyro.plate("data", len(y), subsample=torch.tensor([0, 2])) as rows:
            pyro.sample("y", dist.Normal(mu, 1), obs=y[rows])

    (path,) = densities_are_pyros(model, torch.linspace(-1, 2, 6))
    assert path.slp.plates == ()


def with_handlers(y):
    z = pyro.sample("z", dist.Normal(0, 1))
    w = pyro.sample("w", dist.Normal(z, 1))
    pyro.sample("y", dist.Normal(w, 1).expand([3]).to_event(1), obs=y)


HANDLED = {
    "condition": lambda model: poutine.condition(model, {"w": torch.tensor(0.3)}),
    "do": lambda model: poutine.do(model, {"w": torch.tensor(0.3)}),
    "scale": lambda model: poutine.scale(model, scale=0.25),
    "mask": lambda model: poutine.mask(model, mask=torch.tensor(False)),
    "lift": lambda model: poutine.lift(model, prior=dist.Normal(0, 1)),
    "uncondition": lambda model: poutine.uncondition(model),
    "infer_config": lambda model: poutine.infer_config(model, config_fn=lambda site: {"mine": 1}),
    "reparam": lambda model: poutine.reparam(model, config={"w": pyro.infer.reparam.LocScaleReparam(0.0)}),
    "pyro.condition": lambda model: pyro.condition(model, data={"z": torch.tensor(-0.3)}),
}


@pytest.mark.parametrize("handle", HANDLED.values(), ids=HANDLED.keys())
def test_models_under_handlers(handle):
    densities_are_pyros(handle(with_handlers), torch.ones(3))


def test_handlers_inside_a_model():
    def model(y):
        z = pyro.sample("z", dist.Normal(0, 1))
        with poutine.scale(scale=torch.tensor(3.0)), poutine.mask(mask=torch.tensor([True, False, True])):
            pyro.sample("y", dist.Normal(z, 1).expand([3]), obs=y)
        with poutine.block(hide=["hidden"]):
            pyro.sample("hidden", dist.Normal(z, 1), obs=torch.tensor(5.0))
        pyro.factor("soft", -z.abs())
        pyro.deterministic("double", 2 * z)

    (path,) = densities_are_pyros(model, torch.ones(3))
    assert [name for name, _ in path.slp.deterministics] == ["double"]
    assert path.slp.observed == ("y",)


def test_partly_observed_data():
    """What `obs_mask` leaves out is a site of its own."""

    def model(y):
        z = pyro.sample("z", dist.Normal(0, 1))
        seen = torch.tensor([True, True, False])
        with pyro.plate("data", 3):
            y = pyro.sample("y", dist.Normal(z, 1), obs=y, obs_mask=seen)
        pyro.sample("sum", dist.Normal(y.sum(), 1), obs=torch.tensor(1.0))

    (path,) = densities_are_pyros(model, torch.tensor([0.1, 0.2, 0.3]))
    assert path.slp.path.addresses == ("z", "y_unobserved")


# Parameters.


@pytest.mark.parametrize(
    "initial", [lambda: torch.randn(3), lambda: lambda: torch.randn(3)], ids=["tensor", "function"]
)
def test_parameters_keep_their_first_value(initial):
    def model(y):
        w = pyro.param("w", initial())
        scale = pyro.param("scale", torch.tensor(0.5), constraint=dist.constraints.positive)
        z = pyro.sample("z", dist.Normal(0, 1))
        pyro.sample("y", dist.Normal(w * z, scale).to_event(1), obs=y)

    pyro.clear_param_store()
    few = PriorDiscovery(8)
    posterior = exact.fit(model, torch.ones(3), budget=50, weights="elbo", discovery=few)
    assert "Parameters are kept at their initial values: scale, w." in posterior.notes
    assert len(pyro.get_param_store()) == 0
    again = posterior.log_prob({"z": 0.1})
    assert again == posterior.log_prob({"z": 0.1})


def test_parameters_of_the_users_store_are_used():
    def model(y):
        z = pyro.sample("z", dist.Normal(pyro.param("w", torch.tensor(0.0)), 1))
        pyro.sample("y", dist.Normal(z, 1), obs=y)

    pyro.clear_param_store()
    pyro.param("w", torch.tensor(1.5))
    densities_are_pyros(model, TWO)
    posterior = exact.fit(model, TWO, budget=2_000, weights="elbo")
    assert posterior.elbo == pytest.approx(stats.norm.logpdf(2, 1.5, np.sqrt(2)), abs=0.01)
    pyro.clear_param_store()


def test_a_module_registered_with_pyro():
    network = torch.nn.Linear(2, 1).double()

    def model(x, y):
        pyro.module("network", network)
        z = pyro.sample("z", dist.Normal(0, 1))
        pyro.sample("y", dist.Normal(network(x).squeeze(-1) + z, 1).to_event(1), obs=y)

    densities_are_pyros(model, torch.ones(3, 2), torch.zeros(3))
    pyro.clear_param_store()


# Data of every kind.


@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.float64, torch.int64, torch.bool, torch.uint8], ids=str
)
def test_data_of_every_type(dtype):
    def model(y):
        p = pyro.sample("p", dist.Beta(1.5, 2.0))
        mean = torch.where(y > 0, p, -p)
        pyro.sample("kinds", dist.Categorical(torch.stack([p, 1 - p])).expand([3]).to_event(1), obs=y)
        if dtype is not torch.bool:  # PyTorch can neither subtract nor scale them
            pyro.sample("counts", dist.Poisson(2 * p).expand([3]).to_event(1), obs=y)
            pyro.sample("values", dist.Normal(mean, 1).to_event(1), obs=y)
        if y.is_floating_point():
            pyro.sample("flags", dist.Bernoulli(p).expand([3]).to_event(1), obs=y)

    densities_are_pyros(model, torch.tensor([0, 1, 1]).to(dtype))


def test_single_precision_data_in_a_closure():
    x = torch.linspace(-1, 1, 8).reshape(4, 2)
    y = torch.tensor([0.1, 0.2, 0.3, 0.4])

    def regression(x, y):
        w = pyro.sample("w", dist.Normal(0, 1).expand([2]).to_event(1))
        b = pyro.sample("b", dist.MultivariateNormal(torch.zeros(2), torch.eye(2)))
        with pyro.plate("data", 4):
            pyro.sample("y", dist.Normal(x @ w + torch.einsum("ij,j->i", x, b), 0.5), obs=y)

    densities_are_pyros(lambda: regression(x, y), eager=lambda: regression(x.double(), y.double()))


def test_single_precision():
    def model(y):
        x = pyro.sample("x", dist.Normal(0, 1))
        if x < 0:
            z = pyro.sample("z1", dist.Normal(-3, 1))
        else:
            z = pyro.sample("z2", dist.Normal(3, 1))
        assert z.dtype is torch.float32
        pyro.sample("y", dist.Normal(z, 2), obs=y)

    posterior = exact.fit(model, TWO, precision="float32", discovery=PriorDiscovery(64))
    assert posterior.elbo == pytest.approx(exact.logsumexp(list(exact.two_branches(2.0).values())), abs=0.05)
    assert posterior.sample(0, 3)["x"].dtype == np.float32


def test_supports_of_every_kind():
    def model(y):
        factor = pyro.sample("factor", dist.LKJCholesky(3, 1.5))
        rate = pyro.sample("rate", dist.Beta(2.0, 3.0))
        shares = pyro.sample("shares", dist.Dirichlet(torch.ones(3)))
        scale = pyro.sample("scale", dist.InverseGamma(2.0, 1.0))
        length = pyro.sample("length", dist.Uniform(0.1, 0.1 + scale))
        if rate < 0.5:
            scale = scale + pyro.sample("more", dist.Pareto(length, 2.0))
        pyro.sample("y", dist.MultivariateNormal(shares, scale_tril=scale * factor), obs=y)

    assert len(densities_are_pyros(model, torch.ones(3))) == 2


# Nothing global is left changed.


def global_state():
    store = pyro.get_param_store()
    numpy_state = np.random.get_state()
    return {
        "default dtype": torch.get_default_dtype(),
        "settings": pyro.settings.get(),  # validation, above all
        "store": id(store),
        "parameters": [(name, id(value)) for name, value in store._params.items()],
        "numbers": [value.tolist() for value in store._params.values()],
        "torch random": torch.get_rng_state().tolist(),
        "numpy random": (numpy_state[1].tolist(), numpy_state[2]),
        "python random": random.getstate(),
        "threads": (torch.get_num_threads(), torch.get_num_interop_threads()),
        "handlers": list(pyro.poutine.runtime._PYRO_STACK),
        "modes": torch.overrides._get_current_function_mode_stack(),
        "subsample": SubsampleMessenger._subsample,
        "gradients": torch.is_grad_enabled(),
    }


@contextmanager
def unchanged():
    before = global_state()
    yield
    after = global_state()
    for what, value in before.items():
        assert after[what] == value, what


def everything(x, y, fail=False):
    w = pyro.param("w", torch.tensor([0.5, 1.5]))
    offset = pyro.param("offset", lambda: torch.randn(()))
    mean = pyro.sample("mean", dist.Normal(offset, 1))
    if fail:
        raise ZeroDivisionError("mine")
    if mean > offset:
        mean = mean + pyro.sample("more", dist.Exponential(1.0))
    with pyro.plate("data", len(x), subsample_size=2) as rows:
        return pyro.sample("y", dist.Normal(mean + x[rows] @ w, 1), obs=None if y is None else y[rows])


@pytest.mark.parametrize(("dtype", "validate"), [(torch.float32, True), (torch.float64, False)], ids=str)
def test_global_settings_are_left_as_they_were(dtype, validate):
    x, y = torch.arange(8.0).reshape(4, 2), torch.ones(4)
    before = torch.get_default_dtype()
    pyro.clear_param_store()
    pyro.param("w", torch.tensor([2.0, 3.0]))
    with pyro.validation_enabled(validate):
        torch.set_default_dtype(dtype)
        try:
            with unchanged():
                posterior = exact.fit(everything, x, y, budget=60, discovery=PriorDiscovery(16))
            with unchanged():
                draws = posterior.sample(0, 5)
            with unchanged():
                posterior.predict(0, 5, x, None)
            with unchanged():
                row = {name: draws[name][0] for name in draws if draws.present(name)[0]}
                assert np.isfinite(posterior.log_prob(row))
            with unchanged(), pytest.raises(ZeroDivisionError, match="mine"):
                exact.fit(everything, x, y, True, budget=60)
        finally:
            torch.set_default_dtype(before)
    assert x.dtype is torch.float32 and x.tolist() == torch.arange(8.0).reshape(4, 2).tolist()
    pyro.clear_param_store()


def test_modules_are_left_as_they_were():
    network = torch.nn.Linear(2, 1)
    weights = {name: (id(value), value.tolist()) for name, value in network.named_parameters()}

    class Model(PyroModule):
        def __init__(self):
            super().__init__()
            self.network = network
            self.scale = PyroParam(torch.tensor(0.5), constraint=dist.constraints.positive)
            self.shift = PyroSample(dist.Normal(0, 1))

        def forward(self, x, y):
            pyro.sample(
                "y", dist.Normal(self.network(x).squeeze(-1) + self.shift, self.scale).to_event(1), obs=y
            )

    model = Model()
    state = {name: value.tolist() for name, value in model.state_dict().items()}
    pyro.clear_param_store()
    with unchanged():
        data = torch.ones(3, 2), torch.ones(3)
        exact.fit(model, *data, budget=60, weights="elbo", discovery=PriorDiscovery(8))
    assert {name: (id(value), value.tolist()) for name, value in network.named_parameters()} == weights
    assert all(value.requires_grad and value.dtype is torch.float32 for value in network.parameters())
    assert {name: value.tolist() for name, value in model.state_dict().items()} == state


def test_a_magnitude_bounds_its_site():
    """As in NumPyro's program: a box, with nothing to reject."""

    def program():
        x = pyro.sample("x", dist.Normal(0.0, 1.0))
        mean = 1.0 if abs(x) < 0.5 else 0.0
        pyro.sample("y", dist.Normal(mean, 1.0), obs=torch.tensor(1.0))

    near, far = sorted(
        discover(program, samples=60).paths, key=lambda path: -path.slp.path.decisions[0].value
    )
    with engine_scope("float64"):
        (interval,) = read_region(near.slp, near.draws).bounds["x"].values()
        assert read_region(far.slp, far.draws).kind == "general"
    assert interval.describe("x") == "-0.5 < x < 0.5"


def test_a_mask_of_a_minibatch():
    """A known mask that a minibatch indexes."""
    kept = torch.arange(40) % 2 == 0
    y = torch.linspace(-1.0, 1.0, 40)

    def model(y):
        b = pyro.sample("b", dist.Normal(0.0, 1.0))
        with pyro.plate("n", 40, subsample_size=10) as rows, pyro.poutine.mask(mask=kept[rows]):
            pyro.sample("y", dist.Normal(b, 1.0), obs=y[rows])

    posterior = exact.fit(model, y, budget=2_000)
    truth = stats.multivariate_normal.logpdf(y[kept], np.zeros(20), np.eye(20) + 1.0)
    assert posterior.log_evidence == pytest.approx(truth, abs=0.02)


def weather():
    """As in Pyro's introduction."""
    cloudy = "cloudy" if pyro.sample("cloudy", dist.Bernoulli(0.3)).item() == 1.0 else "sunny"
    mean = {"cloudy": 55.0, "sunny": 75.0}[cloudy]
    scale = {"cloudy": 10.0, "sunny": 15.0}[cloudy]
    return cloudy, pyro.sample("temp", dist.Normal(mean, scale)).item()


def test_a_number_that_python_asks_for_stays_random():
    """It may be returned, shown, compared and computed with."""
    shown = []

    def ice_cream(sold):
        sky, temperature = weather()
        shown.append(f"{temperature:.1f} {temperature}")
        expected = 200.0 if sky == "sunny" and temperature > 80.0 else 50.0
        pyro.sample("sold", dist.Normal(expected + 0.1 * (temperature - 70), 10.0), obs=sold)
        return temperature

    posterior = exact.fit(ice_cream, torch.tensor(120.0), budget=6_000)

    def log_evidence(probability, mean, scale, low, high, expected):
        def density(t):
            return stats.norm.pdf(t, mean, scale) * stats.norm.pdf(120, expected + 0.1 * (t - 70), 10)

        return np.log(probability * integrate.quad(density, low, high)[0])

    wanted = {
        "cloudy=0, temp <= 80": log_evidence(0.7, 75, 15, -60, 80, 50),
        "cloudy=0, temp > 80": log_evidence(0.7, 75, 15, 80, 200, 200),
        "cloudy=1": log_evidence(0.3, 55, 10, -50, 160, 50),
    }
    found = {path.label: path for path in posterior.paths}
    assert found.keys() == wanted.keys()
    for label, path in found.items():
        assert path.log_evidence == pytest.approx(wanted[label], abs=5 * path.log_evidence_error + 1e-4)
    number = MARK + r"-?\d+\.\d"
    assert all(re.fullmatch(rf"{number} {number}+", text) for text in shown)


def test_a_site_is_not_named_by_a_continuous_number():
    def model():
        temperature = pyro.sample("temperature", dist.Normal(20.0, 5.0)).item()
        pyro.sample(f"at {temperature:.1f}", dist.Normal(0.0, 1.0))

    with pytest.raises(pathmix.PathmixError, match=r"'at -?\d+\.\d' at test_programs.py:\d+ is built from"):
        exact.fit(model)
