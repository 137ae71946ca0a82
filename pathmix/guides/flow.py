"""A normalising flow, for posteriors that are bent: by flowjax, which comes with `pathmix[flows]`."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from pathmix.errors import OptionError
from pathmix.guides.fullrank import FullRank, FullRankParams
from pathmix.guides.rounding import kept_by_rounding, same

_CALM = 0.01  # what networks start with, of what is usual: a flow starts near the identity
_PACE = 0.3  # of networks: with the steps that suit locations and scales, they do not converge
_FARTHEST = 40.0  # standard deviations, beyond which no draw is
_LEAST_SCALE = 0.01  # of a coupling


class FlowParams(NamedTuple):
    """What bends a standard normal, and the affine map that follows."""

    bending: Any  # how far, in units of the pace, parameters are from where they started
    affine: FullRankParams


class FlowLeaves(NamedTuple):
    """The parameters, as a file has them."""

    bending: tuple[jax.Array, ...]
    affine: FullRankParams


@dataclass(frozen=True)
class Flow:
    """Couplings with rational quadratic splines (Durkan et al. 2019) before a full-rank affine map.

    Args:
        layers: how many couplings.
        width: of the network in each.
        knots: of the splines.
        interval: where splines bend, in standard deviations; beyond, nothing is bent.
    """

    layers: int = 4
    width: int = 32
    knots: int = 8
    interval: float = 4.0

    def __post_init__(self) -> None:
        for name in ("layers", "width", "knots"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise OptionError(f"Flow needs {name} of at least 1, not {value!r}.")
        if not self.interval > 0:
            raise OptionError(f"Flow needs an interval above 0, not {self.interval!r}.")
        if find_spec("flowjax") is None:
            raise OptionError("Flow guides need flowjax: pip install 'pathmix[flows]'.")

    def noise_size(self, dim: int) -> int:
        """How many standard normals one draw needs."""
        return dim

    def init(self, draws: np.ndarray) -> FlowParams:
        """Match the moments of the draws, with next to no bending."""
        first, _ = _parts(self, draws.shape[1], jnp.zeros(0).dtype.name)
        return FlowParams(jax.tree.map(np.zeros_like, first), FullRank().init(draws))

    def centre(self, params: FlowParams) -> jax.Array:
        """Where the middle of the normal goes."""
        return self.sample(params, jnp.zeros_like(params.affine.loc))

    def sample(self, params: FlowParams, noise: jax.Array) -> jax.Array:
        """One draw, from standard normal noise."""
        return FullRank().sample(params.affine, self._bijection(params).transform(noise))

    def log_prob(self, params: FlowParams, u: jax.Array) -> jax.Array:
        """Log-density at one point; NaN where rounding has taken the way back to the noise."""
        bijection, affine = self._bijection(params), params.affine

        def density(point: jax.Array) -> jax.Array:
            noise, log_det = bijection.inverse_and_log_det(FullRank().standard(affine, point))
            found = jnp.sum(jax.scipy.stats.norm.logpdf(noise)) + log_det - jnp.sum(affine.log_diagonal)
            return jnp.where(jnp.max(jnp.abs(noise)) < _FARTHEST, found, jnp.nan)

        found = kept_by_rounding(density, u, affine.loc)
        noise = bijection.inverse(FullRank().standard(affine, u))
        return same(found, density(FullRank().sample(affine, bijection.transform(noise))))

    def leaves(self, params: FlowParams) -> "FlowLeaves":
        """The parameters without their tree, which no file can hold."""
        return FlowLeaves(tuple(jax.tree.leaves(params.bending)), params.affine)

    def with_leaves(self, leaves: "FlowLeaves") -> FlowParams:
        """The parameters again."""
        loc = leaves.affine.loc
        first, _ = _parts(self, loc.shape[-1], loc.dtype.name)
        return FlowParams(jax.tree.unflatten(jax.tree.structure(first), leaves.bending), leaves.affine)

    def _bijection(self, params: FlowParams) -> Any:
        import equinox
        import paramax

        loc = params.affine.loc
        first, rest = _parts(self, loc.shape[-1], loc.dtype.name)
        now = jax.tree.map(lambda start, moved: start + _PACE * moved, first, params.bending)
        return paramax.unwrap(equinox.combine(now, rest))


@lru_cache(maxsize=64)
def _parts(flow: Flow, dim: int, dtype: str) -> tuple[Any, Any]:
    """The parameters of an untrained flow, and the rest of it."""
    # It may be asked for while something is traced; in a thread of its own, nothing is.
    with ThreadPoolExecutor(1) as alone:
        return alone.submit(_built, flow, dim, dtype).result()


def _built(flow: Flow, dim: int, dtype: str) -> tuple[Any, Any]:
    import equinox
    import paramax
    from flowjax.bijections import (
        Affine,
        Chain,
        Coupling,
        Flip,
        Permute,
        RationalQuadraticSpline,
        Scan,
        Stack,
    )

    def last(coupling: Any) -> list[Any]:
        return [coupling.conditioner.layers[-1].weight, coupling.conditioner.layers[-1].bias]

    generator = np.random.default_rng(0)
    with jax.enable_x64(dtype == "float64"):
        spline = RationalQuadraticSpline(
            knots=flow.knots, interval=flow.interval, min_derivative=0.02, min_width=0.02
        )
        affine = equinox.tree_at(lambda one: one.scale, Affine(), paramax.Parameterize(_scale, jnp.zeros(())))
        layers = []
        for number in range(flow.layers if dim > 1 else 0):
            coupling = Coupling(
                jax.random.key(number),
                transformer=Chain([spline, affine]),
                untransformed_dim=dim // 2,
                dim=dim,
                nn_width=flow.width,
                nn_depth=1,
                nn_activation=jax.nn.silu,
            )
            coupling = equinox.tree_at(last, coupling, [_CALM * array for array in last(coupling)])
            order = generator.permutation(dim)
            layers.append(Chain([coupling, Flip((dim,)) if dim == 2 else Permute(order)]))
        if layers:
            arrays = [equinox.filter(layer, equinox.is_array) for layer in layers]
            stacked = jax.tree.map(lambda *columns: jnp.stack(columns), *arrays)
            bijection = Scan(
                equinox.combine(stacked, equinox.filter(layers[0], equinox.is_array, inverse=True))
            )
        else:  # one coordinate has nothing to be coupled with
            bijection = Stack([spline])
        trained, rest = equinox.partition(bijection, equinox.is_inexact_array)
        return jax.tree.map(np.asarray, trained), rest


def _scale(parameter: jax.Array) -> jax.Array:
    """One at zero, and never so small that nothing can be inverted."""
    return _LEAST_SCALE + (1 - _LEAST_SCALE) * jax.nn.softplus(parameter) / jnp.log(2.0)
