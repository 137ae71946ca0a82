"""The functions of a path that are compiled besides its training loop. All take a batch."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from pathmix.engine.batching import in_chunks, over_rows
from pathmix.guides.base import Guide
from pathmix.target.target import Target

Compilable = Callable[..., Any]


class Densities(NamedTuple):
    of_vectors: jax.Array  # log gamma in unconstrained coordinates
    of_sites: jax.Array  # log gamma in the coordinates of the program
    inside: jax.Array  # the region
    marks: jax.Array  # of the switches in the density, where asked for


def make_unconstrain(target: Target) -> Compilable:
    """(values, arguments) -> unconstrained vectors of prior draws."""
    return lambda values, arguments: over_rows(lambda *row: target.unconstrain(row, arguments))(*values)


def make_densities(target: Target, chunk: int, *, marked: bool = False) -> Compilable:
    """((vectors,), arguments) -> `Densities` of unconstrained vectors, a chunk at a time."""

    def densities(rows: tuple[jax.Array], arguments: Any) -> Any:
        def one(u: jax.Array) -> Any:
            if marked:
                found, marks = target.marked_density(u, arguments)
            else:
                found, marks = target.density(u, arguments), jnp.zeros(0, jnp.uint32)
            return Densities(found.log_joint + found.log_det, found.log_joint, found.inside, marks)

        return in_chunks(over_rows(one), rows[0], chunk)

    return densities


def make_sample(guide: Guide, dim: int, size: int) -> Compilable:
    """(params, noise) -> draws of the guide, and their log q~. The same for all paths of a dimension."""

    def sample(params: Any, noise: jax.Array) -> Any:
        draws = jax.vmap(lambda row: guide.sample(params, row))(_rows(noise, size, guide.noise_size(dim)))
        return draws, jax.vmap(lambda u: guide.log_prob(params, u))(draws)

    return sample


def make_draw(target: Target, guide: Guide, size: int, *, weighed: bool) -> Compilable:
    """(params, noise, arguments) -> sites of draws by name, and which are inside the region.

    Those of zero density are not, if they are `weighed`.
    """

    def draw(params: Any, noise: jax.Array, arguments: Any) -> Any:
        def one(row: jax.Array) -> Any:
            u = guide.sample(params, row)
            values, inside = target.values(u, arguments)
            if weighed:
                inside = inside & (target.density(u, arguments).log_joint > -jnp.inf)
            return values, inside

        return over_rows(one)(_rows(noise, size, guide.noise_size(target.dim)))

    return draw


def make_log_prob(target: Target, guide: Guide) -> Compilable:
    """(params, values, arguments) -> log q~ of one draw, in the coordinates of the program.

    -inf where the draw would be rejected.
    """

    def log_prob(params: Any, values: Any, arguments: Any) -> Any:
        u = target.unconstrain(values, arguments)
        found = target.density(u, arguments)
        accepted = found.inside & (found.log_joint > -jnp.inf)
        return jnp.where(accepted, guide.log_prob(params, u) - found.log_det, -jnp.inf)

    return log_prob


def _rows(noise: jax.Array, size: int, width: int) -> jax.Array:
    return noise[: size * width].reshape(size, width)
