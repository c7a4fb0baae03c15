"""What a browser sees of a page: boxes, order, sizes of letters, printed pages, axe-core's findings.

The page is a file; nothing is loaded. Chromium is the system's own, driven by Playwright.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

WIDTHS = (1200, 768, 400)
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
A4_TEXT = 672
"""Pixels between the margins of an A4 page: 210 mm less twice 16 mm."""
MOST_PIXELS = 16_000
"""Of a screenshot's height: Chromium takes none that is higher."""
SMALLEST_LETTER = 9.0
"""Pixels on the screen. Text in a picture that is shrunk below this is not readable."""

BOXES = """() => {
  const width = document.documentElement.clientWidth, out = [];
  const hidden = e => e.closest('.wide thead') || e.closest('details:not([open])');
  for (const e of document.body.querySelectorAll('*')) {
    if (hidden(e)) continue;
    const box = e.getBoundingClientRect();
    if (!box.width || !box.height) continue;
    const name = e.tagName + (e.id ? '#' + e.id : '') + ' ' + e.textContent.trim().slice(0, 60);
    if (box.left < -0.5 || box.right > width + 0.5) out.push(name + ': from ' + box.left + ' to ' + box.right + ' of ' + width);
    const style = getComputedStyle(e);
    if (style.overflowX !== 'visible' && e.scrollWidth > e.clientWidth + 1) out.push(name + ': its content is cut');
  }
  for (const svg of document.querySelectorAll('svg')) {
    const frame = svg.getBoundingClientRect();
    const scale = frame.width / svg.viewBox.baseVal.width;
    for (const e of svg.querySelectorAll('text')) {
      const box = e.getBoundingClientRect();
      if (box.left < frame.left - 1 || box.right > frame.right + 1 || box.top < frame.top - 1 || box.bottom > frame.bottom + 1)
        out.push('text outside its picture: ' + e.textContent);
      const size = parseFloat(getComputedStyle(e).fontSize) * scale;
      if (size < SMALLEST) out.push('letters of ' + size.toFixed(1) + ' pixels: ' + e.textContent);
    }
  }
  return out;
}""".replace("SMALLEST", str(SMALLEST_LETTER))
"""What lies outside the page or its picture, is cut off, or is too small to read."""

ORDER = """() => {
  const out = [], parts = [...document.querySelectorAll('header.masthead, main > section, main > section > *, footer')]
    .filter(e => e.getBoundingClientRect().height);
  for (let i = 1; i < parts.length; i++) {
    const [a, b] = [parts[i - 1], parts[i]];
    if (a.contains(b)) continue;
    if (b.getBoundingClientRect().top < a.getBoundingClientRect().bottom - 1) out.push(b.textContent.trim().slice(0, 60));
  }
  return out;
}"""
"""What stands beside or above what comes before it in the file: read aloud, it would come in another order than it is seen."""

HEADS = "() => [...document.querySelectorAll('h1, h2, h3, caption, thead tr')].map(e => e.innerText)"
TEXTS = """() => [...document.querySelectorAll('h1, h2, h3, p, li, dt, dd, caption, th, td, figcaption')]
  .filter(e => e.getBoundingClientRect().height && !e.closest('details')).map(e => e.textContent)"""


@dataclass
class Found:
    """What was found at every width, in print, and by axe-core; each list is empty for a good page."""

    problems: dict[str, list[str]] = field(default_factory=dict)
    messages: list[str] = field(default_factory=list)
    """Of the console: anything that is asked for is refused by the content security policy, and told there."""
    printed: list[str] = field(default_factory=list)
    """The text of every printed page."""


@contextmanager
def browser() -> Iterator[Browser]:
    """The system's Chromium, without network."""
    playwright = pytest.importorskip("playwright.sync_api", reason="looking at pages needs Playwright")
    found = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip("looking at pages needs Chromium")
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=found, args=["--no-sandbox", "--host-resolver-rules=MAP * ~NOTFOUND"])
        yield opened
        opened.close()


def look(opened: Browser, html: str, folder: Path) -> Found:
    """Look at one page in every way. Screenshots and the printed page are left in the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "page.html").write_text(html, encoding="utf-8")
    page = opened.new_page()
    found = Found()
    page.on("console", lambda message: found.messages.append(message.text))
    page.on("pageerror", lambda error: found.messages.append(str(error)))
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        page.goto((folder / "page.html").as_uri())
        found.problems[f"{width} pixels"] = page.evaluate(BOXES) + page.evaluate(ORDER) + _sideways(page, width)
        if page.evaluate("document.documentElement.scrollHeight") < MOST_PIXELS:
            page.screenshot(path=folder / f"{width}.png", full_page=True)
    found.problems["axe-core"] = _axe(page)
    page.set_viewport_size({"width": A4_TEXT, "height": 900})
    page.emulate_media(media="print")
    found.problems["boxes in print"] = page.evaluate(BOXES) + page.evaluate(ORDER) + _sideways(page, A4_TEXT)
    texts, heads = page.evaluate(TEXTS), page.evaluate(HEADS)
    found.printed = _print(page, folder / "page.pdf")
    found.problems["print"] = _lost(texts, found.printed) + _orphans(heads, found.printed)
    page.close()
    return found


def _sideways(page: Page, width: int) -> list[str]:
    reach = page.evaluate("document.documentElement.scrollWidth")
    return [] if reach <= width else [f"the page is {reach} pixels wide"]


def _axe(page: Page) -> list[str]:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="looking at pages needs axe-core")
    violations: list[Any] = axe.Axe().run(page).response["violations"]
    return [f"{one['id']}: {one['help']}: {node['html'][:200]}" for one in violations for node in one["nodes"]]


def _print(page: Page, path: Path) -> list[str]:
    pdfium = pytest.importorskip("pypdfium2", reason="reading printed pages needs pypdfium2")
    page.pdf(path=path, format="A4", print_background=True)
    document = pdfium.PdfDocument(path)
    try:
        return [one.get_textpage().get_text_bounded() for one in document]
    finally:
        document.close()


def _letters(text: str) -> str:
    """Without what line breaks and hyphens change."""
    return re.sub(r"[\s\u00ad\ufffe\u2010-]+", "", text)


def _lost(texts: list[str], printed: list[str]) -> list[str]:
    """Texts that no printed page has: cut off, or hidden by something."""
    # A text may go on on the next page, after what stands in the margin there: so it is looked for by its beginning and its end, and
    # without that margin too, since a page may break inside these.
    bodies = [re.sub(r"\A(.*\n){0,2}?.*Page \d+ of \d+\s*\n", "", text) for text in printed]
    whole = f"{_letters(''.join(printed))}\n{_letters(''.join(bodies))}"
    pieces = ((text, _letters(text)) for text in texts)
    return [f"not printed: {text[:80]}" for text, letters in pieces if letters[:40] not in whole or letters[-40:] not in whole]


def _orphans(heads: list[str], printed: list[str]) -> list[str]:
    """Headings, captions and table heads at the foot of a page, away from what they belong to."""
    known = {_letters(head) for head in heads if head.strip()}
    out = []
    for text in printed[:-1]:
        lines = [line for line in text.splitlines() if line.strip() and not re.search(r"^(Page \d+ of \d+|Release .*)$", line.strip())]
        for count in (1, 2, 3):
            if _letters("".join(lines[-count:])) in known:
                out.append(f"at the foot of a page: {lines[-count:]}")
    return out
