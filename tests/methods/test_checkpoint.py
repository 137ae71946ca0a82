"""A run that was ended goes on from its folder, and gives the bits of one that was not."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import optax
import pytest

import pathmix
from pathmix.engine.progress import ProgressBar
from pathmix.errors import ChangedError, FileError, OptionError, PathmixWarning
from tests.zoo import programs, pyro_programs

# Enough for guides that fit, whose evidences take less time than those of guides that do not.
ENOUGH = pathmix.SuccessiveHalving(budget=10_000)


def sdvi(folder, model=programs.two_branches, **options):
    options = {"allocation": ENOUGH, "progress": False, **options}
    return pathmix.SDVI(model, checkpoint=folder, **options)


def told(posterior):
    """Everything but the time that it took."""
    return [
        (path.label, path.weight, path.log_evidence, path.elbo, path.steps, path.history.tolist())
        for path in posterior.paths
    ]


@pytest.fixture(scope="module")
def plain():
    """What a run without a folder tells."""
    return told(pathmix.SDVI(programs.two_branches, allocation=ENOUGH, progress=False).run(0, 2.0))


@pytest.fixture(scope="module")
def _complete(tmp_path_factory):
    folder = tmp_path_factory.mktemp("complete")
    sdvi(folder).run(0, 2.0)
    return folder


@pytest.fixture
def complete(_complete, tmp_path):
    """A folder of a run that came to its end, for one test to do with as it likes."""
    return shutil.copytree(_complete, tmp_path / "complete")


@pytest.mark.parametrize("model", [programs.two_branches, pyro_programs.sum_branch])
def test_a_second_run_computes_nothing_and_gives_the_same(model, tmp_path):
    few = pathmix.SuccessiveHalving(budget=1_000)  # so that evidences need all that there is for them
    plain = pathmix.SDVI(model, allocation=few, progress=False).run(0, 2.0)
    first = sdvi(tmp_path, model, allocation=few).run(0, 2.0)
    size = (tmp_path / "journal").stat().st_size
    again = sdvi(tmp_path, model, allocation=few).run(0, 2.0)
    assert told(first) == told(plain) == told(again)
    assert np.array_equal(again.sample(0, 20).path, plain.sample(0, 20).path)
    assert (tmp_path / "journal").stat().st_size == size


def test_any_part_of_a_journal_will_do(complete, plain):
    """As a power cut leaves it: what was torn off is computed again."""
    content = (complete / "journal").read_bytes()
    for end in np.random.default_rng(0).integers(0, len(content), size=2):
        (complete / "journal").write_bytes(content[:end])
        assert told(sdvi(complete).run(0, 2.0)) == plain
        assert (complete / "journal").stat().st_size == len(content)


def test_a_changed_bit_is_noticed(complete, plain):
    content = (complete / "journal").read_bytes()
    for place in np.random.default_rng(0).integers(200, len(content) - 200_000, size=8):
        changed = bytearray(content)
        changed[place] ^= 4
        (complete / "journal").write_bytes(changed)
        with pytest.raises(FileError, match=r"is damaged.*restart"):
            sdvi(complete).run(0, 2.0)
    assert told(sdvi(complete, on_change="restart").run(0, 2.0)) == plain
    assert told(sdvi(complete).run(0, 2.0)) == plain


@pytest.mark.parametrize(
    ("what", "options", "seed", "y"),
    [
        ("the model", {"model": programs.sum_branch}, 0, 2.0),
        ("its arguments", {}, 0, 2.5),
        ("the seed", {}, 1, 2.0),
        ("the option particles", {"particles": 4}, 0, 2.0),
        ("the option optimizer", {"optimizer": optax.adam(0.02)}, 0, 2.0),
        ("the option allocation", {"allocation": pathmix.Uniform(50)}, 0, 2.0),
    ],
)
def test_what_has_changed_is_refused(what, options, seed, y, tmp_path):
    few = {"allocation": pathmix.Uniform(40), "weights": "elbo"}
    sdvi(tmp_path, **few).run(0, 2.0)
    before = (tmp_path / "journal").read_bytes()
    options = few | options
    with pytest.raises(ChangedError, match=f"{what} changed"):
        sdvi(tmp_path, **options).run(seed, y)
    assert (tmp_path / "journal").read_bytes() == before
    sdvi(tmp_path, **options, on_change="restart").run(seed, y)
    sdvi(tmp_path, **options).run(seed, y)  # which is now the one


def test_another_version_is_refused(complete):
    about = json.loads((complete / "about.json").read_text())
    (complete / "about.json").write_text(json.dumps(about | {"the version of jax": "0.1"}))
    with pytest.raises(ChangedError, match="the version of jax changed"):
        sdvi(complete).run(0, 2.0)
    (complete / "about.json").write_text("{")
    with pytest.raises(FileError, match=r"about\.json cannot be read"):
        sdvi(complete).run(0, 2.0)


class Hearer:
    """What an object hears that is given as `progress=`."""

    def __init__(self):
        self.stages, self.budgets, self.steps, self.timings = [], [], {}, None

    def stage(self, text):
        self.stages.append(text)

    def budget(self, iterations):
        self.budgets.append(iterations)

    def advance(self, iterations, label, elbo):
        self.steps[label] = self.steps.get(label, 0) + iterations

    def done(self, timings):
        self.timings = timings


def test_threads_and_progress_may_change(tmp_path):
    one = sdvi(tmp_path, threads=1).run(0, 2.0)
    assert told(sdvi(tmp_path, threads=2, progress=True).run(0, 2.0)) == told(one)
    hearer = Hearer()
    assert told(sdvi(tmp_path, progress=hearer).run(0, 2.0)) == told(one)
    assert hearer.stages[0] == "discovery" and hearer.stages[-1] == "weights"
    assert hearer.budgets == [ENOUGH.budget] and "discovery" in str(hearer.timings)
    assert set(hearer.steps) == {path.label for path in one.paths}
    assert sum(hearer.steps.values()) == ENOUGH.budget


def test_a_full_disk_warns_and_goes_on(plain, tmp_path, monkeypatch):
    monkeypatch.setattr("pathmix.files.journal._SYNC_SECONDS", -1.0)
    calls = iter(range(100))

    def full(_):
        if next(calls) == 3:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.warns(PathmixWarning, match="No space left on device. The run goes on"):
        posterior = sdvi(tmp_path).run(0, 2.0)
    assert told(posterior) == plain
    monkeypatch.undo()
    assert told(sdvi(tmp_path).run(0, 2.0)) == plain


def test_ctrl_c_leaves_a_folder_to_go_on_from(plain, tmp_path, monkeypatch):
    advance, sent = ProgressBar.advance, []

    def interrupted(self, *args):
        if not sent:
            sent.append(signal.SIGINT)
            os.kill(os.getpid(), signal.SIGINT)
        advance(self, *args)

    monkeypatch.setattr(ProgressBar, "advance", interrupted)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        posterior = sdvi(tmp_path).run(0, 2.0)
    finally:
        signal.signal(signal.SIGINT, before)
    assert sent and posterior.interrupted and posterior.paths[0].steps > 0
    assert told(sdvi(tmp_path).run(0, 2.0)) == plain


def test_wrong_options(tmp_path):
    with pytest.raises(OptionError, match="checkpoint must be a folder"):
        sdvi(3)
    with pytest.raises(OptionError, match="on_change"):
        sdvi(tmp_path, on_change="go on")
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match="cannot be made"):
        sdvi(tmp_path / "file").run(0, 2.0)


SCRIPT = """
import json, sys, pathmix
from tests.zoo import programs
allocation = pathmix.SuccessiveHalving(budget=20_000)
options = {"allocation": allocation, "checkpoint": sys.argv[1] or None, "progress": False}
found = pathmix.SDVI(programs.ten_branches, **options).run(0, 2.0)
print(json.dumps([[p.label, p.weight, p.log_evidence, p.elbo, p.steps] for p in found.paths]))
"""


def killed(folder, seconds):
    """A run that is killed after a while; what it printed, if it came to its end."""
    command = [sys.executable, "-c", SCRIPT, folder]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        return json.loads(process.communicate(timeout=seconds)[0])
    except subprocess.TimeoutExpired:
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
        return None


@pytest.mark.parametrize("kills", [2, 20])
def test_killed_at_any_moment(kills, tmp_path):
    begun = time.monotonic()
    expected = killed("", 600)
    whole = time.monotonic() - begun
    generator, found, done = np.random.default_rng(kills), None, 0
    folder = str(tmp_path / "checkpoint")
    while done < kills:
        found = killed(folder, generator.uniform(0.3, 1.0) * whole)
        done += found is None
        if found is not None:
            assert found == expected
            folder = str(tmp_path / f"checkpoint {done}")
    assert (found or killed(folder, 600)) == expected
    journal = Path(folder) / "journal"
    size = journal.stat().st_size
    assert killed(folder, 600) == expected and journal.stat().st_size == size  # nothing was computed
