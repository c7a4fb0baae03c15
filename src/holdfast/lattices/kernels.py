"""Integer solutions of many rows at once, as a basis with small entries.

The Hermite form's basis (algebra.kernel_basis) has entries of thousands of bits on matrices of a few hundred rows, and reducing it takes
longer than all that follows. Kept sums have coefficients 0 and 1: nearly all unknowns can be eliminated by pivots +-1.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from flint import fmpz_mat
from numpy.typing import NDArray

from holdfast.lattices import algebra

Ints: TypeAlias = NDArray[np.int64]

LARGEST_ENTRY = 1 << 20
"""Entries up to which elimination goes on; what is left is solved by the Hermite form."""


def small_kernel_basis(A: Ints) -> fmpz_mat:
    """A basis of ALL integer solutions of A z = 0, as columns.

    Guarantees:  as algebra.kernel_basis: for every z in Z^d with A z = 0 there is one integer vector v with B v = z.
    Proof:       adding multiples of a row to others keeps the solutions. With a pivot +-1 alone in its column, its row says what that
                 unknown is: an integer combination of the others, for any integers. So the solutions are one to one those of the rows
                 without pivot in the unknowns without pivot, of which algebra.kernel_basis has a basis.
    """
    matrix, pivots = _eliminate(np.array(A, dtype=np.int64))
    rows, columns = (list(pivots), list(pivots.values()))
    others = np.setdiff1d(np.arange(matrix.shape[1]), columns)
    rest = np.delete(matrix, rows, axis=0)[:, others]
    rest = rest[rest.any(axis=1)]
    own = algebra.kernel_basis(rest) if len(rest) else algebra.identity(len(others))
    signs: Ints = matrix[rows, columns]
    solved = algebra.as_matrix(-signs[:, None] * matrix[rows][:, others]) * own if rows else fmpz_mat(0, own.ncols())
    place = np.argsort(np.concatenate([np.array(columns, dtype=np.int64), others]))
    return algebra.take_rows(fmpz_mat(matrix.shape[1], own.ncols(), [*solved.entries(), *own.entries()]), place.tolist())


def _eliminate(matrix: Ints) -> tuple[Ints, dict[int, int]]:
    """(the rows after elimination, the pivot column of each row that has one): pivots are +-1 and alone in their columns."""
    pivots: dict[int, int] = {}
    while (place := _pivot(matrix, pivots)) is not None:
        row, column = place
        others = np.flatnonzero(matrix[:, column])
        others = others[others != row]
        changed = matrix[others] - (matrix[others, column] * matrix[row, column])[:, None] * matrix[row]
        if np.abs(changed).max(initial=0) > LARGEST_ENTRY:
            break
        matrix[others] = changed
        pivots[row] = column
    return matrix, pivots


def _pivot(matrix: Ints, pivots: dict[int, int]) -> tuple[int, int] | None:
    """An entry +-1 of the row with the fewest entries that has one, in the column with the fewest; rows that have a pivot are done."""
    filled = np.count_nonzero(matrix, axis=1)
    filled[list(pivots)] = 0
    counts = np.count_nonzero(matrix, axis=0)
    for row in np.argsort(filled, kind="stable").tolist():
        units = np.flatnonzero(np.abs(matrix[row]) == 1)
        if filled[row] and len(units):
            return row, int(units[np.argmin(counts[units])])
    return None
