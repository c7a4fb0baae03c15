"""Elements of pages, well formed by construction: MarkupSafe escapes, and what would not be seen is made visible."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence, Set
from typing import TypeAlias

from markupsafe import Markup, escape

MAX_NAME = 120
"""A longer name is shortened on the pages; card.json and kept.csv hold it whole."""
SHORTEST_PART = 6
"""Letters that each part of a name keeps, at least; a name of too many parts is shortened as one."""

_VOID = frozenset({"meta"})
_BLOCK = frozenset(
    {"body", "caption", "div", "dl", "figure", "footer", "h1", "h2", "h3", "head", "header", "html", "li", "main", "meta", "ol", "p"}
    | {"section", "style", "svg", "table", "tbody", "thead", "title", "tr", "ul"}
)
# A code may hold any character. These would be invisible, reorder the text around them, or be illegal in HTML.
_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")
"""Control characters, marks that reorder text, unpaired surrogates, and two that are no characters."""


Piece: TypeAlias = str | None
"""A part of a page: Markup as it is, other text escaped, None left out."""


def text(value: str) -> Markup:
    """Escaped text. Control characters, unpaired surrogates and characters that reorder text are shown as \\x.. or \\u...."""
    return value if isinstance(value, Markup) else escape(_UNSEEN.sub(_visible, value))


def _visible(found: re.Match[str]) -> str:
    character = found[0]
    if character in "\n\t":
        return " "
    point = ord(character)
    return f"\\x{point:02x}" if point < 256 else f"\\u{point:04x}"


def tag(element: str, /, *pieces: Piece, **attributes: str) -> Markup:
    """One element. Attribute names lose a trailing underscore, and inner ones become hyphens: class_, aria_labelledby."""
    given = "".join(f' {key.rstrip("_").replace("_", "-")}="{text(value)}"' for key, value in attributes.items())
    end = "\n" if element in _BLOCK else ""
    if element in _VOID:
        return Markup(f"<{element}{given}>{end}")
    return Markup(f"<{element}{given}>{join(*pieces)}</{element}>{end}")


def join(*pieces: Piece) -> Markup:
    """The pieces one after the other; those that are None are left out."""
    return Markup("").join(text(piece) for piece in pieces if piece is not None)


def paragraph(*pieces: Piece, **attributes: str) -> Markup:
    return tag("p", *pieces, **attributes)


def name(value: str) -> Markup:
    """A name or code from the table: kept apart from the direction of the text around it, shortened if very long."""
    return tag("bdi", shorten_name(value, MAX_NAME))


def shorten_name(value: str, room: float, width: Callable[[str], float] = len) -> str:
    """A name that fits: of each part that is too long (parts stand between commas), its beginning and its end.

    So no part is dropped, and names that differ in a part or in how a part ends mostly differ still.
    """
    if width(value) <= room:
        return value
    return _fitting(value.split(", "), room, width, SHORTEST_PART) or _fitting([value], room, width, 1) or "…"


def _fitting(parts: Sequence[str], room: float, width: Callable[[str], float], fewest: int) -> str | None:
    """The parts with as many letters each as there is room for, or None where that would be fewer than `fewest`."""
    low, high = fewest - 1, min(max(map(len, parts)), int(room))
    while low < high:
        letters = (low + high + 1) // 2
        low, high = (letters, high) if width(_join_shortened(parts, letters)) <= room else (low, letters - 1)
    return _join_shortened(parts, low) if low >= fewest else None


def _join_shortened(parts: Sequence[str], letters: int) -> str:
    """The parts, each with at most so many letters: two of three from its beginning, or all where they are few."""
    end = letters // 3 if letters > 2 * SHORTEST_PART else 0
    return ", ".join(
        part if len(part) <= letters else f"{part[: letters - end - 1].rstrip()}…{part[len(part) - end :].lstrip()}" for part in parts
    )


def code(value: str) -> Markup:
    return tag("code", value)


def items(pieces: Iterable[str]) -> Markup:
    return tag("ul", *(tag("li", piece) for piece in pieces))


def table(caption: str, header: Sequence[str], rows: Iterable[Sequence[str]], numbers: Set[int] = frozenset()) -> Markup:
    """A table whose first column names its rows; columns of numbers end at the right.

    One of many columns becomes a list on narrow screens, and has its roles written out.
    """
    wide = len(header) > 2

    def role_attributes(role: str, **more: str) -> dict[str, str]:
        return {**more, **({"role": role} if wide else {})}

    def right(place: int) -> dict[str, str]:
        return {"class_": "number"} if place in numbers else {}

    def cells(row: Sequence[str]) -> Markup:
        labels = ({**({"data_label": name} if wide else {}), **right(place)} for place, name in enumerate(header[1:], 1))
        return join(
            tag("th", row[0], **role_attributes("rowheader", scope="row")),
            *(tag("td", cell, **role_attributes("cell", **label)) for cell, label in zip(row[1:], labels, strict=True)),
        )

    titles = (tag("th", cell, **role_attributes("columnheader", scope="col", **right(place))) for place, cell in enumerate(header))
    head = tag("thead", tag("tr", *titles, **role_attributes("row")), **role_attributes("rowgroup"))
    body = tag("tbody", *(tag("tr", cells(row), **role_attributes("row")) for row in rows), **role_attributes("rowgroup"))
    return tag("table", tag("caption", caption), head, body, **role_attributes("table", **({"class_": "wide"} if wide else {})))


def capital(value: str) -> str:
    """The text with a capital first letter, where there is one; Markup stays Markup."""
    return value[:1].upper() + value[1:]
