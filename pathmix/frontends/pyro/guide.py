"""A posterior as a Pyro guide: for `pyro.infer.Predictive`, `Trace_ELBO`, importance sampling, ..."""

from collections.abc import Callable, Collection
from typing import Any

import numpy as np
import pyro
import torch
from pyro import distributions as dist

from pathmix.doors.pyro import Messenger, site_is_subsample
from pathmix.errors import ValueLookupError
from pathmix.frontends.pyro.sites import is_latent, is_observation, marks_fixed
from pathmix.program.program import JointDraw
from pathmix.program.source import caller


class PyroGuide:
    """Draws from the posterior, as `pyro.sample` statements.

    One call draws a path and the values of its sites, in the plates that the model puts them in. The
    density of all of them together is that of an auxiliary site, `_pathmix_path`. Sites that the drawn
    path does not have are auxiliary too, and zero, so that draws of different paths can be stacked.
    """

    def __init__(
        self, model: Callable[..., Any], shapes: dict[str, tuple[int, ...]], draw: Callable[[int], JointDraw]
    ) -> None:
        self.model, self.shapes, self.draw = model, shapes, draw

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        seed = int(torch.randint(2**62, ()))  # so that pyro.set_rng_seed makes draws repeatable
        with pyro.poutine.block():  # to draw may mean to run the model
            drawn = self.draw(seed)
        place = torch.tensor(drawn.path, dtype=torch.float64)  # its density takes this type
        _auxiliary("_pathmix_path", dist.Delta(place, log_density=drawn.log_density))
        with _PutIn(drawn.values, drawn.open_sites, self.shapes) as put_in:
            self.model(*args, **kwargs)
        for name, shape in self.shapes.items():
            if name not in put_in.done:
                # One that this path observes is at its data, where `Predictive` then keeps it.
                value = put_in.data.get(name, torch.zeros(shape))
                _auxiliary(name, dist.Delta(value, event_dim=value.ndim))


class _PutIn(Messenger):
    """Gives latent sites their values, as point masses, and hides every other site.

    A site that predictions leave open is the model's to draw. If other paths infer it, it is drawn here, as
    the model would: then it has a value on every path.
    """

    def __init__(
        self, values: dict[str, np.ndarray], open_sites: Collection[str], inferred: Collection[str]
    ) -> None:
        super().__init__()
        self.values, self.open_sites, self.inferred = values, open_sites, inferred
        self.indices: dict[str, torch.Tensor] = {}
        self.done: set[str] = set()
        self.data: dict[str, torch.Tensor] = {}

    def __enter__(self) -> "_PutIn":
        super().__enter__()
        return self

    def _pyro_sample(self, msg: Any) -> None:
        if site_is_subsample(msg):
            return
        marks_fixed(msg)
        name = msg["name"]
        if not is_latent(msg):
            msg["stop"] = True
            if is_observation(msg):
                self.data[name] = msg["value"]
        elif name in self.values:
            event_dim = msg["fn"].event_dim
            value = self._in_plates(msg, _as_torch(self.values[name]), event_dim)
            msg["fn"] = dist.Delta(value, event_dim=event_dim)
            msg["value"], msg["done"] = value, True
            self.done.add(name)
        elif name not in self.open_sites:
            raise ValueLookupError(
                f"With these arguments the model draws {name!r} at {caller()}, which the path of the guide's "
                f"draw does not have; it has {sorted(self.values)}."
            )
        elif name in self.inferred:
            self.done.add(name)
        else:
            msg["stop"] = True

    def _pyro_post_sample(self, msg: Any) -> None:
        if site_is_subsample(msg):
            self.indices[msg["name"]] = msg["value"]

    def _in_plates(self, msg: Any, value: torch.Tensor, event_dim: int) -> torch.Tensor:
        """The part of a value that a minibatch of the model's plates asks for."""
        for frame in msg["cond_indep_stack"]:
            if frame.vectorized and frame.full_size != frame.size:
                value = value.index_select(frame.dim - event_dim, self.indices[frame.name])
        return value


def _auxiliary(name: str, distribution: Any) -> None:
    pyro.sample(name, distribution, infer={"is_auxiliary": True})


def _as_torch(values: np.ndarray) -> torch.Tensor:
    tensor = torch.as_tensor(np.array(values))
    return tensor.to(torch.get_default_dtype()) if tensor.is_floating_point() else tensor
