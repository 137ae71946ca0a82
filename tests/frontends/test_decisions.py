"""Everything that Python may ask of a random value."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from scipy import stats

from pathmix.engine.precision import engine_scope
from pathmix.frontends.numpyro.record import record
from pathmix.frontends.numpyro.replay import replay
from pathmix.frontends.recognise import bind
from pathmix.program.failures import FailedRun
from pathmix.program.path import Decision
from pathmix.program.seeds import Seed
from pathmix.regions.region import read_region
from tests import exact
from tests.paths import discover


def run(model, *args, leader=0, seeds=16):
    with engine_scope("float64"):
        found = record(bind(model, args), Seed.of(0).batch(seeds), leader)
    if isinstance(found, FailedRun):
        raise found.error
    return found


def decisions(model):
    return [(d.kind, d.value) for d in run(model).path.decisions]


def discrete(ask):
    def model():
        k = numpyro.sample("k", dist.DiscreteUniform(2, 2))
        ask(k)
        numpyro.sample("x", dist.Normal(0, 1))

    return model


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize(
    ("ask", "expected"),
    [
        (lambda k: bool(k > 1), ("bool", True)),
        (lambda k: 0 if k == 3 else 1, ("bool", False)),
        (lambda k: int(k), ("int", 2)),
        (lambda k: range(k), ("int", 2)),
        (lambda k: ["a", "b", "c"][k], ("int", 2)),
        (lambda k: float(k), ("int", 2)),
        (lambda k: k.item(), ("int", 2)),
        (lambda k: (k > 1).item(), ("bool", True)),
        (lambda k: jnp.stack([k, k]).tolist(), ("array", (2, 2))),
        (lambda k: np.asarray(k), ("array", 2)),
        (lambda k: (k / 2).item(), ("float", 1.0)),
        (lambda k: max(k, 1), ("bool", False)),
        (lambda k: k in [2], ("bool", True)),
    ],
)
def test_questions(ask, expected):
    model = discrete(ask)
    assert decisions(model) == [expected]
    batch_run = run(model)
    slp = replay(bind(model), batch_run)
    region = read_region(slp, batch_run.values)
    assert slp.path.decisions == (Decision(*expected),)
    assert region.kind == "free"


@pytest.mark.usefixtures("engine")
def test_decisions_on_data_are_not_recorded():
    def model(y):
        if jnp.mean(y) > 0:
            z = numpyro.sample("positive", dist.Normal(0, 1))
        else:
            z = numpyro.sample("negative", dist.Normal(0, 1))
        numpyro.sample("y", dist.Normal(z, 1), obs=y)

    batch_run = run(model, jnp.ones(3))
    assert batch_run.path.decisions == ()
    assert replay(bind(model, (jnp.ones(3),)), batch_run).path.addresses == ("positive",)


def test_one_run_explains_all_seeds_of_a_path():
    def model():
        k = numpyro.sample("k", dist.Poisson(2))
        for i in range(k):
            numpyro.sample(f"x_{i}", dist.Normal(0, 1))

    batch_run = run(model, seeds=100)
    alone = [run(model, leader=i, seeds=100).path == batch_run.path for i in range(100)]
    np.testing.assert_array_equal(batch_run.followed, alone)
    # Discrete sites are forced, so every seed gives a draw of this path's prior.
    assert batch_run.inside.all()


@pytest.mark.usefixtures("engine")
def test_a_seed_does_not_depend_on_its_batch():
    def model():
        x = numpyro.sample("x", dist.Gamma(2, 1))
        if x > 1:
            numpyro.sample("y", dist.Beta(2, 3))

    seeds = Seed.of(5).batch(8)
    together = record(bind(model), seeds, 3)
    alone = record(bind(model), seeds.rows(np.array([3])), 0)
    assert together.path == alone.path
    for name, values in alone.values.items():
        np.testing.assert_array_equal(values[0], together.values[name][3])


def test_values_inside_jit_keep_jaxs_own_error():
    def model():
        x = numpyro.sample("x", dist.Normal(0, 1))
        jax.jit(lambda v: 1.0 if v > 0 else 2.0)(x)

    with pytest.raises(jax.errors.TracerBoolConversionError):
        run(model)


def test_annotations_are_accepted():
    def model():
        if numpyro.sample("k", dist.Bernoulli(0.5), infer={"branching": True}):
            numpyro.sample("x", dist.Normal(0, 1))

    assert run(model).path.addresses[0] == "k"


@pytest.mark.usefixtures("engine")
def test_scan_of_the_library_is_supported():
    from numpyro.contrib.control_flow import scan

    def model():
        def step(carry, _):
            carry = numpyro.sample("x", dist.Normal(carry, 1))
            return carry, None

        last, _ = scan(step, 0.0, jnp.arange(3))
        if last > 0:
            numpyro.sample("z", dist.Normal(0, 1))

    batch_run = run(model)
    assert batch_run.values["x"].shape == (16, 3)
    slp = replay(bind(model), batch_run)
    assert slp.sites[0].shape == (3,)
    assert read_region(slp, batch_run.values).kind == "general"


TRANSFORMS = {
    "jit": lambda f, xs: jax.jit(f)(xs[0]),
    "scan": lambda f, xs: jax.lax.scan(lambda c, x: (c, f(x)), 0.0, xs)[1][0],
    "map": lambda f, xs: jax.lax.map(f, xs)[0],
    "checkpoint": lambda f, xs: jax.checkpoint(f)(xs[0]),
    "vmap": lambda f, xs: jax.vmap(f)(xs)[0],
}


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("name", TRANSFORMS)
def test_a_decision_on_a_site_outside_of_a_function_that_is_transformed(name):
    def model():
        k = numpyro.sample("k", dist.Bernoulli(0.3))
        x = numpyro.sample("x", dist.Normal(0, 1))
        numpyro.factor("f", TRANSFORMS[name](lambda y: x * y if k else 2 * x * y, jnp.arange(1.0, 3.0)))

    batch_run = run(model)
    slp = replay(bind(model), batch_run)
    k = dict(batch_run.path.pinned)["k"]
    log_prior, log_likelihood, *conditions = slp.graph(slp.graph.consts, [jnp.array(k), jnp.array(0.5)])[:3]
    assert log_likelihood == (0.5 if k else 1.0) and all(conditions)
    assert log_prior == pytest.approx(np.log(0.3 if k else 0.7) + stats.norm.logpdf(0.5))
    assert not slp.graph(slp.graph.consts, [jnp.array(1 - k), jnp.array(0.5)])[2]


def test_handlers_inside_the_model():
    def base():
        a = numpyro.sample("a", dist.Normal(0, 1))
        numpyro.sample("b", dist.Normal(a, 1))

    conditioned = numpyro.handlers.condition(base, {"b": 0.3})
    assert run(conditioned).path.addresses == ("a",)
    fixed = numpyro.handlers.substitute(base, {"a": 0.3})
    assert run(fixed).path.addresses == ("b",)
    masked = numpyro.handlers.mask(base, mask=False)
    assert run(masked).path.addresses == ("a", "b")


BESIDE = {
    "jit": lambda x: jax.jit(lambda v: (3, 2 * v))(x),
    "scan": lambda x: jax.lax.scan(lambda c, _: ((c[0] + 1, c[1] + x), None), (0, 0.0), None, length=3)[0],
    "fori_loop": lambda x: jax.lax.fori_loop(0, 3, lambda _, c: (c[0] + 1, c[1] + x), (0, 0.0)),
    "while_loop": lambda x: jax.lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] + x), (0, 0.0)),
}


@pytest.mark.parametrize("name", BESIDE)
def test_what_comes_out_beside_random_values_decides_nothing(name):
    def model():
        x = numpyro.sample("x", dist.Normal(0, 1))
        count, level = BESIDE[name](x)
        for i in range(int(count)):
            numpyro.sample(f"z_{i}", dist.Normal(level, 1))
        if count == 3:
            numpyro.sample("y", dist.Normal(level, 1), obs=1.0)

    found = discover(model, samples=20)
    (path,) = found.paths
    assert found.unseen_is_exact
    assert found.unseen_mass == 0
    with engine_scope("float64"):
        assert read_region(path.slp, path.draws).kind == "free"


def test_a_loop_without_a_known_end_is_fitted_by_scores():
    def model():
        x = numpyro.sample("x", dist.Normal(0, 1))
        _, level = BESIDE["while_loop"](x)
        numpyro.sample("y", dist.Normal(level, 1), obs=1.0)

    posterior = exact.fit(model, budget=2_000)
    assert posterior.paths[0].gradient == "score"
    assert posterior.log_evidence == pytest.approx(stats.norm.logpdf(1, 0, np.sqrt(10)), abs=1e-3)
