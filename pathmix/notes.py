"""What every method tells about its result, beside its own remarks."""

import warnings
from collections.abc import Sequence

from pathmix.discovery import Discovered
from pathmix.errors import PathmixWarning
from pathmix.posterior import FittedPath
from pathmix.slp import StraightLineProgram


def common_notes(
    found: Discovered, slps: Sequence[StraightLineProgram], fitted: Sequence[FittedPath]
) -> list[str]:
    """Called three functions below the user's call, which a warning points to."""
    notes = []
    if found.dropped_mass > 0:
        notes.append(f"Paths with {found.dropped_mass:.1%} of the prior mass were cut off by max_paths.")
    if params := sorted({name for slp in slps for name in slp.params}):
        notes.append(f"Parameters are kept at their initial values: {', '.join(params)}.")
    if all(path.weight == 0 for path in fitted):
        text = f"No path carries weight. The first one says: {fitted[0].message}"
        warnings.warn(text, PathmixWarning, stacklevel=5)
    return notes
