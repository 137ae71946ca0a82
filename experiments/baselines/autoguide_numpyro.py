"""NumPyro's own automatic guide, trained by NumPyro's own inference; both compile the model once."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpyro import handlers
from numpyro.infer import SVI, Trace_ELBO
from numpyro.infer.autoguide import AutoNormal
from numpyro.optim import Adam

from pathmix.doors.numpyro import Messenger
from pathmix.frontends.numpyro.scope import frontend_scope
from pathmix.frontends.numpyro.sites import freeze_plumbing, is_latent
from pathmix.program.program import Program
from pathmix.program.seeds import Seed
from pathmix.program.values import SiteValues


class NumPyroAutomatic:
    """An `AutoNormal`, for programs whose support is static."""

    def __init__(self, program: Program) -> None:
        # Parameters of the model keep their initial values, as they do everywhere.
        self.model = handlers.block(program, hide_fn=lambda site: site["type"] == "param")
        self.guide = AutoNormal(self.model)
        self.params: dict[str, Any] = {}
        self._density = jax.jit(lambda given: self._run(jax.random.key(0), given)[1])

    def train(
        self,
        seed: Seed,
        steps: int,
        particles: int,
        learning_rate: float,
        report: Callable[[int, float], None],
    ) -> np.ndarray:
        with frontend_scope():
            svi = SVI(self.model, self.guide, Adam(learning_rate), Trace_ELBO(num_particles=particles))
            result = svi.run(seed.key(), steps, progress_bar=False)
        self.params = dict(result.params)
        history = -np.asarray(result.losses, float)
        report(steps, float(history[-1]))
        return history

    def draw(self, seed: Seed, count: int) -> tuple[list[SiteValues], np.ndarray]:
        with frontend_scope():
            values, log_q = jax.jit(jax.vmap(lambda key: self._run(key, {})))(
                jax.random.split(seed.key(), count)
            )
        columns = {name: np.asarray(column) for name, column in values.items()}
        return [{name: column[row] for name, column in columns.items()} for row in range(count)], np.asarray(
            log_q
        )

    def log_q(self, values: SiteValues) -> float:
        with frontend_scope():
            given = {name: jnp.asarray(value, float) for name, value in values.items()}
            return float(self._density(given))

    def _run(self, key: jax.Array, given: dict[str, Any]) -> tuple[dict[str, jax.Array], jax.Array]:
        """One run of the guide on the whole data: its values, and their density."""
        with (
            handlers.trace() as trace,
            handlers.seed(rng_seed=key),
            handlers.substitute(data={**self.params, **given}),
            _WholeData(),
        ):
            self.guide()
        sites = {name: site for name, site in trace.items() if site["type"] == "sample" and is_latent(site)}
        log_q = sum(jnp.sum(site["fn"].log_prob(site["value"])) for site in sites.values())
        return {name: site["value"] for name, site in sites.items()}, jnp.asarray(log_q)


class _WholeData(Messenger):
    """Plates are not subsampled."""

    def process_message(self, msg: Any) -> None:
        freeze_plumbing(msg)
