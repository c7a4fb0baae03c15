"""One kept total with bounds: chances of arms and of the accept step against sums over all tables, then fits that a wrong law fails."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.exact.balls import ball, precision
from holdfast.exact.predicates import BAND, settle_exp
from holdfast.lattices.shapes import Bounded, Free, OneSum
from holdfast.lattices.shapes.shape import UNBOUNDED
from holdfast.laws import ConditionalLaplace
from holdfast.randomness import NoiseKey
from holdfast.samplers import bounded_one_sum
from holdfast.samplers.bounded_one_sum import (
    BoundedOneSum,
    TiltSearch,
    draw_arms,
    last_exponent,
    last_exponents,
    left_chance,
    left_chances,
    one_batch,
    parts_of_rate,
    widest_tilts,
)
from holdfast.samplers.protocol import InputSampler
from holdfast.samplers.table import choose
from holdfast.testing import check_fit, check_fit_categories
from holdfast.testing.fit import ALPHA, chi_square_p_value, fits
from tests.examples import examples

HALF, QUARTER = Fraction(1, 2), Fraction(1, 4)


def words_of(label: str):
    return NoiseKey.for_tests(17).stream("test", label)


def arm_weights(rates: tuple[Fraction, Fraction], left: int, right: int) -> dict[int, arb]:
    return {z: ball(-rates[1] * z).exp() if z >= 0 else ball(rates[0] * z).exp() for z in range(-left, right + 1)}


def tables(lower: tuple[int, ...], upper: tuple[int, ...], total: int) -> Iterator[tuple[int, ...]]:
    spans = (range(low, high + 1) for low, high in zip(lower, upper, strict=True))
    return (y for y in product(*spans) if sum(y) == total)


def law(x: tuple[int, ...], lower: tuple[int, ...], upper: tuple[int, ...], rate: Fraction) -> dict[tuple[int, ...], float]:
    """By enumeration."""
    weights = {y: math.exp(-rate * sum(abs(a - b) for a, b in zip(x, y, strict=True))) for y in tables(lower, upper, sum(x))}
    whole = sum(weights.values())
    return {y: weight / whole for y, weight in weights.items()}


# --- the arms --------------------------------------------------------------------------------------------------------------------------

RATES: list[tuple[Fraction, Fraction]] = [
    (HALF, HALF),
    (Fraction(1, 10), Fraction(9, 10)),
    (Fraction(-1, 3), Fraction(4, 3)),
    (Fraction(5, 2), Fraction(-2)),
]


@pytest.mark.parametrize("rates", RATES)
@pytest.mark.parametrize(("left", "right"), [(0, 0), (0, 4), (3, 0), (2, 7), (30, 1)])
def test_the_chance_of_an_arm_is_the_sum_of_its_weights(rates: tuple[Fraction, Fraction], left: int, right: int) -> None:
    with precision(200):
        weights = arm_weights(rates, left, right)
        summed = sum((w for z, w in weights.items() if z < 0), arb(0)) / sum(weights.values(), arb(0))
        assert summed.overlaps(left_chance(*rates, left, right))
        in_doubles = left_chances(*rates, np.array([left]), np.array([right]))[0]
        assert abs(arb(in_doubles) - summed) < 2.0**-45


@settings(deadline=None, max_examples=examples(200))
@given(
    st.fractions(Fraction(1, 10**6), 5),
    st.fractions(-5, 5),
    st.integers(0, 10**9) | st.just(UNBOUNDED),
    st.integers(0, 10**9) | st.just(UNBOUNDED),
)
def test_doubles_are_near_the_chance_for_all_rates_and_bounds(rate, tilt, left, right) -> None:
    rates = rate - tilt, rate + tilt
    if 0 in rates or (rates[0] < 0 and left == UNBOUNDED) or (rates[1] < 0 and right == UNBOUNDED):
        return
    in_doubles = left_chances(*rates, np.array([left]), np.array([right]))[0]
    with precision(400):
        assert abs(arb(float(in_doubles)) - left_chance(*rates, left, right)) < 2.0**-45


@pytest.mark.parametrize("rates", RATES)
@pytest.mark.parametrize("unit", [None, Fraction(1, 30)])
def test_arms_fit_their_law(rates, unit) -> None:
    """Several bounds in one call; a law that is off by a tenth in the rate of its heavier arm is told apart: by 14 standard errors or
    more, with so many draws, where ALPHA is at 6."""
    lefts, rights = np.array([3, 0, 6]), np.array([4, 5, 1])
    with words_of(f"arms {rates} {unit}") as words:
        drawn = draw_arms(rates, lefts, rights, words, times=200_000, unit=unit)

    def law_of_arms(rates: tuple[Fraction, Fraction], left: int, right: int) -> dict[int, float]:
        weights = {z: float(w) for z, w in arm_weights(rates, left, right).items()}
        whole = sum(weights.values())
        return {z: w / whole for z, w in weights.items()}

    for column, left, right in zip(drawn.T, lefts.tolist(), rights.tolist(), strict=True):
        expected = law_of_arms(rates, left, right)
        check_fit(column, expected, name=f"arms of rates {rates}, {left} to {right}, unit {unit}")
        left_is_heavier = sum(p for z, p in expected.items() if z < 0) > sum(p for z, p in expected.items() if z > 0)
        change = Fraction(1, 10) * left_is_heavier, Fraction(1, 10) * (not left_is_heavier)
        assert not fits(column, law_of_arms((rates[0] + change[0], rates[1] + change[1]), left, right))


def test_arms_without_bounds_are_the_two_sided_geometric_law() -> None:
    from holdfast.exact import DiscreteLaplace

    none = np.array([UNBOUNDED])
    with words_of("unbounded") as words:
        drawn = draw_arms((HALF, HALF), none, none, words, times=20_000)
    check_fit(drawn.ravel(), DiscreteLaplace(2).pmf, name="arms without bounds")


@pytest.mark.parametrize("band", [2.0**-4, 2.0**-20])
def test_a_wider_band_changes_nothing(band) -> None:
    left, right = np.array([2, 5, 0, 3]), np.array([1, UNBOUNDED, 4, 3])
    with words_of("band") as one, words_of("band") as other:
        for tilt in (Fraction(0), Fraction(1, 8), Fraction(-1, 8)):
            found, sums = one_batch(QUARTER, tilt, left, right, 50, one)
            again, same = one_batch(QUARTER, tilt, left, right, 50, other, band=band)
            assert np.array_equal(sums, same)
            assert (found is None) == (again is None)
            assert found is None or again is None or np.array_equal(found, again)


# --- one try, exactly ------------------------------------------------------------------------------------------------------------------

CASES = [
    ((0, 1, 2), (0, 0, 0), (3, 3, 3)),
    ((3, 0, 0), (0, 0, 0), (3, 3, 3)),
    ((1, 0, 2, 0), (0, 0, 0, 0), (2, 3, 2, 1)),
    ((1, 0, 1, 0), (0, 0, 0, 0), (1, 1, 1, 1)),
    ((1, 0, 0, 0, 0, 0), (0,) * 6, (1,) * 6),
]


def accepted(
    x: tuple[int, ...], lower: tuple[int, ...], upper: tuple[int, ...], rate: Fraction, tilt: Fraction, accept: Fraction
) -> list[arb]:
    """P[a try accepts y] over the law's weight of y, for each y; `accept`: the tilt of the accept step."""
    ratios = []
    for y in tables(lower, upper, sum(x)):
        z = [b - a for a, b in zip(x, y, strict=True)]
        chance = arb(1)
        for i, step in enumerate(z[:-1]):
            weights = arm_weights((rate - tilt, rate + tilt), x[i] - lower[i], upper[i] - x[i])
            chance *= weights[step] / sum(weights.values(), arb(0))
        chance *= ball(-last_exponent(rate, accept, z[-1], x[-1] - lower[-1], upper[-1] - x[-1])).exp()
        ratios.append(chance / ball(-rate * sum(map(abs, z))).exp())
    return ratios


@pytest.mark.parametrize("tilt", [Fraction(0), Fraction(1, 8), Fraction(-1, 8), Fraction(3, 5), Fraction(-2, 3)])
@pytest.mark.parametrize(("x", "lower", "upper"), CASES)
def test_a_try_accepts_every_table_in_proportion_to_its_weight(x, lower, upper, tilt) -> None:
    """The identity that makes the law exact, and that the untilted weight in the accept step would break."""
    with precision(200):
        ratios = accepted(x, lower, upper, QUARTER, tilt, tilt)
        assert all(abs(ratio / ratios[0] - 1) < 2.0**-150 for ratio in ratios)
        if tilt:
            untilted = accepted(x, lower, upper, QUARTER, tilt, Fraction(0))
            assert any(abs(ratio / untilted[0] - 1) > 0.05 for ratio in untilted)


@settings(deadline=None, max_examples=examples(100))
@given(st.fractions(Fraction(1, 1000), 5), st.fractions(-5, 5), st.integers(0, 10**6), st.integers(0, 10**6), st.data())
def test_exponents_of_the_accept_step_in_doubles(rate: Fraction, tilt: Fraction, left: int, right: int, data: st.DataObject) -> None:
    z = data.draw(st.integers(-left, right))
    exact = last_exponent(rate, tilt, z, left, right)
    assert exact >= 0
    assert exponent_error(rate, tilt, z, left, right) < 2.0**-45


def exponent_error(rate: Fraction, tilt: Fraction, z: int, left: int, right: int) -> float:
    """How far the chance to accept, in doubles, is from the true one."""
    in_doubles = last_exponents(float(rate - tilt), float(rate + tilt), np.array([float(z)]), float(left), float(right))[0]
    with precision(200):
        return float(abs(ball(-last_exponent(rate, tilt, z, left, right)).exp() - arb(-in_doubles).exp()))


@settings(deadline=None, max_examples=examples(100))
@given(st.fractions(Fraction(1, 10**6), 5), st.integers(2, 40), st.sampled_from([1, -1]), st.sampled_from([1, -1]), st.floats(0, 40))
def test_tilts_near_the_rate_do_not_cancel(rate: Fraction, parts: int, side: int, way: int, exponent: float) -> None:
    """The tilt is the rate less or more a small share, and z so far out that its exponent is below 40."""
    small = rate / (1 << parts)
    z = min(int(exponent / small), 10**15)
    assert exponent_error(rate, way * (rate - side * small), -way * z, z, z) < 2.0**-45


def test_a_word_between_the_true_chance_and_that_of_a_tilt_rounded_first_is_left_open() -> None:
    """20,000 cells of rate 1/3: a tilt of 131071 parts of 131072, and a word that its rounding to a double settled wrongly."""
    rate, z, word = Fraction(1, 3), -413103, 1502106842
    tilt = rate * Fraction(131071, 131072)
    exponents = last_exponents(float(rate - tilt), float(rate + tilt), np.array([float(z)]), 1e6, 1e6)
    with precision(200):
        assert (ball(-last_exponent(rate, tilt, z, 10**6, 10**6)).exp() * 2**32).floor() == word
    assert settle_exp(np.array([float(word)]), 32, exponents, BAND)[0] == 0


# --- whole draws -----------------------------------------------------------------------------------------------------------------------


def sampler(lower: Any, upper: Any, base: OneSum, rate: Fraction = QUARTER) -> BoundedOneSum:
    return BoundedOneSum(Bounded(base, lower, upper), rate)


def test_which_blocks_are_tilted() -> None:
    """Two cells, which need no tilt, and blocks too large for convolution; the choice looks at the shape alone."""
    for cells, tilted in ((2, True), (3, False), (64, False), (65, True), (3000, True)):
        found = choose(Bounded(OneSum(cells), 0, None), ConditionalLaplace(QUARTER)).sampler
        assert isinstance(found, BoundedOneSum) is tilted
        assert isinstance(found, InputSampler)


def test_windows_too_wide_for_convolution_are_tilted() -> None:
    for rate, tilted in ((Fraction(1, 25), False), (Fraction(1, 1000), True), (Fraction(1, 10**6), True)):
        found = choose(Bounded(OneSum(4), 0, None), ConditionalLaplace(rate)).sampler
        assert isinstance(found, BoundedOneSum) is tilted


@pytest.mark.ordinary("x0", "x2")
@pytest.mark.parametrize(("x", "lower", "upper"), CASES)
def test_draws_fit_the_enumerated_law(x, lower, upper) -> None:
    with words_of(f"draws {x}") as words:
        drawn = sampler(lower, upper, OneSum(len(x))).publish(np.tile(np.array(x), (1_000, 1)), None, words)
    check_fit_categories(Counter(map(tuple, drawn.tolist())), law(x, lower, upper, QUARTER), name=f"one sum with bounds, {x}")


@pytest.mark.long
def test_draws_with_the_untilted_accept_step_are_told_apart(monkeypatch) -> None:
    """Power: the known mistake, at a tilt that is always used."""
    x, lower, upper = CASES[1]
    plain = last_exponents
    fixed = SimpleNamespace(tilt=3 * parts_of_rate(3) // 4, is_settled=True, tell=lambda _: None)
    monkeypatch.setattr(bounded_one_sum, "TiltSearch", lambda *_: fixed)
    expected = law(x, lower, upper, QUARTER)

    def p_value(label: str) -> float:
        with words_of(label) as words:
            drawn = sampler(lower, upper, OneSum(3)).publish(np.tile(np.array(x), (3_000, 1)), None, words)
        counts = Counter(map(tuple, drawn.tolist()))
        return chi_square_p_value([counts[y] for y in expected], list(expected.values()), 3_000)

    assert p_value("right") > ALPHA
    monkeypatch.setattr(bounded_one_sum, "last_exponents", lambda fall, rise, *others: plain((fall + rise) / 2, (fall + rise) / 2, *others))
    assert p_value("wrong") < ALPHA


def test_signs_turn_the_sum_around() -> None:
    """x - y kept: both between 0 and 3."""
    x = (1, 2, 0)
    with words_of("signs") as words:
        drawn = sampler(0, 2, OneSum(3, (1, -1, 1))).publish(np.tile(np.array(x), (1_000, 1)), None, words)
    same = [y for y in product(range(3), repeat=3) if y[0] - y[1] + y[2] == x[0] - x[1] + x[2]]
    weights = {y: math.exp(-0.25 * sum(abs(a - b) for a, b in zip(x, y, strict=True))) for y in same}
    whole = sum(weights.values())
    check_fit_categories(Counter(map(tuple, drawn.tolist())), {y: w / whole for y, w in weights.items()}, name="one sum of both signs")


def test_a_free_cell_between_bounds() -> None:
    shape = Bounded(Free(1), 0, 5)
    found = choose(shape, ConditionalLaplace(HALF)).sampler
    assert isinstance(found, InputSampler)
    with words_of("free") as words:
        drawn = found.publish(np.full((20_000, 1), 1), None, words)
    weights = [math.exp(-0.5 * abs(y - 1)) for y in range(6)]
    check_fit(drawn.ravel(), [w / sum(weights) for w in weights], name="a free cell between bounds")


@settings(deadline=None, max_examples=examples(60))
@given(st.data())
def test_totals_and_bounds_hold_for_any_table(data) -> None:
    cells = data.draw(st.integers(2, 9))
    x = np.array(data.draw(st.lists(st.integers(0, 50), min_size=cells, max_size=cells)))
    lower = tuple(data.draw(st.none() | st.integers(int(v) - 60, int(v))) for v in x)
    upper = tuple(data.draw(st.none() | st.integers(int(v), int(v) + 60)) for v in x)
    shape = Bounded(OneSum(cells), lower, upper)
    with words_of("any") as words:
        drawn = BoundedOneSum(shape, Fraction(1, 3)).publish(x[None, :], None, words)
    assert drawn.sum() == x.sum()
    assert shape.holds(drawn).all()


@pytest.mark.parametrize("x", [(2, 0, 1), (5, 5, 5)])
def test_a_total_that_its_bounds_fix_leaves_no_choice(x) -> None:
    with words_of("forced") as words:
        assert sampler(x, None, OneSum(3)).publish(np.array([x]), None, words).tolist() == [list(x)]
        assert sampler(None, x, OneSum(3)).publish(np.array([x]), None, words).tolist() == [list(x)]
        assert words.position == 0


ROOMS = st.none() | st.integers(1, 10**6)


@settings(deadline=None, max_examples=examples(100))
@given(st.integers(3, 2000), st.fractions(Fraction(1, 10**6), 3), ROOMS, ROOMS, st.floats(0, 1))
def test_the_search_finds_the_tilt_whose_sums_change_sides(cells, rate, fall, rise, place) -> None:
    """The ends are public; no tilt is flat, and an arm that has no bound never grows."""
    one = parts_of_rate(cells)
    least, most = widest_tilts(cells, rate, (True, True), fall, rise)
    assert fall is not None or most < one
    assert rise is not None or least > -one
    best = least + round(place * (most - least))
    search = TiltSearch(least, most, one)
    for _ in range((most - least).bit_length() + 2):
        assert least <= search.tilt <= most
        assert abs(search.tilt) != one
        if abs(search.tilt - best) <= 2:
            break
        search.tell(np.full(8, 1 if search.tilt < best else -1))
        assert not search.is_settled
    assert abs(search.tilt - best) <= 2
    here = search.tilt
    search.tell(np.array([1, -3, 2, 2, 5, 0, 0, 1]))
    assert (search.tilt, search.is_settled) == (here, True)


def test_the_search_begins_again_where_chance_led_it_astray() -> None:
    search = TiltSearch(-15, 15, 16)
    seen = []
    for way in [1] * 6 + [-1] * 20:
        search.tell(np.full(8, way))
        seen.append(search.tilt)
    assert max(seen) > 12
    assert min(seen) < -12


def test_one_sided_bounds_are_searched_on_one_side() -> None:
    assert widest_tilts(5, QUARTER, (True, False), None, None) == (0, parts_of_rate(5) - 1)
    assert widest_tilts(5, QUARTER, (False, True), None, None) == (1 - parts_of_rate(5), 0)


@pytest.mark.parametrize(
    ("rate", "x", "most_tries"),
    [
        (QUARTER, [1] * 10 + [0] * 990, 1_000),
        (QUARTER, [1] * 50 + [0] * 150, 1_000),
        (Fraction(1), [2, 0, 0, 1] + [0] * 496, 1_000),
        (Fraction(1, 10**6), [0, 10**7, 3, 0], 1_000),
    ],
    ids=str,
)
def test_sparse_blocks_take_few_tries(rate, x, most_tries) -> None:
    """A try takes two words for each cell and one to accept. The key is fixed, so the number is one number."""
    with words_of("few tries") as words:
        drawn = BoundedOneSum(Bounded(OneSum(len(x)), 0, None), rate).publish(np.array([x]), None, words)
        assert words.position < most_tries * (2 * len(x) + 1)
    assert drawn.sum() == sum(x)
    assert drawn.min() >= 0
