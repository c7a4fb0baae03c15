"""How far one person moves answers on the grid, and what a ledger charges for it."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import holdfast as hf
from holdfast.channels import Facts
from holdfast.errors import InvalidParameter
from holdfast.exposure.facts import ReleaseExposure
from holdfast.lattices.grid_rounding import to_grid
from holdfast.lattices.norms import NORMS
from holdfast.mechanisms.subspace import SubspaceMechanism
from holdfast.privacy import Ledger
from holdfast.tables.measure import AnswerGrid
from holdfast.wording.ledger import ledger_screen

LAPLACE = hf.ProjectedLaplace(epsilon="1")
UNIVERSE = hf.Universe.product({"group": ["a", "b", "c"], "hour": ["1", "2"]})


class TestReach:
    """[theory T110]: what one person can move on the grid, with what rounding adds."""

    @given(st.data())
    def test_no_two_neighbours_with_the_same_invariants_are_farther_apart(self, data: st.DataObject) -> None:
        mechanism: SubspaceMechanism = data.draw(st.sampled_from([hf.ProjectedLaplace(epsilon=1), hf.ProjectedGaussian(rho=1)]))
        rows = data.draw(st.sampled_from([[[1, 1, 1, 1]], [[1, 1, 0, 0], [0, 0, 1, 1]], [[1, 2, 3, -1]], []]))
        step = Fraction(1, data.draw(st.sampled_from([8, 64, 10, 20, 100])))
        moves = hf.lattice(hf.Universe.product({"answer": list("1234")}), [hf.linear(rows)] if rows else [])
        basis = moves.basis.astype(object)
        numbers = st.fractions(-2, 2, max_denominator=50)
        first = data.draw(st.lists(numbers, min_size=4, max_size=4))
        along: list[Fraction] = data.draw(st.lists(numbers, min_size=basis.shape[1], max_size=basis.shape[1]))
        change = [sum((c * int(b) for c, b in zip(along, row, strict=True)), Fraction(0)) for row in basis]
        norm = NORMS[mechanism.norm]
        measure = sum((abs(entry) ** norm.power for entry in change), Fraction(0))
        if not measure:
            return
        grid = AnswerGrid(step, measure) if mechanism.norm == "l1" else AnswerGrid(step, None, measure)
        try:
            reach = mechanism.answers(Facts(moves, measure=grid)).reach
        except InvalidParameter:  # too coarse
            return
        ends = [to_grid(moves, values, step).integers for values in (first, [a + b for a, b in zip(first, change, strict=True)])]
        assert norm.measure((ends[0] - ends[1]).tolist()) <= reach

    def test_a_bound_without_what_rounding_adds_is_not_enough(self) -> None:
        """Neighbours at l1 distance 1/8 step end a whole move apart."""
        moves = hf.lattice(hf.Universe.product({"answer": ["1", "2"]}), [hf.linear([[1, 1]])])
        first, second = [Fraction(7, 16), Fraction(9, 16)], [Fraction(9, 16), Fraction(7, 16)]
        ends = [to_grid(moves, values, Fraction(1)).integers for values in (first, second)]
        assert np.abs(ends[0] - ends[1]).sum() == 2

    @pytest.mark.parametrize("made", [hf.ProjectedLaplace(epsilon=1), hf.ProjectedGaussian(rho=1)])
    def test_replacing_a_person_is_two_changes_where_neighbours_add_or_remove(self, made: SubspaceMechanism) -> None:
        """All histograms of three people, all replacements: off the grid, with and without an invariant."""
        norm = NORMS[made.norm]
        for rows, kinds in (([], [[15, 0, 0], [0, 15, 0]]), ([[1, 1]], [[5, 0, 0], [0, 5, 5]])):
            moves = hf.lattice(hf.Universe.product({"answer": ["1", "2"]}), [hf.linear(rows)] if rows else [])
            columns = [[Fraction(row[z], 21) for row in kinds] for z in range(3)]
            largest = max(sum((abs(entry) ** norm.power for entry in column), Fraction(0)) for column in columns)
            sensitivity = {"l1": (largest, None), "l2": (None, largest)}[made.norm]
            grid = AnswerGrid(Fraction(1, 64), *sensitivity, "add-remove")
            answers = made.answers(Facts(moves, measure=grid))
            people = list(itertools.product(range(3), repeat=3))
            ends = {
                who: to_grid(moves, [sum((columns[z][i] for z in who), Fraction(0)) for i in (0, 1)], Fraction(1, 2**6)).integers.tolist()
                for who in people
            }
            apart = [
                norm.measure([a - b for a, b in zip(ends[who], ends[(other, *who[1:])], strict=True)])
                for who in people
                for other in range(3)
            ]
            assert answers.reach < max(apart) <= answers.replacing

    def test_the_bound_for_a_replacement_is_that_of_twice_the_sensitivity(self) -> None:
        moves = hf.lattice(hf.Universe.product({"answer": ["1", "2", "3"]}), [hf.linear([[1, 1, 1]])])
        given: dict[str, Any] = {"neighbours": "add-remove"}
        made = hf.ProjectedLaplace(epsilon=1).answers(Facts(moves, measure=AnswerGrid(Fraction(1, 16), l1=Fraction(2), **given)))
        assert (made.reach, made.replacing) == (32 + 4, 64 + 4)  # two directions are rounded, |b*|_1 = 2 each
        squared = hf.ProjectedGaussian(rho=1).answers(Facts(moves, measure=AnswerGrid(Fraction(1, 16), l2_squared=Fraction(2), **given)))
        assert squared.replacing == math.floor((math.sqrt(2) * 32 + math.sqrt(3.5)) ** 2)
        replaced = hf.ProjectedLaplace(epsilon=1).answers(
            Facts(moves, measure=AnswerGrid(Fraction(1, 16), l1=Fraction(2), neighbours="replace-one"))
        )
        assert replaced.replacing == replaced.reach == 36


class TestLedger:
    @pytest.mark.parametrize(("neighbours", "epsilon"), [("replace-one", 1), ("add-remove", 2)])
    def test_the_charge_is_for_a_person_replaced_whoever_the_neighbours_are(self, neighbours: Any, epsilon: int, tmp_path: Path) -> None:
        """Each person is in one cell: to come or go is half of a replacement, and is what the promise is for."""
        ledger = Ledger.open(tmp_path / "ledger.sqlite", create=True, needs_grants=True)
        ledger.grant("data", kind="pure", epsilon="3", approver="A. Chief", reason="a test")
        given: dict[str, Any] = {
            "ledger": ledger,
            "dataset": "data",
            "release_id": "answers",
            "mechanism": hf.ProjectedLaplace(epsilon="1"),
        }
        release = hf.answer([[1, 0], [0, 1]], [3, 4], neighbours=neighbours, **given)
        promise = release.guarantee.per_person()
        assert promise is not None
        assert promise.epsilon == 1
        assert ledger.balance("data").spent == epsilon
        assert ("a ledger charges that" in hf.describe(release)) is (epsilon == 2)

    def test_steps_of_a_grid_are_not_added_up_with_counts(self, tmp_path: Path) -> None:
        """Costs of pairs of tables of counts are not known where there are answers; that there are dearer pairs is still told."""
        ledger = Ledger.open(tmp_path / "ledger.sqlite", create=True, needs_grants=True)
        ledger.grant("data", kind="pure", epsilon="9", approver="A. Chief", reason="a test")
        table = hf.Table(UNIVERSE, np.arange(6), name="data")
        kept = [hf.margin("group"), hf.margin("hour")]
        hf.release(table, kept, hf.RoundedProjection(epsilon="1", per="person"), ledger=ledger, release_id="counts").save(tmp_path / "a")
        before = ledger.balance("data")
        assert (before.per_distance, before.smallest_secret, before.secret_is_more) == (Fraction(1, 2), Fraction(2), True)
        answers: dict[str, Any] = {"sensitivity": 1, "step": "1/1048576", "mechanism": hf.ProjectedLaplace(epsilon="1"), "dataset": "data"}
        hf.answer([1.5, 2.5], **answers, ledger=ledger, release_id="answers").save(tmp_path / "b")
        after = ledger.balance("data")
        assert (after.spent, after.per_distance, after.smallest_secret, after.secret_is_more) == (Fraction(2), None, None, True)
        assert "where no person can change alone: more than that is spent" in ledger_screen(ledger.account("data"), ledger.last_event())

    def test_the_charge_is_what_was_asked_for_and_adds_to_that_of_counts(self, tmp_path: Path) -> None:
        ledger = Ledger.open(tmp_path / "ledger.sqlite", create=True, needs_grants=True)
        ledger.grant("data", kind="pure", epsilon="3", approver="A. Chief", reason="a test")
        table = hf.Table(UNIVERSE, np.arange(6), name="data")
        hf.release(table, [hf.total()], hf.GeneralizedLaplace(epsilon="1", per="person"), ledger=ledger, release_id="counts").save(
            tmp_path / "a"
        )
        release = hf.answer(
            [1.5, 2.5], sensitivity=1, mechanism=hf.ProjectedLaplace(epsilon="3/2"), ledger=ledger, release_id="answers", dataset="data"
        )
        release.save(tmp_path / "b")
        account = ledger.account("data")
        booked = {release.release_id: release for release in account.releases.values()}
        assert booked["answers"].charge.epsilon == Fraction(3, 2)
        assert account.balance().spent == Fraction(5, 2)
        hf.verify(tmp_path / "b")

    def test_tables_after_answers_add_up_and_say_why_nothing_is_joined(self, tmp_path: Path) -> None:
        ledger = Ledger.open(tmp_path / "ledger.sqlite", create=True, needs_grants=True)
        ledger.grant("data", kind="pure", epsilon="3", approver="A. Chief", reason="a test")
        given: dict[str, Any] = {"ledger": ledger, "dataset": "data"}
        universe = hf.Universe.product({"group": ["x", "y"], "hour": ["1", "2"]})
        hf.answer([1, 2, 3, 4], universe=universe, sensitivity=1, mechanism=LAPLACE, release_id="answers", **given).save(tmp_path / "a")
        table = hf.Table(UNIVERSE, np.arange(6))
        hf.release(table, [hf.total()], hf.GeneralizedLaplace(epsilon="1", per="person"), release_id="counts", **given).save(tmp_path / "b")
        account = ledger.account("data")
        booked = next(release for release in account.releases.values() if release.release_id == "counts")
        assert account.balance().spent == 2
        exposed: Any = booked.facts.exposed
        assert [left["why_not"]["obstacle"] for left in exposed["left_out"]] == ["answers"]

    def test_invariants_of_several_answers_to_the_same_cells_are_joined(self, tmp_path: Path) -> None:
        """The sum of three, then that of the first two: each alone fixes none, together they fix the third."""
        ledger = Ledger.open(tmp_path / "ledger.sqlite", create=True, needs_grants=True)
        ledger.grant("data", kind="pure", epsilon="9", approver="A. Chief", reason="a test")
        given: dict[str, Any] = {"ledger": ledger, "dataset": "data", "sensitivity": 1, "mechanism": LAPLACE}
        for name, values, rows in (("sum", [1, 2, 3], [[1] * 3]), ("two", [1, 2, 3], [[1, 1, 0]]), ("other", [1, 2], [[1, 1]])):
            hf.answer(values, keep=rows, release_id=name, **given).save(tmp_path / name)
        exposed = {
            release.release_id: ReleaseExposure.from_fields(cast(Any, release.facts.exposed))
            for release in ledger.account("data").releases.values()
        }
        assert exposed["sum"].together is None
        together = exposed["two"].together
        assert together is not None
        assert together.of_answers
        assert [new.names for new in together.fixed] == [("answer=3",)]
        told = hf.describe(exposed["two"])
        assert "Together the kept totals of 'sum' and 'two' fix 1 cell that none of them fixes alone: answer=3." in told
        assert "They were taken as the same answers" in told
        assert "were not given" not in told
        assert exposed["other"].together is None
        left = "Not computed together with 'sum', 'two': real-valued answers are joined with answers over the same cells only"
        assert left in hf.describe(exposed["other"])

    def test_a_list_of_cells_that_came_with_the_data_is_told(self) -> None:
        frame = pa.table({"town": ["a", "b"], "n": [1, 2]})
        listed = hf.Table.from_counts(frame, cells=["town"], count="n").universe
        release = hf.answer([1, 2], keep=[[1, 1]], universe=listed, sensitivity=1, mechanism=LAPLACE, ledger=None)
        assert release.card.guarantee.relation == "data sets with the same invariants and the same cells"
        assert "that a cell is on it is not protected" in hf.describe(release)
