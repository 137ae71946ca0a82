"""Turn draws of one global guide, which follow the program's control flow, into a posterior.

The weight of a path is its share w_k of the draws, and its local guide is the global one restricted to it,
so log q_k = log q - log w_k. With L_k = mean(log gamma - log q) + log w_k over the draws of the path, the
global ELBO sum_k w_k (L_k - log w_k) is the mean of log gamma - log q over all draws.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from experiments.baselines.book import Book
from experiments.baselines.known_path import KnownPath
from pathmix.discovery import Discovered
from pathmix.discovery.forks import DecisionTree
from pathmix.discovery.report import DiscoveryReport
from pathmix.engine.precision import Engine, Precision
from pathmix.posterior.components import Component, WeightedDraws
from pathmix.posterior.fitted import FittedPath
from pathmix.posterior.notes import common_notes
from pathmix.posterior.posterior import Posterior
from pathmix.posterior.status import Status
from pathmix.program.values import SiteRows, SiteValues
from pathmix.target.labels import label, unique

LogQ = Callable[[KnownPath, SiteValues], float]  # of one draw, in the coordinates of the program


class PathDraws(NamedTuple):
    """The draws of a guide that follow a path; densities are in the coordinates of the program."""

    values: SiteRows  # latent and deterministic sites
    log_gamma: np.ndarray
    log_q: np.ndarray


@dataclass(frozen=True)
class Training:
    """How the guide came about."""

    steps: int
    history: np.ndarray  # the ELBO estimate of every step
    evaluations: dict[KnownPath, int]  # of the likelihood, before the draws
    log_d_min: float


def posterior_of(
    book: Book,
    found: Discovered,
    training: Training,
    draws: dict[KnownPath, PathDraws],
    log_q: LogQ,
    precision: Precision,
) -> Posterior:
    """The posterior of a guide, from draws of it. Paths that none of them follows carry no weight."""
    total = sum(len(drawn.log_q) for drawn in draws.values())
    labels = unique([label(known.slp, known.region) for known in book.paths])
    fitted, components = [], []
    for known, text in zip(book.paths, labels, strict=True):
        path, component = _fitted(known, text, draws.get(known), total, training, log_q)
        fitted.append(path)
        components.append(component)
    order = sorted(range(len(fitted)), key=lambda i: (-fitted[i].weight, -fitted[i].elbo))
    report = DiscoveryReport.of(
        found,
        log_d_min=training.log_d_min,
        later_runs=book.runs,
        later_mass=sum(known.prior_mass for known in book.paths if not known.discovered),
    )
    return Posterior(
        paths=tuple(fitted[i] for i in order),
        discovery=report,
        notes=_notes(book, found, report, fitted),
        interrupted=False,
        _program=book.program,
        _components=tuple(components[i] for i in order),
        weighting="elbo",
        _engine=Engine(precision),
        tree=found.tree or DecisionTree(),
    )


def _fitted(
    known: KnownPath, text: str, drawn: PathDraws | None, total: int, training: Training, log_q: LogQ
) -> tuple[FittedPath, Component]:
    count = 0 if drawn is None else len(drawn.log_q)
    weight, elbo, error = count / total, -np.inf, np.nan
    status = Status.OUTSIDE
    message = f"None of {total} draws of the guide followed this path; it carries no weight."
    if drawn is not None:
        status, message = _verdict(drawn.log_gamma, total, training.steps)
        if status is Status.OK:
            ratios = drawn.log_gamma - drawn.log_q
            elbo = float(np.mean(ratios) + np.log(weight))
            error = float(np.sqrt((np.var(ratios) + 1 - weight) / count))
    path = FittedPath(
        label=text,
        path=known.slp.path,
        weight=weight,
        log_evidence=elbo,
        log_evidence_error=error,
        evidence_method="elbo",
        doubts=(),
        khat=math.nan,
        elbo=elbo,
        elbo_error=error,
        acceptance=1.0,
        steps=training.steps,
        status=status,
        message=message,
        history=training.history,
        region=known.region,
        prior_mass=known.prior_mass,
        likelihood_evaluations=training.evaluations.get(known, 0) + count,
    )
    values, uniform = {} if drawn is None else drawn.values, np.full(count, 1 / max(count, 1))
    density = partial(_local, log_q, known, weight)
    return path, WeightedDraws(known.slp.outline, values, uniform, density, slp=known.slp)


def _local(log_q: LogQ, known: KnownPath, weight: float, values: SiteValues) -> float:
    return log_q(known, values) - float(np.log(weight)) if weight > 0 else -np.inf


def _verdict(log_gamma: np.ndarray, total: int, steps: int) -> tuple[Status, str]:
    """Draws without a density say that the ELBO of the whole guide is -inf."""
    broken = np.isnan(log_gamma) | np.isposinf(log_gamma)
    if np.any(broken):
        return Status.NAN, (
            f"The log-density is NaN or infinite for {np.mean(broken):.1%} of the guide's draws on this "
            "path, so there is no ELBO. Look for 0/0, the log of a negative number, or a covariance that is "
            "not positive definite."
        )
    zero = np.mean(np.isneginf(log_gamma))
    if zero > 0:
        return Status.ZERO, (
            f"{zero:.1%} of the guide's draws on this path have zero density (log-density -inf), so the ELBO "
            "is -inf."
        )
    return Status.OK, f"{len(log_gamma)} of {total} draws, from one guide trained for {steps} steps."


def _notes(
    book: Book, found: Discovered, report: DiscoveryReport, fitted: Sequence[FittedPath]
) -> tuple[str, ...]:
    paths = [(known.slp, path) for known, path in zip(book.paths, fitted, strict=True)]
    notes = common_notes(book.program, found, report, paths)
    if new := sum(not known.discovered for known in book.paths):
        notes.append(
            f"{new} path{'s were' if new > 1 else ' was'} found after discovery, by runs of the guide."
        )
    return tuple(notes)


def joined(parts: Sequence[PathDraws]) -> PathDraws:
    values = {name: np.concatenate([part.values[name] for part in parts]) for name in parts[0].values}
    log_gamma, log_q = (
        np.concatenate(columns) for columns in zip(*(part[1:] for part in parts), strict=True)
    )
    return PathDraws(values, log_gamma, log_q)
