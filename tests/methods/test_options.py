"""Option objects are checked whole when a method is made: what lacks a member is refused by its name."""

from types import SimpleNamespace

import optax
import pytest

import pathmix
from experiments.baselines import BBVI, WholeAutoGuide
from pathmix.allocation import Allocation
from pathmix.discovery import Discovery
from pathmix.engine.progress import ProgressBar
from pathmix.errors import OptionError
from pathmix.methods.dcc import DCC, NUTS
from pathmix.methods.dcc.kernels import Kernel
from pathmix.methods.members import missing_members
from tests.zoo import programs

MEMBERS = {
    Discovery: ("discovery", pathmix.PriorDiscovery(), ["discover", "limits"]),
    Allocation: ("allocation", pathmix.Uniform(100), ["budget", "iterations", "phases", "survivors"]),
    pathmix.Guide: ("guide", pathmix.MeanField(), ["centre", "init", "log_prob", "noise_size", "sample"]),
    pathmix.Progress: ("progress", ProgressBar(wanted=False), ["advance", "budget", "done", "stage"]),
    Kernel: ("kernel", NUTS(), ["advance", "burn_in", "init", "noise_size"]),
}
METHODS = {
    "discovery": [pathmix.SDVI, DCC, BBVI, WholeAutoGuide],
    "allocation": [pathmix.SDVI],
    "guide": [pathmix.SDVI],
    "progress": [pathmix.SDVI, DCC],
    "kernel": [DCC],
}


class Parts(SimpleNamespace):
    """An object with any members, and hashable, as guides and kernels are."""

    __hash__ = object.__hash__


def parts_of(whole, names):
    return Parts(**{name: getattr(whole, name) for name in names})


@pytest.mark.parametrize("protocol", MEMBERS)
def test_the_members_of_a_protocol_are_known(protocol):
    _, whole, names = MEMBERS[protocol]
    assert sorted(missing_members(object(), protocol)) == names
    assert missing_members(whole, protocol) == []


@pytest.mark.parametrize("protocol", MEMBERS)
def test_an_object_that_lacks_a_member_is_refused_by_its_name(protocol):
    option, whole, names = MEMBERS[protocol]
    for method in METHODS[option]:
        method(programs.one_path, **{option: parts_of(whole, names)})
        for lacking in names:
            rest = parts_of(whole, [name for name in names if name != lacking])
            with pytest.raises(OptionError, match=rf"^{option} .* it lacks {lacking}\.$"):
                method(programs.one_path, **{option: rest})


@pytest.mark.parametrize("protocol", MEMBERS)
def test_a_method_that_cannot_be_called_is_refused(protocol):
    option, whole, names = MEMBERS[protocol]
    for name in names:
        if callable(getattr(whole, name)):
            broken = parts_of(whole, names)
            setattr(broken, name, None)
            for method in METHODS[option]:
                with pytest.raises(OptionError, match=rf"it lacks a callable {name}\.$"):
                    method(programs.one_path, **{option: broken})


@pytest.mark.parametrize("method", [pathmix.SDVI, BBVI])
@pytest.mark.parametrize(
    ("optimizer", "lacking"),
    [
        (optax.GradientTransformation(optax.adam(0.1).init, None), "update"),  # pyright: ignore
        (optax.GradientTransformation(None, optax.adam(0.1).update), "init"),  # pyright: ignore
        (optax.adam, "init, update"),
        (0.01, "init, update"),
    ],
)
def test_an_optimiser_that_lacks_a_function_is_refused(method, optimizer, lacking):
    with pytest.raises(OptionError, match=rf"optax\.adam\(0\.01\), not .*: it lacks {lacking}\.$"):
        method(programs.one_path, optimizer=optimizer)


def test_a_number_in_the_place_of_an_object_names_the_object_to_write():
    for method in METHODS["discovery"]:
        with pytest.raises(OptionError, match=r"such as pathmix\.PriorDiscovery\(2_500\), not 2500"):
            method(programs.one_path, discovery=2_500)
        with pytest.raises(OptionError, match=r"such as pathmix\.PriorDiscovery\(1_000\), not 'all'"):
            method(programs.one_path, discovery="all")
    with pytest.raises(OptionError, match=r"such as pathmix\.SuccessiveHalving\(budget=10_000\), not 10000"):
        pathmix.SDVI(programs.one_path, allocation=10_000)  # pyright: ignore
    with pytest.raises(OptionError, match=r"object, such as pathmix\.SuccessiveHalving\(budget=100_000\)"):
        pathmix.SDVI(programs.one_path, allocation=pathmix.Uniform)  # pyright: ignore


def test_a_guide_chosen_by_path_is_checked_too():
    def run(guide):
        options = {"discovery": pathmix.PriorDiscovery(8), "allocation": pathmix.Uniform(10)}
        pathmix.SDVI(programs.one_path, guide=lambda slp: guide, progress=False, **options).run(0, 0.5)

    with pytest.raises(OptionError, match=r"guide= was called for a path.*it lacks log_prob\.$"):
        run(parts_of(pathmix.MeanField(), ["centre", "init", "noise_size", "sample"]))

    class Structured(SimpleNamespace):
        def for_layout(self, layout):
            return None

    with pytest.raises(OptionError, match=r"for_layout\(\) of the guide gave None.*it lacks .*log_prob"):
        run(Structured())

    class Unhashable(pathmix.MeanField):
        __hash__ = None  # pyright: ignore

    with pytest.raises(OptionError, match="not hashable"):
        run(Unhashable())


@pytest.mark.parametrize(
    "options", [{"share": "half"}, {"share": 1.5}, {"borrow": "yes"}, {"screening": None}]
)
def test_the_options_of_starts_are_checked(options):
    with pytest.raises(OptionError, match=rf"Starts\({next(iter(options))}=\.\.\.\)"):
        pathmix.Starts(3, **options)
