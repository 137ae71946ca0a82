"""What is built can be installed, and has everything in it."""

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
# A copy, as the build leaves folders behind.
BUILD = (
    "import shutil, sys; from pathlib import Path\n"
    "root, folder = map(Path, sys.argv[1:])\n"
    "copy = folder / 'source'; copy.mkdir()\n"
    "shutil.copytree(root / 'pathmix', copy / 'pathmix', ignore=shutil.ignore_patterns('__pycache__'))\n"
    "for name in ('pyproject.toml', 'README.md', 'LICENSE'): shutil.copy(root / name, copy)\n"
    "import os; os.chdir(copy)\n"
    "from setuptools import build_meta\n"
    "build_meta.build_wheel(str(folder)); build_meta.build_sdist(str(folder))\n"
)


def run(*command, **options):
    done = subprocess.run(command, capture_output=True, text=True, **options)
    assert done.returncode == 0, done.stdout[-2_000:] + done.stderr[-2_000:]
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    folder = tmp_path_factory.mktemp("built")
    run(sys.executable, "-c", BUILD, str(ROOT), str(folder))
    (wheel,), (source,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return wheel, source


def test_all_modules_are_there(built):
    wheel, source = built
    modules = {str(path.relative_to(ROOT)) for path in (ROOT / "pathmix").rglob("*.py")} | {
        "pathmix/py.typed"
    }
    assert modules <= set(zipfile.ZipFile(wheel).namelist())
    with tarfile.open(source) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert modules | {"LICENSE", "README.md", "pyproject.toml"} <= names


def test_extras_are_told(built):
    with zipfile.ZipFile(built[0]) as wheel:
        (name,) = (name for name in wheel.namelist() if name.endswith("METADATA"))
        told = wheel.read(name).decode()
    for extra in ("pyro", "flows", "arviz", "plots"):
        assert f"Provides-Extra: {extra}" in told


def test_it_runs_where_it_is_installed(built, tmp_path):
    target = tmp_path / "installed"
    pip = (sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target")
    run(*pip, str(target), str(built[0]))
    script = (
        "import sys; sys.path.insert(0, sys.argv[1]); import pathmix\n"
        "assert pathmix.__file__.startswith(sys.argv[1]), pathmix.__file__\n"
        "print(pathmix.__version__)"
    )
    version = run(sys.executable, "-I", "-c", script, str(target), cwd=tmp_path).strip()
    assert (
        run(str(target / "bin" / "pathmix"), "--version", env={"PYTHONPATH": str(target)})
        == f"pathmix {version}\n"
    )


def test_importing_waits_for_nothing():
    """All is loaded when the first of it is wanted; what is offered can be listed before."""
    script = (
        "import sys, pathmix; assert 'jax' not in sys.modules; pathmix.__version__\n"
        "assert 'jax' not in sys.modules and 'SDVI' in dir(pathmix)\n"
        "from pathmix import *\n"
        "assert SDVI is pathmix.SDVI and pathmix.guides.MeanField is MeanField\n"
        "try: pathmix.nothing\n"
        "except AttributeError as error: print(error)"
    )
    assert run(sys.executable, "-c", script) == "module 'pathmix' has no attribute 'nothing'\n"
