"""Which separator and encoding a text file has. A file that does not show them is refused with the key to write.

    encoding   UTF-8, or UTF-16 with its mark at the beginning; anything else must be named
    separator  comma, semicolon, tab or bar: the one under which the first lines all have as many fields as the header, and more than one

A file that is not plain UTF-8, is compressed, or has line feeds in its header is written out once as UTF-8 into a folder that only this
user may enter, and that is gone afterwards; from there on one reader serves all.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import os
import shutil
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import BinaryIO, cast

from holdfast.errors import InvalidParameter, UnreadableInput
from holdfast.tables.session import run_guarded

SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}

TEXT_SUFFIXES = (".csv", ".tsv")

MAX_QUERY_SECONDS = 10**6

_CHUNK = 2**20
_LINES = 50
"""Lines looked at to tell the separator."""
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)

NAME_IT = 'Convert it to UTF-8, or name the encoding that it has, such as encoding = "windows-1252".'


@dataclass(frozen=True)
class Reading:
    """How a file is to be read, where the file does not tell: None leaves it to the file."""

    separator: str | None = None
    encoding: str | None = None
    sheet: str | None = None
    query_seconds: int | None = None
    """What a query of a database may take."""

    def check(self) -> None:
        """Refuse values that mean nothing."""
        if self.separator is not None and self.separator not in SEPARATORS:
            raise InvalidParameter(
                f"separator is one of {', '.join(map(repr, SEPARATORS))}. Got {self.separator!r}. Write the character between fields.",
                field="separator",
            )
        if self.encoding is not None and not is_encoding(self.encoding):
            raise InvalidParameter(
                f'There is no text encoding {self.encoding!r}. Write a name such as encoding = "windows-1252" or "iso-8859-1".',
                field="encoding",
            )
        if self.sheet is not None and not isinstance(self.sheet, str):
            raise InvalidParameter(f"sheet is the name of a sheet, a text. Got {type(self.sheet).__name__}.", field="sheet")
        seconds = self.query_seconds
        if seconds is not None and (not isinstance(seconds, int) or isinstance(seconds, bool) or not 1 <= seconds <= MAX_QUERY_SECONDS):
            raise InvalidParameter(
                f"query_seconds is a whole number from 1 to {MAX_QUERY_SECONDS}. Got {seconds!r}. Write how long the query may take.",
                field="query_seconds",
            )

    def refuse(self, source: str, *names: str) -> None:
        """Refuse settings that do not belong to this kind of source."""
        given = next((name for name in names if getattr(self, name) is not None), None)
        if given is not None:
            belongs = {"sheet": "an Excel file", "query_seconds": "a database query"}.get(given, "a text file (.csv or .tsv)")
            raise InvalidParameter(f"{given} belongs to {belongs}. The source is {source}. Leave {given} out.", field=given)


def is_encoding(name: object) -> bool:
    """Whether this names an encoding of text."""
    try:
        return isinstance(name, str) and bool(codecs.lookup(name)._is_text_encoding)
    except (LookupError, ValueError):
        return False


@contextmanager
def plain_text(path: Path, label: str, encoding: str | None) -> Iterator[Path]:
    """The file itself if it is UTF-8 and not compressed; otherwise a private copy that is."""
    compressed = path.name.lower().endswith(".gz")
    start = run_guarded(label, lambda: _first_bytes(path))
    if encoding is None and not compressed and start in _UTF_16:
        encoding = "utf-16"
    if not compressed and (encoding is None or codecs.lookup(encoding).name in ("utf-8", "utf-8-sig")):
        yield path
        return
    with _private_copy() as copy:
        with path.open("rb") as file, copy.open("wb") as out:
            opened = cast(BinaryIO, gzip.GzipFile(fileobj=file)) if compressed else file
            _transcode(opened, out, label, encoding)
        yield copy


@contextmanager
def _private_copy() -> Iterator[Path]:
    """Where a copy of the table may be written, which goes afterwards."""
    with tempfile.TemporaryDirectory(prefix="holdfast-", ignore_cleanup_errors=True) as folder:  # mode 0700
        yield Path(folder, "input.csv")


@contextmanager
def header_on_one_line(path: Path, label: str, names: Sequence[str]) -> Iterator[Path]:
    """The file itself; where names hold line feeds, a private copy without these. DuckDB takes the first line feed or carriage return of a
    file for its line end, also inside quotes, and would find no rows where lines end otherwise; new_line, with which one could tell it the
    end, does not work for CRLF in DuckDB 2.0.

    Given:  a UTF-8 file and the names of its header, which hold no carriage return: so the first line feeds of the file are theirs.
    """
    feeds = sum(name.count("\n") for name in names)
    if not feeds:
        yield path
        return
    with _private_copy() as copy:
        run_guarded(label, lambda: _copy_without_first_feeds(path, copy, feeds))
        yield copy


def _copy_without_first_feeds(path: Path, copy: Path, feeds: int) -> None:
    with path.open("rb") as file, copy.open("wb") as out:
        for line in islice(file, feeds):
            out.write(line.replace(b"\n", b"_"))
        shutil.copyfileobj(file, out, _CHUNK)


def _first_bytes(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(2)


def _transcode(file: BinaryIO, out: BinaryIO, label: str, encoding: str | None) -> None:
    line, problem = 1, ""
    decoder: codecs.IncrementalDecoder | None = None
    try:
        while True:
            chunk = file.read(_CHUNK)
            if decoder is None:
                guessed = encoding or ("utf-16" if chunk[:2] in _UTF_16 else None)
                if guessed is None:  # a compressed file of UTF-8, or of something that its reader will refuse
                    out.write(chunk)
                    shutil.copyfileobj(file, out, _CHUNK)
                    return
                encoding, decoder = guessed, codecs.getincrementaldecoder(guessed)("strict")
            text = decoder.decode(chunk, final=not chunk)
            line += text.count("\n")
            out.write(text.encode())
            if not chunk:
                return
    except (OSError, EOFError, zlib.error):
        problem = f"{label[:1].upper()}{label[1:]} cannot be unpacked: it is damaged, cut off, or no gzip file. Pack it anew."
    except UnicodeError:
        problem = f"{label[:1].upper()}{label[1:]} is not text in {encoding}, at line {line} or soon after. Write the encoding that it has."
    raise UnreadableInput(problem, field=None if "unpacked" in problem else "encoding")


def find_separator(path: Path, label: str, default: str) -> str:
    """Return the separator of a UTF-8 file; refuse, with the key to write, a file that does not show it."""
    with path.open(newline="", encoding="utf-8-sig", errors="surrogateescape") as file:
        text = file.read(_CHUNK)
        lines = list(islice(io.StringIO(text, newline=""), 10 * _LINES))
        if len(text) == _CHUNK and len(lines) > 1 and len(lines) < 10 * _LINES:
            lines.pop()  # cut off
    if lines and "\0" in lines[0]:
        raise UnreadableInput(
            f"{label[:1].upper()}{label[1:]} has NUL bytes in its first line: it is not a text file, or is UTF-16 without its mark. Give "
            'it the ending of its kind, such as .xlsx; for UTF-16 write encoding = "utf-16-le".',
            field="encoding",
        )
    found = {separator: _fields(lines, separator) for separator in SEPARATORS}
    fitting = [separator for separator, fields in found.items() if fields is not None and len(set(fields)) == 1]
    if fitting == [default]:
        return default
    if len(fitting) == 1:
        return fitting[0]
    possible = fitting or [separator for separator, fields in found.items() if fields is not None]
    if not possible or (not fitting and default in possible):
        return default  # one column, or lines of different lengths, which are told with their number
    choices = " or ".join(f"separator = {written_separator(separator)}" for separator in dict.fromkeys([*possible, default]))
    raise UnreadableInput(
        f"{label[:1].upper()}{label[1:]} does not show which character stands between its fields. Write {choices}.", field="separator"
    )


def written_separator(separator: str) -> str:
    """The separator as a run file writes it."""
    return '"\\t"' if separator == "\t" else f'"{separator}"'


def other_separator(header: str) -> str | None:
    """The line of a run file for the separator in a header that was read as one field; None where it has none."""
    return next((f"separator = {written_separator(separator)}" for separator in SEPARATORS if separator in header), None)


def _fields(lines: list[str], separator: str) -> list[int] | None:
    """How many fields the first lines have under this separator; None where the header has only one."""
    counted = []
    try:
        for row in islice(csv.reader(lines, delimiter=separator, strict=True), _LINES):
            if row:
                counted.append(len(row))
    except csv.Error:
        if not counted:
            return None
        counted.append(0)  # fits no header
    return counted if counted and counted[0] > 1 else None


def file_trouble(path: str | os.PathLike[str]) -> str | None:
    """Why there is no readable file at this path, as the rest of a sentence; None where there is one."""
    try:
        os.stat(path)
    except PermissionError:
        return "cannot be reached: a folder on the way may not be entered by this user. Ask for the permission"
    except (OSError, ValueError):  # also a name that is too long, or holds a NUL
        return "does not exist. Check the name and the folder"
    if os.path.isdir(path):
        return "is a folder. Name a file"
    if not os.path.isfile(path):
        return "is no ordinary file. Name a file"
    if not os.access(path, os.R_OK):
        return "may not be read by this user. Ask for the permission to read it"
    return None
