"""`python -m holdfast`, and what the installed command calls. Until everything is loaded, Ctrl-C ends at once: nothing was begun."""

from __future__ import annotations

import json
import os
import signal
import sys
from typing import NoReturn

from holdfast.errors import Stopped, Terminated


def main() -> None:
    """Load the command line, and run it."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _end_at_once)
    from holdfast.cli import main as run

    run()


def _end_at_once(number: int, _: object) -> NoReturn:
    """Not by an exception: whatever is being imported would wrap it, or print it."""
    kind = Stopped if number == signal.SIGINT else Terminated
    told = {"code": kind.code, "exit_code": kind.exit_code, "message": "stopped. Nothing was begun.", "field": None}
    told["what_to_do"] = "Run the command again."
    as_json = "--json" in sys.argv
    os.write(1 if as_json else 2, f"{json.dumps(told, indent=2) if as_json else 'holdfast: ' + str(told['message'])}\n".encode())
    os._exit(kind.exit_code)


if __name__ == "__main__":
    main()
