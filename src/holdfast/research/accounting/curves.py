"""The figures of [CKS20] as data: what the discrete Gaussian promises and costs, beside its rivals. Probabilities are rounded up.

Figure 1: delta as a function of epsilon, for one query. Figure 2: tails and variances. Figure 3: k queries, discrete Gaussian against
discrete Laplace, at equal variance (left) and at equal privacy (right).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from typing import NamedTuple

from flint import arb

from holdfast.exact import DiscreteGaussian, Enclosure
from holdfast.exact.balls import ball, enclosure, precision
from holdfast.exact.parameters import Exact, exact_integer, positive_fraction
from holdfast.privacy.calibration import pair_sigma_squared
from holdfast.privacy.conversions import discrete_gaussian_delta, zcdp_delta
from holdfast.privacy.equal_parts import optimal_composition_delta
from holdfast.privacy.parameters import budget, not_negative, probability
from holdfast.research.accounting.optimal import zcdp_delta_intermediate, zcdp_delta_optimal, zcdp_delta_standard

BITS = 512


class DeltaPoint(NamedTuple):
    """Figure 1 at one epsilon: what is exact for the two laws, then what rho alone gives, from the weakest bound to the best."""

    epsilon: Fraction
    discrete: float
    continuous: float
    standard: float
    intermediate: float
    proposition_7: float
    optimal: float


class TailPoint(NamedTuple):
    """Figure 2 at one m: P[X >= m]."""

    m: int
    continuous: float
    discrete: float
    rounded: float


class Variances(NamedTuple):
    """Figure 2: variances of the three laws with one sigma_squared."""

    continuous: float
    discrete: float
    rounded: float


class PrivacyPoint(NamedTuple):
    """Figure 3, left: delta of k queries at one epsilon."""

    epsilon: Fraction
    gaussian: float
    laplace: float


class UtilityPoint(NamedTuple):
    """Figure 3, right: variance of each of k answers."""

    queries: int
    gaussian: float
    laplace: float


def delta_curve(sigma_squared: Exact, epsilons: Iterable[Exact], sensitivity: int = 1) -> list[DeltaPoint]:
    """Figure 1: one query of this sensitivity with Gaussian noise."""
    variance, reach = positive_fraction(sigma_squared, "sigma_squared"), exact_integer(sensitivity, "sensitivity")
    rho = Fraction(reach * reach) / (2 * variance)
    points = []
    for value in epsilons:
        epsilon = not_negative(value, "epsilon")
        points.append(
            DeltaPoint(
                epsilon,
                discrete_gaussian_delta(variance, epsilon, reach),
                min(gaussian_delta_bounds(variance, epsilon, reach).up(), 1.0),
                zcdp_delta_standard(rho, epsilon),
                zcdp_delta_intermediate(rho, epsilon),
                zcdp_delta(rho, epsilon),
                zcdp_delta_optimal(rho, epsilon),
            )
        )
    return points


def gaussian_delta_bounds(sigma_squared: Exact, epsilon: Exact, sensitivity: int = 1) -> Enclosure:
    """Encloses the smallest delta of CONTINUOUS Gaussian noise (Balle and Wang): P[X > e s - 1/(2 s)] - e^epsilon P[X > e s + 1/(2 s)].

    Law:  X standard normal, s = sigma / sensitivity, e = epsilon. For comparison: no such noise is drawn here.
    """
    variance, epsilon = positive_fraction(sigma_squared, "sigma_squared"), not_negative(epsilon, "epsilon")
    with precision(BITS):
        s = ball(variance).sqrt() / sensitivity
        middle, half = ball(epsilon) * s, 1 / (2 * s)
        lower, upper = enclosure(_normal_tail(middle - half) - ball(epsilon).exp() * _normal_tail(middle + half))
    return Enclosure(max(lower, Fraction(0)), min(max(upper, Fraction(0)), Fraction(1)))


def tail_curve(sigma_squared: Exact, points: Iterable[int]) -> list[TailPoint]:
    """Figure 2, tails: P[X >= m] for the continuous, the discrete and the rounded Gaussian (rounded to the nearest whole number)."""
    variance = positive_fraction(sigma_squared, "sigma_squared")
    law, out = DiscreteGaussian(variance), []
    for point in points:
        m = exact_integer(point, "m")
        with precision(BITS):
            sigma = ball(variance).sqrt()
            plain, rounded = (enclosure(_normal_tail(ball(x) / sigma)).up() for x in (Fraction(m), Fraction(2 * m - 1, 2)))
        out.append(TailPoint(m, plain, law.tail_bounds(m).up(), rounded))
    return out


def variances(sigma_squared: Exact) -> Variances:
    """Figure 2, variances, rounded up."""
    variance = positive_fraction(sigma_squared, "sigma_squared")
    return Variances(
        Enclosure(variance, variance).up(), DiscreteGaussian(variance).variance_bounds().up(), rounded_variance_bounds(variance).up()
    )


def rounded_variance_bounds(sigma_squared: Exact) -> Enclosure:
    """Encloses the variance of the rounded Gaussian: 2 sum over m >= 1 of (2 m - 1) P[X >= (m - 1/2) / sigma].

    The rest after m = M, with P[X >= x] <= e^(-x^2/2) / 2, is below the integral of 2 x e^(-x^2 / (2 s2)) from M - 1/2, which is
    2 s2 e^(-(M - 1/2)^2 / (2 s2)), as the integrand falls from sigma on.
    """
    variance = positive_fraction(sigma_squared, "sigma_squared")
    last = math.isqrt(math.ceil(200 * variance)) + 2
    with precision(BITS):
        sigma = ball(variance).sqrt()
        total = sum(((2 * m - 1) * _normal_tail(ball(Fraction(2 * m - 1, 2)) / sigma) for m in range(1, last + 1)), arb(0))
        rest = 2 * ball(variance) * (-ball(Fraction((2 * last - 1) ** 2, 8) / variance)).exp()
        return enclosure(2 * total + arb(0).union(rest))


def privacy_at_equal_variance(epsilons: Iterable[Exact], queries: int = 100, variance: Exact = 2500) -> list[PrivacyPoint]:
    """Figure 3, left: `queries` counts, each with noise of this variance, as (epsilon, delta).

    Gaussian: sigma_squared = variance (the discrete law's own variance is at most that), rho = k / (2 sigma_squared), Proposition 7.
    Laplace: the scale with 2 e^a / (e^a - 1)^2 = variance, and the optimal composition.
    """
    spread, k = positive_fraction(variance, "variance"), exact_integer(queries, "queries")
    single, rho = laplace_epsilon(spread), Fraction(k) / (2 * spread)
    return [
        PrivacyPoint(epsilon, zcdp_delta(rho, epsilon), optimal_composition_delta(single, 0, k, epsilon))
        for epsilon in (not_negative(value, "epsilon") for value in epsilons)
    ]


def laplace_epsilon(variance: Exact) -> Fraction:
    """The a with 2 e^a / (e^a - 1)^2 = variance, rounded up to a double: e^a = (V + 1 + sqrt(2 V + 1)) / V."""
    spread = positive_fraction(variance, "variance")
    with precision(BITS):
        return Fraction(enclosure(((ball(spread + 1) + ball(2 * spread + 1).sqrt()) / ball(spread)).log()).up())


def variance_at_equal_privacy(queries: Iterable[int], epsilon: Exact = 1, delta: Exact = "1e-6") -> list[UtilityPoint]:
    """Figure 3, right: the variance of each of k answers that are (epsilon, delta)-differentially private together."""
    cost, chance = budget(epsilon, "epsilon"), probability(delta, "delta")
    out = []
    for number in queries:
        k = exact_integer(number, "queries")
        gaussian = DiscreteGaussian(pair_sigma_squared(cost, chance, k)).variance_bounds().up()
        single = float(_largest_single(cost, chance, k))
        out.append(UtilityPoint(k, gaussian, 2 * math.exp(single) / math.expm1(single) ** 2))
    return out


def _largest_single(epsilon: Fraction, delta: Fraction, k: int) -> Fraction:
    """The largest pure epsilon, to about 2^-40 of itself and from below, of which k compose to (epsilon, delta)."""
    low, high = epsilon / k, epsilon + 1 / Fraction(1)
    for _ in range(45):
        middle = Fraction(float((low + high) / 2))
        if Fraction(optimal_composition_delta(middle, 0, k, epsilon)) <= delta:
            low = middle
        else:
            high = middle
    return low


def _normal_tail(x: arb) -> arb:
    return (x / arb(2).sqrt()).erfc() / 2
