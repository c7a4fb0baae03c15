"""The oracles against their laws: by enumerating bit strings where that settles something, then by goodness of fit."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from itertools import product

import numpy as np
import pytest
from flint import arb, ctx, fmpq

from holdfast.research import oracles
from holdfast.testing import ListedWords, WordsExhausted, check_brackets, check_fit, check_fit_categories
from holdfast.testing.words import FairBits
from tests.testing.explore import Bracket, Path, Value, choose_coin, enclosure, explore_bits, explore_choices

SEED = 20240612


def widest(bracket: Bracket[Value]) -> Fraction:
    lower, upper = bracket
    return max(upper[k] - lower[k] for k in lower)


def fair_bits(seed: int, words: int = 2_000_000) -> FairBits:
    return FairBits(ListedWords(np.random.default_rng(seed).integers(0, 1 << 32, size=words, dtype=np.uint32)))


def ball(value: Fraction | int) -> arb:
    return arb(fmpq(value.numerator, value.denominator))


def laplace_ball(scale: Fraction, k: int) -> arb:
    with ctx.workprec(256):
        a = (-1 / ball(scale)).exp()
        return (1 - a) / (1 + a) * a ** abs(k)


@cache
def gaussian_total(sigma_squared: Fraction, center: Fraction) -> arb:
    """The normaliser; what lies beyond 40 standard deviations is below 1e-300, and is in the radius."""
    reach = 40 * (math.isqrt(math.ceil(sigma_squared)) + 1)
    middle = round(center)
    with ctx.workprec(256):
        weights = (gaussian_weight(sigma_squared, center, k) for k in range(middle - reach, middle + reach + 1))
        return sum(weights, start=arb(0, 1e-300))


def gaussian_weight(sigma_squared: Fraction, center: Fraction, k: int) -> arb:
    with ctx.workprec(256):
        return (-ball((k - center) ** 2 / (2 * sigma_squared))).exp()


def gaussian_ball(sigma_squared: Fraction, center: Fraction, k: int) -> arb:
    with ctx.workprec(256):
        return gaussian_weight(sigma_squared, center, k) / gaussian_total(sigma_squared, center)


# Fair bits.


def test_bits_come_from_the_top_of_each_word_in_order():
    bits = FairBits(ListedWords([0x80000001, 0xF0000000, 7]))
    assert bits.bit() == 1
    assert bits.bits(30) == 0
    assert bits.bits(5) == 0b11111  # across the border of two words
    assert bits.bits(0) == 0
    assert bits.bits(28 + 32) == 7
    with pytest.raises(WordsExhausted):
        bits.bit()


def test_a_word_is_taken_only_when_needed():
    words = ListedWords([1, 2, 3])
    bits = FairBits(words)
    bits.bits(32)
    assert words.position == 1
    bits.bit()
    assert words.position == 2


# Enumeration: no statistics. Each layer is enumerated over the one beneath it: bits, rational coins, exponential coins, laws.


@pytest.mark.parametrize("bound", [1, 2, 3, 5, 6, 7, 8, 12])
def test_below_is_uniform(bound: int):
    lower, upper = explore_bits(lambda bits: bits.below(bound), 12)
    assert set(lower) == set(range(bound))
    assert len(set(lower.values())) == 1
    check_brackets(lower, upper, lambda k: (Fraction(1, bound), Fraction(1, bound)))
    assert upper[0] - lower[0] <= Fraction(1, 8)


@pytest.mark.parametrize("p", [Fraction(1, 3), Fraction(2, 4), Fraction(5, 7), Fraction(9, 10), Fraction(0), 1])
def test_bernoulli_has_its_probability(p: Fraction):
    lower, upper = explore_bits(lambda bits: oracles.bernoulli(p, bits), 14)
    check_brackets(lower, upper, lambda k: (p, p) if k else (1 - p, 1 - p))
    assert widest((lower, upper)) < Fraction(1, 10)


@pytest.fixture
def rational_coins(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rational coins are choices: what is enumerated is the algorithm above them."""
    monkeypatch.setattr(oracles, "bernoulli", lambda p, bits: choose_coin(ball(p), bits))


@pytest.fixture
def exponential_coins(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same for coins of probability exp(-gamma)."""
    monkeypatch.setattr(oracles, "bernoulli_exp", lambda gamma, bits: choose_coin((-ball(gamma)).exp(), bits))


GAMMAS = [Fraction(0), Fraction(1, 3), Fraction(1, 2), Fraction(6, 7), Fraction(1), Fraction(3, 2), Fraction(2), Fraction(10, 3)]


def exp_bounds(gamma: Fraction) -> Callable[[bool], tuple[Fraction, Fraction]]:
    with ctx.workprec(256):
        p = (-ball(gamma)).exp()
        both = {True: enclosure(p), False: enclosure(1 - p)}
    return both.__getitem__


@pytest.mark.parametrize("gamma", GAMMAS)
def test_bernoulli_exp_from_bits(gamma: Fraction):
    bracket = explore_bits(lambda bits: oracles.bernoulli_exp(gamma, bits), 14)
    check_brackets(*bracket, exp_bounds(gamma))
    assert widest(bracket) < Fraction(1, 5)


@pytest.mark.ordinary("gamma0", "gamma1", "gamma5", "gamma6", "gamma7")
@pytest.mark.usefixtures("rational_coins")
@pytest.mark.parametrize("gamma", GAMMAS)
def test_bernoulli_exp_from_rational_coins(gamma: Fraction):
    bracket = explore_choices(lambda bits: oracles.bernoulli_exp(gamma, bits), 1000)
    check_brackets(*bracket, exp_bounds(gamma))
    assert widest(bracket) < Fraction(1, 10**6)


@pytest.fixture
def laplace_proposals(monkeypatch: pytest.MonkeyPatch) -> None:
    """Discrete Laplace draws are choices that start a round; what lies beyond 30 scales is left open."""

    @cache
    def weights(scale: int) -> list[arb]:
        return [laplace_ball(Fraction(scale), k) for k in range(-30 * scale, 30 * scale + 1)]

    def choose_laplace(scale: int, bits: FairBits) -> int:
        assert isinstance(bits, Path)
        return bits.start_round(weights(scale)) - 30 * scale

    monkeypatch.setattr(oracles, "discrete_laplace", choose_laplace)


@pytest.mark.ordinary("scale2", "scale4", "scale5")
@pytest.mark.usefixtures("exponential_coins")
@pytest.mark.parametrize("scale", [Fraction(1), Fraction(1, 3), Fraction(6, 4), Fraction(2), Fraction(7, 3), Fraction(10)])
def test_laplace_probabilities_are_bracketed(scale: Fraction):
    bracket = explore_choices(lambda bits: oracles.discrete_laplace(scale, bits), 2000)
    check_brackets(*bracket, lambda k: enclosure(laplace_ball(scale, k)))
    assert widest(bracket) < Fraction(1, 10**6)


@pytest.mark.usefixtures("exponential_coins", "laplace_proposals")
@pytest.mark.parametrize("sigma_squared", [Fraction(1, 3), Fraction(1), Fraction(7, 3), Fraction(25, 2)])
@pytest.mark.parametrize("center", [None, Fraction(0), Fraction(1, 2), Fraction(-1, 2), Fraction(-22, 7)])
def test_gaussian_probabilities_are_bracketed(sigma_squared: Fraction, center: Fraction | None):
    def draw(bits: FairBits) -> int:
        if center is None:
            return oracles.discrete_gaussian(sigma_squared, bits)
        return oracles.discrete_gaussian_centered(sigma_squared, center, bits)

    bracket = explore_choices(draw, 1000)
    check_brackets(*bracket, lambda k: enclosure(gaussian_ball(sigma_squared, center or Fraction(0), k)))
    assert widest(bracket) < Fraction(1, 10**6)


@pytest.mark.usefixtures("rational_coins")
@pytest.mark.parametrize(("total", "parts"), [(0, 1), (3, 1), (0, 3), (2, 2), (2, 3), (3, 3), (5, 4)])
def test_every_composition_is_equally_likely(total: int, parts: int):
    size = math.comb(total + parts - 1, parts - 1)
    lower, upper = explore_choices(lambda bits: oracles.uniform_composition(total, parts, bits), 4 * 3**7)
    assert set(lower) == {x for x in product(range(total + 1), repeat=parts) if sum(x) == total}
    assert widest((lower, upper)) < Fraction(1, 10**60)
    assert all(lower[x] <= Fraction(1, size) <= upper[x] for x in lower)


# The quantile function of [GM20], Appendix B.

SCALES = [Fraction(1, 10), Fraction(1, 3), Fraction(1), Fraction(6, 4), Fraction(7, 3), Fraction(10), Fraction(1000)]


def cdf(scale: Fraction, u: int) -> arb:
    """F(u) as printed in [GM20]."""
    log_a = -1 / ball(scale)
    one_plus_a = 1 + log_a.exp()
    return (-u * log_a).exp() / one_plus_a if u <= 0 else 1 - ((u + 1) * log_a).exp() / one_plus_a


@pytest.mark.parametrize("scale", SCALES)
def test_printed_distribution_function_is_that_of_the_law(scale: Fraction):
    with ctx.workprec(256):
        for u in range(-20, 21):
            difference = cdf(scale, u) - cdf(scale, u - 1)
            assert difference.overlaps(laplace_ball(scale, u))
            assert abs(difference - laplace_ball(scale, u)) < 1e-40


@pytest.mark.parametrize("scale", SCALES)
def test_quantile_is_the_smallest_point_whose_distribution_function_reaches(scale: Fraction):
    fractions = [Fraction(i, 97) for i in range(1, 97)] + [Fraction(1, 2**40), 1 - Fraction(1, 2**40), Fraction(1, 2)]
    for v in fractions:
        u = oracles.quantile_at(scale, v)
        with ctx.workprec(256):
            assert cdf(scale, u) > ball(v)
            assert cdf(scale, u - 1) < ball(v)


@pytest.mark.parametrize("scale", SCALES)
def test_quantile_jumps_where_the_distribution_function_does(scale: Fraction):
    """Rationals within 2^-200 of F(u): below it the answer is u, above it u + 1. Both need balls of more than the first precision."""
    for u in (-3, -1, 0, 1, 4):
        with ctx.workprec(1024):
            low, high = enclosure(cdf(scale, u))
        near = Fraction(1, 1 << 200)
        assert oracles.quantile_at(scale, low - near) == u
        assert oracles.quantile_at(scale, high + near) == u + 1


def test_quantile_sampler_reads_on_while_the_interval_straddles_a_jump():
    """For scale 1 the first 32 bits at F(0) leave 0 or 1 open; 32 more settle it. All zeros and all ones are never enough."""
    with ctx.workprec(256):
        low, _ = enclosure(cdf(Fraction(1), 0))
    word = int(low * 2**32)
    for following, expected in ((0, 0), (2**32 - 1, 1)):
        words = ListedWords([word, following])
        assert oracles.double_geometric_quantile(1, FairBits(words)) == expected
        assert words.position == 2
    with pytest.raises(WordsExhausted):
        oracles.double_geometric_quantile(1, FairBits(ListedWords([0, 0, 0])))
    with pytest.raises(WordsExhausted):
        oracles.double_geometric_quantile(1, FairBits(ListedWords([2**32 - 1] * 3)))


def test_flint_precision_is_left_alone():
    before = ctx.prec
    oracles.quantile_at(Fraction(7, 3), Fraction(1, 3))
    assert ctx.prec == before


# Goodness of fit.

PARAMETERS = [Fraction(1, 3), Fraction(3, 2), Fraction(6, 4), Fraction(7, 3), Fraction(100, 10), Fraction(25, 2)]


def check_draws(draw: Callable[[FairBits], int], law: Callable[[int], arb], name: str, n: int, center: int = 0) -> None:
    bits = fair_bits(SEED)
    check_fit([draw(bits) for _ in range(n)], lambda k: float(law(k).mid()), name=f"{name}, seed {SEED}", offset=center)


@pytest.mark.ordinary("scale0", "scale3", "scale4")
@pytest.mark.parametrize("scale", PARAMETERS)
def test_laplace_fits(scale: Fraction):
    check_draws(lambda bits: oracles.discrete_laplace(scale, bits), lambda k: laplace_ball(scale, k), f"Laplace {scale}", 4000)


@pytest.mark.ordinary("scale0", "scale3")
@pytest.mark.parametrize("scale", PARAMETERS)
def test_quantile_sampler_fits(scale: Fraction):
    check_draws(lambda bits: oracles.double_geometric_quantile(scale, bits), lambda k: laplace_ball(scale, k), f"quantile {scale}", 10_000)


@pytest.mark.ordinary("sigma_squared1", "sigma_squared3")
@pytest.mark.parametrize("sigma_squared", PARAMETERS)
def test_gaussian_fits(sigma_squared: Fraction):
    def law(k: int) -> arb:
        return gaussian_ball(sigma_squared, Fraction(0), k)

    check_draws(lambda bits: oracles.discrete_gaussian(sigma_squared, bits), law, f"Gaussian {sigma_squared}", 4000)


CENTERS = [Fraction(0), Fraction(1, 2), Fraction(-1, 2), Fraction(1, 3), Fraction(-22, 7), Fraction(2001, 2)]


@pytest.mark.ordinary("center0", "center3")
@pytest.mark.parametrize("center", CENTERS)
def test_centered_gaussian_fits(center: Fraction):
    def draw(bits: FairBits) -> int:
        return oracles.discrete_gaussian_centered(Fraction(7, 3), center, bits)

    check_draws(draw, lambda k: gaussian_ball(Fraction(7, 3), center, k), f"Gaussian around {center}", 3000, round(center))


@pytest.mark.parametrize(("total", "parts"), [(5, 3), (3, 5), (40, 2)])
def test_compositions_fit(total: int, parts: int):
    bits, n = fair_bits(SEED), 5000
    counts = Counter(oracles.uniform_composition(total, parts, bits) for _ in range(n))
    size = math.comb(total + parts - 1, parts - 1)
    law = {x: Fraction(1, size) for x in product(range(total + 1), repeat=parts) if sum(x) == total}
    check_fit_categories(counts, law, name=f"compositions of {total} into {parts}, seed {SEED}")


@pytest.mark.long
@pytest.mark.parametrize("parameter", [Fraction(1, 3), Fraction(7, 3), Fraction(25, 2), Fraction(1000)])
def test_laplace_and_gaussian_fit_with_more_draws(parameter: Fraction):
    check_draws(lambda bits: oracles.discrete_laplace(parameter, bits), lambda k: laplace_ball(parameter, k), "many Laplace", 30_000)
    center = Fraction(0)
    check_draws(
        lambda bits: oracles.discrete_gaussian(parameter, bits), lambda k: gaussian_ball(parameter, center, k), "many Gaussian", 30_000
    )


def test_proposals_are_one_wider_than_the_whole_standard_deviation():
    """floor(sigma) + 1, where floating point would round the root of 10^40 - 1/3 up."""
    for sigma_squared, scale in ((Fraction(1, 3), 1), (1, 2), (Fraction(15, 4), 2), (4, 3), (10**40 - Fraction(1, 3), 10**20)):
        assert oracles._proposal_scale(sigma_squared) == scale


def test_huge_and_tiny_parameters_stay_exact():
    """Parameters far outside floating point still give integers of the right size."""
    bits = fair_bits(SEED)
    huge = Fraction(10**400, 3)
    assert all(abs(oracles.discrete_laplace(huge, bits)) < 10**403 for _ in range(20))
    assert all(abs(oracles.discrete_gaussian(huge, bits)) < 10**203 for _ in range(20))
    assert [oracles.discrete_gaussian(Fraction(1, 10**6), bits) for _ in range(5)] == [0] * 5
    assert all(abs(oracles.discrete_gaussian_centered(1, 10**300 + Fraction(1, 3), bits) - 10**300) < 20 for _ in range(20))
