"""What holds for every program: both libraries have the paths, densities and regions of the simulation."""

from functools import lru_cache

import jax
import numpy as np
from scipy import stats

from pathmix.engine.precision import engine_scope
from pathmix.regions.region import read_region
from pathmix.target.labels import label
from tests.paths import discover, target_of
from tests.random_programs import brute
from tests.random_programs.writing import NUMPYRO, PYRO, model

LIBRARIES = (NUMPYRO, PYRO)
SAMPLES = 100  # prior runs by pathmix
SIMULATED = 100_000  # and by brute force
ROWS = 8  # a fixed number: every operation is compiled once
CHANCE = 1e-7  # of a failure, in each comparison of counts
COMMON = 0.2  # prior mass; a path that has it escapes 100 runs with probability 2e-10
MOST_PATHS = 8  # of a program, whose densities are compared


@lru_cache(1)
def simulated(program):
    return brute.brute_force(program, SIMULATED)


@lru_cache(1)
def discovered(program):
    """By library, what its program shows."""
    found = {}
    for library in LIBRARIES:
        found[library.name] = discover(model(program, library), samples=SAMPLES)
    return found


def paths_by_library(program):
    for library, found in discovered(program).items():
        by_path = {path.slp.path: path for path in found.paths}
        assert len(by_path) == len(found.paths), library
        yield library, by_path


def check_paths(program):
    """Both libraries find what is common, and follow each path as often as the simulation does."""
    expected = simulated(program)
    for library, found in paths_by_library(program):
        missed = [
            path for path, one in expected.items() if one.count > COMMON * SIMULATED and path not in found
        ]
        assert not missed, (library, missed)
        for path, one in found.items():
            count = expected[path].count if path in expected else 0
            table = [[one.followers, SAMPLES - one.followers], [count, SIMULATED - count]]
            assert stats.fisher_exact(table).pvalue > CHANCE, (library, path, table)
            # Draws that fill up a rare path must lie on it too.
            assert list(brute.given(program, one.draws)) == [path], (library, path)


def check_unseen(program):
    """Mass that is said to be exact is; with none of it, no simulated run takes an unknown path."""
    expected = simulated(program)
    for library, found in paths_by_library(program):
        report = discovered(program)[library]
        unseen = sum(one.count for path, one in expected.items() if path not in found)
        if report.unseen_is_exact:
            chance = stats.binomtest(unseen, SIMULATED, report.unseen_mass).pvalue
            assert chance > CHANCE, (library, unseen, report.unseen_mass)


def check_labels(program):
    left, right = (found for _, found in paths_by_library(program))
    with engine_scope("float64"):
        for path in left.keys() & right.keys():
            regions = [read_region(found[path].slp, left[path].draws) for found in (left, right)]
            assert regions[0] == regions[1], path
            texts = [
                label(found[path].slp, region) for found, region in zip((left, right), regions, strict=True)
            ]
            assert texts[0] == texts[1], path


def check_densities(program):
    """Prior, likelihood, decisions and deterministic sites, at runs of the simulation."""
    expected = simulated(program)
    for library, found in paths_by_library(program):
        for path in [path for path in found if path in expected][:MOST_PATHS]:
            slp, runs = found[path].slp, some_rows(expected[path].runs)
            log_prior, log_likelihood, *rest = outputs(slp, runs.sites)
            close(log_prior, runs.log_prior, (library, path))
            close(log_likelihood, runs.log_likelihood, (library, path))
            decisions, deterministics = rest[: len(path.decisions)], rest[len(path.decisions) :]
            assert np.all(decisions), (library, path)
            assert [name for name, _ in slp.deterministics] == list(runs.deterministics), library
            for ours, theirs in zip(deterministics, runs.deterministics.values(), strict=True):
                close(ours, theirs, (library, path))


def check_targets(program):
    """The density that guides are fitted to: canonical, on the unconstrained vector of each path."""
    expected = simulated(program)
    for library, found in paths_by_library(program):
        for path in [path for path in found if path in expected and path.has_free_sites][:MOST_PATHS]:
            runs = some_rows(expected[path].runs)
            with engine_scope("float64"):
                target = target_of(found[path])
                vectors = jax.vmap(target.formula.unconstrain, in_axes=(0, None))(
                    target.columns(runs.sites), target.arguments
                )
                density = jax.vmap(target.formula.density, in_axes=(0, None))(vectors, target.arguments)
            assert np.all(density.inside), (library, path)
            close(density.log_joint, runs.log_prior + runs.log_likelihood, (library, path))


def some_rows(runs):
    return runs.take(np.resize(np.arange(len(runs.rows)), ROWS))


def close(ours, theirs, where):
    np.testing.assert_allclose(ours, np.broadcast_to(theirs, ROWS), rtol=1e-6, atol=1e-9, err_msg=str(where))


def outputs(slp, sites):
    """Everything that a straight-line program says of some runs."""
    wanted = [
        *range(slp.FIRST_CONDITION + len(slp.path.decisions)),
        *(slot for _, slot in slp.deterministics),
    ]
    graph = slp.graph.outputs(wanted)
    with engine_scope("float64"):
        values = [np.asarray(sites[site.name], site.dtype) for site in slp.sites]
        return jax.vmap(graph, in_axes=(None, 0))(graph.consts, values)


def check_regions(program):
    """A box holds the runs of its path, and none of another path with the same sites."""
    expected = simulated(program)
    for library, found in paths_by_library(program):
        for path, one in found.items():
            with engine_scope("float64"):
                region = read_region(one.slp, one.draws)
            for other, theirs in expected.items():
                if (other.addresses, other.pinned) != (path.addresses, path.pinned) or region.live:
                    continue
                inside = contains(region, theirs.runs.sites)
                assert np.all(inside == (other == path)), (library, path, other, region)


def contains(region, sites):
    """Which runs lie in the boxes of a region."""
    inside = True
    for name, intervals in region.bounds.items():
        for position, interval in intervals.items():
            values = sites[name].reshape(len(sites[name]), -1)[:, position]
            above = (values > interval.lower) | (interval.lower_closed & (values == interval.lower))
            below = (values < interval.upper) | (interval.upper_closed & (values == interval.upper))
            inside = inside & above & below
    return inside
