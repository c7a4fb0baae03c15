"""The closed list of files of a publication, and whether a folder holds exactly these: plain, not executable, with the card's checksums.

A signature or a checksum says who wrote a file, and not what it is: a script that a card lists is still a script. So a publication has the
files below and no others, whatever its card lists.

    card.json  kept.csv  exposed.csv  statement.html  report.html      always
    table.parquet  table.csv                                           one of them, or both
    view.json, and beside each table a view.parquet or view.csv        with a publication view
    map.geojson                                                        with a map

A release of several tables is a folder of publications with tables.json, which lists them.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterator
from pathlib import Path

from holdfast.card.card import Card
from holdfast.card.parts import TableSet
from holdfast.publication.given_files import (
    CARD,
    MAX_JSON_BYTES,
    TABLES,
    Unfit,
    check_content,
    check_digest,
    most_bytes,
    names_in,
    read_json_text,
)
from holdfast.publication.listings import EXPOSED_FILE, KEPT_FILE
from holdfast.publication.map_files import MAP_FILE
from holdfast.publication.view import VIEW, VIEW_FILE
from holdfast.tables.formats import FORMATS
from holdfast.wording.verification import name_phrase

PAGES = ("statement.html", "report.html")
_ALWAYS = frozenset({KEPT_FILE, EXPOSED_FILE, *PAGES})
_UNLISTED = 20
"""Names beyond those of the card at which looking through a folder ends."""
_RUNS = 0o111
"""The marks of a file that may be run."""
_RUNS_AS_OWNER = 0o6000
"""The marks of a file that runs as its owner or group."""


def file_problems(folder: Path, card: Card) -> Iterator[str]:
    """What keeps a folder from being the publication of this card and nothing more.

    Guarantees:  nothing, if its files are those of the closed list that the card lists, plain, with the sizes and checksums of the card,
                 and card.json is written as Holdfast writes it.
    """
    wanted = _expected_files(card.files.keys())
    yield from (f"the card does not list {name}" for name in sorted(wanted - card.files.keys()))
    if not _tables(card.files.keys()):
        yield "the card lists no table"
    yield from (f"the card lists {name}, which is not a file of a publication" for name in card.files if name not in wanted)
    yield from folder_problems(folder, {CARD, *card.files})
    if (problem := _card_problem(folder, card)) is not None:
        yield f"{CARD} {problem}"
    for name in (name for name in card.files if name in wanted):
        if (problem := _content_problem(folder, card, name)) is not None:
            yield problem


def set_problems(folder: Path, listed: TableSet, *, whole: bool) -> Iterator[str]:
    """What keeps a folder from being these tables and nothing more; with `whole` the files of each are looked at too."""
    names = [table.name for table in listed.tables]
    if len(set(names)) < len(names):
        yield "two tables share a name"
    if len({table.card for table in listed.tables}) < len(names):
        yield "two tables share a card"
    yield from folder_problems(folder, {TABLES, *names})
    try:
        if read_json_text(folder / TABLES) != listed.to_json():
            yield f"{TABLES} is not written as Holdfast writes it"
    except Unfit as unfit:
        yield f"{TABLES} {unfit}"
    for table in listed.tables:
        place = folder / table.name
        try:
            if not stat.S_ISDIR(os.lstat(place).st_mode):
                raise Unfit("is no folder")
            check_digest(place / CARD, MAX_JSON_BYTES, table.card)
            if whole:
                yield from file_problems(place, Card.from_json(read_json_text(place / CARD)))
        except FileNotFoundError:
            yield f"{table.name} is missing"
        except Unfit as unfit:
            yield f"{table.name} {unfit}"


def folder_problems(folder: Path, listed: Collection[str]) -> Iterator[str]:
    """Names in a folder that are not among these, and files that are marked as programs.

    Where all files of the folder may be run it says nothing of that: file systems without such marks show every file with them. None shows
    the marks of a file that runs as its owner or group, so these are always told.
    """
    try:
        names = names_in(folder, len(listed) + _UNLISTED)
        modes = {name: os.lstat(folder / name).st_mode for name in names}
    except OSError:
        yield "it cannot be listed by this user"
        return
    yield from (f"{name_phrase(name)} is there but not on the card" for name in names if name not in listed)
    marked = [name for name in names if stat.S_ISREG(modes[name]) and modes[name] & (_RUNS | _RUNS_AS_OWNER)]
    told = marked if len(marked) < len(names) else [name for name in marked if modes[name] & _RUNS_AS_OWNER]
    yield from (f"{name_phrase(name)} is marked as a program; use chmod a-xs on it" for name in told)


def _tables(listed: Collection[str]) -> list[str]:
    """The endings of the tables that a card lists."""
    return [form.suffix for form in FORMATS.values() if f"table{form.suffix}" in listed]


def _expected_files(listed: Collection[str]) -> set[str]:
    """The files that a publication has beside its card, given those that the card lists: whether it has a view and a map is free."""
    suffixes = _tables(listed)
    view = {VIEW_FILE, *(f"{VIEW}{suffix}" for suffix in suffixes)}
    return {*_ALWAYS, *(f"table{suffix}" for suffix in suffixes), *(view if view & set(listed) else ()), *({MAP_FILE} & set(listed))}


def _card_problem(folder: Path, card: Card) -> str | None:
    """Blanks, an order of names or another way to write a number can carry a message, and no signature covers them."""
    try:
        return None if read_json_text(folder / CARD) == card.to_json() else "is not written as Holdfast writes it"
    except Unfit as unfit:
        return str(unfit)


def _content_problem(folder: Path, card: Card, name: str) -> str | None:
    info, rows = card.files[name], card.kept.totals if name == KEPT_FILE else card.table.cells
    if info.bytes > most_bytes(rows, len(card.table.columns) + 3):
        return f"the card says {info.bytes} bytes for {name}, more than its {rows} rows can have"
    try:
        check_content(folder / name, info.bytes, info.sha256)
    except Unfit as unfit:
        return f"{name} {unfit}"
    return None
