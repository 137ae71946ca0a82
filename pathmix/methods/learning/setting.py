"""Setting: what the parameters are in a round of learning."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from pathmix.engine.executables import Executables
from pathmix.program.lifting import at
from pathmix.program.parameters import Part
from pathmix.program.path import Path
from pathmix.program.slp import StraightLineProgram


@dataclass(frozen=True, eq=False)
class Setting:
    """The values for all paths, those that some paths have for themselves, and what rounds compile once."""

    values: dict[str, Any]
    own: Mapping[Path, Mapping[Part, np.ndarray]]
    executables: Executables

    def on(self, slp: StraightLineProgram) -> StraightLineProgram:
        """A path at its own values."""
        return at(slp, self.own.get(slp.path, {}))
