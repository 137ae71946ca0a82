"""The benchmarks' programs have the paths and the structures that they are said to have."""

import pytest

from benchmarks.catalogue import page
from benchmarks.catalogue.outcome import GOOD, tried
from benchmarks.catalogue.programs import entries, kinds
from benchmarks.simulated import Costs, simulate
from benchmarks.workloads import WORKLOADS, chain, structures_and_variants
from pathmix.target.twins import problem
from tests.paths import discover, target_of


@pytest.mark.parametrize(
    ("workload", "size", "paths", "structures"),
    [
        ("selection", 2, 4, 3),
        ("one-structure", 6, 6, 1),
        ("many-structures", 6, 6, 6),
        ("discrete", 2, 4, 1),
        ("coordinates", 3, 1, 1),
    ],
)
def test_paths_and_structures(workload, size, paths, structures, engine):
    job = WORKLOADS[workload](size)
    found = discover(job.inference.model, *job.args, samples=job.inference.discovery.samples)
    targets = [target_of(path) for path in found.paths]
    assert len(targets) == len({problem(target) for target in targets}) == paths
    assert len({target.structure for target in targets}) == structures


def test_structures_and_variants(engine):
    found = discover(structures_and_variants(3, 4), 0.5, samples=200)
    targets = [target_of(path) for path in found.paths]
    assert len(targets) == 12 and len({target.structure for target in targets}) == 3


def test_a_simulated_cluster():
    """Without a driver's costs, workers are all that counts; with many of them, the driver is."""
    free = Costs(discovery=0, writing=0, call=0, rest=0, compiling=0, work=8, job=1)
    alone, many = (simulate(workers, 80, 10, free).seconds for workers in (1, 100))
    assert alone == pytest.approx(80 * 8)
    assert many == pytest.approx(80 * 2 * sum(1 / paths for paths in (80, 40, 20, 10)))  # in its phases
    slow = Costs(discovery=1, writing=2, call=0, rest=3, compiling=5, work=0, job=1)
    found = simulate(1_000, 80, 10, slow)
    assert found.seconds == pytest.approx(80 + 20 + 240, abs=5.1) and found.driver > 0.98


def test_no_two_of_a_thousand_chains_are_the_same():
    links = [lambda written, letter=letter: written + letter for letter in "abcd"]
    assert len({chain(number, "", links) for number in range(1_000)}) == 1_000


def test_the_page_has_all_programs():
    """As they were tried last; `--page` writes the others as they were."""
    found = page.read()
    assert set(found) == set(entries())
    assert {one.status for one in found.values()} <= set(GOOD)


def test_the_catalogue_has_its_programs():
    """Names are unique, every entry has an answer or a refusal, and the quickest of them is right."""
    found = entries()
    assert len(found) == sum(map(len, kinds().values())) >= 40
    for entry in found.values():
        assert bool(entry.refused) != (entry.answers is not None)
    assert tried(found["monty_hall"]).status == "right"
