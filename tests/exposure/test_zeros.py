"""Cells under a kept total of 0: the rule against all tables of counts, and what is left of blocks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import holdfast as hf
from holdfast.exposure.cells import left_out, zero_cells
from holdfast.invariants.rows import Kept, compile_rows
from holdfast.lattices import Lattice
from holdfast.lattices.algebra import kernel_basis, to_numpy
from holdfast.lattices.shapes import General
from tests.examples import examples

UNIVERSE = hf.Universe.product({"a": ["1", "2", "3"], "b": ["x", "y"]})
Ints = NDArray[np.int64]
Rule = Callable[[Kept, Sequence[Ints]], NDArray[np.bool_]]

KEEPS: list[list[Any]] = [
    [hf.total()],
    [hf.margin("a")],
    [hf.margin("a"), hf.margin("b")],
    [hf.subset("a", ["1", "2"], by=["b"])],
    [hf.linear([[1, 2, 0, 0, 0, 3]])],
    [hf.linear([[-1, 0, -2, 0, 0, 0], [0, 0, 0, 1, 1, 1]])],
    [hf.linear([[1, -1, 0, 0, 0, 0]]), hf.margin("b")],
    [hf.margin("b"), hf.identity(hf.subset("a", ["3"]))],
]


def totals_of(kept: Kept, counts: Ints) -> list[Ints]:
    return [rows.totals(counts) for rows in kept.rows]


ALL_SMALL = np.array(list(product(range(3), repeat=6)), dtype=np.int64)
"""Every table of counts up to 2."""


def breaks(rule: Rule, keep: list[Any], counts: Ints) -> bool:
    """Whether some table of counts with the same kept totals has a count at a cell that the rule calls zero."""
    kept = compile_rows(UNIVERSE, keep)
    matrix = kept.matrix().toarray()
    same = ALL_SMALL[(matrix @ counts == ALL_SMALL @ matrix.T).all(axis=1)]
    assert (same == counts).all(axis=1).any()
    return bool(same[:, rule(kept, totals_of(kept, counts))].any())


@pytest.mark.parametrize("keep", KEEPS, ids=str)
@given(counts=st.lists(st.sampled_from([0, 0, 1, 2]), min_size=6, max_size=6))
@settings(max_examples=examples(40))
def test_no_table_of_counts_with_these_totals_has_a_count_there(keep: list[Any], counts: list[int]) -> None:
    assert not breaks(zero_cells, keep, np.array(counts))


def whatever_the_signs(kept: Kept, totals: Sequence[Ints]) -> NDArray[np.bool_]:
    """A wrong rule: a difference of 0 pins nothing."""
    matrix = kept.matrix()
    zero = np.concatenate(totals) == 0
    return np.asarray(abs(matrix[np.flatnonzero(zero)]).sum(axis=0) > 0).ravel()


def cells_that_are_zero(kept: Kept, totals: Sequence[Ints]) -> NDArray[np.bool_]:
    """A wrong rule that looks at more than the totals."""
    return np.array([True, False, True, False, True, False])


@pytest.mark.parametrize(
    ("rule", "keep", "counts"),
    [(whatever_the_signs, KEEPS[6], [1, 1, 0, 0, 0, 0]), (cells_that_are_zero, KEEPS[1], [0, 1, 0, 1, 0, 1])],
)
def test_a_wrong_rule_is_caught(rule: Rule, keep: list[Any], counts: list[int]) -> None:
    assert breaks(rule, keep, np.array(counts))
    assert not breaks(zero_cells, keep, np.array(counts))


@pytest.mark.parametrize("keep", KEEPS, ids=str)
@given(counts=st.lists(st.sampled_from([0, 0, 1, 2]), min_size=6, max_size=6))
@settings(max_examples=25)
def test_moves_left_are_those_that_are_zero_there(keep: list[Any], counts: list[int]) -> None:
    """Rank, membership and the direct sum of the blocks against the kernel of the rows with one row for each cell."""
    kept = compile_rows(UNIVERSE, keep)
    whole = Lattice.from_kept(kept)
    for zeros in left_out(whole, kept, zero_cells(kept, totals_of(kept, np.array(counts)))):
        rows = np.vstack([kept.matrix().toarray(), np.eye(6, dtype=np.int64)[zeros.cells]])
        kernel = to_numpy(kernel_basis(rows)).reshape(6, -1)
        assert zeros.moves.dimension == kernel.shape[1] < whole.dimension
        assert all(zeros.moves.contains(move) for move in kernel.T)
        assert sorted(np.concatenate([block.cells.ravel() for block in zeros.moves.blocks]).tolist()) == list(range(6))
        for move in zeros.moves.basis.T:
            assert whole.contains(move)
            assert not move[zeros.cells].any()
        assert not zeros.moves.contains(np.eye(6, dtype=np.int64)[zeros.cells[0]])


def of_table(keep: list[Any], axes: tuple[int, ...], zero: Callable[[Ints], Any]) -> tuple[Lattice, list[Any]]:
    """(the lattice, what may be left out) of a table by columns 0, 1, ... whose counts are 0 where `zero` of their places is true."""
    universe = hf.Universe.product({str(k): [f"c{i}" for i in range(n)] for k, n in enumerate(axes)})
    counts = np.where(zero(np.indices(axes).reshape(len(axes), -1)), 0, 1)
    kept = compile_rows(universe, keep)
    whole = Lattice.from_kept(kept)
    return whole, list(left_out(whole, kept, zero_cells(kept, totals_of(kept, counts))))


ONE_WAY = [hf.margin("0"), hf.margin("1"), hf.margin("2")]
TWO_WAY = [hf.margin("0", "1"), hf.margin("0", "2"), hf.margin("1", "2")]


def test_whole_codes_leave_a_product() -> None:
    whole, found = of_table(ONE_WAY, (4, 3, 5), lambda at: (at[0] == 1) | (at[2] == 0))
    assert len(found) == 1
    assert found[0].moves.blocks.kinds().keys() == whole.blocks.kinds().keys() | {"exposed"}
    assert found[0].moves.dimension == 3 * 3 * 4 - (2 + 2 + 3 + 1)


def test_of_cells_that_make_holes_only_whole_codes_are_left_out() -> None:
    """All two-way margins: one of them is 0 for a pair of codes, another for a whole code."""
    whole, found = of_table(TWO_WAY, (4, 3, 5), lambda at: ((at[0] == 1) & (at[1] == 1)) | (at[2] == 2))
    assert list(whole.blocks.kinds()) == ["grid"]
    assert len(found) == 1
    assert len(found[0].cells) == 4 * 3
    assert found[0].moves.dimension == 3 * 2 * 3


def test_nothing_is_left_out_where_only_holes_would_be(monkeypatch: pytest.MonkeyPatch) -> None:
    """And nothing is tried: the rank of a large table with holes would take hours."""
    monkeypatch.setattr("holdfast.exposure.cells.Zeros.moves", property(lambda self: pytest.fail("a lattice with holes was made")))
    assert of_table(TWO_WAY, (4, 3, 5), lambda at: (at[0] == 1) & (at[1] == 1))[1] == []


def test_cells_that_are_fixed_anyway_are_nothing_to_leave_out() -> None:
    keep = [hf.margin("0"), hf.subset("0", ["c0"], by=["1"])]
    assert of_table(keep, (3, 2), lambda at: at[0] == 0)[1] == []
    assert len(of_table(keep, (3, 2), lambda at: at[0] == 1)[1]) == 1


def test_a_block_of_no_known_shape_stays_one() -> None:
    """Three areas that overlap in pairs, and one area whose total is 0."""
    sets = {"s": ["c0", "c1"], "t": ["c1", "c2"], "u": ["c2", "c0"], "v": ["c3"]}
    whole, found = of_table([hf.areas("0", sets), hf.margin("1")], (5, 4), lambda at: at[0] == 3)
    assert any(isinstance(shape, General) for shape in whole.blocks.shapes)
    assert [len(zeros.cells) for zeros in found] == [4]
    assert found[0].moves.dimension < whole.dimension
