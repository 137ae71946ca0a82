"""How many waves has the cycle of the lynx?

Data: lynx trapped in the Mackenzie river district of Canada, by year, 1821 to 1934 (Elton and Nicholson
1942), as decimal logarithms. The cycle of eight to twelve years is a sum of zero to four sinusoids: its
base frequency, twice, three and four times that. Deviations from it last (an autoregression, as in Campbell
and Walker 1977). Out come the probability of each number of sinusoids, the period, and the shape of the
cycle.
"""

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from common import axes, picture, probabilities, save, table

import pathmix

MOST = 4


def model(years, lynx):
    waves = int(numpyro.sample("waves", dist.Categorical(probs=jnp.ones(MOST + 1) / (MOST + 1))))
    mean = numpyro.sample("level", dist.Normal(3.0, 0.5)) * jnp.ones(len(years))
    if waves:
        period = numpyro.sample("period", dist.Uniform(8, 12))
    for k in range(1, waves + 1):
        angle = 2 * jnp.pi * k * (years - 1878) / period
        mean = mean + numpyro.sample(f"cosine{k}", dist.Normal(0, 0.5)) * jnp.cos(angle)
        mean = mean + numpyro.sample(f"sine{k}", dist.Normal(0, 0.5)) * jnp.sin(angle)
    numpyro.deterministic("mean", mean)
    memory = numpyro.sample("memory", dist.Uniform(0, 1))
    noise = numpyro.sample("noise", dist.HalfNormal(0.5))
    numpyro.sample("lynx", dist.Normal(mean[1:] + memory * (lynx[:-1] - mean[:-1]), noise), obs=lynx[1:])


def data():
    lynx = table("lynx")
    return lynx["year"], np.log10(lynx["trapped"])


def main():
    file = picture(__file__, __doc__)
    years, lynx = data()
    # Given its period, a path is almost a linear regression: training is short.
    posterior = pathmix.SDVI(model, allocation=pathmix.SuccessiveHalving(20_000)).run(0, years, lynx)
    print(posterior, "\n")
    for number, group in sorted(posterior.group(lambda path: path.pinned["waves"]).items()):
        print(f"{number} sinusoids: probability {group.weight:.4f} ± {group.error:.4f}")
    for name in ("period", "memory"):
        values = posterior.marginal(name)
        print(f"{name}: {values.mean():.3f} ± {values.std():.3f}")
    save(drawn(posterior, years, lynx), file)


def drawn(posterior, years, lynx):
    figure, (left, right) = axes(1, 2, size=(10, 3.8), width_ratios=[3, 1])
    low, middle, high = np.quantile(10 ** posterior.sample(1, 4_000)["mean"], (0.05, 0.5, 0.95), axis=0)
    left.fill_between(years, low, high, alpha=0.3, label="cycle, 90%")
    left.plot(years, middle, label="cycle, median")
    left.plot(years, 10**lynx, "k.-", markersize=4, linewidth=0.5, label="lynx")
    left.set(xlabel="year", ylabel="lynx trapped", yscale="log", ylim=(20, 20_000))
    left.legend(frameon=False, ncols=3, loc="upper center")
    probabilities(right, posterior.distribution("waves"), "number of sinusoids")
    return figure


if __name__ == "__main__":
    main()
