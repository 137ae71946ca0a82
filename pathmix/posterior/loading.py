"""Posteriors from files."""

import os
from collections.abc import Callable
from typing import Any

from pathmix.engine.precision import Engine, engine_scope
from pathmix.errors import OptionError
from pathmix.files.archive import read
from pathmix.frontends.recognise import bind
from pathmix.frontends.surroundings import check_surroundings
from pathmix.posterior.posterior import Posterior
from pathmix.posterior.saving import check_same, contents
from pathmix.program.program import Limits


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
    return Posterior(
        **found.fields,
        _program=program,
        _components=found.components,
        _engine=engine,
        _fingerprints=found.program,
    )
