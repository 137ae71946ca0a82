"""`pathmix demo`: the polynomial of unknown degree, as a model and data that one can go on from."""

import shutil
from argparse import Namespace
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from pathmix.cli import exits
from pathmix.cli.folder import Folder
from pathmix.cli.reference import Reference
from pathmix.cli.settings import Settings
from pathmix.errors import FileError

_PROGRAM = Path(__file__).with_name("polynomial.py")


def run(args: Namespace) -> int:
    with ExitStack() as stack:
        if args.out is None:
            home = Path(stack.enter_context(TemporaryDirectory(prefix="pathmix-demo-")))
        else:
            home = Path(args.out).expanduser()
        _write(home)
        print(f"{_PROGRAM.read_text()}\n")

        from pathmix.cli.fitting import Run, keep

        reference, folder = Reference.of(f"{home / 'model.py'}:model"), Folder(home / "run")
        settings = Settings(str(reference), str((home / "data.csv").absolute()))
        fit = Run(settings, reference, settings.given())
        folder.begin(settings, restart=False)
        posterior = fit.fit(folder, fresh=True, quiet=args.quiet)
        if args.out is not None:
            return keep(posterior, folder)
        print(posterior)
        print("\n`pathmix demo --out FOLDER` leaves the model, the data and the run, to go on from.")
        return exits.INTERRUPTED if posterior.interrupted else exits.OK


def _write(home: Path) -> None:
    """The model and its data, into a new folder."""
    if home.exists() and (not home.is_dir() or any(home.iterdir())):
        raise FileError(f"{home} is there already. Give another --out.")
    try:
        home.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(_PROGRAM, home / "model.py")
        (home / "data.csv").write_text(_data())
    except OSError as error:
        raise FileError(f"{home} cannot be written: {error.strerror or error}.") from error


def _data() -> str:
    """Thirty points of a parabola, with noise."""
    generator = np.random.default_rng(1)
    x = np.sort(generator.uniform(-1.5, 1.5, 30))
    y = 0.4 - 0.9 * x + 0.7 * x**2 + generator.normal(0, 0.3, len(x))
    return "x,y\n" + "".join(f"{a!r},{b!r}\n" for a, b in zip(x.tolist(), y.tolist(), strict=True))
