"""Database URLs with a query: SQLite and PostgreSQL through SQLAlchemy, DuckDB files directly.

Messages name the kind of database only: a URL holds users, passwords, hosts and paths, and a driver's message may quote any of them.

A query only reads, and not for ever. SQLite opens its file read-only and refuses statements that reach another one (ATTACH, VACUUM INTO);
DuckDB reaches no other file; PostgreSQL reads in a transaction that may not write, and looks up no name where others may
create. What takes longer than its limit is ended.
"""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import quote

from holdfast.errors import HoldfastError, InvalidParameter, UnreadableInput
from holdfast.tables.postgres import look_up_names, open_engine
from holdfast.tables.session import BATCH_ROWS, arrow_batches, confine, guarded_error, identifier, run_guarded
from holdfast.tables.text_files import file_trouble

_URL = re.compile(r"\A([A-Za-z][A-Za-z0-9.-]*)(\+[A-Za-z0-9_]+)?://")

SCHEMES = ("sqlite", "postgresql", "duckdb")

_READ_ONLY: dict[str, dict[str, bool]] = {"postgresql": {"postgresql_readonly": True}}
"""Options of a transaction that may not write; SQLite files are opened for reading only instead."""


QUERY_SECONDS = 3600
"""What a query may take, unless the office says otherwise."""
_LOOK_AGAIN = 0.2
"""Seconds between attempts to cancel a query that has timed out."""
_STEPS = 10_000
"""Instructions of SQLite after which it looks at the time, and Python at Ctrl-C."""

_READING = (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE)
_OF_THE_FILE = (sqlite3.SQLITE_INSERT, sqlite3.SQLITE_UPDATE, sqlite3.SQLITE_DELETE)
"""Virtual tables prepare these when they are opened. The file itself is open for reading only."""
_HARMLESS_PRAGMAS = ("table_info", "table_xinfo", "table_list", "data_version")

_NOT_FOUND = ("42P01", "42883", "42704")
"""PostgreSQL's codes for tables, functions or operators, and types that it does not find."""

_OF_THE_STATEMENT = ("ParserException", "SyntaxException", "CatalogException", "BinderException")
"""Errors of DuckDB that describe the statement and nothing it touches."""


def is_url(data: Any) -> bool:
    """Whether this is meant as a URL rather than as a path."""
    return isinstance(data, str) and _URL.match(data) is not None


@contextmanager
def open_query(
    url: str, query: str | None, only: Sequence[str] | None = None, seconds: float | None = None
) -> Iterator[tuple[str, tuple[str, ...], Any]]:
    """What messages call the answer, the names of its columns, and the answer as an Arrow record batch reader. Nothing is written to the
    database.

    `only`:  of the answer these columns alone are asked of the database, where the statement can stand in a FROM clause.
    `seconds`:  what the query may take, until its last row is read; None is QUERY_SECONDS.
    """
    match = _URL.match(url)
    assert match is not None
    scheme = match[1].lower()
    if scheme not in SCHEMES:
        raise UnreadableInput(f"Databases of kind {scheme!r} cannot be read. Use one of {', '.join(SCHEMES)}, or give a file or a frame.")
    if not isinstance(query, str) or not query.strip():
        raise InvalidParameter(
            f"A database URL needs a query. Got {type(query).__name__}. Write a SELECT statement as query.", field="query"
        )
    label = f"the {scheme} query"
    with _limit_time(QUERY_SECONDS if seconds is None else seconds, label) as limit:
        opened = _open_duckdb(url, label, limit) if scheme == "duckdb" else _open_sqlalchemy(url, label, scheme, limit)
        with opened as run:
            names, reader = _answer(_in_time(run, limit), query, only, label)
            yield label, names, reader


class _Limit:
    """The time that a query has. `stop` ends what the database is doing; the database that was opened sets it."""

    def __init__(self, seconds: float, label: str) -> None:
        self.seconds, self.label = seconds, label
        self.stop: Callable[[], object] = lambda: None
        self._over = threading.Event()

    @property
    def is_over(self) -> Callable[[], bool]:
        return self._over.is_set

    def watch(self, left: threading.Event) -> None:
        """Until `left` is set. What is over its time is stopped again and again: it may have been between two fetches of rows."""
        if left.wait(self.seconds):
            return
        self._over.set()
        while True:
            with suppress(Exception):
                self.stop()
            if left.wait(_LOOK_AGAIN):
                return

    def error(self) -> UnreadableInput:
        return UnreadableInput(
            f"{self.label.capitalize()} took longer than {self.seconds:,g} seconds and was ended. Make it faster, or allow it more time, "
            f"such as query_seconds = {max(2 * QUERY_SECONDS, 2 * int(self.seconds))}.",
            field="query_seconds",
        )


@contextmanager
def _limit_time(seconds: float, label: str) -> Iterator[_Limit]:
    """A clock beside the query, in a thread of its own."""
    limit, left = _Limit(seconds, label), threading.Event()
    clock = threading.Thread(target=limit.watch, args=(left,), daemon=True)
    clock.start()
    try:
        yield limit
    finally:
        left.set()
        clock.join()


def _in_time(run: Run, limit: _Limit) -> Run:
    """The same, with one error for whatever a database says when it is stopped."""

    def run_in_time(work: Callable[[], Any]) -> Any:
        try:
            made = work()
        except Exception:
            if not limit.is_over():
                raise
        if limit.is_over():
            raise limit.error()  # outside the block: what the database said does not hang on
        return made

    def batches(reader: Any) -> Iterator[Any]:
        while (batch := run_in_time(lambda: next(reader, None))) is not None:
            yield batch

    def rows(make: Callable[[], Any]) -> Any:
        import pyarrow as pa

        reader = run_in_time(make)
        return pa.RecordBatchReader.from_batches(reader.schema, batches(reader))

    def run_timed(query: str) -> tuple[tuple[str, ...], Callable[[], Any]]:
        names, make = run_in_time(lambda: run(query))
        return names, lambda: rows(make)

    return run_timed


Run: TypeAlias = Callable[[str], tuple[tuple[str, ...], Callable[[], Any]]]
"""Prepares a statement: the names of its columns, and a function that gives its rows as a reader."""


def _answer(run: Run, query: str, only: Sequence[str] | None, label: str) -> tuple[tuple[str, ...], Any]:
    """The names of all columns, and the rows: of the columns in `only`, if these are there and the database can leave the others out."""
    if only is not None:
        inner = f"(\n{query.rstrip().removesuffix(';')}\n) AS holdfast_source"
        try:
            names, _ = run(f"SELECT * FROM {inner} LIMIT 0")
            if all(names.count(name) == 1 for name in only):
                _, rows = run(f"SELECT {', '.join(map(identifier, only))} FROM {inner}")
                return names, run_guarded(label, rows)
        except Exception:  # a statement that cannot stand there, or a wrong one: what is wrong is told of the statement itself
            names = ()
    names, rows = _prepare_query(run, query, label)
    return names, run_guarded(label, rows)


def _prepare_query(run: Run, query: str, label: str) -> tuple[tuple[str, ...], Callable[[], Any]]:
    """As `run`; a statement that the database does not understand is refused in the database's own words."""
    try:
        return run(query)
    except HoldfastError:
        raise
    except Exception:
        complaint = _complaint(run, query)
    if complaint is None:
        raise guarded_error(label)
    raise UnreadableInput(
        f"The statement given as query is wrong. The {label.split()[1]} database says: {complaint}. Correct the statement.", field="query"
    )


def _complaint(run: Run, query: str) -> str | None:
    """What the database says of the statement. Only of one that it cannot even explain: then no row was read, and the text quotes nothing
    but the statement and names of the database.
    """
    try:
        run(f"EXPLAIN {query}")
        return None
    except Exception as again:
        if type(again).__module__.endswith("duckdb") and type(again).__name__ not in _OF_THE_STATEMENT:
            return None
        told = str(getattr(again, "orig", None) or again)
    lines = [line.strip() for line in told.splitlines() if line.strip()]
    kept = [line.rstrip(".!") for line in lines if not re.match(r"LINE [0-9]+:|\^|\[SQL|\(Background", line)]
    return re.sub(r"'[^']*/[^']*'|\"[^\"]*/[^\"]*\"", "...", "; ".join(kept[:2]))[:300] or None  # without paths


@contextmanager
def _open_duckdb(url: str, label: str, limit: _Limit) -> Iterator[Run]:
    import duckdb

    path = Path(url.split("://", 1)[1].removeprefix("/"))
    _check_file(path, label)
    file = os.path.abspath(path)  # a name such as md:x is else a service on the network, and pg:x a database to connect to
    folder = tempfile.mkdtemp(prefix="holdfast-")
    try:
        connection = run_guarded(label, lambda: duckdb.connect(file, read_only=True, config={"temp_directory": f"{folder}/spill"}))
        try:
            confine(connection, [])
            limit.stop = connection.interrupt

            def run(query: str) -> tuple[tuple[str, ...], Callable[[], Any]]:
                relation = connection.sql(query)
                if relation is None:
                    raise UnreadableInput(f"{label.capitalize()} returns no rows of any kind. Write a SELECT.", field="query")
                return tuple(relation.columns), lambda: arrow_batches(relation)

            yield run
        finally:
            connection.close()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _open_sqlalchemy(url: str, label: str, scheme: str, limit: _Limit) -> Iterator[Run]:
    engine = _engine(url, label, scheme)
    try:
        connection = _connect(engine, label, scheme)
        try:
            refused = _guard(connection.connection.driver_connection, scheme, limit)
            left_out = run_guarded(label, lambda: look_up_names(connection)) if scheme == "postgresql" else ()
            # Without parameters, so that a colon or a per cent sign in the query means what it means to the database.
            streaming = connection.execution_options(stream_results=True, no_parameters=True, **_READ_ONLY.get(scheme, {}))

            def run(query: str) -> tuple[tuple[str, ...], Callable[[], Any]]:
                result = None
                try:
                    # PostgreSQL streams through a cursor, which takes no EXPLAIN.
                    options = {"stream_results": False} if query.startswith("EXPLAIN ") else {}
                    result = streaming.exec_driver_sql(query, execution_options=options)
                except Exception as error:
                    connection.rollback()  # PostgreSQL takes nothing more in a failed transaction
                    hidden = bool(left_out) and getattr(getattr(error, "orig", None), "sqlstate", None) in _NOT_FOUND
                    if not refused and not hidden:
                        raise
                if result is None and hidden:
                    raise _not_looked_up(label, left_out)
                if result is None:
                    raise UnreadableInput(
                        f"{label.capitalize()} would do more than read its database: write, or open another file. Write one SELECT.",
                        field="query",
                    )
                if not result.returns_rows:
                    raise UnreadableInput(f"{label.capitalize()} returns no rows of any kind. Write a SELECT.", field="query")
                names = tuple(result.keys())
                return names, lambda: _reader(names, result.partitions(BATCH_ROWS), label)

            yield run
        finally:
            connection.close()  # without a commit
    finally:
        engine.dispose()


def _not_looked_up(label: str, schemas: Sequence[str]) -> UnreadableInput:
    names = ", ".join(f"{name[:60]!a}" for name in schemas[:5])
    return UnreadableInput(
        f"{label.capitalize()} names a table, function or type that was not found. Names are not looked up in {names}, where other "
        "roles may create: what they define could run with your rights. Write the schema before the name, such as public.towns, or have "
        "that right revoked (REVOKE CREATE ON SCHEMA ... FROM PUBLIC).",
        field="query",
    )


def _guard(raw: Any, scheme: str, limit: _Limit) -> list[int]:
    """Set up a connection that only reads, and not for ever. Actions that were refused are noted in the list (SQLite alone)."""
    refused: list[int] = []
    if scheme != "sqlite":
        limit.stop = raw.cancel
        return refused

    def authorize(action: int, first: str | None, second: str | None, *_: str | None) -> int:
        if action == sqlite3.SQLITE_PRAGMA:
            harmless = first in _HARMLESS_PRAGMAS
        else:
            harmless = action in (*_READING, *_OF_THE_FILE) and (action, second) != (sqlite3.SQLITE_FUNCTION, "load_extension")
        if not harmless:
            refused.append(action)
        return sqlite3.SQLITE_OK if harmless else sqlite3.SQLITE_DENY

    raw.set_authorizer(authorize)
    raw.set_progress_handler(limit.is_over, _STEPS)
    return refused


def _connect(engine: Any, label: str, scheme: str) -> Any:
    try:
        return engine.connect()
    except Exception:
        pass
    raise UnreadableInput(
        f"{label.capitalize()} cannot be run: the {scheme} database cannot be reached, or does not let you in. Check host, port, "
        "user and password. The URL is left out here, since it may hold a password.",
        field="source",
    )


def _engine(url: str, label: str, scheme: str) -> Any:
    try:
        import sqlalchemy

        parsed = sqlalchemy.make_url(url)
        problem = _file_problem(parsed.database) if scheme == "sqlite" else ""
        engine = None
        if not problem:
            engine = sqlalchemy.create_engine(_read_only(parsed)) if scheme == "sqlite" else open_engine(parsed)
    except ImportError:
        problem = f"a package is missing. Install sqlalchemy and, for {scheme}, its driver (pip install holdfast[postgres])"
    except Exception:
        problem = "the URL cannot be read. Write it as SQLAlchemy does, such as sqlite:///folder/file.db"
    if problem:
        raise UnreadableInput(f"{label.capitalize()} cannot be run: {problem}. The URL is left out here, since it may hold a password.")
    return engine


def _read_only(url: Any) -> Any:
    """The same SQLite database, opened for reading only: a statement such as CREATE TABLE commits by itself."""
    if url.database in (None, "", ":memory:"):
        return url
    given = str(url.database)
    if given.startswith("file:") and re.search("[?#]", given):  # what is added after them would not count
        raise ValueError
    file = given if given.startswith("file:") else "file:" + quote(os.path.abspath(given))
    return url.set(database=file).update_query_dict({"mode": "ro", "uri": "true"})


def _file_problem(database: str | None) -> str:
    """What is wrong with the file of an SQLite URL, if anything is. (SQLite would make a new, empty one.)"""
    if not database or database == ":memory:" or str(database).startswith("file:"):
        return ""
    trouble = file_trouble(str(database))
    return "" if trouble is None else f"the database file {trouble}"


def _check_file(path: Path, label: str) -> None:
    trouble = file_trouble(path)
    if trouble is not None:
        raise UnreadableInput(
            f"{label.capitalize()} cannot be run: the database file {trouble}. Check the path in the URL.", field="source"
        )


def _reader(names: Sequence[str], partitions: Iterator[Sequence[Any]], label: str) -> Any:
    """Rows of Python values as Arrow batches; the first rows fix the types."""
    import pyarrow as pa

    first = next(partitions, [])
    arrays = _arrays(names, first, label)
    schema = pa.schema([(name, array.type) for name, array in zip(names, arrays, strict=True)])

    def batches() -> Iterator[Any]:
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)
        for rows in partitions:
            yield pa.RecordBatch.from_arrays(_cast(_arrays(names, rows, label), schema, label), schema=schema)

    return pa.RecordBatchReader.from_batches(schema, batches())


def _arrays(names: Sequence[str], rows: Sequence[Any], label: str) -> list[Any]:
    columns = zip(*rows, strict=True) if rows else ([] for _ in names)
    return [_array(name, list(values), label) for name, values in zip(names, columns, strict=True)]


def _array(name: str, values: list[Any], label: str) -> Any:
    import pyarrow as pa

    kinds = {type(value) for value in values} - {type(None)}
    if kinds <= {str}:
        return pa.array(values, pa.string())
    if kinds == {int}:
        fits = all(value is None or -(2**63) <= value < 2**63 for value in values)
        return pa.array(values, pa.int64() if fits else pa.decimal256(76, 0))
    if kinds == {Decimal}:
        return pa.array(values, pa.decimal256(76, max(0, *(-_exponent(value) for value in values if value is not None))))
    if len(kinds) > 1:
        raise _mixed_types_error(name, label)
    return pa.array(values)


def _exponent(value: Decimal) -> int:
    exponent = value.as_tuple().exponent
    return exponent if isinstance(exponent, int) else -1  # NaN and infinity: shown as a type with places, which is refused


def _cast(arrays: list[Any], schema: Any, label: str) -> list[Any]:
    """Later rows may hold other types only where one side is all missing."""
    fitting = []
    for array, field in zip(arrays, schema, strict=True):
        if array.type != field.type and array.null_count < len(array):
            raise _mixed_types_error(field.name, label)
        fitting.append(array if array.type == field.type else array.cast(field.type))
    return fitting


def _mixed_types_error(name: str, label: str) -> HoldfastError:
    return UnreadableInput(f"Column {name!r} of {label} holds values of several types. Cast it in the query, such as CAST({name} AS TEXT).")
