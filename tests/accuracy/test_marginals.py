"""The law of one cell's noise: against closed forms, against sums over all moves, against long runs; and what the charts say of it."""

from __future__ import annotations

import itertools
import math
import re
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import holdfast as hf
from holdfast.accuracy.cell_laws import cell_probabilities
from holdfast.card.figure_facts import NoiseLawFacts
from holdfast.exact import DiscreteGaussian, DiscreteLaplace
from holdfast.lattices import Lattice
from holdfast.lattices.shapes import Free, General, Grid, OneSum
from holdfast.laws import Gaussian, L1Laplace, Rounded, Target
from holdfast.publication.report_facts import noise_charts
from holdfast.report.figures.noise import noise_figure
from holdfast.wording.catalogue import Sentences

UNIVERSE = hf.Universe.product({"a": ["1", "2", "3"], "b": ["1", "2", "3"]})


def probability(found: Any, k: int) -> float:
    half = len(found) // 2
    return float(found[half + k]) if abs(k) <= half else 0.0


@pytest.mark.parametrize("k", [0, 1, -2, 7])
def test_free_cells_have_the_law_itself(k: int) -> None:
    for target in (L1Laplace(Fraction(1, 4)), Rounded(Fraction(1, 4))):
        assert probability(cell_probabilities(target, Free(1)), k) == pytest.approx(DiscreteLaplace(4).pmf(k), rel=1e-12)
    found = cell_probabilities(Gaussian(Fraction(9)), Free(1))
    assert probability(found, k) == pytest.approx(DiscreteGaussian(9).pmf(k), rel=1e-12)


@pytest.mark.parametrize("target", [L1Laplace(Fraction(2)), Gaussian(Fraction(1, 2))], ids=["laplace", "gaussian"])
def test_under_one_sum_it_is_the_sum_over_all_moves(target: Target) -> None:
    """Three cells: z_1 and z_2 up to 20, z_3 follows. What is left out weighs less than e^-40."""
    weights: dict[int, float] = {}
    for a, b in itertools.product(range(-20, 21), repeat=2):
        weight = target.log_weight(np.array([a, b, -a - b]))
        assert weight is not None
        weights[a] = weights.get(a, 0.0) + math.exp(weight)
    found, total = cell_probabilities(target, OneSum(3)), math.fsum(weights.values())
    for k in range(-5, 6):
        assert probability(found, k) == pytest.approx(weights[k] / total, abs=1e-13)


@pytest.mark.parametrize("axes", [(2,), (3,), (2, 2), (2, 3)])
def test_rounded_it_is_the_sum_over_all_noise(axes: tuple[int, ...]) -> None:
    """e up to 4 in every cell at epsilon 6: what is left out has a probability below 6 x 2 e^-30."""
    shape, cells = OneSum(axes[0]) if len(axes) == 1 else Grid(axes), math.prod(axes)
    rate = math.exp(-6)
    geometric = {k: (1 - rate) / (1 + rate) * rate ** abs(k) for k in range(-4, 5)}
    weights = dict.fromkeys(range(-6, 7), 0.0)
    grid = np.eye(cells)[0].reshape(axes)
    for axis in range(len(axes)):
        grid = grid - grid.mean(axis=axis, keepdims=True)
    row = grid.ravel()
    for noise in itertools.product(geometric, repeat=cells):
        chance, u = math.prod(geometric[k] for k in noise), float(row @ noise)
        for k in (math.floor(u), math.floor(u) + 1):
            weights[k] += chance * max(0.0, 1 - abs(u - k))
    found = cell_probabilities(Rounded(Fraction(6)), shape)
    for k in range(-3, 4):
        assert probability(found, k) == pytest.approx(weights[k], abs=1e-11)


@pytest.mark.parametrize(
    ("mechanism", "cells"),
    [
        (hf.GeneralizedLaplace(epsilon="1/4", per="distance"), 5),
        (hf.GeneralizedGaussian(sigma_squared=9), 40),
        (hf.RoundedProjection(epsilon="1/2", per="distance"), 7),
    ],
    ids=["laplace", "gaussian", "rounded"],
)
def test_samplers_have_it(mechanism: Any, cells: int) -> None:
    """Six standard errors for each of seven values are never reached by chance (below 2e-8)."""
    law = mechanism.law(Lattice(np.ones((1, cells), dtype=np.int64)))
    found = cell_probabilities(law.target, OneSum(cells))
    draws = law.sample(100_000, hf.NoiseKey.for_tests("marginals"))[:, 0]
    for k in range(-3, 4):
        p = probability(found, k)
        assert abs((draws == k).mean() - p) < 6 * math.sqrt(p * (1 - p) / len(draws))


def test_where_there_is_no_figure_there_is_none() -> None:
    assert cell_probabilities(L1Laplace(Fraction(1)), Grid((3, 3))) is None
    assert cell_probabilities(Rounded(Fraction(1)), Grid((2, 2, 2))) is None
    assert cell_probabilities(Gaussian(Fraction(1)), General(((1, 2, 3),), (1, 1, 1), None)) is None
    assert cell_probabilities(L1Laplace(Fraction(1, 10**7)), Free(1)) is None


def chart(keep: list[Any], mechanism: Any) -> NoiseLawFacts:
    (found,) = noise_charts(hf.plan(UNIVERSE, keep, mechanism).drawing)
    return found


def said(found: NoiseLawFacts) -> str:
    """The caption, with common spaces."""
    return noise_figure(Sentences(), 1, found).caption.replace("\u00a0", " ")


class TestCharts:
    """They printed simulated probabilities as facts: 12.1 % for 12.5 %."""

    def test_a_computed_probability_is_the_true_one(self) -> None:
        rate = math.exp(-1 / 4)
        found = chart([], hf.GeneralizedLaplace(epsilon="1/4", per="distance"))
        assert found.draws is None
        assert dict(found.law)[0] == pytest.approx((1 - rate) / (1 + rate), rel=1e-8)
        assert said(found).startswith(f"Computed from the law. The noise is 0 with a probability of {100 * (1 - rate) / (1 + rate):.1f} %.")
        assert math.fsum(p for _, p in found.law) > 0.9975

    def test_a_simulated_one_says_so_with_its_standard_error(self) -> None:
        found = chart([hf.margin("a"), hf.margin("b")], hf.GeneralizedLaplace(epsilon="1/4", per="distance"))
        assert found.draws is not None
        zero = dict(found.law)[0]
        assert found.zero_error > math.sqrt(zero * (1 - zero) / found.draws) / 3
        share = f"in {100 * zero:.1f} % of them the noise was 0 (standard error"
        assert said(found).startswith(f"Not computed, but drawn from the public law for {found.draws:,} cells: {share}")

    def test_the_standard_error_is_one(self) -> None:
        """Nine cells of a block are drawn together: the error of their share is that of whole draws. Seven errors are never reached."""
        mechanism = hf.GeneralizedLaplace(epsilon="1/4", per="distance")
        keep: list[Any] = [hf.margin("a"), hf.margin("b")]
        found = chart(keep, mechanism)
        shares = (mechanism.law(hf.lattice(UNIVERSE, keep)).sample(20_000, hf.NoiseKey.for_tests("chart")) == 0).mean(axis=1)
        assert found.draws is not None
        true_error = shares.std() / math.sqrt(found.draws // 9)
        assert abs(dict(found.law)[0] - shares.mean()) < 7 * true_error
        assert 0.8 < found.zero_error / true_error < 1.25

    def test_a_chain_is_simulated_whatever_its_aim(self) -> None:
        found = chart([hf.margin("a")], hf.GeneralizedLaplace(epsilon="1/4", sampler="line_gibbs", eta="3/100", per="distance"))
        assert found.draws is not None

    @pytest.mark.parametrize("epsilon", ["1/4", "1/40", "1/397"])
    def test_bars_are_of_equal_width_in_whole_numbers_and_zero_is_not_read_from_one(self, epsilon: str) -> None:
        """Two-sided geometric noise: every bar is the sum of its values, so heights fall by one factor from bar to bar."""
        found = chart([], hf.GeneralizedLaplace(epsilon=epsilon, per="distance"))
        figure = noise_figure(Sentences(), 1, found)
        text = figure.svg + said(found)
        heights = [float(h) for h in re.findall(r'<rect[^>]*height="([0-9.]+)"', text)]
        width = int(next(iter(re.findall(r"Each bar covers ([0-9,]+)", text)), "1"))
        assert width % 2 == 1
        middle = len(heights) // 2
        factor = math.exp(-float(Fraction(epsilon)) * width)
        for near, far in zip(heights[middle + 1 :], heights[middle + 2 :], strict=False):
            assert far == pytest.approx(near * factor, abs=0.011)  # heights have two decimals
        assert heights == heights[::-1]
        rate = math.exp(-float(Fraction(epsilon)))
        zero = 100 * (1 - rate) / (1 + rate)
        assert f"The noise is 0 with a probability of {zero:.1f} %" in text or f"The noise is 0 with a probability of {zero:.2g} %" in text
