"""What can be wrong with a ledger, found from its rows alone: the chain, the protocol, the sums, the secrets, the published heads."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from holdfast.display import Json
from holdfast.errors import InvalidParameter
from holdfast.ledger.account import Account, id_in_use
from holdfast.ledger.chain import Event, Folding, read_head, walk
from holdfast.ledger.disjoint import DISJOINT


def find_problems(
    rows: Iterable[Sequence[Any]],
    ledger: Any,
    secrets_held: Sequence[Any],
    identifiers: Sequence[Any],
    heads: Sequence[tuple[str, str]],
    declared: Sequence[tuple[str, Any]] = (),
) -> list[str]:
    """Every problem as a sentence.

    Given:  the rows of the events in order, the ledger's identifier as stored now, the event numbers of the secrets that are held,
            every identifier that was read for this ledger (they must agree), heads from outside, each with the words for who says it,
            and what cards that name a head declare to be disjoint.
    """
    problems = [] if len(set(map(str, identifiers))) == 1 else ["The identifier of the ledger was changed, or there are several."]
    events: list[Event] = []
    for event, found in walk(rows, ledger):
        problems.extend(found)
        if event is not None:
            events.append(event)
    problems.extend(_first_problems(events))
    accounts: dict[str, Account] = {}
    for event in events:
        if event.kind in ("created", "restored"):
            continue
        account = accounts.setdefault(event.dataset, Account(event.dataset))
        problem = account.apply(event)
        if problem is not None:
            problems.append(f"Event {event.seq} ({event.kind_shown}): {problem}")
    problems.extend(_id_problems(events))
    problems.extend(_secret_problems(accounts, secrets_held))
    charged = {event.origin for event in events if event.kind == "lost"}
    known = {event.seq: event for event in events}
    problems.extend(problem for who, head in heads if head not in charged for problem in _head_problems(who, head, ledger, known))
    problems.extend(_declaration_problems(events, declared))
    return problems


def _declaration_problems(events: list[Event], declared: Sequence[tuple[str, Any]]) -> list[str]:
    """Cards that declare other releases disjoint, or for another reason, than their entries do. Of lost entries nothing is known."""
    entries = {event.head: event for event in events if event.kind == "reserved"}
    wrong = [entries[head] for head, said in declared if head in entries and _declared(entries[head]) != said]
    return [f"The card of {event.release_id!r} declares something else as disjoint than event {event.seq} does." for event in wrong]


def _declared(event: Event) -> Json:
    """What the event that reserves a release says to be disjoint; None also where it cannot be read, which is said elsewhere."""
    facts = event.payload.get("facts")
    return facts.get(DISJOINT) if isinstance(facts, Mapping) else None


def _first_problems(events: list[Event]) -> list[str]:
    if not events or events[0].kind != "created":
        return ["The first event does not create a ledger."]
    return [f"Event {event.seq} creates a ledger where there is one." for event in events[1:] if event.kind == "created"]


def _id_problems(events: list[Event]) -> list[str]:
    """In a ledger that needs no grants an id names one release of all its data sets."""
    if not events or events[0].needs_grants:
        return []
    folding, standing, problems = Folding(), defaultdict[str | None, Counter[str]](Counter), []
    for event in events:
        if event.kind == "reserved":
            other = next((dataset for dataset in standing[event.release_id] if dataset != event.dataset), None)
            if other is not None:
                problems.append(f"Event {event.seq} ({event.kind_shown}): {id_in_use(str(event.release_id), other)}")
        moved, named = folding.take(event), standing[event.release_id]
        if moved == event.seq:
            named[event.dataset] += 1
        elif moved is not None and folding.states[moved] == "voided":
            named[event.dataset] -= 1
            if not named[event.dataset]:
                del named[event.dataset]
    return problems


def _secret_problems(accounts: dict[str, Account], secrets_held: Sequence[Any]) -> list[str]:
    """Secrets are held for open releases, for all of them, and for nothing else."""
    is_open = {seq: release.is_open for account in accounts.values() for seq, release in account.releases.items()}
    held = set(secrets_held)
    lacking = [seq for seq, opened in is_open.items() if opened and seq not in held]
    stray = [seq for seq in held if not is_open.get(seq)]
    return [f"The release reserved by event {seq} is open, but what it takes to resume it is gone. Void it." for seq in sorted(lacking)] + [
        f"Secrets are kept for event {seq!r}, which is no open release." for seq in sorted(stray, key=str)
    ]


def _head_problems(who: str, head: str, ledger: Any, events: Mapping[int, Event]) -> list[str]:
    try:
        identifier, seq, digest = read_head(head)
    except InvalidParameter as error:
        return [str(error)]
    if identifier != ledger:
        return [f"{who} names the head {_short(head)}, which belongs to another ledger."]
    found = events.get(seq)
    if found is None:
        last = max(events, default=0)
        cut = f"the ledger ends at event {last}: its tail was cut off" if seq > last else "this event cannot be read"
        return [f"{who} names event {seq}, but {cut}."]
    if found.hash != digest:
        return [f"{who} names event {seq} with another hash: the ledger was written anew."]
    return []


def _short(head: str) -> str:
    return head if len(head) <= 48 else head[:45] + "..."
