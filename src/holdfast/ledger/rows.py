"""Rows of a ledger's tables, read and written inside a transaction. Whoever can write the database chose them: each is checked."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from holdfast.errors import LedgerBroken
from holdfast.ledger.chain import COLUMNS, Event, LedgerId, read_ledger_id, read_row
from holdfast.ledger.releases import Reservation
from holdfast.ledger.state import read_secret
from holdfast.ledger.store import tables

if TYPE_CHECKING:
    from sqlalchemy import Connection

_SEALED = re.compile("([0-9a-f]{2}){1,4096}")
_DAMAGED = "What it takes to resume the release {!r} is damaged in the ledger. Void the release, or restore a copy of the ledger."


def read_id(connection: Connection) -> LedgerId:
    """The identifier of the ledger."""
    try:
        return read_ledger_id(meta_values(connection, "ledger")[0])
    except (IndexError, ValueError):
        raise LedgerBroken(
            "The ledger has no valid identifier: 32 hexadecimal digits. It was changed, or Holdfast did not make it. Restore a copy."
        ) from None


def meta_values(connection: Connection, name: str) -> list[Any]:
    from sqlalchemy import select

    return list(connection.execute(select(tables().meta.c.value).where(tables().meta.c.name == name)).scalars())


def insert_events(connection: Connection, events: list[Event]) -> None:
    """Append events, and read them back: nothing may be drawn for a step that the database took without a word and did not keep."""
    from sqlalchemy import insert

    given = [event.row() for event in events]
    connection.execute(insert(tables().events), given)
    if [row._asdict() for row in event_rows(connection, after=events[0].seq - 1)] != given:
        raise LedgerBroken(
            "The database did not keep what the ledger wrote, and said nothing. Nothing was drawn. Find out what was changed in it, and "
            "restore a copy."
        )


def event_rows(connection: Connection, dataset: str | None = None, after: int = 0) -> Iterable[Any]:
    """The rows of all events, or of one data set, in order, from behind one number on."""
    from sqlalchemy import select

    events = tables().events
    query = select(*(events.c[name] for name in COLUMNS)).order_by(events.c.seq)
    query = query if dataset is None else query.where(events.c.dataset == dataset)
    return connection.execute(query.where(events.c.seq > after) if after else query).all()


def last_event(connection: Connection, ledger: LedgerId) -> Event:
    from sqlalchemy import select

    events = tables().events
    row = connection.execute(select(*(events.c[name] for name in COLUMNS)).order_by(events.c.seq.desc()).limit(1)).first()
    if row is None:
        raise LedgerBroken("The ledger has no first event. Restore a copy.")
    return read_row(row, ledger)


def dataset_at(connection: Connection, seq: int) -> str | None:
    """The data set of an event; None where there is no such event."""
    from sqlalchemy import select

    events = tables().events
    found = connection.execute(select(events.c.dataset).where(events.c.seq == seq)).scalar()
    return None if found is None else str(found)


def hash_at(connection: Connection, seq: int) -> str | None:
    """The hash of an event; None where there is no such event."""
    from sqlalchemy import select

    events = tables().events
    found = connection.execute(select(events.c.hash).where(events.c.seq == seq)).scalar()
    return None if found is None else str(found)


def file_problems(connection: Connection) -> list[str]:
    """Whether SQLite's own check of the file finds damage that reading the rows did not show. A server checks its files itself."""
    if connection.dialect.name != "sqlite" or connection.exec_driver_sql("PRAGMA quick_check(1)").scalar() == "ok":
        return []
    return ["The file of the ledger is damaged: SQLite's quick_check finds faults in it. Restore a copy."]


def secrets_held(connection: Connection) -> frozenset[Any]:
    """The reservations for which secrets are held."""
    from sqlalchemy import select

    return frozenset(connection.execute(select(tables().secrets.c.seq)).scalars())


def with_secrets(connection: Connection, ledger: LedgerId, reservation: Reservation) -> Reservation:
    """A reservation with the sealed key and the check of its input, and with the second secret where that is on this machine."""
    from sqlalchemy import select

    held = tables().secrets
    row = connection.execute(select(held.c.sealed_key, held.c.input_check).where(held.c.seq == reservation.seq)).first()
    if row is None:
        return replace(reservation, sealed_key=None, input_check=None, second_secret=None)
    key, check = row
    is_sealed = isinstance(key, str) and _SEALED.fullmatch(key) is not None
    if not isinstance(check, str) or len(check) > 200 or not (key is None or is_sealed):
        raise LedgerBroken(_DAMAGED.format(reservation.release_id))
    sealed = None if key is None else bytes.fromhex(key)
    second = None if sealed is None else read_secret(ledger, reservation.seq)
    return replace(reservation, sealed_key=sealed, input_check=check, second_secret=second)
