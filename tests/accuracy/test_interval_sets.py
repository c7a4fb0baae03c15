"""Intervals for many sums ([theory T144])."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import holdfast as hf
from holdfast.accuracy import interval_sets as module
from holdfast.accuracy.error_laws import ConvolvedSum, ErrorLaws, SimulatedSum
from holdfast.errors import InvalidParameter, RequestTooLarge

UNIVERSE = hf.Universe.listed({"region": ["1"] * 4 + ["2"] * 4, "area": list("aabbccdd"), "sex": ["F", "M"] * 4})
TABLE = hf.Table(UNIVERSE, np.array([5, 3, 2, 9, 0, 1, 4, 4]))
GAUSS = hf.GeneralizedGaussian(rho="1/50", per="distance")
SHARES = hf.GeneralizedGaussian(rho="1/50", levels={"region": "1/2", "area": {"total": "1/4", "sex": "1/4"}}, per="distance")


def released(mechanism: Any = GAUSS, keep: Any = (), table: Any = TABLE) -> Any:
    return hf.release(table, list(keep), mechanism, key=hf.NoiseKey.for_tests("sets"))


class TestMargins:
    @pytest.mark.parametrize(
        "mechanism", [GAUSS, SHARES, hf.GeneralizedLaplace(epsilon="1/4", per="distance")], ids=["gaussian", "levels", "laplace"]
    )
    @pytest.mark.parametrize("by", ["area", ["region"], ["area", "sex"], ["region", "sex"]], ids=str)
    @pytest.mark.parametrize("keep", [[], [hf.total()]], ids=["free", "total"])
    def test_each_sum_is_as_asked_for_alone(self, mechanism: Any, by: Any, keep: Any) -> None:
        release = released(mechanism, keep)
        found = release.intervals(by=by, level=0.9, simultaneous=False)
        names = [by] if isinstance(by, str) else by
        assert list(found.codes) == names
        assert len(found) == len(set(zip(*(found.codes[name] for name in names), strict=True)))
        assert found.joint is None
        for number, one in enumerate(found):
            alone = release.interval({name: found.codes[name][number] for name in names}, 0.9)
            assert (one.published, one.method) == (alone.published, alone.method)
            # Many sums at once have variances rounded up by 1/512 at most.
            assert alone.high <= one.high <= alone.high + 1 + (alone.high - alone.published) // 1000

    def test_levels_all_at_once_are_found_without_a_loop(self, monkeypatch: pytest.MonkeyPatch) -> None:
        release = released(SHARES)
        monkeypatch.setattr(ErrorLaws, "of", None)
        assert len(release.intervals(by=["area", "sex"], level=0.9)) == 8

    @pytest.mark.parametrize("by", ["county", "area", ["area", "sex"], ["county", "age"]], ids=str)
    @pytest.mark.parametrize("keep", [["county", "sex"], ["county", "age"]], ids=str)
    def test_sums_that_are_alike_have_one_law(self, monkeypatch: pytest.MonkeyPatch, by: Any, keep: list[str]) -> None:
        """3,143 sums took 64 seconds: each had its law computed, though all but the number of areas in a county is the same."""
        areas = [(f"c{number % 7}", f"a{number:02}") for number in range(24)]  # counties of 4 areas, and of 3
        cells = [(*area, sex, age) for area in areas for sex in "FM" for age in "123"]
        universe = hf.Universe.listed(dict(zip(("county", "area", "sex", "age"), map(list, zip(*cells, strict=True)), strict=True)))
        table = hf.Table(universe, np.arange(len(cells)))
        release = released(keep=[hf.margin(name) for name in keep], table=table)
        computed, done = [], []
        compute = ErrorLaws._compute_law

        def counted(*given: Any) -> Any:
            computed.append(given)
            return compute(*given)

        monkeypatch.setattr(ErrorLaws, "_compute_law", counted)
        found = release.intervals(by=by, level=0.9, simultaneous=False, progress=lambda *given: done.append(given))
        assert done == [("Computing intervals", number, len(found)) for number in [*range(len(found) + 1), len(found)]]
        assert len(computed) <= 2  # of counties of 4 areas, and of 3
        for number in range(0, len(found), 5):
            alone = release.interval({name: codes[number] for name, codes in found.codes.items()}, 0.9)
            assert (alone.low, alone.high, alone.method) == (found[number].low, found[number].high, found[number].method)

    def test_frames(self) -> None:
        release = released(keep=[hf.margin("region")])
        frame = release.intervals(by=["region", "sex"], level=0.9, nonnegative=True).frame
        assert frame.column_names == ["region", "sex", "published", "low", "high", "method"]
        assert frame.column("region").to_pylist() == ["1", "1", "2", "2"]
        assert str(frame.schema.field("low").type) == "int64"
        assert repr(release.intervals(by="area")) == "Intervals(4 sums, level 0.95, together, union bound)"
        assert repr(release.intervals([0], 0.9, simultaneous=False)) == "Intervals(1 sums, level 0.9, each for itself)"

    def test_frames_name_the_queries(self) -> None:
        release = released(keep=[hf.margin("region")])
        asked = [0, "area = 'c'", {"region": ["1", "2"], "sex": "F"}, {}, [1, 2, 0, 0, 0, 0, 0, 0]]
        frame = release.intervals(asked).frame
        assert frame.column_names == ["query", "published", "low", "high", "method"]
        named = ["region 1, area a, sex F", "area = 'c'", "region 1 or 2, sex F", "all cells", "query 5"]
        assert frame.column("query").to_pylist() == named
        assert [one["name"] for one in release.intervals(asked).to_fields()["intervals"]] == named

    def test_columns_that_are_called_as_ours(self) -> None:
        universe = hf.Universe.product({"low": ["a", "b"], "method": ["x", "y"]})
        release = released(table=hf.Table(universe, np.array([5, 3, 2, 9])))
        frame = release.intervals(by=["low", "method"]).frame
        assert frame.column_names == ["low", "method", "published", "interval_low", "high", "interval_method"]
        assert frame.column("low").to_pylist() == ["a", "a", "b", "b"]

    def test_folders(self, tmp_path: Path) -> None:
        release = released(SHARES)
        loaded = hf.load(release.save(tmp_path / "out"))
        assert loaded.intervals(by="area", level=0.9).intervals == release.intervals(by="area", level=0.9).intervals


class TestOneQuery:
    @pytest.mark.parametrize("query", [0, np.int64(3), "area = 'a'", {"area": "a"}], ids=str)
    def test_it_is_a_list_of_one(self, query: Any) -> None:
        release = released()
        (found,) = release.intervals(query)
        assert found == release.intervals([query])[0] == release.interval(query)

    def test_levels_that_nobody_names(self) -> None:
        release = released()
        assert release.interval(0) == release.interval(0, 0.95)
        assert release.intervals([0]).level == 0.95


class TestTogether:
    def test_the_union_bound_counts_sums_that_are_not_kept(self) -> None:
        release = released(keep=[hf.margin("region")])
        found = release.intervals([0, 1, "area = 'c'", {"region": "1"}], 0.9)
        assert found.joint == "union bound"
        assert found[3].method == "kept"
        assert found[0].low == release.interval(0, 1 - 0.1 / 3).low
        assert found[2].high == release.interval("area = 'c'", 1 - 0.1 / 3).high

    def test_simulated_together(self) -> None:
        """All at once lie between each for itself and what the union bound gives."""
        release = released(method_laplace(), [hf.margin("area"), hf.margin("region", "sex")])
        queries = [0, 1, 4, {"area": "a"}]
        found = release.intervals(queries, 0.9)
        assert found.joint == "simulated"
        assert [one.method for one in found] == ["simulated"] * 3 + ["kept"]
        assert [one.doubt for one in found] == [1e-6] * 3 + [0.0]
        for query, one in zip(queries[:3], found, strict=False):
            alone, third = release.interval(query, 0.9), release.interval(query, 1 - 0.1 / 3)
            assert alone.high <= one.high <= third.high + 1

    def test_draws_on_request(self) -> None:
        release = released()
        assert release.intervals([0, 1], 0.9, method="simulated").joint == "simulated"
        plain, drawn = release.intervals([0, 1], 0.9), release.intervals([0, 1], 0.9, method="simulated")
        assert abs(plain[0].high - drawn[0].high) <= 1  # two free cells: the union bound loses little


def method_laplace() -> Any:
    return hf.GeneralizedLaplace(epsilon="1/4", per="distance")


class TestLawsThatAreShared:
    @pytest.mark.parametrize(
        ("mechanism", "query", "shared"),
        [
            (hf.GeneralizedLaplace(epsilon="1/4", per="distance"), [1], True),
            (hf.RoundedProjection(epsilon="1/4", per="distance"), [1], True),
            (hf.RoundedProjection(epsilon="1/4", per="distance"), [1, 1], False),
        ],
    )
    def test_cells_of_a_grid(self, mechanism: Any, query: list[int], shared: bool) -> None:
        """The noise is the same in every cell of a two-way table; rounding goes through the cells in an order, so that pairs differ."""
        universe = hf.Universe.product({"a": ["1", "2", "3"], "b": ["1", "2", "3"]})
        plan = hf.plan(universe, [hf.margin("a"), hf.margin("b")], mechanism)
        laws, row = ErrorLaws(plan.drawing), np.array(query)
        cells = np.arange(len(query))
        assert (laws.of(cells, row) is laws.of(cells + 3, row)) == shared

    def test_rounding_a_cell_has_a_law_that_its_draws_follow(self) -> None:
        """A corner and the middle of a two-way table, and a cell under one total: the same shares of draws as the law says."""
        universe = hf.Universe.product({"a": ["1", "2", "3"], "b": ["1", "2", "3"]})
        for keep, cells in (([hf.margin("a"), hf.margin("b")], (0, 4)), ([hf.margin("a")], (1,))):
            drawing = hf.plan(universe, keep, hf.RoundedProjection(epsilon="1/2", per="distance")).drawing
            for cell in cells:
                ones = np.ones(1, dtype=np.int64)
                computed = ErrorLaws(drawing).of(np.array([cell]), ones)
                drawn = ErrorLaws(drawing, "simulated").of(np.array([cell]), ones)
                assert isinstance(computed, ConvolvedSum)
                assert isinstance(drawn, SimulatedSum)
                for t in range(6):
                    share = float((drawn.errors <= t).mean())
                    inside = float(computed.law.within[t])
                    assert abs(share - inside) < 6 * math.sqrt(inside * (1 - inside) / len(drawn.errors))  # never by chance: 2e-9 each

    def test_cells_under_one_total(self) -> None:
        """Rounding takes a uniform set of them, so that they are alike, and so are blocks of one size."""
        plan = hf.plan(UNIVERSE, [hf.margin("region")], hf.RoundedProjection(epsilon="1/4", per="distance"))
        laws, one = ErrorLaws(plan.drawing), np.ones(1, dtype=np.int64)
        assert laws.of(np.array([0]), one) is laws.of(np.array([1]), one)
        assert laws.of(np.array([0, 1]), np.array([1, -1])) is laws.of(np.array([1, 2]), np.array([-1, 1]))


class TestRefused:
    def test_a_level_that_is_too_high_for_so_many_sums(self) -> None:
        universe = hf.Universe.product({"a": [str(k) for k in range(2000)]})
        release = hf.release(hf.Table(universe, np.zeros(2000, dtype=np.int64)), [], method_laplace(), key=hf.NoiseKey.for_tests("many"))
        with pytest.raises(InvalidParameter, match=r"For 2,000 sums together .* each needs one of 0\.9999999995.* fewer sums"):
            release.intervals(by="a", level=0.999999)
        assert len(release.intervals(by="a", level=0.999999, simultaneous=False)) == 2000

    def test_too_many_to_simulate_together_is_said_at_the_first(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(module, "MOST_JOINT", 20_000)
        release, of, asked = released(keep=[hf.margin("region")]), ErrorLaws.of, list[Any]()

        def noted(laws: ErrorLaws, cells: Any, row: Any) -> Any:
            asked.append(cells)
            return of(laws, cells, row)

        monkeypatch.setattr(ErrorLaws, "of", noted)
        with pytest.raises(RequestTooLarge, match="simultaneous=False"):
            release.intervals(list(range(8)), method="simulated")
        assert len(asked) == 1

    def test_what_is_no_list(self) -> None:
        release = released()
        asked: dict[str, Any]
        for asked in ({}, {"queries": [0], "by": "area"}, {"queries": []}, {"queries": 1.5}, {"by": []}, {"by": 3}, {"by": [3]}):
            with pytest.raises(InvalidParameter):
                release.intervals(**asked)
        with pytest.raises(InvalidParameter, match="The table has the columns"):
            release.intervals(by="county")
        with pytest.raises(InvalidParameter, match="between 0 and 1"):
            release.intervals([0], 1.0)

    def test_too_many_to_simulate_together(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(module, "MOST_JOINT", 20_000)
        with pytest.raises(RequestTooLarge, match="simultaneous=False"):
            released(keep=[hf.margin("area"), hf.margin("region", "sex")]).intervals([0, 1], method="simulated")
