"""The posterior as a table of text."""

import math
from collections.abc import Sequence

from pathmix.posterior.fitted import FittedPath
from pathmix.posterior.verdict import with_error
from pathmix.target.labels import unique

MAX_ROWS = 20


def table(rows: Sequence[FittedPath], errors: Sequence[float] | None) -> str:
    """Best paths first; what does not fit is summed up in a last line.

    `errors` are of the weights, where these are made of evidences.
    """
    has_elbo = not any(math.isnan(row.elbo) for row in rows)
    headers = ("path", "weight", "log Z", *(("ELBO",) if has_elbo else ()), "k-hat", "steps", "status")
    shown = rows[:MAX_ROWS]
    labels = unique([row.short_label for row in shown])
    cells = [
        (
            labels[number],
            with_error(row.weight, math.nan if errors is None else errors[number]),
            with_error(row.log_evidence, row.log_evidence_error),
            *((f"{row.elbo:.3f}",) if has_elbo else ()),
            "" if math.isnan(row.khat) else f"{row.khat:.2f}",
            f"{row.steps:,}",
            str(row.status),
        )
        for number, row in enumerate(shown)
    ]
    widths = [max(len(line[i]) for line in [headers, *cells]) for i in range(len(headers))]
    lines = [_line(headers, widths), "  ".join("-" * width for width in widths)]
    lines += [_line(line, widths) for line in cells]
    return "\n".join([*lines, *left_over(rows)])


def left_over(rows: Sequence[FittedPath]) -> list[str]:
    """A line on the paths that do not fit, if there are any."""
    hidden = rows[MAX_ROWS:]
    return [f"... {len(hidden)} more, weight {sum(row.weight for row in hidden):.2g}"] if hidden else []


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    last = len(cells) - 1
    padded = [
        cell.ljust(width) if i in (0, last) else cell.rjust(width)
        for i, (cell, width) in enumerate(zip(cells, widths, strict=True))
    ]
    return "  ".join(padded).rstrip()
