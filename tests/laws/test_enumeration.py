"""Every mechanism on every small lattice, through the public interface, against the law summed over the lattice.

Power: one check of 400,000 draws sees a budget 5 % off on each of these lattices; the samplers' own tests, on 10^7 draws, see 1 %.
"""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import holdfast as hf
from holdfast.channels import Law
from holdfast.lattices.gram_schmidt import gram_schmidt
from holdfast.laws.families import gaussian_log_tail, laplace_log_tail, sum_upwards
from holdfast.testing import check_fit_categories
from holdfast.testing.fit import chi_square_p_value
from tests.laws.lattices import LATTICES, sigma_squared_of

Points = NDArray[np.int64]

DRAWS = 400_000
MECHANISMS: dict[str, Any] = {
    "l1 Laplace, epsilon 1": hf.GeneralizedLaplace(epsilon="1", per="distance"),
    "l1 Laplace, epsilon 3/2": hf.GeneralizedLaplace(epsilon="3/2", per="distance"),
    "l2 Laplace, epsilon 3/2": hf.GeneralizedLaplace(epsilon="3/2", norm="l2", per="distance"),
    "Gaussian, sigma 0.6": hf.GeneralizedGaussian(sigma_squared="0.36"),
    "Gaussian, sigma_squared 3": hf.GeneralizedGaussian(sigma_squared=3),
}
WEAKER: dict[str, Any] = {
    "l1 Laplace, epsilon 1": hf.GeneralizedLaplace(epsilon="0.95", per="distance"),
    "l1 Laplace, epsilon 3/2": hf.GeneralizedLaplace(epsilon="1.425", per="distance"),
    "l2 Laplace, epsilon 3/2": hf.GeneralizedLaplace(epsilon="1.425", norm="l2", per="distance"),
    "Gaussian, sigma 0.6": hf.GeneralizedGaussian(sigma_squared="0.378"),
    "Gaussian, sigma_squared 3": hf.GeneralizedGaussian(sigma_squared="3.15"),
}


@cache
def points_of(which: str) -> Points:
    """All lattice points that carry weight, from a box of coefficients in a reduced basis."""
    lattice = LATTICES[which]
    reach = {1: 60, 2: 40, 4: 11}[lattice.dimension]
    coefficients = np.array(list(product(range(-reach, reach + 1), repeat=lattice.dimension)), dtype=np.int64)
    return coefficients @ np.asarray(lattice.basis, dtype=np.int64).T


def weights_of(points: Points, mechanism: Any) -> NDArray[np.float64]:
    if isinstance(mechanism, hf.GeneralizedGaussian):
        assert mechanism.sigma_squared is not None
        return np.asarray(np.exp(-(points**2).sum(axis=1) / (2 * float(mechanism.sigma_squared))))
    length = np.abs(points).sum(axis=1) if mechanism.norm == "l1" else np.sqrt((points**2).sum(axis=1))
    return np.asarray(np.exp(-float(mechanism.epsilon) * length))


def summary(points: Points) -> NDArray[np.int64]:
    """The l1 length and the first cell, both cut off far out: what two different laws would show first."""
    return np.asarray(np.minimum(np.abs(points).sum(axis=1), 40) * 16 + np.clip(points[:, 0], -7, 8) + 7)


def law_of_summary(which: str, mechanism: Any) -> dict[int, float]:
    points = points_of(which)
    weights = weights_of(points, mechanism)
    edge = np.abs(points).max(axis=1) == np.abs(points).max()
    assert weights[edge].sum() < 1e-9 * weights.sum(), "the box is too small"
    masses = np.bincount(summary(points), weights=weights)
    return {int(key): float(masses[key] / weights.sum()) for key in np.flatnonzero(masses)}


@pytest.mark.ordinary("l1 Laplace, epsilon 3/2", "epsilon 3/2-one", "epsilon 3/2-2 x", "Gaussian, sigma 0.6", "entries", "no invariant")
@pytest.mark.parametrize("which", LATTICES)
@pytest.mark.parametrize("how", MECHANISMS)
def test_draws_follow_the_enumerated_law_and_a_weaker_budget_is_seen(which: str, how: str) -> None:
    lattice, mechanism = LATTICES[which], MECHANISMS[how]
    draws = mechanism.law(lattice).sample(DRAWS, hf.NoiseKey.for_tests(f"{which}, {how}"))
    assert not (lattice.matrix @ draws.T).any()
    seen = Counter(summary(draws).tolist())
    expected = law_of_summary(which, mechanism)
    check_fit_categories(seen, expected, name=f"{how} on {which}")

    wrong = law_of_summary(which, WEAKER[how])
    counts = np.array([seen.get(key, 0) for key in wrong])
    missing = DRAWS - int(counts.sum())
    assert missing == 0
    lengths = np.array([key // 16 for key in wrong])
    by_length = np.bincount(lengths, weights=counts, minlength=41).astype(np.int64)
    law = np.bincount(lengths, weights=list(wrong.values()), minlength=41)
    assert chi_square_p_value(by_length, law, DRAWS) < 1e-9


@pytest.mark.parametrize("which", LATTICES)
def test_log_weights_are_those_of_the_law(which: str) -> None:
    lattice = LATTICES[which]
    z = lattice.basis[:, 0]
    laplace, euclid = (hf.GeneralizedLaplace(epsilon="1/4", norm=norm, per="distance").law(lattice) for norm in ("l1", "l2"))
    gaussian = hf.GeneralizedGaussian(sigma_squared=3).law(lattice)
    assert laplace.log_weight(z) == pytest.approx(-np.abs(z).sum() / 4)
    assert euclid.log_weight(z) == pytest.approx(-math.sqrt((z**2).sum()) / 4)
    assert gaussian.log_weight(z) == pytest.approx(-(z**2).sum() / 6)
    if lattice.rank:
        outside = np.zeros(lattice.cells, dtype=np.int64)
        outside[np.flatnonzero(lattice.matrix.toarray().any(axis=0))[0]] = 1
        assert laplace.log_weight(outside) == gaussian.log_weight(outside) == -math.inf


@pytest.mark.parametrize("which", ["one sum, 3 cells", "2 x 2", "3 x 3", "entries 2 and -3", "no invariant"])
@pytest.mark.parametrize("how", MECHANISMS)
def test_tail_bounds_hold_and_are_not_idle(which: str, how: str) -> None:
    """Theorems 12 and 15 with explicit constants: above the exact tail at every radius, below one soon after the bulk."""
    lattice, mechanism = LATTICES[which], MECHANISMS[how]
    law: Law = mechanism.law(lattice)
    points = points_of(which)
    weights = weights_of(points, mechanism)
    l1 = isinstance(mechanism, hf.GeneralizedLaplace) and mechanism.norm == "l1"
    lengths = np.abs(points).sum(axis=1) if l1 else np.sqrt((points**2).sum(axis=1))
    for t in np.arange(0.0, 16.0, 0.5):
        exact = float(weights[lengths >= t].sum() / weights.sum())
        assert exact <= law.tail_bound(float(t)) * (1 + 1e-9)
    assert law.tail_bound(40.0) < 1e-3


@pytest.mark.parametrize("which", LATTICES)
def test_covariance_is_that_of_the_enumerated_law(which: str) -> None:
    lattice = LATTICES[which]
    for how, mechanism in MECHANISMS.items():
        weights = weights_of(points_of(which), mechanism)
        points = points_of(which).astype(np.float64)
        exact = (points * weights[:, None]).T @ points / weights.sum()
        stated = mechanism.law(lattice).covariance()
        dense = stated.dense()
        query = np.arange(1.0, lattice.cells + 1)
        assert stated.of(query) == pytest.approx(query @ dense @ query, rel=1e-9, abs=1e-9)
        assert np.allclose(np.diag(dense), stated.diagonal(), rtol=1e-9, atol=1e-12)
        if stated.basis == "exact":
            assert np.allclose(dense, exact, rtol=1e-8 + stated.relative_error, atol=1e-9), how
        elif stated.basis == "upper bound":
            assert np.linalg.eigvalsh(dense - exact).min() > -1e-9, how
        else:  # six and a half standard errors, and the least a rare event can show: false alarm below 1e-9 for each cell
            assert np.all(np.abs(stated.diagonal() - np.diag(exact)) <= 6.5 * stated.relative_error * np.diag(exact) + 1e-9), how


def test_no_invariant_gives_the_laws_of_independent_cells() -> None:
    """The laws of [CKS20]: the product of discrete Gaussians, and of two-sided geometric laws."""
    lattice = LATTICES["no invariant"]
    laws: list[tuple[Any, Any]] = [
        (hf.GeneralizedLaplace(epsilon="1/4", per="distance"), hf.DiscreteLaplace(4)),
        (hf.GeneralizedGaussian(rho="1/10", per="distance"), hf.DiscreteGaussian(5)),
        (hf.RoundedProjection(epsilon="1/4", per="distance"), hf.DiscreteLaplace(4)),
    ]
    for mechanism, cell in laws:
        draws = mechanism.law(lattice).sample(200_000, hf.NoiseKey.for_tests(f"free {mechanism.name}"))
        check_fit_categories(
            Counter(draws[:, 0].tolist()), {k: cell.pmf(k) for k in range(-150, 151)}, name=f"{mechanism.name} without invariants"
        )
        assert abs(np.corrcoef(draws.T)[0, 1]) < 6.5 / math.sqrt(len(draws))


def test_gaussian_calibration_does_not_grow_with_the_table() -> None:
    """At (1/4, 1e-5): variance at most 213 whatever the table; the constant of the paper's order is ten times as large at 4 x 4."""
    from tests.laws.lattices import free, margins, one_sum

    for lattice in (free(1), one_sum(2), one_sum(102), margins(2, 2), margins(4, 4), margins(30, 40)):
        mechanism = hf.GeneralizedGaussian(epsilon="1/4", delta="1/100000", per="distance")
        assert 170 < sigma_squared_of(mechanism, lattice) <= 213
    paper = sigma_squared_of(hf.GeneralizedGaussian(epsilon="1/4", delta="1/100000", calibration="paper", per="distance"), margins(4, 4))
    assert paper >= 10 * 213
    simple = sigma_squared_of(hf.GeneralizedGaussian(epsilon="1/4", delta="1/100000", calibration="simple", per="distance"), margins(4, 4))
    assert 372 < simple < Fraction(3725, 10)


def ball_points_log_bound(dimension: int, log_gram_determinant: float, gram_schmidt_squares: list[float], radius: float) -> float:
    """Natural logarithm of a bound of the number of lattice points of l2 length at most `radius`, for every radius >= 0.

    Guarantees:  V_m (r + mu)^m / sqrt(det), mu = sqrt(sum |b*_i|^2) / 2, which is at least the covering radius: a fundamental cell around
                 each point lies within r + mu. Lemma 11 of [DGGY22] is this for r >= mu / (2^(1/m) - 1).
    """
    mu = math.sqrt(math.fsum(gram_schmidt_squares)) / 2
    log_volume = dimension / 2 * math.log(math.pi) - math.lgamma(dimension / 2 + 1)
    return sum_upwards(log_volume, dimension * math.log(radius + mu) if radius + mu > 0 else 0.0, -log_gram_determinant / 2)


@pytest.mark.parametrize("which", LATTICES)
def test_lattice_points_in_balls_are_bounded_at_every_radius(which: str) -> None:
    """Lemma 11, here without "for r large enough"."""
    lattice = LATTICES[which]
    basis = gram_schmidt(lattice.basis)
    squares = [float(square) for square in basis.squared_lengths]
    assert math.fsum(map(math.log, squares)) == pytest.approx(lattice.log_gram_determinant())
    lengths = np.sqrt((points_of(which) ** 2).sum(axis=1))
    for radius in np.arange(0.0, 9.0, 0.25):
        bound = ball_points_log_bound(lattice.dimension, lattice.log_gram_determinant(), squares, float(radius))
        assert math.log(int((lengths <= radius).sum())) <= bound


def test_a_lattice_without_moves_has_no_noise_to_bound() -> None:
    assert laplace_log_tail(0, Fraction(1), 1.0) == gaussian_log_tail(0, Fraction(1), 1.0) == -math.inf
    assert laplace_log_tail(3, Fraction(1), 2.0) == gaussian_log_tail(4, Fraction(1), 1.0) == 0.0
