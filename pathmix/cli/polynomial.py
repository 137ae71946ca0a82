"""Which degree has this curve? A regression whose number of coefficients is itself random."""

import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist


def model(x, y=None):
    degree = numpyro.sample("degree", dist.Categorical(probs=jnp.ones(5) / 5))
    mean = 0.0
    for power in range(degree + 1):
        mean = mean + numpyro.sample(f"w{power}", dist.Normal(0, 1)) * x**power
    noise = numpyro.sample("noise", dist.HalfNormal(1))
    numpyro.sample("y", dist.Normal(mean, noise), obs=y)
