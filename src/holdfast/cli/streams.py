"""Standard streams that never stop a command: what it says comes after what it did, and must not make that look like a failure.

A full disk, a closed pipe or a missing stream is noted (`lost`) and raises nothing; a character that the terminal does not know is written
as its number.
"""

from __future__ import annotations

import contextlib
import os
from typing import Any, TextIO


def open_missing() -> None:
    """Put /dev/null where a standard stream is closed: else the next file that is opened takes its number, and messages go into it."""
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # the lowest free number: this one


class StandardStream:
    """A standard stream; None stands for one that was closed. Everything but writing is asked of the stream itself."""

    def __init__(self, stream: TextIO | None) -> None:
        self.lost = stream is None
        """Whether something could not be written."""
        self.unread = False
        """Whether that is because the reader of a pipe closed it, as `head` does."""
        self._stream = open(os.devnull, "w", encoding="utf-8") if stream is None else stream  # noqa: SIM115  # open as long as the process
        if hasattr(self._stream, "reconfigure"):
            self._stream.reconfigure(errors="backslashreplace")

    def write(self, text: str) -> int:
        try:
            return self._stream.write(text)
        except (OSError, ValueError) as error:  # ValueError: closed meanwhile
            self._lose(error)
            return len(text)

    def flush(self) -> None:
        try:
            self._stream.flush()
        except (OSError, ValueError) as error:
            self._lose(error)

    def _lose(self, error: Exception) -> None:
        self.lost, self.unread = True, self.unread or isinstance(error, BrokenPipeError)

    def finish(self) -> bool:
        """Write what is left; whether all was written. What could not be is dropped: Python would try again at exit, and complain."""
        self.flush()
        if self.lost:
            with contextlib.suppress(OSError, ValueError):
                sink = os.open(os.devnull, os.O_WRONLY)
                os.dup2(sink, self._stream.fileno())
                os.close(sink)
        return not self.lost

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
