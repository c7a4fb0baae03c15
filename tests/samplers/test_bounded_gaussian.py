"""Gaussian noise between bounds: the accept step as an identity of fractions, then fits that a slightly wrong variance fails."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from holdfast.errors import NoExactSampler
from holdfast.lattices.shapes import Bounded, Free, OneSum
from holdfast.laws import ConditionalGaussian, ConditionalLaplace
from holdfast.randomness import NoiseKey
from holdfast.samplers.bounded_small import BoundedGaussian, laplace_rate
from holdfast.samplers.protocol import InputSampler
from holdfast.samplers.table import choose
from holdfast.testing import check_fit_categories
from holdfast.testing.fit import ALPHA, chi_square_p_value

VARIANCES = [Fraction(1, 7), Fraction(1), Fraction(5, 2), Fraction(40), Fraction(10**8)]


def sampler(shape: Bounded, sigma_squared: Fraction) -> BoundedGaussian:
    found = choose(shape, ConditionalGaussian(sigma_squared)).sampler
    assert isinstance(found, BoundedGaussian)
    return found


@pytest.mark.parametrize("sigma_squared", VARIANCES)
def test_proposal_and_accept_step_multiply_to_the_gaussian(sigma_squared: Fraction) -> None:
    """r |z| + (|z| - m)^2 / (2 s^2) = z^2 / (2 s^2) + a constant, in fractions; and the rate is near 1/sigma."""
    rate = laplace_rate(sigma_squared)
    assert abs(float(rate) * math.sqrt(sigma_squared) - 1) < 0.02
    middle = rate * sigma_squared
    exponents = {rate * z + ((z - middle) ** 2 - z * z) / (2 * sigma_squared) for z in range(50)}
    assert exponents == {rate**2 * sigma_squared / 2}


def law(x: tuple[int, ...], upper: int, sigma_squared: float, total: bool) -> dict[tuple[int, ...], float]:
    same = [y for y in product(range(upper + 1), repeat=len(x)) if not total or sum(y) == sum(x)]
    weights = {y: math.exp(-sum((a - b) ** 2 for a, b in zip(x, y, strict=True)) / (2 * sigma_squared)) for y in same}
    whole = sum(weights.values())
    return {y: weight / whole for y, weight in weights.items()}


CASES = [
    (Bounded(Free(1), 0, 4), (1,), 4, False),
    (Bounded(OneSum(2), 0, 5), (4, 1), 5, True),
    (Bounded(OneSum(4), 0, 3), (3, 0, 1, 0), 3, True),
]


@pytest.mark.parametrize(("shape", "x", "upper", "total"), CASES)
def test_draws_fit_the_enumerated_law(shape: Bounded, x: tuple[int, ...], upper: int, total: bool) -> None:
    """And not that of a variance a third larger."""
    n, variance = 3_000, Fraction(3, 2)
    with NoiseKey.for_tests(4).stream("gaussian", str(x)) as words:
        drawn = sampler(shape, variance).publish(np.tile(np.array(x), (n, 1)), None, words)
    counts = Counter(map(tuple, drawn.tolist()))
    check_fit_categories(counts, law(x, upper, 1.5, total), name=f"gaussian with bounds, {x}")
    wrong = law(x, upper, 2.0, total)
    assert chi_square_p_value([counts[y] for y in wrong], list(wrong.values()), n) < ALPHA


def test_a_wider_band_changes_nothing() -> None:
    found, x = sampler(CASES[2][0], Fraction(3, 2)), np.tile([3, 0, 1, 0], (40, 1))
    outcomes = []
    for band in (2.0**-40, 2.0**-20, 2.0**-4):
        with NoiseKey.for_tests(5).stream("band") as words:
            outcomes.append(found.publish(x, None, words, band).tolist())
    assert outcomes[0] == outcomes[1] == outcomes[2]


def test_blocks_without_bounds_and_blocks_that_are_too_large() -> None:
    plain = choose(Bounded(OneSum(30), None, None), ConditionalGaussian(Fraction(2))).sampler
    assert isinstance(plain, InputSampler)
    with NoiseKey.for_tests(6).stream("plain") as words:
        assert plain.publish(np.arange(30)[None, :], None, words).sum() == 435
    with pytest.raises(NoExactSampler, match="too large for Gaussian noise"):
        choose(Bounded(OneSum(30), 0, None), ConditionalGaussian(Fraction(2)))
    assert isinstance(choose(Bounded(OneSum(30), 0, None), ConditionalLaplace(Fraction(2))).sampler, InputSampler)
