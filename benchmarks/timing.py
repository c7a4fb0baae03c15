"""Timing that is fair on a busy machine: contenders take turns, and the best of several rounds counts."""

from __future__ import annotations

import gc
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

import holdfast

PACKAGES = ("numpy", "numba", "python-flint", "cryptography", "opendp")

# Linux counts the memory of a process before exec() towards the peak of the program it becomes, so a child of this large process would
# report our peak instead of its own. A bare interpreter in between is small.
_LAUNCHER = "import subprocess, sys; sys.exit(subprocess.call([sys.executable, '-c', sys.argv[1]]))"

Call = Callable[[], object]


class Steps:
    """A progress bar on stderr. It is redrawn only between measurements: a thread that redraws it would be timed too."""

    def __init__(self, title: str, total: int) -> None:
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        self._bar = Progress(*columns, console=Console(stderr=True), auto_refresh=False, transient=True)
        self._task = self._bar.add_task(title, total=total)

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def done(self, what: str) -> None:
        """One more step is done; `what` is being measured."""
        self._bar.update(self._task, advance=1, description=what, refresh=True)


def best_of(
    rounds: int, contenders: Mapping[str, Call], after_round: Call = lambda: None, *, clock: Callable[[], float] = time.process_time
) -> dict[str, float]:
    """Best time of each contender, in seconds.

    In every round each contender runs once, so that a slow spell of the machine meets all of them; the order turns by one place a round,
    so that nobody always follows the same neighbour. Garbage is collected between rounds, not inside a measurement.

    The clock counts processor time of this process, all threads: with one thread and nothing else running it is wall time. Beside other
    work wall time would favour short calls, which slip in between two interruptions while a long one meets them all. Calls that wait for
    another process need time.perf_counter.
    """
    best = dict.fromkeys(contenders, float("inf"))
    names = list(contenders)
    collected = gc.isenabled()
    gc.disable()
    try:
        for turn in range(rounds):
            first = turn % len(names)
            for name in names[first:] + names[:first]:
                began = clock()
                contenders[name]()
                best[name] = min(best[name], clock() - began)
            gc.collect()
            after_round()
    finally:
        if collected:
            gc.enable()
    return best


def repeated(times: int, call: Call) -> Call:
    """The call, `times` times over: for calls too short to time singly."""

    def loop() -> None:
        for _ in range(times):
            call()

    return loop


def fresh_interpreter(program: str, *, small_parent: bool = False) -> str:
    """What `program` prints in a new Python with this one's settings; with `small_parent` its peak memory is its own."""
    arguments = [_LAUNCHER, program] if small_parent else [program]
    return subprocess.run([sys.executable, "-c", *arguments], stdout=subprocess.PIPE, text=True, check=True).stdout


def machine() -> str:
    """Processor, Python and package versions, date: without them no figure means anything."""
    versions = ", ".join(f"{package} {_version(package)}" for package in PACKAGES)
    today = datetime.now(UTC).date().isoformat()
    return (
        f"{_processor()}, {os.cpu_count()} logical CPUs, {platform.system()} {platform.machine()}; "
        f"{platform.python_implementation()} {platform.python_version()}; holdfast {holdfast.__version__}, {versions}; {today}"
    )


def load() -> str:
    """Processes running on average over the last minute: figures taken beside other work are worse than the machine's own."""
    return f"{os.getloadavg()[0]:.1f}"


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:  # not Linux
        lines = []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor() or "unknown processor"
