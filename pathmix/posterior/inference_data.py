"""Posteriors for ArviZ, of either generation."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from pathmix.errors import MissingExtraError
from pathmix.posterior.draws import Draws

if TYPE_CHECKING:
    from pathmix.posterior.posterior import Posterior

_TAKEN = ("chain", "draw")  # names of dimensions; sites of these names get another
Groups = dict[str, Mapping[str, np.ndarray]]


def as_arviz(posterior: "Posterior", seed: Any, count: int) -> Any:
    """A DataTree, or an InferenceData where arviz_base is not installed."""
    draws = posterior.sample(seed, count)
    weights = np.array([path.weight for path in posterior.paths])
    groups: Groups = {
        "posterior": draws,
        "sample_stats": {"path_weight": weights[draws.path], "path_index": draws.path},
    }
    if posterior._program is not None:
        groups |= _of_data(posterior, draws, seed, count)
    chains = {
        name: {
            f"{site}_" if site in _TAKEN else site: _plain(
                values if name == "observed_data" else values[None]
            )
            for site, values in group.items()
        }
        for name, group in groups.items()
    }
    return _with_paths(_converted(chains), draws)


def _plain(values: np.ndarray) -> np.ndarray:
    """Truth values as numbers, with which ArviZ can compute."""
    return values.astype(int) if values.dtype == bool else values


def _of_data(posterior: "Posterior", draws: Draws, seed: Any, count: int) -> Groups:
    data = posterior._data(draws)
    if not data:
        return {}
    replicates = posterior.predict(seed, count)
    likelihoods = posterior.log_likelihood(seed, count, pointwise=True)
    return {
        "posterior_predictive": {name: replicates[name] for name in data if name in replicates},
        "log_likelihood": {
            name: values.reshape(count, *data[name].shape) if values[0].size == data[name].size else values
            for name, values in likelihoods.items()
        },
        "observed_data": data,
    }


def _converted(groups: dict[str, Any]) -> Any:
    try:
        from arviz_base import from_dict
    except ModuleNotFoundError:
        try:
            import arviz
        except ModuleNotFoundError as error:
            raise MissingExtraError("posterior.to_arviz()", "arviz_base") from error
        return arviz.from_dict(**groups)
    return from_dict(groups)


def _with_paths(data: Any, draws: Draws) -> Any:
    """With the path of each draw beside it."""
    labels = np.array(draws.labels, dtype=str)[draws.path]
    coordinates = {
        "path": (("chain", "draw"), draws.path[None]),
        "label": (("chain", "draw"), labels[None]),
    }
    for name in ("posterior", "posterior_predictive", "log_likelihood", "sample_stats"):
        if name not in data:
            continue
        group = data[name]
        own = {key: value for key, value in coordinates.items() if key not in group}  # unless a site has it
        if hasattr(group, "to_dataset"):  # a node of a tree
            group.dataset = group.to_dataset().assign_coords(own)
        else:
            setattr(data, name, group.assign_coords(own))
    return data
