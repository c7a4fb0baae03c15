"""Exact Gram-Schmidt of an integer basis: every number a ratio of integers.

Legend: b_0, ..., b_{m-1} are the columns of B; b*_i is b_i minus its projection on the earlier ones; mu_ij = <b_i, b*_j> / |b*_j|^2. With
D_0 = 1 and D_i the determinant of the Gram matrix of the first i columns, |b*_i|^2 = D_{i+1} / D_i, lambda_ij = D_{j+1} mu_ij is an
integer for i > j, and D_i b*_i is an integer vector. All of them are minors of the Gram matrix (bordered by B), found by elimination
without fractions (Bareiss): every division in it is exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from flint import fmpz_mat
from numpy.typing import NDArray

from holdfast.errors import InvalidParameter
from holdfast.lattices import algebra
from holdfast.lattices.long_calls import long_call

REMEMBERED = 100
"""Columns from which a result is kept for those who ask again; it is not to be written to."""


@dataclass(frozen=True)
class GramSchmidt:
    """The orthogonalisation of a basis, in integers of any size (arrays of dtype object)."""

    basis: NDArray[Any]
    """B itself, cells x m."""
    determinants: tuple[int, ...]
    """D_0 = 1, D_1, ..., D_m, all positive."""
    lambdas: NDArray[Any]
    """lambdas[i, j] = D_{j+1} mu_ij for i > j; zero elsewhere."""
    integral_vectors: NDArray[Any]
    """Row i is D_i b*_i; with weights it is D_i W b*_i, whose plain product with a vector is the weighted one."""

    @property
    def dimension(self) -> int:
        return len(self.determinants) - 1

    @property
    def cells(self) -> int:
        return int(self.basis.shape[0])

    @cached_property
    def squared_lengths(self) -> tuple[Fraction, ...]:
        """|b*_i|^2."""
        return tuple(Fraction(self.determinants[i + 1], self.determinants[i]) for i in range(self.dimension))

    def mu(self, i: int, j: int) -> Fraction:
        """<b_i, b*_j> / |b*_j|^2, i > j."""
        return Fraction(self.lambdas[i, j], self.determinants[j + 1])


def gram_schmidt(basis: algebra.Matrix, weights: Sequence[int] | None = None) -> GramSchmidt:
    """Orthogonalise the columns of an integer matrix, in the inner product sum w_i x_i y_i (all weights 1 if there are none).

    Given:       independent columns (checked); positive whole weights, one for each row.
    Guarantees:  exact. About m^2 (m + cells) / 2 products of integers of up to m log2(longest column) bits.
    """
    matrix = algebra.as_matrix(basis, "the basis")
    given = None if weights is None else tuple(weights)
    if matrix.ncols() < REMEMBERED:
        return _orthogonalise(matrix, given)
    return _remember((matrix.nrows(), matrix.ncols(), tuple(map(int, matrix.entries()))), given)


@lru_cache(maxsize=4)
def _remember(entries: tuple[int, int, tuple[int, ...]], weights: tuple[int, ...] | None) -> GramSchmidt:
    """Large ones take seconds to minutes, and the search for a shortest move and the samplers ask for the same one."""
    return _orthogonalise(fmpz_mat(entries[0], entries[1], list(entries[2])), weights)


@long_call("orthogonal basis")
def _orthogonalise(matrix: fmpz_mat, weights: tuple[int, ...] | None) -> GramSchmidt:
    cells, m = matrix.nrows(), matrix.ncols()
    if matrix.rank() < m:
        raise InvalidParameter("The columns of a basis are independent. These are not. Reduce them first with algebra.reduced_basis.")
    columns = weigh_rows(matrix, weights).transpose().tolist()
    # Rows of the Gram matrix, each followed by its basis vector: eliminating turns that vector into D_i b*_i.
    gram = weighted_gram(matrix, weights).tolist()
    bordered = fmpz_mat(m, m + cells, [entry for row, column in zip(gram, columns, strict=True) for entry in (*row, *column)])
    order, _, _, upper = bordered.fflu()
    assert order == algebra.identity(m)  # leading minors of a Gram matrix are positive: no rows are exchanged
    eliminated = np.array([int(entry) for entry in upper.entries()], dtype=object).reshape(m, m + cells)
    determinants = (1, *np.diagonal(eliminated).tolist())
    basis_rows = np.array([int(entry) for entry in matrix.entries()], dtype=object).reshape(cells, m)
    return GramSchmidt(basis_rows, determinants, np.triu(eliminated[:, :m], 1).T, eliminated[:, m:])


def weigh_rows(matrix: fmpz_mat, weights: tuple[int, ...] | None) -> fmpz_mat:
    """W B: every row times its weight."""
    if weights is None:
        return matrix
    return fmpz_mat([[w * entry for entry in row] for w, row in zip(weights, matrix.tolist(), strict=True)])


def weighted_gram(matrix: fmpz_mat, weights: tuple[int, ...] | None) -> fmpz_mat:
    """B^T W B."""
    return matrix.transpose() * weigh_rows(matrix, weights)
