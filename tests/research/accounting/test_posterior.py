"""Posterior statements: sharp for pairs, the theorem's condition needed, the counter-example exact."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import InvalidParameter
from holdfast.exact import DiscreteLaplace
from holdfast.privacy import Promise
from holdfast.research.accounting import equal_people_posterior, posterior_bound, posterior_bound_if_independent


def test_twenty_equal_people() -> None:
    """[theory T41]: .5 becomes .993, far outside what Theorem 1.3 would give for independent people."""
    lower, upper = equal_people_posterior(20, "1/4")
    assert f"{float(lower):.3f}" == "0.993"
    assert float(upper) == pytest.approx(1 / (1 + math.exp(-5)), rel=1e-15)
    assert upper - lower < Fraction(1, 10**60)
    assert posterior_bound_if_independent("1/2", "1/4").upper < lower
    pair = posterior_bound("1/2", 5)
    assert pair.lower < lower <= pair.upper, "for the pair of tables, at cost 20/4, the bound holds and is attained"


def test_the_counter_example_from_the_law_itself() -> None:
    """Likelihoods of an output of 20 under the two tables, from certified probabilities of the noise."""
    law = DiscreteLaplace(4)
    here, there = law.pmf_bounds(0), law.pmf_bounds(20)
    lower, upper = here.lower / (here.lower + there.upper), here.upper / (here.upper + there.lower)
    found = equal_people_posterior(20, "1/4")
    assert lower <= found.upper
    assert found.lower <= upper
    assert float(upper - lower) < 1e-15


def test_the_smallest_grid_moves_odds_by_four_epsilon() -> None:
    low, high = posterior_bound("1/2", Fraction(4, 4))  # rows and columns of a 2 x 2 table kept, epsilon = 1/4 for each unit: l1 = 4
    assert float(high / (1 - high)) == pytest.approx(math.e, rel=1e-14)
    assert float(low / (1 - low)) == pytest.approx(1 / math.e, rel=1e-14)


@pytest.mark.parametrize("epsilon", ["1/10", "1", "3"])
def test_theorem_1_3_holds_for_independent_people(epsilon: str) -> None:
    """Three people with independent traits, their count with discrete Laplace noise: all outputs, all eight tables."""
    law, priors = DiscreteLaplace(1 / Fraction(epsilon)), [Fraction(1, 3), Fraction(1, 5), Fraction(9, 10)]
    bound = posterior_bound_if_independent(priors[0], epsilon)
    for output in range(-8, 12):
        joint = {0: 0.0, 1: 0.0}
        for code in range(8):
            bits = [code >> i & 1 for i in range(3)]
            prior = math.prod(float(p) if bit else float(1 - p) for p, bit in zip(priors, bits, strict=True))
            joint[bits[0]] += prior * law.pmf(output - sum(bits))
        posterior = joint[1] / (joint[0] + joint[1])
        assert float(bound.lower) * (1 - 1e-12) <= posterior <= float(bound.upper) * (1 + 1e-12)


@given(
    st.fractions(min_value=Fraction(1, 1000), max_value=Fraction(999, 1000), max_denominator=1000),
    st.fractions(min_value=0, max_value=20, max_denominator=100),
    st.fractions(min_value=0, max_value=5, max_denominator=100),
)
def test_the_pair_bound_is_sharp_ordered_and_rounded_outwards(prior: Fraction, epsilon: Fraction, more: Fraction) -> None:
    lower, upper = posterior_bound(prior, epsilon)
    assert 0 <= lower <= prior <= upper <= 1
    assert float(upper) == pytest.approx(float(prior) / (float(prior) + float(1 - prior) * math.exp(-float(epsilon))), rel=1e-12)
    wider = posterior_bound(prior, epsilon + more)
    assert wider.lower <= upper
    assert wider.upper >= lower
    other = posterior_bound(1 - prior, epsilon)
    assert abs(other.lower + upper - 1) < Fraction(1, 10**60)  # what one table gains the other loses
    assert abs(other.upper + lower - 1) < Fraction(1, 10**60)


def test_numbers_and_refusals() -> None:
    lower, upper = posterior_bound("1/2", Promise.pure("1/4"))
    assert Fraction(4378, 10**4) < lower < Fraction(4379, 10**4)
    assert Fraction(5621, 10**4) < upper < Fraction(5622, 10**4)
    for promise in (Promise.zcdp("1/4"), Promise.approximate("1/4", "1e-9")):
        with pytest.raises(InvalidParameter, match="pure"):
            posterior_bound("1/2", promise)
    with pytest.raises(InvalidParameter):
        posterior_bound("1", "1/4")
    with pytest.raises(InvalidParameter):
        equal_people_posterior(0, "1/4")
