"""Cells under one kept total, each between bounds: 002's mechanism with non-negativity, drawn exactly by tilting.

Legend: x the counts, z = y - x, rate r. Cell i may fall by left_i and rise by right_i. A try with tilt s draws every cell but the last with
weights exp(-r |z| - s z) inside its bounds, sets the last to minus their sum, and accepts it, where it is inside its bounds, with the
TILTED weight exp(-r |z| - s z) over its largest value there. Accepted tries have weight exp(-r |z|_1 - s sum z) = exp(-r |z|_1): the law
does not depend on s, so tries with different tilts may follow each other in any order, and the first that is accepted is a draw.

Which tilt is good depends on the counts: bounds near a count push its mean away. They are not asked: tilts go through a list that is
made from public numbers (cells, rate, total, bounds), again and again, from no tilt outwards.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache, partial
from itertools import zip_longest
from math import isqrt

import numpy as np
from flint import arb
from numpy.typing import NDArray

from holdfast.exact.balls import ball
from holdfast.exact.predicates import BAND, is_below, settle_exp
from holdfast.lattices.shapes import Bounded, OneSum
from holdfast.lattices.shapes.shape import UNBOUNDED
from holdfast.randomness import Words
from holdfast.samplers.arms import draw_arms
from holdfast.samplers.bounded_free import room
from holdfast.samplers.protocol import Ints

Floats = NDArray[np.float64]

BATCH_CELLS = 1 << 17
"""Cells drawn at once."""


@dataclass(frozen=True)
class BoundedOneSum:
    """Law:         P[y] proportional to exp(-rate |y - x|_1) over lower <= y <= upper with the total of x.
    Given:       x within the bounds; a block under one sum, of equal coefficients or of both signs, without further inequalities.
    Guarantees:  exact, whatever the tilts. There is no cap on tries: every pass through the list accepts with positive probability. How
                 many tries it takes depends on the counts.
    Reference:   [theory R5]; ExactBlock (bounded_exact.py) draws the same law in integers, slowly.
    """

    shape: Bounded
    rate: Fraction

    name = "tilted cells, the last one forced"

    @property
    def cells(self) -> int:
        return self.shape.size

    @property
    def expected_tries(self) -> float | None:
        return 1.0 if self.cells == 2 else None

    @cached_property
    def _signs(self) -> Ints:
        base = self.shape.shape
        assert isinstance(base, OneSum)
        return np.array(base.signs if base.signs is not None else (1,) * base.size, dtype=np.int64)

    @cached_property
    def _bounds(self) -> tuple[Ints, Ints]:
        """With the coefficients' signs multiplied in: then the row is a plain sum."""
        lower, upper = self.shape.lower_cells(), self.shape.upper_cells()
        plain = self._signs > 0
        return np.where(plain, lower, -upper), np.where(plain, upper, -lower)

    @cached_property
    def _ways(self) -> tuple[bool, bool]:
        lower, upper = self._bounds
        return bool((lower > -UNBOUNDED).any()), bool((upper < UNBOUNDED).any())

    def publish(self, counts: Ints, cell_keys: Ints | None, words: Words) -> Ints:
        x = counts * self._signs
        changes = self._pairs(x, words) if self.cells == 2 else np.array([self._one(row, words) for row in x], dtype=np.int64)
        return counts + self._signs * changes.reshape(counts.shape)

    def _pairs(self, x: Ints, words: Words) -> Ints:
        """Of two cells one rises as the other falls: a law on the integers of twice the rate."""
        left, right = room(x, *self._bounds)
        first = draw_arms((2 * self.rate,) * 2, np.minimum(left[:, 0], right[:, 1]), np.minimum(right[:, 0], left[:, 1]), words)[0]
        return np.stack([first, -first], axis=1)

    def _one(self, x: Ints, words: Words) -> Ints:
        left, right = room(x, *self._bounds)
        fall, rise = _sum(left), _sum(right)  # total less all lower bounds, all upper bounds less total: public
        if fall == 0 or rise == 0:
            return np.zeros(len(x), dtype=np.int64)
        left, right = _within(left, right, rise), _within(right, left, fall)
        tries = max(1, min(2 * isqrt(len(x)) + 2, BATCH_CELLS // len(x)))
        unit = self.rate / parts_of_rate(len(x))
        for tilt in again_and_again(tilts(len(x), self.rate, self._ways, fall, rise)):
            found = one_batch(self.rate, tilt * unit, left, right, tries, words, unit)
            if found is not None:
                return found
        raise AssertionError("there is always a tilt")


def _sum(rooms: Ints) -> int | None:
    """None where one of them has no bound."""
    return None if (rooms == UNBOUNDED).any() else sum(rooms.tolist())


def _within(own: Ints, other: Ints, total: int | None) -> Ints:
    """No cell can go further one way than all others can go the other way."""
    return own if total is None else np.minimum(own, np.array([min(total - rest, UNBOUNDED) for rest in other.tolist()], dtype=np.int64))


def one_batch(
    rate: Fraction, tilt: Fraction, left: Ints, right: Ints, tries: int, words: Words, unit: Fraction | None = None, band: float = BAND
) -> Ints | None:
    """The first of so many tries that is accepted; None where none is."""
    drawn = draw_arms((rate - tilt, rate + tilt), left[:-1], right[:-1], words, times=tries, unit=unit, band=band)
    last = -drawn.sum(axis=1)
    taken, start = words.take(tries), words.position - tries
    inside = np.flatnonzero((last >= -left[-1]) & (last <= right[-1]))
    exponents = last_exponents(float(rate - tilt), float(rate + tilt), last[inside].astype(np.float64), float(left[-1]), float(right[-1]))
    verdict = settle_exp(taken[inside].astype(np.float64), 32, exponents, band)
    for place, i in enumerate(inside.tolist()):
        if verdict[place] == 0:
            real = partial(_accept_ball, last_exponent(rate, tilt, int(last[i]), int(left[-1]), int(right[-1])))
            verdict[place] = 1 if is_below(int(taken[i]), 32, real, words, start + i) else -1
        if verdict[place] > 0:
            return np.append(drawn[i], last[i])
    return None


def _accept_ball(exponent: Fraction) -> arb:
    return ball(-exponent).exp()


def last_exponent(rate: Fraction, tilt: Fraction, z: int, left: int, right: int) -> Fraction:
    """-log of the tilted weight of z over its largest value in -left .. right: the accept step of the last cell."""
    if tilt > rate:  # largest at -left
        return (tilt - rate) * (left + z) if z < 0 else (rate + tilt) * z + (tilt - rate) * left
    if tilt < -rate:
        return (-tilt - rate) * (right - z) if z > 0 else (rate - tilt) * -z + (-tilt - rate) * right
    return (rate + tilt) * z if z >= 0 else (rate - tilt) * -z


def last_exponents(fall: float, rise: float, z: Floats, left: float, right: float) -> Floats:
    """The same in doubles from rate - tilt and rate + tilt, each rounded once: a tilt near the rate would cancel in doubles.

    Sums of products of one sign, so that what is below 40 is off by less than 2^-45.
    """
    if fall < 0:
        return np.where(z < 0, -fall * (left + z), rise * z - fall * left)
    if rise < 0:
        return np.where(z > 0, -rise * (right - z), -fall * z - rise * right)
    return np.where(z >= 0, rise * z, -fall * z)


def again_and_again(listed: tuple[int, ...]) -> Iterator[int]:
    """The first one; the first two; the first four; and so on: what stands first is tried most often."""
    length = 1
    while True:
        yield from listed[:length]
        length *= 2


def parts_of_rate(cells: int) -> int:
    """Tilts are multiples of so small a part of the rate."""
    return 1 << (4 * cells).bit_length()


def tilts(cells: int, rate: Fraction, ways: tuple[bool, bool], fall: int | None, rise: int | None) -> tuple[int, ...]:
    """The list of tilts, in parts of the rate, from public numbers: whether there are lower and upper bounds, and how far all cells
    together may fall and rise, None where some cell has no bound.

    For every table one of them is near the best: neighbours differ by about what the spread of the sum can tell apart. Lower bounds push
    the sum up, so they need tilts above 0; upper bounds mirror them. None is the rate itself, where an arm would be flat.
    """
    down = _one_way(cells, rate, _rounded(fall)) if ways[0] else ()
    up = _one_way(cells, rate, _rounded(rise)) if ways[1] else ()
    pairs = zip_longest(down, (-s for s in up))
    return (0, *(s for pair in pairs for s in pair if s is not None))


def _rounded(room: int | None) -> int | None:
    return None if room is None else 1 << room.bit_length()


@lru_cache(maxsize=1024)
def _one_way(cells: int, rate: Fraction, room: int | None) -> tuple[int, ...]:
    return tuple(_steps(cells, rate, room))


def _steps(cells: int, rate: Fraction, room: int | None) -> Iterator[int]:
    """Tilts above 0. Below the rate by a share of the gap that is left; above it, where all cells are bounded, by small steps.

    A gap of g lets a cell with room fall by about 1 / g, and all bounds together push up by at most cells / rate.
    """
    one, share = parts_of_rate(cells), isqrt(cells) // 2 + 2
    smallest = 1 if room is None else max(1, int(one / (2 * room * rate)))
    gap = one
    while (gap := gap - max(1, gap // share)) >= smallest:
        yield one - gap
    if room is None or room * rate > 8 * cells:
        return
    largest = int((2 * cells // room + 2).bit_length() * one / rate)
    spread = isqrt(room + room * room // cells) + 1
    step = smallest
    while step < largest:
        yield one + step
        step += max(1, min(step // share, int(2 * one / (spread * rate))))
