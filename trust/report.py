"""The table, on the screen and in RESULTS.md."""

import math
from collections import Counter
from itertools import groupby
from pathlib import Path

from trust.case import Case
from trust.judge import FAR, RIGHT, Run, worst

RESULTS = Path(__file__).parent / "RESULTS.md"
COLUMNS = (
    "case",
    "family",
    "answer",
    "judgement",
    "total variation",
    "log Z gap",
    "in errors",
    "ok",
    "seconds",
)
WIDTHS = (31, 14, 12, 10, 16, 10, 10, 6, 8)


def cells(case: Case, runs: list[Run]) -> tuple[str, ...]:
    """One line of the table: the worst of the seeds; seconds of the slowest."""
    shown = worst(runs)
    judgement = shown.judgement + (" (log Z?)" if any(run.suspicious for run in runs) else "")
    ok = f"{sum(run.ok for run in runs)}/{len(runs)}"
    return (
        case.title,
        case.family,
        case.method,
        judgement,
        number(shown.total_variation, ".4f"),
        number(shown.log_evidence_gap, "+.3f"),
        number(shown.z, "+.1f"),
        ok,
        f"{max(run.seconds for run in runs):.0f}",
    )


def number(value: float, form: str) -> str:
    return "" if math.isnan(value) else format(value, form)


def line(texts: tuple[str, ...]) -> str:
    return " ".join(text.ljust(width) for text, width in zip(texts, WIDTHS, strict=True)).rstrip()


def totals(finished: list[tuple[Case, list[Run]]]) -> str:
    """How many cases and runs there are of each judgement."""
    every = [run for _, runs in finished for run in runs]
    of_cases = Counter(worst(runs).judgement for _, runs in finished)
    of_runs = Counter(run.judgement for run in every)
    suspicious = sum(run.suspicious for run in every)
    return (
        f"{len(finished)} cases, by the worst of their seeds: {told(of_cases)}. "
        f"{len(every)} runs: {told(of_runs)}. "
        f"Log evidence off by more than {FAR:g} of its stated errors with ok: {suspicious} runs."
    )


def told(counts: Counter) -> str:
    return ", ".join(f"{counts[name]} {name}" for name in ("right", "honest", "WRONG OK", "failed"))


def write(finished: list[tuple[Case, list[Run]]], file: Path = RESULTS) -> None:
    """Called after every case: whoever ends a long run keeps what it has."""
    rows = "\n".join(f"| {' | '.join(cells(case, runs))} |" for case, runs in finished)
    said = "\n".join(lines(case, runs) for case, runs in finished if needs_words(runs))
    file.write_text(
        f"""# What defaults give, against known answers

`python -m trust` writes this page: `SDVI(model).run(seed, ...)` with nothing set, on every program of this
folder. Right is a total variation of path weights of at most {RIGHT}; honest is more than that, and a verdict
that is not ok; WRONG OK is more, and a verdict that is.

{totals(finished)}

| {" | ".join(COLUMNS)} |
|{"---|" * len(COLUMNS)}
{rows}

A line has the worst of its seeds. `log Z gap` is the estimate less the exact log evidence, `in errors` the
same in stated standard errors, `ok` how many of the verdicts were ok.

## What was said where it was not right

{said or "Nothing to say."}
"""
    )


def needs_words(runs: list[Run]) -> bool:
    return any(run.judgement != "right" or run.suspicious for run in runs)


def lines(case: Case, runs: list[Run]) -> str:
    """What the verdicts said, equal ones once."""
    texts = sorted((" ".join((run.failure or run.verdict).split()), run.seed) for run in runs)
    grouped = [
        f"  - seed {', '.join(str(seed) for _, seed in group)}: {text}"
        for text, group in groupby(texts, key=lambda pair: pair[0])
    ]
    return "\n".join([f"- {case.title}", *grouped])
