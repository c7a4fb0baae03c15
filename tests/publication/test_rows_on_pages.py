"""The published table on its report and in notebooks: all of a short one, of a long one the first rows of every group."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import holdfast as hf
from holdfast.card.figure_facts import ReportFacts
from holdfast.publication.publication import Publication
from holdfast.publication.report_facts import MOST_GROUPS, WHOLE, table_rows
from holdfast.publication.rows import FIRST
from holdfast.publication.sums import LevelUnits
from holdfast.report.report import report_html
from holdfast.verification.inert import not_inert
from tests.notebooks import notebook_page
from tests.report.cards import HOSTILE, Page

NOISE = hf.GeneralizedGaussian(rho="1/10", per="person")


def released(universe: hf.Universe, mechanism: Any = NOISE, keep: str | None = None) -> Publication:
    table = hf.Table(universe, np.arange(len(universe)) % 97, name="people")
    key = None if isinstance(mechanism, hf.Suppression) else hf.NoiseKey.for_tests("rows")
    return hf.release(table, [] if keep is None else [hf.margin(keep)], mechanism, key=key, ledger=None)


def report(made: Publication) -> str:
    """The report of a release with nothing on it but the table."""
    return report_html(made.card, [], ReportFacts(table_rows(LevelUnits(made.plan), made.table)))


def letters(size: int, head: str) -> list[str]:
    return [f"{head}{number:05d}" for number in range(size)]


@pytest.mark.parametrize("size", [1, 2 * FIRST, 2 * FIRST + 1, WHOLE])
def test_a_short_table_is_on_the_page_whole(size: int) -> None:
    made = released(hf.Universe.product({"area": letters(size, "a")}))
    facts, page = table_rows(LevelUnits(made.plan), made.table), Page(report(made))
    deviation = made.card.expected_error.cell_standard_deviation.median
    assert [row.value for row in facts.groups[0].rows] == [str(count) for count in made.table.counts.tolist()]
    for code, count in zip(letters(size, "a"), made.table.counts.tolist(), strict=True):
        assert f"{code} {count:,} {deviation:.3g}" in page.text
    assert ("The whole table is on this page." in page.text) == (size > 2 * FIRST)
    assert "table.parquet" not in page.text


def test_a_row_begins_with_the_name_of_its_column_where_rows_are_a_list() -> None:
    """On a narrow page: "area a00001", not a bare code."""
    page = report(released(hf.Universe.product({"area": letters(2, "a"), "sex": ["F", "M"]})))
    assert '<th scope="row" data-label="area" role="rowheader">' in page


def test_a_long_table_has_the_first_rows_of_every_group() -> None:
    regions = letters(7, "region ")
    made = released(hf.Universe.product({"town": letters(61, "t"), "region": regions, "sex": ["F", "M"]}))
    facts = table_rows(LevelUnits(made.plan), made.table)
    assert (facts.level, [group.name for group in facts.groups]) == ("region", regions)
    assert {group.size for group in facts.groups} == {61 * 2}
    assert {len(group.rows) for group in facts.groups} == {WHOLE // 7}
    frame = made.to_pandas()
    for group in facts.groups:
        rows = frame[frame["region"] == group.name].head(len(group.rows))
        assert [(row.codes, row.value) for row in group.rows] == [
            ((town, region, sex), str(count))
            for town, region, sex, count in rows[["town", "region", "sex", "count"]].itertuples(index=False)
        ]
    page = Page(report(made))
    assert "The first 6 of 854 rows" in page.text
    assert "region 00003 (122 rows)" in page.text
    assert "All 854 rows are in table.csv or table.parquet." in page.text


@pytest.mark.parametrize(
    ("cells", "areas", "groups"),
    [
        (60_000, MOST_GROUPS, MOST_GROUPS),
        (61_000, MOST_GROUPS + 1, 1),
        pytest.param(1_000_000, 50, 50, marks=pytest.mark.long),
    ],
)
def test_a_large_table_has_no_longer_page(cells: int, areas: int, groups: int) -> None:
    made = released(hf.Universe.product({"area": letters(areas, "a"), "age": letters(cells // areas, "b")}))
    facts = table_rows(LevelUnits(made.plan), made.table)
    assert len(facts.groups) == groups
    assert sum(len(group.rows) for group in facts.groups) <= WHOLE
    assert len(notebook_page(made)) < 20_000
    assert len(report(made)) < 200_000


def test_a_table_of_many_columns_has_one_for_all_codes() -> None:
    made = released(hf.Universe.product({f"column {number}": ["x", "y"][: 1 + (number < 2)] for number in range(60)}))
    section = report(made).partition('<section id="table"')[2].partition("</section>")[0]
    for page in (section, notebook_page(made)):
        assert len(page) < 20_000
        assert max(head.count("columnheader") for head in re.findall("<thead.*?</thead>", page, re.DOTALL)) == 3


@pytest.mark.parametrize("hostile", [text for text in HOSTILE if "\ud800" not in text], ids=lambda value: ascii(value)[:30])
def test_hostile_codes_change_no_element(hostile: str) -> None:
    def pages(text: str) -> tuple[str, str]:
        made = released(hf.Universe.product({f"{text}column": [f"{text}1", "2"], "other": letters(120, "b")}))
        return report(made), notebook_page(made)

    for one, other in zip(pages(hostile), pages("plain"), strict=True):
        assert [elements(one), Page(one).comments] == [elements(other), 0]
    assert not_inert(pages(hostile)[0].encode()) is None


def elements(page: str) -> list[tuple[str, frozenset[str]]]:
    """The elements of a page with the names of their attributes: one of them holds the name of a column."""
    return [(element, frozenset(attributes)) for element, attributes, _ in Page(page).elements]


def test_what_is_not_published_is_said_and_no_plan_shows_a_count() -> None:
    universe = hf.Universe.product({"area": ["a", "b"], "sex": ["F", "M"]})
    made = released(universe, hf.Suppression(), "area")
    assert "a | F | not published" in Page(report(made)).lines
    shown = notebook_page(made.plan)
    assert "Revealed" not in shown
    assert "Standard deviation" not in shown, "there is no noise"
    noisy = notebook_page(released(universe, keep="area").plan)
    assert "Standard deviation" in noisy
    assert "Published count" not in noisy


def test_a_cell_that_kept_totals_reveal_is_marked() -> None:
    table = hf.Table(hf.Universe.listed({"area": ["a", "b", "b"], "sex": ["F", "F", "M"]}), np.array([3, 4, 5]))
    made = hf.release(table, [hf.margin("area")], NOISE, allow_exposed=1, ledger=None)
    page = Page(report(made))
    assert "area | sex | Published count | Standard deviation | Revealed by kept totals" in page.lines
    assert "a | F | 3 | exact | yes" in page.lines
    assert f"b | F | {made.table.counts[1]} | " in page.lines
