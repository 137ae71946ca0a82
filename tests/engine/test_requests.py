"""Requests are answered in batches, and nobody can tell from the answers."""

import gc
import weakref

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pathmix.engine.executables import Executables
from pathmix.engine.members import capacity, cohorts
from pathmix.engine.packing import LARGE, Packing
from pathmix.engine.precision import engine_scope
from pathmix.engine.requests import Request, answered, asked, conducted, together

pytestmark = pytest.mark.usefixtures("engine")

GENERATOR = np.random.default_rng(0)
DATA = GENERATOR.normal(size=(80, 60))


def make():
    def member(common, fixed, moving):
        scale, data = fixed
        total = jnp.sum(jnp.tanh(data @ moving["x"]) * scale) + common[0]
        return {"total": total, "vector": moving["x"] * moving["n"], "is_positive": total > 0}

    return member


def request(number, data=DATA, common=(1.0,)):
    x = np.random.default_rng(number).normal(size=60)
    return Request("f", make, (np.float64(number), data), {"x": x, "n": number}, common)


def test_answers_do_not_depend_on_how_batches_are_cut():
    requests = [request(number) for number in range(21)]
    cut = {limit: Executables(limit).answer(requests) for limit in (1, 2_000, 2**28)}
    one_by_one = [Executables().answer([one])[0] for one in requests]
    for answers in (*cut.values(), one_by_one):
        for number, (mine, other) in enumerate(zip(answers, one_by_one, strict=True)):
            assert mine["total"] == other["total"] and mine["is_positive"] == other["is_positive"]
            np.testing.assert_array_equal(mine["vector"], request(number).moving["x"] * number)
            expected = np.sum(np.tanh(DATA @ request(number).moving["x"]) * number) + 1.0
            assert mine["total"] == pytest.approx(expected, rel=1e-12)


def test_common_numbers_and_own_data_are_told_apart():
    other = DATA + 1.0
    requests = [request(3), request(3, common=(5.0,)), request(3, data=other), request(4)]
    first, shifted, elsewhere, last = (answer["total"] for answer in Executables().answer(requests))
    assert shifted - first == pytest.approx(4.0)
    expected = np.sum(np.tanh(other @ requests[2].moving["x"]) * 3) + 1.0
    assert elsewhere == pytest.approx(expected, rel=1e-12)
    assert last == pytest.approx(np.sum(np.tanh(DATA @ requests[3].moving["x"]) * 4) + 1.0, rel=1e-12)


def adding(numbers, log):
    total = 0.0
    for number in numbers:
        (answer,) = yield [request(number)]
        total += float(answer["total"])
        log.append(number)
    return total


def test_tasks_together_give_what_each_gives_alone():
    executables, log = Executables(), []
    alone = [answered(adding(numbers, []), executables.answer) for numbers in ([1, 2, 3], [4], [5, 6])]
    rounds = []

    def answer(requests):
        rounds.append(len(requests))
        return executables.answer(requests)

    both = answered(together([adding([1, 2, 3], log), adding([4], log), adding([5, 6], log)]), answer)
    assert both == alone and rounds == [3, 2, 1] and log == [1, 4, 5, 2, 6, 3]


def test_an_error_reaches_only_those_whose_request_failed():
    def broken():
        yield from asked([Request("broken", lambda: None, (), {})])

    def caught():
        try:
            yield from broken()
        except TypeError:
            return "failed"

    results = answered(together([caught(), adding([1], [])]), Executables().answer)
    assert results[0] == "failed" and results[1] == answered(adding([1], []), Executables().answer)


def test_who_is_closed_closes_all_tasks():
    closed = []

    def task(name):
        try:
            while True:
                yield [request(1)]
        finally:
            closed.append(name)

    turns = conducted([together([task("a"), task("b")]), task("c")], Executables().answer)
    next(turns)
    turns.close()
    assert sorted(closed) == ["a", "b", "c"]


def test_trees_are_packed_and_unpacked():
    tree = {
        "scalar": 3.5,
        "whole": np.arange(4),
        "matrix": GENERATOR.normal(size=(3, 2)),
        "truth": np.array([True, False]),
        "nothing": np.zeros((0, 2)),
        "large": GENERATOR.normal(size=LARGE),
    }
    packing = Packing.of(tree)
    vectors = packing.pack(tree)
    assert len(vectors) == 3 and len(packing.large) == 1
    for back in (
        packing.unpack(vectors, [tree["large"]]),
        packing.unpack(*packing.pack_traced({name: jnp.asarray(leaf) for name, leaf in tree.items()})),
    ):
        assert back.keys() == tree.keys()
        for name, leaf in tree.items():
            np.testing.assert_array_equal(back[name], leaf)
            assert back[name].dtype == np.asarray(leaf).dtype


def test_batches_have_few_sizes():
    assert {capacity(n, 0, 2**28, None) for n in (1, 2, 3, 8, 100)} == {8}
    assert capacity(100, 2**27, 2**28, None) == 2 and capacity(1, 2**29, 2**28, None) == 1


def test_batches_side_by_side_have_few_sizes(monkeypatch):
    monkeypatch.setattr("pathmix.engine.members.takes_turns", lambda: False)
    assert [capacity(n, 0, 2**28, None) for n in (1, 6, 9, 1_000)] == [1, 8, 16, 512]
    assert [capacity(n, 0, 2**28, 32) for n in (7, 8, 33)] == [32, 32, 64]
    assert capacity(8, 2**27, 2**28, None) == 2 and capacity(1, 2**29, 2**28, None) == 1


def test_precisions_follow_one_another():
    """What was found out in single precision is none of the other's business."""
    number = np.array([1.0 + 1e-12])
    for precision, expected in (("float32", 1.0), ("float64", 1.0 + 1e-12), ("float32", 1.0)):
        with engine_scope(precision):
            request = Request("same", lambda: lambda _, fixed, moving: moving + 0, (), number)
            (found,) = Executables(shared=True).answer([request])
        assert found.dtype == precision and found[0] == expected


def test_arrays_may_be_put_on_a_device():
    for given in (np.ones(3), jnp.ones(3), jax.device_put(np.ones(3), jax.devices()[0])):
        found = Executables(shared=True).call("twice", lambda: lambda x: 2 * x, given)
        np.testing.assert_array_equal(found, 2.0)


def test_what_failed_is_kept_by_nobody():
    class Fails:
        def __call__(self, x):
            raise ValueError

    fails = Fails()
    kept = weakref.ref(fails)
    with pytest.raises(ValueError):
        Executables(shared=True).call("fails", lambda given=fails: given, 1.0)
    del fails
    gc.collect()
    assert kept() is None


def test_what_is_shared_does_not_hold_who_compiled_it():
    executables = Executables(shared=True)
    executables.answer([request(1)])
    executables.call("shared", lambda: lambda x: x + 1, 1.0)
    kept = weakref.ref(executables)
    del executables
    gc.collect()
    assert kept() is None


def test_cohorts_are_of_one_kind_and_leave_every_thread_some():
    groups = cohorts(range(25), lambda n: n % 2, threads=2)
    assert sorted(n for group in groups for n in group) == list(range(25))
    assert all(len({n % 2 for n in group}) == 1 and len(group) <= 8 for group in groups)
    assert len(cohorts(range(6), lambda n: 0, threads=2)) == 2


def test_executables_are_given_up_when_there_are_too_many(monkeypatch):
    """By number, or because the process has too many memory maps."""
    monkeypatch.setattr("pathmix.engine.executables._most_maps", lambda: 0)
    executables, built = Executables(), []

    def call(key):
        def build():
            built.append(key)
            return lambda x: x + key

        return executables.call(key, build, 1.0)

    for key in range(40):
        call(key)
    assert len(executables) < 32
    monkeypatch.undo()
    monkeypatch.setattr("pathmix.engine.executables.MOST_KEPT", 3)
    executables, built = Executables(), []
    for key in (*range(10), 9, 0):
        assert call(key) == 1.0 + key
    assert len(executables) == 3 and built == [*range(10), 0]


def test_what_nobody_reads_is_not_fetched():
    def build():
        def member(common, fixed, moving):
            return {"few": moving, "many": jnp.zeros(LARGE) + moving, "more": jnp.ones(LARGE)}

        return member

    def ignored(answer):
        return answer["more"], answer["few"]

    requests = [Request("h", build, (), np.float64(number), ignored=ignored) for number in range(3)]
    executables = Executables()
    for _ in range(2):  # what is large is known once it was traced
        for number, answer in enumerate(executables.answer(requests)):
            assert answer["more"] is None and answer["few"] is None
            assert np.array_equal(answer["many"], np.full(LARGE, float(number)))
