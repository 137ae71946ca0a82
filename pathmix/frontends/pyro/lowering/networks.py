"""Layers of networks: convolutions, and means over windows."""

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


def _each(values: Any, axes: int) -> list[int]:
    """One for each axis; a single one is for all."""
    listed = [values] if isinstance(values, int) else list(values)
    return listed * axes if len(listed) == 1 else listed


TABLE = {
    aten.convolution.default: _convolution,
    aten.avg_pool2d.default: _window_mean(2),
    aten.avg_pool3d.default: _window_mean(3),
}
