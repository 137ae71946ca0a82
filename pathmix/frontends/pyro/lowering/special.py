"""Special functions."""

from typing import Any

import jax.numpy as jnp
import jax.scipy.special as jsp
import torch

from pathmix.frontends.pyro.lowering.dtypes import on_floats

aten: Any = torch.ops.aten


def _logit(x: Any, eps: float | None = None) -> Any:
    if eps is not None:
        x = jnp.clip(x, eps, 1 - eps)
    return jnp.log(x) - jnp.log1p(-x)


def _polygamma(n: int, x: Any) -> Any:
    return jsp.digamma(x) if n == 0 else jsp.polygamma(n, x)


def _xlogy(x: Any, y: Any) -> Any:
    """Zero times the logarithm of zero is zero, and so is its derivative."""
    return x * jnp.log(jnp.where((x == 0) & (y <= 0), 1.0, y))


def _xlog1py(x: Any, y: Any) -> Any:
    return x * jnp.log1p(jnp.where((x == 0) & (y <= -1), 0.0, y))


def _log_ndtr(x: Any) -> Any:
    return jsp.log_ndtr(x, series_order=10)  # the default of 3 gives 1e-8 at -20


def _mvlgamma(x: Any, p: int) -> Any:
    return jsp.multigammaln(x, p)


_OF_FLOATS = {
    aten.erf.default: jsp.erf,
    aten.erfc.default: jsp.erfc,
    aten.erfinv.default: jsp.erfinv,
    aten.lgamma.default: jsp.gammaln,
    aten.digamma.default: jsp.digamma,
    aten.polygamma.default: _polygamma,
    aten.mvlgamma.default: _mvlgamma,
    aten.i0.default: jsp.i0,
    aten.special_i0e.default: jsp.i0e,
    aten.special_i1.default: jsp.i1,
    aten.special_i1e.default: jsp.i1e,
    aten.special_ndtri.default: jsp.ndtri,
    aten.special_log_ndtr.default: _log_ndtr,
    aten.special_xlog1py.default: _xlog1py,
    aten.special_entr.default: jsp.entr,
    aten.special_zeta.default: jsp.zeta,
    aten.xlogy.Tensor: _xlogy,
    aten.xlogy.Scalar_Self: _xlogy,
    aten.xlogy.Scalar_Other: _xlogy,
    aten.igamma.default: jsp.gammainc,
    aten.igammac.default: jsp.gammaincc,
    aten.logit.default: _logit,
    aten.sinc.default: jnp.sinc,
}

TABLE = {op: on_floats(function) for op, function in _OF_FLOATS.items()}
