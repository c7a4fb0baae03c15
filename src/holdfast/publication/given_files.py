"""Files of a folder that somebody else made: plain files only, none larger than it may be, and JSON that does no harm when it is read.

Nothing here waits for another process, follows a link or reads more than it was told to expect.
"""

from __future__ import annotations

import csv
import hashlib
import json
import math
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import Any

import numpy as np

from holdfast.card.parts import repeated_names

CARD = "card.json"
"""What a folder of a release has, written last."""
TABLES = "tables.json"
"""What a folder of several tables has in place of a card."""

MAX_JSON_BYTES = 2**28
MAX_JSON_DEPTH = 100
"""Real cards are less than ten deep."""
MAX_JSON_VALUES = 2**24
"""A public column of ten million cells has so many."""

SMALL_FILE = 2**24
"""Bytes that any file may have, whatever the card says of the table."""
NOT_SUCH_A_FILE = (OSError, ValueError, LookupError, TypeError, NotImplementedError, csv.Error)
"""What Arrow, the csv module and conversions of texts to numbers raise on bytes that are no table: Arrow's errors are subclasses of these.
Only reading is guarded by it; what is computed from a table that was read raises errors of ours."""
_MOST_PACKED = 1_000
"""A file that takes less of the disk than this part of its size holds next to nothing, and would be read for hours."""
FIELD_BYTES = 2**12
"""Bytes that a field of a table may take on average."""

_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
_NO_STRUCTURE = bytes(set(range(256)) - set(b"[]{},"))


class Unfit(ValueError):
    """A file that is not read. The text goes on after the name of the file: "is a link; ..."."""


def main_file(folder: Path) -> str:
    """The file that says what a folder holds: its card, or the list of several tables."""
    return TABLES if os.path.lexists(folder / TABLES) and not os.path.lexists(folder / CARD) else CARD


@contextmanager
def open_plain(path: Path) -> Iterator[BufferedReader]:
    """A plain file, open for reading. Unfit: a link, a folder, a pipe, a device, or what this user may not read."""
    try:
        _check_kind(os.lstat(path).st_mode)
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except Unfit:
        raise
    except FileNotFoundError:
        raise Unfit("is missing") from None
    except PermissionError:
        raise Unfit("may not be read by this user") from None
    except (OSError, ValueError):  # ValueError: a name with a zero byte
        raise Unfit("cannot be opened") from None
    with os.fdopen(handle, "rb") as file:
        _check_kind(os.fstat(handle).st_mode)  # of what was opened: it may be another by now
        yield file


def _check_kind(mode: int) -> None:
    if stat.S_ISLNK(mode):
        raise Unfit("is a link; a published folder holds plain files only")
    if not stat.S_ISREG(mode):
        raise Unfit("is no plain file")


def read_plain(path: Path, most: int) -> bytes:
    """The content of a plain file of at most so many bytes."""
    with open_plain(path) as file:
        try:
            data = file.read(most + 1) if os.fstat(file.fileno()).st_size <= most else None
        except OSError:
            raise Unfit("cannot be read") from None
    if data is None or len(data) > most:
        raise Unfit(f"has more than {most:,} bytes, which is more than it may have")
    return data


def check_content(path: Path, size: int, sha256: str) -> None:
    """Unfit unless the file is plain, has this size, and then this checksum."""
    with open_plain(path) as file:
        found = os.fstat(file.fileno()).st_size
        if found != size:
            raise Unfit(f"has {found} bytes instead of {size}")
    check_digest(path, size, sha256)


def check_digest(path: Path, most: int, sha256: str) -> None:
    """Unfit unless the file is plain, has at most so many bytes, and then this checksum."""
    with open_plain(path) as file:
        found = os.fstat(file.fileno())
        if found.st_size > most:
            raise Unfit(f"has more than {most:,} bytes, which is more than it may have")
        if found.st_size > SMALL_FILE and found.st_blocks * 512 * _MOST_PACKED < found.st_size:
            raise Unfit("is mostly empty: it claims far more bytes than it holds")
        try:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError:
            raise Unfit("cannot be read") from None
    if digest != sha256:
        raise Unfit("was changed (its checksum differs)")


def read_json_text(path: Path) -> str:
    """The text of a JSON file that is not too large, too deep or too full to be read."""
    data = read_plain(path, MAX_JSON_BYTES)
    check_json(data)
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise Unfit("is not UTF-8") from None


def check_json(data: bytes) -> None:
    """Unfit where a reader would need too much memory or too deep a stack. One pass over the brackets and commas outside of texts."""
    marks = np.frombuffer(_STRING.sub(b"", data).translate(None, _NO_STRUCTURE), dtype=np.uint8)
    if len(marks) > MAX_JSON_VALUES:
        raise Unfit(f"holds more than {MAX_JSON_VALUES:,} values, which is more than it may have")
    steps = np.isin(marks, list(b"[{")).astype(np.int32) - np.isin(marks, list(b"]}")).astype(np.int32)
    if len(steps) and int(np.cumsum(steps, dtype=np.int64).max()) > MAX_JSON_DEPTH:
        raise Unfit(f"is nested more than {MAX_JSON_DEPTH} deep, which is more than it may be")


def parse_json(text: str | bytes) -> Any:
    """The value of a JSON text that every program reads alike.

    Refused:     Unfit for a name given twice in one object, which programs read differently, and for NaN, Infinity or a number beyond the
                 floats, which are no JSON. ValueError or RecursionError where it is no JSON at all.
    """
    return json.loads(text, object_pairs_hook=_object, parse_float=_finite, parse_constant=_finite)


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    if repeated_names(name for name, _ in pairs):
        raise Unfit("has a name twice in one object")
    return dict(pairs)


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise Unfit("has NaN, Infinity or a number beyond the floats")
    return value


def names_in(folder: Path, most: int) -> list[str]:
    """The names in a folder, sorted; of a folder with more than `most`, only so many."""
    found = []
    with os.scandir(folder) as entries:
        for entry in entries:
            found.append(entry.name)
            if len(found) > most:
                break
    return sorted(found)


def most_bytes(rows: int, fields: int) -> int:
    """The size that a file of so many rows may have."""
    return SMALL_FILE + rows * fields * FIELD_BYTES
