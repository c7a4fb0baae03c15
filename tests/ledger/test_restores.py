"""Attacks with old copies of marks, ledgers and state folders: nothing is drawn twice for one charge, no secret outlives its release, and
an honest office is told what to do before anything is charged.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from holdfast.errors import NoWitness, WitnessMismatch, WrongState
from holdfast.ledger import Charge, Ledger, Reservation
from holdfast.ledger.releases import ReleaseFacts
from holdfast.ledger.store import place_of
from holdfast.ledger.witness import Witness
from holdfast.publication.booking import check_begun_here

WHY: dict[str, str] = {"approver": "A", "reason": "a copy was put back"}


@pytest.fixture(autouse=True)
def state(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("HOLDFAST_STATE", str(tmp_path / "state"))
    (tmp_path / "second").mkdir()
    return tmp_path / "state"


def reserve(ledger: Ledger, name: str = "r", **more: Any) -> Reservation:
    return ledger.reserve(
        "d",
        name,
        Charge("pure", Fraction(1)),
        ReleaseFacts(protect="person"),
        **{"sealed_key": None, "input_digest": "x", **more},
        now="2026-01-01",
    )


def finish(ledger: Ledger, reservation: Reservation) -> None:
    drawn = ledger.stage(ledger.start_drawing(reservation), "checksum")
    ledger.close(ledger.publish(ledger.commit(drawn)))


def made(tmp_path: Path, **more: Any) -> Ledger:
    return Ledger.open(tmp_path / "ledger", create=True, **{"needs_grants": False, **more})


def states(ledger: Ledger) -> list[tuple[str, str]]:
    return [(one.release_id, one.state) for one in ledger.account("d").releases.values()]


def test_an_older_mark_beside_a_newer_one_gives_no_charge_back(tmp_path: Path) -> None:
    """One backup held the ledger and the second witness: the state folder knows that the release was drawn."""
    second = tmp_path / "second"
    ledger = made(tmp_path, witness=second, needs_grants=True)
    ledger.grant("d", kind="pure", epsilon="1", approver="A", reason="r")
    reserved = reserve(ledger)
    shutil.copy(tmp_path / "ledger", tmp_path / "old")
    shutil.copytree(second, tmp_path / "old second")
    finish(ledger, reserved)
    shutil.copy(tmp_path / "old", tmp_path / "ledger")
    shutil.rmtree(second)
    shutil.copytree(tmp_path / "old second", second)
    ledger = Ledger.open(tmp_path / "ledger", witness=second)
    ledger.accept_restore(**WHY)
    again = ledger.reservation("d", "r")
    assert again is not None
    assert not ledger.void(again, "x"), "what was drawn is not refunded"
    assert ledger.balance("d").spent == 1


def test_a_void_that_one_witness_did_not_see_is_not_charged(tmp_path: Path) -> None:
    ledger = made(tmp_path, witness=tmp_path / "second")
    shutil.copy(tmp_path / "ledger", tmp_path / "old")
    assert Ledger.open(tmp_path / "ledger").void(reserve(ledger), "x")
    shutil.copy(tmp_path / "old", tmp_path / "ledger")
    ledger = Ledger.open(tmp_path / "ledger", witness=tmp_path / "second")
    assert ledger.accept_restore(**WHY) == []


@pytest.mark.parametrize("stale", [False, True])
def test_a_release_lost_twice_is_charged_once_and_its_card_is_known(tmp_path: Path, stale: bool) -> None:
    """Also where the second witness slept through the first restore."""
    ledger = made(tmp_path, witness=tmp_path / "second")
    shutil.copy(tmp_path / "ledger", tmp_path / "old")
    reserved = reserve(ledger)
    finish(ledger, reserved)
    for witness in (None if stale else tmp_path / "second", tmp_path / "second"):
        shutil.copy(tmp_path / "old", tmp_path / "ledger")
        ledger = Ledger.open(tmp_path / "ledger", witness=witness)
        ledger.accept_restore(**WHY)
    assert ledger.balance("d").spent == 1
    assert ledger.verify([reserved.head]) == []


def test_a_release_is_not_finished_where_its_second_secret_is_not(tmp_path: Path, state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would stay where the release was begun, and tell the noise for good. What was voided elsewhere goes with the next check."""
    ledger = made(tmp_path)
    reserved = reserve(ledger, second_secret=b"s" * 32, sealed_key=b"k" * 60)
    ledger.stage(ledger.start_drawing(reserved), "checksum")
    found = ledger.reservation("d", "r")
    assert found is not None
    check_begun_here(found)
    monkeypatch.setenv("HOLDFAST_STATE", str(tmp_path / "other"))
    found = Ledger.open(tmp_path / "ledger").reservation("d", "r")
    assert found is not None
    with pytest.raises(WrongState, match="Resume it on the machine"):
        check_begun_here(found)
    Ledger.open(tmp_path / "ledger").void(found, "x")
    assert len(list((state / "secrets").iterdir())) == 1
    monkeypatch.setenv("HOLDFAST_STATE", str(state))
    Ledger.open(tmp_path / "ledger").check_witness()
    assert list((state / "secrets").iterdir()) == []


def test_secrets_of_a_ledger_that_is_gone_go_with_it(tmp_path: Path, state: Path) -> None:
    ledger = made(tmp_path)
    ledger.start_drawing(reserve(ledger, second_secret=b"s" * 32, sealed_key=b"k" * 60))
    (tmp_path / "ledger").unlink()
    ledger = Ledger.reopen(tmp_path / "ledger")
    assert [one.release_id for one in ledger.accept_restore(**WHY)] == ["r"]
    assert list((state / "secrets").iterdir()) == []


def test_a_ledger_that_is_gone_with_its_mark_is_not_made_anew(tmp_path: Path, state: Path) -> None:
    finish(made(tmp_path), reserve(made(tmp_path)))
    (tmp_path / "ledger").unlink()
    next(state.glob("*.mark")).unlink()
    with pytest.raises(WitnessMismatch, match=r"\.mark back"):
        Ledger.reopen(tmp_path / "ledger")


def link_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ledger").unlink()
    (tmp_path / "empty").touch()
    (tmp_path / "ledger").symlink_to(tmp_path / "empty")


def other_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ledger").unlink()
    monkeypatch.setenv("HOLDFAST_STATE", str(tmp_path / "other"))


@pytest.mark.parametrize("attack", [link_elsewhere, other_state])
def test_a_ledger_that_is_gone_is_missed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, attack: Callable[..., None]) -> None:
    ledger = made(tmp_path, witness=tmp_path / "second")
    finish(ledger, reserve(ledger))
    attack(tmp_path, monkeypatch)
    with pytest.raises(WitnessMismatch, match="is gone"):
        made(tmp_path, witness=tmp_path / "second")


def test_only_places_of_made_up_releases_are_forgotten(tmp_path: Path) -> None:
    witness = Witness.of(None, place_of(tmp_path / "ledger"))
    finish(made(tmp_path), reserve(made(tmp_path), "demo-1"))
    witness.forget_made_up()  # nobody noted it
    assert witness.previous_id() == made(tmp_path).id
    witness.note_made_up({("d", "demo-1")})
    finish(made(tmp_path), reserve(made(tmp_path), "demo-2"))
    witness.forget_made_up()  # another came after the note
    assert witness.previous_id() == made(tmp_path).id
    witness.note_made_up({("d", "demo-1"), ("d", "demo-2")})
    witness.forget_made_up()
    assert witness.previous_id() is None


def test_a_note_is_of_one_ledger_and_its_events(tmp_path: Path, state: Path) -> None:
    """A ledger made anew in the same place has releases of the same names, and they are others."""
    witness = Witness.of(None, place_of(tmp_path / "ledger"))
    finish(made(tmp_path), reserve(made(tmp_path), "demo-1"))
    witness.note_made_up({("d", "demo-1")})
    witness.forget_made_up()
    (tmp_path / "ledger").unlink()
    finish(made(tmp_path), reserve(made(tmp_path), "demo-1"))
    witness.forget_made_up()
    assert witness.previous_id() == made(tmp_path).id
    for note in (state / "made-up").iterdir():
        note.write_bytes(b"\xff")
    witness.forget_made_up()
    assert witness.previous_id() == made(tmp_path).id


def dangling(state: Path) -> None:
    shutil.rmtree(state)
    state.symlink_to(state.parent / "nowhere" / "deep")


def a_file(state: Path) -> None:
    shutil.rmtree(state)
    state.write_text("")


@pytest.mark.parametrize("broken", [dangling, a_file])
def test_what_cannot_be_remembered_is_refused_before_the_charge(tmp_path: Path, state: Path, broken: Callable[[Path], None]) -> None:
    ledger = made(tmp_path)
    finish(ledger, reserve(ledger))
    broken(state)
    with pytest.raises(NoWitness, match="Nothing was charged"):
        ledger.check_witness()
    assert ledger.balance("d").spent == 1


def bytes_of_others(path: Path) -> None:
    path.write_bytes(b"\xff\xfe")


def pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def nested(path: Path) -> None:
    path.write_text("[" * 100_000)


@pytest.mark.parametrize("damage", [bytes_of_others, pipe, nested])
@pytest.mark.parametrize("file", ["*.mark", "places/*"])
def test_damaged_memories_are_refused_in_words(tmp_path: Path, state: Path, damage: Callable[[Path], None], file: str) -> None:
    finish(made(tmp_path), reserve(made(tmp_path)))
    damage(next(state.glob(file)))
    with pytest.raises(WitnessMismatch):
        Ledger.open(tmp_path / "ledger").check_witness()
