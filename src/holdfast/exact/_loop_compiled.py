"""How our loops are compiled: kept for later runs where something can be written, and announced, since the first time takes seconds.

Numba keeps compiled code beside the module, or in the user's cache folder. A user without a home and with a read-only installation has
neither: then it is compiled in memory, anew in every process. So it is where a folder was found and turns out not to be of use: it may not
be written or read, its disk is full, what it holds is damaged. A draw never fails for that.

Numba also takes settings from a file .numba_config.yaml in the current folder, among them where compiled code is loaded from. Who may write
there could have code run, so that file is left alone.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from numba import njit
from numba.core import config, event

from holdfast.display import step

config._config_fname = os.devnull  # which is no file
if any(os.environ.get(name) != value for name, value in config._env_reloader.old_environ.items()):
    config._env_reloader.reset()  # what was taken from that file goes again; what the environment says stays

logger = logging.getLogger(__name__)

KEPT = "once on this machine; holdfast warm compiles all of them at once"
MARK = "holdfast-loops.told"
"""A file beside compiled loops that says that the message was given on this machine."""
UNUSABLE = "Compiled loops cannot be kept in or read from %s: they are compiled in memory. Name another folder in NUMBA_CACHE_DIR."
IN_MEMORY = "in every process, since there is no folder to keep them in: let NUMBA_CACHE_DIR name one that can be written"
_how_often = KEPT


def loop(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """`numba.njit` with the global lock released, cached where that is possible.

    `_nrt=False` for loops that make no array: Numba then counts no references, which it otherwise does whenever an array is taken out of
    a named tuple. Where that happens for every cell, the loop is four times slower.
    """
    if function is None:
        return lambda given: loop(given, **options)
    try:
        made = njit(cache=True, nogil=True, **options)(function)
        made._cache = _Forgiving(made._cache)
        return made
    except RuntimeError:  # no place to write to
        global _how_often
        _how_often = IN_MEMORY
        return njit(nogil=True, **options)(function)


class _Forgiving:
    """Numba's cache of a function, without its errors: what cannot be loaded is compiled, what cannot be saved is not."""

    told = False

    def __init__(self, cache: Any) -> None:
        self._cache = cache

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cache, name)

    def load_overload(self, signature: Any, context: Any) -> Any:
        try:
            return self._cache.load_overload(signature, context)
        except Exception:
            self._tell()
            return None

    def save_overload(self, signature: Any, data: Any) -> None:
        try:
            self._cache.save_overload(signature, data)
        except Exception:
            self._tell()

    def _tell(self) -> None:
        if not _Forgiving.told:
            _Forgiving.told = True
            logger.info(UNUSABLE, self._cache.cache_path)


@loop
def _nothing() -> None:
    """What the folder for compiled loops is known by; never run."""


def _leave_mark() -> bool:
    """Leave the mark of the message. False if there is one: an earlier process gave it."""
    place = _nothing._cache.cache_path  # None where loops are compiled in memory
    try:
        if place is not None:
            Path(place).mkdir(parents=True, exist_ok=True)
            (Path(place) / MARK).touch(exist_ok=False)
    except FileExistsError:
        return False
    except OSError:  # a folder that cannot be written
        pass
    return True


class _Announcer(event.Listener):  # type: ignore[misc]
    """Tells that code is being compiled: once on a machine that keeps it, else once in a process; a step, for who watches them. Code from
    the cache is not compiled.
    """

    def __init__(self) -> None:
        self.told = False
        self._running: list[AbstractContextManager[Any]] = []

    def on_start(self, happened: Any) -> None:
        self._running.append(nullcontext() if self._running else step("Compiling the fast loops"))  # one loop may compile others
        self._running[-1].__enter__()
        if not self.told:
            self.told = True
            if _leave_mark() or _how_often == IN_MEMORY:
                logger.info("Compiling the fast loops that this needs: some seconds for each kind of noise, %s.", _how_often)

    def on_end(self, happened: Any) -> None:
        self._running.pop().__exit__(None, None, None)


event.register("numba:compile", _Announcer())
