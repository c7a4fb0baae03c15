"""The statement: two pages, exact parameters and plain words on them, nothing unescaped, a banner where a test key was used."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from holdfast.card.figure_facts import ReportFacts
from holdfast.report.report import report_html
from holdfast.report.statement import statement_html
from holdfast.wording.budget import Guess, factor
from holdfast.wording.catalogue import Sentences
from tests.snapshot_files import Snapshot

from .cards import HOSTILE, INCOMPLETE, LEVELS, Page, a_card, card_values, with_every_text

NOT_PRIVATE = Sentences()("page.not_private")


def read(**changes: Any) -> Page:
    return Page(statement_html(a_card(**changes)))


SAID: dict[str, dict[str, Any]] = {
    "no person can change alone": {"guarantee__per_person": None, "guarantee__protect": "household"},
    "an estimated sampler": {"sampler__status": "estimated"},
    "an observed universe": {"table__universe": "observed"},
    "incomplete exposure": INCOMPLETE,
    "no exposed cell, no total": {
        "exposed__cells": 0,
        "exposed__names": [],
        "exposed__text": "No cell is exposed.",
        "kept__totals": 0,
        "kept__constraints": [],
        "kept__definitions": [],
    },
    "identities": {
        "kept__identities": ["subset(x = '1')"],
        "kept__definitions": [
            {"type": "margin", "kind": "kept", "columns": ["state"]},
            {
                "type": "subset",
                "kind": "identity",
                "column": None,
                "codes": None,
                "node": None,
                "condition": "x = '1'",
                "by": [],
                "values": 0,
            },
        ],
    },
    "a deviation that depends on the data": {"expected_error__cell_standard_deviation__median": None},
    "suppression": {"mechanism__name": "suppression", "mechanism__parameters": {}, "sampler__groups": []},
    "a revision": {"kept__revision": {"of": "counties-2030-v0", "changed": 1, "totals": ["state=01: 5 before, 6 now"]}},
    "a revision that changed nothing": {"kept__revision": {"of": "counties-2030-v0", "changed": 0, "totals": []}},
    "one record at a time": {"table__max_records": None},
    "a ledger": {"release__ledger": f"{'ab' * 16}:7:{'f00d' * 16}", "release__ledger_text": "It is in a ledger."},
    "a grant": {
        "release__ledger": f"{'ab' * 16}:7:{'f00d' * 16}",
        "release__grant": {"kind": "approximate", "epsilon": "4", "rho": "0.15", "delta": "1e-06", "grants": 2, "approver": "B. Chair"},
    },
    "a test key": {"release__test_key": True},
    "levels": LEVELS,
}


class TestWords:
    def test_it_says_what_is_protected_and_what_is_not_and_has_lines_to_sign(self, snapshot: Snapshot) -> None:
        page = read()
        snapshot(page.lines)
        card = a_card()
        for said in (*card.guarantee.sentences, card.exposed.text):
            assert said in page.text
        assert "Typical error of one count 7.2 standard deviation of a typical cell (exact)" in page.text

    @pytest.mark.parametrize("name", SAID)
    def test_what_differs_is_said(self, name: str, snapshot: Snapshot) -> None:
        snapshot(read(**SAID[name]).lines_beyond(read()))

    def test_a_long_list_of_names_is_not_begun_where_there_is_none(self) -> None:
        assert "By name" not in read(**SAID["no exposed cell, no total"]).text

    def test_suppression_adds_no_noise_and_needs_no_key(self) -> None:
        text = read(**SAID["suppression"]).text
        for words in ("random noise", "may come out negative", "secret key", "the noise that was drawn", "Standard deviation"):
            assert words not in text

    def test_the_entry_of_the_ledger_is_named(self) -> None:
        text = read(**SAID["a ledger"]).text
        assert "Ledger Recorded before the draw, entry 7:f00df00df00d" in text
        assert "Not recorded" not in text

    def test_long_lists_are_cut_with_their_number(self) -> None:
        names = [f"cell {i}" for i in range(1500)]
        cut = read(exposed__names=names, exposed__cells=2_000_000).text
        assert "All are listed in exposed.csv, and marked in the table. Among them: cell 0 cell 1 cell 2" in cut
        assert "cell 3" not in cut
        groups = card_values()["sampler"]["groups"] * 10
        assert "; 7 more in card.json" in read(sampler__groups=groups).text


class TestWhatFitsTheRelease:
    def test_without_kept_totals_nothing_is_said_about_them(self) -> None:
        said = read(**SAID["no exposed cell, no total"]).text
        for words in ("Suppose someone knows all kept totals", "Kept totals have no error", "The kept totals themselves are not protected"):
            assert words in read().text
            assert words not in said
        assert "Suppose someone knows everything about everyone else." in said
        assert "every sum carries noise. The noise is a whole number" in said

    def test_an_exposed_cell_has_no_noise(self) -> None:
        assert "Every count that the kept totals do not fix was changed by random noise" in read().text
        assert "Every other count was changed by random noise" in read(exposed__cells=0, exposed__names=[]).text

    def test_what_costs_nothing_protects_many_records_too(self) -> None:
        assert "is protected less" in read().text
        assert "is protected less" not in read(**SAID["suppression"]).text

    def test_a_proved_bound_is_at_most(self) -> None:
        assert "Typical error of one count, at most 7.2" in read(expected_error__found="upper bound").text

    def test_the_ledger_is_said_once(self) -> None:
        said = read(**SAID["a ledger"]).text
        assert "Recorded before the draw" in said
        assert "It is in a ledger." not in said
        assert "It is in no ledger." in read().text


GRID = {"step": "0.1", "l1": "1", "l2_squared": None, "neighbours": "declared", "on_grid": False, "round_totals": True}


class TestLead:
    """The page opens with sentences for everyone, before any number of a budget."""

    @pytest.mark.parametrize(
        ("changes", "said"),
        [
            (
                {},
                "This release publishes a table of 3,143 counts by state and county. 51 totals hold exactly: by state. Every count that "
                "the kept totals do not fix was changed by random noise. 95 of 100 such counts are within about 16 of the true ones.",
            ),
            (
                SAID["suppression"],
                "It publishes the counts that the kept totals fix, and leaves out all others. No noise is added. 51 totals",
            ),
            ({**SAID["suppression"], "exposed__cells": 0}, "All counts are left out, since the kept totals fix none. No noise is added."),
            (
                {"guarantee__relation_fields__within_bounds": True, **SAID["a deviation that depends on the data"]},
                "was drawn at random around the true one, within public bounds. How far off it may be depends on the counts. The budget",
            ),
            (
                {"table__grid": GRID},
                "This release publishes 3,143 values. 51 totals carry no noise: by state. Every value that the kept totals do not fix was "
                "changed by random noise. 95 of 100 such values are within about 15.3 of the true ones, apart from rounding. The budget",
            ),
            ({"warnings": [{"kind": "weak-budget", "text": "LITTLE."}]}, "of the true ones. So large a budget protects little. The budget"),
        ],
    )
    def test_what_everyone_understands_comes_first(self, changes: dict[str, Any], said: str) -> None:
        opening, _, _ = read(**changes).lines.partition("Budget for ")
        assert said in opening.replace("\n", " ")

    def test_many_columns_are_counted(self) -> None:
        columns = [f"column {number}" for number in range(10_000)]
        assert "column 7; and 9,992 more, listed in card.json" in read(table__columns=columns).lines

    def test_names_are_readable_where_there_are_no_labels(self) -> None:
        subset = {"type": "subset", "kind": "kept", "column": "state", "codes": ["01", "02"], "node": None, "condition": None, "by": []}
        card = a_card(kept__constraints=["subset(state in [01, 02])"], kept__definitions=[subset])
        rows = [("subset(state in [01, 02])", "subset(state in [01, 02])", 7)]
        for html in (statement_html(card), report_html(card, rows, ReportFacts())):
            assert "subset(" not in html
            assert "state 01, 02" in html
            assert "state 11, county 001" in html
            assert "state=" not in html


class TestBudget:
    """It comes first, and a guess about one person shows what it means."""

    @pytest.mark.parametrize(
        ("epsilon", "delta", "right"),
        [("0", "0", "50"), ("48/125", "0", "59.5"), ("1", "1e-9", "73.2"), ("60", "0", "100"), ("1", "1", "100")],
    )
    def test_right_guesses(self, epsilon: str, delta: str, right: str) -> None:
        kind = "pure" if delta == "0" else "approximate"
        costs = {"distance": 2, "kind": kind, "epsilon": epsilon, "delta": delta, "rho": None}
        page = read(guarantee__per_person=costs)
        assert f"50 of 100 without the table, at most {right} of 100 with it" in page.text
        bars = [float(bar["width"] or "") for bar in page.all("rect")]
        assert bars[1::2] == [180.0, pytest.approx(3.6 * float(right), abs=0.06)]

    def test_the_odds_are_the_factor_of_the_promise(self) -> None:
        costs = {"distance": 2, "kind": "pure", "epsilon": "1", "delta": "0", "rho": None}
        assert "become at most 2.719 to 1" in read(guarantee__per_person=costs).text, "e is 2.71828..."
        assert factor(Fraction(1)) == "2.719"

    @pytest.mark.parametrize(
        ("epsilon", "delta", "said"),
        [
            ("8", "0", "become at most 2,981 to 1"),  # 100 of 100 when rounded up to a thousandth, and still a limit
            ("40", "0", "become at most 2.354e17 to 1"),
            ("60", "0", "no limit below odds of 1,000,000,000,000 to 1"),
            ("1", "1", "Dark: right guesses. No limit is promised."),
        ],
    )
    def test_large_odds_are_a_number_as_long_as_there_is_one(self, epsilon: str, delta: str, said: str) -> None:
        kind = "pure" if delta == "0" else "approximate"
        costs = {"distance": 2, "kind": kind, "epsilon": epsilon, "delta": delta, "rho": None}
        text = read(guarantee__per_person=costs).text
        assert "at most 100 of 100 with it" in text
        assert said in text

    @pytest.mark.parametrize("delta", [Fraction(0), Fraction(1, 100), Fraction(1, 2)])
    def test_odds_and_share_of_right_guesses_belong_together(self, delta: Fraction) -> None:
        guess = Guess(Fraction(1), delta)
        odds = Fraction(guess.odds)
        # The share is rounded up to a thousandth; odds up by less than a thousandth of them, which moves the share by a quarter of that.
        assert Fraction(-1, 4000) <= guess.right - odds / (1 + odds) <= Fraction(1, 1000)

    @pytest.mark.parametrize(("rho", "right"), [("1/40", "55.6"), ("1/10", "61.2"), ("1", "85.4"), ("4", "99.6"), ("100", "100")])
    def test_right_guesses_by_rho(self, rho: str, right: str) -> None:
        """Far below what epsilon and delta allow that rho is converted to, and said to hold on average."""
        costs = {"distance": 1, "kind": "zcdp", "epsilon": "45", "delta": "1e-10", "rho": rho}
        text = read(guarantee__per_person=costs).text
        assert f"at most {right} of 100 with it" in text
        assert "on average over all that may be published" in text

    @pytest.mark.parametrize("rho", [Fraction(1, 100), Fraction(1, 10), Fraction(1, 2), Fraction(2), Fraction(5)])
    def test_no_guess_from_gaussian_noise_is_right_more_often(self, rho: Fraction) -> None:
        """Noise of that rho and its shift by one: the best of all guesses, by adding up."""
        weights = np.exp(-float(rho) * np.arange(-200, 201) ** 2.0)
        law = weights / weights.sum()
        best = 0.5 + np.abs(law[1:] - law[:-1]).sum() / 4
        assert best <= Guess(Fraction(40), Fraction(1, 10**10), rho).right <= Guess(Fraction(40), Fraction(1, 10**10)).right

    def test_figures_of_the_error_are_those_of_the_report(self) -> None:
        spread = {"smallest": 4.95088, "median": 4.95088, "largest": 4.95088}
        said = read(expected_error__cell_standard_deviation=spread).text
        report = Page(report_html(a_card(expected_error__cell_standard_deviation=spread), [], ReportFacts())).text
        for shown in ("4.95", "11"):  # 2.12 * 4.95088 = 10.496, rounded up
            assert re.search(rf"(?<![\d.]){re.escape(shown)}(?![\d])", said)
            assert re.search(rf"(?<![\d.]){re.escape(shown)}(?![\d])", report)
        assert "4.96" not in said + report
        assert "2.12 standard deviations, as for Laplace noise" in said
        assert "95 % within (as for Laplace noise)" in report
        assert "two standard deviations" not in said

    @pytest.mark.parametrize(
        ("mechanism", "factor"),
        [
            ("generalized-laplace", "2.12"),
            ("rounded-projection", "2.12"),
            ("projected-laplace", "2.12"),
            ("extended-laplace", "2.12"),
            ("generalized-gaussian", "1.96"),
            ("projected-gaussian", "1.96"),
        ],
    )
    def test_95_of_100_goes_by_the_tails_of_the_noise(self, mechanism: str, factor: str) -> None:
        """Under a Laplace law 95 of 100 are within ln(20) / sqrt(2) standard deviations; 1.96 of them hold 93.7."""
        assert 2.11 < math.log(20) / math.sqrt(2) < 2.12
        assert f"{factor} standard deviations, as for" in read(mechanism__name=mechanism).text

    def test_where_most_cells_are_exact_the_noise_of_the_others_is_told(self) -> None:
        said = read(expected_error__cell_standard_deviation={"smallest": 0.0, "median": 0.0, "largest": 3.14643}).text
        assert "Largest error of one count" in said
        assert "3.15" in said
        assert "Typical error" not in said

    def test_what_was_asked_for_one_person_is_said_once(self) -> None:
        asked = {"per": "person", "parameters": {"epsilon": "48/125"}, "text": "epsilon = 0.384 for one person who changes cell"}
        text = read(guarantee__asked=asked).text
        assert "Budget for one person, as requested epsilon 0.384" in text
        assert text.count("0.384") == 1

    def test_a_requested_pair_stands_large_not_the_rho_that_keeps_it(self) -> None:
        asked = {"per": "person", "parameters": {"epsilon": "1", "delta": "1e-6"}, "text": "epsilon = 1 with delta = 1e-6 for one person"}
        costs = {"distance": 2, "kind": "zcdp", "epsilon": "1", "delta": "1e-6", "rho": "0.0243612"}
        text = read(guarantee__asked=asked, guarantee__per_person=costs).text
        assert "Budget for one person, as requested epsilon 1 with delta 1e-6 (rho 0.0244)" in text

    def test_kinds_of_promises(self) -> None:
        costs = {"distance": 2, "kind": "zcdp", "epsilon": "2.88182800918", "delta": "1e-10", "rho": "0.1"}
        assert "Budget for one person rho 0.1 epsilon 2.89 with delta 1e-10" in read(guarantee__per_person=costs).text
        costs = {"distance": 2, "kind": "approximate", "epsilon": "1/3", "delta": "1e-9", "rho": None}
        assert "Budget for one person epsilon 1/3 with delta 1e-9" in read(guarantee__per_person=costs).text

    def test_the_sections_come_in_the_order_in_which_an_approver_asks(self) -> None:
        titles = ["The budget", "What it means", "What is exact", "What is exposed", "How far off", "What is not promised", "Sign-off"]
        places = [read().lines.index(title) for title in titles]
        assert places == sorted(places)


class TestForm:
    def test_no_paper_size_is_forced(self) -> None:
        style = statement_html(a_card()).split("<style>")[1].split("</style>")[0]
        assert "@page {" in style
        assert "size: A4" not in style, "A4 and Letter both print"

    def test_it_can_be_read_by_everyone(self) -> None:
        page = read()
        assert page.all("html") == [{"lang": "en"}]
        assert len(page.all("main")) == len(page.all("header")) == len(page.all("footer")) == len(page.all("h1")) == 1
        labels = [section["aria-labelledby"] for section in page.all("section")]
        assert labels == [heading["id"] for heading in page.all("h2")]

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
        signature = {"algorithm": "Ed25519", "public_key": "ab" * 32, "value": "cd" * 64}
        assert statement_html(a_card(files={})) == statement_html(a_card(signature=signature))


class TestNotPrivate:
    def test_the_banner_is_first_and_last_on_top_of_printed_pages_and_in_the_title(self) -> None:
        html = statement_html(a_card(release__test_key=True))
        text = Page(html).text
        assert text.count(NOT_PRIVATE) == 3
        assert text.endswith("Do not publish or sign.")
        assert f"<title>{NOT_PRIVATE}" in html
        assert "@top-center" in html
        assert "With a test key none of this holds." in text

    def test_a_private_release_has_none(self) -> None:
        assert "NOT PRIVATE" not in statement_html(a_card())
