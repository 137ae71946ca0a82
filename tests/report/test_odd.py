"""Reports of programs with odd names and numbers, for users with settings of their own."""

import re
import threading

import jax.numpy as jnp
import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest

import pathmix
import pathmix.plots
from pathmix.report import page


def odd(y):
    cost = 0.0
    if numpyro.sample("_k$a^$", dist.Bernoulli(0.4)):
        cost = numpyro.sample("cost$", dist.Normal(0, 1))
    level = numpyro.sample("数\\frac{$", dist.Normal(0, 1))
    numpyro.deterministic("odds", jnp.where(jnp.asarray(level) > 0, jnp.inf, 1.0))
    numpyro.sample("$y^$", dist.Normal(cost + level, 1), obs=y)


@pytest.fixture(scope="module")
def posterior():
    allocation = pathmix.SuccessiveHalving(budget=1_000)
    sdvi = pathmix.SDVI(odd, allocation=allocation, starts=1, label=lambda path: f"{path.text},\nand so on")
    return sdvi.run(0, np.array([0.3, 0.9]))


@pytest.fixture(scope="module")
def text(posterior):
    return page(posterior)


def test_names_are_no_mathematics(text):
    pictures = text[text.index('<div class="pictures">') :]
    assert pictures.count("_k$a^$=1, and so on</text>") >= 3  # weights, elbos, and the legend of a marginal
    assert "cost$</text>" in pictures and "数\\frac{$</text>" in pictures and "$y^$</text>" in pictures


def test_labels_are_on_one_line(posterior):
    assert sorted(posterior.weights) == ["_k$a^$=0, and so on", "_k$a^$=1, and so on"]


def test_infinite_numbers_have_a_place(posterior, text):
    assert re.search(r'<th scope="row">odds</th><td class="number">inf</td>', text)
    row = posterior.summary().loc["odds"]
    assert row["mean"] == np.inf and row["exists"] == pytest.approx(1)


def test_settings_of_the_user_have_no_say_and_are_left_alone(posterior, text):
    with plt.style.context("dark_background"):
        matplotlib.rcParams.update({"text.usetex": True, "savefig.facecolor": "red"})
        before = dict(matplotlib.rcParams)
        assert page(posterior) == text
        assert dict(matplotlib.rcParams) == before


def test_no_figure_stays_open(posterior, tmp_path):
    posterior.save(tmp_path / "fit")
    loaded = pathmix.load(tmp_path / "fit")
    before = plt.get_fignums()
    page(loaded)
    with pytest.raises(pathmix.PathmixError):
        pathmix.plots.predictive(loaded, "$y^$")
    with pytest.raises(pathmix.PathmixError, match="nothing"):
        pathmix.plots.marginal(loaded, "nothing")
    assert plt.get_fignums() == before


def test_without_a_window_in_any_thread(posterior, text, monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("pyplot was asked for a figure")

    monkeypatch.setattr(plt, "figure", refuse)
    pages = []
    thread = threading.Thread(target=lambda: pages.append(page(posterior)))
    thread.start()
    thread.join()
    assert pages == [text]


def test_sites_that_no_draw_has():
    def model(y):
        if numpyro.sample("far", dist.Bernoulli(0.5)):
            rare = numpyro.sample("rare", dist.Normal(100, 1))
            numpyro.sample("never", dist.Normal(rare, 1), obs=y)
        level = numpyro.sample("level", dist.Normal(0, 1))
        numpyro.sample("y", dist.Normal(level, 1), obs=y)

    allocation = pathmix.SuccessiveHalving(budget=1_000)
    text = page(pathmix.SDVI(model, allocation=allocation, starts=1).run(0, 1.0))
    assert "level, over the paths that have it" in text and "y as the posterior predicts it" in text
    assert "rare, over" not in text and "never as" not in text
