"""Cells under a kept total of 0: counts are not negative, so each of them is 0 in every table with these totals, and needs no noise.

Noise is drawn on the moves that leave these cells alone ([theory R21]). Which cells they are follows from the kept rows and the published
totals, by integers: a wrong cell would be an infinite loss, one that is missed costs nothing. Blocks are products for most tables, and a
product without whole slices is a product again; single cells would make holes, and keep their noise.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from holdfast.invariants.rows import Kept, RowFamily
from holdfast.lattices.blocks import Blocks
from holdfast.lattices.lattice import Lattice

Ints = NDArray[np.int64]
Bools: TypeAlias = NDArray[np.bool_]

RULE = 1
"""Version of the rule. It is part of what labels streams: a change of which cells are left out needs a new one."""


@dataclass(frozen=True, eq=False)
class Zeros:
    """Cells that are 0 by the kept totals and take no noise.

    Given:       cells in order, each under a row of `kept` without negative coefficients whose published total is 0.
    """

    kept: Kept
    cells: Ints

    @cached_property
    def moves(self) -> Lattice:
        """The moves that keep the totals and leave these cells alone."""
        return Lattice.from_kept(self.kept, self.cells)

    @cached_property
    def digest(self) -> str:
        """Digest of the numbers of the cells in the table's order."""
        return sha256(np.ascontiguousarray(self.cells, dtype="<i8").tobytes()).hexdigest()


def zero_cells(kept: Kept, totals: Sequence[Ints]) -> Bools:
    """Which cells lie under a row with coefficients of one sign whose total is 0.

    Given:       the published totals, one array for each entry of `kept.rows`.
    Guarantees:  depends on the rows and totals alone; every such cell is 0 in every table of counts with these totals.
    """
    zero = np.zeros(len(kept.universe), dtype=np.bool_)
    for rows, given in zip(kept.rows, totals, strict=True):
        nothing = np.asarray(given) == 0
        if not nothing.any():
            continue
        if isinstance(rows, RowFamily):
            zero |= np.append(nothing, False)[rows.group]  # -1, no row, takes the last entry
            continue
        for row in np.flatnonzero(nothing):
            begin, end = rows.matrix.indptr[row], rows.matrix.indptr[row + 1]
            coefficients = rows.matrix.data[begin:end]
            if (coefficients > 0).all() or (coefficients < 0).all():
                zero[rows.matrix.indices[begin:end]] = True
    return zero


def left_out(lattice: Lattice, kept: Kept, zero: Bools) -> Iterator[Zeros]:
    """What may be left out of the draw, most cells first; nothing where the kept rows fix these cells anyway.

    Guarantees:  depends on the lattice and `zero` alone. Of a block of a known shape whole slices are taken out, so that it keeps one; if
                 it does not, nothing is. Of other blocks all cells in `zero` are, and then none of them.
    """
    moving = np.ones(len(zero), dtype=np.bool_)
    moving[lattice.exposed_cells] = False
    was_general = _is_general(lattice.blocks)
    chosen = (zero & was_general) | _whole_slices(lattice.blocks, zero)
    if not (chosen & moving).any():
        return
    found = Zeros(kept, np.flatnonzero(chosen))
    block_of = lattice.blocks.block_of()
    spoiled = np.unique(block_of[_is_general(found.moves.blocks) & ~was_general])
    if len(spoiled):
        chosen &= ~np.isin(block_of, spoiled)
        found = Zeros(kept, np.flatnonzero(chosen))
    if (chosen & moving).any():
        yield found
    if (chosen & was_general).any() and (chosen & ~was_general & moving).any():
        yield Zeros(kept, np.flatnonzero(chosen & ~was_general))


def _is_general(blocks: Blocks) -> Bools:
    """Which cells are in a block without a known shape."""
    out = np.zeros(len(blocks.order), dtype=np.bool_)
    for number, shape, _ in blocks.used_shapes():
        if shape.dense_dimension or not shape.is_listed:
            out[blocks.cells_of(number)] = True
    return out


def _whole_slices(blocks: Blocks, zero: Bools) -> Bools:
    """The cells whose slice of their block, along some axis of its shape, is zero throughout."""
    out = np.zeros(len(zero), dtype=np.bool_)
    for number, shape, count in blocks.used_shapes():
        cells = blocks.cells_of(number)
        if not zero[cells].any():
            continue
        table = zero[cells].reshape(count, *shape.axes)
        found = np.zeros_like(table)
        for axis in range(1, table.ndim):
            others = tuple(k for k in range(1, table.ndim) if k != axis)
            found |= table.all(axis=others, keepdims=True)
        out[cells] = found.reshape(cells.shape)
    return out
