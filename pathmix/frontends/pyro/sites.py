"""Reading Pyro's messages, which sites are latent, discrete, observed; and changing them."""

from typing import Any

import torch
from pyro import distributions as dist

from pathmix.doors.pyro import site_is_factor, site_is_subsample
from pathmix.errors import UnsupportedSiteError
from pathmix.program.source import caller
from pathmix.program.wishes import SIMULATED, observed_batch

_FIXED = "_pathmix_fixed"
_WRAPPERS = (dist.ExpandedDistribution, dist.MaskedDistribution, dist.Independent)


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


def in_plate(msg: Any) -> bool:
    """Whether a site belongs to the elements of a plate."""
    return bool(msg["cond_indep_stack"])


def marks_fixed(msg: Any) -> None:
    """A value that the program's own handlers put in place is not inferred, but has its density."""
    if msg["value"] is not None and not msg["is_observed"]:
        msg["infer"] = {**msg["infer"], _FIXED: True}


def unobserve(msg: Any) -> None:
    """Let an observed site be drawn."""
    fn = msg["fn"]
    shape = fn.shape() if msg["value"] is None else tuple(torch.as_tensor(msg["value"]).shape)
    if shape != fn.shape():
        # Values broadcast against their distribution; simulate as many as were observed.
        msg["fn"] = fn.expand(observed_batch(msg["name"], shape, fn.batch_shape, fn.event_shape))
    msg["value"], msg["is_observed"] = None, False
    msg["infer"] = {**msg["infer"], SIMULATED: True}


def check_distribution(msg: Any) -> None:
    """Refuse to draw from what has no density."""
    if not hasattr(msg["fn"], "log_prob") or not hasattr(msg["fn"], "support"):
        raise UnsupportedSiteError(
            f"The site {msg['name']!r} at {caller()} draws from {msg['fn']!r}, which is not a Pyro "
            "distribution: it has no density."
        )


def mask_of(msg: Any) -> Any:
    """Which elements of a site have a density: True for all, or a tensor that broadcasts to its shape."""
    fn = msg["fn"]
    mask = _element_mask(msg["mask"], fn.event_dim)
    while isinstance(fn, _WRAPPERS):
        if isinstance(fn, dist.MaskedDistribution):
            mask = mask & _element_mask(fn._mask, fn.event_dim)
        fn = fn.base_dist
    return mask


def filled(msg: Any) -> Any:
    """An observed value with another, unmasked one wherever it is masked.

    What a mask hides may be NaN or outside of the support. It does not count, but NaN would still get into
    the gradient.
    """
    mask, value, event_dim = msg["mask"], msg["value"], msg["fn"].event_dim
    if not isinstance(mask, torch.Tensor) or mask.ndim == 0:
        return value
    batch = torch.broadcast_shapes(mask.shape, value.shape[: value.ndim - event_dim])
    event = value.shape[value.ndim - event_dim :]
    whole = value.broadcast_to(batch + event)
    shown = mask.broadcast_to(batch).reshape(-1).long().argmax().reshape(1)
    other = whole.reshape((-1, *event)).index_select(0, shown).reshape(event)
    return torch.where(mask.reshape(mask.shape + (1,) * event_dim), whole, other)


def _element_mask(mask: Any, event_dim: int) -> Any:
    if mask is None or mask is True:
        return True
    tensor = torch.as_tensor(mask)
    return tensor.reshape(tensor.shape + (1,) * (event_dim if tensor.ndim else 0))


def _base(fn: Any) -> Any:
    while isinstance(fn, _WRAPPERS):
        fn = fn.base_dist
    return fn
