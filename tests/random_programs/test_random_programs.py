"""Random programs: both libraries have the paths and densities of a simulation, and evidences are right."""

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, note, settings
from scipy import special

import pathmix
from tests.random_programs import checks
from tests.random_programs.strategies import programs
from tests.random_programs.writing import NUMPYRO, both_sources, model

ENOUGH = 200  # effective draws of brute force
ERRORS = 5  # fails once in two million comparisons by chance
BIAS = 0.02  # nats, for errors that are themselves estimates


def examples(most, **options):
    """The same programs in every run. They take seconds each, which is no matter of health."""
    return settings(
        max_examples=most,
        derandomize=True,
        deadline=None,
        database=None,
        print_blob=False,
        suppress_health_check=[HealthCheck.too_slow],
        **options,
    )


def check_program(program):
    note(both_sources(program))
    checks.check_paths(program)
    checks.check_unseen(program)
    checks.check_densities(program)
    checks.check_targets(program)
    checks.check_regions(program)
    checks.check_labels(program)


def check_evidences(program):
    """Those that are said to be right are, and so are the weights where the verdict says so."""
    note(both_sources(program))
    allocation = pathmix.Uniform(20_000)
    posterior = pathmix.SDVI(model(program, NUMPYRO), allocation=allocation, progress=False).run(0)
    note(str(posterior))
    expected = checks.simulated(program)
    total = special.logsumexp([one.log_evidence for one in expected.values()])
    for path in posterior.paths:
        one = expected.get(path.path)
        if one is None or one.effective < ENOUGH:
            continue
        if path.status.usable and not path.doubts:
            error = np.hypot(path.log_evidence_error, one.error)
            assert abs(path.log_evidence - one.log_evidence) <= ERRORS * error + BIAS, (
                path.label,
                path.log_evidence,
                one.log_evidence,
                error,
            )
        if posterior.verdict.ok:
            assert path.weight == pytest.approx(np.exp(one.log_evidence - total), abs=0.03), path.label


@examples(1, phases=[Phase.generate, Phase.shrink])
@given(programs())
def test_paths_and_densities(program):
    check_program(program)


@pytest.mark.trust
@examples(80)
@given(programs())
def test_paths_and_densities_of_many_programs(program):
    check_program(program)


@examples(1, phases=[Phase.generate, Phase.shrink])
@given(programs())
def test_evidences(program):
    check_evidences(program)


@pytest.mark.trust
@examples(20)
@given(programs())
def test_evidences_of_many_programs(program):
    check_evidences(program)
