"""Blocks with bounds: each cell once, joined where a row spans them, and the law factorises over them."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import holdfast as hf
from holdfast.errors import InvalidParameter
from holdfast.lattices import lattice
from holdfast.lattices.blocks import Blocks
from holdfast.lattices.bounded_blocks import Inequalities, bounded_blocks
from holdfast.lattices.shapes import Bounded, Free, Grid, OneSum, Pinned, Whole
from holdfast.lattices.shapes.shape import UNBOUNDED
from tests.examples import examples

UNIVERSE = hf.Universe.product({"a": ["x", "y", "z"], "b": ["p", "q"]})


def inequalities(*rows: tuple[list[int], list[int], int], upper: int = 9, lower: int = 0) -> Inequalities:
    made = tuple((np.array(cells), np.array(coefficients), least) for cells, coefficients, least in rows)
    return Inequalities(np.full(6, lower), np.full(6, upper), made)


def blocks_of(keep: list[Any], given: Inequalities) -> Blocks:
    return bounded_blocks(lattice(UNIVERSE, keep).blocks, given)


def test_equal_bounds_share_a_shape() -> None:
    found = blocks_of([hf.margin("a")], inequalities())
    assert found.shapes == (Bounded(OneSum(2), 0, 9),)
    assert found.counts == (3,)
    mixed = Inequalities(np.zeros(6, dtype=np.int64), np.array([9, 9, 9, 9, 4, UNBOUNDED]))
    assert {shape: count for _, shape, count in blocks_of([hf.margin("a")], mixed).used_shapes()} == {
        Bounded(OneSum(2), 0, 9): 2,
        Bounded(OneSum(2), 0, (4, None)): 1,
    }


def test_free_cells_are_blocks_of_one_cell() -> None:
    found = blocks_of([], inequalities())
    assert found.shapes == (Bounded(Free(1), 0, 9),)
    assert found.counts == (6,)


def test_rows_join_blocks_and_cells() -> None:
    found = blocks_of([hf.margin("a")], inequalities(([0, 2], [1, -1], 0)))
    joined = next(block for block in found if isinstance(block.shape, Bounded) and block.shape.rows)
    assert joined.shape == Bounded(Whole((OneSum(2), OneSum(2))), 0, 9, ((1, 0, -1, 0),), (0,))
    assert joined.cells.tolist() == [0, 1, 2, 3]
    free = blocks_of([hf.subset("a", ["x"])], inequalities(([1, 4], [1, 1], 2), ([4, 5], [1, 1], 3)))
    joined = next(block for block in free if isinstance(block.shape, Bounded) and block.shape.rows)
    assert isinstance(joined.shape, Bounded)
    assert joined.shape.shape == Whole((OneSum(2), Free(1), Free(1)))
    assert joined.cells.tolist() == [0, 1, 4, 5]


def test_a_row_inside_a_grid_and_one_that_is_kept() -> None:
    keep = [hf.margin("a"), hf.margin("b")]
    inside = blocks_of(keep, inequalities(([0, 3], [1, 1], 1)))
    assert inside.shapes == (Bounded(Grid((2, 3)), 0, 9, ((1, 0, 0, 0, 1, 0),), (1,)),)
    kept = blocks_of(keep, inequalities(([0, 2, 4], [1, 1, 1], 1), ([0, 1], [2, 2], 1)))
    assert kept.shapes == (Bounded(Grid((2, 3)), 0, 9),)


def test_pinned_cells_are_taken_along_where_a_row_needs_them() -> None:
    keep = [hf.linear([[1, 0, 0, 0, 0, 0]])]
    assert Pinned(1) in blocks_of(keep, inequalities()).shapes
    found = blocks_of(keep, inequalities(([0, 1], [-1, 1], 0)))
    assert Bounded(Whole((Pinned(1), Free(1))), 0, 9, ((-1, 1),), (0,)) in found.shapes


@settings(deadline=None, max_examples=examples(40))
@given(st.data())
def test_tables_within_the_bounds_are_a_product_over_blocks(data: st.DataObject) -> None:
    """Every table of counts up to 2 with the totals of one: within all bounds exactly where each block is within its own."""
    keep: list[Any] = data.draw(
        st.sampled_from([[], [hf.total()], [hf.margin("a")], [hf.margin("a"), hf.margin("b")], [hf.subset("a", ["x"])]])
    )
    rows = []
    for _ in range(data.draw(st.integers(0, 2))):
        cells = sorted(data.draw(st.sets(st.integers(0, 5), min_size=1, max_size=3)))
        rows.append((cells, [data.draw(st.sampled_from([1, -1, 2])) for _ in cells], data.draw(st.integers(-2, 2))))
    given = inequalities(*rows, upper=data.draw(st.sampled_from([1, 2, UNBOUNDED])), lower=data.draw(st.sampled_from([0, -UNBOUNDED])))
    moves = lattice(UNIVERSE, keep)
    found = bounded_blocks(moves.blocks, given)
    assert sorted(cell for block in found for cell in block.cells.ravel().tolist()) == list(range(6))
    matrix = moves.matrix.toarray()
    x = np.array([1, 0, 2, 1, 0, 1])
    if not given.hold(x):
        return
    for table in product(range(3), repeat=6):
        y = np.array(table)
        if np.array_equal(matrix @ y, matrix @ x):
            by_block = all(not isinstance(b.shape, Bounded) or b.shape.holds(y[b.cells.ravel()][None, :])[0] for b in found)
            assert by_block == given.hold(y)


def test_shapes_that_are_refused() -> None:
    for wrong in (
        lambda: Bounded(OneSum(3), (0, 1), None),
        lambda: Bounded(OneSum(3), 0, None, ((1, 1),), (0,)),
        lambda: Bounded(Free(1), 0, 1, (), (3,)),
    ):
        with pytest.raises(InvalidParameter):
            wrong()
    assert Bounded(OneSum(3), (0, 0, 0), None) == Bounded(OneSum(3), 0, None)
    assert Bounded(OneSum(3), (0, 0, 1), None).fields != Bounded(OneSum(3), 0, None).fields
