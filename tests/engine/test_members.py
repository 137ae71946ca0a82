"""How members are put together, for threads and for elsewhere."""

import gc
import weakref
from collections import Counter

import numpy as np
import pytest

from pathmix.engine.members import Column, Kept, cohorts, stacked
from pathmix.engine.noise import Normals
from pathmix.engine.requests import Request
from pathmix.engine.threads import Threads
from pathmix.program.seeds import Seed


@pytest.mark.parametrize(
    ("kinds", "threads", "largest"),
    [
        ([10], 2, 5),  # every thread has some of the only kind
        ([10] * 100, 4, 8),  # there are enough kinds
        ([10] * 6, 4, 4),
        ([1, 1, 30], 2, 8),
    ],
)
def test_cohorts(kinds, threads, largest):
    members = [(kind, number) for kind, count in enumerate(kinds) for number in range(count)]
    found = cohorts(members, lambda member: member[0], threads)
    assert max(map(len, found)) == largest
    assert all(len({kind for kind, _ in cohort}) == 1 for cohort in found)
    assert Counter(member for cohort in found for member in cohort) == Counter(members)


def test_columns_that_are_made_later_are_those_of_now(engine):
    rows = np.random.default_rng(0).normal(size=(3, 5_000))
    requests = [
        Request("key", lambda: None, (), (row, Normals(Seed.of(i), 2**13, 100), i))
        for i, row in enumerate(rows)
    ]
    now, later = (stacked(requests, 8, Kept(), late=late) for late in (False, True))
    assert now.form == later.form
    for array, column in zip(now.arrays[2] + now.arrays[3], later.arrays[2] + later.arrays[3], strict=True):
        assert isinstance(column, Column) and len(column.members) == 3
        assert (column.shape, column.dtype) == (array.shape, array.dtype)
        np.testing.assert_array_equal(column.made(), array)


def test_what_runs_in_the_background_leaves_nothing():
    class Result:
        pass

    made = []

    def task():
        result = Result()
        made.append(weakref.ref(result))
        return result

    with Threads(1, "float64") as threads:
        threads.begin(task)
        threads.map(lambda item: item, [0])  # after it, in the only thread
        gc.collect()
        assert made and made[0]() is None
