"""A release through a ledger, step by step: what is charged and when, what is refused, what the card says."""

from __future__ import annotations

import copy
import fcntl
import json
import os
import pickle
import shutil
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import holdfast as hf
from holdfast.engines.local import BoundRelease
from holdfast.errors import (
    BudgetExceeded,
    IdenticalRelease,
    InvalidParameter,
    KeyMisuse,
    LedgerProblem,
    NoGrant,
    OutputExists,
    OutputProblem,
    WrongState,
)
from holdfast.ledger import Ledger
from holdfast.publication import booking, folder, publication
from holdfast.randomness.keys import secret_from_environment
from holdfast.wording.ledger import ledger_screen
from tests.ledger.helpers import run_sql
from tests.publication.bookings import (
    COUNTS,
    DATA,
    KEEP,
    LAPLACE,
    SECRET,
    UNIVERSE,
    a_ledger,
    a_release,
    a_table,
    left,
    run,
    spent,
    state,
)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return a_ledger(tmp_path)


class TestStepByStep:
    def test_reserved_before_the_draw_and_closed_after_the_folder(
        self, ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        seen: list[tuple[str, str | None]] = []
        seal = hf.NoiseKey.seal

        def note(what: str, step: Callable[..., Any]) -> Callable[..., Any]:
            def noted(*given: Any, **more: Any) -> Any:
                seen.append((what, state(ledger)))
                return step(*given, **more)

            return noted

        monkeypatch.setattr(hf.NoiseKey, "seal", note("seal", seal))
        monkeypatch.setattr(BoundRelease, "draw", note("draw", BoundRelease.draw))
        for module, step in ((publication, "fill_folder"), (booking, "put_in_place")):
            monkeypatch.setattr(module, step, note(step, getattr(module, step)))
        monkeypatch.setenv("HOLDFAST_KEY", SECRET.decode())
        made = a_release(ledger)
        assert seen == [("seal", None), ("draw", "drawing")]
        assert state(ledger) == "drawing"
        assert spent(ledger) == Fraction(1, 2)
        assert made.save(tmp_path / "out") == tmp_path / "out"
        assert seen[2:] == [("fill_folder", "drawing"), ("put_in_place", "committed")]
        assert state(ledger) == "closed"
        assert spent(ledger) == Fraction(1, 2)
        assert [event.kind for event in ledger.events(DATA)][1:] == ["reserved", "drawing", "staged", "committed", "published", "closed"]
        held = ledger.reservation(DATA, "r1")
        assert held is not None
        assert (held.sealed_key, held.input_check, held.second_secret) == (None, None, None)
        card = json.loads((tmp_path / "out" / "card.json").read_text())
        words = card["release"].pop("ledger_text")
        assert words == "This release was recorded in a ledger before it was drawn; release.ledger of card.json is its entry there."
        nothing = dict.fromkeys(("date", "office", "approver", "signer", "disjoint", "table_name"))
        grant = {"kind": "pure", "epsilon": "3", "rho": None, "delta": None, "grants": 1, "approver": "A. Chief"}
        said = {"id": "r1", "test_key": False, "ledger": held.head, "grant": grant, "language": "en", "formulas": "as they are"}
        assert card["release"] == {**said, **nothing, "allow_exposed": 0, "tables": []}
        assert card["software"] == held.facts.software
        assert left(tmp_path) == ["out"]
        hf.verify(tmp_path / "out")

    def test_a_promise_for_one_record_is_recorded(self, tmp_path: Path) -> None:
        """Where nobody said how many records one person may have, the facts leave that out."""
        book = Ledger.open(tmp_path / "records.db", create=True, needs_grants=False)
        a_release(book, table=a_table(max_records=None)).save(tmp_path / "out")
        held = book.reservation(DATA, "r1")
        assert held is not None
        assert (held.state, held.facts.protect, held.facts.max_records) == ("closed", "record", None)
        assert book.verify() == []

    def test_the_card_says_what_had_been_granted_when_the_budget_was_reserved(self, ledger: Ledger, tmp_path: Path) -> None:
        ledger.grant(DATA, kind="pure", epsilon="1/2", approver="B. Chair", reason="one table more")
        made = a_release(ledger)
        ledger.grant(DATA, kind="pure", epsilon="1", approver="C. Late", reason="after it")
        card = json.loads((made.save(tmp_path / "out") / "card.json").read_text())
        assert card["release"]["grant"] == {
            **{"kind": "pure", "epsilon": "7/2", "rho": None, "delta": None},
            **{"grants": 2, "approver": "B. Chair"},
        }
        page = (tmp_path / "out" / "statement.html").read_text(encoding="utf-8")
        assert "in 2 grants, the last approved by <bdi>B. Chair</bdi>" in page
        assert "C. Late" not in page
        hf.verify(tmp_path / "out")

    def test_unsaved_is_spent_and_publishes_nothing(self, ledger: Ledger, tmp_path: Path) -> None:
        a_release(ledger)
        assert state(ledger) == "drawing"
        assert spent(ledger) == Fraction(1, 2)
        with pytest.raises(WrongState, match="was drawn but not saved"):
            a_release(ledger)
        with pytest.raises(WrongState, match="its key was not sealed"):
            run(ledger, tmp_path / "out", resume=True)
        held = ledger.reservation(DATA, "r1")
        assert held is not None
        assert ledger.void(held, "never saved") is False
        assert spent(ledger) == Fraction(1, 2)
        assert left(tmp_path) == []

    def test_no_copy_that_could_be_saved_unspent(self, ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
        """Nor a pickle that would hold the secret which seals keys."""
        monkeypatch.setenv("HOLDFAST_KEY", "a secret that is long enough")
        made = a_release(ledger)
        for duplicate in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(LedgerProblem, match="cannot be pickled or copied"):
                duplicate(made)
        assert "a secret that is long enough" not in repr(vars(made))
        for duplicate in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(LedgerProblem, match="cannot be pickled or copied"):
                duplicate(made.booking)

    def test_saved_once(self, ledger: Ledger, tmp_path: Path) -> None:
        """A refused place changes nothing, another one is taken, and a second copy is refused, wherever it is to go."""
        made = a_release(ledger)
        (tmp_path / "taken").mkdir()
        (tmp_path / "taken" / "note.txt").write_text("mine")
        with pytest.raises(OutputExists):
            made.save(tmp_path / "taken")
        made.save(tmp_path / "out", formats=["csv"])
        for place in (tmp_path / "second", tmp_path / "taken" / "second"):
            with pytest.raises(IdenticalRelease, match="is already published"):
                made.save(place)
        with pytest.raises(IdenticalRelease):
            a_release(ledger)
        assert left(tmp_path) == ["out", "taken"]
        assert left(tmp_path / "taken") == ["note.txt"]
        assert spent(ledger) == Fraction(1, 2)

    def test_arguments(self, ledger: Ledger) -> None:
        for wrong, said in (({"release_id": None}, "release_id is missing"), ({"key": hf.NoiseKey.for_tests("x")}, "draws a fresh key")):
            given_arguments: dict[str, Any] = {"table": a_table(), "release_id": "r1", "ledger": ledger} | wrong
            with pytest.raises(InvalidParameter, match=said):
                hf.release(keep=KEEP, mechanism=LAPLACE, **given_arguments)
        named = hf.release(hf.Table(UNIVERSE, COUNTS), KEEP, LAPLACE, ledger=ledger, release_id="r1", dataset=DATA)
        assert named.entry is not None
        with pytest.raises(InvalidParameter, match="date"):
            hf.release(a_table(), KEEP, LAPLACE, ledger=ledger, release_id="r2", date="yesterday")
        with pytest.raises(InvalidParameter, match="Tables are written as"):
            run(ledger, Path("out"), "r2", formats=("xml",))
        assert state(ledger, "r2") is None


class TestWhatIsCharged:
    def test_without_a_grant_nothing_is_drawn(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(BoundRelease, "draw", lambda *_: pytest.fail("drawn"))
        empty = Ledger.open(tmp_path / "ledger.db", create=True, needs_grants=True)
        with pytest.raises(NoGrant, match="No budget was granted for the data set 'residents'"):
            a_release(empty)
        poor = a_ledger(tmp_path, epsilon="1/4")
        with pytest.raises(BudgetExceeded, match="Nothing was drawn or spent"):
            a_release(poor)
        with pytest.raises(BudgetExceeded):
            run(poor, tmp_path / "out")
        assert spent(poor) == 0
        assert left(tmp_path) == []

    def test_a_gaussian_charges_rho(self, tmp_path: Path) -> None:
        ledger = a_ledger(tmp_path, "approximate", epsilon="6", delta="1e-6")
        a_release(ledger, mechanism=hf.GeneralizedGaussian(rho="1/100", per="distance"))
        assert spent(ledger) == Fraction(2, 100)  # squared distance 2
        tight = hf.GeneralizedGaussian(epsilon="1", delta="1e-7", per="distance")
        made = a_release(ledger, "r2", tight)
        assert made.guarantee.rho is not None
        held = ledger.reservation(DATA, "r2")
        assert held is not None
        assert held.charge.kind == "zcdp"
        assert held.charge.rho == 2 * made.guarantee.rho
        assert spent(ledger) == Fraction(2, 100) + held.charge.rho
        a_release(ledger, "r3")  # pure epsilon e is rho e^2 / 2
        assert spent(ledger) == Fraction(2, 100) + held.charge.rho + Fraction(1, 8)

    def test_a_pure_budget_takes_no_gaussian(self, ledger: Ledger) -> None:
        with pytest.raises(LedgerProblem, match="is pure"):
            a_release(ledger, mechanism=hf.GeneralizedGaussian(rho="1/100", per="distance"))
        assert spent(ledger) == 0

    def test_another_unit_is_refused(self, ledger: Ledger) -> None:
        with pytest.raises(LedgerProblem, match="protects each person, not each household"):
            a_release(ledger, table=a_table(protect="household"))
        with pytest.raises(LedgerProblem, match="protects each person, not each record"):
            a_release(ledger, table=a_table(max_records=None))
        assert spent(ledger) == 0

    def test_more_records_cost_more(self, ledger: Ledger) -> None:
        a_release(ledger, table=a_table(max_records=3))
        assert spent(ledger) == Fraction(3, 2)

    def test_suppression_is_free_and_booked(self, ledger: Ledger, tmp_path: Path) -> None:
        a_release(ledger, mechanism=hf.Suppression()).save(tmp_path / "out")
        assert state(ledger) == "closed"
        assert spent(ledger) == 0
        assert json.loads((tmp_path / "out" / "card.json").read_text())["release"]["ledger"] is not None

    def test_a_revision_charges_both_and_lists_what_changed(self, ledger: Ledger, tmp_path: Path) -> None:
        run(ledger, tmp_path / "first")
        from holdfast.verification.verify import published_rows

        revised = a_table(np.array([5, 4, 2, 9]))
        run(ledger, tmp_path / "second", "r2", table=revised, revises=published_rows(tmp_path / "first"))
        card = json.loads((tmp_path / "second" / "card.json").read_text())
        assert card["kept"]["revision"] == {"of": "r1", "changed": 1, "totals": ["area=a: 8 before, 9 now"]}
        assert spent(ledger) == 1
        assert "revision of r1" in ledger_screen(ledger.account(DATA), ledger.last_event())
        with pytest.raises(LedgerProblem, match="'elsewhere' is not in the account"):
            run(ledger, tmp_path / "third", "r3", revises=("elsewhere", ()))
        assert left(tmp_path) == ["first", "second"]

    @pytest.mark.long
    @settings(max_examples=15)
    @given(st.lists(st.tuples(st.integers(1, 40), st.sampled_from(["a", "b"])), min_size=3, max_size=12))
    def test_budgets_chosen_from_what_was_seen(self, tmp_path_factory: pytest.TempPathFactory, wishes: list[tuple[int, str]]) -> None:
        """Each budget depends on the counts released before: what is spent is their sum, and never more than was granted."""
        ledger = a_ledger(tmp_path_factory.mktemp("adaptive"), epsilon="2")
        total = Fraction(0)
        seen = 0
        for number, (wish, area) in enumerate(wishes):
            epsilon = Fraction(wish + seen % 7, 100)
            table = a_table()
            if total + 2 * epsilon <= 2:
                made = a_release(ledger, f"r{number}", hf.GeneralizedLaplace(epsilon=str(epsilon), per="distance"), [hf.total()], table)
                total += 2 * epsilon
                seen = abs(int(made.table.counts["ab".index(area)]))
            else:
                with pytest.raises(BudgetExceeded):
                    a_release(ledger, f"r{number}", hf.GeneralizedLaplace(epsilon=str(epsilon), per="distance"), [hf.total()], table)
            assert spent(ledger) == total <= 2
        assert ledger.verify() == []


class TestCardsAndTheChain:
    def test_the_entry_on_the_card_is_in_the_chain(self, ledger: Ledger, tmp_path: Path) -> None:
        heads = [run(ledger, tmp_path / name, name) for name in ("r1", "r2")]
        assert ledger.verify(heads) == []

    def test_a_cut_tail_is_noticed(self, ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """A release removed as if it had never been: the chain alone does not show it; its card does, where the witness is forgotten."""
        first = run(ledger, tmp_path / "r1", "r1")
        second = run(ledger, tmp_path / "r2", "r2")
        run_sql(ledger, f"DELETE FROM holdfast_events WHERE seq >= {second.split(':')[1]}")
        (problem,) = ledger.verify()
        assert problem.startswith("The mark in the state folder names event")
        monkeypatch.setenv("HOLDFAST_STATE", str(tmp_path / "forgotten"))
        assert ledger.verify() == []
        assert ledger.verify([first]) == []
        (problem,) = ledger.verify([first, second])
        assert "its tail was cut off" in problem
        third = run(ledger, tmp_path / "r3", "r3")
        assert ledger.verify([first, third]) == []
        (problem,) = ledger.verify([second])
        assert "the ledger was written anew" in problem


@pytest.mark.parametrize("content", [b"the secret of the office\n", None])
def test_where_the_secret_comes_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes | None) -> None:
    assert secret_from_environment() is None
    monkeypatch.setenv("HOLDFAST_KEY_FILE", str(tmp_path / "key"))
    if content is None:
        with pytest.raises(OutputProblem, match="HOLDFAST_KEY_FILE names cannot be read"):
            secret_from_environment()
    else:
        (tmp_path / "key").write_bytes(content)
        for mode in (0o644, 0o640, 0o660, 0o604, 0o620):
            (tmp_path / "key").chmod(mode)
            with pytest.raises(KeyMisuse, match=rf"'key' can be read or changed by others \(mode {mode:04o}\)") as caught:
                secret_from_environment()
            assert content.decode().strip() not in str(caught.value)
        for mode in (0o600, 0o400, 0o700):
            (tmp_path / "key").chmod(mode)
            assert secret_from_environment() == SECRET
    monkeypatch.setenv("HOLDFAST_KEY", "another secret of the office")
    assert secret_from_environment() == b"another secret of the office"


def test_a_signal_between_the_lock_and_its_handle_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(fcntl, "flock", interrupted)
    with pytest.raises(KeyboardInterrupt), booking.Unbooked().exclusive_folder(folder.Output(tmp_path / "out")):
        pass
    assert os.listdir(tmp_path) == []
    with pytest.raises(KeyboardInterrupt):
        folder.try_to_write(tmp_path / "out", 10)
    assert os.listdir(tmp_path) == []


def test_a_signal_while_the_unfinished_folder_is_removed_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    removed = shutil.rmtree
    calls: list[object] = []

    def interrupted_once(*given: Any, **named: Any) -> None:
        calls.append(given)
        if len(calls) == 1:
            raise KeyboardInterrupt
        removed(*given, **named)

    monkeypatch.setattr(shutil, "rmtree", interrupted_once)
    with pytest.raises(KeyboardInterrupt):
        folder.try_to_write(tmp_path / "out", 10)
    assert (os.listdir(tmp_path), len(calls)) == ([], 2)
    calls.clear()
    with pytest.raises(KeyboardInterrupt), booking.Unbooked().exclusive_folder(folder.Output(tmp_path / "out")):
        pass
    assert (os.listdir(tmp_path), len(calls)) == ([], 2)
