"""What users call their models with: lists of numbers and pandas objects are taken as arrays."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pandas as pd
import pyro
import pyro.distributions as pdist
import pytest
import torch

import pathmix
from pathmix.program.arguments import as_array, taken
from tests import exact

FRAME = pd.DataFrame({"x": [1.0, 2.0, 3.0], "y": [1.0, 2.0, 2.0]})
LIBRARIES = pytest.mark.parametrize(
    ("library", "d", "xp", "array"),
    [(numpyro, dist, jnp, jnp.asarray), (pyro, pdist, torch, torch.tensor)],
    ids=["numpyro", "pyro"],
)
SMALL = {"budget": 20, "weights": "elbo", "discovery": pathmix.PriorDiscovery(16)}


def observe(library, d):
    def model(y):
        z = library.sample("z", d.Normal(0.0, 1.0))
        library.sample("y", d.Normal(z, 1.0), obs=y)

    return model


def regress(library, d):
    def model(y):
        z = library.sample("z", d.Normal(0.0, 1.0))
        library.sample("y", d.Normal(z * y, 1.0), obs=y)

    return model


@LIBRARIES
@pytest.mark.parametrize("make", [observe, regress])
@pytest.mark.parametrize(
    "data",
    [
        [1.0, 2.0, 4.0],
        [1, 2, 4],
        [[1.0, 2.0], [3.0, 4.0]],
        [np.float32(1.0), 2],
        pd.Series([1.0, 2.0, 4.0], index=["a", "b", "c"]),
        pd.Series([1, 2, None], dtype="Int64").fillna(4),
        FRAME,
    ],
    ids=["list", "ints", "nested", "mixed", "series", "nullable", "frame"],
)
def test_data_is_taken_as_an_array(library, d, xp, array, make, data):
    plain = array(np.asarray(data, dtype=float))
    model = make(library, d)
    assert exact.fit(model, data, **SMALL).elbo == exact.fit(model, plain, **SMALL).elbo


@pytest.mark.parametrize(
    "value",
    [
        ["a", "b"],
        [None, 1.0],
        [],
        [{"x": 1}],
        (3, 2),
        "text",
        None,
        pd.Series(["a", "b"]),
        pd.Series([1.0, "b"]),
    ],
    ids=str,
)
def test_what_is_no_data_stays_as_it_is(value):
    assert as_array(value) is None
    kept = taken((value,), jnp.asarray, "arrays")[0]
    assert type(kept) is type(value) and str(kept) == str(value)


def test_data_inside_other_arguments():
    found = taken({"data": ([1.0, 2.0], ["a"], {"s": FRAME["x"]})}, np.asarray, "arrays")
    data, names, inner = found["data"]
    ragged = taken([[1.0], [1.0, 2.0]], np.asarray, "arrays")
    assert [part.shape for part in ragged] == [(1,), (2,)]
    assert isinstance(data, np.ndarray) and names == ["a"] and isinstance(inner["s"], np.ndarray)


@LIBRARIES
@pytest.mark.parametrize(
    "get", [lambda df: (df["x"], df["y"]), lambda df: (df.x, df.y)], ids=["item", "attribute"]
)
def test_columns_of_a_frame_are_arrays_where_the_program_needs_them(library, d, xp, array, get):
    def model(df):
        z = library.sample("z", d.Normal(0.0, 1.0))
        x, y = get(df)
        assert len(df) == 3
        library.sample("y", d.Normal(z * x, 1.0), obs=y)

    def plain(x, y):
        z = library.sample("z", d.Normal(0.0, 1.0))
        library.sample("y", d.Normal(z * x, 1.0), obs=y)

    wanted = exact.fit(plain, *(array(FRAME[name].to_numpy()) for name in ("x", "y")), **SMALL).elbo
    assert exact.fit(model, FRAME, **SMALL).elbo == wanted


@LIBRARIES
def test_a_frame_stays_one_where_the_program_treats_it_as_one(library, d, xp, array):
    """The mean of an array would be over all columns, that of a frame is by column."""
    seen = []

    def model(df):
        seen.append(type(df))
        z = library.sample("z", d.Normal(0.0, 1.0))
        centred = df - df.mean()
        library.sample("y", d.Normal(z * array(centred["x"].to_numpy()), 1.0), obs=df["y"])

    exact.fit(model, FRAME, **SMALL)
    assert set(seen[-3:]) == {pd.DataFrame}


@LIBRARIES
def test_a_frame_as_a_matrix(library, d, xp, array):
    def model(x, y):
        w = library.sample("w", d.Normal(0.0, 1.0).expand([2]).to_event(1))
        library.sample("y", d.Normal(x @ w, 1.0), obs=y)

    plain = array(FRAME.to_numpy()), array(FRAME["y"].to_numpy())
    assert exact.fit(model, FRAME, FRAME["y"], **SMALL).elbo == exact.fit(model, *plain, **SMALL).elbo


@LIBRARIES
def test_predictions_take_new_data_in_the_same_way(library, d, xp, array):
    def model(df, y=None):
        z = library.sample("z", d.Normal(0.0, 1.0))
        with library.plate("rows", len(df)):
            library.sample("y", d.Normal(z * df["x"], 0.1), obs=y)

    posterior = exact.fit(model, FRAME, [1.0, 2.0, 2.0], **SMALL)
    assert posterior.predict(0, 5, FRAME[:2])["y"].shape == (5, 2)
    assert posterior.log_likelihood(0, 5, FRAME[:2], [1.0, 2.0]).shape == (5,)


def test_numpys_arrays_stay_numpys_in_pyro_programs():
    def model(x):
        z = pyro.sample("z", pdist.Normal(0.0, 1.0))
        pyro.sample("y", pdist.Normal(z * torch.from_numpy(x), 1.0), obs=x)

    assert np.isfinite(exact.fit(model, np.ones(3), **SMALL).elbo)


def test_nothing_is_converted_behind_a_programs_back():
    """A key among the arguments, say, is none of these."""
    key = jax.random.key(0)
    assert taken((key, (2, 3)), jnp.asarray, "arrays") == (key, (2, 3))
