"""Processes that race, are killed, or have no rights. Run as `python -m tests.ledger.driver what place ...`; prints JSON.

A process of its own because it forks: it has one thread, and everything is imported before. A child reports by its exit code and leaves by
os._exit or a signal.
"""

from __future__ import annotations

import json
import os
import signal
import stat
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from holdfast.errors import BudgetExceeded, HoldfastError, LedgerProblem
from holdfast.ledger import Ledger
from tests.ledger.helpers import DATA, ORDER, STEPS, bring, grant, reserve, screen, the_store

NOBODY = 65534
OFFICE, USERS = 60001, (60002, 60003)
"""Numbers of a group and two of its users."""


def fork(work: Callable[[], int]) -> int:
    """The process id of a child that does this and nothing else."""
    child = os.fork()
    if child:
        return child
    code = 99
    try:
        code = work()
    except BaseException as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
    finally:
        os._exit(code)


def together(number: int, work: Callable[[int], int]) -> list[int]:
    """Exit codes of this many processes that start at one moment."""
    wait, go = os.pipe()

    def one(index: int) -> int:
        os.close(go)
        os.read(wait, 1)  # returns when the parent closes its end
        return work(index)

    children = [fork(lambda index=index: one(index)) for index in range(number)]  # type: ignore[misc]
    os.close(go)
    return [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]


def race(place: str, number: str) -> dict[str, Any]:
    """Processes that each want a tenth of what was granted, and take it to a state of their own; every fourth one asks twice."""
    ledger = Ledger.open(place, create=True, needs_grants=True)
    grant(ledger, "1")
    ends = ("closed", "staged", "voided-spent", "reserved")

    def work(index: int) -> int:
        asks = 2 if index % 4 == 0 else 1
        for attempt in range(asks):
            try:
                bring(Ledger.open(place), ends[index % 4], f"r{index}-{attempt}", "1/10")
            except BudgetExceeded:
                return attempt
        return asks  # how many were granted

    codes = together(int(number), work)
    balance = ledger.balance(DATA)
    return {"codes": codes, "spent": str(balance.spent), "left": str(balance.left), "problems": ledger.verify()}


def create(place: str, number: str) -> dict[str, Any]:
    """Processes that make one ledger at once; all must get the same."""
    reading, writing = os.pipe()

    def work(_: int) -> int:
        os.write(writing, (Ledger.open(place, create=True, needs_grants=True).id + "\n").encode())
        return 0

    codes = together(int(number), work)
    os.close(writing)
    with os.fdopen(reading) as found:
        return {"codes": codes, "ids": sorted(set(found.read().split())), "problems": Ledger.open(place).verify()}


def protocol(ledger: Ledger) -> None:
    """From wherever the release stands to the end, as a resumed run does it."""
    held = ledger.reservation(DATA, "r1") or reserve(ledger)
    assert held.state in ("reserved", *ORDER), held.state
    done = ("reserved", *ORDER).index(held.state)
    for state in ORDER[done:]:
        held = STEPS[state](ledger, held)


def listen(ledger: Ledger, at_point: Callable[[str], None]) -> None:
    """Call after every statement, before every commit and after the end of every transaction."""
    from sqlalchemy import event

    engine = the_store(ledger)._engine
    event.listen(engine, "after_cursor_execute", lambda *_: at_point("after a statement"))
    event.listen(engine, "commit", lambda *_: at_point("before the commit"))
    event.listen(engine, "close", lambda *_: at_point("after the end"))


def count_points(place: str) -> int:
    """How many points a run has, in a ledger of its own."""
    seen: list[str] = []
    ledger = Ledger.open(place, create=True, needs_grants=True)
    grant(ledger, "1/10")
    listen(ledger, seen.append)
    protocol(ledger)
    return len(seen)


def check_after(place: str) -> dict[str, Any]:
    """What a killed run left, and what becomes of it when it is resumed."""
    ledger = Ledger.open(place)
    left = ledger.reservation(DATA, "r1")
    spent, problems = ledger.balance(DATA).spent, ledger.verify()
    protocol(ledger)
    balance = ledger.balance(DATA)
    kinds = [event.kind for event in ledger.events(DATA)]
    return {
        "state": None if left is None else left.state,
        "spent_once": str(spent) == ("0" if left is None else "1/10"),
        "had_secrets": left is not None and left.input_check is not None,
        "problems": problems + ledger.verify(),
        "finished": kinds == ["granted", "reserved", *ORDER] and str(balance.spent) == "1/10" and str(balance.left) == "0",
    }


def kill(template: str, shortest: str) -> list[dict[str, Any]]:
    """One run for each point, killed there; `template` has {} for the number of the place. Then runs killed from outside at odd moments."""
    found = []
    number = count_points(template.format("count"))
    for point in range(number):
        place = template.format(point)
        ledger = Ledger.open(place, create=True, needs_grants=True)
        grant(ledger, "1/10")
        found.append(_killed(place, lambda place=place, point=point: _run_to(place, point)))  # type: ignore[misc]
    for index in range(int(shortest)):
        place = template.format(f"odd{index}")
        ledger = Ledger.open(place, create=True, needs_grants=True)
        grant(ledger, "1/10")
        found.append(_killed(place, lambda place=place: _run_to(place, -1), delay=0.002 * index))  # type: ignore[misc]
    return found


def _run_to(place: str, point: int) -> int:
    ledger, passed = Ledger.open(place), [0]

    def at_point(_: str) -> None:
        if passed[0] == point:
            os.kill(os.getpid(), signal.SIGKILL)
        passed[0] += 1

    listen(ledger, at_point)
    protocol(ledger)
    return 0


def _killed(place: str, work: Callable[[], int], delay: float | None = None) -> dict[str, Any]:
    child = fork(work)
    if delay is not None:
        time.sleep(delay)
        os.kill(child, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return {"code": code, **check_after(place)}


def read_only(_: str) -> dict[str, Any]:
    """A ledger that may be read but not written; root, who may do anything, becomes nobody for it."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "ledger.db"
        ledger = Ledger.open(place, create=True, needs_grants=True)
        grant(ledger)
        os.chmod(place, stat.S_IRUSR | stat.S_IRGRP | stat.S_IROTH)
        os.environ["HOLDFAST_STATE"] = state = str(Path(folder) / "state")
        os.mkdir(state, 0o700)
        os.chmod(folder, 0o555)
        if os.geteuid() == 0:
            os.chown(state, NOBODY, NOBODY)
            os.seteuid(NOBODY)
        try:
            opened = Ledger.open(place)
            found: dict[str, Any] = {"problems": opened.verify(), "granted": str(opened.balance(DATA).granted), "shown": screen(opened)}
            asks: dict[str, Callable[[], object]] = {
                "reserve": lambda: reserve(opened),
                "grant": lambda: grant(opened),
                "create": lambda: Ledger.open(place.with_name("new.db"), create=True, needs_grants=True),
            }
            for name, ask in asks.items():
                try:
                    ask()
                    found[name] = "done"
                except LedgerProblem as error:
                    found[name] = str(error)
                except HoldfastError as error:
                    found[name] = f"{type(error).__name__}: {error}"
        finally:
            os.seteuid(os.getuid())
            os.chmod(folder, 0o755)
    return found


def as_user(user: int, home: Path, work: Callable[[], str]) -> str:
    """What this returns, or the error it raises, in a process of another user of the group, with a state folder of its own."""
    reading, writing = os.pipe()

    def become() -> int:
        os.setgroups([OFFICE])
        os.setgid(user)
        os.setuid(user)
        os.umask(0o022)
        os.environ["HOLDFAST_STATE"] = str(home / f"state-{user}")
        try:
            said = work()
        except HoldfastError as error:
            said = f"{type(error).__name__}: {error}"
        os.write(writing, said.encode())
        return 0

    child = fork(become)
    os.close(writing)
    with os.fdopen(reading) as found:
        said = found.read()
    os.waitpid(child, 0)
    return said


def modes(folder: Path) -> list[str]:
    """Group and mode of all that is in a folder, without what is named at random."""
    found = (path.lstat() for path in sorted(folder.rglob("*")))
    return sorted({f"{stat.filemode(one.st_mode)} {one.st_gid}" for one in found})


def share(_: str) -> dict[str, Any]:
    """Two users of a group, one ledger, one second witness; then a mark that only its owner may read; then an older copy put back."""
    with tempfile.TemporaryDirectory() as name:
        home = Path(name)
        os.chmod(home, 0o755)
        grant(Ledger.open(home / "warm.db", create=True, needs_grants=True))  # all that is needed is imported
        office, witness = home / "office", home / "witness"
        for folder in (office, witness):
            folder.mkdir()
            os.chown(folder, 0, OFFICE)
            os.chmod(folder, 0o2770)
        for user in USERS:
            (home / f"state-{user}").mkdir(mode=0o700)
            os.chown(home / f"state-{user}", user, user)
        place = office / "ledger.db"

        def begin() -> str:
            ledger = Ledger.open(place, create=True, needs_grants=True, witness=witness)
            os.chmod(place, 0o660)
            grant(ledger)
            return "begun"

        def bring_one(release_id: str) -> str:
            ledger = Ledger.open(place, witness=witness)
            ledger.check_witness()
            bring(ledger, "closed", release_id)
            return "; ".join(["closed", *ledger.verify()])

        first, second = USERS
        said = {"begun": as_user(first, home, begin)}
        said |= {
            f"r{number}": as_user(user, home, lambda number=number: bring_one(f"r{number}"))  # type: ignore[misc]
            for number, user in enumerate([first, second, first, second], 1)
        }
        found: dict[str, Any] = {"said": said, "modes": modes(witness)}
        (mark,) = witness.glob("*.mark")
        held = mark.stat()
        os.chown(mark, first, first)
        os.chmod(mark, 0o600)
        found["closed to others"] = as_user(second, home, lambda: bring_one("r5"))
        os.chown(mark, held.st_uid, held.st_gid)
        os.chmod(mark, 0o660)
        older = place.read_bytes()
        said["r6"] = as_user(first, home, lambda: bring_one("r6"))
        place.write_bytes(older)
        found["older"] = as_user(second, home, lambda: bring_one("r6"))
    return found


if __name__ == "__main__":
    commands: dict[str, Callable[..., Any]] = {"race": race, "create": create, "kill": kill, "read_only": read_only, "share": share}
    print(json.dumps(commands[sys.argv[1]](*sys.argv[2:])))
