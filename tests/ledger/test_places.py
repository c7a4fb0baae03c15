"""Where a ledger is kept: what is opened, made, migrated or refused, and what messages never say."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from holdfast.errors import InvalidParameter, LedgerBroken, LedgerProblem
from holdfast.ledger import Ledger, store
from tests.ledger.helpers import DATA, grant, reserve, rows, run_sql, the_store


def test_a_ledger_is_made_only_when_asked(place: str) -> None:
    with pytest.raises(LedgerProblem, match="holdfast ledger create"):
        Ledger.open(place)
    if "://" not in place:
        assert not Path(place).exists()
    made = Ledger.open(place, create=True, needs_grants=True)
    assert len(made.id) == 32
    assert Ledger.open(place).id == Ledger.open(place, create=True, needs_grants=True).id == made.id
    assert place not in repr(made)
    assert [event.kind for event in made.events()] == ["created"]
    assert (made.datasets(), made.open_reservations(), made.verify([made.head()])) == ([], [], [])


def test_two_ledgers_have_two_identifiers(tmp_path: Path) -> None:
    assert Ledger.open(tmp_path / "a", create=True, needs_grants=True).id != Ledger.open(tmp_path / "b", create=True, needs_grants=True).id


def test_a_path_and_its_urls_are_one_ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "odd name #1?x=%20&y.db"
    made = Ledger.open(path, create=True, needs_grants=True)
    assert Ledger.open(str(path)).id == made.id
    plain = tmp_path / "plain.db"
    made = Ledger.open(f"sqlite:///{plain}", create=True, needs_grants=True)
    monkeypatch.chdir(tmp_path)
    assert Ledger.open("sqlite:///plain.db").id == Ledger.open("plain.db").id == Ledger.open(plain).id == made.id


def test_a_ledger_stays_where_it_was_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    made = Ledger.open("ledger.db", create=True, needs_grants=True)
    monkeypatch.chdir("/")
    grant(made)
    os.rename(tmp_path / "ledger.db", tmp_path / "moved.db")
    (tmp_path / "moved.db").unlink()
    with pytest.raises(LedgerProblem):
        Ledger.open(tmp_path / "ledger.db").balance(DATA)


def test_files_that_are_no_ledger(tmp_path: Path) -> None:
    text, other, empty = tmp_path / "text", tmp_path / "other.db", tmp_path / "empty"
    text.write_text("no database, but long enough to be taken for one by its first bytes " * 20)
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE persons (name TEXT)")
    connection.close()
    empty.touch()
    for path, words in ((text, "is no SQLite file"), (other, "holds other tables"), (tmp_path, "is not a file")):
        for create in (False, True):
            with pytest.raises(LedgerProblem, match=words) as caught:
                Ledger.open(path, create=create)
            assert str(tmp_path) not in str(caught.value)
    with pytest.raises(LedgerProblem, match="There is no ledger"):
        Ledger.open(empty)
    with pytest.raises(LedgerProblem, match="The folder of the ledger 'x' does not exist"):
        Ledger.open(tmp_path / "none" / "x", create=True, needs_grants=True)
    assert Ledger.open(empty, create=True, needs_grants=True).verify() == []


def test_a_damaged_file_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    ledger = Ledger.open(path, create=True, needs_grants=True)
    grant(ledger)
    for number in range(60):
        reserve(ledger, f"r{number}", "1/100")
    stored = path.read_bytes()
    damaged = bytearray(stored)
    for page in range(3, len(stored) // 4096):
        damaged[page * 4096 : page * 4096 + 64] = b"\xff" * 64
    path.write_bytes(damaged)
    with pytest.raises(LedgerProblem):
        ledger.balance(DATA)
    with pytest.raises(LedgerProblem):
        ledger.verify()
    path.write_bytes(stored)
    assert ledger.verify() == []


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://office:hunter2@127.0.0.1:1/secretdb",
        "postgres://office:hunter2@127.0.0.1:1/secretdb",
        "postgresql+psycopg://office:hunter2@127.0.0.1:1/secretdb?connect_timeout=3",
        "postgresql://office:hunter2@127.0.0.1:port/secretdb",
        "mysql://office:hunter2@127.0.0.1/secretdb",
        "postgresql+asyncpg://office:hunter2@127.0.0.1/secretdb",
        "sqlite://office:hunter2@127.0.0.1/secretdb",
        "sqlite:///:memory:",
        "sqlite://",
        "sqlite:///secretdb?mode=memory",
    ],
)
def test_wrong_urls_never_show_what_they_hold(url: str) -> None:
    for create in (False, True):
        with pytest.raises(LedgerProblem) as caught:
            Ledger.open(url, create=create)
        shown = str(caught.value) + repr(caught.value.__cause__) + repr(caught.value.__context__)
        for secret in ("hunter2", "office", "127.0.0.1", "secretdb"):
            assert secret not in shown


@pytest.mark.parametrize("place", ["", "  ", b"bytes"])
def test_places_that_are_none(place: str) -> None:
    with pytest.raises(InvalidParameter):
        Ledger.open(place)


@pytest.mark.postgres
def test_a_wrong_password_is_not_shown(server: str) -> None:
    with pytest.raises(LedgerProblem) as caught:
        Ledger.open(server.replace("postgres:@", "office:hunter2@"))
    assert not {"hunter2", "office"} & set(str(caught.value).replace("'", " ").split())


@pytest.mark.parametrize(("version", "said"), [(1, "begin a new ledger"), (2, "begin a new ledger"), (99, "Install a later Holdfast")])
@pytest.mark.parametrize("how", [{}, {"create": True}, {"read_only": True}])
def test_a_ledger_of_another_version_is_refused_and_left_as_it_is(place: str, version: int, said: str, how: dict[str, Any]) -> None:
    ledger = Ledger.open(place, create=True, needs_grants=True)
    grant(ledger)
    before = rows(ledger)
    run_sql(ledger, f"UPDATE holdfast_meta SET value = '{version}' WHERE name = 'schema'")
    with pytest.raises(LedgerProblem, match=f"have version {version}, and this Holdfast uses version {store.VERSION}") as caught:
        Ledger.open(place, **how)
    assert said in str(caught.value)
    run_sql(ledger, f"UPDATE holdfast_meta SET value = '{store.VERSION}' WHERE name = 'schema'")
    assert rows(Ledger.open(place)) == before


def test_tables_as_version_1_had_them_are_refused_by_version(place: str) -> None:
    """Their shape is another one too: what is said is the version, not that someone changed them."""
    ledger = Ledger.open(place, create=True, needs_grants=True)
    run_sql(
        ledger,
        "ALTER TABLE holdfast_open_reservations RENAME COLUMN input_check TO input_digest",
        "UPDATE holdfast_meta SET value = '1' WHERE name = 'schema'",
    )
    with pytest.raises(LedgerProblem, match="have version 1, and this Holdfast uses") as caught:
        Ledger.open(place)
    assert not isinstance(caught.value, LedgerBroken)


def test_tables_that_could_not_be_made_leave_nothing(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(store, "SCHEMA", (*store.SCHEMA, "CREATE TABLE holdfast_meta (x TEXT)"))
        with pytest.raises(LedgerProblem):
            Ledger.open(place, create=True, needs_grants=True)
    assert Ledger.open(place, create=True, needs_grants=True).verify() == []


def test_a_missing_table_is_noticed(place: str) -> None:
    ledger = Ledger.open(place, create=True, needs_grants=True)
    run_sql(ledger, "DROP TABLE holdfast_open_reservations")
    with pytest.raises(LedgerBroken):
        ledger.verify()


def test_a_busy_ledger_says_so(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """While another transaction writes, a writer waits and then gives up; a reader of PostgreSQL need not wait."""
    ledger, holder = Ledger.open(place, create=True, needs_grants=True), Ledger.open(place)
    monkeypatch.setattr(store, "WAIT_SECONDS", 1)

    def hold(_: object) -> None:
        with pytest.raises(LedgerProblem, match="is busy"):
            grant(ledger)
        assert len(rows(ledger)) == 1

    the_store(holder).write(hold)
    grant(ledger)


def test_how_sqlite_is_set_up(tmp_path: Path) -> None:
    ledger = Ledger.open(tmp_path / "ledger.db", create=True, needs_grants=True)

    def work(connection: object) -> dict[str, object]:
        names = ("synchronous", "foreign_keys", "secure_delete", "journal_mode")
        return {name: connection.exec_driver_sql(f"PRAGMA {name}").scalar() for name in names}  # type: ignore[attr-defined]

    assert the_store(ledger).read(work) == {"synchronous": 3, "foreign_keys": 1, "secure_delete": 1, "journal_mode": "delete"}
