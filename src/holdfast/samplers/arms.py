"""Two-sided geometric draws between bounds that differ from draw to draw, without a table that depends on a bound.

A geometric variable modulo m is the geometric variable on 0 .. m - 1: it has no memory. So both arms come from laws without bounds, which
are public; only the choice of the arm, one exact comparison, sees where the bounds are.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from flint import arb
from numpy.typing import NDArray

from holdfast.exact.balls import ball
from holdfast.exact.laws import Geometric
from holdfast.exact.predicates import BAND, is_below, settle
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
    low = _sum(abs(a), steps_left) * (np.exp(-abs(a)) if a > 0 else 1.0)
    high = _sum(abs(b), steps_right + 1)
    if a < 0:  # the arm's first step has weight exp(-|a| (left - 1)) of its last, and the other arm hangs on at exp(-|a| left)
        high = high * np.exp(a * steps_left)
    if b < 0:
        low = low * np.exp(b * steps_right)
    chances: NDArray[np.float64] = np.where(left == 0, 0.0, low / (low + high))
    return chances


def _sum(rate: float, length: NDArray[np.float64]) -> NDArray[np.float64]:
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
