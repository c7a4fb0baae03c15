"""Margins kept on a full product of axes: rank and an explicit basis in closed form ([theory R1]), to compare lattices with."""

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
