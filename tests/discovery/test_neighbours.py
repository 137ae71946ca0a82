"""Neighbours of a path: one site changed, subtrees moved by renaming them, values exchanged."""

from dataclasses import replace
from functools import cache

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from numpyro import sample

from pathmix.discovery.grammar import Grammar, unordered
from pathmix.discovery.neighbours import is_supported, mirrored, neighbours, same_tree
from pathmix.discovery.search import Search
from pathmix.frontends.recognise import bind
from pathmix.program.program import Limits
from pathmix.program.seeds import Seed
from tests.evidence.searching import paths_of

pytestmark = pytest.mark.usefixtures("engine")
LEAF, ADD, NEGATE = 0, 1, 2


def tree(name):
    """Leaves, sums and negations."""
    kind = int(sample(f"{name}.kind", dist.Categorical(jnp.array([0.6, 0.2, 0.2]))))
    if kind == LEAF:
        return sample(f"{name}.value", dist.Normal(0, 1))
    left = tree(f"{name}.l")
    return left + tree(f"{name}.r") if kind == ADD else -left


def counted(y):
    """The same grammar in prefix order, with running numbers."""
    numbers = iter(range(100))

    def grow():
        kind = int(sample(f"kind_{next(numbers)}", dist.Categorical(jnp.array([0.6, 0.2, 0.2]))))
        if kind == LEAF:
            return 1.0
        return grow() + grow() if kind == ADD else -grow()

    numpyro.sample("y", dist.Normal(grow() + sample("x", dist.Normal(0, 1)), 1), obs=y)


def named(y):
    numpyro.sample("y", dist.Normal(tree("t"), 1), obs=y)


@cache
def found_in(model):
    """The paths that prior runs take, by their values."""
    return {path.slp.path.pinned: path.slp for path in paths_of(model, 0.0)}


def around(model, pinned):
    """The neighbours of one of the paths that prior runs take, as sets of values."""
    slps = found_in(model)
    grammar = Grammar()
    for slp in slps.values():
        grammar.learn(dict(slp.path.pinned))
    own = slps[tuple(pinned.items())]
    others = [slp for slp in slps.values() if slp is not own]
    found = neighbours(own, others, grammar, np.random.default_rng(0))
    return {frozenset(proposal.items()) for proposal in found}


@pytest.mark.parametrize(
    "wanted",
    [
        {"t.kind": ADD, "t.l.kind": LEAF, "t.r.kind": NEGATE},  # one changed
        {"t.kind": NEGATE, "t.l.kind": ADD, "t.l.l.kind": LEAF, "t.l.r.kind": LEAF},  # put below a new node
        {"t.kind": LEAF},  # put in the place of the node above
        {"t.kind": ADD, "t.l.kind": LEAF},  # the right subtree grows anew
        {"t.kind": ADD, "t.l.kind": LEAF, "t.r.kind": ADD, "t.r.l.kind": LEAF, "t.r.r.kind": LEAF},  # grafted
    ],
)
def test_subtrees_move_with_their_names(wanted):
    found = around(named, {"t.kind": ADD, "t.l.kind": LEAF, "t.r.kind": LEAF})
    assert frozenset(wanted.items()) in found


@pytest.mark.parametrize(
    "wanted",
    [
        {"kind_0": NEGATE, "kind_1": ADD, "kind_2": LEAF, "kind_3": LEAF},  # one put in, the others make room
        {"kind_0": LEAF, "kind_1": LEAF},  # one taken out
        {"kind_0": LEAF, "kind_1": ADD, "kind_2": LEAF},  # exchanged
        {"kind_0": NEGATE},  # begun again
    ],
)
def test_numbered_sites_make_room(wanted):
    found = around(counted, {"kind_0": ADD, "kind_1": LEAF, "kind_2": LEAF})
    assert frozenset(wanted.items()) in found


def test_something_is_always_put_in():
    """With its only numbered sites taken out, nothing would be left of a proposal: a run from the prior."""
    assert frozenset() not in around(counted, {"kind_0": NEGATE, "kind_1": LEAF})


def test_vectors_change_in_one_element_or_exchange_two():
    def model(y):
        used = sample("used", dist.Bernoulli(0.5).expand([3]).to_event(1))
        weights = [sample(f"w_{i}", dist.Normal(0, 1)) for i in range(3) if used[i]]
        sample("y", dist.Normal(sum(weights, jnp.zeros(())), 1), obs=y)

    found = around(model, {"used": (1, 0, 0)})
    values = {dict(proposal)["used"] for proposal in found}
    assert values == {(0, 0, 0), (1, 1, 0), (1, 0, 1), (0, 1, 0), (0, 0, 1)}


def test_values_that_cannot_be_drawn_are_no_path():
    """A value that is kept where there are fewer to choose from would be clipped by JAX without a word."""

    def model(y):
        wide = int(sample("wide", dist.Bernoulli(0.5)))
        choice = sample("choice", dist.Categorical(logits=jnp.zeros(4 if wide else 2)))
        sample("y", dist.Normal(sample("x", dist.Normal(choice, 1)), 1), obs=y)

    search = Search(bind(model, (0.0,), {}, Limits(100, 60.0)), 100, lambda *_: None, Seed.of(0))
    search.from_prior(200)
    before = set(search.slps)
    assert len(before) == 6 and all(map(is_supported, search.slps.values()))
    search.with_values({"wide": np.zeros(64, int), "choice": np.full(64, 3)}, Seed.of(1))
    assert set(search.slps) == before


def test_numbers_of_two_digits_are_no_subtrees():
    """`toss_12` comes after `toss_11`, and does not lie below `toss_1`; `op10` lies below `op1`."""
    grammar = Grammar()
    grammar.learn({f"toss_{number}": 0 for number in range(13)})
    assert not grammar.nests
    grammar.learn({f"second_{number}": 0 for number in (1, 4, 5, 8, 10, 12)})  # with gaps
    assert not grammar.nests
    grammar.learn(dict.fromkeys(("op0", "op1", "op00", "op01", "op10", "op11"), 1))
    assert grammar.nests


def test_subtrees_are_exchanged_in_all_orders():
    """Of a sum in a sum: both orders of each."""
    slps = {tuple(sorted(path)): slp for path, slp in found_in(named).items()}
    grammar = Grammar()
    for slp in slps.values():
        grammar.learn(dict(slp.path.pinned))
    inner = {"t.l.kind": ADD, "t.l.l.kind": LEAF, "t.l.r.kind": NEGATE, "t.l.r.l.kind": LEAF}
    other = {"t.r.kind": LEAF}
    own = next(slp for slp in slps.values() if len(slp.path.pinned) > 1)
    given = replace(own, path=replace(own.path, pinned=tuple({"t.kind": ADD, **inner, **other}.items())))
    found = [tuple(sorted(one.items())) for one in mirrored(given, grammar)]
    turned = {"t.l.kind": ADD, "t.l.r.kind": LEAF, "t.l.l.kind": NEGATE, "t.l.l.l.kind": LEAF}
    assert len(found) == 3
    assert tuple(sorted({"t.kind": ADD, **turned, **other}.items())) in found


def test_trees_that_differ_in_order_only():
    grammar = Grammar()
    one = {"t.kind": ADD, "t.l.kind": NEGATE, "t.l.l.kind": LEAF, "t.r.kind": LEAF, "n": 3}
    other = {"n": 3, "t.kind": ADD, "t.r.kind": NEGATE, "t.r.l.kind": LEAF, "t.l.kind": LEAF}
    deeper = {
        "t.kind": ADD,
        "t.r.kind": NEGATE,
        "t.r.l.kind": NEGATE,
        "t.r.l.l.kind": LEAF,
        "t.l.kind": LEAF,
        "n": 3,
    }
    for setting in (one, other, deeper):
        grammar.learn(setting)
    assert unordered(one, grammar) == unordered(other, grammar) != unordered(deeper, grammar)
    assert unordered(one, grammar) != unordered(other | {"n": 4}, grammar)
    assert unordered({"a": 1, "b": 2}, grammar) != unordered({"a": 2, "b": 1}, grammar)


def test_other_values_that_keep_the_tree():
    """A sum has two below it, a negation one, a leaf none."""

    def model(y):
        sample("level", dist.Categorical(probs=np.ones(3) / 3))
        named(y)

    slps = {path.slp.path.pinned: path.slp for path in paths_of(model, 0.0)}
    grammar = Grammar()
    for slp in slps.values():
        grammar.learn(dict(slp.path.pinned))
    for pinned, slp in slps.items():
        own, found = dict(pinned), list(same_tree(slp, grammar))
        assert [one for one in found if one != own | {"level": one["level"]}] == []
        assert sorted(one["level"] for one in found) == [value for value in range(3) if value != own["level"]]
