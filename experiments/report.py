"""RESULTS.md: every figure that was measured, beside the paper's."""

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

import numpy as np

from experiments.runner import RESULTS, Experiment, load

NAMES = ("two_branches", "ten_branches", "mixture", "gaussian_process", "online")
_HEAD = """# Results

The experiments of the SDVI paper (Reichelt, Ong, Rainforth, NeurIPS 2022), as measured here. This page is
written by `python -m experiments.<name>`; the figures behind it, with seeds, versions and likelihood
evaluations of every run, are in `results/`. Figures after ± are standard deviations over runs.

"""


def write(preset: str) -> Path:
    """The page of a preset, from all its results that are there. That of `full` is the one to publish."""
    parts = []
    for name in NAMES:
        experiment: Experiment = import_module(f"experiments.{name}").EXPERIMENT
        results = load(name, preset)
        if results is not None and results.cells:
            heading = f"## {experiment.title}"
            picture = f"![{experiment.title}](results/{results.picture.name})"
            differences = f"Settings, against the paper's: {experiment.differences}"
            parts.append("\n\n".join([heading, table(experiment.rows(results)), differences, picture]))
    page = RESULTS.parent / ("RESULTS.md" if preset == "full" else f"RESULTS.{preset}.md")
    page.write_text(_HEAD + "\n\n".join(parts) + "\n")
    return page


def table(rows: Sequence[Sequence[str]]) -> str:
    """In Markdown, with columns that line up in a terminal too."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = ["| " + " | ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)) + " |" for row in rows]
    rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    return "\n".join([lines[0], rule, *lines[1:]])


def spread(values: Sequence[float | None], digits: int = 2, scale: float = 1.0) -> str:
    """Mean and standard deviation over runs, of those that have a value."""
    array = np.array([value for value in values if value is not None], float) / scale
    if len(array) == 0:
        return "none"
    mean = f"{array.mean():,.{digits}f}"
    return f"{mean} ± {array.std(ddof=1):,.{digits}f}" if len(array) > 1 else mean
