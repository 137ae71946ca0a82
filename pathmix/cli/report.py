"""`pathmix report`: a page about a run."""

import sys
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from pathmix.cli import exits
from pathmix.cli.folder import Folder
from pathmix.cli.reference import Reference
from pathmix.errors import PathmixError

if TYPE_CHECKING:
    from pathmix.posterior.posterior import Posterior


def run(args: Namespace) -> int:
    file, folder = Path(args.run).expanduser(), Folder(args.run)
    if file.is_file():
        from pathmix.posterior.loading import load

        posterior, page = load(file), file.with_suffix(".html")
    else:
        posterior, page = _of_run(folder), folder.report
    print(posterior.report(page if args.out is None else Path(args.out).expanduser()))
    return exits.OK


def _of_run(folder: Folder) -> "Posterior":
    """With the model, if it is still there and what it was."""
    settings, file = folder.settings(), folder.latest

    from pathmix.cli.fitting import Run
    from pathmix.posterior.loading import load

    try:
        return Run(settings, Reference.of(settings.model), settings.given()).loaded(folder)
    except PathmixError as error:
        print(f"Warning: the page is made without the model. {error}", file=sys.stderr)
        return load(file)
