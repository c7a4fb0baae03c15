"""When to use the compiled loops: they cost half a second to load, and then draw at memory speed."""

from __future__ import annotations

import importlib
import sys
from types import ModuleType

COLD_THRESHOLD = 1 << 17
"""Draws that justify loading Numba in a process that has not yet."""
WARM_THRESHOLD = 256
"""Draws that justify a compiled call once it is loaded."""

_MODULE = "holdfast.exact._compiled"


def compiled_for(n: int) -> ModuleType | None:
    """The compiled loops when n draws are worth them, else None: use NumPy. Both give the same output."""
    loaded = sys.modules.get(_MODULE)
    if n >= (WARM_THRESHOLD if loaded is not None else COLD_THRESHOLD):
        return loaded or importlib.import_module(_MODULE)
    return None
