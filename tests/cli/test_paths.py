"""The paths of a model, and the lines that decide them."""

from pathlib import Path


def test_prior_masses_and_lines(cli):
    status, out, _ = cli("paths", "model.py:model", "--set", "y=2", "--quiet")
    assert status == 0
    lines = [line.split() for line in out.splitlines()]
    assert ["x", "<", "0", "0.5"] in [line[:4] for line in lines] and ["model.py:8"] in [
        line[-1:] for line in lines
    ]
    assert "  model.py:8  if x < 0:" in out.splitlines()
    assert out.splitlines()[-1] == "Unseen: 0% of the prior mass, exactly"


def test_pyro(cli):
    _, out, _ = cli("paths", "torch_model.py:model", "--data", "data.csv", "--quiet")
    rows = [line.split() for line in out.splitlines()]
    assert {("k=0", "0.5"), ("k=1", "0.5")} <= {tuple(row[:2]) for row in rows}
    assert any(
        line.endswith('k = int(pyro.sample("k", dist.Categorical(torch.ones(2))))')
        for line in out.splitlines()
    )


def test_estimates_and_what_does_not_fit(cli):
    Path("loop.py").write_text(
        "import numpyro\n"
        "from numpyro.distributions import Normal\n"
        "def model():\n"
        "    total, n = 0.0, 0\n"
        "    while total < 1:\n"
        "        total, n = total + numpyro.sample(f'x{n}', Normal(1, 1)), n + 1\n"
    )
    words = ("paths", "loop.py:model", "--rows", "2", "--prior-runs", "50", "--quiet")
    status, out, _ = cli(*words)
    rows = out.splitlines()
    assert status == 0 and rows[2].startswith("x0 >= 1  ") and "0.5  " in rows[2] and "~" in rows[3]
    assert " more, prior mass " in rows[4] and "loop.py:5  while total < 1:" in out
    assert "~ estimated by the share of runs" in rows and "at most" in rows[-1]
    assert cli(*words) == (status, out, "")
