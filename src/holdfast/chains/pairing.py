"""Two integer laws drawn together: equal as often as possible, or as close as possible.

    maximal    x from p; then y = x with probability min(1, q(x) / p(x)), else y from the residual (q - p)+. P[x != y] is the total
               variation distance, which no pairing undercuts. Three words.
    quantile   both by inverse distribution function from the same word. E|x - y| is the least possible. One word.

Each side alone has exactly its own law. A `Joint` gives the same pairings as fractions, for laws listed in fractions: what tests enumerate.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import TypeAlias

from flint import arb, ctx

from holdfast.chains.line import draw_point
from holdfast.exact.balls import ball
from holdfast.exact.predicates import is_below
from holdfast.exact.weights import FixedWeights, WeightSource
from holdfast.randomness import Words

Listed: TypeAlias = Mapping[int, Fraction]
Joint: TypeAlias = dict[tuple[int, int], Fraction]

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


def maximal_joint(p: Listed, q: Listed) -> Joint:
    """The law of `draw_maximal`; the weights need not be normalised."""
    p, q = normalise(p), normalise(q)
    points = sorted({*p, *q})
    common = {k: min(p.get(k, Fraction(0)), q.get(k, Fraction(0))) for k in points}
    left = {k: p.get(k, Fraction(0)) - common[k] for k in points}
    right = {k: q.get(k, Fraction(0)) - common[k] for k in points}
    apart = sum(left.values())
    joint: Joint = {(k, k): mass for k, mass in common.items() if mass}
    for x, a in left.items():
        for y, b in right.items():
            if a and b:
                joint[x, y] = joint.get((x, y), Fraction(0)) + a * b / apart
    return joint


def quantile_joint(p: Listed, q: Listed) -> Joint:
    """The law of `draw_quantile`; the weights need not be normalised."""
    left, right = ([(k, mass) for k, mass in sorted(normalise(law).items()) if mass] for law in (p, q))
    joint: Joint = {}
    i = j = 0
    a, b = left[0][1], right[0][1]
    while True:
        step = min(a, b)
        key = left[i][0], right[j][0]
        joint[key] = joint.get(key, Fraction(0)) + step
        a, b = a - step, b - step
        if not a:
            i += 1
            if i == len(left):
                return joint
            a = left[i][1]
        if not b:
            j += 1
            b = right[j][1]


def normalise(law: Listed) -> dict[int, Fraction]:
    """The law with total one."""
    total = sum(law.values())
    return {k: mass / total for k, mass in law.items()}


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
