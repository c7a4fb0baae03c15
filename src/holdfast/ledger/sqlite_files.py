"""Files that SQLite reads beside a ledger, looked at before it does: it obeys what it finds there.

- A rollback journal is played back. One that names a super-journal makes SQLite remove the file of that name, wherever it is; through
  one that is a link, SQLite writes to another file.
- A write-ahead log stands in for the pages of the ledger, and files are made beside a ledger in that mode even when it is only read.

Our own ledgers have a plain rollback journal while a step is written, or after a crash, and no other file beside them. Anything else is
refused before SQLite opens the ledger.
"""

from __future__ import annotations

import os
import sqlite3
import stat
import threading
from collections import Counter
from pathlib import Path
from typing import Literal
from urllib.parse import quote

from holdfast.errors import LedgerBroken

_JOURNAL_MAGIC = bytes.fromhex("d9d505f920a163d7")
"""How a journal begins; it ends so only where it names a super-journal."""
_DATABASE_MAGIC = b"SQLite format 3\0"
_VERSIONS = slice(18, 20)
"""Where a database says how it is written and read: 1 with a rollback journal, 2 with a write-ahead log."""

_guard = threading.Lock()
_connected: Counter[tuple[int, int]] = Counter()
"""Connections of this process, by device and inode. To close any handle of a file takes away all locks of the process on it: so the header
of a ledger is read only where no connection is open."""


class _Counted(sqlite3.Connection):
    """A connection that is counted until it is closed."""

    file: tuple[int, int] | None = None

    def close(self) -> None:
        with _guard:
            super().close()
            if self.file is not None:
                _connected[self.file] -= 1
                self.file = None


def connect(path: str, mode: Literal["ro", "rw"], seconds: float) -> sqlite3.Connection:
    """Connect to the SQLite file of a ledger, once what is beside it was looked at. Transactions begin where we say.

    With "ro" SQLite writes nothing; a ledger whose last step a crash interrupted can then not be read. With "rw" it makes no new file
    where one was moved away.
    """
    with _guard:
        _check_beside(path)
        file = _file_of(path)
        if file is not None and not _connected[file]:
            _check_header(path)
        address = f"file:{quote(path)}?mode={mode}"
        made = sqlite3.connect(address, uri=True, timeout=seconds, isolation_level=None, factory=_Counted)
        if file is not None:
            made.file = file
            _connected[file] += 1
        return made


def _file_of(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None  # SQLite says what is wrong
    return found.st_dev, found.st_ino


def _check_beside(path: str) -> None:
    """Refuse a write-ahead log, and a journal that is not a plain file of its own or that names other files."""
    for name in {path, os.path.realpath(path)}:  # SQLite follows a link, and looks beside the file itself
        for ending in ("-wal", "-shm"):
            if os.path.lexists(name + ending):
                raise _refusal(path, ending, "Holdfast never makes one")
        _check_journal(path, name + "-journal")


def _check_journal(path: str, name: str) -> None:
    try:
        found = os.lstat(name)
        if not stat.S_ISREG(found.st_mode) or found.st_nlink != 1:
            raise _refusal(path, "-journal", "it is not a plain file of its own")
        tail = _bytes_at(name, os.O_NOFOLLOW, -len(_JOURNAL_MAGIC), len(_JOURNAL_MAGIC))
    except OSError:
        return  # gone: another process has finished its step; or SQLite cannot read it either
    if tail == _JOURNAL_MAGIC:
        raise _refusal(path, "-journal", "it names another file, which SQLite would remove")


def _check_header(path: str) -> None:
    """Refuse a ledger in the mode of write-ahead logs."""
    try:
        header = _bytes_at(path, 0, 0, 100)
    except OSError:
        return  # SQLite says what is wrong
    if header.startswith(_DATABASE_MAGIC) and header[_VERSIONS] != b"\1\1":
        raise LedgerBroken(
            f"The ledger {Path(path).name!r} is kept with a write-ahead log, as Holdfast never does. Find out who changed it, and restore "
            "a copy."
        )


def _bytes_at(name: str, flags: int, start: int, count: int) -> bytes:
    """Some bytes of a file; a negative start counts from its end."""
    handle = os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | flags)
    try:
        size = os.fstat(handle).st_size
        return os.pread(handle, count, max(0, size + start) if start < 0 else start)
    finally:
        os.close(handle)


def _refusal(path: str, ending: str, why: str) -> LedgerBroken:
    name = Path(path).name
    return LedgerBroken(
        f"Beside the ledger {name!r} is {name + ending!r}: {why}. Nothing was read or written. Find out who put it there, and restore a "
        "copy of the ledger."
    )
