"""The optimal conversion: valid, never above Proposition 7, and truly the supremum it is said to be."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.errors import InexactParameter, InvalidParameter
from holdfast.privacy import discrete_gaussian_delta_bounds, optimal_composition_delta_bounds, zcdp_delta, zcdp_epsilon
from holdfast.research.accounting import zcdp_delta_optimal, zcdp_epsilon_optimal
from holdfast.research.accounting.curves import gaussian_delta_bounds
from holdfast.research.accounting.optimal import (
    _best_for_delta,
    delta_bound,
    zcdp_delta_closed_form,
    zcdp_delta_intermediate,
    zcdp_delta_standard,
)
from tests.examples import examples
from tests.privacy.reference import real, smallest_delta

PAIRS = [("1/1000", "1/100"), ("1/50", "0"), ("1/10", "1/2"), ("1/2", "3"), ("1", "5"), ("1", "1/3"), ("20", "35"), ("1e-9", "1e-6")]


def largest_gap(t: float, c: float, factor: float) -> float:
    """sup of p - E q under the condition of order 1 + t, by brute force: for each q the largest p, by halving."""

    def divergence(p: float, q: float) -> float:
        return float(p ** (1 + t) * q**-t + (1 - p) ** (1 + t) * (1 - q) ** -t)

    best = 0.0
    for k in range(-4000, 4000):
        q = 1 / (1 + math.exp(-k / 200))
        low, high = q, 1.0
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if divergence(middle, q) <= c else (low, middle)
        best = max(best, low - factor * q)
    return best


@pytest.mark.ordinary("1/1000", "1/10-", "1-5")
@pytest.mark.parametrize(("rho", "epsilon"), [pair for pair in PAIRS if pair[0] not in ("20", "1e-9")])
def test_at_its_order_it_is_the_supremum(rho: str, epsilon: str) -> None:
    """Brute force stays below and comes within a thousandth; Proposition 7 at the same order would not."""
    rate, cost = float(Fraction(rho)), float(Fraction(epsilon))
    t = _best_for_delta(rate, cost)[0]
    truth = largest_gap(t, math.exp(t * (1 + t) * rate), math.exp(cost))
    result = zcdp_delta_optimal(rho, epsilon)
    assert truth * (1 - 1e-6) <= result <= truth * 1.001


@pytest.mark.parametrize(("rho", "epsilon"), [("1/1000", "1/100"), ("1/10", "1/2"), ("1/2", "3")])
def test_the_form_of_the_paper(rho: str, epsilon: str) -> None:
    """[CKS20] section 2.3 prints "p^a (p - d)^(1-a) + (1 - p)^a (E - p + d)^(1-a) <= ..." for all p in (d, 1). It must read >=."""
    rate, cost = float(Fraction(rho)), float(Fraction(epsilon))
    t = _best_for_delta(rate, cost)[0]
    factor, right = math.exp(cost), math.exp(t * ((1 + t) * rate - cost))

    def left(p: float, d: float) -> float:
        return float(p ** (1 + t) * (p - d) ** -t + (1 - p) ** (1 + t) * (factor - p + d) ** -t)

    found = zcdp_delta_optimal(rho, epsilon)
    grid = [k / 20000 for k in range(1, 20000)]
    assert all(left(p, found * 1.00001) >= right for p in grid if p > found * 1.00001)
    assert any(left(p, found * 0.99) < right for p in grid if p > found)


@pytest.mark.parametrize(("rho", "epsilon"), [*PAIRS, ("3", "40"), ("1/1000", "1"), ("1e-300", "1"), ("1e300", "1")])
def test_order_of_the_bounds(rho: str, epsilon: str) -> None:
    assert 0 <= zcdp_delta_optimal(rho, epsilon) <= zcdp_delta(rho, epsilon) <= zcdp_delta_closed_form(rho, epsilon) <= 1
    if epsilon != "1":
        assert zcdp_delta(rho, epsilon) <= zcdp_delta_intermediate(rho, epsilon) <= zcdp_delta_standard(rho, epsilon)


def test_it_is_sharper_where_delta_is_not_tiny() -> None:
    assert zcdp_delta_optimal("1/1000", "1/100") < 0.83 * zcdp_delta("1/1000", "1/100")
    assert zcdp_epsilon_optimal("1/1000", "0.01") < 0.86 * zcdp_epsilon("1/1000", "0.01")
    assert f"{zcdp_epsilon_optimal(Fraction(542, 339) ** 2, '1e-10'):.6f}" == "17.143551"


@pytest.mark.parametrize("sigma_squared", ["1/2", "1", "7/3", "100"])
@pytest.mark.parametrize("epsilon", ["0", "1/10", "1", "4"])
def test_never_below_what_a_mechanism_has(sigma_squared: str, epsilon: str) -> None:
    """Discrete and continuous Gaussian noise are rho-zCDP, and so is anything pure: their exact deltas lie below every bound."""
    rho = 1 / (2 * Fraction(sigma_squared))
    floors = [
        discrete_gaussian_delta_bounds(sigma_squared, epsilon, 1).lower,
        gaussian_delta_bounds(sigma_squared, epsilon).lower,
        optimal_composition_delta_bounds(Fraction(math.isqrt(int(2 * rho * 10**12)), 10**6), 0, 1, epsilon).lower,
    ]
    for bound in (zcdp_delta_optimal, zcdp_delta, zcdp_delta_closed_form, zcdp_delta_intermediate, zcdp_delta_standard):
        assert all(Fraction(bound(rho, epsilon)) >= floor for floor in floors)


def test_with_w_near_zero_the_dual_is_proposition_7() -> None:
    """At w = e^-z, z large, the bound of the module is the printed formula."""
    rho, epsilon, t = Fraction(1, 10), Fraction(2), Fraction(9)
    log_u = Fraction(float(2 + math.log(10 / 9)) - 1e-15)
    value = delta_bound(rho, epsilon, t, Fraction(10**6), log_u)
    assert value is not None
    printed = math.exp(9 * (10 * 0.1 - 2)) / 9 * (1 - 1 / 10) ** 10
    assert float(value.mid()) == pytest.approx(printed, rel=1e-12)
    assert delta_bound(rho, epsilon, t, Fraction(10**6), log_u + Fraction(1, 100)) is None, "S(u, w) <= E must be proved"


def test_closed_forms_at_high_precision() -> None:
    for text in PAIRS:
        rho, epsilon = Fraction(text[0]), Fraction(text[1])
        if epsilon < rho:
            assert zcdp_delta_standard(rho, epsilon) == zcdp_delta_intermediate(rho, epsilon) == 1.0
            continue
        standard = (-real((epsilon - rho) ** 2 / (4 * rho))).exp()
        assert real(Fraction(zcdp_delta_standard(rho, epsilon))) >= standard * (1 - real("1e-13"))
        assert zcdp_delta_standard(rho, epsilon) == pytest.approx(float(standard.mid()), rel=1e-14)
        x = (float(epsilon) + float(rho)) / math.sqrt(2 * float(rho))
        tail = math.erfc(x / math.sqrt(2)) / 2
        intermediate = 2 * math.sqrt(math.pi * float(rho)) * math.exp(float(epsilon)) * tail
        assert zcdp_delta_intermediate(rho, epsilon) == pytest.approx(intermediate, rel=1e-9)
        assert Fraction(zcdp_delta_closed_form(rho, epsilon)) >= smallest_delta(rho, epsilon)


positive = st.fractions(min_value=Fraction(1, 10**6), max_value=50, max_denominator=10**6)
chances = st.integers(min_value=1, max_value=60).map(lambda k: Fraction(1, 2**k))


@given(positive, chances)
@settings(max_examples=examples(40), deadline=None)
def test_there_and_back_and_never_above(rho: Fraction, delta: Fraction) -> None:
    epsilon = zcdp_epsilon_optimal(rho, delta)
    assert 0 <= epsilon <= zcdp_epsilon(rho, delta)
    assert zcdp_delta_optimal(rho, Fraction(epsilon)) <= float(delta) * (1 + 1e-6)


@given(positive, positive, chances)
@settings(max_examples=examples(40), deadline=None)
def test_monotone_up_to_the_search(rho: Fraction, more: Fraction, delta: Fraction) -> None:
    """The search is in floats, so neighbours may be out of order by what it misses, which is far below a millionth."""
    assert zcdp_epsilon_optimal(rho, delta) <= zcdp_epsilon_optimal(rho + more, delta) * (1 + 1e-9) + 1e-9
    assert zcdp_epsilon_optimal(rho, delta) <= zcdp_epsilon_optimal(rho, delta / 2) * (1 + 1e-9) + 1e-9
    assert zcdp_delta_optimal(rho, more) <= zcdp_delta_optimal(rho + more, more) * (1 + 1e-6)


def test_refusals() -> None:
    with pytest.raises(InexactParameter):
        zcdp_delta_optimal(0.1, "1")  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter):
        zcdp_epsilon_optimal("0", "1e-6")
    with pytest.raises(InvalidParameter):
        zcdp_epsilon_optimal("1", "1")
