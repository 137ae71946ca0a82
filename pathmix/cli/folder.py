"""The folder of a run: what was asked for, its checkpoint, and the posterior."""

import json
import os
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from pathmix.cli.settings import Settings
from pathmix.errors import ChangedError, FileError
from pathmix.files.archive import write

if TYPE_CHECKING:
    from pathmix.posterior.posterior import Posterior

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None


class Folder:
    """A folder that `pathmix fit` makes.

    `posterior` is there once a fit has come to its end, and only then. What Ctrl-C left is `interrupted`.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path).expanduser()
        self.about = self.path / "run.json"
        self.checkpoint = self.path / "checkpoint"
        self.posterior = self.path / "posterior.pathmix"
        self.interrupted = self.path / "interrupted.pathmix"
        self.report = self.path / "report.html"

    def __str__(self) -> str:
        return f"{self.path}/"

    @property
    def word(self) -> str:
        """What to write on a command line."""
        return shlex.quote(str(self))

    @property
    def is_begun(self) -> bool:
        """Whether anything was computed that could be lost."""
        journal = self.checkpoint / "journal"
        return self.posterior.exists() or (journal.exists() and journal.stat().st_size > 0)

    def settings(self) -> Settings:
        """Of the run in it."""
        if not self.path.is_dir():
            raise FileError(f"There is no folder {self.path}.")
        if not self.about.exists():
            raise FileError(f"{self} has no run.json, so it is not the --out of a `pathmix fit`.")
        try:
            return Settings(**json.loads(self.about.read_text("utf-8"))["run"])
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise FileError(f"{self.about} cannot be read, or is of another version of pathmix.") from error

    def check(self, settings: Settings, *, restart: bool) -> None:
        """Refuse a folder that is not for this run. Nothing is written."""
        if self.path.exists() and not self.path.is_dir():
            raise FileError(f"{self.path} is a file; --out is a folder.")
        if not self.path.exists() or not any(self.path.iterdir()):
            return
        if not self.about.exists():
            raise FileError(f"{self} has other files, and no run of pathmix. Give another --out.")
        if restart or not self.is_begun:
            return
        before = asdict(self.settings())
        changed = [name for name, value in asdict(settings).items() if before[name] != value]
        if changed:
            raise ChangedError(
                f"{self} has another run: {' and '.join(changed)} changed. Give another --out, or start over "
                "with --restart."
            )
        if self.posterior.exists():
            raise ChangedError(
                f"{self} has this run already. `pathmix resume` goes on with it; --restart starts over."
            )

    def begin(self, settings: Settings, *, restart: bool) -> None:
        """For a run, which may have been begun already; with `restart`, the results of an earlier one go."""
        try:
            for file in (self.posterior, self.interrupted, self.report) if restart else ():
                file.unlink(missing_ok=True)
        except OSError as error:
            raise self._unusable(error) from error
        write(self.about, (json.dumps({"run": asdict(settings)}, indent=2) + "\n").encode())

    @property
    def latest(self) -> Path:
        """The posterior of the run, or what there is of it."""
        found = self.posterior if self.posterior.exists() else self.interrupted
        if not found.exists():
            raise FileError(
                f"{self} has no posterior yet. `pathmix resume {self.word}` goes on with the run."
            )
        return found

    def save(self, posterior: "Posterior") -> None:
        """One that was interrupted takes the place of no other."""
        posterior.save(self.interrupted if posterior.interrupted else self.posterior)
        if not posterior.interrupted:
            self.interrupted.unlink(missing_ok=True)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Two processes would spoil each other's checkpoint. The folder is made, if it is not there."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise self._unusable(error) from error
        if fcntl is None:
            yield
            return
        # The folder itself: files in it are replaced by new ones, which have no lock.
        place = os.open(self.path, os.O_RDONLY)
        try:
            fcntl.flock(place, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(place)
            raise FileError(f"Another process is at work in {self}.") from None
        except OSError:
            pass  # a file system without locks
        try:
            yield
        finally:
            os.close(place)

    def _unusable(self, error: OSError) -> FileError:
        return FileError(f"{self} cannot be used: {error.strerror or error}.")
