"""Distributions by SciPy, under the names that NumPyro and Pyro have for them."""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy import special, stats

from tests.random_programs import grammar as g
from tests.random_programs.evaluation import Values, evaluate


class Family(Protocol):
    """A distribution for each run; in a plate, for each element too."""

    is_discrete: bool

    def draw(self, generator: np.random.Generator) -> np.ndarray: ...

    def log_prob(self, value: np.ndarray) -> np.ndarray: ...


def family(distribution: g.Distribution, variables: Values, rows: int, shape: tuple[int, ...]) -> Family:
    """For so many runs of a site of a shape."""

    def broadcast(parameter: Any) -> np.ndarray:
        if isinstance(parameter, tuple):
            return np.broadcast_to(parameter, (rows, *shape, len(parameter)))
        value = np.asarray(evaluate(parameter, variables))
        if distribution.family == "Categorical":
            value = value.reshape(rows, *(1 for _ in shape), -1)
            return np.broadcast_to(value, (rows, *shape, value.shape[-1]))
        value = value.reshape(*value.shape, *(1 for _ in shape[value.ndim - 1 :])) if value.ndim else value
        return np.broadcast_to(value, (rows, *shape))

    parameters = [broadcast(parameter) for parameter in distribution.parameters]
    match distribution.family:
        case "Categorical":
            return _Categorical(*parameters)
        case "Dirichlet":
            return _Dirichlet(*parameters)
        case name:
            return _Scalar(_SCIPY[name](*parameters), (rows, *shape), name in DISCRETE)


DISCRETE = ("Bernoulli", "Poisson", "Categorical")
_SCIPY = {
    "Normal": stats.norm,
    "StudentT": stats.t,
    "HalfNormal": lambda scale: stats.halfnorm(scale=scale),
    "LogNormal": lambda loc, scale: stats.lognorm(scale, scale=np.exp(loc)),
    "Gamma": lambda concentration, rate: stats.gamma(concentration, scale=1 / rate),
    "Exponential": lambda rate: stats.expon(scale=1 / rate),
    "Beta": stats.beta,
    "Uniform": lambda low, high: stats.uniform(low, high - low),
    "Bernoulli": stats.bernoulli,
    "Poisson": stats.poisson,
}


@dataclass(frozen=True)
class _Scalar:
    frozen: Any
    shape: tuple[int, ...]
    is_discrete: bool

    def draw(self, generator):
        return self.frozen.rvs(size=self.shape, random_state=generator)

    def log_prob(self, value):
        return self.frozen.logpmf(value) if self.is_discrete else self.frozen.logpdf(value)


@dataclass(frozen=True)
class _Categorical:
    probabilities: np.ndarray
    is_discrete: bool = True

    def draw(self, generator):
        below = np.cumsum(self.probabilities, axis=-1)[..., :-1]
        return (generator.random(below.shape[:-1])[..., None] > below).sum(axis=-1)

    def log_prob(self, value):
        chosen = np.asarray(value, int)[..., None]
        return np.log(np.take_along_axis(self.probabilities, chosen, axis=-1)[..., 0])


@dataclass(frozen=True)
class _Dirichlet:
    concentration: np.ndarray
    is_discrete: bool = False

    def draw(self, generator):
        parts = generator.standard_gamma(self.concentration)
        return parts / parts.sum(axis=-1, keepdims=True)

    def log_prob(self, value):
        a = self.concentration
        volume = special.gammaln(a).sum(axis=-1) - special.gammaln(a.sum(axis=-1))
        return special.xlogy(a - 1, value).sum(axis=-1) - volume
