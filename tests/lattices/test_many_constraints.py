"""Thousands of constraints: the work grows with them, and not with their pairs."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray

import holdfast as hf
from holdfast.errors import RequestTooLarge
from holdfast.invariants import conditions, rows
from holdfast.invariants.rows import compile_rows
from holdfast.lattices import columns, components, levels, reduction
from holdfast.lattices.lattice import check_margins
from holdfast.lattices.shapes.levels import is_below, maximal

Ints = NDArray[np.int64]
FAMILIES, CELLS = st.integers(1, 7), st.integers(1, 8)


@st.composite
def some_families(draw: st.DrawFn) -> tuple[list[Ints], list[int]]:
    """Families of disjoint groups, numbered without gaps; some of them stated twice, as the same array or a copy of it."""
    cells = draw(CELLS)
    families: list[Ints] = []
    for _ in range(draw(FAMILIES)):
        repeats = draw(st.booleans())
        if families and repeats:
            again = families[draw(st.integers(0, len(families) - 1))]
            families.append(again if draw(st.booleans()) else again.copy())
            continue
        labels = draw(st.lists(st.integers(-1, 3), min_size=cells, max_size=cells).filter(lambda given: max(given) >= 0))
        inside = np.array(labels) >= 0
        group = np.full(cells, -1, dtype=np.int64)
        group[inside] = np.unique(np.array(labels)[inside], return_inverse=True)[1]
        families.append(group)
    return families, [int(group.max()) + 1 for group in families]


@given(some_families())
def test_set_by_set_is_as_pair_by_pair(given: tuple[list[Ints], list[int]]) -> None:
    """The reduced rows are part of the stream's format: both ways must give the same, sets that stay included."""
    before = [family.copy() for family in given[0]]
    slow, fast = reduction.reduce_by_pairs(*given), reduction.reduce_by_rows(*given)
    assert [group.tolist() for group in fast] == [group.tolist() for group in slow]
    assert [family.tolist() for family in given[0]] == [family.tolist() for family in before]


@given(st.data())
def test_long_sets_are_looked_at_beyond_their_probes(data: st.DataObject) -> None:
    cells, probes = 60, reduction.PROBES
    sets = data.draw(st.lists(st.sets(st.integers(0, cells - 1), min_size=probes + 1), min_size=2, max_size=6))
    sets += [set(sorted(sets[0])[1:]), sets[0] | {0, 1}]
    families = [np.where(np.isin(np.arange(cells), sorted(cells_of)), 0, -1) for cells_of in sets]
    counts = [1] * len(families)
    assert [g.tolist() for g in reduction.reduce_by_rows(families, counts)] == [
        g.tolist() for g in reduction.reduce_by_pairs(families, counts)
    ]


COLUMNS = "abcd"
MARGINS = st.lists(st.sets(st.sampled_from(COLUMNS)).map(lambda chosen: tuple(sorted(chosen))), min_size=1, max_size=6)
SEVERAL = [*combinations(COLUMNS, 1), *combinations(COLUMNS, 2), *combinations(COLUMNS, 3)]
SIZES = st.tuples(*[st.integers(1, 3)] * len(COLUMNS))


def product_of(sizes: tuple[int, ...]) -> hf.Universe:
    return hf.Universe.product({name: [str(code) for code in range(size)] for name, size in zip(COLUMNS, sizes, strict=True)})


@given(SIZES, MARGINS)
def test_margins_told_by_their_columns_are_as_pair_by_pair(sizes: tuple[int, ...], margins: list[tuple[str, ...]]) -> None:
    """The same rows are left, margins stated again and columns of one code included."""
    universe = product_of(sizes)
    made = [universe.group(columns) for columns in margins]
    families, counts = [group for group, _ in made], [len(codes) for _, codes in made]
    varied = [frozenset(column for column in columns if universe.code_count(column) > 1) for columns in margins]
    fast = reduction.reduce_margins(families, counts, varied)
    slow = reduction.reduce_by_pairs(families, counts)
    assert [group.tolist() for group in fast] == [group.tolist() for group in slow]


@given(st.tuples(*[st.sampled_from([1, 2, 2, 3, 3])] * 4), st.lists(st.sampled_from(SEVERAL), min_size=2, max_size=6), st.integers(1, 8))
@example((2, 2, 3, 1), [("a",), ("b",), ("c",)], 6)  # refused
@example((2, 2, 3, 1), [("a",), ("b",), ("c",)], 7)  # of 7 sums just not
@example((2, 2, 3, 1), [("a", "b"), ("b", "c"), ("a", "c")], 1)  # a grid
@example((3, 2, 2, 2), [("a", "b"), ("a", "c"), ("a", "d")], 5)  # refused in each class of a
def test_margins_are_refused_early_where_they_would_be_late(sizes: tuple[int, ...], margins: list[tuple[str, ...]], most: int) -> None:
    """With small limits in place of the large ones: what columns tell is what the search comes to."""
    universe, stated = product_of(sizes), [hf.margin(*columns) if columns else hf.total() for columns in margins]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(components, "FEW_FAMILIES", 1)
        patched.setattr(components, "LARGEST_SEARCHED", 4)
        patched.setattr(components, "MOST_GRAM_SECONDS", components.GRAM_SECONDS * (most + 0.5) ** 3)
        patched.setattr(levels, "MOST_VECTORS", 4)
        late = is_refused(lambda: hf.Lattice.from_kept(compile_rows(universe, stated)))
        early = is_refused(lambda: check_margins(universe, stated))
    assert early == late


def is_refused(work: Callable[[], object]) -> bool:
    try:
        work()
    except RequestTooLarge:
        return True
    return False


def called(monkeypatch: pytest.MonkeyPatch, module: Any, name: str) -> Callable[[], int]:
    """How often a function is called from here on."""
    calls: list[None] = []
    function = getattr(module, name)

    def counted(*arguments: Any, **named: Any) -> Any:
        calls.append(None)
        return function(*arguments, **named)

    monkeypatch.setattr(module, name, counted)
    return lambda: len(calls)


CODES = [f"{number:03}" for number in range(400)]
UNIVERSE = hf.Universe.product({"age": CODES, "sex": ["F", "M"]})


def test_disjoint_subsets_are_not_compared_pair_by_pair(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = called(monkeypatch, reduction, "_nested_groups")
    made = hf.lattice(UNIVERSE, [hf.subset("age", [code]) for code in CODES[:300]])
    assert (made.rank, made.blocks.kinds()) == (300, {"free": 1, "one sum": 300})
    assert compared() <= 300


def test_a_margin_stated_again_and_again_has_its_rows_once(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = called(monkeypatch, reduction, "_nested_groups")
    made = hf.lattice(UNIVERSE, [hf.margin("age")] * 300)
    assert made.kept is not None
    assert len({id(own) for own in made.kept.rows}) == 1
    assert (made.rank, len(made.kept)) == (400, 300 * 400)
    assert compared() <= 300


def test_margins_too_many_to_look_at_are_not_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """All 3,003 margins of 6 of 14 columns; thousands of them took ten seconds to be refused."""
    compiled = called(monkeypatch, rows, "_by")
    names = "abcdefghijklmn"
    universe = hf.Universe.product({name: ["0", "1"] for name in names})
    with pytest.raises(RequestTooLarge, match=r"link 16,384 sums, .* would take about [0-9,]+ seconds, which is refused"):
        hf.lattice(universe, [hf.margin(*chosen) for chosen in combinations(names, 6)])
    assert compiled() == 0


def test_codes_of_the_cells_are_spread_out_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """They were, anew for every constraint."""
    spread = called(monkeypatch, hf.Universe, "_spread")
    universe = hf.Universe.product({"age": CODES, "sex": ["F", "M"]})
    keep = [hf.subset("age", [code]) for code in CODES[:150]] + [hf.subset(f"age = {age}", by=["sex"]) for age in range(150, 300)]
    assert hf.lattice(universe, keep).rank == 450
    assert spread() <= 2


def test_sets_that_share_no_cell_are_not_looked_for_in_others(monkeypatch: pytest.MonkeyPatch) -> None:
    looked = called(monkeypatch, reduction._Sets, "_smaller")
    assert hf.lattice(UNIVERSE, [hf.subset("age", CODES[k : k + 2]) for k in range(0, 300, 2)]).rank == 150
    assert looked() == 0
    assert hf.lattice(UNIVERSE, [hf.subset("age", CODES[k : k + 2]) for k in range(30)]).rank == 30
    assert looked() == 30


def test_components_ask_only_the_families_that_they_have(monkeypatch: pytest.MonkeyPatch) -> None:
    """100 components of two overlapping subsets each; every one was compared with all 200 families."""
    asked = called(monkeypatch, components, "_numbered_from")
    pairs = [[CODES[4 * k : 4 * k + 2], CODES[4 * k + 1 : 4 * k + 3]] for k in range(100)]
    made = hf.lattice(UNIVERSE, [hf.subset("age", codes) for pair in pairs for codes in pair])
    assert (made.rank, made.blocks.kinds()) == (200, {"free": 1, "general": 100})
    assert asked() <= 100 * 8 + 300


def test_families_that_fit_are_not_joined(monkeypatch: pytest.MonkeyPatch) -> None:
    """All margins of 3 of 7 columns."""
    crossed = called(monkeypatch, levels, "_crosses")
    names = "abcdefg"
    universe = hf.Universe.product({name: ["0", "1"] for name in names})
    keep = [hf.margin(*(names[i] for i in range(7) if which >> i & 1)) for which in range(1, 128) if which.bit_count() <= 3]
    assert hf.lattice(universe, keep).rank == 1 + 7 + 21 + 35
    assert crossed() == 0


def test_completing_families_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = called(monkeypatch, levels, "_refine_family")
    monkeypatch.setattr(levels, "MOST_JOINS", 500)
    codes = CODES[:60]
    universe = hf.Universe.product({"age": codes, "sex": ["F", "M"]})
    made = hf.lattice(universe, [hf.subset("age", codes[k : k + 2]) for k in range(59)])
    assert made.rank == 59
    assert tried() <= 500


@given(st.lists(st.tuples(*[st.integers(0, 2)] * 3), max_size=12))
def test_maximal_vectors(vectors: list[tuple[int, ...]]) -> None:
    distinct = set(vectors)
    assert maximal(vectors) == tuple(sorted(t for t in distinct if not any(t != s and is_below(t, s) for s in distinct)))


def test_no_grid_has_more_axes_than_its_cells_allow(monkeypatch: pytest.MonkeyPatch) -> None:
    joined = called(monkeypatch, columns, "_coordinate")
    families = [np.roll(np.arange(16) // 2, k).astype(np.int64) for k in range(16)]
    assert columns.grid_order(families) is None
    assert joined() == 0
    whole, cells = np.zeros(6, dtype=np.int64), np.arange(6, dtype=np.int64)
    few, many = columns.grid_order([whole, cells, cells]), columns.grid_order([whole, *[cells] * 40])
    assert few is not None
    assert many is not None
    assert few[1] == many[1]


def test_codes_are_read_once_for_all_conditions(monkeypatch: pytest.MonkeyPatch) -> None:
    read = called(monkeypatch, conditions, "_values")
    universe = hf.Universe.product({"age": CODES, "sex": ["F", "M"]})
    hf.lattice(universe, [hf.subset(f"age >= {age}") for age in range(1, 40)] + [hf.subset(f"age = {age}") for age in range(40, 80)])
    assert read() <= 4


def test_conditions_on_large_and_unusual_numbers() -> None:
    """Compared as integers of any size, and by value: 1 and 01 are equal."""
    large = str(2**63 + 5)
    universe = hf.Universe.product({"n": ["1", "01", "-3", large]})
    found = {
        text: conditions.cells_meeting(text, universe).tolist() for text in ("n = 1", "n > 1", f"n >= {large}", f"n < {2**70}", "n != -3")
    }
    assert found == {
        "n = 1": [True, True, False, False],
        "n > 1": [False, False, False, True],
        f"n >= {large}": [False, False, False, True],
        f"n < {2**70}": [True] * 4,
        "n != -3": [True, True, False, True],
    }
