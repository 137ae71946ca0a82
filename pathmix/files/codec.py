"""Values as JSON and back: numbers, texts, tuples, dicts, arrays, and objects of known classes."""

import math
from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

import jax
import numpy as np
from numpyro.distributions import transforms

from pathmix.errors import FileError, PathmixError
from pathmix.files.archive import Reader, Writer


class Unknown:
    """Stands for an object of the user's that no file can hold."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


class Codec:
    """Knows some classes by name."""

    def __init__(self, classes: Sequence[type]) -> None:
        self._classes = {one.__name__: one for one in classes}

    def encode(self, value: Any, writer: Writer) -> Any:
        """What JSON can hold; arrays go to the writer."""

        def go(value: Any) -> Any:
            match value:
                case None | bool() | str():
                    return value
                case Enum():
                    return {"enum": type(value).__name__, "name": value.name}
                case np.generic():
                    return go(value.item())
                case int():
                    return value
                case float():
                    return value if math.isfinite(value) else {"float": repr(value)}
                case np.ndarray() | jax.Array():
                    return {"array": writer.array(np.asarray(value))}
                case bytes():
                    return {"code": writer.code(value)}
                case jax.ShapeDtypeStruct():
                    return {"shape": list(value.shape), "dtype": np.dtype(value.dtype).name}
                case Exception():
                    return {"error": f"{type(value).__name__}: {value}"}
                case frozenset():
                    return {"set": [go(item) for item in sorted(value)]}
                case dict():
                    return {"dict": [[go(key), go(item)] for key, item in value.items()]}
                case type():
                    return {"bijection": value.__name__}
            name = type(value).__name__
            if self._classes.get(name) is type(value):
                return {"class": name, "fields": {key: go(item) for key, item in self._fields(value)}}
            if isinstance(value, (tuple, list)):
                return [go(item) for item in value]
            return {"unknown": repr(value), "leaves": go(_arrays(value))}

        return go(value)

    def decode(self, written: Any, reader: Reader) -> Any:
        """The value again."""

        def go(written: Any) -> Any:
            if isinstance(written, list):
                return tuple(map(go, written))
            if not isinstance(written, dict):
                return written
            match next(iter(written)):
                case "enum":
                    return self._known(written["enum"])[written["name"]]
                case "float":
                    return float(written["float"])
                case "array":
                    return reader.array(written["array"])
                case "code":
                    return reader.part(written["code"])
                case "shape":
                    return jax.ShapeDtypeStruct(tuple(written["shape"]), np.dtype(written["dtype"]))
                case "error":
                    return PathmixError(written["error"])
                case "set":
                    return frozenset(map(go, written["set"]))
                case "dict":
                    return {go(key): go(item) for key, item in written["dict"]}
                case "bijection":
                    found = getattr(transforms, written["bijection"], None)
                    return found if isinstance(found, type) else None
                case "class":
                    given = {key: go(item) for key, item in written["fields"].items()}
                    return self._known(written["class"])(**given)
                case "unknown":
                    return go(written["leaves"]) or Unknown(written["unknown"])
            raise FileError(f"The file has a part of an unknown kind: {next(iter(written))!r}.")

        return go(written)

    def _known(self, name: str) -> Any:
        if name not in self._classes:
            raise FileError(f"The file has a part that this version of pathmix does not know: {name!r}.")
        return self._classes[name]

    def _fields(self, value: Any) -> list[tuple[str, Any]]:
        names = [one.name for one in fields(value) if one.init] if is_dataclass(value) else value._fields
        return [(name, getattr(value, name)) for name in names]


def _arrays(value: Any) -> tuple[np.ndarray, ...]:
    """The arrays of a tree of the user's."""
    leaves = jax.tree.leaves(value)
    return (
        tuple(map(np.asarray, leaves)) if all(isinstance(x, (np.ndarray, jax.Array)) for x in leaves) else ()
    )
