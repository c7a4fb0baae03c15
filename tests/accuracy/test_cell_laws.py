"""The law of a cell for charts: against the law itself, summed over all moves of small lattices ([theory T198], [theory T199])."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import pytest

import holdfast as hf
from holdfast.accuracy.cell_laws import COARSE, ERROR, CellLaw, all_cells, cell_law, cell_of_table, enclosed_law, few_sums
from holdfast.exact.formatting import format_percent
from holdfast.lattices.shapes import General, Grid, Levels, OneSum
from holdfast.lattices.trees import Tree
from holdfast.laws import Gaussian, L1Laplace, L2Laplace, LevelGaussian, Rounded
from holdfast.publication.report_facts import noise_charts
from holdfast.report.figures.noise import noise_figure
from holdfast.wording.catalogue import Sentences
from tests.accuracy.test_lattice_sums import units, weighed

SMALL = [
    Grid((2, 3)),
    Grid((3, 3)),
    General(((1, 1, 0, 1), (0, 1, 1, 2)), (2, 1, 1, 2)),  # not unimodular: minors of 2
    General(((2, 3, 5),), (1, 1, 1)),  # cells with a step of their own
    Levels((Tree(((2,), (2, 1))), Tree.plain(2)), ((0, 1), (1, 0))),  # a tree with uneven branches, by two places
    Levels((Tree.plain(2), Tree.plain(2), Tree.plain(2)), ((0, 0, 1), (1, 1, 0))),
]
LEFT_OUT = 1e-8
"""Mass that the enumeration lacks: its coefficients reach six standard deviations or more (tests/accuracy/test_lattice_sums.py)."""


def picked(target: Any, shape: Any) -> dict[int, float]:
    """The law of a cell picked from all, by enumeration."""
    moves, weights = weighed(target, shape)
    low = int(moves.min())
    law = sum(np.bincount(moves[:, cell] - low, weights=weights, minlength=1 - 2 * low) for cell in range(shape.size)) / shape.size
    return {k + low: float(p) for k, p in enumerate(law) if p}


def off(found: CellLaw, law: dict[int, float]) -> float:
    """The largest difference of a probability."""
    half = len(found.probabilities) // 2
    listed = {k: float(p) for k, p in zip(range(-half, half + 1), found.probabilities, strict=True)}
    return max(abs(law.get(k, 0.0) - listed.get(k, 0.0)) for k in law.keys() | listed.keys())


@pytest.mark.parametrize("variance", ["1/3", "1", "3/2"])
@pytest.mark.parametrize("shape", SMALL, ids=lambda shape: f"{shape.name} {shape.axes}")
def test_a_law_is_right_to_within_its_error(shape: Any, variance: str) -> None:
    """Every way there is to it; and of noise whose variance is a thousandth larger the law is further off than the error allows."""
    target = Gaussian(Fraction(variance))
    law, exact, enclosed = picked(target, shape), few_sums(target, shape), enclosed_law(target, shape)
    ways = [found for found in (cell_law(target, shape), exact, enclosed) if found is not None]
    for found in ways:
        assert off(found, law) <= found.error + LEFT_OUT
        assert found.probabilities.sum() == pytest.approx(1, abs=1e-12)
    assert exact is not None or (shape is SMALL[-1] and enclosed is not None)  # five sums of eight cells are too many angles
    if exact is not None:
        other = few_sums(Gaussian(Fraction(variance) * Fraction(1001, 1000)), shape)
        assert other is not None
        assert off(other, law) > 1000 * (ERROR + LEFT_OUT)


def test_weighed_levels_are_enclosed() -> None:
    """Every cell by itself, and all cells by one bound, which is larger; with other weights the law is further off."""
    given, shape = units()
    target = LevelGaussian(given.rho * Fraction(2, 3), given.measured)
    law, found = picked(target, shape), enclosed_law(target, shape)
    assert found is not None
    assert off(found, law) <= found.error + LEFT_OUT
    other = enclosed_law(LevelGaussian(target.rho * Fraction(9, 10), target.measured), shape)
    assert other is not None
    assert off(other, law) > found.error + LEFT_OUT
    wide = LevelGaussian(given.rho / 4, given.measured)
    kinds, each = all_cells(wide, shape), enclosed_law(wide, shape)
    assert kinds is not None
    assert each is not None
    assert math.fsum(share for _, share in kinds) == pytest.approx(1)
    assert 0 < max(kind.flatness for kind, _ in kinds) < 1 / (1 + each.share)


def test_all_cells_of_a_large_block_by_one_bound() -> None:
    """As if it were small: the same variances, and errors that are no smaller."""
    shape = Levels((Tree(((2,), (3, 2))), Tree.plain(4)), ((0, 1), (1, 0)))
    target = Gaussian(Fraction(12))
    kinds, found = all_cells(target, shape), enclosed_law(target, shape)
    assert kinds is not None
    assert found is not None
    k = np.arange(-20, 21)
    mean = np.zeros(len(k))
    for law, share in kinds:
        weights = np.exp(-(k**2) / (2 * law.variance))
        mean += share * weights / weights.sum()
    half = len(found.probabilities) // 2
    assert np.abs(mean - found.probabilities[half - 20 : half + 21]).max() < 1e-9
    assert min(law.flatness for law, _ in kinds) <= 1 - found.share + 1e-7


@pytest.mark.parametrize(("axes", "variance"), [((4, 4), "1"), ((4, 4), "2"), ((3, 1000), "3/2"), ((5, 9), "3/2"), ((4, 30), "3/2")])
def test_two_ways_agree_where_no_enumeration_can_go(axes: tuple[int, int], variance: str) -> None:
    """Poisson summation and roots of unity know nothing of each other; a law of slightly other variance is told apart."""
    target, shape = Gaussian(Fraction(variance)), Grid(axes)
    exact, enclosed = few_sums(target, shape), enclosed_law(target, shape)
    assert exact is not None
    assert enclosed is not None
    half = len(enclosed.probabilities) // 2
    listed = {k: float(p) for k, p in zip(range(-half, half + 1), enclosed.probabilities, strict=True)}
    assert off(exact, listed) <= enclosed.error + exact.error
    wrong = enclosed_law(Gaussian(Fraction(variance) * Fraction(101, 100)), shape)
    assert wrong is not None
    assert off(wrong, listed) > off(exact, listed) + 1e-4


@pytest.mark.parametrize("target", [L1Laplace(Fraction(3, 2)), Gaussian(Fraction(3, 4))], ids=["laplace", "gaussian"])
def test_two_rows_are_one_row_under_one_total(target: Any) -> None:
    """2 x 3: (a, b, -a - b) and its negative. What is left out of the sum over a and b weighs less than e^-50."""
    weights: dict[int, float] = {}
    for a, b in itertools.product(range(-20, 21), repeat=2):
        weight = target.log_weight(np.array([a, b, -a - b, -a, -b, a + b]))
        weights[a] = weights.get(a, 0.0) + math.exp(weight)
    total = math.fsum(weights.values())
    found = cell_law(target, Grid((2, 3)))
    assert found is not None
    assert found.error == 0
    assert off(found, {k: weight / total for k, weight in weights.items()}) < 1e-12


def test_where_only_draws_tell_there_is_no_law() -> None:
    assert cell_law(L1Laplace(Fraction(1)), Grid((3, 3))) is None
    assert cell_law(L2Laplace(Fraction(1)), OneSum(3)) is None
    assert cell_law(Rounded(Fraction(1, 4100)), Grid((2, 3))) is None  # too many points, and rounding two rows is not rounding one
    assert cell_law(Rounded(Fraction(1, 4100)), OneSum(3)) is not None
    assert cell_law(Gaussian(Fraction(1, 2)), Grid((20, 20))) is None
    assert cell_law(Gaussian(Fraction(1, 2)), Grid((3, 3, 3))) is None
    assert cell_of_table(3, 10**6, 1.0) is None
    assert cell_law(Gaussian(Fraction(3, 2)), Grid((20, 20))) is not None


class TestCharts:
    """Charts of Gaussian noise with several kept margins were simulated."""

    TABLE: ClassVar = hf.Universe.product({"a": list("1234"), "b": list("12345"), "c": list("123")})
    TWO: ClassVar = [hf.margin("a", "c"), hf.margin("b", "c")]
    THREE: ClassVar = [hf.margin("a"), hf.margin("b"), hf.margin("c")]

    @pytest.mark.parametrize("keep", [TWO, THREE], ids=["grids", "hierarchies"])
    @pytest.mark.parametrize("sigma_squared", ["1", "2", "12"])
    def test_they_are_the_law_that_is_drawn(self, keep: list[Any], sigma_squared: str) -> None:
        """Shares of draws of the public law are within six standard errors, of up to 27 values: never by chance (below 6e-8)."""
        plan = hf.plan(self.TABLE, keep, hf.GeneralizedGaussian(sigma_squared=sigma_squared))
        (chart,) = noise_charts(plan.drawing)
        if keep is self.THREE and sigma_squared == "1":
            assert chart.draws is not None
            return
        assert chart.draws is None
        draws = plan.law.sample(4000, hf.NoiseKey.for_tests("chart"))
        for k, p in chart.law:
            shares = (draws == k).mean(axis=1)
            error = float(shares.std()) / math.sqrt(len(shares))
            assert abs(float(shares.mean()) - p) < 6 * error + chart.most_off

    def test_an_error_that_could_be_seen_is_told(self) -> None:
        """Three margins at sigma^2 = 2: some parts in ten thousand. Two margins: by roots of unity, to 1e-8."""
        coarse, fine = (
            noise_charts(hf.plan(self.TABLE, keep, hf.GeneralizedGaussian(sigma_squared=2)).drawing)[0] for keep in (self.THREE, self.TWO)
        )
        assert 0 < coarse.most_off <= COARSE * dict(coarse.law)[0]
        assert (
            f"Computed from the law, each probability to within {format_percent(coarse.most_off)}."
            in noise_figure(Sentences(), 1, coarse).caption
        )
        assert "About 95 of 100" in noise_figure(Sentences(), 1, coarse).caption
        assert fine.most_off == 0
        assert "Computed from the law. " in noise_figure(Sentences(), 1, fine).caption
        assert "At least 95 of 100" in noise_figure(Sentences(), 1, fine).caption
