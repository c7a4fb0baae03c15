"""From concentrated to approximate differential privacy, and the exact delta of the discrete Gaussian. Every result is rounded up.

Legend: t = alpha - 1 > 0, alpha the order of the Renyi divergence. Proposition 7 of [CKS20] says that rho-zCDP gives (epsilon, delta) for

    log delta = inf over t > 0 of g(t),   g(t) = t ((1 + t) rho - epsilon) - t log(1 + 1/t) - log(1 + t),

the same g as in its equation (2), with alpha log(1 - 1/alpha) - log(alpha - 1) = -t log(1 + 1/t) - log(1 + t). Any t gives a valid
delta, so t is found in floats and g is evaluated there in balls: floats decide how sharp the answer is, never whether it holds.

The other side of an enclosure shows how sharp. g is convex with g'(t) = (1 + 2 t) rho - epsilon - log(1 + 1/t); where balls prove
g'(a) < 0 < g'(b), the minimum lies in between and is at least g(a) + g'(a) (b - a).

Solved for epsilon at a given delta, L = log(1/delta):

    epsilon = inf over t > 0 of e(t),   e(t) = (1 + t) rho + (L - log(1 + t)) / t - log(1 + 1/t),   e'(t) = rho - (L - log(1 + t)) / t^2.

e' has the sign of t^2 rho + log(1 + t) - L, which increases from -L to infinity: e falls, then rises. Where L - log(1 + t) > 0 on
[a, b], e' increases there, so that e >= e(a) + e'(a) (b - a) on it, if e'(a) < 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import TypeAlias

from flint import arb

from holdfast.errors import PrecisionExhausted
from holdfast.exact import DiscreteGaussian
from holdfast.exact.balls import Enclosure, ball, enclose_until, enclosure, precision
from holdfast.exact.parameters import Exact, positive_fraction
from holdfast.privacy.parameters import at_least_one, budget, not_negative, probability

PRECISIONS = (160, 640, 2560, 10240)
"""Bits tried in turn until a ball is narrower than NARROW."""
NARROW = Fraction(1, 2**64)
LARGEST_POINT = 2**61
"""Points of a law on the integers stay below this in size."""
LARGE_EPSILON = 10**5
"""Above this e^epsilon is not written out as a rational; leaving out what it multiplies only raises a delta."""

Slope: TypeAlias = Callable[[float], float]


def zcdp_delta(rho: Exact, epsilon: Exact) -> float:
    """The delta that rho-zCDP gives at this epsilon, rounded up.

    Given:       rho > 0, epsilon >= 0, exact.
    Guarantees:  every rho-zCDP mechanism is (epsilon, result)-differentially private.
    Reference:   [CKS20] Proposition 7.
    """
    return min(zcdp_delta_bounds(rho, epsilon).up(), 1.0)


def zcdp_delta_bounds(rho: Exact, epsilon: Exact) -> Enclosure:
    """Encloses the infimum of Proposition 7; the upper end is itself a valid delta."""
    rho, epsilon = budget(rho, "rho"), not_negative(epsilon, "epsilon")
    rate, cost = clamp_to_float(rho), clamp_to_float(epsilon) if epsilon else 0.0
    a, t, b = root(lambda t: (1 + 2 * t) * rate - cost - math.log1p(1 / t))
    upper = narrow(lambda: _log_delta(t, rho, epsilon)).upper
    with precision(PRECISIONS[1]):
        slope = _delta_slope(a, rho, epsilon)
        rises = _delta_slope(b, rho, epsilon) > 0
        bound = _log_delta(a, rho, epsilon) + slope * ball(Fraction(b) - Fraction(a))
        lower = enclosure(bound.exp()).lower if slope < 0 and rises and bound.is_finite() else Fraction(0)
        # delta -> 1 as t -> 0, so the infimum is at most 1 although no t attains it.
        return Enclosure(max(min(lower, Fraction(1)), Fraction(0)), min(enclosure(ball(upper).exp()).upper, Fraction(1)))


def zcdp_epsilon(rho: Exact, delta: Exact) -> float:
    """The epsilon that rho-zCDP gives at this delta, rounded up.

    Given:       rho > 0, 0 < delta < 1, exact.
    Guarantees:  every rho-zCDP mechanism is (result, delta)-differentially private.
    Reference:   [CKS20] Proposition 7, solved for epsilon.
    """
    return zcdp_epsilon_bounds(rho, delta).up() + 0.0  # never -0.0


def zcdp_epsilon_bounds(rho: Exact, delta: Exact) -> Enclosure:
    """Encloses the smallest epsilon >= 0 that Proposition 7 gives; the upper end is itself valid."""
    rho, delta = budget(rho, "rho"), probability(delta, "delta")
    rate, log_inverse = clamp_to_float(rho), -log_of(delta)
    a, t, b = root(lambda t: t * t * rate + math.log1p(t) - log_inverse)
    upper = narrow(lambda: _epsilon(t, rho, delta)).upper
    with precision(PRECISIONS[1]):
        slope = _epsilon_slope(a, rho, delta)
        rises = _epsilon_slope(b, rho, delta) > 0 and _left_over(b, delta) > 0
        bound = _epsilon(a, rho, delta) + slope * ball(Fraction(b) - Fraction(a))
        lower = enclosure(bound).lower if slope < 0 and rises and bound.is_finite() else Fraction(0)
    # Where the formula gives a negative epsilon, 0 is valid: g falls as epsilon grows.
    return Enclosure(max(lower, Fraction(0)), max(upper, Fraction(0)))


def discrete_gaussian_delta(sigma_squared: Exact, epsilon: Exact, sensitivity: int) -> float:
    """The smallest delta of adding discrete Gaussian noise to a whole number of this sensitivity, rounded up.

    Given:       sigma_squared > 0, epsilon >= 0, exact; sensitivity >= 1, an int.
    Guarantees:  the mechanism is (epsilon, result)-differentially private; the true smallest delta is at most the result.
    Reference:   [CKS20] Theorem 6.
    """
    return min(discrete_gaussian_delta_bounds(sigma_squared, epsilon, sensitivity).up(), 1.0)


def discrete_gaussian_delta_bounds(sigma_squared: Exact, epsilon: Exact, sensitivity: int) -> Enclosure:
    """Encloses P[Y > epsilon sigma_squared / D - D/2] - e^epsilon P[Y > epsilon sigma_squared / D + D/2], D the sensitivity."""
    sigma_squared, epsilon = positive_fraction(sigma_squared, "sigma_squared"), not_negative(epsilon, "epsilon")
    sensitivity = at_least_one(sensitivity, "sensitivity")
    law = DiscreteGaussian(sigma_squared)
    middle = epsilon * sigma_squared / sensitivity
    first = math.floor(middle - Fraction(sensitivity, 2)) + 1
    second = math.floor(middle + Fraction(sensitivity, 2)) + 1
    if first >= LARGEST_POINT:  # a tail from a nearer point is larger, and leaving out what is subtracted raises the bound
        return Enclosure(Fraction(0), law.tail_bounds(LARGEST_POINT).upper)
    gain = law.tail_bounds(max(first, -LARGEST_POINT))
    if epsilon > LARGE_EPSILON:
        return Enclosure(Fraction(0), gain.upper)
    loss = law.tail_bounds(second) if second < LARGEST_POINT else Enclosure(Fraction(0), law.tail_bounds(LARGEST_POINT).upper)
    with precision(384):
        factor = enclosure(ball(epsilon).exp())
    lower = gain.lower - factor.upper * loss.upper if first >= -LARGEST_POINT else Fraction(0)
    return Enclosure(max(lower, Fraction(0)), min(max(gain.upper - factor.lower * loss.lower, Fraction(0)), Fraction(1)))


def root(increasing: Slope) -> tuple[float, float, float]:
    """(a, t, b): a float near the root of an increasing function of t > 0, between two others about 2^-40 of it away.

    A float search only: nothing may rest on where the root is.
    """
    low, high = -1000.0, 1000.0
    while True:
        middle = (low + high) / 2
        if not low < middle < high:
            break
        if increasing(2.0**middle) < 0:
            low = middle
        else:
            high = middle
    t = 2.0**high
    return t * (1 - 2.0**-40), t, t * (1 + 2.0**-40)


def clamp_to_float(value: Fraction) -> float:
    """The number as a float that neither overflows nor vanishes; for searches only."""
    return float(min(max(value, Fraction(1, 10**300)), Fraction(10**300)))


def log_of(value: Fraction) -> float:
    """Natural logarithm of a positive rational of any size, as a float; for searches only."""
    return math.log(value.numerator) - math.log(value.denominator)


def narrow(value: Callable[[], arb]) -> Enclosure:
    """Enclose a number, raising the precision until the ball is narrow against 1 or against itself; the last one tried if it never is."""
    found, _ = enclose_until(value, PRECISIONS, lambda it: it.upper - it.lower <= NARROW * max(Fraction(1), abs(it.upper)))
    if found is None:
        raise PrecisionExhausted("A conversion between privacy parameters could not be enclosed. Use parameters of a more ordinary size.")
    return found


def _terms(t: float) -> tuple[arb, arb, arb]:
    """Balls of t, log(1 + 1/t) and log(1 + t); a float is a rational, so t is exact."""
    order = ball(Fraction(t))
    return order, (1 / order).log1p(), order.log1p()


def _log_delta(t: float, rho: Fraction, epsilon: Fraction) -> arb:
    order, log_ratio, log_alpha = _terms(t)
    return order * ((1 + order) * ball(rho) - ball(epsilon)) - order * log_ratio - log_alpha


def _delta_slope(t: float, rho: Fraction, epsilon: Fraction) -> arb:
    order, log_ratio, _ = _terms(t)
    return (1 + 2 * order) * ball(rho) - ball(epsilon) - log_ratio


def _epsilon(t: float, rho: Fraction, delta: Fraction) -> arb:
    order, log_ratio, _ = _terms(t)
    return (1 + order) * ball(rho) + _left_over(t, delta) / order - log_ratio


def _epsilon_slope(t: float, rho: Fraction, delta: Fraction) -> arb:
    order = ball(Fraction(t))
    return ball(rho) - _left_over(t, delta) / (order * order)


def _left_over(t: float, delta: Fraction) -> arb:
    """L - log(1 + t)."""
    return -ball(delta).log() - ball(Fraction(t)).log1p()
