"""Persons and households share an account: every release is charged to both, and each has its own limit."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import holdfast as hf
from holdfast.errors import BudgetExceeded, InvalidParameter, LedgerProblem, NoGrant
from holdfast.ledger import Charge, Ledger
from holdfast.ledger.releases import ReleaseFacts
from holdfast.ledger.units import ProtectedUnits
from tests.examples import examples
from tests.ledger.helpers import apart, bring, run_sql
from tests.running import Run

DATA = "people"
WHO: dict[str, Any] = {"approver": "A. Chief", "reason": "the register of addresses"}
EIGHT = {"household": {"person": 8}}
PERSONS, HOUSEHOLDS = {"protect": "person"}, {"protect": "household"}


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ledger:
    monkeypatch.chdir(tmp_path)
    return Ledger.open("ledger.sqlite", create=True, needs_grants=True)


def grant(ledger: Ledger, unit: str = "person", **budget: str) -> None:
    ledger.grant(DATA, protect=unit, **(budget or {"rho": "1"}), **WHO)  # type: ignore[arg-type]


def reserve(ledger: Ledger, name: str, charge: Charge, **facts: Any) -> None:
    ledger.reserve(DATA, name, charge, ReleaseFacts.read(facts), sealed_key=None, input_digest="d", now="2030-01-01T00:00:00Z")


def rho(amount: str) -> Charge:
    return Charge("zcdp", rho=Fraction(amount))


def spent(ledger: Ledger) -> dict[str, Fraction]:
    return {balance.protect: balance.spent for balance in ledger.balances()}


class TestUnits:
    def test_both_ways_and_through_others(self) -> None:
        units = ProtectedUnits.read("household = {person = 8}\nbuilding = {household = 20}\nfirm = {person = 50}")
        assert units.changes("person", "person") == 1
        assert units.changes("household", "person") == 8
        assert units.changes("person", "household") == 2
        assert units.changes("building", "person") == 160
        assert units.changes("firm", "household") == 100  # 50 persons, each of whom may change household
        assert units.changes("household", "firm") == 16
        assert units.changes("household", "record") is None

    def test_the_shortest_way_counts(self) -> None:
        units = ProtectedUnits({"building": {"household": 20, "person": 60}, "household": {"person": 8}})
        assert (units.changes("building", "person"), units.changes("person", "building")) == (60, 2)

    @pytest.mark.parametrize(
        "wrong",
        [
            {},
            {"household": {}},
            {"household": 8},
            "household = 8",
            "household",
            {"household": {"person": 0}},
            {"household": {"person": True}},
            {"household": {"person": 2.5}},
            {"household": {"person": 10**10}},
            {"person": {"person": 2}},
            {"household": {"person": 8}, "person": {"household": 1}},
            {"a": {"b": 1}, "b": {"c": 1}, "c": {"a": 1}},
            {"household": {"person": 8, "Person ": 8}},
            {"": {"person": 8}},
            {f"u{number}": {"person": 8} for number in range(20)},
            {"house\nhold": {"person": 8}},
        ],
    )
    def test_what_cannot_be_declared(self, wrong: Any) -> None:
        with pytest.raises(InvalidParameter):
            ProtectedUnits.read(wrong)


@pytest.mark.parametrize("persons", [1, 2, 3])
@pytest.mark.parametrize("records", [1, 2])
def test_a_group_moves_a_table_at_most_so_far(persons: int, records: int) -> None:
    """[theory T231], by enumeration: a household of so many persons, each with so many records in three cells, changes altogether."""
    rows = list(itertools.combinations_with_replacement(range(3), persons * records))
    moves = [[Counter(after)[cell] - Counter(before)[cell] for cell in range(3)] for before in rows for after in rows]
    assert max(sum(map(abs, move)) for move in moves) == persons * 2 * records
    assert max(sum(n * n for n in move) for move in moves) == persons**2 * 2 * records**2


@pytest.mark.parametrize("members", [2, 3])
def test_a_person_who_moves_alters_two_households(members: int) -> None:
    """[theory T231], by enumeration: persons with an attribute live in two households, whose cell is any function of who is in them."""
    living = list(itertools.product((0, 1), repeat=members))
    people = list(itertools.product(living, repeat=2))
    furthest_l1 = furthest_l2 = 0
    for household, attribute in people:
        for home, trait in itertools.product((0, 1), repeat=2):
            after = (home, *household[1:]), (trait, *attribute[1:])
            altered = [h for h in (0, 1) if _members(household, attribute, h) != _members(*after, h)]
            assert len(altered) <= 2
            for cells in itertools.product(range(2), repeat=2 * len(altered)):  # before and after, any cells
                move = [sum((cells[2 * i + 1] == cell) - (cells[2 * i] == cell) for i in range(len(altered))) for cell in range(2)]
                furthest_l1, furthest_l2 = max(furthest_l1, sum(map(abs, move))), max(furthest_l2, sum(n * n for n in move))
    assert (furthest_l1, furthest_l2) == (2 * 2, 2**2 * 2)


def _members(household: tuple[int, ...], attribute: tuple[int, ...], which: int) -> tuple[int, ...]:
    return tuple(trait for home, trait in zip(household, attribute, strict=True) if home == which)


class TestCharges:
    def test_group_privacy(self) -> None:
        assert Charge("pure", Fraction(1, 4)).times(8) == Charge("pure", Fraction(2), Fraction(2))
        assert Charge("pure", Fraction(1), Fraction(1, 8)).times(3) == Charge("pure", Fraction(3), Fraction(9, 8))
        assert rho("1/10").times(8) == rho("64/10")
        assert Charge("estimated").times(8) == Charge("estimated")

    def test_a_release_is_charged_to_both(self, ledger: Ledger) -> None:
        grant(ledger)
        reserve(ledger, "persons", rho("1/100"), **PERSONS)
        ledger.declare_units(DATA, EIGHT, **WHO)
        assert spent(ledger) == {"person": Fraction(1, 100), "household": Fraction(64, 100)}
        grant(ledger, "household", rho="2")
        reserve(ledger, "households", rho("1/10"), **HOUSEHOLDS)
        assert spent(ledger) == {"person": Fraction(41, 100), "household": Fraction(74, 100)}
        assert ledger.verify() == []
        with pytest.raises(LedgerProblem, match=r"protects 'person' and 'household'"):
            ledger.balance(DATA)
        assert ledger.balance(DATA, "household").left == Fraction(126, 100)

    def test_every_limit_is_kept(self, ledger: Ledger) -> None:
        grant(ledger, rho="1")
        ledger.declare_units(DATA, EIGHT, **WHO)
        grant(ledger, "household", rho="2")
        with pytest.raises(BudgetExceeded, match=r"'people' for one household is not enough: rho = 2 was granted, 0 .* 6\.4 was asked for"):
            reserve(ledger, "r1", rho("1/10"), **PERSONS)
        with pytest.raises(BudgetExceeded, match=r"'people' for one person is not enough: rho = 1 was granted, 0 .* 4 was asked for"):
            reserve(ledger, "r1", rho("1"), **HOUSEHOLDS)
        reserve(ledger, "r1", rho("1/4"), **HOUSEHOLDS)
        assert (ledger.balance(DATA, "person").left, ledger.balance(DATA, "household").left) == (Fraction(0), Fraction(7, 4))

    def test_a_unit_without_a_grant_has_no_limit(self, ledger: Ledger) -> None:
        grant(ledger)
        ledger.declare_units(DATA, EIGHT, **WHO)
        reserve(ledger, "r1", rho("1"), **PERSONS)
        assert [(one.granted, one.spent) for one in ledger.balances()] == [(Fraction(1), Fraction(1)), (None, Fraction(64))]

    def test_units_are_granted_in_their_own_kind(self, ledger: Ledger) -> None:
        grant(ledger, rho="1")
        ledger.declare_units(DATA, EIGHT, **WHO)
        grant(ledger, "household", epsilon="10")
        with pytest.raises(LedgerProblem, match=r"no pure epsilon"):
            reserve(ledger, "r1", rho("1/1000"), **PERSONS)
        reserve(ledger, "r1", Charge("pure", Fraction(1)), **PERSONS)
        assert spent(ledger) == {"person": Fraction(1, 2), "household": 8}

    def test_a_grant_must_pay_for_what_was_recorded(self, ledger: Ledger) -> None:
        grant(ledger)
        reserve(ledger, "r1", rho("1/10"), **PERSONS)
        ledger.declare_units(DATA, EIGHT, **WHO)
        with pytest.raises(LedgerProblem, match=r"cost rho = 6\.4 already"):
            grant(ledger, "household", rho="6")
        grant(ledger, "household", rho="7")

    def test_grants_are_taken_back_one_unit_at_a_time(self, ledger: Ledger) -> None:
        grant(ledger)
        ledger.declare_units(DATA, EIGHT, **WHO)
        grant(ledger, "household")
        reserve(ledger, "r1", rho("1/100"), **PERSONS)
        number = ledger.account(DATA).grants_for("household")[0].seq
        with pytest.raises(LedgerProblem, match=r"is spent, or a part of it"):
            ledger.take_back(DATA, grant=number, **WHO)
        held = ledger.reservation(DATA, "r1")
        assert held is not None
        ledger.void(held, "a mistake")
        ledger.take_back(DATA, grant=number, **WHO)
        with pytest.raises(BudgetExceeded, match=r"for one household is not enough: rho = 0 was granted"):
            reserve(ledger, "r2", rho("1/100"), **PERSONS)

    def test_a_declaration_keeps_apart_only_the_unit_that_it_names(self, ledger: Ledger) -> None:
        grant(ledger, rho="20")
        ledger.declare_units(DATA, EIGHT, **WHO)
        more = {"distance": "l2"}
        reserve(ledger, "north", rho("1/10"), **PERSONS, **more)
        reserve(ledger, "south", rho("1/10"), **PERSONS, **more, **apart("north"))
        assert spent(ledger) == {"person": Fraction(1, 10), "household": Fraction(128, 10)}
        with pytest.raises(LedgerProblem, match=r"protect different units"):
            reserve(ledger, "homes", rho("1/10"), **HOUSEHOLDS, **more, **apart("north"))

    @settings(max_examples=examples(100))
    @given(st.lists(st.tuples(st.sampled_from(["person", "household", "firm"]), st.integers(1, 9)), max_size=8), st.integers(1, 9))
    def test_what_is_spent_is_the_sum_of_scaled_charges(self, releases: list[tuple[str, int]], most: int) -> None:
        from holdfast.ledger.account import Account

        account = Account(DATA)
        account.opened = "person"
        account.units = ProtectedUnits({"household": {"person": most}, "firm": {"person": 3}})
        for unit in account.protects:  # made now, so that each release is added to what is there
            account.spent(unit)
        for seq, (unit, cost) in enumerate(releases):
            event = type("Event", (), {"release_id": f"r{seq}", "head": "", "seq": seq, "time": ""})()
            account.add(event, rho(str(cost)), ReleaseFacts(protect=unit))
        times = {"person": (1, 2, 2), "household": (most, 1, 2 * most), "firm": (3, 6, 1)}
        for unit, scales in times.items():
            by = dict(zip(("person", "household", "firm"), scales, strict=True))
            assert account.spent(unit, "rho") == sum(cost * by[own] ** 2 for own, cost in releases)


class TestDeclaring:
    def test_not_before_there_is_an_account(self, ledger: Ledger) -> None:
        with pytest.raises(NoGrant):
            ledger.declare_units(DATA, EIGHT, **WHO)

    def test_units_must_hang_together(self, ledger: Ledger) -> None:
        grant(ledger)
        with pytest.raises(LedgerProblem, match=r"Nothing says how many 'firm'"):
            ledger.declare_units(DATA, {"firm": {"plant": 3}}, **WHO)

    def test_a_number_stays(self, ledger: Ledger) -> None:
        grant(ledger)
        ledger.declare_units(DATA, EIGHT, **WHO)
        ledger.declare_units(DATA, {"firm": {"person": 90}}, **WHO)
        with pytest.raises(InvalidParameter, match=r"at most 8 person; that stays"):
            ledger.declare_units(DATA, {"household": {"person": 6}}, **WHO)
        assert ledger.account(DATA).protects == ("person", "household", "firm")

    def test_no_unit_in_between_makes_a_number_smaller(self, ledger: Ledger) -> None:
        """Else spent budget would come back: 64 rho, and 4 once couples were put between."""
        grant(ledger)
        ledger.declare_units(DATA, EIGHT, **WHO)
        reserve(ledger, "a", rho("1/2"), protect="person")
        before = spent(ledger)
        with pytest.raises(InvalidParameter, match="up to 8 of person; that stays"):
            ledger.declare_units(DATA, {"household": {"couple": 1}, "couple": {"person": 2}}, **WHO)
        assert spent(ledger) == before
        ledger.declare_units(DATA, {"household": {"couple": 4}, "couple": {"person": 2}}, **WHO)
        assert spent(ledger) == before | {"couple": Fraction(2)}

    def test_another_unit_is_refused_and_told_what_to_declare(self, ledger: Ledger) -> None:
        grant(ledger)
        for ask in (lambda: reserve(ledger, "r1", rho("1/10"), **HOUSEHOLDS), lambda: grant(ledger, "household")):
            with pytest.raises(LedgerProblem, match=r"holdfast ledger units 'people' 'household = \{person = 8\}'"):
                ask()

    def test_a_name_that_looks_like_that_of_a_unit(self, ledger: Ledger) -> None:
        grant(ledger)
        with pytest.raises(LedgerProblem, match=r"Nothing says how many"):
            ledger.declare_units(DATA, {"household": {"Person": 8}}, **WHO)

    def test_a_restored_copy_without_the_declaration_takes_no_release(self, ledger: Ledger, tmp_path: Path) -> None:
        grant(ledger, rho="9")
        copied = (tmp_path / "ledger.sqlite").read_bytes()
        ledger.declare_units(DATA, EIGHT, **WHO)
        bring(ledger, "closed", "homes", "1/10", DATA, **HOUSEHOLDS)
        (tmp_path / "ledger.sqlite").write_bytes(copied)
        restored = Ledger.open("ledger.sqlite")
        restored.accept_restore(**WHO)
        with pytest.raises(LedgerProblem, match=r"is per 'person'\. This is per 'household'"):
            reserve(restored, "r2", rho("1/10"), **PERSONS)
        restored.declare_units(DATA, EIGHT, **WHO)
        reserve(restored, "r2", rho("1/10"), **PERSONS)
        assert spent(restored) == {"person": Fraction(5, 10), "household": Fraction(65, 10)}
        assert restored.verify() == []

    def test_a_declaration_that_was_changed_is_noticed(self, ledger: Ledger) -> None:
        grant(ledger)
        ledger.declare_units(DATA, EIGHT, **WHO)
        run_sql(ledger, "UPDATE holdfast_events SET payload = replace(payload, '8', '1') WHERE kind = 'units'")
        assert ledger.verify() != []


class TestAnswersOfAMatrix:
    """Kinds (1, 0), (0, 1), (100, -97), (-100, 105), (0, 4); the sum is kept. Alone only the first two can become one another."""

    QUERY, HISTOGRAM = [[1, 0, 100, -100, 0], [0, 1, -97, 105, 4]], [3, 3, 1, 1, 0]

    def answer(self, ledger: Ledger, name: str, keep: Any, **others: Any) -> None:
        told: dict[str, Any] = {"ledger": ledger, "release_id": name, "dataset": DATA}
        hf.answer(self.QUERY, self.HISTOGRAM, mechanism=hf.ProjectedGaussian(rho="1/2"), keep=keep, **told, **others)

    def test_two_persons_keep_the_sum_together_though_they_move_far(self) -> None:
        kinds = list(zip(*self.QUERY, strict=True))
        pairs = [tuple(map(sum, zip(*both, strict=True))) for both in itertools.combinations_with_replacement(kinds, 2)]
        alike = [(a, b) for a in pairs for b in pairs if sum(a) == sum(b)]
        alone = [(a, b) for a in kinds for b in kinds if sum(a) == sum(b)]
        assert max(abs(a[0] - b[0]) for a, b in alone) == 1
        assert max(abs(a[0] - b[0]) for a, b in alike) == 300  # 2 x 1 would be charged to a household of two

    def test_an_account_of_several_units_takes_no_such_release(self, ledger: Ledger) -> None:
        grant(ledger, rho="9")
        ledger.declare_units(DATA, EIGHT, **WHO)
        with pytest.raises(LedgerProblem, match="cannot be charged to several units"):
            self.answer(ledger, "matrix", [[1, 1]])
        assert spent(ledger) == {"person": 0, "household": 0}
        self.answer(ledger, "free", ())  # without invariants every change is bounded
        assert spent(ledger) == {"person": Fraction(1, 2), "household": 32}
        told: dict[str, Any] = {"ledger": ledger, "release_id": "declared", "dataset": DATA, "sensitivity": 2}
        hf.answer([3, 4, 5], mechanism=hf.ProjectedGaussian(rho="1/2"), keep=[[1, 1, 1]], on_grid=True, **told)
        assert spent(ledger) == {"person": 1, "household": 64}

    def test_nor_are_units_declared_after_one(self, ledger: Ledger) -> None:
        grant(ledger, rho="9")
        self.answer(ledger, "matrix", [[1, 1]])
        with pytest.raises(LedgerProblem, match="'matrix' of 'people' cannot be charged to several units"):
            ledger.declare_units(DATA, EIGHT, **WHO)
        assert ledger.verify() == []


class TestCommand:
    def test_a_household_table_of_the_same_population_in_the_same_account(self, ledger: Ledger, run: Run) -> None:
        where = ("--ledger", "ledger.sqlite")
        grant(ledger, rho="2")
        reserve(ledger, "persons-2030", rho("1/100"), **PERSONS)
        told = ("--approver", "A", "--reason", "b", *where)
        made = run("ledger", "units", DATA, "household = {person = 8}", *told)
        assert made.code == 0
        assert "Units     household = {person = 8} (contains at most)" in made.out
        assert "Spent     rho = 0.01 of 2 for one person\n          rho = 0.64 for one household\n" in made.out
        assert run("ledger", "grant", DATA, "--rho", "2", "--protect", "household", *told).code == 0
        reserve(ledger, "homes-2030", rho("1/10"), **HOUSEHOLDS)
        shown = run("ledger", "show", DATA, *where)
        assert "Granted   rho = 2 for one person changing cell\n          rho = 2 for one household changing cell\n" in shown.out
        assert "homes-2030    reserved           rho = 0.1 for one household" in shown.out
        assert "Left      rho = 1.59 (79 %) for one person\n          rho = 1.26 (63 %) for one household\n" in shown.out
        assert all(len(line) <= 100 for line in shown.out.splitlines())
        listed = run("ledger", "show", *where).out
        assert listed.splitlines() == [
            "people  rho = 0.41 of 2 spent for one person, rho = 1.59 (79 %) left; 2 releases",
            "people  rho = 0.74 of 2 spent for one household, rho = 1.26 (63 %) left; 2 releases",
        ]
        fields = json.loads(run("ledger", "show", DATA, *where, "--json").out)
        assert (fields["protect"], fields["spent"], fields["units"]) == ("person", "41/100", EIGHT)
        assert [(one["protect"], one["spent"]) for one in fields["others"]] == [("household", "37/50")]
        assert [one["protect"] for one in fields["releases"]] == ["person", "household"]

    def test_the_screen_stays_a_screen(self, ledger: Ledger, run: Run) -> None:
        grant(ledger, rho="100")
        ledger.declare_units(DATA, {"household": {"person": 8}, "firm": {"person": 50}}, **WHO)
        for unit in ("household", "firm"):
            grant(ledger, unit, rho="10000")
        for number in range(12):
            reserve(ledger, f"r{number}", rho("1/100"), **PERSONS)
        lines = run("ledger", "show", DATA, "--ledger", "ledger.sqlite").out.splitlines()
        assert len(lines) <= 24
        assert any(line.endswith("earlier releases are not shown; they are counted)") for line in lines)
