"""A budget is said once and as it was approved: on every screen and page first what was asked for, then what it comes to, and why."""

from __future__ import annotations

import json
from dataclasses import asdict
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import holdfast as hf
from holdfast.channels import Channel, Facts
from holdfast.errors import InvalidParameter, InvalidRun
from holdfast.exposure.facts import ExposedAlone
from holdfast.laws import Rounded
from holdfast.ledger import Ledger
from holdfast.mechanisms.mechanism import promise
from holdfast.privacy import zcdp_delta
from holdfast.privacy.parameters import Asked
from holdfast.runfiles.runfile import load_run
from holdfast.wording.budget import budget_rows
from holdfast.wording.exposure import VALUES_LATER
from holdfast.wording.ledger import exposed_text, ledger_screen

PAIR = hf.GeneralizedGaussian(epsilon=1, delta="1e-9", per="person")
ASKED = [
    (PAIR, "epsilon = 1, delta = 1e-9 for one person who changes cell"),
    (hf.GeneralizedLaplace(epsilon="1/4", per="distance"), "epsilon = 0.25 for each unit of l1 distance between two tables"),
    (hf.GeneralizedLaplace(epsilon="1/4", norm="l2", per="person"), "epsilon = 0.25 for one person who changes cell"),
    (hf.GeneralizedGaussian(rho="1/8", per="distance"), "rho = 0.125 for each unit of squared l2 distance between two tables"),
    (
        hf.GeneralizedGaussian(epsilon=1, delta="1e-6", per="distance"),
        "epsilon = 1, delta = 1e-6 for each unit of l2 distance between two tables",
    ),
    (hf.GeneralizedGaussian(sigma_squared=4), "noise of sigma_squared = 4"),
    (hf.RoundedProjection(epsilon="1/2", per="person"), "epsilon = 0.5 for one person who changes cell"),
    (hf.Conditional(epsilon="1/2", per="person"), "epsilon = 0.5 for one person who changes cell"),
    (hf.Conditional(epsilon="1/4", per="distance"), "epsilon = 0.25 for each unit of l1 distance between two tables"),
]
ASKED_OF_ANSWERS = [
    (hf.ProjectedLaplace(epsilon="1/2"), "epsilon = 0.5 for one person whose data change"),
    (hf.ExtendedLaplace(epsilon="1/2"), "epsilon = 0.5 for one person whose data change"),
    (hf.ProjectedGaussian(rho="1/8"), "rho = 0.125 for one person whose data change"),
    (hf.ExtendedGaussian(epsilon="1", delta="1e-6"), "epsilon = 1, delta = 1e-6 for one person whose data change"),
]
GRID = [hf.margin("a"), hf.margin("b")]


def a_table(**options: Any) -> hf.Table:
    data = pa.table({"a": ["x", "x", "y", "y"], "b": ["1", "2", "1", "2"], "n": [5, 6, 7, 8]})
    return hf.Table.from_counts(data, cells=["a", "b"], count="n", name="towns", **options)


class TestAskedFor:
    @pytest.mark.parametrize(("mechanism", "words"), ASKED, ids=[repr(mechanism) for mechanism, _ in ASKED])
    def test_comes_first_everywhere(self, mechanism: Any, words: str, tmp_path: Path) -> None:
        release = hf.release(a_table(), [hf.margin("a")], mechanism, key=hf.NoiseKey.for_tests(1), release_id="r1")
        plan, card = release.plan, release.card.guarantee
        lines = str(plan).splitlines()
        assert f"Budget     requested: {words}" in lines
        assert lines[-3].startswith("Promise    A best guess about ")
        assert lines[-2].startswith(f"           Requested: {words}")
        assert lines[-1].startswith("           Not protected: kept totals and what follows from them, ")
        assert plan.to_fields()["guarantee"]["asked"] == {**mechanism.asked.to_fields(), "text": words}
        assert release.card.to_dict()["guarantee"]["asked"] == plan.to_fields()["guarantee"]["asked"]
        assert card.text.startswith(f"Requested: {words}. ")
        assert card.why in card.text
        assert repr(release.guarantee).startswith(f"Guarantee(asked: {mechanism.asked}; one person: ")
        folder = release.save(tmp_path / "out")
        statement, report = ((folder / page).read_text() for page in ("statement.html", "report.html"))
        assert statement.index(">The budget<") < statement.index(">What it means<") < statement.index(">What is exact<")
        promise = report[report.index("The promise in numbers") :]
        on_pages = words.replace(" = ", " ").replace("_", " ")
        assert promise.index("As requested") < promise.index(on_pages) < promise.index("Each unit of")
        if "for each unit" in on_pages:
            assert on_pages[on_pages.index("for each unit") :] in statement, (
                "an epsilon with its delta is asked for a distance, not its square"
            )
        said_before = "for one person" in words and mechanism is not PAIR  # a pure promise, asked for one person: just these numbers
        assert (">One person<" in promise) is not said_before
        assert any(line.strip().startswith("one person: ") for line in lines) is not said_before

    @pytest.mark.parametrize(("mechanism", "words"), ASKED_OF_ANSWERS, ids=[repr(mechanism) for mechanism, _ in ASKED_OF_ANSWERS])
    def test_comes_first_for_answers_too(self, mechanism: Any, words: str) -> None:
        release = hf.answer([1, 2], keep=[[1, 1]], sensitivity=2, mechanism=mechanism, key=hf.NoiseKey.for_tests(1))
        assert f"Budget     requested: {words}" in str(release.plan).splitlines()
        assert release.card.guarantee.text.startswith(f"Requested: {words}. ")

    def test_no_mechanism_can_forget_it(self) -> None:
        """A new mechanism whose guarantee says nothing of it: the plan, the card and the ledger have it all the same."""

        class Forgetful(hf.RoundedProjection):
            def make_channel(self, facts: Facts) -> Channel:
                return Channel(facts, Rounded(Fraction(1, 8)), promise(facts, "pure", "l1", epsilon=Fraction(1, 8)))

        asked = Asked(per="person", epsilon=Fraction(1, 4))
        assert hf.plan(a_table(), GRID, Forgetful(epsilon="1/4")).guarantee.asked == asked

    def test_fields_are_exact(self) -> None:
        asked = hf.GeneralizedGaussian(epsilon="1/3", delta="1/7", per="person").asked
        assert asked is not None
        assert asked.to_fields() == {"per": "person", "parameters": {"epsilon": "1/3", "delta": "1/7"}}
        assert hf.Suppression().asked is None

    @pytest.mark.parametrize("m", [1, 3])
    def test_a_pair_for_one_person_is_what_is_promised(self, m: int) -> None:
        """A request of epsilon 1, delta 1e-9 was printed as 1.06591, 1e-10."""
        guarantee = hf.plan(a_table(max_records=m), [hf.margin("a")], PAIR).guarantee
        person = guarantee.per_person()
        assert person is not None
        assert (person.epsilon, person.delta) == (Fraction(1), Fraction(1, 10**9))
        assert person.rho is not None
        assert zcdp_delta(person.rho, 1) <= Fraction(1, 10**9), "it is proved by the rho of the same pair"
        assert guarantee.per_distance().delta == Fraction(1, 10**9)
        other = guarantee.per_person(delta="1e-10")
        assert other is not None
        assert 1 < other.epsilon < 2, "another delta than the one asked for has its own epsilon"

    def test_it_is_a_promise_for_that_pair_alone(self) -> None:
        """Where no person can change alone, the smallest secret is further away and costs more than was asked for."""
        guarantee = hf.plan(a_table(), GRID, PAIR).guarantee
        assert guarantee.per_person() is None
        assert guarantee.per_smallest_secret().epsilon > 1
        assert guarantee.cost(2).epsilon == 1

    def test_then_person_unit_and_smallest_secret_where_they_differ(self) -> None:
        def rows(keep: list[Any], **options: Any) -> dict[str, str]:
            return dict(budget_rows(hf.plan(a_table(**options), keep, hf.GeneralizedLaplace(epsilon="1/4", per="distance")).guarantee))

        asked = {"requested": "epsilon = 0.25 for each unit of l1 distance between two tables"}
        unit = {"one unit of l1 distance": "epsilon = 0.25"}
        assert rows([hf.margin("a")]) == {**asked, "one person": "epsilon = 0.5", **unit}
        assert list(rows([hf.margin("a")])) == ["requested", "one person", "one unit of l1 distance"]
        alone = {"one person": "no person can change alone", **unit, "smallest secret, 4 in l1 distance": "epsilon = 1"}
        assert rows(GRID) == {**asked, **alone}
        records = {"one person": "epsilon = 1.5", **unit, "smallest secret, 2 in l1 distance": "epsilon = 0.5"}
        assert rows([hf.margin("a")], max_records=3) == {**asked, **records}

    @pytest.mark.parametrize(
        ("keep", "options", "why"),
        [
            ([hf.margin("a")], {}, "One person who changes cell lowers one count and raises another: 2 in l1 distance."),
            (GRID, {}, "One person who changes cell would be 2 in l1 distance; the smallest secret is 4."),
            (
                [hf.margin("a")],
                {"max_records": 3},
                "One person who changes cell with 3 records lowers one count and raises another: 6 in l1 distance; "
                "the smallest secret is 2.",
            ),
            (
                [hf.subset("a", ["x"], by=["b"]), hf.subset("a = 'y' and b = 1")],
                {},
                "One person can only come or go, in a cell under no kept total: 1 in l1 distance.",
            ),
        ],
    )
    def test_one_sentence_says_why(self, keep: list[Any], options: dict[str, Any], why: str) -> None:
        fields = hf.plan(a_table(**options), keep, hf.GeneralizedLaplace(epsilon="1/4", per="distance")).to_fields()["guarantee"]
        assert fields["why"] == why
        assert why in fields["text"]

    def test_the_ledger_shows_it(self, tmp_path: Path) -> None:
        ledger = Ledger.open(tmp_path / "ledger.sqlite", create=True, needs_grants=True)
        ledger.grant("towns", kind="approximate", epsilon=3, delta="1e-9", approver="A. Chief", reason="the census")
        hf.release(a_table(), [hf.margin("a")], PAIR, ledger=ledger, release_id="r1").save(tmp_path / "out")
        account = ledger.account("towns")
        (reservation,) = account.releases.values()
        assert reservation.facts.to_fields()["asked"] == {"per": "person", "parameters": {"epsilon": "1", "delta": "1e-9"}}
        (line,) = (line for line in ledger_screen(account, ledger.last_event()).splitlines() if "r1" in line and "published" in line)
        assert line.index("epsilon = 1, delta = 1e-9 per person: rho = ") > 0, line


class TestApproval:
    def test_date_office_and_approver_stand_on_card_and_statement(self, tmp_path: Path) -> None:
        said: dict[str, Any] = {"date": "2030-04-01", "office": "Office of <Towns>", "approver": "A. Chief, Director"}
        release = hf.release(
            a_table(), [hf.margin("a")], hf.GeneralizedLaplace(epsilon=1, per="distance"), release_id="r1", **said, ledger=None
        )
        folder = release.save(tmp_path / "out")
        card = json.loads((folder / "card.json").read_text())["release"]
        assert {name: card[name] for name in said} == said
        page = (folder / "statement.html").read_text()
        assert all(text in page for text in ("2030-04-01", "Office of &lt;Towns&gt;", "approved by <bdi>A. Chief, Director</bdi>"))
        assert hf.verify(folder)

    def test_nothing_is_made_up(self) -> None:
        card = hf.release(a_table(), [hf.margin("a")], hf.GeneralizedLaplace(epsilon=1, per="distance"), ledger=None).card.release
        assert (card.date, card.office, card.approver) == (None, None, None)

    @pytest.mark.parametrize("value", ["", " ", "two\nlines", "x" * 201, 3])
    @pytest.mark.parametrize("name", ["office", "approver"])
    def test_what_fits_on_no_line_is_refused_before_anything_is_drawn(self, name: str, value: Any, tmp_path: Path) -> None:
        with pytest.raises(InvalidParameter, match=name):
            hf.release(a_table(), [hf.margin("a")], hf.GeneralizedLaplace(epsilon=1, per="distance"), **{name: value})
        (tmp_path / "t.csv").write_text("a,n\nx,1\ny,2\n")
        (tmp_path / "run.toml").write_text(RUN + f"{name} = {json.dumps(value)}\n")
        with pytest.raises(InvalidRun, match=rf"release\.{name}: must be a text on one line"):
            load_run(tmp_path / "run.toml")

    def test_in_a_run_file(self, tmp_path: Path) -> None:
        (tmp_path / "t.csv").write_text("a,n\nx,1\ny,2\n")
        (tmp_path / "run.toml").write_text(RUN + 'date = 2030-04-01\noffice = "Office"\napprover = "A. Chief"\n')
        run = load_run(tmp_path / "run.toml")
        assert (run.date, run.office, run.approver) == ("2030-04-01", "Office", "A. Chief")


RUN = """\
[table]
source = "t.csv"
cells = ["a"]
count = "n"
[keep]
[release]
id = "r1"
mechanism = "suppression"
"""


class TestBeforeTheDraw:
    """Nothing is said to be hidden before the values of the totals are public: a total of zero pins every cell under it."""

    ZERO = pa.table({"a": ["x", "x", "y", "y"], "b": ["1", "2", "1", "2"], "n": [0, 0, 7, 8]})

    def test_no_claim_that_no_cell_is_published_exactly(self, tmp_path: Path) -> None:
        table = hf.Table.from_counts(self.ZERO, cells=["a", "b"], count="n", name="towns")
        keep, mechanism = [hf.margin("a")], hf.GeneralizedLaplace(epsilon="1/4", per="distance")
        plan = hf.plan(table, keep, mechanism)
        before = plan.to_fields()["exposed"]["text"]
        assert before == f"No cell is fixed by the structure of the kept totals. {VALUES_LATER}"
        ledger = Ledger.open(tmp_path / "ledger.sqlite", create=True, needs_grants=True)
        ledger.grant("towns", kind="pure", epsilon=3, approver="A. Chief", reason="the census")
        release = hf.release(table, keep, mechanism, ledger=ledger, release_id="r1")
        release.save(tmp_path / "out")
        assert release.card.exposed.text.startswith("2 cells follow from the published totals")
        account = ledger.account("towns")
        (reservation,) = account.releases.values()
        exposed: Any = reservation.facts.exposed
        assert exposed["alone"]["values_known"] is False
        text = exposed_text(account.releases.values())
        assert text == f"r1: {before}"
        for said in (str(plan), before, text, ledger_screen(account, ledger.last_event())):
            assert "No cell is published exactly" not in said

    def test_where_nothing_is_kept_nothing_is_open(self) -> None:
        assert (
            hf.plan(a_table(), [], hf.GeneralizedLaplace(epsilon=1, per="distance")).to_fields()["exposed"]["text"]
            == "No cell is published exactly."
        )

    def test_published_totals_close_it(self) -> None:
        plan = hf.plan(a_table(), [hf.margin("a")], hf.GeneralizedLaplace(epsilon=1, per="distance"), published_totals=[0, 15])
        assert plan.to_fields()["exposed"]["text"].startswith("2 cells follow from the published totals")
        plan = hf.plan(a_table(), [hf.margin("a")], hf.GeneralizedLaplace(epsilon=1, per="distance"), published_totals=[11, 15])
        assert plan.to_fields()["exposed"]["text"] == "No cell is published exactly."

    def test_entries_of_an_older_ledger_are_open(self) -> None:
        facts = hf.plan(a_table(), [hf.margin("a")], hf.GeneralizedLaplace(epsilon=1, per="distance")).exposure.facts()
        older = {name: value for name, value in asdict(facts).items() if name != "values_known"}
        assert ExposedAlone.from_fields(older) == facts
        assert not facts.values_known


def test_numbers_of_a_promise_have_three_digits_rounded_up_and_are_the_same_everywhere(tmp_path: Path) -> None:
    """The exact one stands in the fields of the card only."""
    release = hf.release(
        a_table(), [hf.margin("a")], hf.GeneralizedGaussian(rho="1/10", per="person"), key=hf.NoiseKey.for_tests(1), release_id="r1"
    )
    card = release.card.guarantee
    assert card.per_person is not None
    exact = str(card.per_person.epsilon)
    assert exact.startswith("2.88182"), "of rho 1/10 at delta 1e-10"
    folder = release.save(tmp_path / "out")
    said = {"terminal": str(release.plan), "card": card.text, "list": " ".join(card.sentences)}
    said |= {page: (folder / f"{page}.html").read_text(encoding="utf-8") for page in ("statement", "report")}
    for place, text in said.items():
        assert "2.89" in text, place
        assert "2.881" not in text, place
