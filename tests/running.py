"""The `holdfast` command run inside the tests' own process; conftest.py makes a fixture of it."""

from __future__ import annotations

import logging
import re
import signal
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import pytest


@dataclass
class Ran:
    """How a command ended, and what it printed."""

    code: int
    out: str
    err: str


Run: TypeAlias = Callable[..., Ran]


def running(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Iterator[Run]:
    """A function that runs holdfast with its arguments; handlers of signals and logs are put back afterwards.

    That loops are being compiled is left out of what was printed: it depends on the tests before.
    """
    from holdfast.cli.commands import main

    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGALRM)}
    logger = logging.getLogger("holdfast")
    handlers = list(logger.handlers)

    def call(*arguments: object) -> Ran:
        monkeypatch.setattr(sys, "argv", ["holdfast", *map(str, arguments)])
        capfd.readouterr()
        with pytest.raises(SystemExit) as end:
            main()
        code = end.value.code
        logger.handlers[:] = handlers  # the command's own writes to a stream that is gone after the test
        out, err = capfd.readouterr()
        return Ran(code if isinstance(code, int) else 0, out, re.sub(r"^holdfast: Compiling .*\n", "", err, flags=re.MULTILINE))

    yield call
    for number, handler in before.items():
        signal.signal(number, handler)
