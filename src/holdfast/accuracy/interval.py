"""Where a true number lies: an interval from the public law of the noise, with nothing assumed of the truth."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.accuracy.error_laws import Method, Reach
from holdfast.channels import Facts
from holdfast.display import shorten
from holdfast.errors import InvalidParameter
from holdfast.lattices.grid_rounding import displacement
from holdfast.wording.intervals import PlainInterval, ends_text

Ints = NDArray[np.int64]
End = Fraction | int | float
"""Whole for counts, exact for answers on a grid; of a ratio a double, rounded outwards, infinite where the denominator may be 0."""
Sum = tuple[Ints, Ints, int]
"""Cells, their coefficients, the published sum."""


@dataclass(frozen=True)
class Interval:
    """From `low` to `high`, both ends included: the true number lies there with probability `level` or more over the noise of the release.

    Guarantees:  whatever the true numbers are. `method` says from what. Only simulated ends depend on draws: there the level itself is
                 reached with probability 1 - doubt over these. `covered`, where it is known, is a lower bound of the probability that the
                 interval really has: whole numbers give more than was asked for. Where the query is a kept total, both ends are the true
                 number; so they are for invariants of answers, unless these are declared to be rounded (table.grid.round_totals on
                 the card). Where answers are rounded to a grid, the interval has room for what that can move.
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


def around(facts: Facts, published: Sum, found: Reach, level: float, nonnegative: bool) -> Interval:
    """The interval of this reach around a published sum."""
    cells, row, here = published
    room = found.reach + rounding_room(facts, cells, row)
    low, middle, high = map(facts.measure.value, (here - room, here, here + room))
    if nonnegative:  # true counts are not below 0, so that cutting off loses none of them
        low, high = max(low, 0), max(high, 0)
    return Interval(low, high, level, middle, found.method, found.covered, found.doubt)


def rounding_room(facts: Facts, cells: Ints, row: Ints) -> int | Fraction:
    """How far, in steps, the published sum row[i] * value of cells[i] can be from that of the true values before noise is added."""
    if facts.measure.on_grid:
        return 0
    wanted = np.zeros(facts.lattice.cells, dtype=np.int64)
    wanted[cells] = row
    return displacement(facts.lattice, wanted, totals_kept=not facts.measure.round_totals)


def check_level(level: float) -> None:
    if isinstance(level, bool) or not isinstance(level, float | int) or not 0 < level < 1:
        percent = isinstance(level, float | int) and not isinstance(level, bool) and 1 < level < 100
        near = f" For {level:g} % write {level / 100:g}." if percent else ""
        raise InvalidParameter(f"level is a probability between 0 and 1, such as 0.95. Got {shorten(repr(level))}.{near}", field="level")


def check_nonnegative(facts: Facts, *queries: Ints) -> None:
    """A sum of counts is not below 0; a difference may be, and so may answers."""
    if not facts.measure.nonnegative or any((wanted < 0).any() for wanted in queries):
        raise InvalidParameter(
            "nonnegative is for sums of counts, and for ratios and percentages of them: differences and answers may be below 0.",
            field="nonnegative",
        )
