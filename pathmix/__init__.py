"""Bayesian inference on programs whose structure is random."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from pathmix.version import __version__ as __version__

if TYPE_CHECKING:
    from pathmix import plots as plots
    from pathmix.api import *  # noqa: F403


def __getattr__(name: str) -> Any:
    """Load everything when the first of it is wanted: `pathmix --help` does not wait for JAX."""
    if name == "plots":
        return import_module("pathmix.plots")
    if name == "__all__" or not name.startswith("_"):
        api = import_module("pathmix.api")
        globals().update({each: getattr(api, each) for each in ("__all__", *api.__all__)})
    if name in globals():  # or it is a room, which loading has put there
        return globals()[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *import_module("pathmix.api").__all__})
