"""The page: its parts in order, with style and script inside, so that it needs nothing else."""

import os
from collections.abc import Mapping
from dataclasses import fields
from html import escape
from importlib.resources import files
from pathlib import Path

from pathmix.engine.timings import Timings
from pathmix.files.archive import write
from pathmix.posterior.posterior import Posterior
from pathmix.posterior.provenance import Provenance
from pathmix.report.paths import paths_table
from pathmix.report.pictures import pictures
from pathmix.version import __version__

_STAGES = ("discovery", "initialisation", "training", "evaluation")
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"


def write_page(posterior: Posterior, file: str | os.PathLike[str]) -> Path:
    """The page in a file, which is there whole or not at all."""
    write(file, page(posterior).encode())
    return Path(file)


def page(posterior: Posterior) -> str:
    """The page as text."""
    made = posterior.provenance
    name = "Posterior" if made is None else f"Posterior of {made.model}"
    parts = [
        _verdict(posterior),
        _section("Paths", paths_table(posterior)),
        _section("Pictures", pictures(posterior)),
        _section("Time", _timings(posterior.timings)),
        _section("How it was made", _provenance(made)),
    ]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(name)}</title><style>{_asset('page.css')}</style></head><body>"
        f'<header><h1>{escape(name)}</h1><button id="theme" type="button">Dark</button></header>'
        f"<main>{''.join(parts)}</main>"
        f"<footer>pathmix {__version__}</footer><script>{_asset('page.js')}</script></body></html>\n"
    )


def _asset(name: str) -> str:
    return files("pathmix.report").joinpath(name).read_text(encoding="utf-8")


def _section(title: str, content: str) -> str:
    return f"<section><h2>{title}</h2>{content}</section>" if content else ""


def _verdict(posterior: Posterior) -> str:
    verdict = posterior.verdict
    kind, word = ("good", "Reliable") if verdict.ok else ("bad", "Not to be relied on yet")
    notes = "".join(f"<li>{escape(note)}</li>" for note in posterior.notes)
    return (
        f'<section class="verdict {kind}"><h2>{word}</h2><p>{escape(str(verdict))}</p>'
        f"<p>{escape(posterior.title)}.</p><p>{escape(posterior.discovery.unseen)}.</p>"
        + (f"<h3>Notes</h3><ul>{notes}</ul>" if notes else "")
        + "</section>"
    )


def _timings(timings: Timings | None) -> str:
    if timings is None:
        return ""
    seconds = {stage: getattr(timings, stage) for stage in _STAGES}
    longest = max(*seconds.values(), 1e-9)
    bars = "".join(
        f'<tr><th scope="row">{stage}</th><td class="number">{spent:.1f} s</td>'
        f'<td class="bars"><span class="bar" style="width:{100 * spent / longest:.1f}%"></span></td></tr>'
        for stage, spent in seconds.items()
    )
    rest = {
        one.name.replace("_", " "): _amount(one.name, getattr(timings, one.name))
        for one in fields(timings)
        if one.name not in _STAGES and getattr(timings, one.name) is not None
    }
    return f'<table class="plain times">{bars}</table>{_facts(rest)}'


def _amount(name: str, value: float) -> str:
    if name == "peak_memory":
        return f"{value / 2**20:,.0f} MB"
    if name == "utilisation":
        return f"{value:.0%}"
    return f"{value:.1f} s" if isinstance(value, float) else f"{value:,}"


def _provenance(made: Provenance | None) -> str:
    if made is None:
        return "<p>The file that this posterior comes from does not tell.</p>"
    about = {"method": made.method, "model": made.model, "seed": made.seed, "device": made.device}
    changed = {name: made.settings[name] for name in made.changed}
    rest = {name: text for name, text in made.settings.items() if name not in changed}
    return (
        _facts(about)
        + (f"<h3>Options that were set</h3>{_facts(changed)}" if changed else "")
        + f"<details><summary>Options at their defaults</summary>{_facts(rest)}</details>"
        + f"<h3>Versions</h3>{_facts(made.versions)}"
    )


def _facts(facts: Mapping[str, str]) -> str:
    rows = (f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in facts.items())
    return f"<dl>{''.join(rows)}</dl>"
