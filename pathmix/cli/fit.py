"""`pathmix fit`: what can be wrong with files and folders is found before JAX is loaded."""

from argparse import Namespace

from pathmix.cli.folder import Folder
from pathmix.cli.reference import Reference
from pathmix.cli.settings import Settings


def run(args: Namespace) -> int:
    reference = Reference.of(args.model)
    settings = Settings.of(args, str(reference))
    given = settings.given()
    folder = Folder(args.out)
    folder.check(settings, restart=args.restart)

    from pathmix.cli.fitting import Run, keep

    run = Run(settings, reference, given)
    with folder.alone():
        folder.check(settings, restart=args.restart)  # another process may have used it meanwhile
        fresh = args.restart or not folder.is_begun
        folder.begin(settings, restart=args.restart)
        return keep(run.fit(folder, fresh=fresh, quiet=args.quiet), folder)
