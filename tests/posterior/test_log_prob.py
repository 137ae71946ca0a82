"""The density of a posterior: zero off every support and off the known paths, in both libraries."""

import warnings
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pyro
import pyro.distributions as pdist
import pytest
import torch
from numpyro.distributions import biject_to
from scipy import stats

import pathmix
from experiments.baselines import BBVI, WholeAutoGuide
from pathmix.errors import ArgumentsError, RunawayProgramError, ValueLookupError
from pathmix.methods.dcc import DCC
from tests.target.test_supports import DISTRIBUTIONS

QUICK = {
    "discovery": pathmix.PriorDiscovery(60),
    "allocation": pathmix.Uniform(budget=20),
    "progress": False,
}
EYE = np.eye(3)
UPPER = EYE + np.triu(np.ones((3, 3)), 1)
ASYMMETRIC = EYE + 0.1 * np.triu(np.ones((3, 3)), 1)
INDEFINITE = np.array([[1.0, 0.9, -0.9], [0.9, 1.0, 0.9], [-0.9, 0.9, 1.0]])
SIMPLICES = [[0.2, 0.3, 0.6], [0.2, 0.3, 0.49999], [-0.1, 0.5, 0.6], [0.0, 0.0, 0.0], [1.2, -0.1, -0.1]]
ANYWHERE = [np.nan, np.inf, -np.inf]

# Points off each support, whichever element they change.
OUTSIDE = {
    "real": ANYWHERE,
    "real vector": [[np.nan, 0, 0], [0, np.inf, 0]],
    "batch": [np.array([[0, 0, 0], [0, 0, value]]) for value in ANYWHERE],
    "event": [[1, 1, 1, -0.1], [np.nan, 1, 1, 1], [1, np.inf, 1, 1]],
    "positive": [-1.0, -1e-7, *ANYWHERE],
    "interval": [-1.1, 3.1, 3.001, *ANYWHERE],
    "unit interval": [-0.1, 1.1, 1 + 1e-7, *ANYWHERE],
    "circular": [4.0, -3.2, *ANYWHERE],
    "greater than": [1.9, -3.0, *ANYWHERE],
    "less than": [1.1, *ANYWHERE],
    "two-sided": [-1.1, 2.1, *ANYWHERE],
    "simplex": SIMPLICES,
    "batched simplex": [[[0.2, 0.3, 0.5], row] for row in SIMPLICES],
    "ordered": [[0.0, -1.0, 1.0], [1.0, 2.0, 1.5], [0.0, 1.0, np.nan], [0.0, 1.0, np.inf]],
    "correlation": [INDEFINITE, UPPER, 2 * EYE, -EYE, ASYMMETRIC, np.full((3, 3), np.nan)],
    "correlation factor": [UPPER, 2 * EYE, -EYE, 0.9 * EYE, np.tril(np.ones((3, 3)))],
    "covariance": [INDEFINITE, UPPER, -EYE, np.zeros((3, 3)), ASYMMETRIC, np.diag([1.0, np.inf, 1.0])],
    "covariance factor": [UPPER, -EYE, np.diag([1.0, 1.0, -1.0]), np.diag([1.0, np.nan, 1.0])],
    "zero sum": [[1.0, 0.0, 0.0, 0.0], [0.5, 0.5, -0.5, -0.49], [np.nan] * 4],
    "improper scale": [-0.5, *ANYWHERE],
}

PYRO = {
    "real": pdist.Normal(0.0, 1.0),
    "real vector": pdist.MultivariateNormal(torch.zeros(3), torch.eye(3)),
    "batch": pdist.Normal(0.0, 1.0).expand([2, 3]),
    "event": pdist.Gamma(2.0, 1.0).expand([4]).to_event(1),
    "positive": pdist.LogNormal(0.0, 1.0),
    "interval": pdist.Uniform(-1.0, 3.0),
    "unit interval": pdist.Beta(2.0, 2.0),
    "greater than": pdist.Pareto(torch.tensor(2.0), torch.tensor(3.0)),
    "simplex": pdist.Dirichlet(torch.ones(3)),
    "batched simplex": pdist.Dirichlet(torch.ones(3)).expand([2]),
    "ordered": pdist.TransformedDistribution(
        pdist.Normal(0.0, 1.0).expand([3]).to_event(1), pdist.transforms.OrderedTransform()
    ),
    "correlation factor": pdist.LKJCholesky(3, 1.0),
    "covariance": pdist.Wishart(torch.tensor(5.0), torch.eye(3)),
    "improper scale": pdist.HalfCauchy(1.0),
}


def fit(model, *args, **options):
    return pathmix.SDVI(model, **{**QUICK, **options}).run(0, *args)


FEW = ("simplex", "interval", "ordered")
FEW_WITH_A_MATRIX = (*FEW, "correlation factor")


def few_in_numpyro():
    for name in FEW:
        numpyro.sample(name, DISTRIBUTIONS[name])


def all_in_numpyro():
    for name, prior in DISTRIBUTIONS.items():
        numpyro.sample(name, prior)


def few_in_pyro():
    for name in FEW_WITH_A_MATRIX:
        pyro.sample(name, PYRO[name])


def all_in_pyro():
    for name, prior in PYRO.items():
        pyro.sample(name, prior)


# The names of a model's sites.
MODELS = {
    few_in_numpyro: FEW,
    few_in_pyro: FEW_WITH_A_MATRIX,
    all_in_numpyro: tuple(DISTRIBUTIONS),
    all_in_pyro: tuple(PYRO),
}
LONG = (all_in_numpyro, all_in_pyro)


def cases(per_model):
    """One for each of what `per_model` gives for a model."""
    return [
        pytest.param(model, *rest, marks=[pytest.mark.trust] if model in LONG else [])
        for model in MODELS
        for rest in per_model(model)
    ]


# PyTorch's Wishart tells of its own draws.
pytestmark = pytest.mark.filterwarnings("ignore:Singular sample detected")


@cache
def posterior_of(model):
    return fit(model, guide="meanfield", weights="elbo")


def one_draw(posterior):
    return {name: values[0] for name, values in posterior.sample(0, 1).items()}


def normals_of(posterior, name):
    """The parameters of the guide for one site."""
    guide = posterior.paths[0].guide
    (site,) = (site for site in guide.layout.sites if site.name == name)
    own = slice(site.start, site.stop)
    return np.asarray(guide.params.loc[own]), np.exp(guide.params.log_scale[own])


def log_density(posterior, name, x):
    """Of one site: normals, and the library's own determinant."""
    bijection = biject_to(DISTRIBUTIONS[name].support)
    u = bijection.inv(jnp.asarray(x))
    log_det = jnp.sum(bijection.log_abs_det_jacobian(u, jnp.asarray(x)))
    return stats.norm.logpdf(np.ravel(u), *normals_of(posterior, name)).sum() - float(log_det)


@pytest.mark.parametrize("model", cases(lambda _: [()]))
def test_the_density_at_draws(model):
    posterior = posterior_of(model)
    draws = posterior.sample(0, 5)
    with jax.enable_x64(True), numpyro.validation_enabled(False):
        for row in range(5):
            values = {name: draws[name][row] for name in draws}
            wanted = sum(log_density(posterior, name, x) for name, x in values.items())
            assert posterior.log_prob(values) == pytest.approx(wanted, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize(("model", "name"), cases(lambda model: [(name,) for name in MODELS[model]]))
def test_off_every_support(model, name):
    posterior = posterior_of(model)
    values = one_draw(posterior)
    for x in OUTSIDE[name]:
        assert posterior.log_prob({**values, name: np.asarray(x, float)}) == -np.inf, x
    message = rf"{name!r} at test_log_prob.py:\d+ has shape .* \(2, 2, 2\)"
    with pytest.raises(ValueLookupError, match=message):
        posterior.log_prob({**values, name: np.zeros((2, 2, 2))})


@pytest.mark.parametrize("model", [few_in_numpyro, few_in_pyro])
def test_rounding_is_no_reason_to_be_outside(model):
    posterior = posterior_of(model)
    values = one_draw(posterior)
    centre = np.array([0.2, 0.3, 0.5])
    wanted = posterior.log_prob({**values, "simplex": centre})
    assert np.isfinite(wanted)
    for x in (centre + 3e-7, centre - 3e-7, centre.astype(np.float32), torch.tensor(centre).float()):
        assert posterior.log_prob({**values, "simplex": x}) == pytest.approx(wanted, abs=1e-4)


def test_single_precision():
    names = ["simplex", "correlation factor", "zero sum", "ordered"]

    def model():
        numpyro.sample("long", dist.Dirichlet(jnp.ones(200)))
        for name in names:
            numpyro.sample(name, DISTRIBUTIONS[name])

    posterior = fit(model, precision="float32")
    draws = posterior.sample(0, 10)
    rows = [{name: draws[name][row] for name in draws} for row in range(10)]
    assert np.all(np.isfinite([posterior.log_prob(values) for values in rows]))
    for name in names:
        assert posterior.log_prob({**rows[0], name: np.asarray(OUTSIDE[name][0])}) == -np.inf


def test_supports_that_depend_on_other_sites():
    def numpyro_program(y):
        top = numpyro.sample("top", dist.Uniform(1, 3))
        x = numpyro.sample("x", dist.Uniform(0, top))
        numpyro.sample("y", dist.Normal(x, 1), obs=y)

    def pyro_program(y):
        top = pyro.sample("top", pdist.Uniform(1.0, 3.0))
        x = pyro.sample("x", pdist.Uniform(0.0, top))
        pyro.sample("y", pdist.Normal(x, 1.0), obs=y)

    for posterior in (fit(numpyro_program, 0.5), fit(pyro_program, torch.tensor(0.5))):
        assert np.isfinite(posterior.log_prob({"top": 2.5, "x": 2.4}))
        assert posterior.log_prob({"top": 2.3, "x": 2.4}) == -np.inf
        assert posterior.log_prob({"top": 0.5, "x": 0.4}) == -np.inf


# A distribution with whole values, one of them, and some that it does not have.
WHOLE = {
    "bernoulli": (dist.Bernoulli(0.5), pdist.Bernoulli(0.5), 1, [0.5, 1.5, 2, -1, np.nan, np.inf]),
    "categorical": (
        dist.Categorical(jnp.ones(3) / 3),
        pdist.Categorical(torch.ones(3)),
        2,
        [1.5, 3, -1, 2.0000001, np.nan],
    ),
    "poisson": (dist.Poisson(1.0), pdist.Poisson(1.0), 1, [0.5, -1, np.nan, np.inf]),
    "binomial": (dist.Binomial(3, 0.5), pdist.Binomial(3, 0.5), 2, [2.5, 4, -1, np.nan]),
    "geometric": (dist.GeometricProbs(0.5), pdist.Geometric(0.5), 0, [0.1, -1, -np.inf]),
    "multinomial": (
        dist.Multinomial(2, jnp.ones(2) / 2),
        pdist.Multinomial(2, torch.ones(2)),
        [1, 1],
        [[0.5, 1.5], [1, 2], [-1, 3]],
    ),
}


def numpyro_choice():
    which = list(WHOLE)[int(numpyro.sample("which", dist.Categorical(jnp.ones(len(WHOLE)) / len(WHOLE))))]
    int(jnp.ravel(numpyro.sample(which, WHOLE[which][0]))[0])
    numpyro.sample("z", dist.Normal(0, 1))


def pyro_choice():
    which = list(WHOLE)[int(pyro.sample("which", pdist.Categorical(torch.ones(len(WHOLE)))))]
    int(pyro.sample(which, WHOLE[which][1]).reshape(-1)[0])
    pyro.sample("z", pdist.Normal(0.0, 1.0))


@pytest.mark.parametrize("model", [numpyro_choice, pyro_choice])
def test_discrete_sites(model):
    posterior = fit(model, discovery=pathmix.PriorDiscovery(250), allocation=pathmix.Uniform(budget=100))
    for which, (name, (_, _, inside, outside)) in enumerate(WHOLE.items()):
        (path,) = (
            path
            for path in posterior.paths
            if path.pinned["which"] == which and np.all(np.asarray(path.pinned[name]) == inside)
        )
        loc, scale = path.guide.params.loc[0], np.exp(path.guide.params.log_scale[0])
        wanted = float(np.log(path.weight) + stats.norm.logpdf(0.3, loc, scale))
        for k in (inside, np.asarray(inside, float), torch.tensor(inside)):
            assert posterior.log_prob({"which": which, name: k, "z": 0.3}) == pytest.approx(wanted, rel=1e-9)
        for k in outside:
            assert posterior.log_prob({"which": which, name: np.asarray(k), "z": 0.3}) == -np.inf, k
    # A fraction leads nowhere, not to a path whose sites are missing.
    assert posterior.log_prob({"which": 0.5, "bernoulli": 1, "z": 0.3}) == -np.inf
    assert posterior.log_prob({"which": -1, "multinomial": [1, 1], "z": 0.3}) == -np.inf


def branching(sample, normal, gamma, y):
    """A program that fails, in its own way, off the values that it was written for."""
    x = sample("x", normal(0.0, 1.0))
    if x > 8:
        raise ZeroDivisionError("not so far")
    if x > 7:
        sample("unseen", normal(0.0, 1.0))
    assert x > -8
    if x > 6:
        sample("x", normal(0.0, 1.0))  # twice
    scale = sample("scale", gamma(2.0, 2.0))
    sample("y", normal(x, scale), obs=y)


@pytest.mark.parametrize("library", ["numpyro", "pyro"])
def test_an_unknown_path_has_no_density_whatever_happens_there(library):
    if library == "numpyro":
        posterior = fit(lambda y: branching(numpyro.sample, dist.Normal, dist.Gamma, y), 0.5)
    else:
        posterior = fit(lambda y: branching(pyro.sample, pdist.Normal, pdist.Gamma, y), torch.tensor(0.5))
    assert np.isfinite(posterior.log_prob({"x": 0.2, "scale": 1.0}))
    for x in (9.0, -9.0, 6.5):
        assert posterior.log_prob({"x": x, "scale": 1.0}) == -np.inf
    assert posterior.log_prob({"x": 7.5, "scale": 1.0, "unseen": 0.0}) == -np.inf
    # What is missing from the values, or too much, is still said.
    with pytest.raises(ValueLookupError, match="lack the site 'unseen'"):
        posterior.log_prob({"x": 7.5, "scale": 1.0})
    with pytest.raises(ValueLookupError, match="does not draw 'other'"):
        posterior.log_prob({"x": 0.2, "scale": 1.0, "other": 0.0})
    with pytest.raises(ValueLookupError, match="'x' is not a number"):
        posterior.log_prob({"x": "0.2", "scale": 1.0})
    with pytest.raises(ValueLookupError, match="'x' is not a number"):
        posterior.log_prob({"x": None, "scale": 1.0})


def test_a_warning_that_is_an_error_is_not_taken_for_a_path():
    def model():
        x = numpyro.sample("x", dist.Normal(0, 1))
        if told:
            warnings.warn("mine", UserWarning, stacklevel=1)
        numpyro.sample("y", dist.Normal(x, 1), obs=0.5)

    told = []
    posterior = fit(model)
    told.append(True)
    with warnings.catch_warnings(), pytest.raises(UserWarning, match="mine"):
        warnings.simplefilter("error")
        posterior.log_prob({"x": 0.0})


def test_a_run_without_end_is_said():
    def model():
        x = numpyro.sample("x", dist.Normal(0, 1))
        while x > 8:
            numpyro.deterministic(f"d{len(seen)}", x)
            seen.append(0)

    seen = []
    posterior = fit(model, discovery=pathmix.PriorDiscovery(20, max_sites=50))
    with pytest.raises(RunawayProgramError):
        posterior.log_prob({"x": 9.0})


def test_what_is_no_run():
    def model(y):
        numpyro.sample("y", dist.Normal(numpyro.sample("x", dist.Normal(0, 1)), 1), obs=y)

    posterior = pathmix.SDVI(model, **QUICK).run(0, 1.0)
    for values in (posterior.sample(0, 3).to_dataframe(), np.zeros(3), 1.0, ["x"]):
        with pytest.raises(ArgumentsError, match=f"a list of such.*no {type(values).__name__}"):
            posterior.log_prob(values)
    assert posterior.log_prob([{"x": 0.0}, {"x": 1.0}]).shape == (2,)


def test_tensors_that_want_gradients():
    posterior = posterior_of(few_in_pyro)
    values = one_draw(posterior)
    x = torch.tensor(0.5, requires_grad=True)
    assert posterior.log_prob({**values, "interval": x}) == posterior.log_prob({**values, "interval": 0.5})


@pytest.mark.parametrize("method", [DCC, BBVI, WholeAutoGuide])
def test_every_method(method):
    options = {"iterations": 4} if method is DCC else {"steps": 5, "elbo_samples": 50}

    def model(y):
        weights = numpyro.sample("w", dist.Dirichlet(jnp.ones(3)))
        numpyro.sample("y", dist.Normal(weights[0], 1), obs=y)

    posterior = method(model, discovery=pathmix.PriorDiscovery(60), progress=False, **options).run(0, 0.5)
    assert np.isfinite(posterior.log_prob({"w": [0.2, 0.3, 0.5]}))
    for row in SIMPLICES:
        assert posterior.log_prob({"w": row}) == -np.inf
