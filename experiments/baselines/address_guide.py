"""A variational distribution for every address: normals in unconstrained space, and categoricals.

All of them are drawn at once, in vectors, whatever the path: a program that reads its values from
such a sheet sees the same as one that draws each value when it gets there.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from experiments.baselines.addresses import Address, Choices

_LOG_NORMALISER = 0.5 * np.log(2 * np.pi)


class GuideParams(NamedTuple):
    """Also the gradient with respect to them. Vectors are longer than what is in use: they grow rarely."""

    loc: Any
    log_scale: Any
    logits: Any  # one categorical per row


class Noise(NamedTuple):
    """What draws are made of, one per row."""

    normal: np.ndarray
    uniform: np.ndarray


class Met(NamedTuple):
    """Which addresses each draw meets on its path: one where it does, zero elsewhere."""

    normals: np.ndarray
    categoricals: np.ndarray


class AddressGuide:
    """The distributions so far; addresses can be added at any time."""

    def __init__(self) -> None:
        self.normals: dict[Address, slice] = {}
        self.categoricals: dict[Address, slice] = {}
        self.lowest = np.zeros(1, np.int64)  # the value that the first choice stands for
        self.number = np.ones(1, np.int64)  # of choices
        self.params = GuideParams(np.zeros(1), np.zeros(1), np.zeros((1, 1)))

    def __contains__(self, address: Address) -> bool:
        return address in self.normals or address in self.categoricals

    def add_normal(self, address: Address, loc: np.ndarray, scale: np.ndarray) -> None:
        place = _next(self.normals, len(loc))
        self.normals[address] = place
        old = self.params
        means, log_scales = _grown(old.loc, (place.stop,)), _grown(old.log_scale, (place.stop,))
        means[place], log_scales[place] = loc, np.log(scale)
        self.params = GuideParams(means, log_scales, old.logits)

    def add_categorical(self, address: Address, choices: Choices, masses: np.ndarray) -> None:
        """`masses` has a row of unnormalised probabilities for each element."""
        place = _next(self.categoricals, len(masses))
        self.categoricals[address] = place
        size = (place.stop, int(choices.number.max(initial=1)))
        logits = _grown(self.params.logits, size)
        logits[place, : size[1]] = np.log(masses)
        self.params = self.params._replace(logits=logits)
        self.lowest = _grown(self.lowest, logits.shape[:1])
        self.number = np.maximum(_grown(self.number, logits.shape[:1]), 1)
        self.lowest[place], self.number[place] = choices

    def noise(self, generator: np.random.Generator, rows: int) -> Noise:
        return Noise(
            generator.standard_normal((rows, len(self.params.loc))),
            generator.random((rows, len(self.params.logits))),
        )

    def more_noise(self, noise: Noise, generator: np.random.Generator) -> Noise:
        """The same noise, with columns for addresses that were added since."""
        fresh = self.noise(generator, len(noise.normal))
        for new, old in zip(fresh, noise, strict=True):
            new[:, : old.shape[1]] = old
        return fresh

    def sheet(self, noise: Noise) -> "Sheet":
        return Sheet(self.params, self.lowest, self.number, noise)


@dataclass(frozen=True, eq=False)
class Sheet:
    """SiteRows for all addresses, a row for each draw, with their densities."""

    params: GuideParams
    lowest: np.ndarray
    number: np.ndarray
    noise: Noise

    @cached_property
    def scale(self) -> np.ndarray:
        return np.exp(self.params.log_scale)

    @cached_property
    def u(self) -> np.ndarray:
        return self.params.loc + self.scale * self.noise.normal

    @cached_property
    def log_normal(self) -> np.ndarray:
        return -0.5 * self.noise.normal**2 - self.params.log_scale - _LOG_NORMALISER

    @cached_property
    def log_probs(self) -> np.ndarray:
        return log_softmax(self.params.logits, self.number)

    @cached_property
    def index(self) -> np.ndarray:
        """Which choice each draw of each categorical is."""
        steps = np.cumsum(np.exp(self.log_probs), axis=1)
        below = np.sum(self.noise.uniform[:, :, None] >= steps, axis=2)
        return np.minimum(below, self.number - 1)  # the last step may be a rounding error below 1

    @cached_property
    def log_categorical(self) -> np.ndarray:
        return self.log_probs[np.arange(len(self.number)), self.index]

    def log_q(self, met: Met) -> np.ndarray:
        """Log-density of each draw at the addresses that it met, in the unconstrained coordinates."""
        continuous = np.sum(self.log_normal * met.normals, axis=1)
        return continuous + np.sum(self.log_categorical * met.categoricals, axis=1)

    def score(self, met: Met, coefficients: np.ndarray) -> GuideParams:
        """sum_i c_i grad log q(x_i)."""
        normal = self.noise.normal
        weighted = coefficients[:, None] * met.normals
        loc = np.sum(weighted * normal, axis=0) / self.scale
        log_scale = np.sum(weighted * (normal**2 - 1), axis=0)
        weighted = coefficients[:, None] * met.categoricals
        logits = -weighted.sum(axis=0)[:, None] * np.exp(self.log_probs)
        np.add.at(logits, (np.arange(len(self.number)), self.index), weighted)
        return GuideParams(loc, log_scale, logits)


def log_softmax(logits: np.ndarray, number: np.ndarray) -> np.ndarray:
    """Log-probabilities by row; beyond a row's number of choices they are -inf."""
    open_ = np.arange(logits.shape[1]) < number[:, None]
    top = logits.max(axis=1, where=open_, initial=-np.inf, keepdims=True)
    shifted = np.where(open_, logits - top, -np.inf)
    return shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))


def log_normal(u: np.ndarray, loc: np.ndarray, log_scale: np.ndarray) -> np.ndarray:
    return -0.5 * ((u - loc) * np.exp(-log_scale)) ** 2 - log_scale - _LOG_NORMALISER


def _next(places: dict[Address, slice], size: int) -> slice:
    start = max((place.stop for place in places.values()), default=0)
    return slice(start, start + size)


def _grown(array: np.ndarray, wanted: tuple[int, ...]) -> np.ndarray:
    """A copy with at least the wanted size, doubled so that it seldom has to grow."""
    sizes = [_doubled(have, want) for have, want in zip(array.shape, wanted, strict=True)]
    return np.pad(array, [(0, size - have) for have, size in zip(array.shape, sizes, strict=True)])


def _doubled(have: int, wanted: int) -> int:
    return have if have >= wanted else 1 << (wanted - 1).bit_length()
