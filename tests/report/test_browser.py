"""The pages in a real browser: they print as intended and load nothing from anywhere."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from holdfast.report.cellkey import cellkey_html, perturbed_html
from holdfast.report.diagnosis import diagnosis_html
from holdfast.report.figures.facts import NoiseLaw, ReportFacts
from holdfast.report.report import report_html
from holdfast.report.statement import statement_html
from tests.report.cards import CARD
from tests.report.test_cellkey import CHECK, DESIGN, PUBLISHED
from tests.report.test_diagnosis import FIELDS

pytestmark = pytest.mark.browser

BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def run_browser(folder: Path, *arguments: str) -> str:
    """Run a headless browser without network; its standard error, which holds the console's messages."""
    found = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip("this test prints with Chromium")
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--host-resolver-rules=MAP * ~NOTFOUND"]
    command = [found, *options, f"--user-data-dir={folder / 'profile'}", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stderr


def printed_pages(folder: Path, name: str) -> int:
    run_browser(folder, "--no-pdf-header-footer", f"--print-to-pdf={folder / 'out.pdf'}", (folder / name).as_uri())
    return len(re.findall(rb"/Type\s*/Page\b(?!s)", (folder / "out.pdf").read_bytes()))


def test_the_statement_prints_on_two_pages(tmp_path: Path) -> None:
    (tmp_path / "statement.html").write_text(statement_html(CARD), encoding="utf-8")
    assert printed_pages(tmp_path, "statement.html") == 2


def test_the_report_is_laid_out_and_asks_for_nothing(tmp_path: Path) -> None:
    facts = ReportFacts(noise=(NoiseLaw("a cell", [(-1, 0.25), (0, 0.5), (1, 0.25)]),))
    page = report_html(CARD, [("margin(state)", "state=01", 12)], facts)
    (tmp_path / "report.html").write_text(page, encoding="utf-8")
    messages = run_browser(tmp_path, f"--screenshot={tmp_path / 'page.png'}", "--window-size=900,1200", (tmp_path / "report.html").as_uri())
    assert "CONSOLE" not in messages, messages
    assert (tmp_path / "page.png").stat().st_size > 10_000
    assert printed_pages(tmp_path, "report.html") >= 2


@pytest.mark.long
def test_the_page_about_chains_is_laid_out_and_asks_for_nothing(tmp_path: Path) -> None:
    (tmp_path / "chains.html").write_text(diagnosis_html(FIELDS), encoding="utf-8")
    messages = run_browser(tmp_path, f"--screenshot={tmp_path / 'page.png'}", "--window-size=900,1200", (tmp_path / "chains.html").as_uri())
    assert "CONSOLE" not in messages, messages
    assert (tmp_path / "page.png").stat().st_size > 10_000
    assert printed_pages(tmp_path, "chains.html") >= 1


@pytest.mark.ordinary("published")
@pytest.mark.parametrize(
    "page", [cellkey_html(CHECK), cellkey_html(DESIGN), perturbed_html(PUBLISHED)], ids=["a check", "a design", "published tables"]
)
def test_the_pages_about_cell_keys_are_laid_out_and_ask_for_nothing(page: str, tmp_path: Path) -> None:
    (tmp_path / "cellkey.html").write_text(page, encoding="utf-8")
    address = (tmp_path / "cellkey.html").as_uri()
    messages = run_browser(tmp_path, f"--screenshot={tmp_path / 'page.png'}", "--window-size=900,1200", address)
    assert "CONSOLE" not in messages, messages
    assert (tmp_path / "page.png").stat().st_size > 10_000
    assert printed_pages(tmp_path, "cellkey.html") >= 1


def test_a_page_that_asks_for_something_would_be_noticed(tmp_path: Path) -> None:
    page = report_html(CARD, [], ReportFacts()).replace("</main>", '<img src="https://example.org/x.png" alt=""></main>')
    assert "example.org" in page
    (tmp_path / "report.html").write_text(page, encoding="utf-8")
    messages = run_browser(tmp_path, f"--screenshot={tmp_path / 'page.png'}", (tmp_path / "report.html").as_uri())
    assert "CONSOLE" in messages
