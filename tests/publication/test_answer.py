"""Real-valued answers on a grid, from the call to the folder and back."""

from __future__ import annotations

import csv
import json
import math
import re
import warnings
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import holdfast as hf
from holdfast.errors import (
    HoldfastWarning,
    InvalidParameter,
    NothingLeft,
    UnreadableInput,
    VerificationFailed,
)
from holdfast.report.page import cost_rows
from holdfast.report.statement import statement_html
from holdfast.subspace import Sensitivities
from holdfast.tables.answers import exact_value, read_answers
from holdfast.tables.measure import AnswerGrid, read_step
from holdfast.tables.text_files import Reading
from holdfast.wording.budget import budget_rows
from tests.exposing import exposing
from tests.publication.twin_reports import with_the_numbers_of
from tests.snapshot_files import Snapshot

KEY = "answers"
BITS = 24
"""Steps of 2^-24 are the finest of two's powers that a grid has."""
STEPS = st.builds(lambda decimals, units: Fraction(units, 10**decimals), st.integers(0, 24), st.integers(1, 10**10)) | st.builds(
    lambda bits: Fraction(1, 2**bits), st.integers(0, BITS)
)
MECHANISMS = [
    hf.ProjectedLaplace(epsilon="1"),
    hf.ExtendedLaplace(epsilon="1/2"),
    hf.ProjectedGaussian(rho="1/8"),
    hf.ProjectedGaussian(epsilon="1", delta="1e-6"),
    hf.ExtendedGaussian(epsilon="1", delta="1e-6"),
]
UNIVERSE = hf.Universe.product({"group": ["a", "b", "c"], "hour": ["1", "2"]})


def answered(values: Any = (0.5, -1.25, 3, 0.125, 2, -4), **given_: Any) -> Any:
    given_ = {"keep": [[1] * 6], "sensitivity": "2", "mechanism": MECHANISMS[0], "release_id": "answers", **given_}
    return exposing(hf.answer, list(values), key=hf.NoiseKey.for_tests(KEY), **given_)


class TestGrid:
    @given(STEPS, st.integers(-(2**62), 2**62))
    def test_text_is_the_value_exactly_and_reads_back(self, step: Fraction, steps: int) -> None:
        grid = AnswerGrid(step)
        text = grid.text(steps)
        assert Fraction(text) == steps * step
        assert grid.steps(text) == steps

    @given(STEPS, st.integers(-(2**62), 2**62))
    def test_doubles_are_the_nearest(self, step: Fraction, steps: int) -> None:
        assert AnswerGrid(step).floats(np.array([steps, 1])).tolist() == [float(steps * step), float(step)]

    @given(STEPS, st.lists(st.integers(-(2**62) + 1, 2**62 - 1), max_size=5))
    def test_columns_read_back(self, step: Fraction, steps: list[int]) -> None:
        grid = AnswerGrid(step)
        column = grid.column(np.array(steps, dtype=np.int64))
        assert grid.read_column(column).to_pylist() == steps
        assert [grid.steps(f"{value:f}") for value in column.to_pylist()] == steps

    @pytest.mark.parametrize("text", ["0.3", "1", "1.0", "1.000", "x", "0.25 ", "1e999999999", "1/4", "9" * 5000])
    def test_other_texts_are_no_values_of_the_grid(self, text: str) -> None:
        with pytest.raises(ValueError, match="not a value"):
            AnswerGrid(Fraction(1, 4)).steps(text)

    def test_one_sensitivity(self) -> None:
        with pytest.raises(InvalidParameter, match="one sensitivity"):
            AnswerGrid(Fraction(1, 2), Fraction(1), Fraction(1))

    @pytest.mark.parametrize(
        ("given_", "message"),
        [
            ({"l1": 0.5}, "l1 must be an exact number above zero"),
            ({"l1": "1"}, "l1 must be an exact number above zero"),
            ({"l1": Fraction(0)}, "l1 must be an exact number above zero"),
            ({"l2_squared": Fraction(-1)}, "l2_squared must be an exact number above zero"),
            ({"l1": True}, "l1 must be an exact number above zero"),
            ({"neighbours": "x"}, "neighbours must be one of 'declared'"),
            ({"on_grid": "no"}, "on_grid must be True or False"),
        ],
        ids=str,
    )
    def test_a_grid_is_checked(self, given_: dict[str, Any], message: str) -> None:
        with pytest.raises(InvalidParameter, match=message):
            AnswerGrid(Fraction(1, 4), **given_)

    def test_whole_numbers_are_fractions(self) -> None:
        assert isinstance(AnswerGrid(Fraction(1, 4), l1=1).l1, Fraction)  # type: ignore[arg-type]

    @pytest.mark.parametrize("step", [-1, 0, True, 0.5, "1/3", "2^-3", "1e-25", 10**19, Fraction(1, 2**25), None])
    def test_other_steps_are_refused(self, step: Any) -> None:
        with pytest.raises(InvalidParameter, match="step must be a decimal above zero"):
            AnswerGrid(step)

    @pytest.mark.parametrize("step", ["0.01", "1e-24", 5, "1/1024", "0.25", Fraction(1, 16777216), 10**18])
    def test_decimal_fractions_are_steps(self, step: Any) -> None:
        assert AnswerGrid(step).step == read_step(step) == Fraction(step)


class TestTheWholeWay:
    @pytest.mark.parametrize("mechanism", MECHANISMS, ids=str)
    def test_saved_verified_and_exact(self, mechanism: Any, tmp_path: Path) -> None:
        release = answered(mechanism=mechanism, step="1/4096")
        folder = release.save(tmp_path / "out")
        hf.verify(folder)
        with open(folder / "table.csv", newline="") as file:
            written = [Fraction(row["value"]) for row in csv.DictReader(file)]
        assert sum(written) == Fraction(3, 8)  # of the true answers
        assert all((value * 2**12).denominator == 1 for value in written)
        assert [float(value) for value in written] == release.table.values.tolist()
        with open(folder / "kept.csv", newline="") as file:
            assert [row["total"] for row in csv.DictReader(file)] == ["0.375000000000"]

    def test_the_card_says_grid_reach_and_relation(self) -> None:
        card = answered(step="1/4096").card
        assert card.to_dict()["table"]["grid"] == {
            "step": "1/4096",
            "l1": "2",
            "l2_squared": None,
            "neighbours": "declared",
            "on_grid": False,
            "round_totals": False,
        }
        answers = card.guarantee.answers
        assert (answers.norm, answers.sensitivity, answers.relation) == ("l1", "2", "same invariants")
        assert answered(mechanism=MECHANISMS[2], step="1/4096").card.guarantee.answers.norm == "l2 squared"
        assert 2 * 2**12 < answers.reach < 2 * 2**12 + 100
        assert Fraction(card.guarantee.parameters["epsilon"]) * answers.reach == 1
        assert "[GGY22]" in card.guarantee.text

    @pytest.mark.parametrize("given_", [{}, {"mechanism": MECHANISMS[2]}], ids=["pure", "zcdp"])
    def test_the_promise_is_in_plain_words_with_the_reference_at_its_end(self, given_: dict[str, Any]) -> None:
        words = answered(step="1/4096", **given_).card.guarantee.text
        assert "If a person's data change an invariant, everyone sees that it changed. " in words
        assert words.index("AES-256") < words.index("Definition 2.5 of [GGY22]")

    def test_a_sensitivity_is_the_constraint_of_the_publisher_and_no_fact(self) -> None:
        release = answered(step="1/4096")
        said = "The publisher states that one person moves the answers by at most 2 in l1 distance"
        assert said in release.card.guarantee.text
        assert said in release.card.guarantee.answers.text
        page = statement_html(release.card)
        assert said in page
        assert "Anyone who can move the answers by more than is stated here" in page.partition("What is not promised")[2]

    @pytest.mark.parametrize(("mechanism", "away"), [(MECHANISMS[0], "2 steps"), (MECHANISMS[2], "2 squared steps")], ids=str)
    def test_distances_on_the_grid_are_said_in_steps(self, mechanism: Any, away: str) -> None:
        """The sensitivity is 2 in l1 distance, in values; the smallest secret was said to be so too."""
        release = answered(mechanism=mechanism, step="1/4096")
        assert f"The smallest change that keeps every total ({away} of 1/4096)" in dict(cost_rows(release.card))
        assert f"smallest secret, {away}" in dict(budget_rows(release.guarantee))

    def test_the_text_of_a_plan(self, snapshot: Snapshot) -> None:
        snapshot(str(answered(step="1/4096").plan))

    def test_tables_of_counts_have_neither(self) -> None:
        table = hf.Table(UNIVERSE, np.arange(6))
        card = hf.release(table, [hf.total()], hf.GeneralizedLaplace(epsilon="1", per="distance"), ledger=None).card
        assert card.table.grid is None
        assert card.guarantee.answers is None

    def test_zeros_and_small_numbers_are_written_in_plain_digits(self, tmp_path: Path) -> None:
        """Arrow writes a decimal of zero as 0E-20."""
        release = answered([0, 0, 0, 0, 0, 2.0**-20], keep=[[1, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 1]], step="1/1048576")
        folder = release.save(tmp_path / "out")
        assert "E" not in (folder / "kept.csv").read_text() + (folder / "exposed.csv").read_text()
        hf.verify(folder)

    def test_constraints_over_a_universe(self, tmp_path: Path) -> None:
        keep = [hf.margin("group"), hf.margin("hour")]
        release = answered(keep=keep, universe=UNIVERSE, mechanism=hf.ProjectedGaussian(rho=1), step="1/8")
        shaped = release.table.values.reshape(3, 2)
        assert shaped.sum(axis=1).tolist() == [-0.75, 3.125, -2]
        assert shaped.sum(axis=0).tolist() == [5.5, -5.125]
        assert release.plan.drawing.sampler_plan.groups[0].kind == "grid"
        hf.verify(release.save(tmp_path / "out"))

    def test_a_query_matrix_times_a_histogram(self) -> None:
        query, histogram = [["1/2", 0, 1], [0, 1, 1], [1, 1, 0]], [4, 6, 1]
        release = hf.answer(
            query,
            histogram,
            keep=[["1/3", "1/3", "1/3"]],
            mechanism=hf.ProjectedLaplace(epsilon=1),
            names=["x", "y", "z"],
            ledger=None,
        )
        assert release.table.values.sum() == 3 + 7 + 10
        grid = AnswerGrid(Fraction(1, 2), Fraction(2), None, "replace-one", on_grid=True)  # the first column has another sum
        assert release.plan.facts.measure == grid
        assert release.table.universe.codes["answer"] == ("x", "y", "z")

    def test_extended_noise_is_for_the_projection_of_the_answers(self) -> None:
        known = Sensitivities(l2_squared=Fraction(9), projected_l2_squared=Fraction(4))
        made = [
            answered(mechanism=mechanism(rho=1), sensitivity=known, on_grid=True, step="1/8")
            for mechanism in (hf.ProjectedGaussian, hf.ExtendedGaussian)
        ]
        assert [release.guarantee.answers.reach for release in made] == [9 * 64, 4 * 64]

    @pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
    @pytest.mark.parametrize(
        "mechanism", [hf.ProjectedLaplace(epsilon="1"), hf.ProjectedGaussian(rho=1), hf.ExtendedGaussian(rho=1)], ids=str
    )
    def test_the_reach_is_that_of_neighbours_with_the_same_invariants(self, mechanism: Any, neighbours: Any) -> None:
        """All pairs of histograms, in full; the last kind of person is far away, and seen in the invariant by itself."""
        query = np.array([[1, 0, 0, 1, 9], [0, 1, 0, -1, 9], [0, 0, 1, 0, 9]])
        release = hf.answer(query.tolist(), [5, 3, 2, 9, 4], keep=[[1, 1, 1]], mechanism=mechanism, neighbours=neighbours, ledger=None)
        people = list(np.eye(5, dtype=np.int64))
        changes = [a - b for a in people for b in people] if neighbours == "replace-one" else people
        unseen = [v for v in (query @ change for change in changes) if v.sum() == 0]
        power = 1 if mechanism.norm == "l1" else 2
        assert release.guarantee.answers is not None
        assert release.guarantee.answers.reach == max((np.abs(v) ** power).sum() for v in unseen)
        assert release.guarantee.person == release.guarantee.answers.reach

    def test_a_promise_for_nobody_is_refused(self) -> None:
        given_: dict[str, Any] = {"mechanism": hf.ProjectedLaplace(epsilon="1")}
        with pytest.raises(NothingLeft, match="No person can change alone"):
            hf.answer([[1, 0], [0, 1]], [17, 5], keep=[["0.37", "1.21"]], **given_)
        prefixes = [[1, 0, 0], [1, 1, 0], [1, 1, 1]]
        with pytest.raises(NothingLeft, match="Take neighbours='replace-one'"):
            hf.answer(prefixes, [3, 4, 5], keep=[[0, 0, 1]], neighbours="add-remove", **given_)

    def test_answers_and_totals_of_zero_are_drawn_like_others(self) -> None:
        """With counts, a kept total of 0 makes its cells 0; answers may be negative."""
        release = answered([1, -1, 0, 0, 2, 3], keep=[[1, 1, 1, 1, 0, 0]], on_grid=True)
        assert np.count_nonzero(release.table.counts[:4]) == 4
        assert release.table.counts[:4].sum() == 0
        assert not release.table.exposed.any()
        assert not release.guarantee.relation.non_negative

    def test_answers_that_the_invariants_fix_are_exposed(self, tmp_path: Path) -> None:
        release = answered(keep=[[1, 0, 0, 0, 0, 0]], step="1/8")
        assert release.table.exposed.tolist() == [True] + [False] * 5
        folder = release.save(tmp_path / "out")
        assert (folder / "exposed.csv").read_text() == '"answer","value","why","with"\n"1",0.500,"structure",""\n'
        hf.verify(folder)

    def test_a_changed_value_is_found(self, tmp_path: Path) -> None:
        folder = answered(step="1/8").save(tmp_path / "out", formats=["csv"])
        lines = (folder / "kept.csv").read_text()
        (folder / "kept.csv").write_text(lines.replace("0.375", "0.500"))
        card = json.loads((folder / "card.json").read_text())
        import hashlib

        card["files"]["kept.csv"]["sha256"] = hashlib.sha256((folder / "kept.csv").read_bytes()).hexdigest()
        (folder / "card.json").write_text(json.dumps(card, indent=2, ensure_ascii=False) + "\n")
        with pytest.raises(VerificationFailed, match=r"row 1': the table adds up to 0\.375, kept\.csv says 0\.500"):
            hf.verify(folder)


class TestAPromiseForNobody:
    """A declared sensitivity, and invariants that every change of one person shows in: the nearest data sets are 158 steps apart."""

    NOBODY = "WARNING: No person can change alone. Any two data sets with the same invariants are 158 steps apart or more"

    @staticmethod
    def made(values: Any = (17, 5), rows: Any = (("0.37", "1.21"),), **given_: Any) -> Any:
        given_ = {"mechanism": hf.ProjectedLaplace(epsilon="1"), "sensitivity": 2, "on_grid": True, "keep": rows, **given_}
        with pytest.warns(HoldfastWarning, match=r"No person can change alone.*promise for nobody.*Keep fewer invariants"):
            return hf.answer(list(values), key=hf.NoiseKey.for_tests(KEY), **given_)

    def test_it_is_said_first_on_every_page(self, tmp_path: Path) -> None:
        release = self.made()
        words = release.card.guarantee.text
        assert words.startswith(
            f"{self.NOBODY}, and one person moves the answers by 2 steps at most: every such move shows in an invariant."
        )
        assert "epsilon = 79 for such a pair" in words
        assert "for one person)" not in words
        assert "LITTLE IS PROTECTED by so large a budget. A best guess which of the two nearest tables is the true one, " in words
        assert release.card.guarantee.why.endswith("The smallest secret is 158 steps: no person can change alone.")
        assert str(release.plan).startswith(self.NOBODY.replace(": ", "    "))
        folder = release.save(tmp_path / "out")
        hf.verify(folder)
        for page in ("statement.html", "report.html"):
            text = (folder / page).read_text()
            assert self.NOBODY in re.sub(r"</li>\s*<li>", " ", text)  # the promise is a list of its sentences
            assert ("No person can change alone: the nearest data set" in text) is (page == "report.html")
            assert ("No person can change alone: every such change shows in a kept total." in text) is (page == "statement.html")
            assert "epsilon = 1 for one person)" not in text

    def test_with_gaussian_noise(self) -> None:
        words = self.made(mechanism=hf.ProjectedGaussian(rho="1/2")).card.guarantee.text
        assert words.startswith(self.NOBODY.replace("158", f"{121**2 + 37**2:,} squared"))
        assert "What was requested for one person is a promise for nobody." in words
        assert "rho = 2010 for such a pair)" in words
        assert "for one person)" not in words

    @pytest.mark.parametrize("mechanism", MECHANISMS, ids=str)
    def test_answers_that_are_rounded_can_move_by_the_smallest_secret(self, mechanism: Any) -> None:
        """Coarser grids are refused; with the first that is not, one person has at least the smallest secret."""
        facts = hf.plan(
            hf.Universe.product({"a": ["1", "2"]}), [hf.linear([[37, 121]])], hf.GeneralizedLaplace(epsilon="1", per="distance")
        ).facts
        for places in range(BITS):
            try:
                answers = mechanism.answers(replace(facts, measure=AnswerGrid(Fraction(1, 2**places), l1=Fraction(2))))
            except InvalidParameter:
                continue
            assert answers.reach >= (158 if mechanism.norm == "l1" else 37**2 + 121**2)
            return
        raise AssertionError("no grid")

    @pytest.mark.parametrize("rows", [[["1.41421", 1]], [[1000001, 1000000]], [[101, 100]]])
    def test_other_invariants_that_nothing_short_leaves(self, rows: Any) -> None:
        release = self.made(rows=rows)
        assert release.guarantee.person is None
        assert release.guarantee.smallest_secret > release.guarantee.answers.reach

    def test_a_move_within_reach_is_no_reason_to_warn(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            release = answered([17, 5], keep=[[1, 1]], on_grid=True)
        assert "WARNING" not in str(release.plan)
        assert release.guarantee.person == release.guarantee.answers.reach


class TestOfficialTotals:
    def test_a_list_of_totals_is_compared_as_decimals(self, tmp_path: Path) -> None:
        folder = answered(step="1/8").save(tmp_path / "out")
        (tmp_path / "official.csv").write_text("kept,name,total\nlinear,row 1,0.375\n")
        assert hf.verify(folder, against=tmp_path / "official.csv").official_totals == 1
        assert hf.verify(folder, against=folder / "kept.csv").official_totals == 1
        (tmp_path / "other.csv").write_text("kept,name,total\nlinear,row 1,0.500\n")
        with pytest.raises(VerificationFailed, match=r"row 1: released 0\.375, official 0\.500"):
            hf.verify(folder, against=tmp_path / "other.csv")

    @pytest.mark.parametrize("total", ["0.375", "0.375000000000", ".375", "375e-3", "3/8"])
    def test_numbers_are_compared_however_they_are_written(self, total: str, tmp_path: Path) -> None:
        folder = answered(step="1/4096").save(tmp_path / "out")
        (tmp_path / "official.csv").write_text(f"kept,name,total\nlinear,row 1,{total}\n")
        assert hf.verify(folder, against=tmp_path / "official.csv").official_totals == 1

    def test_what_is_no_number_is_refused(self, tmp_path: Path) -> None:
        folder = answered(step="1/8").save(tmp_path / "out")
        (tmp_path / "official.csv").write_text("kept,name,total\nlinear,row 1,x\n")
        with pytest.raises(UnreadableInput, match=r"a number, such as 0\.25 or 1/3, as total"):
            hf.verify(folder, against=tmp_path / "official.csv")

    def test_tables_of_counts_are_no_answers(self, tmp_path: Path) -> None:
        folder = answered(step="1/8").save(tmp_path / "out")
        with pytest.raises(InvalidParameter, match="kept, name, total"):
            hf.verify(folder, against=hf.Table(UNIVERSE, np.arange(6)))

    def test_a_kept_margin_and_the_whole_table(self, tmp_path: Path) -> None:
        folder = answered(keep=[hf.margin("group"), hf.total()], universe=UNIVERSE, step="1/4096").save(tmp_path / "out")
        margin, whole = tmp_path / "margin.csv", tmp_path / "whole.csv"
        margin.write_text("rate,group\n3.125,b\n-0.75,a\n-2,c\n")
        assert hf.verify(folder, against=margin).official_totals == 3
        margin.write_text("rate,group\n3.125,b\n-0.7,a\n-2,c\n")
        with pytest.raises(
            VerificationFailed, match=r"group=a: released -0\.750000000000, official -0\.7 \(no multiple of 1/4096: compare"
        ):
            hf.verify(folder, against=margin)
        whole.write_text("hour,group,rate\n1,a,0.5\n2,a,-1.25\n1,c,2\n2,c,-4\n1,b,3\n2,b,0.125\n")
        assert hf.verify(folder, against=whole).official_totals == 4
        whole.write_text("hour,group,rate\n1,a,1.5\n2,a,-2.25\n1,c,2\n2,c,-4\n1,b,3\n2,b,0.25\n")  # other answers; totals of b and all
        with pytest.raises(VerificationFailed, match=r"group=b: released 3\.125000000000, official 3\.250000000000; ") as told:
            hf.verify(folder, against=whole)
        assert "group=a" not in str(told.value)

    def test_totals_that_were_rounded_are_compared_by_the_whole_table_rounded_alike(self, tmp_path: Path) -> None:
        """The totals .7 and 1 of .1 + .6 and .8 + .2: only the second is a multiple of 1/8."""
        universe = hf.Universe.product({"group": ["a", "b"], "hour": ["1", "2"]})
        release = answered(["0.1", "0.6", "0.8", "0.2"], keep=[hf.margin("group")], universe=universe, step="1/8", round_totals=True)
        folder = release.save(tmp_path / "out")
        whole = tmp_path / "whole.csv"
        whole.write_text("group,hour,rate\na,1,0.3\na,2,0.4\nb,1,0.5\nb,2,0.5\n")  # other answers with the same totals
        assert hf.verify(folder, against=whole).official_totals == 2
        whole.write_text("group,hour,rate\na,1,0.3\na,2,0.6\nb,1,0.5\nb,2,0.5\n")
        with pytest.raises(VerificationFailed, match=r"group=a: released 0\.750, official 0\.875"):
            hf.verify(folder, against=whole)
        (tmp_path / "list.csv").write_text("group,rate\na,0.7\nb,1\n")
        with pytest.raises(VerificationFailed, match=r"group=a: released 0\.750, official 0\.7 \(no multiple of 0\.125"):
            hf.verify(folder, against=tmp_path / "list.csv")


class TestNothingConfidential:
    def test_two_data_sets_with_the_same_invariants_differ_in_the_values_alone(self, tmp_path: Path) -> None:
        one, other = (answered(values, step="1/64") for values in ([1, 2, 3, 4, 5, 6.25], [6, 5.25, 4, 3, 2, 1]))
        assert one.card == other.card
        folders = [release.save(tmp_path / str(number)) for number, release in enumerate((one, other))]
        for name in ("kept.csv", "exposed.csv", "statement.html"):
            assert (folders[0] / name).read_bytes() == (folders[1] / name).read_bytes()
        assert with_the_numbers_of(*folders) == (folders[1] / "report.html").read_bytes()

    @pytest.mark.parametrize(
        "values", [[0.1, float("nan")], [math.inf, 2.0], ["secret", 3], [None, 7], ["1/0", 3], ["1e99999999", 3], [True, 3]]
    )
    def test_values_that_are_not_finite_are_refused_without_being_shown(self, values: list[Any]) -> None:
        with pytest.raises(InvalidParameter, match=r"Answer [12] is not a finite number") as problem:
            hf.answer(values, keep=[[1, 1]], sensitivity=1, mechanism=MECHANISMS[0], ledger=None)
        assert not any(str(value) in str(problem.value) for value in values if value is not None)
        assert problem.value.__cause__ is None
        assert problem.value.__context__ is None


class TestDoubles:
    """A double is the decimal that is shown for it: totals that are equal as decimals round to the same total."""

    @pytest.mark.parametrize("kind", [list, np.array, lambda values: np.array(values, dtype=np.float32)], ids=["list", "64", "32"])
    def test_equal_decimal_totals_are_kept_alike(self, kind: Any) -> None:
        """As doubles .1 + .4 lies above 1/2 and .15 + .35 below: rounded to whole numbers one total would always be 1, the other 0."""
        given_: dict[str, Any] = {"keep": [[1, 1]], "sensitivity": 2, "step": 1, "round_totals": True, "mechanism": MECHANISMS[0]}
        totals = [hf.answer(kind(values), **given_, ledger=None).table.values.sum() for values in ([0.1, 0.4], [0.15, 0.35])]
        assert totals[0] == totals[1]

    @given(st.floats(allow_nan=False, allow_infinity=False))
    def test_the_decimal_reads_back_as_the_double(self, number: float) -> None:
        found = exact_value(number)
        assert found is not None
        assert (float(found), found) == (number, Fraction(repr(number)))

    @given(st.integers(-(2**53), 2**53), st.integers(0, BITS))
    def test_on_the_grid_a_double_is_the_fraction_of_its_bits(self, steps: int, places: int) -> None:
        """The shortest decimal of 1 + 2^-24 is no multiple of 2^-24."""
        number = math.ldexp(steps, -places)
        assert exact_value(number, binary=True) == Fraction(steps, 2**places)
        assert exact_value(np.float64(number), binary=True) == Fraction(steps, 2**places)

    def test_doubles_on_a_fine_grid_are_on_it(self) -> None:
        release = answered([1 + 2.0**-24, 2.0**-24, 0, 0, 0, 0], step="1/16777216", on_grid=True)
        assert release.table.counts.sum() == 2**24 + 2

    @pytest.mark.parametrize("bits", [32, 64])
    def test_columns_of_a_file_are_read_the_same_way(self, bits: int) -> None:
        column = pa.array([0.1, 0.4, 1.5], pa.float32() if bits == 32 else pa.float64())
        for binary, tenth in ((False, Fraction(1, 10)), (True, Fraction(float(column[0].as_py())))):
            _, values = read_answers(
                pa.table({"place": ["a", "b", "c"], "rate": column}),
                ["place"],
                "rate",
                universe=None,
                public=True,
                hierarchies=None,
                allow_similar_codes=False,
                query=None,
                reading=Reading(),
                binary=binary,
            )
            assert (values[0], values[2]) == (tenth, Fraction(3, 2))
