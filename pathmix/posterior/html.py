"""The posterior as notebooks show it. Colours are those of the page, which may be light or dark."""

import math
from collections.abc import Sequence
from html import escape

from pathmix.posterior.fitted import FittedPath
from pathmix.posterior.table import MAX_ROWS, left_over
from pathmix.posterior.verdict import with_error
from pathmix.target.labels import unique

_BAR = "display:inline-block;height:0.8em;vertical-align:middle;background:currentColor;opacity:0.55"
_LEFT, _RIGHT = "text-align:left", "text-align:right"
_MARKS = {True: "&#10003;", False: "&#9888;"}  # a tick, a warning


def as_html(
    title: str,
    paths: Sequence[FittedPath],
    errors: Sequence[float] | None,
    verdict: str,
    is_ok: bool,
    remarks: Sequence[str],
) -> str:
    """A table with weights as bars, and what can be relied on. `errors` are of the weights."""
    labels = unique([path.short_label for path in paths[:MAX_ROWS]])
    rows = [
        _row(path, label, None if errors is None else errors[number])
        for number, (path, label) in enumerate(zip(paths, labels, strict=False))
    ]
    rows += [f'<tr><td colspan="7" style="{_LEFT}">{rest}</td></tr>' for rest in left_over(paths)]
    heads = ("path", "weight", "", "log Z", "k-hat", "steps", "status")
    header = "".join(
        f'<th style="{_LEFT if place in (0, 1, 6) else _RIGHT}">{head}</th>'
        for place, head in enumerate(heads)
    )
    notes = "".join(f"<p>{escape(remark)}</p>" for remark in remarks)
    return (
        f"<div><p><b>{escape(title)}</b></p>"
        f"<table><thead><tr>{header}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
        f"<p>{_MARKS[is_ok]} {escape(verdict)}</p>{notes}</div>"
    )


def _row(path: FittedPath, label: str, error: float | None) -> str:
    weight = with_error(path.weight, math.nan if error is None else error)
    cells = [
        (_LEFT, f'<span title="{escape(path.label)}">{escape(label)}</span>'),
        (_LEFT, f'<span style="{_BAR};width:{12 * path.weight:.2f}em"></span>'),
        (_RIGHT, weight),
        (_RIGHT, with_error(path.log_evidence, path.log_evidence_error)),
        (_RIGHT, "" if math.isnan(path.khat) else f"{path.khat:.2f}"),
        (_RIGHT, f"{path.steps:,}"),
        (_LEFT, escape(str(path.status))),
    ]
    return "<tr>" + "".join(f'<td style="{style}">{text}</td>' for style, text in cells) + "</tr>"
