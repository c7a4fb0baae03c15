"""Symmetric noise of maximum entropy: the certified root, the closed forms beside enumeration, and what is refused."""

from __future__ import annotations

import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from flint import arb
from hypothesis import given
from hypothesis import strategies as st

import holdfast as hf
from holdfast.cellkey import max_entropy, truncated_laplace
from holdfast.cellkey.max_entropy import SymmetricNoise
from holdfast.cellkey.noise import narrow
from holdfast.errors import InexactParameter, InvalidParameter
from holdfast.exact.balls import Enclosure, ball, floors


@pytest.mark.parametrize(("D", "V", "gamma"), [(11, 4, 0.12500), (11, 10, 0.04981), (15, 4, 0.12500), (15, 10, 0.05000)])
def test_gammas_of_the_paper(D: int, V: int, gamma: float) -> None:
    noise = max_entropy(D, V)
    assert round(noise.gamma_bounds().nearest(), 5) == gamma
    assert float(noise.gamma) == noise.gamma_bounds().nearest()  # type: ignore[arg-type]


@given(st.integers(1, 30), st.fractions("1/1000", "999/1000", max_denominator=10**6))
def test_the_variance_is_the_one_asked_for(D: int, share: Fraction) -> None:
    V = share * D * (D + 1) / 3
    bounds = max_entropy(D, V).variance_bounds()
    assert bounds.lower <= V <= bounds.upper
    assert bounds.upper - bounds.lower <= V / 2**59


@pytest.mark.parametrize(
    ("D", "V"), [(1, "1e-140"), (3, "1e-9"), (10, "36.66666666"), (2, "1.9999999999999999999999999999999999"), (400, 1000)]
)
def test_roots_at_the_ends_of_the_range(D: int, V: str | int) -> None:
    noise = max_entropy(D, V)
    bounds = noise.variance_bounds()
    assert bounds.lower <= Fraction(V) <= bounds.upper
    assert noise.gamma_bounds().lower > 0


def test_no_other_law_of_that_variance_has_more_entropy() -> None:
    """Random directions that keep sum, mean and variance: the entropy falls both ways."""
    noise = max_entropy(4, 3)
    p = np.array([noise.pmf(z) for z in noise.noise])
    z = np.array(noise.noise)
    _, _, basis = np.linalg.svd(np.array([np.ones(9), z, z**2]))

    def entropy(q: np.ndarray) -> float:
        return float(-(q * np.log(q)).sum())

    for step in np.random.default_rng(1).normal(size=(200, 6)) @ basis[3:] * 1e-3:
        assert entropy(p + step) < entropy(p)


def test_a_rational_root_and_exact_ties_in_the_cumulative_sums() -> None:
    """D = 1, V = 1/2: probabilities 1/4, 1/2, 1/4, so that every bound is an integer that balls cannot tell from its neighbours."""
    table = max_entropy(1, "1/2").quantised(256)
    assert table.rows[1].upper == (64, 192, 256)
    assert table.rows[1].bias == 0


def delta_by_proposition_2(noise: SymmetricNoise, epsilon: Fraction) -> Enclosure:
    """delta at this epsilon: the sum over z = -D, ..., max(-D, floor(1/2 - epsilon / (2 gamma))).

    Where the number under the floor is an integer, balls may leave it open; the term in doubt is then zero, and either floor is right.
    """
    last, _ = floors(lambda: ball(Fraction(1, 2)) - ball(epsilon) / (2 * ball(noise.gamma)), 128)

    def delta() -> arb:
        chances = noise.balls()
        total, factor = chances[0], ball(epsilon).exp()
        for z in range(-noise.D + 1, min(last, 0) + 1):
            total += chances[z + noise.D] - factor * chances[z - 1 + noise.D]
        return total

    return narrow(delta)


@given(st.integers(1, 12), st.fractions("1/50", "49/50", max_denominator=100), st.fractions(0, 4, max_denominator=20))
def test_proposition_2_is_the_enumerated_curve(D: int, share: Fraction, epsilon: Fraction) -> None:
    noise = max_entropy(D, share * D * (D + 1) / 3)
    closed, counted = delta_by_proposition_2(noise, epsilon), noise.epsilon_delta().delta_bounds(epsilon)
    assert max(closed.lower, counted.lower) <= min(closed.upper, counted.upper)
    assert counted.upper - counted.lower <= counted.lower / 2**59


def test_the_plateau_starts_at_gamma_times_2d_minus_1() -> None:
    noise = SymmetricNoise(6, Fraction(1, 10))
    losses = noise.epsilon_delta()
    assert losses.plateau_epsilon_bounds.lower <= Fraction(11, 10) <= losses.plateau_epsilon_bounds.upper
    last = noise.pmf_bounds(6)
    for epsilon in ("1.1", "1.2", 5):
        assert delta_by_proposition_2(noise, Fraction(epsilon)).upper >= last.lower
        assert losses.delta_bounds(epsilon).lower <= last.upper
        assert losses.delta_bounds(epsilon).upper <= last.upper * (1 + Fraction(1, 2**50))
    assert losses.delta_bounds("1.09").lower > last.upper
    assert losses.epsilon("1e-9") is None  # below the plateau


@pytest.mark.parametrize(("D", "sigma_squared"), [(1, "1/2"), (5, 3), (25, "12495/254")])
def test_it_is_the_truncated_discrete_gaussian(D: int, sigma_squared: str | int) -> None:
    """The same law by the certified tables of `exact`, which share no code with it: gamma = 1 / (2 sigma^2)."""
    noise = SymmetricNoise(D, 1 / (2 * Fraction(sigma_squared)))
    other = hf.DiscreteGaussian(sigma_squared, lower=-D, upper=D)
    for z in noise.noise:
        ours, theirs = noise.pmf_bounds(z), other.pmf_bounds(z)
        assert max(ours.lower, theirs.lower) <= min(ours.upper, theirs.upper)
    assert noise.variance() == pytest.approx(other.variance(), rel=1e-14)
    laplace = truncated_laplace("1/3", D)
    for z in laplace.noise:
        ours, theirs = laplace.pmf_bounds(z), hf.DiscreteLaplace(3, lower=-D, upper=D).pmf_bounds(z)
        assert max(ours.lower, theirs.lower) <= min(ours.upper, theirs.upper)


def test_the_law_by_direct_sums() -> None:
    noise = SymmetricNoise(3, Fraction(1, 3))
    weights = {z: math.exp(-z * z / 3) for z in range(-3, 4)}
    for z, weight in weights.items():
        assert noise.pmf(z) == pytest.approx(weight / sum(weights.values()), rel=1e-14)
    assert noise.pmf(4) == 0.0
    assert noise.mean_bounds() == (Fraction(0), Fraction(0))
    again = pickle.loads(pickle.dumps(noise))
    assert again.quantised(1 << 16) == noise.quantised(1 << 16)


@pytest.mark.parametrize(
    ("D", "V", "says"),
    [
        (11, 44, "below D .* = 44, .* at least 12"),
        (11, 100, "at least 17"),
        (1, "2/3", "at least 2"),
        (0, 1, "1 or more"),
        (20_001, 1, "at most 20000"),
        (3, 0, "greater than zero"),
        (3, "-1", "greater than zero"),
        (3, "1e-200", "between"),
    ],
)
def test_out_of_range(D: int, V: str | int, says: str) -> None:
    with pytest.raises(InvalidParameter, match=says):
        max_entropy(D, V)


@pytest.mark.parametrize("V", ["2/3", 2, 4, "6.5", 44, 100, "1234.5"])
def test_the_support_that_a_refusal_names_is_the_smallest_that_works(V: str | int) -> None:
    with pytest.raises(InvalidParameter) as refused:
        max_entropy(1, V)
    need = int(str(refused.value).split()[-1].rstrip("."))
    max_entropy(need, V)
    with pytest.raises(InvalidParameter):
        max_entropy(need - 1, V)


def test_a_float_is_refused() -> None:
    with pytest.raises(InexactParameter, match=r"'0\.1'"):
        max_entropy(3, 0.1)  # type: ignore[arg-type]
