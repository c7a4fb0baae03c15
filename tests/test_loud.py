"""Walks of an office that asks for too much: what protects little is said first and loudly, on plan, screen and pages."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from markupsafe import escape

import holdfast as hf
from holdfast.card.card import Card
from holdfast.errors import LedgerProblem, VerificationFailed, WouldBeRefused
from holdfast.ledger import Ledger
from holdfast.wording.budget import LITTLE, Guess, weak_sentence
from holdfast.wording.guarantee import promise_lines
from tests.report.cards import Page
from tests.running import Run

TABLE = "area,sex,n\n" + "".join(f"{area},{sex},{10 + i}\n" for i, area in enumerate("nsew") for sex in "FM")
WHO = ("--approver", "A. Chief", "--reason", "the census")
NO_LIMIT = "NO LIMIT IS SET. The ledger adds up what releases of these data cost, and refuses none of them."
WEAK = "LITTLE IS PROTECTED by so large a budget. A best guess about one person, right 50 of 100 times without the table, can be right "
NIL = "THE NOISE IS NEARLY NIL. Half of the counts that carry noise, or more, are published as they are with a probability of 99 % or more"
PAGES = ("statement.html", "report.html")


@pytest.fixture(autouse=True)
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "people.csv").write_text(TABLE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def a_run(name: str, epsilon: str = "1/2", more: str = "", per: str = "person", dataset: str = "people") -> str:
    Path(f"{name}.toml").write_text(
        f'[table]\nsource = "people.csv"\ncells = ["area", "sex"]\ncount = "n"\npublic = true\n{more}\n[keep]\nmargins = [["area"]]\n'
        f'[release]\nid = "{name}"\ndataset = "{dataset}"\nmechanism = "generalized-laplace"\nepsilon = "{epsilon}"\nper = "{per}"\n'
    )
    return f"{name}.toml"


def a_table() -> hf.Table:
    return hf.Table.from_counts("people.csv", cells=["area", "sex"], count="n", public=True)


def kinds(release: Any) -> list[str]:
    return [warning.kind for warning in release.card.warnings]


class TestEpsilon100:
    def test_plan_screen_and_pages_say_it_first(self, run: Run) -> None:
        assert run("ledger", "grant", "people", "--epsilon", "1000", *WHO).code == 0
        plan = run("plan", a_run("r1", "100")).out.splitlines()
        assert plan[0].startswith(f"WARNING    {WEAK}100 of 100 times with it. That is odds of more than 1,000,000,000,000 to 1.")
        assert plan[1].startswith(f"WARNING    {NIL}")
        screen = run("release", "r1.toml", "-o", "out").out.splitlines()
        assert screen[1].startswith(f"WARNING: {WEAK}")
        assert screen[2].startswith(f"WARNING: {NIL}")
        for page in PAGES:
            html = Path("out", page).read_text()
            assert '<body class="alarm">' in html
            assert html.index('<p class="banner"><strong>LITTLE IS PROTECTED') < html.index("<h1>")
            assert "<title>LITTLE IS PROTECTED by so large a budget: " in html
            assert "little can be learned" not in html
            assert "e-22" not in html, "no number that only looks small"
            assert "below 0.01" in html
        statement, report = (Page(Path("out", page).read_text()) for page in PAGES)
        assert "there is so little of it that most are published as they are. So large a budget protects little." in statement.text
        assert "Typical error of one count below 0.01 next to no noise: nearly every count is published as it is" in statement.text
        assert "95 of 100 within about 0 " in statement.text
        assert "How uncertain" not in report.text, "no figure shows accuracy that is nothing but missing noise"
        assert run("verify", "out").code == 0

    def test_an_ordinary_budget_with_a_grant_has_no_banner(self, run: Run) -> None:
        run("ledger", "grant", "people", "--epsilon", "1", *WHO)
        assert "WARNING" not in run("plan", a_run("r1")).out
        assert "WARNING" not in run("release", "r1.toml", "-o", "out").out
        for page in PAGES:
            assert 'class="banner' not in Path("out", page).read_text()
        assert json.loads(Path("out/card.json").read_text())["warnings"] == []

    def test_a_card_without_its_warnings_is_noticed(self, run: Run) -> None:
        run("release", a_run("r1", "100"), "-o", "out")
        card = Path("out/card.json")
        there = Card.from_json(card.read_text())
        assert [one.kind for one in there.warnings] == ["weak-budget", "little-noise", "no-limit"]
        card.write_text(there.model_copy(update={"warnings": ()}).to_json())
        said = run("verify", "out")
        assert said.code == VerificationFailed.exit_code
        assert "warnings" in said.err


class TestWhatIsSaid:
    @pytest.mark.parametrize("epsilon", ["1/10", "1", "4.5", "4.59", "4.6", "5", "9", "49", "51", "1000"])
    def test_a_budget_protects_little_from_odds_of_99_to_1(self, epsilon: str) -> None:
        """ln 99 = 4.5951..."""
        guarantee = hf.plan(a_table(), [hf.margin("area")], hf.GeneralizedLaplace(epsilon=epsilon, per="person")).guarantee
        assert (weak_sentence(guarantee) is not None) == (float(Fraction(epsilon)) > math.log(99))

    @pytest.mark.parametrize(("rho", "little"), [("1/10", False), ("1/2", False), ("5/2", True), ("60", True)])
    def test_so_does_an_epsilon_above_10_whatever_the_average_says(self, rho: str, little: bool) -> None:
        """rho = 2.5 allows 97.9 of 100 on average, and single publications an epsilon of 17."""
        guarantee = hf.plan(a_table(), [hf.margin("area")], hf.GeneralizedGaussian(rho=rho, per="person")).guarantee
        assert (weak_sentence(guarantee) is not None) == little
        assert (Guess.of(guarantee).right > LITTLE) == (rho == "60")

    @pytest.mark.parametrize("epsilon", ["1", "2", "3", "4", "6", "10"])
    def test_the_share_of_counts_without_noise_is_never_overstated(self, epsilon: str) -> None:
        """Two cells under one total: P[z = (k, -k)] is proportional to e^(-2 epsilon |k|)."""
        plan = hf.plan(a_table(), [hf.margin("area")], hf.GeneralizedLaplace(epsilon=epsilon, per="distance"))
        said = [warning.text for warning in plan.warnings if warning.kind == "little-noise"]
        a = math.exp(-2 * float(epsilon))
        assert bool(said) == (2 * a / (1 - a) ** 2 < 0.1)
        for text in said:
            assert int(text.partition("probability of ")[2].split()[0]) <= 100 * (1 - a) / (1 + a)

    def test_noise_that_no_draw_had_is_warned_of_first_of_all(self) -> None:
        """Its variance is estimated, as 0: no share beyond that of the limit is named."""
        six = hf.Table(hf.Universe.product({"area": list("abcdef")}), np.arange(6))
        for epsilon in ("9", "40"):
            plan = hf.plan(six, [hf.linear([[1, 2, 3, 1, 2, 5], [0, 1, 1, 2, 4, 1]])], hf.GeneralizedLaplace(epsilon=epsilon, per="person"))
            assert plan.deviations is not None
            assert np.isnan(plan.deviations).all()
            said = [warning.text for warning in plan.warnings if warning.kind == "little-noise"]
            assert len(said) == 1
            assert "a probability of 90 % or more" in said[0]

    def test_a_test_key_a_ledger_without_a_limit_and_no_ledger(self) -> None:
        keep, mechanism = [hf.margin("area")], hf.GeneralizedLaplace(epsilon="1/2", per="person")
        assert kinds(hf.release(a_table(), keep, mechanism, key=hf.NoiseKey.for_tests(1))) == ["test-key"]
        free = hf.release(a_table(), keep, mechanism, ledger=None)
        folder = free.save("free")
        assert "NO LIMIT" in (folder / "statement.html").read_text()
        assert "NO LIMIT" not in (folder / "report.html").read_text(), "it is the office's concern"
        assert (kinds(free), "no ledger" in free.card.warnings[0].text.casefold()) == (["no-limit"], True)
        recording = Ledger.open("recording.sqlite", create=True)
        open_ended = hf.release(a_table(), keep, mechanism, ledger=recording, release_id="r1")
        assert open_ended.card.warnings[0].text.startswith(NO_LIMIT)
        recording.grant("people", epsilon="9", approver="A", reason="b")
        assert kinds(hf.release(a_table(), keep, mechanism, ledger=recording, release_id="r2")) == []
        assert kinds(hf.release(a_table(), keep, hf.Suppression(), ledger=None)) == []

    def test_the_promise_is_three_short_lines_on_screens_and_whole_on_the_pages(self, run: Run) -> None:
        out = run("release", a_run("r1"), "-o", "out").out
        card = json.loads(Path("out/card.json").read_text())
        lines = promise_lines(hf.load("out").guarantee)
        assert lines[0] == "A best guess about one person is right at most 62.3 of 100 times; without the table 50."
        assert len(lines) == 3
        assert all(len(line) <= 120 for line in lines)
        assert "\n".join(lines) in out
        assert card["guarantee"]["text"] not in out
        for page in PAGES:
            html = Path("out", page).read_text()
            assert all(escape(line) in html for line in card["guarantee"]["sentences"])
            assert '<div class="full">' in html
            assert ".full { font-size" not in html


class TestPlanBeyondTheGrant:
    def test_has_its_own_exit_code(self, run: Run) -> None:
        run("ledger", "grant", "people", "--epsilon", "1", *WHO)
        assert run("plan", a_run("r1", "1")).code == 0
        said = run("plan", a_run("r2", "2"))
        assert said.code == 14
        assert "Promise    A best guess" in said.out
        assert "holdfast: The plan stands, and the release would be refused: The budget of 'people' is not enough: epsilon = 1" in said.err
        fields = json.loads(run("plan", "r2.toml", "--json").out)
        assert (fields["code"], fields["exit_code"]) == (WouldBeRefused.code, 14)
        assert fields["details"]["price"]["left"] == "1"
        assert fields["details"]["guarantee"]["per_person"]["epsilon"] == "2"

    def test_without_a_limit_the_plan_says_so(self, run: Run) -> None:
        assert run("plan", a_run("r1")).out.startswith(f"WARNING    {NO_LIMIT}")
        assert "NO LIMIT IS SET. No ledger records" in run("plan", "r1.toml", "--no-ledger").out
        assert [one["kind"] for one in json.loads(run("plan", "r1.toml", "--json").out)["warnings"]] == ["no-limit"]


class TestHouseholds:
    def test_a_household_table_of_the_same_population_in_the_same_account(self, run: Run) -> None:
        homes = 'protect = "household"'
        assert run("release", a_run("persons"), "-o", "persons").code == 0
        refused = run("release", a_run("homes", more=homes, per="household"), "-o", "homes")
        assert refused.code == LedgerProblem.exit_code
        assert "The account 'people' protects each person, not each household." in refused.err
        assert "holdfast ledger units 'people' 'household = {person = 8}'" in refused.err
        planned = run("plan", "homes.toml")
        assert (planned.code, "would be refused: The account 'people' protects" in planned.err) == (14, True)
        assert run("ledger", "units", "people", "household = {person = 8}", *WHO).code == 0
        price = (
            "Price      epsilon = 0.5 for one household; no limit is set for 'people', epsilon = 4 is spent. epsilon = 1 for one person; "
        )
        assert price in run("plan", "homes.toml").out
        made = run("release", "homes.toml", "-o", "homes").out
        assert "Charged to 'people' for person and household, ledger entry " in made
        assert run("ledger", "show").out.splitlines() == [
            "people  epsilon = 1.5 spent for one person, no limit; 2 releases",
            "people  epsilon = 4.5 spent for one household, no limit; 2 releases",
        ]
        assert run("ledger", "verify", "persons", "homes").code == 0
        assert run("ledger", "grant", "people", "--epsilon", "5", "--protect", "household", *WHO).code == 0
        said = run("plan", a_run("more"))
        assert said.code == 14
        assert "The budget of 'people' for one household is not enough: epsilon = 5 was granted, 4.5 is already spent" in said.err

    def test_an_account_with_a_blank_beside_another(self, run: Run) -> None:
        assert run("release", a_run("r1", dataset="persons"), "-o", "r1").code == 0
        said = run("release", a_run("r2", dataset="Persons "), "-o", "r2")
        assert said.code == LedgerProblem.exit_code
        assert "'Persons ' would be a new account. The ledger has 'persons', which differs only in blanks, case or letters" in said.err
        assert run("plan", "r2.toml").code == 14
