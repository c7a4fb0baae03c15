"""Declared values of sums: identities, and kept rows whose totals were declared. Whether a table has them, as integers."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from holdfast.invariants.rows import Kept, RowFamily, Rows

Ints = NDArray[np.int64]


def broken_statements(kept: Kept, counts: Ints) -> Iterator[tuple[int, Rows]]:
    """Return the statements, by number from 1, whose declared values differ from the counts. Which sums differ, and by how much, is not
    said: it would reveal counts.
    """
    found: set[int] = set()
    for number, rows in zip(kept.statement_of, kept.rows, strict=True):
        if rows.values is not None and number not in found and _differs(rows, counts).any():
            found.add(number)
            yield number, rows


def broken_identities(kept: Kept, counts: Ints, published: NDArray[np.bool_]) -> Iterator[str]:
    """What a released table breaks, by name: sums of published cells that are not what an identity says they are in every data set."""
    for rows in kept.rows:
        if rows.kind == "identity" and rows.values is not None:
            wrong = _differs(rows, counts) & (_cells_in(rows, ~published) == 0)
            yield from (
                f"{rows.name(row)}: the table does not have the value that the identity declares" for row in np.flatnonzero(wrong).tolist()
            )


def _differs(rows: Rows, counts: Ints) -> NDArray[np.bool_]:
    """Which sums are not as declared. Sums stay below 2^62, so that a larger value may as well be the largest there is."""
    given = rows.values if isinstance(rows.values, tuple) else [rows.values or 0]
    declared = np.array([min(max(value, -(2**63) + 1), 2**63 - 1) for value in given], dtype=np.int64)
    return np.asarray(rows.totals(counts) != declared)


def _cells_in(rows: Rows, mask: NDArray[np.bool_]) -> Ints:
    """How many cells of the mask each sum is over."""
    if isinstance(rows, RowFamily):
        return rows.totals(mask.astype(np.int64))
    return np.asarray((rows.matrix != 0).astype(np.int64) @ mask, dtype=np.int64)
