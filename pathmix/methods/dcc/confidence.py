"""Which path to visit next: the upper-confidence rule of DCC (Zhou et al. 2020, Sec. 5.3 and App. F).

With S_k visits so far, the path with the largest

    1/S_k [ (1 - delta) t_k / max t + delta p_k / max p + beta log(sum S) / sqrt(S_k) ]

comes next. t_k = sqrt(Z_k^2 + (1 + kappa) s_k^2), with the weights' variance s_k^2, is what a path
contributes to the error of the whole; p_k is the chance that one of its next weights beats all weights
so far, as if they were log-normal; and the last term is optimism about what was seldom tried.
"""

import math
from collections.abc import Sequence

import numpy as np

from pathmix.methods.dcc.pimais import Evidence

# The values of the DCC paper.
_DELTA, _BETA, _KAPPA = 0.5, 1.0, 0.1
_LOOKAHEAD = 1_000  # next weights


def next_path(evidence: Sequence[Evidence], visits: Sequence[int]) -> int:
    """The position of the most useful path; all have been visited at least once."""
    share = np.asarray(visits, float)
    log_t = np.array([_log_error(found) for found in evidence])
    top = max(found.largest for found in evidence)
    p = np.array([_chance(found, top) for found in evidence])
    exploit = np.exp(log_t - log_t.max()) if np.isfinite(log_t.max()) else np.ones(len(share))
    explore = p / p.max() if p.max() > 0 else np.ones(len(share))
    optimism = np.log(share.sum()) / np.sqrt(share)
    return int(np.argmax(((1 - _DELTA) * exploit + _DELTA * explore + _BETA * optimism) / share))


def _log_error(found: Evidence) -> float:
    return 0.5 * float(np.logaddexp(2 * found.log_mean, np.log1p(_KAPPA) + found.log_variance))


def _chance(found: Evidence, top: float) -> float:
    """That one of the next weights is above the top."""
    if found.positive < 3:
        return 0.0
    mean = found.sum_logs / found.positive
    variance = found.sum_square_logs / found.positive - mean**2
    if variance <= 0:
        return 0.0
    above = 0.5 * math.erfc((top - mean) / math.sqrt(2 * variance))
    return -math.expm1(_LOOKAHEAD * math.log1p(-above)) if above < 1 else 1.0
