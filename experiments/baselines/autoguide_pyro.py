"""Pyro's own automatic guide for programs with stochastic support, trained by Pyro's own inference."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyro
import torch
from pyro import poutine
from pyro.infer import SVI, Trace_ELBO
from pyro.infer.autoguide import AutoNormalMessenger
from pyro.optim import Adam  # pyright: ignore

from experiments.baselines.automatic import no_discrete_site
from pathmix.doors.pyro import Messenger
from pathmix.frontends.pyro.lowering.dtypes import as_numpy
from pathmix.frontends.pyro.plates import subsampling, whole
from pathmix.frontends.pyro.scope import frontend_scope
from pathmix.frontends.pyro.sites import is_discrete, is_latent
from pathmix.program.program import Program
from pathmix.program.seeds import Seed
from pathmix.program.source import caller
from pathmix.program.values import SiteValues


class PyroAutomatic:
    """An `AutoNormalMessenger`. It keeps the control flow: sites are drawn as the model gets to them."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.guide = AutoNormalMessenger(self._model)

    def _model(self) -> None:
        with _Continuous(self.program):
            self.program()

    def train(
        self,
        seed: Seed,
        steps: int,
        particles: int,
        learning_rate: float,
        report: Callable[[int, float], None],
    ) -> np.ndarray:
        history = np.zeros(steps)
        with _own_store(), _seeded(seed):
            svi = SVI(
                self._model, self.guide, Adam({"lr": learning_rate}), Trace_ELBO(num_particles=particles)
            )
            for step in range(steps):
                history[step] = -svi.step()  # pyright: ignore
                report(1, history[step])
        return history

    def draw(self, seed: Seed, count: int) -> tuple[list[SiteValues], np.ndarray]:
        with _own_store(), _seeded(seed):
            draws = [self._run({}) for _ in range(count)]
        return [values for values, _ in draws], np.array([log_q for _, log_q in draws])

    def log_q(self, values: SiteValues) -> float:
        with _own_store():
            return self._run(values)[1]

    def _run(self, given: SiteValues) -> tuple[SiteValues, float]:
        """One run of the guide on the whole data: its values, and their density."""
        with torch.no_grad():
            with subsampling(whole), poutine.trace() as tracer, _PutIn(given):
                self.guide()
            nodes: dict[str, Any] = dict(tracer.trace.nodes)
            sites = {n: node for n, node in nodes.items() if node["type"] == "sample" and is_latent(node)}
            # Scales of the model are no part of the density of the values.
            log_q = sum(float(site["fn"].log_prob(site["value"]).sum()) for site in sites.values())
        return {name: as_numpy(site["value"]) for name, site in sites.items()}, log_q


class _Continuous(Messenger):
    """Refuses discrete sites, and keeps the parameters of the model at their initial values."""

    def __init__(self, program: Program) -> None:
        super().__init__()
        self.program = program

    def _pyro_sample(self, msg: Any) -> None:
        if is_latent(msg) and is_discrete(msg):
            raise no_discrete_site(msg["name"], str(caller()))

    def _pyro_param(self, msg: Any) -> None:
        if msg["name"] in self.program.params:
            msg["value"], msg["stop"] = self.program.params[msg["name"]], True


class _PutIn(Messenger):
    """SiteRows for the guide's sites, whose densities it then tells."""

    def __init__(self, values: SiteValues) -> None:
        super().__init__()
        self.values = values

    def _pyro_sample(self, msg: Any) -> None:
        if msg["name"] in self.values and is_latent(msg):
            msg["value"] = torch.as_tensor(np.array(self.values[msg["name"]]))


@contextmanager
def _own_store() -> Iterator[None]:
    """A parameter store without the user's: guides give their parameters the names of sites."""
    with frontend_scope(), pyro.get_param_store().scope():
        yield


@contextmanager
def _seeded(seed: Seed) -> Iterator[None]:
    torch.default_generator.manual_seed(int(seed.words(1)[0] >> np.uint64(1)))
    yield
