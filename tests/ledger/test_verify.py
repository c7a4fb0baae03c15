"""Rows changed behind the ledger's back: every column of every row, rows deleted, added, moved, a tail cut off, a chain written anew."""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from holdfast.errors import LedgerBroken
from holdfast.ledger import Charge, Event, Ledger
from holdfast.ledger.chain import COLUMNS, START, make_event, read_row
from holdfast.ledger.store import Store
from holdfast.ledger.verify import _id_problems, find_problems
from tests.ledger.helpers import DATA, apart, bring, grant, reserve, rows, run_sql, screen, the_store
from tests.running import Run

EVENTS = "holdfast_events"


@pytest.fixture
def story(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> Ledger:
    """A ledger in which everything happened: two data sets, a release in every state, a refund."""
    monkeypatch.setattr(Store, "_check_shape", lambda *_: None)  # what follows is refused by it; the chain must notice by itself too
    grant(ledger)
    grant(ledger, dataset="towns")
    for state in ("closed", "voided", "voided-spent", "staged"):
        bring(ledger, state, f"was-{state}")
    bring(ledger, "published", dataset="towns")
    # Without the constraints, which would stop half of what is tried here: who has the database can drop them.
    run_sql(
        ledger,
        f"CREATE TABLE other AS SELECT * FROM {EVENTS}",
        "DROP TABLE holdfast_open_reservations",
        f"DROP TABLE {EVENTS}",
        f"ALTER TABLE other RENAME TO {EVENTS}",
        "CREATE TABLE holdfast_open_reservations (seq BIGINT, sealed_key TEXT, input_check TEXT)",
    )
    return ledger


@pytest.fixture(scope="module")
def file_story(tmp_path_factory: pytest.TempPathFactory) -> Ledger:
    """The same in a file, for what does not depend on the database. It is only read: changes are made to lists of its rows."""
    ledger = Ledger.open(tmp_path_factory.mktemp("story") / "story.db", create=True, needs_grants=True)
    grant(ledger)
    grant(ledger, dataset="towns")
    for state in ("closed", "voided", "voided-spent", "staged"):
        bring(ledger, state, f"was-{state}")
    bring(ledger, "published", dataset="towns")
    return ledger


def found(ledger: Ledger, heads: list[str] | None = None) -> list[str]:
    """What verify notices beyond the secrets that the fixture took away."""
    return [problem for problem in ledger.verify(heads or []) if "take" not in problem and "takes to resume" not in problem]


def write(ledger: Ledger, table: list[tuple[Any, ...]]) -> None:
    """Replace all rows of the events."""

    def work(connection: Any) -> None:
        from sqlalchemy import delete, insert

        from holdfast.ledger.store import tables

        connection.execute(delete(tables().events))
        connection.execute(insert(tables().events), [dict(zip(COLUMNS, row, strict=True)) for row in table])

    the_store(ledger).write(work)


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


@pytest.mark.ordinary("sqlite")
def test_the_untouched_ledger_is_fine(story: Ledger) -> None:
    assert found(story) == []
    assert [read_row(row, story.id).head for row in rows(story)][-1] == story.head()
    assert found(story, [read_row(row, story.id).head for row in rows(story)]) == []


def of_rows(ledger: Ledger, table: list[tuple[Any, ...]]) -> list[str]:
    """What verify finds in these rows."""
    return [problem for problem in find_problems(table, ledger.id, [], [ledger.id], []) if "takes to resume" not in problem]


@pytest.mark.parametrize("column", COLUMNS)
def test_a_change_in_any_column_of_any_row_is_noticed(file_story: Ledger, column: str) -> None:
    before, place = rows(file_story), COLUMNS.index(column)
    assert of_rows(file_story, before) == []
    for index, row in enumerate(before):
        for value in [*other(column, row[place]), *([] if column == "release_id" else [None]), b"bytes", 1.5, True]:
            changed = [list(one) for one in before]
            changed[index][place] = value
            assert of_rows(file_story, [tuple(one) for one in changed]), (column, index, value)


@pytest.mark.ordinary("sqlite", "postgres-hash")
@pytest.mark.parametrize("column", COLUMNS)
def test_a_change_in_any_column_is_noticed_in_the_database(story: Ledger, column: str) -> None:
    kinds = [read_row(row, story.id).kind for row in rows(story)]
    for kind in ("granted", "reserved", "closed"):
        seq = kinds.index(kind) + 1
        value = {"seq": "seq + 1000", "release_id": "'changed'"}.get(column, f"{column} || ' '")
        run_sql(story, f"CREATE TABLE kept AS SELECT * FROM {EVENTS}", f"UPDATE {EVENTS} SET {column} = {value} WHERE seq = {seq}")
        assert found(story), (column, kind)
        run_sql(story, f"DELETE FROM {EVENTS}", f"INSERT INTO {EVENTS} SELECT * FROM kept", "DROP TABLE kept")
    assert found(story) == []


def test_a_deleted_doubled_or_moved_row_is_noticed_in_the_database(story: Ledger) -> None:
    tricks = [
        f"DELETE FROM {EVENTS} WHERE seq = 5",
        f"DELETE FROM {EVENTS} WHERE seq = 1",
        f"INSERT INTO {EVENTS} SELECT * FROM {EVENTS} WHERE seq = 5",
        f"UPDATE {EVENTS} SET seq = 11 - seq WHERE seq IN (5, 6)",
    ]
    for trick in tricks:
        run_sql(story, f"CREATE TABLE kept AS SELECT * FROM {EVENTS}", trick)
        assert found(story), trick
        run_sql(story, f"DELETE FROM {EVENTS}", f"INSERT INTO {EVENTS} SELECT * FROM kept", "DROP TABLE kept")
    assert found(story) == []


def test_a_deleted_row_is_noticed(file_story: Ledger) -> None:
    before = rows(file_story)
    for index in range(len(before) - 1):
        left = before[:index] + before[index + 1 :]
        assert of_rows(file_story, left), index
        closed_up = [(seq + 1, *row[1:]) for seq, row in enumerate(left)]
        assert of_rows(file_story, closed_up), index


@pytest.mark.ordinary("sqlite")
def test_a_cut_tail_is_noticed_against_a_card(story: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a card or a witness it cannot be: the shorter chain is the ledger as it once was."""
    monkeypatch.setenv("HOLDFAST_STATE", str(tmp_path / "forgotten"))
    before = rows(story)
    heads = [read_row(row, story.id).head for row in before]
    for length in (len(before) - 1, 12, 3, 1):
        run_sql(story, f"DELETE FROM {EVENTS} WHERE seq > {length}")
        assert found(story, heads[:length]) == []
        problems = found(story, heads)
        assert len(problems) == len(before) - length
        assert all("cut off" in problem for problem in problems)
    run_sql(story, f"DELETE FROM {EVENTS}")
    assert found(story)
    with pytest.raises(LedgerBroken):
        story.head()


def test_an_inserted_or_doubled_row_is_noticed(file_story: Ledger) -> None:
    before = rows(file_story)
    for index in range(1, len(before)):
        later = [(row[0] + 1, *row[1:]) for row in before[index:]]
        last, granted = (read_row(before[place], file_story.id) for place in (index - 1, 1))
        forged = make_event(last, file_story.id, "2030", "granted", DATA, None, granted.payload)
        assert of_rows(file_story, [*before[:index], tuple(forged.row()[name] for name in COLUMNS), *later]), index
        assert of_rows(file_story, [*before[:index], before[index - 1], *before[index:]]), index


def test_swapped_rows_are_noticed(file_story: Ledger) -> None:
    before = rows(file_story)
    for first, second in itertools.combinations(range(len(before)), 2):
        swapped = list(before)
        swapped[first], swapped[second] = (before[first][0], *before[second][1:]), (before[second][0], *before[first][1:])
        assert of_rows(file_story, swapped), (first, second)


def rewritten(story: Ledger, change: Callable[[list[dict[str, Any]]], Any]) -> list[tuple[Any, ...]]:
    """What someone can make who writes the whole file: changed events under new hashes that fit."""
    plain: list[dict[str, Any]] = [dict(read_row(row, story.id).to_fields()) for row in rows(story)]
    change(plain)
    made, last = [], None
    for fields in plain:
        last = make_event(last, *(fields[name] for name in ("ledger", "time", "kind", "dataset", "release_id", "payload")))
        made.append(tuple(last.row()[name] for name in COLUMNS))
    return made


def at(events: list[dict[str, Any]], kind: str) -> dict[str, Any]:
    return next(event for event in events if event["kind"] == kind)


@pytest.mark.ordinary("sqlite")
def test_a_chain_written_anew_is_noticed_only_against_a_card(story: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Or against a witness, which is left out here."""
    monkeypatch.setenv("HOLDFAST_STATE", str(tmp_path / "forgotten"))
    heads = [event.head for event in story.events() if event.kind == "reserved"]
    write(story, rewritten(story, lambda events: at(events, "granted").update(time="1999")))
    assert found(story) == []
    for head in heads:
        assert any("written anew" in problem for problem in found(story, [head]))


FORGERIES: dict[str, Callable[[list[dict[str, Any]]], Any]] = {
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
    "disjoint from what does not exist": lambda events: at(events, "reserved")["payload"]["facts"].update(apart("nothing")),
    "two beginnings": lambda events: events.append(at(events, "created")),
    "no beginning": lambda events: events.remove(at(events, "created")),
    "another ledger": lambda events: [event.update(ledger="0" * 32) for event in events],
}


@pytest.mark.parametrize("name", FORGERIES)
def test_a_chain_written_anew_must_keep_every_rule(file_story: Ledger, name: str) -> None:
    assert of_rows(file_story, rewritten(file_story, lambda events: None)) == []
    assert of_rows(file_story, rewritten(file_story, FORGERIES[name]))


@pytest.mark.ordinary("sqlite")
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


@pytest.mark.ordinary("sqlite")
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


@pytest.mark.ordinary("sqlite")
def test_heads_that_are_none_or_of_another_ledger(story: Ledger) -> None:
    identifier, seq, digest = story.head().split(":")
    for end in ("", ":", f":{seq}", f":0:{digest}", f":{seq}:{digest}0", f":{seq}:{START}"):
        assert found(story, [identifier + end])
    assert any("another ledger" in problem for problem in found(story, [f"{'0' * 32}:{seq}:{digest}"]))
    assert any("cut off" in problem for problem in found(story, [f"{identifier}:{10**17}:{digest}"]))


def test_nothing_is_spent_from_a_broken_ledger(story: Ledger) -> None:
    """A row of one data set breaks the balance of the others too: it could have been a reservation of theirs."""
    run_sql(story, f"UPDATE {EVENTS} SET dataset = 'elsewhere' WHERE seq = 5")
    asks: list[Callable[[], Any]] = [
        lambda: reserve(story, "r9", dataset="towns"),
        lambda: grant(story, dataset="towns"),
        lambda: story.balance("towns"),
        lambda: screen(story, "towns"),
        lambda: story.events(),
        lambda: story.open_reservations(),
    ]
    for ask in asks:
        with pytest.raises(LedgerBroken, match="holdfast ledger verify"):
            ask()
    run_sql(story, f"UPDATE {EVENTS} SET time = 'x' WHERE dataset = 'towns'")
    with pytest.raises(LedgerBroken, match="was changed"):
        story.reservation("towns", "r1")


def shared_ids(number: int) -> list[Event]:
    """A ledger without grants in which one id names a release of each data set, and of one more that was voided."""
    chain = [make_event(None, "0" * 32, "t", "created", "", None, {"needs_grants": False})]

    def add(kind: str, dataset: str, payload: dict[str, Any], name: str | None = "r") -> None:
        chain.append(make_event(chain[-1], "0" * 32, "t", kind, dataset, name, payload))

    charge = Charge("zcdp", rho=Fraction(1)).to_fields()
    for dataset in ["voided", *(f"d{place}" for place in range(number))]:
        add("opened", dataset, {"protect": "person"}, None)
        add("reserved", dataset, {"charge": charge, "facts": {}})
        if dataset == "voided":
            add("voided", dataset, {"reservation": chain[-1].seq, "reason": "x"})
    return chain


def test_an_id_of_several_data_sets_is_told_at_each_after_the_first() -> None:
    chain = shared_ids(4)
    open_ones = [event.seq for event in chain if event.kind == "reserved"][1:]
    found = find_problems([[event.row()[name] for name in COLUMNS] for event in chain], "0" * 32, open_ones, ["0" * 32], [])
    assert len(found) == 3
    assert all("The ledger already holds a release 'r', of the data set 'd0'" in problem for problem in found)


def test_ids_of_several_data_sets_are_found_in_one_pass() -> None:
    """The states of all earlier events were computed again for each. Lines that are run grow with the events, not with their square."""

    def lines(number: int) -> int:
        chain, count = shared_ids(number), 0

        def seen(frame: Any, event: str, argument: Any) -> Any:
            nonlocal count
            count += 1
            return seen

        before = sys.gettrace()
        sys.settrace(seen)
        try:
            found = _id_problems(chain)
        finally:
            sys.settrace(before)
        assert len(found) == number - 1
        return count

    assert lines(80) < 2.5 * lines(40)


def test_damage_that_the_rows_do_not_show_is_found(tmp_path: Path, run: Run) -> None:
    """SQLite's list of free pages is not read with the rows."""
    place = tmp_path / "ledger.db"
    ledger = Ledger.open(place, create=True, needs_grants=True)
    grant(ledger)
    assert ledger.verify() == []
    with open(place, "r+b") as file:
        file.seek(36)
        file.write((5).to_bytes(4, "big"))
    assert len(list(Ledger.open(place).events())) == 2
    assert Ledger.open(place).verify() == ["The file of the ledger is damaged: SQLite's quick_check finds faults in it. Restore a copy."]
    done = run("ledger", "verify", "--ledger", str(place))
    assert (done.code, "quick_check finds faults" in done.err) == (12, True)


def test_of_many_problems_the_first_are_printed(tmp_path: Path, run: Run) -> None:
    place = tmp_path / "ledger.db"
    ledger = Ledger.open(place, create=True, needs_grants=True)
    for number in range(40):
        grant(ledger, dataset=f"d{number}")
    run_sql(ledger, f"UPDATE {EVENTS} SET time = 'never'")
    assert len(ledger.verify()) > 41
    shown = run("ledger", "verify", "--ledger", str(place)).err
    assert shown.count("its hash does not fit") == 20
    assert f"And {len(ledger.verify()) - 20} more problems." in shown
