"""Symbolic regression: a formula that prior runs never come near is found, whatever the seed."""

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest

import pathmix

X = np.linspace(-3, 3, 50)
Y = 1.5 * np.sin(2 * X) + 0.5 * X + 0.2 * np.random.default_rng(0).standard_normal(50)
FAR = np.linspace(-4, 4, 81)
KINDS = ("x", "c", "sin", "+", "*")


def expression(name, x):
    """A number, x, the sine of an expression, or the sum or the product of two."""
    probabilities = jnp.array([0.3, 0.25, 0.15, 0.15, 0.15])
    kind = KINDS[int(numpyro.sample(f"{name}.kind", dist.Categorical(probs=probabilities)))]
    if kind == "x":
        return x
    if kind == "c":
        return numpyro.sample(f"{name}.value", dist.Normal(0, 2))
    if kind == "sin":
        return jnp.sin(expression(f"{name}.of", x))
    left, right = expression(f"{name}.l", x), expression(f"{name}.r", x)
    return left + right if kind == "+" else left * right


def model(x, y):
    mean = expression("e", x) * jnp.ones(len(x))
    numpyro.sample("y", dist.Normal(mean, numpyro.sample("noise", dist.HalfNormal(0.5))), obs=y)


def written(pinned, name="e"):
    """How the expression of a path is written."""
    kind = KINDS[pinned[f"{name}.kind"]]
    if kind == "sin":
        return f"sin({written(pinned, f'{name}.of')})"
    if kind in "+*":
        return f"({written(pinned, f'{name}.l')} {kind} {written(pinned, f'{name}.r')})"
    return kind


@pytest.mark.parametrize("seed", range(5))
def test_the_formula_is_found(seed):
    """Beyond the data, too, the posterior is the curve that made them: no other formula goes on like it."""
    posterior = pathmix.SDVI(model, progress=False).run(seed, X, Y)
    curves = posterior.predict(0, 400, FAR, None)["y"]
    truth = 1.5 * np.sin(2 * FAR) + 0.5 * FAR
    assert np.max(np.abs(np.mean(curves, axis=0) - truth)) < 0.4, written(posterior.paths[0].pinned)
    assert np.max(np.std(curves, axis=0)) < 0.5  # with the noise of the data, 0.2
