"""Whatever is wrong is told in one line, with an exit status; a traceback is for those who ask for it."""

from pathlib import Path

import pytest


def fit(*words, model="model.py:model", data="data.csv"):
    return ("fit", model, *(("--data", data) if data else ()), "--out", "run", *words)


CASES = {
    "an unknown command": (("fot",), 2, "invalid choice: 'fot'"),
    "no folder": (("fit", "model.py:model"), 2, "--out"),
    "a wrong number": (fit("--budget", "many"), 2, "invalid whole number value: 'many'"),
    "no name": (fit(model="model.py"), 1, "such as model.py:model, not 'model.py'"),
    "no file": (fit(model="nothing.py:model"), 1, "There is no file nothing.py"),
    "no Python": (fit(model="data.csv:model"), 1, "does not end with .py"),
    "no such name": (fit(model="model.py:modell"), 1, "has no 'modell'. It has model, side."),
    "no function": (fit(model="model.py:number"), 1, "'number' in model.py is not a function, but int"),
    "a syntax error": (fit(model="torn.py:model"), 1, "at torn.py:2: def model(:"),
    "an error at import": (fit(model="raises.py:model"), 1, "NameError: name 'foo'"),
    "an exit at import": (fit(model="exits.py:model"), 1, "__main__"),
    "no data": (fit(data="nothing.csv"), 1, "nothing.csv cannot be read: No such file"),
    "text in the data": (fit(data="text.csv"), 1, "Line 2 of"),
    "a column too many": (fit(data="wide.csv"), 1, "no parameter called 'z'. It is model(y, scale=2.0)."),
    "nothing for a parameter": (fit(data=None), 1, "The model needs 'y'. It is model(y, scale=2.0)."),
    "given twice": (fit("--set", "y=3"), 1, "'y' is given twice"),
    "no such column": (fit("--column", "y=price"), 1, "has no 'price'. It has y."),
    "columns of nothing": (fit("--column", "y", data=None), 1, "--column chooses from --data"),
    "an unknown option": (fit("--option", "stars=12"), 1, "--option stars=... is none of guide, "),
    "a wrong option": (fit("--guide", "best"), 1, "guide must be one of"),
    "no such label": (fit("--label", "sides"), 1, "has no 'sides'"),
    "a folder of something else": (("fit", "model.py:model", "--set", "y=1", "--out", "."), 1, "other files"),
    "a file for a folder": (("fit", "model.py:model", "--set", "y=1", "--out", "data.csv"), 1, "is a file"),
    "a folder that cannot be made": (
        ("fit", "model.py:model", "--set", "y=1", "--out", "data.csv/run"),
        1,
        "cannot be used: Not a directory",
    ),
    "no run": (("resume", "nothing"), 1, "There is no folder nothing"),
    "no run in a folder": (("report", "."), 1, "has no run.json"),
    "the program fails": (
        fit(model="fails.py:model"),
        1,
        "ZeroDivisionError at fails.py:5: division",
    ),
    "nothing to infer": (fit(model="fails.py:observes"), 1, "draws no latent site"),
}


@pytest.fixture(autouse=True)
def files(place):
    Path("torn.py").write_text("\ndef model(:\n")
    Path("raises.py").write_text("x = foo\n")
    Path("exits.py").write_text("raise SystemExit(0)\n")
    Path("text.csv").write_text("y\nred\n")
    Path("wide.csv").write_text("y,z\n1,2\n")
    head = "import numpyro\nfrom numpyro.distributions import Normal\n\n"
    fails = "def model(y):\n    y = 1 / 0\n    numpyro.sample('x', Normal())\n"
    Path("fails.py").write_text(
        f"{head}{fails}\ndef observes(y):\n    numpyro.sample('y', Normal(), obs=y)\n"
    )


@pytest.mark.parametrize("name", CASES)
def test_one_line(name, cli):
    words, expected, said = CASES[name]
    status, out, err = cli(*words, *(("--quiet",) if words[0] == "fit" else ()))
    assert (status, out) == (expected, "")
    assert err.count("\n") == 1 and err.startswith("pathmix") and "Traceback" not in err
    assert said in err
    assert not Path("run/posterior.pathmix").exists()


@pytest.mark.parametrize("place_of_debug", ["before", "after"])
def test_a_traceback_for_those_who_ask(place_of_debug, cli):
    words = fit(model="raises.py:model")
    status, _, err = cli("--debug", *words) if place_of_debug == "before" else cli(*words, "--debug")
    assert status == 1 and "Traceback" in err and "NameError: name 'foo' is not defined" in err
