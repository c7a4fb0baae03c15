"""Releases through a ledger that are killed or race. Run as `python -m tests.publication.ledger_driver what ...`; prints JSON.

A process of its own because it forks: it has one thread, and a child inherits no connection. Everything that differs from run to run (key,
salts, clock) is fixed here, so that a release that was killed and resumed can be compared with one that was not, byte by byte, folder and
ledger alike. The product is not changed: points are events that the interpreter and SQLAlchemy report, and the progress of the draw.
"""

from __future__ import annotations

import itertools
import json
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

import holdfast as hf
from holdfast.display import watching
from holdfast.errors import BudgetExceeded, HoldfastError, IdenticalRelease, OutputProblem, WrongState
from holdfast.ledger import Ledger
from holdfast.publication.booking import ChargedAccount
from holdfast.publication.folder import Output
from holdfast.publication.order import Order
from holdfast.publication.pipeline import carry_out
from holdfast.publication.plan import Plan
from holdfast.publication.report_facts import noise_charts
from holdfast.randomness.labels import Claims
from tests.ledger.driver import fork, listen, together

DATA = "residents"
SECRET = b"the secret of the office"
STATES = {"committed", "published", "closed"}
"""In which there may be a folder under the final name."""
DRAWN = "a part is drawn"
REFUSED = 20
CODES = {WrongState: 21, BudgetExceeded: 22, IdenticalRelease: 23, OutputProblem: 24}
EVENTS = ("open", "os.rename", "os.mkdir", "os.remove", "os.rmdir", "os.chmod", "os.truncate", "shutil.rmtree")
UNIVERSE = hf.Universe.product({"area": ["a", "b", "c"], "sex": ["F", "M"], "age": ["0", "1"]})
COUNTS = np.array([5, 3, 2, 9, 0, 4, 7, 1, 11, 6, 8, 2])
KEEP = [hf.subset("area", ["a"]), hf.subset("area = 'b' and sex = 'F'")]
"""Four cells with one sum, two with another, and free ones: three parts, each with a stream of its own."""
MECHANISM = hf.GeneralizedLaplace(epsilon="1/4", per="distance")
CHARTS = lru_cache(noise_charts)


def freeze() -> None:
    """The same key, salts, identifiers and times in every run of this process and of its children; and secrets cheap to stretch."""
    patch, noon = pytest.MonkeyPatch(), "2030-04-01T12:00:00Z"
    patch.setattr("holdfast.ledger.chain.secrets", SimpleNamespace(token_hex=lambda size: "5a" * size))
    patch.setattr("holdfast.ledger.ledger._clock", lambda: noon)
    patch.setattr("holdfast.ledger.ledger._day", lambda: noon[:10])
    clock = SimpleNamespace(now=lambda _: SimpleNamespace(strftime=lambda _: noon))
    patch.setattr("holdfast.publication.booking.datetime", SimpleNamespace(datetime=clock, UTC=None))
    patch.setattr("holdfast.randomness.keys.Scrypt", lambda **given: Scrypt(**{**given, "n": 2}))
    patch.setattr("holdfast.publication.report_facts.noise_charts", CHARTS)
    patch.setattr(hf.NoiseKey, "generate", lambda: hf.NoiseKey._open(b"a secret key of 32 bytes exactly", True, Claims()))


def a_plan(counts: Any = COUNTS) -> tuple[Plan, hf.Table]:
    table = hf.Table(UNIVERSE, counts, name=DATA)
    plan = hf.plan(table, KEEP, MECHANISM)
    plan.to_fields(), plan.deviations, list(plan.drawing.channel.tasks()), CHARTS(plan.drawing)  # made once, for all children
    return plan, table


def new_ledger(place: str, epsilon: str = "1/2") -> Ledger:
    ledger = Ledger.open(place, create=True, needs_grants=True)
    ledger.grant(DATA, kind="pure", epsilon=epsilon, approver="A. Chief", reason="the census")
    return ledger


def watch(folder: Path, at_point: Callable[[str], None]) -> None:
    """Call at every event on files below this folder. (Inside rmtree, names are relative to an open folder.)"""

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event in EVENTS:
            named = [os.fspath(given) for given in arguments if isinstance(given, str | os.PathLike)]
            if any(name.startswith(str(folder)) or event in ("os.remove", "os.rmdir") for name in named):
                at_point(event)

    sys.addaudithook(hook)


def run(place: str, folder: Path, at: int | str = -1, seen: list[str] | None = None, **options: Any) -> int:
    """One release, killed at point number `at`, or at the first one of that name; the exit code says how it ended."""
    passed = [] if seen is None else seen

    def at_point(what: str) -> None:
        if at in (len(passed), what):
            os.kill(os.getpid(), signal.SIGKILL)
        passed.append(what)

    ledger = Ledger.open(place)
    listen(ledger, at_point)
    watch(folder.parent, at_point)
    plan, table = options.pop("plan")
    order = Order(options.pop("release_id", "r1"), "2030-04-01")
    output = Output(folder, ("csv",), force=options.pop("force", False))
    account = ChargedAccount(ledger, DATA, options.pop("secret", SECRET))
    try:
        with watching(lambda name, done, _: at_point(DRAWN) if name == "Drawing" and done else None):
            carry_out(plan, table, order, output, account, **options)
    except HoldfastError as error:
        return next((code for kind, code in CODES.items() if isinstance(error, kind)), REFUSED)
    return 0


def wait_for(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def points_of(work: Callable[[list[str]], int]) -> list[str]:
    """What points a run has, told by a child that makes it."""
    reading, writing = os.pipe()

    def child() -> int:
        seen: list[str] = []
        code = work(seen)
        os.write(writing, json.dumps(seen).encode())
        return code

    code = wait_for(fork(child))
    os.close(writing)
    with os.fdopen(reading) as told:
        found: list[str] = json.loads(told.read())
    assert code == 0, code
    return found


def everything(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def remember_in(home: Path) -> None:
    """A state folder of its own: identifiers are frozen, so that all ledgers here have the same. What happens there is watched too."""
    os.environ["HOLDFAST_STATE"] = f"{home}-state"


class Trial:
    """One place, one folder, and what must be true after a kill and after a resume."""

    def __init__(self, place: str, home: Path, made: tuple[Plan, hf.Table], replaced: Path | None) -> None:
        home.mkdir()
        remember_in(home)
        self.place, self.folder, self.made, self.force = place, home / "out", made, replaced is not None
        new_ledger(place)
        if replaced is not None:
            shutil.copytree(replaced, self.folder)
        self.before = everything(home)

    def run(self, **options: Any) -> int:
        return wait_for(fork(lambda: run(self.place, self.folder, force=self.force, plan=self.made, **options)))

    def kill_and_resume(self, expected: tuple[Any, ...], **options: Any) -> tuple[str | None, list[str]]:
        """Where the kill left the release, and all that is wrong then and after the resume."""
        code = self.run(**options)
        state, wrong = self.after_a_kill()
        if code != -signal.SIGKILL:
            wrong.append(f"not killed but {code}")
        if self.run(resume=True) != (CODES[IdenticalRelease] if state == "closed" else 0):
            wrong.append("not resumed")
        return state, wrong + self.wrong_in_the_end(expected)

    def after_a_kill(self) -> tuple[str | None, list[str]]:
        """Where the release stands, and what is wrong with that."""
        ledger, wrong = Ledger.open(self.place), []
        held = ledger.reservation(DATA, "r1")
        state = None if held is None else held.state
        wrong += ledger.verify()
        if str(ledger.balance(DATA).spent) != ("0" if held is None else "1/2"):
            wrong.append("a spend was lost, or counted that is none")
        now = everything(self.folder) if self.folder.exists() else {}
        was = {name.removeprefix("out/"): content for name, content in self.before.items()}
        if now != was and state not in STATES:
            wrong.append(f"there is an output while the ledger says {state}")
        return state, wrong

    def outcome(self) -> tuple[Any, ...]:
        """All that is left in the end: files (hidden ones too), and the whole ledger."""
        ledger = Ledger.open(self.place)
        names = sorted(path.name for path in self.folder.parent.iterdir())
        events = [event.to_fields() for event in ledger.events()]
        return names, everything(self.folder), events, ledger.verify(), ledger.open_reservations()

    def wrong_in_the_end(self, expected: tuple[Any, ...]) -> list[str]:
        """Against a run that was not interrupted; then a second resume, which must be refused and change nothing."""
        wrong = [] if self.outcome() == expected else ["the outcome is not that of an uninterrupted run"]
        if self.run(resume=True) != CODES[IdenticalRelease]:
            wrong.append("a closed release was resumed")
        return wrong if self.outcome() == expected else [*wrong, "a refused resume changed something"]


def trials(template: str, made: tuple[Plan, hf.Table], force: bool, home: Path) -> Iterator[Trial]:
    replaced = home / "replaced" if force else None
    if replaced is not None:
        hf.release(made[1], KEEP, MECHANISM, hf.NoiseKey.for_tests("before"), release_id="before").save(replaced, formats=["csv"])
    for number in itertools.count():
        yield Trial(template.format(number), home / str(number), made, replaced)


def kill(template: str, force: str, last: str, every: str) -> dict[str, Any]:
    """A release killed at each of the last points (0: of all) and resumed; and, for every state that leaves it in, a resume killed at every
    n-th point of its own.
    """
    made = a_plan()
    with tempfile.TemporaryDirectory() as folder:
        fresh = trials(template, made, force == "force", Path(folder))
        first = next(fresh)
        seen = points_of(lambda seen: run(first.place, first.folder, seen=seen, force=first.force, plan=made))
        expected, wrong = first.outcome(), first.wrong_in_the_end(first.outcome())
        states: dict[str, list[int]] = {}
        for point in range(len(seen))[-int(last) :]:
            trial = next(fresh)
            state, found = trial.kill_and_resume(expected, at=point)
            states.setdefault(str(state), []).append(point)
            wrong += [f"{point} {seen[point]}: {problem}" for problem in found]
        resumed = 0
        for kills in (_killed_resumes(fresh, made, points, int(every), expected) for state, points in states.items() if state != "closed"):
            for problems in kills:
                resumed, wrong = resumed + 1, wrong + problems
    return {"wrong": wrong, "points": seen, "states": {state: len(points) for state, points in states.items()}, "resumes": resumed}


def _killed_resumes(
    fresh: Iterator[Trial], made: tuple[Plan, hf.Table], points: list[int], every: int, expected: tuple[Any, ...]
) -> Iterator[list[str]]:
    at = points[len(points) // 2]
    trial = next(fresh)
    trial.run(at=at)
    seen = points_of(lambda seen: run(trial.place, trial.folder, seen=seen, force=trial.force, plan=made, resume=True))
    for again in range(every // 2, len(seen), every):
        trial = next(fresh)
        trial.run(at=at)
        _, found = trial.kill_and_resume(expected, at=again, resume=True)
        yield [f"{at}, resumed to {again} {seen[again]}: {problem}" for problem in found]


def without_secret(template: str) -> dict[str, Any]:
    """Killed at points of every state, no secret given: what resume and void do there."""
    made = a_plan()
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        fresh = trials(template, made, False, Path(folder))
        first = next(fresh)
        seen = points_of(lambda seen: run(first.place, first.folder, seen=seen, secret=None, plan=made))
        for point in range(0, len(seen), 4):
            trial = next(fresh)
            trial.run(at=point, secret=None)
            ledger = Ledger.open(trial.place)
            held = ledger.reservation(DATA, "r1")
            if held is None:
                continue
            before = everything(trial.folder.parent)
            code = trial.run(resume=True, secret=None)
            same = everything(trial.folder.parent) == before
            can_void = held.state in ("reserved", "drawing")
            voided = ledger.void(held, "killed") if can_void else None
            spent = str(ledger.balance(DATA).spent)
            told = found.setdefault(held.state, [])
            told.append({"code": code, "same": same, "refunded": voided, "spent": spent, "problems": ledger.verify()})
    return found


def race(place: str, number: str, ids: str, resume: str) -> dict[str, Any]:
    """Processes that release at once, or resume one that was killed, under one id or each under its own; the budget is 2.5 releases."""
    made = a_plan()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        home.mkdir()
        remember_in(home)
        ledger = new_ledger(place, "5/4")
        if resume == "resume":
            wait_for(fork(lambda: run(place, home / "r1", at=DRAWN, plan=made)))

        def work(index: int) -> int:
            name = "r1" if ids == "one" else f"r{index}"
            return run(place, home / name, release_id=name, plan=made, resume=resume == "resume")

        codes = together(int(number), work)
        left = sorted(path.name for path in home.iterdir())
        bad = [name for name in left if not (home / name / "card.json").is_file()]
        for name in set(left) - set(bad):
            hf.verify(home / name)
        reserved = [event for event in ledger.events(DATA) if event.kind == "reserved"]
        found = {"codes": sorted(codes), "left": left, "bad": bad, "reserved": len(reserved)}
        return found | {"spent": str(ledger.balance(DATA).spent), "problems": ledger.verify()}


def warm() -> None:
    """Load what a release needs, so that a child need not; nothing here may start a thread."""
    with tempfile.TemporaryDirectory() as folder:
        remember_in(Path(folder) / "warm")
        new_ledger(f"{folder}/ledger")
        run(f"{folder}/ledger", Path(folder) / "out", plan=a_plan())


if __name__ == "__main__":
    freeze()
    warm()
    commands: dict[str, Callable[..., Any]] = {"kill": kill, "without_secret": without_secret, "race": race}
    print(json.dumps(commands[sys.argv[1]](*sys.argv[2:])))
