"""One answer in floating point: marked, never saved or booked; bad input gets one clear error that shows no value."""

from __future__ import annotations

import inspect
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import holdfast as hf
from holdfast import research
from holdfast.errors import InexactParameter, InvalidParameter, NothingLeft, StreamReused
from holdfast.research.subspace import (
    Extended,
    Projected,
    ProjectedDoubleGeometric,
    ProjectedStudent,
    Sensitivities,
    floating_answer,
    generator,
    projected_laplace,
    read_query,
)
from tests.notebooks import notebook_page


class Mechanism:
    """As the mechanisms of the package: frozen numbers, and a form in floating point."""

    norm = "l1"

    def floating(self, query: Any) -> Any:
        return projected_laplace(query, "1/4")


class TestAnswer:
    def test_it_is_marked_and_goes_nowhere(self, tmp_path: Any) -> None:
        key = hf.NoiseKey.for_tests("answer")
        answer = floating_answer([5, 3, 2], keep=[[1, 1, 1]], sensitivity=2, mechanism=Mechanism(), key=key)
        assert answer.status == answer.guarantee.status == "floating point"
        assert "floating point, research only" in repr(answer)
        assert "floating point, research only" in notebook_page(answer)
        assert abs(answer.values.sum() - 10) < 1e-9
        assert answer.basis.startswith("Gram-Schmidt")
        with pytest.raises(InvalidParameter, match="neither saved, published nor booked"):
            answer.save(tmp_path / "out")
        assert list(tmp_path.iterdir()) == []
        assert "Floating point, research only" in hf.describe(answer)

    def test_a_declared_sensitivity_makes_a_declared_promise(self) -> None:
        declared = floating_answer([5, 3], keep=[[1, 1]], sensitivity=2, mechanism=hf.ProjectedLaplace(epsilon="1"))
        computed = floating_answer([[1, 0], [0, 1]], [5, 3], keep=[[1, 1]], mechanism=hf.ProjectedLaplace(epsilon="1"))
        assert (declared.guarantee.basis, computed.guarantee.basis) == ("declared", "proved")
        assert "as it was declared. That was not checked" in hf.describe(declared)
        assert "declared" not in hf.describe(computed)

    def test_no_release_takes_a_mechanism_of_ones_own(self) -> None:
        table = hf.Table(hf.Universe.product({"town": ["a", "b"]}), np.array([5, 3]))
        with pytest.raises(InvalidParameter):
            hf.release(table, [hf.total()], Projected(lambda a, r: a, 1), ledger=None)  # type: ignore[call-overload]

    def test_one_key_one_answer(self) -> None:
        asked: dict[str, Any] = {"mechanism": Mechanism(), "sensitivity": "1/2"}
        first, second = (floating_answer([5.5, 3], key=hf.NoiseKey.for_tests("a"), **asked).values for _ in range(2))
        assert (first == second).all()
        assert (floating_answer([5.5, 3], **asked).values != first).all()
        key = hf.NoiseKey.for_tests("a")
        generator(key)
        with pytest.raises(StreamReused):
            generator(key)

    def test_mechanisms_without_this_form(self) -> None:
        with pytest.raises(InvalidParameter, match="Suppression has no form in floating point"):
            floating_answer([5.5, 3], mechanism=hf.Suppression())  # type: ignore[arg-type]

    @pytest.mark.parametrize(
        ("given", "message"),
        [("laplace", "mechanism is what draws the noise.* Got str"), (hf.ProjectedLaplace, "Got the class ProjectedLaplace")],
    )
    def test_what_is_no_mechanism(self, given: Any, message: str) -> None:
        with pytest.raises(InvalidParameter, match=message):
            floating_answer([5.5, 3], sensitivity=1, mechanism=given)

    def test_a_gaussian_needs_a_pair(self) -> None:
        with pytest.raises(InvalidParameter, match="epsilon and delta"):
            floating_answer([1, 2], sensitivity=1, keep=[[1, 1]], mechanism=hf.ProjectedGaussian(rho=1))

    def test_constraints_need_a_universe(self) -> None:
        with pytest.raises(InvalidParameter, match="Constraints are about a universe"):
            floating_answer([1, 2], sensitivity=1, keep=[hf.total()], mechanism=hf.ProjectedLaplace(epsilon=1))


UNIVERSE = hf.Universe.product({"town": ["a", "b"], "sex": ["F", "M"]})
EVERY = [
    hf.ProjectedLaplace(epsilon="1/2"),
    hf.ExtendedLaplace(epsilon="1/2"),
    hf.ProjectedGaussian(epsilon="1", delta="1e-6"),
    hf.ExtendedGaussian(epsilon="1", delta="1e-6", calibration="paper"),
    research.CorrelatedGaussian("1", "1e-6"),
    research.KNorm("1"),
    ProjectedDoubleGeometric("1"),
    ProjectedStudent("1"),
    Projected(lambda answers, random: answers + random.laplace(scale=2, size=4), "1"),
    Extended(lambda free, random: free + random.laplace(scale=2, size=2), "1"),
]


class TestEveryMechanism:
    """`floating_answer` by every mechanism there is."""

    @pytest.mark.parametrize("mechanism", EVERY, ids=lambda mechanism: type(mechanism).__name__)
    def test_margins_of_a_table(self, mechanism: Any) -> None:
        table = hf.Table(UNIVERSE, np.array([5, 3, 2, 9]))
        given: dict[str, Any] = {"mechanism": mechanism, "key": hf.NoiseKey.for_tests("margins")}
        found = floating_answer(np.eye(4, dtype=int), table, keep=[hf.margin("town")], universe=UNIVERSE, **given)
        assert found.status == found.guarantee.status == "floating point"
        assert found.guarantee.is_induced
        assert np.abs(found.values.reshape(2, 2).sum(axis=1) - [8, 11]).max() < 1e-9
        assert np.abs(found.values - table.counts).max() > 1e-3

    @pytest.mark.parametrize("mechanism", EVERY[4:], ids=lambda mechanism: type(mechanism).__name__)
    def test_what_has_no_form_on_the_grid_is_refused_there(self, mechanism: Any) -> None:
        with pytest.raises(InvalidParameter, match="has a form in floating point only, which is for research"):
            hf.answer([1.5, 2], sensitivity=1, mechanism=mechanism, ledger=None)

    @pytest.mark.parametrize("argument", ["step", "on_grid", "release_id", "office", "names", "ledger", "dataset", "allow_exposed"])
    def test_what_belongs_to_a_publication_is_no_argument(self, argument: str) -> None:
        assert argument in inspect.signature(hf.answer).parameters
        with pytest.raises(TypeError, match=argument):
            floating_answer([1.5, 2], sensitivity=1, mechanism=hf.ProjectedLaplace(epsilon=1), **{argument: 1})  # type: ignore[arg-type]


class TestRead:
    def test_a_linear_query(self) -> None:
        values, query = read_query([[1, 1, 0], ["1/2", 0, "1/2"]], [4, 2, 6], keep=[[1, -2]], neighbours="add-remove")
        assert values.tolist() == [6.0, 5.0]
        assert (query.l1, query.l2_squared, query.neighbours) == (Fraction(3, 2), Fraction(5, 4), "add-remove")
        assert query.columns.tolist() == [[1, 1, 0], [0.5, 0, 0.5]]

    def test_sensitivities_as_numbers_or_all_of_them(self) -> None:
        assert read_query([1, 2], keep=None, norm="l1", sensitivity="3/2")[1].l1 == 1.5
        assert read_query([1, 2], keep=None, norm="l2", sensitivity="3/2")[1].l2_squared == 2.25
        stated = Sensitivities(l1=1, projected_l1=2)  # type: ignore[arg-type]
        assert read_query([1, 2], keep=None, sensitivity=stated)[1].projected_l1 == 2

    @pytest.mark.parametrize(
        ("values", "histogram", "named", "kind", "message"),
        [
            ([1, float("nan")], None, {"keep": [[1, 1]]}, InvalidParameter, "values holds numbers that are not finite"),
            ([1, float("inf")], None, {"keep": [[1, 1]]}, InvalidParameter, "values holds numbers that are not finite"),
            (["a", "b"], None, {"keep": [[1, 1]]}, InvalidParameter, "values takes numbers"),
            ([], None, {"keep": None}, InvalidParameter, "values takes a list of numbers, at least one"),
            ([[1, 2]], None, {"keep": [[1, 1]]}, InvalidParameter, r"Got the shape \(1, 2\)"),
            ([1, 2], None, {"keep": [[1, 0], [0, 1]]}, NothingLeft, "no null space is left"),
            ([1, 2], None, {"keep": [[0.5, 1]]}, InexactParameter, r"Write the string '0\.5'"),
            ([1, 2, 3], None, {"keep": [[1, 1]]}, InvalidParameter, "rows of one length"),
            ([1, 2], None, {"keep": None, "sensitivity": 0}, InvalidParameter, "sensitivity is zero"),
            (
                [1, 2],
                None,
                {"keep": None, "sensitivity": float("inf")},
                InexactParameter,
                "sensitivity must be a finite exact number",
            ),
            ([[1, 2]], [1, 2], {"keep": None, "sensitivity": 1}, InvalidParameter, "Leave `sensitivity` out"),
            ([[1, 2]], [1, -2], {"keep": None}, InvalidParameter, "The histogram holds whole numbers, zero or more"),
            ([[1, 2]], [1, 0.5], {"keep": None}, InvalidParameter, "The histogram holds whole numbers, zero or more"),
            ([[1, 2]], [1, 2, 3], {"keep": None}, InvalidParameter, "histogram takes a list of 2"),
            ([[0.5, 2]], [1, 2], {"keep": None}, InexactParameter, "an entry of query_matrix must be exact"),
        ],
    )
    def test_bad_input(self, values: Any, histogram: Any, named: dict[str, Any], kind: type[Exception], message: str) -> None:
        with pytest.raises(kind, match=message):
            read_query(values, histogram, **named)

    def test_messages_hold_no_answer(self) -> None:
        with pytest.raises(InvalidParameter) as caught:
            read_query([123456.75, float("nan")], keep=[[1, 1]])
        assert "123456" not in str(caught.value)
