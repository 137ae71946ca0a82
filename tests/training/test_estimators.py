"""Gradient estimators against closed forms and quadrature."""

from typing import get_args

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, optimize, stats

from pathmix import FullRank, MeanField
from pathmix.guides.meanfield import MeanFieldParams
from pathmix.posterior.fitted import GradientKind
from pathmix.target.formula import Density
from pathmix.training.estimators import ACCEPTANCE_REWARD, Gradient

MEAN, SCALE = np.array([1.0, -0.5]), np.array([0.7, 2.0])
PARTICLES, REPEATS = 8, 4_000


pytestmark = pytest.mark.usefixtures("engine")


def normal_target(u):
    log_joint = jnp.sum(jax.scipy.stats.norm.logpdf(u, MEAN, SCALE)) + 0.3
    zero = jnp.zeros(())
    return Density(log_joint, zero, zero, jnp.array(True))


def averaged(estimator, guide, target, params, log_c=-30.0, width=2):
    """Mean and standard error of the gradient over many independent estimates."""
    noise = jax.random.normal(jax.random.key(7), (REPEATS, PARTICLES, width))
    kind = Gradient(estimator, (True,) + (False,) * (width - 1))

    def one(n):
        found = kind.estimate(guide, lambda u, _: target(u), jnp.asarray(log_c), params, n)
        return found.gradient()[0], found.elbo

    gradients, elbos = jax.jit(jax.vmap(one))(noise)
    flat = np.concatenate([leaf.reshape(REPEATS, -1) for leaf in jax.tree.leaves(gradients)], axis=1)
    return flat.mean(axis=0), flat.std(axis=0) / np.sqrt(REPEATS), np.asarray(elbos)


@pytest.mark.parametrize("estimator", ["reparam", "score"])
def test_mean_field_gradients_have_their_closed_form(estimator):
    params = MeanFieldParams(jnp.array([0.2, 0.4]), jnp.log(jnp.array([1.5, 0.8])))
    scale = np.exp(params.log_scale)
    exact = np.concatenate([(MEAN - params.loc) / SCALE**2, 1 - scale**2 / SCALE**2])
    mean, error, elbo = averaged(estimator, MeanField(), normal_target, params)
    # Four components at 4.5 standard errors each: false failures below 3e-5.
    assert np.all(np.abs(mean - exact) < 4.5 * error + 1e-12)
    assert np.all(error < 0.2)
    divergence = np.log(SCALE / scale) + (scale**2 + (MEAN - params.loc) ** 2) / (2 * SCALE**2) - 0.5
    assert elbo.mean() == pytest.approx(0.3 - divergence.sum(), abs=4.5 * elbo.std() / np.sqrt(REPEATS))


@pytest.mark.parametrize("estimator", ["reparam", "score"])
def test_both_estimators_agree_on_the_full_rank_guide(estimator):
    params = FullRank().init(np.random.default_rng(3).normal(size=(50, 2)))
    exact = jax.grad(
        lambda p: jnp.mean(
            jax.vmap(
                lambda n: (
                    normal_target(FullRank().sample(p, n)).log_joint
                    - FullRank().log_prob(p, FullRank().sample(p, n))
                )
            )(_hermite_noise())
        )
    )(params)
    flat = np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(exact)])
    mean, error, _ = averaged(estimator, FullRank(), normal_target, params)
    used = error > 0
    assert np.all(np.abs(mean - flat)[used] < 4.5 * error[used] + 1e-12)


def _hermite_noise():
    """Equal-weight points with the first three moments of a standard normal: exact for quadratics."""
    root = np.sqrt(2)
    return jnp.array([[root, 0], [-root, 0], [0, root], [0, -root]])


def test_the_path_derivative_vanishes_at_the_exact_guide():
    params = MeanFieldParams(jnp.asarray(MEAN), jnp.log(jnp.asarray(SCALE)))
    mean, error, elbo = averaged("reparam", MeanField(), normal_target, params)
    np.testing.assert_allclose(mean, 0, atol=1e-12)
    np.testing.assert_allclose(error, 0, atol=1e-12)
    np.testing.assert_allclose(elbo, 0.3, atol=1e-12)


def half_line(u):
    """A standard normal on u > 0.3."""
    zero = jnp.zeros(())
    return Density(jax.scipy.stats.norm.logpdf(u[0]), zero, zero, u[0] > 0.3)


def quadrature(objective, loc, log_scale):
    """Central differences of an objective of (loc, log scale)."""
    return optimize.approx_fprime([loc, log_scale], lambda p: objective(*p), 1e-5)


def test_score_gradients_of_the_surrogate_on_a_half_line():
    log_c, loc, log_scale = -6.0, 0.5, 0.1

    def surrogate(loc, log_scale):
        q = stats.norm(loc, np.exp(log_scale))

        def inside(u):
            return q.pdf(u) * (stats.norm.logpdf(u) - q.logpdf(u))

        def outside(u):
            return q.pdf(u) * (log_c - q.logpdf(u))

        return integrate.quad(inside, 0.3, 12)[0] + integrate.quad(outside, -12, 0.3)[0]

    params = MeanFieldParams(jnp.array([loc]), jnp.array([log_scale]))
    mean, error, _ = averaged("score", MeanField(), half_line, params, log_c, width=1)
    assert np.all(np.abs(mean - quadrature(surrogate, loc, log_scale)) < 4.5 * error + 1e-4)


def test_truncated_gradients_are_those_of_the_truncated_elbo():
    loc, log_scale = 0.9, -0.2

    def objective(loc, log_scale):
        q = stats.norm(loc, np.exp(log_scale))
        accepted = q.sf(0.3)

        def inside(u):
            return q.pdf(u) / accepted * (stats.norm.logpdf(u) - q.logpdf(u) + np.log(accepted))

        return integrate.quad(inside, 0.3, 12)[0] + ACCEPTANCE_REWARD * np.log(accepted)

    params = MeanFieldParams(jnp.array([loc]), jnp.array([log_scale]))
    mean, error, _ = averaged("truncated", MeanField(), half_line, params, width=1)
    # Fewer than two of eight draws fall inside with probability 7e-4; those steps differ.
    assert np.all(np.abs(mean - quadrature(objective, loc, log_scale)) < 4.5 * error + 0.02)


@pytest.mark.parametrize("estimator", get_args(GradientKind))
def test_particles_without_a_density_are_left_out(estimator):
    def holed(u):
        density = normal_target(u)
        return density._replace(log_prior=jnp.where(u[0] > 1.0, jnp.nan, density.log_prior))

    params = MeanFieldParams(jnp.zeros(2), jnp.zeros(2))
    mean, _, elbo = averaged(estimator, MeanField(), holed, params)
    assert np.all(np.isfinite(mean)) and np.all(np.isfinite(elbo))
