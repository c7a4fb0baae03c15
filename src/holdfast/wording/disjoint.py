"""Sentences about releases that were declared to share no person."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.ledger.disjoint import Disjoint

NAMES_SHOWN = 5


def disjoint_sentences(declared: Disjoint, unit: str) -> str:
    """What is declared, what it changes, and why it is so. The reason stands last: it may hold any text."""
    return (
        f"It is declared that no {unit} is in this table and in that of {short_list(declared.releases)}. The ledger then counts the larger "
        f"charge, not the sum. Reason given: {declared.because}"
    )


def short_list(names: tuple[str, ...]) -> str:
    """The first few names, and how many more there are."""
    more = len(names) - NAMES_SHOWN
    shown = ", ".join(names[:NAMES_SHOWN])
    return f"{shown} and {more} more" if more > 0 else shown
