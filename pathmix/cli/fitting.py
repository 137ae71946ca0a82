"""A run of SDVI, as a command asks for it and a folder keeps it."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from typing import Any

from pathmix.allocation import Allocation, OnlineSuccessiveHalving, SuccessiveHalving
from pathmix.cli import exits
from pathmix.cli.arguments import filled
from pathmix.cli.folder import Folder
from pathmix.cli.progress import shown
from pathmix.cli.reference import Reference
from pathmix.cli.settings import Settings
from pathmix.discovery import Discovery, Enumeration, Guided, PriorDiscovery
from pathmix.errors import ChangedError, FileError, OptionError
from pathmix.frontends.recognise import own_arrays
from pathmix.methods.sdvi import SDVI
from pathmix.posterior.loading import load
from pathmix.posterior.posterior import Posterior

# What the command line has other words for, or cannot say.
_OWN = ("model", "discovery", "allocation", "optimizer", "label", "progress", "checkpoint", "on_change")
_ROUND = 20_000  # iterations


class Run:
    """A model, its arguments, and how it is fitted. All of it is checked before anything is written."""

    def __init__(self, settings: Settings, reference: Reference, given: dict[str, Any]) -> None:
        self.settings, self.model = settings, reference.model
        self.args, self.kwargs = own_arrays(self.model, *filled(self.model, given))
        self.label = None if settings.label is None else reference.function(settings.label)
        self.discovery = _discovery(settings)
        self._options: dict[str, Any] = {
            **_plain_options(settings),
            "discovery": self.discovery,
            "allocation": _allocation(settings),
            "label": self.label,
        }
        SDVI(self.model, **self._options)

    def fit(self, folder: Folder | None, *, fresh: bool, quiet: bool) -> Posterior:
        """To its end, from where the folder's checkpoint is, or from the beginning if it is to be `fresh`."""
        with self._at_work(folder, fresh=fresh, quiet=quiet) as sdvi:
            try:
                return sdvi.run(self.settings.seed, *self.args, **self.kwargs)
            except KeyboardInterrupt:
                then = "" if folder is None else f" `pathmix resume {folder.word}` goes on."
                raise KeyboardInterrupt(f"Interrupted, before any path was fitted.{then}") from None

    def go_on(self, folder: Folder, budget: int | None, *, quiet: bool) -> Posterior:
        """From the posterior of a run that has come to its end."""
        posterior = self.loaded(folder)
        with self._at_work(folder, fresh=False, quiet=quiet) as sdvi:
            return sdvi.resume(posterior, budget=budget)

    def loaded(self, folder: Folder) -> Posterior:
        """The posterior in a folder, with its model."""
        return load(folder.latest, self.model, *self.args, **self.kwargs)

    @contextmanager
    def _at_work(self, folder: Folder | None, *, fresh: bool, quiet: bool) -> Iterator[SDVI]:
        with _in_words_of_commands(), shown(quiet=quiet) as progress:
            yield SDVI(
                self.model,
                **self._options,
                checkpoint=None if folder is None else folder.checkpoint,
                on_change="restart" if fresh else "refuse",
                progress=progress,
            )


def keep(posterior: Posterior, folder: Folder) -> int:
    """Save a posterior, show it, and say where it is; the exit status that it means."""
    try:
        folder.save(posterior)
    finally:  # whoever waited for it wants to see it, also if a disk is full
        print(posterior)
    resume = f"`pathmix resume {folder.word}`"
    if posterior.interrupted:
        said = f"pathmix: Interrupted. What was reached is in {folder.interrupted}; {resume} goes on."
        print(said, file=sys.stderr)
    else:
        print(f"\nKept in {folder.posterior}. Next: `pathmix report {folder.word}`, {resume}.")
    return status_of(posterior)


def status_of(posterior: Posterior) -> int:
    """The exit status that a posterior means."""
    if posterior.interrupted:
        return exits.INTERRUPTED
    return exits.OK if posterior.verdict.ok else exits.NOT_SETTLED


def _discovery(settings: Settings) -> Discovery:
    if settings.cover is not None:
        return Enumeration(cover=settings.cover)
    return Guided() if settings.prior_runs is None else PriorDiscovery(settings.prior_runs)


def _allocation(settings: Settings) -> Allocation:
    if settings.seconds is not None:
        return OnlineSuccessiveHalving(settings.budget or _ROUND, seconds=settings.seconds)
    return SuccessiveHalving(budget=settings.budget or 100_000)


def _plain_options(settings: Settings) -> dict[str, Any]:
    """Options of SDVI by their names, which must be such."""
    known = [one.name for one in fields(SDVI) if one.name not in _OWN]
    for name in settings.options:
        if name not in known:
            raise OptionError(f"--option {name}=... is none of {', '.join(known)}.")
    return settings.options


@contextmanager
def _in_words_of_commands() -> Iterator[None]:
    """Advice that is meant for Python."""
    try:
        yield
    except (ChangedError, FileError) as error:
        said = str(error).replace('on_change="restart"', "`pathmix fit ... --restart`")
        raise type(error)(said) from error
