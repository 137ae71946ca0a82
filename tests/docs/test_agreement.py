"""What counts as the same output."""

import pytest

from tests.docs.agreement import disagreement

TABLE = """path  weight           k-hat  steps  status
----  ---------------  -----  -----  ------
a=1   0.8501 ± 0.0022  -0.12  1,734  ok
"""


@pytest.mark.parametrize(
    ("shown", "printed"),
    [
        ("0.85 ± 0.01", "0.82 ± 0.01"),
        ("mean: 3.20", "mean:  3.26"),
        (TABLE, TABLE.replace("-0.12  1,734", " 0.31  9,999")),
        ("-inf\n", "-inf"),
    ],
)
def test_the_same(shown, printed):
    assert disagreement(shown, printed) is None


@pytest.mark.parametrize(
    ("shown", "printed"),
    [
        ("0.85 ± 0.01", "0.78 ± 0.01"),
        ("mean: 3.20", "mean: 3.28"),
        ("mean: 3.20", "median: 3.20"),
        ("5 paths", "6 paths"),
        ("{'k=1': 0.5}", "{'k=2': 0.5}"),
        (TABLE, TABLE.replace("ok", "rough")),
        (TABLE, TABLE.replace("0.8501", "0.8701")),
        (TABLE, TABLE + "b=1   0.0001 ± 0.0000   0.10  1,734  ok\n"),
        ("-inf", "0.1"),
    ],
)
def test_something_else(shown, printed):
    assert disagreement(shown, printed) is not None
