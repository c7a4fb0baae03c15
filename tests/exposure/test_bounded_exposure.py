"""Cells that kept totals pin together with bounds and inequalities of sums, against all tables by enumeration."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import holdfast as hf
from holdfast.errors import NoTableWithin
from holdfast.exposure import exposure
from holdfast.invariants.rows import compile_rows
from holdfast.lattices.bounded_blocks import Inequalities
from holdfast.lattices.shapes.shape import UNBOUNDED
from tests.examples import examples

FOUR = hf.Universe.product({"town": ["w", "x", "y", "z"]})
TOTAL = hf.total()
W = hf.subset("town", ["w"])


def inequalities(lower: Any, upper: Any, rows: list[tuple[tuple[int, ...], int]]) -> Inequalities:
    made = []
    for row, least in rows:
        cells = np.flatnonzero(row)
        made.append((cells, np.array(row, dtype=np.int64)[cells], least))
    return Inequalities(np.array(lower, dtype=np.int64), np.array(upper, dtype=np.int64), tuple(made))


def found_for(x: tuple[int, ...], keep: list[Any], bounds: Inequalities) -> Any:
    moves = hf.lattice(FOUR, keep)
    kept = compile_rows(FOUR, keep)
    return exposure(moves, kept, [rows.totals(np.array(x)) for rows in kept.rows], bounds=bounds)


NUMBERS = st.integers(0, 2)


@settings(max_examples=examples(60), deadline=None)
@given(st.data())
def test_intervals_hold_all_tables_and_what_is_pinned_is_pinned(data: st.DataObject) -> None:
    """Every table with the kept totals within the bounds lies within the intervals; no cell is called known that totals must pin."""
    x = tuple(data.draw(st.lists(NUMBERS, min_size=4, max_size=4)))
    keep: list[Any] = data.draw(st.sampled_from([[], [TOTAL], [W], [TOTAL, hf.subset("town", ["w", "x"])]]))
    lower = [v - data.draw(NUMBERS) for v in x]
    upper = [data.draw(st.sampled_from([v, v + 1, UNBOUNDED])) for v in x]
    rows = []
    for _ in range(data.draw(NUMBERS)):
        row = tuple(data.draw(st.lists(st.integers(-2, 2), min_size=4, max_size=4)))
        assume(any(row))
        rows.append((row, sum(a * b for a, b in zip(row, x, strict=True)) - data.draw(NUMBERS)))
    bounds = inequalities(lower, upper, rows)
    found = found_for(x, keep, bounds)
    within = np.array([y for y in product(range(7), repeat=4) if bounds.hold(np.array(y))])
    matrix = hf.lattice(FOUR, keep).matrix.toarray()
    tables = within[(within @ matrix.T == matrix @ np.array(x)).all(axis=1)]
    assert (tables[:, found.pinned] == found.values).all()
    assert (tables[:, found.undecided] >= found.limits[0]).all()
    assert (tables[:, found.undecided] <= found.limits[1]).all()
    assert all(len(np.unique(tables[:, cell])) == 1 for cell in found.cells)
    assert all(len(np.unique(within[:, cell])) == 1 for cell in found.known)


def test_a_row_that_takes_the_whole_total_pins_every_cell() -> None:
    table = hf.Table(FOUR, np.array([10, 0, 0, 0]))
    release = hf.release(table, [TOTAL], hf.Conditional(epsilon=1, rows=[hf.at_least(W, 10)], per="distance"), hf.NoiseKey.for_tests(1))
    assert release.card.exposed.by_values == 4
    assert "since counts are not negative and all counts lie within the bounds" in release.card.exposed.text


def test_what_an_inequality_pins_alone_is_known_and_not_exposed() -> None:
    table = hf.Table(FOUR, np.array([0, 3, 2, 4]))
    release = hf.release(table, [TOTAL], hf.Conditional(epsilon=1, rows=[hf.at_most(W, 0)], per="distance"), hf.NoiseKey.for_tests(1))
    assert release.card.exposed.cells == 0


@pytest.mark.parametrize("bounds", [{"lower": -5}, {"lower": None, "upper": 50}, {}])
def test_cells_under_a_total_of_zero_follow_from_counts_not_being_negative(bounds: dict[str, Any]) -> None:
    universe = hf.Universe.product({"sex": ["F", "M"], "age": ["x", "y", "z"]})
    table = hf.Table(universe, np.array([0, 0, 0, 4, 5, 6]))
    release = hf.release(table, [hf.margin("sex")], hf.Conditional(epsilon=1, per="distance", **bounds), hf.NoiseKey.for_tests(1))
    assert "3 cells follow from the published totals, since counts are not negative: " in release.card.exposed.text


def test_totals_and_inequalities_that_leave_no_table_are_refused() -> None:
    bounds = inequalities([0] * 4, [5] * 4, [((1, 0, 0, 0), 4)])
    with pytest.raises(NoTableWithin):
        found_for((3, 0, 0, 0), [TOTAL], bounds)
