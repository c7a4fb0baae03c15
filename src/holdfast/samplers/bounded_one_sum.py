"""Cells with bounds that differ from draw to draw, under no kept total or under one: 002's mechanism with non-negativity, drawn exactly.

A geometric variable modulo m is the geometric variable on 0 .. m - 1: it has no memory. So both arms come from laws without bounds, which
are public; only the choice of the arm, one exact comparison, sees where the bounds are.

Under one total: a try with tilt s draws every cell but the last with weights exp(-r |z| - s z) inside its bounds, sets the last to minus
their sum, and accepts it by its TILTED weight. The law does not depend on s, so the tilt of a try may depend on the refused tries before it
[theory R5]. Which tilt is good depends on the counts: bounds near a count push its mean away. The counts are not asked: the search for the
tilt starts between ends that are made from public numbers (cells, rate, bounds), and sees the sums of refused tries only.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, partial
from math import isqrt

import numpy as np
from flint import arb
from numpy.typing import NDArray

from holdfast.cellkey.keys import CellKeySums
from holdfast.exact.balls import ball
from holdfast.exact.laws import Geometric
from holdfast.exact.predicates import BAND, is_below, settle, settle_exp
from holdfast.lattices.shapes import Bounded
from holdfast.lattices.shapes.shape import UNBOUNDED
from holdfast.randomness import Words
from holdfast.samplers.protocol import Ints


def draw_arms(
    rates: tuple[Fraction, Fraction],
    left: Ints,
    right: Ints,
    words: Words,
    *,
    times: int = 1,
    unit: Fraction | None = None,
    band: float = BAND,
) -> Ints:
    """Independent draws, `times` for each pair of bounds: shape (times, pairs).

    Law:         P[z] proportional to exp(-rate_right z) for 0 <= z <= right and exp(-rate_left |z|) for -left <= z < 0.
    Given:       rates to the left and to the right, not zero, with a positive sum; a rate below zero grows outwards, and has a bound.
                 left, right >= 0, UNBOUNDED where there is none. `unit`: both rates are whole multiples of it. Then the one law of this
                 rate serves for all of them: a geometric variable of rate r, divided by j and rounded down, has rate j r.
    Guarantees:  exact. How many words are taken depends on how many draws go which way, and so on the bounds.
    Reference:   [theory R5].
    """
    pairs = len(left)
    taken, start = words.take(times * pairs), words.position - times * pairs
    verdict = settle(taken.astype(np.float64), 32, np.tile(left_chances(*rates, left, right), times), band)
    for i in np.flatnonzero(verdict == 0).tolist():
        real = lambda i=i: left_chance(*rates, int(left[i % pairs]), int(right[i % pairs]))  # noqa: E731
        verdict[i] = 1 if is_below(int(taken[i]), 32, real, words, start + i) else -1
    goes_left = verdict > 0
    out = np.empty(times * pairs, dtype=np.int64)
    out[~goes_left] = _outwards(rates[1], unit, np.tile(np.minimum(right, UNBOUNDED - 1) + 1, times)[~goes_left], words)
    out[goes_left] = -1 - _outwards(rates[0], unit, np.tile(left, times)[goes_left], words)
    return out.reshape(times, pairs)


def _outwards(rate: Fraction, unit: Fraction | None, lengths: Ints, words: Words) -> Ints:
    """For each length m a draw of 0 .. m - 1 with weights exp(-rate k)."""
    base = abs(rate) if unit is None else unit
    multiple = abs(rate) / base
    assert multiple.denominator == 1, "rates are multiples of their unit"
    steps: Ints = Geometric.of_rate(base).draw(len(lengths), words) // multiple.numerator % lengths
    return steps if rate > 0 else lengths - 1 - steps


def left_chances(rate_left: Fraction, rate_right: Fraction, left: Ints, right: Ints) -> NDArray[np.float64]:
    """P[z < 0] in doubles, off by less than 2^-45.

    Both arms are divided by the largest weight, so that nothing overflows. An exponent x is off by x 2^-51 at most, which matters where
    its power is not far below the other arm: x <= 50.
    """
    a, b = float(rate_left), float(rate_right)
    steps_left = np.where(left == UNBOUNDED, np.inf, left)
    steps_right = np.where(right == UNBOUNDED, np.inf, right)
    low = _weight_sum(abs(a), steps_left) * (np.exp(-abs(a)) if a > 0 else 1.0)
    high = _weight_sum(abs(b), steps_right + 1)
    if a < 0:  # the arm's first step has weight exp(-|a| (left - 1)) of its last, and the other arm hangs on at exp(-|a| left)
        high = high * np.exp(a * steps_left)
    if b < 0:
        low = low * np.exp(b * steps_right)
    chances: NDArray[np.float64] = np.where(left == 0, 0.0, low / (low + high))
    return chances


def _weight_sum(rate: float, length: NDArray[np.float64]) -> NDArray[np.float64]:
    """sum over 0 <= k < length of exp(-rate k)."""
    total: NDArray[np.float64] = np.expm1(-rate * length) / np.expm1(-rate)
    return total


def left_chance(rate_left: Fraction, rate_right: Fraction, left: int, right: int) -> arb:
    """P[z < 0] as a ball at the current precision."""
    low = _sum_ball(rate_left, left) * ball(-rate_left).exp()
    return low / (low + _sum_ball(rate_right, right if right == UNBOUNDED else right + 1))


def _sum_ball(rate: Fraction, length: int) -> arb:
    beyond = arb(0) if length == UNBOUNDED else ball(-rate * length).exp()
    return (1 - beyond) / (1 - ball(-rate).exp())


@dataclass(frozen=True)
class BoundedFree:
    """Law:         P[y] proportional to exp(-rate |y - x|) for lower <= y <= upper, for each of n cells.
    Guarantees:  exact; nothing is thrown away.
    """

    shape: Bounded
    rate: Fraction

    name = "truncated two-sided geometric"
    cells = 1
    expected_tries = 1.0

    def publish(self, counts: Ints, cell_keys: CellKeySums | None, words: Words) -> Ints:
        x = counts.ravel()
        left, right = room(x, self.shape.lower_cells()[0], self.shape.upper_cells()[0])
        published: Ints = x + draw_arms((self.rate, self.rate), left, right, words)[0]
        return published[:, None]


def room(x: Ints, lower: Ints | int, upper: Ints | int) -> tuple[Ints, Ints]:
    """How far each count may fall and rise; UNBOUNDED where there is no bound."""
    left = np.where(lower == -UNBOUNDED, UNBOUNDED, x - np.maximum(lower, -(2**62)))
    right = np.where(upper == UNBOUNDED, UNBOUNDED, np.minimum(upper, 2**62) - x)
    return left, right


Floats = NDArray[np.float64]

BATCH_CELLS = 1 << 17
"""Cells drawn at once, where that is more than a few tries."""
PROBES = 8
"""Tries at a tilt of which nothing is known yet."""
ENOUGH = 8
"""A tilt is kept where at least one sum in so many falls on either side."""


@dataclass(frozen=True)
class BoundedOneSum:
    """Law:         P[y] proportional to exp(-rate |y - x|_1) over lower <= y <= upper with the total of x.
    Given:       x within the bounds; a block under one sum, of equal coefficients or of both signs, without further inequalities.
    Guarantees:  exact, whatever the tilts. There is no cap on tries: each accepts with positive probability, and tilts are finitely many.
                 How many tries it takes depends on the counts.
    Reference:   [theory R5]; ExactBlock (bounded_classes.py) draws the same law in integers, slowly.
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
        return np.asarray(self.shape.kept_rows()[0])

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

    def publish(self, counts: Ints, cell_keys: CellKeySums | None, words: Words) -> Ints:
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
        tries = max(PROBES, min(2 * isqrt(len(x)) + 2, BATCH_CELLS // len(x)))
        one = parts_of_rate(len(x))
        search = TiltSearch(*widest_tilts(len(x), self.rate, self._ways, fall, rise), one)
        while True:
            now = tries if search.is_settled else PROBES
            found, sums = one_batch(self.rate, search.tilt * self.rate / one, left, right, now, words, self.rate / one)
            if found is not None:
                return found
            search.tell(sums)


def _sum(rooms: Ints) -> int | None:
    """None where one of them has no bound."""
    return None if (rooms == UNBOUNDED).any() else sum(rooms.tolist())


def _within(own: Ints, other: Ints, total: int | None) -> Ints:
    """No cell can go further one way than all others can go the other way."""
    return own if total is None else np.minimum(own, np.array([min(total - rest, UNBOUNDED) for rest in other.tolist()], dtype=np.int64))


def one_batch(
    rate: Fraction, tilt: Fraction, left: Ints, right: Ints, tries: int, words: Words, unit: Fraction | None = None, band: float = BAND
) -> tuple[Ints | None, Ints]:
    """The first of so many tries that is accepted, None where none is; and what all cells of a try add up to, the last one drawn like the
    others: whether the tilt is too small or too large.
    """
    drawn = draw_arms((rate - tilt, rate + tilt), left, right, words, times=tries, unit=unit, band=band)
    last = -drawn[:, :-1].sum(axis=1)
    sums = drawn[:, -1] - last
    taken, start = words.take(tries), words.position - tries
    inside = np.flatnonzero((last >= -left[-1]) & (last <= right[-1]))
    exponents = last_exponents(float(rate - tilt), float(rate + tilt), last[inside].astype(np.float64), float(left[-1]), float(right[-1]))
    verdict = settle_exp(taken[inside].astype(np.float64), 32, exponents, band)
    for place, i in enumerate(inside.tolist()):
        if verdict[place] == 0:
            real = partial(_accept_ball, last_exponent(rate, tilt, int(last[i]), int(left[-1]), int(right[-1])))
            verdict[place] = 1 if is_below(int(taken[i]), 32, real, words, start + i) else -1
        if verdict[place] > 0:
            return np.append(drawn[i, :-1], last[i]), sums
    return None, sums


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


def parts_of_rate(cells: int) -> int:
    """Tilts are multiples of so small a part of the rate."""
    return 1 << (4 * cells).bit_length()


def widest_tilts(cells: int, rate: Fraction, ways: tuple[bool, bool], fall: int | None, rise: int | None) -> tuple[int, int]:
    """The least and the largest tilt worth a try, in parts of the rate, from public numbers: whether there are lower and upper bounds, and
    how far all cells together may fall and rise, None where some cell has no bound.

    Lower bounds push the sum up, by cells / rate at most: they need tilts above 0. Where some cell has no lower bound, it falls by about
    4 cells / rate at the largest tilt below the rate. Where all have one, a cell with room falls by 1/2 at least from the rate on, and all
    others rise by less than 1/2 together once exp(-tilt) is below 1 / (4 cells). Upper bounds mirror this.
    """
    one = parts_of_rate(cells)
    beyond = one + int((4 * cells).bit_length() * one / rate)
    return -_widest(ways[1], rise, one, beyond), _widest(ways[0], fall, one, beyond)


def _widest(has_bounds: bool, room: int | None, one: int, beyond: int) -> int:
    if not has_bounds:
        return 0
    return one - 1 if room is None else beyond


@dataclass
class TiltSearch:
    """Which tilt is tried next: halving, on the side to which refused tries point. The larger the tilt, the smaller the sum of all cells.

    A tilt is kept once sums fall on both sides of zero. Chance may point to the wrong side; when nothing is left between the ends, the
    search begins again.
    """

    least: int
    most: int
    one: int
    tilt: int = field(default=0, init=False)
    is_settled: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self._ends = self.least - 1, self.most + 1

    def tell(self, sums: Ints) -> None:
        """The sums of all cells in a batch of tries of which none was accepted."""
        above, below = int((sums > 0).sum()), int((sums < 0).sum())
        self.is_settled = above == below or ENOUGH * min(above, below) >= len(sums)
        if self.is_settled:
            return
        self._ends = (self.tilt, self._ends[1]) if above > below else (self._ends[0], self.tilt)
        if self._ends[1] - self._ends[0] <= 3:
            self._ends = self.least - 1, self.most + 1
        self.tilt = sum(self._ends) // 2
        if abs(self.tilt) == self.one:  # an arm would be flat
            self.tilt -= 1 if self.tilt > 0 else -1
