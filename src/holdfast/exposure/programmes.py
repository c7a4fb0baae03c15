"""The least and largest value of every cell over counts with given sums: linear programmes in integers, then a search for whole tables.

The simplex method on a tableau of integers over one common denominator (each entry is a minor of the rows), by Bland's rule: it ends, and
what it says is exact on every machine. A corner in whole numbers shows two values of a cell; bounds that agree when rounded inwards pin it.
What is left between them is searched with bounds carried from row to row. Work is counted, in entries changed, the more of them the longer
their numbers, and in tables begun, never in time.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import ContradictingTotals
from holdfast.lattices.shapes.shape import UNBOUNDED

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Ints = NDArray[np.int64]
Bools: TypeAlias = NDArray[np.bool_]
Whole: TypeAlias = NDArray[Any]
"""int64, or Python's integers once an entry might leave it."""

MOST_ENTRIES = 2_000_000
"""Entries of a tableau that is begun."""
MOST_IN_64_BITS = 2**50
"""Entries up to which a tableau stays in 64 bits."""
MOST_ADDED = 2**12
"""Such entries that are added in 64 bits."""
MOST_PASSES = 100
"""Times that bounds are carried through all rows: without end where they creep."""
LONG, STEP, CELL = 16, 50, 2
"""Work of an entry beyond 64 bits, to which the square of its number of words is added; of a step of a search; of a cell looked at. That of
an entry of 64 bits is 1: numbers of a thousand digits take as long as thousands of these.
"""
WORD = 64
NO_TABLE = "The published totals cannot belong to a table of counts: together they leave none. Correct them."


class Exhausted(Exception):
    """The stated work is done. Never leaves this file."""


@dataclass
class Work:
    """What may still be done for one release."""

    entries: int = 500_000_000
    """Entries of tableaus that may be changed, as if all were of 64 bits."""
    tables: int = 20_000
    """Tables that may be begun in searches."""
    each: int = 500
    """Tables that may be begun in one search."""

    def do(self, entries: int) -> None:
        self.entries -= entries
        if self.entries < 0:
            raise Exhausted


@dataclass
class _Tableau:
    """A corner of {x >= 0 : A x = b}: each row says what its cell in the basis is, times `unit`, and the last column its value."""

    entries: Whole
    basis: list[int]
    work: Work
    unit: int = 1

    @property
    def cells(self) -> int:
        return int(self.entries.shape[1]) - 1

    def pivot(self, row: int, column: int) -> None:
        """Bring a cell into the basis in place of that of a row."""
        table = self.entries
        self.work.do(table.size)
        if table[row, column] < 0:  # only where the value of the row is 0
            table[row] = -table[row]
        largest = 2 * int(np.abs(table).max()) * int(np.abs(table[:, column]).max())
        if table.dtype == object or largest >= MOST_IN_64_BITS:
            self.work.do(table.size * (LONG + (largest.bit_length() // (2 * WORD)) ** 2))
            table = table.astype(object)
        unit, kept = int(table[row, column]), table[row].copy()
        changed = table * unit - np.multiply.outer(table[:, column], kept)
        self.entries = changed // self.unit
        self.entries[row] = kept
        self.basis[row], self.unit = column, unit

    def leaving(self, column: int) -> int | None:
        """The row whose cell reaches 0 first when that of the column grows; None where it grows without end."""
        rows = np.flatnonzero(self.entries[:, column] > 0).tolist()
        best: tuple[int, int, int] | None = None
        for row in rows:
            value, rate = int(self.entries[row, -1]), int(self.entries[row, column])
            ahead = -1 if best is None else value * best[1] - best[0] * rate
            if best is None or ahead < 0 or (ahead == 0 and self.basis[row] < self.basis[best[2]]):
                best = value, rate, row
        return None if best is None else best[2]

    def extreme(self, cell: int, largest: bool) -> int:
        """Go to a corner where the cell is largest or least, and return its value rounded inwards, or UNBOUNDED for all beyond."""
        while True:
            self.work.do(CELL * (self.cells + len(self.basis)))
            if cell not in self.basis:
                if not largest:
                    return 0
                column = cell
            else:
                row = self.basis.index(cell)
                rates = self.entries[row, :-1] if not largest else -self.entries[row, :-1]
                better = np.flatnonzero(rates > 0)
                better = better[better != cell]
                if not len(better):
                    value = int(self.entries[row, -1])
                    return min(value // self.unit if largest else -(-value // self.unit), UNBOUNDED)
                column = int(better[0])
            leaves = self.leaving(column)
            if leaves is None:
                return UNBOUNDED
            self.pivot(leaves, column)

    def corner(self) -> Ints | None:
        """The corner, where all its counts are whole numbers; UNBOUNDED for all beyond."""
        values = self.entries[:, -1]
        if (values % self.unit).any():
            return None
        out = np.zeros(self.cells, dtype=np.int64)
        out[self.basis] = np.minimum(values // self.unit, UNBOUNDED)
        return out


def _first_corner(matrix: Ints, totals: Ints, work: Work) -> _Tableau:
    """Return a corner: helper cells, one for each row, all leave the basis; rows that follow from others go."""
    rows, cells = matrix.shape
    begun: Whole = np.column_stack([matrix, totals]) * np.where(totals < 0, -1, 1)[:, None]
    if int(np.abs(begun).max(initial=0)) >= MOST_IN_64_BITS:
        begun = begun.astype(object)
    found = _Tableau(begun, [cells + row for row in range(rows)], work)
    while True:
        helpers = [row for row, cell in enumerate(found.basis) if cell >= cells]
        missing = found.entries[helpers].sum(axis=0, dtype=object if len(helpers) > MOST_ADDED else None)
        if not missing[-1]:
            break
        better = np.flatnonzero(missing[:-1] > 0)
        if not len(better):
            raise ContradictingTotals(NO_TABLE)
        column = int(better[0])
        leaves = found.leaving(column)
        assert leaves is not None
        found.pivot(leaves, column)
    for row in range(rows):
        if found.basis[row] >= cells and len(places := np.flatnonzero(found.entries[row, :-1])):
            found.pivot(row, int(places[0]))
    stays = [row for row, cell in enumerate(found.basis) if cell < cells]
    found.entries, found.basis = found.entries[stays], [found.basis[row] for row in stays]
    return found


@dataclass
class _Seen:
    """The least and largest counts of tables that were found."""

    least: Ints
    most: Ints = field(init=False)
    any: bool = False

    def __post_init__(self) -> None:
        self.most = np.full_like(self.least, -1)

    def add(self, table: Ints) -> None:
        self.least, self.most, self.any = np.minimum(self.least, table), np.maximum(self.most, table), True


def programme_bounds(matrix: csr_array, totals: Ints, several: Bools, work: Work) -> tuple[Ints, Ints, Bools]:
    """(at least, at most, not decided) of every class of cells with equal columns.

    Given:       integer rows and their sums over counts that are 0 or more; which classes have several cells: they can be less, down to 0.
    Guarantees:  every bound holds; what is decided is right. A function of the arguments alone.
    """
    cells = matrix.shape[1]
    lower, upper, open_cells = np.zeros(cells, dtype=np.int64), np.full(cells, UNBOUNDED, dtype=np.int64), np.ones(cells, dtype=np.bool_)
    if matrix.shape[0] * cells > MOST_ENTRIES:
        return lower, upper, open_cells
    dense, seen = matrix.toarray().astype(np.int64), _Seen(np.full(cells, UNBOUNDED, dtype=np.int64))
    try:
        tableau = _first_corner(dense, totals, work)
        for cell in range(cells):
            for largest in (True, False) if not several[cell] else (True,):
                if not open_cells[cell]:
                    break
                value = tableau.extreme(cell, largest)
                (upper if largest else lower)[cell] = value
                open_cells[cell] &= value < UNBOUNDED
                if (corner := tableau.corner()) is not None:
                    seen.add(corner)
                    open_cells &= seen.most <= np.where(several, 0, seen.least)
                open_cells[cell] &= lower[cell] < upper[cell]
        for cell in np.flatnonzero(open_cells).tolist():
            _search_cell(dense, totals, cell, lower, upper, bool(several[cell]), seen, work)
            open_cells[cell] = False
    except Exhausted:
        pass
    return lower, upper, open_cells


def _search_cell(matrix: Ints, totals: Ints, cell: int, lower: Ints, upper: Ints, several: bool, seen: _Seen, work: Work) -> None:
    """Decide a cell by tables in whole numbers; where it is pinned its bounds become equal. Raise Exhausted after the stated work."""
    if not seen.any:
        table = _table_within(matrix, totals, lower, upper, work)
        if table is None:
            raise ContradictingTotals(NO_TABLE)
        seen.add(table)
    known = int(seen.most[cell])
    sides = [(known + 1, int(upper[cell]))] if several else [(known + 1, int(upper[cell])), (int(lower[cell]), known - 1)]
    for least, most in sides:
        if known > 0 and several:
            return
        low, high = lower.copy(), upper.copy()
        low[cell], high[cell] = least, most
        table = _table_within(matrix, totals, low, high, work)
        if table is not None:
            seen.add(table)
            return
    lower[cell] = upper[cell] = known


def _table_within(matrix: Ints, totals: Ints, lower: Ints, upper: Ints, work: Work) -> Ints | None:
    """A table in whole numbers with these sums and bounds, the cell with fewest values first; None where there is none."""
    stack, begun = [(lower, upper)], 0
    while stack:
        begun, work.tables = begun + 1, work.tables - 1
        if begun > work.each or work.tables < 0:
            raise Exhausted
        found = _tighten_rows(matrix, totals, *stack.pop(), work)
        if found is None:
            continue
        low, high = found
        width = [h - l for l, h in zip(low.tolist(), high.tolist(), strict=True)]
        if not any(width):
            if (matrix.astype(object) @ low.astype(object) == totals).all():
                return low
            continue
        cell = min((w, place) for place, w in enumerate(width) if w)[1]
        middle = int(low[cell]) + width[cell] // 2
        for least, most in ((middle + 1, int(high[cell])), (int(low[cell]), middle)):
            narrowed = low.copy(), high.copy()
            narrowed[0][cell], narrowed[1][cell] = least, most
            stack.append(narrowed)
    return None


def _tighten_rows(matrix: Ints, totals: Ints, lower: Ints, upper: Ints, work: Work) -> tuple[Ints, Ints] | None:
    """Bounds carried through every row until nothing changes, in Python's integers; None where they leave no table."""
    low, high = lower.tolist(), upper.tolist()
    rows = [([(int(c), row[c].item()) for c in np.flatnonzero(row)], int(total)) for row, total in zip(matrix, totals, strict=True)]
    steps = sum(len(entries) for entries, _ in rows)
    work.do(matrix.size)
    for _ in range(MOST_PASSES):
        work.do(STEP * steps)
        changed = False
        for entries, total in rows:
            if any(low[c] > high[c] for c, _ in entries):
                return None
            least = sum(a * (low[c] if a > 0 else high[c]) for c, a in entries)
            most = sum(a * (high[c] if a > 0 else low[c]) for c, a in entries)
            if not least <= total <= most:
                return None
            for c, a in entries:
                up, down = (total - least, most - total) if a > 0 else (most - total, total - least)
                new = max(low[c], high[c] - down // abs(a)), min(high[c], low[c] + up // abs(a))
                if new != (low[c], high[c]):
                    (low[c], high[c]), changed = new, True
                    break
        if not changed:
            break
    return np.array(low, dtype=np.int64), np.array(high, dtype=np.int64)
