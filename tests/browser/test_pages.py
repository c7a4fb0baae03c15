"""Every page as people meet it: on a wide screen, a tablet, a telephone, on paper, by keyboard and by ear."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from holdfast.report.figures.facts import ReportFacts
from holdfast.report.report import report_html
from holdfast.report.statement import statement_html
from tests.report.cards import CARD, a_card

from .looking import browser, look
from .pages import RELEASES

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def opened() -> Iterator[Browser]:
    with browser() as found:
        yield found


def shots(name: str, tmp_path: Path) -> Path:
    """Where screenshots go: HOLDFAST_SCREENSHOTS keeps them."""
    kept = os.environ.get("HOLDFAST_SCREENSHOTS")
    return (Path(kept) if kept else tmp_path / "shots") / name


def test_the_statement_is_whole_at_every_width_and_prints_on_two_pages(opened: Browser, tmp_path: Path) -> None:
    found = look(opened, statement_html(CARD), shots("statement", tmp_path))
    assert found.messages == []
    assert not any(found.problems.values()), found.problems
    assert len(found.printed) == 2
    assert all("Release counties-2030-v1" in page for page in found.printed), "each sheet names its release"
    assert "Page 2 of 2" in found.printed[1]


def test_a_test_key_is_told_on_every_printed_page(opened: Browser, tmp_path: Path) -> None:
    found = look(opened, statement_html(a_card(release__private=False)), shots("test-key", tmp_path))
    assert all("NOT PRIVATE: drawn with a test key" in page for page in found.printed)


def test_faults_would_be_noticed(opened: Browser, tmp_path: Path) -> None:
    """One fault of each kind, put into a good page."""
    faults = {
        "400 pixels": ("</main>", '<div style="width: 900px">wide</div></main>'),
        "axe-core": ("</main>", '<p style="color: #ccc">hardly to be seen</p></main>'),
        "boxes in print": ("</style>", "h1 { position: relative; left: -80px; }</style>"),
        "print": ("</style>", "#sign { height: 30px; overflow: hidden; position: relative; clip-path: inset(0); }</style>"),
    }
    for kind, (place, fault) in faults.items():
        found = look(opened, statement_html(CARD).replace(place, fault, 1), shots(f"fault-{kind}", tmp_path))
        assert found.problems[kind], kind
    loads = report_html(CARD, [], ReportFacts()).replace("</main>", '<img src="https://example.org/x.png" alt=""></main>')
    assert any("Content Security Policy" in message for message in look(opened, loads, shots("fault-load", tmp_path)).messages)


@pytest.mark.long
@pytest.mark.parametrize("name", RELEASES)
def test_the_pages_of_a_release(name: str, opened: Browser, shared_data: Path, tmp_path: Path) -> None:
    for page, html in RELEASES[name](shared_data, tmp_path).items():
        found = look(opened, html, shots(f"{name.replace(' ', '')}-{page}", tmp_path))
        assert found.messages == [], page
        assert not any(found.problems.values()), (page, found.problems)
        if page == "statement":
            assert len(found.printed) == 2, page
        assert len(found.printed) <= 3 or page != "report", f"{len(found.printed)} printed pages"
