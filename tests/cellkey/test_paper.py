"""[SC22] by numbers: Examples 1 to 3 to every printed digit, figures 1 to 5, section V-C."""

from __future__ import annotations

import math
import warnings
from decimal import ROUND_HALF_EVEN, Decimal
from fractions import Fraction
from statistics import median

import numpy as np
import pytest

from holdfast.cellkey import design, max_entropy, truncated_laplace
from holdfast.cellkey.design import best_gamma, deltas_in_doubles
from holdfast.cellkey.max_entropy import SymmetricNoise
from holdfast.errors import InvalidParameter
from holdfast.exact.balls import Enclosure
from holdfast.research import figures
from holdfast.research.figures import proposition_3, ranges, two_sided_epsilon_bounds, upward_epsilon_bounds

EXAMPLE = design("0.5", "1e-4")
TABLE = EXAMPLE.quantised(1 << 32)


def printed(value: Enclosure | Fraction, like: str) -> str:
    """The number with as many decimals as `like` has; both ends of an enclosure must agree."""
    ends = value if isinstance(value, Enclosure) else (value, value)
    unit = Decimal(1).scaleb(Decimal(like).as_tuple().exponent)  # type: ignore[arg-type]
    low, high = ((Decimal(end.numerator) / Decimal(end.denominator)).quantize(unit, ROUND_HALF_EVEN) for end in ends)
    assert low == high
    return f"{low:f}"


class TestExample1:
    def test_support_delta_and_variance(self) -> None:
        assert EXAMPLE.D == 25
        assert printed(EXAMPLE.delta_bounds(), "9.91e-5") == "0.0000991"
        assert printed(EXAMPLE.noise.variance_bounds(), "49.0021671") == "49.0021671"
        assert Fraction(1, 2) / 49 - EXAMPLE.gamma == Fraction(1, 10) / (4 * 25**2 - 1)  # -iota

    @pytest.mark.parametrize(
        ("z", "text"),
        [
            (0, "0.056895481243871"),
            (1, "0.056320120792644"),
            (2, "0.054628714970934"),
            (11, "0.016632589297126"),  # printed for z = 12: see [theory T87]
            (24, "0.000163117271714"),
            (25, "0.000099129808160"),
        ],
    )
    def test_probabilities(self, z: int, text: str) -> None:
        assert printed(EXAMPLE.noise.pmf_bounds(z), text) == text
        assert printed(EXAMPLE.noise.pmf_bounds(-z), text) == text

    def test_the_support_is_the_smallest_one(self) -> None:
        for D in range(1, 25):
            assert proposition_3("0.5", D).pmf_bounds(D).lower > Fraction(1, 10**4)

    def test_delta_by_proposition_3_is_the_enumerated_one(self) -> None:
        closed, counted = EXAMPLE.delta_bounds(), EXAMPLE.epsilon_delta().delta_bounds("0.5")
        assert max(closed.lower, counted.lower) <= min(closed.upper, counted.upper)


class TestExample2:
    def test_bounds_for_32_bits(self) -> None:
        assert TABLE.rows[25].upper[:3] == (425760, 1126343, 2255949)
        assert TABLE.rows[25].upper[-2:] == (4294541537, 1 << 32)

    def test_cumulative_probabilities(self) -> None:
        chances = [EXAMPLE.noise.pmf_bounds(z) for z in (-25, -24, -23)]
        texts = ("0.000099129808160", "0.0002622470798742925", "0.0005252540370388639")
        for k, text in enumerate(texts, 1):
            total = sum(((c.lower + c.upper) / 2 for c in chances[:k]), Fraction(0))
            half_a_digit = Fraction(1, 2 * 10 ** len(text.split(".")[1]))
            assert abs(total - Fraction(text)) <= half_a_digit + Fraction(1, 2**60)  # printed from doubles near 2^-11

    def test_keys_of_the_paper(self) -> None:
        assert TABLE.lookup(np.full(2, 100), np.array([2552, 1200124])).tolist() == [-25, -23]

    def test_8_bits_are_refused_because_noise_values_are_lost(self) -> None:
        with pytest.raises(InvalidParameter, match=r"256 is too small.*-24, -23"):
            EXAMPLE.quantised(1 << 8)
        lost = EXAMPLE.quantised(1 << 8, allow_lost=True)
        assert lost.rows[25].upper[0] == 1
        assert dict(EXAMPLE.noise.upper_bounds(1 << 8))[-24] == dict(EXAMPLE.noise.upper_bounds(1 << 8))[-23] == 1

    @pytest.mark.parametrize("bits", [16, 32, 64])
    def test_other_sizes_keep_the_support(self, bits: int) -> None:
        row = EXAMPLE.quantised(1 << bits).rows[25]
        assert len(row.probabilities) == 51
        # A ceiling moves a bound by less than one key, so the mean and each probability by less than this:
        assert abs(row.bias) < Fraction(50, 1 << bits)
        for z in (0, 24, -25):
            low, high = EXAMPLE.noise.pmf_bounds(z)
            assert low - Fraction(1, 1 << bits) <= row.probabilities[z] <= high + Fraction(1, 1 << bits)


class TestExample3:
    def test_probabilities_bias_and_variance(self) -> None:
        row = TABLE.rows[25]
        for z, text in ((-25, "0.000099129974842"), (-24, "0.000163117190823"), (-23, "0.0002630068920552731")):
            assert printed(row.probabilities[z], text) == text
        assert printed(row.probabilities[25], "0.00009912974201142788") == "0.00009912974201142788"
        assert float(row.bias) == -5.820766091346741e-09
        assert float(row.variance) == 49.002167175291106

    def test_epsilon_and_delta(self) -> None:
        losses = TABLE.epsilon_delta()
        assert printed(upward_epsilon_bounds(losses), "0.498037038323823") == "0.498037038323823"
        assert printed(two_sided_epsilon_bounds(losses), "0.498039387068") == "0.498039387068"  # both ways: a little more
        assert losses.plateau_bounds == (Fraction(425760, 1 << 32), Fraction(425760, 1 << 32))
        assert losses.delta_bounds("0.5").upper == Fraction(425760, 1 << 32)
        assert losses.at_least == 25


class TestSectionVC:
    """D = 10, epsilon = 0.1, 0.2, ..., 2.5."""

    @pytest.mark.parametrize(
        ("bits", "bias", "last_full", "error", "printed_error"),
        [
            (32, -2.3283064365386963e-09, 25, 3.55e-10, 1e-11),
            (16, -0.000152587890625, 17, 2.65e-5, 1e-10),
            (8, -0.0390625, 6, 1.57e-2, 1e-2),
        ],
    )
    def test_bias_support_and_variance(self, bits: int, bias: float, last_full: int, error: float, printed_error: float) -> None:
        points = figures.figures_4_and_5(1 << bits)
        assert median(float(point.row.bias) for point in points) == bias
        assert [point.is_full for point in points] == [k <= last_full for k in range(1, 26)]
        found = median(abs(point.variance_error) for point in points)
        assert found == pytest.approx(error, rel=0.01)
        assert found > printed_error  # the printed variance errors are too small [theory T87]

    def test_figure_4(self) -> None:
        by_size = {bits: figures.figure_4(figures.figures_4_and_5(1 << bits)) for bits in (8, 16, 32)}
        assert all(one <= both for points in by_size.values() for _, one, both in points)
        assert all(abs(one - epsilon) < 0.025 for epsilon, one, _ in by_size[32])
        assert all(one > epsilon for epsilon, one, _ in by_size[8][:6])  # where the support is full, it is more than designed
        assert all(one <= epsilon for epsilon, one, _ in by_size[16][:17])
        # Both ways it is another matter [theory T87]:
        assert [epsilon for epsilon, _, both in by_size[16][:17] if both > epsilon] == [0.8, 1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7]
        assert all(both <= epsilon for epsilon, _, both in by_size[32])

    def test_figure_5(self) -> None:
        by_size = {bits: figures.figure_5(figures.figures_4_and_5(1 << bits)) for bits in (8, 16, 32)}
        assert all(after > before for before, after, _ in by_size[8])
        for before, after, _ in by_size[32]:
            assert after == pytest.approx(before, rel=1e-3)
        for before, after, _ in by_size[16][:17]:
            assert abs(after - before) <= 2 / (1 << 16)
        assert all(after >= 1 / (1 << bits) for bits, points in by_size.items() for _, after, _ in points)  # the floor


class TestFigures1To3:
    def test_figure_1_has_plateaus_and_orders_as_described(self) -> None:
        epsilons = [Fraction(k, 10) for k in range(1, 41)]
        curves = figures.figure_1(epsilons)
        for (D, V), points in curves.items():
            deltas = [delta for _, delta in points]
            assert deltas == sorted(deltas, reverse=True)
            plateau = max_entropy(D, V).epsilon_delta()
            assert all((delta <= plateau.plateau * (1 + 1e-15)) == (epsilon >= plateau.plateau_epsilon) for epsilon, delta in points)
        assert all(wide[1] < thin[1] for wide, thin in zip(curves[11, 10][:9], curves[11, 4][:9], strict=True))  # more variance: less delta
        assert curves[11, 10][-1][1] > curves[11, 4][-1][1]  # until the plateau
        assert all(curves[15, V][-1][1] < curves[11, V][-1][1] for V in (4, 10))

    def test_figure_2_gaps_are_small_to_zero(self) -> None:
        for D, points in figures.figure_2([Fraction(k, 4) for k in range(1, 13)]).items():
            for _, analytic, best, _ in points:
                assert best <= analytic * math.exp(D * D * 1e-4)  # steps of 0.0001 in gamma, and P[Z = D] <= C exp(-gamma D^2)
                assert analytic < 1.5 * best
            assert [point[3] for point in points] == sorted((point[3] for point in points), reverse=True)

    def test_figure_3_sums_to_one(self) -> None:
        chances = figures.figure_3()
        assert sorted(chances) == list(range(-25, 26))
        assert sum(chances.values()) == pytest.approx(1, abs=1e-15)


class TestDesign:
    @pytest.mark.parametrize(("epsilon", "D"), [("0.5", 11), (1, 11), (2, 15), ("0.1", 4)])
    def test_the_numerically_best_gamma_beats_the_papers_grid(self, epsilon: str | int, D: int) -> None:
        grid = min(
            min(deltas_in_doubles(D, figures.STEPS_OF_GAMMA, float(Fraction(epsilon)))),
            proposition_3(epsilon, D).epsilon_delta().delta(epsilon),
        )
        assert best_gamma(epsilon, D).epsilon_delta().delta(epsilon) <= grid * (1 + 1e-9)

    def test_the_corner_is_found_where_doubles_cancel(self) -> None:
        best = best_gamma(10, 2)
        assert best.gamma == Fraction(10, 3)
        grid = [SymmetricNoise(2, Fraction(k, 1000)) for k in range(3300, 3400)]
        assert all(best.epsilon_delta().delta_bounds(10).upper <= noise.epsilon_delta().delta_bounds(10).lower for noise in grid)

    @pytest.mark.parametrize("epsilon", [30, 710, 2000])
    def test_large_epsilons_warn_of_nothing(self, epsilon: int) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            best_gamma(epsilon, 3)
            assert design(epsilon, "1e-9").D == 1

    @pytest.mark.parametrize(("epsilon", "D", "gamma"), [(1, 4, "1/5"), (2, 3, "1/2"), ("1/2", 6, "1/20"), (5, 2, "5/3")])
    def test_deltas_in_doubles_are_those_of_balls(self, epsilon: str | int, D: int, gamma: str) -> None:
        found = deltas_in_doubles(D, np.array([float(Fraction(gamma))]), float(Fraction(epsilon)))[0]
        assert found == pytest.approx(SymmetricNoise(D, Fraction(gamma)).epsilon_delta().delta(epsilon), rel=1e-12)

    @pytest.mark.parametrize(
        ("epsilon", "delta", "by_proposition_3", "smallest", "gamma"),
        [("0.5", "1e-4", 25, 24, "1/78"), ("0.25", "1e-3", 29, 26, "1/156"), (1, "0.01", 6, 6, None)],
    )
    def test_the_smallest_support_over_all_gammas(
        self, epsilon: str | int, delta: str, by_proposition_3: int, smallest: int, gamma: str | None
    ) -> None:
        made = design(epsilon, delta)
        assert (by_proposition_3, smallest) == (made.D, made.smallest.D)
        assert made.smallest.epsilon_delta().delta_bounds(epsilon).upper <= Fraction(delta)
        if gamma is not None:
            assert made.smallest.gamma == Fraction(gamma)
        # One less: no gamma of a fine grid is enough, and every larger support is.
        gammas = np.geomspace(1e-4, 2, 20_000)
        assert deltas_in_doubles(smallest - 1, gammas, float(Fraction(epsilon))).min() > float(Fraction(delta))
        enough = [best_gamma(epsilon, D).epsilon_delta().delta(epsilon) <= float(Fraction(delta)) for D in range(smallest, made.D + 1)]
        assert all(enough)

    def test_example_1_could_do_with_less_noise(self) -> None:
        assert EXAMPLE.best.gamma == Fraction(1, 82)
        assert EXAMPLE.best.epsilon_delta().delta("0.5") == pytest.approx(5.7638e-5, rel=1e-4)
        assert EXAMPLE.best.variance() == pytest.approx(40.95, abs=0.01)
        laplace = truncated_laplace("0.5", delta="1e-4")
        assert laplace.noise[-1] == 16
        assert laplace.variance() == pytest.approx(7.7493, rel=1e-4)
        assert laplace.epsilon_delta().delta("0.5") == laplace.pmf_bounds(16).up() <= 1e-4
        assert truncated_laplace("0.5", 15).pmf(15) > 1e-4

    @pytest.mark.parametrize(("epsilon", "D"), [("0.5", 25), (1, 3), (2, 1)])
    def test_ranges_are_those_of_the_formulas(self, epsilon: str | int, D: int) -> None:
        found, loss = ranges(epsilon, D), Fraction(epsilon)
        assert found.gamma == (loss / (2 * D + 1), loss / (2 * D - 1))
        for iota in ("1", "1/2", "1/10", "1e-9"):
            noise = proposition_3(epsilon, D, iota=iota)
            assert found.gamma[0] <= noise.gamma < found.gamma[1]  # type: ignore[operator]
            for (low, high), value in (
                (found.variance, noise.variance_bounds()),
                (found.constant, noise.pmf_bounds(0)),
                (found.delta, noise.pmf_bounds(D)),
            ):
                assert low.lower <= value.upper
                assert value.lower <= high.upper

    @pytest.mark.parametrize(("epsilon", "delta"), [("0.5", "0.3"), (3, "1e-12"), ("0.2", "1e-3"), (1, "0.01"), (20, "1e-40")])
    def test_no_smaller_support_is_enough(self, epsilon: str | int, delta: str) -> None:
        found = design(epsilon, delta)
        assert found.delta_bounds().upper <= Fraction(delta)
        assert all(proposition_3(epsilon, D).pmf_bounds(D).lower > Fraction(delta) for D in range(1, found.D))

    def test_a_target_between_two_supports_and_one_met_exactly_in_doubles(self) -> None:
        reached = design("0.5", "1e-4").delta_bounds()
        assert design("0.5", reached.upper).D == 25  # decided by balls
        assert design("0.5", reached.lower - Fraction(1, 10**30)).D == 26

    @pytest.mark.parametrize(
        ("epsilon", "delta", "options", "says"),
        [
            (0, "1e-4", {}, "greater than zero"),
            ("0.5", 1, {}, "between 0 and 1"),
            ("0.5", "0", {}, "between 0 and 1"),
            ("1e-6", "1e-9", {}, "beyond 20000"),
            ("0.5", "1e-4", {"iota": 0}, "at most 1"),
        ],
    )
    def test_bad_targets(self, epsilon: str | int, delta: str | int, options: dict[str, int], says: str) -> None:
        with pytest.raises(InvalidParameter, match=says):
            design(epsilon, delta, **options)

    def test_laplace_takes_one_of_two(self) -> None:
        for options in ({}, {"D": 3, "delta": "1e-4"}):
            with pytest.raises(InvalidParameter, match="one of them"):
                truncated_laplace(1, **options)  # type: ignore[arg-type]
