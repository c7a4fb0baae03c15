"""Figures 1 to 3 of [CKS20] as data, and its lemmas on the two laws, with certified enclosures."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import pytest
from flint import arb

from holdfast.exact import DiscreteGaussian, DiscreteLaplace
from holdfast.exact.balls import precision
from holdfast.research.accounting.curves import (
    delta_curve,
    gaussian_delta_bounds,
    laplace_epsilon,
    privacy_at_equal_variance,
    rounded_variance_bounds,
    tail_curve,
    variance_at_equal_privacy,
    variances,
)
from tests.privacy.reference import real


@pytest.mark.parametrize("sigma_squared", ["1/4", "1", "25", "2500"])
def test_figure_1_bounds_lie_above_what_is_exact(sigma_squared: str) -> None:
    scale = math.sqrt(float(Fraction(sigma_squared)))
    points = delta_curve(sigma_squared, [Fraction(k, 10) / Fraction(max(scale, 1)).limit_denominator(100) for k in range(0, 60, 6)])
    for point in points:
        assert point.discrete <= point.optimal <= point.proposition_7 <= point.intermediate <= point.standard
        assert point.continuous <= point.optimal
    assert all(a.proposition_7 >= b.proposition_7 for a, b in itertools.pairwise(points))
    if sigma_squared == "2500":  # "almost identical guarantees for large sigma"
        assert all(point.discrete == pytest.approx(point.continuous, rel=0.03) for point in points[:5])
    if sigma_squared == "1/4":  # "discretization effects become apparent for small sigma"
        assert any(abs(point.discrete / point.continuous - 1) > 0.2 for point in points)


def test_continuous_gaussian_by_erfc() -> None:
    for s2, epsilon, shift in ((4.0, 0.5, 1), (1.0, 1.0, 2), (100.0, 0.25, 3)):
        s = math.sqrt(s2) / shift
        tail = [math.erfc((epsilon * s + sign / (2 * s)) / math.sqrt(2)) / 2 for sign in (-1, 1)]
        found = gaussian_delta_bounds(Fraction(s2), Fraction(epsilon), shift)
        assert float(found.upper) == pytest.approx(tail[0] - math.exp(epsilon) * tail[1], rel=1e-9)


@pytest.mark.parametrize("sigma_squared", ["1/4", "1", "4", "100"])
def test_figure_2_rounded_dominates_discrete(sigma_squared: str) -> None:
    for point in tail_curve(sigma_squared, range(1, 12)):
        assert point.discrete <= point.rounded
    three = variances(sigma_squared)
    assert three.discrete <= three.continuous < three.rounded
    assert rounded_variance_bounds(sigma_squared).lower > Fraction(sigma_squared)
    if Fraction(sigma_squared) >= 1:  # rounding adds a twelfth, and a term that vanishes fast
        assert three.rounded == pytest.approx(float(Fraction(sigma_squared)) + 1 / 12, abs=1e-7 if sigma_squared != "1" else 1e-6)


def test_figure_3_left_laplace_wins_only_below_1e_45() -> None:
    """100 counts with variance 50^2: at every epsilon where the Laplace curve is lower, both are below about 1e-45."""
    assert float(laplace_epsilon(2500)) == pytest.approx(0.0282833, rel=1e-5)
    points = privacy_at_equal_variance([Fraction(k, 1000) for k in range(100, 3000, 10)])
    wins = [point for point in points if point.laplace < point.gaussian]
    assert wins
    assert max(point.gaussian for point in wins) < 1e-44
    loses = [point for point in points if point.laplace > point.gaussian]
    assert min(point.gaussian for point in loses) < 1e-43, "and it loses nearly down to there"
    assert all(a.laplace >= b.laplace and a.gaussian >= b.gaussian for a, b in itertools.pairwise(points))


def test_figure_3_right_laplace_wins_up_to_10_queries() -> None:
    points = variance_at_equal_privacy([1, 2, 5, 9, 10, 11, 12, 20, 50, 100])
    assert [point.queries for point in points if point.laplace < point.gaussian] == [1, 2, 5, 9, 10]
    assert all(point.laplace > 1.5 * point.gaussian for point in points if point.queries >= 20)


GAUSSIANS = ["1/10", "1/2", "1", "7/3", "20", "1000"]


def gaussian_weights(s2: Fraction) -> dict[int, arb]:
    """Weights at 512 bits; what is beyond weighs less than 2^-400 of the total, tilted or not, as used below."""
    reach = 45 * (math.isqrt(math.ceil(s2)) + 1)
    return {k: (-real(Fraction(k * k) / (2 * s2))).exp() for k in range(-reach, reach + 1)}


@pytest.mark.parametrize("sigma_squared", GAUSSIANS)
def test_lemma_8_moment_generating_function(sigma_squared: str) -> None:
    """E e^(tX) <= e^(t^2 s2 / 2), equal where t s2 is whole: there the two agree to 60 digits."""
    s2 = Fraction(sigma_squared)
    with precision(512):
        weights = gaussian_weights(s2)
        total = sum(weights.values(), arb(0))
        for number in ("1/100", "1/2", "1", "-3/2"):
            t = Fraction(number) / max(1, math.isqrt(math.ceil(s2)))
            mean = sum((weight * (real(t) * k).exp() for k, weight in weights.items()), arb(0)) / total
            bound = real(t * t * s2 / 2).exp()
            assert mean <= bound * (1 + real("1e-60"))
        if s2 >= 1:
            mean = sum((weight * (real(1 / s2) * k).exp() for k, weight in weights.items()), arb(0)) / total
            assert abs(mean / real(1 / (2 * s2)).exp() - 1) < real("1e-60")


@pytest.mark.parametrize("sigma_squared", GAUSSIANS)
def test_corollary_9_variance_and_tails(sigma_squared: str) -> None:
    law, s2 = DiscreteGaussian(sigma_squared), Fraction(sigma_squared)
    assert law.variance_bounds().lower <= s2
    assert law.variance_bounds().upper <= s2 * (1 + Fraction(1, 2**50)), "proved up to the width of the enclosure"
    with precision(256):
        for point in range(0, 8 * (math.isqrt(math.ceil(s2)) + 1), max(1, math.isqrt(math.ceil(s2)) // 2)):
            assert real(law.tail_bounds(point).upper) <= (-real(Fraction(point * point) / (2 * s2))).exp()


@pytest.mark.parametrize("epsilon", ["1/50", "1/4", "1", "3"])
def test_lemma_12_discrete_laplace(epsilon: str) -> None:
    law, cost = DiscreteLaplace(1 / Fraction(epsilon)), Fraction(epsilon)
    assert law.mean_bounds().lower <= 0 <= law.mean_bounds().upper
    with precision(512):
        e = real(cost).exp()
        variance = 2 * e / ((e - 1) * (e - 1))
        lower, upper = law.variance_bounds()
        assert variance.overlaps(real(lower).union(real(upper)))
        for m in (1, 2, 5, 40):
            tail = (-real(cost) * (m - 1)).exp() / (e + 1)
            lower, upper = law.tail_bounds(m)
            assert tail.overlaps(real(lower).union(real(upper)))
            left = law.cdf_bounds(-m)
            assert tail.overlaps(real(left.lower).union(real(left.upper)))
        # E |Y| is the sum of P[|Y| >= m]; E e^(x |Y|) from the weights, far enough out to weigh nothing
        reach = math.ceil(700 / cost)
        ratio, scale = (-real(cost)).exp(), (e - 1) / (e + 1)
        absolute, tilted, weight, x = arb(0), arb(1), arb(1), cost / 3
        for k in range(1, reach):
            weight *= ratio
            absolute += 2 * k * weight
            tilted += 2 * weight * (real(x) * k).exp()
        assert abs(scale * absolute - 2 * e / (e * e - 1)) < real("1e-100")
        closed = (e - 1) / (e + 1) * (real(cost - x).exp() + 1) / (real(cost - x).exp() - 1)
        assert abs(scale * tilted - closed) < real("1e-100")
