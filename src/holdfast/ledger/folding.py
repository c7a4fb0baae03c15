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
