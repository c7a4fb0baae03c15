"""The ledger is put back to an older copy, deleted or exchanged, at odd moments: nothing more is published before that was accepted.

    python -m tests.faults.rollback WALKS SEED

Each walk is a row of releases (some killed while they draw), copies, and attacks; after each attack it is tried to publish again, under the
old id and under a new one. Then the true ledger comes back, or the restore is accepted, which charges what may have been lost.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

from holdfast.ledger import Ledger
from tests.faults import common
from tests.faults.common import DATA, LEDGER, RUN, Ended, command

STEPS = ("release", "release", "killed", "copy", "roll back", "roll back", "delete", "exchange")
LENGTH = 12
COST = Fraction(1, 2)


def kill_in_the_draw() -> None:
    """From here on this process is killed when it draws: charged, and nothing published."""
    from holdfast.engines.local import BoundRelease

    BoundRelease.draw = lambda *_: os.kill(os.getpid(), signal.SIGKILL)  # type: ignore[method-assign,assignment]


@dataclass
class Walk:
    """One place, and what happened to it."""

    root: Path
    chance: random.Random
    copies: list[bytes] = field(default_factory=list)
    used: list[str] = field(default_factory=list)
    """Ids that were charged."""
    published: list[str] = field(default_factory=list)
    attacks: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    _next: int = 0

    @property
    def ledger(self) -> Path:
        return self.root / "ledger.sqlite"

    def go(self) -> None:
        self.copies.append(self.ledger.read_bytes())
        for _ in range(LENGTH):
            step = self.chance.choice(STEPS)
            if step in ("release", "killed"):
                self._new(killed=step == "killed")
            elif step == "copy":
                self.copies.append(self.ledger.read_bytes())
            else:
                self._attack(step)
        self._check_sums("in the end")

    def _release(self, name: str, *more: str, killed: bool = False) -> Ended:
        (self.root / "run.toml").write_text(RUN.replace('"r1"', f'"{name}"') + LEDGER)
        return command(self.root, "release", "run.toml", "-o", name, "--json", *more, before=kill_in_the_draw if killed else None)

    def _new(self, killed: bool) -> None:
        self._next += 1
        name = f"r{self._next}"
        ended = self._release(name, killed=killed)
        if ended.code != (-signal.SIGKILL if killed else 0):
            self.wrong.append(f"a release of a sound ledger ended with {ended.code}: {(ended.err or ended.out)[-300:]}")
        self.used.append(name)
        if (self.root / name).exists():
            self.published.append(name)

    def _attack(self, how: str) -> None:
        """Do it, try to publish, and undo it in one way or the other."""
        true = self.ledger.read_bytes()
        if how == "delete":
            self.ledger.unlink()
        elif how == "exchange":
            self.ledger.unlink()
            ended = command(self.root, "ledger", "create", "--ledger", "ledger.sqlite")
            if ended.code == 12:
                self.attacks["a new ledger in the place of the old one is refused"] += 1
                self.ledger.write_bytes(true)
                return
        else:
            older = self.chance.choice(self.copies)
            if older == true:
                return
            self.ledger.write_bytes(older)
        self.attacks[how] += 1
        self._next += 1
        for name in (f"r{self._next}", *self.used[-1:]):
            before = set(os.listdir(self.root))
            if name in self.published:
                (self.root / name).rename(self.root / "aside")  # the attacker has a copy, and wants another one
            ended = self._release(name)
            if ended.code != 12 or (self.root / name).exists():
                self.wrong.append(f"after {how}: {name} ended with {ended.code}")
            if name in self.published:
                (self.root / "aside").rename(self.root / name)
            if set(os.listdir(self.root)) != before:
                self.wrong.append(f"after {how}: a refused release left something")
        told = command(self.root, "ledger", "verify", "--ledger", "ledger.sqlite")
        if told.code != 12:
            self.wrong.append(f"after {how}: ledger verify ended with {told.code}")
        if how == "roll back" and self.chance.random() < 0.5:
            self._accept()
        else:
            self.ledger.write_bytes(true)

    def _accept(self) -> None:
        words = ("ledger", "accept-restore", "--approver", "A. Chief", "--reason", "a disk was lost", "--ledger", "ledger.sqlite")
        ended = command(self.root, *words)
        if ended.code != 0:
            self.wrong.append(f"accept-restore ended with {ended.code}: {ended.err[-300:]}")
        self.attacks["accepted"] += 1
        self.copies = [self.ledger.read_bytes()]
        self._check_sums("after accept-restore")
        for name in self.used[-3:]:
            if name in self.published:
                continue
            if self._release(name).code not in (9, 12) or (self.root / name).exists():
                self.wrong.append(f"after accept-restore: {name}, which was charged before, was released again")

    def _check_sums(self, when: str) -> None:
        """What was charged stays charged."""
        ledger = Ledger.open(self.ledger)
        if ledger.verify():
            self.wrong.append(f"{when}: {ledger.verify()[0]}")
        spent = ledger.balance(DATA).spent
        if spent < COST * len(self.used):
            self.wrong.append(f"{when}: {spent} spent, and {len(self.used)} releases were charged {COST} each")


def run(walks: int, seed: int) -> dict[str, Any]:
    """So many walks."""
    attacks: Counter[str] = Counter()
    wrong: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        common.load(Path(folder) / "scratch")
        for number in range(walks):
            root = Path(folder) / "place"
            shutil.rmtree(root, ignore_errors=True)
            common.lay_out(root)
            os.environ.update(common.environment(root))
            common.grant(root)
            walk = Walk(root, random.Random(f"{seed}/{number}"))
            walk.go()
            attacks += walk.attacks
            wrong += [f"walk {number}: {problem}" for problem in walk.wrong]
    return {"walks": walks, "attacks": attacks, "wrong": wrong}


if __name__ == "__main__":
    print(json.dumps(run(int(sys.argv[1]), int(sys.argv[2]))))
