"""Batched LAPACK calls, wherever they hide: in the equations of a trace, and in what is compiled from it."""

import re

import jax

LAPACK = {
    "cholesky", "eig", "eigh", "geqp3", "geqrf", "hessenberg", "householder_product", "lu", "ormqr", "qr",
    "schur", "svd", "triangular_solve", "tridiagonal", "tridiagonal_solve",
}  # fmt: skip


def lapack_equations(function, *args):
    """Name of every LAPACK operation, and whether it has several matrices."""
    for eqn in _nested(jax.make_jaxpr(function)(*args)):
        if eqn.primitive.name in LAPACK:
            axes = 1 if eqn.primitive.name == "tridiagonal_solve" else 2
            yield eqn.primitive.name, eqn.invars[0].aval.ndim > axes


def batched_equations(function, *args):
    return {name for name, batched in lapack_equations(function, *args) if batched}


def batched_custom_calls(function, *args):
    """The LAPACK routines that the compiler is told to call with more than a matrix."""
    found = set()
    for line in jax.jit(function).lower(*args).as_text().splitlines():
        if routine := re.search(r"custom_call @(lapack_\w+)", line):
            operands = re.findall(r"tensor<([\dx]*)x[a-z]+\d+>", line)
            if max(len(shape.split("x")) for shape in operands) > 2:
                found.add(routine[1])
    return found


def _nested(thing):
    """Every equation below a traced function."""
    if hasattr(thing, "eqns"):
        for eqn in thing.eqns:
            yield eqn
            yield from _nested(list(eqn.params.values()))
    elif hasattr(thing, "jaxpr"):
        yield from _nested(thing.jaxpr)
    elif isinstance(thing, (tuple, list)):
        for part in thing:
            yield from _nested(part)
