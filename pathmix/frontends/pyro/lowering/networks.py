"""Layers of networks: convolutions, and means and maxima over windows."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch

aten: Any = torch.ops.aten


def _convolution(
    x: Any,
    weight: Any,
    bias: Any,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
) -> Any:
    axes = x.ndim - 2
    stride, padding, dilation = (_each(one, axes) for one in (stride, padding, dilation))
    spread = [1] * axes
    before = after = padding
    if transposed:  # the gradient of a convolution: stretched, with the kernel turned round
        weight, spread, stride = _turned(weight, groups), stride, spread
        reach = [d * (size - 1) for d, size in zip(dilation, weight.shape[2:], strict=True)]
        before = [r - p for r, p in zip(reach, padding, strict=True)]
        after = [b + extra for b, extra in zip(before, _each(output_padding, axes), strict=True)]
    letters = "DHW"[-axes:]
    found = jax.lax.conv_general_dilated(
        x,
        weight,
        stride,
        list(zip(before, after, strict=True)),
        lhs_dilation=spread,
        rhs_dilation=dilation,
        dimension_numbers=(f"NC{letters}", f"OI{letters}", f"NC{letters}"),
        feature_group_count=groups,
    )
    return found if bias is None else found + jnp.reshape(bias, (-1, *[1] * axes))


def _turned(weight: Any, groups: int) -> Any:
    """The kernel of a transposed convolution, as that of an ordinary one."""
    taken, given, *sizes = weight.shape
    parts = jnp.reshape(weight, (groups, taken // groups, given, *sizes))
    whole = jnp.reshape(jnp.swapaxes(parts, 1, 2), (groups * given, taken // groups, *sizes))
    return jnp.flip(whole, range(2, whole.ndim))


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
        size = _each(size, axes)
        steps = _each(stride, axes) if stride else size
        edges = [(p, p) for p in _each(padding, axes)]
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
        size = _each(size, axes)
        steps = _each(stride, axes) if stride else size
        outer, sides = x.shape[: x.ndim - axes], x.shape[x.ndim - axes :]
        element, within = np.zeros((1, 1), np.int64), np.ones((1, 1), bool)  # of each window, each place
        shape = []
        paddings, spreads = _each(padding, axes), _each(dilation, axes)
        for side, long, step, past, spread in zip(sides, size, steps, paddings, spreads, strict=True):
            places = _windows(side, long, step, past, spread, ceil_mode)
            shape.append(len(places))
            inside = (places >= 0) & (places < side)
            element = _crossed(np.add, element * side, np.where(inside, places, 0))
            within = _crossed(np.logical_and, within, inside)
        flat = jnp.reshape(x, (*outer, -1))
        least = -np.inf if jnp.issubdtype(x.dtype, jnp.floating) else np.iinfo(x.dtype).min
        seen = jnp.where(within, flat[..., element], np.asarray(least, x.dtype))
        which = jnp.argmax(seen, -1, keepdims=True)
        where = jnp.take_along_axis(jnp.broadcast_to(element, seen.shape), which, -1)
        largest = jnp.take_along_axis(seen, which, -1)
        return jnp.reshape(largest, (*outer, *shape)), jnp.reshape(where, (*outer, *shape))

    return lowering


def _windows(side: int, size: int, step: int, padding: int, spread: int, ceil_mode: bool) -> np.ndarray:
    """The places that each window looks at along a side, those outside of it too."""
    room = side + 2 * padding - spread * (size - 1) - 1
    last = -(-room // step) if ceil_mode else room // step
    if ceil_mode and last * step >= side + padding:  # it would begin behind the end
        last -= 1
    return step * np.arange(last + 1)[:, None] + spread * np.arange(size) - padding


def _crossed(combine: np.ufunc, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """What two sides have, for all pairs of windows and of places in them."""
    pairs = combine(first[:, None, :, None], second[None, :, None, :])
    return pairs.reshape(len(first) * len(second), -1)


def _each(values: Any, axes: int) -> list[int]:
    """One for each axis; a single one is for all."""
    listed = [values] if isinstance(values, int) else list(values)
    return listed * axes if len(listed) == 1 else listed


TABLE = {
    aten.convolution.default: _convolution,
    aten.avg_pool2d.default: _window_mean(2),
    aten.avg_pool3d.default: _window_mean(3),
    aten.max_pool2d_with_indices.default: _window_max(2),
    aten.max_pool3d_with_indices.default: _window_max(3),
}
