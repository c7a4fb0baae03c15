"""Which cells totals pin by their values, against every table of counts with these totals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.sparse import csr_array

import holdfast as hf
from holdfast.errors import ContradictingTotals
from holdfast.exposure import Exposure, exposure
from holdfast.exposure.membership import RowSet, equal_columns
from holdfast.exposure.pins import Sums, _bridges, _decide_classes, _flow, _frechet_bounds, _network_bounds, decide
from holdfast.exposure.programmes import Work, _Tableau, _tighten_rows, programme_bounds
from holdfast.invariants.rows import compile_rows
from holdfast.lattices import Lattice
from holdfast.tables.hierarchy import Hierarchy
from tests.examples import examples

Ints = NDArray[np.int64]

TREE = Hierarchy({"N": None, "a": "N", "b": "N", "S": None, "c": "S", "d": "S"}, ["region", "place"])
PLACES = hf.Universe.product({"place": TREE, "sex": ["F", "M"]})
CUBE = hf.Universe.product({"a": ["0", "1"], "b": ["0", "1"], "c": ["0", "1", "2"]})
LINE = hf.Universe.product({"cell": list("pqrst")})


def every_table(matrix: Ints, totals: Ints) -> Ints:
    """All tables of counts with these totals, cell by cell: each cell is in a row without negative coefficients."""
    plain = (matrix >= 0).all(axis=1)
    tables, left = np.zeros((1, 0), dtype=np.int64), totals[None, :]
    for column in matrix.T:
        most = min(int(totals[row]) // int(column[row]) for row in np.flatnonzero(plain & (column > 0)))
        steps = np.arange(most + 1)
        tables = np.concatenate([np.column_stack([tables, np.full(len(tables), step)]) for step in steps])
        left = np.concatenate([left - step * column for step in steps])
        possible = (left[:, plain] >= 0).all(axis=1)
        tables, left = tables[possible], left[possible]
    found: Ints = tables[(left == 0).all(axis=1)]
    return found


def found_for(universe: hf.Universe, keep: list[Any], counts: Ints, table: Ints | None = None) -> Exposure:
    kept = compile_rows(universe, keep)
    return exposure(Lattice.from_kept(kept), kept, [rows.totals(counts) for rows in kept.rows], table=table)


def random_case(rng: np.random.Generator) -> tuple[hf.Universe, list[Any], Ints]:
    """A universe, constraints that hold its total, and small counts, many of them 0."""
    universe = [PLACES, CUBE, LINE][rng.integers(3)]
    cells = len(universe)
    if universe is LINE:
        options: list[Any] = [hf.subset("cell", list(np.array(list("pqrst"))[rng.permutation(5)[: rng.integers(1, 4)]])) for _ in range(4)]
    elif universe is CUBE:
        options = [hf.margin(*names) for names in ("a", "b", "c", "ab", "bc", "ac")] + [hf.subset("c", ["0", "1"], by=["a"])]
    else:
        options = [hf.margin("place"), hf.margin("region"), hf.margin("sex"), hf.margin("region", "sex"), hf.subset("place", ["b", "c"])]
        options.append(hf.subset("place", ["a", "d"], by=["sex"]))
    keep = [options[i] for i in rng.permutation(len(options))[: rng.integers(1, 4)]]
    if rng.random() < 0.3:
        row = rng.integers(-2, 3, size=cells)
        keep += [hf.linear([row.tolist()])] if row.any() else []
    counts = rng.choice([0, 0, 0, 1, 1, 2], size=cells).astype(np.int64)
    counts[np.cumsum(counts) > 7] = 0
    return universe, [*keep, hf.total()], counts


def check_case(universe: hf.Universe, keep: list[Any], counts: Ints, *, with_table: bool) -> int:
    """The undecided cells of a case in which nothing is missed and nothing false."""
    kept = compile_rows(universe, keep)
    tables = every_table(kept.matrix().toarray(), np.concatenate([rows.totals(counts) for rows in kept.rows]))
    assert (tables == counts).all(axis=1).any()
    low, high = tables.min(axis=0), tables.max(axis=0)
    found = found_for(universe, keep, counts, counts if with_table else None)
    assert np.array_equal(found.values, low[found.pinned])
    if found.limits is not None:
        assert (found.limits[0] <= low[found.undecided]).all()
        assert (found.limits[1] >= high[found.undecided]).all()
    pinned = np.flatnonzero(low == high)
    assert np.isin(found.cells, pinned).all(), "a cell is called exposed that is not"
    missed = np.setdiff1d(pinned, found.cells)
    assert np.isin(missed, found.undecided).all(), "a cell is called free that is pinned"
    return len(found.undecided)


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.long)])
def test_none_is_missed_and_none_is_false(seed: int) -> None:
    """By enumeration: 200 tables and lists of constraints, 1,800 more in the long group."""
    rng = np.random.default_rng(seed)
    cases = [random_case(rng) for _ in range(1_800 if seed else 200)]
    undecided = sum(check_case(*case, with_table=bool(place % 2)) for place, case in enumerate(cases))
    cells = sum(len(counts) for _, _, counts in cases)
    print(f"{undecided} of {cells:,} cells are not decided, in {len(cases):,} cases")
    assert undecided <= cells // 500


@pytest.mark.parametrize(
    ("counts", "sets", "exposed"),
    [([1, 1, 0, 0], [["p", "q"], ["q", "r"]], [0, 1, 2, 3]), ([1, 1, 0, 0, 1], [["p", "q", "t"], ["q", "r"]], [1, 2, 3])],
    ids=["all four", "three"],
)
@pytest.mark.parametrize("with_table", [True, False])
def test_subsets_that_overlap_pin_cells(counts: list[int], sets: list[list[str]], exposed: list[int], with_table: bool) -> None:
    universe = hf.Universe.product({"cell": list("pqrst")[: len(counts)]})
    table = np.array(counts, dtype=np.int64)
    found = found_for(universe, [hf.total(), *(hf.subset("cell", one) for one in sets)], table, table if with_table else None)
    assert found.cells.tolist() == exposed
    assert found.complete


def families(draw: Any, cells: int) -> list[Ints]:
    group = st.lists(st.integers(-1, 2), min_size=cells, max_size=cells).filter(lambda given: max(given) >= 0)
    return [np.unique([*given, -1], return_inverse=True)[1][:-1] - 1 for given in draw(st.lists(group, min_size=1, max_size=4))]


def sums_of(groups: list[Ints], counts: Ints) -> Sums:
    totals = [np.bincount(group[group >= 0], weights=counts[group >= 0], minlength=int(group.max()) + 1) for group in groups]
    return Sums(len(counts), [(group, given.astype(np.int64)) for group, given in zip(groups, totals, strict=True)])


@settings(max_examples=examples(300), deadline=None)
@given(st.data())
def test_each_way_says_what_programmes_say(data: st.DataObject) -> None:
    """Ears and networks, where they apply, decide every cell as the programmes do, which know nothing of structure."""
    cells = data.draw(st.integers(2, 9))
    sums = sums_of(families(data.draw, cells), np.array(data.draw(st.lists(st.integers(0, 3), min_size=cells, max_size=cells))))
    groups, counts = [group for group, _ in sums.families], [len(totals) for _, totals in sums.families]
    class_of, count, some = equal_columns(RowSet(cells, groups, counts, [], None, None))
    several = np.bincount(class_of, minlength=count) > 1
    of_classes = Sums(count, [(group[some], totals) for group, totals in sums.families])
    plain = np.concatenate([totals for _, totals in of_classes.families])
    rows = [(group == number) for group, totals in of_classes.families for number in range(len(totals))]
    lower, upper, is_open = programme_bounds(csr_array(np.array(rows, dtype=np.int64)), plain, several, Work())
    assert not is_open.any()
    pinned = np.where(several, upper == 0, lower == upper)
    for way in (_frechet_bounds, _network_bounds):
        if (found := way(of_classes, several)) is not None:
            assert np.array_equal(np.where(several, found[1] == 0, found[0] == found[1]), pinned)
            assert (found[0][pinned] == lower[pinned]).all()


@settings(max_examples=examples(200), deadline=None)
@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)).filter(lambda edge: edge[0] < edge[1]), max_size=12, unique=True))
def test_bridges_are_the_edges_without_which_there_are_more_parts(edges: list[tuple[int, int]]) -> None:
    def parts(chosen: list[tuple[int, int]]) -> int:
        part = list(range(7))
        for a, b in chosen:
            part = [part[a] if one == part[b] else one for one in part]
        return len(set(part))

    tail, head = (np.array([edge[side] for edge in edges], dtype=np.int64) for side in (0, 1))
    expected = [parts([other for other in edges if other != edge]) > parts(edges) for edge in edges]
    assert _bridges(tail, head, np.ones(len(edges), dtype=np.bool_), 7).tolist() == expected


@settings(max_examples=examples(100), deadline=None)
@given(st.data())
def test_the_answer_follows_from_the_totals_alone(data: st.DataObject) -> None:
    """Tables with equal totals, as twins and as what is released, give the same bounds; so does another order of cells."""
    cells = data.draw(st.integers(2, 6))
    groups = families(data.draw, cells)
    counts = np.array(data.draw(st.lists(st.integers(0, 2), min_size=cells, max_size=cells)), dtype=np.int64)
    order = np.array(data.draw(st.permutations(range(cells))))
    here, there = decide(sums_of(groups, counts), Work()), decide(sums_of([group[order] for group in groups], counts[order]), Work())
    assert here is not None
    assert there is not None
    assert np.array_equal((here[0] == here[1])[order], there[0] == there[1])
    keep = [hf.linear([(group == number).astype(int).tolist()]) for group in groups for number in range(int(group.max()) + 1)]
    universe = hf.Universe.product({"cell": [str(cell) for cell in range(cells)]})
    matrix = compile_rows(universe, keep).matrix().toarray()
    twins = [np.array(y) for y in np.ndindex(*(4,) * cells) if np.array_equal(matrix @ y, matrix @ counts)]
    found = [found_for(universe, keep, counts, twin - 0) for twin in (twins[0], twins[-1])]
    assert [one.cells.tolist() for one in found] == [found[0].cells.tolist()] * 2
    assert np.array_equal(found[0].values, found[1].values)


def test_work_that_runs_out_leaves_cells_undecided_with_their_bounds() -> None:
    """Three margins of pairs: neither ears nor a network."""
    counts = np.array([1, 2, 0, 3, 1, 1, 2, 2, 1, 0, 1, 4])
    sums = sums_of([CUBE.group(pair)[0].astype(np.int64) for pair in (("a", "b"), ("b", "c"), ("a", "c"))], counts)
    done, cut = decide(sums, Work()), decide(sums, Work(entries=1_000))
    assert done is not None
    assert cut is not None
    assert not done[2].any()
    assert cut[2].all()
    assert decide(sums, None) is None


def test_totals_that_no_table_has_are_refused() -> None:
    """One by one they are possible; together they are not."""
    cases: list[tuple[list[Any], list[int]]] = [
        ([hf.subset("cell", list(codes)) for codes in ("pq", "qr", "pr", "pqr")], [2, 2, 2, 2]),
        ([hf.margin("cell"), hf.linear([[1, 1, 0, 0, 0]])], [1, 1, 1, 1, 1, 1]),
    ]
    for keep, totals in cases:
        kept = compile_rows(LINE, keep)
        given = np.split(np.array(totals), np.cumsum([rows.count for rows in kept.rows])[:-1])
        with pytest.raises(hf.errors.ContradictingTotals):
            exposure(Lattice.from_kept(kept), kept, given)


def test_whole_numbers_pin_what_fractions_leave_open() -> None:
    """2 p + 2 q + r = 1: r can only be 1, though p = q = 1/4 leaves it 0."""
    universe = hf.Universe.product({"cell": ["p", "q", "r"]})
    found = found_for(universe, [hf.linear([[2, 2, 1]])], np.array([0, 0, 1]))
    assert found.cells.tolist() == [0, 1, 2]
    assert _decide_classes(Sums(1, (), csr_array(np.array([[2]])), np.array([2])), np.array([False]), None) is None


def test_sums_of_many_large_totals_are_exact() -> None:
    """16,385 totals of one cell that differ, and add up to 2^64: in 64 bits nothing would be missing, and nothing refused."""
    rows = 2**14 + 1
    base, more = divmod(2**64, rows)
    totals = np.array([base + (row < more) for row in range(rows)], dtype=np.int64)
    with pytest.raises(ContradictingTotals):
        programme_bounds(csr_array(np.ones((rows, 1), dtype=np.int64)), totals, np.array([False]), Work())
    four = np.arange(4)
    whole = np.zeros(4, dtype=np.int64)
    assert _frechet_bounds(Sums(4, [(four, np.full(4, 2**62)), (whole, whole[:1])]), four < 0) is None
    assert _flow(four, four, np.full(4, 2**62)) is None


def test_long_numbers_are_more_work() -> None:
    """Minors of 60 rows have 50 digits: without their length the stated work would last for many minutes, as long as a forger likes."""
    random = np.random.default_rng(1)
    rows = random.integers(0, 10, (60, 200))
    counts = random.integers(0, 3, 200)
    work = Work(entries=20_000_000)
    *_, is_open = programme_bounds(csr_array(rows), rows @ counts, np.zeros(200, dtype=np.bool_), work)
    assert work.entries < 0
    assert is_open.any()
    long = _Tableau(np.array([[1, 10**40, 1], [10**40, 1, 1]], dtype=object), [0, 1], Work())
    long.pivot(0, 1)
    assert long.work.entries < Work().entries - 6 * 17


def test_a_search_is_work_too() -> None:
    rows = np.array([[2, 3, 5, 7, 11], [1, 1, 1, 1, 1]])
    work = Work()
    assert _tighten_rows(rows, np.array([40, 8]), np.zeros(5, dtype=np.int64), np.full(5, 8), work) is not None
    assert work.entries < Work().entries


def test_cells_that_other_tables_have_beyond_64_bits() -> None:
    """The first cell is up to 2^80 in tables with these totals; nothing overflows, and the cells that are fixed are found."""
    universe = hf.Universe.product({"cell": list("vwxyz")})
    keep = [hf.linear([[1, -(2**30), 0, 0, 0], [0, 1, -(2**30), 0, 0], [0, 0, 1, 1, 2]])]
    assert found_for(universe, keep, np.array([0, 0, 0, 2**20, 3])).cells.tolist() == []
    assert found_for(universe, keep, np.array([0, 0, 0, 0, 0])).cells.tolist() == [0, 1, 2, 3, 4]
