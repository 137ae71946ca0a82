"""Parameters, modules and tensors that are made of random values: what they are made of counts."""

import copy

import jax.numpy as jnp
import pyro
import pyro.distributions as dist
import pytest
import torch
from torch import nn

from pathmix.engine.precision import engine_scope
from tests.paths import discover, target_of

X = torch.tensor([[1.0, 2.0]])
GLOBAL = nn.Linear(2, 1, bias=False)


class Kind(torch.Tensor):
    pass


def linear():
    return nn.Linear(2, 1, bias=False)


def weights(x):
    return torch.stack([x, x * x]).reshape(1, 2)


def through(module, x):
    return module(X.to(x.dtype)).sum()


def parameter(x):
    module = linear()
    module.weight = nn.Parameter(weights(x))
    return through(module, x)


def parameter_of_a_copy(x):
    module = copy.deepcopy(GLOBAL)
    module.weight = nn.Parameter(weights(x))
    return through(module, x)


def parameter_list(x):
    parts = nn.ParameterList([x, nn.Parameter(x * x)])
    return parts[0] + 2 * parts[1]


def embedding(x):
    return (nn.Embedding.from_pretrained(weights(x))(torch.tensor([0])) * X.to(x.dtype)).sum()


def subclass(x):
    return x.as_subclass(Kind) + 2 * x * x


def data(x):
    module = linear()
    module.weight.data = weights(x)
    return through(module, x)


def copied(x):
    module = linear()
    with torch.no_grad():
        module.weight.copy_(weights(x))
    return through(module, x)


def written(x):
    module = linear()
    with torch.no_grad():
        module.weight[:] = weights(x)
    return through(module, x)


def loaded(x):
    module = linear()
    module.load_state_dict({"weight": weights(x)})
    return through(module, x)


def vector(x):
    module = linear()
    nn.utils.vector_to_parameters(weights(x).reshape(-1), module.parameters())
    return through(module, x)


def called(x):
    return torch.func.functional_call(linear(), {"weight": weights(x)}, (X.to(x.dtype),)).sum()


def as_tensor(x):
    return torch.as_tensor([[x, x * x]]).sum() + x * x


def asarray(x):
    return torch.asarray([x, x * x, x * x]).sum()


def constructed(x):
    return torch.Tensor([x, x * x, x * x]).sum()


def of_a_type(x):
    assert isinstance(x, (torch.FloatTensor, torch.DoubleTensor))
    return torch.DoubleTensor([x, x * x, x * x]).type(torch.DoubleTensor).sum()


def like_another(x):
    return torch.zeros(1).new_tensor([x, x * x, x * x]).sum() + torch.zeros(1).new([x, 0.0]).sum() - x


MADE = [
    parameter, parameter_of_a_copy, parameter_list, embedding, subclass, data, copied, written, loaded,
    vector, called, as_tensor, asarray, constructed, of_a_type, like_another,
]  # fmt: skip


@pytest.mark.parametrize("made", MADE, ids=lambda made: made.__name__)
def test_the_density_is_that_of_the_values(made):
    def model(made):
        x = pyro.sample("x", dist.Normal(torch.tensor(0.5), 1.0))
        pyro.sample("y", dist.Normal(made(x), 0.5), obs=torch.tensor(0.75))

    (path,) = discover(model, made, samples=3).paths
    (direct,) = discover(model, lambda x: x + 2 * x * x, samples=3).paths
    with engine_scope("float64"):
        one, other = target_of(path), target_of(direct)
        for x in (-0.8, 0.3, 1.1):
            found, wanted = (sum(t.formula.density(jnp.array([x]), t.arguments)[:3]) for t in (one, other))
            assert float(found) == pytest.approx(float(wanted), abs=1e-6)


def test_python_s_own_functions_are_called_with_numbers():
    def model():
        z = pyro.sample("z", dist.Categorical(torch.ones(3)))
        doubled = z.clone().apply_(lambda k: 2 * k)
        both = z.clone().map_(doubled, lambda a, b: a + b)
        pyro.deterministic("both", both)
        pyro.sample("y", dist.Normal(both.double(), 1.0), obs=torch.tensor(2.0))

    found = discover(model, samples=40).paths
    assert {dict(path.slp.path.pinned)["z"] for path in found} == {0, 1, 2}
