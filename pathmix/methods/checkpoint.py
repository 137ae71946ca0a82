"""Checkpoints: a folder from which a run goes on, if nothing that it depends on has changed."""

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any, Literal

import jax
import jax.numpy as jnp
import optax

from pathmix.engine.requests import Answer
from pathmix.errors import ChangedError, FileError
from pathmix.files.archive import write
from pathmix.files.journal import Journal
from pathmix.posterior.provenance import plainly, version_of
from pathmix.program.fingerprints import of_arguments, of_model, of_objects, of_taken_along
from pathmix.program.program import Program
from pathmix.program.seeds import Seed
from pathmix.version import __version__

OnChange = Literal["refuse", "restart"]
# What changes no number.
_FREE = ("model", "threads", "executor", "cache", "progress", "checkpoint", "on_change")
_TAKEN_ALONG = "what the model takes along"
_OBJECTS = "the content of its arguments"
_LATER = (_TAKEN_ALONG, _OBJECTS)


@contextmanager
def checkpointed(options: Any, program: Program, seed: Seed, answer: Answer) -> Iterator[Answer]:
    """Answers that are kept in the folder of the options, if there is one."""
    if options.checkpoint is None:
        yield answer
        return
    folder = Path(options.checkpoint)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"The folder {folder} cannot be made: {error.strerror or error}.") from error
    _check(folder, _about(options, program, seed), options.on_change)
    try:
        journal = Journal(folder / "journal", answer)
    except FileError:
        if options.on_change != "restart":
            raise
        (folder / "journal").unlink(missing_ok=True)
        journal = Journal(folder / "journal", answer)
    try:
        yield journal.answer
    finally:
        journal.close()


def _check(folder: Path, about: dict[str, str], on_change: OnChange) -> None:
    """Refuse a folder of something else, or begin anew in it."""
    file, journal = folder / "about.json", folder / "journal"
    if file.exists():
        try:
            before = json.loads(file.read_text())
        except (OSError, ValueError) as error:
            if on_change != "restart":
                raise FileError(f'{file} cannot be read. Start over with on_change="restart".') from error
            before = {}
        # Folders of earlier versions lack some.
        known = {name: about[name] for name in _LATER} | before
        changed = [name for name in about if known.get(name) != about[name]]
        if not changed:
            return
        if on_change != "restart":
            raise ChangedError(
                f"The checkpoint in {folder} is of another run: {' and '.join(changed)} changed. Give "
                'another folder, or start over with on_change="restart".'
            )
    journal.unlink(missing_ok=True)
    write(file, json.dumps(about).encode())


def _about(options: Any, program: Program, seed: Seed) -> dict[str, str]:
    """What a run depends on, in words that an error can use."""
    arguments = program.args, program.kwargs
    found = {
        "the model": str(of_model(program.model)),
        _TAKEN_ALONG: of_taken_along(program.model),
        "its arguments": of_arguments(arguments),
        _OBJECTS: of_objects(arguments).digest,
        "the seed": str(seed),
        "the kind of device": jax.default_backend(),
        "the version of pathmix": __version__,
    }
    for library in ("jax", "jaxlib", "numpyro", "optax"):
        found[f"the version of {library}"] = version_of(library)
    for one in fields(options):
        if one.name not in _FREE:
            found[f"the option {one.name}"] = _told(getattr(options, one.name))
    return found


def _told(option: Any) -> str:
    """What tells options apart in every process. Of an optimiser, what it does."""
    if isinstance(option, optax.GradientTransformation):
        params = jnp.arange(3.0)
        state, done = option.init(params), []
        for step in range(3):
            updates, state = option.update(params - step, state, params)
            done.append(updates)
        return hashlib.sha256(jnp.stack(done).tobytes()).hexdigest()
    return plainly(option)
