"""`python -m holdfast`, and what the installed command calls. Until everything is loaded, Ctrl-C ends at once: nothing was begun."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
from typing import NoReturn

from holdfast.cli.streams import open_missing
from holdfast.errors import HoldfastError, InternalError, OutOfMemory, Stopped, Terminated


def main() -> None:
    """Load the command line, and run it."""
    open_missing()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _end_at_once)
    try:
        from holdfast.cli.commands import main as run
    except Exception as error:
        if "--debug" in sys.argv:
            raise
        kind = OutOfMemory if isinstance(error, MemoryError) else InternalError
        _end(kind, f"Holdfast could not be loaded ({type(error).__name__}). Nothing was begun.", "Run it with --debug to see why.")
    run()


def _end_at_once(number: int, _: object) -> NoReturn:
    """Not by an exception: whatever is being imported would wrap it, or print it."""
    _end(Stopped if number == signal.SIGINT else Terminated, "stopped. Nothing was begun.", "Run the command again.")


def _end(kind: type[HoldfastError], message: str, what_to_do: str) -> NoReturn:
    told = {"code": kind.code, "exit_code": kind.exit_code, "message": message, "field": None, "what_to_do": what_to_do}
    as_json = "--json" in sys.argv
    with contextlib.suppress(OSError):
        os.write(1 if as_json else 2, f"{json.dumps(told, indent=2) if as_json else 'holdfast: ' + message}\n".encode())
    os._exit(kind.exit_code)


if __name__ == "__main__":
    main()
