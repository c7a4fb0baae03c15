"""Which step follows from which, and where each release of a chain stands: only steps that are known, in the order that is allowed."""

from __future__ import annotations

from collections.abc import Iterable

from holdfast.ledger.chain import Event
from holdfast.ledger.values import State

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


def states_in(chain: Iterable[Event]) -> dict[int, State]:
    """Where each release stands, by the number of the event that reserved it or tells that it was lost.

    A step that does not follow from where its release stands, or names another release than its reservation, moves nothing: a forged
    refund gives back no charge, and frees no name.
    """
    found: dict[int, State] = {}
    names: dict[int, tuple[str, str | None]] = {}
    for event in chain:
        name = (event.dataset, event.release_id)
        if event.kind in BEGUN:
            found[event.seq], names[event.seq] = BEGUN[event.kind], name
        elif event.kind in BEFORE:
            seq = event.payload.get("reservation")
            if type(seq) is int and names.get(seq) == name and found[seq] in BEFORE[event.kind]:
                found[seq] = event.kind
    return found
