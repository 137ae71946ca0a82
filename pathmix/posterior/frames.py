"""Results as data frames, where pandas is installed."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from pathmix.errors import MissingExtraError

if TYPE_CHECKING:
    import pandas as pd


def frame(columns: Mapping[str, Any], what: str) -> "pd.DataFrame":
    """A data frame; `what` was asked for it."""
    try:
        import pandas as pd
    except ModuleNotFoundError as error:
        raise MissingExtraError(what, error.name) from error
    return pd.DataFrame(dict(columns))


def of_columns(first: Mapping[str, Any], arrays: Mapping[str, np.ndarray], what: str) -> "pd.DataFrame":
    """A column for each number of each array, whose first axis is that of the rows."""
    columns = dict(first)
    for site, values in arrays.items():
        name = f"{site} (site)" if site in first else site
        if values.ndim == 1:
            columns[name] = values
        for index in np.ndindex(*values.shape[1:]) if values.ndim > 1 else ():
            columns[f"{name}[{','.join(map(str, index))}]"] = values[:, *index]
    return frame(columns, what)
