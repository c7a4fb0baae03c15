"""Structure: the expected classification, rank, dimension and smallest secret of the tables offices keep totals on; and by brute force."""

from __future__ import annotations

import warnings
from itertools import product
from math import prod
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.errors import ContradictingTotals, HoldfastWarning, InvalidConstraint, InvalidParameter, NothingLeft, RequestTooLarge
from holdfast.invariants import areas, compile_rows, identity, linear, margin, subset, total
from holdfast.invariants.constraints import Constraint
from holdfast.lattices import Lattice, algebra, components, lattice
from holdfast.lattices.components import finest_split
from holdfast.lattices.lattice import smallest_secret
from holdfast.lattices.norms import norm_of
from holdfast.lattices.shortest import shortest_vector
from holdfast.tables import Table, Universe
from tests.examples import examples
from tests.lattices.margins_reference import margin_basis, margin_rank


def table(**sizes: int) -> Universe:
    return Universe.product({column: [str(i) for i in range(size)] for column, size in sizes.items()})


def nested(states: int, counties: int, tracts: int) -> Universe:
    cells = [(f"{s}", f"{s}-{c}", f"{s}-{c}-{t}") for s in range(states) for c in range(counties) for t in range(tracts)]
    return Universe.listed({name: list(codes) for name, codes in zip(("state", "county", "tract"), zip(*cells, strict=True), strict=True)})


def three_sets() -> np.ndarray:
    rows = np.zeros((3, 14), dtype=np.int64)
    rows[0, :7] = rows[1, 4:11] = rows[2, 8:14] = rows[2, 0] = 1
    return rows


CASES = {
    "state totals over counties": (lambda: lattice(nested(3, 5, 1), [margin("state")]), {"one sum": 3}, 3, 12, 2),
    "state and county totals over tracts": (
        lambda: lattice(nested(3, 2, 4), [margin("state"), margin("county")]),
        {"one sum": 6},
        6,
        18,
        2,
    ),
    "row and column margins": (lambda: lattice(table(r=4, c=5), [margin("r"), margin("c")]), {"grid": 1}, 8, 12, 4),
    "14 x 24 x 20": (
        lambda: lattice(table(group=14, hour=24, building=20), [margin("hour", "building"), margin("group", "building")]),
        {"grid": 20},
        740,
        5980,
        4,
    ),
    "two-way margins of a three-way table": (
        lambda: lattice(table(a=3, b=4, c=5), [margin("a", "b"), margin("a", "c"), margin("b", "c")]),
        {"grid": 1},
        60 - 2 * 3 * 4,
        24,
        8,
    ),
    # {AB, C} is a grid ([theory R1]): with (a, b) as one axis it is a two-way table with rows and columns kept
    "{AB, C}": (lambda: lattice(table(a=3, b=3, c=4), [margin("a", "b"), margin("c")]), {"grid": 1}, 12, 24, 4),
    "one-way margins of a three-way table": (
        lambda: lattice(table(a=3, b=3, c=4), [margin("a"), margin("b"), margin("c")]),
        {"product of hierarchies": 1},
        8,
        28,
        4,
    ),
    "three overlapping sets over 14 cells": (lambda: Lattice(three_sets()), {"general": 1}, 3, 11, 2),
    "total, sex and voting age": (
        lambda: lattice(table(sex=2, age=23), [total(), margin("sex"), subset("age >= 18")]),
        {"product of hierarchies": 1},
        3,
        43,
        2,
    ),
    "no invariant": (lambda: lattice(table(a=4), []), {"free": 1}, 0, 4, 1),
    "one total": (lambda: lattice(table(a=4, b=2), [total()]), {"one sum": 1}, 1, 7, 2),
    "part under a sum": (lambda: lattice(table(a=5), [subset("a", ["0", "1", "2"])]), {"free": 1, "one sum": 1}, 1, 4, 1),
}


@pytest.mark.parametrize("name", CASES)
def test_expected_classification_rank_dimension_and_smallest_secret(name: str) -> None:
    make, kinds, rank, dimension, smallest = CASES[name]
    made = make()
    assert made.blocks.kinds() == kinds
    assert (made.rank, made.dimension) == (rank, dimension)
    for norm in ("l1", "l2"):  # entries of the shortest moves are 0, 1, -1: the l1 length equals the squared l2 length
        shortest = made.shortest(norm)
        assert (shortest.value, shortest.status) == (smallest, "exact")


@pytest.mark.parametrize("name", [name for name in CASES if name != "14 x 24 x 20"])
def test_the_basis_is_a_basis_of_every_integer_solution(name: str) -> None:
    made = CASES[name][0]()
    matrix = made.matrix.toarray()
    assert not (matrix @ made.basis).any()
    if matrix.any():
        assert algebra.same_lattice(made.basis, algebra.kernel_basis(matrix))
    rng = np.random.default_rng(1)
    v = rng.integers(-5, 6, made.dimension)
    z = made.basis @ v
    assert made.contains(z)
    assert made.coordinates(z) == tuple(v.tolist())
    wrong = z.copy()
    wrong[np.setdiff1d(np.arange(made.cells), np.flatnonzero(~matrix.any(axis=0)))[:1]] += 1
    assert made.contains(wrong) == (not matrix.any())


def test_the_740_constraints_hold_for_block_bases_without_a_dense_matrix() -> None:
    made = CASES["14 x 24 x 20"][0]()
    with pytest.raises(RequestTooLarge, match="blocks"):
        _ = made.basis
    block = made.blocks[7]
    assert block.cells.shape in ((14, 24), (24, 14))
    z = np.zeros(made.cells, dtype=np.int64)
    z[block.cells.ravel()] = block.shape.basis() @ np.arange(13 * 23)
    assert made.contains(z)
    assert z.any()
    assert len(made.blocks.shapes) == 1, "equal blocks share one shape"


entries = st.sampled_from([0, 0, 1, 1, -1, 2, -3])
matrices = st.tuples(st.integers(1, 4), st.integers(1, 7)).flatmap(
    lambda shape: st.lists(st.lists(entries, min_size=shape[1], max_size=shape[1]), min_size=shape[0], max_size=shape[0])
)


@pytest.mark.long
@settings(max_examples=examples(150))
@given(matrices)
def test_blocks_of_random_matrices_are_the_finest_split_and_bases_agree(rows: list[list[int]]) -> None:
    matrix = np.array(rows, dtype=np.int64)
    made = Lattice(matrix)
    assert made.rank == algebra.rank(matrix)
    assert made.blocks.finest
    if made.dimension:
        assert algebra.same_lattice(made.basis, algebra.kernel_basis(matrix))
    finest = {frozenset(part) for part in finest_split(matrix)}
    ours = {frozenset(block.cells.ravel().tolist()) for block in made.blocks if block.shape.name not in ("free", "exposed")}
    together = {cell for block in made.blocks if block.shape.name in ("free", "exposed") for cell in block.cells.tolist()}
    assert ours | {frozenset([cell]) for cell in together} == finest
    small = [np.array(z) for z in product((-2, -1, 0, 1, 2), repeat=matrix.shape[1])] if matrix.shape[1] <= 5 else []
    for z in small:
        assert made.contains(z) == (not (matrix @ z).any())


zero_one = st.integers(2, 9).flatmap(
    lambda n: st.lists(st.lists(st.integers(-1, 2), min_size=n, max_size=n).map(np.array), min_size=1, max_size=4)
)


@settings(max_examples=examples(150))
@given(zero_one)
def test_blocks_of_random_group_codes_agree_with_the_dense_way(codes: list[np.ndarray]) -> None:
    """Nested reduction, components and grids on group codes against kernel and finest split of the plain matrix."""
    rows = [family == k for family in codes for k in range(3) if (family == k).any()]
    n = len(codes[0])
    matrix = np.array(rows, dtype=np.int64).reshape(-1, n)
    universe = table(cell=n)
    keep = [linear(matrix[i : i + 1]) for i in range(0, len(matrix), 2)] + [
        subset("cell", [str(j) for j in np.flatnonzero(matrix[i])]) for i in range(1, len(matrix), 2)
    ]
    made = Lattice.from_kept(compile_rows(universe, keep))
    assert made.rank == (algebra.rank(matrix) if len(matrix) else 0)
    if made.dimension and len(matrix):
        assert algebra.same_lattice(made.basis, algebra.kernel_basis(matrix))
        finest = {frozenset(part) for part in finest_split(matrix)}
        ours = {frozenset(block.cells.ravel().tolist()) for block in made.blocks if block.shape.name not in ("free", "exposed")}
        assert ours == {part for part in finest if len(part) > 1}


@given(st.lists(st.integers(1, 4), min_size=1, max_size=4), st.data())
def test_margins_of_any_product_have_the_closed_form_rank(sizes: list[int], data: st.DataObject) -> None:
    names = "abcd"[: len(sizes)]
    subsets = st.lists(st.sampled_from(names), unique=True, min_size=1, max_size=len(names)).map(tuple)
    kept = data.draw(st.lists(subsets, min_size=1, max_size=3, unique_by=frozenset))
    universe = table(**dict(zip(names, sizes, strict=True)))
    made = Lattice.from_kept(compile_rows(universe, [margin(*columns) for columns in kept]))
    axes = dict(zip(names, sizes, strict=True))
    assert made.rank == margin_rank(axes, kept)
    basis = margin_basis(axes, kept).toarray()
    assert basis.shape == (made.cells, made.dimension)
    if not made.dimension:
        assert smallest_secret(axes, kept) is None
        return
    assert algebra.same_lattice(basis, made.basis)
    assert made.shortest("l1").value == smallest_secret(axes, kept)
    if made.dimension <= 8:  # the closed form against the search
        for norm in ("l1", "l2"):
            searched = shortest_vector(algebra.reduced_basis(basis), norm)
            assert (searched.value, searched.status) == (smallest_secret(axes, kept), "exact")


def test_order_of_cells_does_not_matter() -> None:
    rng = np.random.default_rng(3)
    cells = np.array(list(product(range(3), range(4))))[rng.permutation(12)]
    universe = Universe.listed({"r": [str(r) for r, _ in cells], "c": [str(c) for _, c in cells]})
    made = lattice(universe, [margin("r"), margin("c")])
    assert made.blocks.kinds() == {"grid": 1}
    grid = made.blocks[0].cells
    for axis, column in ((0, 0), (1, 1)):  # axis k is the one that constraint k sums over
        assert (np.take(cells[grid][:, :, column], [0], axis=axis) == cells[grid][:, :, column]).all()


def test_an_incomplete_grid_is_general() -> None:
    """A structural zero breaks the product: the block is general, and still right."""
    cells = [(r, c) for r in range(3) for c in range(3) if (r, c) != (1, 1)]
    universe = Universe.listed({"r": [str(r) for r, _ in cells], "c": [str(c) for _, c in cells]})
    made = lattice(universe, [margin("r"), margin("c")])
    assert made.blocks.kinds() == {"general": 1}
    assert made.dimension == 8 - 5


def test_overlapping_areas_are_one_block() -> None:
    made = lattice(table(block=6), [areas("block", {"place A": ["0", "1", "2"], "place B": ["2", "3"]})])
    assert made.blocks.kinds() == {"free": 1, "general": 1}
    assert made.rank == 2


def test_nothing_left_is_refused_and_little_left_warned_about() -> None:
    with pytest.raises(NothingLeft, match="nothing is left"):
        lattice(table(a=4), [margin("a")])
    with pytest.raises(NothingLeft):
        lattice(table(a=1), [total()])
    with pytest.warns(HoldfastWarning, match="1 free dimension for 12 cells"):
        lattice(table(a=12), [linear(np.eye(10, 12, dtype=np.int64)), subset("a", ["10", "11"])])
    with pytest.raises(NothingLeft):
        Lattice(np.eye(3, dtype=np.int64)).shortest("l1")


def test_contradicting_values_are_refused_with_a_small_witness() -> None:
    rows = [[1, 1, 0, 0], [0, 0, 1, 1], [1, 1, 1, 1], [1, 0, 0, 1]]
    names = ["north", "south", "country", "coast"]
    assert lattice(table(a=4), [linear(rows, names, [3, 4, 7, 2])]).rank == 3
    with pytest.raises(ContradictingTotals, match=r"'north'.*'south'.*'country'") as caught:
        lattice(table(a=4), [linear(rows, names, [3, 4, 8, 2])])
    assert "coast" not in str(caught.value)


@pytest.mark.parametrize(
    "matrix", [[[0.5, 1.0]], [1, 2, 3], np.zeros((1, 0), dtype=np.int64), [["a"]], np.full((1, 2), np.nan), [[2**40, 1]]], ids=str
)
def test_bad_matrices_are_refused(matrix: object) -> None:
    with pytest.raises((InvalidConstraint, InvalidParameter)):
        Lattice(matrix)


def test_a_large_general_block_says_its_split_is_not_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(components, "LARGEST_SEARCHED", 10)
    cells = [(str(a), str(b), str(c)) for a in range(3) for b in range(3) for c in range(4) if (a, b, c) != (1, 1, 1)]
    universe = Universe.listed({name: list(codes) for name, codes in zip("abc", zip(*cells, strict=True), strict=True)})
    made = lattice(universe, [margin("a"), margin("b"), margin("c")])
    assert not made.blocks.finest
    assert made.blocks.kinds() == {"general": 1}
    assert made.rank == 8
    assert (made.shortest("l1").value, made.shortest("l1").status) == (2, "lower bound")


def test_real_geographies(shared_data: Path) -> None:
    """County and tract files: DC has one county, so its total is its count; so is every county of a single tract."""
    counties = Table.from_counts(shared_data / "county_pop_2010.csv", cells=["state_fips", "county_fips"], count="pop2010")
    made = lattice(counties.universe, [margin("state_fips")])
    assert made.blocks.kinds() == {"exposed": 1, "one sum": 50}
    assert counties.universe.cell(int(made.exposed_cells[0]))["state_fips"] == "11"
    assert (made.rank, made.dimension) == (51, 3143 - 51)


def test_contains_is_exact_beyond_64_bits() -> None:
    made = Lattice([[2**30, -1, 0]])
    assert made.contains(np.array([2**40, 2**70, 5], dtype=object))
    assert not made.contains(np.array([2**40, 2**70 + 1, 5], dtype=object))
    with pytest.raises(InvalidParameter, match="3 cells"):
        made.contains([1, 2])


def test_millions_of_nested_cells_stay_arrays() -> None:
    """Half a million cells under 50,000 counties under 100 states: linear work, one shape a size, no matrix."""
    county = np.repeat(np.arange(50_000), 10)
    universe = Universe.listed(
        {
            "state": np.char.mod("%02d", county // 500).tolist(),
            "county": county.astype(str).tolist(),
            "cell": np.arange(500_000).astype(str).tolist(),
        }
    )
    made = lattice(universe, [margin("state"), margin("county")])
    assert made.blocks.kinds() == {"one sum": 50_000}
    assert made.rank == 50_000
    assert len(made.blocks.shapes) == 1
    assert made.blocks[123].cells.tolist() == list(range(1230, 1240))


def test_smith_of_a_lattice_gives_its_basis() -> None:
    made = Lattice(three_sets())
    smith = made.smith()
    assert algebra.same_lattice(algebra.as_matrix(algebra.to_numpy(smith.V)[:, made.rank :]), made.basis)


def test_identities_restrict_like_kept_rows() -> None:
    zero = identity(linear([[1, 0, 0, 0]], ["structural zero"]))
    made = lattice(table(a=4), [zero, total()])
    assert made.exposed_cells.tolist() == [0]
    assert made.rank == 2
    assert prod(made.blocks.kinds().values()) == 1


def test_no_warning_for_ordinary_tables() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert lattice(table(r=4, c=4), [margin("r"), margin("c")]).dimension == 9


def test_equal_sets_stated_in_a_circle_are_kept_once() -> None:
    """Three constraints that each hold the set {1, 2}: nesting among partial families is not transitive, and one copy must stay."""
    universe = Universe.listed({"id": list("123456"), "a": list("sstt--"), "b": list("sst-vv"), "c": list("ss--v-")})
    keep = [subset(f"{column} != '-'", by=[column]) for column in "abc"]
    made = Lattice.from_kept(compile_rows(universe, keep))
    matrix = made.matrix.toarray()
    assert made.rank == algebra.rank(matrix) == 5
    assert not (matrix @ made.basis).any()


@st.composite
def families_by(draw: st.DrawFn) -> tuple[Universe, list[Constraint]]:
    """A listed universe and constraints with partial families of several groups: what random rows alone hardly ever make."""
    n = draw(st.integers(2, 9))
    columns = {f"c{i}": draw(st.lists(st.sampled_from("-stuv"), min_size=n, max_size=n)) for i in range(draw(st.integers(1, 4)))}
    universe = Universe.listed({"id": [str(i) for i in range(n)], **columns})
    keep: list[Constraint] = []
    for column, codes in columns.items():
        if set(codes) - {"-"}:
            keep.append(subset(f"{column} != '-'", by=[column]))
        if draw(st.booleans()):
            keep.append(margin(column))
        if draw(st.booleans()) and set(codes) - {"-"}:
            others = draw(st.lists(st.sampled_from(sorted(columns)), unique=True, max_size=2))
            keep.append(subset(column, sorted(set(codes) - {"-"}), by=others))
    return universe, draw(st.permutations(keep))


@settings(max_examples=examples(400))
@given(families_by())
@pytest.mark.long
def test_partial_families_keep_every_row(given_case: tuple[Universe, list[Constraint]]) -> None:
    universe, keep = given_case
    made = Lattice.from_kept(compile_rows(universe, keep))
    matrix = made.matrix.toarray()
    assert made.rank == (algebra.rank(matrix) if matrix.size else 0)
    assert not (matrix @ made.basis).any()
    if made.dimension and matrix.size:
        assert algebra.same_lattice(made.basis, algebra.kernel_basis(matrix))
        fixed = [cell for cell in range(made.cells) if not algebra.to_numpy(algebra.kernel_basis(matrix))[cell].any()]
        assert made.exposed_cells.tolist() == fixed


def test_rank_of_large_coefficients_does_not_overflow() -> None:
    signs = np.array(list(product([1, -1], repeat=9))).T
    assert Lattice(signs * 2**30).rank == Lattice(signs).rank == 9


def test_large_margins_that_are_no_grid_have_their_rank_in_closed_form() -> None:
    made = lattice(table(county=300, sex=2, age=40), [margin("county"), margin("age"), margin("sex")])
    assert made.blocks.finest
    assert made.blocks.kinds() == {"product of hierarchies": 1}
    assert made.rank == made.blocks[0].shape.rank == 300 + 39 + 1
    assert made.rank == margin_rank({"county": 300, "sex": 2, "age": 40}, [("county",), ("age",), ("sex",)])
    assert made.shortest("l1").value == made.blocks[0].shape.shortest(norm_of("l1")).value == 4


def test_equal_large_blocks_have_one_shape() -> None:
    """One such block for each state, each that of the state by itself."""
    keep = [margin("state", "a"), margin("state", "b"), margin("state", "c")]
    made = lattice(table(state=3, a=25, b=20, c=2), keep)
    assert made.blocks.kinds() == {"product of hierarchies": 3}
    assert {block.shape.rank for block in made.blocks} == {25 + 20 + 2 - 2}
    assert made.rank == 3 * 45
    assert made.blocks[0].shape.dimension == 1000 - 45


def test_large_margins_that_are_no_grid_have_an_explicit_basis() -> None:
    made = lattice(table(a=25, b=20, c=2), [margin("a"), margin("b"), margin("c")])
    assert made.basis.shape == (1000, 1000 - 45)
    assert not (made.matrix @ made.basis).any()
    z = made.basis @ np.arange(955)
    assert made.contains(z)
    assert z.any()


def test_a_row_of_one_cell_is_found_in_a_block_too_large_to_look_into(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(components, "LARGEST_SEARCHED", 400)
    cells = [(i, j) for i in range(30) for j in range(30) if not (i == 0 and j > 0) and (i, j) != (5, 7)]
    universe = Universe.listed({"r": [f"r{i}" for i, _ in cells], "c": [f"c{j}" for _, j in cells]})
    made = lattice(universe, [margin("r"), margin("c")])
    assert made.exposed_cells.tolist() == [0]
    assert not made.blocks.finest
    kept = compile_rows(universe, [margin("r"), margin("c")])
    assert made.rank == algebra.rank(kept.matrix().toarray())


def test_places_without_a_code_in_common_share_one_family() -> None:
    universe = table(block=2000)
    sets = {f"place {i}": [str(2 * i), str(2 * i + 1)] for i in range(900)}
    kept = compile_rows(universe, [areas("block", sets)])
    assert len(kept.rows) == 1
    assert list(kept.names())[17] == "area place 17"
    made = Lattice.from_kept(kept)
    assert made.blocks.kinds() == {"free": 1, "one sum": 900}


def test_redundant_rows_of_general_blocks_are_counted() -> None:
    universe = table(county=3, age=30, sex=2)
    keep: list[Constraint] = [margin("county"), subset("age >= 18", by=["county"]), margin("county", "sex"), margin("county", "sex")]
    made = lattice(universe, keep)
    assert len(compile_rows(universe, keep)) - made.rank == 3 + 6
    assert lattice(table(a=2, b=2), [linear([[1, 1, 0, 0]], ["first"]), margin("a"), margin("b")]).rank == 3


@pytest.mark.parametrize("z", [np.array([0.5, -0.5]), np.array([0.5, -0.5], dtype=object)])
def test_moves_are_integers(z: np.ndarray) -> None:
    made = Lattice([[1, 1]])
    with pytest.raises(InvalidParameter):
        made.contains(z)
    with pytest.raises(InvalidParameter):
        made.coordinates(z)


def test_areas_that_cover_everything_are_no_margin_of_their_by_columns() -> None:
    universe = table(a=2, b=3)
    made = lattice(universe, [total(), areas("a", {"x": ["1"], "y": ["0"]}), subset("b >= 0", by=["b"])])
    assert made.rank == algebra.rank(made.matrix.toarray()) == 4
