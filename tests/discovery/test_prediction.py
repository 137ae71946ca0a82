"""Worths that are predicted from those of relatives."""

import itertools

import numpy as np
import pytest

from pathmix.discovery.prediction import Prediction

SETTINGS = [
    dict(zip("abcdef", values, strict=True)) for values in itertools.product(range(2), range(3), repeat=3)
]


def worth(setting):
    """Sites add up, and two of them go together."""
    alone = sum(weight * setting[name] for weight, name in enumerate("abcdef", start=1))
    return alone - 4.0 * setting["a"] * setting["f"]


def halves():
    order = np.random.default_rng(0).permutation(len(SETTINGS))
    return ([SETTINGS[number] for number in part] for part in np.split(order, 2))


def test_relatives_tell_what_others_are_worth():
    known, others = halves()
    prediction = Prediction(known, [worth(setting) for setting in known])
    truth = np.array([worth(setting) for setting in others])
    error = np.sqrt(np.mean((prediction(others) - truth) ** 2))
    assert error < 0.25 * np.std(truth)
    assert worth(others[np.argmax(prediction(others))]) == max(truth)


def test_what_is_known_comes_out_again():
    known, _ = halves()
    truth = np.array([worth(setting) for setting in known])
    assert Prediction(known, truth)(known) == pytest.approx(truth, abs=0.05)


def test_elements_of_a_vector_are_values_of_their_own():
    known, others = halves()
    truth = [worth(setting) for setting in known]
    as_vectors = Prediction([{"v": tuple(setting.values())} for setting in known], truth)
    found = as_vectors([{"v": tuple(setting.values())} for setting in others])
    assert found == pytest.approx(Prediction(known, truth)(others))


def test_hopeless_relatives_do_not_drown_the_others():
    """All that is far below the best is equally bad, however bad."""
    known, others = halves()
    truth = [worth(setting) for setting in known]
    far = [{**setting, "g": 1} for setting in known]
    found = [Prediction([*known, *far], [*truth, *[depth] * len(far)])(others) for depth in (-1_000.0, -1e9)]
    assert found[0] == pytest.approx(found[1])


def test_what_nobody_knows_is_worth_what_all_are_on_average():
    known, _ = halves()
    truth = [worth(setting) for setting in known]
    stranger = {f"other{number}": 1 for number in range(200)}
    assert Prediction(known, truth)([stranger])[0] == pytest.approx(np.mean(truth), abs=1e-3)
