"""Every answer of trust/ holds in a second way, that shares no code with the first."""

from collections import defaultdict
from types import SimpleNamespace

import jax
import numpy as np
import numpyro
import pyro
import pytest
import torch
from numpyro import handlers
from scipy.special import gammaln

from tests.trust import laplace_sampling, prior_sampling
from tests.trust.simulators import SIMULATORS
from trust.programs import wrong_answers
from trust.suite import CASES

NUMPYRO = {case.name: case for case in CASES.values() if case.library == "numpyro"}
PYRO = {case.name: case for case in CASES.values() if case.library == "pyro"}
ERRORS = 4.5  # standard errors; seeds are fixed, and of some 500 comparisons 0.003 would fail by chance
SHARP = 0.15  # relative standard error below which a comparison says something
DRAWS = {
    "kink": 1_000_000, "intercepts": 400_000, "plane_clusters": 200_000, "polynomial": 100_000,
    "scattered": 100_000,
}  # fmt: skip
PATHS = {"steps": 40}  # of a program without end
PEAKED = {"twelve_predictors", "cement", "cars", "collinear"}  # too far from the prior
MOMENTS = {"coal"}  # a test of its own
SLOW = {
    "kink", "poisson_clusters", "plane_clusters", "unknown_shares", "scattered", "sums", "brackets",
    "kernels", "sticky", "schools", "intercepts", "horseshoe", "terms", "exchangeable", "forgotten",
    "cement", "cars", "twelve_predictors", "collinear", "polynomial", "hidden",
}  # fmt: skip


def marked(names):
    return [pytest.param(name, marks=[pytest.mark.trust] if name in SLOW else []) for name in names]


BY_VALUES = marked(name for name in NUMPYRO if name not in SIMULATORS.keys() | PEAKED | MOMENTS)
BY_MODE = marked(sorted(PEAKED))


def as_path(noted):
    return SimpleNamespace(label="", **noted)


def compare(case, found, *, part=0.97, least=1e-3):
    """Estimates by key, with variances, against the answer; sharp ones cover that part of the posterior.

    Keys of less weight than `least` only have to be small: few draws are where they matter, and an error that
    is estimated from those is no measure.
    """
    sharp = 0.0
    for key, (mean, variance) in found.items():
        exactly = np.exp(case.log_evidences.get(key, -np.inf))
        error, weight = np.sqrt(variance), case.weights.get(key, 0.0)
        if weight > least:
            allowed = ERRORS * error + 1e-8 * exactly
            assert abs(mean - exactly) <= allowed, f"{key}: {mean} +- {error} for {exactly}"
        else:
            assert mean <= 10 * least * np.exp(case.log_evidence), f"{key}: {mean}"
        sharp += weight * (error <= SHARP * mean)
    assert sharp > part, f"only {sharp:.3f} of the posterior is checked"


def test_there_are_enough_programs():
    assert len(NUMPYRO) >= 44 and NUMPYRO.keys() >= PYRO.keys()
    for case in NUMPYRO.values():
        assert sum(case.weights.values()) == pytest.approx(1, abs=1e-9)


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("name", BY_VALUES)
def test_prior_runs_of_the_program(name):
    case, draws = NUMPYRO[name], DRAWS.get(name, 20_000)
    found, values = defaultdict(lambda: np.zeros(2)), []
    for number in range(PATHS.get(name, 200)):
        mean, error, noted = prior_sampling.evidence(case.model, case.args, values, draws, number)
        found[case.key(as_path(noted))] += mean, error**2
        values = prior_sampling.after([*noted["pinned"].values()], noted["sizes"])
        if values is None:
            break
    compare(case, found)


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("name", BY_MODE)
def test_draws_around_the_mode_of_the_program(name):
    """The likeliest subsets of those that have many."""
    case = NUMPYRO[name]
    found = {}
    for key in sorted(case.weights, key=case.weights.get)[-4:]:
        values = [key] if isinstance(key, int) else [int(j in key) for j in range(case.args[0].shape[1])]
        mean, error, noted = laplace_sampling.evidence(case.model, case.args, values, 20_000)
        assert case.key(as_path(noted)) == key
        found[key] = mean, error**2
    compare(case, found, part=0.2 if name == "cars" else 0.8)


@pytest.mark.parametrize("name", SIMULATORS)
def test_simulations(name):
    case, size = NUMPYRO[name], 400_000
    keys, likelihood = SIMULATORS[name](np.random.default_rng(1), size)
    found = {}
    for key in np.unique(keys).tolist():
        weights = np.where(keys == key, likelihood, 0.0)
        found[key] = weights.mean(), weights.var() / size
    compare(case, found, part=-1 if name == "tail" else 0.97)


@pytest.mark.usefixtures("double_torch")
@pytest.mark.parametrize("name", sorted(PYRO.keys() & SIMULATORS.keys()))
def test_runs_of_programs_that_branch_on_continuous_values(name):
    """Pyro runs them quickly as they are; few runs, to see that answer and simulation are of the program."""
    case, size = PYRO[name], 500
    likelihoods = defaultdict(lambda: np.zeros(size))
    for seed in range(size):
        log_likelihood, _, values = pyro_run(case, seed)
        key = case.key(as_path({"addresses": tuple(values), "pinned": {}}))
        likelihoods[key][seed] = np.exp(log_likelihood)
    found = {key: (weights.mean(), weights.var() / size) for key, weights in likelihoods.items()}
    compare(case, found, part=-1, least=0.05)


def test_moments_of_disasters():
    """Moments of change are drawn, rates integrated out, for one change and for more."""
    case, size = NUMPYRO["coal"], 400_000
    y = wrong_answers.DISASTERS
    n, totals = len(y), np.concatenate([[0], np.cumsum(y)])
    generator = np.random.default_rng(0)
    found = {}
    for changes in range(4):
        left = np.cumprod(1 - generator.uniform(size=(size, changes)), axis=1)
        cuts = np.ceil(n * (1 - left)).astype(int)
        cuts = np.concatenate([np.zeros((size, 1), int), cuts, np.full((size, 1), n)], axis=1)
        length, seen = np.diff(cuts, axis=1), np.diff(totals[cuts], axis=1)
        logs = np.log(0.6) + gammaln(1 + seen) - (1 + seen) * np.log(0.6 + length)
        weights = 0.25 * np.exp(logs.sum(axis=1) - gammaln(y + 1).sum())
        found[changes] = weights.mean(), weights.var() / size
    compare(case, found)


def pyro_run(case, seed):
    """Log likelihood, log joint density and latent values of one prior run."""
    pyro.set_rng_seed(seed)
    trace = pyro.poutine.trace(case.model).get_trace(*case.args)
    trace.compute_log_prob()
    values = {name: trace.nodes[name]["value"].detach().numpy() for name in trace.stochastic_nodes}
    values = {name: value for name, value in values.items() if not is_plate(trace.nodes[name])}
    discrete = {name for name in values if trace.nodes[name]["fn"].support.is_discrete}
    values = {name: value.astype(int) if name in discrete else value for name, value in values.items()}
    log_likelihood = sum(trace.nodes[name]["log_prob_sum"].item() for name in trace.observation_nodes)
    return log_likelihood, trace.log_prob_sum().item(), values


def is_plate(node):
    return type(node["fn"]).__name__ == "_Subsample"


@pytest.fixture(autouse=True)
def without_validation():
    """As inside a run: data outside of a support are no error."""
    with numpyro.validation_enabled(False), pyro.validation_enabled(False):
        yield


@pytest.fixture
def double_torch():
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(before)


@pytest.mark.usefixtures("engine", "double_torch")
@pytest.mark.parametrize("name", marked(PYRO))
def test_twins_have_one_density(name):
    """Pyro's program, at its own prior draws on several paths, against NumPyro's."""
    met = {}
    for seed in range(20):
        _, log_joint, values = pyro_run(PYRO[name], seed)
        met.setdefault(tuple(values), (log_joint, values))
    for log_joint, values in list(met.values())[:4]:
        given = {name: jax.numpy.asarray(value) for name, value in values.items()}
        with handlers.trace() as trace, handlers.substitute(data=given):
            NUMPYRO[name].model(*NUMPYRO[name].args)
        assert set(prior_sampling.latent(trace)) == set(values)
        twin = sum(prior_sampling.log_prob(site) for site in trace.values() if site["type"] == "sample")
        # Outside of a support, Pyro without validation has a number or -inf.
        assert twin == -np.inf or float(twin) == pytest.approx(log_joint, rel=1e-5, abs=1e-5)
