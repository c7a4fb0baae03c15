"""Numbers that a ledger, a mark or a grant may hold although no database, and no conversion to text, takes them."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from holdfast.display import Json
from holdfast.errors import HoldfastError, InvalidParameter, LedgerBroken, WitnessMismatch
from holdfast.exact.formatting import format_ratio
from holdfast.ledger import Charge, Ledger, state
from holdfast.ledger.account import Account
from holdfast.ledger.chain import MAX_SEQ, make_event
from holdfast.ledger.releases import Granted, ReleaseFacts
from holdfast.ledger.values import read_exact
from tests.ledger.helpers import DATA, NOW, grant, reserve
from tests.ledger.hostile import append_event, read_events

PRIMES = [number for number in range(2, 2000) if all(number % other for other in range(2, number))]


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("HOLDFAST_STATE", str(tmp_path / "state"))
    return tmp_path / "state"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A ledger with two data sets, one of which has a release."""
    made = Ledger.open(tmp_path / "ledger.db", create=True, needs_grants=True)
    grant(made)
    grant(made, dataset="other")
    reserve(made, "r1", dataset="other")
    return tmp_path / "ledger.db"


@pytest.mark.parametrize("rho", ["1/0", "0/0", "-1/0", "9" * 3999], ids=["1-0", "0-0", "-1-0", "long"])
def test_a_charge_of_another_data_set_that_is_no_number_stops_before_the_reservation(place: Path, rho: str) -> None:
    """It was read for the mark only when the reservation was committed already."""
    charge = {"kind": "zcdp", "epsilon": None, "rho": rho, "delta": None}
    append_event(place, "reserved", {"charge": charge, "facts": {}}, release_id="r2", dataset="other")
    before = read_events(place)
    with pytest.raises(LedgerBroken, match=r"Event 5 \(reserved\)"):
        reserve(Ledger.open(place), "mine")
    assert read_events(place) == before
    assert any("Event 5" in problem for problem in Ledger.open(place).verify())


def of_the_mark(fields: dict[str, Any], seq: int) -> None:
    fields["seq"] = seq


def of_a_release(fields: dict[str, Any], seq: int) -> None:
    fields["releases"][0]["seq"] = seq


@pytest.mark.parametrize("change", [of_the_mark, of_a_release])
@pytest.mark.parametrize("seq", [0, MAX_SEQ + 1, 2**63, 10**4000], ids=["0", "10^18", "2^63", "10^4000"])
def test_a_mark_with_a_number_that_no_database_holds(place: Path, folder: Path, change: Callable[..., None], seq: int) -> None:
    (mark,) = folder.glob("*.mark")
    fields = json.loads(mark.read_text())
    change(fields, seq)
    mark.write_text(json.dumps(fields, sort_keys=True, separators=(",", ":")) + "\n")
    with pytest.raises(WitnessMismatch, match="cannot be read"):
        Ledger.open(place).check_witness()


def test_a_secret_with_a_number_that_no_database_holds_is_none_of_ours(place: Path, folder: Path) -> None:
    ledger = Ledger.open(place)
    (folder / "secrets").mkdir()
    (folder / "secrets" / f"{ledger.id}-{'9' * 19}").touch()
    ledger.check_witness()
    assert reserve(ledger, "mine").state == "reserved"


def test_a_mark_that_would_fill_the_memory_is_not_read(place: Path, folder: Path) -> None:
    (mark,) = folder.glob("*.mark")
    os.truncate(mark, 2**40)  # no block of it is on the disk
    with pytest.raises(WitnessMismatch, match="cannot be read"):
        Ledger.open(place).check_witness()
    assert state.MAX_BYTES < 2**30


def long_fractions(number: int) -> list[Fraction]:
    """Fractions without a common factor, each as long as a parameter may be."""
    return [Fraction(1, prime**power) for prime in PRIMES[-number:] if (power := 1500 // prime.bit_length())]


def test_sums_are_written_however_long_they_are(tmp_path: Path) -> None:
    ledger = Ledger.open(tmp_path / "long.db", create=True, needs_grants=True)
    parts = long_fractions(12)
    grant(ledger, "1")
    for number, rho in enumerate(parts):
        reserve(ledger, f"r{number}", rho)
    spent = str(ledger.balance(DATA).to_fields()["spent"])
    top, bottom = spent.split("/")
    assert len(spent) > 2 * 4300
    assert int(top[-4000:]) == sum(parts, Fraction(0)).numerator % 10**4000
    assert bottom.isdecimal()
    assert (format_ratio(Fraction(-3, 7)), format_ratio(Fraction(10**20)), format_ratio(None)) == ("-3/7", "1" + "0" * 20, None)


def test_grants_whose_sum_is_long_do_not_make_a_ledger_that_cannot_be_read(tmp_path: Path) -> None:
    """What the event says of the grants is read with every later step."""
    ledger = Ledger.open(tmp_path / "long.db", create=True, needs_grants=True)
    parts = long_fractions(12)
    for rho in parts:
        grant(ledger, str(rho))
    granted = Granted.of(ledger.account(DATA).grants)
    assert granted is not None
    said = read_exact(granted.rho)
    assert said is not None
    assert said <= sum(parts, Fraction(0)) < said * (1 + Fraction(1, 10**29))
    charge = Charge("zcdp", rho=parts[0])
    held = ledger.reserve(DATA, "r1", charge, ReleaseFacts(grant=granted), sealed_key=None, input_digest="d", now=NOW)
    assert ledger.start_drawing(held).state == "drawing"


def test_a_fact_that_could_not_be_read_again_is_not_written(place: Path) -> None:
    before = read_events(place)
    with pytest.raises(InvalidParameter, match="The fact 'software' of a release is not one that Holdfast writes"):
        reserve(Ledger.open(place), "mine", software={"holdfast": ["0.1"]})
    assert read_events(place) == before
    with pytest.raises(HoldfastError):
        Ledger.open(place).check(DATA, "mine", Charge("zcdp", rho=Fraction(1, 9)), ReleaseFacts(max_records=0))


GRANT: dict[str, Json] = {
    "kind": "pure",
    "epsilon": "1/2",
    "rho": None,
    "delta": None,
    "protect": "person",
    "approver": "A",
    "reason": "r",
    "legal": None,
}
CHARGE: dict[str, Json] = {"kind": "pure", "epsilon": "1/4", "rho": "1/32", "delta": None}
LOST: dict[str, Json] = {"head": f"{'0' * 32}:3:{'a' * 64}"}


@pytest.mark.parametrize(
    ("kind", "facts"),
    [
        ("reserved", {"asked": {"per": None, "parameters": {"epsilon": "1/0"}}}),
        ("reserved", {"asked": {"per": None, "parameters": {"epsilon": "1e10000000"}}}),
        ("reserved", {"noise": {"a": 3}}),
        ("lost", {"protect": "person", "mechanism": 5}),
        ("lost", {"protect": "person", "asked": 5}),
    ],
)
def test_facts_for_the_screen_do_not_decide_what_is_charged(kind: str, facts: dict[str, Any]) -> None:
    """A release whose facts are odd was left out of the sum: it would have cost nothing."""
    account = Account("d")
    begun = make_event(None, "0" * 32, "t", "created", "", None, {"needs_grants": True})
    granted = make_event(begun, "0" * 32, "t", "granted", "d", None, GRANT)
    event = make_event(granted, "0" * 32, "t", kind, "d", "r1", {"charge": CHARGE, "facts": facts, **(LOST if kind == "lost" else {})})
    assert [account.apply(one) for one in (granted, event)] == [None, None]
    assert account.spent("person") == Fraction(1, 4)


def test_answers_that_say_nothing_are_answers_all_the_same() -> None:
    """No declaration covers answers, whatever the fact holds."""
    said = ReleaseFacts.read({"answers": None, "distance": "l1"})
    assert "real-valued answers" in str(said.why_not_disjoint(Charge.from_fields(CHARGE)))
