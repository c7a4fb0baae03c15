"""Ledgers as somebody else may have written them, with hashes that fit, and what a folder holds before and after they were used."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sqlite3
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

from holdfast.ledger.chain import COLUMNS, START, canonical

Tree = dict[str, tuple[str, ...]]


def tree(folder: Path) -> Tree:
    """All below a folder, by its path: kind and rights, and of a file the digest of its content, of a link its target."""
    found: Tree = {}
    for place, folders, names in os.walk(folder):
        for name in (*folders, *names):
            path = Path(place, name)
            mode = os.lstat(path).st_mode
            inside = (
                os.readlink(path) if stat.S_ISLNK(mode) else hashlib.sha256(path.read_bytes()).hexdigest() if stat.S_ISREG(mode) else ""
            )
            found[str(path.relative_to(folder))] = (stat.filemode(mode), inside)
    return found


def read_events(place: Path) -> list[dict[str, Any]]:
    """The events of a ledger as they are stored, with the payload as a value."""
    with contextlib.closing(sqlite3.connect(place)) as file:
        rows = file.execute(f"SELECT {', '.join(COLUMNS)} FROM holdfast_events ORDER BY seq").fetchall()
    return [dict(zip(COLUMNS, row, strict=True)) | {"payload": json.loads(row[COLUMNS.index("payload")])} for row in rows]


def heads(place: Path) -> set[str]:
    """The head of every event, whatever else its row holds."""
    with contextlib.closing(sqlite3.connect(place)) as file:
        return {f"{ledger}:{seq}:{digest}" for ledger, seq, digest in file.execute("SELECT ledger, seq, hash FROM holdfast_events")}


def write_events(place: Path, events: list[dict[str, Any]]) -> None:
    """These events in place of all others, each with a hash that fits; a payload may be a text, which is stored as it is."""
    previous, rows = START, []
    for event in events:
        values = {**event, "previous": previous}
        values["payload"] = event["payload"] if isinstance(event["payload"], str) else canonical(event["payload"])
        text = canonical({name: values[name] for name in COLUMNS if name != "hash"})
        previous = values["hash"] = hashlib.sha256(text.encode("ascii")).hexdigest()
        rows.append([values[name] for name in COLUMNS])
    with contextlib.closing(sqlite3.connect(place, isolation_level=None)) as file:
        file.execute("BEGIN")
        file.execute("DELETE FROM holdfast_events")
        file.executemany(f"INSERT INTO holdfast_events VALUES ({', '.join('?' * len(COLUMNS))})", rows)
        file.execute("COMMIT")


def append_event(place: Path, kind: str, payload: dict[str, Any], **changed: Any) -> None:
    """One more event behind the last, as of the same release: nothing that a witness saw is changed by it."""
    events = read_events(place)
    reserved = [event for event in events if event["kind"] == "reserved"][-1]
    made = {**reserved, "seq": events[-1]["seq"] + 1, "kind": kind, "payload": {"reservation": reserved["seq"], **payload}}
    write_events(place, [*events, {**made, **changed}])


def with_id(place: Path, identifier: str) -> None:
    """The ledger under another identifier, in all its events."""
    write_events(place, [{**event, "ledger": identifier} for event in read_events(place)])
    run_sql(place, "UPDATE holdfast_meta SET value = ? WHERE name = 'ledger'", identifier)


def run_sql(place: Path, statement: str, *values: Any) -> None:
    with contextlib.closing(sqlite3.connect(place, isolation_level=None)) as file:
        file.execute(statement, values)


def untouched(folder: Path, work: Callable[[], object]) -> None:
    """Do something, and see that nothing below a folder was made, changed or removed by it."""
    before = tree(folder)
    work()
    assert tree(folder) == before
