"""A search for the evidence of a path."""

import optax

import pathmix
from pathmix.engine.executables import Executables
from pathmix.engine.requests import answered
from pathmix.evidence.search import Search
from pathmix.frontends.recognise import bind
from pathmix.program.seeds import Seed
from pathmix.regions.region import read_region
from pathmix.target.target import make_target
from pathmix.training.fit import PathFit
from pathmix.training.options import TrainingOptions


def paths_of(model, *args):
    """The paths that prior runs of a program take."""
    discovery = pathmix.PriorDiscovery(300)
    return discovery.discover(bind(model, args, {}, discovery.limits), Seed.of(0), lambda *_: None).paths


def fit_of(path, executables):
    """A guide at the prior."""
    target = make_target(path.slp, read_region(path.slp, path.draws, boxes=True), path.draws)
    options = TrainingOptions(optax.adam(0.01), 4, 100)
    fit = PathFit(target, pathmix.MeanField(), "reparam", options, executables, Seed.of(1))
    fit.vectors = fit.unconstrained(path.draws)
    fit.start = fit.start_from(fit.vectors)
    return fit


def search_of(path, steps=0):
    """With a guide that was trained for so many steps."""
    executables = Executables()
    fit = fit_of(path, executables)
    if steps:
        answered(fit.train(steps, 0.0, lambda *_: None), executables.answer)
    return Search(fit, (), Seed.of(2), until=10**9), executables.answer
