"""From values to flat vectors without compiling anything, where every bijection is an elementary one."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpyro.distributions import transforms
from scipy.special import logit, ndtri

from pathmix.target.boxes import Box
from pathmix.target.coordinates import Coordinates, MapArguments

Inverse = Callable[[np.ndarray], np.ndarray]


def unconstrained(
    coordinates: Coordinates, arguments: MapArguments, columns: Sequence[np.ndarray]
) -> np.ndarray | None:
    """The vectors that stand for rows of values of the free sites; None if a bijection is not elementary."""
    pieces = []
    with np.errstate(all="ignore"):  # values at the end of a support are at infinity
        for known, segment in zip(arguments.known, coordinates.segments, strict=True):
            if not segment.elementwise:
                return None
            inverse = _inverse(known if segment.treedef is None else segment.treedef.unflatten(known))
            if inverse is None:
                return None
            rows = [columns[site].reshape(len(columns[site]), -1) for site in segment.sites]
            pieces.append(inverse(np.concatenate(rows, axis=1).astype(float)))
    count = len(columns[0]) if columns else 1
    vectors = np.concatenate([np.zeros((count, 0)), *pieces], axis=1)
    return vectors[:, np.array(coordinates.kept, bool)]


def _inverse(bijection: Any) -> Inverse | None:
    if isinstance(bijection, transforms.ComposeTransform):
        parts = [_inverse(part) for part in bijection.parts]
        return None if None in parts else _chained([part for part in parts if part is not None])
    make = _ELEMENTARY.get(type(bijection))
    return None if make is None else make(bijection)


def _chained(parts: Sequence[Inverse]) -> Inverse:
    def inverse(x: np.ndarray) -> np.ndarray:
        for part in reversed(parts):
            x = part(x)
        return x

    return inverse


def _affine(bijection: Any) -> Inverse:
    loc, scale = np.asarray(bijection.loc), np.asarray(bijection.scale)
    return lambda x: (x - loc) / scale


def _softplus(y: np.ndarray) -> np.ndarray:
    return y + np.log(-np.expm1(-y))


def _box(box: Box) -> Inverse:
    lower, upper, scale = np.asarray(box.lower), np.asarray(box.upper), np.asarray(box.scale)
    low, high = np.asarray(box.has_lower), np.asarray(box.has_upper)

    def inverse(x: np.ndarray) -> np.ndarray:
        cases = [low & high, low, high]
        above, below = _softplus((x - lower) / scale), _softplus((upper - x) / scale)
        return np.select(cases, [ndtri((x - lower) / (upper - lower)), above, below], x)

    return inverse


_ELEMENTARY: dict[type, Callable[[Any], Inverse]] = {
    transforms.IdentityTransform: lambda _: lambda x: x,
    transforms.ExpTransform: lambda _: np.log,
    transforms.SigmoidTransform: lambda _: logit,
    transforms.SoftplusTransform: lambda _: _softplus,
    transforms.AffineTransform: _affine,
    Box: _box,
}
