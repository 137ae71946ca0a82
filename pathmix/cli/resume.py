"""`pathmix resume`: go on with a run that was ended, or train one that has come to its end further."""

from argparse import Namespace

from pathmix.cli.folder import Folder
from pathmix.cli.reference import Reference
from pathmix.errors import OptionError


def run(args: Namespace) -> int:
    folder = Folder(args.run)
    settings = folder.settings()
    reference, given = Reference.of(settings.model), settings.given()

    from pathmix.cli.fitting import Run, keep

    run = Run(settings, reference, given)
    with folder.alone():
        is_over = folder.posterior.exists()
        if args.budget is not None and not is_over:
            raise OptionError(
                f"The run in {folder} has not come to its end: resume it without --budget first, which "
                "is for what comes after."
            )
        if is_over:
            return keep(run.go_on(folder, args.budget, quiet=args.quiet), folder)
        return keep(run.fit(folder, fresh=False, quiet=args.quiet), folder)
