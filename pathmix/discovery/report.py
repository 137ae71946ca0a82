"""What discovery saw, and what it may have missed."""

from dataclasses import dataclass

from pathmix.discovery import Discovered


@dataclass(frozen=True)
class DiscoveryReport:
    """What discovery saw.

    Attributes:
        samples: prior runs.
        runs: slow Python runs of the program.
        dropped_mass: of paths that were seen, and cut off by `max_paths`.
        log_d_min: the smallest log-density among the prior draws that were tried.
        unseen_mass: prior mass of the paths that were never seen: an estimate.
        unseen_bound: what it is at most, with a confidence of 95%.
        unseen_is_exact: both are the mass itself.
        failed_runs: prior runs that the program ended with an error.
        endless_runs: prior runs that were given up, beyond `max_sites` or `max_seconds`.
        round_shares: of the weight, that the new paths of each guided round had.
    """

    samples: int
    runs: int
    dropped_mass: float
    log_d_min: float
    unseen_mass: float
    unseen_bound: float
    unseen_is_exact: bool
    failed_runs: int
    endless_runs: int = 0
    round_shares: tuple[float, ...] = ()

    @staticmethod
    def of(
        found: Discovered, *, log_d_min: float, later_runs: int = 0, later_mass: float = 0.0
    ) -> "DiscoveryReport":
        """Of a discovery, after which a method may have found more paths by itself."""
        return DiscoveryReport(
            samples=found.samples,
            runs=found.runs + later_runs,
            dropped_mass=found.dropped_mass,
            log_d_min=log_d_min,
            unseen_mass=max(found.unseen_mass - later_mass, 0.0),
            unseen_bound=max(found.unseen_bound - later_mass, 0.0),
            unseen_is_exact=found.unseen_is_exact,
            failed_runs=found.failed_runs,
            endless_runs=found.endless_runs,
            round_shares=found.round_shares,
        )

    @property
    def unseen(self) -> str:
        """The unseen mass in a line, and what the last rounds still found."""
        told = f"Unseen: at most {_percent(self.unseen_bound)} of the prior mass (95%)"
        if self.unseen_is_exact:
            told = f"Unseen: {_percent(self.unseen_mass)} of the prior mass, exactly"
        if not self.round_shares:
            return told
        last = ", ".join(map(_percent, self.round_shares[-3:]))
        return f"{told}; the last of {len(self.round_shares)} guided rounds found {last} of the weight"


def _percent(share: float) -> str:
    return f"{100 * share:.2g}%" if share < 0.995 else "100%"
