"""The smallest ellipsoid and the best covariance: against cases solved by hand, and certificates against other searches."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.errors import InvalidParameter
from holdfast.research.subspace.correlated import CorrelatedGaussian
from holdfast.research.subspace.design import best_weights, enclosing_ellipsoid, optimal_covariance
from holdfast.research.subspace.knorm import KNorm
from holdfast.research.subspace.query import Changes, Query, prefix_sums, ranges, ranges_gram
from holdfast.research.subspace.spaces import InvariantSpace
from holdfast.subspace.sensitivities import Neighbours, Sensitivities
from holdfast.subspace.spaces import read_matrix

NEIGHBOURS: tuple[Neighbours, ...] = ("replace-one", "add-remove")


def changes_of(seed: int, neighbours: Neighbours, answers: int = 4, kinds: int = 7) -> Changes:
    return Changes.of_matrix(np.random.default_rng(seed).normal(size=(answers, kinds)), neighbours)


def largest_in(changes: Changes, matrix: np.ndarray) -> float:
    """The largest v^T matrix^-1 v over all changes."""
    return changes.largest_square(np.asarray(np.linalg.inv(matrix), dtype=np.float64))


class TestChanges:
    @pytest.mark.parametrize("neighbours", NEIGHBOURS)
    def test_sums_over_all_changes_equal_those_over_the_list_of_them(self, neighbours: Neighbours) -> None:
        changes = changes_of(1, neighbours)
        vectors = changes.vectors()
        assert vectors.shape == (4, 21 if neighbours == "replace-one" else 7)
        random = np.random.default_rng(2)
        form = random.normal(size=(4, 4))
        form = form @ form.T
        squares = [v @ form @ v for v in vectors.T]
        assert changes.largest_square(form) == pytest.approx(max(squares), rel=1e-12)
        weights = random.uniform(size=changes.uniform.shape)
        if neighbours == "replace-one":
            weights = np.triu(weights, 1)
            listed = weights[np.triu_indices(7, 1)]
            weights = (weights + weights.T) / 2
        else:
            listed = weights
        assert np.allclose(changes.moment(weights), (vectors * listed) @ vectors.T, rtol=1e-12)
        assert (changes.squares(form) * weights).sum() == pytest.approx(float(np.dot(listed, squares)), rel=1e-12)

    def test_changes_of_a_query_are_those_of_its_free_part_and_their_span_keeps_the_invariants(self) -> None:
        query = Query.linear(prefix_sums(6), InvariantSpace([[0, 0, 0, 0, 0, 1]]))
        changes = Changes.of(query)
        assert changes.dimension == 5
        assert np.abs(changes.basis[-1]).max() < 1e-12
        listed = np.linalg.norm(query.invariants.project(query.neighbour_vectors().T), axis=1)
        assert np.allclose(np.sort(np.linalg.norm(changes.vectors(), axis=0)), np.sort(listed))

    def test_kinds_with_equal_columns_are_one_and_columns_of_zeros_are_none(self) -> None:
        matrix = [[1, 1, 0, 2], [0, 0, 0, 1]]
        assert Changes.of(Query.linear(matrix, InvariantSpace([], 2))).columns.shape == (2, 3)
        assert Changes.of(Query.linear(matrix, InvariantSpace([], 2), "add-remove")).columns.shape == (2, 2)

    @given(st.data())
    def test_the_dimensions_that_change_are_those_of_all_projected_moves(self, data: st.DataObject) -> None:
        n, d = data.draw(st.integers(2, 4)), data.draw(st.integers(2, 4))
        numbers = st.integers(-2, 2)
        matrix = [[Fraction(data.draw(numbers), 3) for _ in range(d)] for _ in range(n)]
        invariants = InvariantSpace([[data.draw(numbers) for _ in range(n)] for _ in range(data.draw(st.integers(0, n - 1)))], n)
        neighbours = data.draw(st.sampled_from(NEIGHBOURS))
        columns = [list(column) for column in zip(*matrix, strict=True)]
        moves = columns if neighbours == "add-remove" else [[a - b for a, b in zip(x, y, strict=True)] for x in columns for y in columns]
        projected = read_matrix([list(invariants.space.project(move)) for move in moves], "moves")
        query = Query(invariants, Sensitivities(neighbours=neighbours), read_matrix(matrix, "matrix"))
        assert query.changed_dimensions == projected.rank()

    @pytest.mark.parametrize("neighbours", NEIGHBOURS)
    @pytest.mark.parametrize("mechanism", [CorrelatedGaussian("1", "1e-6"), KNorm("1")], ids=["gaussian", "k-norm"])
    def test_a_direction_that_floats_lose_is_refused_and_in_other_units_gets_noise(self, mechanism: Any, neighbours: Neighbours) -> None:
        lost = Query.linear([[1000000, 0, 0], [0, "1/100000", 0]], InvariantSpace([], 2), neighbours)
        with pytest.raises(InvalidParameter, match=r"in 2 dimensions, of which floating point sees 1: .* in units in which"):
            mechanism.floating(lost)
        assert mechanism.floating(Query.linear([[1, 0, 0], [0, 1, 0]], InvariantSpace([], 2), neighbours)).spread.shape == (2, 2)

    def test_a_query_that_nothing_changes_is_refused(self) -> None:
        with pytest.raises(InvalidParameter, match="No record changes"):
            Changes.of_matrix(np.ones((3, 4)), "replace-one")


class TestEllipsoid:
    def test_unit_vectors_lie_on_the_unit_sphere(self) -> None:
        found = enclosing_ellipsoid(Changes.of_matrix(np.eye(5), "add-remove"))
        assert np.allclose(found.matrix, np.eye(5))
        assert found.log_volume_gap < 1e-12

    def test_a_linear_map_of_the_changes_maps_the_ellipsoid(self) -> None:
        points = np.random.default_rng(3).normal(size=(3, 12))
        linear = np.array([[2.0, 1, 0], [0, 1, 1], [0, 0, 0.5]])
        matrices = []
        for each in (points, linear @ points):
            changes = Changes.of_matrix(each, "add-remove")
            matrices.append(changes.basis @ enclosing_ellipsoid(changes, excess=1e-7).matrix @ changes.basis.T)
        assert np.allclose(linear @ matrices[0] @ linear.T, matrices[1], rtol=1e-5)

    @pytest.mark.parametrize("neighbours", NEIGHBOURS)
    @given(seed=st.integers(0, 10**6))
    @settings(max_examples=15, deadline=None)
    def test_it_holds_every_change_and_no_other_ellipsoid_is_smaller_than_its_certificate_says(
        self, neighbours: Neighbours, seed: int
    ) -> None:
        changes = changes_of(seed, neighbours)
        found = enclosing_ellipsoid(changes)
        assert largest_in(changes, found.matrix) <= 1 + 1e-9
        assert 0 <= found.log_volume_gap <= 4 / 2 * 1.0001e-3
        random = np.random.default_rng(seed)
        for size in (1e-3, 0.1, 1.0):  # others, near and far, scaled to hold all changes too
            step = random.normal(size=(4, 4)) * size
            other = found.matrix @ (np.eye(4) + step)
            other = other @ other.T if size == 1.0 else (other + other.T) / 2
            if np.linalg.eigvalsh(other)[0] > 0:
                other = other * largest_in(changes, other)
                assert np.linalg.slogdet(other)[1] / 2 >= np.linalg.slogdet(found.matrix)[1] / 2 - found.log_volume_gap - 1e-9

    def test_fewer_steps_have_a_larger_gap_and_say_so(self) -> None:
        changes = changes_of(5, "replace-one")
        coarse, fine = (enclosing_ellipsoid(changes, most=most) for most in (1, 10_000))
        assert coarse.log_volume_gap > 10 * fine.log_volume_gap
        assert np.linalg.slogdet(coarse.matrix)[1] / 2 - coarse.log_volume_gap <= np.linalg.slogdet(fine.matrix)[1] / 2


class TestOptimalCovariance:
    def test_independent_answers_get_the_squares_of_their_own_sensitivities(self) -> None:
        # v = a_i e_i: minimise sum s_i such that a_i^2 <= s_i: s_i = a_i^2.
        a = np.array([1.0, 2, 5])
        changes = Changes.of_matrix(np.diag(a), "add-remove")
        found = optimal_covariance(changes, excess=1e-9)
        moved = changes.basis @ found.factor
        assert np.allclose(moved @ moved.T, np.diag(a**2), rtol=1e-6)
        assert found.trace == pytest.approx(30, rel=1e-8)
        assert found.least == pytest.approx(30, rel=1e-8)

    def test_one_record_in_every_answer_is_noise_in_one_direction(self) -> None:
        changes = Changes.of_matrix(np.array([[1.0], [2], [2]]), "add-remove")
        found = optimal_covariance(changes)
        assert changes.dimension == 1
        assert found.trace == pytest.approx(9, rel=1e-12)

    @pytest.mark.parametrize("neighbours", NEIGHBOURS)
    @given(seed=st.integers(0, 10**6))
    @settings(max_examples=15, deadline=None)
    def test_every_change_is_covered_and_no_other_covariance_is_below_the_bound(self, neighbours: Neighbours, seed: int) -> None:
        changes = changes_of(seed, neighbours)
        found = optimal_covariance(changes)
        covariance = found.factor @ found.factor.T
        assert largest_in(changes, covariance) <= 1 + 1e-9
        assert found.trace == pytest.approx(float(np.trace(covariance)), rel=1e-9)
        assert found.least <= found.trace <= 1.0011 * found.least
        random = np.random.default_rng(seed)
        for size in (1e-3, 0.1):
            step = random.normal(size=(4, 4)) * size
            other = (np.eye(4) + step) @ covariance @ (np.eye(4) + step).T
            other = other * largest_in(changes, other)
            assert np.trace(other) >= found.least - 1e-9

    @pytest.mark.parametrize("neighbours", NEIGHBOURS)
    def test_a_convex_search_over_covariances_finds_nothing_better(self, neighbours: Neighbours) -> None:
        from scipy.optimize import minimize

        changes = changes_of(11, neighbours, answers=2, kinds=4)
        found = optimal_covariance(changes, excess=1e-6)

        def error(parts: np.ndarray) -> float:  # any covariance, scaled to cover all changes: no constraint is left
            lower = np.array([[np.exp(parts[0]), 0], [parts[1], np.exp(parts[2])]])
            other = lower @ lower.T
            return float(np.trace(other)) * largest_in(changes, other)

        best = min(minimize(error, start, method="Nelder-Mead").fun for start in ([0, 0, 0], [1, 0, -1], [-1, 1, 1]))
        assert found.least - 1e-9 <= best
        assert best == pytest.approx(found.trace, rel=1e-3)

    @pytest.mark.parametrize("excess", [0, 1, -0.1, float("nan")])
    def test_an_excess_that_cannot_be_reached_is_refused(self, excess: float) -> None:
        with pytest.raises(InvalidParameter, match="excess"):
            best_weights(changes_of(1, "replace-one"), "trace", excess)


class TestWorkloads:
    def test_prefix_sums_and_ranges_are_what_they_say(self) -> None:
        counts = np.array([3, 1, 4, 1])
        assert list(prefix_sums(4) @ counts) == [3, 4, 8, 9]
        assert list(ranges(4) @ counts) == [3, 1, 4, 1, 4, 5, 5, 8, 6, 9]

    def test_products_of_ranges_are_counted_without_listing_them(self) -> None:
        for n in (1, 2, 7):
            assert np.array_equal(ranges_gram(n), ranges(n).T @ ranges(n))

    @pytest.mark.parametrize("n", [0, -1, 10**6])
    def test_sizes_that_make_no_matrix_are_refused(self, n: int) -> None:
        for workload in (prefix_sums, ranges):
            with pytest.raises(InvalidParameter, match="workload"):
                workload(n)
