"""RESULTS.md: every figure that was measured, beside the paper's."""

from collections.abc import Sequence
from importlib import import_module

import numpy as np

from experiments.runner import RESULTS, Experiment, load

NAMES = ("two_branches", "ten_branches", "mixture", "gaussian_process")
_HEAD = """# Results

The experiments of the SDVI paper (Reichelt, Ong, Rainforth, NeurIPS 2022), as measured here. This page is
written by `python -m experiments.<name>`; the figures behind it, with seeds, versions and likelihood
evaluations of every run, are in `results/`. Figures after ± are standard deviations over runs.

"""


def write() -> None:
    """The page, from all results that are there."""
    parts = []
    for name in NAMES:
        experiment: Experiment = import_module(f"experiments.{name}").EXPERIMENT
        for preset in experiment.presets:
            results = load(name, preset)
            if results is not None and results.cells:
                picture = f"![{experiment.title}](results/{name}.{preset}.png)"
                heading = f"## {experiment.title}, preset `{preset}`"
                parts.append("\n\n".join([heading, table(experiment.rows(results)), picture]))
    (RESULTS.parent / "RESULTS.md").write_text(_HEAD + "\n\n".join(parts) + "\n")


def table(rows: Sequence[Sequence[str]]) -> str:
    """In Markdown, with columns that line up in a terminal too."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = ["| " + " | ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)) + " |" for row in rows]
    rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    return "\n".join([lines[0], rule, *lines[1:]])


def spread(values: Sequence[float], digits: int = 2, scale: float = 1.0) -> str:
    """Mean and standard deviation over runs."""
    array = np.asarray(values, float) / scale
    if len(array) == 0:
        return "not run"
    return (
        f"{array.mean():,.{digits}f} ± {array.std():,.{digits}f}"
        if len(array) > 1
        else f"{array[0]:,.{digits}f}"
    )
