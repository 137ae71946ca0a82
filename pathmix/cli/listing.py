"""What discovery finds of a model, without fitting anything, as a table."""

import linecache
import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pathmix.cli.fitting import Run
from pathmix.cli.progress import shown
from pathmix.discovery import DiscoveredPath
from pathmix.discovery.report import DiscoveryReport
from pathmix.discovery.search import KEPT_DRAWS
from pathmix.engine.precision import engine_scope
from pathmix.engine.progress import told
from pathmix.frontends.recognise import bind
from pathmix.program.seeds import Seed
from pathmix.program.slp import StraightLineProgram
from pathmix.program.source import Source
from pathmix.program.values import SiteRows
from pathmix.regions.region import Region, read_region
from pathmix.target.labels import named, shortened, unique
from pathmix.target.target import make_target

_HEADERS = ("path", "prior mass", "prior runs", "decided at")


@dataclass(frozen=True)
class Found:
    """Paths, the largest prior mass first, with their labels; and what was not seen."""

    paths: Sequence[tuple[str, DiscoveredPath]]
    unseen: str


def discovered(run: Run, *, quiet: bool) -> Found:
    """What `fit` with the same seed begins with, before paths are looked at."""
    regions: dict[StraightLineProgram, Region] = {}
    with engine_scope("float64"), shown(quiet=quiet) as progress, told(progress) as hearer:
        hearer.stage("discovery")
        program = bind(run.model, run.args, run.kwargs, run.discovery.limits)

        def begin(slp: StraightLineProgram, draws: SiteRows) -> Hashable:
            regions[slp] = read_region(slp, draws, boxes=True)
            hearer.stage(f"discovery: {len(regions)} paths")
            return make_target(slp, regions[slp], draws).structure

        found = run.discovery.discover(program, Seed.of(run.settings.seed).child(0), begin)
    labels = unique([named(path.slp, regions[path.slp], run.label) for path in found.paths])
    # What looks like the same mass goes by the label.
    ordered = sorted(zip(labels, found.paths, strict=True), key=lambda one: (-_rounded(one[1]), one[0]))
    return Found(ordered, DiscoveryReport.of(found, log_d_min=math.nan).unseen)


def listed(found: Found, file: Path, most: int) -> str:
    """A table of so many paths, then the lines that decide between all."""
    rows = [
        (
            shortened(label),
            f"{'' if path.mass_is_exact else '~'}{_rounded(path):g}",
            f"{path.followers:,}{'+' if path.followers == KEPT_DRAWS else ''}",
            _places(path),
        )
        for label, path in found.paths[:most]
    ]
    widths = [max(len(row[i]) for row in (_HEADERS, *rows)) for i in range(4)]
    lines = [
        f"{row[0]:<{widths[0]}}  {row[1]:>{widths[1]}}  {row[2]:>{widths[2]}}  {row[3]}".rstrip()
        for row in (_HEADERS, ["-" * width for width in widths], *rows)
    ]
    if hidden := found.paths[most:]:
        mass = sum(path.prior_mass for _, path in hidden)
        lines.append(f"... {len(hidden)} more, prior mass {mass:.2g}; --rows shows more of them")
    sources = sorted(
        {source for _, path in found.paths for source in _sources(path)},
        key=lambda source: (source.file, source.line),
    )
    texts = {str(source): _line(source, file) for source in sources}
    if texts:
        width = max(map(len, texts))
        lines += ["", "Decided at", *(f"  {place:<{width}}  {text}" for place, text in texts.items())]
    if not all(path.mass_is_exact for _, path in found.paths):
        lines += ["", "~ estimated by the share of runs"]
    return "\n".join([*lines, "", found.unseen])


def _rounded(path: DiscoveredPath) -> float:
    return float(f"{path.prior_mass:.3g}")


def _sources(path: DiscoveredPath) -> list[Source]:
    """Where the discrete sites of a path are drawn, and where Python looked at random values."""
    return [*(site.source for site in path.slp.sites if site.pinned is not None), *path.slp.sources]


def _places(path: DiscoveredPath) -> str:
    """Each line once: `model.py:3, 7`."""
    lines: dict[str, set[int]] = {}
    for source in _sources(path):
        lines.setdefault(source.file, set()).add(source.line)
    return "; ".join(f"{file}:{', '.join(map(str, sorted(numbers)))}" for file, numbers in lines.items())


def _line(source: Source, file: Path) -> str:
    """The line as it is in the model's file; of other files, the expression."""
    line = linecache.getline(str(file), source.line).strip() if source.file == file.name else ""
    return line if source.text in line else source.text
