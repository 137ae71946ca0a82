"""The posterior as a table of text."""

import math
from collections.abc import Sequence

from pathmix.posterior.fitted import FittedPath

_MAX_ROWS = 20
_MAX_LABEL = 60


def table(rows: Sequence[FittedPath]) -> str:
    """Best paths first; what does not fit is summed up in a last line."""
    has_elbo = not any(math.isnan(row.elbo) for row in rows)
    own = ("ELBO", "acceptance") if has_elbo else ("log Z", "effective draws")
    headers = ("path", "weight", *own, "steps", "status")
    shown = rows[:_MAX_ROWS]
    cells = [
        (
            _shortened(row.label),
            f"{row.weight:.4f}",
            *_own_cells(row, has_elbo),
            f"{row.steps:,}",
            str(row.status),
        )
        for row in shown
    ]
    widths = [max(len(line[i]) for line in [headers, *cells]) for i in range(len(headers))]
    lines = [_line(headers, widths), "  ".join("-" * width for width in widths)]
    lines += [_line(line, widths) for line in cells]
    if hidden := rows[_MAX_ROWS:]:
        lines.append(f"and {len(hidden)} more paths, weight {sum(row.weight for row in hidden):.2g}")
    return "\n".join(lines)


def _own_cells(row: FittedPath, has_elbo: bool) -> tuple[str, str]:
    if has_elbo:
        return f"{row.elbo:.3f}", f"{row.acceptance:.3f}"
    return f"{row.log_evidence:.3f}", f"{row.effective_draws:,.0f}"


def _shortened(label: str) -> str:
    """Cut in the middle: long labels differ at their ends."""
    if len(label) <= _MAX_LABEL:
        return label
    half = (_MAX_LABEL - 5) // 2
    return f"{label[:half]} ... {label[-half:]}"


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    last = len(cells) - 1
    padded = [
        cell.ljust(width) if i in (0, last) else cell.rjust(width)
        for i, (cell, width) in enumerate(zip(cells, widths, strict=True))
    ]
    return "  ".join(padded).rstrip()
