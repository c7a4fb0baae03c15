"""The Smith form with transforms against flint's own form, and the kernel in the last columns of V."""

from __future__ import annotations

import itertools
import math
import random

import numpy as np
import pytest
from flint import fmpz_mat
from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.lattices.algebra import as_matrix, determinant_squared, independent_rows, kernel_basis, largest_entry, same_lattice, take_rows
from holdfast.lattices.smith import Smith, check_smith, smith

matrices = st.tuples(st.integers(1, 4), st.integers(1, 7)).flatmap(
    lambda shape: st.lists(
        st.lists(st.integers(-4, 4), min_size=shape[1], max_size=shape[1]) | st.just([0] * shape[1]), min_size=shape[0], max_size=shape[0]
    )
)


def kernel_part(V, m):
    """The last m columns."""
    return take_rows(V.transpose(), range(V.nrows() - m, V.nrows())).transpose()


@given(matrices)
@example([[2, 4, 6]])
@example([[0, 0], [0, 0]])
@example([[2, 0], [0, 3]])
@example([[4, 0, 0], [0, 6, 0], [0, 0, 10], [0, 0, 0]])
@example([[6, 0, 0, 0], [0, 10, 0, 0], [0, 0, 15, 0]])
@example([[-3]])
@example([[1, 2], [2, 4], [3, 6]])
def test_smith_form_is_one_and_is_flints(A):
    matrix = as_matrix(A)
    U, D, V = smith(A)
    assert U * matrix * V == D
    assert abs(U.det()) == abs(V.det()) == 1
    assert matrix.snf() == D
    diagonal = [int(D[i, i]) for i in range(min(D.nrows(), D.ncols()))]
    assert all(entry >= 0 for entry in diagonal)
    assert all(later % entry == 0 if entry else later == 0 for entry, later in itertools.pairwise(diagonal))


@given(matrices)
@example([[2, 4, 6]])
@example([[2, 0, 2], [0, 3, 3]])
def test_last_columns_are_the_kernel_and_determinants_match(A):
    """det(B^T B) = det(A A^T) / (product of the invariant factors)^2 for independent rows A."""
    rows = independent_rows(A)
    independent = take_rows(as_matrix(A), rows)
    _, D, V = smith(independent)
    B = kernel_part(V, len(A[0]) - len(rows))
    assert same_lattice(B, kernel_basis(A))
    factors = math.prod(int(D[i, i]) for i in range(len(rows)))
    assert determinant_squared(B) * factors**2 == determinant_squared(independent.transpose())
    whole = kernel_part(smith(A).V, B.ncols())
    assert determinant_squared(whole) == determinant_squared(kernel_basis(A)) == determinant_squared(B)


def test_large_margins_have_unit_factors_and_short_transforms():
    n = 12
    A = np.concatenate([np.kron(np.eye(n, dtype=np.int64), np.ones((1, n), dtype=np.int64)), np.tile(np.eye(n, dtype=np.int64), n)])
    U, D, V = smith(A)
    assert [int(D[i, i]) for i in range(2 * n)] == [1] * (2 * n - 1) + [0]
    assert largest_entry(U) == largest_entry(V) == 1
    assert (as_matrix(A) * kernel_part(V, (n - 1) ** 2)).is_zero()


def test_entries_stay_in_check():
    """The Hermite transform alone has entries of more than 60 bits here; reduced, none needs more than a few."""
    rng = random.Random(5)
    A = [[rng.randint(-50, 50) for _ in range(30)] for _ in range(5)]
    assert largest_entry(kernel_basis(A)) > 2**40
    assert largest_entry(smith(A).V) < 2**6


def test_many_different_factors():
    rng = random.Random(7)
    factors = fmpz_mat([[(6 + 7 * i) * (i == j) for j in range(8)] for i in range(8)])
    left = fmpz_mat([[rng.randint(-2, 2) for _ in range(8)] for _ in range(10)])
    right = fmpz_mat([[rng.randint(-2, 2) for _ in range(14)] for _ in range(8)])
    _, D, _ = smith(left * factors * right)
    assert sum(D[i, i] > 1 for i in range(8)) >= 2


def test_our_own_mistakes_are_caught():
    A = as_matrix([[2, 4, 6]])
    U, D, V = smith(A)
    wrong = fmpz_mat(D)
    wrong[0, 0] = 4
    with pytest.raises(AssertionError, match="differs from D"):
        check_smith(A, Smith(U, wrong, V))
    with pytest.raises(AssertionError, match="not unimodular"):
        check_smith(A, Smith(U * 2, D * 2, V))
    with pytest.raises(AssertionError, match="flint's"):
        check_smith(as_matrix([[2, 0], [0, 3]]), Smith(fmpz_mat([[1, 0], [0, 1]]), fmpz_mat([[2, 0], [0, 3]]), fmpz_mat([[1, 0], [0, 1]])))
