"""Online against offline halving: both have the same paths, and as many likelihood evaluations."""

import matplotlib
import numpyro
import numpyro.distributions as dist
import pytest

import pathmix
from experiments import online
from experiments.runner import Results
from tests import exact

matplotlib.use("Agg")

SMALL = {"prior_runs": 10, "budget": 40, "keep": 1, "rounds": [1, 3], "final_draws": 50}


@pytest.fixture(scope="module")
def results():
    settings = {"two_branches": online._settings("two_branches", SMALL)}
    return Results("online", "small", settings, {"two_branches/000": online.run("two_branches", 0, settings)})


def test_offline_has_the_paths_of_the_rounds_and_as_many_evaluations(results):
    (cell,) = results.of("two_branches")
    assert cell["online"][0] == cell["offline"][0] == cell["offline, same iterations"][0]
    for one, other in zip(cell["online"], cell["offline"], strict=True):
        assert one["paths"] == other["paths"]
        assert online._distance(one, other) <= 0.02 * one["likelihood_evaluations"]
    assert cell["online"][1]["iterations"] == cell["offline, same iterations"][1]["iterations"] == 120


def test_tables_and_pictures(results, tmp_path):
    header, *rows = online.rows(results)
    assert [row[:2] for row in rows] == [("two branches", "1"), ("two branches", "3")]
    assert {len(row) for row in rows} == {len(header)}
    import matplotlib.pyplot as plt

    figure = online.picture(results, plt)
    figure.savefig(tmp_path / "online.png")
    plt.close(figure)


def test_prior_runs_in_turns_are_those_of_the_rounds():
    def model(y):
        z = numpyro.sample("z", dist.Normal(0.0, 1.0))
        k = int(numpyro.sample("k", dist.DiscreteUniform(0, 19)))
        numpyro.sample("y", dist.Normal(z + k, 1.0), obs=y)

    each = pathmix.PriorDiscovery(4)
    rounds = pathmix.OnlineSuccessiveHalving(40, rounds=3)
    one, other = (
        [path.path for path in exact.fit(model, 3.0, discovery=discovery, weights="elbo", **options).paths]
        for discovery, options in ((each, {"allocation": rounds}), (online.InTurns(each, 3), {"budget": 40}))
    )
    assert set(one) == set(other)
    assert len(one) > 4  # more than the first round can see
