"""Two integer laws drawn together: equal as often as possible, or as close as possible.

    maximal    x from p; then y = x with probability min(1, q(x) / p(x)), else y from the residual (q - p)+. P[x != y] is the total
               variation distance, which no pairing undercuts. Three words.
    quantile   both by inverse distribution function from the same word. E|x - y| is the least possible. One word.

Each side alone has exactly its own law.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from flint import arb, ctx

from holdfast.chains.line import draw_point
from holdfast.exact.balls import ball
from holdfast.exact.predicates import is_below
from holdfast.exact.weights import FixedWeights, WeightSource
from holdfast.randomness import Words

_GUARD = 40
_SPARE = 64
"""Bits beyond those asked for, before the residual's total is looked at."""


def draw_maximal(p: WeightSource, q: WeightSource, words: Words) -> tuple[int, int]:
    """One pair by the maximal pairing; three words, whether they are needed or not."""
    x = draw_point(p, words)
    index = words.position
    coin = int(words.take(1)[0])
    last = words.position
    words.take(1)
    if is_below(coin, 32, _overlap(p, q, x), words, index):
        return x, x
    words.give_back(1)
    y = draw_point(Residual(q, p), words)
    assert words.position == last + 1
    return x, y


def draw_quantile(p: WeightSource, q: WeightSource, words: Words) -> tuple[int, int]:
    """One pair by the quantile pairing; one word."""
    x = draw_point(p, words)
    words.give_back(1)
    return x, draw_point(q, words)


class Residual:
    """Law:  P[y] proportional to max(0, q(y) - p(y)), both normalised. Implements `weights.WeightSource`.

    Given:  p and q differ, or nothing is left to draw from.
    """

    def __init__(self, q: WeightSource, p: WeightSource) -> None:
        self._q, self._p = q, p

    def fixed_weights(self, bits: int, guard: int) -> FixedWeights:
        spare = _SPARE
        while True:
            bounds = self.bounds(bits + guard + spare)
            if sum(bounds.lows) >> (bits + guard + 2) >= max(1, bounds.left_tail[1] + bounds.right_tail[1]):
                return bounds
            spare *= 2  # the laws are so close that little of the precision is left

    def bounds(self, working: int) -> FixedWeights:
        q, p = self._q.fixed_weights(working, _GUARD), self._p.fixed_weights(working, _GUARD)
        first = min(q.first, p.first)
        last = max(q.first + len(q.lows), p.first + len(p.lows))
        lows, highs = [], []
        for k in range(first, last):
            q_low, q_high = _mass_bounds(q, k, working)
            p_low, p_high = _mass_bounds(p, k, working)
            lows.append(max(0, q_low - p_high))
            highs.append(max(0, q_high - p_low))
        total = _total(q)[0]
        tails = tuple((0, -((-high << working) // total)) for _, high in (q.left_tail, q.right_tail))
        return FixedWeights(first, lows, highs, tails[0], tails[1])


def _overlap(p: WeightSource, q: WeightSource, x: int) -> Callable[[], arb]:
    """q(x) / p(x), at most one, as a ball at flint's current precision."""

    def real() -> arb:
        working = ctx.prec
        p_low, p_high = _mass_bounds(p.fixed_weights(working, _GUARD), x, working)
        q_low, q_high = _mass_bounds(q.fixed_weights(working, _GUARD), x, working)
        one = Fraction(1)
        high = one if p_low == 0 else min(one, Fraction(q_high, p_low))
        return ball(min(one, Fraction(q_low, max(p_high, 1)))).union(ball(high))

    return real


def _total(weights: FixedWeights) -> tuple[int, int]:
    low = sum(weights.lows) + weights.left_tail[0] + weights.right_tail[0]
    high = sum(weights.highs) + weights.left_tail[1] + weights.right_tail[1]
    return low, high


def _mass_bounds(weights: FixedWeights, k: int, working: int) -> tuple[int, int]:
    """Bounds of the probability of k in units of 2^-working."""
    total_low, total_high = _total(weights)
    place = k - weights.first
    if 0 <= place < len(weights.lows):
        low, high = weights.lows[place], weights.highs[place]
    else:
        low, high = 0, (weights.left_tail if place < 0 else weights.right_tail)[1]
    return (low << working) // total_high, -((-high << working) // total_low)
