"""Posteriors from files."""

import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from pathmix.engine.precision import Engine, engine_scope
from pathmix.errors import OptionError
from pathmix.files.archive import read
from pathmix.frontends.recognise import bind
from pathmix.frontends.surroundings import check_surroundings
from pathmix.posterior.posterior import Posterior
from pathmix.posterior.saving import check_same, contents
from pathmix.program.program import Limits, Program


def load(
    file: str | os.PathLike[str], model: Callable[..., Any] | None = None, /, *args: Any, **kwargs: Any
) -> Posterior:
    """A posterior that `posterior.save(file)` wrote: the same weights, guides and draws, to the last bit.

    With the model, and the arguments that it was fitted to, it predicts as well.

    >>> import tempfile, pathlib, numpyro, numpyro.distributions as dist, pathmix
    >>> def model(y):
    ...     up = numpyro.sample("up", dist.Bernoulli(0.5))
    ...     numpyro.sample("y", dist.Normal(3.0 if up else -3.0, 2.0), obs=y)
    >>> posterior = pathmix.SDVI(model).run(0, 2.0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     posterior.save(pathlib.Path(folder) / "it.pathmix")
    ...     again = pathmix.load(pathlib.Path(folder) / "it.pathmix", model, 2.0)
    >>> again.weights == posterior.weights
    True
    """
    check_surroundings("pathmix.load", (args, kwargs))
    if model is None and (args or kwargs):
        raise OptionError("After the file comes the model, then its arguments.")
    return _posterior(read(file), os.fspath(file), None if model is None else (model, args, kwargs, Limits()))


def unpickled(content: bytes, bound: Any) -> Posterior:
    """A posterior that was pickled."""
    return _posterior(content, "The pickle", bound)


def _posterior(content: bytes, name: str, bound: Any) -> Posterior:
    found = contents(content, name)
    engine = Engine(found.fields.pop("precision"))
    program = None
    if bound is not None:
        with engine_scope(engine):
            program = bind(*bound)
        check_same(found.program, program, name)
    posterior = Posterior(
        **found.fields,
        _program=None,
        _components=found.components,
        _engine=engine,
        _fingerprints=found.program,
    )
    return posterior if program is None else replace(posterior, _program=_with_learned(program, posterior))


def _with_learned(program: Program, posterior: Posterior) -> Program:
    """With the values of parameters that were learned; those of a path are put in where it is followed."""
    if posterior._parameters == "fixed":
        return program
    values = posterior.parameters if posterior._parameters == "learn" else {}
    return program.with_parameters(values)
