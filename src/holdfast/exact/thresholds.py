"""Certified cumulative thresholds: the heart of every table.

Legend: F is the cumulative probability, T_k = floor(F(k) 2^bits). A uniform U known to `bits` bits lies in the cell [u, u+1) / 2^bits.
u < T_k proves U < F(k); u > T_k proves U > F(k); u = T_k proves nothing and more bits of U are needed. The draw is the smallest k with
U < F(k): it is settled exactly when u equals no T_k.
"""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.errors import InvalidParameter, PrecisionExhausted
from holdfast.exact.weights import FixedWeights, WeightSource

_GUARDS = (40, 104, 232, 488, 1000, 2024)
"""Spare bits tried in turn; with 40 a threshold stays in doubt with probability about 2^-40."""


@dataclass(frozen=True)
class Thresholds:
    """values[i] = floor(F(first + i) 2^bits), non-decreasing; the last is always 2^bits - 1.

    At most one leading zero is kept: further points to the left are told apart only with more bits. The last entry stands for the first
    point with F > 1 - 2^-bits, or for the end of the support: a word of all ones is left open there, which costs nothing and is exact.
    """

    first: int
    bits: int
    values: list[int]


def certified_thresholds(source: WeightSource, bits: int) -> Thresholds:
    """T_k for every k that can be told apart with `bits` bits.

    Guarantees:  every value is the true floor, proved by integer enclosures of all weights and both tails.
    Reference:   ../math.md R3; docs/exact-numbers.md gives the argument.
    """
    for guard in _GUARDS:
        weights = source.fixed_weights(bits, guard)
        values = _floors(weights, bits, source.known_median)
        if values is not None and weights.left_tail[1] > 0:
            # Everything left of the list has mass below 2^-bits: its own threshold is 0, and a word of all zeros must stay open.
            return _trim(weights.first - 1, bits, [0, *values])
        if values is not None:
            return _trim(weights.first, bits, values)
    raise PrecisionExhausted(
        "A cumulative probability could not be separated from a multiple of a power of two. If a parameter is a rational number in "
        "disguise, pass it as a Fraction or string."
    )


def _floors(weights: FixedWeights, bits: int, median: int | None) -> list[int] | None:
    """All floors, or None when an enclosure still straddles an integer."""
    total_low = weights.left_tail[0] + sum(weights.lows) + weights.right_tail[0]
    total_high = weights.left_tail[1] + sum(weights.highs) + weights.right_tail[1]
    if total_high == 0:
        raise InvalidParameter("All weights are zero. Give at least one positive weight.")
    if total_low == 0:
        return None
    top = (1 << bits) - 1
    low, high = weights.left_tail
    median_place = None if median is None else median - weights.first
    values = []
    if total_low == total_high:  # exact integers: rational laws
        for weight in weights.lows:
            low += weight
            values.append(min((low << bits) // total_low, top))
        return values
    # One reciprocal for all points: floor and ceiling keep the two sides bounds.
    shift = 2 * total_high.bit_length() + bits
    down, up = (1 << shift) // total_high, -((-1 << shift) // total_low)
    rest = shift - bits
    for place, (weight_low, weight_high) in enumerate(zip(weights.lows, weights.highs, strict=True)):
        low += weight_low
        high += weight_high
        floor_low, floor_high = (low * down) >> rest, (high * up) >> rest
        if floor_low != floor_high:
            if place == median_place:
                floor_low = 1 << (bits - 1)
            elif floor_low < top:
                return None
        values.append(min(floor_low, top))
    return values


def _trim(first: int, bits: int, values: list[int]) -> Thresholds:
    """Drop points that `bits` bits cannot tell apart; end with the largest value."""
    top = (1 << bits) - 1
    start = max(0, sum(1 for value in values if value == 0) - 1)
    stop = next((i for i, value in enumerate(values) if value == top), len(values) - 1) + 1
    kept = values[start:stop]
    kept[-1] = top
    return Thresholds(first + start, bits, kept)
