"""How a path fared."""

from enum import Enum


class Status(Enum):
    """A word for tables; each path also carries a sentence."""

    OK = "ok"
    EXACT = "exact"
    ROUGH = "rough"
    DROPPED = "dropped"
    UNTRAINED = "untrained"
    OUTSIDE = "outside"
    ZERO = "zero density"
    NAN = "NaN density"
    IMPOSSIBLE = "impossible observation"
    FAILED = "failed"

    def __str__(self) -> str:
        return self.value

    @property
    def usable(self) -> bool:
        """Whether the path can carry weight."""
        return self in (Status.OK, Status.EXACT, Status.ROUGH, Status.DROPPED, Status.UNTRAINED)
