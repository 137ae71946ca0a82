"""Where a call is made: transformations, handlers, forks; and what it leaves behind."""

import json
import subprocess
import sys
import threading
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pyro
import pyro.distributions as pdist
import pytest
import torch
from numpyro import handlers
from pyro import poutine
from torch.fx.experimental.proxy_tensor import make_fx

import pathmix
from experiments.baselines import BBVI, WholeAutoGuide
from pathmix.engine.precision import engine_scope
from pathmix.errors import SurroundingsError
from pathmix.methods.dcc import DCC

ROOT = Path(__file__).parents[2]
QUICK = {"discovery": pathmix.PriorDiscovery(60), "progress": False}
METHODS = [pathmix.SDVI, DCC, BBVI, WholeAutoGuide]


def model(y):
    z = numpyro.sample("z", dist.Normal(0, 1))
    numpyro.sample("y", dist.Normal(z, 1), obs=y)


def pyro_model(y):
    z = pyro.sample("z", pdist.Normal(0.0, 1.0))
    pyro.sample("y", pdist.Normal(z, 1.0), obs=y)


def fit(program=model, y=0.5):
    few = pathmix.Uniform(budget=200)
    return pathmix.SDVI(program, allocation=few, weights="elbo", **QUICK).run(0, y)


@pytest.fixture(scope="module")
def posterior():
    return fit()


def operations(posterior):
    return {
        "sample": lambda y: posterior.sample(0, 3)["z"].sum(),
        "predict": lambda y: posterior.predict(0, 3, y)["y"].sum(),
        "log_likelihood": lambda y: posterior.log_likelihood(0, 3, y).sum(),
        "log_prob": lambda y: posterior.log_prob({"z": y}),
    }


TRANSFORMS = {
    "jit": lambda f: jax.jit(f)(0.5),
    "grad": lambda f: jax.grad(f)(0.5),
    "vmap": lambda f: jax.vmap(f)(jnp.array([0.5, 0.6])),
    "jvp": lambda f: jax.jvp(f, (0.5,), (1.0,)),
    "linearize": lambda f: jax.linearize(f, 0.5),
    "make_jaxpr": lambda f: jax.make_jaxpr(f)(0.5),
    "eval_shape": lambda f: jax.eval_shape(f, 0.5),
    "scan": lambda f: jax.lax.scan(lambda carry, x: (f(x), None), 0.5, jnp.ones(2)),
    "cond": lambda f: jax.lax.cond(True, f, lambda x: x, 0.5),
    "checkpoint": lambda f: jax.checkpoint(f)(0.5),
    "nested": lambda f: jax.jit(jax.grad(f))(0.5),
    "closure": lambda f: jax.grad(lambda x: x * f(0.5))(0.5),  # its own argument is concrete
}


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("method", METHODS)
def test_runs_inside_a_transformation_of_jax_are_refused(method, transform):
    with pytest.raises(SurroundingsError, match=rf"^{method.__name__}.run .*JAX.*call it outside"):
        TRANSFORMS[transform](lambda y: method(model, **QUICK).run(0, y).elbo)


@pytest.mark.parametrize("transform", ["jit", "grad", "vmap", "closure"])
@pytest.mark.parametrize("name", ["sample", "predict", "log_likelihood", "log_prob"])
def test_results_inside_a_transformation_of_jax_are_refused(posterior, name, transform):
    with pytest.raises(SurroundingsError, match=rf"posterior.{name} .*JAX"):
        TRANSFORMS[transform](operations(posterior)[name])


def test_a_traced_value_that_was_kept_is_refused():
    kept = []
    jax.make_jaxpr(kept.append)(0.5)
    with pytest.raises(SurroundingsError, match="JAX"):
        fit(y=kept[0])
    with pytest.raises(SurroundingsError, match="JAX"):
        fit(y={"deep": [kept[0]]})


def test_results_of_a_fit_work_inside_a_transformation(posterior):
    mean = float(posterior.sample(0, 50)["z"].mean())
    assert float(jax.grad(lambda x: x * mean)(1.0)) == pytest.approx(mean)
    calls = jax.jit(
        lambda x: jax.pure_callback(
            lambda z: np.float32(posterior.log_prob({"z": z})), jax.ShapeDtypeStruct((), jnp.float32), x
        )
    )
    assert float(calls(0.3)) == pytest.approx(posterior.log_prob({"z": 0.3}), rel=1e-5)


TORCH = {
    "vmap": lambda f: torch.vmap(f)(torch.tensor([0.5, 0.6])),
    "grad": lambda f: torch.func.grad(f)(torch.tensor(0.5)),
    "make_fx": lambda f: make_fx(f)(torch.tensor(0.5)),
    "jit.trace": lambda f: torch.jit.trace(f, torch.tensor(0.5)),
}


@pytest.mark.filterwarnings("ignore")  # jit.trace is deprecated
@pytest.mark.parametrize("transform", TORCH)
def test_runs_inside_a_transformation_of_pytorch_are_refused(transform):
    with pytest.raises(SurroundingsError, match=r"SDVI.run .*PyTorch.*call it outside"):
        TORCH[transform](lambda y: torch.tensor(fit(pyro_model, y).elbo) * y)


HANDLERS = {
    "seed": lambda: handlers.seed(rng_seed=0),
    "trace": handlers.trace,
    "substitute": lambda: handlers.substitute(data={"z": 0.3}),
    "condition": lambda: handlers.condition(data={"z": 0.3}),
    "block": handlers.block,
    "plate": lambda: numpyro.plate("n", 3),
    "pyro trace": poutine.trace,
    "pyro condition": lambda: poutine.condition(data={"z": torch.tensor(0.3)}),
    "pyro mask": lambda: poutine.mask(mask=False),
    "pyro plate": lambda: pyro.plate("n", 3),
}


@pytest.mark.parametrize("handler", HANDLERS)
@pytest.mark.parametrize("method", METHODS)
def test_runs_inside_a_handler_are_refused(method, handler):
    library = "pyro" if "pyro" in handler else "numpyro"
    message = rf"^{method.__name__}.run .*inside handlers or plates of {library} .*around the model instead"
    with HANDLERS[handler](), pytest.raises(SurroundingsError, match=message):
        method(model, **QUICK).run(0, 0.5)


def test_results_inside_a_handler(posterior):
    with handlers.seed(rng_seed=0):
        for name in ("predict", "log_likelihood", "log_prob"):
            with pytest.raises(SurroundingsError, match=f"posterior.{name} .*seed"):
                operations(posterior)[name](0.5)
        inside = posterior.sample(0, 3)["z"]  # runs no program
    np.testing.assert_array_equal(inside, posterior.sample(0, 3)["z"])


def test_handlers_around_the_model_are_welcome():
    fixed = fit(handlers.substitute(model, data={"y": 0.5}), None)
    assert fixed.paths[0].addresses == ("z",)


def test_a_run_in_another_thread_is_no_handler():
    """While a program runs, its library's stack has our own handlers on it."""
    running, called, elbos = threading.Event(), threading.Event(), []

    def waiting(y):
        numpyro.sample("z", dist.Normal(0, 1))
        running.set()
        called.wait()
        numpyro.sample("y", dist.Normal(0, 1), obs=y)

    first = threading.Thread(target=lambda: elbos.append(fit(waiting).elbo))
    first.start()
    running.wait()
    second = threading.Thread(target=lambda: (called.set(), elbos.append(fit().elbo)))
    second.start()
    first.join()
    second.join()
    assert len(elbos) == 2 and np.all(np.isfinite(elbos))


def run_script(script, *arguments):
    """What a fresh process prints, as JSON."""
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        cwd=ROOT,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=600,  # only a process that hangs takes so long
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


FORK = """
import json, multiprocessing, os, sys, warnings
import numpyro, numpyro.distributions as dist
warnings.simplefilter("ignore")  # Python and JAX warn of forks
if sys.argv[1] != "pathmix is imported later":
    import pathmix

def model(y):
    z = numpyro.sample("z", dist.Normal(0, 1))
    numpyro.sample("y", dist.Normal(z, 1), obs=y)

def fit():
    import pathmix
    options = {"discovery": pathmix.PriorDiscovery(60), "allocation": pathmix.Uniform(budget=200)}
    return pathmix.SDVI(model, weights="elbo", progress=False, **options).run(0, 0.5)

def child(queue, posterior):
    try:
        elbo = fit().elbo if posterior is None else len(posterior.sample(0, 3).path)
        queue.put(float(elbo))
    except Exception as error:
        queue.put(type(error).__name__ + ": " + str(error))

posterior = None
if sys.argv[1] in ("JAX was used", "pathmix is imported later"):
    import jax.numpy as jnp
    float(jnp.ones(3).sum())
if sys.argv[1] == "a fit was made":
    posterior = fit()
context = multiprocessing.get_context("fork")
queue = context.SimpleQueue()
process = context.Process(target=child, args=(queue, posterior))
process.start()
print(json.dumps(queue.get()))
process.join()
"""


def test_a_fork_before_jax_is_used_works():
    assert run_script(FORK, "nothing was used") == pytest.approx(-1.33, abs=0.1)


@pytest.mark.parametrize("before", ["JAX was used", "a fit was made", "pathmix is imported later"])
def test_a_fork_after_jax_was_used_is_refused(before):
    if before == "pathmix is imported later" and not Path("/proc/self/task").is_dir():
        pytest.skip("threads cannot be counted here")
    said = run_script(FORK, before)
    assert said.startswith("SurroundingsError: ") and '"spawn"' in said


STATE = """
import json, os, random, signal, sys, threading, warnings
import numpy as np
import numpyro, numpyro.distributions as dist, jax
if sys.argv[1] == "pyro":
    import pyro, pyro.distributions as pdist, torch
    torch.manual_seed(3)
    torch.set_num_threads(3)
    pyro.param("mine", torch.tensor(2.0))
np.random.seed(1)
random.seed(2)
warnings.filterwarnings("ignore", message="mine")

def model(y):
    z = numpyro.sample("z", dist.Normal(0, 1))
    numpyro.sample("y", dist.Normal(z, 1), obs=y)

def pyro_model(y):
    scale = pyro.param("mine", torch.tensor(1.0))
    pyro.param("new", torch.tensor(1.0))
    z = pyro.sample("z", pdist.Normal(0.0, scale))
    pyro.sample("y", pdist.Normal(z, 1.0), obs=torch.as_tensor(y))

def state():
    found = {
        "environment": dict(os.environ),
        "numpy": str(np.random.get_state()),
        "random": str(random.getstate()),
        "filters": [str(entry) for entry in warnings.filters],
        "signals": [str(signal.getsignal(number)) for number in (signal.SIGINT, signal.SIGTERM)],
        "threads": sorted(thread.name for thread in threading.enumerate()),
        "jax": {name: str(value) for name, value in jax.config.values.items()},
        "numpyro validation": dist.distribution.Distribution._validate_args,
        "path": list(sys.path),
        "errors": str(np.geterr()),
    }
    if sys.argv[1] == "pyro":
        found |= {
            "generator": torch.get_rng_state().tolist(),
            "parameters": {name: float(value) for name, value in pyro.get_param_store().items()},
            "torch threads": [torch.get_num_threads(), torch.get_num_interop_threads()],
            "dtype": str(torch.get_default_dtype()),
            "gradients": torch.is_grad_enabled(),
            "validation": torch.distributions.Distribution._validate_args,
            "validation of inference": pyro.infer.util.is_validation_enabled(),
        }
    return found

def pools():
    from threadpoolctl import threadpool_info
    return {pool["filepath"]: pool["num_threads"] for pool in threadpool_info()}

before = state()
import pathmix
from experiments.baselines import WholeAutoGuide
counts = pools()
options = {"discovery": pathmix.PriorDiscovery(60)}
program = pyro_model if sys.argv[1] == "pyro" else model
fits = [
    pathmix.SDVI(program, allocation=pathmix.Uniform(budget=200), **options),
    WholeAutoGuide(program, steps=3, elbo_samples=5, **options),
]
for method in fits:
    posterior = method.run(0, 0.5)
    posterior.sample(0, 3), posterior.predict(0, 3, 0.5), posterior.log_likelihood(0, 3, 0.5)
    posterior.log_prob({"z": 0.1})
after = state()
changed = [name for name in before if before[name] != after[name]]
changed += [path for path, count in pools().items() if counts.get(path, count) != count]
print(json.dumps(changed))
"""


@pytest.mark.parametrize("library", ["numpyro", "pyro"])
def test_everything_is_as_before_in_a_fresh_process(library):
    assert run_script(STATE, library) == []


def test_threads_of_pytorch_come_back_in_every_thread():
    """OpenMP counts for each thread on its own, so what one thread changes another cannot put back."""
    inside, leave, left, counts = threading.Event(), threading.Event(), threading.Event(), []

    def first():
        counts.append(torch.get_num_threads())
        with engine_scope("float64"):
            inside.set()
            leave.wait()
        left.set()
        counts.append(torch.get_num_threads())

    other = threading.Thread(target=first)
    other.start()
    inside.wait()
    with engine_scope("float64"):
        leave.set()
        left.wait()
    other.join()
    assert counts[0] == counts[1]
