"""Composition: every bound against the exact loss of mechanisms that keep the promises, and the least one is reported."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st

import holdfast as hf
from holdfast.errors import InvalidParameter
from holdfast.exact.balls import precision
from holdfast.lattices import Lattice
from holdfast.lattices.norms import L1, L2
from holdfast.privacy import Guarantee, Promise, optimal_composition, zcdp_delta, zcdp_epsilon
from holdfast.research.accounting import GaussianPromise, compose, parallel, pld, zcdp_epsilon_optimal
from holdfast.research.accounting.composition import PLD
from holdfast.research.accounting.lattice_delta import enumerated_delta_bounds
from holdfast.research.accounting.pld import short_up
from holdfast.wording import describe
from tests.examples import examples
from tests.privacy.reference import real
from tests.privacy.test_equal_parts import enumerated_delta


def test_pure_parts_against_all_outcomes() -> None:
    """Randomized responses keep pure promises to the last digit: no bound may lie below their exact delta, PLD included."""
    chooser = random.Random(5)
    for _ in range(12):
        epsilons = [Fraction(chooser.randint(1, 200), 100) for _ in range(chooser.randint(2, 8))]
        delta = Fraction(1, 10 ** chooser.randint(1, 8))
        bounds = compose(*map(Promise.pure, epsilons)).at(delta)
        assert {bound.method for bound in bounds.found} >= {"sum", "equal parts", "zcdp, Proposition 7", PLD}
        for bound in bounds.found:
            with precision(256):
                assert enumerated_delta(epsilons, real(Fraction(bound.epsilon))) <= real(delta)
        with precision(256):  # and the best is near: half a per cent less is too little, unless that is below zero
            near = real(Fraction(bounds.best.epsilon)) * real("0.995") - real("1/1000")
            assert near < 0 or enumerated_delta(epsilons, near) > real(delta)


@pytest.mark.parametrize(("sigma_squared", "count"), [("4", 2), ("9/2", 3)])
def test_discrete_gaussians_against_all_points(sigma_squared: str, count: int) -> None:
    """k discrete Gaussians on k numbers that all move by 1 are one Gaussian on Z^k along (1, ..., 1): exact by enumeration."""
    bounds = compose(*[GaussianPromise.of(sigma_squared)] * count).at("1e-4")
    identity = [[int(i == j) for j in range(count)] for i in range(count)]
    for bound in bounds.found:
        assert enumerated_delta_bounds(identity, [1] * count, sigma_squared, Fraction(bound.epsilon)).lower <= Fraction(1, 10**4)
    assert bounds.certified_bound.method == "equal Gaussians"
    assert any(bound.method == PLD and not bound.certified for bound in bounds.found)
    less = Fraction(bounds.certified_bound.epsilon) * (1 - Fraction(1, 10**9))
    assert enumerated_delta_bounds(identity, [1] * count, sigma_squared, less).lower > Fraction(1, 10**4)


def two_gaussians_delta(first: Fraction, second: Fraction, shift: int, epsilon: Fraction) -> arb:
    """The delta of two discrete Gaussians, the second number moving by `shift`, by summing over the plane at 200 bits."""
    reach_one, reach_two = 20 * math.isqrt(math.ceil(first)) + 20, 20 * math.isqrt(math.ceil(second)) + 20
    a = {z: (-real(Fraction(z * z) / (2 * first))).exp() for z in range(-reach_one - 1, reach_one + 2)}
    b = {z: (-real(Fraction(z * z) / (2 * second))).exp() for z in range(-reach_two - shift, reach_two + shift + 1)}
    total, factor = sum(a.values(), arb(0)) * sum(b.values(), arb(0)), real(epsilon).exp()
    out = arb(0)
    for x in range(-reach_one, reach_one + 1):
        for y in range(-reach_two, reach_two + 1):
            gap = a[x - 1] * b[y - shift] - factor * a[x] * b[y]
            out += gap if gap > 0 else arb(0)
    return out / total


def test_unlike_gaussians_against_all_points() -> None:
    bounds = compose(GaussianPromise.of(3), GaussianPromise.of(7, 2)).at("1e-5")
    with precision(200):
        for bound in bounds.found:
            assert two_gaussians_delta(Fraction(3), Fraction(7), 2, Fraction(bound.epsilon)) <= real("1e-5")
        assert two_gaussians_delta(Fraction(3), Fraction(7), 2, Fraction(bounds.best.epsilon) * Fraction(98, 100)) > real("1e-5")


def test_same_kinds_add() -> None:
    whole = compose(Promise.pure("1/4"), Promise.pure("1/3"))
    assert (whole.kind, whole.epsilon, whole.rho) == ("pure", Fraction(7, 12), Fraction(1, 32) + Fraction(1, 18))
    assert whole.at(0).best.epsilon == Fraction(7, 12)
    assert whole.promise() == Promise("pure", Fraction(7, 12), Fraction(0), whole.rho)
    concentrated = compose(Promise.zcdp("1/10"), Promise.pure("1/2"))
    assert (concentrated.kind, concentrated.epsilon, concentrated.rho) == ("zcdp", None, Fraction(9, 40))
    assert concentrated.at("1e-6", pld=False).best.epsilon == zcdp_epsilon_optimal("9/40", "1e-6")
    approximate = compose(Promise.approximate("1/2", "1e-6"), Promise.approximate("1/4", "1e-7"))
    assert (approximate.kind, approximate.rho, approximate.fixed_delta) == ("approximate", None, Fraction(11, 10**7))
    (bound,) = [bound for bound in approximate.at("2e-6", pld=False).found if bound.method == "sum"]
    assert bound.epsilon == Fraction(3, 4)


def test_which_bound_wins() -> None:
    assert compose(*[Promise.pure("1/10")] * 30).at("1e-8").best.method == "equal parts"
    assert compose(*[Promise.pure("1/10")] * 30).at("1e-8").best.epsilon == optimal_composition("1/10", 0, 30, "1e-8")
    assert compose(Promise.pure(3), Promise.pure("1/100")).at("1e-30").best.method in ("sum", "equal parts")
    assert compose(GaussianPromise.of(50), GaussianPromise.of(60)).at("1e-8").best.method == PLD
    assert compose(Promise.zcdp("1/10")).at("1e-8").best.method == "zcdp, optimal conversion"
    assert compose(*[GaussianPromise.of(50)] * 10).at("1e-8").best.method == "equal Gaussians"


def test_zcdp_alone_never_becomes_a_loss_distribution() -> None:
    """A rho without a law: the pure part goes to dp-accounting, the rho gets half of delta by Renyi divergences."""
    bounds = compose(Promise.zcdp("1/10"), Promise.pure("1/3")).at("1e-6")
    (bound,) = [bound for bound in bounds.found if bound.method == PLD]
    assert bound.epsilon >= zcdp_epsilon_optimal("1/10", "5e-7")
    assert "dominate" in compose(Promise.zcdp("1/10")).at("1e-6").left_out[0]


def test_what_is_left_out_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = compose(GaussianPromise.of(50), GaussianPromise.of(50))
    assert "not asked" in whole.at("1e-6", pld=False).left_out[0]
    assert "floating point" in whole.at("1e-12").left_out[0]
    monkeypatch.setattr(pld, "is_installed", lambda: False)
    bounds = whole.at("1e-6")
    assert "holdfast[accounting]" in bounds.left_out[0]
    assert bounds.best == bounds.certified_bound


def test_a_calibrated_gaussian_adds_up_by_its_rho() -> None:
    """It is (epsilon, delta) and zCDP at once: the sum holds from the deltas' sum on, its rho at every delta."""
    law = hf.GeneralizedGaussian(epsilon="1/4", delta="1e-5", per="distance").law(Lattice([[1, 1, 1]]))
    promise = law.guarantee.per_person()
    assert promise is not None
    assert promise.rho is not None
    whole = compose(promise, promise)
    assert whole.kind == "zcdp"
    assert whole.rho == 2 * promise.rho
    assert whole.fixed_delta == 0
    below = {bound.method: bound.epsilon for bound in whole.at("1e-5", pld=False).found}
    assert "sum" not in below  # 1e-5 is less than twice the delta of one
    assert below["zcdp, Proposition 7"] == zcdp_epsilon(2 * promise.rho, "1e-5")
    above = {bound.method: bound.epsilon for bound in whole.at("1e-4", pld=False).found}
    assert above["sum"] == 2 * Fraction(promise.epsilon)


def test_approximate_beside_concentrated() -> None:
    """Its delta is taken off, its epsilon added; the same by hand."""
    bounds = compose(Promise.approximate("1/2", "1e-7"), Promise.zcdp("1/20")).at("1e-6", pld=False)
    by_hand = Fraction(1, 2) + Fraction(zcdp_epsilon("1/20", "9e-7"))
    (bound,) = [bound for bound in bounds.found if bound.method == "zcdp, Proposition 7"]
    assert by_hand <= Fraction(bound.epsilon) <= by_hand * (1 + Fraction(1, 2**50))


def test_promises_of_guarantees() -> None:
    laplace = Guarantee(kind="pure", distance=L1, epsilon=Fraction(1, 4), smallest_secret=2, person=2)
    gaussian = Guarantee(kind="zcdp", distance=L2, rho=Fraction(1, 100), smallest_secret=2, person=2)
    other = Guarantee(kind="approximate", distance=L1, epsilon=Fraction(1, 10), delta=Fraction(1, 10**9), smallest_secret=2, person=2)
    whole = compose(laplace.per_smallest_secret(), gaussian.per_smallest_secret())
    assert whole.rho == Fraction(1, 8) + Fraction(1, 50)
    promise = compose(laplace.per_smallest_secret(), other.per_smallest_secret()).promise("1e-8")
    assert promise.kind == "approximate"
    assert promise.delta == Fraction(1, 10**8)
    root = Guarantee(kind="pure", distance=L2, epsilon=Fraction(1, 4), smallest_secret=2, person=2)
    twice = compose(root.per_smallest_secret(), root.per_smallest_secret())
    assert twice.epsilon is not None
    assert twice.epsilon**2 >= Fraction(1, 2), "a float that was rounded up stays an upper bound"


def test_words() -> None:
    text = describe(compose(Promise.pure("1/4"), Promise.pure("1/4")))
    assert "2 releases together" in text
    assert "WARNING" not in text
    assert "next to nothing" in describe(compose(Promise.pure(9), Promise.pure(9)))
    assert "floating point" in describe(compose(GaussianPromise.of(50), GaussianPromise.of(60)), delta="1e-8")


def test_refusals() -> None:
    with pytest.raises(InvalidParameter):
        compose()
    with pytest.raises(InvalidParameter, match="kind"):
        compose(Promise("renyi", Fraction(1), Fraction(0), None))  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match="rho"):
        compose(Promise("zcdp", 1.0, Fraction(0), None))
    with pytest.raises(InvalidParameter, match="add up"):
        compose(Promise.approximate("1/4", "1e-6"), Promise.approximate("1/4", "1e-6")).at("1e-6")
    with pytest.raises(InvalidParameter, match="used up"):
        compose(Promise.approximate("1/4", "1e-6"), Promise.zcdp("1/4")).at("1e-6")
    with pytest.raises(InvalidParameter):
        compose(Promise.zcdp("1/4")).at(0)
    with pytest.raises(InvalidParameter, match="GaussianPromise"):
        GaussianPromise("zcdp", 1.0, Fraction(1, 10**10), Fraction(1, 4), Fraction(3), 1)


def test_many_denominators() -> None:
    """Sums of rationals grow longer than a number may be; they are rounded up before they are converted."""
    chooser = random.Random(9)
    parts = [Promise.zcdp(Fraction(1, chooser.randint(10**8, 10**9))) for _ in range(200)]
    whole = compose(*parts, *[Promise.approximate("1/100", Fraction(1, chooser.randint(10**11, 10**12))) for _ in range(100)])
    assert sum((part.rho or 0 for part in parts), Fraction(0)).denominator.bit_length() > 2000
    assert 0.3 < whole.at("1e-6").best.epsilon < whole.at("1e-6").certified_bound.epsilon < 1.1
    value = Fraction(10**700 + 1, 3**1500)
    assert value <= short_up(value) <= value * (1 + Fraction(1, 2**250))
    assert -short_up(-value) <= value


sizes = st.fractions(min_value=Fraction(1, 1000), max_value=2, max_denominator=1000)
kinds = st.one_of(
    sizes.map(Promise.pure),
    sizes.map(Promise.zcdp),
    sizes.map(lambda e: Promise.approximate(e, "1e-9")),
    sizes.map(GaussianPromise.of),
)


@given(st.lists(kinds, min_size=1, max_size=6), kinds, st.integers(min_value=2, max_value=7))
@settings(max_examples=examples(40), deadline=None)
def test_more_parts_cost_more_and_more_delta_costs_less(parts: list[Promise], more: Promise, digits: int) -> None:
    """Up to a millionth, by which the search for the best order may miss."""
    delta = Fraction(1, 10**digits)
    before, after = compose(*parts), compose(*parts, more)
    here = before.at(delta, pld=False).certified_bound.epsilon
    assert here <= after.at(delta, pld=False).certified_bound.epsilon * (1 + 1e-6) + 1e-9
    assert before.at(delta * 2, pld=False).certified_bound.epsilon <= here * (1 + 1e-6) + 1e-9
    reordered = compose(*reversed(parts)).at(delta, pld=False).certified_bound
    assert reordered.epsilon == here


def test_parallel_takes_the_largest() -> None:
    assert parallel(L1, *map(Promise.pure, ("1/4", "1/3", "1/10"))) == Promise.pure("1/3")
    assert parallel(L2, Promise.zcdp("1/9"), Promise.zcdp("1/8")).rho == Fraction(1, 8)
    both = parallel(L1, Promise.approximate("1/4", "1e-9"), Promise.approximate("1/5", "1e-8"))
    assert both == Promise.approximate("1/4", "1e-8")
    unit = Guarantee(kind="zcdp", distance=L2, rho=Fraction(1, 100), smallest_secret=2, person=2).per_distance()
    assert parallel(L2, unit, unit) == unit


@given(st.lists(st.tuples(sizes, st.lists(st.integers(-5, 5), min_size=1, max_size=4)), min_size=1, max_size=4))
def test_parallel_holds_for_every_difference(parts: list[tuple[Fraction, list[int]]]) -> None:
    """The inequalities of the module, on differences of tables, in rationals and (pure l2) in squares."""
    whole = [entry for _, v in parts for entry in v]
    for distance in (L1, L2):
        pure = Fraction(parallel(distance, *(Promise.pure(size) for size, _ in parts)).epsilon)
        rho = parallel(distance, *(Promise.zcdp(size) for size, _ in parts)).rho
        assert rho is not None
        if distance == L1:
            assert sum(size * sum(map(abs, v)) for size, v in parts) <= pure * sum(map(abs, whole))
            assert sum(size * sum(map(abs, v)) ** 2 for size, v in parts) <= rho * sum(map(abs, whole)) ** 2
        else:
            cost = sum(float(size) * math.sqrt(sum(x * x for x in v)) for size, v in parts)
            assert cost <= float(pure) * math.sqrt(sum(x * x for x in whole)) * (1 + 1e-9)
            assert sum(size * sum(x * x for x in v) for size, v in parts) <= rho * sum(x * x for x in whole)


@given(st.lists(st.tuples(sizes, st.integers(min_value=0, max_value=6)), min_size=1, max_size=4))
def test_parallel_deltas_of_definition_2(parts: list[tuple[Fraction, int]]) -> None:
    def h(e: float, r: int) -> float:
        return math.expm1(e * r) / math.expm1(e)

    largest = max(float(size) for size, _ in parts)
    assert sum(h(float(size), r) for size, r in parts) <= h(largest, sum(r for _, r in parts)) * (1 + 1e-9)


def test_parallel_in_l2_is_not_the_largest() -> None:
    """Two sets that change together in l2 cost more than the larger epsilon: the root of the sum of squares, attained."""
    unit = parallel("l2", Promise.pure(3), Promise.pure(4))
    assert Fraction(5) <= unit.epsilon <= Fraction(5) + Fraction(1, 10**9)  # v = (3, 4): 3 * 3 + 4 * 4 = 5 |v|
    with pytest.raises(InvalidParameter, match="l2"):
        parallel(L2, *[Promise.approximate(1, "1/10")] * 2)
    with pytest.raises(InvalidParameter, match="one kind"):
        parallel(L1, Promise.pure(1), Promise.zcdp(1))
    with pytest.raises(InvalidParameter):
        parallel(L1)


def test_delta_of_the_reported_epsilon_is_kept() -> None:
    for rho in ("1/100", "1/3", "2"):
        epsilon = compose(Promise.zcdp(rho)).at("1e-7", pld=False).found[0].epsilon
        assert zcdp_delta(rho, Fraction(epsilon)) <= 1e-7 * (1 + 1e-12)
