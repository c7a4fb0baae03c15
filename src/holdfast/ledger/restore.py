"""What a ledger that was put back to an older copy has lost, as far as its witness saw it, and the events that charge it again.

A release that the copy does not hold is charged as `lost`: it counts, its name is used up, and nothing is known of its cells, so it adds to
everything. One that the copy holds as reserved, and that had begun to draw, goes on to `drawing`: a void must not give its charge back.
Grants that were lost stay lost, and the budget is smaller. A grant that was taken back after the copy was made stands again: marks hold
releases only, so the message asks whoever accepts the restore to take it back again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from holdfast.display import Json
from holdfast.ledger.chain import Event, read_head
from holdfast.ledger.folding import states_in
from holdfast.ledger.witness import Mark, Seen

Step = tuple[str, str, str | None, Mapping[str, Json]]
"""(kind, dataset, release id, payload) of an event to be appended."""


def steps_after_restore(chain: list[Event], marks: Iterable[Mark], needs_grants: bool) -> tuple[list[Step], list[Seen]]:
    """The events that charge what was lost, and the releases that are charged as lost."""
    hashes = {event.seq: event.hash for event in chain}
    told = {event.origin for event in chain if event.kind == "lost"}
    states = states_in(chain)
    steps: list[Step] = []
    lost: list[Seen] = []
    for one in _last_seen(marks):
        ledger, seq, own_hash = read_head(one.origin)
        state = states.get(seq) if ledger == chain[0].ledger and hashes.get(seq) == own_hash else None
        if one.counts and one.origin not in told and state in (None, "voided"):
            lost.append(one)
            facts = {"protect": one.protect}
            steps.append(("lost", one.dataset, one.release_id, {"charge": one.charge.to_fields(), "facts": facts, "head": one.origin}))
        elif one.is_drawn and state == "reserved":
            steps.append(("drawing", one.dataset, one.release_id, {"reservation": seq}))
    opened = [] if needs_grants else _find_missing_accounts(chain, lost)
    return [*opened, *steps], lost


def _last_seen(marks: Iterable[Mark]) -> list[Seen]:
    """Each release once. Marks may be of different age, and of chains that parted: one that was drawn in any of them was drawn, and of
    others the later mark knows more.
    """
    found: dict[str, Seen] = {}
    for mark in sorted(marks, key=lambda mark: mark.seq):
        for one in mark.releases.values():
            if one.origin not in found or one.is_drawn or not found[one.origin].is_drawn:
                found[one.origin] = one
    return list(found.values())


def _find_missing_accounts(chain: list[Event], lost: list[Seen]) -> list[Step]:
    """Accounts that the copy does not have yet, in a ledger that records without a limit."""
    there = {event.dataset for event in chain if event.kind in ("granted", "opened")}
    protected = {one.dataset: one.protect for one in reversed(lost) if one.dataset not in there}
    return [("opened", dataset, None, {"protect": name}) for dataset, name in protected.items()]
