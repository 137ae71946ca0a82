"""What signs say is so for all values that have them; and switches that they decide are none."""

from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pyro
import pyro.distributions as pyro_dist
import pytest
import torch
from jax import lax

from pathmix.target.signs import ANY, NOT_NEGATIVE, Sign, sign_at, sign_of, signs
from tests.paths import discover, target_of

NOT_POSITIVE, ZERO = Sign(False, True), Sign(True, True)
SIGNS = [ANY, NOT_NEGATIVE, NOT_POSITIVE, ZERO]

FUNCTIONS = {
    "exp": jnp.exp,
    "square": lambda x: x * x + x**2,
    "odd power": lambda x: x**3,
    "inverse power": lambda x: x**-3,
    "roots": lambda x: jnp.sqrt(x),
    "odd functions": lambda x: jnp.tanh(x) + jnp.sinh(x) + jnp.arctan(x) + lax.erf(x) + jnp.cbrt(x),
    "expm1": jnp.expm1,
    "log1p": jnp.log1p,
    "negative": lambda x: -x,
    "shapes": lambda x: jnp.concatenate([x[::-1], x.reshape(2, 2).T.ravel()[1:], jnp.cumsum(x)]),
    "largest": lambda x: jnp.max(x) + jnp.min(x) + jnp.sum(x),
    "product": lambda x, y: x * y,
    "quotient": lambda x, y: x / y,
    "sum": lambda x, y: x + y,
    "difference": lambda x, y: x - y,
    "larger": jnp.maximum,
    "smaller": jnp.minimum,
    "chosen": lambda x, y: jnp.where(jnp.arange(4) < 2, x, y),
    "power": lambda x, y: x**y,
    "matrices": lambda x, y: x.reshape(2, 2) @ y.reshape(2, 2),
    "called": lambda x, y: jax.jit(lambda a, b: jax.nn.relu(a) * jnp.exp(b))(x, y),
    "literals": lambda x: 2.0 * x + 1.0 - 3.0,
    "truth": lambda x: (-x).astype(bool).astype(float) - x.astype(jnp.uint8),
    "complex": lambda x: jnp.real(jnp.exp(1j * x) ** 2),
}  # fmt: skip


def values(sign, generator):
    drawn = np.where(generator.random(4) < 0.8, generator.normal(0, 2, 4), 0.0)
    return {ANY: drawn, NOT_NEGATIVE: np.abs(drawn), NOT_POSITIVE: -np.abs(drawn), ZERO: 0 * drawn}[sign]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_signs_hold_for_all_values_that_have_them(name):
    function = FUNCTIONS[name]
    generator = np.random.default_rng(0)
    count = function.__code__.co_argcount if hasattr(function, "__code__") else 1
    if name in ("larger", "smaller"):
        count = 2
    for given in product(SIGNS, repeat=count):
        for _ in range(10):
            operands = [values(sign, generator) for sign in given]
            jaxpr = jax.make_jaxpr(function)(*operands).jaxpr
            claimed = sign_of(signs(jaxpr, given), jaxpr.outvars[0])
            with np.errstate(all="ignore"):
                result = np.asarray(function(*operands))
            assert not (claimed.is_number and np.any(np.isnan(result)))
            result = result[np.isfinite(result)]
            assert not claimed.not_negative or np.all(result >= 0)
            assert not claimed.not_positive or np.all(result <= 0)


def test_products_and_sums_of_positive_values_are_positive():
    jaxpr = jax.make_jaxpr(lambda x, y: (x * y + 1.0) / x - (-(y**0.5)))(1.0, 2.0).jaxpr
    assert sign_of(signs(jaxpr, [NOT_NEGATIVE] * 2), jaxpr.outvars[0])[:2] == (True, False)
    assert not sign_of(signs(jaxpr, [NOT_NEGATIVE, ANY]), jaxpr.outvars[0]).known


def test_arrays_with_values_that_are_no_numbers_have_any_sign():
    assert not sign_at(np.array([1.0, np.nan])).known and not sign_at(np.array([1j])).known
    assert not sign_at(np.array([1.0, np.inf])).is_number


def switches(model, *args):
    (path,) = discover(model, *args, samples=8).paths
    return len(target_of(path).switches)


DENSITIES = {
    "divided by a scale": (lambda s, z: z / s, 0),
    "divided by a real": (lambda s, z: s / z, 1),
    "size of a real": (lambda s, z: abs(z), 1),
    "a comparison that cannot flip": (lambda s, z: z + (s >= 0), 0),
    "one that can": (lambda s, z: z + (s >= 1), 1),
    "a power of a real": (lambda s, z: z**2.0 + 0.0 * s, 0),
    "one with a real": (lambda s, z: z + 1.0 * (z >= 0), 1),
}


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("name", DENSITIES)
@pytest.mark.parametrize("library", ["numpyro", "pyro"])
def test_switches_that_signs_decide_are_none(library, name):
    function, expected = DENSITIES[name]

    def model():
        s, z = numpyro.sample("s", dist.HalfNormal(1.0)), numpyro.sample("z", dist.Normal(0.0, 1.0))
        numpyro.sample("y", dist.Normal(function(s, z), 1.0), obs=0.5)

    def pyro_model():
        s = pyro.sample("s", pyro_dist.HalfNormal(1.0))
        z = pyro.sample("z", pyro_dist.Normal(0.0, 1.0))
        pyro.sample("y", pyro_dist.Normal(function(s, z), 1.0), obs=torch.tensor(0.5))

    assert switches(model if library == "numpyro" else pyro_model) == expected


@pytest.mark.usefixtures("engine")
def test_the_size_of_a_scale_is_the_scale():
    def model():
        s = numpyro.sample("s", dist.HalfNormal(1.0))
        numpyro.sample("y", dist.Normal(jnp.abs(s), 1.0), obs=0.5)

    assert switches(model) == 0


@pytest.mark.usefixtures("engine")
def test_a_sign_of_what_may_be_zero_is_a_switch():
    def model():
        z = numpyro.sample("z", dist.Normal(0.0, 1.0))
        numpyro.sample("y", dist.Normal(jnp.sign(jax.nn.relu(z)), 1.0), obs=0.5)

    assert switches(model) >= 1


JUMPS = {
    "NaN under a root": lambda s, z: jnp.where(jnp.sqrt(z) >= 0, 0.0, 3.0),
    "NaN in a logarithm": lambda s, z: jnp.where(jnp.log1p(-2 * s) <= 0, 0.0, 3.0),
    "nothing by nothing": lambda s, z: jnp.where(jax.nn.relu(z) / jax.nn.relu(z) >= 0, 0.0, 3.0),
    "truth of negative numbers": lambda s, z: jnp.where((-s).astype(bool).astype(float) > abs(z), 0.0, 3.0),
    "a power with a pole": lambda s, z: 3 * jnp.tanh(z**-1.0),
    "a tangent": lambda s, z: jnp.tanh(jnp.tan(z)),
    "a reduction": lambda s, z: jnp.where(
        lax.reduce(jnp.stack([z, s, z]), -jnp.inf, jnp.logaddexp, (0,)) > jnp.exp(z), 0.0, 3.0
    ),
}


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("name", JUMPS)
def test_jumps_that_signs_cannot_exclude_are_watched(name):
    def model():
        s, z = numpyro.sample("s", dist.HalfNormal(1.0)), numpyro.sample("z", dist.Normal(0.0, 1.0))
        numpyro.sample("y", dist.Normal(JUMPS[name](s, z), 1.0), obs=0.5)

    (path,) = discover(model, samples=8).paths
    target = target_of(path)
    assert len(target.switches) > 0
    found, marks = target.formula.marked_density(jnp.array([0.3, 0.4]), target.arguments, target.signs)
    expected = target.formula.density(jnp.array([0.3, 0.4]), target.arguments)
    np.testing.assert_allclose(found.log_joint, expected.log_joint)
    assert marks.shape == (len(target.switches),)


@pytest.mark.usefixtures("engine")
def test_signs_of_data_decide_too():
    """Paths of one structure may have data of different signs, and so different switches."""

    def model(scale):
        z = numpyro.sample("z", dist.HalfNormal(1.0))
        numpyro.sample("y", dist.Normal(jnp.sum(1 / (z * scale)), 1.0), obs=0.5)

    assert switches(model, np.array([1.0, 2.0])) == 0
    assert switches(model, np.array([1.0, -2.0])) > 0
