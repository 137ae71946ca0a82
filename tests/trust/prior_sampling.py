"""Evidences from NumPyro programs themselves: discrete sites take every value, others their prior's."""

from contextlib import ExitStack

import jax
import jax.numpy as jnp
import numpy as np
from numpyro import handlers
from numpyro.primitives import Messenger

COUNTED_TO = 12  # of sites whose values have no end
# Distributions whose samplers take JAX seconds to compile.
HOST = {
    "Gamma": lambda g, d, size: g.gamma(d.concentration, 1 / d.rate, size),
    "InverseGamma": lambda g, d, size: d.rate / g.gamma(d.concentration, 1.0, size),
    "Beta": lambda g, d, size: g.beta(d.concentration1, d.concentration0, size),
    "Dirichlet": lambda g, d, size: g.dirichlet(d.concentration, size[:-1]),
    "StudentT": lambda g, d, size: d.loc + d.scale * g.standard_t(d.df, size),
}


class Script(Messenger):
    """Gives discrete sites the values of a list, then zeros; notes how many values each may take.

    With a generator, it also draws what JAX would be slow to draw, many rows at once.
    """

    def __init__(self, values, generator=None, rows=1):
        super().__init__()
        self.values, self.generator, self.rows = values, generator, rows
        self.pinned, self.sizes, self.host = {}, [], {}

    def process_message(self, message):
        if message["type"] != "sample" or message["is_observed"]:
            return
        distribution = message["fn"]
        if distribution.support.is_discrete:
            place = len(self.sizes)
            value = self.values[place] if place < len(self.values) else 0
            self.pinned[message["name"]] = value
            self.sizes.append(values_of(distribution))
            message["value"] = np.asarray(value)  # concrete under `jit` too
        elif self.generator and (kind := type(base := unwrapped(distribution)).__name__) in HOST:
            drawn = HOST[kind](self.generator, base, (self.rows, *distribution.shape()))
            self.host[message["name"]] = drawn
            message["value"] = jnp.asarray(drawn[0])


def values_of(distribution):
    return len(distribution.enumerate_support()) if distribution.has_enumerate_support else COUNTED_TO


def unwrapped(distribution):
    while hasattr(distribution, "base_dist") and type(distribution).__name__ not in HOST:
        distribution = distribution.base_dist
    return distribution


def after(values, sizes):
    """The next list of values in order, or None after the last."""
    values = list(values)
    while values and values[-1] == sizes[len(values) - 1] - 1:
        values.pop()
    return [*values[:-1], values[-1] + 1] if values else None


def trace_of(model, args, *inner):
    """The sites of one run under handlers, of which the last comes first."""
    with ExitStack() as stack:
        trace = stack.enter_context(handlers.trace())
        for handler in inner:
            stack.enter_context(handler)
        model(*args)
    return trace


def log_weight(trace, pinned):
    """Of one run: the probability of what was not drawn."""
    counted = [
        site
        for name, site in trace.items()
        if site["type"] == "sample" and (site["is_observed"] or name in pinned)
    ]
    return sum((log_prob(site) for site in counted), jnp.zeros(()))


def log_prob(site):
    """Zero probability outside of the support, which NumPyro itself does not look at."""
    value = jnp.asarray(site["value"])
    inside = jnp.all(site["fn"].support(value))
    return jnp.where(inside, jnp.sum(site["fn"].log_prob(value)), -jnp.inf)


def latent(trace):
    return {
        name: site for name, site in trace.items() if site["type"] == "sample" and not site["is_observed"]
    }


def evidence(model, args, values, draws, seed=0):
    """Mean weight of prior draws, its standard error, and what the script and the trace say of the path."""
    script = Script(values, np.random.default_rng(seed), draws)
    trace = trace_of(model, args, handlers.seed(rng_seed=seed), script)
    found = {"addresses": tuple(latent(trace)), "pinned": script.pinned, "sizes": script.sizes}
    if len(script.pinned) == len(latent(trace)):
        return float(np.exp(log_weight(trace, script.pinned))), 0.0, found

    def one(key, host):
        again = Script(values)
        run = trace_of(model, args, handlers.seed(rng_seed=key), handlers.substitute(data=host), again)
        return log_weight(run, script.pinned)

    weights = np.exp(np.asarray(jax.vmap(one)(jax.random.split(jax.random.key(seed), draws), script.host)))
    return weights.mean(), weights.std() / np.sqrt(draws), found
