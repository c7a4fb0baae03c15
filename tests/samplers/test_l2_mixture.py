"""Laplace noise of the Euclidean norm by a random variance: identities on balls, laws by counting points, bands that change nothing."""

from __future__ import annotations

import math
import pickle
from collections import Counter
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from flint import arb
from numpy.typing import NDArray

import holdfast as hf
from holdfast.errors import InvalidParameter
from holdfast.exact.balls import ball, enclosure, precision
from holdfast.exact.predicates import BAND
from holdfast.lattices.algebra import kernel_basis, reduced_basis, to_numpy
from holdfast.lattices.shapes import General, Grid, OneSum, Whole
from holdfast.laws import L2Laplace
from holdfast.randomness import NoiseKey, Words
from holdfast.samplers.choice import Reason
from holdfast.samplers.coupling.sampler import CouplingLaplace
from holdfast.samplers.l2_laplace import NEAR, STEP, Closeness, MixedL2Laplace, VarianceWeights
from holdfast.samplers.l2_laplace import L2Rejection as Rejection
from holdfast.samplers.laplace_rejection import GridLaplace
from holdfast.samplers.protocol import cell_draws
from holdfast.samplers.table import choose
from holdfast.testing import ALPHA, ListedWords, check_fit_categories

from .lattice_points import ODD, counted, enumerated, fit_of_sums, margin_rows

QUARTER, HALF, ONE = Fraction(1, 4), Fraction(1, 2), Fraction(1)
SKEW = np.array([[1, 2, 3, 1, 0], [0, 1, 1, 2, 1]])
COARSE = Fraction(1, 2)
"""A step with few atoms, for quick tests: the law is the same."""
ONES = 2**32 - 1


def words(label: str) -> Words:
    return NoiseKey.for_tests(label).stream("l2 mixture")


def basis_of(rows: NDArray[np.int64]) -> NDArray[np.int64]:
    return to_numpy(reduced_basis(kernel_basis(rows)))


def column_pairs(reach: int) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Columns of three cells with sum zero, by their first two cells, and half their squares, up to half squares of `reach`."""
    side = np.arange(-2 * math.isqrt(reach), 2 * math.isqrt(reach) + 1)
    a, b = (axis.ravel() for axis in np.meshgrid(side, side, indexing="ij"))
    half = a * a + a * b + b * b
    near = half <= reach
    return a[near], b[near], half[near]


def points_of_tables(columns: int, reach: int) -> NDArray[np.float64]:
    """Tables of three rows with zero margins: how many have |z|^2 = 2 n, n = 0, ..., reach. For three or four columns.

    For every sum v of two columns the counts by half squares; a third column is -v, or a third and a fourth have the sum -v.
    """
    a, b, half = column_pairs(reach)
    total = np.zeros(reach + 1)
    sums_a, sums_b, halves = column_pairs(2 * reach if columns == 4 else reach)
    length = 1 << (2 * reach + 1).bit_length()
    for v_a, v_b, half_v in zip(sums_a, sums_b, halves, strict=True):
        if not (v_a >= v_b >= 0):  # permutations of the three rows and the sign leave one in six or twelve
            continue
        orbit = len({tuple(s * x for x in order) for s in (1, -1) for order in _orders(int(v_a), int(v_b))})
        other = (v_a - a) ** 2 + (v_a - a) * (v_b - b) + (v_b - b) ** 2
        both = half + other
        counts = np.bincount(both[both <= reach], minlength=reach + 1).astype(np.float64)
        if columns == 3:
            total[half_v:] += orbit * counts[: reach + 1 - half_v]
        else:
            total += orbit * np.rint(np.fft.irfft(np.fft.rfft(counts, length) ** 2, length)[: reach + 1])
    return total


def _orders(a: int, b: int) -> list[tuple[int, int]]:
    cells = (a, b, -a - b)
    return [(cells[i], cells[j]) for i, j in product(range(3), repeat=2) if i != j]


def law_of_norms(points: NDArray[np.float64], epsilon: Fraction, bins: int = 24) -> tuple[NDArray[np.int64], list[float]]:
    """Bins of n, of about equal probability, and their probabilities; |z|^2 = 2 n."""
    weights = points * np.exp(-float(epsilon) * np.sqrt(2.0 * np.arange(len(points))))
    assert weights[-len(weights) // 10 :].sum() < 1e-5 * weights.sum(), "count further out"
    shares = np.cumsum(weights) / weights.sum()
    place = np.minimum((shares * bins).astype(np.int64), bins - 1)
    return place, np.bincount(place, weights=weights / weights.sum(), minlength=bins).tolist()


def norm_counts(z: NDArray[np.int64], place: NDArray[np.int64]) -> Counter[int]:
    half = (z * z).sum(axis=1) // 2
    return Counter(np.append(place, place[-1])[np.minimum(half, len(place))].tolist())


def test_points_are_counted_right() -> None:
    """Against all tables with entries up to 2, for |z|^2 up to 8 (a larger entry alone gives more)."""
    for columns in (3, 4):
        cells = 2 * (columns - 1)
        squares: Counter[int] = Counter()
        for free in product(range(-2, 3), repeat=cells):
            block = np.array(free).reshape(2, columns - 1)
            block = np.vstack([block, -block.sum(axis=0)])
            table = np.hstack([block, -block.sum(axis=1, keepdims=True)])
            squares[int((table * table).sum())] += 1
        assert points_of_tables(columns, 4).tolist() == [squares[2 * n] for n in range(5)]


class TestCloseness:
    def test_doubles_agree_with_balls(self) -> None:
        for step in (Fraction(1, 16), Fraction(1, 2)):
            close = Closeness(step)
            with precision(120):
                for x in (Fraction(1, 100), Fraction(1, 3), Fraction(2), NEAR - Fraction(1, 100)):
                    assert abs(close.excess(x**2) - arb(close.excess_double(float(x)))) < 2.0**-45

    def test_the_mass_at_zero_makes_up_what_is_missing(self) -> None:
        for step in (Fraction(1, 16), Fraction(3)):
            close = Closeness(step)
            with precision(160):
                missing, plain = close.at_zero(), 1 - sum((close.mass(j) for j in range(1, int(300 / step))), arb(0))
                assert missing > 0
                assert abs(missing - plain) < 1e-40

    @pytest.mark.parametrize("step", [Fraction(1, 16), Fraction(1, 2)])
    @pytest.mark.parametrize("least", [0.01, 0.25, 1.0, 50.0])
    def test_loss_and_gain_bound_the_ratio(self, step: Fraction, least: float) -> None:
        close = Closeness(step)
        loss, gain = close.loss(least), close.gain(least)
        with precision(100):
            for x in (least, 0.4, NEAR - 0.01, NEAR + 0.001, 60.0):
                if x >= least:
                    excess = close.excess(Fraction(x) ** 2)
                    assert -excess <= ball(loss)
                    assert excess <= ball(gain)
                    assert x < NEAR or abs(excess) < close.far_error

    def test_the_loss_is_small(self) -> None:
        assert float(Closeness().loss(0.001)) < 0.16
        assert float(Closeness().loss(0.25)) < 0.02
        assert float(Closeness().loss(1.0)) < 0.004


class TestVariances:
    def test_weights_are_those_of_the_sums(self) -> None:
        """Two Gram-Schmidt vectors, every rho as a plain sum over the integers; up to one factor for all."""
        close, epsilon, lengths = Closeness(Fraction(1, 2)), Fraction(3, 2), [Fraction(2), Fraction(3, 2)]
        found = VarianceWeights(close, epsilon, lambda: [ball(length) for length in lengths]).fixed_weights(64, 40)
        with precision(200):
            for j in (1, 2, 3, 10, 60):
                tau = close.step * j / epsilon**2
                sums = [sum(((-arb(k * k) * ball(length / (2 * tau))).exp() for k in range(-60, 61)), arb(0)) for length in lengths]
                ratio = close.mass(j) * sums[0] * sums[1] / close.at_zero()
                assert ball(found.lows[j]) / ball(found.highs[0]) <= ratio <= ball(found.highs[j]) / ball(found.lows[0])

    def test_the_tail_bound_holds_and_is_small(self) -> None:
        source = VarianceWeights(Closeness(), QUARTER, lambda: [arb(2)] * 30)
        short, long = source.fixed_weights(32, 20), source.fixed_weights(64, 40)
        assert len(long.lows) > len(short.lows)
        beyond = Fraction(sum(long.highs[len(short.lows) :]) + long.right_tail[1], sum(long.lows))
        assert beyond <= Fraction(short.right_tail[1], sum(short.highs)) * 2
        assert Fraction(short.right_tail[1], sum(short.lows)) < Fraction(1, 2**32)


@pytest.mark.parametrize("step", [Fraction(1, 16), ONE])
@pytest.mark.parametrize("epsilon", [QUARTER, ONE])
def test_weights_times_chances_are_the_law(epsilon: Fraction, step: Fraction) -> None:
    """The identity behind the sampler: what a try gives z, times the probability of keeping it, is exp(-epsilon |z|) up to one factor."""
    sampler = MixedL2Laplace(basis_of(np.ones((1, 3), dtype=np.int64)), epsilon, step=step)
    close = Closeness(step)
    with precision(128):
        for square in (0, 2, 14, 200):
            proposed = close.at_zero() if square == 0 else arb(0)
            for j in range(1, int(250 / step)):
                proposed += close.mass(j) * (-arb(square) / (2 * ball(step * j / epsilon**2))).exp()
            wanted = (-ball(epsilon) * arb(square).sqrt() - ball(sampler.loss)).exp()
            assert abs(proposed * sampler.chance(square)() / wanted - 1) < 1e-30
            assert sampler.chance(square)() <= 1


FEW = [("2 x 3", margin_rows((2, 3)), ONE, 22), ("odd rows", ODD, HALF, 40), ("skew rows", SKEW, ONE, 24), ("nothing kept", None, ONE, 30)]
MANY = list(product((("2 x 3", margin_rows((2, 3))), ("odd", ODD), ("skew", SKEW)), (QUARTER, HALF, ONE)))


def fit_enumerated(name: str, rows: NDArray[np.int64] | None, epsilon: Fraction, reach: int, draws: int, step: Fraction = STEP) -> None:
    kept = np.zeros((1, 3), dtype=np.int64) if rows is None else rows
    basis = np.eye(3, dtype=np.int64) if rows is None else basis_of(rows)
    z = MixedL2Laplace(basis, epsilon, step=step).draw(draws, words(f"{name} {epsilon}"))
    assert not (z @ kept.T).any()
    check_fit_categories(counted(z, epsilon), enumerated(kept, epsilon, reach, norm=2), name=f"l2 by variance, {name}, epsilon {epsilon}")


@pytest.mark.parametrize(("name", "rows", "epsilon", "reach"), FEW)
def test_draws_follow_the_enumerated_law(name: str, rows: NDArray[np.int64] | None, epsilon: Fraction, reach: int) -> None:
    fit_enumerated(name, rows, epsilon, reach, 3_000, COARSE)


@pytest.mark.long
@pytest.mark.parametrize(("named", "epsilon"), MANY)
def test_many_draws_follow_the_enumerated_law(named: tuple[str, NDArray[np.int64]], epsilon: Fraction) -> None:
    name, rows = named
    fit_enumerated(f"{name}, many", rows, epsilon, round(24 / float(epsilon)), 60_000)


def fit_norms(columns: int, epsilon: Fraction, reach: int, draws: int, step: Fraction = STEP) -> None:
    z = MixedL2Laplace(Grid((3, columns)).basis(), epsilon, step=step).draw(draws, words(f"3 x {columns} {epsilon}"))
    assert not (z @ margin_rows((3, columns)).T).any()
    place, law = law_of_norms(points_of_tables(columns, reach), epsilon)
    check_fit_categories(norm_counts(z, place), dict(enumerate(law)), name=f"l2 by variance, 3 x {columns}, epsilon {epsilon}, {draws}")


@pytest.mark.parametrize(("columns", "reach"), [(3, 200), (4, 420)])
def test_norms_of_tables_follow_the_counted_law(columns: int, reach: int) -> None:
    fit_norms(columns, ONE, reach, 3_000, COARSE)


@pytest.mark.long
@pytest.mark.parametrize("epsilon", [QUARTER, HALF, ONE])
@pytest.mark.parametrize(("columns", "reach"), [(3, 200), (4, 420)])
def test_norms_of_many_tables_follow_the_counted_law(columns: int, reach: int, epsilon: Fraction) -> None:
    fit_norms(columns, epsilon, round(reach / epsilon**2), 40_000)


def test_what_is_left_out_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """At a coarse step every part of a try matters: each left out alone gives a law that as many draws tell from the right one."""
    rows, draws = np.ones((1, 3), dtype=np.int64), 50_000
    law = enumerated(rows, QUARTER, 80, norm=2)

    def p_value(label: str, wanted: dict[int, float] = law) -> float:
        sampler = MixedL2Laplace(basis_of(rows), QUARTER, step=COARSE)
        return fit_of_sums(sampler.draw(draws, words(label)), wanted, QUARTER)

    assert p_value("coarse") >= ALPHA
    assert p_value("coarse", enumerated(rows, QUARTER, 80, norm=2, slope=QUARTER * Fraction(9, 10))) < ALPHA
    with monkeypatch.context() as patch:
        patch.setattr(MixedL2Laplace, "decide", lambda self, values, *rest: np.ones(len(values), dtype=np.bool_))
        assert p_value("no repair") < ALPHA
    with monkeypatch.context() as patch:
        patch.setattr(Closeness, "at_zero", lambda self: arb(2) ** -60)
        assert p_value("nothing at zero") < ALPHA


@pytest.mark.long
@pytest.mark.parametrize("step", [STEP, COARSE])
def test_a_law_one_percent_off_is_seen(step: Fraction) -> None:
    rows = np.ones((1, 3), dtype=np.int64)
    z = MixedL2Laplace(basis_of(rows), ONE, step=step).draw(800_000, words(f"power {step}"))
    assert fit_of_sums(z, enumerated(rows, ONE, 30, norm=2), ONE) >= ALPHA
    for percent in (99, 101):
        assert fit_of_sums(z, enumerated(rows, ONE, 30, norm=2, slope=Fraction(percent, 100)), ONE) < ALPHA


def test_the_band_changes_nothing() -> None:
    drawn, positions = [], []
    for band in (BAND, 2.0**-8, 1.0):
        stream = words("band")
        drawn.append(MixedL2Laplace(basis_of(ODD), HALF, band=band).draw(60, stream))
        positions.append(stream.position)
    assert np.array_equal(drawn[0], drawn[1])
    assert np.array_equal(drawn[0], drawn[2])
    assert len(set(positions)) == 1


@pytest.mark.parametrize("square", [0, 2, 18, 2 * 10**6])
def test_accept_words_around_the_threshold(square: int) -> None:
    """A word below floor(2^32 p) keeps, one above does not, the word itself is settled by its own extra bits."""
    sampler = MixedL2Laplace(np.eye(2, dtype=np.int64), QUARTER)
    values = np.array([[math.isqrt(square // 2)] * 2])
    with precision(300):
        low, high = enclosure(sampler.chance(square)() * arb(2) ** 32)
    threshold = math.floor(low)
    assert threshold == math.floor(high)
    for word, extra, verdict in ((threshold - 1, ONES, True), (threshold, 0, True), (threshold, ONES, False), (threshold + 1, 0, False)):
        if word <= ONES:
            listed = ListedWords([word], {(0, 0): [extra] * 4})
            assert sampler.decide(values, listed.take(1), 0, listed)[0] == verdict


def test_it_draws_what_rejection_refuses() -> None:
    """A small lattice stays with rejection; 5 x 5 could be drawn so, but costs more; 10 x 10 was refused once."""
    small = choose(Whole((OneSum(3), Grid((2, 2)))), L2Laplace(HALF))
    assert small.reason is Reason.WHOLE
    middle = choose(Whole((Grid((5, 5)),)), L2Laplace(HALF))
    assert middle.reason is Reason.WHOLE_MIXED
    assert middle.compared is not None
    assert cell_draws(middle.noise) == middle.compared.taken < middle.compared.other
    large = choose(Whole((Grid((10, 10)), OneSum(4))), L2Laplace(HALF))
    assert large.reason is Reason.WHOLE_MIXED
    assert large.noise.expected_tries < 1.1
    z = large.noise.draw(2, words("large"))
    table = z[:, :100].reshape(2, 10, 10)
    assert not table.sum(axis=1).any()
    assert not table.sum(axis=2).any()
    assert not z[:, 100:].sum(axis=1).any()
    assert z.any()
    again = pickle.loads(pickle.dumps(large.noise))
    assert np.array_equal(again.draw(2, words("large")), z)


def test_rejection_is_not_tried_out_where_a_rule_leaves_no_doubt(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """Its l1 draws, their pilots and their compiled loops took longer than all the rest; a long preparation is announced."""
    choose.cache_clear()
    for sampler in (GridLaplace, CouplingLaplace):
        monkeypatch.setattr(sampler, "__init__", lambda *_: pytest.fail("an l1 sampler was prepared"))
    monkeypatch.setattr("holdfast.lattices.shapes.general.LONG_DIMENSION", 49)
    caplog.set_level("INFO", "holdfast")
    found = choose(Whole((Grid((8, 8)),)), L2Laplace(HALF))
    assert isinstance(found.sampler, MixedL2Laplace)
    assert found.reason is Reason.WHOLE_MIXED
    assert found.compared is not None
    assert found.compared.taken == cell_draws(found.noise)
    assert found.compared.other > 10 * found.compared.taken
    assert "49 free dimensions is prepared, once: about 1 seconds" in caplog.text


@pytest.mark.long
def test_a_rule_of_thumb_changes_no_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    """On both sides of where the two samplers cost the same, with the rule and without it."""
    shapes = [Whole((Grid((axis, axis)),)) for axis in (4, 5, 6)] + [Whole((OneSum(axis),)) for axis in (12, 24, 40)]
    by_rule = [type(choose(shape, L2Laplace(ONE)).sampler) for shape in shapes]
    monkeypatch.setattr("holdfast.samplers.table.NO_DOUBT", math.inf)
    choose.cache_clear()
    assert [type(choose(shape, L2Laplace(ONE)).sampler) for shape in shapes] == by_rule
    assert set(by_rule) == {MixedL2Laplace, Rejection}
    choose.cache_clear()


def test_a_lattice_that_is_no_product_is_taken_whole() -> None:
    """Of a general block the reduced basis is used: the same lattice."""
    whole = Whole((General(tuple(map(tuple, SKEW.tolist())), (1,) * 5), OneSum(3)))
    basis = whole.reduced_basis()
    assert basis.shape == (8, 5)
    assert not (SKEW @ basis[:5]).any()


def test_bad_arguments_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="epsilon"):
        MixedL2Laplace(np.eye(2, dtype=np.int64), 0)
    with pytest.raises(InvalidParameter, match="at least one column"):
        MixedL2Laplace(np.zeros((3, 0), dtype=np.int64), 1)
    assert MixedL2Laplace(np.eye(2, dtype=np.int64), 1).draw(0, words("none")).shape == (0, 2)


@pytest.mark.long
def test_a_release_that_was_refused() -> None:
    """7 x 7 in l2 needed more than 10^9 cell draws. Now it is drawn, and kept totals hold exactly."""
    universe = hf.Universe.product({"a": [str(i) for i in range(7)], "b": [str(i) for i in range(7)]})
    counts = np.arange(49) + 40
    keep = [hf.margin("a"), hf.margin("b")]
    made = hf.release(
        hf.Table(universe, counts),
        keep,
        hf.GeneralizedLaplace(epsilon="1/2", norm="l2", per="distance"),
        key=hf.NoiseKey.for_tests("7 x 7"),
    )
    noise = (made.table.counts - counts).reshape(7, 7)
    assert noise.any()
    assert not noise.sum(axis=0).any()
    assert not noise.sum(axis=1).any()
    assert made.guarantee.status == "exact"
