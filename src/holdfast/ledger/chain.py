"""Events and the hash chain that joins them: each hash covers its event and the hash before it.

Every event has a random salt of 128 bits. Without it, someone who holds two published heads could try out what lies between them (times,
names, amounts) until the hashes agree; with it a head says nothing but its place in the chain.

A ledger's identifier names files in the state folder. So a text from a database, a mark, a card or a file of places becomes a `LedgerId`
only here, and only a `LedgerId` becomes part of a file's name. `Folding` says where each release of a chain stands: only steps that are
known, in the order that is allowed.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NewType, cast

from holdfast.display import Json, read_as
from holdfast.errors import InvalidParameter, LedgerBroken
from holdfast.ledger.releases import ReleaseFacts
from holdfast.ledger.values import Charge, State

COLUMNS = ("seq", "ledger", "time", "kind", "dataset", "release_id", "payload", "salt", "previous", "hash")
"""Columns of an event as stored; `payload` is canonical JSON, and its very text is hashed."""
MAX_SEQ = 10**18 - 1
"""The largest number of an event: every database holds it."""
START = "0" * 64
"""The hash before the first event."""
_HEAD = re.compile(r"([0-9a-f]{32}):([1-9][0-9]{0,17}):([0-9a-f]{64})")
_HASH = re.compile(r"[0-9a-f]{64}")
_KIND = re.compile(r"[a-z-]{1,20}")


@dataclass(frozen=True)
class Event:
    """One row of the ledger. `release_id` is None for grants; `payload` holds public facts, never a key or a digest of data."""

    seq: int
    ledger: str
    time: str
    kind: str
    dataset: str
    release_id: str | None
    payload: Mapping[str, Json]
    salt: str
    previous: str
    hash: str

    @property
    def charge(self) -> Charge:
        """What the release costs that it reserves, or tells to be lost. As `facts`, KeyError, TypeError or ValueError for anything else."""
        return Charge.from_fields(self.payload["charge"])

    @property
    def facts(self) -> ReleaseFacts:
        """Public facts of that release."""
        return ReleaseFacts.read(read_as(dict, self.payload["facts"]))

    @property
    def origin(self) -> str:
        """The head at which that release was reserved; it is said by the event where the release was lost."""
        return str(self.payload.get("head")) if self.kind == "lost" else self.head

    @property
    def reservation(self) -> int | None:
        """The number of the event that reserved the release that this step moves; None where it says none."""
        seq = self.payload.get("reservation")
        return seq if isinstance(seq, int) and not isinstance(seq, bool) else None

    @property
    def needs_grants(self) -> bool:
        """Whether the ledger that it creates needs grants; ledgers made before it was asked do."""
        return self.payload.get("needs_grants") is not False

    @property
    def head(self) -> str:
        """Its place in the chain as text: "<ledger id>:<seq>:<hash>"."""
        return f"{self.ledger}:{self.seq}:{self.hash}"

    @property
    def kind_shown(self) -> str:
        """Its kind for a message; whoever wrote the row may have put anything there."""
        return self.kind if _KIND.fullmatch(self.kind) else "of no kind"

    def row(self) -> dict[str, Json]:
        """As stored."""
        return {name: getattr(self, name) for name in COLUMNS} | {"payload": canonical(self.payload)}

    def to_fields(self) -> dict[str, Json]:
        """JSON-ready."""
        return {name: getattr(self, name) for name in COLUMNS}


def canonical(value: Json) -> str:
    """JSON with one text for one value: keys sorted, no blanks, ASCII only."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def checked_facts(value: object, where: str = "facts") -> Json:
    """A copy of plain facts (text, whole numbers, true, false, null, lists, mappings by text); anything else is refused."""
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, list | tuple):
        return [checked_facts(item, f"{where}[{index}]") for index, item in enumerate(value)]
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {key: checked_facts(item, f"{where}[{key!r}]") for key, item in value.items()}
    advice = "Write the number as text: a ledger is exact." if isinstance(value, float) else "Use texts, ints, lists, dicts."
    raise InvalidParameter(f"{where} must be plain facts. Got {type(value).__name__}. {advice}")


def make_event(
    last: Event | None, ledger: str, time: str, kind: str, dataset: str, release_id: str | None, payload: Mapping[str, Json]
) -> Event:
    """The event that follows `last`."""
    seq, previous = (1, START) if last is None else (last.seq + 1, last.hash)
    event = Event(seq, ledger, time, kind, dataset, release_id, payload, secrets.token_hex(16), previous, "")
    return replace(event, hash=_hash(event.row()))


def read_row(row: Sequence[Any], ledger: LedgerId) -> Event:
    """A stored row of this ledger whose own hash holds. LedgerBroken where it does not; the chain is not looked at."""
    values = dict(zip(COLUMNS, row, strict=True))
    problem = _row_problem(values) or ("" if values["ledger"] == ledger else "belongs to another ledger")
    if problem:
        raise LedgerBroken(f"Event {_seq_text(values['seq'])} of the ledger {problem}. Run `holdfast ledger verify`, and restore a copy.")
    return Event(**(values | {"payload": json.loads(values["payload"])}))


def read_chain(rows: Iterable[Sequence[Any]], ledger: str) -> list[Event]:
    """All events of a ledger; LedgerBroken at the first row that is not what was written."""
    events: list[Event] = []
    for event, problems in walk(rows, ledger):
        if event is None or problems:
            raise LedgerBroken(f"{problems[0]} Nothing is spent from a broken ledger. Run `holdfast ledger verify`, and restore a copy.")
        events.append(event)
    if not events:
        raise LedgerBroken("The ledger has no first event. Restore a copy.")
    return events


def walk(rows: Iterable[Sequence[Any]], ledger: str) -> Iterator[tuple[Event | None, list[str]]]:
    """Each row in the order of `seq`, as an event (None if it cannot be read) with the problems found there."""
    expected, previous = 1, START
    for row in rows:
        values = dict(zip(COLUMNS, row, strict=True))
        seq, problems = values["seq"], []
        if seq != expected:
            problems.append(f"Event {expected} is missing: the next one is {_seq_text(seq)}.")
        own = _row_problem(values)
        if own:
            problems.append(f"Event {_seq_text(seq)} {own}.")
        if values["ledger"] != ledger:
            problems.append(f"Event {_seq_text(seq)} belongs to another ledger.")
        if values["previous"] != previous:
            problems.append(f"Event {_seq_text(seq)} does not follow the one before it.")
        event = None if own else Event(**(values | {"payload": json.loads(values["payload"])}))
        yield event, problems
        expected = seq + 1 if isinstance(seq, int) else expected + 1
        previous = values["hash"]


def read_head(text: Any) -> tuple[LedgerId, int, str]:
    """(ledger id, seq, hash) of a head as printed in cards."""
    match = _HEAD.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise InvalidParameter("A head of a ledger reads '<ledger id>:<number>:<hash>'. Copy it from the card's field release.ledger.")
    return LedgerId(match[1]), int(match[2]), match[3]


def is_hash(value: Any) -> bool:
    """Whether this is the text of a hash."""
    return isinstance(value, str) and _HASH.fullmatch(value) is not None


def _row_problem(values: Mapping[str, object]) -> str:
    """What is wrong with one row alone, as the end of a sentence; empty if nothing is."""
    for name, value in values.items():
        right = type(value) is int if name == "seq" else isinstance(value, str) or (value is None and name == "release_id")
        if not right:
            return f"has no valid {name}"
    if not is_hash(values["hash"]) or _hash(values) != values["hash"]:
        return "was changed: its hash does not fit"
    try:
        payload = json.loads(str(values["payload"]))
        is_plain = isinstance(payload, dict) and canonical(payload) == values["payload"]
    except (ValueError, RecursionError):
        is_plain = False
    return "" if is_plain else "has a payload that is not canonical JSON"


def _seq_text(seq: Any) -> str:
    """The number of an event in a message; whoever wrote the row may have put anything there."""
    return f"{seq!r}"[:24]


def _hash(values: Mapping[str, object]) -> str:
    text = canonical(cast(Json, {name: values[name] for name in COLUMNS if name != "hash"}))
    return hashlib.sha256(text.encode("ascii")).hexdigest()


LedgerId = NewType("LedgerId", str)
_ID = re.compile("[0-9a-f]{32}")


def new_ledger_id() -> LedgerId:
    """A random identifier, for a new ledger."""
    return LedgerId(secrets.token_hex(16))


def read_ledger_id(value: Any) -> LedgerId:
    """Return the value as an identifier. Raise ValueError if it is not one."""
    if not isinstance(value, str) or _ID.fullmatch(value) is None:
        raise ValueError("the identifier of a ledger has 32 hexadecimal digits")
    return LedgerId(value)


BEFORE: dict[State, tuple[State, ...]] = {
    "drawing": ("reserved",),
    "staged": ("drawing",),
    "committed": ("staged",),
    "published": ("committed",),
    "closed": ("published",),
    "voided": ("reserved",),
    "voided-spent": ("drawing", "staged"),
}
"""From which states a state is reached. A void gives the charge back only where no random word was drawn."""
BEGUN: dict[str, State] = {"reserved": "reserved", "lost": "lost"}
"""In which state a release is that an event begins, by the kind of the event."""


class Folding:
    """Where each release stands after some events, by the number of the event that reserved it or tells that it was lost.

    A step that does not follow from where its release stands, or names another release than its reservation, moves nothing: a forged
    refund gives back no charge, and frees no name.
    """

    def __init__(self) -> None:
        self.states: dict[int, State] = {}
        self._names: dict[int, tuple[str, str | None]] = {}

    def take(self, event: Event) -> int | None:
        """Count one more event, and return the number of the release that it begins or moves; None where it does neither."""
        name = (event.dataset, event.release_id)
        if event.kind in BEGUN:
            self.states[event.seq], self._names[event.seq] = BEGUN[event.kind], name
            return event.seq
        seq = event.reservation
        if event.kind in BEFORE and seq is not None and self._names.get(seq) == name and self.states[seq] in BEFORE[event.kind]:
            self.states[seq] = event.kind
            return seq
        return None


def states_in(chain: Iterable[Event]) -> dict[int, State]:
    """Where each release of a chain stands, as `Folding` says."""
    folding = Folding()
    for event in chain:
        folding.take(event)
    return folding.states
