"""The price of a release is told against what the ledger has left, before anything is drawn; so is what a crash would forfeit."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from holdfast.engines.local import BoundRelease
from holdfast.errors import BudgetExceeded, LedgerProblem, WouldBeRefused
from holdfast.wording.ledger import BEGUN, NO_KEY
from tests.publication.bookings import stop
from tests.running import Ran

RUN = """\
[table]
source = "towns.csv"
cells = ["a", "b"]
count = "n"
[keep]
margins = KEPT
[release]
id = "ID"
mechanism = "MECHANISM"
"""
LAPLACE = 'generalized-laplace"\nepsilon = "1/2"\nper = "person'
GAUSSIAN = 'generalized-gaussian"\nrho = "1/8"\nper = "person'
GRANT = ("ledger", "grant", "towns", "--epsilon", "1", "--approver", "A. Chief", "--reason", "the census")


@pytest.fixture(autouse=True)
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "towns.csv").write_text("a,b,n\nx,1,5\nx,2,6\ny,1,7\ny,2,8\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def a_run(name: str = "r1", kept: str = '[["a"]]', mechanism: str = LAPLACE, more: str = "") -> str:
    Path("run.toml").write_text(RUN.replace("ID", name).replace("KEPT", kept).replace("MECHANISM", mechanism) + more)
    return "run.toml"


def apart(*others: str) -> str:
    """The section of a run file that declares a release disjoint from these; nothing where there are none."""
    return f'[release.disjoint]\nfrom = {list(others)}\nbecause = "nobody lives in both regions"\n' if others else ""


def interrupt(run: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch) -> None:
    """Begin the release r1, and stop it while it is drawn."""
    with monkeypatch.context() as patch:
        patch.setattr(BoundRelease, "draw", stop)
        assert run("release", a_run(), "-o", "out").code != 0


def price_of(said: Ran) -> Any:
    """The price in a plan as JSON: of one that would be refused it is in the details of the error."""
    fields = json.loads(said.out)
    assert said.code == fields.get("exit_code", 0) == (WouldBeRefused.exit_code if "details" in fields else 0)
    return fields.get("details", fields)["price"]


class TestPlan:
    def test_shows_the_price_against_what_is_left(self, run: Callable[..., Ran]) -> None:
        run(*GRANT)
        run("release", a_run("r0"), "-o", "r0")
        said = run("plan", a_run())
        (line,) = (line for line in said.out.splitlines() if line.startswith("Price "))
        assert line == f"Price      epsilon = 0.5 for one person; 0.5 is left of epsilon = 1 granted to 'towns'. {NO_KEY}"
        price = price_of(run("plan", "run.toml", "--json"))
        numbers = {"cost": "1/2", "granted": "1", "spent": "1/2", "left": "1/2"}
        assert price == {
            **{"dataset": "towns", "protect": "person", "currency": "epsilon"},
            **numbers,
            **{"problem": None, "resumable": False, "begun": False, "others": []},
        }

    def test_says_where_it_would_not_be_enough(self, run: Callable[..., Ran]) -> None:
        run(*GRANT)
        for name in ("r1", "r2"):
            assert run("release", a_run(name), "-o", name).code == 0
        said = run("plan", a_run("r3"))
        assert said.code == WouldBeRefused.exit_code == 14
        assert said.err.startswith("holdfast: The plan stands, and the release would be refused: The budget of 'towns' is not enough")
        assert "Price      epsilon = 0.5 for one person; 0 is left of epsilon = 1 granted to 'towns'. It would be refused.\n" in said.out
        assert (said.out + said.err).count("Ask for less") == 1
        assert "is not enough" in price_of(run("plan", "run.toml", "--json"))["problem"]

    def test_says_where_the_kind_does_not_fit(self, run: Callable[..., Ran]) -> None:
        run(*GRANT)
        said = run("plan", a_run("g", mechanism=GAUSSIAN))
        assert "Price      The release would be refused.\n" in said.out
        assert "is pure (epsilon)" in said.err

    def test_without_a_limit(self, run: Callable[..., Ran], work: Path) -> None:
        assert "Price      epsilon = 0.5 for one person; nothing was granted to 'towns' or spent on it yet.\n" in run("plan", a_run()).out
        assert not (work / "holdfast-ledger.sqlite").exists(), "a plan makes no ledger"
        run("release", "run.toml", "-o", "out")
        said = run("plan", a_run("r2")).out
        assert "Price      epsilon = 0.5 for one person; no limit is set for 'towns', epsilon = 0.5 is spent.\n" in said
        assert "Price      rho = 0.125 for one person; no limit" in run("plan", a_run("g", mechanism=GAUSSIAN)).out

    def test_without_a_ledger_there_is_no_price(self, run: Callable[..., Ran]) -> None:
        assert "Price" not in run("plan", a_run(), "--no-ledger").out
        assert price_of(run("plan", "run.toml", "--no-ledger", "--json")) is None

    def test_a_ledger_that_is_not_there_does_not_hide_the_plan(self, run: Callable[..., Ran]) -> None:
        said = run("plan", a_run(), "--ledger", "none.sqlite")
        assert said.code == WouldBeRefused.exit_code
        assert "Price      The release would be refused.\n" in said.out

    def test_what_is_left_counts_a_release_that_is_published(self, run: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch) -> None:
        run(*GRANT)
        interrupt(run, monkeypatch)
        assert price_of(run("plan", "run.toml", "--json"))["left"] == "1", "resumed, it is not charged again"
        assert run("ledger", "void", "towns", "r1", "--reason", "a test").code == 0
        assert run("release", a_run("r2"), "-o", "out").code == 0
        price = price_of(run("plan", "run.toml", "--json"))
        assert (price["spent"], price["left"]) == ("1", "0")
        assert "already holds the release 'r2'" in price["problem"]

    @pytest.mark.parametrize("end", ["published", "voided"])
    def test_an_id_that_is_used_up_would_be_refused(self, run: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch, end: str) -> None:
        if end == "published":
            assert run("release", a_run(), "-o", "out").code == 0
        else:
            interrupt(run, monkeypatch)
            assert run("ledger", "void", "towns", "r1", "--reason", "a test").code == 0
        said = run("plan", "run.toml")
        assert "would be refused: The ledger already holds the release 'r1' of this data set (" in said.err
        assert "Next " not in said.out
        refused = run("release", "run.toml", "-o", "again")
        assert refused.code != 0
        assert price_of(run("plan", "run.toml", "--json"))["problem"] in refused.err

    def test_a_release_that_was_begun_is_to_be_resumed(self, run: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("HOLDFAST_KEY", "a long secret of this test")
        run(*GRANT)
        interrupt(run, monkeypatch)
        said = run("plan", "run.toml")
        assert f"Price      epsilon = 0.5 for one person; 1 is left of epsilon = 1 granted to 'towns'. {BEGUN}\n" in said.out
        assert "Next       holdfast release run.toml -o out --resume\n" in said.out
        assert price_of(run("plan", "run.toml", "--json"))["begun"]
        assert run("release", "run.toml", "-o", "out", "--resume").code == 0

    def test_what_is_next_names_the_ledger_as_the_plan_did(self, run: Callable[..., Ran]) -> None:
        run(*GRANT, "--ledger", "other ledger.sqlite")
        assert (
            "Next       holdfast release run.toml -o out --ledger 'other ledger.sqlite'\n"
            in run("plan", a_run(), "--ledger", "other ledger.sqlite").out
        )
        assert "Next       holdfast release run.toml -o out --no-ledger\n" in run("plan", "run.toml", "--no-ledger").out


class TestDeclared:
    """A declaration changes what is left; what the ledger would refuse about it is in the plan."""

    def test_what_is_left_is_that_of_the_release(self, run: Callable[..., Ran]) -> None:
        run(*GRANT)
        for name, more in (("north", ""), ("south", apart("north"))):
            assert run("release", a_run(name, more=more), "-o", name).code == 0
        for name, others, left in (("all", (), "0"), ("north-2", ("south",), "1/2"), ("east", ("north", "south"), "1")):
            price = price_of(run("plan", a_run(name, more=apart(*others)), "--json"))
            assert (price["spent"], price["left"], price["problem"] is None) == ("1/2", left, left != "0")
        assert run("release", "run.toml", "-o", "east").code == 0
        assert run("release", a_run("all"), "-o", "all").code == BudgetExceeded.exit_code

    def test_a_revision_is_not_disjoint_from_what_it_revises(self, run: Callable[..., Ran]) -> None:
        assert run("release", a_run("v1"), "-o", "v1").code == 0
        said = run("plan", a_run("v2", more='revises = "v1"\n' + apart("v1")))
        assert "would be refused: This release and 'v1' revise one table, about the same people." in said.err
        assert "Next " not in said.out
        assert run("release", "run.toml", "-o", "v2").code == LedgerProblem.exit_code

    def test_without_a_ledger_it_would_be_refused(self, run: Callable[..., Ran]) -> None:
        said = run("plan", a_run(more=apart("north")), "--no-ledger")
        assert "would be refused: disjoint names earlier releases in a ledger, and this release is" in said.err
        assert "Next " not in said.out

    def test_an_earlier_release_that_cannot_be_read_is_told(self, run: Callable[..., Ran]) -> None:
        said = run("plan", a_run("v2", more='revises = "gone"\n'))
        assert said.code == WouldBeRefused.exit_code
        assert "Price      The release would be refused.\n" in said.out


class TestWithoutTheKey:
    def test_the_user_is_told_before_the_draw_that_a_crash_forfeits_the_charge(
        self, run: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        run(*GRANT)
        assert NO_KEY in run("release", a_run("r1"), "-o", "r1").err
        monkeypatch.setenv("HOLDFAST_KEY", "a long secret of this test")
        assert NO_KEY not in run("release", a_run("r2"), "-o", "r2").err
        assert NO_KEY not in run("plan", a_run("r3")).out


class TestShow:
    def test_what_a_grant_buys_where_no_person_can_change_alone(self, run: Callable[..., Ran]) -> None:
        """A grant of 1 paid for two releases that cost the nearest pairs 2."""
        run(*GRANT)
        for name in ("r1", "r2"):
            assert run("release", a_run(name, '[["a"], ["b"]]'), "-o", name).code == 0
        said = run("ledger", "show", "towns").out
        assert "Spent     epsilon = 1 of 1\n" in said
        line = "Pairs     where no person can change alone: epsilon = 2 spent; the grant of 1 buys 2 there\n"
        assert line in said
        assert all(len(shown) <= 100 for shown in said.splitlines())

    def test_not_where_one_person_can(self, run: Callable[..., Ran]) -> None:
        run(*GRANT)
        run("release", a_run("r1"), "-o", "r1")
        assert "Pairs" not in run("ledger", "show", "towns").out

    def test_balances_of_all_data_sets(self, run: Callable[..., Ran]) -> None:
        run(*GRANT)
        run("release", a_run("r1"), "-o", "r1")
        said = run("ledger", "show").out
        assert "towns  epsilon = 0.5 of 1 spent, epsilon = 0.5 (50 %) left; 1 release" in said
