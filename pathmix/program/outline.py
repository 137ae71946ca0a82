"""What a posterior must know of a straight-line program, once it is fitted."""

from dataclasses import dataclass

from pathmix.program.path import Path


@dataclass(frozen=True)
class SiteOutline:
    """A latent site."""

    name: str
    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True)
class Outline:
    """The names along a path."""

    recorded: Path  # the path as recorded: a run with values put in is compared with it
    sites: tuple[SiteOutline, ...]
    observed: tuple[str, ...]
    deterministics: tuple[str, ...]

    @property
    def names(self) -> frozenset[str]:
        """Of all sites."""
        return frozenset({*self.recorded.addresses, *self.observed, *self.deterministics})
