"""The functions of a path that are compiled besides its training loop. All take a batch of rows."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pathmix.engine import stablehlo
from pathmix.engine.batching import in_chunks, over_rows
from pathmix.engine.requests import MemberFunction
from pathmix.guides.base import Guide
from pathmix.target.formula import Arguments, Formula
from pathmix.target.signs import Sign
from pathmix.target.target import Outcome, Target

Compilable = Callable[..., Any]


def make_unconstrain(target: Target) -> Compilable:
    """(values, arguments) -> unconstrained vectors of prior draws."""
    formula = target.formula
    return lambda values, arguments: over_rows(lambda *row: formula.unconstrain(row, arguments))(*values)


def make_constrain(formula: Formula) -> MemberFunction:
    """(., arguments, vectors) -> the values of the free sites."""

    def values(_: Any, arguments: Arguments, vectors: jax.Array) -> list[jax.Array]:
        return over_rows(lambda u: formula.coordinates.constrain(u, arguments.map)[0])(vectors)

    return values


def constrained_types(formula: Formula, rows: int) -> list[Any]:
    """Of what that gives."""
    return [stablehlo.types((rows, *site.shape), site.dtype) for site in formula.sites]


def make_plain(formula: Formula, chunk: int) -> MemberFunction:
    """(., arguments, vectors) -> log gamma of vectors, a chunk at a time; without a guide."""

    def plain(_: Any, arguments: Any, rows: jax.Array) -> Any:
        def one(u: jax.Array) -> Any:
            found = formula.density(u, arguments)
            return found.log_joint, found.log_det, jnp.full_like(found.log_joint, jnp.nan), found.inside

        return in_chunks(over_rows(one), rows, chunk)

    return plain


def plain_types(formula: Formula, rows: int) -> tuple[Any, ...]:
    """Of what that gives."""
    log_joint = stablehlo.types((rows,), formula.graphs.density.number)
    return log_joint, stablehlo.types((rows,), float), log_joint, stablehlo.types((rows,), bool)


def make_marked(formula: Formula, signs: Sequence[Sign], chunk: int) -> MemberFunction:
    """(., arguments, vectors) -> log gamma of vectors, and the marks of switches, a chunk at a time."""

    def marked(_: Any, arguments: Any, rows: jax.Array) -> Any:
        def one(u: jax.Array) -> Any:
            found, marks = formula.marked_density(u, arguments, signs)
            return found.log_joint, found.log_det, found.inside, marks

        return in_chunks(over_rows(one), rows, chunk)

    return marked


def marked_types(formula: Formula, switches: int, rows: int) -> tuple[Any, ...]:
    """Of what that gives."""
    log_joint, log_det, _, inside = plain_types(formula, rows)
    return log_joint, log_det, inside, stablehlo.types((rows, switches), np.uint32)


def make_sample(guide: Guide, dim: int, size: int) -> MemberFunction:
    """(., ., (params, noise)) -> draws of the guide. The same for all paths of a dimension."""

    def sample(_: Any, __: Any, given: tuple[Any, jax.Array]) -> Any:
        params, noise = given
        return jax.vmap(lambda row: guide.sample(params, row))(_rows(noise, size, guide.noise_size(dim)))

    return sample


def make_draw(target: Target, guide: Guide, size: int, *, weighed: bool) -> Compilable:
    """(params, noise, arguments, consts) -> what draws stand for, and which are inside the region.

    Those of zero density are not, if they are `weighed`.
    """

    def draw(params: Any, noise: jax.Array, arguments: Any, consts: Any) -> Outcome:
        def one(row: jax.Array) -> Outcome:
            u = guide.sample(params, row)
            outcome = target.outcome(u, arguments, consts)
            if not weighed:
                return outcome
            is_zero = target.formula.density(u, arguments).log_joint == -jnp.inf
            return outcome._replace(inside=outcome.inside & ~is_zero)

        return over_rows(one)(_rows(noise, size, guide.noise_size(target.dim)))

    return draw


def make_log_prob(target: Target, guide: Guide) -> Compilable:
    """(params, values, arguments) -> log q~ of one draw, in the coordinates of the program.

    -inf where the draw would be rejected.
    """

    def log_prob(params: Any, values: Any, arguments: Any) -> Any:
        u = target.formula.unconstrain(values, arguments)
        found = target.formula.density(u, arguments)
        accepted = found.inside & (found.log_joint > -jnp.inf)
        return jnp.where(accepted, guide.log_prob(params, u) - found.log_det, -jnp.inf)

    return log_prob


def _rows(noise: jax.Array, size: int, width: int) -> jax.Array:
    return noise[: size * width].reshape(size, width)
