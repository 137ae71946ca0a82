"""Random conditions on one or two sites: wherever a box is read, it holds exactly what satisfies them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pathmix.engine.precision import engine_scope
from pathmix.program.graph import Graph
from pathmix.program.path import Decision, Path
from pathmix.program.slp import Facts, Site, StraightLineProgram
from pathmix.program.source import Source
from pathmix.regions.region import read_region

UNARY = {
    "neg": jnp.negative,
    "abs": jnp.abs,
    "exp": jnp.exp,
    "expm1": jnp.expm1,
    "tanh": jnp.tanh,
    "logistic": jax.nn.sigmoid,
    "erf": jax.scipy.special.erf,
    "atan": jnp.arctan,
    "sinh": jnp.sinh,
    "floor": jnp.floor,
    "ceil": jnp.ceil,
    "round": jnp.round,
    "away": jax.lax.round,
    "square": jnp.square,
    "cube": lambda x: x**3,
    "sin": jnp.sin,  # not monotone
    "log": jnp.log,  # NaN on neither side
    "sqrt": jnp.sqrt,
    "sign": jnp.sign,
}
WHOLE = ("neg", "abs", "square", "cube")  # of these, whole numbers have
BINARY = {
    "add": lambda x, c: x + c,
    "sub": lambda x, c: x - c,
    "from": lambda x, c: c - x,
    "mul": lambda x, c: x * c,
    "div": lambda x, c: x / c,
    "rem": lambda x, c: x % c,
    "max": jnp.maximum,
    "min": jnp.minimum,
    "clip": lambda x, c: jnp.clip(x, c - 2, c + 2),
    "clamp": lambda x, c: jax.lax.clamp(c - 3, x, c + 3),
}
TYPES = ["int8", "uint8", "int16", "int32", "uint32", "int64", "float32", "float64"]
COMPARISONS = {"lt": jnp.less, "le": jnp.less_equal, "gt": jnp.greater, "ge": jnp.greater_equal}
COMPARISONS |= {"eq": jnp.equal, "ne": jnp.not_equal}

TAME = [-3.0, -1.0, -0.5, 0.0, 0.25, 0.5, 1.0, 2.0, 7.0]
WILD = [
    *TAME,
    1e-300,
    1e-5,
    1.5707963267948966,
    0.9999999999999999,
    -0.9999999999,
    100.0,
    300.0,
    1e6,
    -1e9,
    1e16,
    1e300,
]
STEPS = st.one_of(
    st.tuples(st.sampled_from(sorted(UNARY)), st.just(0.0)),
    st.tuples(st.sampled_from(sorted(BINARY)), st.sampled_from(WILD)),
    st.tuples(st.sampled_from(TYPES), st.just(0.0)),
)
# Steps and numbers of which most can be read.
MONOTONE = st.one_of(
    st.tuples(st.sampled_from(["neg", "exp", "tanh", "logistic", "floor", "round", "cube"]), st.just(0.0)),
    st.tuples(st.sampled_from(["add", "from", "mul", "div", "max", "min"]), st.sampled_from(TAME)),
    st.tuples(st.sampled_from(["int32", "uint8"]), st.just(0.0)),
)
READABLE = st.tuples(
    st.lists(MONOTONE, max_size=3),
    st.sampled_from(["lt", "le", "gt", "ge"]),
    st.sampled_from(TAME),
    st.booleans(),
)
CONDITIONS = st.tuples(
    st.lists(STEPS, max_size=4), st.sampled_from(sorted(COMPARISONS)), st.sampled_from(WILD), st.booleans()
)


def apply(step, x):
    name, c = step
    if name in TYPES:
        widest = {"int64": jnp.result_type(int), "float64": jnp.result_type(float)}
        return x.astype(widest.get(name, name))
    whole = jnp.issubdtype(x.dtype, jnp.integer)
    if name in UNARY:
        return UNARY[name](x) if not whole or name in WHOLE else x
    # A constant of the type, as far as it has it.
    limits = np.iinfo(x.dtype) if whole else None
    c = int(np.clip(c, float(limits.min) / 2 + 9, float(limits.max) / 2 - 9)) if limits is not None else c
    if name in ("div", "rem") and (c == 0 or whole):
        return x
    return BINARY[name](x, constant(c, x.dtype))


_REACH = {"float64": (-1e300, 1e300), "float32": (-1e38, 1e38)}


def constant(c, dtype):
    return jnp.asarray(c if jnp.issubdtype(dtype, jnp.integer) else np.clip(c, *_REACH[dtype.name]), dtype)


def truth(condition, x):
    steps, comparison, level, negated = condition
    for step in steps:
        x = apply(step, x)
    if jnp.issubdtype(x.dtype, jnp.integer):
        limits = np.iinfo(x.dtype)
        level = int(np.clip(level, float(limits.min) / 2, float(limits.max) / 2))
    found = COMPARISONS[comparison](x, constant(level, x.dtype))
    return ~found if negated else found


def program(function, sites=1, dtype=np.float64, bounds=(-np.inf, np.inf)):
    """A straight-line program with scalar sites and one condition."""
    avals = [jax.ShapeDtypeStruct((), dtype)] * sites
    closed = jax.make_jaxpr(lambda *xs: [jnp.zeros(()), jnp.zeros(()), function(*xs)])(*avals)
    source = Source("program.py", 1, "if condition:")
    names = tuple(f"x{number}" for number in range(sites))
    path = Path(names, (Decision("bool", True),), ())
    return StraightLineProgram(
        path=path,
        recorded=path,
        sources=(source,),
        sites=tuple(Site(name, (), np.dtype(dtype), source, None, None, bounds) for name in names),
        graph=Graph.of(closed),
        deterministics=(),
        drawn=(),
        decided_after=(len(names),),
        params=(),
        observed=(),
        facts=Facts(),
        masks=(),
        pointwise=(),
        indicators=(),
        plates=(),
        minibatch=None,
    )


ROWS = 256  # a size that the engine uses too: every operation is compiled once
GENERATOR = np.random.default_rng(0)
DRAWS = GENERATOR.normal(0, 5, ROWS)
LANDMARKS = [18.0, 19.5, 36.0, 38.0, 88.5, 104.0, 127.6, 128.5, 255.6, 256.5, 708.0, 710.5, 745.5, 3e4, 6e4]
POINTS = np.array(
    [
        *(1.0123 * np.geomspace(1e-3, 1e15, 37)),  # none that a condition could name
        *(2.0**power + 0.6 for power in (31, 32, 40)),
        *LANDMARKS,
        *(np.arange(0, 10) + 0.1),
        *GENERATOR.normal(0, 5, 63),
    ]
)
POINTS = np.concatenate([POINTS, -POINTS])
assert len(POINTS) == ROWS


def evaluate(function, *columns):
    return np.asarray(jax.vmap(function)(*(jnp.asarray(column) for column in columns)))


def expected(box, columns, spread):
    """Which points are in a box, and which are too close to its ends to tell."""
    inside, doubtful = np.ones(ROWS, bool), np.zeros(ROWS, bool)
    for x, intervals in zip(columns, box, strict=True):
        for interval in intervals:
            inside &= np.array([value in interval for value in x.astype(float)])
            for end in (interval.lower, interval.upper):
                if np.isfinite(end):
                    eps = np.finfo(x.dtype).eps
                    doubtful |= np.abs(x - end) <= 2e-6 * spread + 1e5 * eps * abs(end)
    return inside, doubtful


def check_region(function, columns, draws, dtype=np.float64):
    """Compare with the condition itself, on the side that has draws."""
    side = evaluate(function, *draws)
    wanted = bool(side[0])
    slp = program(lambda *xs: function(*xs) == wanted, len(columns), dtype)
    mine = {site.name: column[side == wanted] for site, column in zip(slp.sites, draws, strict=True)}
    region = read_region(slp, mine)
    if region.kind == "general":
        return "live"
    box = [[region.bounds[site.name][0]] if site.name in region.bounds else [] for site in slp.sites]
    spread = max(np.subtract(*np.percentile(column, [75, 25])) for column in mine.values())
    inside, doubtful = expected(box, columns, spread)
    found = evaluate(function, *columns) == wanted
    wrong = (inside != found) & ~doubtful
    assert not wrong.any(), (region, [column[wrong] for column in columns])
    return region.kind


FIXED = settings(
    derandomize=True, deadline=None, database=None, suppress_health_check=list(HealthCheck), print_blob=False
)


DTYPES = st.sampled_from(["float64", "float64", "float32"])


def check_box(condition, dtype):
    with engine_scope(dtype):
        points, draws = POINTS.astype(dtype), DRAWS.astype(dtype)
        check_region(lambda x: truth(condition, x), [points], [draws], dtype)


@settings(FIXED, max_examples=50)
@given(CONDITIONS, DTYPES)
def test_boxes_hold_what_satisfies_a_condition(condition, dtype):
    check_box(condition, dtype)


@pytest.mark.trust
@settings(FIXED, max_examples=500)
@given(CONDITIONS, DTYPES)
def test_boxes_of_many_conditions(condition, dtype):
    check_box(condition, dtype)


JOINS = {
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "nand": lambda a, b: ~(a & b),
    "all": lambda a, b: jnp.all(jnp.stack([a, b])),
    "any": lambda a, b: jnp.any(jnp.stack([a, b])),
}
SHUFFLED = GENERATOR.permutation(POINTS)


@pytest.mark.usefixtures("engine")
@settings(FIXED, max_examples=60)
@given(READABLE, READABLE, st.sampled_from(sorted(JOINS)), st.booleans())
def test_conditions_on_two_sites(first, second, join, same):
    """Of each site; or both of the first, with the other one known to be free."""

    def function(x, y):
        return JOINS[join](truth(first, x), truth(second, x if same else y))

    check_region(function, [POINTS, SHUFFLED], [DRAWS, GENERATOR.permutation(DRAWS)])
