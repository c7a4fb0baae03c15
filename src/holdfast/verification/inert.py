"""Whether files hold nothing that was not looked at.

Pages can do nothing but be read: nothing runs, nothing is loaded, nothing leads away. Whatever version made it, pages are so.

A page is taken apart by a grammar that is narrower than HTML: the head begins with our content security policy, and every "<" after it
opens one of ELEMENTS, written as our pages write tags. Comments and declarations are refused. So a browser, in whatever state it reads,
finds no element and no attribute that was not looked at here: where the two disagree, it takes a tag for text, and never text for a tag.

Tables are written anew from what was read of them. Two texts can be read as the same table: with blanks, empty lines, quotes or other
spellings of a number, which could carry what nobody checked. So what `verify` read of a file is written as a release writes it, and must
give the same bytes.
"""

from __future__ import annotations

import hashlib
import io
import re
from collections.abc import Iterable, Iterator
from html import unescape
from typing import Any

from holdfast.tables.formats import FORMATS, mark_frame


class _Digest(io.RawIOBase):
    """A file of which only the checksum is kept."""

    def __init__(self) -> None:
        self._sha256 = hashlib.sha256()

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._sha256.update(data)
        return len(data)

    def hexdigest(self) -> str:
        return self._sha256.hexdigest()


def csv_digest(pieces: Iterable[Any], *, marked: bool = False) -> str:
    """The checksum of the CSV file that a release writes of tables that follow one another; `marked`: with formulas marked."""
    file = _Digest()
    FORMATS["csv"].write(map(mark_frame, pieces) if marked else pieces, file)  # type: ignore[arg-type]
    return file.hexdigest()


POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_TEXT = """
html head title style body header main footer section article div p span h1 h2 h3 h4 h5 h6 ul ol li dl dt dd table caption colgroup col
thead tbody tfoot tr th td figure figcaption details summary strong em b i small sub sup br hr wbr code pre q abbr time bdi bdo
"""
_SHAPES = "svg g path rect circle ellipse line polyline polygon text tspan desc"
ELEMENTS = frozenset(f"{_TEXT} {_SHAPES}".split())
"""What shows text and shapes. None of them loads, runs, is sent, or takes a browser elsewhere."""

_START = re.compile(
    r'<!DOCTYPE html>\s*<html lang="[A-Za-z0-9-]{1,35}">\s*<head>\s*(?:<meta (?:charset="utf-8"|name="[a-z-]+" content="[^"<>]*")>\s*)*'
    rf'<meta http-equiv="Content-Security-Policy" content="{re.escape(POLICY)}">'
)
_ATTRIBUTE = re.compile(r'\s+([A-Za-z][A-Za-z0-9:-]*)(?:="([^"<>]*)")?')
_TAG = re.compile(rf"</?([A-Za-z][A-Za-z0-9-]*)((?:{_ATTRIBUTE.pattern})*)\s*>")
_ADDRESS = re.compile(r"(?:.*:)?(?:href|src|srcset|srcdoc|action|formaction|data|poster|background|ping|manifest|base)")
_SPOKEN = re.compile(r"(?:aria|data)-.*|title")
"""Attributes that hold words, such as names that an office chose."""
_SAID = re.compile(r"""/\*.*?\*/|"(?:[^"\\\n\r\f]|\\[^\n\r\f])*"|'(?:[^'\\\n\r\f]|\\[^\n\r\f])*'""", re.DOTALL)
"""Comments and strings of a style sheet."""
_LOADS = re.compile(r"@import|(?:url|src|image|image-set)\((?!\s*#)|\\", re.IGNORECASE)
"""What loads something, and the escape that could spell it otherwise."""


def not_inert(page: bytes) -> str | None:
    """The first thing on a page that no page of ours has, in words; None where it is inert."""
    try:
        text = page.decode()
    except UnicodeDecodeError:
        return "bytes that are no UTF-8"
    start = _START.match(text)
    if start is None:
        return "a head that does not begin with our content security policy"
    return next(_find_problems(text, start.end()), None)


def _find_problems(text: str, at: int) -> Iterator[str]:
    while (at := text.find("<", at)) >= 0:
        tag = _TAG.match(text, at)
        if tag is None:
            yield f"a tag, comment or declaration written as on no page of ours, {text[at : at + 40]!r}"
            return
        name, at = tag[1].lower(), tag.end()
        if name not in ELEMENTS:
            yield f"an element {name!r}"
        for attribute, value in _ATTRIBUTE.findall(tag[2]):
            yield from _attribute_problems(attribute.lower(), unescape(value).strip())
        if name == "style" and text[tag.start() + 1] != "/":
            end = text.find("<", at)
            if not text.startswith("</style>", end):
                yield "a style sheet that is not closed"
            if _LOADS.search(_SAID.sub(" ", text[at:end])):
                yield "a style sheet that may load something"


def _attribute_problems(name: str, value: str) -> Iterator[str]:
    if name.startswith("on"):
        yield f"an attribute {name!r}, which runs something"
    elif _ADDRESS.fullmatch(name) and not value.startswith("#"):
        yield f"an address in {name!r} that leaves the page"
    elif not _SPOKEN.fullmatch(name) and _LOADS.search(value):
        yield f"an attribute {name!r} that may load something"
