"""Every program of the zoo is the same in both libraries: paths, labels, densities, fits."""

from dataclasses import dataclass, replace
from functools import cache

import jax
import numpy as np
import pytest

from pathmix.discovery import Discovered, PriorDiscovery
from pathmix.program.program import Limits
from pathmix.regions.region import read_region
from pathmix.target.labels import label
from tests import exact
from tests.paths import discover
from tests.zoo import programs, pyro_programs

NUMPYRO = {model.__name__: model for model in programs.PROGRAMS}
PYRO = {model.__name__: model for model in pyro_programs.PROGRAMS}
SAMPLES = 200
COMMON = 0.05  # prior mass; a path that has it escapes 200 runs with probability 3.5e-5
MOST_FITTED = 2
every_program = pytest.mark.parametrize("name", NUMPYRO)


@cache
def discovered(name):
    """What is found in NumPyro's program and in Pyro's."""

    return (
        discover(NUMPYRO[name], *programs.PROGRAMS[NUMPYRO[name]], samples=SAMPLES),
        discover(PYRO[name], *pyro_programs.PROGRAMS[PYRO[name]], samples=SAMPLES),
    )


def shared_paths(name):
    """The paths that both have, as NumPyro and as Pyro found them."""
    left, right = ({path.slp.path: path for path in found.paths} for found in discovered(name))
    return [(left[path], right[path]) for path in left if path in right]


def rows(path, slp, count):
    """Values of a path's draws, typed as another straight-line program has them."""
    return [np.asarray(path.draws[site.name][:count], site.dtype) for site in slp.sites]


def test_the_zoo_has_the_same_programs_in_both_libraries():
    assert NUMPYRO.keys() == PYRO.keys()
    assert len(NUMPYRO) >= 16


@every_program
def test_paths_are_the_same(name):
    left, right = ({path.slp.path: path for path in found.paths} for found in discovered(name))
    for path in left.keys() | right.keys():
        masses = [found[path].prior_mass if path in found else 0.0 for found in (left, right)]
        assert min(masses) > 0 or max(masses) <= COMMON, path
        # Two counts of independent runs differ by more than five standard errors once in a million.
        share = np.mean(masses)
        assert abs(masses[0] - masses[1]) <= 5 * np.sqrt(2 * share * (1 - share) / SAMPLES), path


@pytest.mark.usefixtures("engine")
@every_program
def test_labels_and_regions_are_the_same(name):
    for left, right in shared_paths(name):
        regions = read_region(left.slp, left.draws), read_region(right.slp, right.draws)
        assert label(left.slp, regions[0]) == label(right.slp, regions[1])
        assert regions[0] == regions[1]


@every_program
def test_what_a_path_says_about_its_sites_is_the_same(name):
    for left, right in shared_paths(name):
        assert left.slp.plates == right.slp.plates
        assert left.slp.observed == right.slp.observed
        assert [name for name, _ in left.slp.deterministics] == [name for name, _ in right.slp.deterministics]
        for one, other in zip(left.slp.sites, right.slp.sites, strict=True):
            assert (one.name, one.shape, one.pinned) == (other.name, other.shape, other.pinned)
            if one.pinned is None:
                assert one.bounds == other.bounds


@pytest.mark.usefixtures("engine")
@every_program
def test_densities_are_the_same(name):
    """Prior, likelihood and every condition; deterministic sites too."""
    for left, right in shared_paths(name):
        results = []
        for slp in (left.slp, right.slp):
            wanted = [*range(slp.FIRST_CONDITION + len(slp.path.decisions))]
            graph = slp.graph.outputs([*wanted, *(slot for _, slot in slp.deterministics)])
            values = rows(left, slp, 3)
            evaluate = jax.jit(jax.vmap(graph, in_axes=(None, 0)))
            results.append(evaluate(graph.consts, values))
        for ours, theirs in zip(*results, strict=True):
            np.testing.assert_allclose(theirs, ours, rtol=1e-10, atol=1e-10)


@pytest.mark.usefixtures("engine")
@every_program
def test_minibatch_densities_are_the_same(name):
    for left, right in shared_paths(name):
        if not left.slp.plates:
            continue
        chosen = [np.arange(plate.size)[-plate.subsample_size :] for plate in left.slp.plates]
        results = []
        for slp in (left.slp, right.slp):
            values = [column[0] for column in rows(left, slp, 1)]
            graph = slp.minibatch.outputs([slp.LOG_PRIOR, slp.LOG_LIKELIHOOD])
            results.append(graph(graph.consts, [*values, *chosen]))
        np.testing.assert_allclose(results[1], results[0], rtol=1e-10, atol=1e-10)


@dataclass(frozen=True)
class Known:
    """A discovery that is already made."""

    found: Discovered
    limits: Limits = Limits()

    def discover(self, program, seed, on_path):
        for path in self.found.paths:
            on_path(path.slp, path.draws)
        return self.found


# Every path is compiled twice: a few programs stand for all in the quick suite.
_QUICK = ("two_branches", "polynomial", "minibatched")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in _QUICK else pytest.mark.trust) for name in NUMPYRO]
)
def test_the_same_options_give_the_same_weights(name):
    """From the same prior draws and seed, guides, ELBOs and weights differ by rounding alone.

    Training steps carry a rounding error of 1e-16 on; that they blow it up a million times would be
    strange. The heaviest paths of each program stand for all: every one is compiled.
    """
    pairs = sorted(shared_paths(name), key=lambda pair: -pair[0].prior_mass)[:MOST_FITTED]
    left, right = (
        _fitted(model, args, found, [(pair[0], pair[side].slp) for pair in pairs])
        for side, (model, args, found) in enumerate(
            (
                (NUMPYRO[name], programs.PROGRAMS[NUMPYRO[name]], discovered(name)[0]),
                (PYRO[name], pyro_programs.PROGRAMS[PYRO[name]], discovered(name)[1]),
            )
        )
    )
    assert set(left.weights) == set(right.weights)
    assert sum(left.weights.values()) == pytest.approx(1.0)
    paired = [(one, next(other for other in right.paths if other.label == one.label)) for one in left.paths]
    if any(_order(one) != _order(other) for one, other in paired):
        # The libraries write a density in different ways, and its vector may have another order: then the
        # same noise moves other sites, and weights agree as far as ELBOs are known (4.5 standard errors).
        for one, other in paired:
            assert one.status.usable and other.status == one.status, (one.message, other.message)
            assert one.elbo == pytest.approx(other.elbo, abs=4.5 * (one.elbo_error + other.elbo_error) + 0.01)
        return
    assert right.weights == pytest.approx(left.weights, rel=1e-8, abs=1e-12)
    for one, other in paired:
        assert one.status.usable and other.status == one.status, (one.message, other.message)
        assert other.elbo == pytest.approx(one.elbo, rel=1e-9, abs=1e-9)
        np.testing.assert_allclose(other.history, one.history, rtol=1e-9, atol=1e-9)
    draws = left.sample(0, 20), right.sample(0, 20)
    assert set(draws[0]) == set(draws[1])
    for site in draws[0]:
        assert np.array_equal(draws[0].present(site), draws[1].present(site))
        np.testing.assert_allclose(draws[1][site], draws[0][site], rtol=1e-9, atol=1e-9)


def _order(path):
    return [site.name for site in path.guide.layout.sites]


def _fitted(model, args, found, paths):
    known = tuple(
        replace(path, slp=slp, draws=dict(zip(slp.path.addresses, rows(path, slp, None), strict=True)))
        for path, slp in paths
    )
    discovery = Known(replace(found, paths=known))
    return exact.fit(model, *args, discovery=discovery, budget=100 * len(known), elbo_samples=200)


@pytest.mark.trust
@pytest.mark.parametrize("name", ["two_branches", "spike_and_slab", "pinned_pairs"])
def test_whole_runs_agree_within_their_errors(name):
    """Runs with the same options and seed: random streams differ between libraries, so guides do.

    An ELBO is a mean over draws, with the standard error of that mean, and falls short of the
    log-evidence by the guide's KL, which for a nearly exact guide is half the variance of the
    log-ratios. Five standard errors fail once in a million by chance.
    """
    samples = 4_096
    posteriors = [
        exact.fit(model, *args, budget=6_000, elbo_samples=samples, discovery=PriorDiscovery(SAMPLES))
        for model, args in (
            (NUMPYRO[name], programs.PROGRAMS[NUMPYRO[name]]),
            (PYRO[name], pyro_programs.PROGRAMS[PYRO[name]]),
        )
    ]
    left, right = ({path.label: path for path in posterior.paths} for posterior in posteriors)
    assert left.keys() == right.keys()
    tolerances = {text: _tolerance([left[text], right[text]], samples) for text in left}
    worst = max(tolerances.values())
    assert worst < 0.05
    for text, tolerance in tolerances.items():
        one, other = left[text], right[text]
        assert abs(one.elbo - other.elbo) <= tolerance
        # A weight is a ratio to the sum over all paths.
        assert abs(np.log(one.weight) - np.log(other.weight)) <= tolerance + worst


def _tolerance(paths, samples):
    """Five errors, and what a guide that is not exact may still gain."""
    variances = [samples * path.elbo_error**2 for path in paths]
    return 5 * np.sqrt(sum(variances) / samples) + max(variances) / 2 + 1e-9
