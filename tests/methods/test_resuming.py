"""Going on from a posterior, with the same paths and guides."""

import pytest

import pathmix
from pathmix.errors import ChangedError, MissingModelError, OptionError
from pathmix.methods.dcc import RandomWalk
from tests import exact
from tests.zoo import programs, pyro_programs

FEW = pathmix.SuccessiveHalving(budget=200)


@pytest.mark.parametrize("model", [programs.ten_branches, pyro_programs.ten_branches])
def test_training_goes_on_where_it_was(model, tmp_path):
    """By the ELBO, which only training raises."""
    sdvi = pathmix.SDVI(model, allocation=FEW, weights="elbo", progress=False)
    first = sdvi.run(0, 2.0)
    first.save(tmp_path / "file")
    second = sdvi.resume(first, budget=4_000)
    before = {path.path: path for path in first.paths}
    assert {path.path for path in second.paths} >= set(before)
    for path in second.paths:
        assert path.steps > (before[path.path].steps if path.path in before else 0)
    assert second.elbo > first.elbo + 0.05
    assert "budget=4000" in second.provenance.settings["allocation"]
    assert second.likelihood_evaluations > first.likelihood_evaluations
    # As well from a file, in another object.
    again = pathmix.SDVI(model, allocation=FEW, weights="elbo", progress=False).resume(
        pathmix.load(tmp_path / "file", model, 2.0), budget=4_000
    )
    assert again.weights == second.weights


def test_discovery_goes_on():
    few = pathmix.PriorDiscovery(5)
    sdvi = pathmix.SDVI(programs.ten_branches, discovery=few, allocation=FEW, weights="elbo", progress=False)
    first = sdvi.run(0, 2.0)
    second = sdvi.resume(first)
    assert second.discovery.samples == 10
    assert {path.path for path in second.paths} > {path.path for path in first.paths}


def test_evidences_stay_exact():
    sdvi = pathmix.SDVI(programs.two_branches, allocation=FEW, progress=False)
    posterior = sdvi.resume(sdvi.resume(sdvi.run(0, 2.0)))
    for path in posterior.paths:
        assert path.log_evidence == pytest.approx(exact.two_branches(2.0)[path.label], abs=0.02)


def test_online_rounds_go_on():
    online = pathmix.OnlineSuccessiveHalving(300, rounds=2)
    sdvi = pathmix.SDVI(programs.two_branches, allocation=online, weights="elbo", progress=False)
    first = sdvi.run(0, 2.0)
    second = sdvi.resume(first, budget=500)
    assert sum(p.steps for p in second.paths) > sum(p.steps for p in first.paths)


def test_what_cannot_be_resumed(tmp_path):
    sdvi = pathmix.SDVI(programs.two_branches, allocation=FEW, weights="elbo", progress=False)
    posterior = sdvi.run(0, 2.0)
    posterior.save(tmp_path / "file")
    with pytest.raises(MissingModelError):
        sdvi.resume(pathmix.load(tmp_path / "file"))
    with pytest.raises(ChangedError, match="another model"):
        pathmix.SDVI(programs.sum_branch).resume(posterior)
    with pytest.raises(ChangedError, match="float64, not in float32"):
        pathmix.SDVI(programs.two_branches, precision="float32").resume(posterior)
    with pytest.raises(OptionError, match="budget"):
        sdvi.resume(posterior, budget=0)
    walk = RandomWalk()
    chains = pathmix.DCC(programs.two_branches, kernel=walk, iterations=2, progress=False).run(0, 2.0)
    with pytest.raises(OptionError, match="SDVI"):
        sdvi.resume(chains)
