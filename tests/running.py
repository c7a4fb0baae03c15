"""The `holdfast` command run inside the tests' own process; conftest.py makes a fixture of it."""

from __future__ import annotations

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
    """A function that runs holdfast with its arguments; signal handlers are put back afterwards."""
    from holdfast.cli import main

    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}

    def call(*arguments: object) -> Ran:
        monkeypatch.setattr(sys, "argv", ["holdfast", *map(str, arguments)])
        capfd.readouterr()
        with pytest.raises(SystemExit) as end:
            main()
        code = end.value.code
        return Ran(code if isinstance(code, int) else 0, *capfd.readouterr())

    yield call
    for number, handler in before.items():
        signal.signal(number, handler)
