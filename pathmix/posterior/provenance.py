"""How a posterior was made: the method with its options, the model, the seed, and with what."""

import inspect
import platform
import re
import sys
from dataclasses import dataclass, fields
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import jax
import optax

from pathmix.program.program import Program
from pathmix.program.seeds import Seed
from pathmix.version import __version__

_ELSEWHERE = ("model", "progress", "checkpoint", "on_change")  # no option of what is computed
_LIBRARIES = {
    "jax": "jax", "jaxlib": "jaxlib", "numpyro": "numpyro", "numpy": "numpy", "optax": "optax",
    "torch": "torch", "pyro": "pyro-ppl",
}  # fmt: skip


@dataclass(frozen=True)
class Provenance:
    """Where a posterior comes from."""

    method: str
    model: str  # its name
    seed: str
    settings: dict[str, str]  # all options of the method
    changed: tuple[str, ...]  # those that are not the default
    versions: dict[str, str]
    device: str


def provenance(method: Any, program: Program, seed: Seed) -> Provenance:
    """Of a run of a method, which is a dataclass."""
    options = [one for one in fields(method) if one.name not in _ELSEWHERE]
    return Provenance(
        method=type(method).__name__,
        model=_name(program.model),
        seed=str(seed),
        settings={one.name: plainly(getattr(method, one.name)) for one in options},
        changed=tuple(one.name for one in options if getattr(method, one.name) != one.default),
        versions={
            "pathmix": __version__,
            "python": platform.python_version(),
            **{name: version_of(name) for module, name in _LIBRARIES.items() if module in sys.modules},
        },
        device=jax.devices()[0].device_kind,
    )


def version_of(library: str) -> str:
    """As it is installed."""
    try:
        return version(library)
    except PackageNotFoundError:  # it was put there by hand
        return "unknown"


def _name(model: Any) -> str:
    inner = inspect.unwrap(getattr(model, "func", model))
    return getattr(inner, "__qualname__", type(inner).__qualname__).rpartition("<locals>.")[2]


def plainly(option: Any) -> str:
    """An option in words that are the same in every process."""
    if isinstance(option, optax.GradientTransformation):
        return "an optax optimiser"
    return re.sub(r" at 0x[0-9a-f]+", "", repr(option))
