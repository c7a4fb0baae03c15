"""Ratios and percentages, by Fieller's way: all t for which the error of numerator - t * denominator could explain what was published.

For the true ratio t the published A - t B is the error a - t b itself. So {t : |A - t B| <= reach(t)} covers t with probability `level`
or more, if reach(t) is exceeded by |a - t b| with probability 1 - level at most, for every t ([theory T143]):

    Gaussian     z sd(t) + the steps of the lattice, from the joint law of (a, b); or sqrt(2 log(2 / alpha)) sd(t)
    simulated    the r-th smallest |a_i - t b_i| of draws of both errors together
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast.accuracy.error_draws import Part
from holdfast.accuracy.error_laws import DOUBT, ErrorLaws, Method, Reach, rank
from holdfast.accuracy.interval import End, Interval, check_nonnegative, rounding_room
from holdfast.accuracy.lattice_sums import flatness
from holdfast.accuracy.short_moves import GaussianTarget, covers, form_variance, short_moves
from holdfast.channels.drawing import Drawing
from holdfast.errors import InvalidParameter
from holdfast.laws import Gaussian, LevelGaussian
from holdfast.wording.intervals import NOT_PROVED

Ints = NDArray[np.int64]

OUTWARDS = 1e-12
"""By which ends in doubles are moved outwards, beside their size: far more than rounding."""


CANCELLED = 1e-8
"""Relative error of a variance that is a difference of larger ones: more than their rounding."""


def ratio_interval(
    drawing: Drawing, laws: ErrorLaws, counts: Ints, above: Ints, below: Ints, level: float, scale: int, nonnegative: bool
) -> Interval:
    """For scale * above / below."""
    facts = drawing.channel.facts
    if nonnegative:
        check_nonnegative(facts, above, below)
    if any(rounding_room(facts, *_sparse(wanted)) for wanted in (above, below)):
        raise InvalidParameter("These answers were rounded to a grid: ratios of them have no interval. Ask about the two sums.")
    bottom = laws.of(*_sparse(below)).reach(1 - level)
    A, B = (laws.published_sum(counts, *_sparse(wanted)) for wanted in (above, below))
    if bottom.method == "kept":
        if B == 0:
            raise InvalidParameter("The denominator is known to be 0: there is no ratio.")
        top = laws.of(*_sparse(above)).reach(1 - level)
        ends = sorted((Fraction(A - top.reach, B), Fraction(A + top.reach, B)))
        found = Found(ends[0], ends[1], top.method, top.covered)
    elif laws.of(*_sparse(above)).reach(1 - level).method == "kept":
        found = _fixed_numerator(A, B, bottom)
    else:
        found = _fieller(laws, above, below, A, B, 1 - level)
    low, high = found.low, found.high
    if nonnegative:  # of counts neither is below 0, and a part is not above the whole
        most = 1 if (above <= below).all() else math.inf
        low, high = min(max(low, 0), most), min(max(high, 0), most)
    doubt = DOUBT if found.method == "simulated" else 0.0
    published = Fraction(A, B) * scale if B else math.nan
    return Interval(low * scale, high * scale, level, published, found.method, found.covered, doubt)


class Found(NamedTuple):
    low: End
    high: End
    method: Method
    covered: float | None


EVERYTHING = (-math.inf, math.inf)
"""Where the denominator may be 0."""


def _sparse(wanted: Ints) -> tuple[Ints, Ints]:
    cells = np.flatnonzero(wanted)
    return cells, wanted[cells]


def _fixed_numerator(A: int, B: int, bottom: Reach) -> Found:
    """|A - t B| <= |t| reach."""
    if abs(B) <= bottom.reach:
        return Found(*EVERYTHING, bottom.method, bottom.covered)
    ends = sorted((Fraction(A, B - bottom.reach), Fraction(A, B + bottom.reach)))
    return Found(ends[0], ends[1], bottom.method, bottom.covered)


def _fieller(laws: ErrorLaws, above: Ints, below: Ints, A: int, B: int, alpha: float) -> Found:
    sign = 1 if B > 0 else -1
    cells = np.flatnonzero((above != 0) | (below != 0))
    parts = laws.parts(cells, sign * np.stack([above[cells], below[cells]]))
    A, B = sign * A, sign * B
    target = laws.target
    distance = laws.distance(parts)
    known = laws.ask != "simulated" and 2 * distance <= alpha and all(covers(target, shape) for shape, _, _ in parts)
    if known and isinstance(target, Gaussian | LevelGaussian):
        reach, method = gaussian_reach(target, parts, alpha - distance)
        method = "near lattice law" if distance else method
        return Found(*_ends(reach, A, B), method, None)
    if laws.ask == "proved":
        raise InvalidParameter(NOT_PROVED, field="method")
    errors = laws.draws(parts)
    r = rank(1 - alpha, errors.shape[1])
    a, b = errors.astype(np.float64)
    safe = np.abs(b) < B
    ends = np.stack([(A - a) / np.where(safe, B - b, 1.0), (A + a) / np.where(safe, B + b, 1.0)])
    high = float(np.sort(np.where(safe, ends.max(axis=0), math.inf))[r - 1])
    low = float(np.sort(np.where(safe, ends.min(axis=0), -math.inf))[-r])
    return Found(_outwards(low, -1), _outwards(high, 1), "simulated", None)


@dataclass(frozen=True)
class RatioReach:
    """reach(t) = z sd(t) + steps of the lattice, sd(t)^2 the variance of a - t b."""

    z: float
    of_a: float
    of_b: float
    joint: float
    """Variances of a and b, and their covariance."""
    step_a: int = 0
    step_b: int = 0

    def __call__(self, t: float) -> float:
        variance = self.of_a - 2 * t * self.joint + t * t * self.of_b
        rounding = CANCELLED * (self.of_a + t * t * self.of_b)
        return self.z * math.sqrt(max(variance, 0.0) + rounding) + self.step_a + abs(self.joint / self.of_b - t) * self.step_b

    @property
    def slope(self) -> float:
        """Slope of reach(t) far out."""
        return self.z * math.sqrt(self.of_b * (1 + CANCELLED)) + self.step_b


def gaussian_reach(target: GaussianTarget, parts: Sequence[Part], alpha: float) -> tuple[RatioReach, Method]:
    """(reach, by which bound): which one is taken depends on nothing that was published."""

    def variance(row: Callable[[Ints], Ints]) -> float:
        return math.fsum(form_variance(target, shape, row(values)) for shape, _, values in parts)

    of_a, of_b = variance(lambda values: values[0]), variance(lambda values: values[1])
    joint = (variance(lambda values: values[0] + values[1]) - of_a - of_b) / 2
    wide = RatioReach(math.sqrt(2 * math.log(2 / alpha)), of_a, of_b, joint)
    rows, flat = flatness([short_moves(target, shape, values) for shape, _, values in parts])
    narrow = _narrow(wide, rows, flat, alpha) if flat else None
    if narrow is not None and narrow(0.0) <= wide(0.0) and narrow.slope <= wide.slope:
        return narrow, "lattice sum"
    return wide, "sub-Gaussian"


def _narrow(wide: RatioReach, rows: Ints, flat: float, alpha: float) -> RatioReach | None:
    """By the joint law of (a, b): b on multiples of its step, and given b, a on multiples of a step of its own ([theory T143])."""
    from scipy.special import ndtri

    step_b = math.gcd(*rows[:, 1].tolist())
    minors = [int(p[0]) * int(q[1]) - int(p[1]) * int(q[0]) for p, q in itertools.combinations(rows.tolist(), 2)]
    step_a = math.gcd(*minors) // step_b
    given_b = wide.of_a * (1 - CANCELLED) - wide.joint**2 / wide.of_b
    losses = [_wave(given_b / step_a**2), _wave(wide.of_b / step_b**2)]
    if max(losses) > 0.25:
        return None
    flat *= (1 - losses[0]) / (1 + losses[0])
    allowed = alpha * flat / (1 - alpha + alpha * flat)
    one_side = allowed / 2 - sum(loss / (1 - loss) for loss in losses)
    return None if one_side <= 0 else replace(wide, z=float(-ndtri(one_side * (1 - OUTWARDS))), step_a=step_a, step_b=step_b)


def _wave(s_squared: float) -> float:
    """2 sum q^(n^2), q = exp(-2 pi^2 s^2), or more: by how much a sum over integers differs from its integral, as a share of it."""
    q = math.exp(-2 * math.pi**2 * max(s_squared, 0.0) * (1 - 1e-9))
    return 2 * q / (1 - q) if q < 0.5 else math.inf


def _ends(reach: RatioReach, A: int, B: int) -> tuple[float, float]:
    """The ends of {t : |A - t B| <= reach(t)}: reach is convex, so that on each side of A / B there is one crossing."""
    if reach.slope * (1 + OUTWARDS) >= B:
        return EVERYTHING
    middle = A / B
    return -_crossing(reach, middle, B, -1), _crossing(reach, middle, B, 1)


def _crossing(reach: RatioReach, middle: float, B: int, side: int) -> float:
    """side * t for the crossing on this side, found from outside."""
    inside, outside = 0.0, max(1e-12, reach(middle) / B)
    while outside * B <= reach(middle + side * outside):
        inside, outside = outside, 2 * outside
    for _ in range(200):
        half = (inside + outside) / 2
        if not inside < half < outside:
            break
        inside, outside = (half, outside) if half * B <= reach(middle + side * half) else (inside, half)
    return _outwards(side * middle + outside, 1)


def _outwards(end: float, side: int) -> float:
    return end + side * OUTWARDS * abs(end) if math.isfinite(end) else end
