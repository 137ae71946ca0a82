"""How many kinds of pauses does the geyser Old Faithful make?

Data: 272 pauses between eruptions, in minutes (Azzalini and Bowman 1990, as in R's `faithful`). A mixture
of normals in Pyro, whose number of clusters is random: the program loops over them, and which cluster a
pause belongs to is summed out. Out come the probability of each number of clusters, where they are, and the
predicted density.
"""

import numpy as np
import pyro
import pyro.distributions as dist
import torch
from common import axes, picture, probabilities, save, table

import pathmix


def model(pauses):
    clusters = int(pyro.sample("clusters", dist.Categorical(torch.tensor([8.0, 4.0, 2.0, 1.0])))) + 1
    means = torch.zeros(clusters)
    for k in range(clusters):
        means[k] = pyro.sample(f"mean{k}", dist.Normal(70.0, 15.0))
    shares = (
        pyro.sample("shares", dist.Dirichlet(5 * torch.ones(clusters))) if clusters > 1 else torch.ones(1)
    )
    spread = pyro.sample("spread", dist.LogNormal(np.log(5), 0.5))
    with pyro.plate("pauses", len(pauses)):
        mixture = dist.MixtureSameFamily(dist.Categorical(shares), dist.Normal(means, spread))
        pyro.sample("minutes", mixture, obs=pauses)


def data():
    return (torch.tensor(table("faithful")["waiting"], dtype=torch.float64),)


def main():
    file = picture(__file__, __doc__)
    (pauses,) = data()
    posterior = pathmix.SDVI(model, label=label, allocation=pathmix.SuccessiveHalving(20_000)).run(0, pauses)
    print(posterior, "\n")
    for number, group in sorted(posterior.group(lambda path: path.pinned["clusters"]).items()):
        print(f"{number + 1} clusters: probability {group.weight:.4f} ± {group.error:.4f}")
    best = posterior.paths[0]
    means = clusters_of(posterior.sample(1, 2_000, path=best.label), best.pinned["clusters"] + 1)
    for middle, spread in zip(means.mean(axis=0), means.std(axis=0), strict=True):
        print(f"a cluster at {middle:.1f} ± {spread:.1f} minutes")
    save(drawn(posterior, pauses), file)


def label(path):
    return f"{path.pinned['clusters'] + 1} clusters"


def clusters_of(draws, number):
    """The means, from short to long: their names say nothing, since clusters may change places."""
    return np.sort(np.stack([draws[f"mean{k}"] for k in range(number)], axis=1), axis=1)


def drawn(posterior, pauses):
    figure, (left, right) = axes(1, 2, width_ratios=[3, 1])
    predicted = posterior.predict(1, 400)["minutes"]
    bins = np.arange(40, 101, 2.5)
    replicates = np.array([np.histogram(one, bins)[0] for one in predicted])
    low, middle, high = np.quantile(replicates, (0.05, 0.5, 0.95), axis=0)
    left.hist(pauses.numpy(), bins, color="0.8", label="data")
    centres = (bins[:-1] + bins[1:]) / 2
    left.fill_between(centres, low, high, alpha=0.3, label="90% of replicates")
    left.plot(centres, middle, label="median of replicates")
    left.set(xlabel="pause before an eruption (minutes)", ylabel="pauses")
    left.legend(frameon=False, loc="upper left")
    found = posterior.distribution("clusters")
    probabilities(right, {number + 1: share for number, share in found.items()}, "number of clusters")
    right.set(ylim=(0, 1))
    return figure


if __name__ == "__main__":
    main()
