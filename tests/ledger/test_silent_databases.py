"""Databases that take an event without a word and do not keep it: nothing may be drawn for a step that is not recorded."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import holdfast as hf
from holdfast.errors import LedgerBroken, WitnessMismatch, WrongState
from holdfast.ledger import Ledger
from holdfast.ledger.chain import COLUMNS
from holdfast.ledger.store import Store
from holdfast.ledger.witness import Witness
from holdfast.publication import publication
from holdfast.publication.folder import fill_folder
from tests.ledger.helpers import DATA, bring, grant, reserve, run_sql
from tests.publication.bookings import DATA as RESIDENTS
from tests.publication.bookings import a_ledger, a_release, run, spent

NAMES = ", ".join(COLUMNS)


def rebuilt_file(place: str, column: str = "") -> None:
    """The table of events made again, with one more column."""
    with sqlite3.connect(place) as file:
        file.execute("PRAGMA legacy_alter_table = ON")
        (text,) = file.execute("SELECT sql FROM sqlite_master WHERE name = 'holdfast_events'").fetchone()
        file.execute("ALTER TABLE holdfast_events RENAME TO before")
        file.execute("DROP INDEX holdfast_events_dataset")
        file.execute(f"{text.rstrip()[:-1]}, {column})" if column else text)
        file.execute(f"INSERT INTO holdfast_events ({NAMES}) SELECT {NAMES} FROM before")
        file.execute("DROP TABLE before")
        file.execute("CREATE INDEX holdfast_events_dataset ON holdfast_events (dataset, seq)")
    file.close()


def partitioned(place: str, kind: str) -> None:
    """The table of events as the parent of a partition, which drops events of a kind."""
    import psycopg

    with psycopg.connect(place) as server:
        for statement in (
            "ALTER TABLE holdfast_open_reservations DROP CONSTRAINT holdfast_open_reservations_seq_fkey",
            "ALTER TABLE holdfast_events RENAME TO part",
            "CREATE TABLE holdfast_events (LIKE part) PARTITION BY RANGE (seq)",
            "ALTER TABLE holdfast_events ATTACH PARTITION part DEFAULT",
            f"CREATE FUNCTION drops() RETURNS trigger LANGUAGE plpgsql AS "
            f"$$BEGIN IF new.kind = '{kind}' THEN RETURN NULL; END IF; RETURN new; END$$",
            "CREATE TRIGGER drops BEFORE INSERT ON part FOR EACH ROW EXECUTE FUNCTION drops()",
        ):
            server.execute(statement)


def drop_silently(place: str, kind: str, last: int) -> None:
    """From now on the database takes events of this kind and keeps none; in a file, since they share their note with the first."""
    if "://" in place:
        partitioned(place, kind)
        return
    note = f"CASE WHEN seq = 1 OR (seq > {last} AND kind = '{kind}') THEN 'x' END"
    rebuilt_file(place, f"note TEXT GENERATED ALWAYS AS ({note}) VIRTUAL UNIQUE ON CONFLICT IGNORE")


def test_a_table_that_is_not_as_we_make_it_is_refused(ledger: Ledger, place: str) -> None:
    grant(ledger)
    held = reserve(ledger)
    drop_silently(place, "drawing", last=3)
    asks: list[Callable[[], object]] = [
        lambda: ledger.start_drawing(held),
        lambda: reserve(ledger, "r2"),
        lambda: ledger.balance(DATA),
        lambda: ledger.verify(),
        lambda: Ledger.open(place),
        lambda: Ledger.open(place, create=True, needs_grants=True),
    ]
    for ask in asks:
        with pytest.raises(LedgerBroken, match="is not as Holdfast made it"):
            ask()


@pytest.mark.parametrize("kind", ["granted", "reserved", "drawing", "staged", "voided", "restored"])
def test_what_is_not_kept_is_noticed_by_reading_it_back(ledger: Ledger, place: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the look at the tables misses: every write reads its events back, in its own transaction."""
    monkeypatch.setattr(Store, "_check_shape", lambda *_: None)
    grant(ledger)
    held = bring(ledger, "drawing" if kind == "staged" else "reserved")
    drop_silently(place, kind, last=2 if kind == "restored" else held.seq + (kind == "staged"))
    before = list_of_events(ledger)
    steps: dict[str, Callable[[], object]] = {
        "granted": lambda: grant(ledger),
        "reserved": lambda: reserve(ledger, "r2"),
        "drawing": lambda: ledger.start_drawing(held),
        "staged": lambda: ledger.stage(held, "sha256:00"),
        "voided": lambda: ledger.void(held, "a test"),
        "restored": lambda: ledger.accept_restore(approver="A. Chief", reason="a test"),
    }
    if kind == "restored":
        run_sql(ledger, "DELETE FROM holdfast_open_reservations", "DELETE FROM holdfast_events WHERE seq > 2")
        before = before[:2]
    with pytest.raises(LedgerBroken, match="did not keep what the ledger wrote"):
        steps[kind]()
    assert list_of_events(ledger) == before


def list_of_events(ledger: Ledger) -> list[str]:
    return [event.head for event in ledger.events()]


def test_tables_with_statistics_for_the_planner_are_known_again(place: str) -> None:
    ledger = Ledger.open(place, create=True, needs_grants=True)
    run_sql(ledger, "ANALYZE")
    assert Ledger.open(place).verify() == []


# The folder of a release whose step was refused.


def unfinished(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir() if path.name.startswith(".holdfast-unfinished") and path.is_dir()]


def test_noise_that_was_not_recorded_is_not_left_behind(tmp_path: Path) -> None:
    """The ledger is put back between the draw and the stage."""
    ledger = a_ledger(tmp_path)
    made = a_release(ledger)
    run_sql(ledger, "DELETE FROM holdfast_events WHERE seq > 3")
    with pytest.raises(WitnessMismatch):
        made.save(tmp_path / "out")
    assert unfinished(tmp_path) == []
    assert spent(ledger) == Fraction(1, 2)


def test_a_release_that_was_given_up_meanwhile_is_not_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = a_ledger(tmp_path)
    made = a_release(ledger)
    fill = fill_folder

    def late(*arguments: Any) -> None:
        fill(*arguments)
        held = ledger.reservation(RESIDENTS, "r1")
        assert held is not None
        ledger.void(held, "another process")

    monkeypatch.setattr(publication, "fill_folder", late)
    with pytest.raises(WrongState):
        made.save(tmp_path / "out")
    assert unfinished(tmp_path) == []


def test_a_folder_whose_step_was_recorded_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The mark is changed after the step is on disk: the release is staged, whatever was said."""
    ledger = a_ledger(tmp_path)
    made = a_release(ledger)

    def refuse(*_: Any) -> None:
        raise WitnessMismatch("The mark was changed.")

    with monkeypatch.context() as patch:
        patch.setattr(Witness, "advance", refuse)
        with pytest.raises(WitnessMismatch):
            made.save(tmp_path / "out")
    assert len(unfinished(tmp_path)) == 1
    run(ledger, tmp_path / "out", resume=True)
    assert unfinished(tmp_path) == []
    assert hf.verify(tmp_path / "out").release_id == "r1"
