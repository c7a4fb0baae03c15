"""Certified weights in fixed point: the only thing the table engine asks of a law.

A `FixedWeights` holds, for consecutive integers, lower and upper bounds of each weight in units of 2^-working, and bounds of what lies
beyond both ends. Two-sided integer arithmetic: the lower bound is rounded down and the upper bound up at every step, so the enclosure
certifies itself, whatever the recurrence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm
from typing import Protocol

from holdfast.exact.balls import ball, fixed_point, precision
from holdfast.exact.segments import Arms, Segment


@dataclass(frozen=True)
class FixedWeights:
    """lows[i] <= w(first + i) * 2^working <= highs[i], and the same for the sums beyond either end."""

    first: int
    lows: list[int]
    highs: list[int]
    left_tail: tuple[int, int]
    right_tail: tuple[int, int]


class WeightSource(Protocol):
    """A law given by its weights; its normaliser need not be known."""

    def fixed_weights(self, bits: int, guard: int) -> FixedWeights:
        """Weights of every point that matters for cumulative probabilities to `bits` bits.

        Both tails beyond the listed points are below 2^-bits of the total, and known to within 2^-(bits + guard) of it.
        """


class ArmsSource:
    """Weights of a segment law by the recurrence w <- w r, r <- r q from one ball each: no exponential per point."""

    def __init__(self, arms: Arms) -> None:
        self.arms = arms

    def fixed_weights(self, bits: int, guard: int) -> FixedWeights:
        working = bits + guard + 64
        right_lows, right_highs, right_tail = self._arm(self.arms.right, bits, guard, working)
        if self.arms.is_symmetric:
            left_lows, left_highs, left_tail = right_lows[1:], right_highs[1:], right_tail
        else:
            left_lows, left_highs, left_tail = self._arm(self.arms.left, bits, guard, working)
        first = self.arms.anchor - len(left_lows)
        return FixedWeights(first, left_lows[::-1] + right_lows, left_highs[::-1] + right_highs, left_tail, right_tail)

    @staticmethod
    def _arm(arm: tuple[Segment, ...], bits: int, guard: int, working: int) -> tuple[list[int], list[int], tuple[int, int]]:
        lows: list[int] = []
        highs: list[int] = []
        for place, segment in enumerate(arm):
            later = sum(_bound_of_all(rest, working) for rest in arm[place + 1 :])
            tail = _extend(segment, bits, guard, working, later, lows, highs)
            if tail is not None:
                return lows, highs, tail
        return lows, highs, (0, 0)


class ListedSource:
    """Rational weights on consecutive integers, kept as exact integers."""

    def __init__(self, first: int, weights: Sequence[Fraction]) -> None:
        denominator = lcm(*(weight.denominator for weight in weights))
        self._first = first
        self._integers = [int(weight * denominator) for weight in weights]

    def fixed_weights(self, bits: int, guard: int) -> FixedWeights:
        return FixedWeights(self._first, self._integers, self._integers, (0, 0), (0, 0))


def _bound_of_all(segment: Segment, working: int) -> int:
    """An upper bound of the segment's total weight: first weight / (1 - first ratio), or weight times length where it is flat."""
    with precision(working + 64):
        _, high = fixed_point((-ball(segment.offset)).exp(), working)
        _, ratio_high = fixed_point((-ball(segment.slope)).exp(), working)
    one = 1 << working
    if ratio_high < one:
        return -((-high * one) // (one - ratio_high))
    assert segment.length is not None
    return high * segment.length


def _extend(segment: Segment, bits: int, guard: int, working: int, later: int, lows: list[int], highs: list[int]) -> tuple[int, int] | None:
    """Append the segment's weights; stop and return bounds of the arm's tail once it no longer matters.

    Neighbouring ratios never grow inside a segment, so what follows weight w and ratio r in it sums to at most w / (1 - r); on an endless
    geometric segment it sums to exactly that. `later` bounds all segments that follow.
    """
    with precision(working + 64):
        low, high = fixed_point((-ball(segment.offset)).exp(), working)
        ratio_low, ratio_high = fixed_point((-ball(segment.slope)).exp(), working)
        q_low, q_high = fixed_point((-ball(segment.curvature)).exp(), working)
    one = 1 << working
    endless_geometric = segment.length is None and segment.curvature == 0
    # The anchor has weight 1, so the total is at least `one`.
    enough = 1 << (working - bits if endless_geometric else working - bits - guard)
    left = -1 if segment.length is None else segment.length
    curved = segment.curvature != 0
    while left != 0:
        lows.append(low)
        highs.append(high)
        left -= 1
        # -(-a >> working) rounds up: exact arithmetic stays exact (flat laws), everything else stays enclosed
        low = (low * ratio_low) >> working
        high = -((-high * ratio_high) >> working)
        if curved:
            ratio_low = (ratio_low * q_low) >> working
            ratio_high = -((-ratio_high * q_high) >> working)
        if high <= enough and ratio_high < one and high * one <= (enough - later) * (one - ratio_high):
            upper = later - ((-high * one) // (one - ratio_high))
            lower = (low * one) // (one - ratio_low) if endless_geometric else 0
            return lower, upper
    return None
