"""The tree of decisions: exact prior masses of boxes, and the other sides of decisions, in both libraries."""

import dataclasses
import itertools

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pyro
import pyro.distributions as pdist
import pytest
import torch
from numpyro.distributions import biject_to
from numpyro.distributions.transforms import OrderedTransform
from scipy import stats

import pathmix
from pathmix import Enumeration, PriorDiscovery
from pathmix.discovery import forced
from pathmix.discovery.base import Rating
from pathmix.discovery.forced import other_side
from pathmix.discovery.tree import Tree
from pathmix.engine.precision import engine_scope
from pathmix.frontends.recognise import bind
from pathmix.program.seeds import Seed
from tests import exact, paths

FAMILIES = {
    "Beta": ((2.0, 3.0), stats.beta(2, 3)),
    "Cauchy": ((0.5, 2.0), stats.cauchy(0.5, 2)),
    "Exponential": ((2.0,), stats.expon(scale=0.5)),
    "Gamma": ((2.0, 3.0), stats.gamma(2, scale=1 / 3)),
    "HalfCauchy": ((2.0,), stats.halfcauchy(scale=2)),
    "HalfNormal": ((2.0,), stats.halfnorm(scale=2)),
    "Laplace": ((0.5, 2.0), stats.laplace(0.5, 2)),
    "LogNormal": ((0.5, 2.0), stats.lognorm(2, scale=np.exp(0.5))),
    "Normal": ((0.5, 2.0), stats.norm(0.5, 2)),
    "StudentT": ((4.0, 0.5, 2.0), stats.t(4, 0.5, 2)),
    "Uniform": ((-1.0, 3.0), stats.uniform(-1, 4)),
}


@pytest.mark.parametrize("library", ["numpyro", "pyro"])
@pytest.mark.parametrize("family", FAMILIES)
def test_the_mass_of_an_interval(family, library):
    numbers, truth = FAMILIES[family]
    low, high = truth.ppf([0.2, 0.7]).tolist()
    sample, made = (numpyro.sample, dist) if library == "numpyro" else (pyro.sample, pdist)

    def model():
        x = sample("x", getattr(made, family)(*numbers))
        if x > low and x < high:
            sample("z", made.Normal(0.0, 1.0))

    found = paths.discover(model, samples=64)
    masses = {len(p.slp.sites) * 10 + len(p.slp.path.decisions): p.prior_mass for p in found.paths}
    assert masses == pytest.approx({22: 0.5, 11: 0.2, 12: 0.3})
    assert found.unseen_is_exact and found.unseen_bound == 0


def vector():
    """Elements of a vector, a scale that a discrete site sets, and a bound that another bound implies."""
    k = numpyro.sample("k", dist.Bernoulli(0.25))
    x = numpyro.sample("x", dist.Normal(0, 1.0 + k).expand([3]).to_event(1))
    if x[0] > 1 and x[0] > 0 and x[2] < 0:
        numpyro.sample("z", dist.Normal(0, 1))


def vector_pyro():
    k = pyro.sample("k", pdist.Bernoulli(0.25))
    x = pyro.sample("x", pdist.Normal(0.0, 1.0 + k).expand([3]).to_event(1))
    if x[0] > 1 and x[0] > 0 and x[2] < 0:
        pyro.sample("z", pdist.Normal(0.0, 1.0))


@pytest.mark.parametrize("model", [vector, vector_pyro])
def test_the_mass_of_a_box(model):
    found = paths.discover(model, samples=400)
    for path in found.paths:
        k = dict(path.slp.path.pinned)["k"]
        above = stats.norm.sf(1, scale=1 + k)
        share = {1: 1 - above, 3: above / 2}[len(path.slp.path.decisions)]
        assert path.prior_mass == pytest.approx([0.75, 0.25][k] * share)
    assert len(found.paths) == 6 and found.unseen_is_exact and found.unseen_mass == 0


def test_priors_that_depend_on_free_sites_are_estimated():
    def model():
        scale = numpyro.sample("scale", dist.HalfNormal(1))
        if numpyro.sample("x", dist.Normal(0, scale)) > 1:
            numpyro.sample("z", dist.Normal(0, 1))

    found = paths.discover(model, samples=500)
    for path in found.paths:
        assert path.prior_mass == path.followers / 500
    # Both sides were seen, so that nothing is left, whatever their masses.
    assert found.unseen_is_exact and found.unseen_bound == 0
    (node,) = tree_of(found.paths).nodes
    truth = stats.norm.expect(lambda s: stats.norm.sf(1 / abs(s)) if s else 0.0)
    chance = node.chance(True)
    assert chance.error > 0 and abs(chance.probability - truth) < 4 * chance.error


def tree_of(found):
    tree = Tree()
    with engine_scope("float64"):
        for path in found:
            tree.add(path.slp.path, path.slp, path.draws)
    tree.weigh({path.slp.path: path.followers for path in found})
    return tree


@pytest.mark.parametrize("seed", range(3))
def test_the_probability_of_something_new(seed):
    """Whatever is put in, it is that of all paths which were not seen and have these values."""

    def model():
        a = numpyro.sample("a", dist.Categorical(jnp.array([0.5, 0.3, 0.2])))
        for number in range(int(a)):
            if numpyro.sample(f"b{number}", dist.Bernoulli(0.3 + 0.1 * a)):
                numpyro.sample(f"c{number}", dist.Binomial(2, 0.4))

    all_paths = paths.discover(model, samples=3_000).paths
    assert len(all_paths) == 1 + 4 + 16
    generator = np.random.default_rng(seed)
    seen = [path for path in all_paths if generator.random() < 0.6]
    tree = tree_of(seen)
    for path in all_paths:
        values = dict(path.slp.path.pinned)
        for kept in itertools.product([False, True], repeat=len(values)):
            given = {name: value for (name, value), keep in zip(values.items(), kept, strict=True) if keep}
            expected = sum(
                _probability(one, given)
                for one in all_paths
                if one not in seen and _agrees(dict(one.slp.path.pinned), given)
            )
            assert tree.novelty(given, 2.0) == pytest.approx(expected, abs=1e-9)
            assert tree.novelty(given, 0.1) == pytest.approx(expected, abs=1e-9) or expected > 0.1


def test_what_lies_below_a_decision_that_no_prior_run_came_to():
    def model():
        a = numpyro.sample("a", dist.Bernoulli(0.5))
        x, s = numpyro.sample("x", dist.Normal(0, 1)), numpyro.sample("s", dist.HalfNormal(1))
        if a and x * s > 0.3:
            numpyro.sample("c", dist.Normal(0, 1))
        numpyro.sample("b", dist.Categorical(jnp.full(10, 0.1)))

    found = paths.discover(model, samples=1_000).paths
    seen = [path for path in found if dict(path.slp.path.pinned)["b"] == 0]
    assert len(found) == 30 and len(seen) == 3
    tree = tree_of([dataclasses.replace(path, followers=0) for path in seen])
    assert tree.novelty({"a": 1, "b": 5}, 0.05) >= 0.05
    assert tree.novelty({"a": 1}, 2.0) == pytest.approx(0.9)
    assert tree.novelty({"a": 1, "b": 0}, 0.05) == 0


def _agrees(pinned, given):
    return all(pinned.get(name, value) == value for name, value in given.items())


def _probability(path, given):
    """Of the sites that are not given."""
    own = dict(path.slp.path.pinned)
    chances = {
        "a": [0.5, 0.3, 0.2],
        "b": [0.7 - 0.1 * own["a"], 0.3 + 0.1 * own["a"]],
        "c": [0.36, 0.48, 0.16],
    }
    return np.prod([chances[name[0]][value] for name, value in own.items() if name not in given])


def test_a_decision_that_cannot_come_out_otherwise_leaves_nothing():
    def model(y):
        scale = numpyro.sample("scale", dist.Gamma(2, 2))
        if scale > 0:
            numpyro.sample("y", dist.Normal(0, scale), obs=y)

    found = paths.discover(model, 1.0, samples=10)
    assert found.unseen_is_exact and found.unseen_bound == 0


def test_what_rounding_hides_is_not_nothing():
    def model(y):
        x = numpyro.sample("x", dist.Normal(0, 1))
        numpyro.sample("y", dist.Normal(20.0 if x > 9 else 0.0, 1), obs=y)

    posterior = exact.fit(model, 20.0, budget=10, discovery=PriorDiscovery(100))
    assert len(posterior.paths) == 1 and not posterior.verdict.ok
    assert stats.norm.sf(9) < posterior.discovery.unseen_bound < 1e-12


RARE = {
    "half-line": lambda u, v, a, b: u > 5,
    "interval": lambda u, v, a, b: (u > 3) & (u < 3.01),
    "two half-lines": lambda u, v, a, b: abs(u) > 6,
    "corner": lambda u, v, a, b: (u > 4) & (v > 4),
    "sum": lambda u, v, a, b: u + v > 7,
    "ratio": lambda u, v, a, b: a > 60 * b,
    "ball": lambda u, v, a, b: u**2 + v**2 + a > 40,
}


@pytest.mark.parametrize("name", RARE)
def test_the_other_side_is_found(name):
    """Where the prior hardly ever is."""
    rare = RARE[name]

    def model():
        u, v = (numpyro.sample(name, dist.Normal(0, 1)) for name in "uv")
        a, b = (numpyro.sample(name, dist.Gamma(4, 4)) for name in "ab")
        if rare(u, v, a, b):
            numpyro.sample("z", dist.Normal(0, 1))

    (path,) = paths.discover(model, samples=50).paths
    with engine_scope("float64"):
        rows = other_side(path.slp, path.draws, 0, np.random.default_rng(0))
    assert rows is not None and list(rows) == ["u", "v", "a", "b"]
    assert np.all(rows["a"] > 0) and np.all(rows["b"] > 0)
    for row in zip(*rows.values(), strict=True):
        assert rare(*row)


SUPPORTS = {
    "simplex": dist.Dirichlet(jnp.full(4, 0.5)),
    "ordered": dist.TransformedDistribution(dist.Normal(jnp.zeros(3), 1).to_event(1), OrderedTransform()),
    "correlations": dist.LKJ(3, 2.0),
    "covariance": dist.Wishart(5.0, scale_matrix=jnp.eye(2)),
}


@pytest.mark.parametrize("name", SUPPORTS)
def test_what_is_moved_stays_inside_its_support(name):
    def model():
        x = numpyro.sample("x", SUPPORTS[name])
        if jnp.ravel(x)[1] - 0.1 * jnp.ravel(x)[0] > 1e9:
            numpyro.sample("z", dist.Normal(0, 1))

    (path,) = paths.discover(model, samples=200).paths
    (site,) = path.slp.sites
    drawn = path.draws["x"][np.arange(256) % 100].reshape(256, -1).astype(float)
    with engine_scope("float64"):
        moved = forced._moved(site, drawn, drawn[0], np.geomspace(1, 1e4, 256), np.random.default_rng(0))
        values = moved.reshape(256, *site.shape)
        bijection = biject_to(SUPPORTS[name].support)
        vectors = bijection.inv(values)
        again = bijection(vectors)
    assert np.all(np.isfinite(vectors))
    np.testing.assert_allclose(again, values, rtol=1e-6, atol=1e-6)
    assert 20 < np.sum(np.any(moved != drawn, axis=1)) < 180


def simplex(y):
    w = numpyro.sample("w", dist.Dirichlet(jnp.full(3, 2.0)))
    level = numpyro.sample("level", dist.Normal(8, 1)) if w[0] > 0.98 else 0.0
    numpyro.sample("y", dist.Normal(level, 1), obs=y)


def simplex_pyro(y):
    w = pyro.sample("w", pdist.Dirichlet(torch.full((3,), 2.0)))
    level = pyro.sample("level", pdist.Normal(8.0, 1.0)) if w[0] > 0.98 else torch.tensor(0.0)
    pyro.sample("y", pdist.Normal(level, 1.0), obs=y)


def correlation(y):
    factor = numpyro.sample("factor", dist.LKJCholesky(2, 4.0))
    level = numpyro.sample("level", dist.Normal(8, 1)) if factor[1, 0] > 0.97 else 0.0
    numpyro.sample("y", dist.Normal(level, 1), obs=y)


# An element of a Dirichlet has a beta distribution, and so has (1 + r) / 2 of a correlation r.
JOINT = {
    "simplex": (simplex, stats.beta.logsf(0.98, 2, 4), 6.0),
    "simplex in Pyro": (simplex_pyro, stats.beta.logsf(0.98, 2, 4), torch.tensor(6.0)),
    "correlation": (correlation, stats.beta.logsf(0.985, 4, 4), 6.0),
}


@pytest.mark.parametrize("name", JOINT)
def test_a_rare_side_of_a_support_that_is_no_box(name):
    model, rare, y = JOINT[name]
    posterior = exact.fit(model, y, budget=4_000, discovery=pathmix.Guided(samples=100))
    logs = [rare + stats.norm.logpdf(6, 8, np.sqrt(2)), np.log1p(-np.exp(rare)) + stats.norm.logpdf(6)]
    found = {len(path.addresses): path.weight for path in posterior.paths}
    assert found[2] == pytest.approx(exact.softmax(logs)[0], abs=0.01)
    assert posterior.verdict.ok


def test_an_impossible_side_is_not_found():
    def model():
        u, v = (numpyro.sample(name, dist.Normal(0, 1)) for name in "uv")
        if u**2 + v**2 < -1:
            numpyro.sample("z", dist.Normal(0, 1))

    (path,) = paths.discover(model, samples=50).paths
    with engine_scope("float64"):
        assert other_side(path.slp, path.draws, 0, np.random.default_rng(0)) is None


def tail(y):
    x = numpyro.sample("x", dist.Normal(0, 1))
    level = numpyro.sample("level", dist.Normal(9, 1)) if x > 5 else 0.0
    numpyro.sample("y", dist.Normal(level, 1), obs=y)


def tail_pyro(y):
    x = pyro.sample("x", pdist.Normal(0.0, 1.0))
    level = pyro.sample("level", pdist.Normal(9.0, 1.0)) if x > 5 else torch.tensor(0.0)
    pyro.sample("y", pdist.Normal(level, 1.0), obs=y)


@pytest.mark.parametrize(("model", "y"), [(tail, 6.0), (tail_pyro, torch.tensor(6.0))])
@pytest.mark.parametrize("discovery", [pathmix.Guided(samples=100), Enumeration(samples=100, cover=1.0)])
def test_a_side_of_prior_mass_one_in_three_million(model, y, discovery):
    posterior = exact.fit(model, y, budget=1_000, discovery=discovery)
    logs = [
        stats.norm.logsf(5) + stats.norm.logpdf(6, 9, np.sqrt(2)),
        stats.norm.logcdf(5) + stats.norm.logpdf(6, 0, 1),
    ]
    truth = exact.softmax(logs)
    assert 0.05 < truth[0] < 0.95
    found = {len(path.addresses): path for path in posterior.paths}
    assert found[2].weight == pytest.approx(truth[0], abs=0.01)
    assert found[2].prior_mass == pytest.approx(stats.norm.sf(5), rel=1e-6)
    assert posterior.verdict.ok and posterior.discovery.unseen_mass == 0


def test_discrete_sites_behind_a_rare_side():
    """Forced, then enumerated there: every value of k has its exact mass."""

    def model():
        if numpyro.sample("x", dist.Normal(0, 1)) > 4.5:
            numpyro.sample("k", dist.Categorical(probs=jnp.array([0.9, 0.09, 0.01])))

    posterior = exact.fit(model, budget=10, discovery=Enumeration(samples=50, cover=1.0))
    masses = {path.pinned.get("k"): path.prior_mass for path in posterior.paths}
    above = stats.norm.sf(4.5)
    truth = {None: 1 - above, 0: 0.9 * above, 1: 0.09 * above, 2: 0.01 * above}
    assert masses == pytest.approx(truth, rel=1e-6)


def numpyro_floors():
    x, z = (numpyro.sample(name, dist.Normal(0, 1)) for name in "xz")
    if x + z < 100:
        n = int(jnp.floor(x + z))
        numpyro.sample("y", dist.Normal(n, 1))


def pyro_floors():
    x, z = (pyro.sample(name, pdist.Normal(0.0, 1.0)) for name in "xz")
    if x + z < 100:
        n = int(torch.floor(x + z))
        pyro.sample("y", pdist.Normal(float(n), 1.0))


@pytest.mark.parametrize("model", [numpyro_floors, pyro_floors])
def test_draws_that_stray_from_a_path_lead_to_others(model):
    """Whole numbers that no prior run comes to, at the second decision; and one beyond the first."""
    with engine_scope("float64"):
        discovery = pathmix.Guided(samples=20, listed=1)
        expedition = discovery.begin(bind(model, ()), Seed.of(0), lambda slp, draws: None)
        path = expedition.snapshot().paths[0].slp.path
        strays = {"x": np.array([20.0, 30.0, 70.0]), "z": np.array([20.5, 0.5, 70.0])}
        assert expedition.further(Rating({path: 0.0}, {path: strays}))
        found = [one.slp.path.decisions for one in expedition.snapshot().paths]
    ends = {decisions[-1].value if len(decisions) == 2 else None for decisions in found}
    assert {40, 30, None} <= ends


def test_the_guide_of_a_path_strays_to_where_the_posterior_is():
    """Told of a path's strays, guided search has what its guide rejects."""

    def model(y):
        x, z = (numpyro.sample(name, dist.Normal(0, 1)) for name in "xz")
        numpyro.sample("y", dist.Normal(x + z, 0.1), obs=y)
        if x + z < 6:
            numpyro.sample("w", dist.Normal(0, 1))

    told = []

    class Told(pathmix.Guided):
        def begin(self, program, seed, on_path):
            expedition = super().begin(program, seed, on_path)
            further = expedition.further
            expedition.further = lambda rating: told.append(rating) or further(rating)
            return expedition

    discovery = Told(samples=10, listed=1)
    exact.fit(model, 6.0, budget=100, discovery=discovery)
    ((path, rows),) = told[0].strays.items()
    assert path.decisions[0].value and np.all(rows["x"] + rows["z"] >= 6)


def test_decisions_on_data_do_not_end_a_guided_search():
    """A path has other decisions in the record of a Pyro run than in its program."""

    def model(y):
        n = 0
        while pyro.sample(f"on{n}", pdist.Bernoulli(0.5)):
            n += 1
        scale = 1.0 if y > 3 else 2.0
        pyro.sample("y", pdist.Normal(float(n), scale), obs=y)

    discovery = pathmix.Guided(samples=10, listed=1, rounds=1)
    posterior = exact.fit(model, torch.tensor(6.0), budget=10, discovery=discovery)
    assert posterior.discovery.round_shares and len(posterior.paths[0].addresses) > 5
