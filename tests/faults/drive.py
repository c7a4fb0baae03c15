"""Runs a fault driver in a process of its own, which has one thread and forks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

from tests.faults.common import ALONE, ROOT


def drive(what: str, *arguments: object, seconds: int = 3600) -> Any:
    """What the driver found."""
    environment = {**os.environ, **ALONE, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}
    words = [sys.executable, "-m", f"tests.faults.{what}", *map(str, arguments)]
    done = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=seconds, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)
