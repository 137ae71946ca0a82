"""How does influenza pass through a school, and do boys in bed still infect others?

Data: boys in bed on each of 14 days at a boarding school of 763, January and February 1978 (British Medical
Journal 1978). A simulator moves boys through the school: infected, incubating in zero to two stages,
infectious, in bed, well again. Both the number of stages, over which it loops, and whether bed isolates, an
`if` in that loop, are random. Out come their probabilities and the reproduction number.
"""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from common import axes, picture, save, table
from matplotlib import dates

import pathmix
import pathmix.plots

BOYS = 763
STEPS = 4  # of the simulator, a day


def leaving(count, rate):
    return count * (1 - jnp.exp(-rate / STEPS))


def model(days, in_bed=None):
    stages = int(numpyro.sample("stages", dist.Categorical(probs=jnp.ones(3) / 3)))
    isolated = bool(numpyro.sample("isolated", dist.Bernoulli(0.5)))
    contact = numpyro.sample("contact", dist.LogNormal(0.5, 0.7))  # rates a day
    to_bed = numpyro.sample("to_bed", dist.LogNormal(-0.7, 0.7))
    rise = numpyro.sample("rise", dist.LogNormal(-0.7, 0.7))
    advance = numpyro.sample("advance", dist.LogNormal(0.0, 0.7)) if stages else None

    def step(school, _):
        well, incubating, infectious, bed = school
        spreading = infectious if isolated else infectious + bed
        moving = leaving(well, contact * spreading / BOYS)
        well, after = well - moving, []
        for boys in incubating:
            moved = leaving(boys, advance)
            after.append(boys + moving - moved)
            moving = moved
        fallen = leaving(infectious, to_bed)
        infectious, bed = infectious + moving - fallen, bed + fallen - leaving(bed, rise)
        return (well, after, infectious, bed), bed

    first = numpyro.sample("first", dist.LogNormal(1.0, 1.0))
    school = BOYS - first, [jnp.zeros(()) for _ in range(stages)], first, jnp.zeros(())
    _, beds = jax.lax.scan(step, school, length=STEPS * days)
    spread = numpyro.sample("spread", dist.LogNormal(2.0, 1.0))
    numpyro.sample("in_bed", dist.NegativeBinomial2(beds[STEPS - 1 :: STEPS], spread), obs=in_bed)


def data():
    in_bed = table("influenza")["in_bed"]
    return len(in_bed), in_bed


def label(path):
    where = "bed isolates" if path.pinned["isolated"] else "all infect"
    return f"{path.pinned['stages']} stages, {where}"


def main():
    file = picture(__file__, __doc__)
    days, in_bed = data()
    posterior = pathmix.SDVI(model, label=label, allocation=pathmix.SuccessiveHalving(20_000)).run(
        0, days, in_bed
    )
    print(posterior, "\n")
    for number, probability in posterior.distribution("stages").items():
        print(f"{number} stages of incubation: probability {probability:.3f}")
    print(f"boys in bed infect nobody: probability {posterior.distribution('isolated')[1]:.3f}")
    draws = posterior.sample(1, 4_000)
    days_infectious = 1 / draws["to_bed"] + np.where(draws["isolated"], 0, 1 / draws["rise"])
    low, middle, high = np.quantile(draws["contact"] * days_infectious, (0.05, 0.5, 0.95))
    print(f"a boy infects {middle:.1f} others at first (90%: {low:.1f} to {high:.1f})")
    save(drawn(posterior, in_bed), file)


def drawn(posterior, in_bed):
    figure, (left, right) = axes(1, 2, size=(10, 3.8), width_ratios=[3, 2])
    day = np.arange(np.datetime64("1978-01-22"), np.datetime64("1978-02-11"))
    low, middle, high = np.quantile(posterior.predict(1, 1_000, 20)["in_bed"], (0.05, 0.5, 0.95), axis=0)
    left.fill_between(day, low, high, alpha=0.3, label="90% of predictions")
    left.plot(day, middle, label="median")
    left.plot(day[: len(in_bed)], in_bed, "ko", markersize=4, label="data")
    left.set(ylabel="boys in bed", ylim=(0, None))
    left.xaxis.set_major_locator(dates.DayLocator(interval=4))
    left.xaxis.set_major_formatter(dates.DateFormatter("%-d %b"))
    left.legend(frameon=False)
    pathmix.plots.weights(posterior, right)
    right.set(xlabel="probability")
    return figure


if __name__ == "__main__":
    main()
