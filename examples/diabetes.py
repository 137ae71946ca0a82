"""Which of nine measurements tell how diabetes goes on?

Data: 442 patients, ten measurements, and the progression of the disease a year later (Efron, Hastie,
Johnstone and Tibshirani 2004), standardised. One of the ten, the ratio of cholesterol to hdl, is left out. A
regression has any subset of the others: 512 paths, all of which are looked at. Out come the probability that
each predictor is in, with its error, and its coefficient if it is.
"""

import numpy as np
import numpyro
import numpyro.distributions as dist
import optax
from common import axes, picture, save, table

import pathmix

PREDICTORS = ("age", "sex", "bmi", "pressure", "cholesterol", "ldl", "hdl", "ltg", "glucose")


def model(x, y, freedom, squares):
    included = numpyro.sample("included", dist.Bernoulli(0.5).expand([len(PREDICTORS)]).to_event(1))
    chosen = np.flatnonzero(included)  # from here on, the program is another one for each subset
    weights = numpyro.sample("weights", dist.Normal(0, 0.5).expand([len(chosen)]).to_event(1))
    noise = numpyro.sample("noise", dist.HalfNormal(1))
    numpyro.sample("y", dist.Normal(np.asarray(x)[:, chosen] @ weights, noise), obs=y)
    numpyro.sample("squares", dist.Gamma(freedom / 2, 0.5 / noise**2), obs=squares)


def data():
    """The patients, rotated into ten numbers that tell as much, so that densities are cheap.

    Of the progressions, nine directions depend on the predictors (by their QR decomposition); of the others,
    which are noise, only the sum of squares matters.
    """
    patients = table("diabetes")
    columns = np.stack([patients[name] for name in (*PREDICTORS, "progression")], axis=1)
    columns = (columns - columns.mean(axis=0)) / columns.std(axis=0)
    q, r = np.linalg.qr(columns[:, :-1])
    y = q.T @ columns[:, -1]
    return r, y, len(columns) - len(y), np.sum(columns[:, -1] ** 2) - np.sum(y**2)


def label(path):
    return " ".join(name for name, there in zip(PREDICTORS, path.pinned["included"], strict=True) if there)


def main():
    file = picture(__file__, __doc__)
    # Every subset is looked at, and gets a few hundred quick steps, which make what follows cheap.
    # Regressions are almost normal: they need no tempered SMC.
    inference = pathmix.SDVI(
        model,
        label=label,
        discovery=pathmix.Enumeration(cover=0.9999),
        allocation=pathmix.Uniform(200_000),
        optimizer=optax.chain(optax.clip_by_global_norm(10.0), optax.adam(0.03)),
        particles=4,
        starts=1,
        smc_evaluations=0,
    )
    posterior = inference.run(0, *data())
    print(posterior, "\n")
    found = [posterior.group(lambda path, j=j: path.pinned["included"][j])[1] for j in range(len(PREDICTORS))]
    for name, group in zip(PREDICTORS, found, strict=True):
        print(f"{name:12} is in with probability {group.weight:.3f} ± {group.error:.3f}")
    save(drawn(posterior, found), file)


def coefficients(posterior):
    """Draws of the coefficient of each predictor, of the paths that have it."""
    values = [[] for _ in PREDICTORS]
    for run in posterior.sample(1, 4_000).runs():
        for column, value in zip(np.flatnonzero(run["included"]), run["weights"], strict=True):
            values[column].append(value)
    return values


def drawn(posterior, found):
    figure, (left, right) = axes(1, 2, sharey=True)
    rows = np.arange(len(PREDICTORS))
    left.barh(rows, [group.weight for group in found], xerr=[group.error for group in found])
    left.set_yticks(rows, PREDICTORS)
    left.invert_yaxis()
    left.set(xlabel="probability that it is in", xlim=(0, 1))
    for row, values in enumerate(coefficients(posterior)):
        low, middle, high = np.quantile(values, (0.05, 0.5, 0.95))
        style = {"color": "tab:blue", "alpha": 0.15 + 0.85 * found[row].weight}
        right.plot([low, high], [row, row], linewidth=2, **style)
        right.plot(middle, row, "o", **style)
    right.axvline(0, color="0.7", linewidth=1, zorder=0)
    right.set(xlabel="coefficient if it is in, 90%\n(standard deviations of the progression)")
    return figure


if __name__ == "__main__":
    main()
