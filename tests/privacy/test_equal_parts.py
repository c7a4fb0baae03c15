"""Optimal composition: against the printed formula, against full enumeration of randomized responses, rounded up."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.errors import InvalidParameter, RequestTooLarge
from holdfast.exact.balls import precision
from holdfast.privacy import (
    optimal_composition,
    optimal_composition_bounds,
    optimal_composition_delta,
    optimal_composition_delta_bounds,
)
from tests.examples import examples
from tests.privacy.reference import real


def printed_excess(epsilon: Fraction, k: int, total: arb) -> arb:
    """(1 + e^epsilon)^-k sum of C(k, l) max(0, e^(l epsilon) - e^(total + (k - l) epsilon)), as [CKS20] prints it."""
    e = real(epsilon)
    terms = [math.comb(k, l) * ((l * e).exp() - (total + (k - l) * e).exp()).max(arb(0)) for l in range(k + 1)]
    return sum(terms, arb(0)) / (1 + e.exp()) ** k


def enumerated_delta(epsilons: list[Fraction], total: arb) -> arb:
    """The delta of independent randomized responses with these epsilons: all 2^k outcomes."""
    delta = arb(0)
    for outcome in itertools.product((1, -1), repeat=len(epsilons)):
        p = q = arb(1)
        for sign, epsilon in zip(outcome, epsilons, strict=True):
            p = p / (1 + (-sign * real(epsilon)).exp())
            q = q / (1 + (sign * real(epsilon)).exp())
        delta += (p - total.exp() * q).max(arb(0))
    return delta


@pytest.mark.parametrize(
    ("epsilon", "delta", "k", "total"),
    [
        ("1/10", 0, 10, "1e-6"),
        ("1/10", 0, 100, "1e-6"),
        ("1/2", 0, 1, "1/10"),
        ("1", "1e-8", 30, "1e-6"),
        ("2", "1/100", 5, "1/5"),
        ("1/100", 0, 400, "1e-30"),
        ("3", 0, 7, "1e-20"),
    ],
)
def test_epsilon_is_where_the_printed_condition_turns(epsilon: str, delta: str | int, k: int, total: str) -> None:
    lower, upper = optimal_composition_bounds(epsilon, delta, k, total)
    assert upper - lower < Fraction(1, 10**60)
    with precision(600):
        allowed = 1 - real(1 - Fraction(total)) / real(1 - Fraction(delta)) ** k
        nudge = Fraction(1, 10**50)
        assert printed_excess(Fraction(epsilon), k, real(upper + nudge)) <= allowed
        assert printed_excess(Fraction(epsilon), k, real(lower - nudge)) > allowed
    result = optimal_composition(epsilon, delta, k, total)
    assert Fraction(result) >= lower
    assert Fraction(math.nextafter(math.nextafter(result, 0), 0)) < upper


@pytest.mark.parametrize("epsilon", ["1/10", "1", "3"])
@pytest.mark.parametrize("k", [1, 2, 5, 8])
@pytest.mark.parametrize("total", ["0", "1/4", "1", "2"])
def test_delta_is_that_of_randomized_response(epsilon: str, k: int, total: str) -> None:
    lower, upper = optimal_composition_delta_bounds(epsilon, 0, k, total)
    with precision(320):
        truth = enumerated_delta([Fraction(epsilon)] * k, real(total))
        assert truth.overlaps(real(lower).union(real(upper)))
    assert Fraction(optimal_composition_delta(epsilon, 0, k, total)) >= lower


def test_one_promise_is_itself() -> None:
    assert optimal_composition("1/4", "1e-6", 1, "1e-6") == 0.25
    assert optimal_composition("1/4", 0, 1, 0) == 0.25
    assert optimal_composition("1/4", 0, 8, 0) == 2.0
    assert optimal_composition(0, 0, 8, 0) == 0.0


parts = st.fractions(min_value=Fraction(1, 1000), max_value=3, max_denominator=1000)
chances = st.integers(min_value=2, max_value=80).map(lambda k: Fraction(1, 2**k))


@given(parts, parts, st.integers(min_value=1, max_value=40), chances)
@settings(max_examples=examples(60), deadline=None)
def test_monotone_and_never_above_the_sum(epsilon: Fraction, more: Fraction, k: int, delta: Fraction) -> None:
    result = optimal_composition_bounds(epsilon, 0, k, delta)
    assert result.upper <= k * epsilon
    assert result.lower <= optimal_composition_bounds(epsilon + more, 0, k, delta).upper
    assert result.lower <= optimal_composition_bounds(epsilon, 0, k + 1, delta).upper
    assert result.lower <= optimal_composition_bounds(epsilon, 0, k, delta / 2).upper
    assert result.lower <= optimal_composition_bounds(epsilon, delta / (2 * k), k, delta).upper
    back = optimal_composition_delta_bounds(epsilon, 0, k, result.upper)
    assert back.lower <= delta


def test_refusals() -> None:
    with pytest.raises(InvalidParameter, match="together at the least"):
        optimal_composition("1/4", "1e-6", 10, "5e-6")
    with pytest.raises(InvalidParameter):
        optimal_composition("1/4", 0, 0, "1e-6")
    with pytest.raises(InvalidParameter):
        optimal_composition("-1", 0, 2, "1e-6")
    with pytest.raises(InvalidParameter):
        optimal_composition("1", 0, 2, 1)
    with pytest.raises(RequestTooLarge):
        optimal_composition("1/4", 0, 10**9, "1e-6")
