"""Margins kept on a full product of axes: rank, smallest secret and an explicit basis in closed form, no Smith form needed.

Legend: a cell has one coordinate on each axis; S(i) is the set of axes on which cell i is away from the reference 0. For each S(i) inside
no kept margin the product over S(i) of (e_{i_k} - e_0), placed at the reference on the other axes, is a move; together they are a Z-basis
of all moves. Proof: over all i these products are a basis of Z^d (triangular with ones on the diagonal in the order of the cells), and the
margin F sends the one of cell i to zero exactly when S(i) is not inside F, and the others to independent vectors ([theory R1]).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations, product
from math import prod
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from scipy.sparse import csc_array


def margin_rank(sizes: Mapping[str, int], margins: Iterable[Sequence[str]]) -> int:
    """Rank of the margins: the sum over the sets of axes inside some margin of the product of (size - 1)."""
    inside = {frozenset(axes) for kept in margins for n in range(len(kept) + 1) for axes in combinations(kept, n)}
    return sum(prod(sizes[axis] - 1 for axis in axes) for axes in inside)


def smallest_secret(sizes: Mapping[str, int], margins: Iterable[Sequence[str]]) -> int | None:
    """2^t, t the size of the smallest set of axes inside no kept margin: the l1 length and the squared l2 length of the shortest move.

    None where every set is inside a margin: no move is left. Axes of size one take part in no move and are left out.
    """
    axes = [axis for axis, size in sizes.items() if size > 1]
    kept = [set(margin) for margin in margins]
    for t in range(len(axes) + 1):
        if any(not any(set(chosen) <= margin for margin in kept) for chosen in combinations(axes, t)):
            return int(2**t)
    return None


def margin_basis(sizes: Mapping[str, int], margins: Iterable[Sequence[str]]) -> csc_array:
    """The explicit basis as the columns of a sparse matrix over the cells in row-major order of the axes (last fastest)."""
    from scipy.sparse import csc_array

    names, lengths = list(sizes), list(sizes.values())
    kept = [set(margin) for margin in margins]
    strides = np.cumprod([1, *lengths[:0:-1]])[::-1]
    rows, data, pointers = [], [], [0]
    for cell in product(*(range(length) for length in lengths)):
        away = [k for k, coordinate in enumerate(cell) if coordinate]
        if any({names[k] for k in away} <= margin for margin in kept):
            continue
        for corner in product((0, 1), repeat=len(away)):
            rows.append(sum(int(strides[k]) * cell[k] * up for k, up in zip(away, corner, strict=True)))
            data.append((-1) ** (len(away) - sum(corner)))
        pointers.append(len(rows))
    return csc_array((np.array(data, dtype=np.int64), rows, pointers), shape=(prod(lengths), len(pointers) - 1))
