"""Facts and a template make a page: one style, one frame, every text escaped.

Pages are self-contained (no script, no outside resource) and pure functions of their arguments: no clock, no host, no path, no random name.

Their parts are values (tables, figures, tiles), which `templates/macros.html.j2` lays out. Elements are well formed by construction:
MarkupSafe escapes, and what would not be seen is made visible.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from markupsafe import Markup, escape

from holdfast.exact.formatting import format_number
from holdfast.wording.catalogue import ENGLISH, Sentences, sentence

if TYPE_CHECKING:
    import jinja2

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
        first, *labels = ({**({"data_label": name} if wide else {}), **right(place)} for place, name in enumerate(header))
        return join(
            tag("th", row[0], **role_attributes("rowheader", scope="row", **first)),
            *(tag("td", cell, **role_attributes("cell", **label)) for cell, label in zip(row[1:], labels, strict=True)),
        )

    titles = (tag("th", cell, **role_attributes("columnheader", scope="col", **right(place))) for place, cell in enumerate(header))
    head = tag("thead", tag("tr", *titles, **role_attributes("row")), **role_attributes("rowgroup"))
    body = tag("tbody", *(tag("tr", cells(row), **role_attributes("row")) for row in rows), **role_attributes("rowgroup"))
    return tag("table", tag("caption", caption), head, body, **role_attributes("table", **({"class_": "wide"} if wide else {})))


def capital(value: str) -> str:
    """The text with a capital first letter, where there is one; Markup stays Markup."""
    return value[:1].upper() + value[1:]


TEMPLATES = Path(__file__).with_name("templates")


class Say:
    """Sentences of one language as HTML: say("page.release", id="a<b"). Values are escaped; whole numbers get their commas.

    plain:  the same as text, not escaped, for drawings and for what a template escapes in its own way.
    """

    def __init__(self, language: str = ENGLISH) -> None:
        self.language = language
        self.plain = Sentences(language)

    def __call__(self, name: str, /, **values: str | float) -> Markup:
        return text(self.plain.form(name, values)).format(**{key: show_value(value) for key, value in values.items()})


def show_value(value: str | float | None) -> Markup:
    """A value on a page: text escaped, a number with commas, nothing for None."""
    return Markup("") if value is None else text(value) if isinstance(value, str) else text(format_number(value))


def render(template: str, *, language: str = ENGLISH, **facts: Any) -> str:
    """The page that a template of `templates/` makes of facts.

    Given:       what the frame needs: `title`, `eyebrow` (the kind of page), `footer` (in the margin of printed pages); where there are
                 any `heading` (in place of the title), `subtitle`, `colophon` (at the end), `banner` and `mark` (a warning on the page, and
                 in short before the title and on top of every printed page), `banners` (others, each with whether it is an alarm). The rest
                 is for the template.
    Guarantees:  a pure function of its arguments. Texts are escaped; only Markup goes in as it is.
    """
    frame = dict.fromkeys(("heading", "subtitle", "banner", "mark", "banners", "colophon"))
    return _environment(language).get_template(template).render({**frame, **facts})


@cache
def _environment(language: str) -> jinja2.Environment:
    import jinja2  # tenths of a second that only those who write pages pay

    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        finalize=shown_or_as_it_is,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        auto_reload=False,
    )
    made.filters["css_string"] = css_string
    made.globals |= {"say": Say(language), "language": language, "style": Markup((TEMPLATES / "style.css").read_text(encoding="utf-8"))}
    made.globals["page_numbers"] = _css_pages(sentence(language, "page.of"))
    return made


def shown_or_as_it_is(value: Any) -> Any:
    """What Jinja2 puts on the page for an expression. Its own markup (the output of macros) and what is undefined pass through."""
    return show_value(value) if value is None or (isinstance(value, str | int | float) and not hasattr(value, "__html__")) else value


def css_string(value: str) -> Markup:
    """A string of a style sheet; no character of it can end the string or the sheet. (A space ends an escape.)"""
    escaped = "".join(c if (c.isalnum() and c.isascii()) or c in " :.,-" else f"\\{ord(c):06x} " for c in value[:100])
    return Markup(f'"{escaped}"')


def _css_pages(value: str) -> Markup:
    """ "Page {page} of {pages}" as the content of a margin box, where the browser counts."""
    pieces = re.split(r"\{(pages?)\}", value)
    return Markup(" ".join(f"counter({piece})" if at % 2 else css_string(piece) for at, piece in enumerate(pieces)))


@dataclass(frozen=True)
class PageTable:
    """A table whose first column names its rows. `numbers` are the columns that are aligned as numbers."""

    caption: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numbers: frozenset[int] = frozenset()


@dataclass(frozen=True)
class PageFigure:
    """A picture with title and caption, and the numbers it shows as a table. `name` is its id, one of a kind on the page."""

    name: str
    picture: Markup
    caption: str
    data: PageTable | None = None
    title: str = ""


@dataclass(frozen=True)
class Tile:
    """One large number: what it is, its value, what else there is to say. `exact` ones are marked apart from noisy ones."""

    label: str
    value: str
    note: str = ""
    exact: bool = False


@dataclass(frozen=True)
class PageSection:
    """A part of a page under its own heading; its figures are side by side if there is room. What is `after` them, if anything, comes
    last; a single figure is then beside the body.
    """

    name: str
    title: str
    body: Markup
    figures: tuple[PageFigure, ...] = ()
    after: Markup | None = None
