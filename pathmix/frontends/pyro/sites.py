"""Reading Pyro's messages: which sites are latent, discrete, observed."""

from typing import Any

from pyro import distributions as dist
from pyro.poutine.util import site_is_factor, site_is_subsample

_FIXED = "_pathmix_fixed"


def is_latent(msg: Any) -> bool:
    """A site whose value is inferred."""
    return (
        not msg["is_observed"]
        and not msg["infer"].get(_FIXED, False)
        and not site_is_subsample(msg)
        and not isinstance(_base(msg["fn"]), dist.Delta)
    )


def is_deterministic(msg: Any) -> bool:
    return bool(msg["infer"].get("_deterministic", False))


def is_observation(msg: Any) -> bool:
    """A site with data; `pyro.factor` and `pyro.deterministic` are none."""
    return msg["is_observed"] and not is_deterministic(msg) and not site_is_factor(msg)


def is_discrete(msg: Any) -> bool:
    return bool(msg["fn"].support.is_discrete)


def marks_fixed(msg: Any) -> None:
    """A value that the program's own handlers put in place is not inferred, but has its density."""
    if msg["value"] is not None and not msg["is_observed"]:
        msg["infer"] = {**msg["infer"], _FIXED: True}


def _base(fn: Any) -> Any:
    while isinstance(fn, (dist.ExpandedDistribution, dist.MaskedDistribution, dist.Independent)):
        fn = fn.base_dist
    return fn
