"""The declaration that no person is in two tables: an office makes it, with its reason. Codes never prove it.

Two tables with different codes may hold the same people: codes can be shifted, exchanged or reformed. So the charges of all releases of a
data set add up, unless the later release declares that it shares no person with the earlier one.

Someone who leaves the people of one table may join those of the other. What that costs is at most half of a charge on each side where
[theory T193] holds, and `ReleaseFacts.why_not_disjoint` says where it does not.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass

from holdfast.display import Json
from holdfast.errors import InvalidParameter
from holdfast.ledger.values import name_of, text_of

DISJOINT = "disjoint"
"""The argument, and the key of a run file, that makes the declaration."""
MAX_BECAUSE = 500
"""Longest reason, in characters: the statement shows all of it."""
MAX_FROM = 500
"""Most releases that one declaration names."""
_JOINERS = "\u200c\u200d"
"""Invisible characters that words of some languages need."""


@dataclass(frozen=True)
class Disjoint:
    """No person of this release's table is in the table of any of these releases, and why that is so. Checked when it is made."""

    releases: tuple[str, ...]
    because: str

    def __post_init__(self) -> None:
        if not self.releases:
            raise InvalidParameter("disjoint: from must name at least one release. Got an empty list.", field=DISJOINT)
        if len(self.releases) > MAX_FROM:
            raise InvalidParameter(f"disjoint: from may name {MAX_FROM} releases. Got {len(self.releases)}.", field=DISJOINT)
        for release in self.releases:
            name_of(release, "disjoint: each entry of from")
        if len(set(self.releases)) < len(self.releases):
            raise InvalidParameter("disjoint: from names a release twice. Name each once.", field=DISJOINT)
        check_because(self.because)

    @classmethod
    def read(cls, given: object) -> Disjoint:
        """A declaration from {"from": [release ids], "because": reason}; InvalidParameter for anything else."""
        if not isinstance(given, Mapping) or set(given) != {"from", "because"} or not isinstance(given["from"], list | tuple):
            raise InvalidParameter(
                'disjoint takes the ids of releases and a reason, and nothing else: {"from": ["north-2030"], "because": "..."}.',
                field=DISJOINT,
            )
        return cls(tuple(given["from"]), given["because"])

    def to_fields(self) -> dict[str, Json]:
        """JSON-ready, as `read` takes it."""
        return {"from": list(self.releases), "because": self.because}


def check_because(reason: object) -> None:
    """Raise InvalidParameter if this is not a reason that a person can read: one line, with at least one letter."""
    text = text_of(reason, "disjoint: because", MAX_BECAUSE)
    if any(unicodedata.category(letter) in ("Cc", "Cf", "Zl", "Zp") and letter not in _JOINERS for letter in text):
        raise InvalidParameter(
            "disjoint: because must not hold control characters, line breaks or characters that reorder text. Write it on one line.",
            field=DISJOINT,
        )
    if not any(letter.isalpha() for letter in text):
        raise InvalidParameter("disjoint: because must say in words why no person is in both tables. Got no letter.", field=DISJOINT)
