"""Fingerprints tell apart what differs, and are the same in every process."""

import functools
import os
import re
import subprocess
import sys
import threading
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
import pandas
import pytest
import torch

from pathmix.program.arguments import Columns
from pathmix.program.fingerprints import of_arguments, of_model, of_objects, of_taken_along


class Colour(Enum):
    RED = 1
    BLUE = 2


@dataclass
class Record:
    y: object


class Pair(NamedTuple):
    x: float
    y: object


class Thing:
    def __init__(self, y):
        self.y = y

    @functools.cached_property
    def worked_out(self):
        return self.y


class Slotted:
    __slots__ = ("y",)

    def __init__(self, y):
        self.y = y


class Array:
    """What NumPy cannot take."""

    def __init__(self, y):
        self._y = [y, self]


def frame(y):
    return pandas.DataFrame({"name": ["a", None], "y": y})


def scaled(scale):
    return lambda x: scale * x


# Two of a kind that differ, made by the same.
KINDS = {
    "tensor with a gradient": (lambda y: torch.tensor([y], requires_grad=True), 1.0, 4.0),
    "bfloat16": (lambda y: torch.tensor(y).bfloat16(), 1.0, 4.0),
    "table with texts": (frame, [1.0, 2.0], [1.0, -2.0]),
    "texts of a table": (lambda name: frame([1.0, 2.0]).assign(name=name), ["a", "b"], ["a", "c"]),
    "columns of a table": (lambda y: Columns(frame(y), jnp.asarray), [1.0, 2.0], [1.0, 3.0]),
    "index": (lambda i: frame([1.0, 2.0]).set_axis(i), [0, 1], [1, 0]),
    "categories": (lambda x: pandas.Series(x, dtype="category"), ["a", "b"], ["b", "a"]),
    "missing": (lambda x: pandas.Series([x, pandas.NA], dtype="string"), "a", "b"),
    "times": (lambda x: pandas.Series(pandas.to_datetime([x], utc=True)), "2020", "2021"),
    "dataclass": (Record, 1.0, -5.0),
    "nested": (lambda y: Record({"a": [Pair(1.0, {y, "u"})]}), 1.0, 2.0),
    "object": (Thing, 1.0, 2.0),
    "slots": (Slotted, 1.0, 2.0),
    "part of itself": (Array, 1.0, 2.0),
    "array of objects": (lambda y: np.array([y, None], object), 1.0, 2.0),
    "member of an enumeration": (Colour, 1, 2),
    "closure": (scaled, 1.0, 2.0),
    "partial": (lambda y: functools.partial(max, y), 1.0, 2.0),
    "generator of random numbers": (np.random.default_rng, 1, 2),
}


@pytest.mark.parametrize("kind", KINDS)
def test_content_is_compared(kind):
    make, one, other = KINDS[kind]
    found, again, changed = (of_objects(((make(value),), {})) for value in (one, one, other))
    assert found == again and found.digest != changed.digest and not found.untold


def digests():
    return [of_objects(((make(one),), {})).digest for make, one, _ in KINDS.values()]


def test_another_process_finds_the_same():
    """Where texts have other hashes."""
    code = "from tests.program.test_fingerprints import digests; print(*digests())"
    environment = {**os.environ, "PYTHONHASHSEED": "7"}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120, env=environment
    )
    assert done.stdout.split() == digests()


def test_what_cannot_be_told_is_named():
    found = of_objects(((1.0, threading.Lock()), {"pattern": re.compile("a")}))
    assert found.untold == ("[1] (lock)", "['pattern'] (Pattern)")


def test_what_was_worked_out_is_no_content():
    thing = Thing(1.0)
    before = of_objects(((thing,), {}))
    assert thing.worked_out == 1.0 and of_objects(((thing,), {})) == before


def test_plain_data_have_the_digests_that_they_had_in_earlier_versions():
    tree = {"k": jnp.ones(2, jnp.float32), "t": torch.zeros(2)}
    arguments = ((2.0, np.arange(3), "a", [1, 2], tree), {"n": None})
    assert of_arguments(arguments) == "26cbc70d48e6752adc0e3a5671ee548ccdde8cd6a9aad7cde8d97d0912348e1c"
    nothing = of_objects(((), {}))
    assert of_objects(arguments) == nothing and of_objects(((object,), {})) != nothing


def make(scale, seen):
    def model(y, *, shift=scale):
        seen.append(y)
        return scale * y + shift

    return model


class Model:
    def __init__(self, scale):
        self.scale, self.calls, self._kept = scale, 0, {}

    def __call__(self, y):
        self.calls += 1
        return self.scale * y


@functools.singledispatch
def plain(y):
    return y


@pytest.mark.parametrize(
    "given",
    [
        lambda scale: make(scale, []),
        lambda scale: functools.partial(plain, scale),
        lambda scale: functools.partial(plain, y=scale),
        lambda scale: functools.partial(make(scale, [])),
        Model,
        lambda scale: Model(scale).__call__,
        lambda scale: make((scale, torch.tensor(2.0)), []),
        lambda scale: make(scaled(scale), []),
        lambda scale: functools.wraps(plain)(scaled(scale)),
    ],
)
def test_models_differ_in_what_they_take_along(given):
    one, again, other = given(1.0), given(1.0), given(5.0)
    assert of_model(one) == of_model(other)
    assert of_taken_along(one) == of_taken_along(again) != of_taken_along(other)


def test_what_runs_write_is_no_difference():
    model, seen = Model(2.0), []
    noting = make(2.0, seen)
    before = of_taken_along(model), of_taken_along(noting)
    assert model(1.0) == 2.0 and noting(1.0) == 4.0 and model.calls == 1 and seen == [1.0]
    assert (of_taken_along(model), of_taken_along(noting)) == before
