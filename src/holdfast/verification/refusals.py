"""How `verify` refuses a folder: with every difference found, and with the name of a file that cannot be read."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn, TypeVar

from holdfast.display import shorten
from holdfast.errors import VerificationFailed
from holdfast.publication.given_files import NOT_SUCH_A_FILE

T = TypeVar("T")

MAX_SHOWN = 10
"""Differences listed in a message; the rest is counted."""


def fail(found: list[str]) -> NoReturn:
    """Raise VerificationFailed with these differences."""
    raise VerificationFailed(
        f"The folder is not what its card says: {show_problems(found)}. Do not use it; ask its publisher for a complete copy."
    )


def show_problems(found: list[str]) -> str:
    """Differences on one line."""
    more = f"; and {len(found) - MAX_SHOWN} more" if len(found) > MAX_SHOWN else ""
    return f"{'; '.join(shorten(text, 500) for text in found[:MAX_SHOWN])}{more}"


def read_guarded(name: str, read: Callable[[], T]) -> T:
    """What a file holds; told by the name of the file where it holds something else."""
    try:
        return read()
    except NOT_SUCH_A_FILE:
        pass
    fail([f"{name} cannot be read as what its name says: it is damaged, or of another kind"])
