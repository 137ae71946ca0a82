"""Calls of every ATen operation that has a lowering: ordinary ones, then the edges of its domain."""

import math
from dataclasses import dataclass

import torch

aten = torch.ops.aten
_generator = torch.Generator().manual_seed(0)
INF, NAN = math.inf, math.nan


@dataclass(frozen=True)
class Known:
    """A tensor that does not depend on any input."""

    tensor: torch.Tensor


def call(*args, **kwargs):
    return args, kwargs


_WRAPPING = [
    call(torch.tensor([100, 100, 100], dtype=kind), 0) for kind in (torch.uint8, torch.int8, torch.int16)
]


def real(*shape):
    return torch.randn(shape, generator=_generator, dtype=torch.float64)


def unit(*shape):
    """Inside (0, 1), away from both."""
    return 0.05 + 0.9 * torch.rand(shape, generator=_generator, dtype=torch.float64)


def positive(*shape):
    return 0.1 + real(*shape).abs()


def whole(low, high, *shape):
    return torch.randint(low, high, shape, generator=_generator)


def truth(*shape):
    return whole(0, 2, *shape).bool()


def vector(*values):
    return torch.tensor(values, dtype=torch.float64)


def numbers(*values):
    return torch.tensor(values)


def spd(*shape):
    """Symmetric positive definite matrices."""
    square = real(*shape)
    return square @ square.mT + shape[-1] * torch.eye(shape[-1], dtype=torch.float64)


def well(*shape):
    """Matrices far from singular."""
    return real(*shape) + 4 * torch.eye(shape[-1], dtype=torch.float64)


def unary(make, *edges):
    return [call(make(3, 4)), call(make()), *([call(vector(*edges))] if edges else [])]


def binary(x, y, *edges):
    """Broadcasting both ways, a tensor without axes, and the edges as pairs."""
    pairs = [(x(3, 1), y(2, 1, 4)), (x(), y(3))]
    return [call(*pair) for pair in pairs] + ([call(*vector(*edges).T)] if edges else [])


def mixed():
    """Whole numbers and truth values among the floats."""
    return [
        call(whole(-4, 5, 3, 2), real(2)),
        call(real(3), whole(1, 5, 2, 3)),
        call(whole(-4, 5, 4), whole(1, 5, 4)),
        call(truth(4), real(4)),
    ]


def scalar(x, *values):
    return [call(make, value) for value in values for make in (x(3, 2), x())]


def reduced():
    """A reduction over one axis or several, kept or not."""
    return [
        call(real(3, 4, 2), [0]),
        call(real(3, 4, 2), [-1], True),
        call(real(3, 4, 2), [0, -2]),
        call(real(3, 4), []),
        call(real(), [0]),
    ]


def along():
    """A reduction over exactly one axis."""
    return [call(real(3, 4, 2), 0), call(real(3, 4), -1, True), call(real(4), 0), call(real(), -1)]


COMPARED = [
    call(real(3, 1), real(2, 1, 4)),
    call(whole(0, 2, 3, 2), vector(0.0, 1.0)),
    call(numbers(1, 2, 3), numbers(3, 2, 1)),
    call(truth(3), truth(3)),
]
COMPARED_SCALAR = [call(real(3, 2), 0.1), call(whole(-2, 3, 9), 1), call(real(), -1), call(truth(4), 1)]
LOGICAL = [call(truth(3, 4), truth(4)), call(real(3), whole(0, 2, 3)), call(whole(0, 2, 4), truth())]
BITS = [call(whole(0, 9, 3, 4), whole(0, 9, 4)), call(truth(3, 4), truth(4))]
BITS_SCALAR = [call(whole(0, 9, 3, 4), 5), call(truth(4), True)]
FLAGS = [call(vector(1.0, INF, -INF, NAN)), call(real(2, 3)), call(whole(-3, 3, 2))]
ROUNDED = [call(3 * real(3, 4)), call(real()), call(whole(-3, 4, 5))]

CREATION = {
    aten.zeros_like.default: [call(real(3, 2)), call(real(), dtype=torch.int64), call(truth(2))],
    aten.ones_like.default: [call(real(3, 2)), call(real(), dtype=torch.bool), call(whole(0, 3, 2))],
    aten.full_like.default: [
        call(real(3, 2), 2.5),
        call(whole(0, 3, 2), 7),
        call(real(2), 1, dtype=torch.int64),
    ],
    aten.empty_like.default: [call(real(3, 2)), call(whole(0, 3, 2))],
    aten.new_zeros.default: [call(real(3), [2, 2]), call(real(3), [], dtype=torch.int64)],
    aten.new_ones.default: [call(real(3), [2, 2]), call(whole(0, 3, 2), [4])],
    aten.new_empty.default: [call(real(3), [2, 2])],
    aten.new_full.default: [call(real(3), [2, 2], -1.5), call(whole(0, 3, 2), [], 3)],
    aten.fill.Scalar: [call(real(3, 2), 2.5), call(whole(0, 3, 2), 7), call(real(), 1)],
    aten.fill.Tensor: [call(real(3, 2), real()), call(whole(0, 3, 2), whole(0, 5))],
}

ELEMENTWISE = {
    # arithmetic
    aten.add.Tensor: [*binary(real, real), *mixed(), call(real(3), real(3), alpha=-2.5)],
    aten.add.Scalar: [*scalar(real, 2, -0.5), call(real(3), 2, 3), call(whole(0, 5, 3), 1.5)],
    aten.sub.Tensor: [*binary(real, real), *mixed()[:3], call(real(3), real(3), alpha=2)],
    aten.sub.Scalar: [*scalar(real, 2, -0.5), call(real(3), 2, 3), call(whole(0, 5, 3), 1.5)],
    aten.rsub.Tensor: [*binary(real, real), *mixed()[:3], call(real(3), real(3), alpha=2)],
    aten.rsub.Scalar: [*scalar(real, 2, -0.5), call(real(3), 2, 3), call(whole(0, 5, 3), 1.5)],
    aten.mul.Tensor: [*binary(real, real), *mixed(), call(truth(3), truth(3))],
    aten.mul.Scalar: [*scalar(real, 2, -0.5), call(whole(0, 5, 3), 1.5), call(truth(3), 2)],
    aten.div.Tensor: [*binary(real, positive), *mixed()[:3], call(vector(1, 0), vector(0, 0))],
    aten.div.Scalar: [*scalar(real, 2, -0.5), call(whole(0, 5, 3), 2)],
    aten.div.Tensor_mode: [
        *(call(5 * real(3, 4), positive(4), rounding_mode=mode) for mode in (None, "floor", "trunc")),
        *(call(whole(-9, 9, 6), whole(1, 4, 6), rounding_mode=mode) for mode in (None, "floor", "trunc")),
    ],
    aten.div.Scalar_mode: [
        *(call(5 * real(3, 4), -0.7, rounding_mode=mode) for mode in (None, "floor", "trunc")),
        *(call(whole(-9, 9, 6), 2, rounding_mode=mode) for mode in (None, "floor", "trunc")),
    ],
    aten.floor_divide.default: [call(5 * real(3, 4), positive(4)), call(whole(-9, 9, 6), whole(1, 4, 6))],
    aten.remainder.Tensor: [call(5 * real(3, 4), real(4)), call(whole(-9, 9, 6), whole(1, 4, 6))],
    aten.remainder.Scalar: [call(5 * real(3, 4), -0.7), call(whole(-9, 9, 6), 4), call(real(), 0.3)],
    aten.remainder.Scalar_Tensor: [call(-7.3, positive(3, 4)), call(7, whole(1, 4, 6))],
    aten.fmod.Tensor: [call(5 * real(3, 4), real(4)), call(whole(-9, 9, 6), whole(1, 4, 6))],
    aten.fmod.Scalar: [call(5 * real(3, 4), -0.7), call(whole(-9, 9, 6), 4), call(real(), 0.3)],
    aten.pow.Tensor_Tensor: [
        *binary(positive, real, (0.0, 2.0), (0.0, 0.0), (2.0, 0.0), (-2.0, 3.0)),
        call(whole(1, 4, 3), whole(0, 4, 3)),
        call(positive(3), whole(-2, 4, 3)),
    ],
    aten.pow.Tensor_Scalar: [
        *(call(real(3, 2), n) for n in (0, 1, 2, 2.0, 3, -1, 11)),
        *(call(positive(3, 2), n) for n in (0.5, -0.5, 1.7)),
        call(vector(0.0), 2),
        call(vector(0.0), 0.0),
        *(call(numbers(15, 16, 200).to(kind), 2.0) for kind in (torch.uint8, torch.int16, torch.int32)),
        call(numbers(100_000, 2_000_000), 4.0),
        call(numbers(1, 2, 3), -1.0),
        call(numbers(15, 16, 200).to(torch.uint8), 2),
        call(whole(-3, 4, 4), 3),
        call(whole(1, 4, 4), 0.5),
    ],
    aten.pow.Scalar: [
        call(2.5, real(3, 2)),
        call(2, real()),
        call(2, whole(0, 5, 3)),
        call(0.0, positive(2)),
    ],
    aten.neg.default: [*unary(real), call(whole(-3, 3, 4))],
    aten.abs.default: [*unary(real, 0.0), call(whole(-3, 3, 4))],
    aten.sign.default: [*unary(real, 0.0), call(whole(-3, 3, 4)), call(truth(3))],
    aten.sgn.default: [*unary(real, 0.0), call(whole(-3, 3, 4))],
    aten.reciprocal.default: [*unary(positive), call(whole(1, 4, 3))],
    aten.addcmul.default: [call(real(3, 4), real(4), real(3, 1)), call(real(), real(2), real(2), value=-0.5)],
    aten.addcdiv.default: [
        call(real(3, 4), real(4), positive(3, 1)),
        call(real(), real(2), positive(2), value=2),
    ],
    aten.lerp.Scalar: [call(real(3, 4), real(4), 0.3), call(real(), real(), 1.5)],
    aten.lerp.Tensor: [call(real(3, 4), real(4), real(3, 1)), call(real(), real(), real())],
    aten.maximum.default: [*binary(real, real, (1.0, 1.0)), *mixed()],
    aten.minimum.default: [*binary(real, real, (1.0, 1.0)), *mixed()],
    aten.fmax.default: [*binary(real, real), call(vector(NAN, 1, 2), vector(1, NAN, 3))],
    aten.fmin.default: [*binary(real, real), call(vector(NAN, 1, 2), vector(1, NAN, 3))],
    aten.clamp.default: [
        call(real(3, 4), -0.5, 0.5),
        call(real(3, 4), -0.5),
        call(real(), None, 0.5),
        call(vector(0.0, 1.0, 2.0), 0.0, 2.0),
        call(vector(0.0, 3.0), 2.0, 1.0),
        call(whole(-5, 5, 6), -2, 2),
        call(whole(-5, 5, 6), 0.5),
    ],
    aten.clamp.Tensor: [
        call(real(3, 4), real(4) - 1, real(3, 1) + 1),
        call(real(3, 4), real(4)),
        call(real(), None, real()),
        call(vector(0.0, 1.0, 2.0), vector(0.0), vector(2.0)),
        call(whole(-5, 5, 6), numbers(-2), numbers(2)),
    ],
    aten.clamp_min.default: [*scalar(real, 0.1, 0), call(vector(0.0), 0.0), call(whole(-5, 5, 6), 0)],
    aten.clamp_min.Tensor: [call(real(3, 4), real(4)), call(vector(0.0), vector(0.0)), call(real(), real(2))],
    aten.clamp_max.default: [*scalar(real, 0.1, 0), call(vector(0.0), 0.0), call(whole(-5, 5, 6), 0)],
    aten.clamp_max.Tensor: [call(real(3, 4), real(4)), call(vector(0.0), vector(0.0)), call(real(), real(2))],
    # rounding
    aten.floor.default: ROUNDED,
    aten.ceil.default: ROUNDED,
    aten.trunc.default: ROUNDED,
    aten.round.default: [*ROUNDED, call(vector(0.5, 1.5, 2.5, -0.5))],
    aten.round.decimals: [call(real(3), decimals=2), call(100 * real(3), decimals=-1)],
    aten.frac.default: ROUNDED[:2],
    # exponentials and powers
    aten.exp.default: [*unary(real, -INF), call(whole(0, 3, 2)), call(truth(2))],
    aten.exp2.default: unary(real),
    aten.expm1.default: unary(real, 1e-12),
    aten.log.default: [*unary(positive, 0.0), call(whole(1, 5, 3))],
    aten.log2.default: unary(positive),
    aten.log10.default: unary(positive),
    aten.log1p.default: unary(positive, 1e-12),
    aten.sqrt.default: [*unary(positive, 0.0), call(whole(0, 5, 3))],
    aten.rsqrt.default: [*unary(positive), call(whole(1, 5, 3))],
    aten.logaddexp.default: binary(real, real, (1e3, 0.0), (-INF, 0.0), (-INF, -INF), (2.0, 2.0)),
    aten.logaddexp2.default: binary(real, real, (1e3, 0.0), (2.0, 2.0)),
    # trigonometry
    aten.sin.default: [*unary(real), call(whole(0, 5, 3))],
    aten.cos.default: unary(real),
    aten.tan.default: unary(unit),
    aten.asin.default: unary(unit),
    aten.acos.default: unary(unit),
    aten.atan.default: unary(real),
    aten.atan2.default: [*binary(real, real), call(whole(1, 5, 3), whole(1, 5, 3))],
    aten.sinh.default: unary(real),
    aten.cosh.default: unary(real),
    aten.tanh.default: unary(real, 50.0),
    aten.asinh.default: unary(real, 1e-9, 0.0),
    aten.acosh.default: unary(lambda *shape: 1 + positive(*shape)),
    aten.atanh.default: unary(unit, 1e-9),
    aten.hypot.default: binary(real, real),
    # activations
    aten.sigmoid.default: [*unary(real, 800.0, -800.0), call(whole(-2, 3, 3))],
    aten.log_sigmoid_forward.default: unary(real, 800.0, -800.0),
    aten.softplus.default: [
        *unary(real, 30.0, 800.0, -800.0),
        call(3 * real(9), 2.0, 1.5),
        call(real(3), 2),
    ],
    aten.relu.default: [*unary(real, 0.0, NAN), call(whole(-2, 3, 3))],
    aten.leaky_relu.default: [*unary(real, 0.0), call(real(3), 0.3)],
    aten.elu.default: [*unary(real, 0.0, 800.0), call(real(3), 0.5, 2.0, 1.5)],
    aten.gelu.default: [*unary(real), call(real(3), approximate="tanh")],
    aten.silu.default: unary(real, 800.0),
    # comparisons and logic
    aten.eq.Tensor: COMPARED,
    aten.eq.Scalar: COMPARED_SCALAR,
    aten.ne.Tensor: COMPARED,
    aten.ne.Scalar: COMPARED_SCALAR,
    aten.lt.Tensor: COMPARED,
    aten.lt.Scalar: COMPARED_SCALAR,
    aten.le.Tensor: COMPARED,
    aten.le.Scalar: COMPARED_SCALAR,
    aten.gt.Tensor: COMPARED,
    aten.gt.Scalar: COMPARED_SCALAR,
    aten.ge.Tensor: COMPARED,
    aten.ge.Scalar: COMPARED_SCALAR,
    aten.logical_and.default: LOGICAL,
    aten.logical_or.default: LOGICAL,
    aten.logical_xor.default: LOGICAL,
    aten.logical_not.default: [call(truth(3, 4)), call(vector(0.0, 2.0)), call(whole(0, 2, 4))],
    aten.bitwise_and.Tensor: BITS,
    aten.bitwise_and.Scalar: BITS_SCALAR,
    aten.bitwise_or.Tensor: BITS,
    aten.bitwise_or.Scalar: BITS_SCALAR,
    aten.bitwise_xor.Tensor: BITS,
    aten.bitwise_xor.Scalar: BITS_SCALAR,
    aten.bitwise_not.default: [call(whole(0, 9, 3, 4)), call(truth(4))],
    aten.isnan.default: FLAGS,
    aten.isinf.default: FLAGS,
    aten.where.self: [
        call(truth(3, 4), real(4), real(3, 1)),
        call(truth(3), real(3), whole(0, 5, 3)),
        call(truth(), real(2), real(2)),
    ],
    aten.masked_fill.Scalar: [call(real(3, 4), truth(4), -INF), call(whole(0, 5, 3), truth(3), 2)],
    aten.masked_fill.Tensor: [
        call(real(3, 4), truth(3, 1), real()),
        call(whole(0, 5, 3), truth(3), whole(0, 9)),
    ],
    aten.nan_to_num.default: [
        call(vector(1.0, INF, -INF, NAN)),
        call(vector(1.0, INF, -INF, NAN), 2.0, 3.0, 4.0),
        call(whole(0, 3, 2)),
    ],
    # copies and types
    aten._to_copy.default: [
        call(real(3), dtype=torch.int64),
        call(truth(3), dtype=torch.float64),
        call(real(2, 2), dtype=torch.bool),
        call(whole(0, 9, 3), dtype=torch.float32),
        call(vector(-300.5, -1.0, -0.5, 0.5, 130.0, 300.7), dtype=torch.uint8),
        call(vector(-300.5, -1.0, -0.5, 0.5, 130.0, 300.7), dtype=torch.int8),
        call(vector(-40000.5, 0.5, 70000.0), dtype=torch.int16),
        call(whole(-999, 999, 8), dtype=torch.uint8),
        call(whole(-999, 999, 8), dtype=torch.int8),
        call(2**20 * whole(-9999, 9999, 8), dtype=torch.int32),
    ],
    aten.clone.default: unary(real),
    aten.alias.default: unary(real),
    aten.detach.default: unary(real),
    aten.copysign.Tensor: [call(real(3), vector(1.0, -2.0, 3.0))],
    aten.copysign.Scalar: [call(real(3), -1.0)],
    aten.complex.default: [call(real(3), real(3)), call(real(), real(2, 1))],
    aten.view_as_real.default: [call(torch.complex(real(3), real(3)))],
    aten.view_as_complex.default: [call(real(3, 2))],
}

INDEXING = {
    aten.index.Tensor: [
        call(real(5, 4), [whole(0, 5, 3)]),
        call(real(5, 4), [None, whole(-4, 4, 2, 3)]),
        call(real(5, 4, 3), [whole(0, 5, 2), whole(0, 4, 2)]),
        call(real(5, 4, 3), [whole(0, 5, 2), None, whole(0, 3, 2)]),
        call(whole(0, 9, 5), [whole(0, 5, 3)]),
        call(real(5), [numbers(2)[0]]),
        call(real(3, 4), [Known(truth(3, 4))]),
        call(real(3, 4), [None, Known(truth(4))]),
    ],
    aten._unsafe_index.Tensor: [call(real(5, 4), [None, whole(0, 4, 3)])],
    aten._unsafe_index_put.default: [call(real(5, 4), [numbers(0, 3)], real(2, 4))],
    aten.index_put.default: [
        call(real(5, 4), [numbers(0, 3)], real(2, 4)),
        call(real(5, 4), [None, numbers(1, -1)], real()),
        call(real(5, 4), [numbers(0, 3, 0)], real(3, 4), True),
        call(whole(0, 9, 5), [numbers(0, 3)], whole(0, 9, 2)),
        call(real(3, 4), [truth(3, 4)], real()),
        call(real(3, 4), [truth(3)], real(4)),
        call(real(2, 3, 4), [None, truth(3)], real(1, 4)),
        call(real(3), [truth(3)], real(), True),
        call(real(3, 4), [Known(numbers(1, 0, 1).bool())], real(2, 4)),
        call(real(3, 4), [Known(numbers(1, 0, 1).bool()), numbers(3, 1)], real(2), True),
    ],
    aten.masked_select.default: [
        call(real(3, 4), Known(truth(3, 4))),
        call(real(3, 4), Known(truth(4))),
        call(real(4), Known(truth(3, 1))),
    ],
    aten.masked_scatter.default: [
        call(real(3, 4), truth(3, 4), real(13)),
        call(real(3, 4), truth(4), real(4, 3)),
    ],
    aten.index_select.default: [call(real(3, 4), -1, whole(0, 4, 6)), call(real(3, 4), 0, whole(0, 3, 2))],
    aten.gather.default: [
        call(real(3, 4), 1, whole(0, 4, 3, 2)),
        call(real(3, 4), -2, whole(0, 3, 5, 2)),
        call(real(5), 0, whole(0, 5, 3)),
        call(real(), 0, numbers(0)[0]),
    ],
    aten.take.default: [call(real(3, 4), whole(-12, 12, 2, 3))],
    aten.scatter.src: [
        call(real(3, 4), 1, numbers(1, 0, 3).expand(3, 3), real(3, 3)),
        call(real(3, 4), -2, numbers(2, 0)[None], real(1, 2)),
        call(whole(0, 9, 3, 4), 0, numbers(2, 0)[None], whole(0, 9, 3, 4)),
    ],
    aten.scatter.value: [call(real(3, 4), 1, whole(0, 4, 3, 2), 2.5), call(real(5), 0, whole(0, 5, 2), 1)],
    aten.scatter_add.default: [
        call(real(3, 4), 1, whole(0, 4, 3, 6), real(3, 6)),
        call(real(3), -1, whole(0, 3, 5), real(5)),
    ],
    aten.select_scatter.default: [call(real(3, 4), real(3), 1, -1), call(real(3, 4), real(4), 0, 1)],
    aten.slice_scatter.default: [
        call(real(5, 4), real(2, 4), 0, 1, 3),
        call(real(5, 4), real(5, 2), -1, 0, 9, 2),
        call(real(5), real(2), 0, -2),
        call(real(5), real(5)),
        call(real(5), real(0), 0, 3, 1),
    ],
    aten.diagonal_scatter.default: [
        call(real(4, 4), real(4)),
        call(real(2, 3, 4), real(2, 3), 1, -2, -1),
        call(real(3, 2, 4), real(2, 2), -1, 0, 2),
    ],
    aten.embedding.default: [call(real(5, 3), whole(0, 5, 2, 4)), call(real(5, 3), whole(0, 5, 4), 1)],
}

LINEAR_ALGEBRA = {
    aten.mm.default: [call(real(3, 4), real(4, 2)), call(whole(0, 5, 2, 2), whole(0, 5, 2, 2))],
    aten.bmm.default: [call(real(2, 3, 4), real(2, 4, 5))],
    aten.mv.default: [call(real(3, 4), real(4))],
    aten.dot.default: [call(real(4), real(4))],
    aten.vdot.default: [call(real(4), real(4))],
    aten.addmm.default: [
        call(real(5), real(3, 4), real(4, 5)),
        call(real(3, 5), real(3, 4), real(4, 5), beta=2, alpha=0.5),
    ],
    aten.addmv.default: [
        call(real(3), real(3, 4), real(4)),
        call(real(3), real(3, 4), real(4), beta=2, alpha=0.5),
    ],
    aten.addbmm.default: [call(real(3, 5), real(2, 3, 4), real(2, 4, 5), beta=2, alpha=0.5)],
    aten.baddbmm.default: [call(real(2, 3, 5), real(2, 3, 4), real(2, 4, 5), beta=2, alpha=0.5)],
    aten.linalg_cholesky_ex.default: [call(spd(3, 3)), call(spd(2, 3, 3), upper=True), call(spd(1, 1))],
    aten.cholesky.default: [call(spd(3, 3)), call(spd(2, 3, 3), True)],
    aten.linalg_solve_triangular.default: [
        call(well(3, 3), real(3, 2), upper=False),
        call(well(2, 3, 3), real(3, 2), upper=True),
        call(well(3, 3), real(2, 4, 3), upper=True, left=False),
        call(well(3, 3), real(3, 2), upper=False, unitriangular=True),
    ],
    aten.triangular_solve.default: [
        call(real(3, 2), well(3, 3)),
        call(real(2, 3, 2), well(2, 3, 3), False),
        call(real(3, 2), well(3, 3), True, True),
        call(real(3, 2), well(3, 3), False, True, True),
    ],
    aten.cholesky_solve.default: [
        call(real(3, 2), well(3, 3).tril()),
        call(real(2, 3, 1), well(2, 3, 3).triu(), True),
    ],
    aten.cholesky_inverse.default: [call(well(3, 3).tril()), call(well(2, 3, 3).triu(), True)],
    aten.linalg_inv_ex.default: [call(well(3, 3)), call(well(2, 3, 3))],
    aten._linalg_solve_ex.default: [
        call(well(3, 3), real(3, 2)),
        call(well(3, 3), real(3)),
        call(well(2, 3, 3), real(2, 3)),
        call(well(2, 3, 3), real(2, 4, 3), left=False),
        call(well(3, 3), real(2, 3, 2)),
    ],
    aten._linalg_slogdet.default: [call(well(3, 3)), call(real(2, 3, 3))],
    aten._linalg_det.default: [call(well(3, 3)), call(real(2, 3, 3))],
    aten._linalg_svd.default: [
        call(well(3, 3)),
        call(well(2, 3, 3)[..., :2]),
    ],
    aten.linalg_qr.default: [call(well(3, 3)), call(well(2, 3, 3)[..., :2])],
    aten.linalg_pinv.atol_rtol_tensor: [call(well(3, 3)), call(well(3, 3)[:, :2])],
    aten.linalg_lstsq.default: [call(well(3, 3)[:, :2], real(3, 1)), call(well(3, 3), real(3, 2))],
    aten.linalg_matrix_exp.default: [call(real(3, 3)), call(real(2, 2, 2))],
    aten._linalg_eigh.default: [call(spd(3, 3)), call(spd(2, 3, 3), "U")],
    aten.linalg_cross.default: [call(real(4, 3), real(4, 3)), call(real(3, 4), real(3, 1), dim=0)],
    aten.trace.default: [call(real(3, 4)), call(whole(0, 5, 3, 3))],
}

REDUCTIONS = {
    aten.sum.default: [*unary(real), call(truth(3, 4)), call(whole(0, 9, 3), dtype=torch.float64)],
    aten.sum.dim_IntList: [*reduced(), call(real(3), None), call(truth(3, 4), [1]), call(real(2, 0), [1])],
    aten.mean.default: unary(real)[:2],
    aten.mean.dim: [*reduced(), call(real(3), None)],
    aten.prod.default: [*unary(real), call(whole(1, 4, 3)), call(vector(2, 0, 3)), call(vector(0, 0, 3))],
    aten.prod.dim_int: [*along(), call(vector(2, 0, 3), 0), call(truth(3, 4), 1)],
    aten.var.correction: [
        call(real(3, 4)),
        call(real(3, 4), [0], correction=0),
        call(real(3, 4), [-1], correction=2, keepdim=True),
        call(real(3, 4, 2), [0, 2]),
    ],
    aten.std.correction: [
        call(real(3, 4)),
        call(real(3, 4), [0], correction=0),
        call(real(3, 4), [-1], correction=2, keepdim=True),
        call(vector(2, 2, 2)),
    ],
    aten.var_mean.correction: [
        call(real(3, 4)),
        call(real(3, 4), [-1], correction=0, keepdim=True),
    ],
    aten.native_layer_norm.default: [
        call(real(3, 4), [4], None, None, 1e-5),
        call(real(2, 3, 4), [3, 4], real(3, 4), real(3, 4), 1e-5),
    ],
    aten.logsumexp.default: [
        *(example for example in reduced() if example[0][1]),  # at least one axis
        call(vector(-INF, -INF), [0]),
        call(vector(-INF, 1.0), [0]),
        call(vector(1e3, 1e3), [0]),
    ],
    aten.max.default: [*unary(real)[:2], call(whole(-9, 9, 5)), call(vector(1, 2, 2))],
    aten.min.default: [*unary(real)[:2], call(whole(-9, 9, 5)), call(vector(1, 1, 2))],
    aten.max.dim: [*along(), call(whole(-9, 9, 5, 2), 0), call(vector(1, 2, 2), 0)],
    aten.min.dim: [*along(), call(whole(-9, 9, 5, 2), 0), call(vector(1, 1, 2), 0)],
    aten.amax.default: [*reduced(), call(vector(1, 2, 2), [0]), call(real(3))],
    aten.amin.default: [*reduced(), call(vector(1, 1, 2), [0]), call(real(3))],
    aten.argmax.default: [*along(), call(real(3, 4)), call(whole(-9, 9, 5)), call(real(2, 3), None, True)],
    aten.argmin.default: [*along(), call(real(3, 4)), call(whole(-9, 9, 5)), call(real(2, 3), None, True)],
    aten.any.default: [call(truth(3, 4)), call(real(2)), call(truth())],
    aten.any.dim: [
        call(truth(3, 4), -1),
        call(truth(3, 4), 0, True),
        call(whole(0, 2, 3), 0),
        call(truth(), 0),
    ],
    aten.any.dims: [call(truth(3, 4, 2), [0, -1]), call(truth(3, 4), None, True)],
    aten.all.default: [call(truth(3, 4)), call(real(2)), call(truth())],
    aten.all.dim: [
        call(truth(3, 4), -1),
        call(truth(3, 4), 0, True),
        call(whole(0, 2, 3), 0),
        call(truth(), 0),
    ],
    aten.all.dims: [call(truth(3, 4, 2), [0, -1]), call(truth(3, 4), None, True)],
    aten.cumsum.default: [
        call(real(3, 4), 0),
        call(real(3, 4), -1),
        call(real(), 0),
        call(truth(4), 0),
        *_WRAPPING,
    ],
    aten.cummax.default: [call(real(3, 4), 1), call(vector(1.0, 3.0, 3.0, 2.0), 0), call(real(), 0)],
    aten.cummin.default: [call(real(3, 4), 0), call(vector(3.0, 1.0, 1.0, 2.0), -1)],
    aten.median.default: [call(real(3, 3)), call(real(4))],
    aten.median.dim: [call(real(3, 4), 1), call(real(3, 4), 0, True), call(real(), 0)],
    aten.kthvalue.default: [call(real(5), 2), call(real(3, 4), 3, 0, True), call(real(), 1)],
    aten.cumprod.default: [
        call(real(3, 4), 0),
        call(real(3, 4), -1),
        call(real(), 0),
        call(vector(2, 0, 3, 0, 1), 0),
        *_WRAPPING,
    ],
    aten.logcumsumexp.default: [call(real(3, 4), 0), call(real(3, 4), -1), call(real(), 0)],
    aten._softmax.default: [call(real(3, 4), 0, False), call(real(3, 4), -1, False), call(real(), 0, False)],
    aten._log_softmax.default: [
        call(real(3, 4), 0, False),
        call(real(3, 4), -1, False),
        call(real(), 0, False),
        call(vector(1e3, 0.0, -INF), 0, False),
    ],
    aten.linalg_vector_norm.default: [
        *(call(real(3, 4), ord, [-1], True) for ord in (2, 1, 0, 3, 0.5, INF, -INF)),
        *(call(vector(0, 0), ord) for ord in (2, 1, 3, INF)),
        call(real(3, 4)),
        call(real(), 2),
        call(real(2, 3, 4), 2, [0, -1]),
    ],
    aten._cdist_forward.default: [
        *(call(real(3, 2), real(4, 2), p, None) for p in (2.0, 1.0, 3.0)),
        call(real(2, 3, 2), real(2, 4, 2), 2.0, None),
        call(vector(1, 2)[:, None], vector(1, 3)[:, None], 2.0, None),
    ],
    aten.searchsorted.Tensor: [
        call(vector(-1, 0, 0, 1), vector(-2, 0, 0.5, 3)),
        call(vector(-1, 0, 0, 1), vector(-2, 0, 0.5, 3), right=True),
        call(real(2, 4).sort()[0], real(2, 3), side="right"),
        call(vector(1, -1, 0), real(2, 3), sorter=numbers(1, 2, 0)),
    ],
    aten.bucketize.Tensor: [
        call(real(2, 3), vector(-1, 0, 1)),
        call(vector(-1, 0, 2), vector(-1, 0, 1), right=True),
    ],
    aten.topk.default: [
        call(real(3, 4), 2),
        call(real(3, 4), 2, 0, False),
        call(real(), 1),
        call(whole(0, 99, 9), 3),
    ],
    aten.sort.default: [
        *along()[:1],
        call(real(4)),
        call(real(3, 4), 1, True),
        call(real()),
        call(whole(0, 99, 9)),
    ],
    aten.sort.stable: [
        call(real(3, 4), stable=True),
        call(vector(2, 1, 2, 1), stable=True, dim=0, descending=True),
        call(real(), stable=False),
    ],
}

SHAPES = {
    aten.view.default: [call(real(3, 4), [2, -1]), call(real(1), []), call(real(), [1, 1])],
    aten._unsafe_view.default: [call(real(3, 4), [12]), call(real(3, 4), [2, 6])],
    aten.expand.default: [
        call(real(3, 1), [2, 3, 4]),
        call(real(3, 1), [-1, 4]),
        call(real(), [2]),
        call(real(2), [3, -1]),
    ],
    aten._reshape_alias.default: [call(real(3, 4), [2, 6], [6, 1])],
    aten.expand_copy.default: [call(real(3, 1), [2, 3, 4]), call(real(3, 1), [-1, 4])],
    aten.permute.default: [call(real(2, 3, 4), [2, 0, 1]), call(real(2, 3), [-1, 0]), call(real(), [])],
    aten.t.default: [call(real(2, 3)), call(real(3)), call(real())],
    aten.transpose.int: [call(real(2, 3, 4), 0, -1), call(real(2, 3), 1, 0), call(real(), 0, -1)],
    aten.unsqueeze.default: [
        call(real(2, 3), 0),
        call(real(2, 3), -1),
        call(real(2, 3), -2),
        call(real(), 0),
    ],
    aten.squeeze.default: [call(real(1, 3, 1)), call(real()), call(real(2))],
    aten.squeeze.dim: [call(real(1, 3, 1), -1), call(real(1, 3), 1), call(real(), 0)],
    aten.squeeze.dims: [call(real(1, 3, 1), [0, -1]), call(real(1, 3), [0, 1]), call(real(), [0])],
    aten.slice.Tensor: [
        call(real(5, 4), 0, 1, 3),
        call(real(5, 4), -1, -3, 2**63 - 1),
        call(real(5), 0, 0, 9, 2),
        call(real(5), 0, 3, 1),
        call(real(5), 0, -9, -1),
        call(real(5)),
    ],
    aten.select.int: [call(real(3, 4), 0, 1), call(real(3, 4), -1, -2), call(real(4), 0, 3)],
    aten.split.Tensor: [call(real(5, 4), 2), call(real(5, 4), 3, -1), call(real(2), 9)],
    aten.split_with_sizes.default: [call(real(5, 4), [1, 4]), call(real(5, 4), [1, 0, 3], -1)],
    aten.unbind.int: [call(real(3, 4)), call(real(3, 2), -1)],
    aten.cat.default: [
        call([real(2, 3), real(1, 3)]),
        call([real(2, 3), real(2, 1)], -1),
        call([real(0), real(2, 3)], 1),
        call([real(2), whole(0, 5, 2)]),
        call([whole(0, 5, 2), whole(0, 5, 1)]),
    ],
    aten.stack.default: [call([real(2), real(2)]), call([real(2), real(2)], -1), call([real(), whole(0, 5)])],
    aten.repeat.default: [
        call(real(2, 3), [2, 1]),
        call(real(3), [2, 2]),
        call(real(), [3]),
        call(real(2), [0]),
    ],
    aten.flip.default: [call(real(2, 3), [0, -1]), call(real(2, 3), [1])],
    aten.roll.default: [
        call(real(2, 3), [1], [-1]),
        call(real(2, 3), [2]),
        call(real(2, 3), [1, -1], [0, 1]),
    ],
    aten.diagonal.default: [call(real(3, 4)), call(real(2, 3, 4), -1, -2, -1), call(real(3, 2, 4), 1, 0, 2)],
    aten.diag_embed.default: [
        call(real(3)),
        call(real(2, 3), 1),
        call(real(2, 3), -1, 0, 2),
        call(real(2, 3), 1, -1, 0),
    ],
    aten.tril.default: [call(real(3, 4)), call(real(2, 3, 3), -1), call(truth(3, 3), 1)],
    aten.triu.default: [call(real(3, 4)), call(real(2, 3, 3), -1), call(truth(3, 3), 1)],
    aten.constant_pad_nd.default: [
        call(real(3, 4), [1, 2]),
        call(real(3, 4), [1, -1, 0, 2], 2.5),
        call(whole(0, 5, 3), [0, 1], -1),
    ],
    aten.unfold.default: [call(real(5, 4), 0, 2, 1), call(real(5, 4), -1, 3, 1), call(real(7), 0, 2, 3)],
}

SPECIAL = {
    aten.erf.default: unary(real),
    aten.erfc.default: unary(real, 5.0),
    aten.erfinv.default: unary(unit, -0.999),
    aten.lgamma.default: [*unary(positive, 1e-6, 1e6, -1.5), call(whole(1, 9, 3))],
    aten.digamma.default: [*unary(positive, 1e-3, 1e6, -1.5), call(whole(1, 9, 3))],
    aten.polygamma.default: [call(n, positive(3, 2)) for n in (0, 1, 2, 3)],
    aten.mvlgamma.default: [call(3 + positive(3, 2), 3), call(1 + positive(), 1)],
    aten.i0.default: unary(real, 20.0),
    aten.special_i0e.default: unary(real, 20.0),
    aten.special_i1.default: unary(real, 20.0),
    aten.special_i1e.default: unary(real, 20.0),
    aten.special_ndtri.default: unary(unit, 1e-9),
    aten.special_log_ndtr.default: unary(real, 8.0, -6.0, -15.0, -21.0, -40.0),
    aten.special_xlog1py.default: binary(real, positive, (0.0, -1.0), (0.0, 0.0)),
    aten.special_entr.default: unary(unit, 0.0, -1.0),
    aten.convolution.default: [
        call(real(2, 2, 5), real(3, 2, 3), real(3), [1], [1], [1], False, [0], 1),
        call(real(1, 4, 5, 6), real(6, 2, 2, 3), None, [2, 1], [0, 2], [1, 2], False, [0, 0], 2),
        call(
            real(1, 2, 3, 3, 3), real(1, 2, 2, 2, 2), None, [1, 1, 1], [0, 0, 0], [1, 1, 1], False, [0] * 3, 1
        ),
        call(real(1, 4, 3, 4), real(4, 3, 3, 2), real(6), [2, 3], [1, 0], [1, 2], True, [1, 0], 2),
    ],
    aten.avg_pool2d.default: [
        call(real(1, 2, 6, 6), [2, 2]),
        call(real(1, 2, 6, 6), [3, 2], [2], [1], False, False),
        call(real(2, 6, 6), [2], [2], [0], False, True, 7),
    ],
    aten.avg_pool3d.default: [call(real(1, 1, 4, 4, 4), [2, 2, 2])],
    aten.max_pool2d_with_indices.default: [
        call(real(1, 2, 6, 6), [2, 2]),
        call(real(2, 5, 6), [3, 2], [2], [1, 0], [1, 2], True),
        call(real(1, 1, 3, 3), [2], [2], [1], [1], True),
    ],
    aten.max_pool3d_with_indices.default: [call(real(1, 1, 4, 4, 5), [2, 2, 3], [1, 2, 2])],
    aten.adaptive_max_pool2d.default: [call(real(2, 5, 7), [2, 3]), call(real(1, 1, 2, 3), [3, 3])],
    aten.adaptive_max_pool3d.default: [call(real(1, 4, 5, 3), [2, 2, 2])],
    aten._adaptive_avg_pool3d.default: [call(real(1, 1, 4, 5, 3), [3, 2, 3])],
    aten._trilinear.default: [
        call(real(3, 4), real(2, 4, 5), real(3, 5), [1, 3], [0], [1, 2], [2, 3]),
        call(real(3, 4), real(3, 4), real(3, 4), [], [], [], [1]),
    ],
    aten._fft_r2c.default: [call(real(3, 4), [1], 0, True), call(real(3, 5), [0, 1], 1, False)],
    aten._fft_c2r.default: [
        call(torch.complex(real(3, 3), real(3, 3)), [1], 2, 4),
        call(torch.complex(real(3, 3), real(3, 3)), [0, 1], 0, 5),
    ],
    aten._fft_c2c.default: [
        call(torch.complex(real(3, 4), real(3, 4)), [0, 1], 1, True),
        call(torch.complex(real(4), real(4)), [0], 2, False),
    ],
    aten.special_zeta.default: [call(vector(1.5, 2.0, 7.0), vector(0.5, 1.0, 3.0))],
    aten.xlogy.Tensor: [
        *binary(real, positive, (0.0, 0.0), (0.0, 2.0), (2.0, 0.0)),
        call(whole(0, 3, 4), positive(4)),
    ],
    aten.xlogy.Scalar_Self: [call(2.0, positive(3)), call(0, vector(0.0, 1.0))],
    aten.xlogy.Scalar_Other: [call(real(3), 2.0), call(vector(0.0), 0.0), call(whole(0, 3, 2), 3)],
    aten.igamma.default: [call(vector(0.5, 2.0, 9.0), vector(0.3, 2.5, 30.0))],
    aten.igammac.default: [call(vector(0.5, 2.0, 9.0), vector(0.3, 2.5, 30.0))],
    aten.logit.default: [*unary(unit), call(vector(0.0, 0.3, 1.0), 0.01)],
    aten.sinc.default: unary(real, 0.0),
}

EXAMPLES = {**CREATION, **ELEMENTWISE, **INDEXING, **LINEAR_ALGEBRA, **REDUCTIONS, **SHAPES, **SPECIAL}
