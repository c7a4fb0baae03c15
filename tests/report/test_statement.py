"""The statement: two pages, exact parameters and plain words on them, nothing unescaped, a banner where a test key was used."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.report.page import NOT_PRIVATE
from holdfast.report.statement import statement_html

from .cards import HOSTILE, Page, a_card, with_every_text


def read(**changes: Any) -> Page:
    return Page(statement_html(a_card(**changes)))


def sheets(html: str) -> list[str]:
    """The text of each printed page."""
    parts = html.split('<section class="sheet">')
    return [Page('<section class="sheet">' + part.split("</section>")[0] + "</section>").text for part in parts[1:]]


class TestWords:
    def test_the_first_page_says_what_is_protected_and_what_is_not(self) -> None:
        card = a_card()
        first, _ = sheets(statement_html(card))
        for words in [
            "counties-2030-v1",
            "Table counties , 2030-04-01",
            "3,143 cells",
            "51 totals",
            "margin(state)",
            "A count may come out negative.",
            card["guarantee"]["words"],
            "epsilon = 48/125 (= 0.384)",
            "epsilon = 24/125 (= 0.192)",
            "l1 = 2",
            "tables with the same kept totals",
            "A person has at most 1 record in the table.",
            "What is not protected",
            "The kept totals themselves",
            card["exposed"]["words"],
            "state=11, county=001",
            "Facts about groups",
            "Anything outside this table",
            "Several releases",
            "secret key",
        ]:
            assert words in first, words

    def test_the_second_page_has_the_exact_parameters_and_lines_to_sign(self) -> None:
        card = a_card()
        _, second = sheets(statement_html(card))
        for words in [
            "generalized-laplace: epsilon = 24/125 (= 0.192), norm = l1",
            card["mechanism"]["law"],
            "pure: epsilon = 24/125",
            "51 independent kept sums leave 3,092 free dimensions",
            "exact: the noise that was drawn has exactly the stated law",
            "corrected geometrics; 50 blocks, 3,142 cells",
            card["expected_error"]["words"],
            "7.2",
            "7.3",
            "0 (exact)",
            "holdfast 0.1.0",
            "python-flint 0.9",
            "stream version 2",
            "holdfast verify folder",
            "Name",
            "Role",
            "Date",
            "Signature",
        ]:
            assert words in second, words

    def test_no_person_can_change_alone(self) -> None:
        assert "no household can change alone" in read(guarantee__per_person=None, guarantee__unit="household").text

    def test_an_estimated_sampler_says_so(self) -> None:
        assert "was estimated, not proven" in read(sampler__status="estimated").text

    def test_an_observed_universe_is_exposed(self) -> None:
        assert "shows which are not empty" in read(table__universe="observed").text
        assert "shows which are not empty" not in read().text

    def test_incomplete_exposure_is_said(self) -> None:
        assert "there may be more" in read(exposed__complete=False).text

    def test_no_exposed_cell_and_no_total(self) -> None:
        text = read(exposed__cells=0, exposed__names=[], exposed__words="No cell is exposed.", kept__totals=0, kept__statements=[]).text
        assert "No cell is exposed." in text
        assert "By name" not in text
        assert "No total is kept" in text

    def test_identities(self) -> None:
        assert "Known of every data set beforehand, so nobody's secret: subset(x)" in read(kept__identities=["subset(x)"]).text

    def test_a_deviation_that_depends_on_the_data(self) -> None:
        assert "depends on the data" in read(expected_error__cell_standard_deviation__median=None).text

    def test_suppression_adds_no_noise_and_needs_no_key(self) -> None:
        text = read(mechanism__name="suppression", mechanism__parameters={}, sampler__groups=[]).text
        assert "every other count is left out. No noise is added." in text
        assert "nothing is drawn" in text
        for words in ("random noise", "may come out negative", "secret key", "the noise that was drawn", "Standard deviation"):
            assert words not in text

    def test_a_revision_is_named_with_what_it_gives_away(self) -> None:
        assert "revises" not in read().text
        one = read(kept__revision={"of": "counties-2030-v0", "changed": 1, "totals": ["state=01: 5 before, 6 now"]}).text
        assert "This release revises counties-2030-v0 : 1 kept total differs from before. Both values are public" in one
        none = read(kept__revision={"of": "counties-2030-v0", "changed": 0, "totals": []}).text
        assert "0 kept totals differ from before." in none

    def test_one_record_at_a_time(self) -> None:
        assert "It is for one record at a time: whoever has several is protected less." in read(table__max_records=None).text

    def test_a_ledger_is_mentioned_without_its_head(self) -> None:
        text = read(release__ledger="f00d" * 16).text
        assert "the head of the ledger is in card.json" in text
        assert "f00d" not in text

    def test_long_lists_are_cut_with_their_number(self) -> None:
        names = [f"cell {i}" for i in range(1500)]
        assert "cell 4 ; and 1,495 more, listed in card.json" in read(exposed__names=names, exposed__cells=1500).text
        cut = read(exposed__names=names, exposed__cells=2_000_000).text
        assert "cell 4 ; and 1,999,995 more ." in cut.replace("more.", "more .")
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
