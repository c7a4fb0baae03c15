"""What an office says about a release beside its table and mechanism: its name, its day, what it revises."""

from __future__ import annotations

import datetime
import platform
import re
from dataclasses import dataclass
from importlib.metadata import version
from typing import TypeAlias

from holdfast.errors import InvalidParameter
from holdfast.randomness.keys import STREAM_VERSION

KeptRow: TypeAlias = tuple[str, str, int]
"""(statement, name, total)."""

UNNAMED = "unnamed"
MAX_IDENTIFIER = 100
_IDENTIFIER = re.compile(rf"[A-Za-z0-9][A-Za-z0-9._-]{{0,{MAX_IDENTIFIER - 1}}}")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


@dataclass(frozen=True)
class Order:
    """Checked when it is made: before anything is drawn."""

    release_id: str = UNNAMED
    date: str | None = None
    """A day, as year-month-day; it is not read from a clock."""
    revises: tuple[str, tuple[KeptRow, ...]] | None = None
    """(identifier, kept rows) of the earlier release of the same population that this one revises."""

    def __post_init__(self) -> None:
        if not is_identifier(self.release_id):
            raise InvalidParameter(
                f"A release identifier is up to {MAX_IDENTIFIER} letters, digits, '.', '_' or '-', and begins with a letter or digit. "
                f"Got {self.release_id!r}."
            )
        if self.date is not None and not is_day(self.date):
            raise InvalidParameter(f"date must be a day of the calendar, as a text such as '2030-04-01'. Got {self.date!r}.")

    @property
    def revised_id(self) -> str | None:
        return None if self.revises is None else self.revises[0]


def is_identifier(value: object) -> bool:
    """Whether this is a release's name: a file-safe word."""
    return isinstance(value, str) and _IDENTIFIER.fullmatch(value) is not None


def is_day(value: object) -> bool:
    """Whether this is a text year-month-day that names a day of the calendar."""
    if not isinstance(value, str) or not _DATE.fullmatch(value):
        return False
    try:
        datetime.date.fromisoformat(value)
    except ValueError:
        return False
    return True


def software() -> dict[str, str | int]:
    """Versions that decide which bytes a release has."""
    packages = ("numpy", "numba", "python-flint", "cryptography")
    return {
        "holdfast": version("holdfast"),
        "python": platform.python_version(),
        **{name: version(name) for name in packages},
        "stream_version": STREAM_VERSION,
    }
