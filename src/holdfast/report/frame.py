"""Facts and a template make a page: one style, one frame, every text escaped.

Pages are self-contained (no script, no outside resource) and pure functions of their arguments: no clock, no host, no path, no random name.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from holdfast.exact.formatting import format_number
from holdfast.report.markup import text
from holdfast.wording.catalogue import ENGLISH, Sentences, sentence

if TYPE_CHECKING:
    import jinja2

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
