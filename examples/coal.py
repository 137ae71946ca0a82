"""How often did the rate of coal-mining disasters in Britain change, and when?

Data: explosions that killed ten or more people, by year, 1851 to 1962 (Jarrett 1979; yearly counts as in
Carlin, Gelfand and Smith 1992). Disasters come at a rate that is constant between change points (Green
1995), of which there are none, one or two: the program loops over them. Out come the probability of each
number, the dates, and the rate over time.
"""

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from common import axes, picture, probabilities, save, table

import pathmix

FIRST, END = 1851, 1963
MOST = 2


def model(years, disasters=None):
    changes = int(numpyro.sample("changes", dist.Categorical(logits=-jnp.log(2) * jnp.arange(MOST + 1))))
    log_rate = numpyro.sample("log_rate", dist.Normal(0, 1)) * jnp.ones(len(years))
    for k in range(changes):
        date = numpyro.sample(f"date{k}", dist.Uniform(FIRST, END))
        after = jnp.clip(years + 1 - date, 0, 1)  # how much of each year is after the change
        log_rate = log_rate + numpyro.sample(f"jump{k}", dist.Normal(0, 1)) * after
    rate = numpyro.deterministic("rate", jnp.exp(log_rate))
    numpyro.sample("disasters", dist.Poisson(rate), obs=disasters)


def data():
    coal = table("coal")
    return coal["year"], coal["disasters"]


def main():
    file = picture(__file__, __doc__)
    years, disasters = data()
    posterior = pathmix.SDVI(model, allocation=pathmix.SuccessiveHalving(20_000)).run(0, years, disasters)
    print(posterior, "\n")
    for number, group in sorted(posterior.group(lambda path: path.pinned["changes"]).items()):
        print(f"{number} changes: probability {group.weight:.4f} ± {group.error:.4f}")
    for number in range(1, MOST + 1):
        draws = posterior.sample(1, 4_000, path=f"changes={number}")
        dates = np.sort(np.stack([draws[f"date{k}"] for k in range(number)], axis=1), axis=1)  # in any order
        quantiles = np.quantile(dates, (0.05, 0.5, 0.95), axis=0).T
        told = [f"in {middle:.0f} (90%: {low:.0f} to {high:.0f})" for low, middle, high in quantiles]
        print(f"if {number}: {', '.join(told)}")
    save(drawn(posterior, years, disasters), file)


def drawn(posterior, years, disasters):
    figure, (left, right) = axes(1, 2, size=(10, 3.8), width_ratios=[3, 1])
    draws = posterior.sample(1, 4_000)
    low, middle, high = np.quantile(draws["rate"], (0.05, 0.5, 0.95), axis=0)
    left.bar(years + 0.5, disasters, width=0.9, color="0.8", label="disasters")
    left.fill_between(years + 0.5, low, high, alpha=0.35, label="rate, 90%")
    left.plot(years + 0.5, middle, label="rate, median")
    left.set(xlabel="year", ylabel="disasters a year", xlim=(FIRST, END))
    left.legend(frameon=False, loc="upper right")
    probabilities(right, posterior.distribution("changes"), "number of changes")
    return figure


if __name__ == "__main__":
    main()
