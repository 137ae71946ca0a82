"""The package's rooms stand in the order in which data goes through them, and import only upward."""

import ast
import re
from pathlib import Path

import pathmix

PACKAGE = Path(pathmix.__file__).parent
ROOMS = (
    "doors", "program", "summation", "engine", "cluster", "regions", "target", "frontends", "guides",
    "allocation", "discovery", "files", "posterior", "plots", "report", "training", "evidence", "methods",
    "cli",
)  # fmt: skip
LATER = {("posterior/posterior.py", "report")}  # what a method opens when it is called
FOUNDATION = {"errors", "version", "warn", "checks", "py"}


def imported(file):
    """What a file imports of the package, as parts of dotted names, also where only types are checked."""
    for node in ast.walk(ast.parse(file.read_text())):
        names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        yield from (name.split(".") for name in names if name.split(".")[0] == PACKAGE.name)


def test_the_folders_are_the_rooms():
    assert {entry.name for entry in PACKAGE.iterdir() if (entry / "__init__.py").is_file()} == set(ROOMS)
    assert {file.stem for file in PACKAGE.glob("*.py")} <= FOUNDATION | {"__init__", "__main__", "api"}


def test_imports_go_upward():
    for file in PACKAGE.rglob("*.py"):
        here = file.relative_to(PACKAGE).parts[0]
        for _, *parts in imported(file) if here in ROOMS else ():
            if (file.relative_to(PACKAGE).as_posix(), *parts) in LATER:
                continue
            assert parts and (parts[0] in FOUNDATION or ROOMS.index(parts[0]) <= ROOMS.index(here)), (
                f"{file.relative_to(PACKAGE)} imports {'.'.join(parts) or 'the whole package'}"
            )


def test_what_serves_one_library_lives_with_it():
    """What both front ends share knows neither; only `recognise` chooses between them."""
    for file in (PACKAGE / "frontends").glob("*.py"):
        for _, *parts in imported(file) if file.stem != "recognise" else ():
            assert parts[:2] not in (["frontends", "numpyro"], ["frontends", "pyro"]), file.name


PRIVATE = re.compile(
    r"jax\._src|jax\.core|jax\.extend|jax\.interpreters|torch\._|torch\.utils\._|experimental\.proxy_tensor"
    r"|numpyro\.primitives|pyro\.poutine\.(messenger|runtime|util|\w+_messenger)|pyro\.ops|_PYRO_STACK|\._trace\b"
)


def test_what_is_private_to_a_library_is_behind_its_door():
    for file in PACKAGE.rglob("*.py"):
        if file.relative_to(PACKAGE).parts[0] != "doors":
            assert not (found := PRIVATE.findall(file.read_text())), f"{file.relative_to(PACKAGE)}: {found}"
