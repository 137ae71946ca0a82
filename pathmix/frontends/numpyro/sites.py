"""Reading NumPyro's messages: which sites are latent, discrete, observed."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from numpyro import distributions as dist

from pathmix.doors.jax import Tracer
from pathmix.doors.numpyro import in_control_flow
from pathmix.program.wishes import SIMULATED, observed_batch

_FIXED = "_pathmix_fixed"
_WRAPPERS = (dist.ExpandedDistribution, dist.MaskedDistribution, dist.Independent)


def is_latent(msg: Any) -> bool:
    """A site whose value is inferred."""
    return (
        msg["type"] == "sample"
        and not msg["is_observed"]
        and not msg["infer"].get(_FIXED, False)
        and not isinstance(_base(msg["fn"]), dist.Delta)
    )


def is_observation(msg: Any) -> bool:
    """A site with data; `numpyro.factor` is not one."""
    return msg["is_observed"] and not isinstance(_base(msg["fn"]), dist.Unit)


def is_discrete(msg: Any) -> bool:
    return bool(msg["fn"].support.is_discrete)


def in_plate(msg: Any) -> bool:
    """Whether a site belongs to the elements of a plate. A scan is none: its steps depend on each other."""
    return bool(msg["cond_indep_stack"]) and not in_control_flow(msg)


def marks_fixed(msg: Any) -> None:
    """A value that the program's own handlers put in place is not inferred, but has its density."""
    if msg["value"] is not None and not msg["is_observed"] and not in_control_flow(msg):
        mark_fixed(msg)


def mark_fixed(msg: Any) -> None:
    msg["infer"] = {**msg["infer"], _FIXED: True}


def freeze_plumbing(msg: Any) -> None:
    """Take away the randomness of minibatches: they are the whole data."""
    if msg["type"] == "plate" and msg["value"] is None:
        size = msg["args"][0]
        msg["value"], msg["args"] = jnp.arange(size), (size, size)


def mask_of(fn: Any) -> Any:
    """Which elements of a site have a density: True for all, or an array that broadcasts to its shape."""
    mask: Any = True
    while isinstance(fn, _WRAPPERS):
        if isinstance(fn, dist.MaskedDistribution) and not _hides_nothing(fn._mask):
            layer = jnp.asarray(fn._mask)
            mask = mask & layer.reshape(layer.shape + (1,) * (fn.event_dim if layer.ndim else 0))
        fn = fn.base_dist
    return mask


def _hides_nothing(mask: Any) -> bool:
    """Whether that is known of a mask."""
    return mask is True or (not isinstance(mask, Tracer) and bool(np.all(mask)))


def unobserve(msg: Any) -> None:
    """Make an observed site one that is drawn."""
    if msg["infer"].get(SIMULATED):  # a scan did it already
        return
    fn = msg["fn"]
    shape = fn.shape() if msg["value"] is None else np.shape(msg["value"])
    if shape != fn.shape():
        # Values broadcast against their distribution; simulate as many as were observed.
        msg["fn"] = fn.expand(observed_batch(msg["name"], shape, fn.batch_shape, fn.event_shape))
    msg["value"], msg["is_observed"] = None, False
    msg["infer"] = {**msg["infer"], SIMULATED: True}


def _base(fn: Any) -> Any:
    while isinstance(fn, _WRAPPERS):
        fn = fn.base_dist
    return fn
