"""Memory runs out at some allocation of a release: one sentence that is true, or the end of the process; a sound ledger; a way to go on.

    python -m tests.faults.memory CASES SEED

Each case is a release in a child whose address space, from one of its steps on, may not grow by more than a number of bytes that is drawn;
what the child's heap has free is used up first.
"""

from __future__ import annotations

import importlib
import json
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.cli.test_endings import TRUE
from tests.faults import common
from tests.faults.common import DATA, NAME, RELEASE, Ended, command, the_ledger

FEWEST, MOST = 1 << 12, 1 << 24
"""Bytes that are left: between these, evenly on a scale of logarithms. From the start on more are needed, and 16 times as many are left."""
STEPS = {
    "start": None,
    "plan": "holdfast.runfiles.runfile:Run.read_table",
    "reserve": "holdfast.ledger:Ledger.reserve",
    "draw": "holdfast.engines.local:BoundRelease.draw",
    "write": "holdfast.publication.publication:fill_folder",
    "stage": "holdfast.ledger:Ledger.stage",
    "commit": "holdfast.ledger:Ledger.commit",
    "rename": "holdfast.publication.booking:put_in_place",
    "close": "holdfast.ledger:Ledger.close",
    "tell": "holdfast.cli.commands:mark_published",
}
"""Where memory begins to be short: at a call of this."""
ENDED_BY_LIBRARIES = (-signal.SIGABRT, -signal.SIGSEGV, -signal.SIGBUS, -signal.SIGILL, -signal.SIGTRAP)
"""Some libraries end the process where they get no memory."""
PUBLISHED = ("published", "closed")


def limit(left: int) -> None:
    """Let the address space of this process grow by so many bytes and no more."""
    hogs: list[bytearray] = []
    with open("/proc/self/statm", encoding="ascii") as told:
        size = int(told.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size, resource.RLIM_INFINITY))
    for chunk in (1 << 20, 1 << 16, 1 << 12, 1 << 9):
        try:
            while True:
                hogs.append(bytearray(chunk))
        except MemoryError:
            pass
    sys.hogs = hogs  # type: ignore[attr-defined]  # as long as the process lives
    resource.setrlimit(resource.RLIMIT_AS, (size + left, resource.RLIM_INFINITY))


def short_of_memory(step: str, left: int) -> Callable[[], None]:
    """What makes a process short of memory from this step on."""
    place = STEPS[step]
    if place is None:
        return lambda: limit(16 * left)

    def work() -> None:
        module, name = place.split(":")
        *owners, last = name.split(".")
        owner = importlib.import_module(module)
        for part in owners:
            owner = getattr(owner, part)
        real = getattr(owner, last)

        def limited(*given: Any, **named: Any) -> Any:
            limit(left)
            return real(*given, **named)

        setattr(owner, last, limited)

    return work


def wrong_with(root: Path, ended: Ended) -> list[str]:
    """What is not as it must be after a release that memory was short for."""
    ledger, wrong = the_ledger(root), []
    held = ledger.reservation(DATA, NAME)
    state = None if held is None else held.state
    there = (root / "out").exists()
    wrong += [f"the ledger is not sound: {problem}" for problem in ledger.verify()]
    if there and state not in ("committed", *PUBLISHED):
        wrong.append(f"there is an output while the ledger says {state}")
    if there and command(root, "verify", "out").code != 0:
        wrong.append("the output does not verify")
    if ended.code < 0:
        return wrong if ended.code in ENDED_BY_LIBRARIES else [*wrong, f"ended by signal {-ended.code}"]
    if "Traceback" in ended.err:
        wrong.append("a traceback")
    if (ended.code == 0) != (state == "closed" and ended.out.startswith("Released")):
        wrong.append(f"exit code {ended.code} while the ledger says {state}")
    said = ended.err.splitlines()[-1] if ended.err else ""
    if ended.code == 20 and not there:
        wrong.append("exit code 20, and nothing is published")
    if ended.code in (70, 71) and TRUE[state] not in said and "could not be " not in said:  # loaded, or found out
        wrong.append(f"the ledger says {state}, the message: {said}")
    return wrong


def go_on(root: Path) -> list[str]:
    """With memory enough."""
    held = the_ledger(root).reservation(DATA, NAME)
    if held is None or held.is_open:
        ended = command(root, *RELEASE, *(() if held is None else ("--resume",)))
        if ended.code != 0:
            return [f"it did not go on: {ended.code} {ended.err.strip()[-300:]}"]
    wrong = [] if command(root, "verify", "out").code == 0 else ["in the end the output does not verify"]
    if str(the_ledger(root).balance(DATA).spent) != "1/2":
        wrong.append("not charged once")
    return wrong


def run(cases: int, seed: int) -> dict[str, Any]:
    """So many releases, each with its own limit."""
    chance = random.Random(seed)
    codes: Counter[str] = Counter()
    states: Counter[str] = Counter()
    wrong: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        common.load(Path(folder) / "scratch")
        template, root = Path(folder) / "template", Path(folder) / "place"
        common.lay_out(template)
        os.environ.update(common.environment(root))
        template.rename(root)
        common.grant(root)
        shutil.copytree(root, template)
        for number in range(cases):
            left = int(FEWEST * (MOST / FEWEST) ** chance.random())
            shutil.rmtree(root)
            shutil.copytree(template, root)
            step = list(STEPS)[number % len(STEPS)]
            ended = command(root, *RELEASE, before=short_of_memory(step, left))
            held = the_ledger(root).reservation(DATA, NAME)
            codes[str(ended.code)] += 1
            if "-v" in sys.argv:
                print(step, left, ended, file=sys.stderr)
            states[str(None if held is None else held.state)] += 1
            found = wrong_with(root, ended)
            wrong += [f"case {number}, {left} bytes from {step} on: {problem}" for problem in found + go_on(root)]
    known = {str(code) for code in (0, 2, 5, 6, 7, 8, 9, 12, 20, 70, 71)} | {str(code) for code in ENDED_BY_LIBRARIES}
    wrong += [f"exit code {code}" for code in codes if code not in known]
    return {"cases": cases, "codes": codes, "states": states, "wrong": wrong}


if __name__ == "__main__":
    print(json.dumps(run(int(sys.argv[1]), int(sys.argv[2]))))
