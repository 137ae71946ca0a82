"""One bad path never kills a run."""

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import optax
import pytest
from scipy import stats

import pathmix
from pathmix import PathmixWarning, Status
from tests import exact


def beside(bad):
    """A program with a good path and one made by `bad`."""

    def model(y):
        if numpyro.sample("bad", dist.Bernoulli(0.5)):
            z = bad()
        else:
            z = numpyro.sample("good", dist.Normal(0, 1))
        numpyro.sample("y", dist.Normal(z, 1), obs=y)

    posterior = exact.fit(model, 0.5, budget=2_000)
    paths = {path.pinned["bad"]: path for path in posterior.paths}
    assert paths[0].status is Status.OK and paths[0].weight == pytest.approx(1.0, abs=1e-6)
    return paths[1], posterior


def test_nan_density():
    def bad():
        x = numpyro.sample("x", dist.Normal(0, 1))
        return jnp.log(-jnp.abs(x))

    path, posterior = beside(bad)
    assert path.status is Status.NAN and path.weight == 0 and "NaN" in path.message
    assert "NaN density" in str(posterior)


def test_zero_likelihood_is_not_outside():
    def bad():
        x = numpyro.sample("x", dist.Normal(0, 1))
        numpyro.factor("never", -jnp.inf)
        return x

    path, _ = beside(bad)
    assert path.status is Status.ZERO and path.weight == 0 and path.elbo == -np.inf


def test_a_likelihood_that_is_zero_somewhere_can_still_be_trained():
    def model(y):
        x = numpyro.sample("x", dist.Normal(0, 3))
        numpyro.factor("positive", jnp.where(x > -2, 0.0, -jnp.inf))
        numpyro.sample("y", dist.Normal(x, 0.3), obs=y)

    posterior = exact.fit(model, 2.0, budget=5_000)
    assert posterior.paths[0].status is Status.OK
    assert np.isfinite(posterior.elbo)


def test_zero_density_inside_a_general_region_is_trained_away():
    def model():
        a = numpyro.sample("a", dist.Normal(0, 1))
        b = numpyro.sample("b", dist.Normal(0, 1))
        if a + b > 0:
            numpyro.factor("edge", jnp.where(a > -1.5, 0.0, -jnp.inf))

    posterior = exact.fit(model, budget=20_000)
    assert all(path.region.kind == "general" for path in posterior.paths)
    assert posterior.paths[0].weight == pytest.approx(0.5, abs=0.1)


def test_a_guide_is_truncated_to_where_the_density_is_not_zero():
    """A factor that cuts the support: the evidence is that of the half that is left."""

    def model():
        x = numpyro.sample("x", dist.Normal(0, 1))
        numpyro.factor("positive", jnp.where(x > 0, 0.0, -jnp.inf))

    posterior = exact.fit(model, budget=5_000)
    (path,) = posterior.paths
    assert path.gradient == "truncated" and path.status is Status.OK
    assert np.log(0.5) - 0.2 < path.elbo < np.log(0.5) + 0.05
    assert posterior.sample(0, 1_000)["x"].min() > 0


def test_an_infinite_density_does_not_take_the_others_down():
    def bad():
        x = numpyro.sample("x", dist.Normal(0, 1))
        numpyro.factor("explodes", jnp.inf)
        return x

    path, _ = beside(bad)
    assert path.status is Status.NAN and path.weight == 0 and "infinite" in path.message


def test_paths_that_are_still_improving_are_named():
    def model(y):
        x = numpyro.sample("x", dist.Normal(0, 1))
        numpyro.sample("y", dist.Normal(x, 0.05), obs=y)

    early, late = (exact.fit(model, 8.0, budget=budget, weights="elbo") for budget in (300, 20_000))
    assert "still rose" in early.paths[0].message and "not settled" in str(early)
    assert "still" not in late.paths[0].message and not late.notes


def test_a_guide_that_never_lands_inside():
    class Stray(pathmix.MeanField):
        """Starts far away from the region, with nothing to bring it back."""

        def init(self, draws):
            return super().init(draws)._replace(loc=jnp.full(draws.shape[1], 1e3))

    def model(y):
        a = numpyro.sample("a", dist.Normal(0, 1))
        b = numpyro.sample("b", dist.Normal(0, 1))
        z = numpyro.sample("z", dist.Normal(-1 if a + b < 0 else 1, 1))
        numpyro.sample("y", dist.Normal(z, 1), obs=y)

    def guide(slp):
        return Stray() if slp.path.decisions[0].value else pathmix.MeanField()

    posterior = exact.fit(model, 0.5, budget=500, guide=guide, weights="elbo")
    strayed, good = posterior.paths[1], posterior.paths[0]
    assert strayed.status is Status.OUTSIDE and strayed.weight == 0 and strayed.acceptance == 0
    assert "inside the path's region" in strayed.message
    assert good.weight == 1 and not posterior.verdict.ok
    # The search for evidences does not need it.
    posterior = exact.fit(model, 0.5, budget=500, guide=guide)
    strayed = posterior.paths[1]
    truth = exact.softmax(stats.norm.logpdf(0.5, np.array([-1.0, 1.0]), np.sqrt(2)))[0]
    assert strayed.status is Status.OK and strayed.acceptance == 0
    assert strayed.weight == pytest.approx(truth, abs=4.5 * posterior.weight_errors[strayed.label])


def test_a_failing_guide_is_a_status():
    class Broken(pathmix.MeanField):
        def log_prob(self, params, u):
            raise RuntimeError("broken on purpose")

    def model(y):
        k = numpyro.sample("k", dist.Bernoulli(0.5))
        z = numpyro.sample("z", dist.Normal(2.0 if k == 1 else -2.0, 1))
        numpyro.sample("y", dist.Normal(z, 1), obs=y)

    def guide(slp):
        return Broken() if dict(slp.path.pinned)["k"] == 1 else pathmix.MeanField()

    with pytest.warns(pathmix.PathmixWarning, match=r"'k=1' failed.*RuntimeError: broken.*test_statuses.py:"):
        posterior = exact.fit(model, 0.5, budget=500, guide=guide)
    assert [path.status for path in posterior.paths] == [Status.OK, Status.FAILED]
    assert "broken on purpose" in posterior.paths[1].message
    assert isinstance(posterior.paths[1].failure, RuntimeError) and posterior.paths[0].failure is None


def test_no_path_carries_weight():
    def model():
        x = numpyro.sample("x", dist.Normal(0, 1))
        numpyro.factor("never", -jnp.inf * (1 + 0 * x))

    with pytest.warns(pathmix.PathmixWarning, match="No path carries weight"):
        posterior = exact.fit(model, budget=100)
    assert posterior.elbo == -np.inf and posterior.weights == {"always": 0.0}
    with pytest.raises(pathmix.PathmixError, match="nothing to draw from"):
        posterior.sample(0, 10)


def test_paths_that_the_budget_does_not_reach():
    def model(y):
        k = numpyro.sample("k", dist.Categorical(probs=jnp.ones(4) / 4))
        z = numpyro.sample("z", dist.Normal(int(k), 1))
        numpyro.sample("y", dist.Normal(z, 1), obs=y)

    posterior = exact.fit(model, 0.0, allocation=pathmix.Uniform(budget=3))
    assert {path.steps for path in posterior.paths} == {0}
    truth = exact.softmax(stats.norm.logpdf(0.0, np.arange(4), np.sqrt(2)))
    found = [posterior.weights[f"k={k}"] for k in range(4)]
    np.testing.assert_allclose(found, truth, atol=5 * max(posterior.weight_errors.values()))
    assert all(path.status is Status.OK and "no iteration" in path.message for path in posterior.paths)
    rough = exact.fit(model, 0.0, allocation=pathmix.Uniform(budget=3), weights="elbo")
    assert {path.status for path in rough.paths} <= {Status.OK, Status.UNTRAINED}
    halved = exact.fit(model, 0.0, allocation=pathmix.SuccessiveHalving(budget=2_000, keep=1))
    assert sum("Set aside" in path.message for path in halved.paths) == 3
    assert halved.paths[0].label == "k=0" and halved.paths[0].steps > halved.paths[1].steps


def test_a_guide_that_diverges_is_never_believed():
    """Plain Adam makes a triangle of 60 rows so wild that nothing leads back: the ELBO was 7e24."""
    generator = np.random.default_rng(0)
    x = 0.6 * generator.normal(size=(80, 1)) + 0.8 * generator.normal(size=(80, 60))
    y = x[:, :3] @ [1, -1, 0.5] + generator.normal(size=80)

    def model(y):
        weight = numpyro.sample("weight", dist.Normal(0, 0.3).expand([60]).to_event(1))
        numpyro.sample("y", dist.Normal(x @ weight, 1), obs=y)

    options = {"guide": "fullrank", "optimizer": optax.adam(0.05), "starts": 1, "budget": 3_000}
    truth = stats.multivariate_normal.logpdf(y, np.zeros(80), np.eye(80) + 0.09 * x @ x.T)
    (path,) = exact.fit(model, y, **options).paths
    assert path.elbo == -np.inf and "diverged" in path.message
    assert path.log_evidence == pytest.approx(truth, abs=5 * path.log_evidence_error)
    with pytest.warns(PathmixWarning, match="The guide has diverged"):
        (path,) = exact.fit(model, y, weights="elbo", **options).paths
    assert path.weight == 0 and path.status is Status.NAN
