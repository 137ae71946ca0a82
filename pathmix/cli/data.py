"""Data files: columns of numbers in a CSV, arrays of an npz, keys of a JSON object."""

import csv
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, is_zipfile

import numpy as np

from pathmix.errors import FileError

_CHUNK = 10_000  # rows
_DELIMITERS = ",;\t"


def read(file: Path, columns: Mapping[str, str] | None = None) -> dict[str, Any]:
    """What a file has, by name. With `columns`, only those, under the names that they are given for."""
    readers = {".csv": _csv, ".tsv": _csv, ".npz": _npz, ".json": _json}
    reader = readers.get(file.suffix.lower())
    if reader is None:
        raise FileError(f"{file} is of no known kind: data are in a .csv, .npz or .json file.")
    try:
        return reader(file, columns)
    except OSError as error:
        raise FileError(f"{file} cannot be read: {error.strerror or error}.") from error
    except UnicodeDecodeError as error:
        raise FileError(f"{file} is not a text in UTF-8: {error.reason} at byte {error.start}.") from error


def _chosen(file: Path, names: Sequence[str], columns: Mapping[str, str] | None) -> Mapping[str, str]:
    """Which of the names in the file are wanted, by the parameters that they are for."""
    if columns is None:
        return dict(zip(names, names, strict=True))
    for column in columns.values():
        if column not in names:
            raise FileError(f"{file} has no {column!r}. It has {', '.join(names)}.")
    return columns


def _csv(file: Path, columns: Mapping[str, str] | None) -> dict[str, Any]:
    with open(file, newline="", encoding="utf-8-sig") as stream:
        first = stream.readline()
        stream.seek(0)
        delimiter = max(_DELIMITERS, key=first.count)
        rows = csv.reader(stream, delimiter=delimiter, skipinitialspace=True)
        try:
            return _columns(file, rows, columns)
        except csv.Error as error:
            raise FileError(f"{file} is damaged at line {rows.line_num}: {error}.") from error


def _columns(file: Path, rows: Any, columns: Mapping[str, str] | None) -> dict[str, np.ndarray]:
    names = [name.strip() for name in next(rows, [])]
    if not any(names):
        raise FileError(f"{file} is empty: its first line has the names of columns.")
    twice = [name for name, count in Counter(names).items() if count > 1 and name]
    if twice:
        raise FileError(f"{file} has two columns called {twice[0]!r}.")
    if columns is None and "" in names:
        raise FileError(
            f"Column {names.index('') + 1} of {file} has no name (pandas writes its index so, without "
            "index=False). Choose columns with --column."
        )
    chosen = _chosen(file, [name for name in names if name], columns)
    parts: dict[str, list[np.ndarray]] = {name: [] for name in chosen}
    for lines, cells in _chunks(file, rows, len(names)):
        for name, column in chosen.items():
            parts[name].append(_numbers(file, column, lines, cells[names.index(column)]))
    if not all(parts.values()):
        raise FileError(f"{file} has no rows below the names of its columns.")
    return {name: np.concatenate(arrays) for name, arrays in parts.items()}


def _chunks(file: Path, rows: Any, width: int) -> Iterator[tuple[list[int], list[tuple[str, ...]]]]:
    """The numbers of lines, and their cells by column, some thousand at a time."""
    full = ((rows.line_num, row) for row in rows if row)
    while chunk := list(islice(full, _CHUNK)):
        for line, row in chunk:
            if len(row) != width:
                raise FileError(f"Line {line} of {file} has {len(row)} cells, and its first line {width}.")
        yield [line for line, _ in chunk], list(zip(*(row for _, row in chunk), strict=True))


def _numbers(file: Path, column: str, lines: Sequence[int], cells: Sequence[str]) -> np.ndarray:
    """Whole numbers, if all are."""
    try:
        return np.fromiter(map(int, cells), np.int64, len(cells))
    except (ValueError, OverflowError):
        pass
    try:
        return np.fromiter(map(float, cells), np.float64, len(cells))
    except ValueError:
        line, cell = next((n, cell) for n, cell in zip(lines, cells, strict=True) if not _is_number(cell))
    if not cell.strip():
        raise FileError(f"Line {line} of {file} has no value in column {column!r}. Leave such rows out.")
    raise FileError(f"Line {line} of {file} has {cell!r} in column {column!r}, which is not a number.")


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _npz(file: Path, columns: Mapping[str, str] | None) -> dict[str, Any]:
    if file.exists() and not is_zipfile(file):
        raise FileError(f"{file} is damaged, or not a file that np.savez wrote.")
    try:
        with np.load(file, allow_pickle=False) as archive:
            chosen = _chosen(file, archive.files, columns)
            found = {name: archive[column] for name, column in chosen.items()}
    except (ValueError, BadZipFile) as error:
        raise FileError(f"{file} has something else than arrays of numbers: {error}.") from error
    for name, array in found.items():
        if array.ndim and array.dtype.kind not in "biuf":
            column = chosen[name]
            raise FileError(f"{column!r} of {file} has something else than numbers (NumPy's {array.dtype}).")
    # What is saved as a number is meant as one.
    return {name: array if array.ndim else array.item() for name, array in found.items()}


def _json(file: Path, columns: Mapping[str, str] | None) -> dict[str, Any]:
    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        twice = [key for key, count in Counter(key for key, _ in pairs).items() if count > 1]
        if twice:
            raise FileError(f"{file} has two entries called {twice[0]!r}.")
        return dict(pairs)

    try:
        found = json.loads(file.read_text("utf-8-sig"), object_pairs_hook=once)
    except (json.JSONDecodeError, RecursionError) as error:
        raise FileError(f"{file} is not JSON: {error}.") from error
    if not isinstance(found, dict):
        raise FileError(f'{file} is not a JSON object, such as {{"x": [1.0, 2.0]}}.')
    return {name: found[key] for name, key in _chosen(file, list(found), columns).items()}
