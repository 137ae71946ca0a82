"""The paths of a program, without fitting any."""

from pathmix.discovery import PriorDiscovery
from pathmix.engine.precision import engine_scope
from pathmix.frontends.recognise import bind
from pathmix.program.seeds import Seed
from pathmix.regions.region import read_region
from pathmix.target.target import make_target


def discover(model, *args, seed=0, precision="float64", on_path=lambda slp, draws: None, **options):
    """What discovery from the prior finds."""
    with engine_scope(precision):
        discovery = PriorDiscovery(**options)
        return discovery.discover(bind(model, args, {}, discovery.limits), Seed.of(seed), on_path)


def target_of(path):
    """The density of a discovered path on its vector."""
    return make_target(path.slp, read_region(path.slp, path.draws), path.draws)
