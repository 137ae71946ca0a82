"""Layers of networks whose weights have PyTorch's usual precision, on values that have the engine's."""

import copy

import jax.numpy as jnp
import numpy as np
import pyro
import pyro.distributions as dist
import pytest
import torch
from torch import nn
from torch.nn.utils import parametrizations

from pathmix.engine.precision import engine_scope
from tests.frontends.pyro.against_torch import double_precision
from tests.paths import discover, target_of


class Used(nn.Module):
    """A layer that takes or gives other things than one tensor."""

    def __init__(self, layer, use):
        super().__init__()
        self.layer, self.use = layer, use

    def forward(self, x):
        return self.use(self.layer, x)


def first(layer, x):
    return layer(x)[0]


def attending(layer, x):
    return layer(x, x, x)[0]


LAYERS = {
    "linear": lambda: (nn.Linear(4, 3), (2, 4)),
    "bilinear": lambda: (Used(nn.Bilinear(4, 4, 2), lambda layer, x: layer(x, x.flip(0))), (3, 4)),
    "convolution": lambda: (nn.Conv1d(2, 3, 2), (2, 2, 5)),
    "round convolution": lambda: (nn.Conv2d(1, 2, 3, padding=1, padding_mode="circular"), (1, 1, 4, 4)),
    "solid convolution": lambda: (nn.Conv3d(1, 2, 2), (1, 1, 3, 3, 3)),
    "transposed convolution": lambda: (nn.ConvTranspose2d(1, 2, 2), (1, 1, 3, 3)),
    "batches": lambda: (nn.BatchNorm1d(4), (3, 4)),
    "batches, images": lambda: (nn.BatchNorm2d(2), (2, 2, 3, 3)),
    "batches, as learned": lambda: (nn.BatchNorm1d(4).eval(), (3, 4)),
    "instances": lambda: (nn.InstanceNorm1d(3, affine=True, track_running_stats=True), (2, 3, 4)),
    "layer norm": lambda: (nn.LayerNorm(4), (3, 4)),
    "groups": lambda: (nn.GroupNorm(2, 4), (3, 4)),
    "slopes": lambda: (nn.PReLU(4), (3, 4)),
    "recurrent": lambda: (Used(nn.RNN(3, 2, num_layers=2), first), (4, 3)),
    "gated, both ways": lambda: (Used(nn.GRU(3, 2, bidirectional=True), first), (4, 3)),
    "long memory": lambda: (
        Used(nn.LSTM(3, 2, batch_first=True), lambda layer, x: layer(x)[1][1]),
        (2, 4, 3),
    ),
    "one step": lambda: (Used(nn.LSTMCell(3, 2), first), (2, 3)),
    "attention": lambda: (Used(nn.MultiheadAttention(4, 2), attending), (3, 1, 4)),
    "transformer": lambda: (nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0), (3, 1, 4)),
    "maxima": lambda: (nn.Sequential(nn.Conv2d(1, 2, 2), nn.AdaptiveMaxPool2d(2)), (1, 1, 5, 5)),
    "bag of embeddings": lambda: (
        Used(nn.EmbeddingBag(5, 3), lambda layer, x: layer(torch.tensor([[1, 2], [0, 4]])) * x),
        (2, 3),
    ),
    "weight norm": lambda: (parametrizations.weight_norm(nn.Linear(3, 2)), (3,)),
    "spectral norm": lambda: (parametrizations.spectral_norm(nn.Linear(3, 2)).eval(), (3,)),
    "weighted loss": lambda: (
        Used(
            nn.CrossEntropyLoss(torch.tensor([1.0, 2.0, 3.0])),
            lambda layer, x: layer(x, torch.tensor([0, 2])),
        ),
        (2, 3),
    ),
}


@pytest.mark.filterwarnings("ignore:enable_nested_tensor is True")
@pytest.mark.parametrize("name", LAYERS)
def test_the_density_is_that_of_the_layer_in_double_precision(name):
    torch.manual_seed(3)
    layer, shape = LAYERS[name]()
    double = copy.deepcopy(layer).double()
    before = [weight.clone() for weight in layer.parameters()]

    def model():
        x = pyro.sample("x", dist.Normal(torch.zeros(shape), 1.0).to_event(len(shape)))
        pyro.factor("f", layer(x).sum())

    with engine_scope("float64"), double_precision():
        (path,) = discover(model, samples=3).paths
        target = target_of(path)
        x = np.random.default_rng(5).normal(size=shape)
        found = target.formula.density(jnp.asarray(x.ravel()), target.arguments).log_joint
        with torch.no_grad():
            wanted = dist.Normal(0.0, 1.0).log_prob(torch.tensor(x)).sum() + double(torch.tensor(x)).sum()
    np.testing.assert_allclose(found, float(wanted), rtol=1e-6, atol=1e-6)
    assert all(map(torch.equal, before, layer.parameters()))
    assert all(weight.dtype == torch.float32 for weight in layer.parameters())
