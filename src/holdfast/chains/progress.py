"""Who is told how far an assessment has come: the command line sets it, everything below passes it on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeAlias

Progress: TypeAlias = Callable[[int, int], None]
"""Called with (pairs done, pairs in all)."""

_progress: ContextVar[Progress | None] = ContextVar("progress", default=None)


@contextmanager
def report_progress_to(progress: Progress) -> Iterator[None]:
    """Within, assessments report to `progress`."""
    token = _progress.set(progress)
    try:
        yield
    finally:
        _progress.reset(token)


def current_progress() -> Progress | None:
    """The function to call, if one was set."""
    return _progress.get()
