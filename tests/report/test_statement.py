"""The statement: two pages, exact parameters and plain words on them, nothing unescaped, a banner where a test key was used."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.report.page import NOT_PRIVATE
from holdfast.report.statement import statement_html
from tests.snapshot_files import Snapshot

from .cards import HOSTILE, INCOMPLETE, LEVELS, Page, a_card, with_every_text


def read(**changes: Any) -> Page:
    return Page(statement_html(a_card(**changes)))


def sheets(html: str) -> list[str]:
    """The text of each printed page."""
    parts = html.split('<section class="sheet">')
    return [Page('<section class="sheet">' + part.split("</section>")[0] + "</section>").text for part in parts[1:]]


SAID: dict[str, dict[str, Any]] = {
    "no person can change alone": {"guarantee__per_person": None, "guarantee__unit": "household"},
    "an estimated sampler": {"sampler__status": "estimated"},
    "an observed universe": {"table__universe": "observed"},
    "incomplete exposure": INCOMPLETE,
    "no exposed cell, no total": {
        "exposed__cells": 0,
        "exposed__names": [],
        "exposed__words": "No cell is exposed.",
        "kept__totals": 0,
        "kept__statements": [],
    },
    "identities": {"kept__identities": ["subset(x)"]},
    "a deviation that depends on the data": {"expected_error__cell_standard_deviation__median": None},
    "suppression": {"mechanism__name": "suppression", "mechanism__parameters": {}, "sampler__groups": []},
    "a revision": {"kept__revision": {"of": "counties-2030-v0", "changed": 1, "totals": ["state=01: 5 before, 6 now"]}},
    "a revision that changed nothing": {"kept__revision": {"of": "counties-2030-v0", "changed": 0, "totals": []}},
    "one record at a time": {"table__max_records": None},
    "a ledger": {"release__ledger": "f00d" * 16, "release__ledger_words": "It is in a ledger."},
    "a test key": {"release__private": False},
    "levels": LEVELS,
}


class TestWords:
    def test_it_says_what_is_protected_and_what_is_not_and_has_lines_to_sign(self, snapshot: Snapshot) -> None:
        page = read()
        snapshot(page.lines)
        card = a_card()
        for part in ("guarantee", "expected_error", "exposed"):
            assert card[part]["words"] in page.text

    @pytest.mark.parametrize("name", SAID)
    def test_what_differs_is_said(self, name: str, snapshot: Snapshot) -> None:
        snapshot(read(**SAID[name]).lines_beyond(read()))

    def test_a_long_list_of_names_is_not_begun_where_there_is_none(self) -> None:
        assert "By name" not in read(**SAID["no exposed cell, no total"]).text

    def test_suppression_adds_no_noise_and_needs_no_key(self) -> None:
        text = read(**SAID["suppression"]).text
        for words in ("random noise", "may come out negative", "secret key", "the noise that was drawn", "Standard deviation"):
            assert words not in text

    def test_a_ledger_is_mentioned_without_its_head(self) -> None:
        assert "f00d" not in read(**SAID["a ledger"]).text

    def test_long_lists_are_cut_with_their_number(self) -> None:
        names = [f"cell {i}" for i in range(1500)]
        cut = read(exposed__names=names, exposed__cells=2_000_000).text
        assert "Among them: cell 0 ; cell 1 ; cell 2 ; cell 3 ; cell 4 . Listed in exposed.csv with true counts" in cut
        assert "cell 5" not in cut
        margins = [{"name": f"m{i}", "standard_deviation": 1.5} for i in range(20)]
        assert "and 16 more see card.json" in read(expected_error__margins=margins).text


class TestForm:
    def test_two_sheets_with_a_page_break_between(self) -> None:
        html = statement_html(a_card())
        assert len(sheets(html)) == 2
        style = html.split("<style>")[1].split("</style>")[0]
        assert "@page {" in style
        assert "break-after: page" in style
        assert ".sheet:last-child { page-break-after: auto; break-after: auto; }" in style
        # No paper size is forced: A4 and Letter both print.
        assert "size: A4" not in style

    def test_it_can_be_read_by_everyone(self) -> None:
        page = read()
        assert page.all("html") == [{"lang": "en"}]
        assert len(page.all("main")) == len(page.all("h1")) == len(page.all("title")) == 1
        assert len(page.all("caption")) == len(page.all("table")) == 4
        assert all(attributes.get("scope") in ("row", "col") for attributes in page.all("th"))

    def test_it_loads_nothing_and_runs_nothing(self) -> None:
        page = read()
        assert {element for element, _, _ in page.elements}.isdisjoint({"script", "link", "img", "iframe", "object", "a"})
        assert not any(name in ("src", "href") or name.startswith("on") for _, attributes, _ in page.elements for name in attributes)
        html = statement_html(a_card())
        assert "url(" not in html
        assert "@import" not in html
        assert "http:" not in html
        assert "https:" not in html

    @pytest.mark.parametrize("hostile", HOSTILE, ids=lambda value: ascii(value)[:30])
    def test_hostile_text_changes_no_element(self, hostile: str) -> None:
        harmless = Page(statement_html(with_every_text("harmless")))
        html = statement_html(with_every_text(hostile))
        page = Page(html)
        assert page.elements == harmless.elements
        assert page.comments == 0
        assert html.encode("utf-8")

    def test_the_same_card_gives_the_same_bytes(self) -> None:
        assert statement_html(a_card()) == statement_html(a_card())

    def test_files_and_signature_are_not_read(self) -> None:
        card = a_card()
        del card["files"], card["signature"]
        assert statement_html(card) == statement_html(a_card(signature={"value": "x"}))


class TestNotPrivate:
    def test_the_banner_is_on_both_pages_and_in_the_title(self) -> None:
        html = statement_html(a_card(release__private=False))
        assert all(NOT_PRIVATE in sheet for sheet in sheets(html))
        assert f"<title>{NOT_PRIVATE}" in html
        assert "@top-center" in html
        assert "With a test key none of this holds." in sheets(html)[0]

    def test_a_private_release_has_none(self) -> None:
        assert "NOT PRIVATE" not in statement_html(a_card())
