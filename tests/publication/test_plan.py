"""The plan: made from public facts alone, and complete."""

from __future__ import annotations

import json
import pickle
from typing import Any, NoReturn

import numpy as np
import pytest

import holdfast as hf
from holdfast.errors import ContradictingTotals, InvalidConstraint, InvalidParameter, NothingLeft
from holdfast.publication.plan import MAX_MARGIN_CODES
from holdfast.tables import Declarations
from tests.snapshot_files import Snapshot

UNIVERSE = hf.Universe.product({"a": ["x", "y", "z"], "b": ["p", "q"]})
LAPLACE = hf.GeneralizedLaplace(epsilon="1/4", per="distance")


class Sealed(hf.Table):  # type: ignore[misc]
    """A table whose counts cannot be read: there are none, and whoever asks for them fails."""

    __slots__ = ()

    def __init__(self, universe: hf.Universe) -> None:
        Declarations.__init__(self, universe, "n", "household", 3, "sealed")

    @property
    def counts(self) -> NoReturn:
        raise AssertionError("a plan read the counts")

    frame = counts

    def save(self, path: Any) -> NoReturn:
        raise AssertionError("a plan saved the counts")


@pytest.mark.parametrize(
    "mechanism",
    [
        LAPLACE,
        hf.GeneralizedLaplace(epsilon=1, norm="l2", per="distance"),
        hf.Conditional(epsilon=1, per="distance"),
        hf.GeneralizedGaussian(rho=1, per="distance"),
        hf.RoundedProjection(epsilon=1, per="distance"),
        hf.Suppression(),
    ],
    ids=str,
)
@pytest.mark.parametrize("keep", [[], [hf.margin("a")], [hf.margin("a"), hf.margin("b")], [hf.subset("a", ["x", "y"])]], ids=str)
def test_a_plan_reads_no_count(mechanism: Any, keep: list[Any]) -> None:
    plan = hf.plan(Sealed(UNIVERSE), keep, mechanism)
    assert json.loads(json.dumps(plan.to_fields()))["cells"] == 6
    assert "household" in hf.describe(plan.guarantee) or isinstance(mechanism, hf.Suppression)
    facts = plan.facts
    assert (facts.protect, facts.max_records, facts.count_name, facts.name) == ("household", 3, "n", "sealed")


def test_a_universe_alone_can_be_planned_for() -> None:
    from_universe = hf.plan(UNIVERSE, [hf.margin("a")], LAPLACE)
    from_table = hf.plan(hf.Table(UNIVERSE, np.arange(6)), [hf.margin("a")], LAPLACE)
    assert from_universe.to_fields() == from_table.to_fields()
    assert str(from_universe) == str(from_table)


def test_a_generator_of_constraints_is_taken() -> None:
    assert hf.plan(UNIVERSE, (hf.margin(c) for c in "ab"), LAPLACE).to_fields()["kept"]["constraints"] == ["margin(a)", "margin(b)"]


TEXTS: dict[str, tuple[list[Any], Any]] = {
    "laplace": ([hf.margin("a"), hf.total(), hf.identity(hf.subset("a = 'x' and b = 'p'"))], LAPLACE),
    "laplace in l2, nothing kept": ([], hf.GeneralizedLaplace(epsilon=1, norm="l2", per="distance")),
    "gaussian": ([hf.margin("a"), hf.margin("b")], hf.GeneralizedGaussian(rho="1/10", per="distance")),
    "rounded": ([hf.margin("a")], hf.RoundedProjection(epsilon=1, per="distance")),
    "suppression": ([hf.margin("a")], hf.Suppression()),
}


@pytest.mark.parametrize("name", TEXTS)
def test_the_text(name: str, snapshot: Snapshot) -> None:
    snapshot(str(hf.plan(UNIVERSE, *TEXTS[name])))


class TestPublishedTotals:
    def test_they_add_the_cells_they_pin(self, snapshot: Snapshot) -> None:
        keep = [hf.margin("a"), hf.margin("b")]
        assert hf.plan(UNIVERSE, keep, LAPLACE).to_fields()["exposed"]["cells"] == 0
        plan = hf.plan(UNIVERSE, keep, LAPLACE, published_totals=[0, 4, 5, 3, 6])
        found = plan.to_fields()["exposed"]
        assert found["names"] == ["a=x, b=p", "a=x, b=q"]
        snapshot(found["text"])

    def test_a_release_knows_its_totals(self) -> None:
        """Rows and columns of a table with an empty row: nothing is fixed by the constraints, all of that row by their values."""
        table = hf.Table(UNIVERSE, np.array([0, 0, 3, 4, 2, 5]))
        keep = [hf.margin("a"), hf.margin("b")]
        assert hf.plan(table, keep, LAPLACE).to_fields()["exposed"]["cells"] == 0
        assert hf.release(table, keep, LAPLACE, ledger=None).card.exposed.names == ("a=x, b=p", "a=x, b=q")

    def test_identities_have_their_place_in_the_list(self) -> None:
        keep = [hf.identity(hf.subset("a = 'x' and b = 'p'")), hf.margin("a")]
        plan = hf.plan(UNIVERSE, keep, LAPLACE, published_totals=np.array([0, 7, 0, 5]))
        assert plan.to_fields()["exposed"]["names"] == ["a=x, b=q", "a=y, b=p", "a=y, b=q"]

    @pytest.mark.parametrize("totals", [[], [1, 2], [1, 2, 3, 4], 5, "123", [1.0, 2.0, 3.0], [[1], [2], [3]], ["1", "2", "3"], [True] * 3])
    def test_anything_else_is_refused(self, totals: Any) -> None:
        with pytest.raises(InvalidParameter, match=r"one whole number for each of the 3 kept totals"):
            hf.plan(UNIVERSE, [hf.margin("a")], LAPLACE, published_totals=totals)

    def test_totals_of_no_table_are_refused(self) -> None:
        with pytest.raises(ContradictingTotals):
            hf.plan(UNIVERSE, [hf.margin("a"), hf.margin("b")], LAPLACE, published_totals=[1, 1, 1, 9, 9])

    def test_totals_that_contradict_one_another_beside_a_total_of_0(self) -> None:
        """They were taken at their word: every cell 0, so that nothing was left."""
        with pytest.raises(ContradictingTotals):
            hf.plan(UNIVERSE, [hf.margin("a"), hf.total()], LAPLACE, published_totals=[3, 0, 1, 0])

    def test_no_total_where_none_is_kept(self) -> None:
        fields = hf.plan(UNIVERSE, [], LAPLACE, published_totals=[]).to_fields()
        assert fields == hf.plan(UNIVERSE, [], LAPLACE).to_fields()

    def test_a_pickle_keeps_what_they_pin(self) -> None:
        plan = hf.plan(UNIVERSE, [hf.margin("a")], LAPLACE, published_totals=[0, 4, 5])
        assert pickle.loads(pickle.dumps(plan)).to_fields() == plan.to_fields()


class TestContent:
    def test_kept_counts_kept_totals_and_not_identities(self) -> None:
        keep = [hf.margin("a"), hf.total(), hf.identity(hf.subset("a = 'x' and b = 'p'"))]
        plan = hf.plan(UNIVERSE, keep, LAPLACE)
        kept = plan.to_fields()["kept"]
        assert [given["type"] for given in kept.pop("definitions")] == ["margin", "margin", "subset"]
        assert kept == {
            "constraints": ["margin(a)", "total"],
            "identities": ["subset(a = 'x' and b = 'p')"],
            "revision": None,
            "totals": 4,
            "independent": 3,
            "free_dimensions": 2,
            "zeros": {
                "status": "open",
                "rule": 1,
                "cells": 0,
                "under": 0,
                "digest": None,
                "text": "Whole codes, units and other slices under a kept total or identity of 0 take no noise where what is left can be "
                "drawn exactly. Which cells these are is decided at the release, from the totals as published.",
            },
        }

    def test_expected_error_is_that_of_the_law(self) -> None:
        plan = hf.plan(UNIVERSE, [hf.margin("a")], hf.GeneralizedGaussian(sigma_squared=100))
        error = plan.expected_error
        assert error.smallest == error.median == error.largest == pytest.approx(50**0.5, rel=1e-5)  # a pair: variance sigma_squared / 2
        assert (error.basis, error.of_target) == ("upper bound", False)
        margins = dict(error.margins)
        assert margins[None] == margins["a"] == 0
        assert margins["b"] == pytest.approx(150**0.5, rel=1e-5)
        fields = plan.to_fields()["expected_error"]
        assert fields["cell_standard_deviation"]["median"] == error.median
        assert {m["name"]: m["standard_deviation"] for m in fields["margins"]} == {
            "total of the table": 0,
            "by a": 0,
            "by b": pytest.approx(margins["b"], rel=1e-5),
        }

    def test_a_margin_of_which_not_all_sums_were_looked_at_says_so(self) -> None:
        """Names of counties may be those of many states; the figure is of the first few names and must not pass for one of all."""
        codes = [str(i) for i in range(MAX_MARGIN_CODES + 1)]
        for county, name in ((codes, "by county (largest of the first 20 of 21)"), (codes[1:], "by county")):
            universe = hf.Universe.product({"state": ["x", "y"], "county": county})
            margins = hf.plan(universe, [hf.margin("state")], LAPLACE).to_fields()["expected_error"]["margins"]
            assert [margin["name"] for margin in margins] == ["total of the table", "by state", name]

    def test_suppression_claims_no_standard_deviation(self) -> None:
        plan = hf.plan(UNIVERSE, [hf.margin("a")], hf.Suppression())
        error = plan.expected_error
        assert (error.smallest, error.median, error.largest, error.margins) == (None, None, None, ())
        assert set(plan.to_fields()["expected_error"]["cell_standard_deviation"].values()) == {None}

    def test_the_sampler_says_why(self) -> None:
        (group,) = hf.plan(UNIVERSE, [hf.margin("a")], LAPLACE).to_fields()["sampler"]["groups"]
        assert (group["kind"], group["blocks"], group["cells"], group["why"]) == ("one sum", 3, 6, "one kept total over its cells")
        assert group["expected_tries"] >= 1


class TestRefusals:
    def test_what_is_no_table(self) -> None:
        with pytest.raises(InvalidParameter, match=r"needs a Table or a Universe. Got list"):
            hf.plan([1, 2], [], LAPLACE)  # type: ignore[arg-type]

    def test_what_is_no_mechanism(self) -> None:
        silent = type("Silent", (hf.RoundedProjection,), {"publishes_cells": False})(epsilon="1/2", per="distance")
        with pytest.raises(InvalidParameter, match=r"publishes_cells of Silent and of its target differ"):
            hf.plan(hf.Universe.product({"a": ["x", "y"]}), [hf.total()], silent)
        with pytest.raises(InvalidParameter, match=r"needs a mechanism.*Got float"):
            hf.plan(UNIVERSE, [], 0.5)  # type: ignore[arg-type]

    def test_what_is_no_list_of_constraints(self) -> None:
        with pytest.raises(InvalidConstraint, match=r"as a list"):
            hf.plan(UNIVERSE, hf.margin("a"), LAPLACE)  # type: ignore[arg-type]
        for keep in (["a"], "a", [None]):
            with pytest.raises(InvalidConstraint):
                hf.plan(UNIVERSE, keep, LAPLACE)  # type: ignore[arg-type]

    def test_none_is_no_list_of_constraints(self) -> None:
        with pytest.raises(InvalidConstraint):
            hf.plan(UNIVERSE, None, LAPLACE)  # type: ignore[arg-type]

    def test_kept_totals_that_fix_everything(self) -> None:
        with pytest.raises(NothingLeft, match=r"nothing is left to protect"):
            hf.plan(UNIVERSE, [hf.margin("a", "b")], LAPLACE)
