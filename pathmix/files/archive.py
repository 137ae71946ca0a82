"""A file of plain parts: one text of JSON, arrays as NumPy writes them, and code for XLA.

Arrays and code have their digest for a name, so what two places share is written once, and whatever a disk
has changed is noticed. Nothing in it is Python, and nothing is unpickled.
"""

import hashlib
import io
import json
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from pathmix.errors import FileError

_TEXT = "content.json"
_KIND = "pathmix"
_FORMAT = 1
_DATE = (1980, 1, 1, 0, 0, 0)  # the same content gives the same bytes


class Writer:
    """Gathers arrays and code."""

    def __init__(self) -> None:
        self._parts: dict[str, bytes] = {}

    def array(self, array: np.ndarray) -> str:
        """Its name in the file."""
        buffer = io.BytesIO()
        np.lib.format.write_array(buffer, np.asarray(array), allow_pickle=False)
        return self._add(buffer.getvalue(), "npy")

    def code(self, code: bytes) -> str:
        """Its name in the file."""
        return self._add(code, "stablehlo")

    def _add(self, content: bytes, ending: str) -> str:
        name = f"{hashlib.sha256(content).hexdigest()}.{ending}"
        self._parts[name] = content
        return name

    def as_bytes(self, content: dict[str, Any]) -> bytes:
        text = json.dumps(content, allow_nan=False).encode()
        head = {"kind": _KIND, "format": _FORMAT, "digest": hashlib.sha256(text).hexdigest()}
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file:
            for name, part in {"head.json": json.dumps(head).encode(), _TEXT: text, **self._parts}.items():
                file.writestr(zipfile.ZipInfo(name, _DATE), part, zipfile.ZIP_DEFLATED)
        return buffer.getvalue()


class Reader:
    """The content of such a file; complains of one that is torn, changed, or of another kind."""

    def __init__(self, written: bytes, name: str) -> None:
        self._name = name
        try:
            self._file = zipfile.ZipFile(io.BytesIO(written))
            head = json.loads(self._file.read("head.json"))
            text = self._file.read(_TEXT)
        except Exception as error:
            raise self._broken() from error
        if head.get("kind") != _KIND or head.get("format") != _FORMAT:
            raise FileError(
                f"{name} was written in format {head.get('format')!r}, and this version of pathmix reads "
                f"{_FORMAT}. Load it with the version that wrote it."
            )
        if hashlib.sha256(text).hexdigest() != head.get("digest"):
            raise self._broken()
        self.content: dict[str, Any] = json.loads(text)

    def array(self, name: str) -> np.ndarray:
        """Of this name."""
        return np.lib.format.read_array(io.BytesIO(self.part(name)), allow_pickle=False)

    def part(self, name: str) -> bytes:
        """As it was written."""
        try:
            content = self._file.read(name)
        except Exception as error:
            raise self._broken() from error
        if hashlib.sha256(content).hexdigest() != name.partition(".")[0]:
            raise self._broken()
        return content

    def _broken(self) -> FileError:
        return FileError(f"{self._name} is damaged, or not a file of pathmix: it cannot be read to its end.")


def write(file: str | os.PathLike[str], content: bytes) -> None:
    """All of it or nothing: another file takes the place of an old one when it is complete."""
    path = Path(file)
    beside = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        with open(beside, "wb") as part:
            part.write(content)
            part.flush()
            os.fsync(part.fileno())
        os.replace(beside, path)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise FileError(f"{path} cannot be written: {error.strerror or error}.") from error


def read(file: str | os.PathLike[str]) -> bytes:
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise FileError(f"{file} cannot be read: {error.strerror or error}.") from error
