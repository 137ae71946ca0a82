"""What ways to find paths have in common: they begin with runs from the prior, and have limits."""

from dataclasses import dataclass

from pathmix.checks import check_positive_int, check_positive_number
from pathmix.program.program import Limits


@dataclass(frozen=True)
class PriorRuns:
    """So many runs from the prior; how many paths are kept, and what a single run may do."""

    samples: int
    max_paths: int
    max_sites: int | None = None
    max_seconds: float = 60.0

    def __post_init__(self) -> None:
        for name in ("samples", "max_paths", "max_sites"):
            if name != "max_sites" or self.max_sites is not None:
                check_positive_int(f"{type(self).__name__}({name}=...)", getattr(self, name))
        check_positive_number(f"{type(self).__name__}(max_seconds=...)", self.max_seconds)

    @property
    def limits(self) -> Limits:
        """What a single run of the program may do."""
        return Limits(self.max_sites, self.max_seconds)
