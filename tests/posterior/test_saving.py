"""What a file gives back: the same weights, guides, draws and predictions, to the last bit."""

import hashlib
import json
import pickle
import subprocess
import sys
from functools import cache

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pyro
import pytest
import torch

import pathmix
from pathmix.errors import ChangedError, FileError, MissingModelError, OptionError, PathmixError
from pathmix.methods.dcc import RandomWalk
from tests import exact
from tests.zoo import programs, pyro_programs

X, Y = np.linspace(-1, 1, 12), np.linspace(-1, 1, 12) ** 2


def deterministic(y):
    """Of a general region, with deterministic sites, a support that depends on another site, and a vector."""
    a = numpyro.sample("a", dist.Normal(0.0, 1.0))
    b = numpyro.sample("b", dist.Uniform(-2.0, jnp.exp(a)))
    numpyro.deterministic("product", a * b)
    if a + b > 0.5:
        numpyro.deterministic("square", numpyro.sample("v", dist.Normal(0.0, 1.0).expand([3])) ** 2)
    numpyro.sample("y", dist.Normal(a, 1.0), obs=y)


def masked(y):
    """One element of z never reaches the data."""
    wide = numpyro.sample("wide", dist.Bernoulli(0.5))
    with numpyro.handlers.mask(mask=jnp.array([True, False, True])):
        z = numpyro.sample("z", dist.Normal(0.0, 3.0 if wide else 1.0).expand([3]).to_event(0))
    numpyro.deterministic("doubled", 2 * z)
    numpyro.sample("y", dist.Normal(z[0] + z[2], 1.0), obs=y)


def modes(y):
    """Its evidence is by importance sampling, so that particles stand for it."""
    z = numpyro.sample("z", dist.Normal(0.0, 3.0))
    numpyro.sample("y", dist.Normal(z**2 if numpyro.sample("k", dist.Bernoulli(0.5)) else z, 0.3), obs=y)


def calls_back(y):
    """Computes with an operation that only PyTorch has."""
    z = pyro.sample("z", pyro.distributions.Normal(0.0, 1.0))
    peak = torch.cummax(torch.stack([z, 2 * z]), dim=0).values[1]
    pyro.sample("y", pyro.distributions.Normal(peak, 1.0), obs=torch.tensor(y))


def fitted(model, *args, **options):
    return exact.fit(model, *args, budget=10_000, **options)


def same(one, other):
    assert list(one) == list(other) and np.array_equal(one.path, other.path)
    for name in one:
        assert one[name].dtype == other[name].dtype
        assert np.array_equal(one.present(name), other.present(name))
        assert one[name].tobytes() == other[name].tobytes()


CASES = {
    "box": (programs.two_branches, (2.0,), {}),
    "box in Pyro": (pyro_programs.two_branches, (2.0,), {}),
    "general": (deterministic, (1.0,), {}),
    "general in Pyro": (pyro_programs.sum_branch, (2.0,), {}),
    "inert": (masked, (1.0,), {}),
    "particles": (modes, (4.0,), {}),
    "discrete": (programs.same_addresses, (2.0,), {}),
    "single precision": (programs.two_branches, (2.0,), {"precision": "float32"}),
    "flow": (programs.two_branches, (2.0,), {"guide": "flow"}),
    "low rank": (programs.polynomial, (X, Y), {"guide": "lowrank"}),
    "ELBO": (programs.two_branches, (2.0,), {"weights": "elbo"}),
    "supports": (pyro_programs.nested_supports, (0.4,), {}),
}


@cache
def posterior_of(case):
    model, args, options = CASES[case]
    return fitted(model, *args, **options)


@pytest.mark.parametrize("case", CASES)
def test_everything_is_the_same(case, tmp_path):
    model, args, _ = CASES[case]
    posterior = posterior_of(case)
    posterior.save(tmp_path / "file")
    again = pathmix.load(tmp_path / "file", model, *args)
    assert str(again) == str(posterior) and again.weights == posterior.weights
    assert again.verdict == posterior.verdict and again.discovery == posterior.discovery
    assert again.weight_errors == posterior.weight_errors and again.timings == posterior.timings
    for one, other in zip(posterior.paths, again.paths, strict=True):
        assert one.path == other.path and one.region == other.region and one.status is other.status
        assert np.array_equal(one.history, other.history)
        assert one.guide.family == other.guide.family and one.guide.layout == other.guide.layout
    same(posterior.sample(1, 600), again.sample(1, 600))
    same(posterior.predict(2, 40, *args), again.predict(2, 40, *args))
    draws = posterior.sample(3, 1)
    values = {name: draws[name][0] for name in draws if draws.present(name).all()}
    assert again.log_prob(values) == posterior.log_prob(values)
    assert np.array_equal(posterior.log_likelihood(4, 9, *args), again.log_likelihood(4, 9, *args))
    again.save(tmp_path / "second")
    assert (tmp_path / "second").read_bytes() == (tmp_path / "file").read_bytes()


SCRIPT = """
import hashlib, json, sys, pathmix
found = []
for file in sys.argv[1:]:
    posterior = pathmix.load(file)
    draws = posterior.sample(1, 500)
    digest = hashlib.sha256(b"".join(draws[name].tobytes() for name in draws)).hexdigest()
    found.append([posterior.weights, str(posterior), digest])
print(json.dumps(found))
"""


@pytest.mark.parametrize("case", ["box", "general", "particles", "box in Pyro"])
def test_another_process_without_the_model(case, tmp_path):
    """Draws have the same bits there."""
    posterior = posterior_of(case)
    posterior.save(tmp_path / "file")
    draws = posterior.sample(1, 500)
    digest = hashlib.sha256(b"".join(draws[name].tobytes() for name in draws)).hexdigest()
    command = [sys.executable, "-c", SCRIPT, str(tmp_path / "file")]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    assert json.loads(done.stdout) == [[posterior.weights, str(posterior), digest]]


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    file = tmp_path_factory.mktemp("saved") / "file"
    posterior_of("box").save(file)
    return posterior_of("box"), file


def test_what_needs_the_model_says_so(saved):
    again = pathmix.load(saved[1])
    for ask in (
        lambda: again.predict(0, 3, 1.0),
        lambda: again.log_likelihood(0, 3, 1.0),
        lambda: again.log_prob({"x": 1.0, "z2": 1.0}),
        lambda: again.as_pyro_guide(),
    ):
        with pytest.raises(MissingModelError, match=r"pathmix\.load\(file, model"):
            ask()


def test_inert_elements_need_the_model(tmp_path):
    posterior_of("inert").save(tmp_path / "file")
    with pytest.raises(MissingModelError):
        pathmix.load(tmp_path / "file").sample(0, 3)


def test_another_model_or_other_data_are_refused(saved):
    with pytest.raises(ChangedError, match="source of the model"):
        pathmix.load(saved[1], programs.sum_branch, 2.0)
    with pytest.raises(ChangedError, match="arguments"):
        pathmix.load(saved[1], programs.two_branches, 2.5)
    with pytest.raises(OptionError, match="comes the model"):
        pathmix.load(saved[1], None, 2.0)


def test_a_damaged_file_is_noticed(saved, tmp_path):
    whole = saved[1].read_bytes()
    generator, damaged = np.random.default_rng(0), tmp_path / "damaged"
    for end in generator.integers(0, len(whole), size=40):
        damaged.write_bytes(whole[:end])
        with pytest.raises(FileError, match="damaged is damaged"):
            pathmix.load(damaged)
    noticed = 0
    for place in generator.integers(0, len(whole), size=200):
        changed = bytearray(whole)
        changed[place] ^= 1 << generator.integers(8)
        damaged.write_bytes(changed)
        try:
            again = pathmix.load(damaged)
        except FileError:
            noticed += 1
        else:  # what was changed means nothing, such as a date
            same(again.sample(0, 5), saved[0].sample(0, 5))
    assert noticed > 150


def test_files_that_are_none(saved, tmp_path):
    with pytest.raises(FileError, match="No such file"):
        pathmix.load(tmp_path / "none")
    with pytest.raises(FileError, match="No such file"):
        saved[0].save(tmp_path / "no folder" / "file")
    (tmp_path / "text").write_text("hello")
    with pytest.raises(FileError, match="not a file of pathmix"):
        pathmix.load(tmp_path / "text")
    (tmp_path / "pickle").write_bytes(pickle.dumps(exit))
    with pytest.raises(FileError, match="not a file of pathmix"):
        pathmix.load(tmp_path / "pickle")


def test_an_old_file_stays_until_the_new_one_is_complete(saved, tmp_path, monkeypatch):
    saved[0].save(tmp_path / "file")
    before = (tmp_path / "file").read_bytes()

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(FileError, match="No space left"):
        saved[0].save(tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_pickles(saved):
    again = pickle.loads(pickle.dumps(saved[0]))
    same(again.sample(1, 100), saved[0].sample(1, 100))
    same(again.predict(1, 10, 2.0), saved[0].predict(1, 10, 2.0))

    def local(y):
        numpyro.sample("y", dist.Normal(numpyro.sample("z", dist.Normal(0.0, 1.0)), 1.0), obs=y)

    with pytest.raises(PathmixError, match=r"posterior\.save"):
        pickle.dumps(fitted(local, 1.0))


def test_chains(tmp_path):
    walk = RandomWalk()
    posterior = pathmix.DCC(programs.two_branches, kernel=walk, iterations=4, progress=False).run(0, 2.0)
    posterior.save(tmp_path / "file")
    again = pathmix.load(tmp_path / "file", programs.two_branches, 2.0)
    same(posterior.sample(1, 50), again.sample(1, 50))
    with pytest.raises(PathmixError, match="could not be saved"):
        again.log_prob({"x": 1.0, "z2": 1.0})


@pytest.mark.filterwarnings("ignore::pathmix.PathmixWarning")
def test_what_calls_back_is_drawn_from_and_has_no_density(tmp_path):
    posterior = fitted(calls_back, 1.0)
    posterior.save(tmp_path / "file")
    same(pathmix.load(tmp_path / "file").sample(1, 50), posterior.sample(1, 50))
    with pytest.raises(PathmixError, match="could not be saved"):
        pathmix.load(tmp_path / "file", calls_back, 1.0).log_prob({"z": 0.5})


def test_stacked_weights_stay(tmp_path):
    stacked = fitted(programs.polynomial, X, Y).reweight("stacking")
    stacked.save(tmp_path / "file")
    again = pathmix.load(tmp_path / "file")
    assert again.weights == stacked.weights and str(again.verdict) == str(stacked.verdict)
    assert again.reweight("evidence").weights == stacked.reweight("evidence").weights
    with pytest.raises(PathmixError, match="before it is saved"):
        again.reweight("stacking")
