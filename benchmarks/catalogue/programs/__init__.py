"""The programs by kind, written in the language of their origin."""

import importlib
import pkgutil

from benchmarks.catalogue.entry import Entry


def kinds() -> dict[str, list[Entry]]:
    """The entries of each module, by what its first line says."""
    found = {}
    for module in sorted(pkgutil.iter_modules(__path__), key=lambda module: module.name):
        loaded = importlib.import_module(f"{__name__}.{module.name}")
        found[loaded.__doc__.splitlines()[0].rstrip(".")] = loaded.ENTRIES
    return found


def entries() -> dict[str, Entry]:
    """All entries by name."""
    return {entry.name: entry for group in kinds().values() for entry in group}
