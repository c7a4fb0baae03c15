"""What the fault drivers share: a place with a table and a run file, and the command run in a child of this process.

A child is forked, not started: everything is loaded before, so that a case costs a fraction of a second, and a fault meets the release and
not the imports. The parent has one thread.
"""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast.ledger import Ledger
from tests.ledger.driver import fork

ROOT = Path(__file__).parents[2]
SECRET = "the secret of the office"
DATA, NAME = "counties", "r1"
COUNTIES = "state,county,people\n17,031,5194675\n17,043,12\n17,097,5\n18,001,7\n18,003,21\n19,001,3\n"
RUN = """\
[table]
source = "counties.csv"
cells = ["state", "county"]
count = "people"
public = true
[keep]
margins = [["state"]]
[release]
id = "r1"
allow_exposed = 1
mechanism = "generalized-laplace"
epsilon = "1/2"
per = "person"
formats = ["csv"]
"""
LEDGER = 'ledger = "ledger.sqlite"\n'
RELEASE = ("release", "run.toml", "-o", "out")
STATES = (None, "reserved", "drawing", "staged", "committed", "published", "closed")
ALONE = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "1", "POLARS_MAX_THREADS": "1"}
"""Libraries start no threads, which a fork would lose."""
PACKAGES = ("holdfast.", "sqlalchemy.", "cryptography.", "flint", "duckdb", "pandas", "pyarrow", "scipy")


def environment(root: Path) -> dict[str, str]:
    """For commands in this place: the secret is there, and what is kept for the user is kept below it."""
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    state = {"HOLDFAST_STATE": str(root / "state"), "XDG_STATE_HOME": str(root / "state")}
    return {**os.environ, **ALONE, **state, "HOLDFAST_KEY": SECRET, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}


def lay_out(root: Path, run: str = RUN + LEDGER) -> None:
    """A table and a run file."""
    root.mkdir(parents=True)
    (root / "state").mkdir(mode=0o700)
    (root / "counties.csv").write_text(COUNTIES)
    (root / "run.toml").write_text(run)


def grant(root: Path, epsilon: str = "100") -> None:
    with_grant = ("ledger", "grant", DATA, "--approver", "A", "--reason", "a test", "--epsilon", epsilon, "--ledger", "ledger.sqlite")
    ended = command(root, *with_grant)
    assert ended.code == 0, ended.err


@dataclass(frozen=True)
class Ended:
    """How a command ended, and what it printed."""

    code: int
    out: str
    err: str


def load(root: Path) -> None:
    """Import all that a release and a verification import; told by a process that makes them, in a place of its own."""
    lay_out(root, f'{RUN}ledger = "ledger.sqlite"\n')
    grant(root)
    script = (
        "import sys\nfrom holdfast.__main__ import main\nsys.argv[1:] = {!r}\ntry:\n    main()\nexcept SystemExit:\n"
        "    print(*(name for name in sys.modules if not name.startswith('__')), sep='\\n')"
    )
    names: list[str] = []
    for arguments in ([*RELEASE], ["verify", "out"]):
        words = [sys.executable, "-c", script.format(arguments)]
        done = subprocess.run(words, cwd=root, env=environment(root), capture_output=True, text=True, timeout=100, check=True)
        names += [line for line in done.stdout.splitlines() if line.startswith(PACKAGES)]
    for name in names:
        importlib.import_module(name)


def command(root: Path, *arguments: str, before: Callable[[], Any] | None = None, seconds: int = 60) -> Ended:
    """holdfast with these arguments, in a child whose current folder is the root; `before` is called in it first."""
    with tempfile.TemporaryFile("w+", encoding="utf-8") as out, tempfile.TemporaryFile("w+", encoding="utf-8") as err:

        def child() -> int:
            signal.alarm(seconds)  # what hangs is ended, and told by its code
            os.dup2(out.fileno(), 1)
            os.dup2(err.fileno(), 2)
            sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
            sys.stderr = open(2, "w", encoding="utf-8", closefd=False, buffering=1)  # noqa: SIM115
            os.chdir(root)
            os.environ.clear()
            os.environ.update(environment(root))
            sys.argv = ["holdfast", *arguments]
            return _main(before)

        code = os.waitstatus_to_exitcode(os.waitpid(fork(child), 0)[1])
        out.seek(0)
        err.seek(0)
        return Ended(code, out.read(), err.read())


def _main(before: Callable[[], Any] | None) -> int:
    from holdfast.__main__ import main

    if before is not None:
        before()
    try:
        main()
    except SystemExit as end:
        sys.stdout.flush()
        return end.code if isinstance(end.code, int) else 0
    return 0


def the_ledger(root: Path) -> Ledger:
    return Ledger.open(root / "ledger.sqlite")
