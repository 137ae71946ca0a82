"""Functions return to where they were compiled, unless others would be done earlier."""

from pathmix.cluster.placement import Placement


def test_a_function_returns_to_its_worker():
    placement = Placement(3)
    for _ in range(2):
        for function, worker in (("a", 0), ("b", 1), ("c", 2)):
            chosen, expected = placement.choose(function, range(3))
            assert chosen == worker
            placement.done(chosen, expected)
            placement.learn(function, 0.1, was_new=False)


def test_idle_workers_compile_it_too_where_waiting_takes_longer():
    placement = Placement(2)
    placement.done(*placement.choose("a", range(2)))
    placement.learn("a", 0.3, was_new=False)  # where compiling takes a second
    assert [placement.choose("a", range(2))[0] for _ in range(6)] == [0, 0, 0, 0, 1, 0]


def test_what_was_lost_is_compiled_again_anywhere():
    placement = Placement(2)
    placement.done(*placement.choose("a", range(2)))
    placement.forget(0)
    assert placement.choose("b", [0])[0] == 0
    assert placement.choose("a", range(2))[0] == 1  # the other one has work


def test_only_those_that_are_there_are_chosen():
    placement = Placement(3)
    assert {placement.choose(function, [2])[0] for function in "abc"} == {2}
