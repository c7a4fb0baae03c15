"""What a budget of one kind gives a mechanism of another: never more than is implied, and hardly less."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.privacy import zcdp_delta_bounds
from holdfast.privacy.exchange import Exchange
from holdfast.privacy.parameters import Asked
from tests.examples import examples

budgets = st.fractions(min_value=Fraction(1, 1000), max_value=20, max_denominator=10**6)


@given(budgets)
def test_epsilon_has_the_rho_that_it_implies(epsilon: Fraction) -> None:
    budget = Exchange(Asked(per="person", epsilon=epsilon))
    assert (budget.epsilon, budget.rho) == (epsilon, epsilon**2 / 2)
    assert not budget.in_rho


@given(budgets)
def test_rho_has_an_epsilon_that_implies_it(rho: Fraction) -> None:
    budget = Exchange(Asked(per="person", rho=rho))
    assert budget.rho == rho
    assert budget.in_rho
    assert budget.epsilon**2 / 2 <= rho < (budget.epsilon * (1 + Fraction(1, 10**8))) ** 2 / 2


@settings(max_examples=examples(30))
@given(st.fractions(min_value=Fraction(1, 20), max_value=8, max_denominator=1000), st.integers(4, 12))
def test_a_pair_has_a_rho_that_implies_it(epsilon: Fraction, digits: int) -> None:
    delta = Fraction(1, 10**digits)
    budget = Exchange(Asked(per="person", epsilon=epsilon, delta=delta))
    assert budget.epsilon == epsilon
    assert zcdp_delta_bounds(budget.rho, epsilon).upper <= delta
    assert zcdp_delta_bounds(budget.rho * Fraction(1001, 1000), epsilon).lower > delta  # and hardly any larger one does
