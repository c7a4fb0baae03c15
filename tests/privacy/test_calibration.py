"""Calibration: the promise checked again at many distances by the slow version, and shown to fail with a little less noise."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise, product

import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.errors import InexactParameter, InvalidParameter
from holdfast.exact.balls import precision
from holdfast.exact.formatting import format_exact
from holdfast.privacy import (
    calibration,
    is_enough,
    pair_sigma_squared,
    paper_sigma_squared,
    simple_sigma_squared,
    tight_sigma_squared,
    zcdp_delta,
    zcdp_delta_bounds,
)
from tests.examples import examples
from tests.privacy.reference import allowed_delta, printed_delta, real, smallest_delta

CASES = [(Fraction(epsilon), Fraction(delta)) for epsilon in ("0.01", "1/4", "1", "5", "30") for delta in ("1e-15", "1e-5", "1e-2", "0.3")]


def distances(epsilon: Fraction, delta: Fraction, first: int) -> list[int]:
    """Values of r^2: the first forty, then some up to where Definition 2 allows a delta of 1."""
    squares = [first + k for k in range(40)] + [first + math.ceil(1.3**k) for k in range(15, 80)]
    with precision(300):
        return [square for square in squares if not allowed_delta(epsilon, delta, square)[1] >= 1]


def best_order(rho: float, epsilon: float) -> float:
    """A float near the best alpha, by thirds on its logarithm; independent of the package's root finder."""

    def log_delta(place: float) -> float:
        t = math.exp(place)
        return t * ((1 + t) * rho - epsilon) - t * math.log1p(1 / t) - math.log1p(t)

    low, high = -30.0, 30.0
    for _ in range(120):
        left, right = low + (high - low) / 3, high - (high - low) / 3
        low, high = (low, right) if log_delta(left) < log_delta(right) else (left, high)
    return 1 + math.exp((low + high) / 2)


@pytest.mark.ordinary("1-epsilon", "epsilon0-", "epsilon5-", "epsilon10-", "epsilon15-", "epsilon19-")
@pytest.mark.parametrize(("epsilon", "delta"), CASES)
@pytest.mark.parametrize("first", [1, 2, 4, 9])
def test_tight_holds_at_many_distances_and_a_little_less_noise_fails(epsilon: Fraction, delta: Fraction, first: int) -> None:
    squares = distances(epsilon, delta, first)
    if not squares:
        with pytest.raises(InvalidParameter, match="nothing is promised"):
            tight_sigma_squared(epsilon, delta, first)
        return
    sigma_squared = tight_sigma_squared(epsilon, delta, first)
    margins = {}
    with precision(300):
        for square in squares:
            cost, allowed = allowed_delta(epsilon, delta, square)
            rho = Fraction(square) / (2 * sigma_squared)
            alpha = real(Fraction(best_order(float(rho), float(cost.mid()))))
            found = printed_delta(alpha, real(rho), cost)
            assert found <= allowed, f"r^2 = {square}"
            margins[square] = float((allowed / found).log())
        nearest = min(margins, key=margins.__getitem__)
        less = sigma_squared * (1 - Fraction(1, 10**4))
        cost, allowed = allowed_delta(epsilon, delta, nearest)
        assert real(smallest_delta(Fraction(nearest) / (2 * less), cost, bits=300)) > allowed
    assert not is_enough(less, epsilon, delta, first)
    assert is_enough(sigma_squared, epsilon, delta, first)
    assert is_enough(2 * sigma_squared, epsilon, delta, first)
    assert sigma_squared <= simple_sigma_squared(epsilon, delta)


@pytest.mark.parametrize(("epsilon", "delta"), [case for case in CASES if case[0] <= 1 and case[1] < Fraction(1, 10)])
@pytest.mark.parametrize("first", [1, 4])
def test_intervals_alone_tell_enough_from_too_little(epsilon: Fraction, delta: Fraction, first: int, monkeypatch) -> None:
    """The first distance is always the hardest, so intervals see a failure only when they have to begin there."""
    monkeypatch.setattr(calibration, "ONE_BY_ONE", 0)
    needed = tight_sigma_squared(epsilon, delta, first)
    assert is_enough(needed * (1 + Fraction(1, 1000)), epsilon, delta, first)
    assert not is_enough(needed * (1 - Fraction(1, 1000)), epsilon, delta, first)
    monkeypatch.setattr(calibration, "MAX_INTERVALS", 0)
    assert not is_enough(2 * needed, epsilon, delta, first), "giving up is no proof"


@pytest.mark.parametrize("shrink", ["1", "0.9", "0.7"])
def test_an_interval_said_to_be_covered_is(shrink: str) -> None:
    """Also with too little noise, where only far intervals are: at points inside, the slow version agrees."""
    epsilon, delta = Fraction(1, 4), Fraction(1, 10**5)
    check = calibration._Condition(tight_sigma_squared(epsilon, delta) * Fraction(shrink), epsilon, delta)
    covered = 0
    with precision(300):
        for begin in (Fraction(k, 4) for k in range(4, 160)):
            place = check.widest(begin, 0)
            if place == len(calibration.STEPS):
                continue
            covered += 1
            for part in range(9):
                r = begin * (1 + (calibration.STEPS[place] - 1) * Fraction(part, 8))
                rho, cost = r * r / (2 * check.sigma_squared), real(epsilon * r)
                found = printed_delta(real(Fraction(best_order(float(rho), float(epsilon * r)))), real(rho), cost)
                assert found <= real(delta) * (cost.exp() - 1) / (real(epsilon).exp() - 1)
    assert covered > 20


def test_published_values() -> None:
    assert format_exact(tight_sigma_squared("1/4", "1e-5")) == "212.2"
    assert format_exact(tight_sigma_squared("1/4", "1e-5", 2)) == "212.11"
    assert format_exact(tight_sigma_squared("1/4", "1e-5", 4)) == "211.93"
    assert round(tight_sigma_squared("1/10", "1e-6")) in (1557, 1558)
    assert round(float(simple_sigma_squared("1/4", "1e-5")), 1) == 372.4
    assert round(simple_sigma_squared("1/10", "1e-6")) == 2773
    small = paper_sigma_squared("1/4", "1e-5", 9, 6 * math.log(4))
    assert round(small) == 2354
    assert small >= 10 * tight_sigma_squared("1/4", "1e-5", 4)
    assert abs(paper_sigma_squared("1/4", "1e-5", 101, math.log(102)) - 29109) <= 1
    assert round(paper_sigma_squared("1/10", "1e-6", 9, 6 * math.log(4))) == 17094
    assert abs(paper_sigma_squared("1/10", "1e-6", 101, math.log(102)) - 203127) <= 5


def test_every_first_distance_stays_within_213() -> None:
    found = [tight_sigma_squared("1/4", "1e-5", first) for first in range(1, 30)]
    assert max(found) <= 213
    assert all(later <= earlier for earlier, later in pairwise(found))


@given(
    st.fractions(min_value=Fraction(1, 50), max_value=6, max_denominator=1000),
    st.integers(min_value=2, max_value=50).map(lambda k: Fraction(1, 2**k)),
    st.integers(min_value=1, max_value=12),
)
@settings(max_examples=examples(40))
def test_more_privacy_needs_more_noise(epsilon: Fraction, delta: Fraction, first: int) -> None:
    try:
        found = tight_sigma_squared(epsilon, delta, first)
    except InvalidParameter:
        return
    assert found <= tight_sigma_squared(epsilon, delta / 2, first)
    assert found <= tight_sigma_squared(epsilon / 2, delta / 4, first)
    assert found <= simple_sigma_squared(epsilon, delta)
    assert is_enough(simple_sigma_squared(epsilon, delta), epsilon, delta, first)


@pytest.mark.parametrize(("epsilon", "delta"), CASES)
def test_simple_is_the_closed_form_rounded_up(epsilon: Fraction, delta: Fraction) -> None:
    with precision(200):
        truth = (2 * (1 / real(delta)).log() + real(epsilon)) / (real(epsilon) * real(epsilon))
        found = real(simple_sigma_squared(epsilon, delta))
        assert found >= truth
        assert found <= truth * real("1.0001")


@pytest.mark.parametrize(("epsilon", "delta"), CASES)
@pytest.mark.parametrize("squared", [1, 2, "1/3", 50])
def test_one_pair_gets_its_promise_and_no_more_noise_than_needed(epsilon: Fraction, delta: Fraction, squared: int | str) -> None:
    found = pair_sigma_squared(epsilon, delta, squared)
    distance = Fraction(squared)
    assert Fraction(zcdp_delta(distance / (2 * found), epsilon)) <= delta * (1 + Fraction(1, 10**12))
    assert smallest_delta(distance / (2 * found), epsilon) <= delta
    less = found * (1 - Fraction(1, 10**4))
    assert zcdp_delta_bounds(distance / (2 * less), epsilon).lower > delta


def test_a_pair_promise_agrees_with_the_tight_one_at_its_worst_distance() -> None:
    assert pair_sigma_squared("1/4", "1e-5", 1) == tight_sigma_squared("1/4", "1e-5")


@pytest.mark.parametrize(("epsilon", "delta", "first"), [("1", "1e-2", 2), ("2", "1e-3", 2), ("3", "1/5", 2)])
def test_the_true_loss_on_a_small_lattice_is_within_the_promise(epsilon: str, delta: str, first: int) -> None:
    """Three cells, one total: all lattice points that matter, and delta(v) = sum of the positive part of P - e^(epsilon r) P shifted by v.

    Doubles with errors near 1e-13 will do: the promise is kept with a factor of 2 to spare and more.
    """
    sigma_squared = float(tight_sigma_squared(epsilon, delta, first))
    reach = math.ceil(9 * math.sqrt(sigma_squared)) + 12
    points = [(a, b, -a - b) for a, b in product(range(-reach, reach + 1), repeat=2)]
    weight = {p: math.exp(-(p[0] ** 2 + p[1] ** 2 + p[2] ** 2) / (2 * sigma_squared)) for p in points}
    total = math.fsum(weight.values())
    cost, limit = float(Fraction(epsilon)), float(Fraction(delta))
    for v in [(1, -1, 0), (2, -1, -1), (2, -2, 0), (3, -2, -1), (3, -3, 0)]:
        r = math.sqrt(sum(x * x for x in v))
        shifted = [(weight[p], weight.get((p[0] - v[0], p[1] - v[1], p[2] - v[2]), 0.0)) for p in points]
        loss = math.fsum(max(0.0, here - math.exp(cost * r) * there) for here, there in shifted) / total
        assert 0 < loss < limit * math.expm1(cost * r) / math.expm1(cost) / 1.05


def test_paper_never_falls_below_what_is_proved() -> None:
    assert paper_sigma_squared("50", "1/2", 1, 60.0) == simple_sigma_squared("50", "1/2")
    with precision(128):
        assert paper_sigma_squared("1/4", "1e-5", 9, 6 * arb(4).log()) == paper_sigma_squared("1/4", "1e-5", 9, 6 * math.log(4))
    rising = [paper_sigma_squared("1/4", "1e-5", m, math.log(m + 1)) for m in (1, 2, 5, 10, 100, 1000)]
    assert rising == sorted(rising)


@pytest.mark.parametrize("call", [simple_sigma_squared, tight_sigma_squared, lambda e, d: pair_sigma_squared(e, d, 2)])
def test_bad_parameters_get_clear_errors(call) -> None:
    for delta in (0, 1, 2):
        with pytest.raises(InvalidParameter, match="delta must lie strictly between 0 and 1"):
            call(1, delta)
    with pytest.raises(InvalidParameter, match=r"budget of zero publishes nothing.*suppression publishes the kept totals alone"):
        call(0, "1e-5")
    with pytest.raises(InvalidParameter, match="epsilon must be greater than zero"):
        call(-1, "1e-5")
    with pytest.raises(InexactParameter, match=r"'0\.25'"):
        call(0.25, "1e-5")
    with pytest.raises(InexactParameter, match="'1e-05'"):
        call("1/4", 1e-5)


def test_other_bad_parameters() -> None:
    with pytest.raises(InvalidParameter, match="smallest_squared must be a whole number"):
        tight_sigma_squared(1, "1e-5", 0)
    with pytest.raises(InvalidParameter, match="dimension must be a whole number"):
        paper_sigma_squared(1, "1e-5", 0, 1.0)
    with pytest.raises(InvalidParameter, match="distance_squared must be greater than zero"):
        pair_sigma_squared(1, "1e-5", 0)
    with pytest.raises(InvalidParameter, match="nothing is promised"):
        tight_sigma_squared("1/100", "1/2", 4)


@pytest.mark.parametrize(("epsilon", "delta"), [("1e-100", "1e-5"), ("1e100", "1e-5"), ("1e-6", "1e-2"), ("1e3", "1e-300")])
def test_extreme_parameters_end(epsilon: str, delta: str) -> None:
    assert tight_sigma_squared(epsilon, delta) > 0
