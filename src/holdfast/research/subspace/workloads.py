"""Queries over an ordered set of n kinds, for examples and measurements: prefix sums and ranges, one row per answer."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import InvalidParameter

MAX_ENTRIES = 1 << 28


def prefix_sums(n: int) -> NDArray[np.int64]:
    """n x n: answer i counts the records of kinds 0 to i; the last one is the total."""
    _check(n, n)
    return np.tril(np.ones((n, n), dtype=np.int64))


def ranges(n: int) -> NDArray[np.int64]:
    """n (n + 1) / 2 rows: the records of kinds a to b, for all a <= b, by length; the last one is the total."""
    _check(n, n * (n + 1) // 2)
    kinds = np.arange(n)
    starts = [(a, a + length) for length in range(1, n + 1) for a in range(n - length + 1)]
    return np.array([(kinds >= a) & (kinds < b) for a, b in starts], dtype=np.int64)


def ranges_gram(n: int) -> NDArray[np.int64]:
    """ranges(n)^T ranges(n), n x n: how many ranges hold both kinds."""
    _check(n, n)
    kinds = np.arange(n, dtype=np.int64)
    return np.asarray((np.minimum.outer(kinds, kinds) + 1) * (n - np.maximum.outer(kinds, kinds)))


def _check(n: int, rows: int) -> None:
    if not isinstance(n, int) or n < 1 or n * rows > MAX_ENTRIES:
        raise InvalidParameter(f"A workload has from 1 kind up to {MAX_ENTRIES:,} entries in its matrix. Got n = {n}.")
