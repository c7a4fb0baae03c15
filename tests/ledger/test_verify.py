"""Rows changed behind the ledger's back: every column of every row, rows deleted, added, moved, a tail cut off, a chain written anew."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from holdfast.errors import LedgerBroken
from holdfast.privacy.ledger import Ledger
from holdfast.privacy.ledger.chain import COLUMNS, START, make_event, read_row
from tests.ledger.helpers import DATA, bring, grant, reserve, rows, run_sql

EVENTS = "holdfast_events"


@pytest.fixture
def story(ledger: Ledger) -> Ledger:
    """A ledger in which everything happened: two data sets, a release in every state, a refund."""
    grant(ledger)
    grant(ledger, dataset="towns")
    for state in ("closed", "voided", "voided-spent", "staged"):
        bring(ledger, state, f"was-{state}")
    bring(ledger, "published", dataset="towns")
    run_sql(ledger, "DELETE FROM holdfast_open_reservations")  # else foreign keys would stop half of what is tried here
    return ledger


def found(ledger: Ledger, heads: list[str] | None = None) -> list[str]:
    """What verify notices beyond the secrets that the fixture took away."""
    return [problem for problem in ledger.verify(heads or []) if "take" not in problem and "takes to resume" not in problem]


def write(ledger: Ledger, table: list[tuple[Any, ...]]) -> None:
    """Replace all rows of the events."""

    def work(connection: Any) -> None:
        from sqlalchemy import insert

        from holdfast.privacy.ledger.store import tables

        connection.exec_driver_sql(f"DELETE FROM {EVENTS}")
        connection.execute(insert(tables().events), [dict(zip(COLUMNS, row, strict=True)) for row in table])

    ledger._store.write(work)


def other(name: str, value: Any) -> list[Any]:
    """Values that are not the one that is there."""
    if name == "seq":
        return [1000]
    if name == "release_id":
        return ["changed"] if value is None else ["changed", None]
    flipped = value[:-1] + ("0" if value[-1:] != "0" else "1")
    if name == "payload":  # another text for the same value is a change too
        return [flipped, value + " ", "{}" if value != "{}" else "[]", json.dumps(json.loads(value), indent=1) + " "]
    return [flipped, value + "x", ""] if value else ["x"]


def test_the_untouched_ledger_is_fine(story: Ledger) -> None:
    assert found(story) == []
    assert [read_row(row).head for row in rows(story)][-1] == story.head()
    assert found(story, [read_row(row).head for row in rows(story)]) == []


@pytest.mark.parametrize("column", COLUMNS)
def test_a_change_in_any_column_of_any_row_is_noticed(story: Ledger, column: str) -> None:
    before, place = rows(story), COLUMNS.index(column)
    for index, row in enumerate(before):
        if "://" in str(story._store._engine.url) and index % 5:
            continue
        for value in other(column, row[place]):
            changed = [list(one) for one in before]
            changed[index][place] = value
            write(story, [tuple(one) for one in sorted(changed)])
            assert found(story), (column, index, value)
    write(story, before)
    assert found(story) == []


def test_a_deleted_row_is_noticed(story: Ledger) -> None:
    before = rows(story)
    for index in range(len(before) - 1):
        write(story, before[:index] + before[index + 1 :])
        assert found(story), index
        closed_up = [(seq + 1, *row[1:]) for seq, row in enumerate(before[:index] + before[index + 1 :])]
        write(story, closed_up)
        assert found(story), index


def test_a_cut_tail_is_noticed_against_a_card(story: Ledger) -> None:
    """Without a card it cannot be: the shorter chain is the ledger as it once was."""
    before = rows(story)
    heads = [read_row(row).head for row in before]
    for length in range(1, len(before)):
        write(story, before[:length])
        assert found(story, heads[:length]) == []
        for head in heads[length:]:
            assert any("cut off" in problem for problem in found(story, [head]))
    write(story, [])
    assert found(story)
    with pytest.raises(LedgerBroken):
        story.head()


def test_an_inserted_or_doubled_row_is_noticed(story: Ledger) -> None:
    before = rows(story)
    for index in range(1, len(before)):
        later = [(row[0] + 1, *row[1:]) for row in before[index:]]
        forged = make_event(read_row(before[index - 1]), story.id, "2030", "granted", DATA, None, read_row(before[1]).payload)
        write(story, [*before[:index], tuple(forged.row()[name] for name in COLUMNS), *later])
        assert found(story), index


def test_swapped_rows_are_noticed(story: Ledger) -> None:
    before = rows(story)
    for index in range(len(before) - 1):
        swapped = list(before)
        swapped[index], swapped[index + 1] = (before[index][0], *before[index + 1][1:]), (before[index + 1][0], *before[index][1:])
        write(story, swapped)
        assert found(story), index


def rewritten(story: Ledger, change: Callable[[list[dict[str, Any]]], None]) -> list[tuple[Any, ...]]:
    """What someone can make who writes the whole file: changed events under new hashes that fit."""
    plain = [read_row(row).to_fields() for row in rows(story)]
    change(plain)
    made, last = [], None
    for fields in plain:
        last = make_event(last, *(fields[name] for name in ("ledger", "time", "kind", "dataset", "release_id", "payload")))
        made.append(tuple(last.row()[name] for name in COLUMNS))
    return made


def at(events: list[dict[str, Any]], kind: str) -> dict[str, Any]:
    return next(event for event in events if event["kind"] == kind)


def test_a_chain_written_anew_is_noticed_only_against_a_card(story: Ledger) -> None:
    heads = [event.head for event in story.events() if event.kind == "reserved"]
    write(story, rewritten(story, lambda events: at(events, "granted").update(time="1999")))
    assert found(story) == []
    for head in heads:
        assert any("written anew" in problem for problem in found(story, [head]))


FORGERIES: dict[str, Callable[[list[dict[str, Any]]], None]] = {
    "a larger charge": lambda events: at(events, "reserved")["payload"]["charge"].update(rho="3"),
    "a smaller grant": lambda events: at(events, "granted")["payload"].update(rho="1/9"),
    "another kind of grant": lambda events: at(events, "granted")["payload"].update(kind="pure"),
    "no grant": lambda events: events.remove(at(events, "granted")),
    "a number not in lowest terms": lambda events: at(events, "granted")["payload"].update(rho="2/2"),
    "a grant of another kind": lambda events: events.insert(
        3, at(events, "granted") | {"payload": at(events, "granted")["payload"] | {"kind": "pure", "rho": None, "epsilon": "1"}}
    ),
    "no draw": lambda events: events.remove(at(events, "drawing")),
    "no commit": lambda events: events.remove(at(events, "committed")),
    "a second reservation": lambda events: events.append(at(events, "reserved")),
    "a refund after the draw": lambda events: at(events, "voided-spent").update(kind="voided"),
    "a step of another reservation": lambda events: at(events, "staged")["payload"].update(reservation=1),
    "a step of no release": lambda events: at(events, "staged").update(release_id=None),
    "an unknown kind": lambda events: events.append(at(events, "granted") | {"kind": "forgiven"}),
    "a payload of another form": lambda events: at(events, "reserved").update(payload={"charge": 7, "facts": {}}),
    "a charge with a delta": lambda events: at(events, "reserved")["payload"]["charge"].update(delta="1/2"),
    "a negative charge": lambda events: at(events, "reserved")["payload"]["charge"].update(rho="-1"),
    "disjoint from what is not there": lambda events: at(events, "reserved")["payload"]["facts"].update(disjoint_from=["nothing"]),
    "two beginnings": lambda events: events.append(at(events, "created")),
    "no beginning": lambda events: events.remove(at(events, "created")),
    "another ledger": lambda events: [event.update(ledger="0" * 32) for event in events][:0] or None,
}


@pytest.mark.parametrize("name", FORGERIES)
def test_a_chain_written_anew_must_keep_every_rule(story: Ledger, name: str) -> None:
    write(story, rewritten(story, FORGERIES[name]))
    assert found(story)


def test_secrets_that_are_gone_or_stray_are_noticed(ledger: Ledger) -> None:
    grant(ledger)
    closed, opened = bring(ledger, "closed"), reserve(ledger, "r2")
    assert ledger.verify() == []
    run_sql(ledger, f"INSERT INTO holdfast_open_reservations VALUES ({closed.seq}, NULL, 'd')")
    assert [problem for problem in ledger.verify() if "no open release" in problem]
    run_sql(ledger, "DELETE FROM holdfast_open_reservations")
    assert ledger.verify() == [f"The release reserved by event {opened.seq} is open, but what it takes to resume it is gone. Void it."]
    assert ledger.void(opened, "its key is gone")
    assert ledger.verify() == []


def test_a_changed_identifier_or_version_is_noticed(story: Ledger, place: str) -> None:
    run_sql(story, f"UPDATE holdfast_meta SET value = '{'0' * 32}' WHERE name = 'ledger'")
    assert found(story)
    assert found(Ledger.open(place))
    run_sql(story, "DELETE FROM holdfast_meta WHERE name = 'ledger'")
    assert found(story)
    with pytest.raises(LedgerBroken, match="identifier"):
        Ledger.open(place)
    run_sql(story, "UPDATE holdfast_meta SET value = 'x' WHERE name = 'schema'")
    with pytest.raises(LedgerBroken, match="version"):
        Ledger.open(place)


def test_heads_that_are_none_or_of_another_ledger(story: Ledger) -> None:
    identifier, seq, digest = story.head().split(":")
    for head in (
        "",
        "x",
        f"{identifier}:{seq}",
        f"{identifier}:0:{digest}",
        f"{identifier}:{seq}:{digest}0",
        f"{identifier}:{seq}:{START}",
    ):
        assert found(story, [head])
    assert any("another ledger" in problem for problem in found(story, [f"{'0' * 32}:{seq}:{digest}"]))
    assert any("cut off" in problem for problem in found(story, [f"{identifier}:{10**17}:{digest}"]))


def test_nothing_is_spent_from_a_broken_ledger(story: Ledger) -> None:
    """A row of one data set breaks the balance of the others too: it could have been a reservation of theirs."""
    run_sql(story, f"UPDATE {EVENTS} SET dataset = 'elsewhere' WHERE seq = 5")
    asks: list[Callable[[], Any]] = [
        lambda: reserve(story, "r9", dataset="towns"),
        lambda: grant(story, dataset="towns"),
        lambda: story.balance("towns"),
        lambda: story.show("towns"),
        lambda: story.events(),
        lambda: story.open_reservations(),
    ]
    for ask in asks:
        with pytest.raises(LedgerBroken, match="holdfast ledger verify"):
            ask()
    run_sql(story, f"UPDATE {EVENTS} SET time = 'x' WHERE dataset = 'towns'")
    with pytest.raises(LedgerBroken, match="was changed"):
        story.reservation("towns", "r1")


def test_values_of_other_types_are_noticed(tmp_path: Any) -> None:
    """SQLite stores any type in any column."""
    story = Ledger.open(tmp_path / "ledger.db", create=True)
    grant(story)
    before = rows(story)
    for column in COLUMNS:
        for value in ("x'00ff'", "1.5", "'a text'"):
            run_sql(story, f"UPDATE {EVENTS} SET {column} = {value} WHERE seq = 2")
            assert story.verify(), (column, value)
            write(story, before)
    assert story.verify() == []
