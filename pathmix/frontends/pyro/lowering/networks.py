"""Layers of networks: convolutions, and products of three."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
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
    stride, padding, dilation = (each(one, axes) for one in (stride, padding, dilation))
    spread = [1] * axes
    before = after = padding
    if transposed:  # the gradient of a convolution: stretched, with the kernel turned round
        weight, spread, stride = _turned(weight, groups), stride, spread
        reach = [d * (size - 1) for d, size in zip(dilation, weight.shape[2:], strict=True)]
        before = [r - p for r, p in zip(reach, padding, strict=True)]
        after = [b + extra for b, extra in zip(before, each(output_padding, axes), strict=True)]
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


def _trilinear(
    first: Any,
    second: Any,
    third: Any,
    new_in_first: Sequence[int],
    new_in_second: Sequence[int],
    new_in_third: Sequence[int],
    summed: Sequence[int],
    *_: Any,
) -> Any:
    factors = zip((first, second, third), (new_in_first, new_in_second, new_in_third), strict=True)
    one, two, three = (jnp.expand_dims(factor, tuple(axes)) for factor, axes in factors)
    return jnp.sum(one * two * three, tuple(summed))


def each(values: Any, axes: int) -> list[int]:
    """One for each axis; a single one is for all."""
    listed = [values] if isinstance(values, int) else list(values)
    return listed * axes if len(listed) == 1 else listed


TABLE = {
    aten._trilinear.default: _trilinear,
    aten.convolution.default: _convolution,
}
