"""PyTorch's supports as NumPyro's, which know the bijections."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from numpyro.distributions import constraints as jax_constraints
from pyro.distributions import constraints
from torch.distributions.constraints import MixtureSameFamilyConstraint

from pathmix.frontends.pyro.lowering.dtypes import as_numpy
from pathmix.frontends.supports import inside

Build = Callable[[Sequence[Any]], Any]
# How to make the NumPyro constraint from its parameters, and the parameters in PyTorch.
Support = tuple[Build, tuple[Any, ...]]

# Supports without parameters, by class: Pyro and PyTorch make their own instances.
_PLAIN = {
    type(constraints.real): jax_constraints.real,
    type(constraints.simplex): jax_constraints.simplex,
    type(constraints.lower_cholesky): jax_constraints.lower_cholesky,
    type(constraints.softplus_lower_cholesky): jax_constraints.softplus_lower_cholesky,
    type(constraints.softplus_positive): jax_constraints.softplus_positive,
    type(constraints.corr_cholesky): jax_constraints.corr_cholesky,
    type(constraints.corr_matrix): jax_constraints.corr_matrix,
    type(constraints.positive_definite): jax_constraints.positive_definite,
    type(constraints.positive_semidefinite): jax_constraints.positive_semidefinite,
    type(constraints.ordered_vector): jax_constraints.ordered_vector,
    type(constraints.positive_ordered_vector): jax_constraints.positive_ordered_vector,
    type(constraints.boolean): jax_constraints.boolean,
}
_INTERVALS = (constraints.interval, constraints.half_open_interval)
_COUNTS = type(constraints.nonnegative_integer)
_ABOVE = (constraints.greater_than, constraints.greater_than_eq)


def read_support(support: Any) -> Support | None:
    """The same support for NumPyro; None if there is none."""
    if isinstance(support, constraints.independent):
        base = read_support(support.base_constraint)
        dims = support.reinterpreted_batch_ndims
        if base is None:
            return None
        build, parameters = base
        return (lambda values: jax_constraints.independent(build(values), dims)), parameters
    if isinstance(support, MixtureSameFamilyConstraint):
        return read_support(support.base_constraint)
    if type(support) in _PLAIN:
        plain = _PLAIN[type(support)]
        return (lambda _: plain), ()
    if isinstance(support, _INTERVALS):
        if _is(support.lower_bound, 0.0) and _is(support.upper_bound, 1.0):
            return (lambda _: jax_constraints.unit_interval), ()
        return (lambda v: jax_constraints.interval(v[0], v[1])), (support.lower_bound, support.upper_bound)
    if isinstance(support, _ABOVE):
        if _is(support.lower_bound, 0.0):
            return (lambda _: jax_constraints.positive), ()
        return (lambda v: jax_constraints.greater_than(v[0])), (support.lower_bound,)
    if isinstance(support, constraints.less_than):
        return (lambda v: jax_constraints.less_than(v[0])), (support.upper_bound,)
    if isinstance(support, _COUNTS):
        return (lambda v: jax_constraints.integer_greater_than(v[0])), (support.lower_bound,)
    if isinstance(support, constraints.integer_interval):
        return (
            (lambda v: jax_constraints.integer_interval(v[0], v[1])),
            (support.lower_bound, support.upper_bound),
        )
    return None


def is_inside(msg: Any, value: torch.Tensor) -> bool:
    """Whether a value lies in the support of its site, up to rounding."""
    support = msg["fn"].support
    if support.is_discrete:
        return bool((support.check(value) & (value == value.floor()).all()).all())
    readable = read_support(support)
    if readable is None:
        return True  # no guide is on such a site
    build, parameters = readable
    known = [as_numpy(p) if isinstance(p, torch.Tensor) else p for p in parameters]
    return bool(inside(build(known), as_numpy(value)))


def _is(bound: Any, value: float) -> bool:
    return not isinstance(bound, torch.Tensor) and bound == value
