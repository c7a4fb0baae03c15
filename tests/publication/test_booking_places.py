"""Disks that fail and places that are taken, with a ledger and without: a complete folder under its name, or nothing new."""

from __future__ import annotations

import errno
import fcntl
import json
import os
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import holdfast as hf
from holdfast.engines.local import BoundRelease
from holdfast.errors import (
    HoldfastError,
    IdenticalRelease,
    OtherInput,
    OutputExists,
    OutputProblem,
)
from holdfast.ledger import Ledger
from holdfast.ledger import state as state_files
from holdfast.publication import booking, folder, publication
from holdfast.publication.folder import Output, put_in_place, unfinished_name
from holdfast.publication.given_files import CARD
from tests.publication.bookings import (
    DATA,
    KEEP,
    LAPLACE,
    Place,
    a_ledger,
    a_release,
    a_table,
    broken,
    fails,
    files,
    left,
    run,
    spent,
    state,
    stop,
)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return a_ledger(tmp_path)


BOOKED = pytest.mark.parametrize("booked", [True, False], ids=["ledger", "no ledger"])
CHARGE = "Its charge is in the ledger: resume with --resume"


class TestDisksAndPlaces:
    """The same with a ledger and without: a complete folder under its name, or nothing new at all."""

    @pytest.mark.ordinary("28-disk", "the folder")
    @BOOKED
    @pytest.mark.parametrize(
        ("code", "said"), [(errno.ENOSPC, "disk is full"), (errno.EACCES, "permission is missing"), (errno.EIO, "system says")]
    )
    @pytest.mark.parametrize("where", ["save_pieces", "write_synced", "sync_folder", "Path.chmod", "the last file", "the folder"])
    def test_what_cannot_be_written_leaves_nothing(
        self, ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, booked: bool, code: int, said: str, where: str
    ) -> None:
        def not_the_card(path: Path, content: bytes) -> None:
            if path.name == CARD:
                raise OSError(code, "said by the system")
            path.write_bytes(content)

        with monkeypatch.context() as patch:
            if where == "the last file":
                patch.setattr(folder, "write_synced", not_the_card)
            elif where == "the folder":
                patch.setattr("pathlib.Path.mkdir", fails(code))
            else:
                patch.setattr("pathlib.Path.chmod" if where == "Path.chmod" else f"holdfast.publication.folder.{where}", fails(code))
            with pytest.raises(OutputProblem, match=f"'out' could not be written.*{said}.*Nothing was left behind") as caught:
                run(ledger if booked else None, tmp_path / "out")
        assert (CHARGE in str(caught.value)) == booked
        assert left(tmp_path) == []
        assert (state(ledger), spent(ledger)) == (("drawing", Fraction(1, 2)) if booked else (None, 0))
        run(ledger if booked else None, tmp_path / "out", resume=booked)
        hf.verify(tmp_path / "out")
        assert (left(tmp_path), spent(ledger)) == (["out"], Fraction(1, 2) if booked else 0)

    def test_a_place_that_takes_no_lock_file(self, ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        made = a_release(ledger)
        with monkeypatch.context() as patch:
            patch.setattr("os.open", fails(errno.EACCES))
            with pytest.raises(OutputProblem, match=f"permission is missing.*{CHARGE}"):
                made.save(tmp_path / "out")
        assert left(tmp_path) == []
        made.save(tmp_path / "out")
        assert state(ledger) == "closed"

    def test_a_lock_that_is_held_ends_with_a_message(self, ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Whoever may open the lock could hold a release up for ever."""
        made = a_release(ledger)
        held = ledger.reservation(DATA, "r1")
        assert held is not None
        lock = tmp_path / f"{unfinished_name(held.head)}.lock"
        handle = os.open(lock, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            monkeypatch.setattr(state_files, "LOCK_SECONDS", 0.2)
            with pytest.raises(OutputProblem, match=r"held its lock for 0.2 seconds.*Let that process end.*--resume"):
                made.save(tmp_path / "out")
        finally:
            os.close(handle)
        made.save(tmp_path / "out")
        assert left(tmp_path) == ["out"]

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
    def test_a_lock_of_another_user_is_refused(self, ledger: Ledger, tmp_path: Path) -> None:
        made = a_release(ledger)
        held = ledger.reservation(DATA, "r1")
        assert held is not None
        lock = tmp_path / f"{unfinished_name(held.head)}.lock"
        lock.touch()
        os.chown(lock, 12345, -1)
        with pytest.raises(OutputProblem, match=r"belongs to another user\. Remove that file"):
            made.save(tmp_path / "out")
        lock.unlink()
        made.save(tmp_path / "out")
        assert left(tmp_path) == ["out"]

    @BOOKED
    def test_a_name_that_cannot_be_given(self, ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, booked: bool) -> None:
        """Without a ledger nothing stays. With one the spend is committed, and the finished folder waits for its name."""
        with monkeypatch.context() as patch:
            patch.setattr("os.rename", fails(errno.EACCES))
            with pytest.raises(OutputProblem, match="permission is missing") as caught:
                run(ledger if booked else None, tmp_path / "out")
        assert not (tmp_path / "out").exists()
        if not booked:
            assert left(tmp_path) == []
            return
        assert CHARGE in str(caught.value)
        assert "Nothing was left behind" not in str(caught.value)
        assert state(ledger) == "committed"
        (waiting,) = left(tmp_path)
        whole = files(tmp_path / waiting)
        monkeypatch.setattr(BoundRelease, "draw", lambda *_: pytest.fail("drawn"))
        run(ledger, tmp_path / "out", resume=True)
        assert (files(tmp_path / "out"), left(tmp_path)) == (whole, ["out"])

    @BOOKED
    @pytest.mark.parametrize("at_once", [True, False], ids=["exchanged at once", "one after the other"])
    def test_force_exchanges_another_release(
        self, ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, booked: bool, at_once: bool
    ) -> None:
        """Until the spend is committed the old folder stands there, whole; in the end no part of it is left."""
        used = ledger if booked else None
        run(used, tmp_path / "out", "before")
        before = files(tmp_path / "out")
        seen: list[bool] = []

        def noted(temporary: Path, output: Output) -> None:
            seen.append(files(tmp_path / "out") == before)
            if booked:
                assert state(ledger) == "committed"
            put_in_place(temporary, output)

        with monkeypatch.context() as patch:
            patch.setattr(publication, "fill_folder", stop)
            with pytest.raises(KeyboardInterrupt):
                run(used, tmp_path / "out", force=True)
        assert (files(tmp_path / "out"), left(tmp_path)) == (before, ["out"])
        if not at_once:
            monkeypatch.setattr("ctypes.CDLL", lambda _: None)
        monkeypatch.setattr(booking, "put_in_place", noted)
        run(used, tmp_path / "out", force=True, resume=booked)
        assert seen == [True]
        assert left(tmp_path) == ["out"]
        assert left(tmp_path / "out") == ["card.json", "exposed.csv", "kept.csv", "report.html", "statement.html", "table.csv"]
        hf.verify(tmp_path / "out")
        assert json.loads((tmp_path / "out" / "card.json").read_text())["release"]["id"] == "r1"

    @BOOKED
    @pytest.mark.parametrize("problem", ["there already", "no place", "signing key", "format", "identical", "no release", "may not write"])
    def test_a_place_is_checked_before_anything_is_reserved_or_drawn(
        self, ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, booked: bool, problem: str
    ) -> None:
        place, options = tmp_path / "out", dict[str, Any]()
        if problem == "identical":
            hf.release(a_table(), KEEP, LAPLACE, release_id="r1", ledger=None).save(place)
        elif problem in ("there already", "no release"):
            place.mkdir()
            (place / "note.txt").write_text("mine")
        elif problem == "no place":
            place = tmp_path / "nowhere" / "out"
        elif problem == "signing key":
            options["sign"] = tmp_path / "gone.pem"
        elif problem == "format":
            options["formats"] = ("xml",)
        else:
            monkeypatch.setattr("os.access", lambda *_: False)
        options["force"] = problem in ("identical", "no release")
        before, events = files(tmp_path), len(list(ledger.events()))
        monkeypatch.setattr(BoundRelease, "draw", lambda *_: pytest.fail("drawn"))
        monkeypatch.setattr(hf.NoiseKey, "generate", lambda: pytest.fail("a key was made"))
        with pytest.raises(HoldfastError) as caught:
            run(ledger if booked else None, place, **options)
        assert isinstance(caught.value, IdenticalRelease) == (problem == "identical")
        assert (state(ledger), len(list(ledger.events())), files(tmp_path)) == (None, events, before)


class TestNothingElseIsReplaced:
    """With force, only another release is ever replaced: at first, on resume, and where the folder changes in between."""

    def interrupted(self, place: Place, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(publication if step == "fill_folder" else booking, step, broken)
            with pytest.raises(RuntimeError, match="interrupted"):
                place.carry_out()

    @pytest.mark.parametrize("step", ["fill_folder", "put_in_place"])
    def test_a_resume_replaces_no_folder_that_is_no_release(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
        place = Place(tmp_path)
        self.interrupted(place, monkeypatch, step)
        (tmp_path / "out").mkdir()
        (tmp_path / "out/thesis.txt").write_text("years of work")
        with pytest.raises(OutputExists, match="no release"):
            place.carry_out(resume=True, force=True)
        assert (tmp_path / "out/thesis.txt").read_text() == "years of work"
        (tmp_path / "out/thesis.txt").unlink()
        (tmp_path / "out").rmdir()
        place.carry_out(resume=True)
        hf.verify(tmp_path / "out")

    def test_a_resume_replaces_no_link(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        place = Place(tmp_path)
        self.interrupted(place, monkeypatch, "put_in_place")
        (tmp_path / "elsewhere").mkdir()
        (tmp_path / "out").symlink_to(tmp_path / "elsewhere")
        with pytest.raises(OutputExists, match="is a link"):
            place.carry_out(resume=True, force=True)
        assert (tmp_path / "out").is_symlink()

    def test_a_staged_release_is_not_finished_under_another_plan(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        place = Place(tmp_path)
        self.interrupted(place, monkeypatch, "put_in_place")
        with pytest.raises(OtherInput):
            place.carry_out(resume=True, mechanism=hf.GeneralizedLaplace(epsilon="1/1000", per="distance"))
        place.carry_out(resume=True)
        hf.verify(tmp_path / "out")
