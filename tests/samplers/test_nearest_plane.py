"""Randomised nearest plane against its textbook form, its error's covariance by enumeration, numbers of any size."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from holdfast.lattices import algebra
from holdfast.randomness import NoiseKey
from holdfast.samplers.nearest_plane import NearestPlane
from holdfast.samplers.rounded_projection import Coin, WordCoins
from holdfast.testing import ListedWords
from tests.examples import examples

from .test_rounded import LARGE, differences, enumerate_coins, noises, rounding_law

BASES = {"one sum": differences(4), "large": LARGE, "skew": np.array([[1, 5], [-1, -4], [0, -1]]), "not primitive": 3 * differences(3)}


def orthogonal_vectors(basis: NDArray[Any]) -> list[NDArray[Any]]:
    stars: list[NDArray[Any]] = []
    for column in np.asarray(basis, dtype=object).T:
        star = column * Fraction(1)
        for other in stars:
            star = star - (column @ other) / (other @ other) * other
        stars.append(star)
    return stars


def textbook(basis: NDArray[Any], target: NDArray[Any], coin: Coin) -> list[int]:
    """Subtract, from the last vector to the first, the multiple nearest along its orthogonal part, rounded up by its fractional part."""
    stars, rest = orthogonal_vectors(basis), target * Fraction(1)
    total = np.zeros(len(target), dtype=object)
    for column, star in reversed(list(zip(np.asarray(basis, dtype=object).T, stars, strict=True))):
        place = (rest @ star) / (star @ star)
        down = place.numerator // place.denominator
        part = place - down
        step = down + coin(part.numerator, part.denominator)
        rest, total = rest - step * column, total + step * column
    return [int(entry) for entry in total]


@pytest.mark.parametrize("name", BASES)
def test_it_is_the_textbook_algorithm(name: str) -> None:
    sampler = NearestPlane(BASES[name], 1)
    for noise in noises(sampler.cells, 8, name):
        target = np.array(noise, dtype=object)
        assert rounding_law(sampler, noise) == enumerate_coins(lambda coin, target=target: textbook(BASES[name], target, coin))  # type: ignore[misc]


@pytest.mark.parametrize("name", BASES)
def test_the_error_is_uncorrelated_along_orthogonal_vectors(name: str) -> None:
    """Its covariance is diagonal in the directions b*_i, each coefficient of variance at most 1/4: exactly, for every pair."""
    sampler, stars = NearestPlane(BASES[name], 1), orthogonal_vectors(BASES[name])
    for noise in noises(sampler.cells, 6, name):
        law = rounding_law(sampler, noise)
        errors = {z: [((np.array(z, dtype=object) - noise) @ star) / (star @ star) for star in stars] for z in law}
        for i in range(len(stars)):
            assert all(abs(error[i]) < 1 for error in errors.values())
            for j in range(i + 1):
                covariance = sum((p * errors[z][i] * errors[z][j] for z, p in law.items()), Fraction(0))
                assert 0 <= covariance <= Fraction(1, 4) if i == j else covariance == 0


@settings(deadline=None, max_examples=examples(40))
@given(
    st.integers(1, 4).flatmap(lambda m: st.lists(st.lists(st.integers(-9, 9), min_size=m, max_size=m), min_size=m, max_size=m + 2)),
    st.integers(0, 2**62),
)
def test_forms_agree_on_any_basis(rows: list[list[int]], seed: int) -> None:
    assume(algebra.rank(rows) == len(rows[0]))
    sampler = NearestPlane(rows, "1/4")
    words, again = (NoiseKey.for_tests(seed).stream(0) for _ in range(2))
    noise = sampler.law.draw(5 * sampler.cells, words).reshape(5, -1)
    sampler.law.draw(5 * sampler.cells, again)
    rounded = sampler.round(noise, words)
    coin = WordCoins(again)
    assert rounded.tolist() == [sampler.round_one(row, coin) for row in noise.tolist()]
    assert words.position == again.position


def test_denominators_of_any_size() -> None:
    """Thirty cells under six random rows: Gram determinants far beyond 64 bits."""
    rows = np.random.default_rng(1).integers(-3, 4, (6, 30))
    basis = algebra.reduced_basis(algebra.kernel_basis(rows))
    sampler = NearestPlane(basis, "1/4")
    assert not sampler.fits(10)
    drawn = sampler.draw(3, NoiseKey.for_tests("dense").stream(0))
    assert not (rows @ drawn.T).any()
    assert drawn.any()


@pytest.mark.parametrize("verdict", [True, False])
def test_an_open_coin_asks_for_the_extra_bits_of_its_own_word(verdict: bool) -> None:
    """Two draws of two columns: words 0 and 1 serve the first draw, 2 and 3 the second, last column first."""
    sampler = NearestPlane(np.array([[1, 0], [-1, 1], [0, -1]]), 1)
    noise = np.array([[0, 0, -1]] * 2)  # the last column's coefficient is 2/3
    for draw in (0, 1):
        taken = [0, 0, 0, 0]
        taken[2 * draw] = 2 * 2**32 // 3
        extra = {(2 * draw, 0): (0,) * 4 if verdict else (2**32 - 1,) * 4}
        words = ListedWords(taken, extra=lambda index, depth, extra=extra: extra[index, depth])
        fast = sampler.round_fast(noise, words)
        coin = WordCoins(ListedWords(taken, extra=extra))
        assert fast.tolist() == [sampler.round_one(row, coin) for row in noise.tolist()]
        assert np.array_equal(fast[0], fast[1]) == verdict
