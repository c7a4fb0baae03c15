"""Kernel bases against brute force, and what the conversions refuse."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from flint import fmpz_mat
from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.errors import InexactParameter, InvalidParameter
from holdfast.lattices.algebra import (
    as_matrix,
    as_vector,
    contains,
    coordinates,
    determinant_squared,
    identity,
    independent_rows,
    kernel_basis,
    rank,
    reduced_basis,
    same_lattice,
    solve,
    take_rows,
    to_numpy,
)

matrices = st.tuples(st.integers(1, 4), st.integers(1, 7)).flatmap(
    lambda shape: st.lists(
        st.lists(st.integers(-4, 4), min_size=shape[1], max_size=shape[1]) | st.just([0] * shape[1]), min_size=shape[0], max_size=shape[0]
    )
)
"""Up to 4 x 7, zero and dependent rows included."""


def small_solutions(A):
    """Every z with A z = 0 and entries in a small box, as columns."""
    d = len(A[0])
    reach = 2 if d <= 5 else 1
    box = np.array(list(itertools.product(range(-reach, reach + 1), repeat=d)), dtype=np.int64)
    return box[~np.any(box @ np.array(A).T, axis=1)].T


def minors_gcd_is_one(B):
    """The columns span a saturated lattice iff the maximal minors have no common factor; a check that uses no Hermite form."""
    m = B.ncols()
    minors = [int(take_rows(B, rows).det()) for rows in itertools.combinations(range(B.nrows()), m)]
    return np.gcd.reduce(np.array(minors, dtype=object)) == 1


@given(matrices)
@example([[2, 4, 6]])
@example([[0, 0, 0]])
@example([[1, 2], [2, 4], [3, 5]])
@example([[2, 3, 0], [0, 0, 0], [4, 6, 0]])
def test_kernel_basis_generates_every_small_solution(A):
    for B in (kernel_basis(A), reduced_basis(kernel_basis(A))):
        assert (B.nrows(), B.ncols()) == (len(A[0]), len(A[0]) - rank(A))
        assert (as_matrix(A) * B).is_zero()
        assert B.ncols() == 0 or minors_gcd_is_one(B)
        solutions = fmpz_mat(small_solutions(A).tolist())
        if B.ncols() == 0:
            assert solutions.is_zero()
            continue
        rows = independent_rows(B)
        numerator, denominator = solve(take_rows(B, rows), take_rows(solutions, rows))
        assert denominator == 1
        assert B * numerator == solutions


@given(matrices, st.data())
def test_coordinates_invert_the_basis(A, data):
    B = kernel_basis(A)
    v = data.draw(st.lists(st.integers(-9, 9), min_size=B.ncols(), max_size=B.ncols()))
    z = [int(entry) for entry in (B * fmpz_mat(B.ncols(), 1, v)).entries()]
    assert contains(A, z)
    assert coordinates(B, z) == tuple(v)
    assert coordinates(B, np.array(z, dtype=object)) == tuple(v)


def test_coordinates_refuse_what_is_outside():
    with pytest.raises(InvalidParameter, match="not in the lattice"):
        coordinates([[1], [-1]], [1, 1])
    with pytest.raises(InvalidParameter, match="not in the lattice"):
        coordinates([[2], [-2]], [1, -1])  # in the span, but halfway between lattice points
    with pytest.raises(InvalidParameter, match="not in the lattice"):
        coordinates(fmpz_mat(2, 0), [1, -1])
    with pytest.raises(InvalidParameter, match="rank 1"):
        coordinates([[1, 2], [-1, -2]], [1, -1])
    with pytest.raises(InvalidParameter, match="3 entries, the lattice 2"):
        coordinates([[1], [-1]], [1, -1, 0])
    assert coordinates(fmpz_mat(2, 0), [0, 0]) == ()


def test_contains():
    assert contains([[1, 1, 1]], [1, 1, -2])
    assert not contains([[1, 1, 1]], [1, 1, -1])
    assert contains(np.zeros((0, 2), dtype=np.int64), [3, 4])
    with pytest.raises(InvalidParameter, match="2 entries"):
        contains([[1, 1, 1]], [1, -1])


@given(matrices, st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6), st.integers(-3, 3)), max_size=12))
def test_a_mixed_basis_spans_the_same_lattice_and_a_coarser_one_does_not(A, steps):
    B = kernel_basis(A)
    m = B.ncols()
    columns = [[int(entry) for entry in column] for column in B.transpose().tolist()]
    for i, j, factor in steps:
        if i < m and j < m and i != j:
            columns[i] = [a + factor * b for a, b in zip(columns[i], columns[j], strict=True)]
    mixed = fmpz_mat(m, B.nrows(), [entry for column in columns for entry in column]).transpose()
    assert same_lattice(B, mixed)
    assert same_lattice(B, reduced_basis(mixed))
    assert determinant_squared(B) == determinant_squared(mixed) == determinant_squared(reduced_basis(mixed))
    if m:
        doubled = fmpz_mat(
            m, B.nrows(), [2 * entry for entry in columns[0]] + [entry for column in columns[1:] for entry in column]
        ).transpose()
        assert not same_lattice(B, doubled)
        assert determinant_squared(doubled) == 4 * determinant_squared(B)


def test_same_lattice_from_dependent_generators():
    assert same_lattice([[2, 3], [0, 0]], [[1], [0]])
    assert not same_lattice([[2, 4], [0, 0]], [[1], [0]])
    assert same_lattice(fmpz_mat(2, 0), [[0], [0]])
    assert to_numpy(reduced_basis([[2, 3], [0, 0]])).tolist() in ([[1], [0]], [[-1], [0]])
    assert reduced_basis([[0, 0], [0, 0]]).ncols() == 0
    with pytest.raises(InvalidParameter, match="different spaces"):
        same_lattice([[1], [0]], [[1]])


@given(matrices)
@example([[0, 0], [1, 1], [2, 2], [0, 1]])
def test_independent_rows_are_the_first_possible(A):
    expected = [
        i for i in range(len(A)) if np.linalg.matrix_rank(np.array(A[: i + 1])) > (np.linalg.matrix_rank(np.array(A[:i])) if i else 0)
    ]
    assert list(independent_rows(A)) == expected
    assert rank(A) == len(expected)


def test_determinants_of_known_lattices():
    """One total over d cells: d. R x C margins: R^(C-1) C^(R-1). ([theory T6])"""
    assert determinant_squared(kernel_basis([[1] * 7])) == 7
    rows, columns = 3, 5
    margins = np.concatenate(
        [np.kron(np.eye(rows, dtype=np.int64), np.ones((1, columns), dtype=np.int64)), np.tile(np.eye(columns, dtype=np.int64), rows)]
    )
    basis = reduced_basis(kernel_basis(margins))
    assert basis.ncols() == (rows - 1) * (columns - 1)
    assert determinant_squared(basis) == rows ** (columns - 1) * columns ** (rows - 1)
    assert independent_rows(margins) == tuple(range(rows + columns - 1))
    assert determinant_squared(fmpz_mat(4, 0)) == 1
    assert determinant_squared([[1, 2], [1, 2]]) == 0


def test_no_invariants_leave_everything_free():
    assert kernel_basis(np.zeros((0, 3), dtype=np.int64)) == identity(3)
    assert independent_rows(np.zeros((0, 3), dtype=np.int64)) == ()


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ([[1, 2], [3]], "ragged: row 1 has 1 entries, row 0 has 2"),
        ([[1, True]], "Got a bool"),
        ([], "no rows"),
        ([[1, "2"]], "Got str"),
        ([1, 2], "rows of integers"),
        (["12"], "rows of integers"),
        (np.array([1, 2]), "two dimensions. Got 1"),
        (np.array([[True]]), "Got dtype bool"),
        (np.array([[1, None]], dtype=object), "Got NoneType"),
        (np.array([[1 + 0j]]), "Got dtype complex128"),
    ],
)
def test_matrices_refused(bad, message):
    with pytest.raises(InvalidParameter, match=message):
        as_matrix(bad)


@pytest.mark.parametrize("bad", [[[1.0]], [[float("nan")]], np.array([[1.5]]), np.zeros((0, 3)), np.array([[0.5]], dtype=object)])
def test_floats_refused(bad):
    with pytest.raises(InexactParameter):
        as_matrix(bad)


def test_vectors_refused():
    with pytest.raises(InexactParameter):
        as_vector([1.0])  # type: ignore[list-item]
    with pytest.raises(InvalidParameter, match="one dimension"):
        as_vector(np.array([[1]]))


def test_conversions_keep_every_integer():
    huge = 2**63
    assert to_numpy(as_matrix([[1, -2]])).dtype == np.int64
    assert to_numpy(as_matrix([[-huge, huge - 1]])).dtype == np.int64
    assert to_numpy(as_matrix([[1, huge]])).dtype == object
    assert to_numpy(as_matrix([[1, huge]])).tolist() == [[1, huge]]
    assert to_numpy(as_matrix([[1, -huge - 1]])).tolist() == [[1, -huge - 1]]
    assert to_numpy(as_matrix(np.array([[2**64 - 1]], dtype=np.uint64))).tolist() == [[2**64 - 1]]
    assert to_numpy(fmpz_mat(3, 0)).shape == (3, 0)
    original = fmpz_mat([[1, 2]])
    copy = as_matrix(original)
    copy[0, 0] = 7
    assert original[0, 0] == 1
