"""Random keys that belong to no site: `numpyro.prng_key()`, and sites that `handlers.block` hides.

Each is an input of the trace, on which neither a site nor a decision nor the density may depend.
"""

from collections.abc import Iterable
from typing import Any

import jax

from pathmix.doors.numpyro import asked_for_parameters
from pathmix.errors import HiddenRandomnessError
from pathmix.frontends.numpyro.inputs import Name, inputs_behind, make_input
from pathmix.program.source import caller

_HIDDEN = "hidden"


class HiddenKeys:
    """Gives the keys of one trace, and sees to it that nothing comes of them."""

    def __init__(self) -> None:
        self._any = False

    def begin(self, token: Any) -> None:
        self._token = token

    def give(self, msg: Any) -> None:
        """A key for a message that asks for one."""
        if msg["type"] != "prng_key" or msg["value"] is not None:
            return
        msg["value"] = jax.random.key(0)  # the initial values of parameters are the same in every run
        if not asked_for_parameters():
            self._any, name = True, Name(_HIDDEN, str(caller()))
            msg["value"] = make_input(self._token, name, (), msg["value"].dtype)

    def check(self, results: Iterable[Any]) -> None:
        """That results do not depend on any."""
        for result in results if self._any else ():
            for name in inputs_behind(result):
                refuse_hidden(name)


def refuse_hidden(name: Name) -> None:
    """Refuse a key among the inputs that something depends on."""
    if name.kind == _HIDDEN:
        raise HiddenRandomnessError(
            f"something depends on the random key that numpyro.prng_key gave at {name.name}; handlers.block "
            "takes one, too, for each site that it hides",
            of_one_run=True,
        )
