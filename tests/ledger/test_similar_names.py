"""Names that people take for one are one: a data set or release whose name looks like another's is refused, not opened afresh."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from holdfast.errors import InvalidParameter, LedgerProblem, WrongState
from holdfast.ledger import Charge, Ledger
from holdfast.ledger.releases import ReleaseFacts
from holdfast.tables.similar import look_alike

NOW = "2026-01-01T00:00:00Z"
ALIKE = {
    "blank before": ("counties", " counties"),
    "blank inside": ("new york", "new  york"),
    "no blank": ("new york", "newyork"),
    "no-break space": ("new york", "new\u00a0york"),
    "zero width": ("counties", "coun\u200bties"),
    "Hangul filler": ("counties", "coun\u3164ties"),
    "tag": ("counties", "counties\U000e0041"),
    "case": ("counties", "Counties"),
    "Unicode form": ("\u00e9tat", "e\u0301tat"),
    "full width": ("counties", "\uff43ounties"),
    "Cyrillic o": ("counties", "c\u043eunties"),
    "Cyrillic capital": ("Baker", "\u0412aker"),
    "Cyrillic capital and case": ("baker", "\u0412AKER"),
    "Greek omicron": ("counties", "c\u03bfunties"),
    "Armenian": ("counties", "c\u0585unties"),
    "capital i for l": ("mail", "maiI"),
    "one for l": ("mail", "mai1"),
    "nought for o": ("counties", "c0unties"),
    "dash": ("sex-age", "sex\u2013age"),
    "in one other script": ("\u0412\u043e\u0434\u0430", "\u0432\u043e\u0434\u0430"),
}
OTHERS = [("r1", "r2"), ("r1", "r11"), ("2020", "2021"), ("sex-age", "sex_age"), ("bali", "ball"), ("\u00e9tat", "etat"), ("o", "c")]


def open_ledger(tmp_path: Path, *, needs_grants: bool) -> Ledger:
    return Ledger.open(tmp_path / "ledger.sqlite", create=True, needs_grants=needs_grants)


def grant(ledger: Ledger, dataset: str) -> None:
    ledger.grant(dataset, kind="pure", epsilon="1", approver="A. Chief", reason="the census")


def reserve(ledger: Ledger, dataset: str, release_id: str) -> None:
    ledger.reserve(dataset, release_id, Charge("pure", Fraction(1, 4)), ReleaseFacts(), sealed_key=None, input_digest="d", now=NOW)


@pytest.mark.parametrize("pair", ALIKE)
def test_a_name_that_looks_like_another_is_found_either_way(pair: str) -> None:
    one, other = ALIKE[pair]
    assert look_alike(one, ["zz", other]) == other
    assert look_alike(other, ["zz", one]) == one
    assert look_alike(one, [other, one]) is None


@pytest.mark.parametrize(("one", "other"), OTHERS)
def test_other_names_are_others(one: str, other: str) -> None:
    assert look_alike(one, [other]) is None


@pytest.mark.parametrize("pair", ALIKE)
def test_no_second_account_is_granted(tmp_path: Path, pair: str) -> None:
    one, other = ALIKE[pair]
    ledger = open_ledger(tmp_path, needs_grants=True)
    grant(ledger, one)
    with pytest.raises(LedgerProblem, match="would be a new account"):
        grant(ledger, other)
    with pytest.raises(LedgerProblem, match="would be a new account"):
        reserve(ledger, other, "r2")
    assert ledger.datasets() == [one]
    assert ledger.verify() == []


@pytest.mark.parametrize("pair", ["case", "Cyrillic o"])
def test_no_second_account_is_opened(tmp_path: Path, pair: str) -> None:
    """In a ledger that sets no limit the first release opens its account: with a limit on one, the other had none."""
    one, other = ALIKE[pair]
    ledger = open_ledger(tmp_path, needs_grants=False)
    grant(ledger, one)
    reserve(ledger, one, "r1")
    with pytest.raises(LedgerProblem, match="would be a new account"):
        ledger.check(other, "r2", Charge("pure", Fraction(5)), ReleaseFacts())
    with pytest.raises(LedgerProblem, match="would be a new account"):
        reserve(ledger, other, "r2")
    reserve(ledger, one, "r2")
    assert ledger.balance(one).spent == Fraction(1, 2)


@pytest.mark.parametrize("needs_grants", [True, False])
def test_an_id_that_looks_like_another(tmp_path: Path, needs_grants: bool) -> None:
    ledger = open_ledger(tmp_path, needs_grants=needs_grants)
    grant(ledger, "counties")
    reserve(ledger, "counties", "r1")
    for name in ("R1", "r1 ", "rl", "\u0433 1".replace("\u0433", "r")):
        with pytest.raises(WrongState, match="only in blanks, case or letters that look alike"):
            reserve(ledger, "counties", name)
    reserve(ledger, "counties", "r2")
    held = ledger.reservation("counties", "r1")
    assert held is not None
    ledger.void(held, "a mistake")
    reserve(ledger, "counties", "R1")  # nothing has that name any more
    assert [release.release_id for release in ledger.open_reservations()] == ["r2", "R1"]


def test_ids_of_other_data_sets_count_where_one_id_names_one_release(tmp_path: Path) -> None:
    ledger = open_ledger(tmp_path, needs_grants=False)
    reserve(ledger, "counties", "r1")
    with pytest.raises(WrongState, match="look alike"):
        reserve(ledger, "towns", "R1")


@pytest.mark.parametrize("letter", ["\ue000", "\U000f0000", "\u0378", "\U000e0fff", "\uffff"])
def test_characters_that_nobody_sees_alike_are_refused_in_new_names(tmp_path: Path, letter: str) -> None:
    ledger = open_ledger(tmp_path, needs_grants=True)
    with pytest.raises(InvalidParameter, match=r"not assigned.*Write the name without it"):
        grant(ledger, f"towns{letter}")
    grant(ledger, "towns")
    with pytest.raises(InvalidParameter, match=r"The release id .* not assigned"):
        reserve(ledger, "towns", f"r{letter}")
    assert [event.kind for event in ledger.events()] == ["created", "granted"]


@pytest.mark.parametrize("letter", ["\U000e0fff", "\ufff3", "\u2065", "\u00ad", "\u180f", "\uffa0", "\U0001d173"])
def test_what_unicode_says_to_ignore_tells_no_names_apart(letter: str) -> None:
    """Also code points that are kept for later: a font of tomorrow prints nothing for them either."""
    assert look_alike("counties", [f"coun{letter}ties"]) == f"coun{letter}ties"
