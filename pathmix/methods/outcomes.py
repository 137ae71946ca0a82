"""What came of a path, once it was trained and weighed."""

import math

from pathmix.discovery.contenders import Contender
from pathmix.engine.executables import Executables
from pathmix.evidence.component import particle_draws
from pathmix.methods.combine import Outcome
from pathmix.posterior.components import Component
from pathmix.posterior.fitted import FittedGuide
from pathmix.target.layout import layout_of
from pathmix.training.fit import PathFit
from pathmix.training.truncated import truncated_guide
from pathmix.training.verdict import verdict


def outcome(contender: Contender[PathFit], executables: Executables) -> Outcome:
    """What the posterior is told, with draws that are compiled by these executables."""
    fit = contender.work
    status, message = verdict(fit)
    return Outcome(
        evidence=fit.evidence,
        elbo=fit.elbo,
        elbo_error=math.nan if fit.estimate is None else fit.estimate.error,
        acceptance=0.0 if fit.estimate is None else fit.estimate.acceptance,
        steps=fit.steps,
        evaluations=fit.evaluations,
        status=status,
        message=message,
        component=_component(contender, executables),
        gradient=fit.gradient.estimator,
        guide=FittedGuide(
            fit.guide, None if fit.start is None else fit.params, layout_of(contender.target.coordinates)
        ),
        history=fit.history,
        phases=() if fit.start is None else tuple(fit.start.phases),
    )


def _component(contender: Contender[PathFit], executables: Executables) -> Component:
    fit = contender.work
    if (found := fit.evidence).particles is not None:
        return particle_draws(contender.target, found.particles, found.log_evidence, executables)
    return truncated_guide(
        contender.target,
        fit.guide,
        None if fit.start is None else fit.params,
        executables,
        contender.label,
        acceptance=0.0 if fit.estimate is None else fit.estimate.acceptance,
        weighed=fit.estimate is not None and fit.estimate.zero_density > 0,
        tries=fit.options.rejection_tries,
    )
