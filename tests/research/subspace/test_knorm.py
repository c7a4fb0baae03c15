"""K-norm noise against its density evaluated on a grid, its promise for every neighbour, and three bodies against each other."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import holdfast as hf
from holdfast.errors import InvalidParameter, NoExactSampler
from holdfast.research.subspace.design import least_squared_error, optimal_covariance
from holdfast.research.subspace.knorm import Body, Fan, HitAndRun, Independent, KNorm, KNormNoise
from holdfast.research.subspace.query import Changes, Query, prefix_sums, ranges
from holdfast.research.subspace.spaces import InvariantSpace
from holdfast.subspace.sensitivities import Neighbours
from holdfast.testing.fit import check_fit, fits

NEIGHBOURS: tuple[Neighbours, ...] = ("replace-one", "add-remove")
BINS, FINE = 16, 12
"""Bins along each axis, and points along each axis of a bin at which the density is evaluated."""


def with_total(matrix: np.ndarray, neighbours: Neighbours = "replace-one") -> Query:
    return Query.linear(matrix, InvariantSpace([[0] * (len(matrix) - 1) + [1]]), neighbours)


def planar(neighbours: Neighbours, kinds: int) -> Changes:
    return Changes.of_matrix(np.random.default_rng(kinds).normal(size=(2, kinds)), neighbours)


def polygon_gauge(changes: Changes, z: np.ndarray) -> np.ndarray:
    """|z|_K in the plane from the definition: the least sum of |h| over pairs of changes that make z. Slow and obvious."""
    corners = np.hstack([changes.vectors(), -changes.vectors()])
    best = np.full(len(z), np.inf)
    for i in range(corners.shape[1]):
        for j in range(i):
            pair = corners[:, [i, j]]
            if abs(np.linalg.det(pair)) > 1e-12:
                h = np.linalg.solve(pair, z.T)
                best = np.minimum(best, np.where((h >= -1e-12).all(axis=0), h.sum(axis=0), np.inf))
    return best


def grid_law(changes: Changes, width: float) -> np.ndarray:
    """P[bin] of density exp(-|z|_K) / (2 area of K) over bins of [-width, width]^2, from its values at many points; last, all beyond."""
    from scipy.spatial import ConvexHull

    points = BINS * FINE
    step = 2 * width / points
    axis = (np.arange(points) + 0.5) * step - width
    mesh = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
    area = ConvexHull(np.hstack([changes.vectors(), -changes.vectors()]).T).volume
    density = np.exp(-polygon_gauge(changes, mesh)) * step**2 / (2 * area)
    bins = density.reshape(BINS, FINE, BINS, FINE).sum(axis=(1, 3)).ravel()
    return np.append(bins, 1 - bins.sum())


def counted(z: np.ndarray, width: float) -> np.ndarray:
    """The number of the bin of each point."""
    places = np.floor((z + width) * BINS / (2 * width)).astype(int)
    inside = ((places >= 0) & (places < BINS)).all(axis=1)
    return np.where(inside, places[:, 0] * BINS + places[:, 1], BINS**2)


def width_of(changes: Changes) -> float:
    return 3 * float(np.abs(changes.vectors()).max())


@pytest.mark.parametrize(
    ("neighbours", "kinds", "made"),
    [("replace-one", 3, Independent), ("add-remove", 2, Independent), ("replace-one", 6, Fan), ("add-remove", 5, Fan)],
)
def test_draws_fit_the_density_evaluated_on_a_grid(neighbours: Neighbours, kinds: int, made: type[Body]) -> None:
    prefix = Changes.of(with_total(prefix_sums(3)))  # a small workload by name; other ones are drawn at random
    changes = prefix if (neighbours, kinds) == ("replace-one", 3) else planar(neighbours, kinds)
    law, width = grid_law(changes, width_of(changes)), width_of(changes)
    z = made(changes).draw(60_000, np.random.default_rng(4))  # type: ignore[call-arg]
    check_fit(counted(z, width), law, name=f"k-norm {made.__name__} {neighbours}")
    assert not fits(counted(z * 1.08, width), law)  # a rate off by 8 % is seen
    stretched = z * np.array([1.08, 1 / 1.08])
    assert not fits(counted(stretched, width), law)  # and so is another shape of the same volume


def test_hit_and_run_fits_the_density_evaluated_on_a_grid() -> None:
    changes = planar("replace-one", 4)
    law, width = grid_law(changes, width_of(changes)), width_of(changes)
    z = HitAndRun(changes, steps=15).draw(1000, np.random.default_rng(5))
    check_fit(counted(z, width), law, name="k-norm hit-and-run")
    assert not fits(counted(z * 1.3, width), law)


@pytest.mark.parametrize("neighbours", NEIGHBOURS)
@given(seed=st.integers(0, 10**6))
@settings(max_examples=8, deadline=None)
def test_three_bodies_have_one_gauge_and_it_is_at_most_one_at_every_change(neighbours: Neighbours, seed: int) -> None:
    random = np.random.default_rng(seed)
    changes = Changes.of_matrix(random.normal(size=(3, 4 if neighbours == "replace-one" else 3)), neighbours)
    bodies: list[Body] = [Independent(changes), Fan(changes), HitAndRun(changes)]
    z = random.normal(size=(3, 3))
    gauges = [body.gauge(z) for body in bodies]
    assert np.allclose(gauges[0], gauges[1], rtol=1e-8)
    assert np.allclose(gauges[0], gauges[2], rtol=1e-6)
    assert np.allclose(bodies[0].gauge(changes.vectors().T), 1)  # all of them are corners here
    assert np.allclose(Independent(changes).covariance, Fan(changes).covariance, rtol=1e-8)


def test_the_promise_holds_for_every_neighbour_on_a_grid_of_points() -> None:
    changes = planar("replace-one", 6)
    body = Fan(changes)
    z = np.random.default_rng(6).normal(scale=3, size=(500, 2))
    assert np.allclose(body.gauge(z), polygon_gauge(changes, z), rtol=1e-9)
    for v in changes.vectors().T:
        assert np.abs(body.gauge(z) - body.gauge(z + v)).max() <= 1 + 1e-9
    assert body.gauge(1.01 * changes.vectors().T).max() > 1  # the hull is not larger than it must be


def test_facets_cut_the_hull_without_gaps() -> None:
    from scipy.spatial import ConvexHull

    for m, kinds in ((2, 6), (3, 7), (4, 7)):
        changes = Changes.of_matrix(np.random.default_rng(m).normal(size=(m, kinds)), "replace-one")
        vectors = changes.vectors()
        assert Fan(changes).volume == pytest.approx(ConvexHull(np.hstack([vectors, -vectors]).T).volume, rel=1e-9)
    line = Fan(Changes.of_matrix(np.array([[1.0, 4, 2]]), "replace-one"))
    assert line.volume == pytest.approx(6)
    assert line.covariance[0, 0] == pytest.approx(2 * 9)  # Laplace noise of scale 3


def test_signs_of_the_independent_body_are_those_of_a_direct_count() -> None:
    body = Independent(planar("replace-one", 3))
    assert np.allclose(body.positives, [1 / 2, 1 / 2])
    five = Independent(Changes.of_matrix(np.eye(5), "replace-one"))
    assert np.allclose(five.positives * 70, [5, 30, 30, 5])  # 5/3!, 10/2!, ... times 6


@pytest.mark.parametrize("neighbours", NEIGHBOURS)
def test_the_mechanism_keeps_the_invariant_states_its_error_and_is_above_the_bound(neighbours: Neighbours) -> None:
    for query in (with_total(prefix_sums(5), neighbours), with_total(ranges(4), neighbours)):
        law = KNorm("1/2").floating(query)
        assert (law.guarantee.epsilon, law.guarantee.delta, law.guarantee.status) == (Fraction(1, 2), Fraction(0), "floating point")
        answers = law.answers(np.ones(query.invariants.cells), 100, np.random.default_rng(1))
        assert np.abs(answers[:, -1] - 1).max() < 1e-9
        error = law.expected_squared_error
        assert error is not None
        assert error >= least_squared_error(optimal_covariance(Changes.of(query)).least, Fraction(1, 2))


def test_a_split_shares_epsilon_and_its_blocks_are_side_by_side() -> None:
    query = with_total(prefix_sums(8))
    law = KNorm("1/2", split=True).floating(query)
    noise = law.noise
    assert isinstance(noise, KNormNoise)
    assert [body.changes.dimension for body in noise.bodies] == [4, 2, 1]
    assert noise.rate == pytest.approx(1 / 6)
    # Every change costs at most rate in each block, so at most epsilon together.
    costs = [body.gauge(body.changes.vectors().T) for body in noise.bodies]
    assert max(cost.max() for cost in costs) <= 1 + 1e-9
    covariance = law.covariance()
    assert covariance is not None
    assert np.abs(covariance[-1]).max() < 1e-9


def test_a_chain_is_taken_only_where_it_was_allowed_and_says_that_it_is_estimated() -> None:
    query = Query.linear(np.random.default_rng(1).integers(0, 2, size=(12, 40)), InvariantSpace([[1] * 12]))
    with pytest.raises(NoExactSampler, match="allow_estimated=True"):
        KNorm(1).floating(query)
    law = KNorm(1, allow_estimated=True, steps=2).floating(query)
    assert (law.noise.status, law.guarantee.status) == ("estimated", "estimated")
    assert "How near it comes" in hf.describe(law)
    assert "research only" in hf.describe(law)
    assert law.guarantee.beside(query.promise(1)).status == "estimated"
    assert law.expected_squared_error is None
    assert np.abs(law.answers(np.zeros(12), 1, np.random.default_rng(1)).sum()) < 1e-9
    named = KNorm(1, sampler="hit-and-run", steps=1).floating(with_total(prefix_sums(3)))
    assert named.guarantee.status == "estimated"


def test_what_it_cannot_use_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="sampler is one of"):
        KNorm(1, sampler="exact")  # type: ignore[arg-type]
    with pytest.raises(NoExactSampler, match="depend"):
        KNorm(1, sampler="independent").floating(Query.linear([[1, 2, 3]], InvariantSpace([], 1)))
    with pytest.raises(NoExactSampler, match="too many facets"):
        KNorm(1, sampler="facets").floating(with_total(prefix_sums(20)))
    with pytest.raises(InvalidParameter, match="at least one step"):
        KNorm(1, sampler="hit-and-run", steps=0).floating(with_total(prefix_sums(3)))
