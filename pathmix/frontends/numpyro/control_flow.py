"""NumPyro's own `scan` and `cond`: wishes for sites inside them are followed as their functions run."""

import zlib
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp

from pathmix.doors.numpyro import gathered, is_scan
from pathmix.frontends.numpyro.sites import is_latent, is_observation, mark_fixed, unobserve
from pathmix.program.wishes import Wishes


def put_in(msg: Any, values: Mapping[str, Any]) -> None:
    """Give sites inside their values, those there are when they are asked for."""

    def value_of(site: Any) -> Any:
        value = values.get(site["name"])
        return None if value is None else _in_turn(msg, value)

    msg["kwargs"]["substitute_stack"].append(("substitute", value_of))


def marks_fixed_inside(msg: Any) -> None:
    """Values that the program's own handlers put in place inside are not inferred, but have their density."""
    stack = msg["kwargs"]["substitute_stack"]
    stack[:] = [(how, _marking(values) if how == "substitute" else values) for how, values in stack]


def _marking(values: Any) -> Callable[[Any], Any]:
    def fixed(site: Any) -> Any:
        value = values.get(site["name"]) if isinstance(values, Mapping) else values(site)
        if value is not None:
            mark_fixed(site)
        return value

    return fixed


def _in_turn(msg: Any, values: Any) -> Any:
    """The values of a site in the order in which a scan asks for them. It gives them in that of its data."""
    return values[::-1] if is_scan(msg) and msg["args"][-1] else values


def follow_wishes(msg: Any, wishes: Wishes, given: Mapping[str, jax.Array], key: jax.Array) -> None:
    """Put values into sites inside, and take observations out: later ones may depend on them."""
    length = _length(msg)

    def value_of(site: Any) -> jax.Array | None:
        if site["type"] != "sample":
            return None
        name, observed = site["name"], is_observation(site)
        latent = is_latent(site) and site["value"] is None
        if wishes.puts_in(name, latent=latent, observed=observed):
            shape = (*length, *site["fn"].shape())
            if wishes.fits(name, given[name].shape, shape, in_plate=False):
                return _in_turn(msg, given[name])
            return None
        if wishes.simulates(name, observed=observed):
            unobserve(site)
            if site["kwargs"].get("rng_key") is None:
                step = site["infer"].get("_scan_current_index", 0)
                site["kwargs"]["rng_key"] = jax.random.fold_in(
                    jax.random.fold_in(key, zlib.crc32(name.encode())), step
                )
        return None

    msg["kwargs"]["substitute_stack"].append(("substitute", value_of))


def _length(msg: Any) -> tuple[int, ...]:
    """The axis that a scan adds to its sites."""
    if not is_scan(msg):
        return ()
    _, _, xs, length, _ = msg["args"]
    return (jnp.shape(jax.tree.leaves(xs)[0])[0] if length is None else length,)


def statements_inside(msg: Any, key: jax.Array) -> list[Any]:
    """The statements of what a control-flow message runs, with values drawn from their prior."""
    kwargs = {**msg["kwargs"], "rng_key": key, "substitute_stack": list(msg["kwargs"]["substitute_stack"])}
    return gathered(msg["fn"](*msg["args"], **kwargs))
