"""`pathmix demo`: the polynomial of unknown degree, as a model and data that one can go on from."""

import shutil
from argparse import Namespace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from pathmix.cli.folder import Folder
from pathmix.cli.reference import Reference
from pathmix.cli.settings import Settings
from pathmix.errors import FileError

_PROGRAM = Path(__file__).with_name("polynomial.py")


def run(args: Namespace) -> int:
    if args.out is None:
        with TemporaryDirectory(prefix="pathmix-demo-") as home:
            return _fitted(Path(home), stays=False, quiet=args.quiet)
    return _fitted(Path(args.out).expanduser(), stays=True, quiet=args.quiet)


def _fitted(home: Path, *, stays: bool, quiet: bool) -> int:
    _write(home)
    print(f"{_PROGRAM.read_text()}\n", flush=True)

    from pathmix.cli.fitting import Run, keep, status_of

    reference = Reference.of(f"{home / 'model.py'}:model")
    settings = Settings(str(reference), str((home / "data.csv").absolute()))
    fit = Run(settings, reference, settings.given())
    if stays:
        folder = Folder(home / "run")
        with folder.alone():
            folder.begin(settings, restart=False)
            return keep(fit.fit(folder, fresh=True, quiet=quiet), folder)
    posterior = fit.fit(None, fresh=True, quiet=quiet)
    print(posterior)
    print("\n`pathmix demo --out FOLDER` leaves the model, the data and the run, to go on from.")
    return status_of(posterior)


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
