"""Runs an experiment cell by cell (a method with a seed) and keeps every figure as soon as it is there."""

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import jax

RESULTS = Path(__file__).parent / "results"
_LIBRARIES = ("jax", "jaxlib", "numpyro", "optax", "numpy", "torch", "pyro-ppl")

Figures = dict[str, Any]
Settings = dict[str, Any]


@dataclass(frozen=True)
class Experiment:
    """`cells` lists (method, seed); `run` does one of them; `rows` compares them with the paper."""

    name: str
    title: str
    presets: dict[str, Settings]
    cells: Callable[[Settings], list[tuple[str, int]]]
    run: Callable[[str, int, Settings], Figures]
    rows: Callable[["Results"], list[tuple[str, ...]]]  # the first is the header
    picture: Callable[["Results", Path], None]


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

    def of(self, method: str) -> list[Figures]:
        return [figures for key, figures in self.cells.items() if key.rpartition("/")[0] == method]

    def save(self) -> None:
        RESULTS.mkdir(exist_ok=True)
        content = {
            "experiment": self.experiment,
            "preset": self.preset,
            "settings": self.settings,
            "cells": dict(sorted(self.cells.items())),
        }
        new = self.file.with_suffix(".new")
        new.write_text(json.dumps(content, indent=1) + "\n")
        os.replace(new, self.file)  # so that an interrupt never leaves half a file


def load(experiment: str, preset: str) -> Results | None:
    file = RESULTS / f"{experiment}.{preset}.json"
    return Results(**json.loads(file.read_text())) if file.exists() else None


def main(experiment: Experiment) -> None:
    parser = argparse.ArgumentParser(
        prog=f"python -m experiments.{experiment.name}",
        description=f"{experiment.title}. Results so far are kept: an interrupted run goes on where it was.",
    )
    parser.add_argument("--preset", choices=experiment.presets, default="full")
    parser.add_argument("--methods", help="only these, separated by commas")
    parser.add_argument("--seeds", help="only these, separated by commas")
    parser.add_argument("--fresh", action="store_true", help="forget earlier results of this preset")
    parser.add_argument("--picture-only", action="store_true", help="draw again from what is there")
    options = parser.parse_args()
    _keep_compiled_code()
    settings = experiment.presets[options.preset]
    results = _earlier(experiment, options.preset, settings, fresh=options.fresh)
    if not options.picture_only:
        chosen = _chosen(experiment.cells(settings), options.methods, options.seeds)
        try:
            _run(experiment, results, chosen)
        except KeyboardInterrupt:
            print("\nInterrupted; finished cells are kept. The same command goes on from here.")
            sys.exit(130)
    from experiments import report  # it reads the experiments, so it comes after them

    experiment.picture(results, results.file.with_suffix(".png"))
    report.write()
    print(report.table(experiment.rows(results)))
    print(f"\nFigures: {_short(results.file)}, picture: {_short(results.file.with_suffix('.png'))}")


def _run(experiment: Experiment, results: Results, cells: list[tuple[str, int]]) -> None:
    missing = [cell for cell in cells if _key(*cell) not in results.cells]
    for number, (method, seed) in enumerate(missing, 1):
        print(f"[{number}/{len(missing)}] {experiment.name}: {method}, seed {seed} ... ", end="", flush=True)
        begin = time.perf_counter()
        figures = experiment.run(method, seed, results.settings)
        seconds = time.perf_counter() - begin
        results.cells[_key(method, seed)] = {**figures, "seed": seed, "seconds": seconds, **_machine()}
        results.save()
        shown = {k: v for k, v in figures.items() if isinstance(v, int | float)}
        print(f"{seconds:.0f} s  " + "  ".join(f"{k} {v:.6g}" for k, v in shown.items()), flush=True)


def _earlier(experiment: Experiment, preset: str, settings: Settings, *, fresh: bool) -> Results:
    found = None if fresh else load(experiment.name, preset)
    if found is None:
        return Results(experiment.name, preset, settings, {})
    if found.settings != json.loads(json.dumps(settings)):
        sys.exit(
            f"{_short(found.file)} was made with other settings. Move it away, or start again with --fresh."
        )
    return found


def _chosen(cells: list[tuple[str, int]], methods: str | None, seeds: str | None) -> list[tuple[str, int]]:
    known = {method for method, _ in cells}
    wanted = set(methods.split(",")) if methods else known
    if unknown := wanted - known:
        sys.exit(f"No such method: {', '.join(unknown)}. There are: {', '.join(sorted(known))}.")
    numbers = None if seeds is None else {int(seed) for seed in seeds.split(",")}
    return [(m, s) for m, s in cells if m in wanted and (numbers is None or s in numbers)]


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
