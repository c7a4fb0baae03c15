"""The lower bound of [theory T102]: each step of its proof on finite laws, and mechanisms whose error is known."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.errors import InvalidParameter
from holdfast.exact.laws import DiscreteLaplace
from holdfast.research.subspace.analytic_gaussian import analytic_sigma_squared
from holdfast.research.subspace.design import information, least_squared_error
from tests.examples import examples

Pair = tuple[np.ndarray, np.ndarray]


def worst_pair(epsilon: float, delta: float) -> Pair:
    """Tells the truth with probability delta, else answers one of two ways with odds e^epsilon."""
    up, down = (1 - delta) / (1 + math.exp(-epsilon)), (1 - delta) / (1 + math.exp(epsilon))
    return np.array([delta, up, down, 0]), np.array([0, down, up, delta])


def promised_delta(pair: Pair, epsilon: float) -> float:
    """The least delta with which two finite laws are (epsilon, delta)-indistinguishable."""
    p, q = pair
    return max(float(np.maximum(a - math.exp(epsilon) * b, 0).sum()) for a, b in ((p, q), (q, p)))


def triangular(pair: Pair) -> float:
    p, q = pair
    both = p + q
    return float(((p - q)[both > 0] ** 2 / both[both > 0]).sum())


def bound_on_triangular(epsilon: float, delta: float) -> float:
    return 2 * ((1 - delta) * math.tanh(epsilon / 2) ** 2 + delta)


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.0, 4.0])
@pytest.mark.parametrize("delta", [0.0, 1e-6, 0.1, 0.6])
def test_the_worst_pair_keeps_the_promise_and_attains_the_bound(epsilon: float, delta: float) -> None:
    pair = worst_pair(epsilon, delta)
    assert promised_delta(pair, epsilon) == pytest.approx(delta, abs=1e-15)
    assert triangular(pair) == pytest.approx(bound_on_triangular(epsilon, delta), rel=1e-12)
    t = bound_on_triangular(epsilon, delta) / 2
    assert information(epsilon, delta) == pytest.approx(4 * t / (1 - t), rel=1e-12)


@given(seed=st.integers(0, 10**6), epsilon=st.floats(0.05, 3), size=st.integers(2, 6))
@settings(max_examples=examples(200), deadline=None)
def test_no_pair_of_laws_goes_above_it_and_no_estimate_below_the_variance_that_follows(seed: int, epsilon: float, size: int) -> None:
    random = np.random.default_rng(seed)
    pair = random.dirichlet(np.full(size, 0.5)), random.dirichlet(np.full(size, 0.5))
    delta = promised_delta(pair, epsilon)
    assert triangular(pair) <= bound_on_triangular(epsilon, delta) * (1 + 1e-12)
    values = random.normal(size=size)  # what is answered in each case
    means = [float(p @ values) for p in pair]
    variances = sum(float(p @ values**2) - mean**2 for p, mean in zip(pair, means, strict=True))
    if delta < 1:
        assert (means[0] - means[1]) ** 2 <= information(epsilon, delta) / 2 * variances * (1 + 1e-9) + 1e-12


@pytest.mark.parametrize("epsilon", ["1/100", "1/2", "2"])
def test_whole_laplace_noise_on_one_count_has_twice_the_bound(epsilon: str) -> None:
    from fractions import Fraction

    variance = DiscreteLaplace(scale=1 / Fraction(epsilon)).variance()
    assert variance == pytest.approx(2 * least_squared_error(1, Fraction(epsilon)), rel=1e-9)


@pytest.mark.parametrize(("epsilon", "delta"), [("1/10", "1e-6"), ("1", "1e-6"), ("1", "1e-12"), ("4", "1/100")])
def test_analytic_gaussian_noise_is_above_the_bound(epsilon: str, delta: str) -> None:
    from fractions import Fraction

    variance = analytic_sigma_squared(Fraction(epsilon), Fraction(delta), 1)
    assert variance >= least_squared_error(1, Fraction(epsilon), Fraction(delta))


@pytest.mark.parametrize(("epsilon", "delta"), [(0, 0), (-1, 0), (1, 1), (1, -0.1)])
def test_parameters_that_promise_nothing_are_refused(epsilon: float, delta: float) -> None:
    with pytest.raises(InvalidParameter, match="delta"):
        information(epsilon, delta)
