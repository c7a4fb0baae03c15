"""A second witness that several users share, its lock, and links in it."""

from __future__ import annotations

import fcntl
import logging
import os
from fractions import Fraction
from pathlib import Path

import pytest

from holdfast.errors import NoWitness, WitnessMismatch
from holdfast.ledger import Charge, Ledger
from holdfast.ledger import state as state_files
from holdfast.ledger.releases import ReleaseFacts
from holdfast.ledger.store import place_of
from holdfast.ledger.witness import Witness
from tests.ledger.driver import OFFICE
from tests.ledger.helpers import NOW, bring, grant, reserve
from tests.ledger.test_processes import run


@pytest.fixture(autouse=True)
def state(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("HOLDFAST_STATE", str(tmp_path / "state"))
    return tmp_path / "state"


@pytest.fixture
def witness(tmp_path: Path) -> Path:
    folder = tmp_path / "witness"
    folder.mkdir(mode=0o700)
    return folder


@pytest.fixture
def shared(tmp_path: Path, witness: Path) -> Ledger:
    """A ledger with a grant and a second witness."""
    ledger = Ledger.open(tmp_path / "ledger.db", create=True, needs_grants=True, witness=witness)
    grant(ledger)
    return ledger


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become two other users")
def test_two_users_of_a_group_share_a_witness() -> None:
    found = run("share", "")
    assert found["said"] == {"begun": "begun", **{f"r{number}": "closed" for number in (1, 2, 3, 4, 6)}}
    assert found["modes"] == [f"-rw-rw---- {OFFICE}", f"drwxrws--- {OFFICE}"]
    assert found["older"].startswith("WitnessMismatch: The ledger was put back to an older copy")
    refusal = found["closed to others"]
    assert refusal.startswith("WitnessMismatch: The mark of the ledger")
    assert "belongs to another user and may not be read. A folder that several users share needs a group of theirs" in refusal


def test_a_folder_that_is_not_shared_stays_its_owners(shared: Ledger, witness: Path, state: Path) -> None:
    bring(shared, "closed")
    for folder in (witness, state):
        found = list(folder.rglob("*"))
        assert len(found) >= 4  # mark, lock, folder of places, place
        assert {path.stat().st_mode & 0o7777 for path in found} == {0o600, 0o700}


@pytest.mark.parametrize("content", ["", "{}", "[" * 100_000])
def test_no_refusal_advises_to_remove_a_mark(shared: Ledger, witness: Path, content: str) -> None:
    (witness / f"{shared.id}.mark").write_text(content)
    with pytest.raises(WitnessMismatch, match="Restore that file from a copy") as caught:
        reserve(shared)
    assert "remove" not in str(caught.value)


def test_a_lock_is_waited_for_with_a_message(
    shared: Ledger, witness: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Held too long it is refused before anything is charged; given free while we wait, it goes on."""
    before = len(list(shared.events()))
    handle = os.open(witness / f"{shared.id}.lock", os.O_RDWR)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        with monkeypatch.context() as patch:
            patch.setattr(state_files, "LOCK_SECONDS", 0.2)
            with pytest.raises(NoWitness, match=r"held its lock for 0.2 seconds.*Nothing was charged"):
                shared.check_witness()
        assert len(list(shared.events())) == before
        assert [record.getMessage() for record in caplog.records if "waiting for it, up to 0.2 seconds" in record.getMessage()]

        class Free(logging.Handler):
            """Gives the lock free when the message comes."""

            def emit(self, record: logging.LogRecord) -> None:
                fcntl.flock(handle, fcntl.LOCK_UN)

        free = Free()
        state_files.logger.addHandler(free)
        try:
            shared.check_witness()
        finally:
            state_files.logger.removeHandler(free)
        assert "waiting for it, up to 60 seconds" in caplog.text
    finally:
        os.close(handle)
    assert reserve(shared).state == "reserved"


@pytest.mark.parametrize("name", ["lock", "places"])
def test_nothing_is_made_through_a_link(shared: Ledger, witness: Path, tmp_path: Path, name: str) -> None:
    """A member of the group puts a link where we would write."""
    elsewhere = tmp_path / "elsewhere"
    if name == "lock":
        path = witness / f"{shared.id}.lock"
        path.unlink()
    else:
        elsewhere.mkdir()
        path = witness / "places"
        (place,) = path.iterdir()
        place.unlink()
        path.rmdir()
    path.symlink_to(elsewhere)
    with pytest.raises(NoWitness, match="a link or"):
        shared.check_witness()
    assert path.is_symlink()
    assert not elsewhere.exists() or list(elsewhere.iterdir()) == []


@pytest.fixture
def planted(shared: Ledger, witness: Path, tmp_path: Path) -> Ledger:
    """Another ledger of the same user, with an open release; a member of the group writes its id into the place of the first."""
    bring(shared, "closed")
    other = Ledger.open(tmp_path / "other.db", create=True, witness=witness, needs_grants=False)
    held = other.reserve(
        "d",
        "open",
        Charge("zcdp", rho=Fraction(1)),
        ReleaseFacts(),
        sealed_key=b"k" * 60,
        second_secret=b"s" * 32,
        input_digest="x",
        now=NOW,
    )
    other.start_drawing(held)
    witness.chmod(0o770)
    place = Witness.of(witness, place_of(tmp_path / "ledger.db"))._place_in(witness)
    place.write_text(f"{other.id}\n")
    return other


def test_what_only_a_shared_folder_says_of_a_place_is_no_restore(
    shared: Ledger, planted: Ledger, witness: Path, state: Path, tmp_path: Path
) -> None:
    """Nothing is charged, no secret is destroyed, and the folder and the id are named."""
    before = len(list(shared.events()))
    for attempt in (
        lambda: reserve(shared, "r2"),
        lambda: shared.accept_restore(approver="A", reason="as the message said"),
        lambda: Ledger.reopen(tmp_path / "ledger.db", witness=witness),
    ):
        with pytest.raises(WitnessMismatch, match="does not say so") as caught:
            attempt()
        assert "accept-restore" not in str(caught.value)
        assert str(witness) in str(caught.value)
        assert str(planted.id) in str(caught.value)
    assert len(list(shared.events())) == before
    assert [path.read_bytes() for path in (state / "secrets").iterdir()] == [b"s" * 32]


def test_an_entry_that_was_removed_as_advised_lets_the_ledger_go_on(shared: Ledger, planted: Ledger, witness: Path) -> None:
    with pytest.raises(WitnessMismatch) as caught:
        reserve(shared, "r2")
    (witness / str(caught.value).rsplit(": ", 1)[1].rstrip(".")).unlink()
    assert reserve(shared, "r2").state == "reserved"


def test_a_second_folder_of_ones_own_charges_but_destroys_no_secret(planted: Ledger, witness: Path, state: Path, tmp_path: Path) -> None:
    """Written by this user only, the folder is believed for charges; secrets go only where the state folder knew the ledger."""
    witness.chmod(0o700)
    ledger = Ledger.open(tmp_path / "ledger.db", witness=witness)
    assert [one.release_id for one in ledger.accept_restore(approver="A", reason="r")] == ["open"]
    assert [path.read_bytes() for path in (state / "secrets").iterdir()] == [b"s" * 32]
