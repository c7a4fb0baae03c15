"""Correlated Gaussian noise: the split is private for every neighbour by enumeration, and its error beside others'."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.errors import InvalidParameter
from holdfast.research.subspace.additive import extended_gaussian, projected_gaussian
from holdfast.research.subspace.analytic_gaussian import analytic_sigma_squared, gaussian_delta_bounds
from holdfast.research.subspace.correlated import CorrelatedGaussian, Shape, split, split_factor, tighten_factor
from holdfast.research.subspace.design import least_squared_error, optimal_covariance
from holdfast.research.subspace.query import Changes, Query, prefix_sums, ranges
from holdfast.research.subspace.spaces import InvariantSpace
from holdfast.subspace.sensitivities import Neighbours, Sensitivities
from holdfast.testing.fit import ALPHA, check_p_value
from tests.sums_of_squares import sum_of_squares_p_value

EPSILON, DELTA = Fraction(1, 2), Fraction(1, 10**6)
NEIGHBOURS: tuple[Neighbours, ...] = ("replace-one", "add-remove")
SHAPES: tuple[Shape, ...] = ("split", "optimal")


def with_total(matrix: np.ndarray, neighbours: Neighbours = "replace-one") -> Query:
    """The last answer is kept."""
    kept = [[0] * (len(matrix) - 1) + [1]]
    return Query.linear(matrix, InvariantSpace(kept), neighbours)


@pytest.mark.parametrize("neighbours", NEIGHBOURS)
@given(seed=st.integers(0, 10**6), answers=st.integers(1, 6))
@settings(max_examples=20, deadline=None)
def test_blocks_are_orthonormal_and_every_change_is_at_most_one(neighbours: Neighbours, seed: int, answers: int) -> None:
    changes = Changes.of_matrix(np.random.default_rng(seed).normal(size=(answers, 8)), neighbours)
    blocks = split(changes)
    whole = np.hstack(blocks)
    assert np.allclose(whole.T @ whole, np.eye(answers), atol=1e-9)
    assert [block.shape[1] for block in blocks] == {1: [1], 2: [1, 1], 3: [2, 1], 4: [2, 1, 1], 5: [3, 1, 1], 6: [3, 2, 1]}[answers]
    factor = split_factor(changes)
    vectors = changes.vectors()
    radii = [np.linalg.norm(block.T @ vectors, axis=0).max() for block in blocks]
    assert np.trace(factor @ factor.T) == pytest.approx(
        len(blocks) * sum(r**2 * block.shape[1] for r, block in zip(radii, blocks, strict=True)), rel=1e-9
    )
    sizes = np.linalg.norm(np.linalg.solve(factor, vectors), axis=0)
    assert sizes.max() <= 1 + 1e-9
    tight = tighten_factor(changes, factor)
    assert np.linalg.norm(np.linalg.solve(tight, vectors), axis=0).max() == pytest.approx(1, rel=1e-9)
    assert np.trace(tight @ tight.T) <= np.trace(factor @ factor.T) * (1 + 1e-9)


@pytest.mark.parametrize("neighbours", NEIGHBOURS)
@pytest.mark.parametrize("shape", SHAPES)
def test_the_promise_holds_for_every_neighbour_and_the_invariant_for_every_draw(neighbours: Neighbours, shape: Shape) -> None:
    query = with_total(prefix_sums(7), neighbours)
    law = CorrelatedGaussian(EPSILON, DELTA, covariance=shape).floating(query)
    assert (law.guarantee.epsilon, law.guarantee.delta, law.guarantee.status) == (EPSILON, DELTA, "floating point")
    covariance = law.covariance()
    assert covariance is not None
    free = query.invariants.project(query.neighbour_vectors().T)
    squares = np.einsum("pi,ij,pj->p", free, np.linalg.pinv(covariance, rcond=1e-9), free)  # of each change, in standard deviations
    for square in squares[squares > 1e-9]:
        assert gaussian_delta_bounds(1, EPSILON, Fraction(float(square)) * (1 - Fraction(1, 10**9))).upper <= DELTA
    assert gaussian_delta_bounds(1, EPSILON, Fraction(float(squares.max())) * Fraction(101, 100)).lower > DELTA  # none is wasted
    answers = law.answers(np.arange(7.0), 50, np.random.default_rng(1))
    assert np.abs(answers[:, -1] - 6).max() < 1e-9


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("workload", [prefix_sums, ranges])
@pytest.mark.parametrize("n", [8, 16])
def test_it_beats_spherical_noise_and_stays_above_the_bound(shape: Shape, workload: type, n: int) -> None:
    query = with_total(workload(n))
    law = CorrelatedGaussian(EPSILON, DELTA, covariance=shape).floating(query)
    error = law.expected_squared_error
    assert error is not None
    for other in (projected_gaussian, extended_gaussian):
        spherical = other(query, EPSILON, DELTA).expected_squared_error
        assert spherical is not None
        assert error < spherical
    found = optimal_covariance(Changes.of(query))
    assert error >= 0.999 * float(np.asarray(law.noise.covariance)) * found.least
    assert error > least_squared_error(found.least, EPSILON, DELTA)


def test_no_split_is_better_than_the_optimal_covariance() -> None:
    for n in (4, 9):
        changes = Changes.of(with_total(ranges(n)))
        factor = tighten_factor(changes, split_factor(changes))
        assert np.trace(factor @ factor.T) >= optimal_covariance(changes).least


def test_draws_have_the_covariance_that_is_stated() -> None:
    law = CorrelatedGaussian(EPSILON, DELTA, covariance="optimal").floating(with_total(prefix_sums(6)))
    count = 4000
    noise = law.answers(np.zeros(6), count, np.random.default_rng(20))
    covariance = law.covariance()
    assert covariance is not None
    inverse = np.linalg.pinv(covariance, rcond=1e-9)

    def p_value(factor: float) -> float:
        total = float(np.einsum("ni,ij,nj->", noise, inverse, noise)) * factor
        return sum_of_squares_p_value(total, 5 * count, 5 * count, 1)

    check_p_value(p_value(1), name="correlated gaussian, sum of squares", n=count, statistic=0)
    assert p_value(1.1) < ALPHA  # a covariance off by a tenth is seen
    for i in range(5):  # and so is each answer on its own
        total = float((noise[:, i] ** 2).sum() / covariance[i, i])
        check_p_value(sum_of_squares_p_value(total, count, count, 1), name=f"correlated gaussian, answer {i}", n=count, statistic=total)


def test_the_calibration_is_the_analytic_one() -> None:
    law = CorrelatedGaussian(EPSILON, DELTA).floating(with_total(prefix_sums(4)))
    assert law.noise.covariance == float(analytic_sigma_squared(EPSILON, DELTA, 1))
    assert math.isclose(float(gaussian_delta_bounds(analytic_sigma_squared(EPSILON, DELTA, 1), EPSILON).upper), DELTA, rel_tol=1e-3)


def test_what_it_cannot_use_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="covariance is one of"):
        CorrelatedGaussian(1, DELTA, covariance="best")  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter):
        CorrelatedGaussian(0.5, DELTA)  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match="linear query"):
        CorrelatedGaussian(1, DELTA).floating(Query(InvariantSpace([[1, 1]]), Sensitivities(l2_squared=Fraction(1))))
