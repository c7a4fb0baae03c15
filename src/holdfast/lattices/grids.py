"""Grids: a product of axes with the sums over each axis kept.

Legend: family k groups the cells by all coordinates except the k-th. So the k-th coordinate is constant on the groups of every other
family, and it is told by the connected components of those families taken together. Axes may be composite: rows indexed by (age, sex) and
columns by county are a grid of two axes.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


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
    coordinates = [_coordinate([f for j, f in enumerate(families) if j != k]) for k in range(len(families))]
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
    for k, family in enumerate(families):
        if len(np.unique(family)) * shape[k] != size:
            return None
    return order, shape


def _without_repeats(families: Sequence[Ints]) -> list[Ints]:
    """Keep two of the families that separate all cells: each is an axis of one place, and further ones add nothing."""
    single = [k for k, family in enumerate(families) if len(np.unique(family)) == len(family)]
    return [family for k, family in enumerate(families) if k not in set(single[2:])]


def _coordinate(families: Sequence[Ints]) -> Ints:
    """Numbers of the connected components of several partitions of the same cells, in order of first appearance."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    compact = [np.unique(family, return_inverse=True)[1] for family in families]
    component = compact[0]
    for other in compact[1:]:
        n, m = int(component.max()) + 1, int(other.max()) + 1
        graph = coo_array((np.ones(len(other), dtype=np.int8), (component, n + other)), shape=(n + m, n + m))
        component = connected_components(graph, directed=False)[1][component]
    _, first, number = np.unique(component, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[number]
