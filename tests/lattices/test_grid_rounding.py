"""Rounding answers to a grid through the lattice: dense nearest plane as oracle, promises as properties, the leak of the obvious way."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import floor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.errors import InvalidParameter, RequestTooLarge
from holdfast.invariants import margin
from holdfast.lattices import Lattice, algebra, lattice
from holdfast.lattices.gram_schmidt import gram_schmidt
from holdfast.lattices.grid_rounding import RoundingMovement, displacement, movement, to_grid
from holdfast.lattices.shapes import General, Grid, Levels, OneSum
from holdfast.lattices.trees import Tree
from holdfast.tables import Hierarchy, Universe
from tests.examples import examples

HALF = Fraction(1, 2)


def _levels_of(columns: dict[str, list[str]], keep: list[object]) -> Lattice:
    return lattice(Universe.product(columns), keep)  # type: ignore[arg-type]


def _counties() -> Universe:
    """Uneven counties of five towns, one and two."""
    counties = {"a": ["a1", "a2", "a3", "a4", "a5"], "b": ["b1"], "c": ["c1", "c2"]}
    parents = {town: county for county, towns in counties.items() for town in towns}
    towns = Hierarchy({**dict.fromkeys(counties), **parents}, ["county", "town"])
    return Universe.product({"town": towns, "sex": ["f", "m"]})


def _lattices() -> dict[str, Lattice]:
    abc = ["a", "b", "c"]
    two, three = {"r": abc, "c": abc[:2]}, {"r": abc[:2], "c": abc[:2], "s": abc}
    return {
        "one sum": Lattice([[1, 1, 1, 1]]),
        "signs": Lattice([[1, -1, 1, -1, 1]]),
        "multiples": Lattice([[2, 2, 2]]),
        "two sums, a free and a pinned cell": Lattice([[1, 1, 1, 0, 0, 0, 0], [0, 0, 0, 1, 1, 0, 0], [0, 0, 0, 0, 0, 3, 0]]),
        "rows and columns": _levels_of(two, [margin("r"), margin("c")]),
        "two-way margins of three axes": _levels_of(three, [margin("r", "c"), margin("r", "s"), margin("c", "s")]),
        "one-way margins of three axes": _levels_of(three, [margin("r"), margin("c"), margin("s")]),
        "counties and sexes": lattice(_counties(), [margin("county"), margin("sex")]),
        "general with classes": Lattice([[1, 1, 1, 1, 0], [0, 2, 2, 3, 1]]),
        "general": Lattice([[3, 1, 4, 1, 5], [2, 7, 1, 8, 2]]),
    }


LATTICES = _lattices()
CASES = st.sampled_from(sorted(LATTICES))


def _tree_basis(tree: Tree, level: int) -> np.ndarray:
    """Children but the last against their last sibling, later ones first; at level 0 the first place."""
    first = lambda at, unit: int(np.flatnonzero(tree.unit_of(at) == unit)[0])  # noqa: E731
    columns = []
    if level == 0:
        return np.eye(tree.places, 1, dtype=np.int64)
    for begin, end in zip(tree.starts(level - 1)[:-1], tree.starts(level - 1)[1:], strict=True):
        for child in reversed(range(begin, end - 1)):
            column = np.zeros(tree.places, dtype=np.int64)
            column[first(level, child)], column[first(level, end - 1)] = 1, -1
            columns.append(column)
    return np.array(columns).reshape(-1, tree.places).T


def _level_basis(trees: list[Tree], kept: list[tuple[int, ...]]) -> tuple[np.ndarray, int]:
    """(a basis of all integer tables, finer level vectors first and kept ones last, how many belong to free ones)."""
    vectors = list(product(*(range(tree.depth + 1) for tree in trees)))
    is_kept = lambda s: any(all(a <= b for a, b in zip(s, t, strict=True)) for t in kept)  # noqa: E731
    ordered = [s for s in reversed(vectors) if not is_kept(s)] + [s for s in reversed(vectors) if is_kept(s)]
    parts = []
    for s in ordered:
        part = np.ones((1, 1), dtype=np.int64)
        for tree, level in zip(trees, s, strict=True):
            part = np.kron(part, _tree_basis(tree, level))
        parts.append(part)
    return np.concatenate(parts, axis=1), sum(p.shape[1] for s, p in zip(ordered, parts, strict=True) if not is_kept(s))


def _class_basis(shape: General) -> tuple[np.ndarray, int]:
    ends = np.cumsum(shape.class_sizes)
    inside = []
    for end, size in zip(ends, shape.class_sizes, strict=True):
        for cell in reversed(range(end - size, end - 1)):
            inside.append([int(i == cell) - int(i == end - 1) for i in range(shape.size)])
    kernel = shape.class_basis()
    complement = algebra.to_numpy(algebra.complement_and_kernel(algebra.as_matrix(np.array(shape.rows)))[0])
    lifted = np.zeros((shape.size, len(ends)), dtype=object)
    lifted[ends - 1] = np.concatenate([kernel, complement], axis=1)
    whole = np.concatenate([np.array(inside, dtype=object).reshape(-1, shape.size).T, lifted], axis=1)
    return whole, len(inside) + kernel.shape[1]


def _block_basis(shape: object) -> tuple[np.ndarray, int]:
    """A basis of all integers that begins with one of the moves, and how many columns those are."""
    if isinstance(shape, OneSum):
        basis, moves = _level_basis([Tree.plain(shape.size)], [(0,)])
        return (basis if shape.signs is None else np.array(shape.signs)[:, None] * basis), moves
    if isinstance(shape, Grid):
        n = len(shape.axes)
        return _level_basis([Tree.plain(places) for places in shape.axes], [tuple(int(i != k) for i in range(n)) for k in range(n)])
    if isinstance(shape, Levels):
        return _level_basis(list(shape.trees), list(shape.kept))
    if isinstance(shape, General):
        return _class_basis(shape)
    return np.eye(shape.size, dtype=np.int64), shape.dimension  # type: ignore[attr-defined]


def _nearest_plane(basis: np.ndarray, t: list[Fraction]) -> list[int]:
    """Babai's nearest plane in fractions: from the last column to the first."""
    frame = gram_schmidt(basis)
    left, out = list(t), [0] * len(t)
    for i in reversed(range(frame.dimension)):
        star = [Fraction(int(entry), frame.determinants[i]) for entry in frame.integral_vectors[i]]
        c = sum(a * b for a, b in zip(star, left, strict=True)) / frame.squared_lengths[i]
        v = floor(c + HALF)
        left = [a - v * int(b) for a, b in zip(left, basis[:, i], strict=True)]
        out = [a + v * int(b) for a, b in zip(out, basis[:, i], strict=True)]
    return out


def _answers(data: st.DataObject, cells: int, denominators: tuple[int, ...] = (1, 2, 3, 97)) -> list[Fraction]:
    Q = data.draw(st.sampled_from(denominators))
    return [Fraction(value, Q) for value in data.draw(st.lists(st.integers(-40, 40), min_size=cells, max_size=cells))]


def _free_change(data: st.DataObject, moves: Lattice) -> list[Fraction]:
    """A rational vector in the real span of the moves."""
    factors = _answers(data, moves.dimension, (1, 2, 7))
    return [sum((int(b) * f for b, f in zip(row, factors, strict=True)), Fraction(0)) for row in moves.basis]


def _totals(moves: Lattice, t: list[Fraction] | np.ndarray) -> list[Fraction]:
    return [sum((int(a) * Fraction(b) for a, b in zip(row, t, strict=True)), Fraction(0)) for row in moves.matrix.toarray()]


def test_the_cases_have_every_kind_of_block() -> None:
    kinds = {kind for moves in LATTICES.values() for kind in moves.blocks.kinds()}
    assert kinds == {"one sum", "free", "exposed", "grid", "product of hierarchies", "general"}


@pytest.mark.parametrize("name", sorted(LATTICES))
def test_movement_is_that_of_the_gram_schmidt_vectors(name: str) -> None:
    l1, l2_squared = Fraction(0), Fraction(0)
    for block in LATTICES[name].blocks:
        basis, moves = _block_basis(block.shape)
        assert abs(algebra.as_matrix(basis).det()) == 1  # of all integers
        if not moves:
            continue
        frame = gram_schmidt(basis[:, :moves])
        l2_squared += sum(frame.squared_lengths)
        l1 += sum(Fraction(int(sum(abs(row))), D) for row, D in zip(frame.integral_vectors, frame.determinants, strict=False))
    assert movement(LATTICES[name]) == RoundingMovement(l1, l2_squared)


def test_movement_of_many_cells_is_rounded_up_and_short() -> None:
    n = 3000
    exact = n - 1 + sum(Fraction(1, k) for k in range(1, n))
    found = movement(Lattice(np.ones((1, n), dtype=np.int64))).l2_squared
    assert exact <= found <= exact + Fraction(n, 2**64)
    assert found.denominator <= 2**64


@pytest.mark.parametrize("name", sorted(LATTICES))
@pytest.mark.parametrize("totals_kept", [False, True])
def test_displacement_is_that_of_the_gram_schmidt_vectors(name: str, totals_kept: bool) -> None:
    random, lattice_ = np.random.default_rng(7), LATTICES[name]
    for _ in range(3):
        w, expected, directions = random.integers(-5, 6, lattice_.cells), Fraction(0), 0
        for block in lattice_.blocks:
            basis, moves = _block_basis(block.shape)
            frame = gram_schmidt(basis)
            for i in range(moves if totals_kept else frame.dimension):
                along = int(sum(int(a) * int(b) for a, b in zip(frame.integral_vectors[i], w[block.cells.ravel()], strict=True)))
                expected, directions = expected + Fraction(abs(along), 2 * frame.determinants[i]), directions + 1
        assert expected <= displacement(lattice_, w, totals_kept=totals_kept) <= expected + Fraction(directions, 2**65)


@given(CASES, st.data())
def test_no_sum_of_answers_moves_farther_than_its_displacement(name: str, data: st.DataObject) -> None:
    moves = LATTICES[name]
    t = _answers(data, moves.cells)
    w = np.array(data.draw(st.lists(st.integers(-5, 5), min_size=moves.cells, max_size=moves.cells)))
    found = to_grid(moves, t, Fraction(1))
    moved = sum((int(a) * (int(y) - value) for a, y, value in zip(w, found.integers, t, strict=True)), Fraction(0))
    assert abs(moved) <= displacement(moves, w, totals_kept=not found.moved_totals)


def test_displacement_is_reached_and_kept_totals_have_none() -> None:
    free, one_sum = Lattice(np.zeros((0, 2), dtype=np.int64)), LATTICES["one sum"]
    assert displacement(free, np.array([1, -3]), totals_kept=True) == 2  # halves go up: (0, 0) and (-1/2, 1/2) differ by so much
    assert to_grid(free, [HALF, HALF], Fraction(1)).integers.tolist() == [1, 1]
    assert displacement(one_sum, np.array([2, 2, 2, 2]), totals_kept=True) == 0
    assert displacement(one_sum, np.array([2, 2, 2, 2]), totals_kept=False) == 1
    assert to_grid(one_sum, [HALF, 0, 0, 0], Fraction(1)).integers.sum() == 1


@given(CASES, st.data())
@settings(max_examples=examples(120))
def test_the_same_as_dense_nearest_plane(name: str, data: st.DataObject) -> None:
    moves = LATTICES[name]
    t = _answers(data, moves.cells)
    expected = [0] * moves.cells
    for block in moves.blocks:
        cells = block.cells.ravel().tolist()
        for cell, value in zip(cells, _nearest_plane(_block_basis(block.shape)[0], [t[cell] for cell in cells]), strict=True):
            expected[cell] = value
    assert to_grid(moves, t, Fraction(1)).integers.tolist() == expected
    assert to_grid(moves, [value * Fraction(1, 8) for value in t], Fraction(1, 2**3)).integers.tolist() == expected


def test_uneven_counties_share_what_is_left_by_their_towns() -> None:
    """The same against the oracle on many answers: weights show only where a share is near one half."""
    moves, random = LATTICES["counties and sexes"], np.random.default_rng(20)
    (block,) = moves.blocks
    basis, cells = _block_basis(block.shape)[0], block.cells.ravel()
    for _ in range(60):
        t = [Fraction(int(value), 97) for value in random.integers(-500, 500, moves.cells)]
        assert to_grid(moves, t, Fraction(1)).integers[cells].tolist() == _nearest_plane(basis, [t[cell] for cell in cells])


@given(CASES, st.data())
@settings(max_examples=examples(120))
def test_equal_totals_end_on_one_coset_and_no_further_apart_than_charged(name: str, data: st.DataObject) -> None:
    moves = LATTICES[name]
    t, v = _answers(data, moves.cells), _free_change(data, moves)
    first, second = to_grid(moves, t, Fraction(1)), to_grid(moves, [a + b for a, b in zip(t, v, strict=True)], Fraction(1))
    assert _totals(moves, first.integers) == _totals(moves, second.integers)
    assert first.moved_totals == second.moved_totals
    bound = movement(moves)
    error = [int(b) - int(a) - c for a, b, c in zip(first.integers, second.integers, v, strict=True)]
    assert sum(map(abs, error)) <= bound.l1
    assert sum(e * e for e in error) <= bound.l2_squared


@given(CASES, st.data())
@settings(max_examples=examples(80))
def test_integers_stay_and_totals_that_integers_have_are_kept(name: str, data: st.DataObject) -> None:
    moves = LATTICES[name]
    z = data.draw(st.lists(st.integers(-(2**61), 2**61), min_size=moves.cells, max_size=moves.cells))
    v = _free_change(data, moves)
    t = [a + b for a, b in zip(z, v, strict=True)]
    assert to_grid(moves, z, Fraction(1)).integers.tolist() == z
    made = to_grid(moves, t, Fraction(1))
    assert made.moved_totals == ()
    assert _totals(moves, made.integers) == _totals(moves, t)
    shifted = to_grid(moves, [a + 5 * b for a, b in zip(t, range(moves.cells), strict=True)], Fraction(1))  # it commutes with integers
    assert shifted.integers.tolist() == [int(y) + 5 * i for i, y in enumerate(made.integers)]


def test_cell_by_cell_two_answers_with_one_total_get_two() -> None:
    """Rounding every cell by itself is what must not be done: noise that keeps totals then tells these two apart with certainty."""
    moves = Lattice([[1, 1, 1]])
    one, other = [[Fraction(n, 10) for n in row] for row in ((4, 4, 2), (6, 2, 2))]
    assert sum(one) == sum(other) == 1
    by_itself = [[floor(value + HALF) for value in answers] for answers in (one, other)]
    assert [sum(answers) for answers in by_itself] == [0, 1]
    assert not moves.contains(np.array(by_itself[0]) - np.array(by_itself[1]))  # no outcome is possible under both
    rounded = [to_grid(moves, answers, Fraction(1)).integers for answers in (one, other)]
    assert [int(answers.sum()) for answers in rounded] == [1, 1]
    assert moves.contains(rounded[0] - rounded[1])


def test_totals_that_no_integers_have_are_rounded_and_named() -> None:
    moves = Lattice([[2, 2, 0], [0, 0, 1]])
    made = to_grid(moves, [Fraction(1, 2), Fraction(0), Fraction(3)], Fraction(1))
    assert made.moved_totals == (0,)  # 2 (y_0 + y_1) = 1 has no solution
    assert made.integers[2] == 3
    assert to_grid(moves, [Fraction(1, 2), Fraction(0), Fraction(3)], Fraction(1, 2**1)).moved_totals == ()


def test_what_does_not_fit_is_refused() -> None:
    moves = Lattice([[1, 1]])
    with pytest.raises(InvalidParameter, match=r"each of the 2 cells\. Got 1"):
        to_grid(moves, [Fraction(1)], Fraction(1))
    with pytest.raises(RequestTooLarge, match="Use a larger step"):
        to_grid(moves, [Fraction(1), Fraction(1)], Fraction(1, 2**62))
    with pytest.raises(RequestTooLarge, match="common denominator"):
        to_grid(moves, [Fraction(1, 3**12000), Fraction(1)], Fraction(1))
    assert "1" not in repr(to_grid(moves, [Fraction(1), Fraction(17)], Fraction(1))).replace("OnGrid(2 answers, 0", "")
