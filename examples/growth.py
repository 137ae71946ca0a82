"""By which law does yeast grow: exponential, power law, logistic or Gompertz?

Data: biomass of a yeast culture over 18 hours (Carlson 1913, as in Pearl 1927). The law is a random choice
of a Pyro program, and each law has parameters of its own. Out come the probability of each law, by how many
nats the others fall short, and predictions of the best one, for the data and for the hours after them.
"""

import numpy as np
import pyro
import pyro.distributions as dist
import torch
from common import axes, picture, save, table

import pathmix

LAWS = ("exponential", "power law", "logistic", "Gompertz")


def model(hours, biomass=None):
    law = LAWS[int(pyro.sample("law", dist.Categorical(torch.ones(len(LAWS)))))]
    start = pyro.sample("start", dist.LogNormal(np.log(10), 0.7))
    if law == "power law":
        power = pyro.sample("power", dist.LogNormal(0.0, 0.7))
        mean = start + pyro.sample("scale", dist.LogNormal(np.log(10), 0.7)) * hours**power
    else:
        rate = pyro.sample("rate", dist.LogNormal(np.log(0.4), 0.7))  # an hour
        if law == "exponential":
            mean = start * torch.exp(rate * hours)
        else:
            capacity = pyro.sample("capacity", dist.LogNormal(np.log(500), 0.7))
            if law == "logistic":
                mean = capacity / (1 + (capacity / start - 1) * torch.exp(-rate * hours))
            else:
                mean = capacity * (start / capacity) ** torch.exp(-rate * hours)
    pyro.deterministic("mean", mean)
    noise = pyro.sample("noise", dist.LogNormal(np.log(10), 0.7))
    with pyro.plate("hours", len(hours)):
        pyro.sample("biomass", dist.Normal(mean, noise), obs=biomass)


def data():
    yeast = table("yeast")
    return torch.tensor(yeast["hour"], dtype=torch.float64), torch.tensor(yeast["biomass"])


def main():
    file = picture(__file__, __doc__)
    hours, biomass = data()
    # Between prior and data lies a long way: more particles than usual go it, for a second opinion.
    inference = pathmix.SDVI(model, label=lambda path: LAWS[path.pinned["law"]], smc_evaluations=3_000_000)
    posterior = inference.run(0, hours, biomass)
    print(posterior, "\n")
    best = posterior.paths[0]
    for path in posterior.paths:
        behind = best.log_evidence - path.log_evidence
        print(f"{path.label:12} {path.weight:.4f}   {behind:5.1f} nats behind")
    for name, unit in (("rate", "per hour"), ("capacity", "units of biomass"), ("noise", "units of biomass")):
        values = posterior.marginal(name)
        print(f"{name:12} {values.mean():.3g} ± {values.std():.2g} {unit}")
    save(drawn(posterior, hours, biomass), file)


def drawn(posterior, hours, biomass):
    figure, ax = axes(size=(7, 4.2))
    fine = torch.linspace(0, 24, 97, dtype=torch.float64)
    predicted = posterior.predict(1, 1_000, fine)["biomass"]
    low, middle, high = np.quantile(predicted, (0.05, 0.5, 0.95), axis=0)
    ax.fill_between(fine, low, high, alpha=0.25, label="90% of predictions")
    ax.plot(fine, middle, label=f"{posterior.paths[0].label} (probability {posterior.paths[0].weight:.2f})")
    for path in posterior.paths[1:]:
        curve = np.median(posterior.sample(1, 400, path=path.label)["mean"], axis=0)
        ax.plot(hours, curve, "--", linewidth=1, label=path.label)
    ax.plot(hours, biomass, "ko", markersize=4, label="data")
    ax.set(
        xlabel="hours", ylabel="biomass", xlim=(0, 24), ylim=(0, 900), title="Growth of yeast (Carlson 1913)"
    )
    ax.legend(frameon=False, loc="lower right")
    return figure


if __name__ == "__main__":
    main()
