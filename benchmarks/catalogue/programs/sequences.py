"""Sequences, plates and handlers."""

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as ndist
import pyro
import pyro.distributions as dist
import torch
from numpyro import handlers
from numpyro.contrib.control_flow import cond, scan
from numpyro.infer.reparam import LocScaleReparam
from pyro import poutine
from pyro.infer import config_enumerate
from pyro.infer.reparam import LatentStableReparam
from scipy import integrate, stats
from scipy.special import logsumexp

from benchmarks.catalogue.entry import EVIDENCE, Entry

Y = np.array([0.3, 1.1, -0.4, 0.8, 1.9])
HALF = np.log(0.5)
TRANSITIONS = np.array([[0.8, 0.2], [0.3, 0.7]])


def gaussian(covariance, y=Y):
    return stats.multivariate_normal(np.zeros(len(y)), covariance).logpdf(y)


def two_models(first, second):
    """The evidence of a fair choice, and the probability of the first."""
    total = np.logaddexp(HALF + first, HALF + second)
    return {EVIDENCE: total, "P(first)": float(np.exp(HALF + first - total))}


def scanned_walk(y):
    """A state space of unknown length, in one scan."""
    steps = int(numpyro.sample("steps", ndist.Categorical(np.ones(3) / 3))) + 1

    def step(state, _):
        state = numpyro.sample("state", ndist.Normal(state, 1.0))
        return state, state

    last, _ = scan(step, 0.0, jnp.arange(steps))
    numpyro.sample("y", ndist.Normal(last, 1.0), obs=y)


def scanned_walk_answers():
    logs = np.array([np.log(1 / 3) + stats.norm(0, (n + 1) ** 0.5).logpdf(1.5) for n in (1, 2, 3)])
    return {EVIDENCE: logsumexp(logs), "E[steps]": np.exp(logs - logsumexp(logs)) @ np.arange(3)}


def local_level(y):
    """How fast does the level move?"""
    calm = numpyro.sample("calm", ndist.Bernoulli(0.5))
    scale = 1.0 if calm else 2.0

    def step(level, value):
        level = numpyro.sample("level", ndist.Normal(level, scale))
        numpyro.sample("y", ndist.Normal(level, 1.0), obs=value)
        return level, None

    scan(step, 0.0, y)


def local_level_answers():
    sums = np.tril(np.ones((5, 5)))
    return two_models(gaussian(np.eye(5) + sums @ sums.T), gaussian(np.eye(5) + 4 * sums @ sums.T))


def scanned_states(y):
    """A hidden Markov model in a scan, with NumPyro's annotation for enumeration."""
    near = numpyro.sample("near", ndist.Bernoulli(0.5))
    level = 2.0 if near else 3.0

    def step(state, value):
        state = numpyro.sample("state", ndist.Categorical(jnp.asarray(TRANSITIONS)[state]), infer=PARALLEL)
        numpyro.sample("y", ndist.Normal(level * state, 1.0), obs=value)
        return state, None

    scan(step, 0, y)


PARALLEL = {"enumerate": "parallel"}


def chain(level):
    forward = TRANSITIONS[0] * stats.norm([0, level], 1).pdf(Y[0])
    for value in Y[1:]:
        forward = forward @ TRANSITIONS * stats.norm([0, level], 1).pdf(value)
    return np.log(forward.sum())


def scanned_states_answers():
    return two_models(chain(2.0), chain(3.0))


@config_enumerate
def markov_states(y):
    """The same in Pyro, with `pyro.markov` and `config_enumerate`."""
    near = pyro.sample("near", dist.Bernoulli(0.5))
    level, state = (2.0 if near else 3.0), 0
    for t in pyro.markov(range(len(y))):
        state = pyro.sample(f"state_{t}", dist.Categorical(torch.tensor(TRANSITIONS)[state]))
        pyro.sample(f"y_{t}", dist.Normal(level * state, 1.0), obs=y[t])


def conditional(y):
    """NumPyro's `cond`, on a discrete site."""
    z = numpyro.sample("z", ndist.Normal(0.0, 1.0))
    shifted = numpyro.sample("shifted", ndist.Bernoulli(0.5))
    mean = cond(shifted == 1, lambda z: z + 1.0, lambda z: -2.0 * z, z)
    numpyro.sample("y", ndist.Normal(mean, 1.0), obs=y)


def conditional_answers():
    return two_models(stats.norm(1, 2**0.5).logpdf(1.5), stats.norm(0, 5**0.5).logpdf(1.5))


def _pooled(y):
    if numpyro.sample("pooled", ndist.Bernoulli(0.5)):
        mean, scale = numpyro.sample("mean", ndist.Normal(0.0, 1.0)), 0.7
    else:
        mean, scale = 0.0, 1.0
    with numpyro.plate("group", 5):
        effect = numpyro.sample("effect", ndist.Normal(mean, scale))
        numpyro.sample("y", ndist.Normal(effect, 1.0), obs=y)


def decentred(y):
    """Partial pooling or none, under `LocScaleReparam`."""
    handlers.reparam(_pooled, config={"effect": LocScaleReparam(0.0)})(y)


def decentred_answers():
    return two_models(gaussian(1.49 * np.eye(5) + np.ones((5, 5))), gaussian(2 * np.eye(5)))


def lifted(y):
    """A parameter with a prior, by `lift`."""

    def model(y):
        weight = pyro.param("weight", torch.zeros(()))
        if pyro.sample("more", dist.Bernoulli(0.5)):
            weight = weight + pyro.sample("extra", dist.Normal(0.0, 1.0))
        pyro.sample("y", dist.Normal(weight, 1.0), obs=y)

    poutine.lift(model, prior={"weight": dist.Normal(0.0, 1.0)})(y)


def lifted_answers():
    return two_models(stats.norm(0, 3**0.5).logpdf(1.3), stats.norm(0, 2**0.5).logpdf(1.3))


def heavy_or_light(y):
    """A stable law or a normal one, under `LatentStableReparam`."""

    def model(y):
        if pyro.sample("heavy", dist.Bernoulli(0.5)):
            shift = pyro.sample("shift", dist.Stable(1.5, 0.0, 1.0, 0.0))
        else:
            shift = pyro.sample("normal", dist.Normal(0.0, 1.0))
        pyro.sample("y", dist.Normal(shift, 1.0), obs=y)

    poutine.reparam(model, config={"shift": LatentStableReparam()})(y)


def heavy_or_light_answers():
    def density(shift):
        return stats.levy_stable.pdf(shift, 1.5, 0) * stats.norm(shift, 1).pdf(2.5)

    return two_models(np.log(integrate.quad(density, -6, 11)[0]), stats.norm(0, 2**0.5).logpdf(2.5))


TABLE = np.arange(12.0).reshape(4, 3) / 6 - 1


def crossed_minibatches(y):
    """Two crossed plates, both subsampled."""
    columns = pyro.plate("columns", 3, subsample_size=2, dim=-1)
    rows = pyro.plate("rows", 4, subsample_size=2, dim=-2)
    if pyro.sample("own", dist.Bernoulli(0.5)):
        with columns:
            mean = pyro.sample("mean", dist.Normal(0.0, 1.0))
    else:
        mean = pyro.sample("mean", dist.Normal(0.0, 1.0))
    with columns as j, rows as i:
        pyro.sample("y", dist.Normal(mean, 1.0), obs=y[i][:, j])


def crossed_answers():
    same = (np.tile(np.arange(3), 4)[:, None] == np.arange(3)).astype(float)
    own = gaussian(np.eye(12) + same @ same.T, TABLE.ravel())
    return two_models(own, gaussian(np.eye(12) + np.ones((12, 12)), TABLE.ravel()))


def _first(name):
    return {"P(first)": lambda draws: draws[name] == 1}


NUMPYRO_S = "numpyro.contrib.control_flow"
ENTRIES = [
    Entry(
        scanned_walk,
        "numpyro",
        origin=NUMPYRO_S,
        args=(1.5,),
        against="algebra",
        answers=scanned_walk_answers,
        read={"E[steps]": lambda draws: draws["steps"]},
    ),
    Entry(
        local_level,
        "numpyro",
        origin=NUMPYRO_S,
        args=(Y,),
        against="algebra",
        answers=local_level_answers,
        read=_first("calm"),
    ),
    Entry(
        scanned_states,
        "numpyro",
        origin="NumPyro's HMM examples",
        args=(Y,),
        against="forward algorithm",
        answers=scanned_states_answers,
        read=_first("near"),
    ),
    Entry(
        markov_states,
        "pyro",
        origin="Pyro's HMM examples",
        args=(torch.tensor(Y),),
        against="forward algorithm",
        answers=scanned_states_answers,
        read=_first("near"),
    ),
    Entry(
        conditional,
        "numpyro",
        origin=NUMPYRO_S,
        args=(1.5,),
        against="algebra",
        answers=conditional_answers,
        read=_first("shifted"),
    ),
    Entry(
        decentred,
        "numpyro",
        origin="NumPyro's eight schools",
        args=(Y,),
        against="algebra",
        answers=decentred_answers,
        read=_first("pooled"),
    ),
    Entry(
        lifted,
        "pyro",
        origin="Pyro's poutine documentation",
        args=(torch.tensor(1.3),),
        against="algebra",
        answers=lifted_answers,
        read=_first("more"),
    ),
    Entry(
        heavy_or_light,
        "pyro",
        origin="Pyro's stable examples",
        args=(torch.tensor(2.5),),
        against="quadrature",
        answers=heavy_or_light_answers,
        read=_first("heavy"),
    ),
    Entry(
        crossed_minibatches,
        "pyro",
        origin="Pyro's SVI tutorial, part II",
        args=(torch.tensor(TABLE),),
        against="algebra",
        answers=crossed_answers,
        read=_first("own"),
    ),
]
