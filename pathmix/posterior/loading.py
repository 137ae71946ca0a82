"""Posteriors from files."""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import jax
import numpy as np

from pathmix.engine.precision import Engine, engine_scope
from pathmix.errors import ChangedError, OptionError
from pathmix.files.archive import read
from pathmix.frontends.recognise import bind
from pathmix.frontends.surroundings import check_surroundings
from pathmix.posterior.fitted import FittedPath
from pathmix.posterior.posterior import Posterior
from pathmix.posterior.saving import check_same, contents
from pathmix.posterior.spot_checks import deviating
from pathmix.program.fingerprints import of_objects
from pathmix.program.program import Limits, Program
from pathmix.program.seeds import Seed
from pathmix.warn import warn

_RUNS = 100  # that show the parameters of modules


def load(
    file: str | os.PathLike[str], model: Callable[..., Any] | None = None, /, *args: Any, **kwargs: Any
) -> Posterior:
    """A posterior that `posterior.save(file)` wrote: the same weights, guides and draws, to the last bit.

    With the model, and the arguments that it was fitted to, it predicts as well. Another model, or other
    arguments, are refused: by source, content, and the log-density at a few draws, which are in the file.

    Examples:
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
    posterior = _posterior(
        read(file), os.fspath(file), None if model is None else (model, args, kwargs, Limits())
    )
    if untold := of_objects((args, kwargs)).untold:
        warn(
            f"Of {' and '.join(untold)} among the arguments, only the type could be compared with what "
            f"{os.fspath(file)} was written with: see to it that they have the same content."
        )
    return posterior


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
        _spot_checks=found.checks,
    )
    if program is None:
        return posterior
    with engine_scope(engine):
        posterior = replace(posterior, paths=tuple(_with_modules(posterior.paths, program)))
        # Those of a path alone are put in where it is followed; stores and modules may have other ones.
        values = {} if posterior._parameters == "per-path" else posterior.parameters
        if values or posterior._parameters != "fixed":
            program = program.with_parameters(values)
        if said := deviating(found.checks, posterior.paths, program, engine.precision):
            raise ChangedError(
                f"The program is not the one that {name} was written with, though its source is the same: "
                f"{said}. Look for what changed outside of the source: functions that it calls, global "
                "variables, versions of libraries. Without the model, the file can still be loaded."
            )
        return replace(posterior, _program=program)


def _with_modules(paths: Sequence[FittedPath], program: Program) -> Iterator[FittedPath]:
    """Paths with parameters of modules as these have them: a file has their arrays only."""
    if any(isinstance(value, tuple) for path in paths for value in path.parameters.values()):
        for _ in program.frontend.explore(program, Seed.of(0), np.ones(_RUNS, bool)):
            pass  # now the program knows its parameters
    trees = {name: jax.tree.structure(value) for name, value in program.params.items()}
    for path in paths:
        values = {
            name: trees[name].unflatten(jax.tree.leaves(value)) if name in trees else value
            for name, value in path.parameters.items()
        }
        yield replace(path, parameters=values)
