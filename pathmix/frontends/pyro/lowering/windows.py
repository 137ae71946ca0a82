"""Windows over the sides of an image: the means and the maxima in them."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch

from pathmix.frontends.pyro.lowering.networks import each

aten: Any = torch.ops.aten


def _window_mean(axes: int) -> Any:
    def lowering(
        x: Any,
        size: Sequence[int],
        stride: Sequence[int] = (),
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> Any:
        if ceil_mode:
            return NotImplemented
        size = each(size, axes)
        steps = each(stride, axes) if stride else size
        edges = [(p, p) for p in each(padding, axes)]
        outer = x.ndim - axes

        def summed(of: Any) -> Any:
            return jax.lax.reduce_window(
                of,
                np.zeros((), of.dtype),
                jax.lax.add,
                (1,) * outer + tuple(size),
                (1,) * outer + tuple(steps),
                [(0, 0)] * outer + edges,
            )

        if divisor_override is not None:
            return summed(x) / divisor_override
        return summed(x) / (np.prod(size) if count_include_pad else summed(jnp.ones_like(x)))

    return lowering


def _window_max(axes: int) -> Any:
    def lowering(
        x: Any,
        size: Sequence[int],
        stride: Sequence[int] = (),
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
    ) -> Any:
        size = each(size, axes)
        steps = each(stride, axes) if stride else size
        paddings, spreads = each(padding, axes), each(dilation, axes)
        sides = x.shape[x.ndim - axes :]
        along = zip(sides, size, steps, paddings, spreads, strict=True)
        return _largest(x, [_windows(*one, ceil_mode) for one in along])

    return lowering


def _adaptive_max(axes: int) -> Any:
    def lowering(x: Any, output_size: Sequence[int]) -> Any:
        sides = x.shape[x.ndim - axes :]
        return _largest(x, [_shares(*one) for one in zip(sides, output_size, strict=True)])

    return lowering


def _adaptive_mean(axes: int) -> Any:
    def lowering(x: Any, output_size: Sequence[int]) -> Any:
        sides = x.shape[x.ndim - axes :]
        wanted = [given or side for given, side in zip(output_size, sides, strict=True)]
        seen, within, _ = _seen(x, [_shares(*one) for one in zip(sides, wanted, strict=True)])
        means = jnp.sum(jnp.where(within, seen, 0), -1) / within.sum(-1)
        return jnp.reshape(means, (*x.shape[: x.ndim - axes], *wanted))

    return lowering


def _windows(side: int, size: int, step: int, padding: int, spread: int, ceil_mode: bool) -> np.ndarray:
    """The places that each window looks at along a side; -1 outside of it."""
    room = side + 2 * padding - spread * (size - 1) - 1
    last = -(-room // step) if ceil_mode else room // step
    if ceil_mode and last * step >= side + padding:  # it would begin behind the end
        last -= 1
    places = step * np.arange(last + 1)[:, None] + spread * np.arange(size) - padding
    return np.where((places >= 0) & (places < side), places, -1)


def _shares(side: int, count: int) -> np.ndarray:
    """The same of so many windows that have about the same size."""
    first = np.arange(count) * side // count
    behind = -(-(np.arange(count) + 1) * side // count)
    places = first[:, None] + np.arange((behind - first).max())
    return np.where(places < behind[:, None], places, -1)


def _seen(x: Any, windows: Sequence[np.ndarray]) -> tuple[Any, np.ndarray, np.ndarray]:
    """What all windows see, one after the other; what of it is inside, and which elements these are."""
    sides = x.shape[x.ndim - len(windows) :]
    element, within = np.zeros((1, 1), np.int64), np.ones((1, 1), bool)
    for side, places in zip(sides, windows, strict=True):
        element = _crossed(np.add, element * side, np.maximum(places, 0))
        within = _crossed(np.logical_and, within, places >= 0)
    return jnp.reshape(x, (*x.shape[: x.ndim - len(windows)], -1))[..., element], within, element


def _crossed(combine: np.ufunc, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """What two sides have, for all pairs of windows and of places in them."""
    pairs = combine(first[:, None, :, None], second[None, :, None, :])
    return pairs.reshape(len(first) * len(second), -1)


def _largest(x: Any, windows: Sequence[np.ndarray]) -> tuple[Any, Any]:
    seen, within, element = _seen(x, windows)
    least = -np.inf if jnp.issubdtype(x.dtype, jnp.floating) else np.iinfo(x.dtype).min
    seen = jnp.where(within, seen, np.asarray(least, x.dtype))
    which = jnp.argmax(seen, -1, keepdims=True)
    where = jnp.take_along_axis(jnp.broadcast_to(element, seen.shape), which, -1)
    shape = (*x.shape[: x.ndim - len(windows)], *map(len, windows))
    return jnp.reshape(jnp.take_along_axis(seen, which, -1), shape), jnp.reshape(where, shape)


TABLE = {
    aten._adaptive_avg_pool3d.default: _adaptive_mean(3),
    aten.adaptive_max_pool2d.default: _adaptive_max(2),
    aten.adaptive_max_pool3d.default: _adaptive_max(3),
    aten.avg_pool2d.default: _window_mean(2),
    aten.avg_pool3d.default: _window_mean(3),
    aten.max_pool2d_with_indices.default: _window_max(2),
    aten.max_pool3d_with_indices.default: _window_max(3),
}
