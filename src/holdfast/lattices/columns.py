"""What the kept rows of some cells look like: whether cells have equal columns, and whether they form a grid.

No kept row tells cells with equal columns apart. Every row space is constant on a class of equal columns, and e_i - e_j is a move
exactly where the columns of i and j are equal.

A grid is a product of axes with the sums over each axis kept.

Legend: family k groups the cells by all coordinates except the k-th. So the k-th coordinate is constant on the groups of every other
family, and it is told by the connected components of those families taken together. Axes may be composite: rows indexed by (age, sex) and
columns by county are a grid of two axes.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
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


def grid_order(families: Sequence[Ints]) -> tuple[Ints, tuple[int, ...]] | None:
    """(the cells' places in row-major order of the grid, its shape), or None where the families do not form a grid.

    Given:       partitions of the same cells, all cells in every family, connected as a whole.
    Guarantees:  with the shape found, family k is exactly "all coordinates but the k-th": checked by counting, since a coordinate is
                 constant on the groups of the other families by construction.
    """
    size = len(families[0])
    if len(families) > size.bit_length():
        families = _without_repeats(families)
        if len(families) > size.bit_length() + 2:  # each but those adds an axis of two places or more
            return None
    compact = [number_codes(family) for family in families]
    coordinates = [_coordinate([f for j, f in enumerate(compact) if j != k]) for k in range(len(compact))]
    shape = tuple(int(c.max()) + 1 for c in coordinates)
    if prod(shape) != size:
        return None
    place = np.zeros(size, dtype=np.int64)
    for coordinate, length in zip(coordinates, shape, strict=True):
        place = place * length + coordinate
    order = np.full(size, -1, dtype=np.int64)
    order[place] = np.arange(size)
    if (order < 0).any():
        return None
    for family, length in zip(compact, shape, strict=True):
        if (int(family.max()) + 1) * length != size:
            return None
    return order, shape


def _without_repeats(families: Sequence[Ints]) -> list[Ints]:
    """Keep two of the families that separate all cells: each is an axis of one place, and further ones add nothing."""
    single = [k for k, family in enumerate(families) if len(np.unique(family)) == len(family)]
    return [family for k, family in enumerate(families) if k not in set(single[2:])]


def _coordinate(families: Sequence[Ints]) -> Ints:
    """Numbers of the connected components of several partitions of the same cells, in order of first appearance. Groups without gaps."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    component = families[0]
    for other in families[1:]:
        n, m = int(component.max()) + 1, int(other.max()) + 1
        graph = coo_array((np.ones(len(other), dtype=np.int8), (component, n + other)), shape=(n + m, n + m))
        component = connected_components(graph, directed=False)[1][component]
    first = np.empty(int(component.max()) + 1, dtype=np.int64)
    first[component[::-1]] = np.arange(len(component))[::-1]  # of several the last one stays: the first cell
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[component]


def number_codes(codes: Ints) -> Ints:
    """Numbers from 0 without gaps, in the order of the codes."""
    low, high = int(codes.min()), int(codes.max())
    if high - low <= 4 * len(codes) + 1024:
        present = np.zeros(high - low + 1, dtype=np.bool_)
        present[codes - low] = True
        return (np.cumsum(present) - 1)[codes - low].astype(np.int64)
    return np.unique(codes, return_inverse=True)[1].astype(np.int64)
