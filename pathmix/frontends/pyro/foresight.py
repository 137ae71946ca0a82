"""Foresight: runs that need no running, for the runs before have shown what they do.

A tree of draws. As long as no continuous value has had a say, the next statement of a run follows from its
discrete draws so far, and so does its distribution. A run that finds its way through the tree is known
without the program: its values are drawn as the program would draw them, from the same seeds.
"""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import torch
from torch.distributions import Distribution

from pathmix.errors import HiddenRandomnessError
from pathmix.frontends.decisions import as_tuples
from pathmix.frontends.pyro.lowering.dtypes import as_engine, as_numpy
from pathmix.frontends.pyro.run import Run

_SPREAD = 0x9E3779B97F4A7C15  # an odd number: seeds of different sites never meet
_WORD = 2**64

Unsettled = Literal["open", "unknown"]  # a continuous value has a say from here on; or no run came here


@dataclass(eq=False)
class Draw:
    """A latent site of a settled run, and what comes after each value of a discrete one."""

    name: str
    distribution: Any
    arguments: tuple[Any, dict[str, Any]]
    position: int  # among all sites
    is_discrete: bool
    then: dict[Any, "Draw | Run | Unsettled"] = field(default_factory=dict)

    def value(self, word: int) -> torch.Tensor:
        reseed(word, self.position)
        args, kwargs = self.arguments
        return self.distribution(*args, **kwargs)

    def key(self, value: Any) -> Any:
        return as_tuples(value) if self.is_discrete else None


def reseed(word: int, position: int) -> None:
    """A seed for each site, so that draws do not depend on how many numbers earlier ones took."""
    torch.default_generator.manual_seed((word + position * _SPREAD) % _WORD)


def _copied(part: Any, copies: dict[int, Any]) -> Any:
    """A deep copy; of the libraries' distributions without asking how, which takes longest."""
    if type(part) in _FIXED:
        return part
    if id(part) in copies:
        return copies[id(part)]
    if type(part) is torch.Tensor:
        copied = copies[id(part)] = part.clone()
    elif type(part).__module__.startswith(_LIBRARIES) and isinstance(part, Distribution):
        copied = copies[id(part)] = object.__new__(type(part))
        vars(copied).update((name, _copied(inner, copies)) for name, inner in vars(part).items())
    else:
        copied = copy.deepcopy(part, copies)
    return copied


_FIXED = {bool, int, float, str, type(None), torch.Size}
_LIBRARIES = ("pyro.distributions.", "torch.distributions.")


def kept(msg: Any, position: int, *, is_discrete: bool) -> Draw | None:
    """A site as it is drawn now: the program may write into the parameters later. None if that fails."""
    try:
        copies: dict[int, Any] = {}
        distribution = _copied(msg["fn"], copies)
        arguments = copy.deepcopy((msg["args"], msg["kwargs"]), copies)
    except Exception:  # of a class that the user wrote
        return None
    return Draw(msg["name"], distribution, arguments, position, is_discrete)


@dataclass(frozen=True)
class Alike:
    """A run with discrete sites forced whose continuous draws change nothing but their own values.

    They come to no decision and to no distribution of another continuous site, so others are drawn alike.
    """

    run: Run
    draws: tuple[Draw, ...]  # of the continuous sites

    def other(self, word: int) -> Run | None:
        """The run of another seed along the same path; None if it has to be made."""
        try:
            drawn = {draw.name: as_engine(as_numpy(draw.value(word))) for draw in self.draws}
        except Exception:  # drawing may need what surrounds a run
            return None
        return replace(self.run, values=self.run.values | drawn, is_foreseen=True)


class Course:
    """Where a run is among the draws that runs before it have shown."""

    def __init__(self, first: dict[Any, Draw | Run | Unsettled]) -> None:
        self._then, self._key = first, None

    def draw(self, name: str) -> Draw | None:
        """The site that comes now, if it is known."""
        step = self._then.get(self._key)
        return step if isinstance(step, Draw) and step.name == name else None

    def drew(self, draw: Draw, value: Any) -> None:
        self._then, self._key = draw.then, draw.key(value)


class Foresight:
    """What the runs so far have shown."""

    def __init__(self) -> None:
        self._first: dict[Any, Draw | Run | Unsettled] = {}

    def run(self, word: int, forced: Mapping[str, Any] | None = None) -> Run | Unsettled:
        """The run of a seed, if it is foreseen; discrete sites may be forced."""
        values = {}
        step = self._first.get(None, "unknown")
        while isinstance(step, Draw):
            try:
                value = step.value(word)
            except Exception:  # drawing may need what surrounds a run
                return "open"
            if forced is not None and step.name in forced:
                value = torch.as_tensor(forced[step.name]).to(value.dtype)
            values[step.name] = as_numpy(value)
            step = step.then.get(step.key(values[step.name]), "unknown")
        if not isinstance(step, Run):
            return step
        return replace(step, values={n: as_engine(v) for n, v in values.items()}, is_foreseen=True)

    def course(self) -> Course:
        """For a new run."""
        return Course(self._first)

    def learn(self, draws: Sequence[Draw], run: Run, *, is_settled: bool) -> None:
        """Take in a run that was not foreseen: its draws, as far as they were settled."""
        then, key = self._first, None
        for draw in draws:
            step = then.setdefault(key, draw)
            if not isinstance(step, Draw) or step.name != draw.name:
                raise HiddenRandomnessError(f"this time it drew the site {draw.name!r}")
            then, key = step.then, draw.key(run.values[draw.name])
        then[key] = run if is_settled else "open"
