"""What data files give, and what is said of those that cannot be read."""

import json
from pathlib import Path

import numpy as np
import pytest

from pathmix.cli.data import read
from pathmix.errors import FileError


def csv(content, **options):
    Path("some.csv").write_bytes(content if isinstance(content, bytes) else content.encode())
    return read(Path("some.csv"), **options)


def test_columns_of_numbers():
    found = csv("x, n,y\n1.5,1,1e3\n\n-2,2,nan\n")
    assert found["x"].tolist() == [1.5, -2.0] and found["n"].tolist() == [1, 2]
    assert found["n"].dtype == np.int64 and found["y"][0] == 1000 and np.isnan(found["y"][1])


@pytest.mark.parametrize(
    "content", [b"\xef\xbb\xbfx,y\r\n1,2\r\n", b"x;y\n1;2", b"x\ty\n1\t2\n", b'"x","y"\n"1","2"\n']
)
def test_what_other_programs_write(content):
    assert {name: column.tolist() for name, column in csv(content).items()} == {"x": [1], "y": [2]}


def test_many_rows_are_one_column():
    """Whole numbers, then others: more than are read at a time."""
    found = csv("x\n" + "".join(f"{i}\n" for i in range(25_000)) + "0.5\n")
    assert found["x"].shape == (25_001,) and found["x"].dtype == np.float64
    assert np.array_equal(found["x"][:-1], np.arange(25_000)) and found["x"][-1] == 0.5


def test_chosen_columns_leave_others_alone():
    found = csv(",name,price\n0,a,1\n1,b,2\n", columns={"y": "price"})
    assert list(found) == ["y"] and found["y"].tolist() == [1, 2]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "is empty"),
        ("x,y\n", "has no rows"),
        ("x,y\n1,2\n3,\n", r"Line 3 of .* has no value in column 'y'"),
        ("x,y\n1,2\nNA,2\n", r"Line 3 of .* has 'NA' in column 'x', which is not a number"),
        ("x,y\n1,2\n3\n", "Line 3 of .* has 1 cells, and its first line 2"),
        ("x,x\n1,2\n", "two columns called 'x'"),
        (",x\n0,2\n", "Column 1 of .* has no name"),
        (b"x\n\xff\n", "not a text in UTF-8"),
    ],
)
def test_wrong_tables(content, said):
    with pytest.raises(FileError, match=said):
        csv(content)


def test_arrays():
    np.savez("some.npz", x=np.ones((2, 3), np.float32), n=3)
    found = read(Path("some.npz"))
    assert found["x"].shape == (2, 3) and found["x"].dtype == np.float32
    assert found["n"] == 3 and isinstance(found["n"], int)
    assert list(read(Path("some.npz"), {"data": "x"})) == ["data"]
    with pytest.raises(FileError, match=r"has no 'z'. It has x, n"):
        read(Path("some.npz"), {"data": "z"})
    np.savez("objects.npz", x=np.array([{}], dtype=object))
    with pytest.raises(FileError, match="something else than arrays of numbers"):
        read(Path("objects.npz"))
    np.savez("words.npz", x=np.array(["a", "b"]), name="a")
    with pytest.raises(FileError, match=r"'x' of words.npz has something else than numbers .NumPy's <U1"):
        read(Path("words.npz"))
    assert read(Path("words.npz"), {"kind": "name"}) == {"kind": "a"}
    Path("torn.npz").write_bytes(Path("some.npz").read_bytes()[:100])
    with pytest.raises(FileError, match="is damaged"):
        read(Path("torn.npz"))


def test_objects():
    content = {"x": [[1, 2], [3, 4]], "name": "a", "flag": True, "none": None}
    Path("some.json").write_text("\ufeff" + json.dumps(content))
    assert read(Path("some.json")) == content
    for text, said in (("[1]", "not a JSON object"), ("{", "is not JSON"), ('{"x":1,"x":2}', "two entries")):
        Path("some.json").write_text(text)
        with pytest.raises(FileError, match=said):
            read(Path("some.json"))


def test_other_files():
    with pytest.raises(FileError, match="of no known kind"):
        read(Path("data.xlsx"))
    with pytest.raises(FileError, match="No such file"):
        read(Path("nothing.csv"))
    with pytest.raises(FileError, match="No such file"):
        read(Path("nothing.npz"))
