"""All tables of a block with given totals within its bounds, and how the normaliser of a conditioned law differs among them.

The normaliser of x is Z(x) = sum over y of exp(-rate |y - x|_1). With the number of tables at each distance from x it is a polynomial in
exp(-rate), so it is enclosed as narrowly as one likes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import TypeAlias

import numpy as np
from flint import arb, arb_poly

from holdfast.exact.balls import ball, fixed_point, precision
from holdfast.lattices.shapes import Shape
from holdfast.lattices.shapes.bounded import Bounded
from holdfast.lattices.shapes.shape import UNBOUNDED, Ints
from holdfast.privacy.conditioning import Neighbourhood, neighbourhood

BITS = 128
UNIT_BITS = 44
"""Logarithms are compared as integers in units of 2^-44."""
MAX_LISTED = 1500
"""Tables up to which a fibre is listed: all pairs of them are compared."""
MAX_STEPS = 200_000
"""Partial tables looked at before the search gives up."""


def list_tables(shape: Bounded, totals: tuple[int, ...], most: int = MAX_LISTED) -> Ints | None:
    """All integer tables within the bounds whose kept rows have these values, one a row; None if there are more than `most`, or the search
    is long, or some cell has no bound at all.
    """
    rows, ranges = _constraints(shape, totals)
    lower, upper = shape.lower_cells().tolist(), shape.upper_cells().tolist()
    if not _narrow(rows, ranges, lower, upper):
        return None
    found: list[list[int]] = []
    for count, table in enumerate(_tables(rows, ranges, lower, upper)):
        if count >= MAX_STEPS or len(found) > most:
            return None
        if table is not None:
            found.append(table)
    return np.array(found, dtype=np.int64).reshape(len(found), shape.size) if len(found) <= most else None


Range: TypeAlias = tuple[int | None, int | None]


def _constraints(shape: Bounded, totals: tuple[int, ...]) -> tuple[list[list[int]], list[Range]]:
    """Kept sums and inequality rows alike: coefficients, with the least and the largest value."""
    kept = shape.kept_rows().tolist()
    exact: list[Range] = [(value, value) for value in totals]
    floors: list[Range] = [(value, None) for value in shape.least]
    return [*kept, *(list(row) for row in shape.rows)], [*exact, *floors]


def _narrow(rows: list[list[int]], ranges: list[Range], lower: list[int], upper: list[int]) -> bool:
    """Narrow the bounds of cells by what rows leave of the others', in place; whether all cells are then bounded on both sides."""
    changed = True
    for _ in range(100):
        if not changed:
            break
        changed = False
        for row, (least, most) in zip(rows, ranges, strict=True):
            cells = [i for i, c in enumerate(row) if c]
            lows = {i: _term(row[i], lower[i] if row[i] > 0 else upper[i]) for i in cells}
            highs = {i: _term(row[i], upper[i] if row[i] > 0 else lower[i]) for i in cells}
            for i in cells:
                others_low, others_high = _sum(lows, i), _sum(highs, i)
                top = None if most is None or others_low is None else most - others_low
                bottom = None if least is None or others_high is None else least - others_high
                changed |= _cut(row[i], bottom, top, i, lower, upper)
    return all(low > -UNBOUNDED and high < UNBOUNDED for low, high in zip(lower, upper, strict=True))


def _term(coefficient: int, bound: int) -> int | None:
    return None if abs(bound) >= UNBOUNDED else coefficient * bound


def _sum(terms: dict[int, int | None], without: int) -> int | None:
    total = 0
    for i, term in terms.items():
        if i != without:
            if term is None:
                return None
            total += term
    return total


def _cut(coefficient: int, bottom: int | None, top: int | None, i: int, lower: list[int], upper: list[int]) -> bool:
    """bottom <= coefficient * y_i <= top, as bounds of y_i."""
    if coefficient < 0:
        coefficient, bottom, top = -coefficient, None if top is None else -top, None if bottom is None else -bottom
    low = lower[i] if bottom is None else max(lower[i], -(-bottom // coefficient))
    high = upper[i] if top is None else min(upper[i], top // coefficient)
    changed = (low, high) != (lower[i], upper[i])
    lower[i], upper[i] = low, high
    return changed


def _tables(rows: list[list[int]], ranges: list[Range], lower: list[int], upper: list[int]) -> Iterator[list[int] | None]:
    """Every table; None after each step that found none, so that the caller can count."""
    size = len(lower)
    rest_low = [[0] * (size + 1) for _ in rows]
    rest_high = [[0] * (size + 1) for _ in rows]
    for r, row in enumerate(rows):
        for i in range(size - 1, -1, -1):
            ends = (row[i] * lower[i], row[i] * upper[i])
            rest_low[r][i], rest_high[r][i] = rest_low[r][i + 1] + min(ends), rest_high[r][i + 1] + max(ends)

    def fits(sums: list[int], cell: int) -> bool:
        return all(
            (most is None or sums[r] + rest_low[r][cell] <= most) and (least is None or sums[r] + rest_high[r][cell] >= least)
            for r, (least, most) in enumerate(ranges)
        )

    def descend(table: list[int], sums: list[int]) -> Iterator[list[int] | None]:
        cell = len(table)
        if cell == size:
            yield table
            return
        for value in range(lower[cell], upper[cell] + 1):
            here = [total + row[cell] * value for total, row in zip(sums, rows, strict=True)]
            if fits(here, cell + 1):
                yield from descend([*table, value], here)
            else:
                yield None

    yield from descend([], [0] * len(rows))


@dataclass(frozen=True)
class Fibre:
    """The tables of one block with given totals, where they could be listed."""

    tables: Ints | None

    @property
    def is_listed(self) -> bool:
        return self.tables is not None

    @cached_property
    def distances(self) -> Ints:
        """l1 distances of all pairs."""
        assert self.tables is not None
        out = np.zeros((len(self.tables), len(self.tables)), dtype=np.int64)
        for column in self.tables.T:
            out += np.abs(column[:, None] - column[None, :])
        return out

    @cached_property
    def _counts(self) -> list[list[int]]:
        """Row x: how many tables are at distance 0, 1, 2, ... from x; equal rows belong to tables with equal normalisers."""
        return [np.bincount(row).tolist() for row in self.distances]

    @property
    def smallest(self) -> int | None:
        """The smallest distance of two tables; None where there are not two."""
        apart = self.distances[self.distances > 0]
        return int(apart.min()) if apart.size else None

    def log_normalisers(self, rate: Fraction) -> tuple[Ints, Ints]:
        """(lower, upper) ends of log Z(x) for every table, in units of 2^-UNIT_BITS."""
        with precision(BITS):
            base = (-ball(rate)).exp()
            made = {tuple(row): fixed_point(_evaluate_polynomial(row, base).log(), UNIT_BITS) for row in self._counts}
        ends = np.array([made[tuple(row)] for row in self._counts], dtype=np.int64)
        return ends[:, 0], ends[:, 1]

    def excess(self, rate: Fraction) -> Fraction:
        """The largest (log Z(x') - log Z(x)) / |x - x'|_1 over all pairs, rounded up; zero where there is no pair."""
        apart = self.distances > 0
        if not apart.any():
            return Fraction(0)
        low, high = self.log_normalisers(rate)
        gains = high[None, :] - low[:, None]
        # The ceiling of an exact quotient of integers.
        per_unit = -(-gains[apart] // self.distances[apart])
        return max(Fraction(int(per_unit.max()), 1 << UNIT_BITS), Fraction(0))


def _evaluate_polynomial(counts: list[int], base: arb) -> arb:
    return arb_poly(counts)(base)


@lru_cache(maxsize=64)
def fibre_of(shape: Bounded, totals: tuple[int, ...]) -> Fibre:
    """The tables of a block with these totals; not listed where they are too many."""
    return Fibre(list_tables(shape, totals))


def neighbourhood_given(shape: Shape, totals: tuple[int, ...]) -> Neighbourhood:
    """What is left of one person's neighbourhood in a block whose kept totals are known, in the order of `Shape.kept_rows`.

    Guarantees:  exact for one sum, for cells under none, and for other bounded blocks where their tables can be listed.
    Reference:   [theory T77]
    """
    found, shape = neighbourhood(shape), Bounded.of(shape)
    if found.status == "exact":
        return found
    if shape.shape.is_one_sum and not shape.rows:
        return Neighbourhood("kept", 2, "exact") if _sum_can_move(shape, totals[0]) else Neighbourhood("destroyed", None, "exact")
    fibre = fibre_of(shape, totals)
    if not fibre.is_listed:
        return found
    smallest, person = fibre.smallest, 1 if shape.shape.is_free else 2
    return Neighbourhood("destroyed" if smallest is None else "disrupted" if smallest > person else "kept", smallest, "exact")


def _sum_can_move(shape: Bounded, total: int) -> bool:
    """Whether one sum has two tables: two cells that are not fixed, and a total strictly between its ends."""
    ends = [
        sorted((sign * low, sign * high))
        for sign, low, high in zip(shape.kept_rows()[0].tolist(), shape.lower_cells().tolist(), shape.upper_cells().tolist(), strict=True)
    ]
    loose = [(low, high) for low, high in ends if low < high]
    above = -math.inf if any(low <= -UNBOUNDED for low, _ in loose) else sum(low for low, _ in ends)
    below = math.inf if any(high >= UNBOUNDED for _, high in loose) else sum(high for _, high in ends)
    return len(loose) > 1 and above < total < below
