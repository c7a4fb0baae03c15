"""A first run file, with a comment for each line that an office decides, and the questions that lead to it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

from holdfast.wording.run_keys import comment_of

WHICH_COUNT = "Which column holds the counts? (none: one row is one record)"
WHICH_CELLS = "Which columns tell cells apart?"
WHICH_TOTALS = "Which totals must be exact? Columns such as county, or county:sex; total for the whole table; none"
WHOSE = "Whose privacy is promised? (person, household, firm)"
WHAT_COUNTED = "Do the numbers in {count} count {many}, each once? (yes; no: they are amounts such as income, or count something else)"
IS_PUBLIC = "Is the list of cells public, the same whatever the counts, zeros included? (yes, no)"
YES, NO = "yes", "no"
YES_OR_NO = {YES: True, "y": True, NO: False, "n": False}
NOT_COUNTS = (
    "Holdfast's tables hold counts, to which one {protected} adds a known number at most. Sums of amounts are real-valued answers, with a "
    "sensitivity that you declare: write [answer] in a run file, or use hf.answer (docs/answers.md). Where one {protected} is counted "
    "several times, say yes and write that number as max_records."
)
HOW_MUCH = "Budget for one of them: epsilon. More is more exact, and less private"
WHICH_ID = "Identifier of the release"

FEW_CODES = 12
"""Codes up to which a column gets a line for its labels."""
WIDTH = 36
"""Where comments begin."""


def run_file_text(
    schema_line: str,
    source: str,
    cells: Sequence[str],
    count: str | None,
    codes: Mapping[str, Sequence[str]],
    protect: str,
    public: bool,
    totals: Mapping[str, Sequence[str]],
    total: bool,
    margins: Sequence[Sequence[str]],
    release_id: str,
    mechanism: str,
    budget: Mapping[str, str],
    per: str,
) -> str:
    """The file. `codes` are those of each column of cells: public, or said to be checked; `totals` those named like totals."""
    lines = [
        schema_line,
        "# A run file describes one release. Go through it line by line; `holdfast plan` then shows what the release would do.",
        "",
        "[table]",
        _commented_line("table", "source", _text(source)),
    ]
    if count is not None:
        lines += [
            _commented_line("table", "cells", _texts(cells)),
            _commented_line("table", "count", _text(count)),
            _commented_line("table", "public", "true", out=not public),
            *([_commented_line("table", "totals", _inline(totals))] if totals else []),
        ]
    lines += [
        _commented_line("table", "protect", _text(protect)),
        _commented_line("table", "max_records", "1"),
        _commented_line("table", "name", '"Residents by county"', out=True),
    ]
    if count is None:
        lines += [
            *([_commented_line("table", "allow_total_names", "true", out=True)] if totals else []),
            "",
            "# The cells are all combinations of these codes, which must be public. They come from the source: add codes that nobody has,",
            "# and take out codes that nobody should know of. A long list can be in a file: county = " + _text("county-codes.csv") + ".",
            "[table.cells]",
            *(f"{_key(column)} = {_texts(codes[column])}" for column in cells),
        ]
    lines += ["", *_labels(cells, codes), "", "# What is kept is published exactly, and is not protected.", "[keep]"]
    lines += [
        _commented_line("keep", "total", "true" if total else "false"),
        _commented_line("keep", "margins", f"[{', '.join(map(_texts, margins))}]"),
        "",
        "[release]",
        _commented_line("release", "id", _text(release_id)),
        _commented_line("release", "date", '"2030-04-01"', out=True),
        _commented_line("release", "office", '"Statistical Office"', out=True),
        _commented_line("release", "approver", '"A. Chief, Director"', out=True),
        _commented_line("release", "mechanism", _text(mechanism)),
        *(_commented_line("release", key, _text(value)) for key, value in budget.items()),
        _commented_line("release", "per", _text(per)),
        _commented_line("release", "ledger", '"budget.ledger"', out=True),
    ]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _labels(cells: Sequence[str], codes: Mapping[str, Sequence[str]]) -> Iterable[str]:
    yield '# What pages call columns and codes. A codes file works too: county = {file = "counties.csv", label = "title"}'
    yield '# Where codes repeat from state to state: county = {file = "counties.csv", code = ["state", "county"], label = "title"}'
    yield "# [table.labels]"
    for column in cells:
        known = codes.get(column, ())
        given = f", codes = {{{', '.join(f'{_key(code)} = {_text(code)}' for code in known)}}}" if len(known) <= FEW_CODES else ""
        yield f"# {_key(column)} = {{name = {_text(column)}{given}}}"


def looks_like_totals(column: str, code: str) -> str:
    """A warning about rows whose counts are the sums of others. To the office alone: it follows from the counts."""
    return (
        f"In column {column!r}, each count of {code!r} is the sum of those of the other codes. If these are total rows, write "
        f"totals = {{{_key(column)} = {_text(code)}}} under [table]: counted as cells they would break the promise."
    )


def named_like_totals(column: str, codes: Sequence[str]) -> str:
    """What to do about codes of records that are named like totals: `holdfast plan` refuses them until someone decides."""
    return (
        f"Column {column!r} has codes named like totals: {', '.join(map(repr, codes))}. If such rows add up others, leave them out of the "
        "source and of [table.cells]. If they are codes like others, remove the # before allow_total_names = true. Until then "
        "the plan is refused."
    )


def written_sentences(name: str, schema: str | None, records: bool) -> str:
    """What was written, and what to do next."""
    beside = "" if schema is None else f" Editors complete it by {schema} beside it."
    codes = " Check the codes under [table.cells]: they were read from the source and must be public." if records else ""
    return f"Wrote {name}.{beside}{codes}\nNext: holdfast plan {name}"


def _commented_line(section: str, key: str, value: str, *, out: bool = False) -> str:
    """A line with what its key says behind it; `out`: commented out, for who wants it."""
    line = f"# {key} = {value}" if out else f"{key} = {value}"
    return f"{line:<{WIDTH}} # {comment_of(section, key)}"


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=not value.isprintable())


def _texts(values: Iterable[str]) -> str:
    return f"[{', '.join(map(_text, values))}]"


def _inline(totals: Mapping[str, Sequence[str]]) -> str:
    parts = (f"{_key(column)} = {_text(codes[0]) if len(codes) == 1 else _texts(codes)}" for column, codes in totals.items())
    return f"{{{', '.join(parts)}}}"


def _key(name: str) -> str:
    plain = name.isascii() and name.replace("_", "a").replace("-", "a").isalnum()
    return name if plain else _text(name)
