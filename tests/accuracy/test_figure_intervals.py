"""Bars of figures and the worked example end where `interval` does, for every kind of release; and none is told where there is none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import holdfast as hf
from holdfast.accuracy import error_laws
from holdfast.errors import InvalidParameter
from holdfast.exact.formatting import format_published
from holdfast.publication import sums as sums_module
from holdfast.publication.publication import Publication
from holdfast.publication.report_facts import CONFIDENCE, NORMAL, computed_intervals, rank_sums, report_facts
from holdfast.publication.sums import Level, LevelUnits
from holdfast.wording.catalogue import Sentences
from holdfast.wording.figures import interval_text

COUNTIES = {"state": list("11112222"), "county": ["1a", "1a", "1b", "1b", "2a", "2a", "2a", "2a"], "tract": list("abcdefgh")}
FOUR = hf.Universe.product({"county": list("ABCD"), "education": ["low", "medium", "high", "very high"]})
BOTH = [hf.margin("county"), hf.margin("education")]
AIRPORTS = hf.Universe.product({"dest": ["ACK", "BOS", "SFO"], "hour": list("567"), "carrier": ["AA", "UA", "WN"]})


def release(universe: hf.Universe, keep: list[Any], mechanism: Any) -> Publication:
    counts = np.random.default_rng(3).poisson(40, len(universe))
    return hf.release(hf.Table(universe, counts), keep, mechanism, key=hf.NoiseKey.for_tests("bars"), release_id="bars")


def answers() -> Publication:
    made: Publication = hf.answer(
        [12.5, 7.25, 0.75, 20.5],
        keep=[[1, 1, 1, -1], [0, 0, 0, 1]],
        sensitivity="1/2",
        mechanism=hf.ProjectedLaplace(epsilon="1"),
        key=hf.NoiseKey.for_tests("a"),
        release_id="a",
        allow_exposed=1,
    )
    return made


COMPUTED: dict[str, Callable[[], Publication]] = {
    "tracts": lambda: release(hf.Universe.listed(COUNTIES), [hf.margin("state")], hf.GeneralizedGaussian(rho="1/10", per="person")),
    "tracts, laplace": lambda: release(
        hf.Universe.listed(COUNTIES), [hf.margin("state")], hf.GeneralizedLaplace(epsilon="1/4", per="distance")
    ),
    "shares of levels": lambda: release(
        hf.Universe.listed(COUNTIES),
        [hf.total()],
        hf.GeneralizedGaussian(rho="1/10", levels={"state": "1/4", "county": "1/4", "tract": "1/2"}, per="distance"),
    ),
    "4 x 4, gaussian": lambda: release(FOUR, BOTH, hf.GeneralizedGaussian(sigma_squared=3)),
    "flights": lambda: release(
        AIRPORTS, [hf.margin("dest", "hour"), hf.margin("dest", "carrier")], hf.GeneralizedGaussian(rho="1/50", per="distance")
    ),
    "three margins": lambda: release(
        AIRPORTS, [hf.margin(c) for c in AIRPORTS.columns], hf.GeneralizedGaussian(rho="1/10", per="distance")
    ),
    "no kept total": lambda: release(FOUR, [], hf.GeneralizedLaplace(epsilon="1/3", per="distance")),
    "rounded": lambda: release(hf.Universe.product({"a": list("123")}), [hf.total()], hf.RoundedProjection(epsilon="1/4", per="distance")),
    "real-valued": answers,
}
SIMULATED: dict[str, Callable[[], Publication]] = {
    "4 x 4": lambda: release(FOUR, BOTH, hf.GeneralizedLaplace(epsilon="1/4", per="distance")),
    "chains": lambda: release(
        hf.Universe.product({"a": list("12")}),
        [hf.total()],
        hf.GeneralizedLaplace(epsilon="1/4", sampler="line_gibbs", eta="3/100", per="distance"),
    ),
}


def _inside(cells: int, chosen: NDArray[np.int64]) -> NDArray[np.int64]:
    query = np.zeros(cells, dtype=np.int64)
    query[chosen] = 1
    return query


@pytest.mark.parametrize("kind", COMPUTED)
def test_bars_and_the_example_are_the_intervals_of_the_folder(kind: str, tmp_path: Path) -> None:
    """Every bar of every level and margin, and the example; those of the report stand on its page."""
    loaded, noisy = hf.load(COMPUTED[kind]().save(tmp_path / "out")), 0
    units = LevelUnits(loaded.plan, loaded.table)
    for level in dict.fromkeys((*units.levels, *units.margins)):
        sums = units.sums(level)
        found = rank_sums(loaded.plan, loaded.table, sums, 100)
        order = np.argsort(-sums.values, kind="stable")
        wanted = [loaded.interval(_inside(len(loaded.table), sums.cells_of(unit)), CONFIDENCE) for unit in order]
        assert [(bar.low, bar.high) for bar in found.bars] == [(one.doubles["low"], one.doubles["high"]) for one in wanted]
        assert found.intervals == ("exact" if {one.method for one in wanted} == {"kept"} else "law")
        noisy += found.intervals == "law"
    assert noisy
    facts, page = report_facts(loaded.plan, loaded.table), (tmp_path / "out" / "report.html").read_text()
    assert facts.ranked is not None
    assert facts.ranked.bars
    for bar in facts.ranked.bars:
        assert bar.low is not None
        assert bar.high is not None
        assert (interval_text(Sentences(), bar) or "none") in page
    example = facts.example
    assert example is not None
    (cell,) = (cell for cell in range(len(loaded.table)) if loaded.plan.facts.universe.cell_name(cell) == example.name)
    assert loaded.plan.deviations is not None
    uncertain = np.flatnonzero((loaded.plan.deviations > 0) & (loaded.table.values > 0) & ~loaded.table.exposed)
    assert cell == uncertain[np.argsort(loaded.table.values[uncertain], kind="stable")[len(uncertain) // 2]]
    names = map(loaded.plan.facts.universe.cell_name, (*uncertain[uncertain > cell].tolist(), *uncertain[uncertain < cell].tolist()[::-1]))
    assert example.other == next(names)
    ends = loaded.interval(cell, CONFIDENCE).doubles
    assert (example.low, example.high, example.by_law) == (ends["low"], ends["high"], True)
    assert {row[2] for row in loaded.plot.ranked("cells").rows} >= {f"{format_published(example.low)} to {format_published(example.high)}"}


@pytest.mark.parametrize(("counts", "shown"), [([1, 1, 0, 0], None), ([1, 1, 0, 0, 50, 60], {"x=5", "x=6"})])
def test_the_example_is_no_cell_that_anyone_can_compute(counts: list[int], shown: set[str] | None) -> None:
    """The total, that of 1 and 2 and that of 2 and 3 expose the first four cells together: nothing is said of their noise."""
    universe = hf.Universe.product({"x": list("123456"[: len(counts)])})
    keep = [hf.subset("x", codes) for codes in (["1", "2", "3", "4"], ["1", "2"], ["2", "3"])]
    made = hf.release(
        hf.Table(universe, np.array(counts)),
        keep,
        hf.GeneralizedLaplace(epsilon="1/4", per="distance"),
        key=hf.NoiseKey.for_tests("exposed"),
        release_id="exposed",
    )
    assert made.table.exposed[:4].all()
    example = report_facts(made.plan, made.table).example
    assert (None if example is None else {example.name, example.other}) == shown


@pytest.mark.parametrize("kind", SIMULATED)
def test_where_only_draws_tell_bars_say_that_they_are_normal(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made = SIMULATED[kind]()
    monkeypatch.setattr(error_laws, "draw_errors", None)  # no draw is made for a page
    plan, table = made.plan, made.table
    found = rank_sums(plan, table, (units := LevelUnits(plan, table)).sums(units.levels[-1]), 3)
    assert found.intervals == "normal"
    assert plan.deviations is not None
    order = np.argsort(-table.values, kind="stable")
    reaches = np.ceil(NORMAL * plan.deviations[order[:3]])
    assert [(bar.low, bar.high) for bar in found.bars] == [(v - r, v + r) for v, r in zip(table.values[order[:3]], reaches, strict=True)]
    assert "1.96 standard deviations" in made.plot.ranked("cells").caption
    example = report_facts(plan, table).example
    assert example is not None
    assert not example.by_law


def test_what_would_take_too_long_for_a_page_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same sums, with less work allowed: then bars are normal, and `interval` still goes by the law."""
    made = COMPUTED["tracts, laplace"]()
    sums = LevelUnits(made.plan, made.table).sums(Level("county", ("state", "county")))
    assert rank_sums(made.plan, made.table, sums, 3).intervals == "law"
    monkeypatch.setattr(error_laws, "QUICK_WORK", error_laws.BLOCK_WORK + 4 + 100)  # one block of four cells, and no transform
    assert rank_sums(made.plan, made.table, sums, 3).intervals == "normal"
    assert made.interval({"county": "1a"}, CONFIDENCE).method == "convolution"
    monkeypatch.setattr(error_laws, "QUICK_WORK", error_laws.BLOCK_WORK)
    assert computed_intervals(made.plan, made.table, [np.array([0])]) is None


def test_what_was_not_estimated_has_no_intervals_and_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    """Laplace noise of one block in three columns: no law of its sums, and here no time for their standard deviations."""
    made = release(AIRPORTS, [hf.margin("dest"), hf.margin("hour", "carrier")], hf.GeneralizedLaplace(epsilon="1/2", per="distance"))
    assert "1.96 standard deviations" in made.plot.ranked(["dest", "hour"]).caption.replace("\u00a0", " ")
    monkeypatch.setattr(sums_module, "MOST_WORK", 0)
    sums = LevelUnits(made.plan, made.table).sums(Level("dest x hour", ("dest", "hour")))
    found = rank_sums(made.plan, made.table, sums, 3)
    assert found.intervals == "unknown"
    assert {(bar.low, bar.high) for bar in found.bars} == {(None, None)}
    figure = made.plot.ranked(["dest", "hour"])
    assert "was not estimated" in figure.caption
    assert "intervals" not in figure.title


class TestWithoutKnownErrors:
    """Where the noise depends on the counts, or counts are left out, nothing is said of errors."""

    def test_conditional_noise_has_bars_and_a_heat_map_without_them(self, tmp_path: Path) -> None:
        cells = hf.Universe.product({"town": ["Aldham", "Brookfield", "Carrow", "Deal"], "sex": ["F", "M"]})
        made = release(cells, [hf.margin("sex")], hf.Conditional(epsilon="1/2", per="distance"))
        loaded = hf.load(made.save(tmp_path / "out"))
        facts = report_facts(loaded.plan, loaded.table)
        assert facts.ranked is not None
        assert facts.heat is not None
        assert sorted(bar.value for bar in facts.ranked.bars) == sorted(loaded.table.counts.tolist())[-len(facts.ranked.bars) :]
        assert {(bar.low, bar.high) for bar in facts.ranked.bars} == {(None, None)}
        assert facts.ranked.intervals == "none"
        assert facts.heat.values == loaded.table.counts.reshape(4, 2).tolist()
        assert facts.heat.deviations == [[None, None]] * 4
        assert (facts.example, facts.sizes, facts.relative, facts.levels) == (None, None, (), ())
        bars, heat = loaded.plot.ranked("cells"), loaded.plot.heat_map()
        assert "intervals" not in bars.title
        assert {row[2] for row in bars.rows} == {row[2] for row in heat.rows} == {"not known"}
        assert 'stroke-width="1.3"' not in bars.svg
        assert "Standard deviations are not known." in heat.text
        assert "corner" not in heat.caption + heat.svg
        with pytest.raises(InvalidParameter, match="depends on the true counts"):
            loaded.interval(0, CONFIDENCE)
        kept = loaded.plot.ranked("sex")
        assert "carry no noise" in kept.caption
        assert sorted(row[2] for row in kept.rows) == sorted(f"{loaded.interval({'sex': sex}, CONFIDENCE).low:,}" for sex in "FM")

    def test_suppression_has_neither(self, tmp_path: Path) -> None:
        loaded = hf.load(release(FOUR, BOTH, hf.Suppression()).save(tmp_path / "out"))
        facts = report_facts(loaded.plan, loaded.table)
        assert (facts.ranked, facts.heat, facts.example, facts.sizes, facts.relative, facts.noise) == (None, None, None, None, (), ())
        for figure in (loaded.plot.ranked, loaded.plot.heat_map):
            with pytest.raises(InvalidParameter, match="leaves counts out"):
                figure()
        assert "standard deviation" not in (tmp_path / "out" / "report.html").read_text().lower()
