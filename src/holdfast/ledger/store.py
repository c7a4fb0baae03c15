"""Where a ledger is kept: SQLite file or PostgreSQL database, its tables, their versions, and transactions that last.

A transaction that writes is alone from its first statement to its end: SQLite begins it IMMEDIATE, PostgreSQL takes an advisory lock. So
whoever checks a balance and appends an event sees no other writer in between, in any number of processes. When a call returns, the event
is on disk: SQLite runs with synchronous = EXTRA and a rollback journal (one file, no shared memory, and the folder is synced too),
PostgreSQL with synchronous_commit on.

A connection is opened for each transaction and closed after it: nothing is held while a release draws, and a forked process shares none.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from holdfast.errors import InvalidParameter, LedgerBroken, LedgerProblem
from holdfast.ledger.chain import COLUMNS
from holdfast.ledger.server import begin_server, enter_schema, find_foreign, making_tables, open_server, read_shape, schema_of, table_names
from holdfast.ledger.sqlite_files import connect

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

Result = TypeVar("Result")

WAIT_SECONDS = 60
"""How long a writer waits for others before it gives up; a transaction takes milliseconds."""

VERSION = 3
"""Version of the tables and of what events say. Ledgers of another version are refused: until 0.2.0 there are no migrations."""
SCHEMA = (
    "CREATE TABLE holdfast_meta (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "CREATE TABLE holdfast_events (seq BIGINT PRIMARY KEY, ledger TEXT NOT NULL, time TEXT NOT NULL, kind TEXT NOT NULL, "
    "dataset TEXT NOT NULL, release_id TEXT, payload TEXT NOT NULL, salt TEXT NOT NULL, previous TEXT NOT NULL UNIQUE, "
    "hash TEXT NOT NULL UNIQUE)",
    "CREATE INDEX holdfast_events_dataset ON holdfast_events (dataset, seq)",
    "CREATE TABLE holdfast_open_reservations (seq BIGINT PRIMARY KEY REFERENCES holdfast_events (seq), sealed_key TEXT, "
    "input_check TEXT NOT NULL)",
)


@lru_cache
def tables() -> SimpleNamespace:
    """The tables as names for queries; their definition is in SCHEMA."""
    from sqlalchemy import Column, MetaData, Table

    def table(name: str, *columns: str) -> Table:
        return Table(name, MetaData(), *(Column(column) for column in columns))

    return SimpleNamespace(
        meta=table("holdfast_meta", "name", "value"),
        events=table("holdfast_events", *COLUMNS),
        secrets=table("holdfast_open_reservations", "seq", "sealed_key", "input_check"),
    )


FOREIGN_IN_FILE = "SELECT type, name FROM sqlite_master WHERE type IN ('trigger', 'view') LIMIT 1"
"""What could change or hide what we write or read, and is not ours."""
SHAPE_IN_FILE = "SELECT type, name, tbl_name, sql FROM sqlite_master WHERE NOT (type = 'table' AND name LIKE 'sqlite!_stat%' ESCAPE '!')"
"""Every object of a file with its text."""


@lru_cache
def _shape(statements: tuple[str, ...], is_file: bool) -> frozenset[tuple[Any, ...]]:
    """How the tables look that these statements make, as SHAPE_IN_FILE and server.SHAPE tell it."""
    import sqlite3

    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        for statement in statements:
            connection.execute(statement)
        if is_file:
            return frozenset(connection.execute(SHAPE_IN_FILE))
        names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        columns = {name: connection.execute("SELECT name, type FROM pragma_table_info(?) ORDER BY name", (name,)) for name in names}
        return frozenset((name, ", ".join(f"{column} {kind.lower()}" for column, kind in found)) for name, found in columns.items())


class Store:
    """A place for a ledger. `label` names it in messages, without path or password; `place` tells it from all others, and holds no
    password.
    """

    def __init__(self, place: str | os.PathLike[str], *, create: bool, read_only: bool = False) -> None:
        self.place, self.read_only = place_of(place), read_only
        self.is_file, self.label, self._engine = _open_place(place, create, read_only)

    def read(self, work: Callable[[Connection], Result]) -> Result:
        """Do something on one unchanging state of the tables."""
        return self._run(work, write=False)

    def write(self, work: Callable[[Connection], Result]) -> Result:
        """Do something alone; all of it lasts when this returns, and nothing if it raises."""
        if self.read_only:
            raise LedgerProblem(f"{self.label[0].upper()}{self.label[1:]} was opened for reading only. Nothing was written.")
        return self._run(work, write=True)

    def _run(self, work: Callable[[Connection], Result], write: bool) -> Result:
        import sqlite3

        from sqlalchemy.exc import SQLAlchemyError

        try:
            with self._engine.connect() as connection:
                options = {"holdfast_write": write} | ({} if write or self.is_file else {"isolation_level": "REPEATABLE READ"})
                options |= {"postgresql_readonly": True} if self.read_only and not self.is_file else {}
                with connection.execution_options(**options).begin():
                    self._check_own(connection)
                    return work(connection)
        except (SQLAlchemyError, sqlite3.Error, UnicodeError) as error:
            problem = _explain(error, self.label, write)
        raise problem  # outside the block: what the driver said may name host, user and statement

    def _check_own(self, connection: Connection) -> None:
        """Refuse a database with triggers or views, or tables that are not as we make them: they could drop or change what is written, or
        show what is not there.
        """
        schema = None if self.is_file else enter_schema(connection)
        found = connection.exec_driver_sql(FOREIGN_IN_FILE).first() if schema is None else find_foreign(connection, schema)
        if found is not None:
            raise LedgerBroken(
                f"The database of {self.label} holds a {found[0]} {str(found[1])[:60]!a} that Holdfast did not make. It could change what "
                "is recorded. Find out who made it, and remove it."
            )
        self._check_shape(connection)

    def _check_shape(self, connection: Connection) -> None:
        rows = connection.exec_driver_sql(SHAPE_IN_FILE).all() if self.is_file else read_shape(connection)
        if frozenset(map(tuple, rows)) in (frozenset(), _shape(SCHEMA, self.is_file)):
            return
        self._check_version(self._version(connection))
        raise LedgerBroken(
            f"A table of {self.label} is not as Holdfast made it, or there are others beside. It could drop or change what is recorded. "
            "Find out who changed it, and restore a copy."
        )

    def prepare(self, create: bool, start: Callable[[Connection], None]) -> None:
        """Refuse tables of another version. Where there are none, make them and call `start`, if that was asked for."""
        version = self.read(self._version)
        self._check_version(version)
        if version is None:
            if not create:
                raise LedgerProblem(
                    f"There is no ledger in {self.label}. Check the place, or make one with the command holdfast ledger create."
                )
            self.write(lambda connection: self._make(connection, start))

    def _version(self, connection: Connection) -> int | None:
        from sqlalchemy import inspect, select

        names = inspect(connection).get_table_names() if self.is_file else table_names(connection, schema_of(connection))
        if "holdfast_meta" not in names:
            if self.is_file and names:
                raise LedgerProblem(f"The file of {self.label} holds other tables and no ledger. Choose a file of its own.")
            return None
        meta = tables().meta
        text = connection.execute(select(meta.c.value).where(meta.c.name == "schema")).scalar()
        if not isinstance(text, str) or not re.fullmatch("[1-9][0-9]{0,8}", text):
            raise LedgerBroken(f"The version of the tables in {self.label} cannot be read. Restore a copy.")
        return int(text)

    def _make(self, connection: Connection, start: Callable[[Connection], None]) -> None:
        """Asked again inside the lock: another process may have been faster."""
        from sqlalchemy import insert

        version = self._version(connection)
        self._check_version(version)
        if version is not None:
            return
        with contextlib.nullcontext() if self.is_file else making_tables(connection):
            for statement in SCHEMA:
                connection.exec_driver_sql(statement)
        connection.execute(insert(tables().meta), [{"name": "schema", "value": str(VERSION)}])
        start(connection)

    def _check_version(self, version: int | None) -> None:
        """Refuse tables of another version; None: there are none."""
        if version is None or version == VERSION:
            return
        said = f"The tables of {self.label} have version {version}, and this Holdfast uses version {VERSION}. Nothing was changed. "
        if version > VERSION:
            raise LedgerProblem(f"{said}Install a later Holdfast.")
        raise LedgerProblem(
            f"{said}An earlier Holdfast made them. Before 0.2.0 ledgers are not carried over: keep this one as the record of its releases, "
            "to be read with the Holdfast that made it, and begin a new ledger in another place, with what is left of each budget."
        )


def place_of(place: str | os.PathLike[str]) -> str:
    """One text for one place: a file's name in its real folder, or a URL without its password. A link is a place of its own, so that one
    that is put where a ledger was is noticed.
    """
    text = os.fspath(place)
    if isinstance(text, str) and "://" in text:
        scheme, rest = text.split("://", 1)
        if scheme.lower() == "sqlite":
            return _named_place(rest[1:])
        user, at, where = rest.rpartition("@")
        return f"server://{user.partition(':')[0]}{at}{where}"
    return _named_place(text) if isinstance(text, str) else ""


def _named_place(path: str) -> str:
    folder, name = os.path.split(os.path.abspath(path))
    return os.path.join(os.path.realpath(folder), name)


def _open_place(place: str | os.PathLike[str], create: bool, read_only: bool) -> tuple[bool, str, Engine]:
    """(whether it is a file, its name in messages, a way to connect)."""
    text = os.fspath(place)
    if not isinstance(text, str) or not text.strip():
        raise InvalidParameter("A ledger is a file or a URL such as postgresql://user@host/database. Got neither.")
    match = re.match(r"([A-Za-z][A-Za-z0-9+.-]*)://", text)
    if match is None:
        return True, *_file(Path(text), create, read_only)
    scheme = match[1].lower()
    if scheme == "sqlite":
        path = text[len("sqlite://") :]
        if not path.startswith("/") or path[1:] in ("", ":memory:") or re.search("[?#]", path):
            raise LedgerProblem("A ledger in SQLite is a file of its own, without options. Write sqlite:///folder/file.db.")
        return True, *_file(Path(path[1:]), create, read_only)
    if scheme not in ("postgresql", "postgres", "postgresql+psycopg"):
        raise LedgerProblem(f"A ledger cannot be kept in {scheme!r}. Give a file, or a URL that begins with postgresql://.")
    return False, "the PostgreSQL ledger", open_server(text, _begin_server)


def _file(path: Path, create: bool, read_only: bool) -> tuple[str, Engine]:
    from sqlalchemy import NullPool, create_engine, event

    label = f"the ledger {path.name!r}"
    if not path.is_file():
        if path.exists():
            raise LedgerProblem(f"The place of {label} is not a file. Give the path of a file.")
        if not create:
            raise LedgerProblem(f"The file of {label} does not exist. Check the path, or make one with the command holdfast ledger create.")
        if not path.absolute().parent.is_dir():
            raise LedgerProblem(f"The folder of {label} does not exist. Make it first.")
        _make_file(path, label)
    file = os.path.abspath(path)
    engine = create_engine(
        "sqlite+pysqlite://",
        creator=lambda: _connect_file(file, "ro" if read_only else "rw"),
        poolclass=NullPool,
        hide_parameters=True,
    )
    event.listen(engine, "begin", _begin_file)
    return label, engine


def _make_file(path: Path, label: str) -> None:
    """An empty file, which SQLite takes for a new database: for its owner only, whatever the umask says. Its journals are as it is."""
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        return  # another process was faster
    except OSError as error:
        raise LedgerProblem(
            f"{label[0].upper()}{label[1:]} cannot be opened ({os.strerror(error.errno or 0)}). Check that its folder can be written."
        ) from None


def _connect_file(file: str, mode: Literal["ro", "rw"]) -> Any:
    connection = connect(file, mode, WAIT_SECONDS)
    try:
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA secure_delete = ON")
        connection.execute("PRAGMA synchronous = EXTRA")
    except BaseException:
        connection.close()
        raise
    return connection


def _begin_file(connection: Connection) -> None:
    connection.exec_driver_sql("BEGIN IMMEDIATE" if connection.get_execution_options().get("holdfast_write") else "BEGIN")


def _begin_server(connection: Connection) -> None:
    begin_server(connection, WAIT_SECONDS, bool(connection.get_execution_options().get("holdfast_write")))


def _explain(error: Exception, label: str, write: bool) -> LedgerProblem:
    """What went wrong, without what the driver says: that may hold paths, hosts and users."""
    origin = getattr(error, "orig", None) or error
    said = f"{type(origin).__name__} {origin}".lower()
    known: tuple[tuple[tuple[str, ...], type[LedgerProblem], str], ...] = (
        (("locked", "lock timeout"), LedgerProblem, f"is busy: others wrote to it for {WAIT_SECONDS} seconds. Try again"),
        (
            ("readonly", "read-only", "permission denied"),
            LedgerProblem,
            "cannot be used with the rights at hand. Ask its owner",
        ),
        (("not a database",), LedgerProblem, "is no SQLite file. Check the path"),
        (("malformed", "disk image"), LedgerBroken, "is damaged. Restore a copy"),
        (("unable to open",), LedgerProblem, "cannot be opened. Check that file and folder can be read and written"),
        (("disk is full", "no space left"), LedgerProblem, "cannot grow: the disk is full"),
        (("no such table", "no such column", "undefinedtable", "undefinedcolumn"), LedgerBroken, "lacks a table or column. Restore a copy"),
    )
    kind, complaint = next(
        ((kind, complaint) for signs, kind, complaint in known if any(sign in said for sign in signs)),
        (LedgerProblem, f"cannot be used ({type(error).__name__}). Check that it can be reached, and with which user"),
    )
    # A connection may break after the commit was sent: then only the ledger knows.
    asks = " Whether this step was recorded, the ledger tells: ask it for the release, and repeat the step." if write else ""
    return kind(f"{label[0].upper()}{label[1:]} {complaint}.{asks}")
