"""When compiled loops are loaded."""

from __future__ import annotations

import importlib
import sys
import threading
from pathlib import Path

import pytest

from holdfast.exact.compiled import loops_for

LOADING = """
import threading
begun, go_on = (getattr(threading, name) for name in ("holdfast_begun", "holdfast_go_on"))
begun.set()
go_on.wait(60)
draw = "complete"
"""


def test_loops_that_another_thread_is_loading_are_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two threads of coupled chains: the second was handed a module without its functions."""
    (tmp_path / "slow_loops.py").write_text(LOADING)
    monkeypatch.syspath_prepend(tmp_path)
    begun, go_on = threading.Event(), threading.Event()
    monkeypatch.setattr(threading, "holdfast_begun", begun, raising=False)
    monkeypatch.setattr(threading, "holdfast_go_on", go_on, raising=False)
    found: list[str | None] = []
    first = threading.Thread(target=lambda: importlib.import_module("slow_loops"))
    second = threading.Thread(target=lambda: found.append(getattr(loops_for("slow_loops", 1, 10), "draw", None)))
    first.start()
    assert begun.wait(60)
    second.start()
    second.join(0.5)  # it either waits or has come back with too little
    go_on.set()
    first.join()
    second.join()
    assert found == ["complete"]
    assert loops_for("other_loops", 1, 10) is None
    del sys.modules["slow_loops"]
