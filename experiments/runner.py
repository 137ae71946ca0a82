"""Runs an experiment cell by cell (a method with a seed) and keeps every figure as soon as it is there."""

import argparse
import json
import os
import platform
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import jax

from pathmix import Posterior

RESULTS = Path(__file__).parent / "results"
_LIBRARIES = ("pathmix", "jax", "jaxlib", "numpyro", "optax", "numpy", "torch", "pyro-ppl")

Figures = dict[str, Any]
Settings = dict[str, Any]
Cell = tuple[str, int]


@dataclass(frozen=True)
class Preset:
    """How large an experiment is: what its runs take, and how many seeds each method gets."""

    settings: Settings
    seeds: dict[str, int]

    @property
    def cells(self) -> list[Cell]:
        return [(method, seed) for method, count in self.seeds.items() for seed in range(count)]


@dataclass(frozen=True)
class Experiment:
    """`run` does one cell, `rows` compares them with the paper, `picture` draws them with pyplot."""

    name: str
    title: str
    presets: dict[str, Preset]
    run: Callable[[str, int, Settings], Figures]
    rows: Callable[["Results"], list[tuple[str, ...]]]  # the first is the header
    picture: Callable[["Results", Any], Any]
    differences: str  # from the paper's settings


@dataclass
class Results:
    """What is known so far of an experiment under a preset."""

    experiment: str
    preset: str
    settings: Settings
    cells: dict[str, Figures]

    @property
    def file(self) -> Path:
        return RESULTS / f"{self.experiment}.{self.preset}.json"

    @property
    def picture(self) -> Path:
        return self.file.with_suffix(".png")

    def of(self, method: str) -> list[Figures]:
        return [figures for key, figures in self.cells.items() if key.rpartition("/")[0] == method]

    def measured(self, methods: Sequence[str]) -> Iterator[tuple[str, list[Figures]]]:
        """The methods that have results, and these."""
        return ((method, found) for method in methods if (found := self.of(method)))

    def save(self) -> None:
        """Keeps what another process has added since."""
        RESULTS.mkdir(exist_ok=True)
        found = load(self.experiment, self.preset)
        if found is not None and found.settings == self.settings:
            self.cells = found.cells | self.cells
        self.cells = dict(sorted(self.cells.items()))
        new = self.file.with_suffix(f".{os.getpid()}.new")
        new.write_text(json.dumps(vars(self), indent=1) + "\n")
        os.replace(new, self.file)  # so that an interrupt never leaves half a file


def load(experiment: str, preset: str) -> Results | None:
    file = RESULTS / f"{experiment}.{preset}.json"
    return Results(**json.loads(file.read_text())) if file.exists() else None


def finished(posterior: Posterior) -> Posterior:
    """Inference that was interrupted gives what it has; that is no result of a cell."""
    if posterior.interrupted:
        raise KeyboardInterrupt
    return posterior


def main(experiment: Experiment) -> None:
    options = _options(experiment)
    _keep_compiled_code()
    preset = experiment.presets[options.preset]
    chosen = _chosen(preset.cells, options.methods, options.seeds)
    results = _earlier(experiment, options.preset, preset.settings, fresh=options.fresh)
    failed = []
    if not options.picture_only:
        try:
            failed = _run(experiment, results, chosen)
        except KeyboardInterrupt:
            again = "Without --fresh, the" if options.fresh else "The"
            print(f"\nInterrupted; finished cells are kept. {again} same command goes on from here.")
            sys.exit(130)
    if not results.cells:
        sys.exit("There are no results yet.")
    _draw(experiment, results)
    from experiments import report  # it reads the experiments, so it comes after them

    page = report.write(options.preset)
    print(report.table(experiment.rows(results)))
    print(f"\nFigures: {_short(results.file)}, picture: {_short(results.picture)}, page: {_short(page)}")
    if failed:
        sys.exit(f"These cells failed, and are tried again next time: {', '.join(failed)}.")


def _options(experiment: Experiment) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog=f"python -m experiments.{experiment.name}",
        description=f"{experiment.title}. Results so far are kept: an interrupted run goes on where it was.",
    )
    parser.add_argument("--preset", choices=experiment.presets, default="full")
    parser.add_argument("--methods", type=_listed(str), help="only these, separated by commas")
    parser.add_argument("--seeds", type=_listed(int), help="only these, separated by commas")
    either = parser.add_mutually_exclusive_group()
    either.add_argument("--fresh", action="store_true", help="forget earlier results of this preset")
    either.add_argument("--picture-only", action="store_true", help="draw again from what is there")
    return parser.parse_args()


def _listed(kind: type) -> Callable[[str], list[Any]]:
    def read(text: str) -> list[Any]:
        return [kind(item.strip()) for item in text.split(",")]

    read.__name__ = f"list of {'numbers' if kind is int else 'names'}"  # argparse shows it in errors
    return read


def _chosen(cells: list[Cell], methods: list[str] | None, seeds: list[int] | None) -> list[Cell]:
    for wanted, place in ((methods, 0), (seeds, 1)):
        known = dict.fromkeys(cell[place] for cell in cells)
        if unknown := [item for item in wanted or () if item not in known]:
            there = ", ".join(map(str, known))
            sys.exit(f"This preset does not have {', '.join(map(repr, unknown))}. There are: {there}.")
    return [(m, s) for m, s in cells if (not methods or m in methods) and (not seeds or s in seeds)]


def _run(experiment: Experiment, results: Results, cells: list[Cell]) -> list[str]:
    """Do what is missing of these cells; returns those that failed."""
    missing = [cell for cell in cells if _key(*cell) not in results.cells]
    failed = []
    for number, (method, seed) in enumerate(missing, 1):
        print(f"[{number}/{len(missing)}] {experiment.name}: {method}, seed {seed} ... ", end="", flush=True)
        begin = time.perf_counter()
        try:
            figures = experiment.run(method, seed, results.settings)
        except Exception:
            print("failed")
            traceback.print_exc()
            failed.append(f"{method}, seed {seed}")
            continue
        seconds = time.perf_counter() - begin
        results.cells[_key(method, seed)] = {**figures, "seed": seed, "seconds": seconds, **_machine()}
        results.save()
        shown = {k: v for k, v in figures.items() if isinstance(v, int | float)}
        print(f"{seconds:.0f} s  " + "  ".join(f"{k} {v:.6g}" for k, v in shown.items()), flush=True)
    return failed


def _earlier(experiment: Experiment, preset: str, settings: Settings, *, fresh: bool) -> Results:
    settings = json.loads(json.dumps(settings))
    empty = Results(experiment.name, preset, settings, {})
    if fresh:
        empty.file.unlink(missing_ok=True)
    found = load(experiment.name, preset) or empty
    if found.settings != settings:
        sys.exit(
            f"{_short(found.file)} was made with other settings. Move it away, or start again with --fresh."
        )
    return found


def _draw(experiment: Experiment, results: Results) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure = experiment.picture(results, plt)
    figure.savefig(results.picture, dpi=110)
    plt.close(figure)


def _key(method: str, seed: int) -> str:
    return f"{method}/{seed:03d}"


def _machine() -> Figures:
    return {"versions": dict(_versions()), "python": platform.python_version(), "device": _device()}


def _device() -> str:
    device = jax.devices()[0]
    return "CPU" if device.platform == "cpu" else device.device_kind


def _versions() -> Iterator[tuple[str, str]]:
    for library in _LIBRARIES:
        try:
            yield library, version(library)
        except PackageNotFoundError:
            continue


def _keep_compiled_code() -> None:
    """Seeds share most of their paths; what one compiled, the next one reads from disk."""
    folder = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "pathmix-experiments"
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.2)


def _short(file: Path) -> str:
    return os.path.relpath(file)
