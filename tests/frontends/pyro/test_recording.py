"""What is heard of a run by the methods that ask tensors for numbers, and where it is made again."""

import threading
from functools import partial

import numpy as np
import pyro
import pyro.distributions as dist
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from pathmix.engine.precision import Engine, engine_scope
from pathmix.frontends.pyro.record import record
from pathmix.frontends.pyro.scope import frontend_scope
from pathmix.frontends.recognise import bind
from pathmix.program.failures import FailedRun
from pathmix.program.seeds import Seed
from pathmix.program.wishes import Wishes

THIRDS = torch.ones(3) / 3


def kind():
    return pyro.sample("kind", dist.Categorical(THIRDS))


def numbers():
    x = pyro.sample("x", dist.Normal(torch.zeros(2), 1.0).to_event(1))
    k = kind()
    found = int(k), (x[0] > 0).item(), torch.equal(x, x), x.tolist(), x.numpy().sum(), 2 in THIRDS, f"{k}"
    scale = 2.0 if torch.allclose(x, x) and found[1] else 1.0
    pyro.sample("y", dist.Normal(0.0, scale))


def loops():
    for i in range(kind()):
        pyro.sample(f"x_{i}", dist.Normal(0.0, 1.0))


def mixes():
    """PyTorch multiplies no matrices of different precision."""
    x = pyro.sample("x", dist.Normal(torch.zeros(3, dtype=torch.float64), 1.0).to_event(1))
    if (torch.ones(3, 3, dtype=torch.float32) @ x).sum() > 0:
        pyro.sample("y", dist.Normal(0.0, 1.0))


def sized():
    """PyTorch takes a tensor for a number, and looks at it by itself."""
    k = kind()
    ones = torch.ones(2, 2)
    x = (
        torch.arange(6.0)[:k].sum()
        + torch.zeros(k.long() + 1).sum()
        + torch.tensordot(ones, ones, dims=k % 2).sum()
    )
    pyro.sample("y", dist.Normal(x, 1.0))


def own_name():
    if is_equal(kind(), torch.tensor(1)):  # noqa: F821
        pyro.sample("y", dist.Normal(0.0, 1.0))


def fails_at_times():
    if pyro.sample("x", dist.Normal(0.0, 1.0)) > 0:
        raise ValueError("unlucky")


class Counting(TorchDispatchMode):
    count = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.count += 1
        return func(*args, **(kwargs or {}))


def mode_of_its_own():
    coin = pyro.sample("coin", dist.Bernoulli(0.5))
    with Counting() as counting:
        x = pyro.sample("x", dist.Normal(coin, 1.0))
    assert counting.count
    pyro.sample("y", dist.Normal(0.0, 1.0 + x**2))


def bound(model):
    return bind(model, ())


def explored(program):
    with engine_scope(Engine("float64", cache=False)):
        return list(program.frontend.explore(program, Seed.of(0), np.ones(40, bool)))


@pytest.mark.parametrize(
    ("model", "watched"),
    [(numbers, set()), (sized, {"functions"}), (loops, {"functions"}), (mixes, {"functions"})],
)
def test_runs_are_the_same_by_methods_and_by_functions(model, watched):
    program = bound(model)
    with engine_scope(Engine("float64", cache=False)), frontend_scope():
        quick = record(program, 1, Wishes())
        whole = record(bound(model), 1, Wishes(), by_functions=True)
    assert program.watched == watched
    assert quick.path == whole.path and quick.places == whole.places and quick.looked_at == whole.looked_at
    assert quick.values.keys() == whole.values.keys()
    assert all(np.array_equal(quick.values[name], whole.values[name]) for name in whole.values)


def test_a_name_of_the_users_own_for_a_function_that_looks(monkeypatch):
    monkeypatch.setitem(own_name.__globals__, "is_equal", torch.equal)
    program = bound(own_name)
    assert all(len(run.path.decisions) == 1 for run in explored(program))
    assert program.watched == {"functions"}


def test_runs_that_fail_are_made_again_and_tell_what_happened():
    program, failed = bound(fails_at_times), []
    with engine_scope(Engine("float64", cache=False)):
        (run,) = program.frontend.explore(program, Seed.of(0), np.ones(40, bool), on_failure=failed.append)
    assert {str(failure.error) for failure in failed} == {"unlucky"}
    assert 0 < run.followed.sum() < 40 and not program.watched
    assert all(isinstance(failure, FailedRun) for failure in failed)


def test_a_dispatch_mode_of_the_programs_own_ends_where_it_should():
    runs = explored(bound(mode_of_its_own))
    assert {dict(run.path.pinned)["coin"] for run in runs} == {0, 1}
    assert sum(run.followed.sum() for run in runs) == 40


def test_methods_are_pytorchs_again_after_any_end_and_in_other_threads():
    seen = []

    def look():
        seen.append(
            (bool(torch.tensor(1.0) > 0), torch.tensor([torch.tensor(2.0)]).tolist(), repr(torch.ones(())))
        )

    def with_a_thread():
        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
        raise RuntimeError("ended")

    before = dict(vars(torch.Tensor)), torch.tensor, torch.equal
    with pytest.raises(RuntimeError, match="ended"):
        explored(bound(with_a_thread))
    assert (dict(vars(torch.Tensor)), torch.tensor, torch.equal) == before
    assert set(map(str, seen)) == {str((True, [2.0], "tensor(1.)"))}


def referring():
    """Programs that came by a function before pathmix did, each in another way."""
    equal, held, item = torch.equal, {"same": [torch.equal]}, torch.Tensor.item

    class Likeness:
        same = staticmethod(torch.equal)

    def by_closure():
        if equal(kind(), torch.tensor(1)):
            pyro.sample("y", dist.Normal(0.0, 1.0))

    def by_default(same=torch.equal):
        if same(kind(), torch.tensor(1)):
            pyro.sample("y", dist.Normal(0.0, 1.0))

    def by_container():
        if held["same"][0](kind(), torch.tensor(1)):
            pyro.sample("y", dist.Normal(0.0, 1.0))

    def by_class():
        if Likeness.same(kind(), torch.tensor(1)):
            pyro.sample("y", dist.Normal(0.0, 1.0))

    def by_method():
        if item(kind()) == 1:
            pyro.sample("y", dist.Normal(0.0, 1.0))

    def inner():
        return by_closure()

    return [
        by_closure,
        by_default,
        by_container,
        by_class,
        by_method,
        inner,
        partial(by_default, torch.equal),
    ]


@pytest.mark.parametrize("model", referring(), ids=lambda model: getattr(model, "__name__", "partial"))
def test_functions_that_the_program_refers_to(model):
    """Their calls are heard, so that paths are those of `torch.equal` itself."""
    program = bound(model)
    runs = explored(program)
    assert program.watched >= {"functions"}
    found = {(dict(run.path.pinned)["kind"], "y" in run.path.addresses) for run in runs}
    assert found == {(0, False), (1, True), (2, False)}
