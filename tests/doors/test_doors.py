"""Each use of a library beyond its public interface still does what we use it for; a failure names it."""

import subprocess
import sys
import threading

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pyro
import pyro.distributions as pyro_dist
import pytest
import torch
from numpyro.contrib.control_flow import scan
from numpyro.contrib.control_flow.scan import scan_wrapper
from torch.func import vmap
from torch.fx.experimental.proxy_tensor import make_fx

from pathmix.doors import jax as of_jax
from pathmix.doors import numpy as of_numpy
from pathmix.doors import numpyro as of_numpyro
from pathmix.doors import pyro as of_pyro
from pathmix.doors import torch as of_torch


def elsewhere(task):
    """What a task gives in another thread."""
    results = []
    thread = threading.Thread(target=lambda: results.append(task()))
    thread.start()
    thread.join()
    return results[0]


def test_jax_tells_whether_it_transforms():
    seen = []
    jax.jit(lambda x: seen.append(of_jax.is_transforming()) or x)(1.0)
    assert seen == [True] and not of_jax.is_transforming()
    assert of_jax.has_started()


def test_tracers_know_their_trace():
    def outer(x):
        def inner(y):
            assert of_jax.trace_of(y) is not of_jax.trace_of(x)
            return y

        assert isinstance(x, of_jax.Tracer) and of_jax.trace_of(x) is of_jax.trace_of(2 * x)
        jax.vmap(inner)(jnp.ones(2))
        return x

    jax.vmap(outer)(jnp.ones(3))


def test_jaxprs_are_evaluated_pruned_and_rebuilt():
    closed = jax.make_jaxpr(lambda x, y: (x * 3.0, jnp.sin(y)))(1.0, 2.0)
    jaxpr = closed.jaxpr.replace(outvars=closed.jaxpr.outvars[:1], debug_info=of_jax.nameless(closed.jaxpr))
    found, used = of_jax.pruned(jaxpr, [False, True])
    assert used == [True, True] and len(found.eqns) == 1
    assert of_jax.evaluate(found, closed.consts, 2.0, 0.0) == [6.0]
    (number,) = (atom for atom in found.eqns[0].invars if isinstance(atom, of_jax.Literal))
    assert of_jax.literal(number) == 3.0


def test_tracers_lead_to_what_they_were_computed_from():
    data, seen = jnp.arange(3.0), {}

    def function(x):
        y = jnp.sin(x) * data
        equation = of_jax.computed_by(y)
        assert of_jax.computed_by(x) is None and of_jax.atom_of(y) in equation.outvars
        first, last = of_jax.operands(equation)
        assert of_jax.computed_by(first) is not None
        seen.update(name=equation.primitive.name, captured=of_jax.captured(last))
        part = of_jax.alone(equation)
        with of_jax.untraced():
            assert not of_jax.is_transforming()
            seen["result"] = of_jax.evaluate(part, (), np.full(3, 2.0), np.full(3, 2.0))[0]
        return y

    jax.make_jaxpr(function)(jnp.ones(3))
    assert seen["name"] == "mul"
    np.testing.assert_array_equal(seen["captured"], data)
    np.testing.assert_array_equal(seen["result"], [4, 4, 4])


def test_tracers_are_answered_for_in_one_thread_only():
    def asked(x):
        with of_jax.answered({"__bool__": lambda _: True, "item": lambda _: NotImplemented}):
            assert bool(x > 0)
            with pytest.raises(jax.errors.ConcretizationTypeError):
                x.item()
            assert elsewhere(refuses)
        return x

    def refuses():
        try:
            jax.jit(lambda x: 1 if x > 0 else 2)(1.0)
        except jax.errors.TracerBoolConversionError:
            return True
        return False

    jax.vmap(asked)(jnp.ones(3))
    assert refuses()


def test_python_is_called_from_compiled_code():
    bind = of_jax.called_on_the_host(
        "doubled_in_a_test",
        lambda **_: [of_jax.ShapedArray((2,), jnp.float32)],
        lambda factor: lambda x: (factor * x,),
    )
    (result,) = jax.jit(lambda x: bind(x, factor=2))(jnp.ones(2, jnp.float32))
    np.testing.assert_array_equal(result, [2, 2])


class Seen(of_numpyro.Messenger):
    messages = ()

    def __enter__(self):
        super().__enter__()
        return self

    def process_message(self, msg):
        self.messages = (*self.messages, msg)


def test_numpyro_messages_have_what_is_read():
    with numpyro.handlers.seed(rng_seed=0), Seen() as seen, numpyro.plate("rows", 3):
        numpyro.sample("x", dist.Normal(0, 1))
        assert of_numpyro.active_plates() == ["rows"]
        assert seen in of_numpyro.handlers()
    message = next(msg for msg in seen.messages if msg["name"] == "x")
    assert set(of_numpyro.MESSAGE) <= set(message)
    assert [frame.name for frame in message["cond_indep_stack"]] == ["rows"]
    assert not of_numpyro.in_control_flow(message)


def test_numpyro_scans_are_told_from_other_control_flow():
    def step(carry, _):
        return numpyro.sample("x", dist.Normal(carry, 1)), None

    result = scan_wrapper(step, 0.0, jnp.arange(3), None, False, rng_key=jax.random.key(0))
    assert [(msg["name"], msg["value"].shape) for msg in of_numpyro.gathered(result)] == [("x", (3,))]
    with numpyro.handlers.seed(rng_seed=0), Seen() as seen:
        scan(step, 0.0, jnp.arange(3))
    kinds = {msg["type"]: msg for msg in seen.messages}
    assert of_numpyro.is_scan(kinds["control_flow"])
    assert of_numpyro.in_control_flow(kinds["sample"])


@pytest.mark.parametrize("given", [False, True])
def test_numpyro_validation_is_left_as_it_was(given):
    before = dist.Distribution._validate_args
    try:
        dist.Distribution.set_default_validate_args(given)
        with of_numpyro.unvalidated():
            dist.Normal(0, -1)
        assert dist.Distribution._validate_args is given
    finally:
        dist.Distribution.set_default_validate_args(before)


@pytest.mark.parametrize("door", [of_numpyro, of_pyro])
def test_statements_are_seen(door):
    names = []
    with door.watch(names.append):
        if door is of_pyro:
            pyro.sample("x", pyro_dist.Normal(0.0, 1.0))
        else:
            numpyro.sample("x", dist.Normal(0, 1), rng_key=jax.random.key(0))
    assert names == ["x"]


def test_pyro_messages_have_what_is_read():
    class Watcher(of_pyro.Messenger):
        def _pyro_sample(self, msg):
            messages[msg["name"]] = dict(msg)

    messages = {}
    with Watcher(), pyro.plate("rows", 4, subsample_size=2):
        pyro.sample("x", pyro_dist.Normal(0.0, 1.0))
        pyro.factor("f", torch.zeros(()))
        assert of_pyro.active_plates() == ["rows"]
    assert set(of_pyro.MESSAGE) <= set(messages["x"])
    assert [frame.name for frame in messages["x"]["cond_indep_stack"]] == ["rows"]
    assert [name for name, msg in messages.items() if of_pyro.site_is_subsample(msg)] == ["rows"]
    assert [name for name, msg in messages.items() if of_pyro.site_is_factor(msg)] == ["f"]


def test_pyro_plates_take_the_chosen_rows_in_one_thread_only():
    def rows():
        with pyro.plate("rows", 4, subsample_size=2) as chosen:
            return chosen

    with of_pyro.subsampling(lambda name, size, part: torch.tensor([3, 1]) if name == "rows" else None):
        assert rows().tolist() == [3, 1]
        pyro.set_rng_seed(0)
        assert any(elsewhere(rows).tolist() != [3, 1] for _ in range(8))
    with of_pyro.subsampling(lambda *_: None):
        assert rows().tolist() == [0, 1, 2, 3]


def test_torch_tells_whether_it_traces():
    seen = []

    def look(x):
        seen.append((of_torch.is_traced(), of_torch.functorch_level() is not None))
        return x + 1

    vmap(look)(torch.ones(2))
    make_fx(look)(torch.ones(2))
    assert seen[0] == (True, True) and seen[1][0] and not of_torch.is_traced()


def test_torch_follows_writes_into_wrapped_tensors():
    data = torch.zeros(2)

    def write(x):
        wrapped = of_torch.functional(data)
        assert of_torch.is_functional(wrapped) and not of_torch.is_functional(data)
        wrapped += x
        return wrapped.clone()

    np.testing.assert_array_equal(of_torch.functionalized(write, torch.ones(2)), [1, 1])
    np.testing.assert_array_equal(data, [0, 0])


def test_torch_shows_values_in_place_of_writes():
    class Seen(of_torch.TorchDispatchMode):
        operations = ()

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            self.operations = (*self.operations, func)
            with of_torch.without_torch_function():
                return func(*args, **(kwargs or {}))

    def written(x):
        filled = torch.zeros(2)
        filled[0] = x[1]
        return filled.isclose(x)  # writes into tensors of its own

    with Seen() as seen:
        np.testing.assert_array_equal(of_torch.functionalized(written, torch.ones(2)), [True, False])
    assert len(seen.operations) > 5
    assert not any(of_torch.schema_of(operation).is_mutable for operation in seen.operations)
    assert of_torch.schema_of(torch.ops.aten.add_.Tensor).is_mutable
    assert not of_torch.schema_of(torch.ops.aten.add.Tensor).is_mutable


def test_torch_methods_are_answered_in_one_thread_only():
    asked = []

    def answer(function, arguments, options):
        asked.append(function)
        return function(*arguments, **options)

    item, tensor = torch.Tensor.item, torch.tensor
    again, once_more = of_torch.answerable(RuntimeError), of_torch.answerable(RuntimeError)
    with pytest.raises(ValueError, match="ended"), again, once_more:
        assert torch.tensor(2.0).item() == 2
        with of_torch.answered_by(answer):
            assert elsewhere(lambda: torch.tensor(2.0).item()) == 2
            assert not asked
            assert bool(torch.tensor(2.0) > 1)
        assert [function.__name__ for function in asked] == ["tensor", "__gt__", "__bool__"]
        assert of_torch.original(torch.Tensor.item) is item is not torch.Tensor.item
        raise ValueError("ended")
    assert torch.Tensor.item is item and torch.tensor is tensor and "item" not in vars(torch.Tensor)


def test_numpy_tells_of_generators_without_seeds():
    with of_numpy.seeds_taken() as taken:
        np.random.default_rng(3)
        assert not taken
        np.random.default_rng()
        np.random.RandomState()
    assert len(taken) == 2
    np.random.default_rng()
    assert len(taken) == 2


def test_dynamo_can_be_loaded_while_tensors_are_asked():
    script = (
        "from pathmix.doors.torch import answerable\n"
        "with answerable(RuntimeError):\n"
        "    import torch._dynamo.polyfills.loader, torch._dynamo.polyfills.tensor\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_torch_says_whether_modes_hear_of_anything():
    assert not of_torch.is_hidden_from_modes()
    with of_torch.without_torch_function():
        assert of_torch.is_hidden_from_modes()
    # Its functions in Python give modes the whole call, and name this where they do.
    assert "handle_torch_function" in torch.tensordot.__code__.co_names


def test_torch_tells_how_many_modes_see_operations():
    assert of_torch.dispatch_depth() == 0
    with of_torch.DispatchMode():
        assert of_torch.dispatch_depth() == 1


def test_torch_knows_what_views_share():
    x = torch.ones(4)
    assert (
        of_torch.storage_id(x[1:].reshape(3, 1)) == of_torch.storage_id(x) != of_torch.storage_id(x.clone())
    )
    assert of_torch.storage_id(x.to_sparse()) is None
    identifier = of_torch.storage_id(x)
    of_torch.reserve(x)
    del x
    assert identifier not in {of_torch.storage_id(torch.ones(4)) for _ in range(100)}
    of_torch.release(identifier)


def test_torch_has_rules_to_write_operations_in_simpler_ones():
    rules = of_torch.core_decompositions([torch.ops.aten.hardtanh])
    assert torch.ops.aten.hardtanh.default in rules and len(rules) > 100


def test_torch_functions_are_applied_by_a_handler_in_one_thread_only():
    class Own(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * ctx.saved_tensors[0] * 5

    def handler(function, apply, arguments, options):
        return of_torch.forward_pass(function, of_torch.Context(), *arguments, **options) + 1

    def outside(function, apply, arguments, options):
        with of_torch.outside_of_trace():
            return of_torch.functional(apply(*map(of_torch.plain_of, arguments), **options))

    x, context = torch.tensor(3.0, requires_grad=True), of_torch.Context((True,))
    with of_torch.functions_applied_by(handler):
        assert of_torch.functionalized(Own.apply, torch.tensor(3.0)) == 7
        assert elsewhere(lambda: torch.autograd.grad(Own.apply(x), x)[0]) == 15
    with of_torch.functions_applied_by(outside):
        assert of_torch.functionalized(Own.apply, torch.tensor(3.0)) == 6
    assert torch.autograd.grad(Own.apply(x), x)[0] == 15
    of_torch.forward_pass(Own, context, torch.tensor(3.0))
    assert Own.backward(context, 1.0) == 15 and context.needs_input_grad == (True,)
