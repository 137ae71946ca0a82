"""Reading bounds from conditions, and guides that live on them."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pyro
import pyro.distributions as pyro_dist
import pytest
import torch
from scipy import stats

from pathmix.discovery import PriorDiscovery
from pathmix.engine.precision import engine_scope
from pathmix.frontends.recognise import bind
from pathmix.program.seeds import Seed
from pathmix.regions.intervals import INF, Interval
from pathmix.regions.region import read_region
from pathmix.regions.witnesses import agreeing
from pathmix.target.boxes import make_box
from tests.paths import discover, target_of


def regions(ask, prior):
    """The region of every path of a program that asks one thing of one site, with prior draws."""

    def model():
        x = numpyro.sample("x", prior)
        ask(x)
        numpyro.sample("z", dist.Normal(0, 1))

    found = discover(model, samples=400)
    with engine_scope("float64"):
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
    "saturated tanh": (lambda x: bool(jnp.tanh(x) < 1), dist.Normal(18, 2)),
    "saturated sigmoid": (lambda x: bool(jax.nn.sigmoid(x) >= 1), dist.Normal(36, 3)),
    "saturated erf": (lambda x: bool(jax.scipy.special.erf(x) > -1), dist.Normal(-6, 1)),
    "underflow": (lambda x: bool(jnp.exp(x) > 0), dist.Normal(-720, 20)),
    "overflow": (lambda x: bool(jnp.exp(x) < jnp.inf), dist.Normal(709, 3)),
    "floats to unsigned": (lambda x: bool(x.astype(jnp.uint8) > 1), NORMAL),
    "floats to eight bits": (lambda x: int(x.astype(jnp.int8)), dist.Normal(126, 2)),
    "whole numbers that fit": (
        lambda x: bool(jnp.clip(x.astype(int), 0, 9).astype(jnp.uint8) + 1 > 2),
        NORMAL,
    ),
    "away from zero": (lambda x: int(jax.lax.round(x)), NORMAL),
    "clamp": (lambda x: bool(jax.lax.clamp(-1.0, x, 1.0) < 0.5), NORMAL),
    "divided": (lambda x: bool(x / -3 < 0.1), NORMAL),
}
# Of these, one path has a box; elements of the other may be anywhere.
ONE_SIDED = {
    "every element": (lambda x: bool(jnp.all(x > -1)), (-1, INF)),
    "of a matrix": (lambda x: bool(jnp.all(x[:, None] < jnp.array([[3.0, 2.0]]))), (-INF, 2)),
    "between": (lambda x: bool(jnp.all((x > -2) & (x <= 4))), (-2, 4)),
    "expression": (lambda x: bool(jnp.all(1 - 2 * jnp.tanh(x) < 2)), (-np.arctanh(0.5), INF)),
    "none": (lambda x: not bool(jnp.any(x < -1)), (-1, INF)),
    "smallest": (lambda x: bool(jnp.min(x) > -1), (-1, INF)),
    "largest": (lambda x: bool(2 * jnp.max(x) <= 5), (-INF, 2.5)),
    "stacked": (lambda x: bool(jnp.all(jnp.stack([x[0], x[1], x[2]]) > -1)), (-1, INF)),
}


@pytest.mark.parametrize("name", ONE_SIDED)
def test_conditions_on_every_element_bound_each(name):
    ask, (lower, upper) = ONE_SIDED[name]
    found = regions(ask, VECTOR)
    (region,) = (region for region, path in found if path.slp.path.decisions[0].value == (name != "none"))
    assert region.kind == "box" and sorted(region.bounds["x"]) == [0, 1, 2]
    for interval in region.bounds["x"].values():
        np.testing.assert_allclose((interval.lower, interval.upper), (lower, upper), rtol=1e-12)
    assert {region.kind for region, _ in found} == {"box", "general"}


@pytest.mark.parametrize("name", BOXED)
def test_boxes_hold_exactly_the_draws_of_their_path(name):
    found = regions(*BOXED[name])
    everything = np.concatenate([path.draws["x"] for _, path in found])
    for region, path in found:
        assert region.kind in ("box", "free")
        inside = np.ones(len(everything), bool)
        for position, interval in region.bounds.get("x", {}).items():
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
        lambda x: bool(x[0].astype(jnp.int32).astype(jnp.uint8) > 100),  # wraps around
        lambda x: bool(x[0].astype(jnp.uint8) - jnp.uint8(1) > 0),
        lambda x: bool(x[0].astype(jnp.int32) * 2**30 > 0),
        lambda x: bool(x[0].astype(int) * 10**18 > 0),
        lambda x: bool(x[0] + 1e17 > 1e17),  # lost in rounding
        lambda x: bool(x[0] * 1e-300 * 1e-300 >= 0),  # always zero
        lambda x: bool(jnp.all(x > jnp.array([0.0, jnp.nan, 0.0]))) or bool(x[0] + x[1] > 0),
        lambda x: bool(jnp.take(x, 7, mode="fill") < 0) or bool(x[0] + x[1] > 0),  # beyond the end
    ],
)
def test_other_conditions_are_general_somewhere(ask):
    assert "general" in {region.kind for region, _ in regions(ask, VECTOR)}


def test_boxes_can_be_switched_off():
    found = regions(lambda x: bool(x < 1), NORMAL)
    for _, path in found:
        region = read_region(path.slp, path.draws, boxes=False)
        assert region.kind == "general" and not region.bounds and len(region.live) == 1


@pytest.mark.usefixtures("engine")
def test_a_known_side_decides_an_alternative():
    def model():
        k = numpyro.sample("k", dist.Bernoulli(0.5))
        x = numpyro.sample("x", dist.Normal(0, 1))
        if (k == 1) & (x > 0.5):
            numpyro.sample("z", dist.Normal(0, 1))

    found = PriorDiscovery(200).discover(bind(model), Seed.of(0), lambda slp, draws: None)
    kinds = {
        (path.slp.path.pinned[0][1], path.slp.path.decisions[0].value): read_region(path.slp, path.draws)
        for path in found.paths
    }
    assert kinds[0, False].kind == "free"
    assert kinds[1, False].bounds["x"][0].upper == 0.5
    assert kinds[1, True].bounds["x"][0].lower == 0.5


@pytest.mark.usefixtures("engine")
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
    draws = np.clip(np.random.default_rng(0).normal(size=(50, 2)), lower, upper)
    box = make_box(np.array(lower), np.array(upper), draws)
    u = jnp.array([[-3.0, 2.0], [0.1, -0.4], [4.0, 5.0]])
    x = jax.vmap(box)(u)
    assert np.all((x > np.array(lower)) & (x < np.array(upper)))
    np.testing.assert_allclose(jax.vmap(box.inv)(x), u, rtol=1e-6)
    slopes = jax.vmap(lambda row: jnp.diag(jax.jacobian(box)(row)))(u)
    expected = jax.vmap(box.log_abs_det_jacobian)(u, x)
    np.testing.assert_allclose(np.log(np.abs(slopes)), expected, rtol=1e-8, atol=1e-12)


@pytest.mark.usefixtures("engine")
def test_supports_that_depend_on_other_sites():
    def model():
        a = numpyro.sample("a", dist.HalfNormal(1.0))
        b = numpyro.sample("b", dist.Uniform(0, a))
        numpyro.sample("c", dist.Uniform(b, a + 1))

    (path,) = PriorDiscovery(32).discover(bind(model), Seed.of(0), lambda slp, draws: None).paths
    target = target_of(path)
    rows = [jnp.asarray(column) for column in target.columns(path.draws)]
    u = jax.vmap(lambda *row: target.formula.unconstrain(row, target.arguments))(*rows)
    back = target.named(
        jax.vmap(lambda row: target.outcome(row, target.arguments, target.site_graph.consts))(u)
    )
    for name in ("a", "b", "c"):
        np.testing.assert_allclose(back[name], path.draws[name], rtol=1e-9)
    assert np.all(np.isfinite(u))


def test_intervals():
    inner = Interval(0, 1, lower_closed=True) & Interval(-1, 1, upper_closed=True)
    assert inner == Interval(0, 1, lower_closed=True, upper_closed=False)
    assert 0 in inner and 1 not in inner
    assert Interval(2.5, 4).integers() == (3, 3)
    assert Interval(1, 2).describe("x") == "1 < x < 2"
    assert Interval(1).describe("x") == "x > 1"
    assert Interval(upper=2, upper_closed=True).describe("x") == "x <= 2"


@pytest.mark.usefixtures("engine")
def test_observed_values_bound_what_they_are_compared_with():
    """`all(y <= theta)` is theta >= max(y), also through a monotone function, and element by element."""
    y = np.array([0.3, 0.9, -2.0])

    def model(compare):
        theta = numpyro.sample("theta", dist.Normal(0, 1))
        each = numpyro.sample("each", dist.Normal(0, 1).expand([3]))
        if compare(theta, each):
            numpyro.sample("z", dist.Normal(0, 1))

    def boxes(compare):
        found = PriorDiscovery(400).discover(bind(model, (compare,)), Seed.of(0), lambda *_: None)
        (path,) = (path for path in found.paths if path.slp.path.decisions[0].value)
        return read_region(path.slp, path.draws).bounds

    assert boxes(lambda t, _: jnp.all(y <= t)) == {"theta": {0: Interval(0.9, lower_closed=True)}}
    assert boxes(lambda t, _: jnp.all(y > -2 * t)) == {"theta": {0: Interval(1.0)}}
    assert boxes(lambda _, e: jnp.all(y < e)) == {
        "each": {0: Interval(0.3), 1: Interval(0.9), 2: Interval(-2)}
    }
    assert boxes(lambda t, e: jnp.all((y < e) & (t < 1)))["theta"] == {0: Interval(upper=1)}
    exponential = boxes(lambda t, _: jnp.all(jnp.exp(t) > y))["theta"][0]
    assert exponential.lower == pytest.approx(np.log(0.9), rel=1e-12)
    assert boxes(lambda t, _: jnp.all(jnp.zeros(0) < t)) == {}


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize(
    ("box", "agrees"),
    [
        (Interval(-2, 3), True),
        (Interval(-2, 3 + 1e-3), False),
        (Interval(-2 + 1e-3, 3), False),
        (Interval(-2), False),
        (Interval(-2, 1e9), False),
        (Interval(upper=3), False),
        (Interval(), False),
        (Interval(0, 3), False),
    ],
    ids=str,
)
def test_boxes_are_tried(box, agrees):
    ((_, path), *_) = [
        found for found in regions(lambda x: bool((x > -2) & (x < 3)), NORMAL) if found[0].bounds
    ]
    assert agreeing(path.slp, {path.slp.FIRST_CONDITION: {(0, 0): box}}, path.draws) == (
        {path.slp.FIRST_CONDITION} if agrees else set()
    )


def unsigned():
    x = 100 * numpyro.sample("x", dist.Normal(0, 1))
    if x.astype(jnp.int32).astype(jnp.uint8) > 100:
        numpyro.sample("a", dist.Normal(0, 1))


def unsigned_in_pyro():
    x = 100 * pyro.sample("x", pyro_dist.Normal(0, 1))
    if x.to(torch.uint8) > 100:
        pyro.sample("a", pyro_dist.Normal(0, 1))


def eight_bits_in_pyro():
    x = 100 * pyro.sample("x", pyro_dist.Normal(0, 1))
    if x.int().to(torch.int8).int().remainder(256) > 100:
        pyro.sample("a", pyro_dist.Normal(0, 1))


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("model", [unsigned, unsigned_in_pyro, eight_bits_in_pyro])
def test_conversions_that_wrap_around(model):
    """The prior mass of a path: a sum over whole numbers, and an integral over its region."""
    whole = np.arange(-900, 901)
    lower, upper = np.where(whole > 0, whole, whole - 1), np.where(whole < 0, whole, whole + 1)
    masses = np.diff(stats.norm.cdf(np.stack([lower, upper]) / 100), axis=0)[0]
    mass = masses[whole % 256 > 100].sum()
    assert mass == pytest.approx(0.6, abs=0.01)
    x = np.linspace(-9, 9, 18_000) + 1 / 3000
    found = PriorDiscovery(100).discover(bind(model), Seed.of(0), lambda *_: None)
    assert len(found.paths) == 2
    for path in found.paths:
        target = target_of(path)
        assert target.region.kind == "general"
        rows = np.zeros((len(x), target.dim))
        rows[:, [site.name for site in target.sites].index("x")] = x
        inside = jax.vmap(lambda row, t=target: t.formula.density(row, t.arguments).inside)(jnp.asarray(rows))
        expected = mass if "a" in path.slp.path.addresses else 1 - mass
        assert np.sum(stats.norm.pdf(x)[inside]) * 18 / 18_000 == pytest.approx(expected, abs=2e-3)


@pytest.mark.usefixtures("engine")
def test_boxes_of_pyro_programs():
    y = torch.tensor([0.3, 0.9, -2.0], dtype=torch.float64)

    def model():
        theta = pyro.sample("theta", pyro_dist.Normal(0, 1))
        each = pyro.sample("each", pyro_dist.Normal(0, 1).expand([3]).to_event(1))
        if (y <= theta).all() and not (each < -1).any() and torch.tanh(theta) < 1:
            pyro.sample("z", pyro_dist.Normal(0, 1))

    found = PriorDiscovery(300).discover(bind(model), Seed.of(0), lambda *_: None)
    (path,) = (path for path in found.paths if "z" in path.slp.path.addresses)
    region = read_region(path.slp, path.draws)
    assert region.kind == "box"
    assert region.bounds["each"] == {i: Interval(-1, lower_closed=True) for i in range(3)}
    theta = region.bounds["theta"][0]
    assert theta.lower == 0.9 and theta.lower_closed
    assert float(np.tanh(theta.upper)) == 1 and 17 < theta.upper <= 20


def numpyro_widths():
    k = numpyro.sample("k", dist.Bernoulli(0.5))
    x = numpyro.sample("x", dist.Uniform(0.0, 1.0 + k))
    numpyro.sample("y", dist.Normal(1.0 if x < 0.5 else 0.0, 1.0), obs=1.0)


def pyro_widths():
    k = pyro.sample("k", pyro_dist.Bernoulli(0.5))
    x = pyro.sample("x", pyro_dist.Uniform(0.0, 1.0 + k))
    pyro.sample("y", pyro_dist.Normal(1.0 if x < 0.5 else 0.0, 1.0), obs=torch.tensor(1.0))


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("model", [numpyro_widths, pyro_widths])
def test_supports_that_pinned_sites_decide_are_known(model):
    found = set()
    for path in discover(model, samples=60).paths:
        (interval,) = read_region(path.slp, path.draws).bounds["x"].values()
        found.add((dict(path.slp.path.pinned)["k"], interval.lower, interval.upper))
        target = target_of(path)
        values = target.columns({name: draws[0] for name, draws in path.draws.items()})
        density = target.formula.density(
            target.formula.unconstrain(values, target.arguments), target.arguments
        )
        assert float(density.log_joint) == pytest.approx(float(target.log_joint(values, target.arguments)))
    assert found == {(0, 0.0, 0.5), (0, 0.5, 1.0), (1, 0.0, 0.5), (1, 0.5, 2.0)}
