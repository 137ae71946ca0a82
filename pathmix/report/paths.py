"""The table of paths: each row opens to what is known of its path, and of its sites."""

import math
import warnings
from collections.abc import Iterator
from html import escape
from typing import Any

import jax
import numpy as np

from pathmix.errors import PathmixWarning
from pathmix.posterior.draws import Draws
from pathmix.posterior.fitted import FittedPath
from pathmix.posterior.posterior import Posterior
from pathmix.posterior.verdict import with_error
from pathmix.target.labels import shortened, unique

_FIRST = 50  # rows that are shown before one asks for all
_MOST_OPEN = 100  # paths whose sites are drawn
_LEAST_WEIGHT = 1e-6  # of a path whose sites are drawn
_DRAWS = 1_000
_MOST_NUMBERS = 24  # of a site
_LONGEST = 48  # letters of a label in the table
_QUANTILES = (0.05, 0.5, 0.95)
_SUMMARY = ("mean", "sd", "5%", "50%", "95%")
_WIDE = "number wide"  # left out where there is little room
_HEADS = (
    ("path", ""), ("weight", "number"), ("log Z", _WIDE), ("ELBO", _WIDE), ("k-hat", _WIDE),
    ("prior mass", _WIDE), ("steps", _WIDE), ("status", ""),
)  # fmt: skip
_FILTER = '<p><input id="filter" type="search" placeholder="Find paths" aria-label="Find paths"></p>'


def paths_table(posterior: Posterior) -> str:
    """All paths, heaviest first."""
    labels = unique([shortened(path.label, _LONGEST) for path in posterior.paths])
    bodies = [_body(posterior, position, label) for position, label in enumerate(labels)]
    heads = "".join(
        f'<th scope="col" class="{kind}"><button type="button">{name}</button></th>' for name, kind in _HEADS
    )
    hidden = len(bodies) - _FIRST
    rest = sum(path.weight for path in posterior.paths[_FIRST:])
    tools = _FILTER if len(bodies) > 1 else ""
    more = (
        f'<p><button id="all" type="button">Show {hidden} more, weight {rest:.2g}</button></p>'
        if hidden > 0
        else ""
    )
    return (
        f'{tools}<div class="scroll"><table id="paths" data-first="{_FIRST}">'
        f"<thead><tr>{heads}</tr></thead>{''.join(bodies)}</table></div>{more}"
    )


def _body(posterior: Posterior, position: int, short: str) -> str:
    path = posterior.paths[position]
    error = posterior.weight_errors[path.label]
    names = f'title="{escape(path.label)}" class="open" aria-expanded="false"'
    opening = f'<button type="button" {names}>{escape(short)}</button>'
    cells = [
        (opening, path.label),
        (f"{with_error(path.weight, error)}{_bar(path.weight)}", path.weight),
        (with_error(path.log_evidence, path.log_evidence_error), path.log_evidence),
        (_number(path.elbo, ".3f"), path.elbo),
        (_number(path.khat, ".2f"), path.khat),
        (_number(path.prior_mass, ".3g"), path.prior_mass),
        (f"{path.steps:,}", path.steps),
        (escape(str(path.status)), str(path.status)),
    ]
    row = "".join(
        f'<td class="{kind}" data-sort="{escape(str(value))}">{text}</td>'
        for (_, kind), (text, value) in zip(_HEADS, cells, strict=True)
    )
    details = f'<td colspan="{len(cells)}">{_details(posterior, position)}</td>'
    return f'<tbody><tr>{row}</tr><tr class="details" hidden>{details}</tr></tbody>'


def _bar(weight: float) -> str:
    return f'<span class="bar" style="width:{100 * weight:.2f}%"></span>'


def _number(value: float, form: str) -> str:
    return "" if math.isnan(value) else format(value, form)


def _details(posterior: Posterior, position: int) -> str:
    path = posterior.paths[position]
    message = f"<p>{escape(path.message)}</p>" if path.message else ""
    doubts = "".join(f"<p>{escape(str(doubt))}</p>" for doubt in path.doubts)
    facts = "".join(f"<dt>{name}</dt><dd>{escape(text)}</dd>" for name, text in _known(path))
    with warnings.catch_warnings(record=True) as caught:  # which belong here, not on the screen
        warnings.simplefilter("always", PathmixWarning)
        sites = _sites(posterior, position)
    remarks = "".join(f"<p>{escape(str(one.message))}</p>" for one in caught)
    return f"{message}{doubts}<dl>{facts}</dl>{remarks}{sites}{_parameters(path)}"


def _known(path: FittedPath) -> Iterator[tuple[str, str]]:
    yield "path", path.label
    if any(f"{name}={value}" not in path.label for name, value in path.pinned.items()):
        yield "discrete sites", ", ".join(f"{name} = {value}" for name, value in path.pinned.items())
    yield "prior mass", f"{path.prior_mass:.3g}"
    yield "evidence", f"{with_error(path.log_evidence, path.log_evidence_error)}, by {path.evidence_method}"
    if not math.isnan(path.elbo):
        yield "ELBO", with_error(path.elbo, path.elbo_error)
    if not math.isnan(path.effective_draws):
        yield "effective draws", f"{path.effective_draws:,.0f}"
    if path.guide is not None and path.guide.params is not None and (dim := path.guide.layout.dim):
        family, ending = type(path.guide.family).__name__, "s" if dim > 1 else ""
        yield "guide", f"{family} of {dim} dimension{ending}, {path.steps:,} steps"
    if not math.isnan(path.acceptance) and path.acceptance < 1:
        yield "acceptance", f"{path.acceptance:.3g}"
    if path.gradient is not None and path.steps:
        yield "gradient", path.gradient
    yield "likelihood evaluations", f"{path.likelihood_evaluations:,}"


def _sites(posterior: Posterior, position: int) -> str:
    path = posterior.paths[position]
    if position >= _MOST_OPEN or path.weight < _LEAST_WEIGHT:
        return f"<p>Sites: {escape(', '.join(path.addresses))}.</p>"
    draws = posterior.sample(0, _DRAWS, path=position)
    rows = [row for name in draws if name not in path.pinned for row in _described(draws, name)]
    if not rows:
        return ""
    heads = "".join(f'<th scope="col" class="number">{name}</th>' for name in _SUMMARY)
    return (
        f'<table class="plain"><thead><tr><th scope="col">site</th>{heads}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table>"
    )


def _described(draws: Draws, name: str) -> Iterator[str]:
    values = np.asarray(draws[name], float)
    places = list(np.ndindex(*values.shape[1:]))
    for place in places[:_MOST_NUMBERS]:
        own = values[:, *place]
        with np.errstate(invalid="ignore"):  # of infinite numbers
            numbers = (own.mean(), own.std(), *np.quantile(own, _QUANTILES))
        label = name + (f"[{','.join(map(str, place))}]" if place else "")
        cells = "".join(f'<td class="number">{number:.4g}</td>' for number in numbers)
        yield f'<tr><th scope="row">{escape(label)}</th>{cells}</tr>'
    if len(places) > _MOST_NUMBERS:
        yield f'<tr><td colspan="6">... {len(places) - _MOST_NUMBERS} more of {escape(name)}</td></tr>'


def _parameters(path: FittedPath) -> str:
    if not path.parameters:
        return ""
    rows = "".join(
        f"<dt>{escape(name)}</dt><dd>{escape(_shown(value))}</dd>" for name, value in path.parameters.items()
    )
    return f"<h4>Parameters</h4><dl>{rows}</dl>"


def _shown(value: Any) -> str:
    leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(value)]
    count = sum(leaf.size for leaf in leaves)
    if count > _MOST_NUMBERS:
        return f"{count:,} numbers"
    return ", ".join(np.array2string(leaf, precision=4, separator=", ") for leaf in leaves)
