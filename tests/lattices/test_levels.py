"""Products of hierarchies: their algebra against exact algebra on all rows, and which kept totals are recognised as such."""

from __future__ import annotations

import json
import pickle
from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import holdfast as hf
from holdfast.errors import InvalidParameter
from holdfast.invariants.constraints import Constraint
from holdfast.lattices import Lattice, algebra, lattice
from holdfast.lattices.levels import Misfit, level_pieces
from holdfast.lattices.norms import L1, L2
from holdfast.lattices.shapes import Grid, Levels, OneSum, Pinned
from holdfast.lattices.shapes.levels import is_below, maximal
from holdfast.lattices.shortest import shortest_vector
from holdfast.lattices.trees import Tree
from holdfast.tables import Universe
from tests.examples import examples
from tests.samplers.levels_shapes import PLAIN, SMALL, all_rows, tree, uneven

NAMES = list(SMALL)


@pytest.mark.parametrize("name", NAMES)
def test_the_algebra_is_that_of_the_rows(name: str) -> None:
    check_algebra(SMALL[name])


@given(st.integers(0, 10**6))
@settings(max_examples=examples(40))
def test_the_algebra_of_random_trees_and_kept_families(seed: int) -> None:
    rng = np.random.default_rng(seed)
    trees = tuple(uneven(rng, int(rng.integers(1, 4))) for _ in range(int(rng.integers(2, 4))))
    if np.prod([own.places for own in trees]) > 80:
        return
    chosen = {tuple(int(rng.integers(0, own.depth + 1)) for own in trees) for _ in range(int(rng.integers(1, 4)))}
    check_algebra(Levels(trees, maximal(chosen)))


def check_algebra(shape: Levels) -> None:
    """Rank, an integer basis of ALL moves, rows, fixed cells, shortest move, determinant and projection."""
    rows = all_rows(shape)
    kernel = algebra.kernel_basis(rows)
    assert (shape.rank, shape.dimension) == (algebra.rank(rows), kernel.ncols())
    listed = shape.matrix()
    assert listed is not None
    assert algebra.rank(listed) == len(listed) == shape.rank == algebra.rank(np.concatenate([rows, listed]))
    if shape.dimension == 0:
        assert shape.shortest(L1) is None
        assert len(shape.fixed_cells()) == shape.size
        return
    basis = shape.basis()
    assert algebra.same_lattice(algebra.as_matrix(basis), kernel)
    assert np.array_equal(shape.fixed_cells(), np.flatnonzero(~basis.any(axis=1)))
    assert shape.log_gram_determinant() == pytest.approx(np.log(float(algebra.determinant_squared(kernel))), abs=1e-9)
    for norm in (L1, L2):
        found, exact = shape.shortest(norm), shortest_vector(algebra.to_numpy(algebra.reduced_basis(kernel)), norm)
        assert found is not None
        assert exact.status != "exact" or found.value == exact.value
    columns = {tuple(column) for column in rows.T.tolist()}
    assert shape.one_can_move() is (len(columns) < shape.size)
    inverse = basis @ np.linalg.inv((basis.T @ basis).astype(np.float64)) @ basis.T
    assert shape.project(np.eye(shape.size)) == pytest.approx(inverse, abs=1e-9)
    assert shape.projection_diagonal() == pytest.approx(np.diag(inverse), abs=1e-9)
    for t in shape.vectors():
        sums = np.array([shape.sums(cell, t).ravel() for cell in np.eye(shape.size, dtype=np.int64)]).T
        left = shape.projected_sums(t).ravel()
        assert left == pytest.approx(np.einsum("ui,ij,uj->u", sums, inverse, sums), abs=1e-9)
        assert (left == 0).tolist() == (~(sums @ basis).any(axis=1)).tolist()
    asked = np.concatenate([rows, 3 * rows[:1] - rows[-1:], np.eye(shape.size, dtype=np.int64)])
    assert shape.are_fixed(asked).tolist() == (~(asked @ basis).any(axis=1)).tolist()
    products = shape.gram_schmidt_products(np.eye(shape.size))
    assert products.shape == (shape.size, shape.dimension)
    assert (products**2).sum(axis=1) == pytest.approx(shape.rounding_diagonal(), abs=1e-9)
    assert shape.rounding_square() == pytest.approx(float((products**2).sum()))
    gram = products.T @ products  # the vectors are orthogonal, span the moves' space and have the determinant of the lattice
    assert gram == pytest.approx(np.diag(np.diag(gram)), abs=1e-9)
    assert rows @ products == pytest.approx(0, abs=1e-9)
    assert np.log(np.diag(gram)).sum() == pytest.approx(shape.log_gram_determinant(), abs=1e-7)


def test_a_shape_is_a_value() -> None:
    for name, shape in SMALL.items():
        again = Levels(shape.trees, shape.kept)
        assert again == shape == pickle.loads(pickle.dumps(shape))
        assert hash(again) == hash(shape)
        assert json.loads(json.dumps(shape.fields)) == list(shape.fields)
        assert all(shape.fields != other.fields for key, other in SMALL.items() if key != name)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Levels((), ((),)),
        lambda: Levels((PLAIN(3), PLAIN(2)), ()),
        lambda: Levels((PLAIN(3), PLAIN(2)), ((2, 0),)),
        lambda: Levels((PLAIN(3), PLAIN(2)), ((0, 0), (1, 0))),
        lambda: Tree(((2,), (1,))),
        lambda: Tree(((0,),)),
        lambda: Tree(()),
    ],
)
def test_bad_shapes_are_refused(make: object) -> None:
    with pytest.raises(InvalidParameter):
        make()  # type: ignore[operator]


def test_partitions_make_a_tree_in_the_order_of_first_places() -> None:
    made, order = Tree.of_partitions([np.array([1, 0, 1, 0, 1]), np.array([1, 2, 1, 0, 3]), np.arange(5)])
    assert made == tree((2,), (2, 2), (2, 1, 1, 1))
    assert order.tolist() == [0, 2, 4, 1, 3]


# ---- recognition


def listed(rows: list[tuple[str, str, str, str]]) -> Universe:
    return Universe.listed({name: list(own) for name, own in zip(("state", "county", "sex", "age"), zip(*rows, strict=True), strict=True)})


def geography() -> Universe:
    """Three states with three, two and one county; two sexes; four age groups."""
    rows = [
        (state, county, sex, age)
        for state, counties in (("A", "123"), ("B", "12"), ("D", "1"))
        for county in counties
        for sex in "FM"
        for age in ("0-17", "18-64", "65-84", "85+")
    ]
    return Universe.listed(
        {name: list(codes) for name, codes in zip(("state", "county", "sex", "age"), zip(*rows, strict=True), strict=True)}
    )


COUNTY = ("state", "county")
ADULT, OLD, VERY_OLD = ["18-64", "65-84", "85+"], ["65-84", "85+"], ["85+"]

FITTING: dict[str, list[Constraint]] = {
    "county totals and sex": [hf.margin(*COUNTY), hf.margin("sex")],
    "county totals and sex by state": [hf.margin(*COUNTY), hf.margin("state", "sex")],
    "county totals and one total of 85 and over": [hf.margin(*COUNTY), hf.subset("age", VERY_OLD)],
    "adults by county, very old by state": [
        hf.margin(*COUNTY),
        hf.subset("age", ADULT, by=COUNTY),
        hf.subset("age", VERY_OLD, by=["state"]),
    ],
    "nested sets without totals of their own": [hf.margin(*COUNTY), hf.subset("age", VERY_OLD), hf.subset("age", OLD, by=["state"])],
    "(county, adult), (state, sex)": [hf.margin(*COUNTY), hf.subset("age", ADULT, by=COUNTY), hf.margin("state", "sex")],
    "areas that cover a column": [hf.areas("age", {"young": ["0-17"], "rest": ADULT}, by=["state"]), hf.margin("sex")],
    "one-way margins": [hf.margin("state"), hf.margin("sex"), hf.margin("age")],
    "sex by age, and states": [hf.margin("sex", "age"), hf.margin("state", "sex"), hf.margin(*COUNTY)],
}

OTHERS: dict[str, list[Constraint]] = {
    # [theory R20]: nested sets are not enough
    "old by county, adult by sex": [
        hf.margin(*COUNTY),
        hf.margin("sex"),
        hf.subset("age", OLD, by=COUNTY),
        hf.subset("age", ADULT, by=["sex"]),
    ],
    "old by county without county totals": [hf.subset("age", OLD, by=COUNTY), hf.margin("sex")],
    "sets that cross": [
        hf.margin("sex"),
        hf.subset("age", ["0-17", "85+"], by=["sex"]),
        hf.subset("age", OLD, by=COUNTY),
        hf.margin(*COUNTY),
    ],
}


def check_lattice(made: Lattice) -> None:
    rows = made.matrix.toarray().astype(np.int64)
    assert made.rank == algebra.rank(rows)
    assert algebra.same_lattice(algebra.as_matrix(made.basis), algebra.kernel_basis(rows))
    assert np.array_equal(made.exposed_cells, np.flatnonzero(~made.basis.any(axis=1)))
    assert made.blocks.finest


@pytest.mark.parametrize("name", FITTING)
def test_what_offices_state_is_a_product_of_hierarchies(name: str) -> None:
    made = lattice(geography(), FITTING[name])
    check_lattice(made)
    assert "general" not in made.blocks.kinds()
    assert not made.blocks.misfits


@pytest.mark.parametrize("name", OTHERS)
def test_partitions_that_form_no_chain_are_left_to_others(name: str) -> None:
    """Taken for a product they would keep too much or too little; they go to general blocks, and the misfit is named."""
    made = lattice(geography(), OTHERS[name])
    check_lattice(made)
    assert "general" in made.blocks.kinds()
    assert made.blocks.misfits


def test_the_two_counter_examples_by_their_dimensions() -> None:
    """2 counties x 2 sexes x 3 ages: {65 or over} by county with {18 or over} by sex has 5 free dimensions, where either chain has 4;
    {65 or over} by county without county totals has 10, where the level has 8.
    """
    universe = Universe.product({"county": ["1", "2"], "sex": ["F", "M"], "age": ["0-17", "18-64", "65+"]})
    crossing: list[Constraint] = [
        hf.areas("age", {"old": ["65+"], "rest": ["0-17", "18-64"]}, by=["county"]),
        hf.areas("age", {"adult": ["18-64", "65+"], "rest": ["0-17"]}, by=["sex"]),
    ]
    made = lattice(universe, crossing)
    check_lattice(made)
    (misfit,) = made.blocks.misfits
    assert set(misfit.families) == {0, 1}
    assert misfit.columns == (2,)
    chains = [
        lattice(universe, [*crossing, hf.areas("age", {"a": ["0-17"], "b": ["18-64"], "c": ["65+"]}, by=[column])]).dimension
        for column in ("county", "sex")
    ]
    assert (made.dimension, chains) == (5, [4, 4])
    alone = lattice(universe, [hf.subset("age", ["65+"], by=["county"])])
    whole = lattice(universe, [crossing[0]])
    assert (alone.dimension, whole.dimension) == (10, 8)


@given(st.integers(0, 10**6))
@settings(max_examples=examples(60))
def test_random_constraints_keep_the_lattice_of_their_rows(seed: int) -> None:
    """Whatever is recognised, the lattice is that of the rows: margins, sets and areas at random, in random order of cells."""
    rng = np.random.default_rng(seed)
    universe = geography()
    constraints: list[Constraint] = []
    for _ in range(int(rng.integers(1, 5))):
        by = [column for column in universe.columns if rng.random() < 0.35]
        codes = [code for code in universe.codes["age"] if rng.random() < 0.5]
        if rng.random() < 0.5 and codes and "age" not in by:
            constraints.append(hf.subset("age", codes, by=by))
        elif by:
            constraints.append(hf.margin(*by))
    if not constraints:
        return
    kept = hf.invariants.compile_rows(universe, constraints)
    made = Lattice.from_kept(kept)
    if made.dimension:
        check_lattice(made)


def test_equal_components_are_recognised_once_and_share_a_shape() -> None:
    rows = [(f"{s}", f"{c}", f"{x}", f"{a}") for s in range(30) for c in range(3) for x in range(2) for a in range(4)]
    universe = Universe.listed(
        {name: list(codes) for name, codes in zip(("state", "county", "sex", "age"), zip(*rows, strict=True), strict=True)}
    )
    made = lattice(universe, [hf.margin("state", "county"), hf.margin("state", "sex"), hf.margin("state", "age")])
    assert made.blocks.kinds() == {"product of hierarchies": 30}
    assert len([shape for _, shape, _ in made.blocks.used_shapes()]) == 1


def test_pieces_below_units_that_all_sums_keep_apart() -> None:
    """Every sum is within a state: the states are pieces, and a unit of one place is fixed."""
    place = np.arange(12)
    state, county, sex = place // 6, place // 2, place % 2
    pieces = level_pieces([county, 2 * state + sex], [state, county, sex])
    assert not isinstance(pieces, Misfit)
    assert [shape for shape, _ in pieces] == [Grid((2, 3)), Grid((2, 3))]
    assert sorted(np.concatenate([order for _, order in pieces]).tolist()) == place.tolist()
    pinned = level_pieces([place], [state, county, sex])
    assert not isinstance(pinned, Misfit)
    assert [shape for shape, _ in pinned] == [Pinned(12)]
    one = level_pieces([np.zeros(12, dtype=np.int64)], [state, county, sex])
    assert not isinstance(one, Misfit)
    assert [shape for shape, _ in one] == [OneSum(12)]


def test_cells_with_holes_are_no_product() -> None:
    """Two columns of which not all pairs occur are one axis, on which their margins do not fit; three that do not split are no product."""
    first, second = np.array([0, 0, 1, 1, 2]), np.array([0, 1, 0, 1, 0])
    assert level_pieces([first, second], [first, second]) == Misfit((1, 0), (0, 1))
    a, b, c = np.array([(a, b, c) for a, b, c in product((0, 1), repeat=3) if (a, b, c) != (1, 1, 1)]).T
    assert level_pieces([a, b, c], [a, b, c]) == Misfit((), ())


def test_order_of_level_vectors() -> None:
    assert is_below((0, 1), (1, 1))
    assert not is_below((2, 0), (1, 1))
    assert maximal([(0, 0), (1, 0), (0, 2), (1, 0)]) == ((0, 2), (1, 0))
    for shape in SMALL.values():
        seen: list[tuple[int, ...]] = []
        for s in shape.vectors():
            assert all(down in seen for k in range(len(s)) if s[k] for down in [(*s[:k], s[k] - 1, *s[k + 1 :])])
            seen.append(s)
        assert set(shape.free()) == {s for s in product(*(range(d + 1) for d in shape.depths)) if not shape.is_kept(s)}


def test_sets_of_places_have_one_class_just_where_an_exchange_of_like_units_takes_one_to_the_other() -> None:
    """All exchanges of all sets of places, in full."""
    for given_tree in (Tree.plain(4), Tree(((2,), (2, 2))), Tree(((3,), (1, 2, 2))), Tree(((2,), (2, 1), (1, 2, 2)))):
        orbits: dict[frozenset[int], object] = {}
        exchanges = exchange(given_tree, 0, 0)
        for chosen in product((False, True), repeat=given_tree.places):
            own = frozenset(np.flatnonzero(chosen).tolist())
            if own:
                orbits[own] = frozenset(frozenset(taken[place] for place in own) for taken in exchanges)
        classes = {own: given_tree.class_of(np.array(sorted(own))) for own in orbits}
        for one in orbits:
            for other in orbits:
                assert (classes[one] == classes[other]) is (orbits[one] == orbits[other])


def exchange(given_tree: Tree, level: int, unit: int) -> list[dict[int, int]]:
    """Every way to exchange units below one unit: where each of its places goes."""
    if level == given_tree.depth:
        return [{unit: unit}]
    begin, end = given_tree.starts(level)[unit : unit + 2].tolist()
    children = list(range(begin, end))
    out = []
    for order in permutations(children):
        if any(given_tree.below(level + 1, a) != given_tree.below(level + 1, b) for a, b in zip(children, order, strict=True)):
            continue
        for parts in product(*(exchange(given_tree, level + 1, child) for child in children)):
            taken: dict[int, int] = {}
            for a, b, part in zip(children, order, parts, strict=True):
                off = int(given_tree.firsts(level + 1)[b] - given_tree.firsts(level + 1)[a])
                taken |= {place: to + off for place, to in part.items()}
            out.append(taken)
    return out
