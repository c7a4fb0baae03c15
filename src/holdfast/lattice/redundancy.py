"""Which kept rows are implied by rows stated before them, by name."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from holdfast.invariants.rows import Kept
from holdfast.lattice.algebra import independent_rows
from holdfast.lattice.blocks import Block, Blocks
from holdfast.lattice.components import distinct_columns
from holdfast.lattice.reduction import Reduced

Ints = NDArray[np.int64]


def redundant_names(kept: Kept, reduced: Reduced, blocks: Blocks) -> Iterator[str]:
    """Names of implied rows: sets made of their children, and rows of grids and small general blocks that depend on earlier ones."""
    for rows, redundant in zip(kept.families, reduced.redundant, strict=True):
        yield from (rows.name(int(row)) for row in redundant)
    for block in blocks:
        if block.kind == "grid":
            yield from _in_grid(block, kept, reduced)
    if kept.linear:
        yield from _in_linear(kept)


def _in_grid(block: Block, kept: Kept, reduced: Reduced) -> Iterator[str]:
    """Of family k the rows with an earlier coordinate at its end are implied: the sums over that axis are kept already."""
    first = block.cells.ravel()[0]
    present = [i for i, group in enumerate(reduced.groups) if group[first] >= 0]
    for axis, family in enumerate(present):
        rows = np.take(block.cells, 0, axis=axis)
        implied = np.zeros(rows.shape, dtype=np.bool_)
        for earlier in range(axis):
            last = [slice(None)] * rows.ndim
            last[earlier] = slice(-1, None)
            implied[tuple(last)] = True
        for cell in rows[implied]:
            yield kept.families[family].name(int(reduced.groups[family][cell]))


def _in_linear(kept: Kept) -> Iterator[str]:
    """Rows given as a matrix, checked against all rows before them; skipped where there are too many to look into."""
    matrix = kept.matrix()
    columns, _ = distinct_columns(matrix)
    if not columns.size:
        return
    names = list(kept.names())
    is_linear = [rows.statement == "linear" for rows in kept.rows for _ in range(rows.count)]
    chosen = set(independent_rows(columns))
    yield from (names[i] for i in range(len(names)) if is_linear[i] and i not in chosen)
