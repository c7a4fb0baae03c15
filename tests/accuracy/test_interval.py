"""Intervals for true numbers, and simulated errors, from the public law."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import holdfast as hf
from holdfast.accuracy import error_draws
from holdfast.accuracy import error_laws as module
from holdfast.accuracy.interval import Interval
from holdfast.accuracy.interval_sets import Intervals
from holdfast.channels.covariance import public_draws
from holdfast.errors import HoldfastError, InvalidParameter, RequestTooLarge
from holdfast.samplers.protocol import cell_draws

UNIVERSE = hf.Universe.product({"town": ["a", "b"], "sex": ["F", "M"]})
TABLE = hf.Table(UNIVERSE, np.array([5, 3, 2, 9]))
KEY = "intervals"


def answered(mechanism: Any, values: Any = (0.5, 0.25, 0.25), rows: Any = (), **others: Any) -> Any:
    given = {"keep": rows, "sensitivity": "1", "mechanism": mechanism, "step": "1/16", "on_grid": True, "release_id": "a"}
    return hf.answer(list(values), **{"key": hf.NoiseKey.for_tests(KEY), **given, **others})


class TestCostlyDraws:
    """Draws of a block are the same for every query: those that take long are announced, and kept."""

    def test_they_are_announced_once_and_kept(self, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level("INFO", logger="holdfast")
        monkeypatch.setattr(module, "USUAL_CELLS", 1)  # few draws
        monkeypatch.setattr(error_draws, "WORTH_KEEPING", 1)
        monkeypatch.setattr(error_draws, "LONG_DRAW", 1)
        monkeypatch.setattr(error_draws, "CHUNK_CELLS", 2**13)
        drawn: list[int] = []

        def counted(sampler: Any, label: Any, count: int) -> Any:
            drawn.append(count)
            return public_draws(sampler, label, count)

        monkeypatch.setattr(error_draws, "public_draws", counted)
        codes = ["1", "2", "3", "4"]
        table = hf.Table(hf.Universe.product({"a": codes, "b": codes}), np.arange(16))
        release = hf.release(
            table, [hf.margin("a"), hf.margin("b")], hf.GeneralizedLaplace(epsilon=1, per="distance"), key=hf.NoiseKey.for_tests(KEY)
        )
        found = [release.interval(query, 0.9) for query in (0, [1, 1] + [0] * 14, 0)]
        assert len(drawn) > 2
        assert sum(drawn) == module.LEAST_DRAWS
        (said,) = [record.message for record in caplog.records if "Intervals" in record.message]
        assert said.startswith("Intervals need 1,000 draws of this noise: about ")
        assert found[0] == found[2]
        assert {one.method for one in found} == {"simulated"}

    def test_what_is_kept_is_bounded(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(error_draws, "WORTH_KEEPING", 1)
        monkeypatch.setattr(error_draws, "MOST_KEPT", 2 * module.DRAWS)
        release = hf.release(TABLE, [hf.margin("town")], hf.GeneralizedLaplace(epsilon=1, per="distance"), key=hf.NoiseKey.for_tests(KEY))
        ends = [release.interval(cell, 0.9, method="simulated") for cell in (0, 2, 0)]
        assert [one.shape for one in error_draws._kept[release.plan.drawing].values()] == [(module.DRAWS, 2)]
        assert ends[0] == ends[2]


class TestOutwards:
    """Ends that are no doubles, and ends of which not all digits are shown, are moved outwards."""

    @given(st.fractions(), st.fractions(min_value=0))
    def test_the_interval_of_doubles_and_of_digits_holds_the_exact_one(self, low: Fraction, width: Fraction) -> None:
        found = Interval(low, low + width, 0.9, low, "simulated")
        fields = found.to_fields()
        if width:
            assert Fraction(fields["low"]) <= low
            assert low + width <= Fraction(fields["high"])
            assert math.nextafter(fields["low"], math.inf) > low
            assert math.nextafter(fields["high"], -math.inf) < low + width
        else:
            assert fields["low"] == fields["high"] == fields["published"] == float(low)
        if width > abs(low) / 10**5:
            shown = repr(found).removeprefix("Interval(").replace(",", "").split(" level")[0].split(" to ")
            assert Fraction(shown[0]) <= low
            assert low + width <= Fraction(shown[1])

    def test_the_last_digit(self) -> None:
        found = Interval(Fraction(518300, 6841), Fraction(500, 6), 0.9, Fraction(80), "simulated")
        assert repr(found) == "Interval(75.7637 to 83.3334, level 0.9, simulated)"
        assert repr(Interval(-math.inf, math.inf, 0.9, 1, "simulated")) == "Interval(-inf to inf, level 0.9, simulated)"
        assert repr(Interval(1_234_567, 2_345_678, 0.9, 2_000_000, "kept")) == "Interval(1234567 to 2345678, level 0.9, kept)"


class TestEnds:
    """[theory T112], on laws that are known in full. The draws come from a public key: the ends are the same in every run."""

    @pytest.mark.parametrize("level", [0.5, 0.9, 0.99])
    @pytest.mark.parametrize("method", ["auto", "simulated"])
    def test_a_free_answer_with_laplace_noise(self, level: float, method: Any) -> None:
        found = answered(hf.ProjectedLaplace(epsilon=1)).interval(1, level, method=method)
        law, middle = hf.DiscreteLaplace(scale=16), (found.low + found.high) / 2
        steps = int((found.high - middle) * 16)
        covered = law.pmf(0) + 2 * sum(law.pmf(k) for k in range(1, steps + 1))
        assert covered >= level
        if method == "auto":  # no shorter one would do
            assert covered - 2 * law.pmf(steps) < level
            assert (found.method, found.doubt) == ("convolution", 0.0)
            assert found.covered == pytest.approx(covered, abs=1e-9)
        else:
            # The rank asks for 4.9 standard deviations of a share of 20,000 draws more than the level; the draws may add as many again.
            assert covered - 2 * law.pmf(steps) < level + 2 * 4.9 * (level * (1 - level) / 20_000) ** 0.5
            assert (found.method, found.doubt, found.covered) == ("simulated", 1e-6, None)

    def test_two_counts_under_one_total(self) -> None:
        release = hf.release(TABLE, [hf.margin("town")], hf.GeneralizedGaussian(rho="1/20", per="distance"), key=hf.NoiseKey.for_tests(KEY))
        found = release.interval({"town": "a", "sex": "F"}, 0.9)
        weights = np.exp(-2 * np.arange(-80, 81) ** 2 / 20.0)  # z = (k, -k), sigma_squared = 10
        reach = (found.high - found.low) // 2
        covered = weights[80 - reach : 81 + reach].sum() / weights.sum()
        assert 0.9 <= covered <= 0.99  # few whole numbers lie inside
        assert weights[81 - reach : 80 + reach].sum() / weights.sum() < 0.9  # one step less would not do
        assert found.method == "lattice sum"
        assert found.covered == pytest.approx(covered, abs=1e-9)

    def test_what_is_kept_is_exact(self) -> None:
        release = answered(hf.ProjectedLaplace(epsilon=1), rows=[[1, 1, 1]])
        found = release.interval([1, 1, 1], 0.95)
        assert found.low == found.high == 1
        assert (found.method, found.covered) == ("kept", 1.0)
        assert release.interval([2, 1, 1], 0.95).low < 1 + Fraction(release.table.values[0])

    @pytest.mark.parametrize(
        ("values", "others"),
        [
            (["0.3", "0.4", "0.3"], {"mechanism": hf.ProjectedGaussian(rho=4000), "step": 1, "sensitivity": 8}),
            (["1/3", "1/3", "1/5"], {"mechanism": hf.ProjectedLaplace(epsilon=30), "step": "1/8", "round_totals": True}),
        ],
        ids=["coarse", "moved"],
    )
    def test_answers_that_were_rounded_lie_in_their_intervals(self, values: list[str], others: dict[str, Any]) -> None:
        """Noise smaller than a step: what is left of the error is the rounding, the same in every release."""
        release = answered(rows=[[1, 1, 1]], values=values, **{"on_grid": False, **others})
        true = [Fraction(value) for value in values]
        for query in ([1, 0, 0], [0, 1, 0], [1, 1, 1]):
            found = release.interval(query, 0.95)
            assert found.low <= sum(w * value for w, value in zip(query, true, strict=True)) <= found.high
        assert (found.low == found.high) == (not release.table.measure.round_totals)  # of the invariant

    def test_half_of_all_releases_cover_an_answer_that_was_rounded(self) -> None:
        """By the noise alone none of them did. Of 40 fewer than 3 would cover it with a probability of 821 / 2^40."""
        covered = 0
        for number in range(40):
            release = answered(
                hf.ProjectedLaplace(epsilon=30),
                ["0.55", "0.47", "-0.02"],
                [[1, 1, 1]],
                step="1/8",
                on_grid=False,
                key=hf.NoiseKey.for_tests(number),
            )
            found = release.interval(0, 0.5)
            covered += found.low <= Fraction("0.55") <= found.high
        assert covered >= 3

    def test_ends_as_doubles_lie_outwards(self) -> None:
        third = Fraction(1, 3)  # its double is below it, that of its negative above
        found = Interval(-third, third, 0.9, third, "simulated")
        fields = found.to_fields()
        frame = Intervals((found,), 0.9, None).frame
        for low, high in ((fields["low"], fields["high"]), (frame["low"][0].as_py(), frame["high"][0].as_py())):
            assert Fraction(low) < -third
            assert third < Fraction(high)
        assert fields["published"] == float(third)

    def test_ranks_against_binomial_sums_in_fractions(self) -> None:
        for level in (Fraction(1, 2), Fraction(3, 4)):
            tails = [sum(math.comb(60, k) * level**k * (1 - level) ** (60 - k) for k in range(r, 61)) for r in range(1, 61)]
            assert module.rank(float(level), 60) == 1 + next(i for i, tail in enumerate(tails) if tail <= Fraction(1, 10**6))

    def test_readers_of_a_folder_get_the_same(self, tmp_path: Path) -> None:
        release = answered(hf.ProjectedGaussian(rho=1), rows=[[1, 1, 1]])
        folder = release.save(tmp_path / "out")
        assert hf.load(folder).interval(0, 0.95) == release.interval(0, 0.95)


def tracts() -> Any:
    """Two regions of two areas, by sex; region totals are kept."""
    universe = hf.Universe.listed(
        {"region": ["1"] * 4 + ["2"] * 4, "area": ["a", "a", "b", "b", "c", "c", "d", "d"], "sex": ["F", "M"] * 4}
    )
    table = hf.Table(universe, np.array([5, 3, 2, 9, 0, 1, 4, 4]))
    return hf.release(table, [hf.margin("region")], hf.GeneralizedGaussian(rho="1/50", per="distance"), key=hf.NoiseKey.for_tests(KEY))


class TestQueries:
    def test_one_sum_in_five_ways(self) -> None:
        release = tracts()
        codes = {"area": "b", "sex": ["F", "M"]}
        found = release.interval(codes, 0.9)
        same: list[Any] = ["area = 'b'", "area = 'b' and sex in ('F', 'M')", [0, 0, 1, 1, 0, 0, 0, 0], {"region": "1", "area": "b"}]
        for query in same:
            assert release.interval(query, 0.9) == found
        assert found.published == int(release.table.counts[2:4].sum())
        assert isinstance(found.low, int)
        assert found.high - found.published == found.published - found.low

    def test_levels_of_hierarchies_by_name(self) -> None:
        tree = hf.Hierarchy.from_prefixes(["11", "12", "21"], [1], levels=["state", "county"])
        universe = hf.Universe.product({"county": ["11", "12", "21"], "sex": ["F", "M"]}, hierarchies={"county": tree})
        release = hf.release(
            hf.Table(universe, np.arange(6)), [], hf.GeneralizedLaplace(epsilon="1/2", per="distance"), key=hf.NoiseKey.for_tests(KEY)
        )
        assert release.interval({"state": "1"}, 0.9) == release.interval({"county": ["11", "12"]}, 0.9)
        with pytest.raises(InvalidParameter, match="'9' is not a code"):
            release.interval({"state": "9"}, 0.9)

    def test_differences(self) -> None:
        """An exact law, by hand: z_1 + z_2 - z_5 - z_6 is twice a sum over two of four cells, when both regions' totals are 0."""
        release = tracts()
        found = release.interval({"area": "a"}, 0.95, minus={"area": "c"})
        weights = np.exp(-(np.arange(-120, 121) ** 2) / (2 * 25.0))  # each area's sum given its region: variance 25 * 2 * 2 / 4
        one = weights / weights.sum()
        law = np.convolve(one, one)
        reach = found.high - found.published
        assert law[240 - reach : 241 + reach].sum() >= 0.95 > law[241 - reach : 240 + reach].sum()
        # Below the truth by what the inequality of [theory T141] gives away: (t + 2 sd)^2 / (24 variance^2) of a tail of 0.04.
        assert 0 <= law[240 - reach : 241 + reach].sum() - found.covered < 0.04 * (14 + 2 * 50**0.5) ** 2 / (24 * 50**2)
        assert release.interval({"region": "1"}, 0.95, minus={"region": "2"}).method == "kept"

    def test_counts_are_not_below_zero(self) -> None:
        release = tracts()
        for cell in range(8):
            plain, cut = release.interval(cell, 0.99), release.interval(cell, 0.99, nonnegative=True)
            assert (cut.low, cut.high) == (max(plain.low, 0), max(plain.high, 0))
            assert cut.covered == plain.covered
        assert any(release.interval(cell, 0.99).low < 0 for cell in range(8))


class TestRefused:
    @pytest.mark.parametrize("level", [0, 1, -0.5, "0.9", float("nan"), True, 1 - 1e-9])
    def test_levels(self, level: Any) -> None:
        with pytest.raises(InvalidParameter, match="level"):
            answered(hf.ProjectedLaplace(epsilon=1)).interval(0, level)

    @pytest.mark.parametrize(
        ("query", "said"),
        [
            ("area = 'z'", r"cannot be used: 'z' is not a code of the column 'area'\. Codes match exactly\.$"),
            ("sex in ('F', 'm')", r"'m' is not a code of the column 'sex'\. Did you mean 'M'\? Codes match exactly\.$"),
            ("sex != 'm'", r"'m' is not a code of the column 'sex'\. Did you mean 'M'\?"),
            ("area = 'a' and area = 'b'", "No cell meets the condition"),
            ({"area": "z"}, "'z' is not a code of the column 'area'"),
            ({"area": "a", "region": "2"}, "No cell has these codes"),
            ({"county": "z"}, "The table has the columns region, area, sex"),
            ('region = "1"', r"put a code in single quotes: write = '1'\.$"),
            ("region in (one, 2)", r"put a code in single quotes: write = 'one'\.$"),
            ('region < "1"', r"holds integers: write < 1\.$"),
            ({"aera": "a"}, r"There is no column 'aera'\. Did you mean 'area'\? The table has"),
            ({"sex": "f"}, r"'f' is not a code of the column 'sex'\. Did you mean 'F'\? Codes match exactly\.$"),
            ("Sex = 'F'", r"there is no column 'Sex'; there are region, area, sex\. Did you mean 'sex'\? Names match exactly\.$"),
            ([0] * 8, "no cell"),
            ([1] * 7, "8 whole numbers"),
            ([0.5] * 8, "8 whole numbers"),
            ([[1], [2, 3]], "8 whole numbers"),
            (None, "A query is"),
            (8, "cells 0 to 7"),
            (True, "A query is"),
            ({"area": 3}, "Codes of 'area' are texts, in quotes, such as 'a'. Got 3"),
            ({"region": [2, "1"]}, "Codes of 'region' are texts, in quotes, such as '1'. Got 2"),
            ({"area": None}, "Codes of 'area' are texts"),
            (np.array([2**64 - 1] + [0] * 7, dtype=np.uint64), "Coefficients"),
            (np.array([-(2**63)] + [0] * 7), "Coefficients"),
        ],
        ids=str,
    )
    def test_queries_on_no_cell(self, query: Any, said: str) -> None:
        with pytest.raises(HoldfastError, match=said):
            tracts().interval(query, 0.9)

    def test_questions_that_do_not_fit(self) -> None:
        release = tracts()
        with pytest.raises(InvalidParameter, match="one thing"):
            release.interval(0, 0.9, minus=1, over=2)
        with pytest.raises(InvalidParameter, match="differences and answers may be below 0"):
            release.interval(0, 0.9, minus=1, nonnegative=True)
        with pytest.raises(InvalidParameter, match="differences and answers may be below 0"):
            answered(hf.ProjectedLaplace(epsilon=1)).interval(0, 0.9, nonnegative=True)
        with pytest.raises(InvalidParameter, match="method is"):
            release.interval(0, 0.9, method="guess")
        with pytest.raises(RequestTooLarge, match="Coefficients"):
            release.interval([2**40] + [0] * 7, 0.9)
        with pytest.raises(RequestTooLarge, match="Coefficients"):  # the difference would wrap
            release.interval([2**62] + [0] * 7, 0.9, minus=[-(2**62)] + [0] * 7)

    def test_noise_that_depends_on_the_counts(self) -> None:
        release = hf.release(TABLE, [hf.total()], hf.Conditional(epsilon=1, per="distance"), ledger=None)
        with pytest.raises(InvalidParameter, match=r"holdfast\.research\.posterior"):
            release.interval(0, 0.9)

    def test_too_many_cells(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(module, "MOST_CELLS", 1000)
        with pytest.raises(RequestTooLarge):
            answered(hf.ProjectedLaplace(epsilon=1), rows=[[1, 1, 1]]).interval([1, 2, 0], 0.9)

    def test_costly_draws_are_fewer_and_too_costly_ones_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        release = hf.release(
            TABLE, [hf.total()], hf.GeneralizedLaplace(epsilon="1/4", norm="l2", per="distance"), key=hf.NoiseKey.for_tests(KEY)
        )
        usual = release.interval(0, 0.9)
        laws = module.ErrorLaws(release.plan.drawing)
        parts = laws.parts(np.array([0]), np.ones((1, 1), dtype=np.int64))
        cost = cell_draws(laws.drawing.choice(parts[0][0]).noise)
        assert laws.draw_count(parts) == 20_000
        monkeypatch.setattr(module, "USUAL_CELLS", int(1500 * cost) + 1)
        assert laws.draw_count(parts) == laws.draws(parts).shape[1] == 1500
        fewer = release.interval(0, 0.9)
        assert (fewer.method, fewer.doubt) == ("simulated", 1e-6)
        assert fewer.high > usual.high  # fewer draws, more room
        with pytest.raises(InvalidParameter, match=r"too near 1 for 1,500 draws of the law\. Ask for 0\.99 or less"):
            release.interval(0, 0.995)
        monkeypatch.setattr(module, "MOST_CELLS", int(1000 * cost))
        with pytest.raises(RequestTooLarge, match=r"An interval from 1,500 draws of this noise would take about"):
            release.interval(0, 0.9)


class TestSimulated:
    def test_errors_of_answers_are_in_values_and_keep_the_invariants(self) -> None:
        release = answered(hf.ProjectedLaplace(epsilon=1), rows=[[1, 1, 1]])
        made = release.simulate(50, key=hf.NoiseKey.for_tests("simulated"))
        assert made.kind == "errors"
        assert made.values.shape == (50, 3)
        assert not made.values.sum(axis=1).any()
        assert np.array_equal(made.values * 16, made.tables)

    def test_errors_of_counts_are_whole(self) -> None:
        made = hf.release(TABLE, [], hf.GeneralizedLaplace(epsilon=1, per="distance"), ledger=None).simulate(2)
        assert np.array_equal(made.values, made.tables)
