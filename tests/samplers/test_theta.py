"""Theta ratios against their definition, summed in balls."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from flint import arb
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import ArrayLike, NDArray

from holdfast.exact.balls import ball, precision
from holdfast.samplers.theta import SAFE_FOUR_PI_SQUARED, log_theta3, log_theta_error, log_theta_ratio, theta_ratio_ball, tries_bound

VARIANCES = [Fraction(text) for text in ("1/1000", "1/100", "1/20", "4/25", "1/6", "9/50", "1", "7", "20")]
CENTRES = [Fraction(1, 2), Fraction(-1, 2), Fraction(49, 100), Fraction(1, 3), Fraction(1, 10), Fraction(1, 10**9), Fraction(22, 3)]


def theta(s_squared: Fraction, c: Fraction) -> arb:
    """The definition; |k| <= 150 leaves e^-500 at s^2 = 20."""
    return sum(((-ball((k - c) ** 2 / (2 * s_squared))).exp() for k in range(-150, 151)), arb(0))


def loss_bound(s_squared: ArrayLike, distance: ArrayLike) -> NDArray[np.float64]:
    """The bound of 1 - theta_s(c) / theta_s(0) by which compiled loops keep a block [theory T17]; infinity where q > 1/2.

    39.5 in place of 4 pi^2 and the floor of 10^-100 under q, which also avoids denormal numbers, cover all roundings.
    """
    variance, d = np.asarray(s_squared, dtype=np.float64), np.asarray(distance, dtype=np.float64)
    nome = np.maximum(np.exp(-2 * math.pi**2 * variance), 1e-100)
    return np.where(nome <= 0.5, SAFE_FOUR_PI_SQUARED * nome * d * d, np.inf)


@pytest.mark.parametrize("s_squared", VARIANCES, ids=str)
@pytest.mark.parametrize("c", CENTRES, ids=str)
def test_all_three_agree_with_the_definition(s_squared: Fraction, c: Fraction) -> None:
    with precision(200):
        found = theta_ratio_ball(s_squared, c)
        assert found.rad() < arb(2) ** -180
    with precision(500):
        truth = theta(s_squared, c) / theta(s_squared, Fraction(0))
        wide = arb(0, 1) * arb(2) ** -240  # what the definition leaves out
        assert found.overlaps(truth + wide)
        off = abs(truth.log() - arb(float(log_theta_ratio(float(s_squared), float(c)))))
        assert off < arb(float(log_theta_error(float(s_squared))))
        assert arb(min(float(loss_bound(float(s_squared), float(abs(c - round(c))))), 2.0)) >= 1 - truth


@given(st.fractions(Fraction(1, 500), 40, max_denominator=10**6), st.fractions(0, Fraction(1, 2), max_denominator=10**6))
def test_doubles_keep_their_promises(s_squared: Fraction, d: Fraction) -> None:
    with precision(600):
        truth = theta_ratio_ball(s_squared, d)
        found = arb(float(log_theta_ratio(float(s_squared), float(d))))
        assert abs(truth.log() - found) < arb(float(log_theta_error(float(s_squared))))
        bound = float(loss_bound(float(s_squared), float(d)))
        assert bound == math.inf or arb(bound) >= 1 - truth


def test_the_loss_bound_is_not_absurd() -> None:
    """Within a factor pi^2 / 4 (from sin x <= x at x = pi / 2) and a few parts in a thousand of the truth, for small q."""
    truth = -np.expm1(log_theta_ratio(1.0, np.array([0.5, 0.01])))
    ratio = loss_bound(1.0, np.array([0.5, 0.01])) / truth
    assert 2.46 < ratio[0] < 2.48
    assert 1 <= ratio[1] < 1.002


def test_an_array_is_the_same_as_its_numbers() -> None:
    s_squared, c = np.array([[0.05], [0.3], [4.0]]), np.array([-1.5, 0.0, 0.2, 7.0])
    found = log_theta_ratio(s_squared, c)
    assert found.shape == (3, 4)
    assert all(found[i, j] == log_theta_ratio(s_squared[i, 0], c[j]) for i in range(3) for j in range(4))
    assert (found[:, [1, 3]] == 0).all()


@pytest.mark.parametrize("s_squared", [0.01, 0.1, 0.16, 0.17, 0.5, 3.0])
def test_theta3(s_squared: float) -> None:
    direct = sum(math.exp(-k * k / (2 * s_squared)) for k in range(-40, 41)) / math.sqrt(2 * math.pi * s_squared)
    assert math.isclose(float(log_theta3(s_squared)), math.log(direct), rel_tol=1e-12, abs_tol=1e-14)


def test_tries_bound_has_the_known_values() -> None:
    """[theory R7]: the bound is 10 at s = .48 for 100 coordinates, .59 for 10^3, .76 for 10^5, .83 for 10^6, .90 for 10^7."""
    for s, coordinates in ((0.48, 100), (0.59, 10**3), (0.76, 10**5), (0.83, 10**6), (0.90, 10**7)):
        assert 6 < tries_bound(s * s, coordinates) < 14
    assert tries_bound(0.01, 10**6) == math.inf
    assert tries_bound([1.0, 1.0, 2.0]) == pytest.approx(tries_bound([1.0, 2.0], [2, 1]))
