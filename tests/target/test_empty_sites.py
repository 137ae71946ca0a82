"""Sites without elements, beside others and alone: their density is one, and they add no dimension."""

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

import pathmix
from experiments.baselines import BBVI
from pathmix.discovery import PriorDiscovery
from pathmix.methods.dcc import DCC, RandomWalk
from tests.paths import discover, target_of

Y = np.array([0.1, -0.1, 0.05, 0.0])
# Without shifts: the level is integrated out by algebra.
BESIDE = np.log(0.5) + stats.multivariate_normal.logpdf(Y, np.zeros(4), 0.09 * np.eye(4) + 1)
ALONE = np.log(0.5) + np.sum(stats.norm.logpdf(Y, 0, 0.3))

NUMPYRO = {
    "real": lambda k: dist.Normal(0, 1).expand([k]),
    "real vector": lambda k: dist.Normal(0, 1).expand([k, 3]).to_event(2),
    "positive": lambda k: dist.Gamma(2.0, 1.0).expand([k]),
    "above": lambda k: dist.Pareto(1.0, 3.0).expand([k]),
    "unit interval": lambda k: dist.Beta(2.0, 2.0).expand([k]),
    "interval": lambda k: dist.Uniform(0, 1).expand([k]),
    "interval of vectors": lambda k: dist.Uniform(jnp.zeros(k), jnp.ones(k)),
    "(0, 3)": lambda k: dist.Uniform(0, 1).expand([k, 3]),
    "(3, 0)": lambda k: dist.Uniform(0, 1).expand([3, k]),
    "circle": lambda k: dist.VonMises(0.0, 1.0).expand([k]),
    "transformed": lambda k: dist.LogNormal(jnp.zeros(k), 1.0),
    "simplex": lambda k: dist.Dirichlet(jnp.ones(3)).expand([k]),
    "vectors": lambda k: dist.MultivariateNormal(jnp.zeros(2), jnp.eye(2)).expand([k]),
    "no dimension": lambda k: dist.MultivariateNormal(jnp.zeros(k), jnp.eye(k)),
    "factors": lambda k: dist.LKJCholesky(3, 1.0).expand([k]),
    "truth values": lambda k: dist.Bernoulli(0.5).expand([k]),
    "counts": lambda k: dist.Binomial(3, 0.5).expand([k]),
}
PYRO = {
    "real": lambda k: pyro_dist.Normal(0, 1).expand([k]),
    "real vector": lambda k: pyro_dist.Normal(0, 1).expand([k, 3]).to_event(2),
    "positive": lambda k: pyro_dist.Gamma(2.0, 1.0).expand([k]),
    "above": lambda k: pyro_dist.Pareto(1.0, 3.0).expand([k]),
    "unit interval": lambda k: pyro_dist.Beta(2.0, 2.0).expand([k]),
    "interval": lambda k: pyro_dist.Uniform(0, 1).expand([k]),
    "(0, 3)": lambda k: pyro_dist.Uniform(0, 1).expand([k, 3]),
    "(3, 0)": lambda k: pyro_dist.Uniform(0, 1).expand([3, k]),
    "transformed": lambda k: pyro_dist.LogNormal(torch.zeros(k), 1.0),
    "simplex": lambda k: pyro_dist.Dirichlet(torch.ones(3)).expand([k]),
    "vectors": lambda k: pyro_dist.MultivariateNormal(torch.zeros(2), torch.eye(2)).expand([k]),
    "factors": lambda k: pyro_dist.LKJCholesky(3, torch.tensor(1.0)).expand([k]),
    "truth values": lambda k: pyro_dist.Bernoulli(0.5).expand([k]),
}


def numpyro_program(priors, *, level=True):
    """A shift from each prior; with k = 0 all of them are empty."""

    def model(y):
        k = int(numpyro.sample("k", dist.Bernoulli(0.5)))
        mean = numpyro.sample("level", dist.Normal(0, 1)) if level else 0.0
        for number, prior in enumerate(priors):
            mean = mean + jnp.sum(numpyro.sample(f"shift{number}", prior(k)))
        numpyro.sample("nothing", dist.LogNormal(jnp.zeros(k), 1.0), obs=jnp.ones(k))
        numpyro.sample("y", dist.Normal(mean, 0.3), obs=y)

    return model, Y


def pyro_program(priors, *, level=True):
    def model(y):
        k = int(pyro.sample("k", pyro_dist.Bernoulli(0.5)))
        mean = pyro.sample("level", pyro_dist.Normal(0, 1)) if level else 0.0
        for number, prior in enumerate(priors):
            mean = mean + pyro.sample(f"shift{number}", prior(k)).sum()
        pyro.sample("nothing", pyro_dist.LogNormal(torch.zeros(k), 1.0).to_event(1), obs=torch.ones(k))
        pyro.sample("y", pyro_dist.Normal(mean, 0.3).expand([4]).to_event(1), obs=y)

    return model, torch.tensor(Y)


CASES = [
    *(pytest.param(numpyro_program, prior, id=f"NumPyro {name}") for name, prior in NUMPYRO.items()),
    *(pytest.param(pyro_program, prior, id=f"Pyro {name}") for name, prior in PYRO.items()),
]


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize(("program", "prior"), CASES)
def test_empty_sites_of_every_support_have_density_one(program, prior):
    model, y = program([prior])
    found = discover(model, y, samples=16)
    (path,) = (path for path in found.paths if dict(path.slp.path.pinned)["k"] == 0)
    target = target_of(path)
    assert target.dim == 1
    density = target.formula.density(jnp.array([0.7]), target.arguments)
    expected = np.log(0.5) + stats.norm.logpdf(0.7) + np.sum(stats.norm.logpdf(Y, 0.7, 0.3))
    np.testing.assert_allclose(density.log_joint, expected, rtol=1e-12)
    values = target.outcome(jnp.array([0.7]), target.arguments, target.site_graph.consts).free
    named = {site.name: value for site, value in zip(target.sites, values, strict=True)}
    named |= {name: value for name, value in path.slp.path.pinned if name == "shift0"}  # of a discrete site
    assert np.shape(named["shift0"]) == path.draws["shift0"].shape[1:] and np.size(named["shift0"]) == 0
    np.testing.assert_allclose(target.formula.unconstrain(values, target.arguments), [0.7])


SOME = ["interval", "(3, 0)", "truth values"]


def fits(model, **options):
    return pathmix.SDVI(
        model,
        discovery=PriorDiscovery(64),
        allocation=pathmix.Uniform(budget=2_000),
        optimizer=optax.adam(0.05),
        progress=False,
        **options,
    )


@pytest.mark.parametrize(
    ("program", "priors", "options"),
    [
        (numpyro_program, NUMPYRO, {}),
        (numpyro_program, NUMPYRO, {"guide": "fullrank", "starts": 3}),
        (pyro_program, PYRO, {"guide": "lowrank"}),
    ],
    ids=["NumPyro", "NumPyro, several starts", "Pyro"],
)
def test_empty_sites_beside_others(program, priors, options):
    model, y = program([priors[name] for name in SOME])
    posterior = fits(model, **options).run(0, y)
    path = next(path for path in posterior.paths if path.pinned["k"] == 0)
    assert path.elbo == pytest.approx(BESIDE, abs=0.01)
    draws = posterior.sample(0, 40)
    without = np.isin(draws.path, [i for i, path in enumerate(posterior.paths) if path.pinned["k"] == 0])
    assert without.any() and not draws.present("shift0")[without].any()
    assert posterior.predict(1, 5, y)["y"].shape == (5, 4)
    for seed in range(3):
        _, values, density, _ = posterior._joint_draw(seed)
        assert posterior.log_prob(values) == pytest.approx(density, abs=1e-9)


@pytest.mark.parametrize(
    ("program", "priors"), [(numpyro_program, NUMPYRO), (pyro_program, PYRO)], ids=["NumPyro", "Pyro"]
)
def test_a_path_with_nothing_but_empty_sites_is_exact(program, priors):
    model, y = program([priors["interval"], priors["positive"]], level=False)
    posterior = fits(model).run(0, y)
    path = next(path for path in posterior.paths if path.pinned["k"] == 0)
    assert path.status is pathmix.Status.EXACT
    assert path.elbo == pytest.approx(ALONE, abs=1e-10)


@pytest.mark.parametrize(
    ("method", "error"),
    [
        (
            lambda model: DCC(
                model, kernel=RandomWalk(), discovery=PriorDiscovery(64), iterations=6, progress=False
            ),
            1e-9,
        ),
        (lambda model: BBVI(model, discovery=PriorDiscovery(64), steps=50, progress=False), 0.1),
    ],
    ids=["DCC", "BBVI"],
)
def test_other_methods(method, error):
    model, y = numpyro_program([NUMPYRO["interval"], NUMPYRO["truth values"]], level=False)
    posterior = method(model).run(0, y)
    path = next(path for path in posterior.paths if path.pinned["k"] == 0)
    assert path.log_evidence == pytest.approx(ALONE, abs=error)
    assert posterior.sample(0, 5)["shift0"].shape[0] == 5
