"""Which formula gives the period of a planet from its distance to the sun?

Data: distances and periods of six planets, as Kepler had them in 1618 (Kepler 1619, Harmonices mundi). A
grammar makes formulas of the distance x, with sums, products, quotients and roots; each is a path. All of
them have a factor and a relative error. Many trees say the same (x * sqrt(x), sqrt(x) * x), so the answer
is asked for groups of paths: out comes the probability of each law, after its trees were put together.
"""

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from common import axes, picture, save, table
from numpyro import handlers

import pathmix

KINDS = ("x", "1", "sqrt", "square", "+", "*", "/")
PROBABILITIES = (  # by depth in the tree
    (0.2, 0.1, 0.15, 0.15, 0.15, 0.15, 0.1),
    (0.4, 0.2, 0.2, 0.2, 0, 0, 0),
    (1, 0, 0, 0, 0, 0, 0),
)


def formula(x, name="f", depth=0):
    probs = jnp.array(PROBABILITIES[depth])
    kind = KINDS[int(numpyro.sample(f"{name}.kind", dist.Categorical(probs=probs)))]
    if kind == "x":
        return x
    if kind == "1":
        return jnp.ones_like(x)
    left = formula(x, f"{name}.l", depth + 1)
    if kind == "sqrt":
        return jnp.sqrt(left)
    if kind == "square":
        return left**2
    right = formula(x, f"{name}.r", depth + 1)
    return left + right if kind == "+" else left * right if kind == "*" else left / right


def model(distance, period=None):
    shape = formula(distance)
    factor = numpyro.sample("factor", dist.LogNormal(0, 2))
    error = numpyro.sample("error", dist.LogNormal(-3, 2))
    numpyro.sample("period", dist.LogNormal(jnp.log(factor * shape), error), obs=period)


def written(path, name="f"):
    """A path's formula, as a person writes it."""
    kind = KINDS[path.pinned[f"{name}.kind"]]
    if kind in "x1":
        return kind
    left = written(path, f"{name}.l")
    return f"{kind}({left})" if kind in ("sqrt", "square") else f"{left} {kind} {written(path, f'{name}.r')}"


def values(path, x):
    """A path's formula at some distances."""
    with handlers.seed(rng_seed=0), handlers.substitute(data=path.pinned):
        return np.asarray(formula(x))


def law(path):
    """What a formula says of the planets, whatever its factor."""
    shape = values(path, data()[0])
    return tuple((shape / shape[2]).round(4).tolist())


def data():
    planets = table("planets")
    return planets["distance"], planets["period"] / 365.25


def main():
    file = picture(__file__, __doc__)
    distance, period = data()
    # All formulas have the same two sites, factor and error: a small budget is enough for them.
    inference = pathmix.SDVI(model, label=written, allocation=pathmix.SuccessiveHalving(20_000))
    posterior = inference.run(0, distance, period)
    print(posterior, "\n")
    laws = list(posterior.group(law).values())
    for group in laws[:5]:
        formulas = sorted((path.label for path in group.paths), key=len)
        print(f"probability {group.weight:.2g} ± {group.error:.1g}: {', '.join(formulas[:3])}")
    print(f"factor {np.median(posterior.marginal('factor')):.4f} years")
    print(f"relative error {100 * np.median(posterior.marginal('error')):.2f}%")
    save(drawn(laws, distance, period), file)


def drawn(laws, distance, period):
    figure, ax = axes(size=(7, 4.4))
    x = np.geomspace(0.3, 12, 100)
    for group in laws[:4]:
        simplest = min(group.paths, key=lambda path: len(path.label))
        behind = laws[0].paths[0].log_evidence - group.paths[0].log_evidence
        factor = np.exp(np.mean(np.log(period / values(simplest, distance))))
        told = f", {behind:.0f} nats behind" if behind else f", probability {group.weight:.4f}"
        ax.loglog(
            x, factor * values(simplest, x), label=simplest.label + told, linewidth=1 if behind else 2.5
        )
    ax.loglog(distance, period, "ko", markersize=5, label="planets", zorder=5)
    ax.set(xlabel="distance x from the sun (astronomical units)", ylabel="period (years)")
    ax.legend(frameon=False)
    return figure


if __name__ == "__main__":
    main()
