"""Releases of one data set add up, whatever their codes are; only an office can say that no person is in both, and it must say why."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import holdfast as hf
from holdfast.card.card import Card
from holdfast.display import watching
from holdfast.errors import BudgetExceeded, InvalidParameter, InvalidRun, LedgerProblem, OtherInput, VerificationFailed
from holdfast.ledger import Ledger
from holdfast.ledger.disjoint import MAX_BECAUSE, Disjoint
from holdfast.publication import pipeline
from holdfast.publication.booking import ChargedAccount
from holdfast.publication.folder import Output
from holdfast.publication.order import Order
from holdfast.runfiles.runfile import load_run
from holdfast.wording.ledger import ONE, SEVERAL, ledger_screen
from tests.exposing import exposing
from tests.publication.bookings import DATA, KEEP, SECRET, a_ledger, a_release, a_table, spent, stop_drawing
from tests.running import Run

SHIFTS = 40
LAPLACE = hf.GeneralizedLaplace(epsilon="1/2", per="person")
PEOPLE = np.arange(SHIFTS) * 7 % 23
REASON = "each person is registered in one region only"
APART = {"from": ["north"], "because": REASON}


def shifted(by: int) -> hf.Table:
    """The same people forty times over: every table lists all codes, and no two tables have a cell in common."""
    areas, groups = ([f"{letter}{number:02}" for number in range(SHIFTS)] for letter in "ag")
    return a_table(PEOPLE, hf.Universe.listed({"area": areas, "group": [groups[(place + by) % SHIFTS] for place in range(SHIFTS)]}))


def declared(ledger: Ledger | None, name: str = "south", disjoint: Any = APART, **options: Any) -> Any:
    """A release that shares no person with an earlier one, as the office says."""
    given = {"mechanism": LAPLACE, "keep": KEEP, "table": a_table(), **options}
    return exposing(hf.release, given["table"], given["keep"], given["mechanism"], ledger=ledger, release_id=name, disjoint=disjoint)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    """With one release, "north", which costs 1/2 of 3."""
    made = a_ledger(tmp_path)
    a_release(made, "north", LAPLACE)
    return made


class TestCodesProveNothing:
    @pytest.mark.ordinary("four_tables")
    @pytest.mark.parametrize("tables", [4, SHIFTS], ids=["four_tables", "forty"])
    def test_forty_shifted_tables_are_charged_forty_times(self, tmp_path: Path, tables: int) -> None:
        ledger = a_ledger(tmp_path, epsilon=str(SHIFTS))
        for by in range(tables):
            a_release(ledger, f"shift-{by}", LAPLACE, [], shifted(by))
        assert spent(ledger) == Fraction(tables, 2)

    def test_the_second_shifted_table_is_refused_where_the_budget_is_for_one(self, tmp_path: Path) -> None:
        ledger = a_ledger(tmp_path, epsilon="1/2")
        a_release(ledger, "first", LAPLACE, [hf.total()], shifted(0))
        with pytest.raises(BudgetExceeded, match=r"0\.5 is already spent, 0 is left"):
            a_release(ledger, "second", LAPLACE, [hf.total()], shifted(1))
        assert ledger.reservation(DATA, "second") is None

    def test_cells_that_one_list_of_codes_keeps_apart_add_up(self, tmp_path: Path) -> None:
        ledger = a_ledger(tmp_path)
        for name, sexes in (("one", ["F", "M"]), ("other", ["M", "F"])):
            universe = hf.Universe.listed({"area": ["a", "b"], "sex": sexes})
            a_release(ledger, name, LAPLACE, [hf.total()], a_table(np.array([1, 2]), universe))
        assert spent(ledger) == 1

    @pytest.mark.parametrize("after", [["B", "B", "A", "A"], ["C", "C", "D", "D"]], ids=["exchanged", "new"])
    def test_a_vintage_with_new_codes_adds_up(self, tmp_path: Path, after: list[str]) -> None:
        """A territorial reform: the same people in the same towns, which now belong to other districts."""
        ledger = a_ledger(tmp_path)
        for vintage, districts in enumerate((["A", "A", "B", "B"], after)):
            universe = hf.Universe.listed({"district": districts, "town": ["t1", "t2", "t3", "t4"]})
            a_release(ledger, f"vintage-{vintage}", LAPLACE, [hf.total()], a_table(universe=universe))
            assert spent(ledger) == Fraction(vintage + 1, 2)


class TestDeclared:
    def test_the_larger_charge_counts_and_every_page_says_why(self, ledger: Ledger, tmp_path: Path) -> None:
        made = declared(ledger)
        assert spent(ledger) == Fraction(1, 2)
        folder = made.save(tmp_path / "out")
        card = json.loads((folder / "card.json").read_text())
        assert (card["schema_version"], card["release"]["disjoint"]) == ("5.0", APART)
        for page in ("statement.html", "report.html"):
            text = (folder / page).read_text(encoding="utf-8")
            assert "no person is both in this table and in that of the earlier release <bdi>north</bdi>" in text
            assert f"Reason given: <bdi>{REASON}</bdi>" in text
        held = ledger.reservation(DATA, "south")
        assert held is not None
        assert held.facts.to_fields()["disjoint"] == APART
        assert f"\nDisjoint  south from north: {REASON}\n" in ledger_screen(ledger.account(DATA), ledger.last_event())
        hf.verify(folder)
        assert ledger.verify([held.head], [(held.head, APART)]) == []

    def test_without_a_declaration_no_page_speaks_of_one(self, ledger: Ledger, tmp_path: Path) -> None:
        folder = declared(ledger, disjoint=None).save(tmp_path / "out")
        assert spent(ledger) == 1
        assert json.loads((folder / "card.json").read_text())["release"]["disjoint"] is None
        assert "Reason given" not in (folder / "statement.html").read_text() + (folder / "report.html").read_text()

    def test_a_long_reason_stands_whole_on_the_statement(self, ledger: Ledger, tmp_path: Path) -> None:
        reason = ('<script>nobody</script> & "no one" lives in two regions at once, ' * 6)[:300].strip()
        folder = declared(ledger, disjoint={"from": ["north"], "because": reason}).save(tmp_path / "out")
        page = (folder / "statement.html").read_text(encoding="utf-8")
        escaped = reason.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&#34;")
        assert f"Reason given: <bdi>{escaped}</bdi>" in page
        hf.verify(folder)

    def test_many_names_are_cut_on_pages_and_whole_on_the_card(self, tmp_path: Path) -> None:
        ledger = a_ledger(tmp_path)
        names = [f"part-{number}" for number in range(7)]
        for place, name in enumerate(names):
            declared(ledger, name, {"from": names[:place], "because": REASON} if place else None)
        folder = declared(ledger, "last", {"from": names, "because": REASON}).save(tmp_path / "out")
        assert spent(ledger) == Fraction(1, 2)
        assert json.loads((folder / "card.json").read_text())["release"]["disjoint"]["from"] == names
        page = (folder / "statement.html").read_text(encoding="utf-8")
        assert "<bdi>part-4</bdi>; and 2 more, listed in card.json" in page
        assert SEVERAL in page
        assert "<bdi>part-5</bdi>" not in page

    def test_the_plan_shows_it(self) -> None:
        plan = hf.plan(a_table(), KEEP, LAPLACE, disjoint=APART)
        assert plan.to_fields()["disjoint"] == APART
        assert f"It is declared that no person is both in this table and in that of north. {ONE}" in str(plan)
        assert str(plan).endswith(f"Reason given: {REASON}")
        assert "Disjoint" not in str(hf.plan(a_table(), KEEP, LAPLACE))

    def test_no_page_promises_that_the_larger_charge_counts(self, ledger: Ledger, tmp_path: Path) -> None:
        """A third release that overlaps both connects them, and all three add up: what the pages said before that is still true."""
        folder = declared(ledger).save(tmp_path / "out")
        a_release(ledger, "both", LAPLACE)
        assert spent(ledger) == Fraction(3, 2)
        pages = [(folder / name).read_text(encoding="utf-8") for name in ("statement.html", "report.html")]
        for text in (*pages, str(hf.plan(a_table(), KEEP, LAPLACE, disjoint=APART))):
            assert ONE in text
            assert "larger charge" not in text
        assert "larger charge" not in str(Card.model_json_schema())

    def test_several_releases_are_spoken_of_as_several(self) -> None:
        plan = hf.plan(a_table(), KEEP, LAPLACE, disjoint={"from": ["north", "west"], "because": REASON})
        assert f"in this table and in those of north, west. {SEVERAL}" in str(plan)

    def test_joint_exposure_does_not_believe_it(self, tmp_path: Path) -> None:
        """Kept totals that fix a cell together are told, whatever is declared: an untrue declaration must not hide it."""
        said: list[Any] = []
        for place, disjoint in enumerate((None, APART)):
            (tmp_path / str(place)).mkdir()
            ledger = a_ledger(tmp_path / str(place))
            a_release(ledger, "north", LAPLACE, [hf.margin("area")])
            declared(ledger, "south", disjoint, keep=[hf.subset("sex", ["F"], by=["area"])])
            held = ledger.reservation(DATA, "south")
            assert held is not None
            said.append(held.facts.exposed)
        assert said[0] == said[1]
        assert said[0]["together"]["fixed"]

    def test_a_resumed_release_keeps_its_declaration(self, ledger: Ledger, tmp_path: Path) -> None:
        account, plan = ChargedAccount(ledger, DATA, SECRET), hf.plan(a_table(), KEEP, LAPLACE)

        def run(because: str | None, **options: Any) -> None:
            order = Order("south", disjoint=None if because is None else Disjoint(("north",), because))
            pipeline.carry_out(plan, a_table(), order, Output(tmp_path / "out", ("csv",)), account, **options)

        with pytest.raises(KeyboardInterrupt), watching(stop_drawing):
            run(REASON)
        for other in (None, "another reason"):
            with pytest.raises(OtherInput):
                run(other, resume=True)
        run(REASON, resume=True)
        assert json.loads((tmp_path / "out" / "card.json").read_text())["release"]["disjoint"] == APART
        assert spent(ledger) == Fraction(1, 2)


class TestRefused:
    def test_releases_that_this_account_does_not_have(self, ledger: Ledger) -> None:
        ledger.grant("elsewhere", kind="pure", epsilon="1", approver="A. Chief", reason="a test")
        hf.release(a_table(), KEEP, LAPLACE, ledger=ledger, release_id="abroad", dataset="elsewhere")
        for name in ("abroad", "nothing"):
            with pytest.raises(LedgerProblem, match=f"'{name}' is not in the account of '{DATA}'"):
                declared(ledger, disjoint={"from": ["north", name], "because": REASON})
        assert spent(ledger) == Fraction(1, 2)

    def test_pure_noise_in_l2(self, ledger: Ledger) -> None:
        """Refused before samplers are prepared for it."""
        in_l2 = hf.GeneralizedLaplace(epsilon="1/2", norm="l2", per="distance")
        with pytest.raises(LedgerProblem, match="This release cannot be declared disjoint from others: its promise is pure and not in l1"):
            declared(ledger, mechanism=in_l2, keep=[hf.total()])
        assert ledger.reservation(DATA, "south") is None

    def test_gaussian_noise_can_be_declared_beside_laplace_noise(self, tmp_path: Path) -> None:
        ledger = a_ledger(tmp_path, "zcdp", rho="1")
        a_release(ledger, "north", LAPLACE)  # rho = 1/8
        declared(ledger, mechanism=hf.GeneralizedGaussian(rho="1/10", per="person"))
        assert spent(ledger) == Fraction(1, 8)

    def test_answers(self, ledger: Ledger) -> None:
        hf.answer(
            [1.5, 2.5], sensitivity=1, mechanism=hf.ProjectedLaplace(epsilon="1/2"), ledger=ledger, release_id="answers", dataset=DATA
        )
        with pytest.raises(LedgerProblem, match="'answers' cannot be declared disjoint: it publishes real-valued answers"):
            declared(ledger, disjoint={"from": ["answers"], "because": REASON})

    def test_where_there_is_no_ledger(self) -> None:
        with pytest.raises(InvalidParameter, match="this release is recorded in none"):
            declared(None)

    @pytest.mark.parametrize(
        "wrong",
        [
            {"from": [], "because": REASON},
            {"from": "north", "because": REASON},
            {"from": ["north", "north"], "because": REASON},
            {"from": ["north"]},
            {"because": REASON},
            {**APART, "more": 1},
            {"from": [1], "because": REASON},
            {"from": ["south"], "because": REASON},
            {"from": [f"r{number}" for number in range(501)], "because": REASON},
            ["north"],
            *(
                {"from": ["north"], "because": text}
                for text in ("", "  ", "...", "a\nb", "a\x1bb", "a\u202eb", "a\u2028b", "a\0b", "\ud800a", 7)
            ),
            {"from": ["north"], "because": "x" * (MAX_BECAUSE + 1)},
        ],
    )
    def test_what_is_no_declaration(self, ledger: Ledger, wrong: Any) -> None:
        with pytest.raises(InvalidParameter):
            declared(ledger, disjoint=wrong)
        assert ledger.reservation(DATA, "south") is None

    def test_a_reason_may_be_as_long_as_is_said_and_in_any_language(self) -> None:
        for reason in ("x" * MAX_BECAUSE, "هیچ\u200cکس در هر دو نیست", "同じ人は二つの地域にいない"):
            assert Disjoint.read({"from": ["north"], "because": reason}).because == reason


class TestCards:
    @pytest.mark.parametrize("said", [None, {"from": ["north"], "because": "another reason"}, {"from": ["west"], "because": REASON}])
    def test_ledger_verify_compares_what_the_card_declares(self, ledger: Ledger, tmp_path: Path, run: Run, said: Any) -> None:
        path = declared(ledger).save(tmp_path / "out") / "card.json"
        check = ("ledger", "verify", str(path), "--ledger", str(tmp_path / "ledger.db"))
        assert run(*check).code == 0
        card = json.loads(path.read_text())
        card["release"]["disjoint"] = said
        path.write_text(json.dumps(card))
        found = run(*check)
        assert found.code != 0
        assert "The card of 'south' declares something else as disjoint than event" in found.err

    def test_a_card_without_a_ledger_cannot_declare_anything(self, tmp_path: Path) -> None:
        folder = hf.release(a_table(), KEEP, LAPLACE, release_id="south", ledger=None).save(tmp_path / "out")
        card = json.loads((folder / "card.json").read_text())
        card["release"]["disjoint"] = APART
        (folder / "card.json").write_text(json.dumps(card, indent=2, ensure_ascii=False) + "\n")
        with pytest.raises(VerificationFailed, match=r"release\.disjoint names releases of a ledger; release\.ledger names none"):
            hf.verify(folder)


RUN = """\
[table]
source = "towns.csv"
cells = ["area", "sex"]
count = "people"
public = true
name = "residents"
[keep]
margins = [["area"]]
[release]
id = "ID"
mechanism = "generalized-laplace"
epsilon = "1/2"
per = "person"
"""
DECLARATION = f"""\
[release.disjoint]
from = ["north"]
because = "{REASON}"
"""


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with run files of two releases, the second of which is declared disjoint from the first."""
    (tmp_path / "towns.csv").write_text("area,sex,people\na,F,5\na,M,3\nb,F,2\nb,M,9\n")
    (tmp_path / "north.toml").write_text(RUN.replace("ID", "north"))
    (tmp_path / "south.toml").write_text(RUN.replace("ID", "south") + DECLARATION)
    monkeypatch.chdir(tmp_path)
    return tmp_path


class TestRunFiles:
    def test_from_the_plan_to_the_ledger(self, work: Path, run: Run) -> None:
        refused = run("plan", "south.toml")
        assert "would be refused: The release 'north' is not in the account of 'residents'" in refused.err
        assert run("release", "south.toml", "-o", "two").code != 0
        assert [path.name for path in work.iterdir() if "ledger" in path.name] == []  # what is refused leaves nothing behind
        assert run("release", "north.toml", "-o", "one").code == 0
        assert "Disjoint   It is declared that no person is both in this table and in that of north. " in run("plan", "south.toml").out
        planned = json.loads(run("plan", "south.toml", "--json").out)
        assert (planned["disjoint"], planned["price"]["problem"]) == (APART, None)
        assert run("release", "south.toml", "-o", "two").code == 0
        shown = json.loads(run("ledger", "show", "residents", "--json").out)
        assert (shown["spent"], [release["disjoint"] for release in shown["releases"]]) == ("1/2", [None, APART])
        assert run("ledger", "verify", "one", "two").code == 0
        assert run("verify", "two").code == 0

    def test_without_a_ledger_nothing_is_drawn(self, work: Path, run: Run) -> None:
        found = run("release", "south.toml", "-o", "out", "--no-ledger")
        assert found.code != 0
        assert "this release is recorded in none" in found.err
        assert not (work / "out").exists()

    @pytest.mark.parametrize(
        ("old", "new", "message"),
        [
            (f'because = "{REASON}"\n', "", r"release\.disjoint\.because: this key is missing\. Write because ="),
            ('from = ["north"]\n', "", r"release\.disjoint\.from: this key is missing\. Write from ="),
            ('["north"]', "[]", r"release\.disjoint\.from: must not be empty"),
            ('["north"]', '"north"', r"release\.disjoint\.from: must be a list"),
            ('["north"]', '["north", "north"]', r"release\.disjoint\.from: .*twice"),
            ('["north"]', '["south"]', r'release\.disjoint\.from: "south" is this release itself'),
            (REASON, " ", r"release\.disjoint\.because: must say in words why"),
            (REASON, "a\\u202eb", r"release\.disjoint\.because: must say in words why"),
            (REASON, "x" * (MAX_BECAUSE + 1), r"release\.disjoint\.because: must say in words why"),
            (
                "because",
                "becuase",
                r"release\.disjoint\.becuase: there is no such key\. Did you mean because\?.* Keys of release\.disjoint: from, because",
            ),
            (DECLARATION, "disjoint = true\n", r"release\.disjoint: must be a table"),
        ],
    )
    def test_what_is_wrong_is_said(self, work: Path, old: str, new: str, message: str) -> None:
        text = (work / "south.toml").read_text()
        assert old in text
        (work / "south.toml").write_text(text.replace(old, new))
        with pytest.raises(InvalidRun, match=message):
            load_run(work / "south.toml")

    def test_answers_cannot_be_declared(self, work: Path) -> None:
        text = (work / "south.toml").read_text().replace("[table]", "[answer]").replace("count =", "value =")
        text = text.replace("public = true", 'public = true\nsensitivity = "1"').replace("generalized-laplace", "projected-laplace")
        (work / "south.toml").write_text(text)
        with pytest.raises(InvalidRun, match=r"release\.disjoint: real-valued answers cannot be declared disjoint"):
            load_run(work / "south.toml")
