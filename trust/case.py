"""A program with its right answer."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from scipy.special import logsumexp

import pathmix

Library = Literal["numpyro", "pyro"]
Method = Literal["analytic", "quadrature", "enumeration", "long run"]
Key = Callable[[pathmix.FittedPath], Hashable]


@dataclass(frozen=True, eq=False)
class Case:
    """What `SDVI(model).run(seed, *args)` should give; several paths may share a key."""

    name: str
    family: str
    library: Library
    model: Callable[..., Any]
    args: tuple[Any, ...]
    key: Key  # under which a path's weight counts
    answer: Callable[[], dict[Hashable, float]]  # log evidence by key, the prior of the path included
    method: Method

    @property
    def title(self) -> str:
        return f"{self.name} ({self.library})"

    @cached_property
    def log_evidences(self) -> dict[Hashable, float]:
        return {key: float(value) for key, value in self.answer().items() if value > -np.inf}

    @cached_property
    def log_evidence(self) -> float:
        return float(logsumexp(list(self.log_evidences.values())))

    @cached_property
    def weights(self) -> dict[Hashable, float]:
        """The exact posterior over keys."""
        return {key: float(np.exp(value - self.log_evidence)) for key, value in self.log_evidences.items()}


def both(numpyro_model, pyro_model, *, family, args, key, answer, method) -> list[Case]:
    """One program in two libraries, with one answer."""
    shared = {"family": family, "key": key, "answer": answer, "method": method}
    name = numpyro_model.__name__
    return [
        Case(name=name, library="numpyro", model=numpyro_model, args=args, **shared),
        Case(name=name, library="pyro", model=pyro_model, args=tuple(map(as_torch, args)), **shared),
    ]


def numpyro_only(model, *, family, args, key, answer, method) -> list[Case]:
    """A program that is written in one library only."""
    return [Case(model.__name__, family, "numpyro", model, args, key, answer, method)]


def as_torch(argument):
    import torch

    if isinstance(argument, (float, np.ndarray)):
        return torch.as_tensor(argument, dtype=torch.float64)
    return argument


def pinned(*names) -> Key:
    """The values of discrete sites, of several as a tuple; None for a site that is not there."""
    if len(names) == 1:
        return lambda path: path.pinned.get(names[0])
    return lambda path: tuple(path.pinned.get(name) for name in names)


def count(prefix) -> Key:
    """How many latent sites have a name that begins so."""
    return lambda path: sum(name.startswith(prefix) for name in path.addresses)


def has(name) -> Key:
    """Whether a latent site of the name is there."""
    return lambda path: name in path.addresses
