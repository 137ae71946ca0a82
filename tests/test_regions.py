"""Reading bounds from conditions, and guides that live on them."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest

from pathmix.boxes import make_box
from pathmix.discovery import PriorDiscovery
from pathmix.frontends.recognise import bind
from pathmix.intervals import INF, Interval
from pathmix.precision import engine_scope
from pathmix.region import read_region
from pathmix.seeds import Seed
from pathmix.target import make_target


def regions(ask, prior):
    """The region of every path of a program that asks one thing of one site, with prior draws."""

    def model():
        x = numpyro.sample("x", prior)
        ask(x)
        numpyro.sample("z", dist.Normal(0, 1))

    with engine_scope("float64"):
        found = PriorDiscovery(400).discover(bind(model), Seed.of(0), lambda slp, draws: None)
        return [(read_region(path.slp, path.draws), path) for path in found.paths]


NORMAL, POSITIVE, VECTOR = dist.Normal(0, 2), dist.Exponential(1.0), dist.Normal(0, 2).expand([3]).to_event(1)

BOXED = {
    "less": (lambda x: bool(x < 1), NORMAL),
    "mirrored": (lambda x: bool(jnp.array(1.0) >= x), NORMAL),
    "chain": (lambda x: x < -1 or x < 2, NORMAL),
    "affine": (lambda x: bool(3 - 2 * x / 5 > 1), NORMAL),
    "exp": (lambda x: bool(jnp.exp(x) < 0.5), NORMAL),
    "int of a truth value": (lambda x: int(x > 0.5), NORMAL),
    "sigmoid": (lambda x: bool(jax.nn.sigmoid(x - 1) < 0.25), NORMAL),
    "tanh": (lambda x: bool(jnp.tanh(x) > 0.5), NORMAL),
    "cube": (lambda x: bool(x**3 > 2), NORMAL),
    "inside the square": (lambda x: bool(x**2 < 1e6), NORMAL),
    "int": (lambda x: int(x), NORMAL),
    "floor": (lambda x: int(jnp.floor(x / 2)), NORMAL),
    "ceil": (lambda x: int(jnp.ceil(x)), NORMAL),
    "round": (lambda x: int(jnp.round(x)), NORMAL),
    "clip": (lambda x: int(jnp.clip(jnp.floor(x + 5), 0, 9)), NORMAL),
    "element": (lambda x: bool(x[1] < 0.5), VECTOR),
    "two elements": (lambda x: bool(x[0] < 0.5) and bool(x[-1] > 0), VECTOR),
    "support": (lambda x: bool(x < 2), POSITIVE),
    "not equal": (lambda x: bool(x != 3), NORMAL),
    "truth": (lambda x: bool(x), NORMAL),
    "discrete too": (lambda x: bool((x > 0) | jnp.array(False)), NORMAL),
}


@pytest.mark.parametrize("name", BOXED)
def test_boxes_hold_exactly_the_draws_of_their_path(name):
    found = regions(*BOXED[name])
    everything = np.concatenate([path.draws["x"] for _, path in found])
    for region, path in found:
        assert region.kind in ("box", "free")
        inside = np.ones(len(everything), bool)
        for position, interval in region.boxes.get("x", {}).items():
            column = everything.reshape(len(everything), -1)[:, position]
            inside &= np.array([value in interval for value in column])
        mine = np.isin(everything, path.draws["x"])
        np.testing.assert_array_equal(inside, mine.reshape(len(mine), -1).all(axis=1))


@pytest.mark.parametrize(
    "ask",
    [
        lambda x: bool(x[0] + x[1] > 1),
        lambda x: bool(x[0] * x[1] > 1),
        lambda x: bool(x[0] ** 2 > 1),
        lambda x: bool(jnp.sin(x[0]) > 0),
        lambda x: bool(jnp.max(x) > 1),
        lambda x: bool((x[0] > 1) | (x[1] > 1)),
        lambda x: bool(jnp.log(x[0]) < 0.5),  # NaN on neither side
        lambda x: bool(jax.lax.div(x[0].astype(int), 2) == 1),  # rounds
        lambda x: bool(jnp.take(x, 7, mode="fill") < 0) or bool(x[0] + x[1] > 0),  # beyond the end
    ],
)
def test_other_conditions_are_general_somewhere(ask):
    assert "general" in {region.kind for region, _ in regions(ask, VECTOR)}


def test_boxes_can_be_switched_off():
    found = regions(lambda x: bool(x < 1), NORMAL)
    for _, path in found:
        region = read_region(path.slp, path.draws, boxes=False)
        assert region.kind == "general" and not region.boxes and len(region.live) == 1


def test_a_known_side_decides_an_alternative():
    def model():
        k = numpyro.sample("k", dist.Bernoulli(0.5))
        x = numpyro.sample("x", dist.Normal(0, 1))
        if (k == 1) & (x > 0.5):
            numpyro.sample("z", dist.Normal(0, 1))

    with engine_scope("float64"):
        found = PriorDiscovery(200).discover(bind(model), Seed.of(0), lambda slp, draws: None)
        kinds = {
            (path.slp.path.pinned[0][1], path.slp.path.decisions[0].value): read_region(path.slp, path.draws)
            for path in found.paths
        }
    assert kinds[0, False].kind == "free"
    assert kinds[1, False].boxes["x"][0].upper == 0.5
    assert kinds[1, True].boxes["x"][0].lower == 0.5


@pytest.mark.parametrize(
    ("lower", "upper"),
    [
        ([-1.0, 2.0], [3.0, 2.5]),
        ([0.5, -2.0], [INF, INF]),
        ([-INF, -INF], [0.0, 4.0]),
        ([-INF, 1.0], [INF, INF]),
    ],
)
def test_box_bijections(lower, upper):
    with engine_scope("float64"):
        draws = np.clip(np.random.default_rng(0).normal(size=(50, 2)), lower, upper)
        box = make_box(np.array(lower), np.array(upper), draws)
        u = jnp.array([[-3.0, 2.0], [0.1, -0.4], [4.0, 5.0]])
        x = jax.vmap(box)(u)
        assert np.all((x > np.array(lower)) & (x < np.array(upper)))
        np.testing.assert_allclose(jax.vmap(box.inv)(x), u, rtol=1e-6)
        slopes = jax.vmap(lambda row: jnp.diag(jax.jacobian(box)(row)))(u)
        expected = jax.vmap(box.log_abs_det_jacobian)(u, x)
        np.testing.assert_allclose(np.log(np.abs(slopes)), expected, rtol=1e-8, atol=1e-12)


def test_supports_that_depend_on_other_sites():
    def model():
        a = numpyro.sample("a", dist.HalfNormal(1.0))
        b = numpyro.sample("b", dist.Uniform(0, a))
        numpyro.sample("c", dist.Uniform(b, a + 1))

    with engine_scope("float64"):
        (path,) = PriorDiscovery(32).discover(bind(model), Seed.of(0), lambda slp, draws: None).paths
        target = make_target(path.slp, read_region(path.slp, path.draws), path.draws)
        rows = [jnp.asarray(path.draws[name]) for name in ("a", "b", "c")]
        u = jax.vmap(lambda *row: target.unconstrain(row, target.arguments))(*rows)
        back = jax.vmap(lambda row: target.values(row, target.arguments)[0])(u)
        for name, values in zip(("a", "b", "c"), rows, strict=True):
            np.testing.assert_allclose(back[name], values, rtol=1e-9)
        assert np.all(np.isfinite(u))


def test_intervals():
    inner = Interval(0, 1, lower_closed=True) & Interval(-1, 1, upper_closed=True)
    assert inner == Interval(0, 1, lower_closed=True, upper_closed=False)
    assert 0 in inner and 1 not in inner
    assert Interval(2.5, 4).integers() == (3, 3)
    assert Interval(1, 2).describe("x") == "1 < x < 2"
    assert Interval(1).describe("x") == "x > 1"
    assert Interval(upper=2, upper_closed=True).describe("x") == "x <= 2"
