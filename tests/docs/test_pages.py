"""Every Python block of every page runs, and prints what the page shows."""

from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import numpyro.distributions as dist
import pytest
from matplotlib import pyplot
from scipy import stats

import pathmix
import pathmix.plots
from tests.docs.agreement import disagreement
from tests.docs.pages import PAGES, README, ROOT, Block, blocks, execute, run

matplotlib.use("Agg")
WITH_CODE = [page for page in PAGES if any(blocks(page.read_text()))]


def agrees(page: Path, block: Block, printed: str) -> None:
    place = f"{page.relative_to(ROOT)}:{block.line}"
    assert block.shown is not None or not printed, f"{place} prints what is not shown:\n{printed}"
    if block.shown is not None and (different := disagreement(block.shown, printed)):
        pytest.fail(f"{place}: {different}", pytrace=False)


def check(page: Path) -> dict[str, Any]:
    names: dict[str, Any] = {}
    for block, printed in run(page, names):
        agrees(page, block, printed)
    return names


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """Pages write files."""
    monkeypatch.chdir(tmp_path)
    yield
    pyplot.close("all")


@pytest.mark.parametrize(
    "page", [page for page in WITH_CODE if page.stem != "extending"], ids=lambda page: page.stem
)
def test_a_page(page):
    check(page)


def test_a_guide_a_discovery_and_an_allocation():
    posterior = check(ROOT / "docs" / "extending.md")["posterior"]
    assert sorted(path.pinned["k"] for path in posterior.paths) == [0, 1]  # the third is not likely enough
    log_z = [np.log(prior) + stats.norm.logpdf(0.5, k, np.sqrt(2)) for k, prior in enumerate((0.6, 0.395))]
    for path in posterior.paths:
        assert path.elbo == pytest.approx(log_z[path.pinned["k"]], abs=0.05)
        guide = path.guide.family
        assert sorted(guide.owners.count(n) for n in (0, 1)) == [1, 2] and path.guide.params[1].shape == (2,)
        assert isinstance(guide, pathmix.guides.StructuredGuide) and isinstance(guide, pathmix.Guide)
    assert posterior.discovery.dropped_mass == pytest.approx(0.005, abs=1e-9)
    assert sum(path.steps for path in posterior.paths) == 6_000


def test_the_readme():
    import optax
    import pyro
    import torch

    generator = np.random.default_rng(1)  # the data of examples/demo.py
    x = np.sort(generator.uniform(-1.5, 1.5, 30))
    y = 0.4 - 0.9 * x + 0.7 * x**2 + generator.normal(0, 0.3, len(x))
    names = {"x": x, "y": y, "x_new": x[:5], "y_new": y[:5], "data": torch.tensor([-2.0, -1.8, 2.1, 2.4])}
    names |= {"optax": optax, "pyro": pyro, "torch": torch}
    for block in blocks(README.read_text()):
        names["dist"] = pyro.distributions if "pyro.sample(" in block.code.replace("numpyro", "") else dist
        agrees(README, block, execute(README, block, names))
        names.setdefault("sdvi", pathmix.SDVI(names["model"]))
