"""Values of sites, by name."""

import numpy as np

SiteValues = dict[str, np.ndarray]  # of one run
SiteRows = dict[str, np.ndarray]  # of many runs, a row for each
