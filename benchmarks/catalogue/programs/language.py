"""Grammars, formulas and programs."""

import math
from collections import defaultdict
from functools import cache

import numpy as np
import pyro
import pyro.distributions as dist
import torch
from scipy import stats

from benchmarks.catalogue.entry import EVIDENCE, Entry, count, share

GRAMMAR = {
    "S": [(1.0, ("NP", "VP"))],
    "NP": [(0.4, ("pronoun",)), (0.4, ("det", "noun")), (0.2, ("NP", "PP"))],
    "VP": [(0.7, ("verb", "NP")), (0.3, ("VP", "PP"))],
    "PP": [(1.0, ("preposition", "NP"))],
}
LEXICON = {
    "pronoun": {"she": 0.7, "him": 0.3},
    "det": {"the": 1.0},
    "noun": {"man": 0.6, "telescope": 0.4},
    "verb": {"saw": 1.0},
    "preposition": {"with": 1.0},
}
VOCABULARY = ["she", "him", "the", "man", "telescope", "saw", "with"]
SENTENCE = ["she", "saw", "the", "man", "with", "the", "telescope"]


class TooLongError(Exception):
    """There are more words than were heard."""


def grammar(sentence):
    """Who has the telescope: all parses of a sentence."""
    said = 0
    used = 0
    attached = []

    def expand(symbol):
        nonlocal said, used
        if symbol in LEXICON:
            if said == len(sentence):
                pyro.factor("too_long", -math.inf)
                raise TooLongError
            probs = torch.tensor([LEXICON[symbol].get(word, 0.0) for word in VOCABULARY])
            word = torch.tensor(VOCABULARY.index(sentence[said]))
            pyro.sample(f"word_{said}", dist.Categorical(probs), obs=word)
            said += 1
            return
        probs = torch.tensor([p for p, _ in GRAMMAR[symbol]])
        rule = pyro.sample(f"rule_{used}", dist.Categorical(probs))
        used += 1
        children = GRAMMAR[symbol][rule][1]
        if "PP" in children:
            attached.append(symbol)
        for child in children:
            expand(child)

    try:
        expand("S")
    except TooLongError:
        return
    if said < len(sentence):
        pyro.factor("too_short", -math.inf)
    pyro.deterministic("to_the_verb", torch.tensor(float("VP" in attached)))


def grammar_answers():
    @cache
    def inside(symbol, begin, end):
        if symbol in LEXICON:
            return LEXICON[symbol].get(SENTENCE[begin], 0.0) if end == begin + 1 else 0.0
        total = 0.0
        for p, children in GRAMMAR[symbol]:
            if len(children) == 1:
                total += p * inside(children[0], begin, end)
            else:
                total += p * sum(
                    inside(children[0], begin, k) * inside(children[1], k, end) for k in range(begin + 1, end)
                )
        return total

    total = inside("S", 0, 7)
    verb = 1.0 * inside("NP", 0, 1) * 0.3 * inside("VP", 1, 4) * inside("PP", 4, 7)
    return {EVIDENCE: math.log(total), "P(to the verb)": verb / total}


def sentence_length(words):
    """The derivations of a sentence of which only the length was heard."""

    def sentence(name):
        if pyro.sample(f"splits_{name}", dist.Bernoulli(0.4)):
            return sentence(f"{name}0") + sentence(f"{name}1")
        return 1

    pyro.sample("words", dist.Normal(float(sentence("s")), 0.6), obs=words)


def sentence_length_answers():
    n = np.arange(1, 200)
    trees = np.array([math.comb(2 * k - 2, k - 1) / k * 0.24 ** (k - 1) * 0.6 for k in n.tolist()])
    chances = trees * stats.norm(n, 0.6).pdf(4.0)
    return {EVIDENCE: math.log(chances.sum()), "E[length]": chances @ n / chances.sum()}


XS, YS = [1.0, 2.0, 3.0], [2.1, 4.8, 9.9]
LEAF = 0.95


def formula(xs, ys):
    """Formulas that explain points."""

    def expression(name):
        if pyro.sample(f"leaf_{name}", dist.Bernoulli(LEAF)):
            leaf = pyro.sample(f"number_{name}", dist.Categorical(torch.tensor([0.4, 0.2, 0.2, 0.2])))
            return str(leaf.item()) if leaf else "x"
        op = "+*"[pyro.sample(f"op_{name}", dist.Bernoulli(0.5)).long()]
        return f"({expression(name + 'l')} {op} {expression(name + 'r')})"

    mean = eval(expression("e"), {"x": xs}) * torch.ones(len(xs))
    with pyro.plate("points", len(xs)):
        pyro.sample("y", dist.Normal(mean, 0.5), obs=ys)


OPS = {"+": np.add, "*": np.multiply}


def formula_answers():
    """Distributions of the three values, by depth; those rarer than 1e-6, or beyond 200, are left out."""
    leaves = {(1, 2, 3): 0.4, (1, 1, 1): 0.2, (2, 2, 2): 0.2, (3, 3, 3): 0.2}
    values, chances = np.array(list(leaves)), LEAF * np.array(list(leaves.values()))
    op_chance = (1 - LEAF) / 2
    base = np.array([401**2, 401, 1])
    for _ in range(7):
        i, j = np.nonzero(np.outer(chances, chances) > 1e-8)
        found = [op(values[i], values[j]) for op in OPS.values()]
        likes = [op_chance * chances[i] * chances[j]] * 2
        within = [np.abs(value).max(-1) <= 200 for value in found]
        codes = np.concatenate([(v[w] + 200) @ base for v, w in zip(found, within, strict=True)])
        weights = np.concatenate([p[w] for p, w in zip(likes, within, strict=True)])
        codes = np.concatenate([codes, (np.array(list(leaves)) + 200) @ base])
        weights = np.concatenate([weights, LEAF * np.array(list(leaves.values()))])
        unique, place = np.unique(codes, return_inverse=True)
        chances = np.bincount(place, weights)
        unique, chances = unique[chances > 1e-6], chances[chances > 1e-6]
        values = np.stack([unique // base[0], unique // 401 % 401, unique % 401], -1) - 200
    parts = {}
    for name, op in OPS.items():
        likes = stats.norm(op(values[:, None], values), 0.5).pdf(YS).prod(-1)
        parts[name] = op_chance * chances @ likes @ chances
    leaf = sum(LEAF * p * stats.norm(value, 0.5).pdf(YS).prod() for value, p in leaves.items())
    total = leaf + sum(parts.values())
    return {EVIDENCE: math.log(total), "P(a sum)": parts["+"] / total}


EXAMPLES = [(1, 4), (2, 6), (3, 7)]
STEPS = {
    "increment": lambda x: x + 1,
    "double": lambda x: 2 * x,
    "negate": lambda x: -x,
    "square": lambda x: min(x * x, 1000),
}


def induction(examples):
    """Short programs that turn inputs into outputs, roughly."""
    program = []
    while pyro.sample(f"more_{len(program)}", dist.Bernoulli(0.5)):
        step = pyro.sample(f"step_{len(program)}", dist.Categorical(torch.ones(4) / 4))
        program.append(list(STEPS)[step])
    for i, (x, y) in enumerate(examples):
        for step in program:
            x = STEPS[step](x)
        pyro.sample(f"output_{i}", dist.Normal(float(x), 1.0), obs=torch.tensor(float(y)))


def induction_answers():
    states = {tuple(x for x, _ in EXAMPLES): 1.0}
    chances = []
    for length in range(13):
        if length:
            following = defaultdict(float)
            for state, p in states.items():
                for step in STEPS.values():
                    following[tuple(map(step, state))] += p / 4
            states = following
        like = stats.norm(np.array(list(states)), 1).pdf([y for _, y in EXAMPLES]).prod(-1)
        chances.append(0.5 ** (length + 1) * (like @ list(states.values())))
    return {EVIDENCE: math.log(sum(chances)), "E[length]": np.dot(chances, range(13)) / sum(chances)}


ENTRIES = [
    Entry(
        grammar,
        "pyro",
        origin="textbooks: ambiguous attachment",
        args=(SENTENCE,),
        against="the inside algorithm",
        answers=grammar_answers,
        read={"P(to the verb)": lambda draws: draws["to_the_verb"]},
    ),
    Entry(
        sentence_length,
        "pyro",
        origin="Church, PCFG",
        args=(torch.tensor(4.0),),
        against="Catalan numbers",
        answers=sentence_length_answers,
        read={"E[length]": lambda draws: (count(draws, "splits_") + 1) / 2},
    ),
    Entry(
        formula,
        "pyro",
        origin="Church, symbolic regression, in small",
        args=(torch.tensor(XS), torch.tensor(YS)),
        against="recursion over values",
        answers=formula_answers,
        read={"P(a sum)": lambda draws: share(draws, "op_e", lambda op: op == 0)},
    ),
    Entry(
        induction,
        "pyro",
        origin="program induction; Liang et al. 2010, in small",
        args=(EXAMPLES,),
        against="enumeration",
        answers=induction_answers,
        read={"E[length]": lambda draws: count(draws, "step_")},
    ),
]
