"""Every lowering against PyTorch: values, types, shapes and gradients."""

import operator

import jax
import jax.numpy as jnp
import numpy as np
import pyro.ops.special
import pytest
import torch
import torch.nn.functional as F
from torch.utils import _pytree as pytree

from pathmix.frontends.pyro.flatten import flatten
from pathmix.frontends.pyro.lowering import TABLE
from pathmix.frontends.pyro.lowering.interpret import interpret
from tests.frontends.pyro.against_torch import double_precision, in_jax, in_torch
from tests.frontends.pyro.lowering_examples import EXAMPLES, Known

aten = torch.ops.aten


# What of the results is determined: not memory that nothing was written to, factors that come
# along, or the signs of eigenvectors. Complex numbers are read as pairs of floats.
DETERMINED = {
    aten.empty_like.default: torch.zeros_like,
    aten.new_empty.default: torch.zeros_like,
    aten.complex.default: torch.view_as_real,
    aten.view_as_complex.default: torch.view_as_real,
    aten.triangular_solve.default: lambda results: results[0],
    aten._linalg_solve_ex.default: lambda results: results[0],
    aten._linalg_slogdet.default: lambda results: results[:2],
    aten._linalg_det.default: lambda results: results[0],
    aten._linalg_eigh.default: lambda results: (results[0], results[1].square()),
    aten._linalg_svd.default: lambda results: results[1],
    aten.linalg_lstsq.default: lambda results: results[0],
    aten._fft_r2c.default: torch.view_as_real,
    aten._fft_c2c.default: torch.view_as_real,
    aten.log_sigmoid_forward.default: lambda results: results[0],
    aten.native_layer_norm.default: lambda results: results[0],
}

# Arguments that PyTorch cannot differentiate by, though it takes floats there.
CONSTANT = {
    aten.floor_divide.default: {0, 1},
    aten.remainder.Scalar_Tensor: {1},
    aten.special_zeta.default: {0},
    aten.igamma.default: {0},
    aten.igammac.default: {0},
}

# An operation on symmetric matrices has its gradient along those.
SYMMETRIC = {aten.linalg_cholesky_ex.default, aten.cholesky.default, aten._linalg_eigh.default}

# So has one on triangular factors; what PyTorch says about the zeros has no meaning.
TRIANGULAR = {aten.cholesky_solve.default, aten.cholesky_inverse.default}

# PyTorch's own trigamma is good to nine digits.
ROUGH = {aten.digamma.default, aten.polygamma.default}


@pytest.fixture(autouse=True)
def _double_precision():
    with double_precision():
        yield


def as_function(op, examples):
    """The results of all the calls as a function of the tensors in them."""
    leaves, structure = pytree.tree_flatten(examples)
    places = [place for place, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
    constant = {id(args[i]) for args, _ in examples for i in CONSTANT.get(op, ())}

    def function(*tensors):
        filled = [leaf.tensor if isinstance(leaf, Known) else leaf for leaf in leaves]
        for place, tensor in zip(places, tensors, strict=True):
            filled[place] = tensor
        results = [op(*args, **kwargs) for args, kwargs in pytree.tree_unflatten(filled, structure)]
        return pytree.tree_leaves([DETERMINED.get(op, lambda r: r)(result) for result in results])

    tensors = [leaves[place] for place in places]
    return function, tensors, [t.is_floating_point() and id(t) not in constant for t in tensors]


def test_every_lowering_has_examples():
    assert set(EXAMPLES) == set(TABLE)


@pytest.mark.parametrize("op", EXAMPLES, ids=str)
def test_values_types_shapes_and_gradients(op):
    function, tensors, smooth = as_function(op, EXAMPLES[op])
    expected = in_torch(function, tensors, smooth)
    graph = flatten(function, tensors)
    assert op in {node.target for node in graph.operations}

    found = in_jax(graph, tensors, smooth)
    for value, wanted in zip(found.values, expected.values, strict=True):
        assert value.shape == wanted.shape
        assert value.dtype.kind == wanted.dtype.kind
        np.testing.assert_allclose(value, wanted, rtol=1e-8 if op in ROUGH else 1e-11, atol=1e-13)
    inputs = [tensor for tensor, s in zip(tensors, smooth, strict=True) if s]
    for tensor, slope, wanted in zip(inputs, found.gradients, expected.gradients, strict=True):
        if op in SYMMETRIC:
            slope, wanted = (g + np.swapaxes(g, -1, -2) for g in (slope, wanted))
        known = ~np.isnan(wanted) & (op not in TRIANGULAR or tensor.numpy() != 0)
        np.testing.assert_allclose(
            slope[known], wanted[known], rtol=1e-8 if op in ROUGH else 1e-10, atol=1e-12
        )


def test_transformations_of_a_graph():
    """A density with in-place writes, under jit, vmap and grad at once."""
    data = torch.linspace(-1, 1, 7)

    def density(x, scale):
        covariance = scale.exp() * torch.exp(-torch.cdist(data[:, None], data[:, None]))
        covariance.view(-1)[::8] += 0.1
        residual = data.sin() - x.mean()
        return [-(residual @ torch.linalg.solve(covariance, residual)) - torch.logdet(covariance)]

    graph = flatten(density, [torch.zeros(3), torch.zeros(())])
    function = jax.grad(lambda x, scale: interpret(graph, [x, scale])[graph.outputs[0]], argnums=(0, 1))
    batch = torch.linspace(-2, 2, 12).reshape(4, 3), torch.linspace(-1, 1, 4)
    found = jax.jit(jax.vmap(function))(*(jnp.asarray(part.numpy()) for part in batch))
    for i in range(4):
        inputs = [part[i].clone().requires_grad_() for part in batch]
        for slope, wanted in zip(found, torch.autograd.grad(density(*inputs), inputs), strict=True):
            np.testing.assert_allclose(slope[i], wanted, rtol=1e-10)


torch.manual_seed(0)
GRU = torch.nn.GRU(4, 2, dtype=torch.float64)
LSTM = torch.nn.LSTM(4, 2, dtype=torch.float64)

# Operations of many steps; some of them write into their own intermediate results.
COMPOSITE = {
    "one_hot": lambda x: torch.nn.functional.one_hot((x > 0).long(), 2),
    "quantile": lambda x: torch.quantile(x, 0.3, dim=0),
    "isclose": lambda x: torch.isclose(x, x + 1e-12),
    "nanmean": lambda x: torch.nanmean(x, dim=1),
    "layer_norm": lambda x: torch.nn.functional.layer_norm(x, [4]),
    "hardtanh": torch.nn.functional.hardtanh,
    "dist": lambda x: torch.dist(x, x.flip(0), p=3),
    "einsum": lambda x: torch.einsum("ij,kj->ik", x, x.sin()),
    "cross_entropy": lambda x: torch.nn.functional.cross_entropy(x, torch.tensor([0, 3, 2])),
    "safe_log": lambda x: pyro.ops.special.safe_log(x.relu()),
    "known mask": lambda x: x[torch.tensor([True, False, True])],
    "eye": lambda x: (x[0, 0] * torch.eye(300)).logsumexp(0),
    "grid_sample": lambda x: F.grid_sample(
        torch.eye(5)[None, None], x[None, :, :2, None].mT, align_corners=False
    ),
    "affine_grid": lambda x: F.affine_grid(x[None, :2, :3], [1, 1, 3, 4], align_corners=False),
    "bilinear": lambda x: F.interpolate(x[None, None], scale_factor=2, mode="bilinear"),
    "bicubic": lambda x: F.interpolate(x[None, None], size=(5, 5), mode="bicubic", align_corners=True),
    "max_pool": lambda x: F.max_pool2d(x[None, None], 2, stride=1, padding=1),
    "max_pool, rounded up": lambda x: F.max_pool2d(x[None, None], (2, 3), stride=2, ceil_mode=True),
    "max_pool, spread": lambda x: F.max_pool2d(x[None, None], 2, stride=(1, 2), padding=1, dilation=(2, 1)),
    "max_pool, a line": lambda x: F.max_pool1d(x[None, 0], 3, stride=1, padding=1),
    "max_pool, a solid": lambda x: F.max_pool3d(x[None, None, None].expand(-1, -1, 3, -1, -1), 2, 1),
    "max_pool, where": lambda x: x.flatten()[
        F.max_pool2d(x[None, None], 2, stride=1, return_indices=True)[1].flatten()
    ],
    "adaptive": lambda x: F.adaptive_avg_pool2d(x[None, None], (2, 3)),
    "adaptive, a solid": lambda x: F.adaptive_avg_pool3d(x[None, :, :, None] * x[:, None], (2, None, 3)),
    "adaptive_max": lambda x: F.adaptive_max_pool2d(x[None], (2, 3)),
    "adaptive_max, a line": lambda x: F.adaptive_max_pool1d(x[None], 3),
    "adaptive_max, a solid": lambda x: F.adaptive_max_pool3d((x[:, None] * x[..., None])[None], (2, 3, 2)),
    "bilinear form": lambda x: F.bilinear(x, x.flip(0), torch.linspace(0, 1, 32).reshape(2, 4, 4)),
    "batch_norm": lambda x: (
        F.batch_norm(x, torch.zeros(4), torch.ones(4)) + F.batch_norm(x, None, None, training=True)
    ),
    "group_norm": lambda x: F.group_norm(x, 2),
    "attention": lambda x: F.scaled_dot_product_attention(x[None], x[None], x[None], is_causal=True),
    "gru": lambda x: GRU(x)[0],
    "lstm": lambda x: LSTM(x)[0],
    "spectrum": lambda x: torch.fft.rfft(x).abs() + torch.fft.fft2(x).real[:, :3],
    "singular values": lambda x: torch.linalg.svdvals(x),
    "zeros_like": lambda x: x * torch.ones_like(x) + x.new_full((4,), 2.0) + torch.zeros_like(x),
    "as_strided": lambda x: torch.cat([x.as_strided((3,), (5,)), x.as_strided((2,), (6,), 3)]),
    "as_strided, transposed": lambda x: x.T.as_strided((2, 3), (1, 2)),
    "as_strided, of a part": lambda x: x[1:].as_strided((3,), (2,), 5) + x[1:, 1:].as_strided((3,), (1,)),
    "as_strided, expanded": lambda x: x[0, 0].expand(3, 4).as_strided((2,), (0,)),
    "derivative in a direction": lambda x: torch.func.jvp(lambda x: x**3, (x,), (x.sin(),))[1],
    "tolist": lambda x: x * torch.tensor([2.0, 3.0]).tolist()[1],
}


@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")  # by torch.func.jvp
@pytest.mark.parametrize("name", COMPOSITE)
def test_composite_operations(name):
    x = torch.randn(3, 4, generator=torch.Generator().manual_seed(3))
    function = lambda x: [COMPOSITE[name](x)]  # noqa: E731
    graph = flatten(function, [x])
    assert {node.target for node in graph.operations} <= {*TABLE, operator.getitem}
    expected, found = in_torch(function, [x], [True]), in_jax(graph, [x], [True])
    for got, wanted in zip(found.values + found.gradients, expected.values + expected.gradients, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-10, atol=1e-13)


def test_no_grad_stops_gradients_as_in_torch():
    def function(x):
        with torch.no_grad():
            largest, shifted = x.max(), x.clone()
            shifted += 1
        return [((x - largest) ** 2 * shifted).sum()]

    x = torch.tensor([1.0, 2.0, 4.0])
    with torch.no_grad():  # where the user calls from does not matter
        graph = flatten(function, [x])
    gradient = jax.grad(lambda value: interpret(graph, [value])[graph.outputs[0]])(jnp.asarray(x.numpy()))
    variable = x.clone().requires_grad_()
    (expected,) = torch.autograd.grad(function(variable)[0], variable)
    np.testing.assert_allclose(gradient, expected)


def test_what_pytorch_compares_by_itself_is_noticed():
    def function(x, y):
        return [x + 1.0 if aten.equal(x, y) else x]

    graph = flatten(function, [torch.tensor(1.0), torch.tensor(2.0)])
    assert {look.node for look in graph.looked_at} == set(graph.inputs)
