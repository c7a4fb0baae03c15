"""Rows: compared with rows built cell by cell from dictionaries; sums exact to the last unit; what does not fit is refused."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from holdfast.errors import InvalidParameter, RequestTooLarge
from holdfast.invariants import Kept, areas, compile_rows, identity, linear, margin, subset, total
from holdfast.invariants.constraints import Constraint, Kind
from holdfast.tables.hierarchy import Hierarchy
from holdfast.tables.universe import Universe
from tests.examples import examples

from .reference import Cell, Small, compiled, dense, refused, slow_name, slow_rows, small_listed, small_product, smalls

Expected = tuple[list[list[int]], list[str]]
"""Rows and their names."""

# --- Every kind of constraint, against dictionaries --------------------------------------------------------------------------------------


def check(small: Small, constraints: Sequence[Constraint], expected: Sequence[Expected], kinds: Sequence[Kind]) -> None:
    """Everything a Kept says agrees with these rows, names and kinds, constraint by constraint."""
    kept = compile_rows(small.universe, constraints)
    rows = [row for matrix, _ in expected for row in matrix]
    assert kept.matrix().shape == (len(rows), len(small.cells))
    assert kept.matrix().dtype == np.int64
    assert dense(kept) == rows
    assert list(kept.names()) == [name for _, names in expected for name in names]
    assert kept.kinds() == [kind for (matrix, _), kind in zip(expected, kinds, strict=True) for _ in matrix]
    assert len(kept) == len(rows) == sum(part.count for part in kept.rows)
    assert kept.universe is small.universe
    assert {*kept.families, *kept.linear} == set(kept.rows)
    counts = np.arange(3, 3 + len(small.cells), dtype=np.int64) ** 3
    assert totals(kept, counts) == slow_totals(rows, counts.tolist())


def totals(kept: Kept, counts: Any) -> list[int]:
    return [int(value) for part in kept.rows for value in part.totals(np.asarray(counts, dtype=np.int64))]


def slow_totals(rows: list[list[int]], counts: list[int]) -> list[int]:
    return [sum(coefficient * count for coefficient, count in zip(row, counts, strict=True)) for row in rows]


def named(what: str, rows: Expected) -> Expected:
    return rows[0], [f"{what}: {name}" if name else what for name in rows[1]]


def within(column: str, codes: Sequence[str]) -> Callable[[Cell], bool]:
    return lambda cell: cell[column] in codes


@st.composite
def constraints(draw: st.DrawFn, small: Small) -> tuple[Constraint, Expected, Kind]:
    """A constraint that fits, its rows and names as the dictionaries have them, and its kind."""
    form = draw(st.sampled_from(["total", "margin", "codes", "condition", "node", "areas", "linear"]))
    column = draw(st.sampled_from(small.columns))
    some = st.lists(st.sampled_from(small.order[column]), min_size=1, unique=True)
    by = draw(st.lists(st.sampled_from(small.columns), unique=True))
    after = f" by {', '.join(by)}" if by else ""
    constraint: Constraint
    if form == "total":
        constraint, expected = total(), (slow_rows(small, [])[0], ["total"])
    elif form == "margin":
        columns = draw(st.lists(st.sampled_from(small.columns), min_size=1, unique=True))
        constraint, expected = margin(*columns), slow_rows(small, columns)
    elif form == "node" and small.under:
        node = draw(st.sampled_from(list(small.under)))
        first, under = small.columns[0], small.under[node]
        constraint = subset(first, node=node, by=by)
        expected = named(f"subset({first} under {node}){after}", slow_rows(small, by, within(first, under)))
    elif form == "condition":
        code = draw(st.sampled_from(small.order[column]))
        numbers = all(other.lstrip("+-").isdecimal() for other in small.order[column])
        condition = f'"{column}" = {code}' if numbers else f"\"{column}\" = '{code.replace(chr(39), chr(39) * 2)}'"
        constraint = subset(condition, by=by)
        same = [other for other in small.order[column] if (int(other) == int(code) if numbers else other == code)]
        expected = named(f"subset({condition}){after}", slow_rows(small, by, within(column, same)))
    elif form == "areas":
        sets = draw(st.dictionaries(st.sampled_from(["Downtown", " Å:b", "margin(x)", ""]), some, min_size=1))
        constraint = areas(column, sets, by=by)
        parts = [named(f"area {name}", slow_rows(small, by, within(column, codes))) for name, codes in sets.items()]
        expected = [row for rows, _ in parts for row in rows], [name for _, names in parts for name in names]
    elif form == "linear":
        rows = draw(matrices(len(small.cells)))
        wrap = draw(st.sampled_from([lambda given: given, np.array, sparse.csr_array, sparse.coo_array, sparse.csc_matrix]))
        names = draw(st.none() | st.lists(st.text(max_size=3), min_size=len(rows), max_size=len(rows)))
        constraint = linear(wrap(rows), names)
        expected = rows, names if names is not None else [f"row {number}" for number in range(1, len(rows) + 1)]
    else:
        codes = draw(some)
        shown = ", ".join(codes)  # up to eight codes are shown in full
        constraint = subset(column, codes, by=by)
        expected = named(f"subset({column} in [{shown}]){after}", slow_rows(small, by, within(column, codes)))
    return (identity(constraint, draw(st.integers(-3, 3))), expected, "identity") if draw(st.booleans()) else (constraint, expected, "kept")


@st.composite
def matrices(draw: st.DrawFn, columns: int) -> list[list[int]]:
    """Integer rows, none of them zero."""
    entries = st.integers(-3, 3) | st.sampled_from([2**31 - 1, -(2**31) + 1])
    return draw(st.lists(st.lists(entries, min_size=columns, max_size=columns).filter(any), min_size=1, max_size=3))


@settings(max_examples=examples(150))
@given(st.data())
def test_rows_names_kinds_and_sums_agree_with_dictionaries(data: st.DataObject) -> None:
    small = data.draw(smalls())
    given_constraints = data.draw(st.lists(constraints(small), min_size=1, max_size=3))
    check(small, *(list(part) for part in zip(*given_constraints, strict=True)))


@settings(max_examples=examples(60))
@given(smalls())
def test_the_margin_of_all_columns_has_one_row_for_each_cell(small: Small) -> None:
    kept = compiled(small.universe, margin(*small.columns))
    matrix = np.array(dense(kept))
    assert matrix.shape == (len(small.cells), len(small.cells))
    assert (matrix.sum(axis=0) == 1).all()
    assert (matrix.sum(axis=1) == 1).all()
    cells = {slow_name(cell.items()) for cell in small.cells}
    assert set(kept.names()) == cells


# --- By hand ---------------------------------------------------------------------------------------------------------------------------

PRODUCT = small_product({"age": ["9", "10", "85+"], "sex": ["F", "M"]})
NESTED = small_listed(
    ["state", "county", "kind"],
    [("17", "031", ".1"), ("17", " 43", ".1"), ("01", "031", "Ærø"), ("01", "085+", ""), ("17", "031", "")],
    under={"north": ["17"], "south": ["01"]},
)

BY_HAND: list[tuple[Small, Constraint, list[tuple[str, list[int]]]]] = [
    (PRODUCT, total(), [("total", [1, 1, 1, 1, 1, 1])]),
    (PRODUCT, margin("sex"), [("sex=F", [1, 0, 1, 0, 1, 0]), ("sex=M", [0, 1, 0, 1, 0, 1])]),
    (
        PRODUCT,
        margin("sex", "age"),
        [
            ("sex=F, age=9", [1, 0, 0, 0, 0, 0]),
            ("sex=F, age=10", [0, 0, 1, 0, 0, 0]),
            ("sex=F, age=85+", [0, 0, 0, 0, 1, 0]),
            ("sex=M, age=9", [0, 1, 0, 0, 0, 0]),
            ("sex=M, age=10", [0, 0, 0, 1, 0, 0]),
            ("sex=M, age=85+", [0, 0, 0, 0, 0, 1]),
        ],
    ),
    (PRODUCT, subset("age", ["85+", "9"]), [("subset(age in [85+, 9])", [1, 1, 0, 0, 1, 1])]),
    (
        PRODUCT,
        subset("age", ["85+"], by=["sex"]),
        [
            ("subset(age in [85+]) by sex: sex=F", [0, 0, 0, 0, 1, 0]),
            ("subset(age in [85+]) by sex: sex=M", [0, 0, 0, 0, 0, 1]),
        ],
    ),
    (
        PRODUCT,
        subset("age >= '85+' and sex = 'M'", by=["age"]),
        [
            ("subset(age >= '85+' and sex = 'M') by age: age=9", [0, 1, 0, 0, 0, 0]),
            ("subset(age >= '85+' and sex = 'M') by age: age=85+", [0, 0, 0, 0, 0, 1]),
        ],
    ),
    (
        PRODUCT,
        areas("age", {"young": ["9", "10"], "two digits": ["10", "85+"]}),
        [("area young", [1, 1, 1, 1, 0, 0]), ("area two digits", [0, 0, 1, 1, 1, 1])],
    ),
    (
        PRODUCT,
        areas("age", {"young": ["9", "10"], "old": ["85+"]}, by=["sex"]),
        [
            ("area young: sex=F", [1, 0, 1, 0, 0, 0]),
            ("area young: sex=M", [0, 1, 0, 1, 0, 0]),
            ("area old: sex=F", [0, 0, 0, 0, 1, 0]),
            ("area old: sex=M", [0, 0, 0, 0, 0, 1]),
        ],
    ),
    (PRODUCT, linear([[1, 0, 0, 0, 0, -1], [0, 2, 0, 0, 0, 0]]), [("row 1", [1, 0, 0, 0, 0, -1]), ("row 2", [0, 2, 0, 0, 0, 0])]),
    (PRODUCT, linear([[0, 0, 0, 0, 3, 0]], names=["Ærø, thrice"]), [("Ærø, thrice", [0, 0, 0, 0, 3, 0])]),
    (NESTED, margin("county"), [("county=031", [1, 0, 1, 0, 1]), ('county=" 43"', [0, 1, 0, 0, 0]), ("county=085+", [0, 0, 0, 1, 0])]),
    (
        NESTED,
        margin("state", "county"),
        [
            ("state=17, county=031", [1, 0, 0, 0, 1]),
            ('state=17, county=" 43"', [0, 1, 0, 0, 0]),
            ("state=01, county=031", [0, 0, 1, 0, 0]),
            ("state=01, county=085+", [0, 0, 0, 1, 0]),
        ],
    ),
    (NESTED, subset("state", node="north"), [("subset(state under north)", [1, 1, 0, 0, 1])]),
    (NESTED, subset("state", node="top node"), [("subset(state under top node)", [1, 1, 1, 1, 1])]),
    (NESTED, subset("state", node="01"), [("subset(state under 01)", [0, 0, 1, 1, 0])]),
    (
        NESTED,
        subset("state", node="south", by=["kind"]),
        [
            ("subset(state under south) by kind: kind=Ærø", [0, 0, 1, 0, 0]),
            ('subset(state under south) by kind: kind=""', [0, 0, 0, 1, 0]),
        ],
    ),
    (NESTED, subset("state >= 17 and kind = ''"), [("subset(state >= 17 and kind = '')", [0, 0, 0, 0, 1])]),
]


@pytest.mark.parametrize(("small", "constraint", "expected"), BY_HAND, ids=[f"{case[1]}" for case in BY_HAND])
def test_small_cases_by_hand(small: Small, constraint: Constraint, expected: list[tuple[str, list[int]]]) -> None:
    rows = [row for _, row in expected], [name for name, _ in expected]
    check(small, [constraint], [rows], ["kept"])
    check(small, [identity(constraint, 0)], [rows], ["identity"])


def test_constraints_keep_their_order_and_their_kind() -> None:
    kept = compiled(PRODUCT.universe, margin("sex"), identity(linear([[1, 0, 0, 0, 0, 0]])), total(), identity(total(), 9), margin("sex"))
    assert list(kept.names()) == ["sex=F", "sex=M", "row 1", "total", "total", "sex=F", "sex=M"]
    assert kept.kinds() == ["kept", "kept", "identity", "kept", "identity", "kept", "kept"]
    assert [rows.constraint for rows in kept.rows] == ["margin(sex)", "linear", "total", "total", "margin(sex)"]


def test_nothing_kept_is_a_matrix_without_rows() -> None:
    kept = compile_rows(PRODUCT.universe, iter(()))
    assert (len(kept), kept.kinds(), list(kept.names()), kept.matrix().shape) == (0, [], [], (0, 6))


def test_rows_of_a_margin_are_numbered_in_the_order_of_the_codes_never_sorted() -> None:
    codes = ["b", "a", "10", "9", " ", ".", "Z"]
    kept = compiled(Universe.product({"c": codes}), margin("c"))
    assert list(kept.names()) == ["c=b", "c=a", "c=10", "c=9", 'c=" "', "c=.", "c=Z"]
    assert dense(kept) == np.eye(7, dtype=int).tolist()


def test_a_deeper_hierarchy_is_followed_to_its_leaves() -> None:
    tree = Hierarchy.from_prefixes(["17031a", "17031b", "17043a", "01001a"], [2, 5])
    universe = Universe.product({"tract": tree, "sex": ["F", "M"]})
    kept = compiled(universe, subset("tract", node="17"), subset("tract", node="17031"), subset("tract", node="17031b", by=["sex"]))
    assert dense(kept) == [
        [1, 1, 1, 1, 1, 1, 0, 0],
        [1, 1, 1, 1, 0, 0, 0, 0],
        [0, 0, 1, 0, 0, 0, 0, 0],
        [0, 0, 0, 1, 0, 0, 0, 0],
    ]


def test_declared_values_stay_with_their_rows() -> None:
    kept = compiled(
        PRODUCT.universe, linear([[1, 0, 0, 0, 0, 0], [0, 1, 0, 0, 0, 0]], names=["a", "b"], values=[3, 2**65]), linear([[1] * 6])
    )
    assert [rows.values for rows in kept.linear] == [(3, 2**65), None]


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32"])
@pytest.mark.parametrize("form", [np.array, sparse.csr_array, sparse.csc_array, sparse.coo_array, sparse.lil_array, sparse.csr_matrix])
def test_any_integer_type_and_sparse_form_is_read(dtype: str, form: Callable[..., Any]) -> None:
    rows = np.array([[0, 1, 2, 0, 0, 100], [1, 0, 0, 0, 0, 0]], dtype=dtype)
    kept = compiled(PRODUCT.universe, linear(form(rows)))
    assert dense(kept) == rows.tolist()
    assert kept.matrix().dtype == np.int64


def test_entries_of_a_sparse_matrix_that_are_listed_twice_are_added_and_zeros_are_no_entries() -> None:
    given_twice = sparse.coo_array(([2, 3, 5, -5, 0], ([0, 0, 0, 0, 0], [1, 1, 2, 2, 4])), shape=(1, 6))
    kept = compiled(PRODUCT.universe, linear(given_twice))
    assert dense(kept) == [[0, 5, 0, 0, 0, 0]]
    assert kept.matrix().nnz == 1


# --- Sums ------------------------------------------------------------------------------------------------------------------------------


@settings(max_examples=examples(60))
@given(st.data())
def test_sums_are_exact_up_to_a_table_total_of_two_to_the_62(data: st.DataObject) -> None:
    """Cells near 2^61, the total just below 2^62: doubles would lose the last digits."""
    small = data.draw(smalls())
    parts = data.draw(st.lists(st.integers(0, 2**10), min_size=len(small.cells), max_size=len(small.cells)))
    first, second = data.draw(st.tuples(*[st.integers(0, len(small.cells) - 1)] * 2))
    parts[first] += 2**61 - 2**16 + 1
    parts[second] += 2**61 - 2**16 + 1
    kept = compiled(small.universe, total(), margin(*small.columns[:1]), areas(small.columns[0], {"all": small.order[small.columns[0]]}))
    assert totals(kept, parts) == slow_totals(dense(kept), parts)
    assert totals(kept, parts)[0] == sum(parts)


FAMILIES = [total(), margin("sex"), margin("age", "sex"), subset("sex", ["F"]), areas("age", {"x": ["9", "10"]}, by=["sex"])]


@pytest.mark.parametrize("constraint", FAMILIES, ids=str)
def test_the_largest_table_total_is_summed_and_one_more_is_refused(constraint: Constraint) -> None:
    kept = compiled(PRODUCT.universe, constraint)
    counts = [2**61 - 1, 2**61, 0, 0, 0, 0]
    assert totals(kept, counts) == slow_totals(dense(kept), counts)
    for place in range(6):
        more = [count + (place == cell) for cell, count in enumerate(counts)]
        with pytest.raises(RequestTooLarge, match=r"2\^62"):
            totals(kept, more)


@pytest.mark.parametrize(
    "counts",
    [
        [2**61, 2**61, 0, 0, 0, 0],  # 2^62
        [2**62 - 1, 0, 0, 0, 0, 1],
        [2**62 - 1, 2**62 - 1, 2, 0, 0, 0],  # 2^63: the sum turns negative in 64 bits
        [2**62 - 1] * 4 + [4, 3],  # 2^64 + 3: the sum is 3 in 64 bits
        [2**62 - 1] * 6,
        [2**32 - 1] * 5 + [2**62 - 5 * (2**32 - 1)],  # the low halves carry
    ],
)
@pytest.mark.parametrize("constraint", [*FAMILIES, linear([[1] * 6])], ids=str)
def test_a_table_total_that_could_wrap_around_is_refused(constraint: Constraint, counts: list[int]) -> None:
    with pytest.raises(RequestTooLarge, match="64-bit integers"):
        totals(compiled(PRODUCT.universe, constraint), counts)


@settings(max_examples=examples(100))
@given(st.data())
def test_a_linear_sum_is_exact_and_refused_only_where_it_leaves_62_bits(data: st.DataObject) -> None:
    rows = data.draw(matrices(6))
    largest = data.draw(st.sampled_from([2**20, 2**31, 2**45, 2**61, 2**62 - 1]))
    counts = data.draw(st.lists(st.integers(0, largest) | st.just(largest), min_size=6, max_size=6))
    kept, exact = compiled(PRODUCT.universe, linear(rows)), slow_totals(rows, counts)
    try:
        sums = totals(kept, counts)
    except RequestTooLarge:
        assert max(map(abs, exact)) >= 2**62
    else:
        assert sums == exact
        assert max(map(abs, exact)) < 2**62


def test_a_linear_row_of_one_large_cell_is_exact() -> None:
    kept = compiled(PRODUCT.universe, linear([[1, 0, 0, 0, 0, 0], [0, -1, 0, 0, 0, 0]]))
    assert totals(kept, [2**61 + 1, 2**62 - 1, 5, 0, 0, 0]) == [2**61 + 1, -(2**62) + 1]


def test_large_linear_sums_may_cancel() -> None:
    kept = compiled(PRODUCT.universe, linear([[2**31 - 1, 1 - 2**31, 1, 0, 0, 0]]))
    assert totals(kept, [2**61 + 3, 2**61 + 2, 5, 0, 0, 0]) == [2**31 + 4]


def test_a_linear_row_of_ones_sums_whatever_the_total_sums() -> None:
    counts = [2**61, 2**60 + 3, 0, 0, 0, 5]
    assert totals(compiled(PRODUCT.universe, total(), linear([[1] * 6])), counts) == [sum(counts)] * 2


@pytest.mark.parametrize("constraint", [total(), margin("sex"), linear([[1] * 6])], ids=str)
def test_the_refusal_of_a_sum_says_nothing_about_the_counts(constraint: Constraint) -> None:
    messages = set()
    for counts in ([2**62 - 1] * 6, [2**61, 2**61 + 12345, 0, 7, 0, 0], [0, 0, 0, 0, 2**62 - 1, 2**62 - 999]):
        with pytest.raises(RequestTooLarge) as caught:
            totals(compiled(PRODUCT.universe, constraint), counts)
        messages.add((str(caught.value), repr(caught.value.args)))
    assert len(messages) == 1


# --- What does not fit -----------------------------------------------------------------------------------------------------------------


def _as_any(value: object) -> Any:
    return value


def one(row: Sequence[Any]) -> Any:
    return linear([list(row)])


REFUSED: list[tuple[str, Small, Constraint, tuple[str, ...]]] = [
    ("margin", PRODUCT, margin("sex", "region"), ("margin(sex, region)", "no column 'region'", "age, sex")),
    ("other case", PRODUCT, margin("Sex"), ("no column 'Sex'", "age, sex")),
    ("blank", PRODUCT, margin("sex "), ("no column 'sex '",)),
    ("subset column", PRODUCT, subset("region", ["1"]), ("subset(region in [1])", "no column 'region'", "age, sex")),
    ("subset by", PRODUCT, subset("age", ["9"], by=["region"]), ("no column 'region'", "age, sex")),
    ("condition by", PRODUCT, subset("sex = 'F'", by=["region"]), ("no column 'region'",)),
    ("areas column", PRODUCT, areas("region", {"x": ["1"]}), ("areas(region: 1 sets)", "no column 'region'")),
    ("areas by", PRODUCT, areas("age", {"x": ["9"]}, by=["region"]), ("areas(age", "no column 'region'")),
    ("code", PRODUCT, subset("age", ["9", "11"]), ("column 'age' has no code '11'", "Codes match exactly")),
    ("codes", PRODUCT, subset("age", ["8", "9", "11", "12"]), ("no code '8'", "3 unknown in all")),
    ("trimmed code", NESTED, subset("county", ["43"]), ("column 'county' has no code '43'",)),
    ("code of another column", PRODUCT, subset("age", ["F"]), ("column 'age' has no code 'F'",)),
    ("code without its zero", NESTED, subset("state", ["1"]), ("column 'state' has no code '1'",)),
    ("code of an area", PRODUCT, areas("age", {"old": ["85+"], "Harbour": ["9", "86"]}), ("area 'Harbour'", "'age' has no code '86'")),
    ("no codes", PRODUCT, subset("age", []), ("subset(age in []) selects no cell", "Check")),
    ("no codes in an area", PRODUCT, areas("age", {"young": ["9"], "none": []}), ("area none selects no cell",)),
    ("condition without cells", NESTED, subset("state = 17 and kind = 'Ærø'"), ("(state = 17 and kind = 'Ærø') selects no cell",)),
    ("node without hierarchy", PRODUCT, subset("age", node="9"), ("(age under 9)", "'age' has no hierarchy", "list the codes")),
    ("node of another column", NESTED, subset("county", node="north"), ("'county' has no hierarchy",)),
    ("unknown node", NESTED, subset("state", node="west"), ("hierarchy of 'state' has no node 'west'", "spelling")),
    ("node of an unknown column", PRODUCT, subset("region", node="1"), ("no column 'region'",)),
    ("too few columns", PRODUCT, one([1] * 5), ("has 5 columns", "has 6 cells", "one column for each cell")),
    ("too many columns", PRODUCT, one([1] * 7), ("has 7 columns", "has 6 cells")),
    ("transposed", PRODUCT, linear(np.ones((6, 1), dtype=int)), ("has 1 columns", "has 6 cells")),
    ("no columns", PRODUCT, linear([[]]), ("has 0 columns", "has 6 cells")),
    ("sparse with too many columns", PRODUCT, linear(sparse.eye_array(7, dtype=int, format="csr")), ("has 7 columns",)),
    ("floats", PRODUCT, one([0.5] * 6), ("holds integers", "float64", "whole")),
    ("whole floats", PRODUCT, one([1.0] * 6), ("holds integers", "float64")),
    ("single precision", PRODUCT, linear(np.ones((1, 6), dtype=np.float32)), ("holds integers", "float32")),
    ("sparse floats", PRODUCT, linear(sparse.csr_array(np.ones((1, 6)))), ("holds integers", "float64")),
    ("NaN", PRODUCT, one([1, float("nan"), 0, 0, 0, 0]), ("holds integers", "float64")),
    ("infinity", PRODUCT, one([1, float("inf"), 0, 0, 0, 0]), ("holds integers", "float64")),
    ("sparse NaN", PRODUCT, linear(sparse.csr_array(np.array([[np.nan] * 6]))), ("holds integers", "float64")),
    ("complex", PRODUCT, one([1j] * 6), ("holds integers", "complex128")),
    ("texts", PRODUCT, one(["1"] * 6), ("holds integers",)),
    ("None inside", PRODUCT, one([1, None, 0, 0, 0, 0]), ("holds integers",)),
    ("one dimension", PRODUCT, linear([1] * 6), ("two dimensions", "Got 1")),
    ("one sparse dimension", PRODUCT, linear(sparse.coo_array(np.array([1] * 6))), ("two dimensions", "Got 1")),
    ("three dimensions", PRODUCT, linear(np.ones((1, 2, 3), dtype=int)), ("two dimensions", "Got 3")),
    ("no matrix", PRODUCT, linear(None), ("two dimensions", "Got 0")),
    ("a number", PRODUCT, linear(1), ("two dimensions", "Got 0")),
    ("an empty list", PRODUCT, linear([]), ("two dimensions",)),
    ("names too few", PRODUCT, linear([[1] * 6] * 2, names=["a"]), ("1 names for 2 rows", "one for each row")),
    ("names too many", PRODUCT, linear([[1] * 6], names=["a", "b"]), ("2 names for 1 rows",)),
    ("no names", PRODUCT, linear([[1] * 6], names=[]), ("0 names for 1 rows",)),
    ("values too few", PRODUCT, linear([[1] * 6] * 2, values=[1]), ("1 values for 2 rows", "one for each row")),
    ("values too many", PRODUCT, linear([[1] * 6], names=["a"], values=[1, 2]), ("2 values for 1 rows",)),
    ("a row of zeros", PRODUCT, linear([[1] * 6, [0] * 6]), ("row 'row 2' selects no cell", "Remove it")),
    ("a named row of zeros", PRODUCT, linear([[0] * 6, [1] * 6], names=["Harbour", "b"]), ("row 'Harbour' selects no cell",)),
    ("entries that cancel", PRODUCT, linear(sparse.coo_array(([5, -5], ([0, 0], [1, 1])), shape=(1, 6))), ("selects no cell",)),
    ("an entry of 2^31", PRODUCT, one([2**31, 1, 1, 1, 1, 1]), ("beyond 2^31", "smaller")),
    ("an entry of -2^31", PRODUCT, one([0, 0, 0, 0, 0, -(2**31)]), ("beyond 2^31",)),
    ("a huge entry", PRODUCT, one([2**62, 0, 0, 0, 0, 0]), ("beyond 2^31",)),
    ("entries that add up beyond", PRODUCT, linear(sparse.coo_array(([2**31 - 1, 1], ([0, 0], [1, 1])), shape=(1, 6))), ("beyond 2^31",)),
]


@pytest.mark.parametrize(("small", "constraint", "parts"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED])
def test_what_does_not_fit_the_table_is_refused_with_what_to_do(small: Small, constraint: Constraint, parts: tuple[str, ...]) -> None:
    refused(lambda: compiled(small.universe, total(), constraint), *parts)
    refused(lambda: compiled(small.universe, identity(constraint, constraint.values or 0)), *parts)


@pytest.mark.parametrize("thing", [None, "margin(sex)", 5, ["sex"], {"sex": ["F"]}, margin, total, np.ones((1, 6), dtype=int), object()])
def test_an_object_that_is_no_constraint_is_refused_by_its_type(thing: object) -> None:
    refused(lambda: compiled(PRODUCT.universe, total(), _as_any(thing)), "total()", "margin()", "linear()", f"Got {type(thing).__name__}.")


def test_names_of_columns_in_place_of_constraints() -> None:
    refused(lambda: compiled(PRODUCT.universe, _as_any("sex")), "Got str. Write margin('sex').")
    refused(lambda: compiled(PRODUCT.universe, margin("sex:age")), "no column 'sex:age'. Write each by itself: 'sex', 'age'.")
    refused(lambda: compiled(PRODUCT.universe, margin("sex x age")), "Write each by itself: 'sex', 'age'.")


def test_a_code_without_its_zeros() -> None:
    towns = Universe.product({"town": ["01001", "02002"]})
    refused(
        lambda: compiled(towns, subset("town", ["1001"])), "no code '1001'. Did you mean '01001'? Zeros at the front are part of a code."
    )


WRAPPING: list[tuple[str, Any]] = [
    ("2^64 - 1 becomes -1", np.array([[2**64 - 1, 0, 0, 0, 0, 0]], dtype=np.uint64)),
    ("2^63 is its own negative", np.array([[2**63, 1, 0, 0, 0, 0]], dtype=np.uint64)),
    ("-2^63 is its own absolute value", [[-(2**63), 0, 0, 0, 0, 0]]),
    ("four times 2^62 become 0", sparse.coo_array(([2**62] * 4 + [1], ([0] * 5, [0] * 4 + [1])), shape=(1, 6))),
    ("rows of different lengths", [[1] * 6, [1]]),
    ("no rows", np.zeros((0, 6), dtype=int)),
]


@pytest.mark.parametrize("matrix", [case[1] for case in WRAPPING], ids=[case[0] for case in WRAPPING])
def test_matrices_that_wrap_around_or_are_ragged_or_empty_are_refused(matrix: Any) -> None:
    refused(lambda: compiled(PRODUCT.universe, linear(matrix)))


def test_later_changes_of_the_matrix_given_change_nothing() -> None:
    given_matrix = sparse.csr_array(np.array([[1, 2, 0, 0, 0, 0]], dtype=np.int64))
    kept = compiled(PRODUCT.universe, linear(given_matrix))
    given_matrix.data[:] = 7
    assert dense(kept) == [[1, 2, 0, 0, 0, 0]]


def test_the_matrix_given_is_left_as_it_was() -> None:
    given_matrix = sparse.csr_array((np.array([2, 3, 0, 4]), np.array([1, 1, 2, 0]), np.array([0, 4])), shape=(1, 6))
    before = given_matrix.toarray().tolist()
    assert dense(compiled(PRODUCT.universe, linear(given_matrix))) == before == given_matrix.toarray().tolist() == [[4, 5, 0, 0, 0, 0]]


def test_one_constraint_without_a_list_is_refused_with_advice() -> None:
    refused(lambda: compile_rows(PRODUCT.universe, _as_any(margin("sex"))), "list")


def test_different_subsets_have_different_names() -> None:
    codes = [str(number) for number in range(20)]
    universe = Universe.product({"c": codes})
    for length in (3, 4, 8, 9, 12):
        first, second = compiled(universe, subset("c", codes[:length]), subset("c", [*codes[: length - 1], "19"])).names()
        assert first != second


# --- Compiling sees public facts only --------------------------------------------------------------------------------------------------


def test_compiling_takes_a_universe_and_constraints_and_so_never_sees_a_count() -> None:
    hints = typing.get_type_hints(compile_rows)
    assert list(inspect.signature(compile_rows).parameters) == ["universe", "constraints"]
    assert hints == {"universe": Universe, "constraints": Iterable[Constraint], "return": Kept}


@pytest.mark.parametrize("column", ["count", "counts"])
def test_there_is_no_count_to_name_in_a_constraint(column: str) -> None:
    assert not hasattr(PRODUCT.universe, column)
    refused(lambda: compiled(PRODUCT.universe, subset(f"{column} > 3")), f"no column {column!r}; there are age, sex")


def test_errors_of_sums_are_no_errors_of_constraints() -> None:
    assert issubclass(RequestTooLarge, InvalidParameter)
    with pytest.raises(InvalidParameter):
        totals(compiled(PRODUCT.universe, total()), [2**61] * 6)
