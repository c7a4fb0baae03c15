"""Every page as people meet it: on a wide screen, a tablet, a telephone, on paper, by keyboard and by ear."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import holdfast as hf
from holdfast.report.statement import statement_html
from holdfast.research.chains.page import diagnosis_html
from holdfast.tables.labels import Labels
from tests.publication.test_rows_on_pages import letters, released, report
from tests.report.cards import HOSTILE, a_card, with_every_text
from tests.research.chains.test_page import FIELDS, facts_of

from .looking import browser, look
from .pages import RELEASES

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.browser

MOST_PRINTED = {"statement": 2, "report": 3}
"""Printed A4 pages, whatever the release."""


@pytest.fixture(scope="module")
def opened() -> Iterator[Browser]:
    with browser() as found:
        yield found


def shots(name: str, tmp_path: Path) -> Path:
    """Where screenshots go: HOLDFAST_SCREENSHOTS keeps them."""
    kept = os.environ.get("HOLDFAST_SCREENSHOTS")
    return (Path(kept) if kept else tmp_path / "shots") / name.replace(" ", "-")


def test_the_statement_is_whole_at_every_width_and_prints_on_two_pages(opened: Browser, tmp_path: Path) -> None:
    found = look(opened, statement_html(a_card()), shots("statement", tmp_path))
    assert found.messages == []
    assert not any(found.problems.values()), found.problems
    assert len(found.printed) == 2
    assert all("Release counties-2030-v1" in page for page in found.printed), "each sheet names its release"
    assert "Page 2 of 2" in found.printed[1]


@pytest.mark.long
def test_warnings_are_told_on_every_printed_page(opened: Browser, tmp_path: Path) -> None:
    loud = [
        {"kind": "weak-budget", "text": f"LITTLE IS PROTECTED by so large a budget. {'A best guess can be right. ' * 6}"},
        {"kind": "little-noise", "text": f"THE NOISE IS NEARLY NIL. {'Half of the counts are published as they are. ' * 4}"},
        {"kind": "no-limit", "text": f"NO LIMIT IS SET. {'The ledger refuses nothing. ' * 5}"},
    ]
    found = look(opened, statement_html(a_card(warnings=loud)), shots("loud", tmp_path))
    assert not any(found.problems.values()), found.problems
    assert len(found.printed) <= 3
    assert all("LITTLE IS PROTECTED" in page for page in found.printed)


@pytest.mark.long
@pytest.mark.parametrize("name", RELEASES)
def test_the_pages_of_a_release(name: str, opened: Browser, shared_data: Path, tmp_path: Path) -> None:
    for page, html in RELEASES[name](shared_data, tmp_path).items():
        found = look(opened, html, shots(f"{name} {page}", tmp_path))
        assert found.messages == [], page
        assert not any(found.problems.values()), (page, found.problems)
        assert len(found.printed) <= MOST_PRINTED.get(page, 3), page


@pytest.mark.parametrize("width", [1200, 400])
def test_rows_of_a_group_open_without_a_script(width: int, opened: Browser, tmp_path: Path) -> None:
    """Labels as long as they may be, in a column each; the page has room for the rows of an open group."""
    regions = {code: f"{name} {'and its islands ' * 6}".strip() for code, name in zip("abcdefg", letters(7, "Region "), strict=True)}
    universe = hf.Universe.product({"town": letters(61, "t"), "region": list(regions), "sex": ["F", "M"]})
    (tmp_path / "page.html").write_text(report(released(universe.with_labels(Labels.of({"region": regions})))), encoding="utf-8")
    page = opened.new_page(viewport={"width": width, "height": 900}, java_script_enabled=False)
    page.goto((tmp_path / "page.html").as_uri())
    row = page.locator("#table details details table").nth(2).locator("tbody tr").nth(3)
    assert not row.is_visible()
    page.locator("#table > details > summary").click()
    page.locator("#table details details > summary").nth(2).click()
    assert row.is_visible()
    box = row.bounding_box()
    assert box is not None
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= width
    page.screenshot(path=tmp_path / f"{width}.png", full_page=True)
    page.close()


@pytest.mark.long
def test_a_test_key_is_told_on_every_printed_page(opened: Browser, tmp_path: Path) -> None:
    found = look(opened, statement_html(a_card(release__test_key=True)), shots("test-key", tmp_path))
    assert len(found.printed) == 2
    assert all("NOT PRIVATE: drawn with a test key" in page for page in found.printed)


@pytest.mark.long
def test_what_is_confidential_is_told_on_every_printed_page(opened: Browser, tmp_path: Path) -> None:
    words = "CONFIDENTIAL: this law depends on the data."
    page = diagnosis_html(facts_of({**FIELDS, "confidential": True, "confidential_text": words}))
    found = look(opened, page, shots("confidential", tmp_path))
    assert not any(found.problems.values()), found.problems
    assert all("CONFIDENTIAL" in page for page in found.printed)


@pytest.mark.long
@pytest.mark.parametrize("hostile", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_texts_break_no_page(hostile: str, opened: Browser, tmp_path: Path) -> None:
    """Nothing of them runs, is loaded or leaves the page, however long the words are."""
    found = look(opened, statement_html(with_every_text(hostile)), shots("hostile", tmp_path))
    assert found.messages == []
    assert not any(found.problems[where] for where in ("1200 pixels", "768 pixels", "400 pixels", "boxes in print")), found.problems


FAULTS = {
    "400 pixels": ("</main>", '<div style="width: 900px">wide</div></main>'),
    "768 pixels": ("</main>", '<section><p>a</p><p style="margin-top: -60px">before it</p></section></main>'),
    "1200 pixels": ('font-size="13"', 'font-size="5"'),
    "axe-core": ("</main>", '<p style="color: #ccc">hardly to be seen</p></main>'),
    "boxes in print": ("</style>", "h1 { position: relative; left: -80px; }</style>"),
    "print": ("</style>", "#sign { height: 30px; position: relative; clip-path: inset(0); }</style>"),
}
"""One of each kind: too wide, out of order, too small, too pale, off the paper, cut."""


@pytest.mark.long
@pytest.mark.parametrize("kind", FAULTS)
def test_faults_would_be_noticed(kind: str, opened: Browser, tmp_path: Path) -> None:
    place, fault = FAULTS[kind]
    good = statement_html(a_card())
    assert place in good
    assert look(opened, good.replace(place, fault), shots("fault", tmp_path)).problems[kind]


@pytest.mark.long
def test_a_page_that_asks_for_something_would_be_noticed(opened: Browser, tmp_path: Path) -> None:
    loads = statement_html(a_card()).replace("</main>", '<img src="https://example.org/x.png" alt=""></main>')
    assert any("Content Security Policy" in message for message in look(opened, loads, shots("loads", tmp_path)).messages)
