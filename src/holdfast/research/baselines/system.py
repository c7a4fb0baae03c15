"""Kept rows with their totals as one dense system in floating point, for small comparisons."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import InvalidParameter, RequestTooLarge
from holdfast.lattices import Lattice

Floats = NDArray[np.float64]

MAX_ENTRIES = 4_000_000
"""Rows times cells of a dense system; more is refused."""


def dense_rows(rows: Any) -> Floats:
    """The kept rows as a dense matrix; `rows` is a Lattice, or a matrix with one column for each cell."""
    if isinstance(rows, Lattice):
        sparse = rows.matrix
        _check_entries(*sparse.shape)
        return np.asarray(sparse.toarray(), dtype=np.float64)
    try:
        matrix = np.atleast_2d(np.asarray(rows, dtype=np.float64))
    except (TypeError, ValueError):
        matrix = np.full((1, 1), np.nan)
    if matrix.ndim != 2 or not matrix.size or not np.isfinite(matrix).all():
        raise InvalidParameter("rows is a Lattice, or a matrix of numbers with one column for each cell.")
    _check_entries(*matrix.shape)
    return matrix


def numbers(values: Any, length: int, name: str) -> Floats:
    """A list of so many finite numbers."""
    try:
        found = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        found = np.full(0, np.nan)
    if found.shape != (length,) or not np.isfinite(found).all():
        raise InvalidParameter(f"{name} takes {length} finite numbers, one for each. Got an array of shape {found.shape}.")
    return found


def solved(rows: Floats, right: Floats) -> Floats:
    """The shortest v with rows v = right; refused where there is none."""
    found = np.linalg.lstsq(rows, right, rcond=None)[0]
    if not np.allclose(rows @ found, right, rtol=0, atol=tolerance(rows, right)):
        raise InvalidParameter("No table has these totals: kept rows that depend on each other have totals that disagree. Check them.")
    return np.asarray(found)


def tolerance(*arrays: Floats) -> float:
    """How far apart two floats of this size may be and still count as equal here: 1e-9 of the largest number."""
    return 1e-9 * max(1.0, *(float(np.abs(array).max(initial=0.0)) for array in arrays))


def _check_entries(rows: int, cells: int) -> None:
    if rows * cells > MAX_ENTRIES:
        raise RequestTooLarge(f"{rows} kept rows over {cells} cells are too many for a dense comparison. Compare a part of the table.")
