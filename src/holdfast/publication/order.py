"""What an office says about a release beside its table and mechanism: its name, its day, who approved it, what it revises, with which
releases it shares no person. One rule each, for Python, run files and cards.
"""

from __future__ import annotations

import platform
import re
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from typing import TypeAlias

from holdfast.card.parts import IDENTIFIER_PATTERN, MAX_IDENTIFIER, is_day
from holdfast.errors import InvalidParameter
from holdfast.ledger.disjoint import DISJOINT, Disjoint
from holdfast.ledger.values import name_of
from holdfast.randomness.vault import STREAM_VERSION

KeptRow: TypeAlias = tuple[str, str, int]
"""(constraint, name, total)."""


UNNAMED = "unnamed"
IDENTIFIER_RULE = f"up to {MAX_IDENTIFIER} letters, digits, '.', '_' or '-', the first a letter or digit"

_IDENTIFIER = re.compile(IDENTIFIER_PATTERN)


@dataclass(frozen=True)
class Order:
    """Checked when it is made: before anything is drawn."""

    release_id: str = UNNAMED
    date: str | None = None
    """A day, as year-month-day; it is not read from a clock."""
    revises: tuple[str, tuple[KeptRow, ...]] | None = None
    """(identifier, kept rows) of the earlier release of the same population that this one revises."""
    allow_exposed: int | None = None
    """How many cells may be published as they are because the kept totals fix them; None: nothing is drawn, or it was not asked."""
    office: str | None = None
    """Who publishes it."""
    approver: str | None = None
    """Who approved it."""
    disjoint: Disjoint | None = None
    """Earlier releases of the data set with which it shares no person, and why."""

    def __post_init__(self) -> None:
        if self.allow_exposed is not None:
            check_allow_exposed(self.allow_exposed)
        check_identifier(self.release_id)
        check_date(self.date)
        _check_revision(self.release_id, self.revises)
        for what, value in (("office", self.office), ("approver", self.approver)):
            if value is not None:
                name_of(value, what)
        if self.disjoint is not None and self.release_id in self.disjoint.releases:
            raise InvalidParameter(f"{self.release_id!r} is this release itself. Leave it out of disjoint.", field=DISJOINT)

    @property
    def revised_id(self) -> str | None:
        return None if self.revises is None else self.revises[0]


def is_identifier(value: object) -> bool:
    """Whether this can name a release: a file-safe word."""
    return isinstance(value, str) and _IDENTIFIER.fullmatch(value) is not None


def check_identifier(release_id: str | None) -> str:
    """The name of a release; one that has none is called "unnamed"."""
    if release_id is None:
        return UNNAMED
    if not is_identifier(release_id):
        raise InvalidParameter(f"A release identifier is {IDENTIFIER_RULE}. Got {release_id!r}.")
    return release_id


def check_allow_exposed(number: int) -> None:
    """Raise unless it is a number of cells. Neither Python nor run files have a word for any number."""
    if not isinstance(number, int) or isinstance(number, bool) or number < 0:
        raise InvalidParameter(f"allow_exposed is a number of cells, such as 236. Got {number!r}.", field="allow_exposed")


def check_date(date: str | None) -> None:
    """Before anything is drawn: the card takes a day of the calendar."""
    if date is not None and not is_day(date):
        raise InvalidParameter(f"date must be a day of the calendar, such as '2030-04-01'. Got {date!r}.")


def _check_revision(release_id: str, revises: object) -> None:
    """What the card will say of the earlier release; a card that could not be made would be noticed only after the charge."""
    if revises is None:
        return
    earlier, rows = revises if isinstance(revises, tuple) and len(revises) == 2 else (None, None)
    if not is_identifier(earlier) or not isinstance(rows, list | tuple) or not all(map(_is_kept_row, rows)):
        raise InvalidParameter("revises takes (identifier, kept rows) of an earlier release, each row (constraint, name, total).")
    if earlier == release_id:
        raise InvalidParameter(f"The release {release_id!r} cannot revise itself. Give this one a new id.")


def _is_kept_row(row: object) -> bool:
    return isinstance(row, tuple) and len(row) == 3 and [type(part) for part in row] == [str, str, int]


def software() -> dict[str, str | int]:
    """Versions that decide which bytes a release has."""
    return {**_installed_versions(), "stream_version": STREAM_VERSION}


@cache  # each version is read from a file, and a release asks several times
def _installed_versions() -> dict[str, str]:
    packages = ("numpy", "numba", "python-flint", "cryptography")
    return {"holdfast": version("holdfast"), "python": platform.python_version()} | {name: version(name) for name in packages}
