"""Bounds that no table can have are refused with what shows it: bounds of one cell, of one sum, or against one published total."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from holdfast.errors import NoTableWithin
from holdfast.invariants.rows import Kept
from holdfast.lattices.bounded_blocks import Inequalities
from holdfast.lattices.shapes.shape import UNBOUNDED, Ints
from holdfast.tables.universe import Universe


def check_possible(given: Inequalities, universe: Universe | None, kept: Kept | None, totals: Sequence[Ints] | None) -> None:
    """Refuse bounds that contradict each other, or a total whose value is public: declared with its statement, or published.

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
