"""Steps that somebody wrote into a ledger, behind what its witness saw and with hashes that fit: no folder is removed for them, and none is
published that its card does not name.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from holdfast.errors import HoldfastError, IdenticalRelease, LedgerBroken, LedgerProblem, OutputProblem
from holdfast.ledger import Ledger
from holdfast.ledger.account import id_elsewhere
from holdfast.ledger.chain import make_event, states_in
from holdfast.ledger.values import Charge, read_exact
from holdfast.ledger.witness import Mark, steps_after_restore
from holdfast.publication.folder import holds_release, unfinished_name
from tests.ledger.helpers import bring
from tests.ledger.hostile import append_event, read_events, run_sql, tree, write_events
from tests.publication.bookings import DATA, SECRET, a_ledger, a_release, interrupted, run, spent, state, stop


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_KEY", SECRET.decode())
    monkeypatch.setenv("HOLDFAST_STATE", str(tmp_path / "home" / "state"))


@pytest.fixture
def work(tmp_path: Path) -> Path:
    made = tmp_path / "work"
    made.mkdir()
    return made


@pytest.fixture
def foreign(tmp_path: Path) -> Path:
    """A whole published folder of another release, with a ledger of its own."""
    (tmp_path / "foreign").mkdir()
    folder: Path = a_release(a_ledger(tmp_path / "foreign"), "theirs").save(tmp_path / "foreign" / "published")
    return folder


def stopped_at(step: str, ledger: Ledger, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A release that a stop interrupted before this step of the ledger."""
    with monkeypatch.context() as patch:
        patch.setattr(Ledger, step, stop)
        with pytest.raises(KeyboardInterrupt):
            run(ledger, folder)


def card_checksum(folder: Path) -> str:
    return hashlib.sha256((folder / "card.json").read_bytes()).hexdigest()


def unfinished(ledger: Ledger, work: Path) -> Path:
    held = ledger.reservation(DATA, "r1")
    assert held is not None
    return work / unfinished_name(held.head)


class TestFolderNames:
    @pytest.mark.parametrize("name", ["{foreign}", "../foreign/published", "precious", ".", ".."])
    def test_a_name_in_a_step_removes_nothing(
        self, work: Path, foreign: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
    ) -> None:
        """Between 'reserved' and 'drawing', as the issue has it."""
        ledger = a_ledger(work)
        stopped_at("start_drawing", ledger, work / "out", monkeypatch)
        assert state(ledger) == "reserved"
        (work / "precious").mkdir()
        (work / "precious" / "file").write_text("precious")
        append_event(work / "ledger.db", "drawing", {"folder_name": name.format(foreign=foreign)})
        before = tree(tmp_path / "foreign"), tree(work / "precious")
        run(ledger, work / "out", resume=True)
        assert (tree(tmp_path / "foreign"), tree(work / "precious")) == before
        assert json.loads((work / "out" / "card.json").read_text())["release"]["id"] == "r1"
        assert sorted(path.name for path in work.iterdir()) == ["ledger.db", "out", "precious"]

    @pytest.mark.parametrize("kind", ["staged", "committed", "published"])
    def test_a_foreign_folder_is_not_published(
        self, work: Path, foreign: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
    ) -> None:
        ledger = a_ledger(work)
        interrupted(ledger, work / "out")
        append_event(work / "ledger.db", "staged", {"folder_name": str(foreign), "checksum": card_checksum(foreign)})
        for further in ("committed", "published")[: ("staged", "committed", "published").index(kind)]:
            append_event(work / "ledger.db", further, {})
        before = tree(tmp_path / "foreign")
        with pytest.raises((OutputProblem, IdenticalRelease), match=r"not beside 'out', or was changed|in another place"):
            run(ledger, work / "out", resume=True)
        assert tree(tmp_path / "foreign") == before
        assert not (work / "out").exists()

    @pytest.mark.parametrize("kind", ["staged", "committed"])
    def test_nor_where_it_has_the_right_name(self, work: Path, foreign: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
        """Whoever may write beside the output puts a whole folder where the release would be made ready: its card names another."""
        ledger = a_ledger(work)
        interrupted(ledger, work / "out")
        shutil.copytree(foreign, unfinished(ledger, work))
        append_event(work / "ledger.db", "staged", {"checksum": card_checksum(foreign)})
        if kind == "committed":
            append_event(work / "ledger.db", "committed", {})
        with pytest.raises(OutputProblem, match="not beside 'out', or was changed"):
            run(ledger, work / "out", resume=True)
        assert not (work / "out").exists()
        assert state(ledger) == kind

    @pytest.mark.parametrize("kind", ["committed", "published"])
    def test_another_release_in_the_output_is_not_taken_for_it(self, work: Path, foreign: Path, kind: str) -> None:
        ledger = a_ledger(work)
        interrupted(ledger, work / "out")
        shutil.copytree(foreign, work / "out")
        append_event(work / "ledger.db", "staged", {"checksum": card_checksum(foreign)})
        append_event(work / "ledger.db", "committed", {})
        if kind == "published":
            append_event(work / "ledger.db", "published", {})
        before = tree(work / "out")
        with pytest.raises((OutputProblem, IdenticalRelease)):
            run(ledger, work / "out", resume=True)
        assert tree(work / "out") == before
        assert state(ledger) in ("committed", "closed")

    def test_two_ledgers_with_identifiers_that_begin_alike(self, work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """The name has the whole entry: no other ledger has a folder of the same name."""
        first, second = (f"{'a' * 31}{digit}:3:{'0' * 64}" for digit in "01")
        assert unfinished_name(first) != unfinished_name(second)
        assert unfinished_name(first) != unfinished_name(first[:-1] + "1")
        for entry in ("../x:3:" + "0" * 64, f"{'a' * 32}:../3:{'0' * 64}", ""):
            with pytest.raises(ValueError, match="A head of a ledger reads"):
                unfinished_name(entry)


def _replace_by_link(path: Path) -> None:
    moved = path.rename(path.parent.parent / f"moved {path.name}")
    path.symlink_to(moved)


CHANGES: dict[str, Callable[[Path], object]] = {
    "a file more": lambda folder: (folder / "more.txt").write_text("more"),
    "a folder more": lambda folder: (folder / "more").mkdir(),
    "a file less": lambda folder: (folder / "kept.csv").unlink(),
    "a changed file": lambda folder: (folder / "table.csv").write_text("area,sex,count\n"),
    "a changed digit": lambda folder: (folder / "kept.csv").write_bytes((folder / "kept.csv").read_bytes().replace(b"8", b"9")),
    "a link": lambda folder: _replace_by_link(folder / "kept.csv"),
    "no card": lambda folder: (folder / "card.json").unlink(),
    "a link to the card": lambda folder: _replace_by_link(folder / "card.json"),
    "a link to the folder": lambda folder: _replace_by_link(folder),
}


class TestFoldersThatWereChanged:
    @pytest.mark.parametrize("step", ["commit", "publish"])
    @pytest.mark.parametrize("name", CHANGES)
    def test_before_they_have_their_name(self, work: Path, monkeypatch: pytest.MonkeyPatch, name: str, step: str) -> None:
        ledger = a_ledger(work)
        with monkeypatch.context() as patch:
            patch.setattr("holdfast.publication.booking.put_in_place", stop)
            stopped_at(step, ledger, work / "out", monkeypatch)
        folder = unfinished(ledger, work)
        CHANGES[name](folder)
        before = tree(work)
        with pytest.raises(OutputProblem, match="not beside 'out', or was changed"):
            run(ledger, work / "out", resume=True)
        after = tree(work)
        assert {path: what for path, what in after.items() if path != "ledger.db"} == {
            path: what for path, what in before.items() if path != "ledger.db"
        }

    def test_a_link_in_place_of_an_unfinished_folder_is_not_followed(self, work: Path, foreign: Path) -> None:
        ledger = a_ledger(work)
        interrupted(ledger, work / "out")
        unfinished(ledger, work).symlink_to(foreign)
        before = tree(foreign)
        with pytest.raises(OutputProblem):
            run(ledger, work / "out", resume=True)
        assert tree(foreign) == before
        unfinished(ledger, work).unlink()
        run(ledger, work / "out", resume=True)
        assert state(ledger) == "closed"

    def test_what_a_folder_must_hold(self, work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        ledger = a_ledger(work)
        stopped_at("commit", ledger, work / "out", monkeypatch)
        held, folder = ledger.reservation(DATA, "r1"), unfinished(ledger, work)
        assert held is not None
        identity = json.loads((folder / "card.json").read_text())["mechanism"]["identity"]
        from dataclasses import replace

        assert holds_release(folder, held, identity)
        assert holds_release(folder, held)
        others: list[dict[str, Any]] = [
            {"release_id": "r2"},
            {"head": f"{'0' * 32}:3:{'0' * 64}"},
            {"checksum": "0" * 64},
            {"checksum": None},
        ]
        for other in others:
            assert not holds_release(folder, replace(held, **other), identity), other
        assert not holds_release(folder, held, "0" * 64)
        assert not holds_release(work, held, identity)


class TestForgedSteps:
    def test_a_refund_after_the_draw(self, work: Path) -> None:
        """The ledger is refused; what it would have given back stays spent."""
        ledger = a_ledger(work)
        interrupted(ledger, work / "out")
        append_event(work / "ledger.db", "voided", {"reason": "forged"})
        for ask in (lambda: spent(ledger), lambda: state(ledger), lambda: run(ledger, work / "out", "r2")):
            with pytest.raises(LedgerBroken, match="cannot become voided"):
                ask()

    def test_neither_frees_a_name_nor_moves_a_mark_nor_a_restore(self, work: Path) -> None:
        ledger = Ledger.open(work / "ledger.db", create=True, needs_grants=False)
        bring(ledger, "drawing", dataset="first")
        chain = list(ledger.events())
        mark = Mark.start(ledger.id).after(chain)
        (seq,) = mark.releases
        steps_of_nobody: list[tuple[str, dict[str, Any], str]] = [
            ("voided", {"reservation": seq, "reason": "forged"}, "r1"),
            ("refunded", {"reservation": seq}, "r1"),
            ("committed", {"reservation": seq}, "r1"),
            ("voided-spent", {"reservation": seq, "reason": "forged"}, "r2"),
        ]
        for kind, payload, name in steps_of_nobody:
            forged = [*chain, make_event(chain[-1], ledger.id, "2030", kind, "first", name, payload)]
            assert states_in(forged) == {seq: "drawing"}
            refusal = id_elsewhere("r1", "second", forged)
            assert refusal is not None
            steps, lost = steps_after_restore(forged, [mark], needs_grants=False)
            assert (steps, lost) == ([], [])
            if kind != "refunded":
                with pytest.raises(LedgerBroken, match="was not written by Holdfast"):
                    mark.after(forged)

    @pytest.mark.parametrize("kind", ["refunded", "Voided", "created", "restored\n", "", "../x"])
    def test_a_kind_that_is_not_known(self, work: Path, kind: str) -> None:
        ledger = a_ledger(work)
        interrupted(ledger, work / "out")
        append_event(work / "ledger.db", kind, {"folder_name": str(work)})
        if kind != "created":
            with pytest.raises(LedgerBroken, match="this kind of event is unknown"):
                run(ledger, work / "out", resume=True)
        assert ledger.verify()
        assert not (work / "out").exists()


HUGE = 10**400
PAYLOADS: dict[str, Any] = {
    "no JSON": "{",
    "other JSON": "[]",
    "deep": "[" * 5000 + "]" * 5000,
    "a number of 5,000 digits": '{"charge":' + "9" * 5000 + "}",
    "not a number": '{"charge":NaN}',
    "no facts": {"charge": {"kind": "pure", "epsilon": "1/2", "rho": "1/8", "delta": None}},
    "facts that are a text": {"charge": {"kind": "pure", "epsilon": "1/2", "rho": "1/8", "delta": None}, "facts": "x"},
    "a charge that is a list": {"charge": [], "facts": {}},
    "a charge with an exponent": {"charge": {"kind": "pure", "epsilon": "1e999999999", "rho": "1/8", "delta": None}, "facts": {}},
    "a charge below 0": {"charge": {"kind": "pure", "epsilon": "-1/2", "rho": "1/8", "delta": None}, "facts": {}},
    "a charge that is a number": {"charge": {"kind": "pure", "epsilon": 1, "rho": "1/8", "delta": None}, "facts": {}},
}
FACTS: dict[str, Any] = {
    "protect": [7, "", ["person"], "a\nb", "x" * 500, None],
    "max_records": [0, -1, "1", 1.5, True, HUGE],
    "disjoint": ["r0", [7], {"r0": 1}, {"from": ["../x"]}, {"from": [7], "because": "a reason"}],
    "distance": [7, ["l1"]],
    "revision_of": [7, [], "../x\n"],
    "software": ["x", [], {"holdfast": []}, {"holdfast": HUGE}, {"holdfast": "x" * 10**4}],
    "stream_version": ["2", -1, HUGE],
    "parameters": ["x", 7],
    "universe": [7, "x", []],
    "constraints": [7, "x", [7], {}],
    "grant": [7, {}, {"kind": "pure", "epsilon": "1e9", "rho": None, "delta": None, "grants": 1, "approver": "A"}],
}


class TestValuesOfAnotherKind:
    """Whatever a row holds, the refusal is one of ours, and nothing is drawn."""

    def change(self, place: Path, change: Callable[[dict[str, Any]], object]) -> None:
        events = read_events(place)
        change(next(event for event in events if event["kind"] == "reserved"))
        write_events(place, events)

    def check_refused(self, work: Path, ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
        """Also where nothing was seen of the ledger before."""
        monkeypatch.setenv("HOLDFAST_STATE", str(work / "new"))
        asks: list[Callable[[], object]] = [
            lambda: ledger.balance(DATA),
            lambda: ledger.reservation(DATA, "r1"),
            lambda: run(ledger, work / "out", resume=True),
            lambda: run(ledger, work / "out", "r2"),
        ]
        for ask in asks:
            with pytest.raises(LedgerBroken):
                ask()
        assert ledger.verify()
        assert not (work / "out").exists()

    @pytest.mark.parametrize("name", PAYLOADS)
    def test_in_a_reservation(self, work: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
        ledger = a_ledger(work)
        interrupted(ledger, work / "out")
        self.change(work / "ledger.db", lambda event: event.update(payload=PAYLOADS[name]))
        self.check_refused(work, ledger, monkeypatch)

    @pytest.mark.parametrize(
        ("name", "value"), [(name, value) for name, values in FACTS.items() for value in values], ids=lambda v: repr(v)[:20]
    )
    def test_in_its_facts(self, work: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: Any) -> None:
        if isinstance(value, float):
            value = json.loads(json.dumps(value))
        ledger = a_ledger(work)
        interrupted(ledger, work / "out")
        self.change(work / "ledger.db", lambda event: event["payload"]["facts"].update({name: value}))
        self.check_refused(work, ledger, monkeypatch)

    @pytest.mark.parametrize("value", ["zz", "0", "", "00" * 5000, b"\0\1", "\u0660\u0660", "../x"])
    @pytest.mark.parametrize("column", ["sealed_key", "input_check"])
    def test_in_what_it_takes_to_resume(self, work: Path, column: str, value: Any) -> None:
        ledger = a_ledger(work)
        interrupted(ledger, work / "out")
        run_sql(work / "ledger.db", f"UPDATE holdfast_open_reservations SET {column} = ?", value)
        with pytest.raises(HoldfastError):
            run(ledger, work / "out", resume=True)
        assert not (work / "out").exists()
        assert [name for name in os.listdir(work) if name != "ledger.db"] == []

    def test_a_number_is_not_computed_from_an_exponent(self) -> None:
        for text in ("1e999999999", "1E5", "0x10", "1_0", " 1", "+1", "1.5", "1/0", "2/4", "\u0661", "9" * 5000):
            with pytest.raises((ValueError, ZeroDivisionError)):
                read_exact(text)
        assert read_exact("-7/3") == Fraction(-7, 3)
        with pytest.raises(ValueError, match="not a number"):
            Charge.from_fields({"kind": "pure", "epsilon": "1e999999999", "rho": "0", "delta": None})

    @pytest.mark.parametrize("field", ["approver", "reason", "protect", "legal", "kind", "epsilon"])
    @pytest.mark.parametrize("value", [7, [], "", "x" * 5000, {"a": 1}], ids=lambda v: repr(v)[:10])
    def test_in_a_grant(self, work: Path, field: str, value: Any) -> None:
        ledger = a_ledger(work)
        events = read_events(work / "ledger.db")
        events[-1]["payload"][field] = value
        write_events(work / "ledger.db", events)
        with pytest.raises(LedgerProblem):
            ledger.balance(DATA)
