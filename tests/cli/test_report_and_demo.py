"""Pages about runs, and the program of the demo."""

import inspect
from pathlib import Path

import pathmix
from pathmix.cli import polynomial

FIT = ("fit", "model.py:model", "--data", "data.csv", "--out", "run", "--budget", "400", "--weights", "elbo")


def test_a_page_of_a_run(cli):
    assert cli(*FIT, "--quiet")[0] == 3
    assert cli("report", "run") == (0, "run/report.html\n", "")
    page = Path("run/report.html").read_text()
    assert "y as the posterior predicts it" in page and "pathmix.load" not in page
    assert cli("report", "run/", "--out", "page.html") == (0, "page.html\n", "")
    assert Path("page.html").read_text() == page
    assert cli("report", "run/posterior.pathmix") == (0, "run/posterior.html\n", "")
    assert "pathmix.load" in Path("run/posterior.html").read_text()  # predictions need the model

    Path("model.py").write_text(Path("model.py").read_text().replace("-3", "-2"))
    status, out, err = cli("report", "run")
    assert (status, out) == (0, "run/report.html\n")
    assert err.startswith("Warning: the page is made without the model. The source of the model is not what")


def test_the_demo_is_that_of_the_readme():
    root = Path(pathmix.__file__).parents[1]
    program = inspect.getsource(polynomial.model)
    assert program in (root / "examples" / "demo.py").read_text()
    assert program in (root / "README.md").read_text().replace(
        "  # a loop of random length, as it stands", ""
    )


def test_the_demo_leaves_a_model_to_go_on_from(cli, monkeypatch):
    assert cli("demo", "--out", ".")[::2] == (1, "pathmix: . is there already. Give another --out.\n")
    few = pathmix.SuccessiveHalving(budget=500)
    monkeypatch.setattr("pathmix.cli.fitting._allocation", lambda settings: few)
    monkeypatch.setattr("pathmix.cli.fitting._plain_options", lambda settings: {"weights": "elbo"})
    status, out, _ = cli("demo", "--out", "mine", "--quiet")
    assert status == 3 and "Kept in mine/run/posterior.pathmix" in out
    assert cli("resume", "mine/run", "--budget", "100", "--quiet")[0] == 3
    alone, said, _ = cli("demo", "--quiet")
    assert alone == 3 and "for power in range(degree + 1):" in said
    assert out.partition("\nKept in")[0] == said.partition("\n`pathmix demo --out")[0]
