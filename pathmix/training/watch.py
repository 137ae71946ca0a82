"""Watching for jumps of a path's density, and choosing the gradient that sees them."""

from collections.abc import Sequence

import numpy as np

from pathmix.engine.requests import Asking
from pathmix.guides.base import Guide, Params, SplitGuide
from pathmix.program.dependence import NOTHING, Sites
from pathmix.program.seeds import Seed
from pathmix.target.target import Target
from pathmix.training.calls import Calls
from pathmix.training.estimators import Gradient
from pathmix.training.jumps import tried_switches

_GUIDE_DRAWS = 64


class JumpWatch:
    """What is known so far of the jumps of a density that reparameterised gradients would not see."""

    def __init__(self, target: Target, guide: Guide, switches: Sequence[Sites]) -> None:
        self._target, self._guide = target, guide
        self.switches = switches
        self.jumping: Sites = NOTHING  # sites that move a jump
        self._harmless: frozenset[int] = frozenset()  # switches that flip without one

    @property
    def gradient(self) -> Gradient:
        """One that is unbiased although the density jumps as some sites move."""
        if not self.jumping:
            return Gradient("reparam")
        part = self._target.coordinates_of(self.jumping)
        if all(part) or not isinstance(self._guide, SplitGuide):
            return Gradient("score")
        return Gradient("mixed", part)

    def look(self, calls: Calls, vectors: np.ndarray, marks: np.ndarray | None) -> Asking[None]:
        """For jumps between some vectors, which have these marks."""
        if marks is None:
            return
        found = yield from tried_switches(calls.marked, vectors, marks, self._harmless)
        self._harmless |= found.harmless
        self.jumping = self.jumping.union(*(self.switches[switch] for switch in found.jumping))

    def look_at_guide(self, calls: Calls, params: Params, seed: Seed) -> Asking[None]:
        """For jumps between draws of a guide."""
        draws = yield from calls.sampled(params, seed, _GUIDE_DRAWS)
        found = yield from calls.marked(draws)
        yield from self.look(calls, draws, found.marks)
