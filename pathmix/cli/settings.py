"""What a run was asked for: all that is needed to do it again."""

from argparse import Namespace
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pathmix.cli.data import read
from pathmix.errors import OptionError


@dataclass(frozen=True)
class Settings:
    """As the command line says it, with paths that hold in any folder."""

    model: str  # file and name
    data: str | None = None
    columns: dict[str, str] = field(default_factory=dict)  # of the data, by parameter; all, if none is named
    values: dict[str, Any] = field(default_factory=dict)  # of further parameters
    seed: int = 0
    budget: int | None = None
    seconds: float | None = None
    cover: float | None = None
    prior_runs: int | None = None
    label: str | None = None
    options: dict[str, Any] = field(default_factory=dict)  # of SDVI, beside these

    @staticmethod
    def of(args: Namespace, model: str) -> "Settings":
        """What was given on the command line of `fit` or `paths`."""
        given = vars(args)
        options = _once("--option", given.get("option", []))
        for name in ("guide", "weights"):
            if given.get(name) is not None:
                options[name] = given[name]
        if args.column and not args.data:
            raise OptionError("--column chooses from --data, which is not given.")
        return Settings(
            model=model,
            data=None if args.data is None else str(Path(args.data).expanduser().absolute()),
            columns=_once("--column", args.column),
            values=_once("--set", args.set),
            seed=args.seed,
            budget=given.get("budget"),
            seconds=given.get("seconds"),
            cover=args.cover,
            prior_runs=args.prior_runs,
            label=args.label,
            options=options,
        )

    def given(self) -> dict[str, Any]:
        """The values of the model's parameters, by name."""
        found = {} if self.data is None else read(_shown(Path(self.data)), self.columns or None)
        for name in self.values:
            if name in found:
                raise OptionError(f"{name!r} is given twice: by --set and by {Path(self.data or '').name}.")
        return {**found, **self.values}


def _shown(file: Path) -> Path:
    """As short as it is from here, for messages."""
    return file.relative_to(Path.cwd()) if file.is_relative_to(Path.cwd()) else file


def _once(option: str, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = [name for name, _ in pairs]
    for name in names:
        if names.count(name) > 1:
            raise OptionError(f"{option} {name}=... is given twice.")
    return dict(pairs)
