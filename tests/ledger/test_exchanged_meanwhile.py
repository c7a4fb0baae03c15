"""A ledger that is exchanged while a process uses it: between its look at the marks, its write, and what it remembers of that."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from holdfast.errors import WitnessMismatch
from holdfast.ledger import Ledger
from holdfast.ledger.store import Store
from holdfast.ledger.witness import Witness
from tests.ledger.helpers import DATA, bring, grant, reserve
from tests.ledger.test_witness import accept, put_back


@pytest.fixture(autouse=True)
def _state(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOLDFAST_STATE", str(tmp_path / "state"))


def once_before(monkeypatch: pytest.MonkeyPatch, owner: type, name: str, act: Callable[[], object]) -> None:
    """Something that happens right before the next call of a method, in another process."""
    real = getattr(owner, name)

    def late(*arguments: Any) -> Any:
        monkeypatch.setattr(owner, name, real)
        act()
        return real(*arguments)

    monkeypatch.setattr(owner, name, late)


def test_marks_are_read_when_nobody_else_writes(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """While a process waits to write, the release is voided, drawn under a new reservation, and the ledger put back."""
    ledger = Ledger.open(place, create=True, needs_grants=True)
    grant(ledger)
    held = reserve(ledger)

    def exchange() -> None:
        other = Ledger.open(place)
        assert other.void(held, "a test")
        other.start_drawing(reserve(other))
        put_back(other, held.seq)

    once_before(monkeypatch, Store, "write", exchange)
    with pytest.raises(WitnessMismatch, match="event 6 was seen here before"):
        ledger.start_drawing(held)


@pytest.mark.parametrize("draws", [False, True])
def test_a_mark_does_not_go_over_to_another_chain(place: str, draws: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The step is on disk, and gone before it is remembered: the mark has gone on along the chain that took its place."""
    ledger = Ledger.open(place, create=True, needs_grants=True)
    grant(ledger)
    held = reserve(ledger)

    def exchange() -> None:
        other = Ledger.open(place)
        put_back(other, held.seq)
        assert other.void(held, "a test")
        if draws:
            other.start_drawing(reserve(other))

    once_before(monkeypatch, Witness, "advance", exchange)
    with pytest.raises(WitnessMismatch, match="was exchanged while it was used"):
        ledger.start_drawing(held)


def test_a_faster_process_is_no_exchange(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = Ledger.open(place, create=True, needs_grants=True)
    grant(ledger)
    held = reserve(ledger)
    once_before(monkeypatch, Witness, "advance", lambda: bring(Ledger.open(place), "closed", "r2"))
    assert ledger.start_drawing(held).state == "drawing"
    ledger.check_witness()
    assert ledger.verify() == []


@pytest.mark.parametrize("moment", [(Store, "write"), (Witness, "reset")])
def test_a_release_during_a_restore_is_not_forgotten(tmp_path: Path, moment: tuple[type, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """r1 is lost with the copy. While that is accepted, r2 is drawn on the later copy, and the older one put back again."""
    place, early, late, now = (tmp_path / name for name in ("ledger.db", "early", "late", "now"))
    grant(Ledger.open(place, create=True, needs_grants=True))
    shutil.copy(place, early)
    bring(Ledger.open(place), "closed")
    shutil.copy(place, late)
    shutil.copy(early, place)
    ledger = Ledger.open(place)

    def exchange() -> None:
        shutil.copy(place, now)
        shutil.copy(late, place)
        bring(Ledger.open(place), "drawing", "r2")
        shutil.copy(now, place)

    once_before(monkeypatch, *moment, exchange)
    if moment[1] == "write":
        assert accept(ledger) == ["r1", "r2"]
    else:
        with pytest.raises(WitnessMismatch, match="Run the command again"):
            accept(ledger)
        assert accept(ledger) == ["r2"]
    assert ledger.balance(DATA).spent == Fraction(2, 10)
    ledger.check_witness()
