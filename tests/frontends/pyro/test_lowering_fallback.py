"""Operations without a lowering: PyTorch is called back, or the program is refused."""

import threading
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pyro
import pyro.distributions as dist
import pytest
import torch
from scipy import integrate, special, stats

from pathmix import Status
from pathmix.discovery import PriorDiscovery
from pathmix.errors import PathmixWarning, ProgramError
from pathmix.frontends.pyro.flatten import flatten
from pathmix.frontends.pyro.lowering import TABLE, callback
from pathmix.frontends.pyro.lowering.interpret import interpret
from tests import exact
from tests.frontends.pyro.against_torch import double_precision, in_jax, in_torch

aten = torch.ops.aten


@pytest.fixture(autouse=True)
def _double_precision():
    with double_precision():
        yield


@pytest.fixture
def _said_before(monkeypatch):
    """The warning is not what is tested."""
    monkeypatch.setattr(callback, "_named", set(FUNCTIONS))


def largest(x):
    return torch.zeros(1, x.shape[-1]).scatter_reduce(0, torch.zeros(x.shape, dtype=int), x, "amax")


def peaks_above(x):
    return [largest(x).sin().sum()]


def most_frequent(x):
    return [*torch.mode(x, dim=0)]


def peaks(x):
    return [torch.mode(x, dim=0).values.sin().sum()]


def decomposition(x):
    lower, *_ = torch.linalg.lu_factor_ex(x)
    return [lower.square(), lower.sum()]


def complex_numbers(x):
    values = torch.linalg.eigvals(x)
    return [(values * values).real.sum() + values.abs().sum(), values.abs().prod()]


# None of these has a lowering. One result, a float and a whole number, two floats, complex ones.
FUNCTIONS = {
    aten.scatter_reduce.two: peaks_above,
    aten.mode.default: most_frequent,
    aten.linalg_lu_factor_ex.default: decomposition,
    aten.linalg_eig.default: complex_numbers,
}


def matrix(size, seed=0):
    return torch.randn(size, size, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def as_jax_function(function, example):
    graph = flatten(function, [example])
    return lambda x: interpret(graph, [x])[graph.outputs[0]]


def slope(function, x):
    x = x.clone().requires_grad_()
    return torch.autograd.grad(function(x)[0], x)[0].numpy()


@pytest.mark.usefixtures("_said_before")
@pytest.mark.parametrize("op", FUNCTIONS, ids=str)
def test_values_and_gradients_are_those_of_torch(op):
    x = matrix(4)
    graph = flatten(FUNCTIONS[op], [x])
    assert op not in TABLE
    assert op in {node.target for node in graph.operations}
    expected, found = in_torch(FUNCTIONS[op], [x], [True]), in_jax(graph, [x], [True])
    for got, wanted in zip(found.values + found.gradients, expected.values + expected.gradients, strict=True):
        assert got.dtype == wanted.dtype
        np.testing.assert_allclose(got, wanted, rtol=1e-12, atol=1e-14)


@pytest.mark.usefixtures("_said_before")
@pytest.mark.parametrize("size", [1, 3, 300])
def test_it_works_in_every_transformation(size):
    """Arrays of 300 x 300 are no longer handed over in the thread that asks."""
    matrices = [matrix(size, seed) for seed in range(3)]
    wanted = np.stack([slope(peaks, x) for x in matrices])
    batch = jnp.asarray(torch.stack(matrices).numpy())
    function = as_jax_function(peaks, matrices[0])
    gradient = jax.grad(function)

    np.testing.assert_allclose(function(batch[0]), peaks(matrices[0])[0], rtol=1e-12)
    np.testing.assert_allclose(jax.jit(gradient)(batch[0]), wanted[0], rtol=1e-9, atol=1e-14)
    np.testing.assert_allclose(jax.jit(jax.vmap(gradient))(batch), wanted, rtol=1e-9, atol=1e-14)
    _, scanned = jax.jit(lambda b: jax.lax.scan(lambda carry, x: (carry, gradient(x)), 0.0, b))(batch)
    np.testing.assert_allclose(scanned, wanted, rtol=1e-9, atol=1e-14)
    closed = jax.make_jaxpr(gradient)(batch[0])  # as the engine keeps it
    (kept,) = jax.jit(lambda x: jax.core.eval_jaxpr(closed.jaxpr, closed.consts, x))(batch[0])
    np.testing.assert_allclose(kept, wanted[0], rtol=1e-9, atol=1e-14)


@pytest.mark.usefixtures("_said_before")
@pytest.mark.parametrize("size", [3, 300])
def test_threads_do_not_wait_for_each_other(size):
    x = matrix(size)
    wanted = slope(peaks, x)
    gradient = jax.grad(as_jax_function(peaks, x))
    found = {}

    def train(thread):
        with jax.enable_x64(True):
            descent = lambda x, _: (x - 0.0 * gradient(x), gradient(x))  # noqa: E731
            start = jnp.asarray(x.numpy())
            found[thread] = np.asarray(jax.jit(lambda s: jax.lax.scan(descent, s, length=4))(start)[1][-1])

    threads = [threading.Thread(target=train, args=(thread,), daemon=True) for thread in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=600)  # only a hang takes so long
    assert sorted(found) == [0, 1, 2]
    for gradient_found in found.values():
        np.testing.assert_allclose(gradient_found, wanted, rtol=1e-9, atol=1e-14)


def test_one_warning_for_each_operation(monkeypatch):
    """However often it occurs: twice in a graph, in several graphs, traced several times, in threads."""
    monkeypatch.setattr(callback, "_named", set())
    x = matrix(2)
    once = as_jax_function(peaks_above, x)
    twice = as_jax_function(lambda x: [(largest(x) + largest(x + 1)).sum()], x)
    other = as_jax_function(most_frequent, x)
    array = jnp.asarray(x.numpy())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for function in (once, twice, other, once):
            jax.jit(jax.grad(lambda x, f=function: f(x).sum()))(array)
    assert [warning.category for warning in caught] == [PathmixWarning, PathmixWarning]
    assert [str(warning.message).split()[3] for warning in caught] == [
        "aten.scatter_reduce.two",
        "aten.mode.default",
    ]


def test_an_operation_taken_out_of_the_table_still_works(monkeypatch):
    """With options of PyTorch's own types, and a scalar among its arguments."""
    monkeypatch.setattr(callback, "_named", {aten.sum.dim_IntList, aten.mul.Tensor, aten._to_copy.default})
    function = lambda x: [(x * (x > 0).to(torch.float32)).sum([0], dtype=torch.float64)]  # noqa: E731
    x = matrix(3)
    graph = flatten(function, [x])
    for op in (aten.sum.dim_IntList, aten.mul.Tensor, aten._to_copy.default):
        assert op in {node.target for node in graph.operations}
        monkeypatch.delitem(TABLE, op)
    expected, found = in_torch(function, [x], [True]), in_jax(graph, [x], [True])
    np.testing.assert_allclose(found.values[0], expected.values[0], rtol=1e-14)
    np.testing.assert_allclose(found.gradients[0], expected.gradients[0], rtol=1e-14)


@pytest.mark.parametrize(
    ("op", "function"),
    [
        (aten.nonzero.default, lambda x: torch.nonzero(x > 0)),
        (aten._unique2.default, torch.unique),
        (aten.unique_consecutive.default, torch.unique_consecutive),
        (aten.unique_dim.default, lambda x: torch.unique(x, dim=0)),
        (aten.masked_select.default, lambda x: torch.masked_select(torch.arange(3), x > 0)),
        (aten.index.Tensor, lambda x: torch.arange(3)[x > 0]),
        (aten.repeat_interleave.Tensor, lambda x: torch.repeat_interleave((x > 0).long())),
        (aten.bincount.default, lambda x: torch.bincount((x > 0).long())),
    ],
)
def test_what_a_shape_is_made_of_is_looked_at(op, function):
    """Also where nothing but the shape is used."""
    assert torch.Tag.dynamic_output_shape in op.tags
    x = torch.tensor([[-1.0, 0.5, 2.0]] if op is aten.unique_dim.default else [-1.0, 0.5, 2.0])
    graph = flatten(lambda x: [torch.zeros(function(x).shape).sum()], [x])
    (look,) = graph.looked_at
    assert look.for_shape and look.node in (*graph.inputs, *graph.open)


def test_a_number_of_elements_to_write_that_is_random_is_refused():
    graph = flatten(
        lambda x: [torch.zeros_like(x).index_put_((x > 0,), torch.arange(2.0))],
        [torch.tensor([-1.0, 0.5, 2.0])],
    )
    with pytest.raises(ProgramError, match=r"index_put.* depends on a random value"):
        jax.jit(lambda x: interpret(graph, [x])[graph.outputs[0]])(jnp.asarray([-1.0, 0.5, 2.0]))


@pytest.mark.filterwarnings("ignore::pathmix.PathmixWarning")
def test_conjugates():
    """PyTorch notes that a tensor is one, and leaves its numbers as they are."""
    x = matrix(3)
    function = lambda x: [torch.complex(x, x.sin()).conj().angle()]  # noqa: E731
    expected, found = in_torch(function, [x], [True]), in_jax(flatten(function, [x]), [x], [True])
    np.testing.assert_allclose(found.values[0], expected.values[0], rtol=1e-12)
    np.testing.assert_allclose(found.gradients[0], expected.gradients[0], rtol=1e-12)


@pytest.mark.filterwarnings("ignore::pathmix.PathmixWarning")
def test_a_program_with_such_an_operation_is_fitted():
    """The posterior of x given y = J0(x) + noise, by quadrature."""

    def model(y):
        x = pyro.sample("x", dist.Normal(0.0, 1.0))
        pyro.sample("y", dist.Normal(torch.special.bessel_j0(x), 0.5), obs=y)

    def density(x):
        return stats.norm.pdf(x) * stats.norm.pdf(0.4, special.j0(x), 0.5)

    log_z = np.log(integrate.quad(density, -9, 9)[0])
    posterior = exact.fit(model, torch.tensor(0.4), budget=300, discovery=PriorDiscovery(50))
    assert posterior.paths[0].status is Status.OK
    assert log_z - 0.15 < posterior.elbo < log_z + 0.02
