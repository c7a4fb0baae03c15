"""Ratios and percentages ([theory T143])."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

import holdfast as hf
from holdfast.accuracy.error_laws import ErrorLaws
from holdfast.accuracy.interval_ratio import gaussian_reach
from holdfast.errors import InvalidParameter

UNIVERSE = hf.Universe.product({"town": ["a", "b", "c"], "sex": ["F", "M"]})
TABLE = hf.Table(UNIVERSE, np.array([500, 300, 200, 900, 100, 400]))


def released(mechanism: Any, keep: Any = (), key: str = "ratios") -> Any:
    return hf.release(TABLE, list(keep), mechanism, key=hf.NoiseKey.for_tests(key))


GAUSS = hf.GeneralizedGaussian(rho="1/50", per="distance")


class TestEnds:
    def test_a_kept_denominator_divides_the_interval_of_the_numerator(self) -> None:
        release = released(GAUSS, [hf.margin("town")])
        top = release.interval(0, 0.95)
        ratio = release.interval(0, 0.95, over={"town": "a"})
        assert (ratio.low, ratio.high) == (Fraction(top.low, 800), Fraction(top.high, 800))
        share = release.interval(0, 0.95, percent_of={"town": "a"})
        assert (share.low, share.high, share.published) == (100 * ratio.low, 100 * ratio.high, 100 * ratio.published)
        assert (share.method, share.covered) == (top.method, top.covered)

    def test_a_kept_numerator(self) -> None:
        release = released(GAUSS, [hf.margin("town")])
        below = release.interval(3, 0.95)
        ratio = release.interval({"town": "a"}, 0.95, over=3)
        assert (ratio.low, ratio.high) == (Fraction(800, below.high), Fraction(800, below.low))

    @pytest.mark.parametrize("keep", [[], [hf.total()]], ids=["free", "one total"])
    def test_gaussian_ends_solve_the_inequality(self, keep: Any) -> None:
        """Published A, B; sd(t) from the covariance: at the ends |A - t B| is z sd(t) and the steps of the lattice, which are ones."""
        release = released(GAUSS, keep)
        found = release.interval({"town": "a"}, 0.95, over={"town": "b"})
        assert found.method == "lattice sum"
        a, b = np.array([1, 1, 0, 0, 0, 0]), np.array([0, 0, 1, 1, 0, 0])
        A, B = (int(release.table.counts @ query) for query in (a, b))
        covariance = release.law.covariance()
        var_b, joint = covariance.of(b), (covariance.of(a + b) - covariance.of(a) - covariance.of(b)) / 2
        for end in (found.low, found.high):
            reach = norm.isf(0.025) * math.sqrt(covariance.of(a - end * b)) + 1 + abs(joint / var_b - end)
            assert abs(A - end * B) == pytest.approx(reach, rel=1e-6)
        assert found.low < A / B < found.high

    def test_the_sub_gaussian_bound_where_noise_is_narrow(self) -> None:
        release = released(hf.GeneralizedGaussian(sigma_squared="1/3"))
        found = release.interval(0, 0.95, over=1)
        assert found.method == "sub-Gaussian"
        A, B = release.table.counts[:2].tolist()
        for end in (found.low, found.high):
            assert abs(A - end * B) == pytest.approx(math.sqrt(2 * math.log(40) * (1 + end**2) / 3), rel=1e-6)

    def test_draws_give_the_ends_of_the_set(self) -> None:
        """Against the definition: t is inside where |A - t B| is at most the r-th smallest |a_i - t b_i|."""
        release = released(hf.GeneralizedLaplace(epsilon="1/10", per="distance"))
        found = release.interval(0, 0.9, over=1)
        assert (found.method, found.doubt) == ("simulated", 1e-6)
        laws = ErrorLaws(release.plan.drawing)
        cells = np.array([0, 1])
        a, b = laws.draws(laws.parts(cells, np.eye(2, dtype=np.int64))).astype(float)
        A, B = release.table.counts[:2].tolist()
        from holdfast.accuracy.error_laws import rank

        r, width = rank(0.9, len(a)), found.high - found.low
        for t, inside in [
            (found.low - 0.01 * width, False),
            (found.low + 0.01 * width, True),
            (found.high - 0.01 * width, True),
            (found.high + 0.01 * width, False),
        ]:
            assert (abs(A - t * B) <= np.sort(np.abs(a - t * b))[r - 1]) == inside

    def test_a_denominator_that_may_be_zero(self) -> None:
        table = hf.Table(UNIVERSE, np.array([50, 0, 20, 90, 10, 40]))
        for mechanism in (GAUSS, hf.GeneralizedLaplace(epsilon="1/10", per="distance")):
            release = hf.release(table, [], mechanism, key=hf.NoiseKey.for_tests("zero"))
            found = release.interval(0, 0.95, over=1)
            assert (found.low, found.high) == (-math.inf, math.inf)
            cut = release.interval(0, 0.95, over=1, nonnegative=True)
            assert (cut.low, cut.high) == (0, math.inf)

    def test_a_part_is_at_most_the_whole(self) -> None:
        table = hf.Table(UNIVERSE, np.array([90, 0, 20, 90, 10, 40]))
        release = hf.release(table, [], GAUSS, key=hf.NoiseKey.for_tests("part"))
        found = release.interval(0, 0.99, percent_of={"town": "a"}, nonnegative=True)
        assert found.high == 100
        assert release.interval(1, 0.99, percent_of={"town": "a"}, nonnegative=True).low == 0
        assert release.interval(0, 0.99, percent_of={"town": "a"}).high > 100

    def test_negative_denominators_turn_both_signs(self) -> None:
        release = released(GAUSS)
        plain = release.interval([1, 0, 0, 0, 0, 0], 0.9, over=[0, 1, 0, 0, 0, 0])
        turned = release.interval([-1, 0, 0, 0, 0, 0], 0.9, over=[0, -1, 0, 0, 0, 0])
        assert (plain.low, plain.high) == (turned.low, turned.high)


class TestLaw:
    def test_the_reach_is_exceeded_as_seldom_as_it_says(self) -> None:
        """The whole joint law of two free cells of variance 9, summed, for many t: P[|a - t b| > reach(t)] <= alpha; and not with a reach
        that is shorter by the steps of the lattice (power).
        """
        release = released(hf.GeneralizedGaussian(sigma_squared=9))
        laws = ErrorLaws(release.plan.drawing)
        parts = laws.parts(np.array([0, 1]), np.eye(2, dtype=np.int64))
        k = np.arange(-40, 41)
        weights = np.exp(-(k**2) / 18.0)
        law = np.multiply.outer(weights, weights) / weights.sum() ** 2
        broken = 0
        for alpha in (0.3, 0.05, 0.01):
            z = norm.isf(alpha / 2)
            reach, _ = gaussian_reach(release.plan.drawing.channel.target, parts, alpha)
            assert reach(0.5) == pytest.approx(z * math.sqrt(9 * 1.25) + 1.5, rel=1e-6)
            for t in np.linspace(-2, 2, 81):
                error = np.abs(k[:, None] - t * k[None, :])
                assert law[error > reach(t) + 1e-9].sum() <= alpha
                broken += law[error > reach(t) - 1 - abs(t) + 1e-9].sum() > alpha
        assert broken > 50


class TestRefused:
    def test_ratios(self) -> None:
        release = released(GAUSS, [hf.subset("town", codes=["c"])])
        empty = hf.release(hf.Table(UNIVERSE, np.array([0, 0, 2, 9, 1, 4])), [hf.margin("town")], GAUSS, key=hf.NoiseKey.for_tests("n"))
        with pytest.raises(InvalidParameter, match="known to be 0"):
            empty.interval(2, 0.9, over={"town": "a"})
        with pytest.raises(InvalidParameter, match="no cell"):
            release.interval(2, 0.9, over=[0] * 6)

    def test_answers_that_were_rounded(self) -> None:
        release = hf.answer(
            ["1/3", "1/3", "1/5"],
            keep=[[1, 1, 1]],
            sensitivity=1,
            mechanism=hf.ProjectedLaplace(epsilon=30),
            step="1/8",
            round_totals=True,
            key=hf.NoiseKey.for_tests("r"),
            release_id="a",
        )
        with pytest.raises(InvalidParameter, match="rounded to a grid"):
            release.interval(0, 0.9, over=1)
