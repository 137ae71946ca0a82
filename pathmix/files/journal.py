"""A journal of answers: what was computed once is read again, in another process, with the same bits.

A run asks for the same things in the same way if it is repeated, so a journal is all that it needs to go on
after a power cut. Answers are known by a digest of what was asked. Each is one record at the end of a file,
with its length and a checksum before it; a record that was torn off is dropped.
"""

import hashlib
import io
import json
import os
import struct
import threading
import time
from collections.abc import Hashable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import jax
import numpy as np

from pathmix.engine import stablehlo
from pathmix.engine.noise import Normals
from pathmix.engine.requests import Answer, Failed, Request
from pathmix.errors import FileError
from pathmix.warn import warn

_HEAD = struct.Struct("<Q32s32s")  # bytes of the record, its checksum, and the digest of what was asked
_TYPES = struct.Struct("<Q")  # bytes of the types and shapes
_SYNC_SECONDS = 5.0


class Journal:
    """Answers in a file."""

    def __init__(self, file: Path, answer: Answer) -> None:
        self._name, self._compute = file, answer
        self._lock = threading.Lock()
        self._places: dict[bytes, tuple[int, int]] = {}
        self._digests: dict[int, tuple[Any, bytes]] = {}  # of what stays the same from call to call
        self._trees: dict[Hashable, Any] = {}
        try:
            file.touch()
            self._file: io.BufferedRandom | None = file.open("r+b")
        except OSError as error:
            raise FileError(f"{file} cannot be used: {error.strerror or error}.") from error
        try:
            self._end = self._read()
        except BaseException:
            self.close()
            raise
        self._synced = time.monotonic()

    def __len__(self) -> int:
        return len(self._places)

    def answer(self, requests: Sequence[Request]) -> list[Any]:
        """Those that are not in the journal are computed, and written down."""
        digests = [self._digest(request) for request in requests]
        answers = [self._known(request, digest) for request, digest in zip(requests, digests, strict=True)]
        missing = [number for number, answer in enumerate(answers) if answer is None]
        for number, answer in zip(missing, self._compute([requests[n] for n in missing]), strict=True):
            answers[number] = answer
            if not isinstance(answer, Failed):
                self._write(digests[number], answer)
        return answers

    def close(self) -> None:
        with self._lock:
            if self._file is not None:
                self._file.close()
                self._file = None

    def _known(self, request: Request, digest: bytes) -> Any:
        with self._lock:
            if digest not in self._places or self._file is None:
                return None
            start, length = self._places[digest]
            self._file.seek(start)
            record = self._file.read(length)
        return self._tree(request).unflatten(_arrays(record))

    def _tree(self, request: Request) -> Any:
        """The structure of an answer; found by tracing, which compiles nothing."""
        key = (request.key, request.common)
        if key not in self._trees:
            given = jax.tree.map(stablehlo.shape, (request.fixed, request.moving))
            found = jax.eval_shape(request.build(), request.common, *given)
            self._trees[key] = jax.tree.structure(request.wanted(found))
        return self._trees[key]

    def _write(self, digest: bytes, answer: Any) -> None:
        record = _record([np.asarray(leaf) for leaf in jax.tree.leaves(answer)])
        with self._lock:
            if self._file is None or digest in self._places:
                return
            try:
                self._file.seek(self._end)
                checksum = hashlib.sha256(digest + record).digest()
                self._file.write(_HEAD.pack(len(record), checksum, digest) + record)
                self._file.flush()
                if time.monotonic() > self._synced + _SYNC_SECONDS:
                    os.fsync(self._file.fileno())
                    self._synced = time.monotonic()
            except OSError as error:
                with suppress(OSError):
                    self._file.close()
                self._file = None
                warn(
                    f"The checkpoint {self._name} cannot be written: {error.strerror or error}. The run goes "
                    "on without it; what was written so far stays."
                )
                return
            start = self._end + _HEAD.size
            self._places[digest] = (start, len(record))
            self._end = start + len(record)

    def _read(self) -> int:
        """Find all records; returns where the last whole one ends, and leaves nothing behind that."""
        assert self._file is not None
        size, end = self._name.stat().st_size, 0
        while end < size:
            self._file.seek(end)
            head = self._file.read(_HEAD.size)
            length, checksum, digest = _HEAD.unpack(head) if len(head) == _HEAD.size else (size, b"", b"")
            start = end + _HEAD.size
            if start + length > size:
                break  # torn off
            if hashlib.sha256(digest + self._file.read(length)).digest() != checksum:
                raise FileError(
                    f"{self._name} is damaged: a record before its end is not what was written. Remove it, "
                    'or start over with on_change="restart".'
                )
            self._places[digest] = (start, length)
            end = start + length
        self._file.truncate(end)
        return end

    def _digest(self, request: Request) -> bytes:
        found = hashlib.sha256(repr((request.key, request.common, request.ignored is None)).encode())
        found.update(self._fixed(request.fixed))
        found.update(_content(request.moving))
        return found.digest()

    def _fixed(self, tree: Any) -> bytes:
        known = self._digests.get(id(tree))
        if known is None:
            known = self._digests[id(tree)] = (tree, _content(tree))  # kept, so that its number stays
        return known[1]


def _record(arrays: Sequence[np.ndarray]) -> bytes:
    """Types and shapes, then the numbers. (To read NumPy's own format is not safe in several threads.)"""
    types = json.dumps([[array.dtype.str, array.shape] for array in arrays]).encode()
    return b"".join([_TYPES.pack(len(types)), types, *(array.tobytes() for array in arrays)])


def _arrays(record: bytes) -> list[np.ndarray]:
    (length,) = _TYPES.unpack_from(record)
    start, found = _TYPES.size + length, []
    for dtype, shape in json.loads(record[_TYPES.size : start]):
        array = np.zeros(shape, np.dtype(dtype))
        array.reshape(-1)[:] = np.frombuffer(record, array.dtype, array.size, start)
        start += array.nbytes
        found.append(array)
    return found


def _content(tree: Any) -> bytes:
    found = hashlib.sha256(str(jax.tree.structure(tree)).encode())
    for leaf in jax.tree.leaves(tree):
        if isinstance(leaf, Normals):
            found.update(repr(leaf).encode())
        else:
            array = np.asarray(leaf)
            found.update(f"{array.dtype} {array.shape}".encode())
            found.update(np.ascontiguousarray(array).tobytes())
    return found.digest()
