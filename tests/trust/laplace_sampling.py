"""Evidences of peaked posteriors: importance sampling with a Student distribution at the mode."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from numpyro import handlers
from numpyro.distributions import biject_to
from scipy import optimize, stats

from tests.trust.prior_sampling import Script, latent, log_prob, trace_of


def evidence(model, args, values, draws, seed=0):
    """As `prior_sampling.evidence`, for a path that has one mode."""
    script = Script(values)
    start = trace_of(model, args, handlers.seed(rng_seed=seed), script)
    free = {name: site for name, site in latent(start).items() if name not in script.pinned}
    maps = {name: biject_to(site["fn"].support) for name, site in free.items()}
    origin, unravel = ravel_pytree({name: maps[name].inv(site["value"]) for name, site in free.items()})

    def log_joint(vector):
        flat = unravel(vector)
        given = {name: maps[name](value) for name, value in flat.items()}
        trace = trace_of(model, args, handlers.substitute(data=given), Script(values))
        terms = [log_prob(site) for site in trace.values() if site["type"] == "sample"]
        bends = [jnp.sum(maps[name].log_abs_det_jacobian(flat[name], given[name])) for name in flat]
        return sum(terms) + sum(bends)

    loss = jax.jit(jax.value_and_grad(lambda vector: -log_joint(vector)))
    mode = optimize.minimize(loss, np.zeros_like(origin), jac=True, method="BFGS").x
    covariance = np.linalg.inv(np.asarray(jax.hessian(lambda vector: -log_joint(vector))(mode)))
    proposal = stats.multivariate_t(mode, covariance, df=8, seed=seed)
    points = proposal.rvs(draws).reshape(draws, -1)
    weights = np.exp(np.asarray(jax.jit(jax.vmap(log_joint))(points)) - proposal.logpdf(points))
    noted = {"addresses": tuple(latent(start)), "pinned": script.pinned}
    return weights.mean(), weights.std() / np.sqrt(draws), noted
