"""Between values and flat vectors without compiling anything, where every bijection is an elementary one."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from numpyro.distributions import transforms
from scipy.special import expit, logit, ndtr, ndtri

from pathmix.target.boxes import Box
from pathmix.target.coordinates import Coordinates, MapArguments, Segment

Function = Callable[[np.ndarray], np.ndarray]


class _Elementary(NamedTuple):
    """A bijection of numbers."""

    forward: Function
    inverse: Function


def unconstrained(
    coordinates: Coordinates, arguments: MapArguments, columns: Sequence[np.ndarray]
) -> np.ndarray | None:
    """The vectors that stand for rows of values of the free sites; None if a bijection is not elementary."""
    bijections = _bijections(coordinates, arguments)
    if bijections is None:
        return None
    count = len(columns[0]) if columns else 1
    pieces = [np.zeros((count, 0))]
    with np.errstate(all="ignore"):  # values at the end of a support are at infinity
        for bijection, segment in zip(bijections, coordinates.segments, strict=True):
            rows = [columns[site].reshape(count, -1) for site in segment.sites]
            pieces.append(bijection.inverse(np.concatenate(rows, axis=1).astype(float)))
    return np.concatenate(pieces, axis=1)[:, np.array(coordinates.kept, bool)].astype(_precision())


def constrained(
    coordinates: Coordinates, arguments: MapArguments, vectors: np.ndarray
) -> list[np.ndarray] | None:
    """The values of the free sites that vectors stand for; None if a bijection is not elementary."""
    bijections = _bijections(coordinates, arguments)
    if bijections is None:
        return None
    whole = np.zeros((len(vectors), len(coordinates.kept)), _precision())
    whole[:, np.array(coordinates.kept, bool)] = vectors
    values = [np.zeros((len(vectors), *site.shape), site.dtype) for site in coordinates.sites]
    with np.errstate(all="ignore"):
        for bijection, segment in zip(bijections, coordinates.segments, strict=True):
            mapped = bijection.forward(whole[:, segment.start : segment.stop])
            ends = np.cumsum([int(np.prod(values[site].shape[1:])) for site in segment.sites])
            for site, part in zip(segment.sites, np.split(mapped, ends[:-1], axis=1), strict=True):
                values[site][:] = part.reshape(values[site].shape)
    return values


def has_values(coordinates: Coordinates, arguments: MapArguments, vector: np.ndarray) -> bool:
    """Whether a vector stands for values inside of their supports, as far as that is easily told."""
    values = constrained(coordinates, arguments, vector[None])
    back = None if values is None else unconstrained(coordinates, arguments, values)
    return back is None or bool(np.all(np.isfinite(back)))


def _precision() -> Any:
    """Of the engine, now."""
    return jax.dtypes.canonicalize_dtype(float)


def _bijections(coordinates: Coordinates, arguments: MapArguments) -> list[_Elementary] | None:
    found = [
        _of(segment, known) for known, segment in zip(arguments.known, coordinates.segments, strict=True)
    ]
    return None if None in found else [one for one in found if one is not None]


def _of(segment: Segment, known: Any) -> _Elementary | None:
    if not segment.elementwise:
        return None
    return _elementary(known if segment.treedef is None else segment.treedef.unflatten(known))


def _elementary(bijection: Any) -> _Elementary | None:
    if isinstance(bijection, transforms.ComposeTransform):
        parts = [_elementary(part) for part in bijection.parts]
        return None if None in parts else _chained([part for part in parts if part is not None])
    make = _ELEMENTARY.get(type(bijection))
    return None if make is None else make(bijection)


def _chained(parts: Sequence[_Elementary]) -> _Elementary:
    def forward(x: np.ndarray) -> np.ndarray:
        for part in parts:
            x = part.forward(x)
        return x

    def inverse(x: np.ndarray) -> np.ndarray:
        for part in reversed(parts):
            x = part.inverse(x)
        return x

    return _Elementary(forward, inverse)


def _affine(bijection: Any) -> _Elementary:
    loc, scale = np.asarray(bijection.loc), np.asarray(bijection.scale)
    return _Elementary(lambda x: loc + scale * x, lambda y: (y - loc) / scale)


def _inside(x: np.ndarray) -> np.ndarray:
    """Numbers between zero and one, which do not come to the ends, as in NumPyro."""
    numbers = np.finfo(x.dtype)
    return np.clip(expit(x), numbers.tiny, 1 - numbers.eps)


def _softplus(x: np.ndarray) -> np.ndarray:
    return np.logaddexp(x, 0.0)


def _softplus_inverse(y: np.ndarray) -> np.ndarray:
    return y + np.log(-np.expm1(-y))


def _box(box: Box) -> _Elementary:
    lower, upper, scale = np.asarray(box.lower), np.asarray(box.upper), np.asarray(box.scale)
    low, high = np.asarray(box.has_lower), np.asarray(box.has_upper)
    cases = [low & high, low, high]

    def forward(x: np.ndarray) -> np.ndarray:
        half = scale * _softplus(x)
        return np.select(cases, [lower + (upper - lower) * ndtr(x), lower + half, upper - half], x)

    def inverse(y: np.ndarray) -> np.ndarray:
        above, below = _softplus_inverse((y - lower) / scale), _softplus_inverse((upper - y) / scale)
        return np.select(cases, [ndtri((y - lower) / (upper - lower)), above, below], y)

    return _Elementary(forward, inverse)


_SAME = _Elementary(lambda x: x, lambda y: y)
_EXP, _SIGMOID = _Elementary(np.exp, np.log), _Elementary(_inside, logit)
_SOFTPLUS = _Elementary(_softplus, _softplus_inverse)
_ELEMENTARY: dict[type, Callable[[Any], _Elementary]] = {
    transforms.IdentityTransform: lambda _: _SAME,
    transforms.ExpTransform: lambda _: _EXP,
    transforms.SigmoidTransform: lambda _: _SIGMOID,
    transforms.SoftplusTransform: lambda _: _SOFTPLUS,
    transforms.AffineTransform: _affine,
    Box: _box,
}
