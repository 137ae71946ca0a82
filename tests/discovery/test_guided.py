"""Guided discovery: paths that the prior rarely visits are found by what their neighbours are worth."""

import itertools
import os
import signal
import sys
import weakref

import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pyro
import pyro.distributions as pdist
import pytest
import torch
from numpyro import sample
from scipy import stats

import pathmix
from pathmix.discovery.base import Rating
from pathmix.discovery.guided import GuidedExpedition
from pathmix.discovery.search import Search
from pathmix.errors import OptionError
from pathmix.frontends.recognise import bind
from pathmix.methods import scouting
from pathmix.program.seeds import Seed
from tests import exact

pytestmark = pytest.mark.usefixtures("engine")


@pytest.fixture
def ctrl_c():
    """As in a program of its own, whatever the test runner does with it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def geometric(y):
    count = 0
    while sample(f"go_{count}", dist.Bernoulli(0.5)):
        count += 1
    sample("y", dist.Normal(sample("x", dist.Normal(count, 1)), 0.5), obs=y)


def geometric_in_pyro(y):
    count = 0
    while pyro.sample(f"go_{count}", pdist.Bernoulli(0.5)):
        count += 1
    pyro.sample("y", pdist.Normal(pyro.sample("x", pdist.Normal(float(count), 1)), 0.5), obs=torch.tensor(y))


@pytest.mark.parametrize("model", [geometric, geometric_in_pyro])
def test_a_count_that_the_prior_never_reaches(model):
    """Twenty steps have a prior mass of 1e-6; the default finds them."""
    posterior = exact.fit(model, 20.0, budget=2_000, discovery=pathmix.Guided())
    counts = np.arange(60)
    weights = exact.softmax(-(counts + 1) * np.log(2) + stats.norm.logpdf(20, counts, np.sqrt(1.25)))
    found = np.zeros(60)
    for path in posterior.paths:
        found[int(sum(path.pinned.values()))] += path.weight
    assert np.abs(found - weights).sum() / 2 < 5e-3
    assert posterior.discovery.samples == 1_000 and posterior.discovery.round_shares[0] > 0.5


def test_a_count_without_any_continuous_site():
    def model(y):
        count = 0
        while sample(f"go{count}", dist.Bernoulli(0.5)):
            count += 1
        sample("y", dist.Normal(count, 1.0), obs=y)

    posterior = exact.fit(model, 20.0, budget=100, discovery=pathmix.Guided())
    counts = np.arange(60)
    weights = exact.softmax(-(counts + 1) * np.log(2) + stats.norm.logpdf(20, counts))
    found = np.zeros(60)
    for path in posterior.paths:
        found[len(path.addresses) - 1] += path.weight
    assert np.abs(found - weights).sum() / 2 < 1e-3


def test_continuous_branches_below_a_count_that_no_prior_run_reaches():
    """Their cells are known from led runs alone, which tell nothing of the branches' prior mass."""

    def model(y):
        count = 0
        while sample(f"go_{count}", dist.Bernoulli(0.3)):
            count += 1
        x = sample("x", dist.Normal(count, 1))
        z = sample("low" if x < count else "high", dist.Normal(x, 1))
        sample("y", dist.Normal(z, 0.5), obs=y)

    posterior = exact.fit(model, 16.0, budget=500, discovery=pathmix.Guided(300))
    counts = np.arange(60)
    weights = exact.softmax(counts * np.log(0.3) + stats.norm.logpdf(16, counts, np.sqrt(2.25)))
    found = np.zeros(60)
    for path in posterior.paths:
        found[int(sum(path.pinned.values()))] += path.weight
    assert np.abs(found - weights).sum() / 2 < 0.02
    assert 0 < posterior.discovery.unseen_mass <= posterior.discovery.unseen_bound < 1


def test_nothing_is_looked_for_where_nothing_is_unseen():
    def model(y):
        mean = 3.0 * sample("which", dist.Bernoulli(0.5))
        sample("y", dist.Normal(sample("x", dist.Normal(mean, 1)), 1), obs=y)

    report = exact.fit(model, 1.0, budget=500, discovery=pathmix.Guided()).discovery
    assert report.unseen_bound == 0 and report.round_shares == ()


def test_correlated_predictors_that_prior_runs_hardly_reach():
    """1,024 models, of which a few carry the posterior; the truth is a sum over all of them."""
    generator, count = np.random.default_rng(0), 10
    x = generator.normal(size=(40, count)) + 0.8 * generator.normal(size=(40, 1))
    y = x[:, 2] - x[:, 7] + 0.7 * x[:, 9] + 0.5 * generator.normal(size=40)

    def model(x, y):
        used = [sample(f"used_{j}", dist.Bernoulli(0.1)) for j in range(count)]
        mean = sum((sample(f"w_{j}", dist.Normal(0, 1)) * x[:, j] for j in range(count) if used[j]), 0.0)
        sample("y", dist.Normal(mean * jnp.ones(len(y)), 0.5), obs=y)

    logs = {}
    for code in range(2**count):
        used = tuple((code >> j) & 1 for j in range(count))
        chosen = x[:, np.flatnonzero(used)]
        covariance = 0.25 * np.eye(40) + chosen @ chosen.T
        prior = np.sum(np.where(used, np.log(0.1), np.log(0.9)))
        _, det = np.linalg.slogdet(covariance)
        fit = y @ np.linalg.solve(covariance, y)
        logs[used] = prior - 0.5 * (fit + det + 40 * np.log(2 * np.pi))
    weights = dict(zip(logs, exact.softmax(list(logs.values())), strict=True))
    posterior = exact.fit(model, x, y, budget=4_000, discovery=pathmix.Guided(60, listed=20))
    found = {tuple(int(path.pinned[f"used_{j}"]) for j in range(count)): path for path in posterior.paths}
    assert sum(weights[used] for used in found) > 0.95
    for used, path in found.items():
        if weights[used] > 0.01:
            assert path.log_evidence == pytest.approx(logs[used], abs=max(5 * path.log_evidence_error, 1e-6))
    # What was looked at once and set aside is right, too, or in doubt.
    aside = [(used, path) for used, path in found.items() if "first look" in path.message]
    assert aside
    for used, path in aside:
        assert path.doubts or path.log_evidence == pytest.approx(logs[used], abs=0.5)


def test_thirty_correlated_predictors():
    """A billion models; the truth is a sum over the 768,212 that have at most six predictors."""
    generator, count, rows = np.random.default_rng(7), 30, 60
    groups = generator.normal(size=(rows, 6))[:, generator.integers(0, 6, size=count)]
    x = 0.8 * groups + 0.6 * generator.normal(size=(rows, count))
    y = x[:, [3, 11, 20]] @ np.array([1.0, -0.8, 0.6]) + 0.7 * generator.normal(size=rows)

    def model(x, y):
        used = [sample(f"used_{j}", dist.Bernoulli(0.1)) for j in range(count)]
        mean = sum((sample(f"w_{j}", dist.Normal(0, 1)) * x[:, j] for j in range(count) if used[j]), 0.0)
        sample("y", dist.Normal(mean * jnp.ones(len(y)), 0.7), obs=y)

    products, with_data = x.T @ x / 0.49, x.T @ y / 0.49
    logs = {(): count * np.log(0.9) + float(np.sum(-0.5 * y**2 / 0.49 - 0.5 * np.log(2 * np.pi * 0.49)))}
    for size in range(1, 7):
        models = np.array(list(itertools.combinations(range(count), size)))
        inner = products[models[:, :, None], models[:, None, :]] + np.eye(size)
        own = with_data[models]
        gain = 0.5 * np.sum(own * np.linalg.solve(inner, own[..., None])[..., 0], axis=1)
        found = logs[()] + gain - 0.5 * np.linalg.slogdet(inner)[1] + size * np.log(0.1 / 0.9)
        logs.update(zip(map(tuple, models.tolist()), found.tolist(), strict=True))
    weights = dict(zip(logs, exact.softmax(list(logs.values())), strict=True))
    ranked = sorted(weights, key=lambda one: -weights[one])
    credible = ranked[: int(np.searchsorted(np.cumsum([weights[one] for one in ranked]), 0.95)) + 1]
    posterior = exact.fit(model, x, y)
    known = {tuple(j for j in range(count) if path.pinned[f"used_{j}"]): path for path in posterior.paths}
    assert set(credible) <= set(known)
    assert sum(abs(known[one].weight - weights[one]) for one in credible) / 2 < 0.03
    assert not posterior.verdict.ok  # much of the prior is unseen


@pytest.mark.usefixtures("ctrl_c")
@pytest.mark.parametrize("looks", [1, 2])
def test_ctrl_c_between_rounds_keeps_what_was_looked_at(looks, monkeypatch):
    """Wherever it comes, in a run of the program too; nothing is trained then."""
    further, done = GuidedExpedition.further, []

    def interrupted(self, rating):
        done.append(self)
        if len(done) == looks:
            os.kill(os.getpid(), signal.SIGINT)
        return further(self, rating)

    monkeypatch.setattr(GuidedExpedition, "further", interrupted)
    posterior = pathmix.SDVI(geometric, progress=False).run(0, 20.0)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert posterior.interrupted and not posterior.verdict.ok and len(done) <= looks + 1
    best = posterior.paths[0]
    count = int(sum(best.pinned.values()))
    truth = -(count + 1) * np.log(2) + stats.norm.logpdf(20, count, np.sqrt(1.25))
    assert best.log_evidence == pytest.approx(truth, abs=5 * best.log_evidence_error)
    assert best.steps == 0 and "Interrupted after a first look" in best.message
    seen = sum(path.weight > 0 for path in posterior.paths)
    assert any(f"{seen} have the evidence of a first look" in note for note in posterior.notes)
    assert not posterior.verdict.resolved
    assert np.all(np.isfinite(posterior.sample(0, 10)["x"]))


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_while_new_paths_are_trained_ends_the_search(monkeypatch):
    """Nobody waits for further paths, nor for the weights of those that are far behind."""
    monkeypatch.setattr(scouting, "QUICK_VOLUME", 0)
    optimise, further, ratings = scouting.optimise, GuidedExpedition.further, []

    def interrupted(workshop, *args, **options):
        optimise(workshop, *args, **options)
        os.kill(os.getpid(), signal.SIGINT)

    def told(self, rating):
        ratings.append(rating)
        return further(self, rating)

    monkeypatch.setattr(scouting, "optimise", interrupted)
    monkeypatch.setattr(scouting.Scouting, "has_found", lambda self: True)
    monkeypatch.setattr(GuidedExpedition, "further", told)
    posterior = pathmix.SDVI(geometric, progress=False).run(0, 20.0)
    assert posterior.interrupted and not any(rating.worth for rating in ratings)
    best = posterior.paths[0]
    assert best.steps > 0 and np.isfinite(best.elbo)
    behind = [
        path for path in posterior.paths if path.history.size and path.history[-50:].mean() < best.elbo - 60
    ]
    assert behind and all(path.weight == 0 and not np.isfinite(path.elbo) for path in behind)


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_before_anything_is_known_is_an_interrupt(monkeypatch):
    def interrupted(*_):
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(Search, "from_prior", interrupted)
    with pytest.raises(KeyboardInterrupt):
        pathmix.SDVI(geometric, progress=False).run(0, 20.0)


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_inside_of_a_finalizer_is_not_lost(monkeypatch):
    """Python drops what is raised there."""
    from_prior, dropped = Search.from_prior, []

    def interrupted(self, samples):
        thing = Search.__new__(Search)
        told = weakref.ref(thing, lambda _: os.kill(os.getpid(), signal.SIGINT))
        del thing
        assert told() is None and dropped
        return from_prior(self, samples)

    monkeypatch.setattr(sys, "unraisablehook", dropped.append)
    monkeypatch.setattr(Search, "from_prior", interrupted)
    with pytest.raises(KeyboardInterrupt):
        pathmix.SDVI(geometric, progress=False).run(0, 20.0)


def test_the_same_seed_gives_the_same_paths():
    one, other = (
        exact.fit(geometric, 12.0, budget=500, discovery=pathmix.Guided(samples=300)) for _ in range(2)
    )
    assert [path.path for path in one.paths] == [path.path for path in other.paths]
    assert one.weights == other.weights


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cover": 1.5}, "at most 1"),
        ({"rounds": 0}, "rounds"),
        ({"round_paths": 2.5}, "round_paths"),
        ({"samples": -1}, r"Guided\(samples=...\)"),
    ],
)
def test_options_are_checked(options, message):
    with pytest.raises(OptionError, match=message):
        pathmix.Guided(**options)


def spreading(total):
    """A tree, of which the data say hardly more than the prior: all its sites are discrete."""

    def size(name):
        if sample(f"splits_{name}", dist.Bernoulli(0.3)):
            return size(f"{name}l") + size(f"{name}r")
        return 1

    sample("total", dist.Normal(float(size("s")), 4.0), obs=total)


def coins():
    """Its sites do not nest."""
    for number in range(12):
        if sample(f"coin_{number}", dist.Bernoulli(0.3)):
            sample(f"x_{number}", dist.Normal(0.0, 1.0))


@pytest.mark.parametrize(("model", "args", "rounds"), [(coins, (), 2), (spreading, (3.0,), 8)])
def test_rounds_in_vain_end_the_search(model, args, rounds):
    """Later in grammars, where long ways lead past bad paths."""
    guided = pathmix.Guided(20, listed=1, round_paths=4)
    expedition = guided.begin(bind(model, args), Seed.of(0), lambda slp, _: slp.path)
    found = expedition.search.slps
    best = list(found)[-1]
    while expedition.further(Rating({slp.path: 20.0 * (path == best) for path, slp in found.items()})):
        pass
    assert len(expedition.shares) == rounds


def test_what_is_next_to_the_best_small_trees_is_complete():
    """However much there is around large ones that are worth more."""
    leaves, plus, times = 4, 4, 5

    def value(name):
        probabilities = jnp.array([0.17] * leaves + [0.16, 0.16])
        kind = int(sample(f"{name}.kind", dist.Categorical(probs=probabilities)))
        if kind < leaves:
            return 1.0 + kind
        left, right = value(f"{name}.l"), value(f"{name}.r")
        return left + right if kind == plus else left * right

    def model(y):
        sample("y", dist.Normal(value("e") + sample("x", dist.Normal(0.0, 1.0)), 1.0), obs=y)

    guided = pathmix.Guided(40, listed=1, round_paths=32)
    expedition = guided.begin(bind(model, (1.0,)), Seed.of(0), lambda slp, _: slp.path)
    found = expedition.search.slps
    before, best = len(found), next(path for path in found if len(path.pinned) == 3)
    worth = {slp.path: float(len(path.pinned)) + (path == best) for path, slp in found.items()}
    assert expedition.further(Rating(worth))
    assert before < len(found) <= before + 32 + 8
    known, pinned = {frozenset(path.pinned) for path in found}, dict(best.pinned)
    for name in ("e.l.kind", "e.r.kind"):
        for kind in range(leaves):
            other = pinned | {name: kind}
            turned = other | {"e.l.kind": other["e.r.kind"], "e.r.kind": other["e.l.kind"]}
            assert known & {frozenset(other.items()), frozenset(turned.items())}
    assert frozenset((pinned | {"e.kind": plus + times - pinned["e.kind"]}).items()) in known


def test_two_rounds_are_enough_where_prior_runs_are_like_the_posterior():
    """In grammars there are eight otherwise."""
    guided = pathmix.Guided(300, listed=32, round_paths=16)
    posterior = pathmix.SDVI(spreading, discovery=guided, progress=False).run(0, 3.0)
    shares = posterior.discovery.round_shares
    assert posterior.discovery.unseen_bound > 0
    assert len(shares) >= 2 and sum(shares[-2:]) < 0.01
    assert all(sum(pair) >= 0.01 for pair in itertools.pairwise(shares[:-1]))
