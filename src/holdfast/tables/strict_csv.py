"""What DuckDB lets pass in a CSV file and we do not, because a code would not stay as it is or a field would be lost.

A blank beside the quotes of a field: DuckDB drops it, and two codes become one. Empty fields after the last column: DuckDB drops them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from holdfast.tables.session import bad_line

_CHUNK = 2**22

_LONGEST_LINE = 2**24
"""In bytes; DuckDB takes none longer than 2^21."""

_END = rb"(?:\r\n|[\r\n])"


def check_csv(path: Path, label: str, fields: int, separator: str = ",") -> None:
    """Refuse a file with a line that has blanks or tabs beside quotes, or empty fields too many, with the number of the line.

    Time:  one fast pass; a slower one only where a separator ends a line or a blank stands beside a quote, which both may be legal.
    """
    mark = separator.encode()
    blanks = [blank for blank in (b" ", b"\t") if blank != mark]
    if any(_is_suspicious(chunk, mark, blanks) for chunk in _overlapping(path)):
        _check_lines(path, label, fields, mark, b"".join(blanks))


def _is_suspicious(chunk: bytes, mark: bytes, blanks: list[bytes]) -> bool:
    if mark + b"\n" in chunk or mark + b"\r" in chunk:
        return True
    if b'"' not in chunk:
        return False
    return any(pair in chunk for blank in blanks if blank in chunk for pair in (blank + b'"', b'"' + blank))


def _overlapping(path: Path) -> Iterator[bytes]:
    """The file in pieces, each led by the last byte of the one before: a pair is never cut. The end of the file counts as a line end."""
    last = b""
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            yield last + chunk
            last = chunk[-1:]
    yield last + b"\n"


def _check_lines(path: Path, label: str, fields: int, mark: bytes, blanks: bytes) -> None:
    """Every line must be as the rules want it; a line goes on inside quotes."""
    mark = re.escape(mark)
    field = rb'(?:"(?:[^"]++|"")*+"|(?![%b]*+")[^%b\r\n]*+)' % (blanks, mark)
    some_fields = re.compile(rb"%b(?:%b%b)*+%b" % (field, mark, field, _END))
    lines = re.compile(rb"(?:%b(?:%b%b){%d}%b|[\r\n])*+" % (field, mark, field, fields - 1, _END))
    feeds = returns = 0
    with path.open("rb") as file:
        rest = file.read(3).removeprefix(b"\xef\xbb\xbf")
        while True:
            chunk = file.read(_CHUNK)
            rest += chunk or b"\n"
            good = lines.match(rest)
            end = good.end() if good is not None else 0
            feeds += rest.count(b"\n", 0, end)
            returns += rest.count(b"\r", 0, end)
            rest = rest[end:]
            if (rest and not chunk) or len(rest) > _LONGEST_LINE + _CHUNK:
                raise bad_line(label, (feeds or returns) + 1, "fields" if some_fields.match(rest) else "blank")
            if not chunk:
                return
