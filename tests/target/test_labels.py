"""Labels that a person reads."""

from types import SimpleNamespace
from typing import Any

import numpyro
import numpyro.distributions as dist
import pyro
import pyro.distributions as pdist
import pytest
import torch

import pathmix
from pathmix.errors import OptionError
from pathmix.posterior.table import table
from pathmix.target.labels import shortened
from pathmix.target.nested import nested

ALLOCATION = pathmix.Uniform(50)
DATA = torch.tensor(2.0)


def a_path(label) -> Any:
    numbers = dict.fromkeys(("weight", "log_evidence", "log_evidence_error", "elbo", "khat"), 0.1)
    return SimpleNamespace(
        label=label, short_label=shortened(label), steps=1, status=pathmix.Status.OK, **numbers
    )


def tree(*names):
    return [(name, number) for number, name in enumerate(names)]


@pytest.mark.parametrize(
    ("pinned", "text"),
    [
        (tree("op_e", "op_el", "op_er"), "op: 0(1, 2)"),
        (tree("op_e", "op_el", "op_ell", "op_elr", "op_er"), "op: 0(1(2, 3), 4)"),
        (tree("k.kind", "k.l.kind", "k.r.kind", "k.r.l.kind"), "kind: 0(1, 2(3))"),
        (tree("op_e", "n_e", "op_el", "n_el", "op_er", "n_er"), "op/n: 0/1(2/3, 4/5)"),
        (tree("op_e", "op_el"), None),  # too small
        (tree("mu_0", "mu_1", "mu_2", "mu_10"), None),
        (tree("a", "ab", "ac"), None),
    ],
)
def test_sites_that_nest_make_an_expression(pinned, text):
    found = nested(pinned, str)
    assert (None if found is None else found[1]) == text
    if found is not None:
        assert found[0] == {name for name, _ in pinned}


def grammar(y):
    noise = numpyro.sample("noise", dist.HalfNormal(1.0))
    wide = numpyro.sample("wide", dist.Bernoulli(0.5))

    def size(name):
        if len(name) < 3 and numpyro.sample(f"splits_{name}", dist.Bernoulli(0.4)):
            return size(name + "l") + size(name + "r")
        return 1

    numpyro.sample("y", dist.Normal(float(size("s")) + (1.0 if wide else 0.0), 0.1 + noise), obs=y)


def pyro_grammar(y):
    noise = pyro.sample("noise", pdist.HalfNormal(1.0))

    def size(name):
        if len(name) < 3 and pyro.sample(f"splits_{name}", pdist.Bernoulli(0.4)):
            return size(name + "l") + size(name + "r")
        return 1

    pyro.sample("y", pdist.Normal(float(size("s")), 0.1 + noise), obs=y)


def fitted(model, **options):
    discovery = pathmix.PriorDiscovery(100)
    return pathmix.SDVI(
        model, discovery=discovery, allocation=ALLOCATION, weights="elbo", starts=1, progress=False, **options
    ).run(0, DATA if model is pyro_grammar else 2.0)


@pytest.mark.parametrize("model", [grammar, pyro_grammar])
def test_a_grammar(model):
    labels = [path.label for path in fitted(model).paths]
    assert any("splits: 1(0, 1)" in label for label in labels)
    assert len(set(labels)) == len(labels)


def test_names_of_the_user():
    def name(path):
        return f"{sum(path.pinned.values())} of {len(path.addresses)}"

    labels = [path.label for path in fitted(pyro_grammar, label=name).paths]
    assert {"0 of 2", "3 of 4"} <= set(labels)
    assert {"1 of 4"} <= set(labels) and any(label.startswith("2 of 4 #") for label in labels)


def test_a_name_that_fails():
    with pytest.raises(OptionError, match=r"label= failed for the path .*KeyError: 'k'.*`pinned`"):
        fitted(pyro_grammar, label=lambda path: path.pinned["k"])


def test_names_are_for_divide_and_conquer_too():
    found = pathmix.DCC(pyro_grammar, label=lambda path: path.text.upper(), iterations=20, progress=False)
    assert all(path.label == path.label.upper() for path in found.run(0, DATA).paths)


def test_no_two_rows_look_alike():
    long = [", ".join(f"x{i}_a={i if i != 10 else n}" for i in range(30)) for n in range(3)]
    assert len({shortened(label) for label in long}) == 1
    lines = table([a_path(label) for label in long], None).splitlines()[2:]
    assert len({line.split("  ")[0] for line in lines}) == 3


@pytest.mark.parametrize(
    ("text", "short"),
    [
        (", ".join(f"on_{i}={i % 2}" for i in range(20)), "on_0..19=" + "01" * 10),
        ("k=3, " + ", ".join(f"z{i}={9 + i}" for i in range(9)) + ", " + 9 * "long ", None),
        (
            ", ".join(f"a_{2 * i}=1" for i in range(20)),
            "a_0=1, a_2=1, a_4=1, a_6=1, ... 2=1, a_34=1, a_36=1, a_38=1",
        ),
    ],
)
def test_running_numbers_are_taken_together(text, short):
    expected = short or "k=3, z0..8=9,10,11,12,13,14 ... " + (9 * "long ")[-27:]
    assert shortened(text) == expected


def test_long_tables_end_with_what_is_left():
    rows = [a_path(f"k={i}") for i in range(30)]
    assert table(rows, None).splitlines()[-1].startswith("... 10 more, weight ")
