"""Every example: quickly, that it is whole and its model runs; slowly, that its fit is good and it draws."""

import importlib.util
import os
import re
import subprocess
import sys
import typing
from pathlib import Path

import numpyro
import pyro
import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"
NAMES = sorted(path.stem for path in EXAMPLES.glob("*.py") if path.stem not in ("common", "demo"))


@pytest.fixture(params=NAMES)
def example(request, monkeypatch):
    monkeypatch.syspath_prepend(EXAMPLES)
    spec = importlib.util.spec_from_file_location(
        f"example_{request.param}", EXAMPLES / f"{request.param}.py"
    )
    assert spec is not None and spec.loader is not None
    module: typing.Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_there_are_eight_examples():
    assert len(NAMES) == 8


def test_the_model_runs_from_the_prior_on_the_data(example):
    arguments = example.data()
    with (
        numpyro.handlers.seed(rng_seed=0),
        numpyro.handlers.trace() as of_numpyro,
        pyro.poutine.trace() as of_pyro,
    ):
        example.model(*arguments)
    sites = [*of_numpyro.values(), *of_pyro.trace.nodes.values()]
    sampled = [site for site in sites if site["type"] == "sample"]
    assert any(site["is_observed"] for site in sampled) and any(not site["is_observed"] for site in sampled)


@pytest.mark.parametrize("name", NAMES)
def test_it_has_a_picture_and_a_line_on_its_page(name):
    picture = EXAMPLES / "pictures" / f"{name}.png"
    assert picture.read_bytes().startswith(b"\x89PNG") and picture.stat().st_size < 100_000
    page = (EXAMPLES / "README.md").read_text()
    assert f"({name}.py)" in page and f"(pictures/{name}.png)" in page


def test_every_file_of_data_is_used_and_has_a_source():
    used = {
        file
        for name in NAMES
        for file in re.findall(r'table\("(\w+)"\)', (EXAMPLES / f"{name}.py").read_text())
    }
    assert used == {path.stem for path in (EXAMPLES / "data").glob("*.csv")}
    page = (EXAMPLES / "data" / "README.md").read_text()
    assert all(f"`{file}.csv`" in page for file in used)


@pytest.mark.parametrize("name", NAMES)
def test_the_example_runs(name, tmp_path):
    command = [sys.executable, EXAMPLES / f"{name}.py", "--picture", tmp_path / "picture.png"]
    environment = {**os.environ, "PATHMIX_CACHE": str(tmp_path / "cache")}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=900)
    assert done.returncode == 0, done.stderr
    assert "The weights are right within their errors." in done.stdout
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")
