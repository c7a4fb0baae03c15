"""Correlated Gaussian noise on the grid: combinations beside the answers give plain noise the best covariance, exactly."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import holdfast as hf
from holdfast import research
from holdfast.errors import InvalidParameter
from holdfast.research.subspace.additive import extended_gaussian
from holdfast.research.subspace.correlated import CorrelatedGaussian, Shaped, shaped_query
from holdfast.research.subspace.query import Changes, Query, prefix_sums, ranges
from holdfast.research.subspace.spaces import InvariantSpace
from holdfast.subspace.sensitivities import Neighbours
from holdfast.testing.fit import check_fit, fits


def with_total(matrix: np.ndarray) -> Query:
    return Query.linear(matrix, InvariantSpace([[0] * (len(matrix) - 1) + [1]]))


def rows_of(shaped: Shaped) -> list[tuple[int, ...]]:
    return [*shaped.kept, *shaped.identities]


def wider(shaped: Shaped, neighbours: Neighbours = "replace-one") -> Query:
    return Query.linear(shaped.matrix, InvariantSpace(rows_of(shaped)), neighbours)


QUERIES = {
    "prefix sums": with_total(prefix_sums(8)),
    "ranges, which depend on each other": with_total(ranges(5)),
    "the total is not kept, but no neighbour changes it": Query.linear(prefix_sums(6), InvariantSpace([], 6)),
    "records are added": Query.linear(prefix_sums(6), InvariantSpace([[0, 0, 0, 0, 0, 1]]), "add-remove"),
}


@pytest.mark.parametrize("query", QUERIES.values(), ids=list(QUERIES))
def test_the_answers_have_nearly_the_least_error(query: Query) -> None:
    n = query.invariants.cells
    covariance = extended_gaussian(wider(shaped_query(query), query.neighbours), "1/2", "1e-6").covariance()
    assert covariance is not None
    error = float(np.trace(covariance[:n, :n]))
    best = CorrelatedGaussian("1/2", "1e-6", covariance="optimal").floating(query).expected_squared_error
    plain = extended_gaussian(query, "1/2", "1e-6").expected_squared_error
    assert best is not None
    assert plain is not None
    assert 0.998 * best <= error <= 1.05 * best
    assert error < 0.7 * plain


def test_combinations_follow_from_the_answers_in_every_data_set() -> None:
    query = with_total(prefix_sums(4))
    shaped = shaped_query(query)
    matrix = np.array(shaped.matrix)
    assert (np.array(shaped.identities) @ matrix == 0).all()
    assert shaped.kept == ((0, 0, 0, 1, 0, 0, 0),)
    assert (shaped.combinations @ matrix[:4] == matrix[4:]).all()
    assert shaped.names == ("1", "2", "3", "4", "combination 1", "combination 2", "combination 3")


def test_noise_has_the_law_of_the_quadratic_form() -> None:
    shaped = shaped_query(with_total(prefix_sums(3)), resolution=2)
    sigma_squared = Fraction(60)
    law = hf.GeneralizedGaussian(sigma_squared=sigma_squared).law(hf.Lattice(np.array(rows_of(shaped))))
    z = law.sample(20_000, hf.NoiseKey.for_tests("shaped"))[:, :3]
    assert (z[:, 2] == 0).all()
    W = shaped.combinations
    reach = 25
    points = np.array([(a, b, 0) for a, b in product(range(-reach, reach + 1), repeat=2)])
    exponent = (points**2).sum(axis=1) + ((points @ W.T) ** 2).sum(axis=1)
    weights = np.exp(-exponent / (2 * float(sigma_squared)))
    assert np.abs(z).max() < reach
    places = (z[:, 0] + reach) * (2 * reach + 1) + z[:, 1] + reach
    check_fit(places, weights / weights.sum(), name="gaussian with combinations beside the answers")
    sloppy = np.exp(-exponent / (2 * 1.15 * float(sigma_squared)))
    assert not fits(places, sloppy / sloppy.sum())


def test_a_release_on_the_grid_keeps_the_total_and_its_promise_is_that_of_plain_noise(tmp_path: Path) -> None:
    query = with_total(prefix_sums(5))
    shaped = shaped_query(query)
    people = [40, 25, 10, 5, 20]
    made = hf.answer(
        shaped.matrix,
        people,
        keep=shaped.invariants,
        names=shaped.names,
        mechanism=hf.ExtendedGaussian(epsilon="1/2", delta="1e-6"),
        places=0,
        key=hf.NoiseKey.for_tests("release"),
        allow_exposed=1,
    )
    answers, combined = made.table.counts[:5], made.table.counts[5:]
    assert answers[-1] == 100
    assert np.array_equal(shaped.combinations @ answers, combined)
    assert not np.array_equal(answers, np.cumsum(people))
    assert made.guarantee.status == "exact"
    plain = hf.answer(
        prefix_sums(5),
        people,
        keep=[[0, 0, 0, 0, 1]],
        mechanism=hf.ExtendedGaussian(epsilon="1/2", delta="1e-6"),
        places=0,
        key=hf.NoiseKey.for_tests("p"),
        allow_exposed=1,
    )
    error, other = (each.law.covariance().diagonal()[:5].sum() for each in (made, plain))
    assert error < 0.8 * other  # at the same promise
    assert made.guarantee.exposed == plain.guarantee.exposed  # one kept sum: combinations publish nothing
    assert made.guarantee.exposed.kept_sums == 1
    assert made.guarantee.relation.identities
    assert hf.verify(made.save(tmp_path / "release"))
    assert {each.guarantee.asked for each in (made, plain)} == {made.guarantee.asked}


def test_the_refusal_of_correlated_noise_on_the_grid_says_how_to_have_it() -> None:
    with pytest.raises(InvalidParameter, match="shaped_query"):
        hf.answer(prefix_sums(3), [1, 2, 3], mechanism=research.CorrelatedGaussian("1", "1e-6"), ledger=None)  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match=r"research\.floating_answer"):
        hf.answer(prefix_sums(3), [1, 2, 3], mechanism=research.KNorm("1"), ledger=None)  # type: ignore[arg-type]


@pytest.mark.parametrize("resolution", [0, 1.5, 10**6])
def test_a_resolution_that_cannot_be_used_is_refused(resolution: object) -> None:
    with pytest.raises(InvalidParameter, match="resolution"):
        shaped_query(with_total(prefix_sums(3)), resolution=resolution)  # type: ignore[arg-type]


def test_finer_combinations_are_no_worse() -> None:
    query = with_total(prefix_sums(6))
    best = float(np.trace(np.asarray(CorrelatedGaussian("1", "1e-6", covariance="optimal").floating(query).covariance())))
    excess = []
    for resolution in (1, 8, 64):
        covariance = extended_gaussian(wider(shaped_query(query, resolution=resolution)), "1", "1e-6").covariance()
        assert covariance is not None
        excess.append(float(np.trace(covariance[:6, :6])) / best - 1)
    assert excess[0] > excess[1] > -0.002
    assert abs(excess[2]) < 0.005
    assert Changes.of(query).dimension == 5
