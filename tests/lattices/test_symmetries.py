"""Cells that are alike, against all permutations of small blocks."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from holdfast.lattices.shapes import General
from holdfast.lattices.symmetries import Ints, alike

SHAPES = {
    "two rows of three columns": General(((1, 1, 1, 0, 0, 0), (0, 0, 0, 1, 1, 1), (1, 0, 0, 1, 0, 0), (0, 1, 0, 0, 1, 0)), (1,) * 6),
    "classes of different size": General(((1, 1, 0, 0), (0, 0, 1, 1), (1, 0, 1, 0)), (2, 2, 1, 1)),
    "a cycle": General(tuple(tuple(int((j - i) % 6 in (0, 1)) for j in range(6)) for i in range(5)), (1,) * 6),
    "nothing alike": General(((1, 2, 4, 8, 16), (1, 1, 0, 0, 0)), (1,) * 5),
    "signs": General(((1, -1, 1, -1),), (1, 1, 1, 2)),
}


def orbits(rows: Ints) -> tuple[Ints, Ints]:
    """(the smallest cell that each cell is moved to, the same of pairs) by all permutations that map the row space onto itself."""
    count = rows.shape[1]
    projection = np.linalg.pinv(rows) @ rows
    kept = [p for p in itertools.permutations(range(count)) if np.allclose(projection[np.ix_(p, p)], projection)]
    cells = np.array([min(p[i] for p in kept) for i in range(count)])
    ends = [[min(p[i] * count + p[j] for p in kept) for j in range(count)] for i in range(count)]
    return cells, np.minimum(np.array(ends), np.array(ends).T)


@pytest.mark.parametrize("name", SHAPES)
def test_what_is_alike_is_what_permutations_move_to_one_another(name: str) -> None:
    shape = SHAPES[name]
    cells, pairs = orbits(shape.listed_matrix())
    found = alike(shape)
    if found is None:
        assert len(set(cells)) == shape.size
        return
    kinds = found.single[found.class_of]
    assert np.array_equal(kinds[:, None] == kinds, cells[:, None] == cells)
    off = ~np.eye(shape.size, dtype=np.bool_)
    two = found.pairs[np.ix_(found.class_of, found.class_of)][off]
    assert np.array_equal(two[:, None] == two, pairs[off][:, None] == pairs[off])


@pytest.mark.parametrize("name", [name for name in SHAPES if name != "nothing alike"])
def test_moments_are_averaged_over_what_is_alike(name: str) -> None:
    shape = SHAPES[name]
    found = alike(shape)
    assert found is not None
    cells, pairs = orbits(shape.listed_matrix())
    draws, weights = np.random.default_rng(3).normal(size=(7, shape.size)), np.arange(1.0, 8.0)
    plain = (draws.T * weights) @ draws / weights.sum()
    diagonal = np.eye(shape.size, dtype=np.bool_)
    expected = np.array(
        [[plain[(pairs == pairs[i, j]) & (diagonal == (i == j))].mean() for j in range(shape.size)] for i in range(shape.size)]
    )
    assert np.allclose(found.matrix(draws, weights), expected)
    squares = found.squares(draws)[:, found.single[found.class_of]]
    assert np.allclose(squares, np.stack([(draws[:, cells == cell] ** 2).mean(axis=1) for cell in cells], axis=1))
