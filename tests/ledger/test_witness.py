"""A ledger that is not the one seen before: put back, written anew, deleted, exchanged; and how a restore is accepted."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest

import holdfast as hf
from holdfast.errors import BudgetExceeded, LedgerBroken, LedgerProblem, NoGrant, NoWitness, WitnessMismatch, WrongState
from holdfast.ledger import Charge, Ledger
from holdfast.ledger.releases import ReleaseFacts
from holdfast.ledger.witness import Mark, read_mark
from tests.ledger.helpers import DATA, NOW, ORDER, STEPS, apart, bring, grant, reserve, rows, run_sql
from tests.publication.bookings import COUNTS, KEEP, LAPLACE, a_table

COPIES = 40


@pytest.fixture(autouse=True)
def state(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A state folder of the test's own."""
    monkeypatch.setenv("HOLDFAST_STATE", str(tmp_path / "state"))
    return tmp_path / "state"


@pytest.fixture
def small(tmp_path: Path) -> Ledger:
    return Ledger.open(tmp_path / "ledger.db", create=True, needs_grants=True)


def put_back(ledger: Ledger, last: int) -> None:
    """As a copy that was made after this event."""
    run_sql(
        ledger,
        f"DELETE FROM holdfast_open_reservations WHERE seq > {last}",
        f"DELETE FROM holdfast_events WHERE seq > {last}",
    )


def test_forty_copies_of_one_release_cannot_be_drawn(tmp_path: Path) -> None:
    """The attack: put the ledger back after each release, and average. One copy is drawn, and none after it."""
    place = tmp_path / "ledger.db"
    Ledger.open(place, create=True, needs_grants=False)
    shutil.copy(place, tmp_path / "older")
    drawn, refused = [], 0
    for _ in range(COPIES):
        try:
            drawn.append(hf.release(a_table(), KEEP, LAPLACE, ledger=Ledger.open(place), release_id="r1").table.counts)
        except WitnessMismatch:
            refused += 1
        shutil.copy(tmp_path / "older", place)
    assert (len(drawn), refused) == (1, COPIES - 1)
    assert drawn[0].sum() == COUNTS.sum()


def test_forty_fresh_ledgers_neither(tmp_path: Path) -> None:
    """The same, with the file deleted each time, emptied, or another ledger in its place."""
    place = tmp_path / "ledger.db"
    Ledger.open(tmp_path / "fresh.db", create=True, needs_grants=False)
    drawn, refused = 0, 0
    for number in range(COPIES):
        try:
            ledger = Ledger.open(place, create=True, needs_grants=False)
            hf.release(a_table(), KEEP, LAPLACE, ledger=ledger, release_id="r1")
            drawn += 1
        except WitnessMismatch:
            refused += 1
        place.unlink(missing_ok=True)
        if number % 3 == 1:
            place.touch(mode=0o600)
        elif number % 3 == 2:
            shutil.copy(tmp_path / "fresh.db", place)
    assert (drawn, refused) == (1, COPIES - 1)


@pytest.mark.ordinary("sqlite", "postgres-5")
@pytest.mark.parametrize("last", [1, 2, 3, 5])
def test_a_copy_from_any_moment_is_noticed_before_every_write(ledger: Ledger, last: int) -> None:
    grant(ledger)
    held = bring(ledger, "staged")
    assert rows(ledger)[-1][0] == 5
    put_back(ledger, min(last, 4))
    writes: list[Callable[[], object]] = [
        lambda: reserve(ledger, "r2"),
        lambda: grant(ledger),
        lambda: ledger.check(DATA, "r2", Charge("zcdp", rho=Fraction(1, 9)), ReleaseFacts()),
        lambda: ledger.check_witness(),
        lambda: ledger.void(held, "a test"),
        lambda: ledger.commit(held),
    ]
    before = rows(ledger)
    for write in writes:
        with pytest.raises(WitnessMismatch, match="event 5 was seen here before"):
            write()
    assert rows(ledger) == before
    assert any("The mark in the state folder names event 5" in problem for problem in ledger.verify())


def test_a_tail_written_anew_is_noticed(ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    grant(ledger)
    reserve(ledger)
    put_back(ledger, 2)
    with monkeypatch.context() as elsewhere:  # another machine, which knows nothing, writes on
        elsewhere.setenv("HOLDFAST_STATE", str(tmp_path / "elsewhere"))
        grant(ledger)
    with pytest.raises(WitnessMismatch, match="its event 3 is another one"):
        reserve(ledger, "r2")


def test_the_mark_goes_along_and_never_back(ledger: Ledger, state: Path) -> None:
    grant(ledger)
    held = reserve(ledger)
    seen = [1, 2, 3]
    for step in ORDER:
        held = STEPS[step](ledger, held)
        mark = read_mark(state, ledger.id)
        assert mark is not None
        assert (mark.head, mark.seq) == (ledger.head(), seen[-1] + 1)
        assert mark.releases[3].state == step
        seen.append(mark.seq)
    mark = read_mark(state, ledger.id)
    assert mark is not None
    assert Mark.from_text(mark.to_text()) == mark
    assert Mark.start(ledger.id).after(ledger.events()) == mark
    assert mark.after(ledger.events()) == mark
    assert (state / f"{ledger.id}.mark").stat().st_mode & 0o777 == 0o600
    assert ledger.witnesses() == {"state folder": mark.head}


def test_a_second_place_notices_what_the_first_was_made_to_forget(tmp_path: Path, state: Path) -> None:
    place, second = tmp_path / "ledger.db", tmp_path / "elsewhere"
    with pytest.raises(NoWitness, match="named as witness is not there"):
        grant_and_reserve(Ledger.open(place, create=True, needs_grants=True, witness=second))
    second.mkdir()
    ledger = Ledger.open(place, witness=second)
    shutil.copy(place, tmp_path / "older")
    reserve(ledger)
    shutil.copy(tmp_path / "older", place)
    shutil.rmtree(state)
    with pytest.raises(WitnessMismatch, match="put back to an older copy"):
        reserve(Ledger.open(place, witness=second))
    assert reserve(Ledger.open(place)).seq == 3  # what a forgotten state alone allows, and why there is a second place


def grant_and_reserve(ledger: Ledger) -> None:
    grant(ledger)
    reserve(ledger)


def test_without_a_place_nothing_is_charged(small: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An account without a home: refused before the charge, unless a witness is named."""
    for name in ("HOLDFAST_STATE", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", "/nonexistent")
    grant(small)
    with pytest.raises(NoWitness, match="witness = "):
        reserve(small)
    assert small.balance(DATA).spent == 0
    (tmp_path / "second").mkdir()
    monkeypatch.setenv("HOLDFAST_WITNESS", str(tmp_path / "second"))
    ledger = Ledger.open(tmp_path / "ledger.db")
    held = reserve(ledger)
    put_back(ledger, held.seq - 1)
    with pytest.raises(WitnessMismatch):
        reserve(ledger)


def test_a_home_is_enough(small: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOLDFAST_STATE")
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    grant(small)
    reserve(small)
    assert (tmp_path / "home" / ".local" / "state" / "holdfast" / f"{small.id}.mark").is_file()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "xdg"))
    reserve(small, "r2")
    assert (tmp_path / "xdg" / "holdfast" / f"{small.id}.mark").is_file()


@pytest.mark.parametrize("name", ["", "  ", "relative/folder"])
def test_a_state_folder_is_a_full_path(small: Ledger, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv("HOLDFAST_STATE", name)
    with pytest.raises(NoWitness, match="full path"):
        grant_and_reserve(small)


def test_a_state_folder_that_others_may_write(small: Ledger, state: Path) -> None:
    grant(small)
    state.chmod(0o770)
    with pytest.raises(NoWitness, match="chmod 700"):
        reserve(small)
    assert len(rows(small)) == 2


def test_a_mark_that_cannot_be_read_or_written(small: Ledger, state: Path) -> None:
    grant_and_reserve(small)
    path = state / f"{small.id}.mark"
    kept = path.read_text()
    wrong = [kept[:-2], kept + " ", kept.replace('"version":1', '"version":2'), "", "{}", kept.replace(small.id, "0" * 32)]
    for text in wrong:
        path.write_text(text)
        with pytest.raises(WitnessMismatch, match="cannot be read"):
            reserve(small, "r2")
    path.write_text(kept)
    assert reserve(small, "r2").seq == 4
    path.unlink()
    path.mkdir()
    with pytest.raises(WitnessMismatch):
        reserve(small, "r3")
    assert len(rows(small)) == 4


# Accepting a restore.


def accept(ledger: Ledger) -> list[str]:
    return [one.release_id for one in ledger.accept_restore(approver="Head of methods", reason="the disk broke")]


def test_there_is_nothing_to_accept(ledger: Ledger) -> None:
    grant_and_reserve(ledger)
    with pytest.raises(LedgerProblem, match="no restore to accept"):
        accept(ledger)
    assert len(rows(ledger)) == 3


@pytest.mark.ordinary("sqlite", "postgres-closed")
@pytest.mark.parametrize("state_before", ["reserved", "closed", "voided-spent"])
def test_what_was_lost_is_charged_and_its_name_used_up(ledger: Ledger, state_before: str) -> None:
    grant(ledger)
    bring(ledger, "closed", "kept", "1/10")
    last = rows(ledger)[-1][0]
    lost = bring(ledger, state_before, "lost", "1/7")
    bring(ledger, "voided", "refunded", "1/3")
    spent = ledger.balance(DATA).spent
    put_back(ledger, last)
    assert accept(ledger) == ["lost"]
    assert ledger.balance(DATA).spent == spent == Fraction(1, 10) + Fraction(1, 7)
    assert ledger.verify([lost.head]) == []
    with pytest.raises(WrongState, match="is lost"):
        reserve(ledger, "lost")
    for name in ("refunded", "another"):
        assert reserve(ledger, name, "1/100").state == "reserved"
    restored = next(event for event in ledger.events() if event.kind == "restored")
    assert (restored.payload["approver"], restored.payload["reason"]) == ("Head of methods", "the disk broke")
    with pytest.raises(LedgerProblem, match="no restore to accept"):
        accept(ledger)


def test_a_draw_that_the_copy_does_not_know_is_not_refunded(ledger: Ledger) -> None:
    grant(ledger)
    held = reserve(ledger)
    last = rows(ledger)[-1][0]
    ledger.start_drawing(held)
    put_back(ledger, last)
    assert accept(ledger) == []
    found = ledger.reservation(DATA, "r1")
    assert found is not None
    assert found.state == "drawing"
    assert ledger.void(found, "its key is gone") is False
    assert ledger.balance(DATA).spent == Fraction(1, 10)
    assert ledger.verify() == []


def test_the_name_of_a_lost_release_stays_used_up(ledger: Ledger) -> None:
    """The copy holds an earlier reservation of the same name: that it is voided does not free the name."""
    grant(ledger)
    held = reserve(ledger)
    ledger.void(held, "a test")
    bring(ledger, "closed")
    put_back(ledger, held.seq)
    assert accept(ledger) == ["r1"]
    assert ledger.balance(DATA).spent == Fraction(2, 10)
    assert ledger.void(held, "a test")
    assert ledger.balance(DATA).spent == Fraction(1, 10)
    with pytest.raises(WrongState, match=r"'r1' .* is lost. Give the new release another id"):
        reserve(ledger)
    assert reserve(ledger, "r2").state == "reserved"


def test_a_lost_release_adds_to_everything(ledger: Ledger) -> None:
    """Nothing is known of its table: it is disjoint from no release before or after it."""
    grant(ledger)
    held = reserve(ledger, "r1")
    closed = bring(ledger, "closed", "r2")
    put_back(ledger, held.seq)
    assert accept(ledger) == ["r2"]
    with pytest.raises(LedgerProblem, match="was lost, and nothing is known of its table"):
        reserve(ledger, "r3", **apart("r2"))
    reserve(ledger, "r3", **apart("r1"))
    assert ledger.balance(DATA).spent == Fraction(3, 10)
    bring(ledger, "voided", "r4")
    assert ledger.verify([closed.head]) == []


def test_a_lost_release_adds_to_those_that_name_it(ledger: Ledger) -> None:
    """The copy holds a reservation of that name, from which a later release is disjoint; not so from the one that was lost."""
    grant(ledger)
    held = reserve(ledger, "r1")
    ledger.void(held, "a test")
    bring(ledger, "closed", "r1")
    put_back(ledger, held.seq)
    assert accept(ledger) == ["r1"]
    reserve(ledger, "r2", **apart("r1"))
    assert ledger.balance(DATA).spent == Fraction(3, 10)


def test_lost_grants_stay_lost(ledger: Ledger) -> None:
    """Then a new grant pays for what was lost first; it never allows more than before."""
    grant(ledger, "1/4")
    bring(ledger, "closed", rho="1/5")
    put_back(ledger, 1)
    assert accept(ledger) == ["r1"]
    with pytest.raises(NoGrant):
        reserve(ledger, "r2", "1/100")
    with pytest.raises(LedgerProblem, match="Grant at least what is spent"):
        grant(ledger, "1/10")
    grant(ledger, "1/4")
    with pytest.raises(BudgetExceeded):
        reserve(ledger, "r2", "1/10")
    assert reserve(ledger, "r3", "1/20").state == "reserved"
    assert ledger.verify() == []


def test_a_restore_that_was_written_on_counts_both(ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a machine without the mark the copy was used again, under the same id: two noisy copies, and both are charged."""
    grant(ledger)
    bring(ledger, "closed", rho="1/10")
    put_back(ledger, 2)
    with monkeypatch.context() as elsewhere:
        elsewhere.setenv("HOLDFAST_STATE", str(tmp_path / "elsewhere"))
        second = bring(ledger, "drawing", rho="1/10")
    assert accept(ledger) == ["r1"]
    assert ledger.balance(DATA).spent == Fraction(1, 5)
    assert ledger.reservation(DATA, "r1") == second
    assert ledger.verify() == []


def test_a_lost_charge_without_pure_epsilon_does_not_enter_a_pure_account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = Ledger.open(tmp_path / "ledger.db", create=True, needs_grants=False)
    reserve(ledger)
    put_back(ledger, 1)
    with monkeypatch.context() as elsewhere:
        elsewhere.setenv("HOLDFAST_STATE", str(tmp_path / "elsewhere"))
        ledger.grant(DATA, kind="pure", epsilon="1", approver="A", reason="b")
    before = rows(ledger)
    with pytest.raises(LedgerBroken, match="has no pure epsilon"):
        accept(ledger)
    assert rows(ledger) == before


@pytest.mark.parametrize("needs_grants", [True, False])
def test_a_ledger_that_is_gone(tmp_path: Path, needs_grants: bool) -> None:
    """A new one is made in its place when that is accepted, with all that the witness saw."""
    place = tmp_path / "ledger.db"
    ledger = Ledger.open(place, create=True, needs_grants=needs_grants)
    if needs_grants:
        grant(ledger)
    bring(ledger, "closed", rho="1/10")
    place.unlink()
    with pytest.raises(WitnessMismatch, match=f"The ledger {ledger.id} was kept in this place, and is gone"):
        Ledger.open(place, create=True, needs_grants=True)
    assert not place.exists()
    made = Ledger.reopen(place)
    assert made.id != ledger.id
    assert made.needs_grants is needs_grants
    with pytest.raises(WitnessMismatch, match="another one is there now"):
        grant(made, dataset="other")
    assert accept(made) == ["r1"]
    assert made.account(DATA).spent("rho") == Fraction(1, 10)
    assert made.verify([ledger_head(made)]) == []
    if needs_grants:
        grant(made)
    with pytest.raises(WrongState):
        reserve(made)
    assert reserve(made, "r2").state == "reserved"


def ledger_head(ledger: Ledger) -> str:
    """The head that the card of the first lost release shows."""
    return str(next(event for event in ledger.events() if event.kind == "lost").payload["head"])


def test_accepted_charges_are_lost_no_second_time(ledger: Ledger) -> None:
    """A restore of an accepted restore: the charge is found again, once."""
    grant(ledger)
    reserve(ledger, rho="1/10")
    put_back(ledger, 2)
    assert accept(ledger) == ["r1"]
    put_back(ledger, 2)
    assert accept(ledger) == ["r1"]
    assert ledger.balance(DATA).spent == Fraction(1, 10)
    assert ledger.verify() == []


def test_marks_hold_public_facts_only(small: Ledger, state: Path) -> None:
    grant(small)
    small.reserve(DATA, "r1", Charge("zcdp", rho=Fraction(1, 9)), ReleaseFacts(), sealed_key=b"sealed", input_digest="digest", now=NOW)
    text = (state / f"{small.id}.mark").read_text()
    assert json.loads(text)["releases"][0]["release_id"] == "r1"
    assert b"sealed".hex() not in text
    assert "digest" not in text
    assert sorted(json.loads(text)) == ["hash", "ledger", "needs_grants", "releases", "seq", "version"]


# Triggers and views.

FOREIGN = {
    "sqlite": {
        "trigger": "CREATE TRIGGER odd AFTER INSERT ON holdfast_events BEGIN DELETE FROM holdfast_events WHERE kind = 'reserved'; END",
        "view": "CREATE VIEW odd AS SELECT 1",
    },
    "postgres": {
        "trigger": "CREATE FUNCTION quiet() RETURNS trigger AS 'BEGIN RETURN NULL; END' LANGUAGE plpgsql; "
        "CREATE TRIGGER odd BEFORE INSERT ON holdfast_events FOR EACH ROW EXECUTE FUNCTION quiet()",
        "rule": "CREATE RULE odd AS ON INSERT TO holdfast_events DO INSTEAD NOTHING",
        "policy": "CREATE POLICY odd ON holdfast_events USING (false)",
        "view": "CREATE VIEW odd AS SELECT 1 AS one",
    },
}


def test_triggers_and_views_of_others_are_an_error(ledger: Ledger, place: str) -> None:
    grant(ledger)
    drop = {"view": "DROP VIEW odd"}
    for kind, statement in FOREIGN["postgres" if "://" in place else "sqlite"].items():
        run_sql(ledger, statement)
        asks: list[Callable[[], object]] = [
            lambda: reserve(ledger),
            lambda: ledger.balance(DATA),
            lambda: ledger.verify(),
            lambda: Ledger.open(place),
        ]
        for ask in asks:
            with pytest.raises(LedgerBroken, match=f"holds a {kind} 'odd' that Holdfast did not make"):
                ask()
        straight(place, drop.get(kind, f"DROP {kind.upper()} odd" + (" ON holdfast_events" if "://" in place else "")))
    assert reserve(ledger).state == "reserved"


def straight(place: str, statement: str) -> None:
    """By a connection of our own: the ledger's refuses."""
    if "://" in place:
        import psycopg

        with psycopg.connect(place) as connection:
            connection.execute(statement)
        return
    import sqlite3

    file = sqlite3.connect(place)
    file.execute(statement)
    file.close()
