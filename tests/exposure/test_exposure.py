"""What kept totals expose: against brute force over all tables with the same totals."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.errors import ContradictingTotals, InvalidParameter
from holdfast.exposure.cells import decided_bounds, exposure
from holdfast.invariants import compile_rows, identity, linear, margin, subset, total
from holdfast.invariants.constraints import Constraint
from holdfast.lattices import Lattice, components
from holdfast.tables.universe import Universe
from tests.examples import examples


def table(**sizes: int) -> Universe:
    return Universe.product({column: [str(i) for i in range(size)] for column, size in sizes.items()})


def explored(universe: Universe, keep: list[Constraint], counts: np.ndarray, **options: Any):
    kept = compile_rows(universe, keep)
    totals = [rows.totals(counts) for rows in kept.rows]
    return exposure(Lattice.from_kept(kept), kept, totals, **options), kept


def bounds_of(universe: Universe, keep: list[Constraint], counts: np.ndarray):
    kept = compile_rows(universe, keep)
    return decided_bounds(kept, [rows.totals(counts) for rows in kept.rows], Lattice.from_kept(kept).blocks)


def brute_intervals(matrix: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Smallest and largest value of each cell over all non-negative tables with the same totals."""
    top = int(counts.sum())
    tables = np.array([y for y in product(range(top + 1), repeat=len(counts)) if not (matrix @ (np.array(y) - counts)).any()])
    return tables.min(axis=0), tables.max(axis=0)


KEEP: dict[str, list[Constraint]] = {
    "total": [total()],
    "rows and columns": [margin("r"), margin("c")],
    "rows": [margin("r")],
    "rows and one column": [margin("r"), subset("c", ["0"])],
}


@settings(max_examples=examples(40))
@given(st.sampled_from(sorted(KEEP)), st.lists(st.integers(0, 2), min_size=4, max_size=4).filter(lambda x: sum(x) <= 5))
def test_intervals_hold_every_table_with_the_same_totals(name: str, values: list[int]) -> None:
    counts = np.array(values, dtype=np.int64)
    found, kept = explored(table(r=2, c=2), KEEP[name], counts)
    lower, upper, _ = bounds_of(table(r=2, c=2), KEEP[name], counts)
    low, high = brute_intervals(kept.matrix().toarray(), counts)
    assert (lower <= low).all()
    assert (high <= upper).all()
    if name != "rows and one column":  # one set or a 2 x 2 table: the bounds are the best possible
        assert (lower == low).all()
        assert (upper == high).all()
        by_blocks, _ = explored(table(r=2, c=2), KEEP[name], counts, table=counts)
        for pins in (found, by_blocks):
            assert pins.pinned.tolist() == np.flatnonzero(low == high).tolist()
            assert pins.values.tolist() == low[low == high].tolist()


def test_frechet_bounds_of_a_two_way_table() -> None:
    counts = np.array([5, 0, 0, 3, 1, 0, 2, 0, 0], dtype=np.int64)
    found, _ = explored(table(r=3, c=3), [margin("r"), margin("c")], counts)
    lower, upper, _ = bounds_of(table(r=3, c=3), [margin("r"), margin("c")], counts)
    rows, columns, everyone = counts.reshape(3, 3).sum(1), counts.reshape(3, 3).sum(0), counts.sum()
    assert (lower.reshape(3, 3) >= np.maximum(0, rows[:, None] + columns[None, :] - everyone)).all()
    assert (upper.reshape(3, 3) <= np.minimum(rows[:, None], columns[None, :])).all()
    assert found.cells_exposed_by_totals.tolist() == [2, 5, 8]


def test_without_totals_only_the_structure_is_told() -> None:
    kept = compile_rows(table(a=3), [subset("a", ["0"]), total()])
    found = exposure(Lattice.from_kept(kept), kept)
    assert found.fixed.tolist() == [0]
    assert found.cells_exposed_by_totals.tolist() == []
    assert found.limits is None


def test_identities_expose_nothing() -> None:
    universe = table(a=4)
    kept = compile_rows(universe, [identity(linear([[1, 0, 0, 0]])), total(), subset("a", ["1"])])
    found = exposure(Lattice.from_kept(kept), kept)
    assert found.fixed.tolist() == [1], "the structural zero is no secret and exposes nothing; the kept single cell does"


def test_impossible_totals_are_refused() -> None:
    kept = compile_rows(table(r=2, c=2), [margin("r"), margin("c")])
    made = Lattice.from_kept(kept)
    with pytest.raises(ContradictingTotals, match="disagrees"):
        exposure(made, kept, [np.array([3, 4]), np.array([5, 9])])
    with pytest.raises(InvalidParameter, match="every constraint"):
        exposure(made, kept, [np.array([3, 4])])


def test_huge_totals_do_not_overflow() -> None:
    counts = np.full(9, 2**57, dtype=np.int64)
    found, _ = explored(table(r=3, c=3), [margin("r"), margin("c")], counts)
    assert (bounds_of(table(r=3, c=3), [margin("r"), margin("c")], counts)[1] == 3 * 2**57).all()
    assert len(found.cells_exposed_by_totals) == 0


def test_rows_given_as_a_matrix_pin_like_margins() -> None:
    universe = table(a=2, b=2)
    cases: list[list[Constraint]] = [
        [margin("a")],
        [linear([[1, 1, 0, 0], [0, 0, 1, 1]])],
        [linear([[-1, -1, 0, 0], [0, 0, 3, 3]])],
    ]
    for keep in cases:
        found, _ = explored(universe, keep, np.array([0, 0, 3, 4], dtype=np.int64))
        assert found.cells_exposed_by_totals.tolist() == [0, 1], keep
    found, _ = explored(universe, [linear([[0, 0, 0, 2]])], np.array([1, 1, 1, 3], dtype=np.int64))
    assert found.values_of(np.array([3])).tolist() == [3]


def test_a_cell_without_bounds_is_fixed() -> None:
    kept = compile_rows(table(a=4), [linear([[1, -1, 0, 0], [1, 1, 0, 0]])])
    found = exposure(Lattice.from_kept(kept), kept, [np.array([1, 3])])
    assert found.fixed.tolist() == [0, 1]


def test_what_identities_fix_is_not_listed_as_pinned_either() -> None:
    universe = table(r=2, c=2)
    keep = [margin("r"), identity(subset("r = 1 and c = 1"))]
    found, _ = explored(universe, keep, np.array([5, 6, 40, 0], dtype=np.int64))
    assert found.known.tolist() == [3]
    assert 3 not in found.cells_exposed_by_totals
    assert 3 not in found.fixed


def test_totals_must_be_integers() -> None:
    kept = compile_rows(table(a=2, b=2), [margin("a")])
    with pytest.raises(InvalidParameter, match="integers"):
        exposure(Lattice.from_kept(kept), kept, [np.array([50.9, 40.0])])


def test_an_incomplete_search_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(components, "LARGEST_SEARCHED", 3)
    cells = [(str(a), str(b), str(c)) for a in range(2) for b in range(2) for c in range(3) if (a, b, c) != (1, 1, 1)]
    universe = Universe.listed({name: list(codes) for name, codes in zip("abc", zip(*cells, strict=True), strict=True)})
    kept = compile_rows(universe, [margin("a"), margin("b"), margin("c")])
    found = exposure(Lattice.from_kept(kept), kept)
    assert not found.complete
    assert found.undecided.tolist() == list(range(len(universe)))


def test_cells_that_occur_hold_one_at_least() -> None:
    """Two cells that occur and a total of 2: both hold 1. The same total over declared cells says nothing."""
    cases: list[tuple[Literal["observed", "declared"], list[int]]] = [("observed", [0, 1]), ("declared", [])]
    for support, pinned in cases:
        universe = replace(Universe.product({"a": ["x", "y"]}), support=support)
        kept = compile_rows(universe, [total()])
        found = exposure(Lattice.from_kept(kept), kept, [np.array([2])])
        assert found.cells_exposed_by_totals.tolist() == pinned
        assert found.values.tolist() == [1] * len(pinned)
