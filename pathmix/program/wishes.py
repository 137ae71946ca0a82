"""What a run of a program shall do other than follow its prior."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from pathmix.errors import ProgramError, ValueLookupError
from pathmix.program.source import caller

Shape = tuple[int, ...]

# Marks a site of a run that is drawn instead of conditioned on.
SIMULATED = "_pathmix_simulated"


class OutsideSupport(BaseException):
    """A given value lies outside the support of its site. No program may catch it."""


@dataclass(frozen=True)
class Wishes:
    """Values that are put in, and observations that are taken out.

    `given` fixes latent sites (runs along the first axis); `complete` makes a latent site that is not
    among them, or has another shape there, an error, unless it is inside a plate and `fresh_plates` lets
    it be drawn afresh. With `simulate`, observed sites are drawn instead of conditioned on, and so are sites
    of these names that the present arguments leave unobserved; a given site is never among them. With
    `supported`, a given value outside the support of its site ends the run with `OutsideSupport`. The sites
    of `gaps` are drawn where their given value is NaN. `proposed` values that do not fit their site, by shape
    or by support, are drawn instead. With `data`, the values of observed sites are told.
    """

    given: Mapping[str, np.ndarray] = field(default_factory=dict)
    complete: bool = False
    fresh_plates: bool = False
    simulate: Collection[str] | None = None
    supported: bool = False
    proposed: bool = False
    gaps: frozenset[str] = frozenset()
    data: bool = False

    @property
    def follows_prior(self) -> bool:
        """Whether nothing is put in or taken out."""
        return not self.given and self.simulate is None and not self.data

    def rows(self, rows: np.ndarray) -> "Wishes":
        """For some of the runs."""
        return replace(self, given={name: values[rows] for name, values in self.given.items()})

    def row(self, row: int) -> "Wishes":
        """For one of the runs, whose values then have no axis of runs."""
        return replace(self, given={name: values[row] for name, values in self.given.items()})

    def puts_in(self, name: str, *, latent: bool, observed: bool) -> bool:
        """Whether a site gets its given value. A prediction keeps it even where data is given now."""
        return name in self.given and (latent or (observed and self.simulate is not None))

    def simulates(self, name: str, *, observed: bool) -> bool:
        return self.simulate is not None and name not in self.given and (observed or name in self.simulate)

    def check_present(self, name: str, *, in_plate: bool) -> None:
        """Complain of a latent site that is not given."""
        if self.complete and not (in_plate and self.fresh_plates):
            raise ValueLookupError(
                f"The values lack the site {name!r}, which the program draws at {caller()} with these "
                f"values. Given: {sorted(self.given)}.{self._advice(in_plate)}"
            )

    def fits(self, name: str, shape: Shape, wanted: Shape, *, in_plate: bool) -> bool:
        """Whether a given value has the shape that its site has in this run; if not, the site is drawn."""
        if shape == wanted:
            return True
        if self.proposed or (in_plate and self.fresh_plates):
            return False
        raise ValueLookupError(
            f"The site {name!r} at {caller()} has shape {wanted} here, but its given value has shape "
            f"{shape}.{self._advice(in_plate)}"
        )

    def _advice(self, in_plate: bool) -> str:
        if not in_plate or self.simulate is None:
            return ""
        return " It is inside a plate: posterior.with_fresh_plates().predict(...) draws it afresh."


def observed_batch(name: str, shape: Shape, batch: Shape, event: Shape) -> Shape:
    """The batch shape to simulate a site with, which was observed with values of some shape."""
    try:
        return np.broadcast_shapes(shape[: len(shape) - len(event)], batch)
    except ValueError as error:
        raise ProgramError(
            f"The site {name!r} at {caller()} is observed with values of shape {shape}, which do not fit its "
            f"distribution of shape {(*batch, *event)}."
        ) from error
