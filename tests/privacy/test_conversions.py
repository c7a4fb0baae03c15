"""Conversions: against the printed formulas at high precision, rounded up and by no more than a last place or two."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from flint import arb, ctx
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.errors import InexactParameter, InvalidParameter
from holdfast.exact.balls import precision
from holdfast.privacy import (
    discrete_gaussian_delta,
    discrete_gaussian_delta_bounds,
    zcdp_delta,
    zcdp_delta_bounds,
    zcdp_epsilon,
    zcdp_epsilon_bounds,
)
from tests.examples import examples
from tests.privacy.reference import printed_delta, real, smallest_delta

CLOSE = Fraction(1, 10**40)

PAIRS = [
    (Fraction(rho), Fraction(epsilon))
    for rho, epsilon in [
        ("1/1000", "1/100"),
        ("1/1000", "1"),
        ("1/50", "0"),
        ("1/10", "1/2"),
        ("1/2", "3"),
        ("1", "5"),
        ("1", "1/3"),
        ("293764/114921", "17.143551"),
        ("3", "40"),
        ("20", "35"),
        ("1e-9", "1e-3"),
    ]
]


@pytest.mark.parametrize(("rho", "epsilon"), PAIRS)
def test_delta_is_the_printed_infimum_rounded_up_by_a_last_place_at_most(rho: Fraction, epsilon: Fraction) -> None:
    truth = smallest_delta(rho, epsilon)
    result = zcdp_delta(rho, epsilon)
    assert Fraction(result) >= truth * (1 - CLOSE)
    assert Fraction(math.nextafter(math.nextafter(result, 0.0), 0.0)) < truth
    lower, upper = zcdp_delta_bounds(rho, epsilon)
    assert lower <= truth * (1 + CLOSE)
    assert upper >= truth * (1 - CLOSE)
    assert upper - lower <= truth / 10**18


@pytest.mark.parametrize(("rho", "epsilon"), [pair for pair in PAIRS if pair[1]])
def test_epsilon_is_the_inverse_rounded_up(rho: Fraction, epsilon: Fraction) -> None:
    """At the delta that epsilon truly has, raised or lowered by 10^-20 of itself, the smallest epsilon lies below or above it."""
    truth = smallest_delta(rho, epsilon)
    easier, harder = truth * (1 + Fraction(1, 10**20)), truth * (1 - Fraction(1, 10**20))
    assert zcdp_epsilon_bounds(rho, easier).lower <= epsilon
    bounds = zcdp_epsilon_bounds(rho, harder)
    assert bounds.upper >= epsilon
    assert bounds.upper - bounds.lower <= Fraction(1, 10**18) * (1 + epsilon)
    result = zcdp_epsilon(rho, harder)
    assert Fraction(result) >= epsilon
    assert Fraction(result) <= epsilon * (1 + Fraction(1, 10**12)) + Fraction(1, 10**12)


def test_no_order_on_a_dense_grid_does_better() -> None:
    """Each order gives a valid delta, so none may lie below the proved lower end, and the best of many is near the result."""
    for rho, epsilon in PAIRS:
        lower, upper = zcdp_delta_bounds(rho, epsilon)
        with precision(200):
            values = [printed_delta(1 + real(Fraction(k, 400)).exp(), real(rho), real(epsilon)) for k in range(-2000, 6000)]
            assert all(value.upper() >= real(lower).lower() for value in values)
            finite = [value for value in values if value.is_finite()]
            best = min(finite, key=lambda value: float(value.log().mid()))
            assert best <= real(upper) * real("1.01")


def test_the_census_value() -> None:
    result = zcdp_epsilon(Fraction(542, 339) ** 2, "1e-10")
    assert f"{result:.6f}" == "17.143551"


@pytest.mark.parametrize(
    ("rho", "epsilon", "low", "high"),
    [
        ("1e-300", "1", 0.0, 5e-324),
        ("1", "1e300", 0.0, 5e-324),
        ("1e300", "1", 1.0, 1.0),
        ("100", "1", 0.9999, 1.0),
        ("1e-390", "1e-390", 0, 1),
    ],
)
def test_extreme_sizes_stay_within_zero_and_one(rho: str, epsilon: str, low: float, high: float) -> None:
    assert low <= zcdp_delta(rho, epsilon) <= high


@pytest.mark.parametrize(("rho", "delta"), [("1e-300", "1e-10"), ("1e-5", "0.9")])
def test_epsilon_is_never_negative(rho: str, delta: str) -> None:
    assert str(zcdp_epsilon(rho, delta)) == "0.0"


positive = st.fractions(min_value=Fraction(1, 10**6), max_value=50, max_denominator=10**6)
chances = st.integers(min_value=1, max_value=60).map(lambda k: Fraction(1, 2**k))


@given(positive, positive, positive)
@settings(max_examples=examples(60))
def test_delta_rises_with_rho_and_falls_with_epsilon(rho: Fraction, more: Fraction, epsilon: Fraction) -> None:
    assert zcdp_delta_bounds(rho, epsilon).lower <= zcdp_delta_bounds(rho + more, epsilon).upper
    assert zcdp_delta_bounds(rho, epsilon + more).lower <= zcdp_delta_bounds(rho, epsilon).upper
    assert zcdp_delta(rho, epsilon + more) <= zcdp_delta(rho, epsilon)


@given(positive, chances)
@settings(max_examples=examples(60))
def test_there_and_back(rho: Fraction, delta: Fraction) -> None:
    epsilon = zcdp_epsilon(rho, delta)
    bounds = zcdp_delta_bounds(rho, Fraction(epsilon))
    assert bounds.lower <= delta
    assert bounds.upper <= delta * (1 + Fraction(1, 10**9))
    if epsilon > 0:
        assert zcdp_delta_bounds(rho, Fraction(epsilon) * (1 - Fraction(1, 10**12))).upper > delta


def by_definition(sigma_squared: Fraction, epsilon: Fraction, shift: int) -> arb:
    """Sum over y of the positive part of P[Y = y] - e^epsilon P[Y + shift = y], at flint's precision; points beyond weigh nothing here."""
    reach = 60 + 40 * math.isqrt(math.ceil(sigma_squared))
    weight = {y: (-real(Fraction(y * y) / (2 * sigma_squared))).exp() for y in range(-reach - shift, reach + shift + 1)}
    total = sum(weight.values(), arb(0))
    gaps = [weight[y] - real(epsilon).exp() * weight[y - shift] for y in range(-reach, reach + 1)]
    return sum((gap for gap in gaps if gap > 0), arb(0)) / total


@pytest.mark.parametrize("sigma_squared", ["1/10", "1/2", "1", "7/3", "20"])
@pytest.mark.parametrize("epsilon", ["0", "1/10", "1", "4"])
def test_exact_delta_agrees_with_the_definition(sigma_squared: str, epsilon: str) -> None:
    last = Fraction(0)
    for shift in (1, 2, 3, 5):
        before, ctx.prec = ctx.prec, 600
        truth = by_definition(Fraction(sigma_squared), Fraction(epsilon), shift)
        lower, upper = discrete_gaussian_delta_bounds(sigma_squared, epsilon, shift)
        assert truth.overlaps(real(lower).union(real(upper)))
        ctx.prec = before
        result = discrete_gaussian_delta(sigma_squared, epsilon, shift)
        assert Fraction(result) >= lower
        assert Fraction(result) <= upper + max(upper, Fraction(1, 10**300)) / 10**15
        assert upper >= last, "a larger shift must not be easier: Theorem 6 speaks of sensitivity at most D"
        last = lower


@given(
    st.fractions(min_value=Fraction(1, 5), max_value=2000, max_denominator=1000),
    st.fractions(min_value=Fraction(1, 100), max_value=8, max_denominator=1000),
    st.integers(min_value=1, max_value=6),
)
@settings(max_examples=examples(40))
def test_proposition_7_is_never_below_the_exact_delta(sigma_squared: Fraction, epsilon: Fraction, sensitivity: int) -> None:
    bound = zcdp_delta_bounds(sensitivity**2 / (2 * sigma_squared), epsilon)
    exact = discrete_gaussian_delta_bounds(sigma_squared, epsilon, sensitivity)
    assert exact.lower <= bound.upper


def test_points_beyond_the_machine_give_a_bound_all_the_same() -> None:
    assert discrete_gaussian_delta("1e30", "1e10", 1) <= 5e-324
    assert discrete_gaussian_delta(1, 1, 2**61) == 1.0
    assert discrete_gaussian_delta("1e34", "1e3", 3) < 1e-100


@pytest.mark.parametrize("call", [zcdp_delta, zcdp_epsilon])
def test_floats_are_refused_with_the_string_to_write(call) -> None:
    with pytest.raises(InexactParameter, match=r"'0\.1'"):
        call(0.1, "1e-5")
    with pytest.raises(InexactParameter, match=r"'0\.5'"):
        call("0.1", 0.5)


@pytest.mark.parametrize("delta", [0, 1, "3/2", "-1e-5"])
def test_delta_lies_strictly_between_zero_and_one(delta: object) -> None:
    with pytest.raises(InvalidParameter, match="strictly between 0 and 1"):
        zcdp_epsilon(1, delta)  # type: ignore[arg-type]


def test_other_bad_parameters() -> None:
    with pytest.raises(InvalidParameter, match="budget of zero publishes nothing"):
        zcdp_delta(0, 1)
    with pytest.raises(InvalidParameter, match="epsilon must be zero or more"):
        zcdp_delta(1, -1)
    with pytest.raises(InvalidParameter, match="sensitivity must be a whole number"):
        discrete_gaussian_delta(1, 1, 0)
    with pytest.raises(InvalidParameter, match="sensitivity must be an int"):
        discrete_gaussian_delta(1, 1, "2")  # type: ignore[arg-type]
