"""Find paths by running the program forward (Sec. 4.3), a batch of seeds at a time."""

from dataclasses import dataclass

from pathmix.discovery.base import Discovered, OnPath
from pathmix.discovery.runs import PriorRuns
from pathmix.discovery.search import Search, SearchExpedition
from pathmix.program.program import Program
from pathmix.program.seeds import Seed


@dataclass(frozen=True)
class PriorDiscovery(PriorRuns):
    """Follow `samples` runs from the prior and keep every path among them.

    A path is found by one slow Python run, which also tells which other seeds of its batch follow
    it. `max_paths` caps how many are kept; `max_sites` and `max_seconds` bound a single run, and those that
    do not end within are left out and counted. Without `max_sites`, a run may draw ten times as many sites
    as others on average, but at least 300 and at most 10,000. Of its time, only what the program itself
    computes in its own thread counts: neither waiting nor compiling does.

    Examples:
        >>> PriorDiscovery(2_000, max_paths=50).max_paths
        50
    """

    samples: int = 1_000
    max_paths: int = 1_000

    def discover(self, program: Program, seed: Seed, on_path: OnPath) -> Discovered:
        """Run the program forward and keep the paths that its runs take."""
        return self.begin(program, seed, on_path).result()

    def begin(self, program: Program, seed: Seed, on_path: OnPath) -> SearchExpedition:
        """The same, if more runs may be wanted later."""
        search = Search(program, self.max_paths, on_path, seed)
        search.from_prior(self.samples)
        return SearchExpedition(search, self.samples)
