"""A DuckDB of our own for one piece of work: it can open one file and nothing else, and its temporary files are private and removed.

Messages of DuckDB, Arrow and database drivers quote the data they stumble over. `run_guarded` replaces them by messages that do not, and
leaves no trace of the original behind (not even as the context of the new exception).
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from holdfast.errors import HoldfastError, UnreadableInput

T = TypeVar("T")

BATCH_ROWS = 2**18
"""Rows handled at a time: enough to keep the cost per batch small, few enough that text in flight stays below some tens of megabytes."""

_CSV_LINE = re.compile(r"\A(?:Invalid Input Error: )?CSV Error on Line: ([0-9]+)\n")

_BAD_LINES = {
    "encoding": ("is not UTF-8", 'Convert the file to UTF-8, or name the encoding that it has, such as encoding = "windows-1252".'),
    "quote": ("has a quote that does not end where the field does", "Double quotes inside quotes, and close them before the separator."),
    "blank": (
        "has a blank beside the quotes of a field, or a quote that does not end where the field does",
        "Put blanks inside the quotes where they belong to a code, and leave them out elsewhere; double quotes inside quotes.",
    ),
    "fields": ("has another number of fields than the header", "Correct that line; a field that holds the separator needs quotes."),
    "other": ("cannot be read as CSV", "Correct that line."),
}


@dataclass(frozen=True)
class Session:
    """An open connection and, where one was asked for, the name under which it may open the one file."""

    connection: Any
    file: str | None


@contextmanager
def private_session(path: Path | None = None) -> Iterator[Session]:
    """A DuckDB in memory with access to `path` alone.

    Guarantees:  other files, networks and extensions are out of reach; what does not fit in memory goes to a folder that only this user
                 may enter; that folder is gone afterwards, whatever happens short of a killed process.
    """
    import duckdb

    folder = tempfile.mkdtemp(prefix="holdfast-")  # mode 0700
    try:
        # The file is opened under a plain name: characters such as [ and * in its own would be read as a pattern.
        link = None if path is None else os.path.join(folder, "input" + path.suffix.lower())
        if link is not None and path is not None:
            os.symlink(path.absolute(), link)
        connection = duckdb.connect(":memory:", config={"temp_directory": os.path.join(folder, "spill")})
        try:
            confine(connection, [] if link is None else [link])
            yield Session(connection, link)
        finally:
            connection.close()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def confine(connection: Any, files: list[str]) -> None:
    """Close the connection to everything but these files, for good."""
    connection.execute(f"SET allowed_paths = [{', '.join(map(quote_sql, files))}]")
    connection.execute("SET autoinstall_known_extensions = false")
    connection.execute("SET autoload_known_extensions = false")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")


def arrow_batches(relation: Any) -> Any:
    """The rows of a query, batch by batch. (Until 1.4 DuckDB had another name for it, which later versions warn about.)"""
    make = getattr(relation, "to_arrow_reader", None) or relation.fetch_arrow_reader
    return make(BATCH_ROWS)


def quote_sql(text: str) -> str:
    """An SQL string."""
    return "'" + text.replace("'", "''") + "'"


def identifier(name: str) -> str:
    """An SQL name."""
    return '"' + name.replace('"', '""') + '"'


def run_guarded(label: str, work: Callable[[], T]) -> T:
    """The result of `work`; a failure that is not ours becomes an UnreadableInput that quotes nothing, or a MemoryError without text."""
    failure: Exception
    try:
        return work()
    except HoldfastError:
        raise
    except MemoryError:
        failure = MemoryError()
    except Exception as error:
        failure = _describe_error(error, label)
    raise failure  # outside the except block: the original must not hang on as its context


def guarded_batches(label: str, batches: Iterable[T]) -> Iterator[T]:
    """The same for an iterator that may fail at any step."""
    iterator = iter(batches)
    while True:
        batch = run_guarded(label, lambda: next(iterator, None))
        if batch is None:
            return
        yield batch


def _describe_error(error: Exception, label: str) -> UnreadableInput:
    """Only fixed phrases and a line number are taken from the original message."""
    if isinstance(error, PermissionError):
        return UnreadableInput(f"{label[:1].upper()}{label[1:]} may not be read by this user. Ask for the permission to read it.")
    text = str(error)
    line = _CSV_LINE.match(text)
    if line is None and "CSV Parser state machine" in text:
        return UnreadableInput(
            f"The CSV text of {label} is malformed: its line ends are mixed or a quote is misplaced. "
            "Write it anew, with one kind of line end and quotes doubled inside quotes."
        )
    if line is None:
        return guarded_error(label, type(error).__name__)
    if "not utf-8" in text:
        problem = "encoding"
    elif "unterminated quote" in text:
        problem = "quote"
    elif "Expected Number of Columns" in text:
        problem = "fields"
    else:
        problem = "other"
    return bad_line(label, int(line[1]), problem)


def guarded_error(label: str, kind: str | None = None) -> UnreadableInput:
    """The error for a failure about which nothing may be said."""
    failed = "failed" if kind is None else f"failed with {kind}"
    return UnreadableInput(
        f"Reading {label} {failed}. What was being read is confidential and left out. "
        "Check that the file is whole and of the kind its name says, or that the frame or query runs by itself."
    )


def bad_line(label: str, line: int, problem: str) -> UnreadableInput:
    """The error for a malformed line of a CSV file; `problem` is one of those listed in _BAD_LINES."""
    what, advice = _BAD_LINES[problem]
    return UnreadableInput(f"Line {line} of {label} {what} (the header counts as a line). {advice}")
