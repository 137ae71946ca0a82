"""A program of the catalogue, and what is known of its answer."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

import pathmix

Library = Literal["numpyro", "pyro"]
Read = Callable[[pathmix.Draws], Any]
EVIDENCE = "log evidence"


@dataclass(frozen=True, eq=False)
class Entry:
    """What `SDVI(model, **options).run(0, *args)` should give.

    `answers` gives exact numbers by name: `EVIDENCE`, or expectations, of which `read` takes one number a
    draw. An entry with `refused` has no answer: pathmix should say this in its error.
    """

    model: Callable[..., Any]
    library: Library
    origin: str  # where programs like it are found
    args: tuple[Any, ...] = ()
    against: str = ""  # how the answers were computed
    answers: Callable[[], Mapping[str, float]] | None = None
    read: Mapping[str, Read] = field(default_factory=dict)
    refused: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.model.__name__


def share(draws: pathmix.Draws, name: str, test: Callable[[np.ndarray], Any] = np.isfinite) -> np.ndarray:
    """Whether a site is there and passes a test, for each draw."""
    if name not in draws:
        return np.zeros(len(draws.path), bool)
    values = draws[name]
    return np.asarray(test(values)) & (np.isfinite(values) if values.dtype.kind == "f" else True)


def count(draws: pathmix.Draws, prefix: str) -> np.ndarray:
    """How many sites there are with a name that begins so, for each draw."""
    present = [
        share(draws, name).reshape(len(draws.path), -1)[:, 0] for name in draws if name.startswith(prefix)
    ]
    return np.sum([np.zeros(len(draws.path)), *present], axis=0)
