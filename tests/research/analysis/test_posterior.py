"""Posteriors against Bayes' rule by listing, and calibrated over tables drawn from the prior."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import holdfast as hf
from holdfast import research
from holdfast.accuracy.cell_laws import cell_probabilities
from holdfast.errors import InvalidParameter, RequestTooLarge, VerificationFailed
from holdfast.research.analysis.blocks import Read, by_classes, cell_weight
from holdfast.research.analysis.posterior import Posterior, Published, posterior_of
from holdfast.research.analysis.priors import Flat, Listed, NegativeBinomial, Poisson, Prior
from holdfast.testing.fit import check_fit, check_fit_categories, fits
from tests.research.analysis import brute

TOWNS = hf.Universe.product({"town": ["a", "b", "c"], "sex": ["F", "M"]})
THREE = hf.Universe.product({"town": ["a", "b", "c"]})
"""Universes of the cases below."""


def read(universe: hf.Universe, keep, mechanism, y) -> Published:
    """What a reader of these published counts has."""
    return Published(universe, np.array(y), hf.plan(universe, keep, mechanism))


def fraction_prior(prior: Prior, cells: int):
    """The prior's weights as fractions of floats, for whole tables."""

    def weight(x: tuple[int, ...]) -> Fraction:
        logs = prior.log_weights(np.array(x), np.arange(cells))
        return math.prod((Fraction(math.exp(log)) for log in logs), start=Fraction(1))

    return weight


def assert_close(found: Posterior, expected: dict[int, float]) -> None:
    """Every probability within the error that the result states."""
    here = dict(zip(found.values.tolist(), found.probabilities.tolist(), strict=True))
    worst = max(abs(here.get(value, 0.0) - expected.get(value, 0.0)) for value in {*here, *expected})
    assert worst <= found.error
    assert found.effective_draws is None


SUM = np.ones((1, 3), dtype=int)
PRIORS = [
    Flat(),
    Flat(None, None),
    Flat(1, 6),
    Poisson(2.5),
    Poisson([1.0, 4.0, 2.0]),
    NegativeBinomial(3.0, 2.0),
    Listed([1, 2, 0, 4, 1, 1]),
]


class TestOneSum:
    @pytest.mark.ordinary("[2, -1, 2]", "[1, 0, 0]-Flat(least=0")
    @pytest.mark.parametrize("prior", PRIORS, ids=str)
    @pytest.mark.parametrize("query", [[1, 0, 0], [0, 1, 1], [2, -1, 2]], ids=str)
    def test_laplace(self, prior: Prior, query: list[int]) -> None:
        y = [4, -1, 3]
        source = read(THREE, [hf.total()], hf.GeneralizedLaplace(epsilon=2, per="distance"), y)
        box = [range(c - 16, c + 17) for c in y]
        expected = brute.posterior_of_sum(brute.tables_in(box, SUM, y), y, brute.laplace(Fraction(2)), fraction_prior(prior, 3), query)
        found = posterior_of(source, prior, np.array(query))
        assert found.method == "convolution"
        assert_close(found, expected)

    @pytest.mark.parametrize("prior", PRIORS[:4], ids=str)
    def test_gaussian(self, prior: Prior) -> None:
        y = [4, -1, 3]
        source = read(THREE, [hf.total()], hf.GeneralizedGaussian(sigma_squared="3/2"), y)
        box = [range(c - 14, c + 15) for c in y]
        expected = brute.posterior_of_sum(
            brute.tables_in(box, SUM, y), y, brute.gaussian(Fraction(3, 2)), fraction_prior(prior, 3), [1, 0, 0]
        )
        assert_close(posterior_of(source, prior, 0), expected)

    def test_signs(self) -> None:
        """A kept difference: x_1 - x_2 + x_3."""
        y, rows = [4, 2, -1], np.array([[1, -1, 1]])
        source = read(THREE, [hf.linear(rows)], hf.GeneralizedLaplace(epsilon=2, per="distance"), y)
        box = [range(0, c + 18) for c in y]
        expected = brute.posterior_of_sum(
            brute.tables_in(box, rows, y), y, brute.laplace(Fraction(2)), fraction_prior(Flat(), 3), [0, 1, 0]
        )
        found = posterior_of(source, Flat(), 1)
        assert found.method == "convolution"
        assert_close(found, expected)

    def test_three_coefficients_are_drawn(self) -> None:
        """Exact draws, compared with the law by a fit; and a law of another prior does not fit."""
        y, query = [4, -1, 3], [1, 2, 5]
        source = read(THREE, [hf.total()], hf.GeneralizedLaplace(epsilon=1, per="distance"), y)
        found = posterior_of(source, Flat(), np.array(query), draws=20_000, key=hf.NoiseKey.for_tests(1))
        assert found.method == "monte carlo"
        assert found.error == pytest.approx(0.5 / math.sqrt(20_000))
        box = [range(0, 7)] * 3
        tables = brute.tables_in(box, SUM, y)
        counts = {int(v): round(p * 20_000) for v, p in zip(found.values, found.probabilities, strict=True)}
        right = brute.posterior_of_sum(tables, y, brute.laplace(Fraction(1)), fraction_prior(Flat(), 3), query)
        check_fit_categories(counts, right, name="posterior of three coefficients")
        wrong = brute.posterior_of_sum(tables, y, brute.laplace(Fraction(9, 10)), fraction_prior(Flat(), 3), query)
        assert not fits(np.repeat(list(counts), list(counts.values())), wrong)

    def test_a_block_of_many_cells(self) -> None:
        """A hundred counties: with no prior bounds the posterior of a cell is its published count less the noise's law."""
        universe = hf.Universe.product({"county": [str(k) for k in range(102)]})
        plan = hf.plan(universe, [hf.total()], hf.GeneralizedLaplace(epsilon="24/125", per="distance"))
        y = np.arange(102) * 37
        found = posterior_of(Published(universe, y, plan), Flat(None), 50)
        law = cell_probabilities(plan.drawing.channel.target, plan.drawing.channel.tasks()[0].shape)
        assert law is not None
        middle = len(law) // 2
        here = dict(zip((found.values - y[50]).tolist(), found.probabilities, strict=True))
        assert max(abs(here.get(k, 0.0) - law[middle + k]) for k in range(-200, 201)) < found.error


class TestOtherShapes:
    @pytest.mark.parametrize("prior", [Flat(), Flat(None), Poisson(2.0)], ids=str)
    def test_rows_and_columns(self, prior: Prior) -> None:
        y = [3, 1, -1, 2, 0, 4]
        rows = np.array([[1, 1, 0, 0, 0, 0], [0, 0, 1, 1, 0, 0], [0, 0, 0, 0, 1, 1], [1, 0, 1, 0, 1, 0]])
        source = read(TOWNS, [hf.margin("town"), hf.margin("sex")], hf.GeneralizedLaplace(epsilon=1, per="distance"), y)
        moves = [(a, -a, b, -b, -a - b, a + b) for a in range(-25, 26) for b in range(-25, 26)]
        tables = [tuple(c + z for c, z in zip(y, move, strict=True)) for move in moves]
        assert all((rows @ np.array(x)).tolist() == (rows @ np.array(y)).tolist() for x in tables[:50])
        expected = brute.posterior_of_sum(tables, y, brute.laplace(Fraction(1)), fraction_prior(prior, 6), [0, 0, 1, 0, 1, 0])
        found = posterior_of(source, prior, {"town": ["b", "c"], "sex": "F"})
        assert found.method == "enumeration"
        assert_close(found, expected)

    @pytest.mark.parametrize("prior", [Flat(), Poisson(2.0)], ids=str)
    def test_draws_by_classes_follow_the_posterior(self, prior: Prior) -> None:
        """What larger blocks get, on a block that can be listed too; the posterior at another budget does not fit."""
        y, rows = [2, 1, 0, 1, 2], np.array([[1, 1, 1, 1, 1], [1, 1, 0, 0, 0], [1, 0, 1, 1, 0]])
        five = hf.Universe.product({"town": list("abcde")})
        source = read(five, [hf.linear(rows)], hf.GeneralizedLaplace(epsilon=1, per="distance"), y)
        (task,) = source.drawing.channel.tasks()
        cells = task.cells[0]
        given = Read(source.drawing, task.shape, cells, source.counts[cells], prior, 10_000, np.random.default_rng(5), ("test",))
        noise = cell_weight(source.drawing.channel.target)
        assert noise is not None
        made = by_classes(given, noise)
        assert made is not None
        assert made.effective == pytest.approx(10_000)
        values = (made.tables @ np.array([1, 2, 0, 3, 0])[cells]).tolist()
        tables = brute.tables_in([range(7)] * 5, rows, y)
        laws = [
            brute.posterior_of_sum(tables, y, brute.laplace(epsilon), fraction_prior(prior, 5), [1, 2, 0, 3, 0])
            for epsilon in (Fraction(1), Fraction(3, 4))
        ]
        check_fit(values, laws[0], name="posterior by classes")
        assert not fits(values, laws[1])

    def test_a_table_of_the_paper_with_plain_noise(self) -> None:
        """46 cells under three totals: too many tables to list, and few draws of the noise would leave every count at zero or more."""
        ages = [f"{k:02d}" for k in range(23)]
        universe = hf.Universe.product({"sex": ["F", "M"], "age": ages})
        y = np.random.default_rng(4).negative_binomial(100, 0.95, 46)
        source = read(
            universe, [hf.margin("sex"), hf.subset("age", codes=ages[4:])], hf.GeneralizedLaplace(epsilon="1/2", per="distance"), y
        )
        found = posterior_of(source, Flat(), 0, draws=500, key=hf.NoiseKey.for_tests(1))
        assert found.effective_draws == pytest.approx(500)
        assert found.probability(least=0) == pytest.approx(1)

    def test_weighted_levels_are_drawn(self) -> None:
        """Draws of the law, weighted by the prior; without bounds the mean is what was published."""
        mechanism = hf.GeneralizedGaussian(rho="1/2", levels={"town": "1/2", ("town", "sex"): "1/2"}, per="distance")
        source = read(TOWNS, [hf.total()], mechanism, [5, 3, 2, 9, 0, 4])
        found = posterior_of(source, Flat(None), {"town": "a"})
        assert found.method == "monte carlo"
        variance = source.plan.law.covariance().of(np.array([1, 1, 0, 0, 0, 0]))
        assert abs(found.mean - 8) < 6.2 * math.sqrt(variance / 4_000)  # one in 10^9 for a normal mean
        assert posterior_of(source, Flat(), {"town": "a"}).probability(least=0) == pytest.approx(1)

    def test_cells_under_no_total(self) -> None:
        y = [3, -2, 0]
        source = read(THREE, [], hf.GeneralizedLaplace(epsilon=1, per="distance"), y)
        tables = brute.tables_in([range(0, 45)], np.zeros((0, 1), dtype=int), [0])
        one = [
            brute.posterior_of_sum([x for x in tables if x[0] >= 0], [c], brute.laplace(Fraction(1)), fraction_prior(Poisson(2.0), 1), [1])
            for c in y[:2]
        ]
        expected: dict[int, float] = {}
        for a, p in one[0].items():
            for b, q in one[1].items():
                expected[a + b] = expected.get(a + b, 0.0) + p * q
        assert_close(posterior_of(source, Poisson(2.0), np.array([1, 1, 0])), expected)

    def test_l2_noise_of_a_whole_table(self) -> None:
        y = [2, 1, -1]
        source = read(THREE, [hf.total()], hf.GeneralizedLaplace(epsilon=1, norm="l2", per="distance"), y)
        tables = brute.tables_in([range(0, 3)] * 3, SUM, y)
        expected = brute.posterior_of_sum(tables, y, brute.l2_laplace(Fraction(1)), fraction_prior(Flat(), 3), [1, 0, 0])
        assert_close(posterior_of(source, Flat(), 0), expected)

    @pytest.mark.long
    def test_draws_of_a_chain_have_no_known_error(self) -> None:
        """4 x 4 with rows and columns kept, drawn by a chain."""
        universe = hf.Universe.product({"a": list("0123"), "b": list("0123")})
        mechanism = hf.GeneralizedLaplace(epsilon=4, sampler="line_gibbs", per="distance")
        source = read(universe, [hf.margin("a"), hf.margin("b")], mechanism, np.full(16, 100))
        with pytest.raises(InvalidParameter, match="Markov chain"):
            posterior_of(source, Flat(), 0)

    def test_a_fixed_cell_is_known(self) -> None:
        source = read(THREE, [hf.total(), hf.subset("town", codes=["a"])], hf.GeneralizedLaplace(epsilon=1, per="distance"), [5, 2, 2])
        found = posterior_of(source, Flat(), 0)
        assert (found.values.tolist(), found.probabilities.tolist()) == ([5], [1.0])

    def test_a_kept_total_is_known(self) -> None:
        found = posterior_of(
            read(THREE, [hf.total()], hf.GeneralizedLaplace(epsilon=1, per="distance"), [5, -2, 2]), Flat(), np.ones(3, dtype=int)
        )
        assert (found.values.tolist(), found.probabilities.tolist()) == ([5], [1.0])


@cache
def rounded_pair(epsilon: Fraction) -> dict[int, float]:
    """P[z_1 = k] of two cells: (e_1 - e_2) / 2, half of the odd ones up. By listing e in floats, to 1e-15."""
    a = math.exp(-float(epsilon))
    p = {k: (1 - a) / (1 + a) * a ** abs(k) for k in range(-60, 61)}
    found: dict[int, float] = {}
    for e, pe in p.items():
        for f, pf in p.items():
            for rounded in {(e - f) // 2, -((f - e) // 2)}:
                found[rounded] = found.get(rounded, 0.0) + pe * pf * (0.5 if (e - f) % 2 else 1.0)
    return found


class TestRoundedProjection:
    def test_two_cells(self) -> None:
        pair = hf.Universe.product({"sex": ["F", "M"]})
        source = read(pair, [hf.total()], hf.RoundedProjection(epsilon=1, per="distance"), [5, 1])
        weights = {x: math.exp(float(Poisson(2.0).log_weights(np.array([x, 6 - x]), np.arange(2)).sum())) for x in range(7)}
        raw = {x: weights[x] * rounded_pair(Fraction(1))[5 - x] for x in weights}
        assert_close(posterior_of(source, Poisson(2.0), 0), {x: w / sum(raw.values()) for x, w in raw.items()})

    def test_more_cells_are_drawn(self) -> None:
        """Without bounds the draws are independent ones of y - z: they fit the law of a cell; another budget's does not."""
        source = read(THREE, [hf.total()], hf.RoundedProjection(epsilon=1, per="distance"), [5, 1, 0])
        found = posterior_of(source, Flat(None), 0, draws=20_000)
        assert found.method == "monte carlo"
        assert found.effective_draws == pytest.approx(20_000)
        values = np.repeat(5 - found.values, np.round(found.probabilities * 20_000).astype(int))
        shape = source.drawing.channel.tasks()[0].shape
        laws = [
            cell_probabilities(hf.RoundedProjection(epsilon=e, per="distance").channel(source.plan.facts).target, shape)
            for e in ("1", "9/10")
        ]
        assert laws[0] is not None and laws[1] is not None  # noqa: PT018
        check_fit(values, laws[0], offset=-(len(laws[0]) // 2), name="posterior from draws")
        assert not fits(values, laws[1], offset=-(len(laws[1]) // 2))

    def test_a_single_cell_is_not_rounded(self) -> None:
        source, plain = (
            read(THREE, [], mechanism, [30, 1, 0])
            for mechanism in (hf.RoundedProjection(epsilon=1, per="distance"), hf.GeneralizedLaplace(epsilon=1, per="distance"))
        )
        for prior in (Poisson(3.0), Listed([1, 2, 3])):
            here, there = posterior_of(source, prior, 0), posterior_of(plain, prior, 0)
            assert here.probabilities.tolist() == there.probabilities.tolist()

    def test_a_prior_that_leaves_too_little_of_a_rounded_law(self) -> None:
        """Its probabilities far out are known to 1e-12 only: rather no answer than one without its digits."""
        pair = hf.Universe.product({"sex": ["F", "M"]})
        with pytest.raises(RequestTooLarge, match="wider prior"):
            posterior_of(read(pair, [hf.total()], hf.RoundedProjection(epsilon=1, per="distance"), [40, 0]), Poisson([1.0, 39.0]), 0)

    def test_draws_that_do_not_fit_the_prior_are_refused(self) -> None:
        source = read(THREE, [hf.total()], hf.RoundedProjection(epsilon=1, per="distance"), [50, 1, 0])
        with pytest.raises(RequestTooLarge, match="wider prior"):
            posterior_of(source, Flat(0, 30), 0)


class TestCalibration:
    """Tables from the prior, published, and read: the randomised rank of the truth in its posterior is uniform, whatever the total."""

    TABLES = 500

    def ranks(self, prior: Prior, read_with: str) -> np.ndarray:
        """Published at epsilon 1/4 and read as if it had been `read_with`."""
        random = np.random.default_rng(7)
        truth = random.poisson(4.0, size=(self.TABLES, 3))
        law = hf.plan(THREE, [hf.total()], hf.GeneralizedLaplace(epsilon="1/4", per="distance")).law
        plan = hf.plan(THREE, [hf.total()], hf.GeneralizedLaplace(epsilon=read_with, per="distance"))
        y = truth + law.sample(self.TABLES, hf.NoiseKey.for_tests("ranks"))
        out = []
        for x, published in zip(truth, y, strict=True):
            found = posterior_of(Published(THREE, published, plan), prior, 0)
            below, own = found.probability(most=int(x[0]) - 1), found.probability(int(x[0]), int(x[0]))
            out.append(min(int(10 * (below + own * random.uniform())), 9))
        return np.array(out)

    def test_the_right_prior_and_law_are_calibrated_and_wrong_ones_are_not(self) -> None:
        uniform = np.full(10, 0.1)
        check_fit(self.ranks(Poisson(4.0), "1/4"), uniform, name="ranks of the truth in its posterior")
        assert not fits(self.ranks(Poisson([8.0, 4.0, 4.0]), "1/4"), uniform)
        assert not fits(self.ranks(Poisson(4.0), "1"), uniform)

    def test_coverage_of_intervals(self) -> None:
        """The stated level is reached: with a law on whole numbers intervals cover at least as often. One-sided binomial, at 1e-9."""
        from scipy.stats import binom

        random = np.random.default_rng(8)
        truth = random.poisson(4.0, size=(300, 3))
        plan = hf.plan(THREE, [hf.total()], hf.GeneralizedGaussian(sigma_squared=4))
        y = truth + plan.law.sample(300, hf.NoiseKey.for_tests("coverage"))
        inside = 0
        for x, published in zip(truth, y, strict=True):
            low, high = posterior_of(Published(THREE, published, plan), Poisson(4.0), 0).interval(0.8)
            inside += low <= x[0] <= high
        assert binom.cdf(inside, 300, 0.8) > 1e-9
        assert inside < 300


class TestResult:
    FOUND = Posterior(np.array([-1, 0, 2, 5]), np.array([0.04, 0.16, 0.7, 0.1]), "enumeration", 1e-9, None)

    def test_figures(self) -> None:
        assert self.FOUND.mean == pytest.approx(1.86)
        assert self.FOUND.variance == pytest.approx(0.04 + 2.8 + 2.5 - 1.86**2)
        assert self.FOUND.standard_deviation == pytest.approx(math.sqrt(self.FOUND.variance))
        assert [self.FOUND.quantile(p) for p in (0.01, 0.19, 0.21, 0.95)] == [-1, 0, 2, 5]
        assert self.FOUND.probability(0, 2) == pytest.approx(0.86)
        assert self.FOUND.probability() == pytest.approx(1)
        assert repr(self.FOUND) == "Posterior(mean 1.86, standard deviation 1.37, 90 % in [0, 5]; enumeration)"

    @pytest.mark.parametrize(("level", "ends"), [(0.5, (2, 2)), (0.79, (0, 2)), (0.85, (0, 5)), (0.95, (-1, 5))])
    def test_intervals_leave_half_of_the_rest_on_each_side_at_most(self, level: float, ends: tuple[int, int]) -> None:
        low, high = self.FOUND.interval(level)
        assert (low, high) == ends
        assert self.FOUND.probability(most=low - 1) <= (1 - level) / 2 + 1e-12
        assert self.FOUND.probability(least=high + 1) <= (1 - level) / 2 + 1e-12

    @pytest.mark.parametrize("p", [0, 1, -0.5, float("nan")])
    def test_probabilities_are_between_0_and_1(self, p: float) -> None:
        with pytest.raises(InvalidParameter):
            self.FOUND.quantile(p)
        with pytest.raises(InvalidParameter):
            self.FOUND.interval(p)


class TestReading:
    def release(self):
        table = hf.Table(TOWNS, np.array([5, 3, 2, 9, 0, 4]))
        return hf.release(
            table, [hf.margin("town")], hf.GeneralizedLaplace(epsilon="1/2", per="distance"), key=hf.NoiseKey.for_tests("reading")
        )

    def test_a_folder_says_the_same_as_the_release(self, tmp_path: Path) -> None:
        made = self.release()
        folder = made.save(tmp_path / "out")
        here, there = (research.posterior(source, Flat(), {"sex": "F"}) for source in (made, folder))
        assert here.values.tolist() == there.values.tolist()
        assert here.probabilities.tolist() == there.probabilities.tolist()

    def test_a_changed_folder_is_refused(self, tmp_path: Path) -> None:
        folder = self.release().save(tmp_path / "out", formats=["csv"])
        with open(folder / "table.csv", "a", encoding="utf-8") as table:
            table.write("\n")
        with pytest.raises(VerificationFailed):
            research.posterior(folder, Flat(), 0)

    def test_suppressed_cells_have_no_law(self) -> None:
        made = hf.release(hf.Table(TOWNS, np.arange(6)), [hf.margin("town")], hf.Suppression(), key=hf.NoiseKey.for_tests("s"))
        with pytest.raises(InvalidParameter, match="publishes no cells"):
            research.posterior(made, Flat(), 0)

    @pytest.mark.parametrize("query", [6, -1, True, {"town": "d"}, {"age": "1"}, [1, 0], np.ones(6), None], ids=repr)
    def test_bad_queries(self, query) -> None:
        with pytest.raises(InvalidParameter):
            research.posterior(self.release(), Flat(), query)

    def test_a_text_is_a_condition(self) -> None:
        by_text, by_codes = (research.posterior(self.release(), Flat(), query) for query in ("town = 'a'", {"town": "a"}))
        assert repr(by_text) == repr(by_codes)
        with pytest.raises(InvalidParameter, match="there is no column 'a'"):
            research.posterior(self.release(), Flat(), "a")

    def test_codes_that_no_cell_has_together(self) -> None:
        universe = hf.Universe.listed({"town": ["a", "b"], "sex": ["F", "M"]})
        source = read(universe, [hf.total()], hf.GeneralizedLaplace(epsilon=1, per="distance"), [1, 2])
        with pytest.raises(InvalidParameter, match="No cell"):
            posterior_of(source, Flat(), {"town": "a", "sex": "M"})

    @pytest.mark.parametrize("source", [3, None, hf.Table(TOWNS, np.arange(6))], ids=["number", "none", "table"])
    def test_what_is_no_release(self, source) -> None:
        with pytest.raises(InvalidParameter, match="release"):
            research.posterior(source, Flat(), 0)

    @pytest.mark.parametrize("draws", [0, -1])
    def test_draws(self, draws: int) -> None:
        with pytest.raises(InvalidParameter):
            research.posterior(self.release(), Flat(), 0, draws=draws)

    def test_a_prior_that_excludes_every_table(self) -> None:
        with pytest.raises((InvalidParameter, RequestTooLarge), match="wider prior"):
            posterior_of(read(THREE, [hf.total()], hf.GeneralizedLaplace(epsilon=1, per="distance"), [5, 2, 2]), Flat(0, 2), 0)


class TestPriors:
    @pytest.mark.parametrize(
        "make",
        [
            lambda: Flat(3, 2),
            lambda: Flat(0.5),  # type: ignore[arg-type]
            lambda: Flat(True),
            lambda: Poisson(0),
            lambda: Poisson([1.0, float("nan")]),
            lambda: Poisson("many"),  # type: ignore[arg-type]
            lambda: NegativeBinomial(-1, 2),
            lambda: NegativeBinomial([1, 2], 2),  # type: ignore[arg-type]
            lambda: Listed([]),
            lambda: Listed([0, 0]),
            lambda: Listed([1, -1]),
        ],
    )
    def test_bad_ones_are_refused(self, make) -> None:
        with pytest.raises(InvalidParameter):
            make()

    def test_weights_of_named_laws(self) -> None:
        """Against the probabilities of SciPy: NumPy's negative_binomial(100, .95) among them."""
        from scipy import stats

        k = np.arange(-2, 30)
        assert np.allclose(np.exp(Poisson(3.5).log_weights(k, np.zeros_like(k))), stats.poisson.pmf(k, 3.5))
        binomial = NegativeBinomial(100, 100 * 0.05 / 0.95)
        assert np.allclose(np.exp(binomial.log_weights(k, np.zeros_like(k))), stats.nbinom.pmf(k, 100, 0.95))

    @pytest.mark.parametrize(
        "mechanism",
        [hf.GeneralizedLaplace(epsilon=1, per="distance"), hf.Conditional(epsilon=2, per="distance")],
        ids=["laplace", "conditional"],
    )
    def test_a_list_with_its_weight_far_away(self, mechanism) -> None:
        """Counts of 0 or, with almost all weight, 150: a cell published as 3 is almost surely 150, and of three under a total of 150 each
        is so with probability 1/3. Windows around what was published must reach it."""
        prior = Listed([1.0, *[0.0] * 149, 1e120])
        assert posterior_of(read(THREE, [], mechanism, [3, 0, 0]), prior, 0).probability(150, 150) > 0.999
        shared = posterior_of(read(THREE, [hf.total()], mechanism, [50, 50, 50]), prior, 0)
        assert shared.probability(150, 150) == pytest.approx(1 / 3, abs=6.2 * shared.error)  # where it is drawn: one in 10^9

    def test_means_for_each_cell_fit_the_table(self) -> None:
        with pytest.raises(InvalidParameter, match="2 means"):
            posterior_of(read(THREE, [hf.total()], hf.GeneralizedLaplace(epsilon=1, per="distance"), [5, 2, 2]), Poisson([1.0, 2.0]), 0)

    def test_only_priors_are_taken(self) -> None:
        with pytest.raises(InvalidParameter, match="Flat"):
            posterior_of(read(THREE, [hf.total()], hf.GeneralizedLaplace(epsilon=1, per="distance"), [5, 2, 2]), "flat", 0)  # type: ignore[arg-type]
