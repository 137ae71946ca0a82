"""Pictures that say what the posterior says, with few paths and with many."""

import sys

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest

import pathmix
from pathmix import plots
from pathmix.errors import MissingExtraError, PathmixError

X = np.random.default_rng(0).normal(size=(40, 8))
Y = X[:, 0] + 0.5 * X[:, 2] + np.random.default_rng(1).normal(size=40)


def selection(x, y):
    mean = np.zeros(len(y))
    for i in range(x.shape[1]):
        if numpyro.sample(f"on_{i}", dist.Bernoulli(0.4)):
            mean = mean + numpyro.sample(f"b_{i}", dist.Normal(0, 1)) * x[:, i]
    numpyro.sample("y", dist.Normal(mean, 1), obs=y)


@pytest.fixture(scope="module", params=[1, 4, 8], ids=["two paths", "16 paths", "256 paths"])
def posterior(request):
    fit = pathmix.SDVI(
        selection,
        discovery=pathmix.Enumeration(),
        allocation=pathmix.SuccessiveHalving(3_000),
        starts=1,
        evidence_draws=20_000,
        smc_evaluations=0,
        progress=False,
    )
    return fit.run(0, X[:, : request.param], Y)


@pytest.fixture(autouse=True)
def drawn_nowhere():
    before = mpl.get_backend()
    mpl.use("agg")
    yield
    plt.close("all")
    mpl.use(before)


DRAWN = {
    "weights": plots.weights,
    "elbos": plots.elbos,
    "khats": plots.khats,
    "tree": plots.tree,
    "marginal": lambda posterior, ax=None: plots.marginal(posterior, "b_0", ax),
    "predictive": lambda posterior, ax=None: plots.predictive(posterior, "y", ax=ax, count=100),
}


@pytest.mark.parametrize("name", DRAWN)
def test_axes_are_taken_and_returned(posterior, name, tmp_path):
    _, given = plt.subplots()
    assert DRAWN[name](posterior, ax=given) is given
    made = DRAWN[name](posterior)
    assert made is not given
    made.figure.savefig(tmp_path / "picture.png")
    size = made.figure.get_size_inches()
    assert size[0] <= 16 and size[1] <= 16


def test_bars_are_weights(posterior):
    widths = [bar.get_width() for bar in plots.weights(posterior).patches]
    assert sum(widths) == pytest.approx(1) and widths[0] == pytest.approx(posterior.paths[0].weight)
    assert len(widths) <= 21


def test_a_marginal_has_the_area_of_what_exists(posterior):
    ax = plots.marginal(posterior, "b_0")
    area = sum(bar.get_width() * bar.get_height() for bar in ax.patches)
    # Without the thousandths at both ends.
    assert area == pytest.approx(posterior.exists("b_0"), abs=0.02)
    heights = [bar.get_height() for bar in plots.marginal(posterior, "on_0").patches]
    assert sum(heights) == pytest.approx(1)


def test_bands_are_where_predictions_are(posterior):
    ax = plots.predictive(posterior, "y", x=X[:, 0])
    median, data = ax.lines
    np.testing.assert_allclose(data.get_ydata(), Y)
    order = np.argsort(X[:, 0], kind="stable")
    predicted = posterior.predict(0, 1_000)["y"]
    np.testing.assert_allclose(median.get_ydata(), np.median(predicted, axis=0)[order])
    new = plots.predictive(posterior, "y", X[:5, : _width(posterior)], Y[:5])
    assert len(new.lines) == 1 and len(new.lines[0].get_xdata()) == 5
    with pytest.raises(PathmixError, match="x has 3 numbers, and the site 'y' has 40"):
        plots.predictive(posterior, "y", x=[1, 2, 3])


def _width(posterior):
    return len(posterior.paths).bit_length() - 1


def test_branches_have_the_weight_of_what_is_beyond(posterior):
    texts = [text.get_text() for text in plots.tree(posterior).texts]
    first = next(text for text in texts if text.startswith("on_0=1"))
    assert float(first.split()[-1]) == pytest.approx(posterior.distribution("on_0")[1], rel=0.01)
    assert len(texts) <= 150


def test_an_element_of_an_array():
    def model():
        numpyro.sample("w", dist.Normal(0, 1).expand([3]).to_event(1))
        numpyro.sample("y", dist.Normal(0, 1), obs=0.0)

    posterior = pathmix.SDVI(model, allocation=pathmix.Uniform(50), starts=1, progress=False).run(0)
    assert plots.marginal(posterior, "w[2]").get_xlabel() == "w[2]"
    with pytest.raises(PathmixError, match=r"'w' has shape \(3,\); name one of its numbers, w\[0\]"):
        plots.marginal(posterior, "w")


def test_without_matplotlib(posterior, monkeypatch):
    for name in ("matplotlib.figure", "matplotlib.pyplot"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtraError, match=r"pip install 'pathmix\[plots\]'"):
        plots.weights(posterior)


def test_phases_are_marked():
    allocation = pathmix.SuccessiveHalving(2_000, keep=1)
    posterior = pathmix.SDVI(selection, allocation=allocation, starts=1).run(0, X[:, :2], Y)
    names = [text.get_text() for text in plots.elbos(posterior).get_legend().get_texts()]
    assert names[-1] == "end of a phase" and len(names) == 4  # a path without continuous sites has no ELBOs
    once = pathmix.SDVI(selection, allocation=pathmix.Uniform(2_000), starts=1).run(0, X[:, :2], Y)
    assert len(plots.elbos(once).get_legend().get_texts()) == 3


def test_predictions_over_dates(posterior):
    days = np.arange("2026-01-01", "2026-02-10", dtype="datetime64[D]")
    for x in (days, days.astype(object)):
        assert plots.predictive(posterior, "y", x=x, count=20).get_legend() is not None


def test_predictions_of_a_single_number():
    def model(y):
        numpyro.sample("y", dist.Normal(numpyro.sample("z", dist.Normal(0, 1)), 1), obs=y)

    posterior = pathmix.SDVI(model, allocation=pathmix.Uniform(2_000), starts=1).run(0, 1.5)
    ax = plots.predictive(posterior, "y")
    (line,) = ax.get_lines()
    assert list(line.get_xdata()) == [1.5, 1.5] and ax.get_xlabel() == "y"
    centres = np.array([patch.get_x() + patch.get_width() / 2 for patch in ax.patches])
    heights = np.array([patch.get_height() for patch in ax.patches])
    assert np.average(centres, weights=heights) == pytest.approx(0.75, abs=0.2)


def test_predictions_of_zeros_and_ones():
    def model(x, y):
        slope = numpyro.sample("slope", dist.Normal(0, 1))
        numpyro.sample("y", dist.Bernoulli(logits=slope * x), obs=y)

    x = X[:, 0]
    y = (x > 0).astype(int)
    posterior = pathmix.SDVI(model, allocation=pathmix.Uniform(2_000), starts=1).run(0, x, y)
    ax = plots.predictive(posterior, "y", x=x)
    middle, data = ax.lines
    assert middle.get_label() == "probability of 1" and not ax.collections
    np.testing.assert_array_equal(data.get_ydata(), y)
    slopes = posterior.sample(0, 1_000)["slope"]
    wanted = np.mean(1 / (1 + np.exp(-np.outer(slopes, np.sort(x)))), axis=0)
    np.testing.assert_allclose(middle.get_ydata(), wanted, atol=0.08)


def test_branches_of_vectors_and_of_bounds():
    def model(y):
        which = numpyro.sample("k", dist.Categorical(probs=np.ones(2) / 2).expand([2]).to_event(1))
        x = numpyro.sample("x", dist.Normal(0, 1))
        if x > 0 and int(which[0]):
            x = numpyro.sample("z", dist.Normal(0, 1))
        numpyro.sample("y", dist.Normal(x, 1), obs=y)

    posterior = pathmix.SDVI(model, allocation=pathmix.Uniform(400), starts=1).run(0, 1.0)
    texts = [text.get_text().rsplit(maxsplit=1)[0] for text in plots.tree(posterior).texts]
    assert sorted(texts[-4:]) == ["k=(0, 0)", "k=(0, 1)", "k=(1, 0)", "k=(1, 1)"]
    assert sorted(texts[:-4]) == ["x <= 0"] * 4 + ["x > 0"] * 4


def test_what_nobody_saw_is_in_the_tree():
    def model(y):
        k = numpyro.sample("k", dist.Poisson(2.0))
        x = numpyro.sample("x", dist.Normal(0, 1)) if k > 0 else 0.0
        numpyro.sample("y", dist.Normal(x + k, 1), obs=y)

    discovery = pathmix.PriorDiscovery(10)
    posterior = pathmix.SDVI(model, discovery=discovery, allocation=pathmix.Uniform(50), starts=1).run(0, 1.0)
    texts = [text.get_text() for text in plots.tree(posterior).texts]
    (unseen,) = (text for text in texts if "unseen" in text)
    (left,) = posterior.tree.unexplored()
    assert unseen.startswith(", ".join(left.ways)) and f"{left.mass:.2g} of the prior" in unseen
    assert len(texts) == len(posterior.paths) + 1


def test_paths_with_names_of_their_own():
    def model(y):
        k = numpyro.sample("k", dist.Bernoulli(0.5))
        x = numpyro.sample("x", dist.Normal(0, 1)) if k else 0.0
        numpyro.sample("y", dist.Normal(x, 1), obs=y)

    sdvi = pathmix.SDVI(
        model, allocation=pathmix.Uniform(50), starts=1, label=lambda named: "ab"[named.pinned["k"]]
    )
    texts = [text.get_text().rsplit(maxsplit=1)[0] for text in plots.tree(sdvi.run(0, 1.0)).texts]
    assert sorted(texts) == ["k=0, a", "k=1, b"]


def test_values_of_vectors_are_there_once():
    def model(y):
        z = numpyro.sample("z", dist.Bernoulli(0.5).expand([2]).to_event(1))
        x = numpyro.sample("x", dist.Normal(0, 1)) if z[0] + z[1] == 1 else 0.0
        numpyro.sample("y", dist.Normal(x, 1), obs=y)

    posterior = pathmix.SDVI(model, allocation=pathmix.Uniform(50), starts=1).run(0, 1.0)
    texts = [text.get_text().rsplit(maxsplit=1)[0] for text in plots.tree(posterior).texts]
    assert sorted(texts) == ["z=(0, 0)", "z=(0, 1)", "z=(1, 0)", "z=(1, 1)"]


def test_a_marginal_as_narrow_as_numbers_are():
    def model(y):
        z = numpyro.sample("z", dist.Normal(0, 1))
        numpyro.deterministic("far", 100_000.3 + 1e-11 * z)
        numpyro.sample("y", dist.Normal(z, 1), obs=y)

    posterior = pathmix.SDVI(model, allocation=pathmix.Uniform(200), starts=1).run(0, 1.5)
    ax = plots.marginal(posterior, "far")
    assert sum(patch.get_height() * patch.get_width() for patch in ax.patches) == pytest.approx(1)
