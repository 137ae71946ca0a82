"""The identity of a straight-line program."""

import hashlib
import json
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

DecisionKind = Literal["bool", "int", "float", "array"]
PinnedValue = Any  # a Python scalar, or nested tuples of them


@dataclass(frozen=True)
class Decision:
    """One place where Python looked at a random value, and what it saw there."""

    kind: DecisionKind
    value: PinnedValue


@dataclass(frozen=True)
class Path:
    """Addresses in order, decisions in order, the values of pinned discrete sites, and which are summed out.

    Equality is structural, so two paths are the same exactly when every field is; `digest` is the
    same on every machine and in every process.

    >>> a = Path(addresses=("i", "j"), decisions=(), pinned=(("i", 1), ("j", 11)))
    >>> b = Path(addresses=("i", "j"), decisions=(), pinned=(("i", 11), ("j", 1)))
    >>> a == b, a.digest == b.digest
    (False, False)
    """

    addresses: tuple[str, ...]
    decisions: tuple[Decision, ...]
    pinned: tuple[tuple[str, PinnedValue], ...]
    summed: tuple[str, ...] = ()

    @property
    def has_free_sites(self) -> bool:
        """Whether anything is left to infer once discrete sites are pinned, or summed out."""
        return len(self.pinned) + len(self.summed) < len(self.addresses)

    def without(self, summed: tuple[str, ...]) -> "Path":
        """The same path, on which some sites may have any value."""
        pinned = tuple((name, value) for name, value in self.pinned if name not in summed)
        return replace(self, pinned=pinned, summed=summed)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of a canonical encoding: JSON quotes names, so no two paths can collide."""
        content = [
            self.addresses,
            [(decision.kind, decision.value) for decision in self.decisions],
            self.pinned,
            *([self.summed] if self.summed else []),
        ]
        return hashlib.sha256(json.dumps(content).encode()).hexdigest()
