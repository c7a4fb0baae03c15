"""When to use the compiled loops: they cost half a second to load, and then draw at memory speed."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import ModuleType

COLD_THRESHOLD = 1 << 17
"""Draws that justify loading Numba in a process that has not yet."""
WARM_THRESHOLD = 256
"""Draws that justify a compiled call once it is loaded."""

_MODULE = "holdfast.exact._compiled"
_expected: ContextVar[int] = ContextVar("expected", default=0)


@contextmanager
def expecting(draws: int) -> Iterator[None]:
    """Say that so many draws will come, in however small calls: what is worth loading for all of them is loaded at once."""
    token = _expected.set(draws)
    try:
        yield
    finally:
        _expected.reset(token)


def loops_for(module: str, n: int, cold_threshold: int) -> ModuleType | None:
    """A module of compiled loops where it is loaded already or n draws, or those expected, are worth loading it; else None."""
    if module in sys.modules or max(n, _expected.get()) >= cold_threshold:
        return importlib.import_module(module)  # which waits where another thread is still loading it; sys.modules has half of it by then
    return None


def compiled_for(n: int) -> ModuleType | None:
    """The compiled loops when n draws are worth them, else None: use NumPy. Both give the same output."""
    loaded = loops_for(_MODULE, n, COLD_THRESHOLD)
    return loaded if n >= WARM_THRESHOLD else None
