"""Blocks with bounds: the lattice's blocks, each with the bounds of its cells, joined where an inequality spans several of them.

Bounds that no table can have are refused with what shows it: bounds of one cell, of one sum, or against one published total.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import NoTableWithin
from holdfast.invariants.rows import Kept
from holdfast.lattices.blocks import Block, Blocks
from holdfast.lattices.shapes import Bounded, Free, Shape, Whole
from holdfast.lattices.shapes.bounded import Bound
from holdfast.lattices.shapes.shape import MAX_DENSE, UNBOUNDED, Ints
from holdfast.tables.universe import Universe


@dataclass(frozen=True, eq=False)
class Inequalities:
    """lower <= y <= upper in every cell and sum_i coefficients_i y_i >= least for every row, all of it public.

    lower, upper:  int64, one for each cell of the table; -UNBOUNDED and UNBOUNDED where there is none.
    rows:          (cells, coefficients, least) of each row; cells in increasing order, coefficients not zero.
    """

    lower: Ints
    upper: Ints
    rows: tuple[tuple[Ints, Ints, int], ...] = ()

    @property
    def any(self) -> bool:
        return bool(self.rows) or bool((self.lower > -UNBOUNDED).any()) or bool((self.upper < UNBOUNDED).any())

    def hold(self, counts: Ints) -> bool:
        """Whether a table lies within all of them, as integers."""
        inside = bool(((counts >= self.lower) & (counts <= self.upper)).all())
        return inside and all(row_sum(cells, coefficients, counts) >= least for cells, coefficients, least in self.rows)


def row_sum(cells: Ints, coefficients: Ints, counts: Ints) -> int:
    """In Python's integers: no coefficient is too large."""
    return sum(a * b for a, b in zip(coefficients.tolist(), counts[cells].tolist(), strict=True))


def bounded_blocks(blocks: Blocks, given: Inequalities) -> Blocks:
    """The blocks with their bounds. Free cells are blocks of one cell; cells that the kept totals fix stay pinned, unless a row needs
    them. Rows that the kept totals fix join nothing.

    Guarantees:  the law of tables within the bounds that the kept totals of one table allow factorises over these blocks.
    """
    block_of = blocks.block_of()
    given = replace(given, rows=tuple(row for row in given.rows if not _is_fixed(blocks, block_of, row)))
    made = _Made()
    free = [blocks.order[blocks.starts[b] : blocks.starts[b + 1]] for b, s in enumerate(blocks.shape_of) if blocks.shapes[s].is_free]
    loose = np.concatenate([np.zeros(0, dtype=np.int64), *free])  # every free cell is a piece of its own
    piece_of = block_of.copy()
    piece_of[loose] = len(blocks) + np.arange(len(loose))
    joined = _join_groups(piece_of, given)
    for number, shape, _ in blocks.used_shapes():
        cells = blocks.cells_of(number)
        if shape.is_free:
            cells, shape = cells.reshape(-1, 1), Free(1)
        alone = ~np.isin(piece_of[cells[:, 0]], list(joined))
        made.add_all(shape, cells[alone], given)
    for pieces, rows in _groups(joined):
        parts = sorted(
            ((int(cells.min()), shape, cells) for shape, cells in (_piece(blocks, loose, p) for p in pieces)), key=lambda t: t[0]
        )
        made.add_joined([(shape, cells) for _, shape, cells in parts], [given.rows[row] for row in rows], given)
    return made.blocks(blocks.finest)


def _is_fixed(blocks: Blocks, block_of: Ints, row: tuple[Ints, Ints, int]) -> bool:
    """Whether no move changes the sum of a row: then the true table tells whether it holds, once for all."""
    cells, coefficients, _ = row
    own = block_of[cells]
    return all(_fixes(blocks[number], cells[own == number], coefficients[own == number]) for number in np.unique(own).tolist())


def _fixes(block: Block, cells: Ints, coefficients: Ints) -> bool:
    shape = block.shape
    if shape.is_free or shape.is_pinned:
        return shape.is_pinned
    if shape.size * shape.dimension > MAX_DENSE:
        return False
    values = np.zeros(shape.size, dtype=object)
    place = {cell: i for i, cell in enumerate(block.cells.ravel().tolist())}
    values[[place[cell] for cell in cells.tolist()]] = coefficients
    return not (values @ shape.basis().astype(object)).any()


def _join_groups(piece_of: Ints, given: Inequalities) -> dict[int, tuple[int, list[int]]]:
    """Map every piece that a row touches to the name of its group, and list the rows of each group."""
    parent: dict[int, int] = {}

    def root(piece: int) -> int:
        while parent[piece] != piece:
            parent[piece] = piece = parent[parent[piece]]
        return piece

    for cells, _, _ in given.rows:
        pieces = np.unique(piece_of[cells]).tolist()
        for piece in pieces:
            parent.setdefault(piece, piece)
            parent[root(piece)] = root(pieces[0])
    rows: dict[int, list[int]] = {}
    for number, (cells, _, _) in enumerate(given.rows):
        rows.setdefault(root(int(piece_of[cells[0]])), []).append(number)
    return {piece: (root(piece), rows[root(piece)]) for piece in parent}


def _groups(joined: dict[int, tuple[int, list[int]]]) -> list[tuple[list[int], list[int]]]:
    members: dict[int, list[int]] = {}
    for piece, (name, _) in joined.items():
        members.setdefault(name, []).append(piece)
    return [(pieces, joined[pieces[0]][1]) for pieces in members.values()]


def _piece(blocks: Blocks, loose: Ints, piece: int) -> tuple[Shape, Ints]:
    if piece >= len(blocks):
        return Free(1), loose[piece - len(blocks)][None]
    block = blocks[piece]
    return block.shape, block.cells.ravel()


class _Made:
    """Blocks as they are found; equal shapes share one value."""

    def __init__(self) -> None:
        self._shapes: dict[Shape, int] = {}
        self._numbers: list[NDArray[np.int32]] = []
        self._cells: list[Ints] = []
        self._lengths: list[Ints] = []

    def _add(self, shapes: list[Shape], which: Ints, cells: Ints) -> None:
        numbers = np.array([self._shapes.setdefault(shape, len(self._shapes)) for shape in shapes], dtype=np.int32)
        self._numbers.append(numbers[which])
        self._cells.append(cells.ravel())
        self._lengths.append(np.full(len(cells), cells.shape[1], dtype=np.int64))

    def add_all(self, shape: Shape, cells: Ints, given: Inequalities) -> None:
        """Blocks of one shape, one a row."""
        if not len(cells):
            return
        if shape.is_pinned:
            self._add([shape], np.zeros(len(cells), dtype=np.int64), cells)
            return
        bounds = np.concatenate([given.lower[cells], given.upper[cells]], axis=1)
        if (bounds == bounds[0]).all():
            distinct, which = bounds[:1], np.zeros(len(cells), dtype=np.int64)
        else:
            distinct, which = np.unique(bounds, axis=0, return_inverse=True)
        shapes: list[Shape] = [Bounded(shape, *_bounds_of(row, shape.size)) for row in distinct]
        self._add(shapes, which.ravel(), cells)

    def add_joined(self, parts: list[tuple[Shape, Ints]], rows: list[tuple[Ints, Ints, int]], given: Inequalities) -> None:
        cells = np.concatenate([own for _, own in parts])
        place = {cell: i for i, cell in enumerate(cells.tolist())}
        dense = np.zeros((len(rows), len(cells)), dtype=np.int64)
        for line, (own, coefficients, _) in zip(dense, rows, strict=True):
            line[[place[cell] for cell in own.tolist()]] = coefficients
        base = parts[0][0] if len(parts) == 1 else Whole(tuple(shape for shape, _ in parts))
        lower, upper = _bounds_of(np.concatenate([given.lower[cells], given.upper[cells]]), len(cells))
        shape = Bounded(base, lower, upper, tuple(map(tuple, dense.tolist())), tuple(least for _, _, least in rows))
        self._add([shape], np.zeros(1, dtype=np.int64), cells[None, :])

    def blocks(self, finest: bool) -> Blocks:
        none = np.zeros(0, dtype=np.int64)
        starts = np.concatenate([[0], np.cumsum(np.concatenate([none, *self._lengths]))])
        numbers = np.concatenate([none.astype(np.int32), *self._numbers])
        return Blocks(np.concatenate([none, *self._cells]), starts, numbers, tuple(self._shapes), finest)


def _bounds_of(row: Ints, size: int) -> tuple[tuple[Bound, ...], tuple[Bound, ...]]:
    values = [None if abs(value) == UNBOUNDED else value for value in row.tolist()]
    return tuple(values[:size]), tuple(values[size:])


def check_possible(given: Inequalities, universe: Universe | None, kept: Kept | None, totals: Sequence[Ints] | None) -> None:
    """Refuse bounds that contradict each other, or a total whose value is public: declared with its constraint, or published.

    Guarantees:  nothing confidential is looked at; a message names cells, bounds and public totals. Each row and each total is compared
                 with the bounds of its own cells, and with rows and totals that are the same sum up to a factor. Others that only
                 contradict each other together are not found here.
    """
    crossed = np.flatnonzero(given.lower > given.upper)
    if len(crossed):
        cell = int(crossed[0])
        name = f"number {cell + 1}" if universe is None else universe.cell_name(cell)
        raise NoTableWithin(
            f"The lower bound of the cell {name}, {given.lower[cell]}, is above its upper bound, {given.upper[cell]}. Correct one of the "
            "two."
        )
    limits = _Limits()
    for number, (cells, coefficients, least) in enumerate(given.rows, 1):
        most = _extreme(given, cells, coefficients, largest=True)
        if most is not None and most < least:
            raise NoTableWithin(
                f"Row {number} of the inequalities needs a sum of {least} or more, and the bounds of its cells allow at most {most}. "
                "Correct the row, or the bounds."
            )
        limits.add(f"Row {number} of the inequalities", cells, coefficients, least)
    if kept is None:
        return
    for place, rows in enumerate(kept.rows):
        values = rows.values if totals is None else totals[place].tolist()
        if values is None:
            continue
        listed = values if isinstance(values, Sequence) else [values] * rows.count
        matrix = Kept(kept.universe, (rows,), (1,)).matrix()
        for row, value in enumerate(listed):
            own = slice(matrix.indptr[row], matrix.indptr[row + 1])
            cells, coefficients = matrix.indices[own], matrix.data[own]
            low, high = (_extreme(given, cells, coefficients, largest=side) for side in (False, True))
            if (low is not None and value < low) or (high is not None and value > high):
                bound = f"add up to at least {low}" if low is not None and value < low else f"allow at most {high}"
                raise NoTableWithin(
                    f"The total {rows.name(row)!r} is {value}, and the bounds of its cells {bound}: no table has both. Correct the total, "
                    "or the bounds."
                )
            for sign in (1, -1) if given.rows else ():
                limits.add(f"The total {rows.name(row)!r}", cells, sign * coefficients, sign * value)


class _Limits:
    """What is known of every sum that rows and totals are multiples of: at least so much, at most so much, and what says so."""

    def __init__(self) -> None:
        self._low: dict[tuple[bytes, tuple[int, ...]], tuple[int, str]] = {}
        self._high: dict[tuple[bytes, tuple[int, ...]], tuple[int, str]] = {}

    def add(self, what: str, cells: Ints, coefficients: Ints, least: int) -> None:
        """`what` needs a sum of `least` or more. Refused where something that was added before does not allow that."""
        if not len(cells):
            return
        order = np.argsort(cells)
        values = coefficients[order].tolist()
        factor = math.gcd(*values) * (1 if values[0] > 0 else -1)
        key = cells[order].astype(np.int64).tobytes(), tuple(value // factor for value in values)
        if factor > 0:
            low = -(-least // factor)
            self._low[key] = max((low, what), self._low.get(key, (low, what)), key=lambda known: known[0])
        else:
            high = least // factor
            self._high[key] = min((high, what), self._high.get(key, (high, what)), key=lambda known: known[0])
        if key in self._low and key in self._high and self._low[key][0] > self._high[key][0]:
            (low, one), (high, other) = self._low[key], self._high[key]
            raise NoTableWithin(
                f"{one} needs {low} or more of a sum of which {other[0].lower()}{other[1:]} allows at most {high}: no table has both. "
                "Correct one of the two."
            )


def _extreme(given: Inequalities, cells: Ints, coefficients: Ints, *, largest: bool) -> int | None:
    """The largest or smallest sum that the bounds of the cells allow; None where there is no limit."""
    up = (coefficients > 0) == largest
    bounds = np.where(up, given.upper[cells], given.lower[cells])
    if (np.abs(bounds) == UNBOUNDED).any():
        return None
    return int(sum(a * b for a, b in zip(coefficients.tolist(), bounds.tolist(), strict=True)))
