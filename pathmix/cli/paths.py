"""`pathmix paths`: the paths of a model before it is fitted, and the lines that decide between them."""

from argparse import Namespace

from pathmix.cli import exits
from pathmix.cli.reference import Reference
from pathmix.cli.settings import Settings


def run(args: Namespace) -> int:
    reference = Reference.of(args.model)
    settings = Settings.of(args, str(reference))
    given = settings.given()

    from pathmix.cli.fitting import Run
    from pathmix.cli.listing import discovered, listed

    found = discovered(Run(settings, reference, given), quiet=args.quiet)
    print(listed(found, reference.file, args.rows))
    return exits.OK
