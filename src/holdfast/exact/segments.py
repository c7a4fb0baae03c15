"""Log-concave laws on the integers as a few segments: the common shape of Laplace, Gaussian, their tilts and their truncations.

Legend: from an anchor (a mode) the weights fall off on both sides. Each side, an arm, is a run of segments; on a segment

    w(j) = exp(-(offset + slope * j + curvature * j (j - 1) / 2)),     j = 0, 1, ..., length - 1,     at x = start + step * j,

with slope >= 0 and curvature >= 0, so that w never grows away from the anchor and w(anchor) = 1. Gaussian: curvature 1/sigma_squared.
Laplace and geometric: curvature 0. Weights are relative to the anchor's.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from flint import arb

from holdfast.errors import InvalidParameter, RequestTooLarge
from holdfast.exact.balls import Real, affine, ball, enclosure, precision

INT64_REACH = 2**61
"""Weights must be below e^-190 this far from the anchor: then |x| <= 2^62 fails with probability below 2^-200 (see `check_reach`)."""


@dataclass(frozen=True)
class Segment:
    """One run of weights moving away from the anchor; the module docstring gives the formula."""

    start: int
    step: int
    length: int | None
    offset: Real
    slope: Real
    curvature: Fraction

    def __post_init__(self) -> None:
        if self.length == 1:  # no neighbour further out: keep slope >= 0 true at a bound beyond which the weights would grow
            object.__setattr__(self, "slope", Fraction(0))
            object.__setattr__(self, "curvature", Fraction(0))

    def exponent(self, j: int) -> arb:
        """Ball of -log w(j), at the current precision; also for j between integers of a coarser grid."""
        return ball(self.offset) + ball(self.slope) * j + ball(self.curvature * j * (j - 1) / 2)

    def drop(self, j: int, steps: int) -> arb:
        """Ball of -log(w(j + steps) / w(j)), with no cancellation: exactly zero where the weights are equal by form."""
        return ball(self.slope) * steps + ball(self.curvature * (j * steps + Fraction(steps * (steps - 1), 2)))

    def weight(self, j: int) -> arb:
        """Ball of w(j)."""
        return (-self.exponent(j)).exp()

    def reach(self, nats: int) -> int:
        """A j = 2^i - 1 (or the segment's end) by which the exponent certainly exceeds `nats`: the segment's effective length.

        Decided on rationals or certified balls, so it is the same on every machine.
        """
        j = 1
        with precision(128):
            while self.length is None or j < self.length:
                if self.exponent(j) > nats:
                    return j
                if j > 2**80:
                    break
                j = 2 * j + 1
        return self.length if self.length is not None else j


@dataclass(frozen=True)
class Arms:
    """A log-concave law: `right` starts at the anchor and goes up, `left` starts at anchor - 1 and goes down (may be empty)."""

    anchor: int
    left: tuple[Segment, ...]
    right: tuple[Segment, ...]

    @property
    def lower(self) -> int | None:
        return _end(self.left) if self.left else self.anchor

    @property
    def upper(self) -> int | None:
        return _end(self.right)

    def locate(self, k: int) -> tuple[Segment, int] | None:
        """The segment holding k and k's place in it; None where the law has no weight."""
        for segment in self.right if k >= self.anchor else self.left:
            j = (k - segment.start) * segment.step
            if j >= 0 and (segment.length is None or j < segment.length):
                return segment, j
        return None

    @property
    def is_symmetric(self) -> bool:
        """Whether the left arm mirrors the right one around the anchor (certainly; False where it was not looked into)."""
        if len(self.left) != 1 or len(self.right) != 1:
            return False
        left, right = self.left[0], self.right[0]
        return (
            isinstance(right.slope, Fraction)
            and isinstance(left.offset, Fraction)
            and left.length == right.length is None
            and left.offset == right.slope
            and left.slope == right.slope + right.curvature
        )

    def reach(self, nats: int) -> int:
        """Effective number of points on the longer arm."""
        return max(sum(segment.reach(nats) for segment in arm) for arm in (self.left, self.right))


def gaussian_arms(sigma_squared: Fraction, center: Real, lower: int | None, upper: int | None) -> Arms:
    """Weights exp(-(k - center)^2 / (2 sigma_squared)) on lower <= k <= upper."""
    nearest = _nearest_integer(center)
    anchor = _clip(nearest, lower, upper)
    curvature = 1 / sigma_squared
    # -log w(anchor + 1) + log w(anchor) and the same to the left: (1 -+ 2 (center - anchor)) / (2 sigma_squared)
    up = affine(center, -curvature, (2 * anchor + 1) / (2 * sigma_squared))
    down = affine(center, curvature, (1 - 2 * anchor) / (2 * sigma_squared))
    right = Segment(anchor, 1, _length(anchor, upper), Fraction(0), up, curvature)
    left: tuple[Segment, ...] = ()
    if lower is None or lower < anchor:
        left = (Segment(anchor - 1, -1, None if lower is None else anchor - lower, down, affine(down, Fraction(1), curvature), curvature),)
    return Arms(anchor, left, (right,))


def laplace_arms(rate_left: Fraction, rate_right: Fraction, lower: int | None, upper: int | None) -> Arms:
    """Weights exp(-rate_right k) for k >= 0 and exp(-rate_left |k|) for k < 0, on lower <= k <= upper.

    Given:  rate_left + rate_right > 0 (log-concave). A rate <= 0 needs a bound on its side, else the weights have no finite sum.
    """
    if (rate_right <= 0 and upper is None) or (rate_left <= 0 and lower is None):
        raise InvalidParameter(
            "The tilted law has no finite sum: |tilt| must be below 1/scale unless there is a bound on the side it leans to. "
            "Give a smaller tilt, or a bound."
        )
    anchor = _clip(0, lower, upper)
    if rate_right < 0 and upper is not None and upper > 0:
        anchor = upper
    elif rate_left < 0 and lower is not None and lower < 0:
        anchor = lower
    right = _linear_arm(anchor, 1, upper, rate_left, rate_right)
    left = _linear_arm(anchor - 1, -1, lower, rate_left, rate_right, first=anchor)
    return Arms(anchor, left, right)


def coarsen(arms: Arms, width_bits: int) -> Arms:
    """The law of the first point of each cell of 2^width_bits neighbours, cells counted outwards from the anchor.

    Returns arms on cell numbers (right arm 0, 1, ..., left arm -1, -2, ...), segment by segment: again quadratic exponents, so that the
    same engine makes its table.
    """
    width = 2**width_bits

    def coarse_arm(arm: tuple[Segment, ...], cell: int, step: int) -> tuple[Segment, ...]:
        out = []
        for fine in arm:
            cells = None if fine.length is None else -(-fine.length // width)
            slope = affine(fine.slope, Fraction(width), fine.curvature * width * (width - 1) / 2)
            out.append(Segment(cell, step, cells, fine.offset, slope, fine.curvature * width * width))
            cell += 0 if cells is None else step * cells
        return tuple(out)

    return Arms(0, coarse_arm(arms.left, -1, -1), coarse_arm(arms.right, 0, 1))


def check_reach(arms: Arms) -> None:
    """Refuse laws whose values could leave 64-bit integers with probability above 2^-200.

    With w(j) <= e^-190 at j = 2^61, the ratio r of neighbours there has 1/(1 - r) <= 1 + 2^63, and the anchor has weight 1, so the mass
    beyond is at most e^-190 (1 + 2^63) < 2^-210 on each side.
    """
    if abs(arms.anchor) > INT64_REACH or arms.reach(190) > INT64_REACH:
        raise RequestTooLarge(
            "The noise could leave 64-bit integers with probability above 2^-200. Use a smaller scale or variance "
            "(about 10^16 and 10^34 at most), or a centre below 2^61."
        )


def _linear_arm(
    start: int, step: int, bound: int | None, rate_left: Fraction, rate_right: Fraction, first: int | None = None
) -> tuple[Segment, ...]:
    """Segments of a piecewise linear exponent with its kink at 0, from `start` outwards; `first` is the anchor when start is beyond it."""
    if bound is not None and (bound - start) * step < 0:
        return ()
    here, height = start, Fraction(0)

    def drop(x: int) -> Fraction:  # -log w(x + step) + log w(x)
        to_right = rate_right if x >= 0 else -rate_left
        to_left = -rate_right if x > 0 else rate_left
        return to_right if step > 0 else to_left

    if first is not None:
        height = drop(first)
    crosses = here * step < 0 and (bound is None or bound * step > 0)
    pieces = []
    if crosses:
        pieces.append(Segment(here, step, abs(here), height, drop(here), Fraction(0)))
        height += abs(here) * drop(here)
        here = 0
    pieces.append(Segment(here, step, None if bound is None else abs(bound - here) + 1, height, drop(here), Fraction(0)))
    return tuple(pieces)


def _nearest_integer(center: Real) -> int:
    if isinstance(center, Fraction):
        return round(center)
    with precision(192):
        # Any neighbour of the centre will do as an anchor; the midpoint's is right unless the centre sits on a half.
        lower, upper = enclosure(center.ball())
        return math.floor((lower + upper + 1) / 2)


def _clip(k: int, lower: int | None, upper: int | None) -> int:
    if lower is not None:
        k = max(k, lower)
    return k if upper is None else min(k, upper)


def _length(start: int, upper: int | None) -> int | None:
    return None if upper is None else upper - start + 1


def _end(arm: tuple[Segment, ...]) -> int | None:
    last = arm[-1]
    return None if last.length is None else last.start + last.step * (last.length - 1)
