"""A model that is named on the command line: model.py:model."""

import inspect
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

from pathmix.errors import FileError, OptionError, ProgramError


@dataclass(frozen=True)
class Reference:
    """A file and a name in it."""

    file: Path
    name: str

    @staticmethod
    def of(text: str) -> "Reference":
        """The file must be there; it is not loaded yet."""
        file, colon, name = text.rpartition(":")
        if not colon or not name.isidentifier():
            raise OptionError(f"Name the file and the function in it, such as model.py:model, not {text!r}.")
        path = Path(file).expanduser()
        if not path.is_file():
            raise FileError(f"There is no file {file}.")
        if path.suffix != ".py":
            raise FileError(f"{file} is not a Python file: its name does not end with .py.")
        return Reference(path.resolve(), name)

    def __str__(self) -> str:
        return f"{self.file}:{self.name}"

    @cached_property
    def module(self) -> ModuleType:
        """The file, imported, with its folder, or that of its package, where Python looks for modules."""
        root, parts = self.file.parent, [self.file.stem]
        while (root / "__init__.py").is_file():
            root, parts = root.parent, [root.name, *parts]
        sys.path.insert(0, str(root))
        try:
            return import_module(".".join(parts)) if len(parts) > 1 else _executed(self.file)
        except (Exception, SystemExit) as error:
            raise ProgramError(f"{self.file.name} cannot be imported: {self._told(error)}") from error

    def function(self, name: str) -> Callable[..., Any]:
        """A function of the file."""
        if not hasattr(self.module, name):
            own = [
                key
                for key, value in vars(self.module).items()
                if inspect.isfunction(value) and value.__module__ == self.module.__name__
            ]
            has = f"It has {', '.join(own)}." if own else "It has no functions."
            raise OptionError(f"{self.file.name} has no {name!r}. {has}")
        found = getattr(self.module, name)
        if not callable(found):
            raise OptionError(f"{name!r} in {self.file.name} is not a function, but {type(found).__name__}.")
        return found

    @cached_property
    def model(self) -> Callable[..., Any]:
        return self.function(self.name)

    def _told(self, error: BaseException) -> str:
        """The error, and the last line of the user's files that it went through."""
        if isinstance(error, SystemExit):
            return "it ends Python by itself. Put what is only for a script behind if __name__ == '__main__'."
        if isinstance(error, SyntaxError):
            place = f"{Path(error.filename or '').name}:{error.lineno}: {(error.text or '').strip()}"
            return f"{type(error).__name__}: {error.msg}, at {place}"
        own = [
            frame
            for frame in traceback.extract_tb(error.__traceback__)
            if Path(frame.filename).is_relative_to(self.file.parent)
        ]
        place = f", at {Path(own[-1].filename).name}:{own[-1].lineno}: {own[-1].line}" if own else ""
        return f"{type(error).__name__}: {error}{place}"


def _executed(file: Path) -> ModuleType:
    """A file that is in no package; its name may be that of a module which is loaded already."""
    name = file.stem if file.stem not in sys.modules else f"{file.stem} of {file.parent}"
    spec = spec_from_file_location(name, file)
    assert spec is not None and spec.loader is not None
    module = sys.modules[name] = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module
