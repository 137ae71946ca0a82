"""What became of a sampled path, in a word and a sentence."""

from pathmix.methods.dcc.chains import PathChains
from pathmix.posterior.status import Status

_FEW = 100  # effective draws


def verdict(chains: PathChains) -> tuple[Status, str]:
    found = chains.evidence
    if found.draws == 0:
        return Status.UNTRAINED, "The run ended before this path's turn; it carries no weight."
    if found.infinite or found.broken == found.draws:
        return Status.NAN, (
            f"The log-density is NaN or infinite at {found.broken + found.infinite} of {found.draws} points; "
            "the path carries no weight. Look for 0/0, the log of a negative number, or a covariance that is "
            "not positive definite."
        )
    if found.positive == 0:
        return Status.ZERO, (
            f"None of {found.draws} points has a positive density (log-density -inf); the path carries no "
            "weight."
        )
    if chains.target.dim == 0:
        return Status.EXACT, "No free site; the evidence of this path is exact."
    text = (
        f"{chains.visits} visits; the evidence rests on {found.draws} importance draws, worth about "
        f"{found.effective_draws:.0f}."
    )
    if found.broken:
        text += f" {found.broken} of them had a density that is NaN, and count as zero."
    return Status.OK, text


def uncertain(chains: PathChains) -> bool:
    """Whether the evidence rests on few draws."""
    return chains.target.dim > 0 and chains.evidence.effective_draws < _FEW
