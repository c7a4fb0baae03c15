"""Words of a law belong to one law on one lattice; and what is said about variances that pilots cannot see."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import holdfast as hf
from holdfast.channels.channel import FREE_CELLS
from holdfast.channels.covariance import ShapeCovariance
from holdfast.errors import StreamReused
from holdfast.lattices import Lattice
from holdfast.laws import Variance
from holdfast.laws.families import free_laplace_variance, one_sum_laplace_variance
from tests.laws.lattices import free, margins, one_sum

SIDE_BY_SIDE = Lattice(np.array([[1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1]]))
INTERLEAVED = Lattice(np.array([[1, 0, 1, 0, 1, 0], [0, 1, 0, 1, 0, 1]]))


@pytest.mark.parametrize(
    "mechanism",
    [
        hf.GeneralizedLaplace(epsilon="1/9", per="distance"),
        hf.GeneralizedGaussian(sigma_squared=100),
        hf.RoundedProjection(epsilon="1/9", per="distance"),
    ],
)
def test_one_key_serves_every_law_on_every_lattice_once(mechanism: Any) -> None:
    """Lattices whose blocks begin at equal cells, with equal shapes, share no stream."""
    key = hf.NoiseKey.for_tests("many lattices")
    draws = [mechanism.law(lattice).sample(20, key) for lattice in (one_sum(3), one_sum(4), SIDE_BY_SIDE, INTERLEAVED)]
    assert not np.array_equal(draws[0], draws[1][:, :3])
    assert not np.array_equal(draws[2][:, :3], draws[3][:, ::2])
    for lattice in (one_sum(3), INTERLEAVED):
        with pytest.raises(StreamReused):
            mechanism.law(lattice).sample(20, key)


def test_tasks_of_a_law_have_labels_of_their_own_and_cover_each_moving_cell_once() -> None:
    lattice = Lattice(np.array([[1, 1, 0, 0, 0, 0, 0, 0], [0, 0, 1, 1, 0, 0, 0, 0], [0, 0, 0, 0, 2, 3, 0, 0]]))
    for cells in (lattice, free(2 * FREE_CELLS + 7)):
        tasks = list(hf.GeneralizedLaplace(epsilon="1", per="distance").law(cells).channel.tasks())
        assert len({task.label for task in tasks}) == len(tasks)
        assert np.array_equal(np.sort(np.concatenate([task.cells.ravel() for task in tasks])), np.arange(cells.cells))


@pytest.mark.parametrize("cells", [2, 4, 7])
def test_the_variance_stated_for_a_rounded_sum_is_the_truth(cells: int) -> None:
    """A cell's variance is that of the projection plus E r (n - r) / n^2, r the noise's total modulo n."""
    epsilon = Fraction(1, 2)
    stated = hf.RoundedProjection(epsilon=epsilon, per="distance").law(one_sum(cells)).covariance()
    spread = free_laplace_variance(epsilon) * (1 - 1 / cells)
    # The total modulo n, by its characters: E exp(2 pi i k e / n) of one cell, to the n-th power.
    a = math.exp(-float(epsilon))
    waves = [((1 - a) ** 2 / (1 - 2 * a * math.cos(2 * math.pi * k / cells) + a * a)) ** cells for k in range(cells)]
    chance = [sum(w * math.cos(2 * math.pi * k * r / cells) for k, w in enumerate(waves)) / cells for r in range(cells)]
    truth = spread + sum(p * r * (cells - r) / cells**2 for r, p in enumerate(chance))
    assert stated.basis == "exact"
    assert stated.diagonal() == pytest.approx(np.full(cells, truth), rel=stated.relative_error)


def test_the_tail_of_a_rounded_projection_leaves_room_for_the_rounding() -> None:
    """Hardly any noise, but cells are still moved by rounding: within the rounding's radius nothing is promised."""
    law = hf.RoundedProjection(epsilon=40, per="distance").law(one_sum(4))
    assert law.tail_bound(1.9) == 1.0
    assert law.tail_bound(4.0) < 1e-20


def test_signs_of_a_kept_sum_enter_the_covariance() -> None:
    law = hf.GeneralizedGaussian(sigma_squared=3).law(Lattice(np.array([[1, 1, 1, -1, -1]])))
    stated = law.covariance()
    assert stated.of(np.array([1.0, 1.0, 1.0, -1.0, -1.0])) == pytest.approx(0.0, abs=1e-12)
    query = np.arange(1.0, 6.0)
    assert stated.of(query) == pytest.approx(query @ stated.dense() @ query)


def test_two_cells_have_the_variance_of_one_laplace_variable() -> None:
    for epsilon in (Fraction(1), Fraction(1, 1000), Fraction(1, 10**6)):
        assert one_sum_laplace_variance(2, epsilon)[0] == free_laplace_variance(2 * epsilon)


@pytest.mark.parametrize(("cells", "epsilon"), [(2, Fraction(1, 300)), (3, Fraction(1, 300)), (4, Fraction(1, 300)), (7, Fraction(1, 100))])
def test_the_variance_of_a_short_sum_is_within_its_stated_error(cells: int, epsilon: Fraction) -> None:
    """Against the sum over every total, one by one; the sum's own rounding is below 1e-12."""
    totals = np.arange(int(60 * cells / epsilon), dtype=np.float64)
    ways = np.sum([np.log(totals + k) for k in range(1, cells)], axis=0)
    weights = np.exp(2 * (ways - float(epsilon) * totals) - np.max(2 * (ways - float(epsilon) * totals)))
    mean = math.fsum(weights * totals * (totals + cells)) / math.fsum(weights)
    stated, error = one_sum_laplace_variance(cells, epsilon)
    assert stated == pytest.approx(2 * mean * (cells - 1) / (cells**2 * (cells + 1)), rel=error + 1e-12)


@pytest.mark.parametrize("lattice", [margins(3, 3), Lattice(np.array([[2, -3, 1, 0], [0, 1, 2, -3]]))])
def test_a_pilot_that_saw_only_zeros_claims_no_accuracy(lattice: Lattice) -> None:
    """At epsilon 20 a move has probability below e^-60: the variance is not zero, and nobody knows it to a relative error."""
    stated = hf.GeneralizedLaplace(epsilon=20, per="distance").law(lattice).covariance()
    assert stated.basis == "estimated"
    assert not stated.diagonal().any()
    assert stated.relative_error == math.inf


def test_signs_enter_once_also_where_a_variance_is_a_matrix() -> None:
    """An estimated matrix has the signs in it: a kept total then still has variance zero."""
    law = hf.GeneralizedLaplace(epsilon="1/2", per="distance").law(hf.Lattice([[1, 1, -1]]))
    (shape,) = law.channel.shapes()
    basis = shape.basis().astype(float)
    estimated = Variance(0.0, basis @ basis.T, "estimated", 0.1)
    found = ShapeCovariance(np.array([[0, 1, 2]]), shape, estimated)
    assert found.variance_of(np.array([1.0, 1.0, -1.0])) == 0
    assert found.variance_of(np.array([1.0, 0.0, 0.0])) == found.dense()[0, 0]
