"""Sentences about releases that were declared to share no person."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.ledger.disjoint import Disjoint

NAMES_SHOWN = 5
ONE = "The ledger adds the two charges only if other releases that may share people with both connect them; else the larger sum counts."
"""What a declaration against one release changes. The pages of a publication say it in the words of their catalogue."""
SEVERAL = "The ledger adds the charge of this release to theirs only where further releases that may share people connect them."
"""What a declaration against several releases changes."""


def disjoint_sentences(declared: Disjoint, protected: str) -> str:
    """What is declared, what it changes, and why it is so. The reason stands last: it may hold any text."""
    one = len(declared.releases) == 1
    return (
        f"It is declared that no {protected} is both in this table and in {'that' if one else 'those'} of {short_list(declared.releases)}. "
        f"{ONE if one else SEVERAL} Reason given: {declared.because}"
    )


def short_list(names: tuple[str, ...]) -> str:
    """The first few names, and how many more there are."""
    more = len(names) - NAMES_SHOWN
    shown = ", ".join(names[:NAMES_SHOWN])
    return f"{shown} and {more} more" if more > 0 else shown
