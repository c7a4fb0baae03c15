"""What `hf.answer` refuses, and what it says then."""

from __future__ import annotations

import csv
import json
import math
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import holdfast as hf
from holdfast.errors import (
    ContradictingTotals,
    InexactParameter,
    InvalidParameter,
    NoExactSampler,
    NothingLeft,
    RequestTooLarge,
)
from holdfast.mechanisms.subspace import SubspaceMechanism
from holdfast.report.statement import statement_html
from holdfast.subspace import Sensitivities
from tests.publication.test_answer import MECHANISMS, UNIVERSE, answered
from tests.publication.twin_reports import with_the_numbers_of


class TestBadInput:
    @pytest.mark.parametrize(
        ("given_", "error", "message"),
        [
            ({"keep": np.eye(6, dtype=int)}, NothingLeft, "nothing is left to protect"),
            ({"keep": [[0.5] * 6]}, InexactParameter, "Write the string '0.5' instead"),
            ({"keep": np.ones((1, 6))}, InexactParameter, "must be exact"),
            ({"keep": [[1] * 5]}, InvalidParameter, "rows of one length: 6 numbers each, one for each column. Row 1 has 5"),
            ({"keep": [[0.5] + [1] * 5]}, InexactParameter, "an entry of the matrix of invariants must be exact"),
            ({"keep": [[10**30] + [1] * 5]}, InvalidParameter, "numbers of few digits"),
            ({"keep": [["1.4142135623730951"] + [1] * 5]}, InvalidParameter, "an irrational number has no exact one"),
            ({"mechanism": None}, InvalidParameter, "mechanism is what draws the noise.* Got NoneType"),
            ({"mechanism": hf.ProjectedLaplace}, InvalidParameter, "Got the class ProjectedLaplace: write its budget"),
            ({"sensitivity": 0}, InvalidParameter, "sensitivity is zero"),
            ({"sensitivity": math.inf}, InexactParameter, "finite exact number"),
            ({"sensitivity": "inf"}, InvalidParameter, "decimal or rational number"),
            ({"sensitivity": -1}, InvalidParameter, "greater than zero"),
            ({"sensitivity": None}, InvalidParameter, "sensitivity is missing"),
            ({"step": 1}, InvalidParameter, 'too coarse.*Write step = "0.01", or on_grid'),
            ({"step": "1/4", "on_grid": True}, InvalidParameter, "some are not"),
            ({"sensitivity": "1/1000", "step": "1/8", "on_grid": True}, InvalidParameter, "less than one step"),
            (
                {"mechanism": hf.GeneralizedLaplace(epsilon=1, per="distance")},
                InvalidParameter,
                "GeneralizedLaplace is for tables of counts",
            ),
            ({"mechanism": hf.ProjectedGaussian(epsilon="1", delta="1e-6", calibration="paper")}, InvalidParameter, "no other calibration"),
            ({"names": ["a"]}, InvalidParameter, "names has 1 entries for 6 answers"),
            ({"universe": hf.Universe.product({"a": ["1"]})}, InvalidParameter, "The universe has 1 cells for 6 answers"),
            ({"keep": [hf.identity(hf.linear([[1] * 6]), 3)]}, InvalidParameter, "declare no values"),
            ({"sensitivity": "1e-9"}, InvalidParameter, 'too coarse.*Write step = "0.00000000001", or'),
            ({"sensitivity": "1e-400"}, InvalidParameter, "too coarse.*multiply answers and sensitivity"),
            ({"sensitivity": "1e-400", "mechanism": MECHANISMS[2]}, InvalidParameter, "too coarse.*multiply answers and sensitivity"),
            ({"sensitivity": 10**30}, RequestTooLarge, "The sensitivity is too large for steps of 1"),
            ({"sensitivity": 10**30, "mechanism": MECHANISMS[2]}, RequestTooLarge, "the square of their number must be below"),
            ({"neighbours": "x"}, InvalidParameter, "leave neighbours out"),
            ({"neighbours": "add-remove"}, InvalidParameter, r"Sensitivities\(l1=\.\.\., neighbours='add-remove'\)"),
            ({"on_grid": "no", "step": "1/8"}, InvalidParameter, "on_grid must be True or False. Got str"),
            ({"round_totals": 1}, InvalidParameter, "round_totals must be True or False. Got int"),
        ],
        ids=str,
    )
    def test_one_clear_error(self, given_: dict[str, Any], error: type[Exception], message: str) -> None:
        with pytest.raises(error, match=message):
            answered(**given_)

    @pytest.mark.parametrize("mechanism", [hf.ProjectedLaplace(epsilon=1), hf.ProjectedGaussian(rho=1)], ids=["laplace", "gaussian"])
    def test_a_sensitivity_that_says_nothing_in_the_norm_of_the_noise(self, mechanism: SubspaceMechanism) -> None:
        """With the step left out, too."""
        other = Sensitivities(l2_squared=Fraction(4)) if mechanism.norm == "l1" else Sensitivities()
        with pytest.raises(InvalidParameter, match=f"needs the {mechanism.norm} sensitivity"):
            answered(sensitivity=other, mechanism=mechanism)

    @pytest.mark.parametrize("values", [{1, 2, 3, 4, 5, 6}, frozenset([1, 2]), dict.fromkeys(range(6))], ids=["set", "frozenset", "dict"])
    def test_values_without_an_order_are_refused(self, values: Any) -> None:
        with pytest.raises(InvalidParameter, match="in their order"):
            hf.answer(values, sensitivity=1, mechanism=MECHANISMS[0], ledger=None)

    def test_a_query_matrix_decides_whether_its_answers_are_on_the_grid(self) -> None:
        """Thirds that happen to be whole numbers are no multiples of the step for other histograms."""
        thirds = [["4/3", 0], [0, "4/3"]]
        given_: dict[str, Any] = {"mechanism": hf.ProjectedLaplace(epsilon="1")}
        for step in (None, "1/1024", "0.01"):
            with pytest.raises(InvalidParameter, match="common denominator is 3, are not"):
                hf.answer(thirds, [3, 3], on_grid=True, step=step, **given_)
        rounded = hf.answer(thirds, [3, 3], **given_, ledger=None).guarantee.answers
        assert rounded is not None
        assert not rounded.on_grid
        halves = hf.answer([["1/2", 0], [0, "1/2"]], [3, 3], on_grid=True, **given_, ledger=None).guarantee.answers
        assert halves is not None
        assert (halves.on_grid, halves.step) == (True, Fraction(1, 2))

    def test_the_step_that_is_advised_is_taken(self) -> None:
        for step, sensitivity in (("0.01", 2), ("1e-11", "1e-9")):
            values = [0] * 6 if sensitivity != 2 else ["0.5", "-1.25", 3, "0.125", 2, "0.625"]
            assert answered(values, step=step, sensitivity=sensitivity).guarantee.answers.step == Fraction(step)

    def test_noise_too_narrow_for_its_grid_is_refused_with_what_to_do(self) -> None:
        codes = [str(code) for code in range(40)]
        given: dict[str, Any] = {"universe": hf.Universe.product({"a": codes, "b": codes}), "keep": [hf.margin("a"), hf.margin("b")]}
        with pytest.raises(NoExactSampler, match=r"Use a smaller step.*projected-laplace"):
            answered(range(1600), **given, on_grid=True, mechanism=hf.ProjectedGaussian(rho=10))

    def test_answers_too_large_for_the_grid(self) -> None:
        with pytest.raises(RequestTooLarge, match="Use a larger step"):
            answered([2.0**50, 0, 0, 0, 0, 0], step="1/1048576")
        with pytest.raises(RequestTooLarge, match=r"All answers together are 2\^62 steps of 1/1048576 or more.* Use a larger step"):
            answered([2.0**41] * 6, step="1/1048576")

    def test_mechanisms_of_answers_are_not_for_counts(self) -> None:
        with pytest.raises(InvalidParameter, match=r"use hf\.answer"):
            hf.release(hf.Table(UNIVERSE, np.arange(6)), [], hf.ProjectedLaplace(epsilon=1), ledger=None)

    def test_a_total_off_the_grid_is_refused(self) -> None:
        for keep in ([[1] * 6], [[1] * 6, [1, 1, 0, 0, 0, 0]], [[2, 0, 0, 0, 0, 0]]):
            with pytest.raises(InvalidParameter, match=r"no totals of multiples of 0.0001.*smaller step, or declare round_totals"):
                answered(["1/3"] + [0] * 5, keep=keep, step="0.0001")
        with pytest.raises(InvalidParameter, match="no totals of multiples of 1,"):  # 2 (y_0 + y_1) = 1 has no solution
            answered(["1/2"] + [0] * 5, keep=[[2, 2, 0, 0, 0, 0]], sensitivity=20, step=1)

    def test_an_identity_that_is_broken_by_less_than_a_step_is_refused(self) -> None:
        for identity in (hf.identity(hf.linear([[1, 1, 1, -1]])), hf.linear([[1, 1, 1, -1]], values=[0])):
            given_: dict[str, Any] = {"keep": [identity], "sensitivity": 20, "step": 1}
            for rounded in (False, True):
                with pytest.raises(ContradictingTotals, match="do not have the value 0 that is declared of"):
                    answered([1, 1, 1, "3.4"], round_totals=rounded, **given_)
            assert answered([1, 1, "1.4", "3.4"], **given_).table.values @ [1, 1, 1, -1] == 0

    def test_a_total_is_not_rounded_so_that_an_identity_breaks(self) -> None:
        """(1, 1/2) rounds to (1, 1), which is not twice as much in the first place."""
        keep = [hf.identity(hf.linear([[1, -2, 0, 0, 0, 0]])), hf.linear([[1, 1, 0, 0, 0, 0]])]
        with pytest.raises(InvalidParameter, match=r"is no longer 0, as declared\. Use"):
            answered([1, "1/2", 0, 0, 0, 0], keep=keep, sensitivity=20, step=1, round_totals=True)

    def test_rounded_totals_are_said_with_one_sentence_everywhere(self, tmp_path: Path) -> None:
        rows = [[1, 1, 1, 1, 0, 0], [0, 0, 0, 0, 1, 1]]
        release = answered(["1/3"] + [0] * 5, keep=rows, step="0.001", round_totals=True)
        folder = release.save(tmp_path / "out")
        assert json.loads((folder / "card.json").read_text())["table"]["grid"]["round_totals"] is True
        said = "Kept totals are rounded to multiples of 0.001; beyond that they carry no noise."
        assert f"WARNING    {said}" in str(release.plan)
        for page in ("statement.html", "report.html"):
            assert said in (folder / page).read_text()
            assert "0 (exact)" not in (folder / page).read_text()
            assert "exactly those" not in (folder / page).read_text()
        assert "Distance between the released and the rounded true value" in (folder / "report.html").read_text()
        hf.verify(folder)
        exact = answered(["1/3", "-1/3"] + [0] * 4, keep=rows, step="0.001")
        assert "Each kept total must be a multiple of 0.001" in str(exact.plan)
        assert "Kept totals are rounded" not in statement_html(exact.card)

    def test_data_with_equal_published_totals_have_equal_folders(self, tmp_path: Path) -> None:
        """How many true totals the grid did not have was on the card: 2 of the first, none of the second."""
        given_: dict[str, Any] = {"keep": [[1, 0, 0, 0], [0, 1, 0, 0]], "step": "1/2", "sensitivity": 20, "round_totals": True}
        one, other = (answered([*values, 0, 0], **given_) for values in (["1/3", "2/3"], ["1/2", "1/2"]))
        assert one.table.values[:2].tolist() == other.table.values[:2].tolist() == [0.5, 0.5]
        assert one.card == other.card
        folders = [release.save(tmp_path / str(number)) for number, release in enumerate((one, other))]
        for name in ("kept.csv", "exposed.csv", "statement.html"):
            assert (folders[0] / name).read_bytes() == (folders[1] / name).read_bytes()
        assert with_the_numbers_of(*folders) == (folders[1] / "report.html").read_bytes()

    def test_nothing_is_both_on_the_grid_and_rounded(self) -> None:
        with pytest.raises(InvalidParameter, match="Give one of the two"):
            answered([1, 2, 3, 4, 5, 6], step="1/64", on_grid=True, round_totals=True)

    def test_wages_in_cents_look_like_cents(self, tmp_path: Path) -> None:
        wages = ["2453.21", "1800.00", "2999.99", "3100.50", "0.01", "5.05"]
        keep = [hf.margin("group")]
        release = answered(wages, keep=keep, universe=UNIVERSE, sensitivity=100, step="0.01", on_grid=True)
        folder = release.save(tmp_path / "out")
        hf.verify(folder)
        with open(folder / "table.csv", newline="") as file:
            written = [row["value"] for row in csv.DictReader(file)]
        assert all(re.fullmatch(r"-?\d+\.\d\d", value) for value in written)
        assert [sum(map(Fraction, written[i : i + 2])) for i in (0, 2, 4)] == [Fraction("4253.21"), Fraction("6100.49"), Fraction("5.06")]
        assert list(map(repr, release.table.values.tolist())) == [repr(float(value)) for value in written]
        assert release.guarantee.answers.reach == 10_000
        loaded = hf.load(folder)
        assert loaded.table.counts.tolist() == release.table.counts.tolist()
        found = loaded.interval({"group": "a"}, 0.95)
        assert found.low == found.high == Fraction("4253.21")

    def test_decimals_are_the_usual_grid(self) -> None:
        release = answered(["0.1", "0.2", "0.3", "0.15", "0.35", "1.005"])
        assert release.table.measure.step_text == "0.0001"
        assert release.table.values.sum() == pytest.approx(2.105, abs=1e-12)
        query = hf.answer([["1/4", 0], [0, "1/10"]], [3, 3], mechanism=hf.ProjectedLaplace(epsilon="1"), ledger=None)
        assert query.table.measure.step == Fraction(1, 20)
