"""How objects show themselves: short texts on one line, small HTML tables of names and values, and plain values as JSON writes them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from decimal import Decimal
from difflib import get_close_matches
from fractions import Fraction
from functools import partial
from html import escape
from itertools import islice
from typing import TypeAlias, TypeVar

Json: TypeAlias = "str | int | float | bool | Sequence[Json] | Mapping[str, Json] | None"
"""A value that JSON writes, of any shape. Who reads one checks what is in it, by `read_as`."""
Kind = TypeVar("Kind", str, int, bool, list["Json"], dict[str, "Json"])

Watcher: TypeAlias = Callable[[str, int, int], None]
"""Called with (name of a step, done, in all) when the step begins, whenever it moves, and when it is over."""
_watcher: ContextVar[Watcher | None] = ContextVar("watcher", default=None)

LINE = 60
"""Characters that one name or number may take in a repr."""

_HTML_TEXT = 300
_HTML_PARAGRAPH = 20_000
_HTML_ROWS = 40


def read_as(kind: type[Kind], value: Json) -> Kind:
    """The value if it is a text, a whole number, a list, ... as `kind` says; TypeError for another one. True is not a number."""
    if not isinstance(value, kind) or isinstance(value, bool) is not (kind is bool):
        raise TypeError(f"not of the kind {kind.__name__}")
    return value


@contextmanager
def watching(watcher: Watcher | None) -> Iterator[None]:
    """Tell the watcher of every step until the end. None leaves steps to who watches them already."""
    before = _watcher.set(watcher or _watcher.get())
    try:
        yield
    finally:
        _watcher.reset(before)


@contextmanager
def step(name: str, total: int = 1) -> Iterator[Callable[[int, int], None]]:
    """Tell who watches that a step begins, and that it is over; yields what says how far it is. A total of 1 counts nothing."""
    watcher = _watcher.get()
    tell: Callable[[int, int], None] = (lambda done, in_all: None) if watcher is None else partial(watcher, name)
    tell(0, total)
    yield tell
    tell(total, total)


def printable(text: str) -> str:
    """The text on one line: what does not print is escaped, also line ends and marks that turn the direction of writing."""
    return text if text.isprintable() else "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in text)


def shorten(text: str, limit: int = LINE) -> str:
    """The text on one line and in at most `limit` characters: what does not print is escaped, and a long middle becomes "..."."""
    # A long text is cut before it is escaped, so that a million characters cost nothing; one character escapes to at most ten.
    head, tail = text[: limit + 1], text[limit + 1 :][-limit:]
    plain = printable(head + tail)
    if len(plain) <= limit:
        return plain
    end = (limit - 3) // 3
    return f"{plain[: limit - 3 - end]}...{plain[len(plain) - end :]}"


def count_of(n: int | str, noun: str, plural: str | None = None) -> str:
    """ "1 cell", "2 cells"; the number may be a text."""
    return f"{n} {noun}" if str(n) == "1" else f"{n} {plural or noun + 's'}"


def step_text(step: Fraction) -> str:
    """The step of a grid, exactly: as a short decimal (0.00001), else as p/q (1/4096)."""
    decimal = f"{Decimal(step.numerator) / Decimal(step.denominator):f}"
    ratio = str(step)
    return decimal if len(decimal) <= max(12, len(ratio)) else ratio


def list_names(names: Sequence[str], limit: int = LINE, show: Callable[[str], str] = str) -> str:
    """The names with commas between them, as many as fit in `limit` characters, and how many more there are; show=repr quotes them."""
    shown: list[str] = []
    length = 0
    for name in islice(names, limit):
        short = shorten(show(name), max(limit // 2, 8))
        if shown and length + len(short) > limit:
            break
        shown.append(short)
        length += len(short) + 2
    more = len(names) - len(shown)
    return ", ".join(shown) + (f" and {more:,} more" if more else "")


def nearest(word: str, known: Iterable[str], form: str = "{}") -> str:
    """ "Did you mean source? " or nothing."""
    plain = {name.lower(): name for name in known}
    close = get_close_matches(word.lower(), list(plain), n=1, cutoff=0.6)
    return f"Did you mean {form.format(plain[close[0]])}? " if close else ""


MOST_COMPARED = 5_000
"""Codes among which one that is misspelt is looked for."""


def nearest_code(code: str, codes: Collection[str]) -> str:
    """Advice on a code that a column does not have."""
    plain = code.lstrip("0")
    padded = next((known for known in codes if known.lstrip("0") == plain), None)
    if padded is not None:
        return f"Did you mean {padded!r}? Zeros at the front are part of a code."
    near = nearest(code, codes, "{!r}") if len(codes) <= MOST_COMPARED else ""
    return f"{near}Codes match exactly."


def split_names(text: str) -> list[str]:
    """The columns or levels that one text names, as commands take them: county:sex."""
    return [name.strip() for name in text.split(":")]


def names_in(text: str, known: Collection[str]) -> list[str]:
    """The known names that a text lists in some way, as in "county, sex" or "county x sex"; none where it does not."""
    parts = re.split(r"\s*[:,*]\s*|\s+x\s+", text.strip())
    return parts if len(parts) > 1 and all(part in known for part in parts) else []


def named_codes(codes: Iterable[tuple[str, str]]) -> str:
    """ "state=17, county=031", from pairs of column and code; two different lists of pairs never get the same text.

    What could be taken for the text between names is put in quotes, as JSON writes it: commas, "=", quotes, blanks at an end, nothing at
    all, and what does not print.
    """
    return ", ".join(f"{_unmistakable(column)}={_unmistakable(code)}" for column, code in codes)


def _unmistakable(text: str) -> str:
    plain = text.isprintable() and text == text.strip() and text != "" and not set(text) & set(',="')
    return text if plain else json.dumps(text, ensure_ascii=not text.isprintable())


def html_table(title: str, pairs: Iterable[tuple[str, object]], *, paragraphs: Collection[str] = ()) -> str:
    """An HTML table of names and values for `_repr_html_`.

    Given:       `paragraphs`: the names of values that are sentences, which must not lose their middle.
    Guarantees:  everything is escaped, values are shown as str() gives them, long ones shortened; beyond 40 rows their number only.
    """
    rows = list(pairs)
    shown = [(name, str(value)) for name, value in rows[:_HTML_ROWS]]
    if len(rows) > _HTML_ROWS:
        shown.append(("...", f"{len(rows) - _HTML_ROWS:,} more"))
    lines = "".join(
        f'<tr><th scope="row">{_cell(name)}</th><td>{_cell(value, _HTML_PARAGRAPH if name in paragraphs else _HTML_TEXT)}</td></tr>'
        for name, value in shown
    )
    return f"<table><caption>{_cell(title)}</caption><tbody>{lines}</tbody></table>"


def _cell(text: str, limit: int = _HTML_TEXT) -> str:
    return escape(shorten(text, limit))
