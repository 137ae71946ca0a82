"""Fits of files: the same as in Python, kept in a folder, and gone on with."""

import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import pathmix

FEW = ("--budget", "2000", "--quiet")
Y = [1.5, 2, 2.5]


def told(folder, file="posterior.pathmix"):
    """Everything but the time that it took."""
    return [
        (path.label, path.weight, path.log_evidence, path.elbo, path.steps, path.history.tolist())
        for path in pathmix.load(Path(folder) / file).paths
    ]


@pytest.mark.parametrize("model", ["model.py", "torch_model.py"])
def test_a_fit_is_that_of_python_whatever_the_file(model, cli, place):
    quick = (*FEW, "--weights", "elbo")
    status, out, err = cli("fit", f"{model}:model", "--data", "data.csv", "--out", "a run", *quick)
    assert (status, err) == (3, "")
    assert "Weights are made of ELBOs" in out
    assert f"Kept in {Path('a run/posterior.pathmix')}." in out

    names = {}
    exec((place / model).read_text(), names)
    y = names["torch"].tensor(Y, dtype=names["torch"].float64) if "torch" in names else np.array(Y)
    few = pathmix.SuccessiveHalving(2_000)
    sdvi = pathmix.SDVI(names["model"], allocation=few, weights="elbo", progress=False)
    assert pathmix.load("a run/posterior.pathmix").weights == sdvi.run(0, y=y).weights

    np.savez("data.npz", y=np.array(Y))
    Path("data.json").write_text(json.dumps({"values": Y}))
    for number, words in enumerate([("data.npz",), ("data.json", "--column", "y=values")]):
        assert cli("fit", f"{model}:model", "--out", str(number), *quick, "--data", *words)[0] == 3
        assert told(str(number)) == told("a run")


def test_options_reach_the_method(cli):
    words = (
        "--set",
        "y=2",
        "--set",
        "scale=0.5",
        "--weights",
        "elbo",
        "--option",
        "particles=3",
        "--option",
        "symmetry=False",
    )
    status, out, _ = cli(
        "fit", "model.py:model", "--out", "run", *FEW, *words, "--label", "side", "--seed", 5
    )
    assert (
        status == 3
        and "Weights are made of ELBOs" in out
        and {label for label, *_ in told("run")}
        == {
            "left",
            "right",
        }
    )
    about = json.loads(Path("run/run.json").read_text())["run"]
    assert about["values"] == {"y": 2, "scale": 0.5} and about["seed"] == 5
    assert about["options"] == {"particles": 3, "symmetry": False, "weights": "elbo"}


def test_rounds_for_some_seconds(cli):
    words = ("--set", "y=2", "--seconds", "0.01", "--option", "smc_evaluations=0")
    assert cli("fit", "model.py:model", "--out", "run", *FEW, *words)[0] == 0
    assert sum(steps for *_, steps, _ in told("run")) <= 3 * 2_000


@pytest.fixture
def fitted(cli):
    status, out, err = cli("fit", "model.py:model", "--data", "data.csv", "--out", "run", *FEW)
    assert (status, err) == (0, "") and "Verdict: The weights are right within their errors." in out
    return Path("run")


def test_a_finished_run_is_trained_further_and_not_lost(fitted, cli, place, monkeypatch):
    before = told(fitted)
    fit = ("fit", "model.py:model", "--data", "data.csv", "--out", "run", *FEW)
    status, _, err = cli(*fit)
    assert status == 1 and "has this run already" in err
    assert cli(*fit, "--seed", "1")[::2] == (
        1,
        "pathmix: run/ has another run: seed changed. Give another --out, or start over with --restart.\n",
    )
    assert told(fitted) == before
    (place / "elsewhere").mkdir()
    monkeypatch.chdir(place / "elsewhere")
    assert cli("resume", "../run/", "--budget", "1000", "--quiet")[0] == 0
    after = told("../run")
    assert sum(path[4] for path in after) == sum(path[4] for path in before) + 1_000
    monkeypatch.chdir(place)
    assert cli(*fit, "--restart")[0] == 0 and told(fitted) == before


def test_what_was_changed_since_is_refused(fitted, cli):
    Path("data.csv").write_text("y\n1\n")
    status, _, err = cli("resume", "run", "--quiet")
    assert status == 1 and "arguments of the model are not those" in err and err.count("\n") == 1
    (fitted / "posterior.pathmix").unlink()
    status, _, err = cli("resume", "run", "--quiet")
    assert status == 1 and err.count("\n") == 1
    assert "its arguments changed" in err and "`pathmix fit ... --restart`" in err


def test_a_run_that_failed_at_once_is_no_obstacle(cli, place):
    Path("wrong.py").write_text("def model(y):\n    y / 0\n")
    fit = ("--data", "data.csv", "--out", "run", *FEW)
    assert cli("fit", "wrong.py:model", *fit)[0] == 1
    assert cli("fit", "model.py:model", *fit)[0] == 0


def test_one_process_at_a_time(fitted, cli):
    before = told(fitted)
    hold = "from pathmix.cli.folder import Folder; import sys"
    command = [sys.executable, "-uc", f"{hold}\nwith Folder('run').alone(): print(); sys.stdin.read()"]
    fit = ("fit", "model.py:model", "--data", "data.csv", "--out", "run", *FEW)
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        other.stdout.readline()
        for words in (("resume", "run", "--quiet"), (*fit, "--restart"), (*fit, "--restart", "--seed", "1")):
            status, _, err = cli(*words)
            assert (status, err) == (1, "pathmix: Another process is at work in run/.\n")
        other.communicate()
    assert told(fitted) == before  # nothing was thrown away for a run that could not begin


# Some moment of training, at which the process gets a signal. Nothing of the command line is replaced.
SIGNALLED = """
import os, sys
from pathmix.cli.main import main
from pathmix.engine.progress import ProgressBar
advance, sent = ProgressBar.advance, []
def signalled(self, *args):
    advance(self, *args)
    if not sent:
        sent.append(1)
        os.kill(os.getpid(), int(sys.argv[1]))
ProgressBar.advance = signalled
sys.exit(main(sys.argv[2:]))
"""
LONG = ("--data", "data.csv", "--budget", "10000")


@pytest.fixture
def quiet_run(cli):
    assert cli("fit", "model.py:model", *LONG, "--out", "whole", "--quiet")[0] == 0
    return told("whole")


def ended_by(number):
    command = (
        sys.executable,
        "-c",
        SIGNALLED,
        str(int(number)),
        "fit",
        "model.py:model",
        *LONG,
        "--out",
        "run",
    )
    return subprocess.run(command, capture_output=True, text=True, timeout=300)


def test_ctrl_c_keeps_what_was_reached(quiet_run, cli):
    done = ended_by(signal.SIGINT)
    assert done.returncode == 130, done.stderr
    assert "The run was interrupted." in done.stdout
    assert "Interrupted. What was reached is in run/interrupted.pathmix; `pathmix resume run/`" in done.stderr
    reached = told("run", "interrupted.pathmix")
    assert 0 < sum(path[4] for path in reached) < sum(path[4] for path in quiet_run)
    assert not Path("run/posterior.pathmix").exists()
    status, _, err = cli("resume", "run", "--budget", "1_000")
    assert status == 1 and "has not come to its end" in err
    assert cli("resume", "run", "--quiet")[0] == 0
    assert told("run") == quiet_run and not Path("run/interrupted.pathmix").exists()


def test_a_killed_run_goes_on_to_the_same_bits(quiet_run, cli):
    done = ended_by(signal.SIGKILL)
    assert done.returncode == -signal.SIGKILL and not list(Path("run").glob("*.pathmix"))
    # Lines of progress, with the seconds, where there is no terminal.
    assert re.search(r"^ +\d+\.\d s  phase 1/1: 2 paths$", done.stderr, flags=re.MULTILINE)
    assert cli("report", "run")[0] == 1
    assert cli("resume", "run", "--quiet")[0] == 0
    assert told("run") == quiet_run


def test_ctrl_c_before_anything_is_there(cli):
    Path("slow.py").write_text("def model():\n    raise KeyboardInterrupt\n")
    assert cli("fit", "slow.py:model", "--out", "run") == (130, "", "pathmix: Interrupted.\n")
