"""Power is lost after every step of a release: the ledger can be read, no charge of a published output is lost, nothing half is published.

    python -m tests.faults.power SCENARIO EVERY [unsynced]

records one release and replays every EVERY-th prefix of its steps in each way of `disk.WAYS`; each different state is looked at and the
release finished from there. `unsynced`: as if the release had synced nothing, which must be noticed.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from holdfast.errors import LedgerProblem
from holdfast.ledger import Ledger
from tests.faults import common
from tests.faults.common import DATA, RELEASE, RUN, STATES, command
from tests.faults.disk import WAYS, Disk, Files, put, read, record

SCENARIOS = ("granted", "made", "replacing", "without")
"""A ledger with a grant; one that the release makes; a release that replaces another; one without a ledger."""


@dataclass
class Trial:
    """One recorded release, and what was found in its replays."""

    root: Path
    scenario: str
    whole: Files = field(default_factory=dict)
    """The published folder as it came out in the end."""
    wrong: list[str] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)
    reached: dict[str, int] = field(default_factory=dict)
    """How many different states left the release where."""

    def start(self) -> None:
        ledger = {"granted": common.LEDGER, "replacing": common.LEDGER, "made": "", "without": 'ledger = "none"\n'}[self.scenario]
        common.lay_out(self.root, RUN + ledger)
        if self.scenario in ("granted", "replacing"):
            common.grant(self.root)
        if self.scenario == "replacing":
            (self.root / "old.toml").write_text(RUN.replace('"r1"', '"r0"') + common.LEDGER)
            assert command(self.root, "release", "old.toml", "-o", "out").code == 0

    @property
    def words(self) -> tuple[str, ...]:
        return (*RELEASE, *(("--force",) if self.scenario == "replacing" else ()))

    def ledger_place(self) -> Path | None:
        names = {"granted": "ledger.sqlite", "replacing": "ledger.sqlite", "made": "holdfast-ledger.sqlite"}
        return self.root / names[self.scenario] if self.scenario in names else None

    def look(self, files: Files, what: str) -> str | None:
        """Check what a loss of power left, then finish the release from there; where it stood."""
        put(self.root, files)
        out = {path: data for path, data in files.items() if path == "out" or path.startswith("out/")}
        is_there = out == self.whole
        if out and not is_there and not self._is_the_old_one():
            self._tell(what, "an output that is neither whole nor the old one" + (", and it verifies" if _verifies(self.root) else ""))
        state = self._state(what, is_there)
        self._finish(what, state, is_there)
        return state

    def _tell(self, what: str, problem: str) -> None:
        self.wrong.append(f"{self.scenario}, {what}: {problem}")

    def _is_the_old_one(self) -> bool:
        try:
            return self.scenario == "replacing" and json.loads((self.root / "out" / "card.json").read_bytes())["release"]["id"] == "r0"
        except (OSError, ValueError):
            return False

    def _state(self, what: str, is_there: bool) -> str | None:
        place = self.ledger_place()
        if place is None:
            return None
        if self.scenario == "made" and (not place.exists() or place.stat().st_size == 0):
            if is_there:
                self._tell(what, "published, and the ledger is gone")
            return None
        try:
            ledger = Ledger.open(place, create=self.scenario == "made", needs_grants=self.scenario != "made")
            problems, held = ledger.verify(), ledger.reservation(DATA, common.NAME)
        except LedgerProblem as problem:
            self._tell(what, f"the ledger cannot be read: {problem}")
            return None
        for unsound in problems:
            self._tell(what, f"the ledger is not sound: {unsound}")
        state = None if held is None else held.state
        if is_there and state not in ("committed", "published", "closed"):
            self._tell(what, f"published, and the ledger says {state}")
        return state

    def _finish(self, what: str, state: str | None, is_there: bool) -> None:
        """Go on from there, and look at the end: one output, whole, one charge, nothing left over."""
        if state == "closed" or (self.scenario == "without" and is_there):
            ended = None
        else:
            ended = command(self.root, *self.words, *(() if state is None else ("--resume",)))
            if ended.code != 0:
                self._tell(what, f"from {state} it ended with {ended.code}: {ended.err.strip()[-300:]}")
                return
        if not _verifies(self.root):
            self._tell(what, "in the end the output does not verify")
        left = [name for name in os.listdir(self.root) if name.startswith(".holdfast")]
        if left and ended is not None:
            self._tell(what, f"left over: {left}")
        place = self.ledger_place()
        if place is not None:
            account = Ledger.open(place).account(DATA)
            held = [release for release in account.releases.values() if release.release_id == common.NAME and release.counts]
            if len(held) != 1 or held[0].state != "closed":
                self._tell(what, "in the end the ledger does not hold one closed release")


def _verifies(root: Path) -> bool:
    return command(root, "verify", "out").code == 0


def run(scenario: str, every: int, *, synced: bool = True) -> dict[str, Any]:
    """Record, replay, and say what was found."""
    with tempfile.TemporaryDirectory() as folder:
        common.load(Path(folder) / "scratch")
        trial = Trial(Path(folder).resolve() / "place", scenario)
        os.environ.update(common.environment(trial.root))
        trial.start()
        before = read(trial.root)
        code, steps = record([sys.executable, "-m", "holdfast", *trial.words], trial.root, common.environment(trial.root))
        assert code == 0, code
        steps = steps if synced else [step for step in steps if step.what != "sync"]
        end = read(trial.root)
        trial.whole = {path: data for path, data in end.items() if path == "out" or path.startswith("out/")}
        disk = Disk.holding(before)
        states, rank = 0, 0
        for number, step in enumerate(steps):
            disk.apply(step)
            if number % every and number + 1 < len(steps):
                continue
            for way in WAYS:
                files = disk.after(way, number)
                states += 1
                digest = _digest(files)
                if digest in trial.seen:
                    continue
                trial.seen.add(digest)
                state = trial.look(files, f"{way} after step {number} ({step.what} {step.path})")
                trial.reached[str(state)] = trial.reached.get(str(state), 0) + 1
                if way == "synced":
                    if STATES.index(state) < rank:
                        trial.wrong.append(f"{scenario}, after step {number}: a step that was on disk is gone")
                    rank = STATES.index(state)
        if disk.after("all", 0) != end:
            trial.wrong.append(f"{scenario}: the recorded steps do not give what the command left")
    return {
        "scenario": scenario,
        "steps": len(steps),
        "states": states,
        "different": len(trial.seen),
        "reached": trial.reached,
        "wrong": trial.wrong,
    }


def _digest(files: Files) -> str:
    made = hashlib.sha256()
    for path, data in sorted(files.items()):
        made.update(repr((path, data)).encode())
    return made.hexdigest()


if __name__ == "__main__":
    print(json.dumps(run(sys.argv[1], int(sys.argv[2]), synced=sys.argv[3:] != ["unsynced"])))
