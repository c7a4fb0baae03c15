"""Facts about secrets, against a search of all moves of one person on small tables."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import holdfast as hf
from holdfast.errors import InvalidParameter, NothingLeft
from holdfast.lattices import Lattice
from holdfast.lattices.columns import has_equal_columns
from holdfast.lattices.norms import L1, L2
from holdfast.privacy.guarantee import secrets_of
from tests.examples import examples

ROWS_AND_COLUMNS = [[1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 1, 0], [0, 1, 0, 1]]


def one_person(matrix: np.ndarray) -> tuple[bool, bool]:
    """(whether some e_i - e_j is a move, whether some e_i is), by trying all."""
    cells = matrix.shape[1]
    unit = np.eye(cells, dtype=np.int64)
    moves = any(not (matrix @ (unit[i] - unit[j])).any() for i, j in permutations(range(cells), 2))
    return moves, any(not (matrix @ unit[i]).any() for i in range(cells))


matrices = st.integers(min_value=1, max_value=3).flatmap(
    lambda rows: st.integers(min_value=2, max_value=6).flatmap(
        lambda cells: st.lists(
            st.lists(st.integers(min_value=-1, max_value=2), min_size=cells, max_size=cells), min_size=rows, max_size=rows
        )
    )
)


@given(matrices)
@settings(max_examples=examples(300))
def test_facts_agree_with_trying_every_move_of_one_person(rows: list[list[int]]) -> None:
    matrix = np.array(rows, dtype=np.int64)
    lattice = Lattice(matrix)
    if lattice.dimension == 0:
        with pytest.raises(NothingLeft):
            secrets_of(lattice)
        return
    facts = secrets_of(lattice)
    moves, added = one_person(matrix)
    assert (facts.person_can_move_alone, facts.person_can_be_added) == (moves, added)
    assert facts.person(L1) == (2 if moves else 1 if added else None)
    assert facts.person(L2) == (2 if moves else 1 if added else None)
    if facts.person(L1) is not None:
        assert facts.smallest_l1 <= 2
    assert facts.smallest_l1 >= 1
    assert facts.status == "exact"


@pytest.mark.parametrize(
    ("rows", "l1", "l2_squared", "moves", "added"),
    [
        ([[1, 1, 1]], 2, 2, True, False),
        ([[1, 1, 0]], 1, 1, True, True),
        ([[1, -1]], 2, 2, False, False),
        ([[1, -1, 1]], 2, 2, True, False),
        (ROWS_AND_COLUMNS, 4, 4, False, False),
        ([[1, 2, 3]], 3, 3, False, False),
        ([[0, 0]], 1, 1, True, True),
    ],
)
def test_known_lattices(rows: list[list[int]], l1: int, l2_squared: int, moves: bool, added: bool) -> None:
    facts = secrets_of(Lattice(np.array(rows)))
    assert (facts.smallest_l1, facts.smallest_l2_squared) == (l1, l2_squared)
    assert (facts.person_can_move_alone, facts.person_can_be_added) == (moves, added)


def test_a_person_with_several_records_reaches_further() -> None:
    """In rows and columns, moving two records of one person along a cycle keeps all sums; one record cannot."""
    grid = Lattice(np.array(ROWS_AND_COLUMNS))
    assert secrets_of(grid).person(L1) is None
    two = secrets_of(grid, "household", max_records=2)
    assert two.person_can_move_alone
    assert (two.person(L1), two.person(L2), two.protect) == (4, 8, "household")
    total = secrets_of(Lattice(np.array([[1, 1, 1]])), max_records=3)
    assert (total.person(L1), total.person(L2)) == (6, 18)


@pytest.mark.parametrize(("rows", "records"), [([[3, -1]], 2), ([[3, 1]], 2), ([[5, -1]], 3)])
def test_a_move_that_is_near_in_l1_but_too_far_in_l2_is_no_person(rows: list[list[int]], records: int) -> None:
    """(1, 3) is l1 = 4, but nobody with two records changes one count by three: no mechanism may stumble over it."""
    facts = secrets_of(Lattice(rows), max_records=records)
    assert facts.smallest_l1 <= 2 * records
    assert (facts.person(L1), facts.person(L2)) == (None, None)
    for mechanism in (
        hf.GeneralizedGaussian(rho="1/10", per="distance"),
        hf.GeneralizedLaplace(epsilon="1/4", per="distance"),
        hf.GeneralizedLaplace(epsilon="1/4", norm="l2", per="distance"),
    ):
        assert mechanism.law(Lattice(rows), max_records=records).guarantee.per_person() is None


@pytest.mark.parametrize(("margins", "smallest", "moves"), [([("a", "b")], 2, True), ([("a", "b"), ("b", "c"), ("a", "c")], 8, False)])
def test_large_margins_need_no_dense_matrix(margins: list[tuple[str, ...]], smallest: int, moves: bool) -> None:
    codes = [str(i) for i in range(14)]
    universe = hf.Universe.product({"a": codes, "b": codes, "c": codes})
    facts = secrets_of(hf.lattice(universe, [hf.margin(*margin) for margin in margins]))
    assert (facts.smallest_l1, facts.smallest_l2_squared, facts.status) == (smallest, smallest, "exact")
    assert (facts.person_can_move_alone, facts.person_can_be_added) == (moves, False)


def test_overlapping_margins_of_a_large_table_let_a_person_move_inside_equal_columns() -> None:
    """Kept: a by b, and b by c, of (a, b, c, d): cells that differ in d alone have equal columns."""
    codes = [str(i) for i in range(9)]
    universe = hf.Universe.product({"a": codes, "b": codes, "c": codes, "d": ["x", "y"]})
    with_d = secrets_of(hf.lattice(universe, [hf.margin("a", "b"), hf.margin("b", "c"), hf.margin("a", "c")]))
    assert (with_d.smallest_l1, with_d.person_can_move_alone) == (2, True)


@given(matrices)
def test_hashed_columns_find_what_trying_finds(rows: list[list[int]]) -> None:
    lattice = Lattice(np.array(rows, dtype=np.int64))
    cells = np.arange(lattice.cells)
    assert has_equal_columns(lattice.matrix, cells) == one_person(np.array(rows, dtype=np.int64))[0]


def test_bad_max_records() -> None:
    with pytest.raises(InvalidParameter, match="max_records must be a whole number"):
        secrets_of(Lattice(np.array([[1, 1]])), max_records=0)
