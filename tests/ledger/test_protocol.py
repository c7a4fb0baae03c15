"""The steps of a release on both databases: those that are allowed, all that are not, and what a repeated one does."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from holdfast.errors import BudgetExceeded, InvalidParameter, NoGrant, OtherInput, WrongState
from holdfast.ledger import Charge, Ledger, Reservation
from holdfast.ledger.releases import ReleaseFacts
from tests.ledger.helpers import DATA, DIGEST, KEY, NOW, ORDER, STEPS, bring, grant, reserve, rows, screen

STATES = ("reserved", *ORDER, "voided", "voided-spent")
ALLOWED = {
    ("reserved", "drawing"),
    ("drawing", "staged"),
    ("staged", "committed"),
    ("committed", "published"),
    ("published", "closed"),
    ("reserved", "void"),
    ("drawing", "void"),
    ("staged", "void"),
}
REPEATED = {*((state, state) for state in ORDER), ("voided", "void"), ("voided-spent", "void")}


def test_a_release_from_grant_to_close(ledger: Ledger) -> None:
    grant(ledger)
    held = reserve(ledger, exposed=["state totals"])
    assert (held.state, held.sealed_key, held.time) == ("reserved", KEY, NOW)
    ledger.check_input(held, DIGEST)
    assert held.head == ledger.head() == f"{ledger.id}:{held.seq}:{held.head.split(':')[2]}"
    for state in ORDER:
        held = STEPS[state](ledger, held)
        assert held.state == state
        assert ledger.reservation(DATA, "r1") == held
        assert (held.sealed_key is None) == (state == "closed")
        assert ledger.open_reservations() == ([] if state == "closed" else [held])
        assert ledger.balance(DATA).spent == held.charge.rho
    assert held.checksum == "sha256:00"
    assert [event.kind for event in ledger.events()] == ["created", "granted", "reserved", *ORDER]
    assert ledger.verify([held.head, ledger.head()]) == []


@pytest.mark.ordinary("sqlite", "postgres-drawing")
@pytest.mark.parametrize("state", STATES)
def test_every_step_from_every_state(ledger: Ledger, state: str) -> None:
    grant(ledger)
    for step in STEPS:
        held = bring(ledger, state, f"{state}-{step}", "1/100")
        before, spent = len(rows(ledger)), ledger.balance(DATA).spent
        if (state, step) in ALLOWED:
            STEPS[step](ledger, held)
            assert len(rows(ledger)) == before + 1
        elif (state, step) in REPEATED:
            STEPS[step](ledger, held)
            assert len(rows(ledger)) == before
        else:
            with pytest.raises(WrongState, match=f"is {state};"):
                STEPS[step](ledger, held)
            assert ledger.reservation(DATA, held.release_id) == held
            assert len(rows(ledger)) == before
        refunded = (state, step) == ("reserved", "void")
        assert held.charge.rho is not None
        assert ledger.balance(DATA).spent == spent - (held.charge.rho if refunded else 0)
    assert ledger.verify() == []


@pytest.mark.ordinary("sqlite", "postgres-closed")
@pytest.mark.parametrize("state", STATES)
def test_a_name_is_reserved_once_unless_it_was_refunded(ledger: Ledger, state: str) -> None:
    grant(ledger)
    first = bring(ledger, state)
    if state == "voided":
        assert reserve(ledger).seq > first.seq
    else:
        with pytest.raises(WrongState, match="was reserved before"):
            reserve(ledger)
    assert reserve(ledger, "another").state == "reserved"


def test_a_reservation_made_anew_is_another_one(ledger: Ledger) -> None:
    """Who still holds the voided one must not draw in the name of the second."""
    grant(ledger)
    old = reserve(ledger)
    assert ledger.void(old, "a mistake")
    new = reserve(ledger)
    for step in STEPS.values():
        with pytest.raises(WrongState, match="not the one in the ledger"):
            step(ledger, old)
    assert ledger.reservation(DATA, "r1") == new


def test_a_reservation_of_another_ledger_is_refused(ledger: Ledger, tmp_path: Path) -> None:
    other = Ledger.open(tmp_path / "other.db", create=True, needs_grants=True)
    for one in (ledger, other):
        grant(one)
    held = reserve(other)
    with pytest.raises(WrongState):
        ledger.start_drawing(held)
    reserve(ledger)
    with pytest.raises(WrongState):
        ledger.start_drawing(held)


def test_staging_again_needs_the_same_bytes(ledger: Ledger) -> None:
    grant(ledger)
    held = bring(ledger, "staged")
    assert ledger.stage(held, "sha256:00") == held
    with pytest.raises(WrongState, match="other bytes"):
        ledger.stage(held, "sha256:01")
    assert ledger.reservation(DATA, "r1") == held


def test_a_void_says_whether_it_refunds_and_says_it_again(ledger: Ledger) -> None:
    grant(ledger)
    for state, refunded in (("reserved", True), ("drawing", False), ("staged", False)):
        held = bring(ledger, state, state)
        assert ledger.void(held, "because") is refunded
        assert ledger.void(held, "because") is refunded
        found = ledger.reservation(DATA, state)
        assert found is not None
        assert (found.counts, found.reason, found.sealed_key, found.input_check) == (not refunded, "because", None, None)


def test_secrets_are_never_in_events_and_go_with_the_release(ledger: Ledger, place: str) -> None:
    grant(ledger)
    for index, end in enumerate(("closed", "voided", "voided-spent")):
        held = reserve(ledger, f"r{index}")
        assert len(rows(ledger, "holdfast_open_reservations")) == 1
        assert KEY.hex() not in repr(held) + repr(rows(ledger))
        assert DIGEST not in repr(held) + repr(rows(ledger))
        if end == "closed":
            for state in ORDER:
                held = STEPS[state](ledger, held)
        else:
            ledger.void(held if end == "voided" else ledger.start_drawing(held), "a test")
        assert rows(ledger, "holdfast_open_reservations") == []
    if "://" not in place:  # SQLite: not even in the free pages of the file, and no journal is left
        stored = Path(place).read_bytes()
        assert KEY.hex().encode() not in stored
        assert DIGEST.encode() not in stored
        assert b"sha256:00" in stored  # the search would find what is there
        assert [path.name for path in Path(place).parent.iterdir()] == ["ledger.db"]


def test_other_input_is_refused(ledger: Ledger) -> None:
    grant(ledger)
    held = reserve(ledger)
    ledger.check_input(held, DIGEST)
    for wrong in ("", "digest", DIGEST + "0"):
        with pytest.raises(OtherInput) as caught:
            ledger.check_input(held, wrong)
        assert DIGEST not in str(caught.value)
    with pytest.raises(OtherInput):
        ledger.check_input(dataclasses.replace(held, input_check=None), DIGEST)


def test_a_release_without_a_kept_key(ledger: Ledger) -> None:
    grant(ledger)
    held = ledger.reserve(DATA, "r1", Charge("zcdp", rho="1/10"), ReleaseFacts(), sealed_key=None, input_digest="d", now=NOW)  # type: ignore[arg-type]
    assert held.sealed_key is None
    assert ledger.open_reservations(DATA) == [held]
    assert ledger.open_reservations("elsewhere") == []


def test_nothing_is_reserved_without_a_grant(ledger: Ledger) -> None:
    with pytest.raises(NoGrant, match="holdfast ledger grant 'counties'"):
        reserve(ledger)
    grant(ledger, dataset="other")
    for refused in (lambda: reserve(ledger), lambda: ledger.balance(DATA), lambda: screen(ledger)):
        with pytest.raises(NoGrant):
            refused()
    assert ledger.reservation(DATA, "r1") is None
    assert ledger.datasets() == ["other"]


def test_a_refusal_writes_nothing(ledger: Ledger) -> None:
    grant(ledger, "1/10")
    before = rows(ledger)
    with pytest.raises(BudgetExceeded, match=r"0\.1 was granted, 0 is already spent, 0\.1 is left, 1/9 was"):
        reserve(ledger, rho="1/9")
    assert rows(ledger) == before
    assert rows(ledger, "holdfast_open_reservations") == []


@pytest.mark.ordinary("sqlite", "DROP", "evil")
@pytest.mark.parametrize(
    "name",
    [
        *["x'; DROP TABLE holdfast_events; --", 'a"b', "100%s :name ?", "a\\b", "NULL", " leading"],
        *["Ærø", "Ae\u0301", "人口 調查", "\U0001f5f3", "\u202eevil"],
    ],
)
def test_any_name_is_kept_as_it_is(ledger: Ledger, name: str) -> None:
    grant(ledger, dataset=name)
    held = bring(ledger, "closed", name, dataset=name, exposed=[name], note=name)
    assert (held.dataset, held.release_id, held.facts.others["note"]) == (name, name, name)
    assert ledger.datasets() == [name]
    assert ledger.verify([held.head]) == []
    assert len(screen(ledger, name).splitlines()) <= 24


def test_names_that_look_alike_are_two_accounts(ledger: Ledger) -> None:
    grant(ledger, dataset="Aé")
    with pytest.raises(NoGrant):
        ledger.balance("Ae\u0301")


@pytest.mark.parametrize("name", ["", "  ", "a\0b", "a\nb", "\x1b[2J", "\ud800", "a\u2028b", "n" * 201, 7, None, b"bytes"])
def test_names_that_cannot_be_kept_are_refused(tmp_path: Path, name: object) -> None:
    ledger = Ledger.open(tmp_path / "ledger.db", create=True, needs_grants=True)
    with pytest.raises(InvalidParameter):
        grant(ledger, dataset=name)  # type: ignore[arg-type]
    grant(ledger)
    with pytest.raises(InvalidParameter):
        reserve(ledger, name)  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter):
        ledger.reserve(DATA, "r", Charge("zcdp", rho="1/9"), ReleaseFacts(), sealed_key=None, input_digest="d", now=name)  # type: ignore[arg-type]
    assert len(rows(ledger)) == 2


@pytest.mark.parametrize("facts", [{"x": 0.5}, {"x": {1: "a"}}, {"x": {"y": [b"z"]}}, {"x": float("nan")}, {"x": {1, 2}}])
def test_facts_are_plain(tmp_path: Path, facts: dict[str, Any]) -> None:
    ledger = Ledger.open(tmp_path / "ledger.db", create=True, needs_grants=True)
    grant(ledger)
    with pytest.raises(InvalidParameter, match="facts"):
        reserve(ledger, **facts)


def test_facts_come_back(ledger: Ledger) -> None:
    grant(ledger)
    facts: dict[str, Any] = {"text": "\0\ud800 é", "whole": 10**30, "none": None, "list": [True, {"b": 1, "a": []}]}
    assert reserve(ledger, **facts).facts.others == facts
    found = ledger.reservation(DATA, "r1")
    assert isinstance(found, Reservation)
    assert found.facts.others == facts
