"""What a recorded run takes in: a key for each draw, given values, and the values of its sites."""

from collections.abc import Callable
from functools import cache
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
from numpyro import distributions as dist

from pathmix.doors.jax import Tracer
from pathmix.frontends.drawing import check_proper, not_drawn
from pathmix.frontends.numpyro.hidden import refuse_hidden
from pathmix.frontends.numpyro.inputs import Name, make_input
from pathmix.frontends.numpyro.operations import Rows
from pathmix.frontends.numpyro.sites import in_plate, is_discrete
from pathmix.frontends.numpyro.templates import by_template
from pathmix.frontends.supports import inside
from pathmix.program.parameters import Part
from pathmix.program.path import PinnedValue
from pathmix.program.seeds import SeedBatch
from pathmix.program.source import caller
from pathmix.program.wishes import OutsideSupport, Wishes


class Supply:
    """The inputs of one trace, and what they are in each run of the batch.

    `values_of` computes what a tracer stands for, `parameter` gives the value of one that is learned.
    """

    def __init__(
        self,
        seeds: SeedBatch,
        wishes: Wishes,
        values_of: Callable[[Any], np.ndarray],
        parameter: Callable[[Part], Any],
    ) -> None:
        self.seeds, self.wishes, self.values_of, self.parameter = seeds, wishes, values_of, parameter
        self.sites: dict[str, Any] = {}  # the values of each, or the tracer of its draw
        self.pinned: dict[str, PinnedValue] = {}
        self.fresh: set[str] = set()  # sites that a prediction draws beside the given ones
        self._keys = 0

    def begin(self, token: Any) -> None:
        self.token = token

    def rows(self, name: Name) -> Any:
        """The values of an input, for `Lazily`."""
        if name.kind == "key":
            return self.seeds.keys(int(cast(int, name.name)))
        if isinstance(name.name, Part):
            return Rows(self.parameter(name.name), differs=False)
        refuse_hidden(name)
        if name.kind == "given":
            given = self.wishes.given[str(name.name)]
            return given.astype(jnp.result_type(given))
        values = self.sites[str(name.name)]
        return Rows(values[0], differs=False) if name.name in self.pinned else values

    def next_key(self) -> int:
        """The place of a draw in the order of all; every run along a path counts them alike."""
        self._keys += 1
        return self._keys - 1

    def key(self, position: int) -> Any:
        return make_input(self.token, Name("key", position), (), _key_dtype())

    def given(self, name: str) -> Any:
        given = self.wishes.given[name]
        return make_input(self.token, Name("given", name), given.shape[1:], jnp.result_type(given))

    def site(self, name: str, shape: tuple[int, ...], dtype: Any) -> Any:
        return make_input(self.token, Name("site", name), shape, dtype)

    def latent(self, msg: Any, position: int, drawn: Any) -> Any:
        """How the value of a site comes about: given, drawn, or given with gaps that are drawn.

        `drawn` is its draw, where there is one already.
        """
        name, fn, wishes = msg["name"], msg["fn"], self.wishes
        if not wishes.puts_in(name, latent=True, observed=False):
            wishes.check_present(name, in_plate=in_plate(msg))
            self._note_fresh(name)
            return self.draw(msg, position) if drawn is None else drawn
        given = self.given(name)
        if not wishes.fits(name, given.shape, fn.shape(), in_plate=in_plate(msg)):
            self._note_fresh(name)
            return self.draw(msg, position)
        if name in wishes.gaps:
            return jnp.where(jnp.isnan(given), self.draw(msg, position), given)
        typed = given.astype(float) if not is_discrete(msg) else given
        if is_discrete(msg) and not jnp.issubdtype(given.dtype, jnp.integer):
            typed = given.astype(int)
        if not (wishes.supported or wishes.proposed):
            return typed
        covered = inside(fn.support, given)
        if np.all(self.values_of(covered)):
            return typed
        if wishes.supported:
            raise OutsideSupport
        by_element = jnp.reshape(covered, covered.shape + (1,) * (typed.ndim - covered.ndim))
        return jnp.where(by_element, typed, self.draw(msg, position)).astype(typed.dtype)

    def draw(self, msg: Any, position: int) -> Any:
        """A draw from the distribution of a site."""
        fn = msg["fn"]
        if isinstance(fn, dist.Uniform):
            check_proper(msg["name"], self.values_of(fn.low), self.values_of(fn.high))
        kwargs = {**msg["kwargs"], "rng_key": self.key(position)}
        try:
            (drawn,), _ = by_template(_draw, fn, msg["args"], kwargs, fold=False)
        except NotImplementedError as error:
            raise not_drawn(msg["name"], fn, caller()) from error
        return drawn

    def keep(self, name: str, value: Any) -> None:
        """The values of a site, or how they are drawn."""
        self.sites[name] = value if isinstance(value, (Tracer, np.ndarray)) else self.values_of(value)

    def _note_fresh(self, name: str) -> None:
        if self.wishes.simulate is not None:
            self.fresh.add(name)


def _draw(fn: Any, args: Any, kwargs: Any) -> tuple[list[Any], None]:
    return [fn(*args, **kwargs)], None


@cache
def _key_dtype() -> Any:
    return jax.eval_shape(lambda: jax.random.key(0, impl="threefry2x32")).dtype
