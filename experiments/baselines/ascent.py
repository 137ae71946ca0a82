"""Gradient ascent on the parameters of an address guide, with any optax optimiser."""

from typing import Any

import jax
import numpy as np
import optax

from experiments.baselines.address_guide import GuideParams


class Ascent:
    """Parameters may grow between steps; what the optimiser knows of the old ones is kept."""

    def __init__(self, optimizer: optax.GradientTransformation) -> None:
        self._optimizer = optimizer
        self._state: Any = None

        def update(params: GuideParams, state: Any, gradient: GuideParams) -> Any:
            updates, state = optimizer.update(jax.tree.map(lambda g: -g, gradient), state, params)
            return optax.apply_updates(params, updates), state

        self._update = jax.jit(update)  # compiled again when parameters have grown

    def step(self, params: GuideParams, gradient: GuideParams) -> GuideParams:
        fresh = jax.tree.map(np.shape, params)
        if self._state is None or fresh != self._shapes:
            self._state, self._shapes = self._grown(params), fresh
        params, self._state = self._update(params, self._state, gradient)
        return GuideParams(*(np.asarray(leaf) for leaf in params))

    def _grown(self, params: GuideParams) -> Any:
        new = self._optimizer.init(jax.tree.map(np.asarray, params))
        return new if self._state is None else jax.tree.map(_filled, new, self._state)


def _filled(new: Any, old: Any) -> Any:
    grown = np.array(new)
    grown[tuple(slice(size) for size in np.shape(old))] = old
    return grown
