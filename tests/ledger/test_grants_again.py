"""The same grant twice is refused unless that is said; an unspent grant can be taken back, a spent one cannot."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from holdfast.errors import BudgetExceeded, LedgerProblem, NoGrant
from holdfast.ledger import Charge, Ledger
from holdfast.ledger.releases import ReleaseFacts
from tests.running import Run

DATA = "counties"
WHO: dict[str, Any] = {"approver": "A. Chief", "reason": "the census"}
NOW = "2026-01-01T00:00:00Z"


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ledger:
    monkeypatch.chdir(tmp_path)
    return Ledger.open("ledger.sqlite", create=True, needs_grants=True)


def grant(ledger: Ledger, epsilon: str = "1", **more: Any) -> int:
    return ledger.grant(DATA, kind="pure", epsilon=epsilon, **WHO | more).seq


def reserve(ledger: Ledger, name: str, epsilon: str) -> None:
    ledger.reserve(DATA, name, Charge("pure", Fraction(epsilon)), ReleaseFacts(), sealed_key=None, input_digest="d", now=NOW)


class TestAgain:
    @pytest.mark.parametrize("more", [{}, {"approver": "a. chief "}, {"reason": "The  census"}], ids=["same", "approver", "reason"])
    def test_the_same_grant_is_refused_and_the_sum_is_shown(self, ledger: Ledger, more: dict[str, str]) -> None:
        grant(ledger)
        with pytest.raises(LedgerProblem, match=r"epsilon = 1, by 'A\. Chief', event 2\..* epsilon = 2 in all.*--again"):
            grant(ledger, **more)
        assert ledger.balance(DATA).granted == 1
        grant(ledger, again=True, **more)
        assert ledger.balance(DATA).granted == 2

    @pytest.mark.parametrize("more", [{"epsilon": "2"}, {"approver": "B. Chief"}, {"reason": "the update"}, {"legal": "Act 3"}])
    def test_another_grant_adds_to_the_first(self, ledger: Ledger, more: dict[str, str]) -> None:
        grant(ledger)
        grant(ledger, **more)
        assert len(ledger.account(DATA).grants) == 2

    def test_of_an_approximate_grant(self, ledger: Ledger) -> None:
        """The rho that it becomes depends on those before it: what was asked for is compared."""
        asked: dict[str, Any] = {"kind": "approximate", "epsilon": "1", "delta": "1e-6", **WHO}
        ledger.grant(DATA, **asked)
        with pytest.raises(LedgerProblem, match="This very grant is already in the ledger"):
            ledger.grant(DATA, **asked)
        ledger.grant(DATA, **asked, again=True)
        assert ledger.balance(DATA).epsilon == 2

    def test_by_command(self, ledger: Ledger, run: Run) -> None:
        asked = ("ledger", "grant", DATA, "--approver", "A", "--reason", "b", "--epsilon", "1", "--ledger", "ledger.sqlite")
        assert run(*asked).code == 0
        ran = run(*asked)
        assert (ran.code, ran.out) == (LedgerProblem.exit_code, "")
        assert "epsilon = 2 in all" in ran.err
        assert "Granted   epsilon = 2 " in run(*asked, "--again").out


class TestNewDataSet:
    def test_a_grant_to_a_new_name_says_which_names_there_are(self, ledger: Ledger, run: Run) -> None:
        asked = ("--approver", "A", "--reason", "b", "--epsilon", "1", "--ledger", "ledger.sqlite")
        assert run("ledger", "grant", "people", *asked).err == ""
        assert run("ledger", "grant", "person", *asked).err == "New data set; the ledger also holds 'people'.\n"
        assert run("ledger", "grant", "person", *asked, "--again").err == ""


class TestTakingBack:
    def test_where_no_grant_stands_none_is_asked_for(self, ledger: Ledger) -> None:
        grant(ledger)
        ledger.take_back(DATA, **WHO)
        for name in (DATA, "person"):
            with pytest.raises(LedgerProblem, match=f"^'{name}' has no grant that could be taken back") as caught:
                ledger.take_back(name, **WHO)
            assert "ledger grant" not in str(caught.value)

    def test_the_refusal_calls_a_household_no_person(self, ledger: Ledger) -> None:
        ledger.grant("homes", kind="pure", epsilon="1", protect="household", **WHO)
        with pytest.raises(BudgetExceeded, match="0 is already spent, 1 is left, 2 was asked for") as caught:
            ledger.reserve("homes", "r1", Charge("pure", Fraction(2)), ReleaseFacts(), sealed_key=None, input_digest="d", now=NOW)
        assert "person" not in str(caught.value)

    def test_what_is_unspent(self, ledger: Ledger) -> None:
        grant(ledger)
        second = grant(ledger, again=True)
        reserve(ledger, "r1", "1")
        made = ledger.take_back(DATA, grant=second, **WHO)
        assert (made.kind, made.payload["grant"], made.payload["approver"]) == ("taken-back", second, "A. Chief")
        assert (ledger.balance(DATA).granted, ledger.balance(DATA).left) == (Fraction(1), Fraction(0))
        with pytest.raises(BudgetExceeded):
            reserve(ledger, "r2", "1/8")
        assert Ledger.open("ledger.sqlite").verify() == []

    def test_not_what_is_spent_in_part(self, ledger: Ledger) -> None:
        first, second = grant(ledger), grant(ledger, "1/2")
        reserve(ledger, "r1", "9/8")
        for number in (first, second):
            with pytest.raises(LedgerProblem, match=r"is spent, or a part of it.*epsilon = 1\.125"):
                ledger.take_back(DATA, grant=number, **WHO)
        held = ledger.reservation(DATA, "r1")
        assert held is not None
        ledger.void(held, "a mistake")
        ledger.take_back(DATA, grant=first, **WHO)
        assert ledger.balance(DATA).granted == Fraction(1, 2)

    @pytest.mark.parametrize("needs_grants", [True, False])
    def test_without_its_last_grant_a_data_set_takes_no_release(self, tmp_path: Path, needs_grants: bool) -> None:
        """Also in a ledger that sets no limit by itself: taking a limit away must not give more."""
        ledger = Ledger.open(tmp_path / "other.sqlite", create=True, needs_grants=needs_grants)
        grant(ledger)
        ledger.take_back(DATA, **WHO)
        with pytest.raises(NoGrant):
            reserve(ledger, "r1", "1/8")
        assert [(balance.granted, balance.left) for balance in ledger.balances()] == [(Fraction(0), Fraction(0))]
        ledger.grant(DATA, kind="zcdp", rho="1/10", protect="household", **WHO)  # the wrong kind or unit is no longer in the way
        assert ledger.balance(DATA).protect == "household"
        assert ledger.verify() == []

    def test_not_the_only_one_that_a_release_was_charged_to(self, ledger: Ledger) -> None:
        grant(ledger)
        reserve(ledger, "r1", "0")
        with pytest.raises(LedgerProblem, match="is spent, or a part of it"):
            ledger.take_back(DATA, **WHO)

    def test_which_one(self, ledger: Ledger) -> None:
        first, second = grant(ledger), grant(ledger, "2")
        for number in (None, 1, 99):
            with pytest.raises(LedgerProblem, match=rf"those of events {first} \(epsilon = 1, .*\), {second} \(epsilon = 2, .*--grant"):
                ledger.take_back(DATA, grant=number, **WHO)
        ledger.take_back(DATA, grant=second, **WHO)
        with pytest.raises(LedgerProblem, match=rf"those of events {first} "):
            ledger.take_back(DATA, grant=second, **WHO)
        with pytest.raises(LedgerProblem, match="'towns' has no grant"):
            ledger.take_back("towns", **WHO)

    def test_a_row_that_takes_back_too_much_is_found(self, ledger: Ledger) -> None:
        """The rule is asked again of what stands in the chain."""
        number = grant(ledger)
        reserve(ledger, "r1", "1")
        ledger._store.write(
            lambda connection: ledger._append(
                connection, ledger.last_event(), NOW, "taken-back", DATA, None, {"grant": number, "approver": "A", "reason": "b"}
            )
        )
        assert any("is spent, or a part of it" in problem for problem in ledger.verify())

    def test_by_command(self, ledger: Ledger, run: Run) -> None:
        where = ("--ledger", "ledger.sqlite")
        grant(ledger)
        number = grant(ledger, again=True)
        back = ("ledger", "take-back", DATA, "--approver", "B. Chief", "--reason", "given twice", *where)
        assert "Say which one is taken back" in run(*back).err
        ran = run(*back, "--grant", number)
        assert ran.code == 0
        assert "Granted   epsilon = 1 " in ran.out
        assert "taken back: epsilon = 1, by B. Chief: given twice" in ran.out
        fields = json.loads(run("ledger", "show", DATA, *where, "--json").out)
        assert [one["epsilon"] for one in fields["grants"]] == ["1"]
        assert [(one["number"], one["reason"]) for one in fields["taken_back"]] == [(number, "given twice")]
        assert run("ledger", "verify", *where).code == 0
