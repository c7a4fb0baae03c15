"""Cells as rows of small integers: numbering, grouping and finding them without a loop over cells and without overflow.

A cell is a tuple of code indices, one per column. Tuples are turned into one integer each (mixed radix, the last column fastest), so that
integers sort as tuples do. Where the product of the radices would leave 63 bits, the part done so far is replaced by its rank.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
from numpy.typing import NDArray

from holdfast.tables.columns import BATCH, Indices

_KEY_LIMIT = 2**62


def rank_rows(columns: Sequence[Indices], radices: Sequence[int], n: int) -> tuple[NDArray[np.int64], int]:
    """For each of n rows the rank of its tuple among the distinct tuples that occur, in lexicographic order, and their number.

    Time:  linear if the product of the radices is at most a few times n or the rows are already in order, otherwise n log n.
    """
    keys = np.zeros(n, dtype=np.int64)
    size = 1
    for indices, radix in zip(columns, radices, strict=True):
        if size * radix > _KEY_LIMIT:
            keys, size = _ranks(keys, size)
        keys *= radix
        keys += indices
        size *= radix
    return _ranks(keys, size)


def rows_ascend(columns: Sequence[Indices]) -> bool:
    """Whether every row comes after the one before it, in lexicographic order."""
    last = len(columns[0]) - 1
    for low in range(0, last, BATCH):
        equal = np.ones(min(BATCH, last - low), dtype=np.bool_)
        for column in columns:
            before, after = column[low : min(low + BATCH, last)], column[low + 1 : low + BATCH + 1]
            if (equal & (after < before)).any():
                return False
            equal &= after == before
        if equal.any():
            return False
    return True


def find_rows(columns: Sequence[Indices], radices: Sequence[int], wanted: Sequence[Indices]) -> NDArray[np.int64]:
    """For each wanted tuple the row that holds it, or -1. Rows are distinct; wanted indices are valid."""
    keys = np.zeros(len(columns[0]), dtype=np.int64)
    sought = np.zeros(len(wanted[0]), dtype=np.int64)
    known = np.ones(len(sought), dtype=bool)
    size = 1
    for indices, radix, seek in zip(columns, radices, wanted, strict=True):
        if size * radix > _KEY_LIMIT:
            distinct = np.unique(keys)
            keys = np.searchsorted(distinct, keys).astype(np.int64)
            sought, known = _lookup(distinct, sought, known)
            size = len(distinct)
        keys = keys * radix + indices
        sought = sought * radix + seek
        size *= radix
    order = np.argsort(keys, kind="stable")
    places, known = _lookup(keys[order], sought, known)
    return np.where(known, order[places], -1)


def strides(radices: Sequence[int]) -> list[int]:
    """In a full product, last column fastest: how far apart two cells lie that differ by one in one column."""
    return [prod(radices[place + 1 :]) for place in range(len(radices))]


def _ranks(keys: NDArray[np.int64], size: int) -> tuple[NDArray[np.int64], int]:
    """Keys from 0 to size - 1 replaced by their ranks among those that occur."""
    if len(keys) == 0:
        return keys, 0
    if size <= max(4 * len(keys), 2**16):
        present = np.zeros(size, dtype=bool)
        present[keys] = True
        if present.all():
            return keys, size
        ranks = np.cumsum(present, dtype=np.int64) - 1
        return ranks[keys], int(ranks[-1]) + 1
    steps = np.diff(keys)
    if np.all(steps >= 0):
        ordered = np.concatenate(([0], np.cumsum(steps > 0, dtype=np.int64)))
        return ordered, int(ordered[-1]) + 1
    distinct, inverse = np.unique(keys, return_inverse=True)
    return inverse.astype(np.int64, copy=False), len(distinct)


def _lookup(ordered: NDArray[np.int64], sought: NDArray[np.int64], known: NDArray[np.bool_]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Places in a sorted array; what is not found gets place 0 and is no longer known."""
    places = np.searchsorted(ordered, sought)
    places[places == len(ordered)] = 0
    known = known & (ordered[places] == sought)
    return np.where(known, places, 0).astype(np.int64), known
