"""DCC against exact evidences, and its parts one by one.

Evidences are compared within 5 / sqrt(n), where n is the number of effective importance draws: 1 / sqrt(n)
is the standard error of log Z for independent weights, and theirs is smaller, for draws are spread evenly
over the proposals. Such a comparison fails by chance less than once in a million times; all seeds are fixed.
"""

import math
import os
import re
import signal

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pyro
import pyro.distributions as pyro_dist
import pytest
from scipy import integrate, stats

import pathmix
from pathmix import PriorDiscovery, Status
from pathmix.errors import OptionError
from pathmix.methods.dcc import DCC, NUTS, RandomWalk
from pathmix.methods.dcc import dcc as conductor
from pathmix.methods.dcc.confidence import next_path
from pathmix.methods.dcc.kernels.base import make_prior_scales
from pathmix.methods.dcc.pimais import Evidence, make_log_weights
from pathmix.methods.dcc.spread import Factors, Spread
from pathmix.methods.dcc.thinned import Thinned
from pathmix.target.layout import layout_of
from tests import exact
from tests.engine.lapack_calls import lapack_equations
from tests.paths import discover, target_of
from tests.zoo import programs

KERNELS = [RandomWalk(), NUTS()]


def sample(model, *args, seed=0, iterations=40, **options):
    options.setdefault("kernel", RandomWalk())
    options.setdefault("discovery", PriorDiscovery(256))
    return DCC(model, iterations=iterations, progress=False, **options).run(seed, *args)


def ten_means(y):
    """Ten paths that share their compiled code."""
    z = numpyro.sample("z", dist.Categorical(probs=jnp.ones(10) / 10))
    x = numpyro.sample("x", dist.Normal(int(z), 1))
    numpyro.sample("y", dist.Normal(x, 1), obs=y)


def only_target(model, *args):
    (path,) = discover(model, *args, samples=64).paths
    return target_of(path), path.draws


def assert_evidences(posterior, truth):
    """Every log Z within five standard errors, and so the weights."""
    assert posterior.weights.keys() == truth.keys()
    errors = {}
    for path in posterior.paths:
        assert path.status is Status.OK
        effective = float(re.search(r"worth about (\d+)", path.message)[1])
        assert effective > 200
        errors[path.label] = 5 / math.sqrt(effective)
        assert path.log_evidence == pytest.approx(truth[path.label], abs=errors[path.label])
    total = exact.logsumexp(list(truth.values()))
    for label, log_z in truth.items():
        weight = math.exp(log_z - total)
        # d log w_k = d log Z_k - sum_j w_j d log Z_j
        assert posterior.weights[label] == pytest.approx(weight, abs=max(errors.values()) * weight * 2)
    assert posterior.log_evidence == pytest.approx(total, abs=max(errors.values()))
    assert math.isnan(posterior.elbo)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: type(kernel).__name__)
def test_two_intervals(kernel):
    """Two boxes that share their compiled code."""

    def model(y):
        x = numpyro.sample("x", dist.Uniform(-1, 1))
        z = numpyro.sample("z", dist.Normal(-3.0 if x < 0 else 3.0, 1))
        numpyro.sample("y", dist.Normal(z, 2), obs=y)

    truth = exact.two_branches(2.0)
    posterior = sample(model, 2.0, kernel=kernel)
    assert_evidences(posterior, {"-1 < x < 0": truth["x < 0"], "0 <= x < 1": truth["x >= 0"]})
    assert all(path.region.kind == "box" for path in posterior.paths)


@pytest.mark.trust
def test_ten_discrete_branches():
    posterior = sample(ten_means, 2.0, kernel=NUTS(), iterations=80)
    truth = np.log(0.1) + stats.norm.logpdf(2.0, np.arange(10), np.sqrt(2))
    assert_evidences(posterior, {f"z={z}": log_z for z, log_z in enumerate(truth)})
    steps = {path.label: path.steps for path in posterior.paths}
    assert sum(steps.values()) == 80 * 10 * 10
    assert steps["z=2"] > steps["z=9"] >= 100  # the rule prefers what has weight


def test_ten_branches():
    labels = ["u <= -4", *(f"{k} < u <= {k + 1}" for k in range(-4, 4)), "u > 4"]
    posterior = sample(programs.ten_branches, 2.0, iterations=80)
    assert_evidences(posterior, dict(zip(labels, exact.ten_branches(2.0), strict=True)))


@pytest.mark.trust
def test_polynomial_degree():
    arguments = programs.POLYNOMIAL_X, programs.POLYNOMIAL_Y
    posterior = sample(programs.polynomial, *arguments, iterations=100)
    truth = exact.polynomial(*arguments)
    assert_evidences(posterior, {f"degree={degree}": log_z for degree, log_z in enumerate(truth)})


def test_branch_on_a_sum():
    """A general region, where chains must not leave, and proposals outside count as zero."""
    posterior = sample(programs.sum_branch, 1.0, iterations=60)
    truth = exact.sum_branch(1.0)
    assert_evidences(posterior, {"a + b > 1": truth["high"], "not (a + b > 1)": truth["low"]})
    draws = posterior.sample(1, 500)
    total = draws["a"] + draws["b"]
    high = np.array([posterior.paths[path].label == "a + b > 1" for path in draws.path])
    assert np.all((total > 1) == high)


@pytest.mark.trust
def test_ten_dimensions():
    """A conjugate path whose posterior is correlated and ten times narrower than the prior."""
    generator = np.random.default_rng(0)
    x = generator.normal(size=(30, 10)) + generator.normal(size=(30, 1))
    y = x @ generator.normal(size=10) + 0.5 * generator.normal(size=30)

    def model(x, y):
        weight = numpyro.sample("weight", dist.Normal(0, 1).expand([10]).to_event(1))
        numpyro.sample("y", dist.Normal(x @ weight, 0.5).to_event(1), obs=y)

    posterior = sample(model, x, y, kernel=NUTS(), iterations=20)
    log_z = stats.multivariate_normal.logpdf(y, np.zeros(30), x @ x.T + 0.25 * np.eye(30))
    assert_evidences(posterior, {"always": log_z})
    # 2,000 states: the standard error of a mean is below 0.1 standard deviations with 100 effective ones.
    covariance = np.linalg.inv(x.T @ x / 0.25 + np.eye(10))
    standard = (posterior.sample(0, 4_000)["weight"].mean(axis=0) - covariance @ x.T @ y / 0.25) / np.sqrt(
        np.diag(covariance)
    )
    assert np.max(np.abs(standard)) < 0.4


@pytest.mark.usefixtures("engine")
def test_importance_weights_are_unbiased_wherever_the_chains_are():
    """The mean over 2,000 replications, within four standard errors (fails by chance once in 16,000)."""
    target, _ = only_target(programs.one_path, 0.5)
    positions = jnp.array([[[-0.6], [0.9]], [[0.1], [0.4]], [[1.1], [-0.2]]])  # not the posterior
    wide, narrow = jnp.array([1.4]), jnp.array([0.9])
    factors = Factors((wide, narrow), (1 / wide, 1 / narrow), (jnp.log(1.4), jnp.log(0.9)))
    weigh = jax.jit(make_log_weights(target, 4, 24))
    noise = jax.random.normal(jax.random.key(3), (2_000, 24))
    estimates = np.array([np.exp(weigh(positions, factors, row, target.arguments)).mean() for row in noise])
    error = estimates.std() / np.sqrt(len(estimates))
    assert abs(estimates.mean() - stats.norm.pdf(0.5, 0, np.sqrt(2))) < 4 * error
    assert error < 0.002


@pytest.mark.usefixtures("engine")
def test_weights_of_full_and_diagonal_factors_agree():
    target, _ = only_target(programs.one_path, 0.5)
    positions, noise = jnp.ones((2, 3, 1)), jnp.linspace(-2, 2, 30)
    roots = jnp.array([1.5]), jnp.array([0.7])
    logs = tuple(jnp.log(root[0]) for root in roots)
    weigh = make_log_weights(target, 5, 30)
    diagonal = Factors(roots, tuple(1 / root for root in roots), logs)
    full = Factors(tuple(root[None] for root in roots), tuple(1 / root[None] for root in roots), logs)
    results = [weigh(positions, factors, noise, target.arguments) for factors in (diagonal, full)]
    np.testing.assert_allclose(results[0], results[1], rtol=1e-12)


def test_evidence_adds_up():
    logs = np.array([-1.0, -np.inf, 0.5, np.nan, 2.0, -3.0])
    found = Evidence().add(logs[:3]).add(logs[3:])
    weights = np.exp(np.where(np.isnan(logs), -np.inf, logs))
    assert found.log_mean == pytest.approx(np.log(weights.mean()))
    assert found.log_variance == pytest.approx(np.log(weights.var()))
    assert found.effective_draws == pytest.approx(weights.sum() ** 2 / np.sum(weights**2))
    assert (found.draws, found.broken, found.positive, found.largest) == (6, 1, 4, 2.0)


@pytest.mark.usefixtures("engine")
def test_spread_of_the_chains():
    """Wide: all states, doubled; narrow: within chains. Coordinates at rest keep the prior's scale."""
    generator = np.random.default_rng(0)
    states = generator.normal(size=(10, 400, 3)) @ np.array([[1, 0.5, 0], [0, 1, 0], [0, 0, 0]])
    states[..., 0] += np.linspace(-9, 9, 10)[:, None]
    spread = Spread(np.zeros(3), np.array([5.0, 5.0, 5.0]))
    for start in range(0, 400, 4):
        spread.add(states[:, start : start + 4])
    factors = spread.factors()
    kept = states[:, 124:]  # visits 32 to 100
    whole = 2 * np.cov(kept.reshape(-1, 3), rowvar=False, ddof=0)
    within = np.mean([np.cov(chain, rowvar=False, ddof=0) for chain in kept], axis=0)
    for root, inverse, log_det, truth in zip(*factors, (whole, within), strict=True):
        found = np.asarray(root) @ np.asarray(root).T
        np.testing.assert_allclose(np.diag(found)[:2], np.diag(truth)[:2], rtol=1e-8)
        assert found[0, 1] == pytest.approx(truth[0, 1], rel=0.01)
        assert found[2, 2] in (pytest.approx(25), pytest.approx(50))
        np.testing.assert_allclose(np.asarray(inverse) @ np.asarray(root), np.eye(3), atol=1e-12)
        assert log_det == pytest.approx(np.linalg.slogdet(found)[1] / 2)


def test_thinning_keeps_the_order_and_the_limit():
    kept = Thinned(8)
    for visit in range(10):
        kept.add(np.arange(10 * visit, 10 * visit + 10.0).reshape(1, 10, 1))
    rows = kept.rows(0.0)[:, 0]
    assert 4 <= len(rows) <= 8 and len(set(np.diff(rows))) == 1
    assert np.array_equal(kept.rows(0.5)[:, 0], rows[len(rows) // 2 :])


def test_the_rule_prefers_evidence_and_what_was_seldom_tried():
    heavy, light = Evidence().add(np.log([1.0, 2.0, 3.0])), Evidence().add(np.log([0.01, 0.02, 0.01]))
    assert next_path([light, heavy], [5, 5]) == 1
    assert next_path([light, heavy], [1, 30]) == 0
    zero = Evidence().add(np.full(3, -np.inf))
    assert next_path([zero, zero], [2, 1]) == 1


@pytest.mark.usefixtures("engine")
def test_coordinates_know_their_sites():
    def model():
        numpyro.sample("shares", dist.Dirichlet(jnp.ones(3)))
        numpyro.sample("scale", dist.HalfNormal(1))
        numpyro.sample("means", dist.Normal(jnp.zeros(3), 1).to_event(1))
        numpyro.sample("rate", dist.HalfNormal(1))

    target, _ = only_target(model)
    prior_scales = make_prior_scales(
        target.coordinates, np.random.default_rng(0).normal(size=(50, target.dim))
    )
    sizes = {"shares": 2, "scale": 1, "means": 3, "rate": 1}
    names = [site.name for site in layout_of(target.coordinates).sites]
    owners = [number for number, name in enumerate(names) for _ in range(sizes[name])]
    assert prior_scales.sites.tolist() == owners and prior_scales.scales.shape == (7,)


def test_chains_reach_the_posterior():
    """Mean and deviation of a conjugate path; 2,000 states count for at least 200 independent ones."""
    draws = sample(programs.one_path, 0.5, iterations=40).sample(0, 20_000)["z"]
    assert draws.mean() == pytest.approx(0.25, abs=5 * math.sqrt(0.5 / 200))
    assert draws.std() == pytest.approx(math.sqrt(0.5), abs=5 * math.sqrt(0.5 / 400))


def test_the_posterior_is_an_ordinary_one():
    def model(y):
        up = numpyro.sample("up", dist.Bernoulli(0.4))
        x = numpyro.sample("x", dist.Normal(1.0 if up else -1.0, 1))
        numpyro.deterministic("square", x**2)
        numpyro.sample("y", dist.Normal(x, 1), obs=y)

    posterior = sample(model, 1.3, iterations=20)
    assert [path.label for path in posterior.paths] == ["up=1", "up=0"]
    assert posterior.paths[0].log_evidence > posterior.paths[1].log_evidence
    assert sum(posterior.weights.values()) == pytest.approx(1)
    draws = posterior.sample(0, 200)
    np.testing.assert_allclose(draws["square"], draws["x"] ** 2, rtol=1e-12)
    assert posterior.predict(1, 50, None)["y"].shape == (50,)
    assert "log Z" in str(posterior) and "log evidence" in str(posterior)
    for path in posterior.paths:
        assert 0 < path.chain_acceptance < 1 and np.isnan(path.acceptance)
        assert path.effective_draws > 100 and path.likelihood_evaluations > path.steps * 11
        assert path.region.kind == "free" and "importance draws" in path.message


def test_log_prob_is_log_gamma_minus_log_z():
    posterior = sample(programs.spike_and_slab, 1.5)
    slab, spike = (next(p for p in posterior.paths if p.label == f"active={k}") for k in (1, 0))
    assert spike.status is Status.EXACT and spike.steps == 0
    assert spike.log_evidence == pytest.approx(np.log(0.5) + stats.norm.logpdf(1.5), abs=1e-12)

    def log_gamma(effect):
        return np.log(0.5) + stats.norm.logpdf(effect, 0, 2) + stats.norm.logpdf(1.5, effect, 1)

    log_z = posterior.log_evidence
    for effect in (-1.0, 0.3, 2.5):
        value = posterior.log_prob({"active": 1, "effect": effect})
        assert value == pytest.approx(log_gamma(effect) - log_z, abs=1e-9)
    assert posterior.log_prob({"active": 0}) == pytest.approx(np.log(spike.weight), abs=1e-9)
    grid = np.linspace(-6, 9, 61)
    mass = integrate.simpson([np.exp(posterior.log_prob({"active": 1, "effect": x})) for x in grid], x=grid)
    assert mass == pytest.approx(slab.weight, abs=5 * 0.01)


def test_values_outside_a_support_have_no_density():
    def model(y):
        scale = numpyro.sample("scale", dist.HalfNormal(1))
        numpyro.sample("y", dist.Normal(0, scale), obs=y)

    posterior = sample(model, 0.5, iterations=2)
    assert posterior.log_prob({"scale": -1.0}) == -np.inf and np.isfinite(posterior.log_prob({"scale": 1.0}))


def test_a_pyro_program():
    def model(y):
        up = pyro.sample("up", pyro_dist.Bernoulli(0.5))
        z = pyro.sample("z", pyro_dist.Normal(3.0 if up else -3.0, 1))
        pyro.sample("y", pyro_dist.Normal(z, 2), obs=y)

    posterior = sample(model, 2.0, discovery=PriorDiscovery(100))
    assert_evidences(posterior, {"up=1": exact.log_half(2.0, 3), "up=0": exact.log_half(2.0, -3)})
    assert posterior.predict(0, 10, None)["y"].shape == (10,)


@pytest.mark.trust
def test_the_same_seed_gives_the_same_bits_with_one_and_two_threads():
    one, two, other = (
        sample(ten_means, 2.0, seed=seed, threads=threads, iterations=20)
        for seed, threads in ((0, 1), (0, 2), (1, 2))
    )
    assert [path.log_evidence for path in one.paths] == [path.log_evidence for path in two.paths]
    np.testing.assert_array_equal(one.sample(0, 50)["x"], two.sample(0, 50)["x"])
    assert one.log_evidence != other.log_evidence


def test_single_precision():
    posterior = sample(programs.one_path, 0.5, precision="float32")
    assert_evidences(posterior, {"always": stats.norm.logpdf(0.5, 0, np.sqrt(2))})
    assert posterior.sample(0, 5)["z"].dtype == np.float32


def test_bad_paths_get_a_status():
    def model(y):
        kind = int(numpyro.sample("kind", dist.Categorical(probs=jnp.ones(5) / 5)))
        x = numpyro.sample("x", dist.Normal(0, 1))
        if kind == 1:
            x = jnp.log(-jnp.abs(x))
        if kind == 2:
            numpyro.factor("never", -jnp.inf)
        if kind == 3:
            numpyro.factor("explodes", jnp.inf)
        if kind == 4:
            x = jnp.where(x > 0, x, jnp.nan)
        numpyro.sample("y", dist.Normal(x, 1), obs=y)

    paths = {path.pinned["kind"]: path for path in sample(model, 0.5, iterations=30).paths}
    statuses = [paths[kind].status for kind in range(5)]
    assert statuses == [Status.OK, Status.NAN, Status.ZERO, Status.NAN, Status.OK]
    assert [paths[kind].weight == 0 for kind in range(5)] == [False, True, True, True, False]
    assert "NaN" in paths[1].message and "the density is zero" in paths[2].message
    assert "count as zero" in paths[4].message
    half = stats.norm.cdf(0.25 / np.sqrt(0.5))  # of the posterior is where the density is a number
    assert paths[4].weight == pytest.approx(half / (1 + half), abs=0.03)


def test_an_error_on_a_path_is_its_status():
    class Broken(RandomWalk):
        def advance(self, target, *args):
            if dict(target.slp.path.pinned)["k"] == 1:
                raise RuntimeError("broken on purpose")
            return super().advance(target, *args)

    def model(y):
        k = numpyro.sample("k", dist.Bernoulli(0.5))
        z = numpyro.sample("z", dist.Normal(0, 1) if k == 1 else dist.Laplace(0, 1))
        numpyro.sample("y", dist.Normal(z, 1), obs=y)

    with pytest.warns(pathmix.PathmixWarning, match="'k=1' failed .* broken on purpose"):
        posterior = sample(model, 0.5, kernel=Broken(), iterations=5)
    assert [path.status for path in posterior.paths] == [Status.OK, Status.FAILED]
    failed = posterior.paths[1]
    assert "broken on purpose" in failed.message and failed.weight == 0
    assert isinstance(failed.failure, RuntimeError)


def test_impossible_data_on_a_path_is_its_status():
    def model(y):
        z = numpyro.sample("z", dist.Normal(0, 1))
        if numpyro.sample("bounded", dist.Bernoulli(0.5)):
            numpyro.sample("y", dist.Uniform(0, 1), obs=y)
        else:
            numpyro.sample("y", dist.Normal(z, 1), obs=y)

    posterior = sample(model, 2.0, iterations=5)
    assert [path.status for path in posterior.paths] == [Status.OK, Status.IMPOSSIBLE]
    assert re.search(r"'y' at test_dcc.py:\d+", posterior.paths[1].message)
    assert posterior.paths[1].weight == 0 and posterior.paths[1].steps == 0
    assert not any("no visit" in note for note in posterior.notes)


def test_no_path_carries_weight():
    def model():
        x = numpyro.sample("x", dist.Normal(0, 1))
        numpyro.factor("never", -jnp.inf * (1 + 0 * x))

    with pytest.warns(pathmix.PathmixWarning, match="No path carries weight"):
        posterior = sample(model)
    assert posterior.weights == {"always": 0.0} and posterior.paths[0].status is Status.ZERO


def test_paths_that_the_iterations_do_not_reach():
    def model(y):
        k = numpyro.sample("k", dist.Categorical(probs=jnp.array([0.1, 0.4, 0.2, 0.3])))
        z = numpyro.sample("z", dist.Normal(int(k), 1))
        numpyro.sample("y", dist.Normal(z, 1), obs=y)

    posterior = sample(model, 0.5, iterations=2)
    statuses = {path.label: path.status for path in posterior.paths}
    assert statuses["k=1"] is statuses["k=3"] is Status.OK  # the largest prior masses
    assert statuses["k=0"] is statuses["k=2"] is Status.UNTRAINED
    assert posterior.weights["k=0"] == 0 and "2 paths got no visit" in str(posterior)
    assert sum(posterior.weights.values()) == pytest.approx(1)


def test_an_interrupt_keeps_the_work(monkeypatch):
    calls = []

    def interrupted(*args):
        calls.append(args)
        if len(calls) == 5:
            os.kill(os.getpid(), signal.SIGINT)
        return next_path(*args)

    monkeypatch.setattr(conductor, "next_path", interrupted)
    # A shell starts background jobs with this signal ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        posterior = sample(programs.one_path, 0.5, iterations=10**7)
    finally:
        signal.signal(signal.SIGINT, before)
    assert posterior.interrupted and "interrupted" in str(posterior)
    assert 500 <= posterior.paths[0].steps < 10**8
    assert posterior.sample(0, 10)["z"].shape == (10,)


@pytest.mark.usefixtures("engine")
def test_factorisations_are_not_batched(monkeypatch):
    """Batched LAPACK calls can hang on older jaxlib, also inside the loops of NUTS."""
    monkeypatch.setattr("pathmix.engine.batching._version", lambda: (0, 10, 2))
    points = jnp.linspace(0, 1, 5)

    def model(y):
        length = numpyro.sample("length", dist.LogNormal(0, 1))
        covariance = jnp.exp(-((points[:, None] - points) ** 2) / length) + 0.1 * jnp.eye(5)
        numpyro.sample("y", dist.MultivariateNormal(jnp.zeros(5), covariance), obs=y)

    target, _ = only_target(model, jnp.sin(points))
    prior_scales = make_prior_scales(target.coordinates, np.linspace(-1, 1, 9)[:, None])
    for kernel in KERNELS:

        def run(starts, kernel=kernel):
            state = kernel.init(target, starts, prior_scales, jax.random.key(0), target.arguments)
            return kernel.advance(target, state, jnp.zeros(100), 3, target.arguments)[1]

        calls = list(lapack_equations(run, jnp.zeros((4, 1))))
        assert calls and not any(batched for _, batched in calls)


@pytest.mark.parametrize(
    "options",
    [
        {"kernel": NUTS},
        {"kernel": "nuts"},
        {"discovery": PriorDiscovery},
        {"iterations": 0},
        {"chains": 1.5},
        {"samples": True},
        {"proposals": -1},
        {"precision": "float16"},
        {"threads": 0},
        {"progress": 1},
    ],
    ids=str,
)
def test_options_are_checked_at_construction(options):
    with pytest.raises(OptionError, match=next(iter(options))):
        DCC(programs.one_path, **options)


def test_kernels_check_their_options():
    for wrong in (
        lambda: DCC(3),
        lambda: RandomWalk(step=0),
        lambda: NUTS(warmup=0),
        lambda: NUTS(max_tree_depth=1.5),
    ):
        with pytest.raises(OptionError):
            wrong()
