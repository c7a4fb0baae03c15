"""A release through a ledger that was interrupted at any step: what is left, and how it goes on."""

from __future__ import annotations

import errno
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import holdfast as hf
from holdfast.engines.local import BoundRelease
from holdfast.errors import (
    AfterPublication,
    IdenticalRelease,
    InvalidParameter,
    KeyMisuse,
    LedgerProblem,
    OtherInput,
    OutputExists,
    OutputProblem,
    WrongState,
)
from holdfast.ledger import Ledger
from holdfast.publication import booking, publication
from holdfast.publication.folder import Output, fill_folder, put_in_place
from tests.publication.bookings import (
    DATA,
    a_ledger,
    a_release,
    a_table,
    fails,
    files,
    interrupted,
    left,
    run,
    spent,
    state,
    stop,
)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return a_ledger(tmp_path)


class TestInterrupted:
    def test_stopped_while_drawing_and_resumed(self, ledger: Ledger, tmp_path: Path) -> None:
        interrupted(ledger, tmp_path / "out")
        assert state(ledger) == "drawing"
        assert left(tmp_path) == []
        with pytest.raises(WrongState, match="--resume to go on"):
            run(ledger, tmp_path / "out")
        with pytest.raises(WrongState, match="the secret that sealed its key was not given"):
            run(ledger, tmp_path / "out", resume=True, secret=None)
        with pytest.raises(KeyMisuse, match="cannot be opened with these secrets"):
            run(ledger, tmp_path / "out", resume=True, secret=b"another secret of the office")
        assert state(ledger) == "drawing"
        entry = run(ledger, tmp_path / "out", resume=True)
        assert state(ledger) == "closed"
        assert json.loads((tmp_path / "out" / "card.json").read_text())["release"]["ledger"] == entry
        assert spent(ledger) == Fraction(1, 2)

    @pytest.mark.ordinary("counts with", "kept more", "budget", "cells")
    @pytest.mark.parametrize(
        "changed",
        [
            {"table": a_table(np.array([5, 3, 2, 10]))},
            {"table": a_table(np.array([3, 5, 2, 9]))},
            {"keep": (hf.margin("sex"),)},
            {"keep": (hf.margin("area"), hf.margin("sex"))},
            {"mechanism": hf.GeneralizedLaplace(epsilon="1/5", per="distance")},
            {"mechanism": hf.GeneralizedGaussian(rho="1/100", per="distance")},
            {"table": a_table(max_records=2)},
            {"table": a_table(protect="household")},
            {"table": a_table(universe=hf.Universe.product({"area": ["a", "c"], "sex": ["F", "M"]}))},
        ],
        ids=["count", "counts with the same totals", "kept", "kept more", "budget", "mechanism", "records", "protect", "cells"],
    )
    def test_other_input_is_refused(self, ledger: Ledger, tmp_path: Path, changed: dict[str, Any]) -> None:
        interrupted(ledger, tmp_path / "out")
        events = len(list(ledger.events()))
        with pytest.raises(OtherInput):
            run(ledger, tmp_path / "out", resume=True, **changed)
        assert left(tmp_path) == []
        assert len(list(ledger.events())) == events
        run(ledger, tmp_path / "out", resume=True)

    def test_another_version_of_the_streams_is_refused(self, ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        interrupted(ledger, tmp_path / "out")
        monkeypatch.setattr(booking, "STREAM_VERSION", 99)
        with pytest.raises(OtherInput, match="another version of Holdfast"):
            run(ledger, tmp_path / "out", resume=True)

    def test_staged_is_only_renamed(self, ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """No secret and no draw are needed; in another place it is not found, and a changed folder is not taken."""
        with monkeypatch.context() as patch:
            patch.setattr(Ledger, "commit", stop)
            with pytest.raises(KeyboardInterrupt):
                run(ledger, tmp_path / "out", secret=None)
        assert state(ledger) == "staged"
        (staged,) = left(tmp_path)
        assert staged.startswith(".holdfast-unfinished-")
        monkeypatch.setattr(BoundRelease, "draw", lambda *_: pytest.fail("drawn"))
        (tmp_path / "elsewhere").mkdir()
        with pytest.raises(OutputProblem, match="not beside 'out', or was changed"):
            run(ledger, tmp_path / "elsewhere" / "out", secret=None, resume=True)
        card = tmp_path / staged / "card.json"
        whole = card.read_bytes()
        card.write_bytes(whole + b" ")
        with pytest.raises(OutputProblem, match="not beside 'out', or was changed"):
            run(ledger, tmp_path / "out", secret=None, resume=True)
        card.write_bytes(whole)
        assert state(ledger) == "staged"
        run(ledger, tmp_path / "out", secret=None, resume=True)
        assert (tmp_path / "out" / "card.json").read_bytes() == whole
        assert left(tmp_path) == ["elsewhere", "out"]
        assert left(tmp_path / "elsewhere") == []

    def test_a_folder_that_appears_is_left_alone(self, ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """The spend is committed; the finished folder waits for another name in the same place."""

        def appear(*given: Any) -> None:
            (tmp_path / "out").mkdir(exist_ok=True)
            (tmp_path / "out" / "theirs").touch()
            put(*given)

        put = put_in_place
        monkeypatch.setattr(booking, "put_in_place", appear)
        with pytest.raises(OutputExists, match="appeared in the meantime"):
            run(ledger, tmp_path / "out")
        monkeypatch.undo()
        assert state(ledger) == "committed"
        run(ledger, tmp_path / "other", resume=True)
        assert left(tmp_path) == ["other", "out"]
        assert left(tmp_path / "out") == ["theirs"]

    def test_drawn_again_from_the_sealed_key_gives_the_same_bytes(
        self, ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Interrupted when the folder was filled but not yet staged: all files come out as they were, the card too."""
        first: dict[str, bytes] = {}

        def filled(release: Any, temporary: Path, output: Output) -> None:
            fill_folder(release, temporary, output)
            first.update(files(temporary))
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(publication, "fill_folder", filled)
            interrupted(ledger, tmp_path / "out")
            assert first == {}  # stopped by the progress of the draw: nothing was written
            with pytest.raises(KeyboardInterrupt):
                run(ledger, tmp_path / "out", resume=True)
        assert (state(ledger), left(tmp_path)) == ("drawing", [])
        run(ledger, tmp_path / "out", resume=True)
        assert files(tmp_path / "out") == first != {}

    @pytest.mark.ordinary("KeyboardInterrupt-before", "LedgerProblem-after")
    @pytest.mark.parametrize("step", ["stage", "commit", "publish", "close"])
    @pytest.mark.parametrize("done", [False, True], ids=["before", "after"])
    @pytest.mark.parametrize("error", [KeyboardInterrupt, LedgerProblem])
    def test_a_step_whose_end_is_not_heard_of(
        self, ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, done: bool, error: type[BaseException]
    ) -> None:
        """The ledger may have taken the step although this process saw an error (a lost connection, Ctrl-C). What is staged is never drawn
        again, so its folder must still be there: only the ledger knows.
        """
        take = getattr(Ledger, step)

        def lost(*given: Any) -> None:
            if done:
                take(*given)
            raise error

        with monkeypatch.context() as patch:
            patch.setattr(Ledger, step, lost)
            is_published = step in ("publish", "close")
            with pytest.raises(AfterPublication if is_published and error is LedgerProblem else error):
                run(ledger, tmp_path / "out")
        places = ["drawing", "staged", "committed", "published", "closed"]
        reached = places[["stage", "commit", "publish", "close"].index(step) + done]
        assert state(ledger) == reached
        (folder,) = left(tmp_path)
        assert (folder == "out") == is_published
        whole = files(tmp_path / folder)
        if reached != "drawing":
            monkeypatch.setattr(BoundRelease, "draw", lambda *_: pytest.fail("drawn"))
        if reached == "closed":
            with pytest.raises(IdenticalRelease):
                run(ledger, tmp_path / "out", resume=True)
        else:
            run(ledger, tmp_path / "out", resume=True)
        assert (files(tmp_path / "out"), left(tmp_path)) == (whole, ["out"])
        assert (state(ledger), spent(ledger), ledger.verify()) == ("closed", Fraction(1, 2), [])

    def test_saved_again_after_an_error_of_the_ledger(self, ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        made = a_release(ledger)
        with monkeypatch.context() as patch:
            patch.setattr(Ledger, "stage", fails(errno.EIO))
            with pytest.raises(OSError, match="said by the system"):
                made.save(tmp_path / "out")
        with monkeypatch.context() as patch:
            patch.setattr(publication, "fill_folder", fails(errno.ENOSPC))
            with pytest.raises(OutputProblem):
                made.save(tmp_path / "out")
        assert left(tmp_path) == []
        made.save(tmp_path / "out")
        assert (left(tmp_path), state(ledger)) == (["out"], "closed")

    def test_what_is_staged_needs_no_signing_key(self, ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(Ledger, "commit", stop)
            with pytest.raises(KeyboardInterrupt):
                run(ledger, tmp_path / "out")
        run(ledger, tmp_path / "out", resume=True, sign=tmp_path / "gone.pem")
        assert state(ledger) == "closed"

    def test_voided_before_the_draw_may_be_made_anew(self, ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(Ledger, "start_drawing", stop)
            interrupted(ledger, tmp_path / "out")
        held = ledger.reservation(DATA, "r1")
        assert held is not None
        assert held.state == "reserved"
        assert ledger.void(held, "stopped") is True
        assert spent(ledger) == 0
        run(ledger, tmp_path / "out")
        assert spent(ledger) == Fraction(1, 2)
        assert ledger.verify() == []

    def test_a_short_secret_is_refused_before_anything_is_reserved(self, ledger: Ledger, tmp_path: Path) -> None:
        with pytest.raises(InvalidParameter, match="at least 16 bytes"):
            run(ledger, tmp_path / "out", secret=b"short")
        assert state(ledger) is None
