"""docs/programs.md."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from benchmarks.catalogue.entry import Entry
from benchmarks.catalogue.outcome import CLOSE, CLOSE_EVIDENCE, Outcome

PAGE = Path(__file__).parents[2] / "docs" / "programs.md"
COLUMNS = ("program", "library", "as in", "outcome", "answer by", "found (exact)", "seconds")
HEAD = f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}"


def write(kinds: Mapping[str, list[Entry]], outcomes: Mapping[str, Outcome]) -> None:
    """Write the page: a table for each kind, then what was said to those that were refused."""
    counts = Counter(found.status for found in outcomes.values())
    told = ", ".join(f"{number} {status}" for status, number in counts.most_common())
    tables = "\n\n".join(f"## {kind}\n\n{HEAD}\n{rows(group, outcomes)}" for kind, group in kinds.items())
    PAGE.write_text(
        f"""# Programs that were tried

`python -m benchmarks.catalogue` writes this page. Each program is run as it is, once, with default options
unless it says otherwise, on two processors; the programs are in `benchmarks/catalogue/programs`, in the
language of their origin. {len(outcomes)} programs: {told}.

Right: every expectation within {CLOSE:g} posterior standard deviations of the exact one, log evidences within
{CLOSE_EVIDENCE:g} or four stated errors. Unsure: not so, and the verdict says that it is not ok. Slow: not
done after two minutes. Times are without imports.

{tables}
"""
    )


def read() -> dict[str, Outcome]:
    """What the page says of each program."""
    found = {}
    for line in PAGE.read_text().splitlines():
        cells = line.removeprefix("| ").removesuffix(" |").split(" | ")
        if len(cells) == len(COLUMNS) and cells[0] != COLUMNS[0]:
            name, status, details = cells[0].replace(" ", "_"), cells[3], cells[5].replace("\\|", "|")
            found[name] = Outcome(status, float(cells[6]), details)
    return found


def rows(group: list[Entry], outcomes: Mapping[str, Outcome]) -> str:
    lines = []
    for entry in group:
        found = outcomes[entry.name]
        details = " ".join(found.details.split()).replace("|", "\\|")
        cells = (
            entry.name.replace("_", " "),
            entry.library,
            entry.origin + ("" if not entry.options else f" ({', '.join(entry.options)} set)"),
            found.status,
            entry.against,
            details,
            f"{found.seconds:.0f}",
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)
