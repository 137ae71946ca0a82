"""SDVI as the paper has it, where this library has other defaults."""

import optax

import pathmix

_PAPER = {"weights": "elbo", "guide": "meanfield", "starts": 1, "stop_early": False}


def sdvi(model, settings, discovery, allocation, *, particles, **options):
    """With the settings of an experiment, and options of its own."""
    return pathmix.SDVI(
        model,
        discovery=discovery,
        allocation=allocation,
        optimizer=optax.adam(settings["learning_rate"]),
        particles=particles,
        elbo_samples=settings["final_draws"],
        **_PAPER | options,
    )
