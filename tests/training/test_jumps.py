"""Densities that jump inside a path: noticed, and fitted by gradients that see the jump."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import optax
import pyro
import pyro.distributions as pyro_dist
import pytest
import torch
from scipy import stats
from scipy.special import logsumexp

from pathmix.discovery import PriorDiscovery
from pathmix.engine.executables import Executables
from pathmix.engine.precision import engine_scope
from pathmix.engine.requests import answered
from pathmix.frontends.recognise import bind
from pathmix.guides import FullRank, LowRank, MeanField
from pathmix.program.graph import Graph
from pathmix.program.seeds import Seed
from pathmix.regions.region import read_region
from pathmix.target.formula import Density
from pathmix.target.switches import evaluate_marked
from pathmix.target.target import make_target
from pathmix.training.estimators import Gradient, mixed
from pathmix.training.fit import PathFit
from pathmix.training.options import TrainingOptions
from tests import exact
from tests.zoo import programs, pyro_programs

LEVELS, EDGES = jnp.array([-1.0, -1.0, 1.0, -1.0]), jnp.array([0.2, 0.5, 0.75])
KNOTS, HEIGHTS = jnp.linspace(0.01, 0.99, 60), jnp.zeros(60).at[40].set(1.0)
STEPS = {
    "where": lambda t: jnp.where(t > 0.7, 1.0, -1.0),
    "select": lambda t: jnp.select([t > 0.8, t > 0.5], [1.0, 0.5], -1.0),
    "comparison": lambda t: 2.0 * (t > 0.7) - 1.0,
    "searchsorted": lambda t: LEVELS[jnp.searchsorted(EDGES, t)],
    "digitize": lambda t: LEVELS[jnp.digitize(t, EDGES)],
    "floor": lambda t: jnp.floor(3 * t) - 1.0,
    "ceil": lambda t: jnp.ceil(3 * t) - 2.0,
    "round": lambda t: jnp.round(2 * t) - 1.0,
    "remainder": lambda t: (3 * t) % 1.0,
    "index": lambda t: LEVELS[(4 * t).astype(int)],
    "integer": lambda t: (3 * t).astype(int) - 1.0,
    "sign": lambda t: jnp.sign(t - 0.7),
    "argmax": lambda t: LEVELS[1 + jnp.argmax(jnp.stack([jnp.array(0.7), t]))],
    "argsort": lambda t: LEVELS[jnp.argsort(jnp.stack([t, 0.7, 0.4]))][1],
    "sorted payload": lambda t: jax.lax.sort((jnp.stack([t, 0.7]), LEVELS[1:3]), num_keys=1)[1][0],
    "cond": lambda t: jax.lax.cond(t > 0.7, lambda x: x + 0.3, lambda x: x - 1.5, t),
    "loop": lambda t: jax.lax.fori_loop(0, 3, lambda i, c: jnp.where(c > 0.7, c, c - 0.2), t),
    "scan": lambda t: jax.lax.scan(lambda c, e: (c + (t > e), None), -1.0, EDGES)[0],
    "while": lambda t: jax.lax.while_loop(lambda c: c < 1.0, lambda c: c + 0.5, t),
    "remat": lambda t: jax.checkpoint(lambda x: jnp.where(x > 0.7, 1.0, -1.0))(t),
    "angle": lambda t: jnp.arctan2(t - 0.7, -jnp.ones(())) / jnp.pi,
    "division by size": lambda t: (t - 0.7) / jnp.abs(t - 0.7),
    "pole": lambda t: jnp.arctan(1 / (t - 0.7)),
    "division by a root": lambda t: (t - 0.7) / jnp.sqrt((t - 0.7) ** 2),
    "norm": lambda t: (x := jnp.stack([t - 0.7]))[0] / jnp.linalg.norm(x),
    "cut of the complex logarithm": lambda t: jnp.imag(jnp.log(-1 + 1j * (t - 0.7))) / jnp.pi,
    "eigenvector": lambda t: jnp.abs(jnp.linalg.eigh(jnp.diag(jnp.stack([t, 0.7])))[1][0, 0]),
    "one of many": lambda t: jnp.sum(jnp.where(t > KNOTS, 0.01 * (t - KNOTS) + HEIGHTS, 0.0)),
}
TORCH_LEVELS, TORCH_EDGES = (
    torch.tensor(np.asarray(LEVELS)).double(),
    torch.tensor(np.asarray(EDGES)).double(),
)
TORCH_STEPS = {
    "where": lambda t: torch.where(t > 0.7, 1.0, -1.0),
    "comparison": lambda t: 2.0 * (t > 0.7).double() - 1.0,
    "searchsorted": lambda t: TORCH_LEVELS[torch.searchsorted(TORCH_EDGES, t)],
    "bucketize": lambda t: TORCH_LEVELS[torch.bucketize(t, TORCH_EDGES)],
    "floor": lambda t: torch.floor(3 * t) - 1.0,
    "round": lambda t: torch.round(2 * t) - 1.0,
    "remainder": lambda t: (3 * t) % 1.0,
    "index": lambda t: TORCH_LEVELS[(4 * t).long()],
    "integer": lambda t: (3 * t).long() - 1.0,
    "sign": lambda t: torch.sign(t - 0.7),
    "argmax": lambda t: TORCH_LEVELS[1 + torch.argmax(torch.stack([torch.tensor(0.7), t]))],
    "argsort": lambda t: TORCH_LEVELS[1:3][torch.argsort(torch.stack([t, torch.tensor(0.7)]))][1],
    "masked_fill": lambda t: t.masked_fill(t > 0.7, -1.0),
    "heaviside": lambda t: 2 * torch.heaviside(t - 0.7, torch.tensor(0.5)) - 1,
    "division by size": lambda t: (t - 0.7) / (t - 0.7).abs(),
    "norm": lambda t: torch.nn.functional.normalize((t - 0.7).reshape(1), dim=0)[0],
    "index write": lambda t: torch.zeros(4).index_put(((4 * t).long(),), torch.tensor(1.0))[2],
}


def numpyro_program(level):
    def model(y):
        t = numpyro.sample("t", dist.Uniform(0, 1))
        a = numpyro.sample("a", dist.Normal(0, 0.5))
        numpyro.sample("y", dist.Normal(level(t) + a, 0.1), obs=y)

    return model


def pyro_program(level):
    def model(y):
        t = pyro.sample("t", pyro_dist.Uniform(0.0, 1.0))
        a = pyro.sample("a", pyro_dist.Normal(0.0, 0.5))
        pyro.sample("y", pyro_dist.Normal(level(t) + a, 0.1), obs=y)

    return model


def initialised(model, *args, guide=MeanField(), samples=64, most=3):
    """The fits of a program's heaviest paths, before training."""
    with engine_scope("float64"):
        program = bind(model, args)
        found = PriorDiscovery(samples).discover(program, Seed.of(0), lambda slp, draws: None)
        fits = []
        for path in sorted(found.paths, key=lambda path: -path.prior_mass)[:most]:
            region = read_region(path.slp, path.draws)
            if region.kind == "general" or not path.slp.free:
                continue
            target = make_target(path.slp, region, path.draws)
            options = TrainingOptions(optax.sgd(0.1), particles=10, elbo_samples=100)
            fit = PathFit(target, guide, "reparam", options, Executables(), Seed.of(0))
            answered(fit.initialise(path.draws), fit.executables.answer)
            fits.append(fit)
        return fits


@pytest.mark.parametrize("name", STEPS)
def test_a_step_is_noticed(name):
    (fit,) = initialised(numpyro_program(STEPS[name]), 1.0)
    assert fit.gradient == Gradient("mixed", (True, False)) or fit.gradient == Gradient(
        "mixed", (False, True)
    )
    assert {fit.target.sites[index].name for index in fit.watch.jumping} == {"t"}


@pytest.mark.parametrize("name", TORCH_STEPS)
def test_a_step_in_pyro_is_noticed(name):
    (fit,) = initialised(pyro_program(TORCH_STEPS[name]), torch.tensor(1.0))
    assert {fit.target.sites[index].name for index in fit.watch.jumping} == {"t"}
    assert fit.gradient.estimator == "mixed" and sum(fit.gradient.part) == 1


HARMLESS = {
    "abs": lambda t: jnp.abs(t - 0.7),
    "relu": lambda t: jax.nn.relu(t - 0.7),
    "clip": lambda t: jnp.clip(t, 0.3, 0.7),
    "guard": lambda t: jnp.where(t > 0.5, jnp.log(jnp.where(t > 0.5, 2 * t, 1.0)), 0.0),
    "sort": lambda t: jnp.sort(jnp.stack([t, 0.7]))[0],
    "maximum by index": lambda t: (x := jnp.stack([t, 1 - t]))[jnp.argmax(x)],
    "interpolation": lambda t: jnp.interp(t, EDGES, LEVELS[:3]),
    "sign times size": lambda t: jnp.sign(t - 0.7) * jnp.abs(t - 0.7),
    "division": lambda t: 1 / (t + 1),
    "smooth root": lambda t: jnp.sqrt((t - 0.7) ** 2 + 0.1),
    "eigenvalues": lambda t: jnp.linalg.eigvalsh(jnp.diag(jnp.stack([t, 0.7])))[0],
    "complex numbers": lambda t: jnp.abs(jnp.sqrt((t + 0.5j) ** 2 + 1.0)) + jnp.abs(t * 1j),
    "unused": lambda t: t + 0.0 * jnp.floor(3 * t),
    "loop": lambda t: jax.lax.fori_loop(0, 3, lambda i, c: jnp.where(c > 0.7, 0.7 - (c - 0.7), c) * 0.9, t),
    "slogdet": lambda t: jnp.linalg.slogdet(jnp.array([[0.1, 1.0], [1.0, 0.0]]) * t + 2 * jnp.eye(2))[1],
}


@pytest.mark.parametrize("name", HARMLESS)
def test_a_harmless_switch_changes_nothing(name):
    (fit,) = initialised(numpyro_program(HARMLESS[name]), 1.0)
    assert fit.gradient == Gradient("reparam") and not fit.watch.jumping


# Every path is compiled: a few programs stand for all in the quick suite.
@pytest.mark.parametrize("count", [4, pytest.param(None, marks=pytest.mark.trust)])
@pytest.mark.parametrize("library", [programs, pyro_programs], ids=["numpyro", "pyro"])
def test_no_program_of_the_zoo_is_thought_to_jump(library, count):
    for model, args in list(library.PROGRAMS.items())[:count]:
        for fit in initialised(model, *args, most=1):
            assert fit.gradient.estimator == "reparam", model.__name__


def test_a_step_that_depends_on_a_support_scores_what_moves_the_support():
    def model(y):
        scale = numpyro.sample("scale", dist.LogNormal(0, 0.5))
        t = numpyro.sample("t", dist.Uniform(0, scale))
        a = numpyro.sample("a", dist.Normal(0, 1))
        numpyro.sample("y", dist.Normal(jnp.where(t > 0.5, 1.0, -1.0) + a, 0.5), obs=y)

    (fit,) = initialised(model, 1.0)
    stretches = dict(zip(fit.target.coordinates.order, fit.target.coordinates.slices, strict=True))
    scored = {index for index, (start, _) in stretches.items() if fit.gradient.part[start]}
    assert {fit.target.sites[index].name for index in scored} == {"scale", "t"}


@pytest.mark.parametrize("guide", [LowRank(1), MeanField()])
def test_what_cannot_be_split_is_scored_whole(guide):
    def model(y):
        t = numpyro.sample("t", dist.Uniform(0, 1))
        numpyro.sample("y", dist.Normal(jnp.where(t > 0.7, 1.0, -1.0), 0.1), obs=y)

    (fit,) = initialised(model, 1.0, guide=guide)
    assert fit.gradient == Gradient("score")


@pytest.mark.usefixtures("engine")
def test_marks_of_nested_functions_leave_values_alone():
    """Evaluating with marks gives what evaluating gives, in every kind of nested function."""
    points = jnp.linspace(0.01, 0.99, 23)
    for name, level in {**STEPS, **HARMLESS}.items():
        graph = Graph.of(jax.make_jaxpr(lambda t, level=level: [level(t)])(points[0]))
        marked = jax.jit(jax.vmap(lambda t, graph=graph: evaluate_marked(graph, graph.consts, [t])[0][0]))
        np.testing.assert_allclose(marked(points), jax.jit(jax.vmap(level))(points), rtol=1e-12, err_msg=name)


# One change point in continuous time. Given t, levels are conjugate; between data t does not matter.
TIMES = np.linspace(0.05, 0.95, 10)
CHANGED = np.where(TIMES > 0.7, 1.0, -1.0)


def change_point_evidence(noise):
    def evidence(part):
        covariance = noise**2 * np.eye(len(part)) + 4.0
        return stats.multivariate_normal(np.zeros(len(part)), covariance).logpdf(part) if len(part) else 0.0

    edges = np.concatenate([[0], TIMES, [1]])
    widths = np.log(np.diff(edges))
    parts = [w + evidence(CHANGED[:i]) + evidence(CHANGED[i:]) for i, w in enumerate(widths)]
    return np.log(0.5) + np.array([evidence(CHANGED), logsumexp(parts)])


def numpyro_change_point(x, y, noise):
    changes = numpyro.sample("k", dist.Bernoulli(0.5))
    mean = numpyro.sample("before", dist.Normal(0, 2)) * jnp.ones(10)
    if changes:
        t = numpyro.sample("t", dist.Uniform(0, 1))
        mean = jnp.where(x > t, numpyro.sample("after", dist.Normal(0, 2)), mean)
    numpyro.sample("y", dist.Normal(mean, noise), obs=y)


def pyro_change_point(x, y, noise):
    changes = pyro.sample("k", pyro_dist.Bernoulli(0.5))
    mean = pyro.sample("before", pyro_dist.Normal(0.0, 2.0)) * torch.ones(10)
    if changes:
        t = pyro.sample("t", pyro_dist.Uniform(0.0, 1.0))
        mean = torch.where(x > t, pyro.sample("after", pyro_dist.Normal(0.0, 2.0)), mean)
    pyro.sample("y", pyro_dist.Normal(mean, noise).to_event(1), obs=y)


@pytest.mark.parametrize(
    ("model", "guide", "as_array"),
    [
        (numpyro_change_point, "meanfield", np.asarray),
        pytest.param(numpyro_change_point, "fullrank", np.asarray, marks=pytest.mark.trust),
        (pyro_change_point, "meanfield", torch.tensor),
    ],
)
def test_a_change_point_is_found(model, guide, as_array):
    """The best normal guide is 0.5 nats short; one at the prior, where blind gradients leave it, 34."""
    log_z = change_point_evidence(0.3)
    posterior = exact.fit(model, as_array(TIMES), as_array(CHANGED), 0.3, budget=16_000, guide=guide)
    found = {path.pinned["k"]: path for path in posterior.paths}
    assert found[1].gradient == "mixed" and found[0].gradient == "reparam"
    assert "'t'" in found[1].message
    assert log_z[1] - 0.6 < found[1].elbo < log_z[1] + 0.05
    draws = posterior.marginal("t", count=500)
    assert np.mean((draws > TIMES[6]) & (draws < TIMES[7])) > 0.95


def test_forced_gradients_that_do_not_see_a_jump_are_noted():
    posterior = exact.fit(
        numpyro_program(STEPS["where"]), 1.0, budget=100, gradient="reparam", weights="elbo"
    )
    assert posterior.paths[0].gradient == "reparam"
    assert any("gradients do not see" in note for note in posterior.notes)


def numpyro_far_step(y):
    x = numpyro.sample("x", dist.Normal(0, 1))
    numpyro.factor("step", jnp.where(x > 9.5, 5.0, 0.0))
    numpyro.sample("y", dist.Normal(x, 0.2), obs=y)


def pyro_far_step(y):
    x = pyro.sample("x", pyro_dist.Normal(0.0, 1.0))
    pyro.factor("step", torch.where(x > 9.5, 5.0, 0.0))
    pyro.sample("y", pyro_dist.Normal(x, 0.2), obs=y)


@pytest.mark.parametrize(("model", "y"), [(numpyro_far_step, 9.7), (pyro_far_step, torch.tensor(9.7))])
def test_a_jump_far_from_every_prior_draw_is_noticed_on_the_way(model, y):
    """The posterior is N(m, s) with its part above 9.5 made exp(5) times as heavy."""
    precision = 1 + 1 / 0.2**2
    mean, scale = 9.7 / 0.2**2 / precision, precision**-0.5
    above = stats.norm.sf(9.5, mean, scale)
    log_z = stats.norm.logpdf(9.7, 0, np.hypot(1, 0.2)) + np.log1p(np.expm1(5.0) * above)
    (path,) = exact.fit(model, y, budget=6_000, weights="elbo").paths
    assert path.gradient == "score" and "'x'" in path.message
    # The best normal guide, by quadrature, is 0.28 nats short; blind to the jump, it would be 2.42.
    assert log_z - 0.4 < path.elbo < log_z + 0.05
    (blind,) = exact.fit(model, y, budget=6_000, gradient="reparam", weights="elbo").paths
    assert "do not see" in blind.message


@pytest.mark.trust
def test_coal_mining_disasters():
    """Exact: sums over positions of conjugate evidences."""
    counts = (
        "45401434063340263354531441553425223421322111130010110031"
        "03220111010100021000110233112111124200140001000001001010"
    )
    disasters = np.array([int(digit) for digit in counts])

    def model(t, y):
        changes = numpyro.sample("changes", dist.Categorical(probs=jnp.ones(2) / 2))
        rate = numpyro.sample("rate0", dist.Gamma(1.0, 0.6))
        for k in range(changes):
            position = len(t) * numpyro.sample(f"u{k}", dist.Uniform(0, 1))
            rate = jnp.where(t < position, rate, numpyro.sample(f"rate{k + 1}", dist.Gamma(1.0, 0.6)))
        numpyro.sample("y", dist.Poisson(rate), obs=y)

    posterior = exact.fit(model, np.arange(len(disasters)) + 0.0, disasters, budget=50_000)
    found = {path.pinned["changes"]: path for path in posterior.paths}
    assert -178.61 - 0.3 + np.log(2) < found[1].elbo < -178.61 + np.log(2)
    changed = posterior.marginal("u0", count=2_000) * len(disasters)
    assert abs(changed.mean() - 40.0) < 1.0 and 1.5 < changed.std() < 3.5


def jumping_target(u):
    """A normal in u[1] whose mean, and whose height, jump as u[0] passes 0.3."""
    high = u[0] > 0.3
    log_joint = jax.scipy.stats.norm.logpdf(u[1], jnp.where(high, 1.0, -0.5), 0.7) + jnp.where(high, 2.0, 0.0)
    zero = jnp.zeros(())
    return Density(log_joint + jax.scipy.stats.norm.logpdf(u[0]), zero, zero, jnp.array(True))


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("guide", [MeanField(), FullRank()])
@pytest.mark.parametrize("part", [(True, False), (True, True)])
def test_mixed_gradients_are_unbiased_where_the_density_jumps(guide, part):
    """Against the gradient of the ELBO by quadrature. Path derivatives alone are far off (see below)."""
    start = np.array([[0.5, 0.2], [-0.4, 0.9], [1.1, -0.3], [0.2, 1.4], [-0.9, -0.2], [0.6, 0.1]])
    params = guide.init(start)
    nodes = np.linspace(-9, 9, 1_201)
    grid = jnp.asarray(np.stack(np.meshgrid(nodes, nodes, indexing="ij"), axis=-1).reshape(-1, 2))
    values = jax.vmap(lambda u: jumping_target(u).log_joint)(grid)

    def elbo(p):
        log_q = jax.vmap(lambda u: guide.log_prob(p, u))(grid)
        return jnp.sum(jnp.exp(log_q) * (values - log_q)) * (nodes[1] - nodes[0]) ** 2

    truth = _flat(jax.grad(elbo)(params))
    noise = jax.random.normal(jax.random.key(0), (20_000, 8, 2))
    found = jax.jit(
        jax.vmap(
            lambda n: mixed(
                guide, lambda u, _: jumping_target(u), jnp.array(-30.0), params, n, part
            ).gradient()[0]
        )
    )(noise)
    rows = np.concatenate([np.reshape(leaf, (len(noise), -1)) for leaf in jax.tree.leaves(found)], axis=1)
    error = rows.std(axis=0) / np.sqrt(len(rows))
    # At most eight components at 4.5 standard errors: false failures below 1e-4. Quadrature of a
    # jump on a grid is good to half a cell.
    assert np.all(np.abs(rows.mean(axis=0) - truth) < 4.5 * error + 0.01)
    blind = jax.vmap(
        lambda n: (
            Gradient("reparam")
            .estimate(guide, lambda u, _: jumping_target(u), jnp.array(-30.0), params, n)
            .gradient()[0]
        )
    )(noise[:2_000])
    means = [np.mean(np.asarray(leaf), axis=0).ravel() for leaf in jax.tree.leaves(blind)]
    assert np.max(np.abs(np.concatenate(means) - truth)) > 0.2


def _flat(tree):
    return np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(tree)])


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("guide", [MeanField(), FullRank()])
def test_two_steps_draw_what_one_step_draws(guide):
    """A part and the rest given it: the same moments, and a density that factorises."""
    generator = np.random.default_rng(0)
    params = guide.init(generator.normal(size=(40, 3)) @ generator.normal(size=(3, 3)))
    part = (False, True, True)
    noise = jax.random.normal(jax.random.key(1), (100_000, 3))
    first = jax.vmap(lambda n: guide.sample_part(params, n, part))(noise)
    draws = np.asarray(jax.vmap(lambda u, n: guide.complete(params, u, n, part))(first, noise))
    direct = np.asarray(jax.vmap(lambda n: guide.sample(params, n))(noise))
    # Standard errors are 0.3% of a standard deviation, and of a covariance about 0.5%.
    scale = direct.std(axis=0)
    np.testing.assert_allclose(draws.mean(axis=0) / scale, direct.mean(axis=0) / scale, atol=0.02)
    np.testing.assert_allclose(
        np.cov(draws.T) / np.outer(scale, scale), np.cov(direct.T) / np.outer(scale, scale), atol=0.03
    )
    everything = (True, True, True)
    for u in draws[:5]:
        whole = guide.log_prob(params, u)
        assert guide.log_prob_part(params, u, everything) == pytest.approx(float(whole), rel=1e-10)
        marginal = stats.multivariate_normal(
            np.asarray(params.loc)[1:], _covariance(guide, params)[1:, 1:]
        ).logpdf(u[1:])
        assert guide.log_prob_part(params, u, part) == pytest.approx(marginal, rel=1e-8)


def _covariance(guide, params):
    if isinstance(guide, MeanField):
        return np.diag(np.exp(2 * np.asarray(params.log_scale)))
    factor = np.tril(params.below, -1) + np.diag(np.exp(params.log_diagonal))
    return factor @ factor.T
