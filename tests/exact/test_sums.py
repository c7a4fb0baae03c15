"""Certified probabilities, tails and moments against slow sums, closed forms and each other."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.exact import DiscreteGaussian, DiscreteLaplace, Geometric, sums
from holdfast.exact.balls import enclosure, precision
from holdfast.exact.sums import moment_sums
from holdfast.research.laws import Bernoulli, BernoulliExp, UniformInteger, Weighted
from tests.examples import examples

from .reference import log_weight_gaussian, log_weight_laplace, probabilities, weights

SLACK = Fraction(1, 10**50)


@settings(max_examples=examples(40))
@given(
    st.fractions(min_value=Fraction(1, 1000), max_value=30, max_denominator=1000),
    st.fractions(min_value=-2, max_value=2, max_denominator=30),
    st.integers(-9, 9),
)
def test_gaussian_probabilities_enclose_slow_ones(sigma_squared: Fraction, center: Fraction, k: int) -> None:
    law = DiscreteGaussian(sigma_squared, center)
    with precision(600):
        slow = weights(log_weight_gaussian(sigma_squared, center), -220, 220)
        total = sum(slow.values(), arb(0))
        for ours, theirs in (
            (law.pmf_bounds(k), slow[k] / total),
            (law.tail_bounds(k), sum((slow[j] for j in range(k, 221)), arb(0)) / total),
            (law.cdf_bounds(k), sum((slow[j] for j in range(-220, k + 1)), arb(0)) / total),
        ):
            low, high = enclosure(theirs)
            assert ours.lower <= high + SLACK
            assert low - SLACK <= ours.upper
            assert ours.upper - ours.lower <= SLACK
            assert ours.down() <= ours.lower <= ours.upper <= ours.up()


@given(st.fractions(min_value=Fraction(1, 20), max_value=50, max_denominator=20))
def test_laplace_moments_have_their_closed_form(scale: Fraction) -> None:
    a = math.exp(-1 / scale)
    law = DiscreteLaplace(scale)
    assert law.variance() == pytest.approx(2 * a / (1 - a) ** 2, rel=1e-10)
    assert law.pmf(0) == pytest.approx((1 - a) / (1 + a), rel=1e-10)
    assert law.mean() == 0.0
    assert Geometric(scale).variance() == pytest.approx(a / (1 - a) ** 2, rel=1e-10)


def test_published_values() -> None:
    """[theory T53]: Var of the standard discrete Gaussian; [CKS20] says it is below 1."""
    law = DiscreteGaussian(1)
    assert abs(law.variance() - 0.9999997887677) < 1e-13
    low, high = law.variance_bounds()
    assert low <= high < 1
    assert DiscreteGaussian(100).variance() == 100.0


def test_float_rounding_goes_the_stated_way() -> None:
    third = Bernoulli("1/3").pmf_bounds(1)
    assert Fraction(third.down()) < Fraction(1, 3) < Fraction(third.up())
    assert third.up() == math.nextafter(third.down(), 1)


@pytest.mark.parametrize("power", [0, 1, 2])
@pytest.mark.parametrize(("begin", "end"), [(0, None), (0, 3000), (700, None), (2500, None), (100, 900)])
@pytest.mark.parametrize("center", ["0", "1/3"])
def test_euler_maclaurin_encloses_the_sum(monkeypatch: pytest.MonkeyPatch, power: int, begin: int, end: int | None, center: str) -> None:
    """The wide formula on a law narrow enough to add term by term; far tails keep their relative accuracy."""
    segment = DiscreteGaussian(90_000, center).arms.right[0]
    with precision(384):
        slow = enclosure(moment_sums(segment, begin, end)[power])
        monkeypatch.setattr(sums, "MAX_TERMS", 0)
        fast = enclosure(moment_sums(segment, begin, end)[power])
    assert fast.lower <= slow.upper
    assert slow.lower <= fast.upper
    assert fast.upper - fast.lower <= Fraction(1, 10**12) * slow.upper
    assert fast.upper - fast.lower > slow.upper - slow.lower, "the remainder bound vanished: was the wide formula used?"


@pytest.mark.parametrize(
    "law",
    [
        DiscreteGaussian("7/3", "1/5", lower=-2, upper=6, tilt="1/9"),
        DiscreteGaussian(2, lower=1),
        DiscreteLaplace("5/2", lower=-3, upper=8, tilt=1),
        DiscreteLaplace("5/2", lower=-3, tilt="-1"),
        DiscreteLaplace(2, lower=-2, upper=9, tilt="1/2"),
        Geometric(3, upper=7),
        Weighted({-1: "1/3", 2: "1/2", 5: 3}),
        BernoulliExp("2/3"),
        UniformInteger(-4, 9),
    ],
)
def test_probabilities_moments_and_tails_agree_with_each_other(law) -> None:
    points = range(-40, 80)
    chance = {k: law.pmf_bounds(k) for k in points}
    total = sum(c.lower for c in chance.values()), sum(c.upper for c in chance.values())
    outside = law.tail_bounds(80).upper + law.cdf_bounds(-41).upper
    assert total[0] <= 1 <= total[1] + outside
    assert total[1] - total[0] < SLACK
    mean = sum(k * c.lower for k, c in chance.items())
    slack = float(SLACK) + 1e-9
    assert law.mean() == pytest.approx(float(mean), abs=slack)
    assert law.variance() == pytest.approx(float(sum((k - mean) ** 2 * c.lower for k, c in chance.items())), abs=slack)
    for k in range(-5, 12):
        beyond = sum(c.lower for j, c in chance.items() if j >= k)
        assert abs(beyond - law.tail_bounds(k).lower) <= SLACK + law.tail_bounds(80).upper
        assert abs(1 - beyond - law.cdf_bounds(k - 1).lower) <= 2 * SLACK + law.tail_bounds(80).upper


def test_wide_truncated_moments_agree_with_integrals() -> None:
    """Half a wide Gaussian: mean sigma sqrt(2/pi), to the order of one cell."""
    law = DiscreteGaussian(10**18, lower=0)
    assert law.mean() == pytest.approx(1e9 * math.sqrt(2 / math.pi), rel=1e-8)
    assert law.variance() == pytest.approx(1e18 * (1 - 2 / math.pi), rel=1e-8)
    assert law.tail_bounds(30 * 10**9).up() == pytest.approx(math.erfc(30 / math.sqrt(2)), rel=1e-6)


def test_reference_itself_sums_to_one() -> None:
    assert math.fsum(probabilities(log_weight_laplace(Fraction(3)), -150, 150).values()) == pytest.approx(1, abs=1e-12)
    assert np.isclose(DiscreteLaplace(3).pmf(2), probabilities(log_weight_laplace(Fraction(3)), -150, 150)[2], rtol=1e-14)
