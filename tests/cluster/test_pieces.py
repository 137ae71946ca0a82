"""Bytes that travel with a call, in pieces."""

import pytest

pytest.importorskip("ray")

from pathmix.cluster.ray import _PIECE, in_pieces


@pytest.mark.parametrize("size", [0, 1, _PIECE, _PIECE + 1, 5 * _PIECE - 1])
@pytest.mark.parametrize("count", [None, 2, 4, 9])
def test_they_are_small_and_nothing_is_lost(size, count):
    content = bytes(number % 251 for number in range(size))
    pieces = in_pieces(content, count)
    assert b"".join(pieces) == content
    assert all(len(piece) <= _PIECE for piece in pieces[:-1])
    assert count is None or len(pieces) == count
    assert count is not None or len(pieces[-1]) <= _PIECE
