"""The report: for readers, self-contained, the same bytes for all tables with the same kept totals."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

import pytest

from holdfast.card.figure_facts import Bar, NoiseLawFacts, Ranked, ReportFacts
from holdfast.report.figures.noise import MAX_BARS
from holdfast.report.figures.ranked import ranked_figure
from holdfast.report.report import report_html
from holdfast.wording.catalogue import Sentences
from tests.snapshot_files import Snapshot

from .cards import HOSTILE, INCOMPLETE, LEVELS, Page, a_card, with_every_text

NOT_PRIVATE = Sentences()("page.not_private")

KEPT = [("margin(state)", f"state={i:02d}", 1_000_003 * i) for i in range(1, 52)]


def laplace(epsilon: float, reach: int) -> list[tuple[int, float]]:
    a = math.exp(-epsilon)
    return [(k, (1 - a) / (1 + a) * a ** abs(k)) for k in range(-reach, reach + 1)]


NOISE: list[NoiseLawFacts] = [NoiseLawFacts("Cells of a state with many counties", laplace(0.192, 40))]

FACTS = ReportFacts(noise=tuple(NOISE))


def read(noise: list[NoiseLawFacts] = NOISE, **changes: Any) -> Page:
    return Page(report_html(a_card(**changes), KEPT, ReportFacts(noise=tuple(noise))))


class TestWords:
    def test_suppression_adds_no_noise(self, snapshot: Snapshot) -> None:
        page = read([], mechanism__name="suppression", mechanism__parameters={}, sampler__groups=[])
        text = page.text
        snapshot(page.lines)
        for words in ("Random noise", "Negative counts", "standard deviation", "drawn block by block", "may be noise"):
            assert words not in text

    def test_a_revision_is_named(self, snapshot: Snapshot) -> None:
        revision = {"of": "counties-2030-v0", "changed": 2, "totals": ["state=01: 5 before, 6 now", "state=02: 7 before, 6 now"]}
        snapshot(read(kept__revision=revision).lines_beyond(read()))

    def test_it_says_what_a_reader_needs(self, snapshot: Snapshot) -> None:
        page = read()
        snapshot(page.lines)
        card = a_card()
        for said in (*card.guarantee.sentences, card.expected_error.text, card.exposed.text):
            assert said in page.text

    def test_how_far_off(self) -> None:
        """Median 7.2: the normal quantile of 2/3 is 0.9674, the Laplace quantile of 95 % ln(20) / sqrt(2) = 2.118, Chebyshev's factor is
        sqrt(20). All rounded up to whole counts.
        """
        text = read().text
        assert 0.9674215661017010 <= 0.9675
        assert math.sqrt(20) <= 4.4722
        assert "typical cell 7.2 7 16 33" in text
        assert "cell with the least noise 0 (exact) 0 0 0" in text
        assert "normal approximation" in text
        assert "Chebyshev" in text
        assert "typical cell not known - - -" in read(expected_error__cell_standard_deviation__median=None).text

    def test_levels_are_shown_and_the_advice_goes_by_them(self, snapshot: Snapshot) -> None:
        page = read(**LEVELS)
        snapshot(page.lines_beyond(read()))
        assert "errors add up" not in page.text
        assert "errors add up" in read().text
        broken = {**LEVELS, "mechanism__parameters": {"levels": "[" * 100_000}}
        assert "levels [[[" in read(**broken).text

    def test_of_many_levels_those_with_noise_are_shown(self) -> None:
        """The first twelve rows were those of kept totals, all 0, and the municipalities were hidden."""
        exact = [{"level": "county", "margin": f"m{i}", "units": 6, "smallest": 0.0, "median": 0.0, "largest": 0.0} for i in range(20)]
        noisy = [
            {"level": level, "margin": f"m{i}", "units": units, "smallest": 2.5, "median": 2.5 + i, "largest": 20.5}
            for level, units in (("municipality", 150), ("tract", 900))
            for i in range(20)
        ]
        page = read(**{**LEVELS, "expected_error__levels": [*exact, *noisy]})
        for level in ("municipality", "tract"):
            shown = [f"{level} m{i}" in page.text for i in range(20)]
            assert shown == [True] * 5 + [False] * 14 + [True]
        assert "county m" not in page.text
        assert "48 more rows are in card.json. Shown are, of each level, the first margins that have noise and the finest." in page.text

    def test_only_the_first_kept_totals_are_shown(self) -> None:
        rows = [("margin(county)", f"county={i}", i) for i in range(1, 3144)]
        page = Page(report_html(a_card(), rows, ReportFacts()))
        assert "county 3 margin(county) 3" in page.text
        assert "county 4" not in page.text
        assert "3,140 more kept totals are in kept.csv." in page.text

    def test_nothing_kept(self, snapshot: Snapshot) -> None:
        page = Page(report_html(a_card(kept__totals=0, kept__constraints=[], kept__definitions=[]), [], ReportFacts()))
        snapshot(page.lines_beyond(read([])))
        assert "kept totals would no longer hold" not in page.text

    def test_an_unknown_mechanism_claims_no_absence_of_bias(self) -> None:
        text = read(mechanism__name="other").text
        assert "The noise is zero on average" not in text
        assert "a bias that the noise does not have" not in text

    def test_an_observed_universe_and_incomplete_exposure(self, snapshot: Snapshot) -> None:
        snapshot(read(table__universe="observed", **INCOMPLETE).lines_beyond(read()))

    @pytest.mark.parametrize("cells", [0, 2])
    def test_a_number_of_exposed_cells_that_may_be_too_small_says_so(self, cells: int) -> None:
        assert "not decided for 3 cells" in read(**INCOMPLETE | {"exposed__cells": cells}).text
        assert "not decided" not in read(exposed__cells=cells).text


FREE: dict[str, Any] = {
    "kept__totals": 0,
    "kept__constraints": [],
    "kept__definitions": [],
    "exposed__cells": 0,
    "exposed__names": [],
    "exposed__text": "No cell is exposed.",
    "guarantee__sentences": ["Said by others."],
}


class TestWhatFitsTheRelease:
    def test_without_kept_totals_nothing_is_said_about_them(self) -> None:
        said = Page(report_html(a_card(**FREE), [], FACTS)).text
        for words in (
            "A sum of counts that is a kept total",
            "Counts under one kept total",
            "does not cover the kept totals",
            "In any other sum",
        ):
            assert words in read().text
            assert words not in said
        assert "In a sum, errors add up" in said
        assert "Cells published exactly 0 no total is kept" in said

    @pytest.mark.parametrize(("cells", "told"), [(1, "the kept totals fix it"), (2, "the kept totals fix them")])
    def test_one_cell_is_one_cell(self, cells: int, told: str) -> None:
        assert f"Cells published exactly {cells} {told}" in read(exposed__cells=cells).text

    def test_one_dimension_is_one_dimension(self) -> None:
        assert "leave 1 free dimension " in read(kept__free_dimensions=1).text
        assert "leave 3,092 free dimensions " in read().text

    def test_a_proved_bound_is_at_most(self) -> None:
        assert "Typical standard deviation, at most 7.2" in read(expected_error__found="upper bound").text
        assert "Typical standard deviation 7.2" in read().text

    @pytest.mark.parametrize(("totals", "shown"), [(9, 9), (10, 10), (11, 3)])
    def test_a_short_list_of_kept_totals_is_whole(self, totals: int, shown: int) -> None:
        said = Page(report_html(a_card(), KEPT[:totals], FACTS)).text
        assert len(re.findall(r"\bstate \d\d by state\b", said)) == shown
        assert ("more kept totals are in kept.csv" in said) == (shown < totals)

    def test_software_is_in_one_order(self) -> None:
        software = a_card().software
        assert read(software=dict(sorted(software.items()))).text == read().text


class TestRanked:
    WHERE = "Administrative region of the northern provinces and their islands"

    def bars(self, names: Sequence[tuple[str, ...]], level: str = "cells") -> Ranked:
        return Ranked(level, tuple(Bar(", ".join(parts), 9.0, 8.0, 10.0, parts) for parts in names), 12, "law", 0.95)

    def printed(self, ranked: Ranked) -> list[str]:
        return re.findall("<text[^>]*>([^<]*)</text>", ranked_figure(Sentences(), ranked).svg)

    def test_what_all_bars_share_is_in_the_caption(self) -> None:
        ranked = self.bars([(self.WHERE, branch, sex) for branch in ("Farming", "Trade") for sex in ("women", "men")])
        assert {"Farming, women", "Farming, men", "Trade, women", "Trade, men"} <= set(self.printed(ranked))
        figure = ranked_figure(Sentences(), ranked)
        assert figure.caption.startswith(f"All bars: {self.WHERE}. ")
        assert figure.rows[0][0] == f"{self.WHERE}, Farming, women", "the numbers of the figure have whole names"

    def test_long_names_differ(self) -> None:
        names = [
            (f"{self.WHERE} {n}", "Manufacture of basic metals, and of all that is made of them", sex)
            for n in "12"
            for sex in ("women", "men")
        ]
        shown = [text for text in self.printed(self.bars(names)) if text.endswith("men")]
        assert len(set(shown)) == 4

    def test_names_that_share_nothing_stay(self) -> None:
        assert "All bars" not in ranked_figure(Sentences(), self.bars([("a", "x"), ("b", "y")])).caption
        assert "a, x" in self.printed(self.bars([("a", "x")])), "one bar has its whole name"

    def test_the_file_that_has_all_is_named(self) -> None:
        cells, level = (ranked_figure(Sentences(), self.bars([("a",), ("b",)], level)).caption for level in ("cells", "county"))
        assert "2 of 12 are shown; table.csv or table.parquet has all." in cells
        assert "2 of 12 are shown; all can be added up from table.csv or table.parquet." in level


class TestCharts:
    @staticmethod
    def bars(page: Page) -> list[tuple[float, float, float, float]]:
        return [tuple(float(bar[key] or "") for key in ("x", "y", "width", "height")) for bar in page.all("rect")]  # type: ignore[misc]

    def test_one_bar_per_value_as_high_as_its_probability(self) -> None:
        law = [(-1, 0.25), (0, 0.5), (1, 0.25)]
        page = read(noise=[NoiseLawFacts("three", law)])
        bars = self.bars(page)
        assert [round(height / bars[1][3], 3) for _, _, _, height in bars] == [0.5, 1.0, 0.5]
        assert len({round(y + height, 2) for _, y, _, height in bars}) == 1
        assert bars[0][0] < bars[1][0] < bars[2][0]
        assert "Probability of each value of the noise: three" in page.text
        assert "Computed from the law. The noise is 0 with a probability of 50 %. At least 95 of 100 values lie from -1 to 1." in page.text
        labels = {text["x"]: text for text in page.all("text")}
        assert {f"{x + width / 2:g}" for x, _, width, _ in bars} <= labels.keys(), "each value stands in the middle under its bar"

    def test_the_figure_in_words_is_that_of_the_law(self) -> None:
        law = laplace(0.192, 60)
        reach = next(r for r in range(60) if math.fsum(p for k, p in law if abs(k) <= r) >= 0.95)
        assert f"from -{reach} to {reach}." in read(noise=[NoiseLawFacts("x", law)]).text

    def test_no_figure_is_claimed_for_a_law_that_is_cut_short(self) -> None:
        assert "At least 95" not in read(noise=[NoiseLawFacts("x", laplace(0.01, 20))]).text

    def test_many_values_share_bars(self) -> None:
        law = laplace(0.005, 1500)
        page = read(noise=[NoiseLawFacts("wide", law)])
        bars = self.bars(page)
        assert len(bars) <= MAX_BARS + 1
        assert "Each bar covers 39 neighbouring values." in page.text
        middle = max(range(len(bars)), key=lambda i: bars[i][3])
        assert middle == len(bars) // 2
        total = math.fsum(p for _, p in law)
        share = math.fsum(p for k, p in law if abs(k) <= 19) / total
        assert bars[middle][3] / math.fsum(height for *_, height in bars) == pytest.approx(share, abs=1e-3)

    @pytest.mark.parametrize("law", [[], [(0, 1.0)], [(5, 0.0)], [(10**12, 0.5), (-(10**12), 0.5)], [(1, 0.5), (0, 0.5)]], ids=str)
    def test_odd_laws_are_drawn_inside_the_picture(self, law: list[tuple[int, float]]) -> None:
        for x, y, width, height in self.bars(read(noise=[NoiseLawFacts("odd", law)])):
            assert min(x, y, width, height) >= 0
            assert x + width <= 560
            assert y + height <= 150

    def test_charts_have_names_of_their_own(self) -> None:
        page = read(noise=[NoiseLawFacts("a", laplace(1, 3)), NoiseLawFacts("b", laplace(2, 3))])
        identifiers = [title["id"] for title in page.all("title") if "id" in title]
        assert identifiers == ["noise-1-title", "noise-2-title"]
        assert [svg["aria-labelledby"] for svg in page.all("svg")] == identifiers
        assert all(svg["role"] == "img" for svg in page.all("svg"))


class TestForm:
    def test_it_can_be_read_by_everyone(self) -> None:
        page = read()
        assert page.all("html") == [{"lang": "en"}]
        assert len(page.all("main")) == len(page.all("h1")) == 1
        assert len(page.all("caption")) == len(page.all("table")) == 5
        assert all(attributes.get("scope") in ("row", "col") for attributes in page.all("th"))

    def test_it_loads_nothing_and_runs_nothing(self) -> None:
        page = read()
        assert {element for element, _, _ in page.elements}.isdisjoint({"script", "link", "img", "iframe", "object", "a"})
        assert not any(name in ("src", "href") or name.startswith("on") for _, attributes, _ in page.elements for name in attributes)
        assert not re.search(r"url\(|@import|https?:", report_html(a_card(), KEPT, FACTS))

    @pytest.mark.parametrize("hostile", HOSTILE, ids=lambda value: ascii(value)[:30])
    def test_hostile_text_changes_no_element(self, hostile: str) -> None:
        def page(text: str) -> Page:
            html = report_html(with_every_text(text), [(text, text, 5)], ReportFacts(noise=(NoiseLawFacts(text, laplace(1, 3)),)))
            assert html.encode("utf-8")
            return Page(html)

        assert page(hostile).elements == page("harmless").elements
        assert page(hostile).comments == 0

    def test_files_and_signature_are_not_read(self) -> None:
        """Two tables with equal kept totals differ in the checksums of their files; their reports must not."""
        signature = {"algorithm": "Ed25519", "public_key": "ab" * 32, "value": "cd" * 64}
        assert report_html(a_card(files={}), KEPT, FACTS) == report_html(a_card(signature=signature), KEPT, FACTS)

    def test_the_same_arguments_give_the_same_bytes(self) -> None:
        assert report_html(a_card(), KEPT, FACTS) == report_html(a_card(), list(KEPT), FACTS)

    def test_a_test_key_is_said_first_and_last(self) -> None:
        html = report_html(a_card(release__test_key=True), KEPT, FACTS)
        text = Page(html).text
        body = text.split("Report on release")
        assert body[1].strip().startswith("counties-2030-v1 " + NOT_PRIVATE)
        assert text.count(NOT_PRIVATE) == 3
        assert "the promise does not hold" in text
        assert "@top-center" in html
        assert "NOT PRIVATE" not in report_html(a_card(), KEPT, FACTS)
