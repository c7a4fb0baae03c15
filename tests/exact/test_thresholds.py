"""Thresholds are the true floors: checked against one exponential per point at a higher precision, and against exact rationals."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.exact import DiscreteGaussian, DiscreteLaplace
from holdfast.exact.balls import fixed_point, precision
from holdfast.exact.law import ArmsLaw
from holdfast.exact.table import Thresholds, certified_thresholds
from holdfast.exact.weights import ArmsSource, ListedSource
from holdfast.research.laws import BallSource
from tests.examples import examples

from .reference import log_weight_gaussian, log_weight_laplace, weights

parameters = st.fractions(min_value=Fraction(1, 50), max_value=12, max_denominator=60)
centers = st.fractions(min_value=-3, max_value=3, max_denominator=12)
tilts = st.fractions(min_value=-1, max_value=1, max_denominator=9)
bounds = st.tuples(st.none() | st.integers(-12, 2), st.none() | st.integers(3, 12))


def check_against_reference(law: ArmsLaw, log_weight, bits: int, window: int) -> None:
    """Every threshold lies in the cell of the slow cumulative sum; points left out could not be told apart."""
    lower = -window if law.arms.lower is None else law.arms.lower
    upper = window if law.arms.upper is None else law.arms.upper
    made = certified_thresholds(ArmsSource(law.arms), bits)
    with precision(600):
        slow = weights(log_weight, lower, upper)
        total = sum(slow.values(), arb(0))
        cumulative = arb(0)
        expected = {}
        for k in range(lower, upper + 1):
            cumulative += slow[k]
            low, high = fixed_point(cumulative / total, bits + 100)
            # the window's own cut and an exact half are worth at most one unit of 2^-100 here
            expected[k] = {min(max(end, 0) >> 100, 2**bits - 1) for end in (low - 1, high + 1)}
    for i, (low, high) in enumerate(zip(made.lows, made.values, strict=True)):
        k = made.first + i
        assert low in expected[k], (law, k, low, expected[k])
        assert high in expected[k], (law, k, high, expected[k])
    assert made.values == sorted(made.values)
    assert made.lows == sorted(made.lows)
    assert made.values[-1] == 2**bits - 1
    assert all(expected[k] == {0} for k in range(lower, made.first)), "a point told apart by these bits is missing on the left"
    for k in range(made.first + len(made.values) - 1, upper + 1):
        assert max(expected[k]) == 2**bits - 1, "a point told apart by these bits is missing on the right"


@settings(max_examples=examples(60))
@given(parameters, centers, tilts, bounds, st.sampled_from([12, 40, 64]))
def test_gaussian_thresholds_are_the_true_floors(sigma_squared, center, tilt, edges, bits) -> None:
    law = DiscreteGaussian(sigma_squared, center, lower=edges[0], upper=edges[1], tilt=tilt)
    check_against_reference(law, log_weight_gaussian(sigma_squared, center, tilt), bits, 140)


@settings(max_examples=examples(60))
@given(st.fractions(min_value=Fraction(1, 50), max_value=4, max_denominator=60), tilts, bounds, st.sampled_from([12, 40, 64]))
def test_laplace_thresholds_are_the_true_floors(scale, tilt, edges, bits) -> None:
    lower, upper = edges
    if (lower is None or upper is None) and abs(tilt) * scale > Fraction(1, 2):
        tilt = Fraction(0)
    law = DiscreteLaplace(scale, lower=lower, upper=upper, tilt=tilt)
    check_against_reference(law, log_weight_laplace(scale, tilt), bits, 1200)


@pytest.mark.parametrize("tilt", ["0", "3", "-3", "1/2", "-1/2"])
@pytest.mark.parametrize("edges", [(-4, 7), (2, 9), (-9, -2), (0, 5), (-5, 0), (3, 3)])
def test_tilts_beyond_the_rate_with_bounds(tilt: str, edges: tuple[int, int]) -> None:
    """With bounds a tilt may exceed 1/scale (and equal it: flat); the mode then sits at a bound and the kink at 0 stays."""
    law = DiscreteLaplace(2, lower=edges[0], upper=edges[1], tilt=tilt)
    check_against_reference(law, log_weight_laplace(Fraction(2), Fraction(tilt)), 64, 0)


@given(
    st.lists(st.fractions(min_value=0, max_value=5, max_denominator=20), min_size=1, max_size=20).filter(any), st.sampled_from([3, 8, 64])
)
def test_listed_weights_give_exact_rational_floors(listed: list[Fraction], bits: int) -> None:
    made = certified_thresholds(ListedSource(-2, listed), bits)
    total = sum(listed)
    for i, value in enumerate(made.values[:-1]):
        assert value == math.floor(sum(listed[: made.first + 2 + i + 1]) / total * 2**bits)
    assert made.values[-1] == 2**bits - 1


def test_a_half_that_balls_cannot_certify_keeps_both_floors() -> None:
    made = certified_thresholds(ArmsSource(DiscreteGaussian(5, "1/2").arms), 64)
    assert (made.lows[-made.first], made.values[-made.first]) == (2**63 - 1, 2**63)  # F(0) = 1/2
    assert sum(low != high for low, high in zip(made.lows, made.values, strict=True)) == 1
    truncated = certified_thresholds(ArmsSource(DiscreteGaussian(5, "1/2", lower=-100, upper=10**6).arms), 64)  # 1/2 - e^-1000
    assert truncated.values[-truncated.first] - truncated.lows[-truncated.first] <= 1
    # tilting a centred law by 1/(2 sigma_squared) moves its centre to 1/2: the same law
    assert certified_thresholds(ArmsSource(DiscreteGaussian(5, 0, tilt="1/10").arms), 64) == made


def test_a_flat_law_is_exact() -> None:
    made = certified_thresholds(ArmsSource(DiscreteLaplace(2, lower=0, upper=3, tilt="1/2").arms), 64)
    expected = [2**62, 2**63, 3 * 2**62, 2**64 - 1]
    assert made == Thresholds(0, 64, expected, expected)


def test_balls_and_rationals_agree() -> None:
    listed = [Fraction(1, 3), Fraction(2, 7), Fraction(5, 11)]
    source = BallSource(0, 2, lambda k: arb(listed[k].numerator) / listed[k].denominator)
    assert certified_thresholds(source, 64) == certified_thresholds(ListedSource(0, listed), 64)
