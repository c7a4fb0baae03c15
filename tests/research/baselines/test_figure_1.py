"""Figure 1 of [GM20]: the ordering of the distances, with the rate at which a right implementation would fail."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from scipy.stats import norm

import holdfast as hf
from benchmarks.congenial import RELEASES, TABLES, Distances, distances, figure, kept, main, simulated_tables, universe
from holdfast.laws import ConditionalLaplace
from holdfast.testing.fit import ALPHA

CELLS = 46
RAW_1, CORRECTED_1, CONDITIONAL, RAW_HALF = range(4)
LONG_RUN = 6.7
"""From 1500 releases of each of the 20 tables: the least gap between averages, in standard errors of a difference of averages of 100. 7.2
were found (of the 80 gaps the others are 7.9 to 27), less two standard errors of that run."""


def test_conditional_noise_is_at_half_the_budget() -> None:
    """The paper's epsilon_0 = .5."""
    target = hf.plan(universe(), kept(), hf.Conditional(epsilon=1, per="distance")).drawing.channel.target
    assert isinstance(target, ConditionalLaplace)
    assert target.rate == Fraction(1, 2)


def absolute_moments(epsilon: float) -> tuple[float, float]:
    """(E |z|, Var |z|) of two-sided geometric noise."""
    a = math.exp(-epsilon)
    mean, square = 2 * a / (1 - a**2), 2 * a / (1 - a) ** 2
    return mean, square - mean**2


def test_a_correction_never_moves_away_in_l2() -> None:
    """The nearest table of a convex set that holds the truth: each release's l2 distance falls, without exception."""
    found = distances(simulated_tables(1), releases=10)
    assert (found.l2[CORRECTED_1] <= found.l2[RAW_1] + 1e-9).all()


@pytest.fixture(scope="module")
def found() -> Distances:
    return distances(simulated_tables())


@pytest.mark.long
class TestOrder:
    """Averages of 100 releases for each of 20 tables."""

    def test_raw_noise_has_its_known_mean(self, found: Distances) -> None:
        """Sums of 46 x 2000 independent |z|: normal to far below 1e-9 of relative skewness; both at ALPHA/2 on each side."""
        for way, epsilon in ((RAW_1, 1.0), (RAW_HALF, 0.5)):
            mean, variance = absolute_moments(epsilon)
            score = (found.l1[way].mean() - CELLS * mean) / math.sqrt(CELLS * variance / (TABLES * RELEASES))
            assert abs(score) < norm.isf(ALPHA / 2)

    @pytest.mark.parametrize("distance", ["l1", "l2"])
    def test_conditioning_lies_between_the_raw_mechanisms(self, found: Distances, distance: str) -> None:
        """Raw at .5, conditional at .5, raw at 1, in every table. LONG_RUN says how far apart the true averages are, at least, in standard
        errors of a difference of two averages of 100: a right implementation fails one of the 20 with the normal tail beyond."""
        ways = getattr(found, distance)
        for larger, smaller in ((RAW_HALF, CONDITIONAL), (CONDITIONAL, RAW_1)):
            gap = ways[larger].mean(axis=1) - ways[smaller].mean(axis=1)
            assert (gap > 0).all()
            error = math.sqrt(float((ways[larger].var(axis=1) + ways[smaller].var(axis=1)).sum())) / (TABLES * math.sqrt(RELEASES))
            assert float(gap.mean()) > norm.isf(ALPHA) * error  # the whole average: some 40 standard errors were seen, 6 are asked for
        assert 80 * norm.sf(LONG_RUN) < ALPHA

    def test_the_correction_is_on_a_par_with_its_raw_table(self, found: Distances) -> None:
        """l2 falls for every single release; l1 stays within a tenth ("mostly on par"). Averages of 41.2 and 39.1 were seen, with standard
        errors of .15: 1.1 x 39.1 is 12 of them away from 41.2."""
        assert (found.averages("l2")[CORRECTED_1] < found.averages("l2")[RAW_1]).all()
        assert abs(found.l1[CORRECTED_1].mean() / found.l1[RAW_1].mean() - 1) < 0.1

    def test_the_figure_shows_all_ways(self, found: Distances) -> None:
        made = figure(found)
        assert made.count("<rect") == 8
        assert made.startswith("<svg")


@pytest.mark.long
def test_the_script_prints_the_table_and_writes_the_figure(tmp_path, capsys) -> None:
    main([str(tmp_path / "figure.svg")])
    assert "conditional, .5" in capsys.readouterr().out
    assert (tmp_path / "figure.svg").read_text(encoding="utf-8").count("<rect") == 8
