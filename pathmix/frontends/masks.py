"""Distributions without their masks, in either library."""

from typing import Any


def unmasked(fn: Any, library: Any) -> Any:
    """What a site is drawn from: a mask takes away its density, not its draw.

    `library` is the module of distributions that it comes from.
    """
    if isinstance(fn, library.MaskedDistribution):
        return unmasked(fn.base_dist, library)
    if isinstance(fn, (library.ExpandedDistribution, library.Independent)):
        plain = unmasked(fn.base_dist, library)
        if plain is fn.base_dist:
            return fn
        if isinstance(fn, library.ExpandedDistribution):
            return plain.expand(fn.batch_shape)
        return plain.to_event(fn.reinterpreted_batch_ndims)
    return fn
