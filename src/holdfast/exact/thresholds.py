"""Certified cumulative thresholds: the heart of every table.

Legend: F is the cumulative probability, T_k = floor(F(k) 2^bits). A uniform U known to `bits` bits lies in the cell [u, u+1) / 2^bits.
u < T_k proves U < F(k); u > T_k proves U > F(k); u = T_k proves nothing and more bits of U are needed. The draw is the smallest k with
U < F(k): it is settled exactly when u equals no T_k. Where F(k) 2^bits is an integer N, or so near one that balls do not tell (a Gaussian
centred on a half has F = 1/2), T_k is N - 1 or N: both are kept, and u = N - 1 and u = N are both left open.
"""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.errors import InvalidParameter
from holdfast.exact.weights import FixedWeights, WeightSource

_GUARDS = (40, 1000, 20_000)
"""Spare bits, so that a floor is in doubt with probability about 2^-40; more only where all weights are too small to be seen."""


@dataclass(frozen=True)
class Thresholds:
    """lows[i] <= floor(F(first + i) 2^bits) <= values[i], equal but for integers; both non-decreasing; the last is always 2^bits - 1.

    At most one leading zero is kept: further points to the left are told apart only with more bits. The last entry stands for the first
    point with F > 1 - 2^-bits, or for the end of the support: a word of all ones is left open there, which costs nothing and is exact.
    """

    first: int
    bits: int
    values: list[int]
    lows: list[int]


def certified_thresholds(source: WeightSource, bits: int) -> Thresholds:
    """T_k for every k that can be told apart with `bits` bits.

    Guarantees:  lows and values enclose the true floors, proved by integer enclosures of all weights and both tails. A floor left in doubt
                 leaves more words open and changes no law.
    Reference:   [theory R3]; docs/exact-numbers.md gives the argument.
    """
    for guard in _GUARDS:
        weights = source.fixed_weights(bits, guard)
        bounds = _floors(weights, bits)
        if bounds is not None:
            lows, highs = bounds
            if weights.left_tail[1] > 0:
                # Everything left of the list has mass below 2^-bits: its own threshold is 0, and a word of all zeros must stay open.
                return _trim(weights.first - 1, bits, [0, *lows], [0, *highs])
            return _trim(weights.first, bits, lows, highs)
    raise InvalidParameter("All weights are zero, or too small to be told from zero. Give at least one positive weight of ordinary size.")


def _floors(weights: FixedWeights, bits: int) -> tuple[list[int], list[int]] | None:
    """Lower and upper bounds of every floor; None where not even one weight is certainly positive."""
    total_low = weights.left_tail[0] + sum(weights.lows) + weights.right_tail[0]
    total_high = weights.left_tail[1] + sum(weights.highs) + weights.right_tail[1]
    if total_low == 0:
        return None
    top = (1 << bits) - 1
    low, high = weights.left_tail
    lows, highs = [], []
    if total_low == total_high:  # exact integers: rational laws
        for weight in weights.lows:
            low += weight
            lows.append(min((low << bits) // total_low, top))
        return lows, lows
    # One reciprocal for all points: floor and ceiling keep the two sides bounds.
    shift = 2 * total_high.bit_length() + bits
    down, up = (1 << shift) // total_high, -((-1 << shift) // total_low)
    rest = shift - bits
    for weight_low, weight_high in zip(weights.lows, weights.highs, strict=True):
        low += weight_low
        high += weight_high
        lows.append(min((low * down) >> rest, top))
        highs.append(min((high * up) >> rest, top))
    return lows, highs


def _trim(first: int, bits: int, lows: list[int], highs: list[int]) -> Thresholds:
    """Drop points that `bits` bits cannot tell apart; end with the largest value."""
    top = (1 << bits) - 1
    start = max(0, sum(1 for value in highs if value == 0) - 1)
    stop = next((i for i, value in enumerate(lows) if value == top), len(lows) - 1) + 1
    lows, highs = lows[start:stop], highs[start:stop]
    lows[-1] = highs[-1] = top
    return Thresholds(first + start, bits, highs, lows)
