"""Independent discrete Gaussians along a difference: against enumeration, against one law, and inverted."""

from __future__ import annotations

import itertools
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.errors import InvalidParameter, RequestTooLarge
from holdfast.exact.balls import Enclosure
from holdfast.privacy import discrete_gaussian_delta_bounds, zcdp_delta
from holdfast.research.accounting.lattice_delta import IndependentGaussians, enumerated_delta_bounds, independent_delta_bounds


def meet(a: Enclosure, b: Enclosure) -> bool:
    return a.lower <= b.upper and b.lower <= a.upper


@pytest.mark.parametrize("sigma_squared", ["1/10", "1", "7/3", "200"])
@pytest.mark.parametrize("shift", [1, 2, 5])
def test_one_number_is_theorem_6(sigma_squared: str, shift: int) -> None:
    for epsilon in ("0", "1/10", "1", "4"):
        found = independent_delta_bounds([shift], sigma_squared, epsilon)
        assert meet(found, discrete_gaussian_delta_bounds(sigma_squared, epsilon, shift))
        assert found.upper - found.lower < Fraction(1, 10**60)


@pytest.mark.parametrize("move", [[1, 1], [1, -2], [2, 3], [1, 1, 1], [0, 1, -2, 0]])
@pytest.mark.parametrize("epsilon", ["0", "1/2", "3"])
def test_several_numbers_against_enumeration(move: list[int], epsilon: str) -> None:
    size = len([entry for entry in move if entry])
    identity = [[int(i == j) for j in range(size)] for i in range(size)]
    for sigma_squared in ("1/2", "3"):
        counted = enumerated_delta_bounds(identity, [entry for entry in move if entry], sigma_squared, epsilon)
        assert meet(independent_delta_bounds(move, sigma_squared, epsilon), counted)


def test_signs_and_order_change_nothing() -> None:
    bounds = {independent_delta_bounds(list(order), "5/2", "1/2") for order in itertools.permutations([1, -2, 3])}
    assert all(meet(a, b) for a, b in itertools.combinations(bounds, 2))


@given(
    st.lists(st.integers(min_value=-3, max_value=3), min_size=1, max_size=12).filter(any),
    st.fractions(min_value=Fraction(1, 4), max_value=100, max_denominator=50),
    st.integers(min_value=2, max_value=40),
)
@settings(max_examples=25, deadline=None)
def test_epsilon_is_proved_and_nearly_the_smallest(move: list[int], sigma_squared: Fraction, digits: int) -> None:
    law, delta = IndependentGaussians(move, sigma_squared), Fraction(1, 2**digits)
    epsilon = Fraction(law.epsilon(delta))
    assert law.delta_bounds(epsilon).upper <= delta
    if epsilon:
        assert law.delta_bounds(epsilon * (1 - Fraction(1, 10**12))).upper > delta
    rho = Fraction(law.length_squared) / (2 * sigma_squared)
    assert law.delta_bounds(epsilon).lower <= Fraction(zcdp_delta(rho, epsilon))


def test_refusals_and_sizes() -> None:
    with pytest.raises(InvalidParameter, match="zero"):
        independent_delta_bounds([0, 0], "1", "1")
    with pytest.raises(RequestTooLarge, match="zcdp_delta"):
        independent_delta_bounds([1] * 1000, "10000", "1")
    assert independent_delta_bounds([1, 2], "1", "1e12").upper < Fraction(1, 10**50)
