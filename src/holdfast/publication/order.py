"""What an office says about a release beside its table and mechanism: its name, its day, what it revises."""

from __future__ import annotations

import platform
from dataclasses import dataclass
from importlib.metadata import version
from typing import TypeAlias

from holdfast.publication.names import UNNAMED, check_date, check_identifier
from holdfast.randomness.keys import STREAM_VERSION

KeptRow: TypeAlias = tuple[str, str, int]
"""(statement, name, total)."""


@dataclass(frozen=True)
class Order:
    """Checked when it is made: before anything is drawn."""

    release_id: str = UNNAMED
    date: str | None = None
    """A day, as year-month-day; it is not read from a clock."""
    revises: tuple[str, tuple[KeptRow, ...]] | None = None
    """(identifier, kept rows) of the earlier release of the same population that this one revises."""

    def __post_init__(self) -> None:
        check_identifier(self.release_id)
        check_date(self.date)

    @property
    def revised_id(self) -> str | None:
        return None if self.revises is None else self.revises[0]


def software() -> dict[str, str | int]:
    """Versions that decide which bytes a release has."""
    packages = ("numpy", "numba", "python-flint", "cryptography")
    return {
        "holdfast": version("holdfast"),
        "python": platform.python_version(),
        **{name: version(name) for name in packages},
        "stream_version": STREAM_VERSION,
    }
