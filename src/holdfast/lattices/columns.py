"""Cells with equal columns: no kept row tells them apart. One home for finding them in sparse matrices.

Every row space is constant on a class of equal columns, and e_i - e_j is a move exactly where the columns of i and j are equal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from scipy.sparse import csc_array, csr_array

Ints = NDArray[np.int64]

MOST_COLUMNS = 1600
"""Different columns up to which they are gathered in a dense matrix. The one limit of dense algebra: a block of more is not drawn as a
general one. Its free dimensions are fewer, and the time they take is said before (shapes/general.py).
"""


def column_numbers(matrix: csr_array, most: int | None = None) -> Ints | None:
    """A number for each column, equal for equal columns; 0 for columns of zeros. None for more than `most` different ones."""
    by_column = matrix.tocsc()
    by_column.sort_indices()
    out = np.zeros(matrix.shape[1], dtype=np.int64)
    filled = np.flatnonzero(np.diff(by_column.indptr))
    others = int(len(filled) < len(out))  # a class for the columns of zeros
    seen: dict[tuple[bytes, bytes], int] = {}
    for column in filled.tolist():
        out[column] = seen.setdefault(_column(by_column, column), len(seen) + 1)
        if most is not None and len(seen) + others > most:
            return None
    return out


def distinct_columns(matrix: csr_array, most: int = MOST_COLUMNS) -> tuple[Ints, Ints] | None:
    """(the different columns as a dense matrix, the class of each cell), in order of first appearance; None for more than `most`."""
    numbers = column_numbers(matrix, most)
    if numbers is None:
        return None
    _, first, class_of = np.unique(numbers, return_index=True, return_inverse=True)
    place = np.empty(len(first), dtype=np.int64)
    place[np.argsort(first)] = np.arange(len(first))
    return matrix.tocsc()[:, np.sort(first)].toarray().astype(np.int64), place[class_of]


def has_equal_columns(matrix: csr_array, cells: Ints) -> bool:
    """Whether two of these cells have equal columns. Equal columns have equal hashes, so only cells of equal hash are compared."""
    part = matrix[:, cells].tocsc()
    part.sum_duplicates()
    weights = np.random.default_rng(0).integers(0, 2**63, size=part.shape[0], dtype=np.int64)
    with np.errstate(over="ignore"):
        hashes = part.T @ weights
    _, inverse, counts = np.unique(hashes, return_inverse=True, return_counts=True)
    seen: set[tuple[bytes, bytes]] = set()
    for j in np.flatnonzero(counts[inverse] > 1).tolist():
        column = _column(part, j)
        if column in seen:
            return True
        seen.add(column)
    return False


def _column(matrix: csc_array, j: int) -> tuple[bytes, bytes]:
    begin, end = matrix.indptr[j], matrix.indptr[j + 1]
    return matrix.indices[begin:end].tobytes(), matrix.data[begin:end].tobytes()
