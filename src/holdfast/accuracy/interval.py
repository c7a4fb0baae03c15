"""Where a true number lies: an interval from the public law of the noise, with nothing assumed of the truth."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.accuracy.error_laws import ErrorLaws, Method, Reach
from holdfast.channels import Facts
from holdfast.errors import InvalidParameter
from holdfast.lattices.grid_rounding import displacement
from holdfast.tables.grid import AnswerGrid
from holdfast.wording.intervals import PlainInterval, ends_text

Ints = NDArray[np.int64]
End = Fraction | int | float
"""Whole for counts, exact for answers on a grid; of a ratio a double, rounded outwards, infinite where the denominator may be 0."""


@dataclass(frozen=True)
class Interval:
    """From `low` to `high`, both ends included: the true number lies there with probability `level` or more over the noise of the release.

    Guarantees:  whatever the true numbers are. `method` says from what. Only simulated ends depend on draws: there the level itself is
                 reached with probability 1 - doubt over these. `covered`, where it is known, is a lower bound of the probability that the
                 interval really has: whole numbers give more than was asked for. Where the query is a kept total, both ends are the true
                 number; so they are for invariants of answers, unless some were rounded to the grid (table.grid.moved on the card). Where
                 answers are rounded to a grid, the interval has room for what that can move.
    """

    low: End
    high: End
    level: float
    published: End
    """What the published numbers give."""
    method: Method
    covered: float | None = None
    doubt: float = 0.0

    @property
    def plain(self) -> PlainInterval:
        """In plain numbers, for screens and JSON."""
        numbers = zip((self.published, self.low, self.high), self.doubles.values(), strict=True)
        published, low, high = (end if isinstance(end, int) else double if math.isfinite(end) else None for end, double in numbers)
        return PlainInterval(published, low, high, self.method, self.covered, self.doubt)

    def to_fields(self) -> dict[str, Any]:
        """The same as plain values."""
        return asdict(self.plain)

    @property
    def doubles(self) -> dict[str, float]:
        """published, low and high: ends are rounded outwards, unless both are one number."""
        side = 0 if self.low == self.high else 1
        return {"published": float(self.published), "low": _double(self.low, -side), "high": _double(self.high, side)}

    def __repr__(self) -> str:
        return f"Interval({ends_text(self.plain.low, self.plain.high)}, level {self.level!r}, {self.method})"


def _double(value: End, side: int) -> float:
    """The nearest double below (side -1), above (1) or on either side (0)."""
    nearest = float(value)
    if side * nearest < side * value:
        return math.nextafter(nearest, side * math.inf)
    return nearest


def sum_interval(facts: Facts, laws: ErrorLaws, counts: Ints, wanted: Ints, level: float, nonnegative: bool) -> Interval:
    """For a sum with whole coefficients."""
    cells = np.flatnonzero(wanted)
    found = laws.of(cells, wanted[cells]).reach(1 - level)
    return around(facts, wanted, laws.published_sum(counts, cells, wanted[cells]), found, level, nonnegative)


def around(facts: Facts, wanted: Ints, here: int, found: Reach, level: float, nonnegative: bool) -> Interval:
    """The interval of this reach around a published number."""
    if facts.grid is None:
        low, high = here - found.reach, here + found.reach
        if nonnegative:  # true counts are not below 0, so that cutting off loses none of them
            low, high = max(low, 0), max(high, 0)
        return Interval(low, high, level, here, found.method, found.covered, found.doubt)
    room, step = found.reach + rounding_room(facts, facts.grid, wanted), facts.grid.step
    return Interval((here - room) * step, (here + room) * step, level, here * step, found.method, found.covered, found.doubt)


def rounding_room(facts: Facts, grid: AnswerGrid, wanted: Ints) -> Fraction:
    """How far, in steps, the sum of the answers on the grid can be from that of the true answers."""
    return Fraction(0) if grid.on_grid else displacement(facts.lattice, wanted, totals_kept=not grid.moved)


def check_level(level: float) -> None:
    if isinstance(level, bool) or not isinstance(level, float | int) or not 0 < level < 1:
        raise InvalidParameter("level is a probability between 0 and 1, such as 0.95.", field="level")


def check_nonnegative(facts: Facts, *queries: Ints) -> None:
    """A sum of counts is not below 0; a difference may be, and so may answers."""
    if facts.grid is not None or any((wanted < 0).any() for wanted in queries):
        raise InvalidParameter(
            "nonnegative is for sums of counts, and for ratios and percentages of them: differences and answers may be below 0.",
            field="nonnegative",
        )
