"""Who is told how far an assessment has come: the command line sets it, everything below passes it on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeAlias

Progress: TypeAlias = Callable[[int, int], None]
"""Called with (pairs done, pairs in all)."""

_watcher: ContextVar[Progress | None] = ContextVar("watcher", default=None)


@contextmanager
def watching(progress: Progress) -> Iterator[None]:
    """Within, assessments report to `progress`."""
    token = _watcher.set(progress)
    try:
        yield
    finally:
        _watcher.reset(token)


def watched() -> Progress | None:
    """The one to tell, if anyone asked."""
    return _watcher.get()
