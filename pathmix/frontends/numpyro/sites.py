"""Reading NumPyro's messages: which sites are latent, discrete, observed."""

from typing import Any

import jax
import jax.numpy as jnp
from numpyro import distributions as dist

_FIXED = "_pathmix_fixed"


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


def marks_fixed(msg: Any) -> None:
    """A value that the program's own handlers put in place is not inferred, but has its density."""
    if msg["value"] is not None and not msg["is_observed"] and not msg.get("_control_flow_done"):
        msg["infer"] = {**msg["infer"], _FIXED: True}


def freeze_plumbing(msg: Any) -> None:
    """Take away the randomness that is not a site: minibatches are the whole data, keys are constant."""
    if msg["type"] == "plate" and msg["value"] is None:
        size = msg["args"][0]
        msg["value"], msg["args"] = jnp.arange(size), (size, size)
    elif msg["type"] == "prng_key" and msg["value"] is None:
        msg["value"] = jax.random.key(0)


def _base(fn: Any) -> Any:
    while isinstance(fn, (dist.ExpandedDistribution, dist.MaskedDistribution, dist.Independent)):
        fn = fn.base_dist
    return fn
