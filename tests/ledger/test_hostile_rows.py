"""Ledgers with one field changed, from seeds: to a path, a pattern, a number, a look-alike, an oversized or a foreign value.

Whatever stands there, each command ends well or with an error of ours; a plan changes nothing; no file outside output, ledger and state is
touched; and no release is published that its card does not name. 200 changes run in the ordinary tests, 10,000 in the long group.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import random
import re
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import holdfast as hf
from holdfast.errors import HoldfastError
from holdfast.ledger import Ledger
from holdfast.ledger.chain import COLUMNS
from holdfast.publication import booking, pipeline
from holdfast.publication.folder import Output
from holdfast.publication.order import Order
from holdfast.publication.pipeline import price
from holdfast.wording.ledger import balances_screen, ledger_screen
from tests.ledger.hostile import Tree, heads, read_events, tree, write_events
from tests.publication.bookings import COUNTS, DATA, KEEP, LAPLACE, SECRET, UNIVERSE, a_ledger, a_release, stop

QUICK, LONG = 200, 10_000
STATES = ("reserved", "drawing", "staged", "committed", "closed")
WEIGHTS = (1, 1, 6, 6, 4)
"""A release that is drawn takes ten times as long as one that is only renamed."""
STOPS = {
    "reserved": (Ledger, "start_drawing"),
    "drawing": (Ledger, "stage"),
    "staged": (Ledger, "commit"),
    "committed": (booking, "put_in_place"),
}
UNFINISHED = re.compile(r"\.holdfast-unfinished-[0-9a-f]{32}-[0-9]+-[0-9a-f]{64}(\.lock)?")
REMEMBERED = re.compile(r"[0-9a-f]{32}\.(mark|lock)|secrets|secrets/[0-9a-f]{32}-[1-9][0-9]*|places|places/[0-9a-f]{64}")


@dataclass
class Office:
    """One place on disk that is put back before each change, as it was with a release in each state, and others beside it."""

    place_above: Path
    table: hf.Table
    plan: Any
    foreign: list[Any]
    """Of another ledger: its head, its identifier, the checksum of a card, a release and its folder."""

    @property
    def root(self) -> Path:
        return self.place_above / "live"

    @property
    def kept(self) -> Path:
        return self.place_above / "kept"

    @property
    def outside(self) -> Path:
        return self.place_above / "outside"

    @property
    def work(self) -> Path:
        return self.root / "work"

    @property
    def place(self) -> Path:
        return self.work / "ledger.db"

    def put_back(self, state: str) -> None:
        shutil.rmtree(self.root, ignore_errors=True)
        shutil.copytree(self.kept / state, self.root, symlinks=True)

    def account(self, **options: Any) -> booking.ChargedAccount:
        return booking.ChargedAccount(Ledger.open(self.place, **options), DATA, SECRET)

    def release(self, name: str, folder: str, *, resume: bool = False) -> None:
        output = Output(self.work / folder, ("csv",))
        pipeline.carry_out(self.plan, self.table, Order(name), output, self.account(), resume=resume)


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Office]:
    place = tmp_path_factory.mktemp("rows")
    table = hf.Table(UNIVERSE, COUNTS, name=DATA)
    made = Office(place, table, hf.plan(table, KEEP, LAPLACE), [])
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("HOLDFAST_WITNESS", raising=False)
        patch.setenv("HOLDFAST_KEY", SECRET.decode())
        patch.setenv("HOLDFAST_STATE", str(place / "elsewhere"))
        made.foreign.extend(_prepare_outside(made.outside))
        patch.setenv("HOLDFAST_STATE", str(made.root / "state"))
        patch.setattr(os, "fsync", lambda handle: None)  # no power is lost here
        for state in STATES:
            _prepare(made, state)
            shutil.copytree(made.root, made.kept / state)
            shutil.rmtree(made.root)
        yield made


def _prepare_outside(place: Path) -> list[Any]:
    for name in ("docs", "theirs"):
        (place / name).mkdir(parents=True)
    (place / "docs" / "annual-report.txt").write_text("the annual report")
    (place / "docs" / "x-1").write_text("notes")
    ledger = a_ledger(place / "theirs")
    folder = a_release(ledger, "theirs").save(place / "theirs" / "published")
    checksum = hashlib.sha256((folder / "card.json").read_bytes()).hexdigest()
    return [ledger.head(), ledger.id, checksum, "theirs", str(folder)]


def _prepare(office: Office, state: str) -> None:
    office.work.mkdir(parents=True)
    ledger = a_ledger(office.work)
    a_release(ledger, "r0").save(office.outside / f"before-{state}")
    with pytest.MonkeyPatch.context() as patch:
        if state in STOPS:
            patch.setattr(*STOPS[state], stop)
            with pytest.raises(KeyboardInterrupt):
                office.release("r1", "out")
        else:
            office.release("r1", "out")
    found = ledger.reservation(DATA, "r1")
    assert found is not None
    assert found.state == state


# One change.


def other_value(rng: random.Random, value: Any, office: Office) -> Any:
    """A path, a pattern, a number, a look-alike, an oversized or a foreign value."""
    docs, text = str(office.outside / "docs"), value if isinstance(value, str) else json.dumps(value, default=str)
    alike = [text.upper(), text + "\n", text + " ", text[:-1], text.replace("1", "\uff11"), text.replace("a", "\u0430"), text + "\0"]
    kinds: list[list[Any]] = [
        [
            docs,
            f"{docs}/annual-report.txt",
            "../../outside/docs",
            "../../../outside/docs/x",
            "..",
            ".",
            "/",
            "~",
            "../../outside/theirs/published",
            f"file:{docs}?mode=rwc",
        ],
        ["*", "?" * 32, "../../../outside/docs/*", f"{docs}/*", "[0-9a-f]*", "**/*", "%", "_", "{}", "%s"],
        [0, -1, 1, 2, 3, 7, 2**31, 2**63 - 1, -(2**63), 1.5, 1e308, "0", "1/0", "1e999999999", "-1", "nan", "9" * 4400],
        [*alike, value],
        ["x" * 10_000, "[" * 5_000, "\u202e" * 300, "9" * 3_999, "a" * 32 * 100],
        office.foreign,
        [None, True, False, "", b"\xff\xfe", b"", [], {}, [[]], {"": 1}, [None], {"kind": "pure"}],
    ]
    return rng.choice(rng.choice(kinds))


def inner_places(value: Any) -> list[tuple[Any, Any]]:
    """(container, key) of every value inside."""
    found: list[tuple[Any, Any]] = []
    for name, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        found += [(value, name), *inner_places(inner)]
    return found


def plain(value: Any) -> Any:
    """As JSON can hold it."""
    return value.decode("latin-1") if isinstance(value, bytes) else value


def stored(value: Any) -> Any:
    """As a database can hold it."""
    return json.dumps(value) if isinstance(value, list | dict) else value


def change_payload(rng: random.Random, office: Office) -> None:
    """Some value of an event's payload, or a field more, with hashes that fit from there on."""
    events = read_events(office.place)
    payload = rng.choice(events[-6:] if rng.random() < 0.7 else events)["payload"]
    places = inner_places(payload)
    if not places or rng.random() < 0.3:
        payload[rng.choice(["folder_name", "checksum", "reservation", "head", "facts", "needs_grants"])] = plain(
            other_value(rng, "x", office)
        )
    else:
        container, name = rng.choice(places)
        container[name] = plain(other_value(rng, container[name], office))
    write_events(office.place, events)


def change_event(rng: random.Random, office: Office) -> None:
    """A column of an event, with hashes that fit from there on."""
    events = read_events(office.place)
    event, name = rng.choice(events), rng.choice([name for name in COLUMNS if name not in ("payload", "previous", "hash")])
    event[name] = plain(stored(other_value(rng, event[name], office)))
    write_events(office.place, events)


def change_kind(rng: random.Random, office: Office) -> None:
    """One event more, or one less, or of another kind, with hashes that fit."""
    events = read_events(office.place)
    kind = rng.choice(["drawing", "staged", "committed", "published", "closed", "voided", "voided-spent", "lost", "refunded", "opened"])
    made = {**events[-1], "kind": kind, "payload": dict(events[-1]["payload"])}
    if kind == "staged":
        made["payload"] |= {"folder_name": office.foreign[4], "checksum": office.foreign[2]}
    choice = rng.randrange(3)
    if choice == 0:
        write_events(office.place, [*events, {**made, "seq": made["seq"] + 1}])
    elif choice == 1:
        write_events(office.place, [*events[:-1], made])
    else:
        write_events(office.place, events[: rng.randrange(1, len(events))])


def change_row(rng: random.Random, office: Office) -> None:
    """A column of any table, as it is: no hash is made to fit."""
    table, columns = rng.choice(
        [("holdfast_meta", ("value",)), ("holdfast_events", COLUMNS), ("holdfast_open_reservations", ("seq", "sealed_key", "input_check"))]
    )
    column = rng.choice(columns)
    file = sqlite3.connect(office.place, isolation_level=None)
    rows = file.execute(f"SELECT rowid, {column} FROM {table}").fetchall()
    if rows:
        number, value = rng.choice(rows)
        file.execute(
            f"UPDATE OR IGNORE {table} SET {column} = coalesce(?, {column}) WHERE rowid = ?",
            (stored(other_value(rng, value, office)), number),
        )
    file.close()


def change_id(rng: random.Random, office: Office) -> None:
    """The identifier, in all events and beside them."""
    events = read_events(office.place)
    value = plain(stored(other_value(rng, events[0]["ledger"], office)))
    value = "" if value is None else str(value)
    write_events(office.place, [{**event, "ledger": value} for event in events])
    file = sqlite3.connect(office.place, isolation_level=None)
    file.execute("UPDATE holdfast_meta SET value = ? WHERE name = 'ledger'", (value,))
    file.close()


def change_state(rng: random.Random, office: Office) -> None:
    """A file of the state folder: a mark, or what is remembered of the place."""
    path = rng.choice([path for path in sorted((office.root / "state").rglob("*")) if path.is_file() and path.parent.name != "secrets"])
    if path.suffix != ".mark":
        path.write_text(str(plain(stored(other_value(rng, path.read_text(), office)))))
        return
    fields = json.loads(path.read_text())
    container, name = rng.choice(inner_places(fields))
    container[name] = plain(other_value(rng, container[name], office))
    path.write_text(json.dumps(fields, sort_keys=True, separators=(",", ":"), ensure_ascii=True) + "\n")


CHANGES: list[Callable[[random.Random, Office], None]] = [
    *(
        change_payload,
        change_payload,
        change_payload,
        change_event,
        change_kind,
        change_kind,
        change_row,
        change_row,
        change_id,
        change_state,
    )
]


# What is done with it, and what must hold.


def answered(step: Callable[[], object]) -> None:
    """A step ends well, or with an error of ours."""
    said = ""
    try:
        step()
    except HoldfastError as error:
        said = str(error)
    assert len(said) < 4_000, "a message shows what a row holds at length"
    assert said.isprintable(), "a message shows what no screen should"


def look(office: Office, name: str) -> None:
    """What `plan` asks."""
    answered(lambda: price(office.plan, office.account(read_only=True), Order(name)))


def show(office: Office) -> None:
    answered(lambda: balances_screen(Ledger.open(office.place, read_only=True).balances()))
    ledger = Ledger.open(office.place, read_only=True)
    ledger_screen(ledger.account(DATA), ledger.last_event())


def void(office: Office) -> None:
    ledger = Ledger.open(office.place)
    held = ledger.reservation(DATA, "r1")
    if held is not None:
        ledger.void(held, "a test")


STEPS: list[tuple[int, Callable[[Office], object]]] = [
    (8, lambda office: office.release("r1", "out", resume=True)),
    (1, lambda office: office.release("r2", "out2")),
    (2, lambda office: Ledger.open(office.place, read_only=True).verify()),
    (2, show),
    (2, void),
    (1, lambda office: Ledger.reopen(office.place).accept_restore(approver="A", reason="B")),
]


def check_outside(office: Office, before: Tree, rng_note: str) -> None:
    """No file outside output, ledger and state was touched, and those have only names that Holdfast gives."""
    after = tree(office.root)
    inside = re.compile(
        r"(work|work/ledger\.db(-journal)?|work/out2?(/[a-z.]+)?|state|state/.*|work/\.holdfast-unfinished-[^/]*(/[a-z.]+)?)"
    )
    for path in {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}:
        assert inside.fullmatch(path), (rng_note, path)
    for path in after.keys() - before.keys():
        first, _, rest = path.partition("/")
        if first == "state" and rest:
            assert REMEMBERED.fullmatch(rest), (rng_note, path)
        if rest.startswith("."):
            assert UNFINISHED.fullmatch(rest.partition("/")[0]), (rng_note, path)


def check_published(office: Office, note: str) -> None:
    """What has the name of an output is the release that was asked for, of the entry that its card names, whole."""
    for name, folder in (("r1", office.work / "out"), ("r2", office.work / "out2")):
        if not folder.exists():
            continue
        card = json.loads((folder / "card.json").read_text(encoding="utf-8"))
        assert card["release"]["id"] == name, note
        assert re.fullmatch("[0-9a-f]{32}:[1-9][0-9]*:[0-9a-f]{64}", card["release"]["ledger"]), note
        assert card["release"]["ledger"] in heads(office.place), note
        assert sorted(os.listdir(folder)) == sorted([*card["files"], "card.json"]), note
        for file, said in card["files"].items():
            assert hashlib.sha256((folder / file).read_bytes()).hexdigest() == said["sha256"], note


def try_one(office: Office, seed: int) -> None:
    rng = random.Random(seed)
    state, change = rng.choices(STATES, WEIGHTS)[0], rng.choice(CHANGES)
    office.put_back(state)
    with contextlib.suppress(sqlite3.IntegrityError):  # no table of ours holds such a value: the ledger stays as it was
        change(rng, office)
    if rng.random() < 0.5:  # on another machine, where nothing was seen of the ledger
        for path in [*(office.root / "state").glob("*.mark"), *(office.root / "state" / "places").iterdir()]:
            path.unlink()
    note = f"seed {seed}: {change.__name__} in {state}"
    before, outside = tree(office.root), tree(office.outside)
    was_published = {path: what for path, what in before.items() if path.startswith("work/out/")}
    look(office, rng.choice(["r1", "r9"]))
    assert tree(office.root) == before, f"{note}: a plan wrote"
    for step in rng.choices([step for _, step in STEPS], [weight for weight, _ in STEPS], k=2):
        answered(lambda step=step: step(office))  # type: ignore[misc]
    check_outside(office, before, note)
    assert tree(office.outside) == outside, note
    if was_published:
        assert {path: what for path, what in tree(office.root).items() if path.startswith("work/out/")} == was_published, note
    else:
        check_published(office, note)


def test_a_row_with_another_value(office: Office) -> None:
    for seed in range(QUICK):
        try_one(office, seed)


@pytest.mark.long
@pytest.mark.parametrize("part", range(10))
def test_many_rows_with_another_value(office: Office, part: int) -> None:
    for seed in range(QUICK + part * LONG // 10, QUICK + (part + 1) * LONG // 10):
        try_one(office, seed)


def test_the_untouched_ledger_is_finished(office: Office) -> None:
    """Else the fuzz would show nothing: from every state the release can be finished, and is what was asked for."""
    for state in STATES[:-1]:
        office.put_back(state)
        office.release("r1", "out", resume=True)
        check_published(office, state)
        assert (office.work / "out" / "card.json").exists()
