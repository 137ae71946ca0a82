"""A file is not put together with another program or other data than its own, wherever they changed."""

import functools
import sys
import threading
from dataclasses import dataclass, replace

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pandas
import pyro
import pyro.distributions
import pytest
import torch

import pathmix
from pathmix.errors import ChangedError, PathmixWarning
from pathmix.posterior.saving import Fingerprints, fingerprints
from tests import exact

SCALE = 1.0


def scaled(k):
    return SCALE * k


def uses_a_helper(y):
    k = numpyro.sample("k", dist.Bernoulli(0.5))
    a = numpyro.sample("a", dist.Normal(0.0, 1.0))
    numpyro.sample("y", dist.Normal(a + scaled(k), 1.0), obs=y)


def uses_a_helper_in_pyro(y):
    k = pyro.sample("k", pyro.distributions.Bernoulli(torch.tensor(0.5)))
    a = pyro.sample("a", pyro.distributions.Normal(0.0, 1.0))
    pyro.sample("y", pyro.distributions.Normal(a + scaled(k), 1.0), obs=torch.tensor(y))


def branches_by_a_helper(y):
    a = numpyro.sample("a", dist.Normal(0.0, 1.0))
    b = numpyro.sample("b", dist.Normal(0.0, 1.0)) if scaled(1.0) > 1.5 else 0.0
    numpyro.sample("y", dist.Normal(a + b, 1.0), obs=y)


def scaled_mean(y, scale):
    a = numpyro.sample("a", dist.Normal(scale, 1.0))
    numpyro.sample("y", dist.Normal(a, 1.0), obs=y)


def make(scale):
    def model(y):
        scaled_mean(y, scale)

    return model


class Model:
    def __init__(self, scale):
        self.scale = scale

    def __call__(self, y):
        scaled_mean(y, self.scale)


@dataclass
class Record:
    y: float
    lock: object = None


def of_a_record(record):
    scaled_mean(record.y, 1.0)


def of_a_table(table):
    scaled_mean(jnp.asarray(table["y"].to_numpy()), 1.0)


def of_a_tensor(y):
    a = pyro.sample("a", pyro.distributions.Normal(0.0, 1.0))
    pyro.sample("y", pyro.distributions.Normal(a, 1.0), obs=y.detach())


def saved(tmp_path, model, *args, **options):
    posterior = exact.fit(model, *args, **{"budget": 200, "weights": "elbo", **options})
    posterior.save(tmp_path / "file")
    return posterior, tmp_path / "file"


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (uses_a_helper, "its log likelihood is"),
        (uses_a_helper_in_pyro, "its log likelihood is"),
        (branches_by_a_helper, "draws of the path .* ValueLookupError: The values lack the site 'b'"),
    ],
)
def test_a_helper_that_changed(model, said, tmp_path, monkeypatch):
    posterior, file = saved(tmp_path, model, 2.0)
    assert pathmix.load(file, model, 2.0).weights == posterior.weights
    monkeypatch.setattr(sys.modules[__name__], "SCALE", 2.0)
    with pytest.raises(ChangedError, match=f"not the one that .*file was written with.*{said}"):
        pathmix.load(file, model, 2.0)
    assert pathmix.load(file).weights == posterior.weights


@pytest.mark.parametrize(
    "given",
    [make, Model, lambda scale: functools.partial(scaled_mean, scale=scale)],
    ids=["closure", "object", "partial"],
)
def test_what_a_model_takes_along(given, tmp_path):
    posterior, file = saved(tmp_path, given(1.0), 2.0)
    assert pathmix.load(file, given(1.0), 2.0).weights == posterior.weights
    with pytest.raises(ChangedError, match="takes along beside its source"):
        pathmix.load(file, given(5.0), 2.0)
    with pytest.raises(ChangedError, match="another model"):
        pathmix.SDVI(given(5.0), weights="elbo").resume(posterior)
    options = {"checkpoint": tmp_path / "folder", "weights": "elbo", "progress": False}
    few = pathmix.Uniform(40)
    pathmix.SDVI(given(1.0), allocation=few, **options).run(0, 2.0)
    pathmix.SDVI(given(1.0), allocation=few, **options).run(0, 2.0)
    with pytest.raises(ChangedError, match="what the model takes along changed"):
        pathmix.SDVI(given(5.0), allocation=few, **options).run(0, 2.0)


def table(*y):
    return pandas.DataFrame({"name": ["u", "v"], "y": y})


@pytest.mark.parametrize(
    ("model", "one", "other"),
    [
        (of_a_record, Record(1.0), Record(-5.0)),
        (of_a_table, table(1.0, 2.0), table(1.0, -5.0)),
        (of_a_tensor, torch.tensor(1.0, requires_grad=True), torch.tensor(4.0, requires_grad=True)),
    ],
)
def test_data_that_are_no_plain_arrays(model, one, other, tmp_path):
    posterior, file = saved(tmp_path, model, one)
    assert pathmix.load(file, model, one).weights == posterior.weights
    with pytest.raises(ChangedError, match="arguments of the model are not those"):
        pathmix.load(file, model, other)


def test_arguments_that_cannot_be_compared_are_named(tmp_path):
    posterior, file = saved(tmp_path, of_a_record, Record(1.0, threading.Lock()))
    with pytest.warns(PathmixWarning, match=r"Of \[0\] \(lock\) among the arguments, only the type"):
        assert pathmix.load(file, of_a_record, Record(1.0, threading.Lock())).weights == posterior.weights
    with pytest.raises(ChangedError, match="its log likelihood is"):
        pathmix.load(file, of_a_record, Record(1.5, threading.Lock()))


def learning(y):
    spread = numpyro.param("spread", 1.0, constraint=dist.constraints.positive)
    scaled_mean(y, spread)


def stored(y):
    center = pyro.param("center", torch.tensor(1.0))
    a = pyro.sample("a", pyro.distributions.Normal(center, 1.0))
    pyro.sample("y", pyro.distributions.Normal(a, 1.0), obs=torch.tensor(y))


MODULE = torch.nn.Linear(1, 1)


def shifted_by_a_module(y):
    module = pyro.module("module", MODULE)
    a = pyro.sample("a", pyro.distributions.Normal(module(torch.ones(1))[0], 1.0))
    pyro.sample("y", pyro.distributions.Normal(a, 1.0), obs=torch.tensor(y))


def subsampled(y):
    a = numpyro.sample("a", dist.Normal(0.0, 1.0))
    with numpyro.plate("rows", len(y), subsample_size=4):
        batch = numpyro.subsample(y, event_dim=0)
        z = numpyro.sample("z", dist.Normal(a, 1.0))
        numpyro.sample("y", dist.Normal(z, 1.0), obs=batch)


@pytest.mark.parametrize(
    ("model", "y", "options"),
    [
        (learning, 2.0, {"parameters": "learn"}),
        (learning, 2.0, {"parameters": "per-path"}),
        (learning, 2.0, {}),
        (stored, 2.0, {"parameters": "learn"}),
        (subsampled, np.linspace(-1.0, 1.0, 12), {}),
        (learning, 2.0, {"precision": "float32"}),
    ],
)
def test_the_same_program_is_the_same(model, y, options, tmp_path):
    posterior, file = saved(tmp_path, model, y, **options)
    again = pathmix.load(file, model, y)
    assert again._spot_checks and again.weights == posterior.weights


@pytest.mark.parametrize("values", [(3.0, 3.0), (3.0, 7.0)])
def test_what_holds_parameters_is_not_the_program(values, tmp_path):
    """Parameters are those of the run, in predictions too: stores and modules may have others."""
    for model in (stored, shifted_by_a_module):
        pyro.get_param_store().clear()
        pyro.param("center", torch.tensor(values[0]))
        with torch.no_grad():
            MODULE.bias.fill_(values[0])
        posterior, file = saved(tmp_path, model, 2.0)
        replicates = posterior.predict(0, 20)["y"]
        pyro.get_param_store().clear()
        with torch.no_grad():
            MODULE.bias.fill_(values[1])
        again = pathmix.load(file, model, 2.0)
        assert again.parameters.keys() == posterior.parameters.keys()
        assert np.allclose(again.predict(0, 20)["y"], replicates, rtol=1e-5)


def test_rounding_is_no_change(tmp_path):
    posterior, file = saved(tmp_path, stored, 2.0)
    known = pathmix.load(file)._spot_checks or ()
    assert known
    for off, same in ((1e-6, True), (1e-2, False)):
        checks = tuple(one._replace(log_prior=one.log_prior + off) for one in known)
        replace(posterior, _spot_checks=checks).save(file)
        if same:
            assert pathmix.load(file, stored, 2.0).weights == posterior.weights
        else:
            with pytest.raises(ChangedError, match="its log prior is"):
                pathmix.load(file, stored, 2.0)


def test_files_of_earlier_versions_are_taken_as_they_were(tmp_path, monkeypatch):
    """They tell less."""
    posterior, file = saved(tmp_path, stored, 2.0)

    def less(program):
        return Fingerprints(*fingerprints(program)[:2])

    monkeypatch.setattr("pathmix.posterior.posterior.fingerprints", less)
    replace(posterior, _spot_checks=()).save(file)
    assert pathmix.load(file, stored, 2.0).weights == posterior.weights
