"""Products, factorisations and solutions of linear systems, over leading batch axes."""

from typing import Any

import jax
import jax.numpy as jnp
import torch

aten: Any = torch.ops.aten


def _addmm(x: Any, a: Any, b: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    return beta * x + alpha * jnp.matmul(a, b)


def _cholesky(x: Any, *, upper: bool = False, check_errors: bool = False) -> Any:
    del check_errors
    factor = jnp.linalg.cholesky(x, upper=upper, symmetrize_input=True)  # so is PyTorch's gradient
    return factor, jnp.zeros(x.shape[:-2], int)


def _solve_triangular(a: Any, b: Any, *, upper: bool, left: bool = True, unitriangular: bool = False) -> Any:
    if not left:
        flipped = _solve_triangular(_mt(a), _mt(b), upper=not upper, unitriangular=unitriangular)
        return _mt(flipped)
    batch = jnp.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    a = jnp.broadcast_to(a, (*batch, *a.shape[-2:]))
    b = jnp.broadcast_to(b, (*batch, *b.shape[-2:]))
    return jax.lax.linalg.triangular_solve(a, b, left_side=True, lower=not upper, unit_diagonal=unitriangular)


def _triangular_solve(
    b: Any, a: Any, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> Any:
    matrix = _mt(a) if transpose else a
    return _solve_triangular(matrix, b, upper=upper != transpose, unitriangular=unitriangular), a


def _cholesky_solve(b: Any, factor: Any, upper: bool = False) -> Any:
    lower = _mt(factor) if upper else factor
    half = _solve_triangular(lower, b, upper=False)
    return _solve_triangular(_mt(lower), half, upper=True)


def _cholesky_inverse(factor: Any, upper: bool = False) -> Any:
    identity = jnp.broadcast_to(jnp.eye(factor.shape[-1], dtype=factor.dtype), factor.shape)
    return _cholesky_solve(identity, factor, upper)


def _inverse(a: Any, *, check_errors: bool = False) -> Any:
    del check_errors
    return jnp.linalg.inv(a), jnp.zeros(a.shape[:-2], int)


def _solve(a: Any, b: Any, *, left: bool = True, check_errors: bool = False) -> Any:
    """Also gives the factors that PyTorch returns beside the result; nothing reads them."""
    del check_errors
    if not left:
        result = _mt(_solve(_mt(a), _mt(b))[0])
    elif b.ndim == a.ndim - 1:
        result = jnp.linalg.solve(a, b[..., None])[..., 0]
    else:
        result = jnp.linalg.solve(a, b)
    return result, a, jnp.zeros(a.shape[:-1], int), jnp.zeros(a.shape[:-2], int)


def _slogdet(a: Any) -> Any:
    sign, logdet = jnp.linalg.slogdet(a)
    return sign, logdet, a, jnp.zeros(a.shape[:-1], int)


def _eigh(a: Any, uplo: str = "L", compute_v: bool = True) -> Any:
    del compute_v
    triangle = jnp.tril(a) if uplo == "L" else _mt(jnp.triu(a))
    symmetric = triangle + _mt(jnp.tril(triangle, -1))
    return jnp.linalg.eigh(symmetric)


def _svd(a: Any, full_matrices: bool = False, compute_uv: bool = True, *, driver: Any = None) -> Any:
    del driver
    if not compute_uv:
        none = jnp.zeros(0, a.dtype)
        return none, jnp.linalg.svd(a, compute_uv=False), none
    if full_matrices and a.shape[-2] != a.shape[-1]:  # JAX does not differentiate it
        return NotImplemented
    return jnp.linalg.svd(a, full_matrices=False)


def _qr(a: Any, mode: str = "reduced") -> Any:
    if mode == "complete" or a.shape[-2] < a.shape[-1]:  # JAX does not differentiate it
        return NotImplemented
    q, r = jnp.linalg.qr(a)
    return q if mode == "reduced" else jnp.zeros(0, a.dtype), r


def _pseudo_inverse(a: Any, *, atol: Any = None, rtol: Any = None, hermitian: bool = False) -> Any:
    if atol is not None or rtol is not None:
        return NotImplemented
    return jnp.linalg.pinv(a, hermitian=hermitian)


def _least_squares(a: Any, b: Any, rcond: Any = None, *, driver: Any = None) -> Any:
    """The solution; PyTorch's drivers suppose that there is one only."""
    del rcond, driver
    right = b[..., None] if b.ndim == a.ndim - 1 else b
    solution = jnp.matmul(jnp.linalg.pinv(a), right)
    rows, columns = a.shape[-2:]
    residuals = jnp.zeros(0, a.dtype)
    if rows > columns:
        residuals = jnp.sum(jnp.square(jnp.matmul(a, solution) - right), axis=-2)
    rank = jnp.full(a.shape[:-2], min(rows, columns), int)
    return solution if right is b else solution[..., 0], residuals, rank, jnp.zeros(0, a.dtype)


def _mt(x: Any) -> Any:
    return jnp.swapaxes(x, -1, -2)


TABLE = {
    aten.mm.default: jnp.matmul,
    aten.bmm.default: jnp.matmul,
    aten.mv.default: jnp.matmul,
    aten.dot.default: jnp.dot,
    aten.vdot.default: jnp.vdot,
    aten.addmm.default: _addmm,
    aten.addmv.default: _addmm,
    aten.addbmm.default: lambda x, a, b, *, beta=1, alpha=1: beta * x + alpha * jnp.matmul(a, b).sum(0),
    aten.baddbmm.default: _addmm,
    aten.linalg_cholesky_ex.default: _cholesky,
    aten.cholesky.default: lambda x, upper=False: _cholesky(x, upper=upper)[0],
    aten.linalg_solve_triangular.default: _solve_triangular,
    aten.triangular_solve.default: _triangular_solve,
    aten.cholesky_solve.default: _cholesky_solve,
    aten.cholesky_inverse.default: _cholesky_inverse,
    aten.linalg_inv_ex.default: _inverse,
    aten._linalg_solve_ex.default: _solve,
    aten._linalg_slogdet.default: _slogdet,
    aten._linalg_det.default: lambda a: (jnp.linalg.det(a), a, jnp.zeros(a.shape[:-1], int)),
    aten._linalg_eigh.default: _eigh,
    aten._linalg_svd.default: _svd,
    aten.linalg_qr.default: _qr,
    aten.linalg_pinv.atol_rtol_tensor: _pseudo_inverse,
    aten.linalg_lstsq.default: _least_squares,
    aten.linalg_matrix_exp.default: jnp.vectorize(jax.scipy.linalg.expm, signature="(n,n)->(n,n)"),
    aten.linalg_cross.default: lambda a, b, *, dim=-1: jnp.cross(a, b, axis=dim),
    aten.trace.default: jnp.trace,
}
