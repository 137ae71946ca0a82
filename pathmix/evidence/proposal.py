"""A proposal that is fitted to weighted draws: heavy tails, full covariance."""

import math
from collections.abc import Iterator
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import solve_triangular
from scipy.special import gammaln

_FREEDOM = 7.0  # heavier tails than a normal's; a normal posterior costs it little
_AT_ONCE = 2**19  # numbers: what fits into a processor's cache is fastest


class Proposal(NamedTuple):
    """A multivariate t on the unconstrained vector."""

    loc: np.ndarray
    factor: np.ndarray  # Cholesky factor of its scale matrix

    @classmethod
    def of(cls, vectors: np.ndarray, weights: np.ndarray | None = None) -> "Proposal":
        """With the mean and the spread of weighted vectors."""
        given = np.ones(len(vectors)) if weights is None else weights
        locs, factors = Proposals.of(vectors, given[None])
        return cls(locs[0], factors[0])

    def draw(self, generator: np.random.Generator, count: int) -> np.ndarray:
        return Proposals(self.loc[None], self.factor[None]).draw(generator, np.array([count]))


class Proposals(NamedTuple):
    """Several of them."""

    locs: np.ndarray
    factors: np.ndarray

    @classmethod
    def of(cls, vectors: np.ndarray, weights: np.ndarray) -> "Proposals":
        """With the mean and the spread of vectors, by each row of weights."""
        weights = weights / weights.sum(axis=1, keepdims=True)
        columns = np.ascontiguousarray(vectors.T)
        # Not by BLAS, which may share a long sum between threads: its last bit would depend on how many.
        locs = np.stack([np.sum(columns * row, axis=1) for row in weights])
        count, dim = locs.shape
        full = np.empty((count, dim, dim))
        for some in _in_turn(count, vectors.size):
            centred = columns - locs[some, :, None]
            weighed = centred * weights[some, None]
            if dim == 1:
                full[some] = np.sum(weighed * centred, axis=2, keepdims=True)
            else:
                full[some] = weighed @ centred.transpose(0, 2, 1)
        variances = np.diagonal(full, axis1=1, axis2=2)
        variances = np.where(variances > 0, variances, 1.0)
        # With few effective draws, correlations are not to be believed.
        effective = 1 / np.sum(weights**2, axis=1)
        trust = (effective / (effective + 2 * dim))[:, None, None]
        full = trust * full + (1 - trust + 1e-9) * (variances[:, None] * np.eye(dim))
        return cls(locs, np.linalg.cholesky(full))

    def draw(self, generator: np.random.Generator, counts: np.ndarray) -> np.ndarray:
        """So many of each."""
        normal = generator.standard_normal((counts.sum(), self.locs.shape[1]))
        standard = normal / np.sqrt(generator.chisquare(_FREEDOM, (len(normal), 1)) / _FREEDOM)
        ends = np.cumsum(counts)
        for start, end, loc, factor in zip(ends - counts, ends, self.locs, self.factors, strict=True):
            standard[start:end] = loc + standard[start:end] @ factor.T
        return standard

    def log_prob(self, vectors: np.ndarray) -> np.ndarray:
        """At each of the vectors, a row for each proposal; outside of compiled code."""
        (count, dim), columns = self.locs.shape, np.ascontiguousarray(vectors.T)
        inverses = np.linalg.inv(self.factors)
        squares = np.empty((count, len(vectors)))
        for some in _in_turn(count, vectors.size):
            with np.errstate(over="ignore"):  # what is so far away has no density
                standard = inverses[some] @ (columns - self.locs[some, :, None])
                squares[some] = np.sum(standard**2, axis=1)
        scales = np.sum(np.log(np.diagonal(self.factors, axis1=1, axis2=2)), axis=1)
        return _constant(dim) - scales[:, None] - _power(dim) * np.log1p(squares / _FREEDOM)


def log_prob(proposal: Proposal, u: jax.Array) -> jax.Array:
    """At one vector, to be compiled."""
    dim = u.shape[0]
    standard = solve_triangular(proposal.factor, u - proposal.loc, lower=True)
    tail = jnp.log1p(jnp.sum(standard**2) / _FREEDOM)
    return _constant(dim) - jnp.sum(jnp.log(jnp.diag(proposal.factor))) - _power(dim) * tail


def _in_turn(count: int, size: int) -> Iterator[slice]:
    """Some of so many at once, of this size each."""
    step = max(1, _AT_ONCE // max(size, 1))
    return (slice(start, start + step) for start in range(0, count, step))


def _power(dim: int) -> float:
    return (_FREEDOM + dim) / 2


def _constant(dim: int) -> float:
    volume = dim / 2 * math.log(_FREEDOM * math.pi)
    return float(gammaln(_power(dim)) - gammaln(_FREEDOM / 2)) - volume
