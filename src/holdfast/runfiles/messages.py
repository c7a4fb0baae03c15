"""What is wrong with a run file, and where: reading TOML, finding the line of a key, and one clear sentence for each kind of mistake.

Messages hold public things only. What stands under `source` and `query` is never shown, nor any text that looks like a URL or a
connection string: it may hold a password. Values of unknown keys are not shown either.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime, time
from typing import TYPE_CHECKING, NoReturn, TypeAlias

from holdfast.display import nearest, split_names
from holdfast.mechanisms.keys import GOT, FloatText, InvalidKey

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

Place: TypeAlias = tuple[str | int, ...]
"""Where a value stands: ("keep", "margins", 0)."""

EXAMPLES = {
    "table": '[table], with source = "counties.csv" and what follows it',
    "table.source": 'source = "counties.csv"',
    "table.query": 'query = "SELECT state, county, population FROM counties"',
    "table.separator": 'separator = ";"',
    "table.encoding": 'encoding = "windows-1252"',
    "table.sheet": 'sheet = "Data"',
    "table.query_seconds": "query_seconds = 7200",
    "table.cells": 'cells = ["state", "county"], or for records cells = {sex = ["F", "M"]}',
    "table.count": 'count = "population"',
    "table.cell_key": 'cell_key = "ckey"',
    "table.public_columns": 'public_columns = ["facilities"]',
    "table.universe": 'universe = "observed", or a file that lists the cells: universe = "cells.csv"; codes stand under [table.cells]',
    "table.public": "public = true",
    "table.allow_similar_codes": "allow_similar_codes = true",
    "table.totals": 'totals = {sex = "_T"}',
    "table.allow_total_names": "allow_total_names = true",
    "table.protect": 'protect = "person"',
    "table.max_records": "max_records = 1",
    "table.id": 'id = "person_number"',
    "table.over": 'over = "sample"',
    "table.sample_key": 'sample_key = "sample.key"',
    "table.sample_by": 'sample_by = ["visit"]',
    "table.record_key": 'record_key = "rkey"',
    "table.name": 'name = "Population by county"',
    "table.hierarchies": "hierarchies = {county = {prefixes = [2]}}",
    "answer.source": 'source = "answers.csv"',
    "answer.cells": 'cells = ["group"]',
    "answer.value": 'value = "rate"',
    "answer.sensitivity": 'sensitivity = "1"',
    "answer.step": 'step = "0.01"',
    "answer.on_grid": "on_grid = true",
    "answer.round_totals": "round_totals = true",
    "keep": "[keep], and leave it empty if no total is to be kept",
    "keep.total": "total = true",
    "keep.margins": 'margins = [["state"], ["county", "sex"]]',
    "keep.subsets": 'subsets = [{column = "age", codes = ["85+"], by = ["county"]}, {where = "age >= 18"}]',
    "keep.areas": 'areas = [{column = "block", sets = {Springfield = ["0101", "0102"]}}]',
    "keep.linear": "linear = [{matrix = [[1, 1, 0]]}]",
    "keep.identities": 'identities = {subsets = [{where = "age < 15 and married = 1", by = ["age"]}]}',
    "release": '[release], with id = "counties-2030-v1" and mechanism = "generalized-laplace"',
    "release.id": 'id = "counties-2030-v1"',
    "release.date": 'date = "2030-04-01"',
    "release.office": 'office = "Statistical Office"',
    "release.approver": 'approver = "A. Chief, Director"',
    "release.mechanism": 'mechanism = "generalized-laplace"',
    "release.per": 'per = "person" or per = "distance"',
    "release.allow_exposed": "allow_exposed = 0, or the number that plan shows",
    "release.formats": 'formats = ["parquet", "csv"]',
    "release.formulas": 'formulas = "mark"',
    "release.view_base": "view_base = 1",
    "release.map": 'map = "counties.geojson"',
    "release.map_code": 'map_code = "GEOID"',
    "release.map_level": 'map_level = "county"',
    "release.sign": 'sign = "office-key.pem"',
    "release.disjoint": 'disjoint = {from = ["north-2030"], because = "no one is registered in both regions"}',
    "release.disjoint.from": 'from = ["north-2030"]',
    "release.disjoint.because": 'because = "no one is registered in both regions"',
}
"""What to write, by field; a field within one of these shares its example."""

OTHER_SPELLINGS = {
    "table.unit": "protect",
    "table.person": "id",
    "table.columns": "cells",
    "table.codes": "cells",
    "table.file": "source",
    "table.url": "source",
    "keep.totals": "total = true, or totals under [table]",
    "release.budget": "epsilon",
    "release.name": "id",
    "release.bounds": 'lower and upper, of mechanism = "conditional"',
}
"""Words that people try, too far from the right one for its spelling to tell."""

_TELLING = re.compile(r"[:@=\r\n]|password", re.IGNORECASE)
"""Found in a text that names no file: it may be a URL or connection string gone wrong."""

_SECRET = re.compile(r"://|@|passw|pwd|secret", re.IGNORECASE)
"""Found in a value or key: it is not shown."""

_HIDDEN_FIELDS = ("table.source", "table.query")
_LONGEST = 60


class Problem(Exception):
    """Something wrong at a place in the run file; only `load_run` sees it, and raises InvalidRun in its stead."""

    def __init__(self, place: Place, text: str, line: int | None = None, beside: Place | None = None) -> None:
        super().__init__(text)
        self.place = place
        self.text = text
        self.line = line
        self.beside = beside
        """Where the line is named if the place itself is not in the file: what asks for it."""

    def message(self, file: str, toml: str) -> str:
        """File, line where it can be found, field, what is wrong, what to do."""
        lines = key_lines(toml)
        at = self.place if self.place in lines or self.beside is None else self.beside
        line = line_of(lines, at) if self.line is None and self.place else self.line
        parts = [file, *([f"line {line}"] if line is not None else []), *([dotted_path(self.place)] if self.place else [])]
        return f"{', '.join(parts)}: {self.text}"


def read_toml(file: str) -> str:
    """The text of a run file."""
    try:
        with open(file, "rb") as stream:
            return stream.read().decode("utf-8-sig")
    except FileNotFoundError:
        problem = "the run file does not exist. Check the name and the folder."
    except IsADirectoryError:
        problem = "this is a folder. Name the run file in it."
    except UnicodeDecodeError:
        problem = "the run file is not UTF-8. Save it as UTF-8."
    except (OSError, ValueError):
        problem = "the run file cannot be opened. Check the name, the folder and the rights."
    raise Problem((), problem)


_ENDLESS_KEY = re.compile(r"""(?<![\w"'-])(?:[\w"'-]++\s*+\.\s*+){100}""")
"""A key of a hundred parts: reading takes time by the square of their number."""


_ANY_ADVICE = "Put texts in double quotes, lists in brackets; yes is true."
_TOML_ADVICE = (
    (r"\ACannot (overwrite|declare|mutate)", "The key or section is there twice: leave one out."),
    ("[\u201c\u201d\u201e\u2018\u2019\u00ab\u00bb]", 'The line has curly quotes: write straight ones, ".'),
    (r"\AIllegal character '\\n'", "A closing quote is missing."),
    (r"\\", "Write paths with /, or in single quotes."),
    (r"\AUnclosed array", "A comma between two items, or the bracket at the end, is missing."),
)
"""(a pattern found in the reason or in the line; what to do)."""


def parse_toml(text: str) -> dict[str, object]:
    """The document, with floats as FloatText."""
    try:
        if _ENDLESS_KEY.search(text):
            raise tomllib.TOMLDecodeError("Nested too deep")
        return tomllib.loads(text, parse_float=FloatText)
    except tomllib.TOMLDecodeError as error:
        told = str(error)
    except RecursionError:
        told = "Nested too deep"
    except ValueError:  # a whole number of more digits than Python reads
        told = "Invalid value"
    where = re.search(r" \(at (?:line (\d+), column (\d+)|end of document)\)$", told)
    reason = told[: where.start()] if where else told
    line = int(where[1]) if where and where[1] else None
    column = f" at column {where[2]}" if where and where[2] else " at the end of the file" if where else ""
    at = text.split("\n")[line - 1] if line else ""
    advice = next((told for pattern, told in _TOML_ADVICE if re.search(pattern, f"{reason}\n{at}")), _ANY_ADVICE)
    raise Problem((), f"this is not TOML: {reason[:1].lower()}{reason[1:]}{column}. {advice}", line)


def dotted_path(place: Place) -> str:
    """keep.margins[0]"""
    text = ""
    for part in place:
        text += f"[{part}]" if isinstance(part, int) else f".{_key(part)}" if text else _key(part)
    return text


def show_found(value: object, place: Place = ()) -> str:
    """What was found, as it may be shown."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, FloatText):
        return f"the float {value.text}"
    if isinstance(value, int):
        return f"the whole number {value}" if abs(value) < 10**_LONGEST else "a very long whole number"
    if isinstance(value, str):
        if dotted_path(place[:2]) in _HIDDEN_FIELDS or _SECRET.search(value):
            return "a text (left out here, since it may hold a password)"
        return quote(value)
    if isinstance(value, Mapping):
        return "a table"
    if isinstance(value, list | tuple):
        return "an empty list" if not value else "a list"
    if isinstance(value, datetime | date | time):
        return f"the {'date' if type(value) is date else 'time'} {value.isoformat()}"
    return "nothing"


def quote(text: str) -> str:
    """Return a text as TOML writes it, shortened."""
    shown = text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."
    return "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in json.dumps(shown, ensure_ascii=False))


def file_label(path: str) -> str:
    """What a message calls a file: its name, without its folder; nothing where the text may hold more than a path."""
    return "the text given, left out here since it may hold a password," if _TELLING.search(path) else f"file {os.path.basename(path)!r}"


def example(place: Place) -> str:
    """What to write at this place, or nothing."""
    names = [part for part in place if isinstance(part, str)]
    field = next((".".join(names[:end]) for end in range(len(names), 0, -1) if ".".join(names[:end]) in EXAMPLES), None)
    return f" Write {EXAMPLES[field]}." if field is not None and (field.count(".") or len(names) == 1) else ""


def unknown_key(place: Place, known: Sequence[str], sections: Mapping[str, Sequence[str]]) -> str:
    """The message for a key or section that does not exist."""
    word = str(place[-1])
    if len(place) == 1:
        home = next((section for section, keys in sections.items() if word in keys), None)
        advice = f"{word} stands in [{home}]: move it below that line. " if home else nearest(word, known, "[{}]")
        return f"there is no such section. {advice}Sections: {', '.join(f'[{name}]' for name in known)}."
    other = OTHER_SPELLINGS.get(dotted_path(place))
    homes = [f"[{section}]" for section, keys in sections.items() if word in keys and len(place) == 2]
    advice = f"Did you mean {other}? " if other else nearest(word, known)
    advice = f"It belongs to {' or '.join(homes)}: move it there. " if homes and not other else advice
    told = "" if other or homes else f"Keys of {dotted_path(place[:-1])}: {', '.join(known)}."
    return f"there is no such key. {advice}{told}".rstrip()


_MUST_BE = {
    "string_type": "must be a text in double quotes",
    "int_type": "must be a whole number",
    "bool_type": "must be true or false",
    "list_type": "must be a list",
    "dict_type": "must be a table",
    "model_type": "must be a table",
    "too_short": "must not be empty",
    "greater_than_equal": "is too small",
    "less_than_equal": "is too large",
}


_UNQUOTED = {"int_type": re.compile(r"[1-9][0-9]{0,17}|0"), "bool_type": re.compile("true|false")}
"""Texts that are a number or a word once their quotes are gone."""


def explain(
    errors: Sequence[ErrorDetails], keys_at: Callable[[Place], Sequence[str]], sections: Mapping[str, Sequence[str]], toml: str
) -> Problem:
    """Choose the problem to report among those Pydantic found: a misspelt key before what it leaves missing, then the first in the file."""
    lines = key_lines(toml)
    first = min(errors, key=lambda error: (error["type"] != "extra_forbidden", line_of(lines, error["loc"]) or 0))
    place, kind, value = tuple(first["loc"]), first["type"], first["input"]
    if kind == "run":
        return Problem((*place, *first["ctx"]["below"]), first["ctx"]["text"])
    if kind == "extra_forbidden":
        return Problem(place, unknown_key(place, keys_at(place[:-1]), sections))
    if kind == "missing":
        return Problem(place, f"this {'section' if len(place) == 1 else 'key'} is missing.{example(place)}")
    if kind == "literal_error":
        return Problem(place, not_one_of(value, re.findall(r"'([^']*)'", first["ctx"]["expected"])))
    unquoted = _UNQUOTED.get(kind)
    quoted = isinstance(value, str) and unquoted is not None and unquoted.fullmatch(value.strip())
    advice = f" Write {place[-1]} = {str(value).strip()}, without quotes." if quoted else example(place)
    if kind == "list_type" and place[:2] == ("keep", "margins") and isinstance(value, str) and not _SECRET.search(value):
        advice = f" Write margins = [[{', '.join(map(quote, split_names(value)))}]]."
    return Problem(place, f"{_MUST_BE.get(kind, 'cannot be used')}. Got {show_found(value, place)}.{advice}")


def not_one_of(value: object, choices: Sequence[str]) -> str:
    """The message for a word that is not one of the choices."""
    return f"must be one of {', '.join(map(quote, choices))}. Got {show_found(value)}. {_close(value, choices)}".rstrip()


def of_key(error: InvalidKey, raw: object) -> Problem:
    """The problem that a mechanism found with one of its keys; `raw` is its value in the file."""
    text = f"{error.message.replace(GOT, show_found(raw))} {_close(raw, error.choices)}".rstrip()
    return Problem(("release", error.key), text, beside=("release", "mechanism"))


def _close(value: object, choices: Sequence[str]) -> str:
    """ "Did you mean ...?": the choices of which the text is one word, such as laplace; else the one spelt most like it."""
    if not isinstance(value, str):
        return ""
    having = [choice for choice in choices if value.lower() in choice.split("-")]
    return f"Did you mean {' or '.join(having)}?" if having else nearest(value, choices)


def line_of(lines: Mapping[Place, int], place: Place) -> int | None:
    """The line of the key at this place, or of the nearest thing around it that has one."""
    return next((lines[place[:end]] for end in range(len(place), 0, -1) if place[:end] in lines), None)


def key_lines(toml: str) -> dict[Place, int]:
    """The line on which each section, key and list item of a valid TOML text stands; tomllib itself does not tell."""
    lines: dict[Place, int] = {}
    with suppress(RecursionError, StopIteration):  # what was found up to there serves
        _Scanner(toml, lines).scan()
    return lines


_TOKEN = re.compile(
    r"""(?P<skip>[ \t\r]+|\#[^\n]*)
    |(?P<text>\"{3}(?:\\.|[^\\])*?\"{3,5}|'{3}.*?'{3,5}|"(?:\\.|[^"\\\n])*"|'[^'\n]*')
    |(?P<mark>[\[\]{},=.\n])
    |(?P<word>[^\s\[\]{},=.\#"']+)""",
    re.DOTALL | re.VERBOSE,
)


class _Scanner:
    """Walks over valid TOML and notes where things stand. It decides nothing: values come from tomllib."""

    def __init__(self, toml: str, lines: dict[Place, int]) -> None:
        self._lines = lines
        self._tokens = _tokens(toml)
        self._sizes: dict[Place, int] = {}
        self._token, self._line = next(self._tokens, ("", 1))

    def scan(self) -> None:
        base: Place = ()
        while self._token:
            if self._token == "\n":
                self._advance()
            elif self._token == "[":
                base = self._header()
            else:
                self._pair(base)

    def _advance(self) -> str:
        token = self._token
        self._token, self._line = next(self._tokens, ("", self._line))
        return token

    def _header(self) -> Place:
        line = self._line
        self._advance()
        of_many = self._token == "["
        if of_many:
            self._advance()
        place: Place = ()
        for key in self._keys():
            place = self._within((*place, key))
        if of_many:
            # `_within` has gone into the last of the items already listed, if there is one.
            whole = place[:-1] if place and isinstance(place[-1], int) else place
            self._sizes[whole] = self._sizes.get(whole, 0) + 1
            self._lines.setdefault(whole, line)
            place = (*whole, self._sizes[whole] - 1)
        while self._token == "]":
            self._advance()
        self._note(place, line)
        return place

    def _within(self, place: Place) -> Place:
        return (*place, self._sizes[place] - 1) if place in self._sizes else place

    def _keys(self) -> list[str]:
        keys = [_unquote(self._advance())]
        while self._token == ".":
            self._advance()
            keys.append(_unquote(self._advance()))
        return keys

    def _pair(self, base: Place) -> None:
        line = self._line
        place = (*base, *self._keys())
        self._note(place, line)
        if self._token != "=":
            raise StopIteration
        self._advance()
        self._value(place)

    def _note(self, place: Place, line: int) -> None:
        for end in range(1, len(place) + 1):
            self._lines.setdefault(place[:end], line)

    def _value(self, place: Place) -> None:
        self._lines.setdefault(place, self._line)
        if self._token == "[":
            self._items(place, "]")
        elif self._token == "{":
            self._items(place, "}")
        else:
            while self._token not in ("", "\n", ",", "]", "}"):
                self._advance()

    def _items(self, place: Place, end: str) -> None:
        self._advance()
        number = 0
        while self._token not in ("", end):
            if self._token in ("\n", ",", "]", "}"):  # also the end of something else
                self._advance()
            elif end == "}":
                self._pair(place)
            else:
                self._value((*place, number))
                number += 1
        self._advance()


def _tokens(toml: str) -> Iterator[tuple[str, int]]:
    place, line = 0, 1
    while place < len(toml):
        match = _TOKEN.match(toml, place)
        if match is None:
            return
        if match.lastgroup != "skip":
            yield match[0], line
        line += match[0].count("\n")
        place = match.end()


def _unquote(token: str) -> str:
    if token[:1] in ("'", '"'):
        return str(tomllib.loads(f"k = {token}")["k"])
    return token


def _key(part: str) -> str:
    return part if re.fullmatch(r"[A-Za-z0-9_-]{1,60}", part) else '"..."' if _SECRET.search(part) else quote(part)


def refuse(text: str, *below: str) -> NoReturn:
    """Inside a Pydantic validator: this text is the message; `below` are the keys that lead from the field to what is wrong."""
    from pydantic_core import PydanticCustomError

    raise PydanticCustomError("run", "{text}", {"text": text, "below": below})
