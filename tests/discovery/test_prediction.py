"""Worths that are predicted from those of relatives."""

import itertools

import numpy as np
import pytest

from pathmix.discovery.grammar import Grammar
from pathmix.discovery.prediction import Pieces, Prediction

SETTINGS = [
    dict(zip("abcdef", values, strict=True)) for values in itertools.product(range(2), range(3), repeat=3)
]


def worth(setting):
    """Sites add up, and two of them go together."""
    alone = sum(weight * setting[name] for weight, name in enumerate("abcdef", start=1))
    return alone - 4.0 * setting["a"] * setting["f"]


FLAT = Grammar()
FLAT.learn(SETTINGS[0])


def tree(shape, name="e"):
    """The sites of a tree of sums: a number is a leaf."""
    if isinstance(shape, int):
        return {f"{name}.kind": shape}
    left, right = (tree(part, f"{name}.{side}") for part, side in zip(shape, "lr", strict=True))
    return {f"{name}.kind": 9, **left, **right}


def nesting():
    grammar = Grammar()
    grammar.learn(tree(((1, 2), (2, 1))))
    return grammar


def shapes(depth):
    below = shapes(depth - 1) if depth else ()
    return [0, 1, 2, *itertools.product(below, repeat=2)]


def halves():
    order = np.random.default_rng(0).permutation(len(SETTINGS))
    return ([SETTINGS[number] for number in part] for part in np.split(order, 2))


def test_relatives_tell_what_others_are_worth():
    known, others = halves()
    prediction = Prediction(known, [worth(setting) for setting in known], FLAT)
    truth = np.array([worth(setting) for setting in others])
    error = np.sqrt(np.mean((prediction(others) - truth) ** 2))
    assert error < 0.25 * np.std(truth)
    assert worth(others[np.argmax(prediction(others))]) == max(truth)


def test_what_is_like_a_known_one_promises_nothing_new():
    known, others = halves()
    prediction = Prediction(known, [worth(setting) for setting in known], FLAT)
    assert np.all(prediction(known) == -np.inf)
    assert np.all(np.isfinite(prediction(others)))


def test_elements_of_a_vector_are_values_of_their_own():
    known, others = halves()
    truth = [worth(setting) for setting in known]
    as_vectors = Prediction([{"v": tuple(setting.values())} for setting in known], truth, FLAT)
    found = as_vectors([{"v": tuple(setting.values())} for setting in others])
    assert found == pytest.approx(Prediction(known, truth, FLAT)(others))


def test_hopeless_relatives_do_not_drown_the_others():
    """All that is far below the best is equally bad, however bad."""
    known, others = halves()
    truth = [worth(setting) for setting in known]
    far = [{**setting, "g": 1} for setting in known]
    found = [
        Prediction([*known, *far], [*truth, *[depth] * len(far)], FLAT)(others) for depth in (-1_000.0, -1e9)
    ]
    assert found[0] == pytest.approx(found[1])


def test_what_nobody_knows_is_worth_what_all_are_on_average():
    known, _ = halves()
    truth = [worth(setting) for setting in known]
    stranger = {f"other{number}": 1 for number in range(200)}
    assert Prediction(known, truth, FLAT)([stranger])[0] == pytest.approx(np.mean(truth), abs=1e-3)


def test_pieces_of_a_tree_count_wherever_they_stand():
    """Worth is the number of sums of a one and a two, which no value of a site tells."""

    def sums(shape):
        if isinstance(shape, int):
            return 0
        return (sorted(map(str, shape)) == ["1", "2"]) + sum(map(sums, shape))

    everything = shapes(2)
    order = np.random.default_rng(0).permutation(len(everything))
    known, others = ([everything[number] for number in part] for part in (order[:60], order[60:]))
    prediction = Prediction([tree(one) for one in known], [float(sums(one)) for one in known], nesting())
    found = prediction([tree(one) for one in others])
    new = np.isfinite(found)
    truth = np.array([sums(one) for one in others], float)
    assert np.sqrt(np.mean((found - truth)[new] ** 2)) < 0.4 * np.std(truth)
    assert truth[np.argmax(found)] == max(truth[new])


def test_a_tree_with_sides_exchanged_is_no_other_one():
    pieces = Pieces(nesting())
    one, twin, other = (sorted(pieces(tree(shape))) for shape in ((1, (0, 2)), ((2, 0), 1), ((1, 0), 2)))
    assert one == twin
    assert one != other
