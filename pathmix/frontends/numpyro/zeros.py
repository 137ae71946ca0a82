"""Values of probability zero, to which NumPyro gives a density all the same: it keeps logarithms finite."""

from typing import Any

import jax.numpy as jnp
from numpyro import distributions as dist


def never_drawn(fn: Any, value: Any) -> Any:
    """Whether a discrete site has elements that its probabilities exclude; None where it knows none."""
    while isinstance(fn, (dist.ExpandedDistribution, dist.Independent)):
        fn = fn.base_dist
    if not isinstance(fn, (dist.BernoulliProbs, dist.BinomialProbs, dist.CategoricalProbs)):
        return None
    probs = jnp.asarray(fn.probs)
    if isinstance(fn, dist.BernoulliProbs):
        return jnp.any(jnp.where(value == 1, probs == 0, probs == 1))
    if isinstance(fn, dist.BinomialProbs):
        return jnp.any(((value > 0) & (probs == 0)) | ((value < fn.total_count) & (probs == 1)))
    numbers = jnp.arange(probs.shape[-1])
    return jnp.any((probs == 0) & (numbers == jnp.expand_dims(jnp.asarray(value), -1)))
