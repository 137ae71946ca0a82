"""Draws that do not bite: no ordinary call gives a number where a site is missing."""

import numpy as np
import pandas as pd
import pytest

import pathmix
from pathmix import errors
from pathmix.posterior.draws import Draws

LABELS = ("k=1", "k=2")


@pytest.fixture
def draws():
    """`b` is missing from two of four draws, and `w` has one or two elements."""
    first, second = np.array([0, 2]), np.array([1, 3])
    return Draws(
        [
            (first, {"k": np.array([1, 1]), "b": np.array([5.0, 7.0]), "w": np.array([[1.0], [2.0]])}),
            (second, {"k": np.array([2, 2]), "n": np.array([3, 4]), "w": np.ones((2, 2))}),
        ],
        np.array([0, 1, 0, 1]),
        LABELS,
    )


@pytest.mark.parametrize(
    "function", [np.mean, np.median, np.std, np.sum, np.max, lambda b: np.percentile(b, 90), np.average]
)
def test_numpy_gives_nan_where_some_are_missing(draws, function):
    assert np.isnan(function(draws["b"])) and np.isnan(function(np.asarray(draws["b"])))
    assert np.isnan(function(draws["n"])) and np.isnan(function(draws["w"]))
    assert np.isfinite(function(draws["b"][draws.present("b")])) and np.isfinite(function(draws["k"]))


def test_whole_numbers_are_whole_where_none_is_missing(draws):
    assert draws["k"].dtype == np.int64 and draws["n"].dtype == np.float64
    assert draws.where_path("k=2")["n"].dtype == np.int64


def test_draws_of_one_path(draws):
    assert draws.where_path("k=1")["w"].shape == (2, 1) and "n" not in draws.where_path(0)
    np.testing.assert_array_equal(draws.where_path("k=1")["b"], [5.0, 7.0])
    assert draws.where_path(-1).path.tolist() == [1, 1]


@pytest.mark.parametrize(("path", "said"), [("k=3", "'k=1', 'k=2'"), (2, "2 paths"), ("k", "'k=1', 'k=2'")])
def test_a_path_that_is_not_there(draws, path, said):
    with pytest.raises(errors.ValueLookupError, match=said):
        draws.where_path(path)


def test_a_frame(draws):
    frame = draws.to_dataframe()
    assert list(frame.columns) == ["path", "k", "b", "w[0]", "w[1]", "n"]
    assert frame["path"].tolist() == ["k=1", "k=2", "k=1", "k=2"]
    assert frame["b"].isna().tolist() == [False, True, False, True]
    assert frame.groupby("path")["w[0]"].mean().to_dict() == {"k=1": 1.5, "k=2": 1.0}


def test_what_is_no_array_is_refused(draws):
    for make in (np.asarray, pd.DataFrame):
        with pytest.raises(TypeError, match="to_dataframe"):
            make(draws)


def test_files_keep_what_is_missing(draws, tmp_path):
    np.savez(tmp_path / "draws.npz", **draws)
    with np.load(tmp_path / "draws.npz") as read:
        np.testing.assert_array_equal(np.isnan(read["b"]), ~draws.present("b"))


def test_draws_one_by_one_are_as_their_paths_have_them(draws):
    first, second, *_ = draws.runs()
    assert dict(first) == {"k": 1, "b": 5.0, "w": np.array([1.0])} and first.path == "k=1"
    assert second["n"] == 3 and isinstance(second["n"], int) and second["w"].shape == (2,)
    assert "b" not in second and second.get("b") is None


def test_an_unknown_site(draws):
    with pytest.raises(KeyError, match=r"no site called 'c'.*b, k, n, w"):
        draws.present("c")
    assert "c" not in draws and draws.get("c") is None


def test_a_site_called_path():
    draws = Draws([(np.array([0]), {"path": np.array([3.0])})], np.array([0]), ("always",))
    frame = draws.to_dataframe()
    assert frame["path"].tolist() == ["always"] and frame["path (site)"].tolist() == [3.0]


def test_draws_are_the_same_only_as_themselves(draws):
    assert draws == draws and draws != Draws([], np.zeros(0, int))
    assert len({draws}) == 1


def test_draws_are_public():
    assert pathmix.Draws is Draws
