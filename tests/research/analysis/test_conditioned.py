"""Posteriors where the law reads the counts: Bayes' rule with every normaliser listed, calibration, and the weights of draws."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, arb_poly

import holdfast as hf
from holdfast import research
from holdfast.engines.local import run_task
from holdfast.errors import InvalidParameter
from holdfast.exact.balls import ball, precision
from holdfast.laws import ConditionalGaussian, ConditionalLaplace
from holdfast.research.analysis.blocks import cell_weight
from holdfast.research.analysis.conditioned import KeptTotals
from holdfast.research.analysis.one_sum import Classes, ClassTables
from holdfast.research.analysis.posterior import Published, posterior_of
from holdfast.research.analysis.priors import Flat, Listed, Poisson, Prior
from holdfast.testing.fit import check_fit, check_fit_categories, fits
from tests.research.analysis import brute
from tests.research.analysis.test_posterior import THREE, TOWNS, assert_close, fraction_prior, read

SUM = np.ones((1, 3), dtype=int)
MARGINS = np.array([[1, 1, 0, 0, 0, 0], [0, 0, 1, 1, 0, 0], [0, 0, 0, 0, 1, 1], [1, 0, 1, 0, 1, 0]])
RATE = Fraction(1, 2)


def expected(tables, y, prior: Prior, query) -> dict[int, float]:
    """By listing: every table is both a possible truth and a possible publication."""
    weigh = brute.laplace(RATE)

    def normaliser(x: tuple[int, ...]) -> arb:
        return sum((weigh(tuple(b - a for a, b in zip(x, other, strict=True))) for other in tables), arb(0))

    return brute.posterior_of_sum(tables, y, weigh, fraction_prior(prior, len(tables[0])), query, normaliser)


class TestByListing:
    @pytest.mark.parametrize("prior", [Flat(), Flat(0, 3), Poisson(2.0), Listed([1, 0, 2, 1, 3])], ids=str)
    def test_one_sum(self, prior: Prior) -> None:
        y = [4, 0, 2]
        tables = brute.tables_in([range(7)] * 3, SUM, y)
        found = posterior_of(read(THREE, [hf.total()], hf.Conditional(epsilon=1, per="distance"), y), prior, np.array([1, 0, 2]))
        assert found.method == "enumeration"
        assert_close(found, expected(tables, y, prior, [1, 0, 2]))

    def test_it_is_not_the_posterior_without_normalisers(self) -> None:
        """The unbounded law cut at zero would be another belief: what the normaliser does is more than the stated error."""
        y = [4, 0, 2]
        tables = brute.tables_in([range(7)] * 3, SUM, y)
        right = expected(tables, y, Flat(), [0, 1, 0])
        wrong = brute.posterior_of_sum(tables, y, brute.laplace(RATE), fraction_prior(Flat(), 3), [0, 1, 0])
        assert max(abs(right[k] - wrong[k]) for k in right) > 0.01

    def test_upper_bounds(self) -> None:
        y = [3, 1, 2]
        tables = brute.tables_in([range(4)] * 3, SUM, y)
        assert_close(
            posterior_of(read(THREE, [hf.total()], hf.Conditional(epsilon=1, upper=3, per="distance"), y), Flat(), 0),
            expected(tables, y, Flat(), [1, 0, 0]),
        )

    def test_a_binary_table(self) -> None:
        y = [1, 0, 0, 1, 1, 0]
        tables = brute.tables_in([range(2)] * 6, MARGINS, y)
        source = read(TOWNS, [hf.margin("town"), hf.margin("sex")], hf.Conditional(epsilon=1, upper=1, per="distance"), y)
        assert_close(posterior_of(source, Flat(), 0), expected(tables, y, Flat(), [1, 0, 0, 0, 0, 0]))

    def test_rows_and_columns(self) -> None:
        y = [3, 1, 1, 2, 0, 4]
        tables = brute.tables_in([range(6)] * 6, MARGINS, y)
        source = read(TOWNS, [hf.margin("town"), hf.margin("sex")], hf.Conditional(epsilon=1, per="distance"), y)
        assert_close(posterior_of(source, Poisson(2.0), {"town": "b", "sex": "F"}), expected(tables, y, Poisson(2.0), [0, 0, 1, 0, 0, 0]))

    def test_a_cell_under_no_total(self) -> None:
        """Z(x) = sum over k >= 0; listed to 300, beyond which less than exp(-100) is left."""
        tables = [(k,) for k in range(300)]
        found = posterior_of(read(THREE, [], hf.Conditional(epsilon=1, per="distance"), [2, 5, 0]), Poisson(3.0), 0)
        assert_close(found, expected(tables[:120], [2], Poisson(3.0), [1]))

    @pytest.mark.parametrize(("y", "upper"), [(3, None), (5000, None), (5000, 5010)])
    def test_a_cell_under_no_total_at_a_small_epsilon(self, y: int, upper: int | None) -> None:
        """Rate 1/20: its counts are thousands. Z(x) as a geometric sum on each side; left out is less than exp(-100)."""
        far = 2000
        values = range(max(0, y - far), (y + far if upper is None else upper) + 1)
        one, a = arb(1), brute.ball_exp(Fraction(-1, 20))

        def normaliser(x: tuple[int, ...]) -> arb:
            above = arb(0) if upper is None else a ** (upper + 1 - x[0])
            return (one - a ** (x[0] + 1) + a - above) / (one - a)

        right = brute.posterior_of_sum([(k,) for k in values], [y], brute.laplace(Fraction(1, 20)), lambda _: Fraction(1), [1], normaliser)
        found = posterior_of(read(THREE, [], hf.Conditional(epsilon="1/10", upper=upper, per="distance"), [y] * 3), Flat(), 0)
        assert found.method == "enumeration"
        assert_close(found, right)

    def test_a_cell_under_no_total_with_gaussian_noise(self) -> None:
        """sigma^2 = 10,000: Z(x) summed to 2,000, beyond which less than exp(-150) is left."""
        source = read(THREE, [], hf.Conditional(rho="1/20000", noise="gaussian", per="distance"), [7] * 3)
        assert source.drawing.channel.target == ConditionalGaussian(Fraction(10_000))
        found = posterior_of(source, Flat(), 0)
        weights = np.exp(-(np.arange(4000.0) ** 2) / 20_000)
        z = np.array([weights[: k + 1][::-1].sum() + weights[1:].sum() for k in range(2000)])
        p = weights[np.abs(np.arange(2000) - 7)] / z
        assert_close(found, dict(enumerate((p / p.sum()).tolist())))

    def test_a_prior_far_from_what_was_published(self) -> None:
        """Poisson(300) against a published 2 at rate 1/2: the posterior is near 300 exp(-1/2) = 182, far outside the first window."""
        tables = [(k,) for k in range(600)]
        found = posterior_of(read(THREE, [], hf.Conditional(epsilon=1, per="distance"), [2, 5, 0]), Poisson(300.0), 0)
        assert 150 < found.mean < 215
        log_weight = {k: -0.5 * abs(k - 2) + float(Poisson(300.0).log_weights(np.array([k]), np.zeros(1, dtype=int))[0]) for (k,) in tables}
        raw = {k: math.exp(w) / sum(math.exp(-0.5 * abs(j - k)) for (j,) in tables) for k, w in log_weight.items() if k < 500}
        expected_mean = sum(k * w for k, w in raw.items()) / sum(raw.values())
        assert found.mean == pytest.approx(expected_mean, abs=1e-6)


class TestCalibration:
    def ranks(self, published_at: str, read_at: str) -> np.ndarray:
        random = np.random.default_rng(9)
        truth = random.poisson(2.0, size=(320, 3))
        drawing = hf.plan(THREE, [hf.total()], hf.Conditional(epsilon=published_at, per="distance")).drawing
        plan = hf.plan(THREE, [hf.total()], hf.Conditional(epsilon=read_at, per="distance"))
        task = drawing.channel.tasks()[0]
        with hf.NoiseKey.for_tests("ranks") as key, key.stream("ranks") as words:
            y = run_task(drawing, task, truth, None, words)
        out = []
        for x, published in zip(truth, y, strict=True):
            found = posterior_of(Published(THREE, published, plan), Poisson(2.0), 0)
            below, own = found.probability(most=int(x[0]) - 1), found.probability(int(x[0]), int(x[0]))
            out.append(min(int(10 * (below + own * random.uniform())), 9))
        return np.array(out)

    @pytest.mark.long
    def test_ranks_of_the_truth_are_uniform_under_the_right_law_only(self) -> None:
        uniform = np.full(10, 0.1)
        check_fit(self.ranks("1", "1"), uniform, name="ranks of the truth, conditioned on bounds")
        assert not fits(self.ranks("1/4", "6"), uniform)


def kept_totals(low: int, high: int, y: np.ndarray, rows: np.ndarray, target) -> KeptTotals:
    lows, highs = np.full(len(y), low), np.full(len(y), high)
    classes = Classes.of(y, lows, highs, rows, np.zeros((0, len(y)), dtype=np.int64), np.zeros(0, dtype=np.int64))
    noise = cell_weight(target)
    assert classes is not None
    assert noise is not None
    return KeptTotals(classes, lows, highs, noise)


def sparse(*people: int, cells: int) -> np.ndarray:
    """Counts of classes of `cells` cells with so many people each."""
    random = np.random.default_rng(5)
    return np.concatenate([np.bincount(random.integers(0, cells, n), minlength=cells) for n in people])


def log_normaliser(x: np.ndarray, classes: Classes, high: int, rate: Fraction) -> float:
    """ln Z(x) over counts of zero to `high`: the product of a class's polynomials has the weights of its totals; certified balls."""
    laws = [arb_poly([1])] * len(classes)
    for number, count in zip(classes.of_cell.tolist(), x.tolist(), strict=True):
        laws[number] = laws[number] * arb_poly([ball(-rate * abs(k - count)).exp() for k in range(high + 1)])
    whole = arb(0)
    for totals in classes.totals.tolist():
        whole += math.prod((law[total] for law, total in zip(laws, totals, strict=True)), start=arb(1))
    return float(whole.log().mid())


CASES = {
    "one sum": (SUM, [4, 0, 2]),
    "two classes": (np.array([[1, 1, 1, 1], [1, 1, 0, 0]]), [2, 1, 0, 3]),
    "three rows": (np.array([[1, 1, 1, 1, 1], [1, 1, 0, 0, 0], [1, 0, 1, 1, 0]]), [2, 1, 0, 1, 2]),
}


class TestDraws:
    """The pieces of the Monte Carlo without its noise: normalisers by listing, and the law of the draws by a fit."""

    @pytest.mark.parametrize("name", CASES)
    @pytest.mark.parametrize("target", [ConditionalLaplace(RATE), ConditionalGaussian(Fraction(3))], ids=["laplace", "gaussian"])
    def test_normalisers_are_those_of_a_list(self, name: str, target) -> None:
        rows, start = CASES[name]
        y = np.array(start)
        tables = np.array(brute.tables_in([range(7)] * len(y), rows, y))
        sums = kept_totals(0, 6, y, rows, target)
        noise = cell_weight(target)
        assert noise is not None
        listed = [math.log(np.exp(noise(tables - x).sum(axis=1)).sum()) for x in tables]
        missing = sums.log_probability(tables)
        assert missing is not None
        found = sums.own_normalisers(tables).sum(axis=1) + missing
        assert np.allclose(found, listed, rtol=0, atol=1e-11)

    def test_inequality_rows_strike_out_class_totals(self) -> None:
        """At least two among the first two cells, of a total of six over four: normalisers of the tables that are left, by listing."""
        y, rows, cuts = np.array([2, 1, 0, 3]), np.ones((1, 4), dtype=int), np.array([[1, 1, 0, 0]])
        low, high = np.zeros(4, dtype=np.int64), np.full(4, 6)
        classes = Classes.of(y, low, high, rows, cuts, np.array([2]))
        noise = cell_weight(ConditionalLaplace(RATE))
        assert classes is not None
        assert noise is not None
        tables = np.array([x for x in brute.tables_in([range(7)] * 4, rows, y) if x[0] + x[1] >= 2])
        sums = KeptTotals(classes, low, high, noise)
        listed = [math.log(np.exp(noise(tables - x).sum(axis=1)).sum()) for x in tables]
        missing = sums.log_probability(tables)
        assert missing is not None
        assert np.allclose(sums.own_normalisers(tables).sum(axis=1) + missing, listed, rtol=0, atol=1e-11)

    @pytest.mark.parametrize(
        ("y", "cells", "rows", "rate"),
        [
            (sparse(30, cells=60), 60, [[1]], Fraction(1, 10)),
            (sparse(25, cells=50), 50, [[1]], Fraction(1)),
            (sparse(200, cells=23), 23, [[1]], Fraction(1, 4)),
            (sparse(8, 0, 6, cells=15), 15, [[1, 1, 0], [0, 1, 1]], Fraction(1, 5)),
            (sparse(0, 9, cells=20), 20, [[1, 0], [0, 1]], Fraction(1, 5)),
        ],
        ids=["small rate", "rate 1", "many people", "two rows", "an empty class"],
    )
    def test_normalisers_of_sparse_tables(self, y: np.ndarray, cells: int, rows: list[list[int]], rate: Fraction) -> None:
        """Independent cells around few people have such totals with probabilities from 1e-3 to 1e-39, far below rounding: the least is
        told as well as the largest, for tables that are like the published one and for one with all people of a class in one cell."""
        sums = kept_totals(0, int(y.sum()), y, np.repeat(np.array(rows), cells, axis=1), ConditionalLaplace(rate))
        random = np.random.default_rng(6)
        others = [random.permuted(y.reshape(-1, cells), axis=1).ravel() for _ in range(2)]
        heaped = np.zeros_like(y)
        heaped[::cells] = y.reshape(-1, cells).sum(axis=1)
        tables = np.array([y, *others, heaped])
        missing = sums.log_probability(tables)
        assert missing is not None
        with precision(400):
            right = [log_normaliser(x, sums.classes, int(y.sum()), rate) for x in tables]
        assert np.allclose(sums.own_normalisers(tables).sum(axis=1) + missing, right, rtol=0, atol=1e-6)

    def test_a_normaliser_that_cannot_be_told_from_zero_is_not_stated(self) -> None:
        """All of 60 people in the first half of the cells, by an inequality, which no tilt of the kept total makes likely."""
        y = sparse(60, 0, cells=30)
        low, high, halves = np.zeros(60, dtype=np.int64), np.full(60, 60), np.repeat([[1, 0]], 30, axis=1)
        classes = Classes.of(y, low, high, np.ones((1, 60), dtype=np.int64), halves, np.array([60]))
        noise = cell_weight(ConditionalLaplace(Fraction(1, 50)))
        assert classes is not None
        assert noise is not None
        assert KeptTotals(classes, low, high, noise).log_probability(y[None, :]) is None

    @pytest.mark.parametrize("name", CASES)
    def test_tables_by_classes_have_the_law_of_their_weights(self, name: str) -> None:
        rows, start = CASES[name]
        y = np.array(start)
        random = np.random.default_rng(3)
        logs = random.normal(size=(len(y), 7))
        tables = brute.tables_in([range(7)] * len(y), rows, y)
        classes = kept_totals(0, 6, y, rows, ConditionalLaplace(RATE)).classes
        drawn = ClassTables(classes, np.zeros(len(y), dtype=np.int64), logs).draw(20_000, random)
        weights = np.array([math.exp(sum(logs[i, k] for i, k in enumerate(table))) for table in tables])
        law = {table: w / weights.sum() for table, w in zip(tables, weights, strict=True)}
        counts = Counter(map(tuple, drawn.tolist()))
        check_fit_categories(counts, law, name=f"tables by classes, {name}")
        numbers = np.array([tables.index(table) for table in counts.elements()])
        assert not fits(numbers, weights**0.8 / (weights**0.8).sum())

    def test_a_block_of_46_cells(self) -> None:
        """The table of the paper: draws are worth nearly their number, and a kept total is known."""
        ages = [f"{k:02d}" for k in range(23)]
        universe = hf.Universe.product({"sex": ["F", "M"], "age": ages})
        keep = [hf.margin("sex"), hf.subset("age", codes=ages[4:])]
        y = np.random.default_rng(4).negative_binomial(100, 0.95, 46)
        source = read(universe, keep, hf.Conditional(epsilon=1, per="distance"), y)
        found = posterior_of(source, Flat(), {"sex": "F", "age": ages[:4]}, draws=300, key=hf.NoiseKey.for_tests(1))
        assert found.method == "monte carlo"
        assert found.effective_draws is not None
        assert found.effective_draws > 250
        assert found.probability(least=0) == pytest.approx(1)
        fixed = posterior_of(source, Flat(), {"sex": "F"}, draws=300)
        assert fixed.values.tolist() == [int(y[:23].sum())]


class TestSimulate:
    def test_a_prior_is_needed(self) -> None:
        table = hf.Table(THREE, np.array([3, 1, 2]))
        release = hf.release(table, [hf.total()], hf.Conditional(epsilon=1, per="distance"), key=hf.NoiseKey.for_tests("c"))
        with pytest.raises(InvalidParameter, match="under a prior only"):
            research.simulate(release, 10)

    @pytest.mark.long
    def test_the_law_by_listing(self) -> None:
        """P[y'] = sum over x of P[x | y] P[y' | x], all within bounds."""
        table = hf.Table(THREE, np.array([3, 1, 0]))
        release = hf.release(table, [hf.total()], hf.Conditional(epsilon=1, per="distance"), key=hf.NoiseKey.for_tests("c"))
        y = tuple(release.table.counts.tolist())
        made = research.simulate(release, 3_000, Flat(), key=hf.NoiseKey.for_tests(1))
        tables = brute.tables_in([range(5)] * 3, SUM, y)

        def step(x: tuple[int, ...]) -> np.ndarray:
            weights = np.array([math.exp(-0.5 * sum(abs(a - b) for a, b in zip(x, other, strict=True))) for other in tables])
            return np.asarray(weights / weights.sum())

        belief = np.array([step(x)[tables.index(y)] for x in tables])
        law = dict(zip(tables, (belief / belief.sum()) @ np.array([step(x) for x in tables]), strict=True))
        check_fit_categories(Counter(map(tuple, made.tables.tolist())), law, name="posterior predictive within bounds")
        one_step = {value: float(p) for value, p in enumerate(np.bincount([t[0] for t in tables], weights=step(y)))}
        assert not fits(made.tables[:, 0], one_step)
