"""Parameters that are learned, against closed forms and SciPy's maxima of analytic evidences.

Learning ends where the draws of a round cannot tell a parameter from its best value. Tolerances are in
standard deviations that a parameter would have under a flat prior: one Monte Carlo error is 0.02 or so.
"""

from functools import cache

import equinox
import jax
import numpy as np
import numpyro
import numpyro.distributions as dist
import pyro
import pyro.distributions as pdist
import pytest
import torch
from numpyro.contrib.module import eqx_module
from pyro.nn import PyroModule, PyroParam
from scipy import integrate, optimize, stats

import pathmix
from pathmix.errors import ChangedError, OptionError, ParameterError, PathmixError
from pathmix.methods.learning.rounds import State

Y = np.array([2.5, -1.0, 3.5, -2.0])
positive = dist.constraints.positive
both = pytest.mark.parametrize("library", ["numpyro", "pyro"])


CHEAP = {"smc_evaluations": 0, "evidence_draws": 30_000, "symmetry": False, "starts": 1, "progress": False}


def sdvi(model, parameters="learn", budget=1_000, **options):
    allocation, discovery = pathmix.SuccessiveHalving(budget), pathmix.PriorDiscovery(60)
    return pathmix.SDVI(
        model, parameters=parameters, allocation=allocation, discovery=discovery, **CHEAP, **options
    )


def fit(library, models, *args, **options):
    model = models[library]
    args = [torch.tensor(a) if library == "pyro" else a for a in args]
    pyro.clear_param_store()
    posterior = sdvi(model, **options).run(0, *args)
    assert not len(pyro.get_param_store())  # nor is it touched
    return posterior


def groups_numpyro(y):
    tau = numpyro.param("tau", 1.0, constraint=positive)
    numpyro.param("idle", 3.0)
    with numpyro.plate("n", len(y)):
        x = numpyro.sample("x", dist.Normal(0.0, tau))
        numpyro.sample("y", dist.Normal(x, 1.0), obs=y)


def groups_pyro(y):
    tau = pyro.param("tau", torch.tensor(1.0), constraint=pdist.constraints.positive)
    pyro.param("idle", torch.tensor(3.0))
    with pyro.plate("n", len(y)):
        x = pyro.sample("x", pdist.Normal(0.0, tau))
        pyro.sample("y", pdist.Normal(x, 1.0), obs=y)


GROUPS = {"numpyro": groups_numpyro, "pyro": groups_pyro}


@cache
def groups(library):
    return fit(library, GROUPS, Y)


@both
def test_the_scale_of_empirical_bayes(library):
    posterior = groups(library)
    tau, best = float(posterior.parameters["tau"]), np.sqrt(np.mean(Y**2) - 1)
    spread = (1 + best**2) / best**2 / np.sqrt(2 * len(Y))  # of log tau, from the curvature of log Z
    assert abs(np.log(tau / best)) < 0.1 * spread
    assert posterior.parameters["idle"] == 3.0
    assert abs(posterior.log_evidence - stats.norm.logpdf(Y, 0, np.hypot(1, tau)).sum()) < 0.02
    assert posterior.verdict.ok
    assert any("were learned" in note and "tau" in note for note in posterior.notes)
    # Draws, densities and predictions are those at the learned value.
    mean, scale = Y * tau**2 / (1 + tau**2), tau / np.hypot(1, tau)
    assert np.allclose(posterior.sample(1, 4_000)["x"].mean(axis=0), mean, atol=5 * scale / np.sqrt(4_000))
    assert abs(posterior.log_prob({"x": mean}) - stats.norm.logpdf(0, 0, scale) * len(Y)) < 0.05
    zeros = np.zeros(6) if library == "numpyro" else torch.zeros(6)
    fresh = posterior.with_fresh_plates().predict(2, 1_000, zeros)["y"]
    assert abs(np.std(fresh) / np.hypot(1, tau) - 1) < 0.05  # of 6,000 numbers: seven errors


def test_what_was_learned_is_saved_and_resumed(tmp_path):
    posterior = groups("numpyro")
    posterior.save(tmp_path / "it.pathmix")
    alone = pathmix.load(tmp_path / "it.pathmix")
    assert alone.parameters == posterior.parameters and alone.notes == posterior.notes
    again = pathmix.load(tmp_path / "it.pathmix", groups_numpyro, Y)
    new = np.zeros(len(Y))
    assert np.array_equal(again.predict(1, 50, new)["y"], posterior.predict(1, 50, new)["y"])
    assert again.log_prob({"x": Y}) == posterior.log_prob({"x": Y})
    with pytest.raises(ChangedError, match='parameters="learn"'):
        sdvi(groups_numpyro, "fixed").resume(posterior)
    further = sdvi(groups_numpyro).resume(again, budget=1_000)
    assert abs(np.log(further.parameters["tau"] / posterior.parameters["tau"])) < 0.1
    assert further.paths[0].steps > posterior.paths[0].steps


@both
def test_a_scale_that_is_best_at_zero(library):
    y = Y / 5
    posterior = fit(library, GROUPS, y)
    tau = float(posterior.parameters["tau"])
    short = stats.norm.logpdf(y).sum() - stats.norm.logpdf(y, 0, np.hypot(1, tau)).sum()
    assert 0 < short < 0.05
    assert any("hardly changes with tau" in note and "bound" in note for note in posterior.notes)


def test_a_checkpoint_of_learning_goes_on(tmp_path):
    folder = tmp_path / "kept"
    first = sdvi(groups_numpyro, checkpoint=folder).run(0, Y)
    size = (folder / "journal").stat().st_size
    again = sdvi(groups_numpyro, checkpoint=folder).run(0, Y)
    assert again.parameters == first.parameters and again.log_evidence == first.log_evidence
    assert (folder / "journal").stat().st_size == size


def branches_numpyro(y):
    m = numpyro.param("m", 0.5)
    is_wide = numpyro.sample("wide", dist.Bernoulli(0.4))
    with numpyro.plate("n", len(y)):
        if is_wide:
            x = numpyro.sample("x", dist.Normal(m, numpyro.param("s", 1.0, constraint=positive)))
        else:
            x = numpyro.sample("x", dist.Normal(-m, 2.0))
        numpyro.sample("y", dist.Normal(x, 1.0), obs=y)


def branches_pyro(y):
    m = pyro.param("m", torch.tensor(0.5))
    is_wide = pyro.sample("wide", pdist.Bernoulli(0.4))
    with pyro.plate("n", len(y)):
        if is_wide:
            s = pyro.param("s", torch.tensor(1.0), constraint=pdist.constraints.positive)
            x = pyro.sample("x", pdist.Normal(m, s))
        else:
            x = pyro.sample("x", pdist.Normal(-m, 2.0))
        pyro.sample("y", pdist.Normal(x, 1.0), obs=y)


BRANCHES = {"numpyro": branches_numpyro, "pyro": branches_pyro}


def log_branches(m, s, y=Y, other=None):
    """log Z of wide=1 and of wide=0, which may have another m."""
    wide = np.log(0.4) + stats.norm.logpdf(y, m, np.hypot(1, s)).sum()
    return np.array([wide, np.log(0.6) + stats.norm.logpdf(y, -m if other is None else -other, 5**0.5).sum()])


@both
def test_paths_share_a_parameter(library):
    posterior = fit(library, BRANCHES, Y)
    found = [float(posterior.parameters["m"]), np.log(float(posterior.parameters["s"]))]
    best = optimize.minimize(lambda at: -np.logaddexp.reduce(log_branches(at[0], np.exp(at[1]))), [0.5, 0.0])
    assert np.all(np.abs(found - best.x) < 0.1 * np.sqrt(np.diag(best.hess_inv)))
    logs = log_branches(found[0], np.exp(found[1]))
    weights = np.exp(logs - np.logaddexp.reduce(logs))
    assert np.allclose([posterior.weights["wide=1"], posterior.weights["wide=0"]], weights, atol=0.01)
    assert 0.2 < weights[0] < 0.8  # both have a say
    assert posterior.verdict.ok


@cache
def apart(library):
    return fit(library, BRANCHES, Y, parameters="per-path")


@both
def test_paths_have_parameters_of_their_own(library):
    posterior = apart(library)
    own = {path.label: path.parameters for path in posterior.paths}
    mean, s = Y.mean(), np.sqrt(Y.var() - 1)
    spread = np.hypot(1, s) / np.sqrt(len(Y))
    assert abs(own["wide=1"]["m"] - mean) < 0.1 * spread
    assert abs(own["wide=0"]["m"] + mean) < 0.1 * 5**0.5 / np.sqrt(len(Y))
    assert abs(np.log(own["wide=1"]["s"] / s)) < 0.1 * (1 + s**2) / s**2 / np.sqrt(2 * len(Y))
    assert "s" not in own["wide=0"]
    logs = log_branches(own["wide=1"]["m"], own["wide=1"]["s"], other=own["wide=0"]["m"])
    weight = np.exp(logs[0] - np.logaddexp.reduce(logs))
    assert abs(posterior.weights["wide=1"] - weight) < 0.01
    assert not posterior.verdict.ok and "they are no probabilities" in str(posterior.verdict)
    with pytest.raises(PathmixError, match=r"paths\[0\]\.parameters"):
        _ = posterior.parameters
    # Draws have the parameters of their path: what is new in a plate shows it.
    new = np.zeros(50) if library == "numpyro" else torch.zeros(50)
    fresh = posterior.with_fresh_plates().predict(1, 400, new)
    for position, path in enumerate(posterior.paths):
        sign = 1 if path.label == "wide=1" else -1
        seen = fresh["y"][fresh.path == position]
        spread = np.hypot(1, float(path.parameters.get("s", 2.0)))
        assert abs(seen.mean() - sign * path.parameters["m"]) < 5 * spread / np.sqrt(len(seen))


def test_own_parameters_are_saved(tmp_path):
    posterior = apart("numpyro")
    posterior.save(tmp_path / "it.pathmix")
    again = pathmix.load(tmp_path / "it.pathmix", branches_numpyro, Y)
    assert [path.parameters for path in again.paths] == [path.parameters for path in posterior.paths]
    assert np.array_equal(again.predict(1, 50, Y)["y"], posterior.predict(1, 50, Y)["y"])


def test_a_parameter_of_what_a_continuous_branch_looks_at():
    def model(y):
        a = numpyro.sample("a", dist.Normal(numpyro.param("m", 0.0), 1.0))
        b = numpyro.sample("b", dist.Normal(0.0, 1.0))
        numpyro.sample("y", dist.Normal(a if a + b > 1 else 2 * a, 1.0), obs=y)

    def log_evidence(m):
        def high(a):
            return stats.norm.pdf(a, m) * stats.norm.sf(1 - a) * stats.norm.pdf(3.0, a)

        def low(a):
            return stats.norm.pdf(a, m) * stats.norm.cdf(1 - a) * stats.norm.pdf(3.0, 2 * a)

        return np.log(integrate.quad(lambda a: high(a) + low(a), -8, 12, points=[0, 1, 2, 3])[0])

    found = float(sdvi(model).run(0, 3.0).parameters["m"])
    best = optimize.minimize_scalar(lambda m: -log_evidence(m), bounds=(-2, 6), method="bounded")
    assert log_evidence(best.x) - log_evidence(found) < 0.005
    assert abs(found) > 0.5


def alone_numpyro(y):
    if numpyro.sample("fixed", dist.Bernoulli(0.5)):
        numpyro.sample("y", dist.Normal(numpyro.param("m", 8.0), 1.0).expand([len(y)]).to_event(1), obs=y)
    else:
        z = numpyro.sample("z", dist.Normal(0.0, 1.0))
        numpyro.sample("y", dist.Normal(z, 1.0).expand([len(y)]).to_event(1), obs=y)


def alone_pyro(y):
    if pyro.sample("fixed", pdist.Bernoulli(0.5)):
        m = pyro.param("m", torch.tensor(8.0))
        pyro.sample("y", pdist.Normal(m, 1.0).expand([len(y)]).to_event(1), obs=y)
    else:
        z = pyro.sample("z", pdist.Normal(0.0, 1.0))
        pyro.sample("y", pdist.Normal(z, 1.0).expand([len(y)]).to_event(1), obs=y)


@both
def test_a_parameter_of_one_path_that_has_no_weight_at_first(library):
    posterior = fit(library, {"numpyro": alone_numpyro, "pyro": alone_pyro}, Y)
    assert abs(posterior.parameters["m"] - Y.mean()) < 1e-3  # no draws, no error
    covariance = np.eye(len(Y)) + 1
    logs = [stats.norm.logpdf(Y, Y.mean()).sum(), stats.multivariate_normal.logpdf(Y, cov=covariance)]
    assert abs(posterior.weights["fixed=1"] - 1 / (1 + np.exp(logs[1] - logs[0]))) < 0.01


COUNTS = np.array([0, 0, 1, 2, 2, 2, 2, 1])


def shapes_numpyro(y, counts):
    p = numpyro.param("p", np.full(3, 1 / 3), constraint=dist.constraints.simplex)
    top = numpyro.param("top", 1.0, constraint=dist.constraints.interval(0.5, 8.0))
    w = numpyro.param("w", lambda key: np.zeros(2))
    x = numpyro.sample("x", dist.Uniform(0.0, top))
    numpyro.sample("near", dist.Normal(x, 1.0), obs=2.0)
    with numpyro.plate("rows", 4, subsample_size=2):
        part = numpyro.subsample(y, event_dim=0)
        numpyro.sample("y", dist.Normal(w.sum(), 1.0), obs=part)
    numpyro.sample("counts", dist.Categorical(p).expand([8]).to_event(1), obs=counts)


def shapes_pyro(y, counts):
    p = pyro.param("p", torch.full((3,), 1 / 3), constraint=pdist.constraints.simplex)
    top = pyro.param("top", torch.tensor(1.0), constraint=pdist.constraints.interval(0.5, 8.0))
    w = pyro.param("w", lambda: torch.zeros(2))
    x = pyro.sample("x", pdist.Uniform(0.0, top))
    pyro.sample("near", pdist.Normal(x, 1.0), obs=torch.tensor(2.0))
    with pyro.plate("rows", 4, subsample_size=2) as rows:
        pyro.sample("y", pdist.Normal(w.sum(), 1.0), obs=y[rows])
    pyro.sample("counts", pdist.Categorical(p).expand([8]).to_event(1), obs=counts)


@both
def test_constraints_vectors_minibatches_and_a_support_that_moves(library):
    posterior = fit(library, {"numpyro": shapes_numpyro, "pyro": shapes_pyro}, Y, COUNTS)
    found = posterior.parameters
    assert np.allclose(found["p"], [0.25, 0.25, 0.5], atol=0.02)
    assert abs(found["w"].sum() - Y.mean()) < 0.02

    def log_evidence(top):
        return np.log(stats.norm.cdf(2.0) - stats.norm.cdf(2.0 - top)) - np.log(top)

    best = optimize.minimize_scalar(lambda top: -log_evidence(top), bounds=(0.5, 8.0), method="bounded")
    assert log_evidence(best.x) - log_evidence(float(found["top"])) < 0.005


@both
def test_parameters_that_move_a_region_are_refused(library):
    def decides_numpyro(y):
        x = numpyro.sample("x", dist.Normal(0.0, 1.0))
        z = 1.0 if x < numpyro.param("edge", 0.1) else 0.0
        numpyro.sample("y", dist.Normal(z, 1.0), obs=y)

    def decides_pyro(y):
        x = pyro.sample("x", pdist.Normal(0.0, 1.0))
        z = 1.0 if x < pyro.param("edge", torch.tensor(0.1)) else 0.0
        pyro.sample("y", pdist.Normal(z, 1.0), obs=y)

    models = {"numpyro": decides_numpyro, "pyro": decides_pyro}
    where = r"test_parameters.py:\d+"
    with pytest.raises(ParameterError, match=f"'edge' at {where} moves the decision at {where}"):
        fit(library, models, 1.0)


def test_other_parameters_that_cannot_be_learned():
    def refused(program, match):
        with pytest.raises(ParameterError, match=match):
            sdvi(program).run(0, 1.0)

    def observed(y):
        x = numpyro.sample("x", dist.Normal(0.0, 1.0))
        numpyro.sample("y", dist.Uniform(x - 5, numpyro.param("top", 9.0)), obs=y)

    refused(observed, r"'top' at test_parameters.py:\d+ moves the support of the observed site 'y'")

    def jumps(y):
        x = numpyro.sample("x", dist.Normal(0.0, 1.0))
        steps = (np.arange(4) > numpyro.param("edge", 1.3)).sum()
        numpyro.sample("y", dist.Normal(x + steps, 1.0), obs=y)

    refused(jumps, r"'edge' at test_parameters.py:\d+ changes the density in jumps")

    def outside(y):
        x = numpyro.sample("x", dist.Normal(0.0, numpyro.param("tau", -1.0, constraint=positive)))
        numpyro.sample("y", dist.Normal(x, 1.0), obs=y)

    refused(outside, "'tau' at test_parameters.py")

    def random(y):
        x = numpyro.sample("x", dist.Normal(0.0, 1.0))
        numpyro.sample("y", dist.Normal(numpyro.param("m", x), 1.0), obs=y)

    refused(random, "depends on a random value")


def test_parameters_stay_fixed_by_default():
    posterior = sdvi(groups_numpyro, "fixed").run(0, Y)
    assert "Parameters are kept at their initial values: idle, tau." in posterior.notes
    assert posterior.parameters == {"tau": 1.0, "idle": 3.0}
    with pytest.raises(OptionError, match="parameters"):
        sdvi(groups_numpyro, "all")
    assert pathmix.SDVI(groups_numpyro).parameters == "fixed"


def test_there_may_be_nothing_to_learn():
    def plain(y):
        x = numpyro.sample("x", dist.Normal(0.0, 1.0))
        numpyro.sample("y", dist.Normal(x, 1.0), obs=y)

    posterior = sdvi(plain).run(0, 1.0)
    assert any("nothing to learn" in note for note in posterior.notes)
    assert posterior.parameters == {} and posterior.verdict.ok


X = np.linspace(-1.0, 1.0, 5)
LINE = 2.0 * X + 0.5


class Line(PyroModule):
    def __init__(self):
        super().__init__()
        self.slope = PyroParam(torch.tensor(0.5))
        self.layer = torch.nn.Linear(1, 1)

    def forward(self, x):
        return self.slope * x + self.layer(torch.zeros(1, 1))[0, 0]


def line_of(module):
    def model(x, y):
        z = pyro.sample("z", pdist.Normal(0.0, 1.0))
        with pyro.plate("n", len(x)):
            pyro.sample("y", pdist.Normal(module(x) + 0.01 * z, 0.1), obs=y)

    return model


def registered(layer):
    def module(x):
        return pyro.module("layer", layer)(x[:, None].float())[:, 0]

    return module


@pytest.mark.parametrize("kind", ["PyroModule", "pyro.module"])
def test_parameters_of_pyro_modules(kind):
    module = Line() if kind == "PyroModule" else torch.nn.Linear(1, 1)
    before = [tensor.clone() for tensor in module.parameters()]
    model = line_of(module if kind == "PyroModule" else registered(module))
    posterior = fit("pyro", {"pyro": model}, X, LINE)
    there = torch.tensor([0.0, 3.0], dtype=torch.float64)
    seen = posterior.predict(1, 400, there, torch.zeros(2))["y"]
    assert np.allclose(seen.mean(axis=0), [0.5, 6.5], atol=0.03)  # five errors
    assert all(map(torch.equal, before, module.parameters()))


def test_parameters_of_an_equinox_module(tmp_path):
    layer = equinox.nn.Linear(1, 1, key=jax.random.key(0))

    def model(x, y):
        z = numpyro.sample("z", dist.Normal(0.0, 1.0))
        f = jax.vmap(eqx_module("layer", layer))(x[:, None])[:, 0]
        numpyro.sample("y", dist.Normal(f + 0.01 * z, 0.1).to_event(1), obs=y)

    posterior = sdvi(model).run(0, X, LINE)
    found = posterior.parameters["layer$params"]
    assert np.allclose(found.weight, 2.0, atol=0.01) and np.allclose(found.bias, 0.5, atol=0.01)
    posterior.save(tmp_path / "it.pathmix")
    again = pathmix.load(tmp_path / "it.pathmix", model, X, LINE)
    assert np.array_equal(again.predict(1, 9, X, LINE)["y"], posterior.predict(1, 9, X, LINE)["y"])


def test_parameters_that_have_not_settled_spoil_the_verdict(monkeypatch):
    monkeypatch.setattr("pathmix.methods.learning.learning._ROUNDS", 0)
    monkeypatch.setattr("pathmix.methods.learning.learning._WHOLE_ROUNDS", 1)
    posterior = sdvi(groups_numpyro).run(0, Y)
    assert not posterior.verdict.ok
    assert "have not settled after 1 round" in str(posterior.verdict)
    assert posterior.parameters["tau"] == 1.0  # at which the posterior is, wherever the next round would be


def test_ctrl_c_returns_what_was_reached(monkeypatch):
    def look(self, posterior, *, is_whole):
        if self.rounds == 2:
            reached.append(posterior.log_evidence)
            raise KeyboardInterrupt
        plainly(self, posterior, is_whole=is_whole)

    reached, plainly = [], State.look
    monkeypatch.setattr(State, "look", look)
    posterior = sdvi(groups_numpyro).run(0, Y)
    assert posterior.interrupted and not posterior.verdict.ok
    assert posterior.parameters["tau"] != 1.0 and [posterior.log_evidence] == reached
