"""NumPyro's scan and cond: reversed, with sites that the program puts in place, and renamed from outside."""

import itertools
import math

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from numpyro import handlers
from numpyro.contrib.control_flow import cond, scan
from scipy import special, stats

import pathmix
from pathmix.errors import HiddenRandomnessError, UnsupportedSiteError

FEW = {"allocation": pathmix.SuccessiveHalving(3_000), "progress": False}
Y = np.array([0.9, -0.3, 1.4, 2.2])


def fitted(model, *args):
    return pathmix.SDVI(model, **FEW).run(0, *args)


def walk(y, reverse):
    def step(x, seen):
        x = numpyro.sample("x", dist.Normal(0.8 * x, 1.0))
        numpyro.sample("y", dist.Normal(x, 1.0), obs=seen)
        return x, x

    return scan(step, 0.0, jnp.asarray(y), reverse=reverse)


def covariance(reverse):
    """Of the states, in the order of the data."""
    lower = np.tril(0.8 ** (np.arange(4)[:, None] - np.arange(4)))
    prior = lower @ lower.T
    return prior[::-1, ::-1] if reverse else prior


@pytest.mark.parametrize("reverse", [False, True])
def test_states_come_in_the_order_of_the_data(reverse):
    posterior = fitted(lambda y: walk(y, reverse), Y)
    prior = covariance(reverse)
    exact = stats.multivariate_normal.logpdf(Y, np.zeros(4), prior + np.eye(4))
    assert posterior.log_evidence == pytest.approx(exact, abs=0.01)
    mean = prior @ np.linalg.solve(prior + np.eye(4), Y)
    assert np.allclose(posterior.sample(0, 20_000)["x"].mean(axis=0), mean, atol=0.05)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("place", [None, 0, 2])
def test_discrete_states_are_summed_out_in_their_order(reverse, place):
    moves = np.array([[0.8, 0.2], [0.3, 0.7]])

    def model(y):
        def step(z, seen):
            z = numpyro.sample("z", dist.Categorical(probs=jnp.asarray(moves)[z]))
            numpyro.sample("y", dist.Normal(2.0 * z, 1.0), obs=seen)
            return z, z

        last, states = scan(step, 0, jnp.asarray(y), reverse=reverse)
        used = last if place is None else states[place]
        numpyro.sample("w", dist.Normal(1.0 * used, 0.5), obs=1.7)

    logs = []
    for states in itertools.product((0, 1), repeat=4):
        ran = states[::-1] if reverse else states
        used = ran[-1] if place is None else states[place]
        log = sum(math.log(moves[a, b]) for a, b in itertools.pairwise((0, *ran)))
        log += stats.norm.logpdf(Y, 2.0 * np.array(states), 1).sum() + stats.norm.logpdf(1.7, used, 0.5)
        logs.append(log)
    assert fitted(model, Y).log_evidence == pytest.approx(special.logsumexp(logs), abs=1e-6)


@pytest.mark.parametrize("reverse", [False, True])
def test_what_is_put_in_place_is_not_inferred(reverse):
    """And has its density, as sites outside."""
    fixed = np.array([0.5, 0.2, -0.1, 0.4])

    def model(y):
        m = numpyro.sample("m", dist.Normal(0, 1))

        def step(carry, seen):
            v = numpyro.sample("v", dist.Normal(0, 1.0))
            numpyro.sample("y", dist.Normal(m + 0.3 * v, 1.0), obs=seen)
            return carry, None

        scan(step, 0.0, jnp.asarray(y), reverse=reverse)

    put = handlers.substitute(model, data={"v": jnp.asarray(fixed)})
    shifts = 0.3 * (fixed[::-1] if reverse else fixed)  # NumPyro gives them in the order of steps
    exact = stats.multivariate_normal.logpdf(Y - shifts, np.zeros(4), np.eye(4) + 1)
    exact += stats.norm.logpdf(fixed).sum()
    posterior = fitted(put, Y)
    assert posterior.log_evidence == pytest.approx(exact, abs=0.01)
    assert "v" not in posterior.sample(0, 2)


def test_what_is_put_in_place_in_both_branches():
    def model(y):
        z = numpyro.sample("z", dist.Bernoulli(0.4))
        w = cond(
            z == 1,
            lambda _: numpyro.sample("w", dist.Normal(1.0, 1.0)),
            lambda _: numpyro.sample("w", dist.Normal(-1.0, 1.5)),
            None,
        )
        numpyro.sample("y", dist.Normal(w, 1.0), obs=y)

    prior = 0.4 * stats.norm.pdf(0.5, 1, 1) + 0.6 * stats.norm.pdf(0.5, -1, 1.5)
    posterior = fitted(handlers.substitute(model, data={"w": 0.5}), 2.0)
    assert posterior.log_evidence == pytest.approx(math.log(prior) + stats.norm.logpdf(2.0, 0.5, 1))


def test_sites_that_are_renamed_from_outside_are_refused():
    def model(y):
        with handlers.scope(prefix="a"):
            walk(y, reverse=False)

    with pytest.raises(UnsupportedSiteError, match=r"'x' is inside of a scan.*Put the handler around the"):
        fitted(model, Y)


def test_sites_that_are_hidden_from_outside_may_decide_nothing():
    def model(y, is_used):
        with handlers.block():
            last, _ = walk(y, reverse=False)
        mean = numpyro.sample("m", dist.Normal(0, 1)) + (last if is_used else 0.0)
        numpyro.sample("w", dist.Normal(mean, 1), obs=0.3)

    assert fitted(model, Y, False).log_evidence == pytest.approx(
        stats.norm.logpdf(0.3, 0, math.sqrt(2)), abs=0.01
    )
    with pytest.raises(HiddenRandomnessError, match=r"handlers\.block"):
        fitted(model, Y, True)


def test_sites_may_be_renamed_from_inside():
    def model(y):
        for prefix in "ab":

            def step(x, seen):
                x = numpyro.sample("x", dist.Normal(0.8 * x, 1.0))
                numpyro.sample("y", dist.Normal(x, 1.0), obs=seen)
                return x, None

            scan(handlers.scope(step, prefix=prefix), 0.0, jnp.asarray(y))

    exact = 2 * stats.multivariate_normal.logpdf(Y, np.zeros(4), covariance(False) + np.eye(4))
    assert fitted(model, Y).log_evidence == pytest.approx(exact, abs=0.02)
