"""The finest split of the cells into blocks that can be sampled on their own.

Legend: A is k x d; S its row space over Q; L = {z in Z^d : A z = 0} = Z^d intersected with the orthogonal complement of S. For a set J of
columns, S_J and L_J are the vectors of S and L that vanish outside J.
"""

from __future__ import annotations

from flint import fmpz_mat

from holdfast.lattices.algebra import Matrix, as_matrix, has_independent_columns
from holdfast.lattices.long_calls import check_affordable, long_call


def finest_split(A: Matrix) -> list[tuple[int, ...]]:
    """The finest partition of the columns for which L is the direct sum of the L_J over its parts J.

    A cell under no invariant is a part of its own, and so is a cell that never moves. Parts are sorted, and ordered by their first column.

    Guarantees:  L is the direct sum of the L_J, and no part can be divided further. RequestTooLarge where a basis would take too long.
    Proof:       the parts are the connected components of the row supports of the reduced row echelon form R of A over Q.
                 (1) Each row of R lies in one component, so S is the sum of the S_J; hence A z = 0 iff every piece z_J satisfies the rows
                 in J, that is, iff every z_J is in L.
                 (2) Let L be the direct sum of the L_J for any partition. L spans the complement of S, so S is the sum of the S_J too.
                 Write the echelon forms of the S_J below one another, padded with zeros and sorted by leading column: leading entries
                 are 1, and a leading column of one part is zero in the rows of the others. So this is a reduced echelon form of S, and by
                 uniqueness it is R. Every row of R then lies in one part, and so does every component.
    """
    matrix = as_matrix(A)
    if matrix.ncols() and has_independent_columns(matrix):
        return [(column,) for column in range(matrix.ncols())]
    check_affordable("Hermite form", matrix)  # who has the parts will want moves: refused before the shorter work is done
    parent = list(range(matrix.ncols()))
    for support in _echelon_supports(matrix):
        root = _find(parent, support[0])
        for column in support[1:]:
            parent[_find(parent, column)] = root
    parts: dict[int, list[int]] = {}
    for column in range(matrix.ncols()):
        parts.setdefault(_find(parent, column), []).append(column)
    return [tuple(part) for part in parts.values()]


@long_call("echelon form")
def _echelon_supports(A: fmpz_mat) -> list[list[int]]:
    """For each nonzero row of the reduced row echelon form the columns in which it is not zero (flint scales all rows alike)."""
    echelon, _, dimension = A.rref()
    return [[column for column, entry in enumerate(row) if entry != 0] for row in echelon.tolist()[: int(dimension)]]


def _find(parent: list[int], column: int) -> int:
    """The representative of the column's part; halves the path on the way."""
    while parent[column] != column:
        parent[column] = parent[parent[column]]
        column = parent[column]
    return column
