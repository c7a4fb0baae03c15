"""Releases of tables in which a kept total is 0: what the plan says, what is published, what anyone can check."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import holdfast as hf
from holdfast.engines.local import bind
from holdfast.errors import ContradictingTotals, InvalidParameter, VerificationFailed
from holdfast.exposure import cells as rule
from holdfast.ledger import Charge, Ledger
from holdfast.publication.order import Order
from holdfast.publication.pipeline import draw
from tests.publication.bookings import a_ledger, a_table, interrupted, run, state

UNIVERSE = hf.Universe.product({"route": ["r1", "r2", "r3", "r4"], "hour": ["06", "07", "08"]})
COUNTS = np.array([5, 0, 7, 0, 0, 0, 2, 3, 0, 1, 1, 1])
TWIN = np.array([4, 1, 7, 0, 0, 0, 3, 2, 0, 1, 1, 1])
"""Another table with the same totals of routes and hours."""
ROUTES = [hf.margin("route")]
BOTH = [hf.margin("route"), hf.margin("hour")]
R2 = [3, 4, 5]
MECHANISMS: dict[str, Any] = {
    "laplace": hf.GeneralizedLaplace(epsilon="1/8", per="distance"),
    "l2": hf.GeneralizedLaplace(epsilon="1/2", norm="l2", per="distance"),
    "gaussian": hf.GeneralizedGaussian(rho="1/32", per="distance"),
    "rounded": hf.RoundedProjection(epsilon="1/8", per="distance"),
}


@pytest.mark.ordinary("both")
@pytest.mark.parametrize(
    ("name", "keep"),
    [*((name, BOTH) for name in MECHANISMS), ("laplace", ROUTES), ("gaussian", ROUTES), ("rounded", ROUTES)],
    ids=lambda given: given if isinstance(given, str) else "both" if given is BOTH else "routes",
)
def test_no_noise_on_a_route_without_flights(name: str, keep: list[Any], tmp_path: Path) -> None:
    table = hf.Table(UNIVERSE, COUNTS)
    release = hf.release(table, keep, MECHANISMS[name], key=hf.NoiseKey.for_tests(name))
    assert release.table.counts[R2].tolist() == [0, 0, 0]
    deviations = release.table.standard_deviations
    assert deviations is not None
    assert np.flatnonzero(deviations == 0).tolist() == R2
    assert (release.table.counts != COUNTS).any()
    assert release.table.exposed[R2].all()
    card = release.card
    assert card.kept.zeros.status == "applied"
    assert card.kept.zeros.cells == 3
    assert card.guarantee.relation_fields.non_negative is True
    assert "3 cells lie under a kept total of 0" in card.kept.zeros.text
    hf.verify(release.save(tmp_path / "out"), against=table)
    assert "3 cells left out of the draw" in (tmp_path / "out" / "statement.html").read_text()
    assert "take no noise" in (tmp_path / "out" / "report.html").read_text()
    assert "take no noise" in (tmp_path / "out" / "statement.html").read_text()


def test_where_only_some_of_the_zero_cells_are_left_out_every_sentence_says_so(tmp_path: Path) -> None:
    """The slice a=1 is taken out of the cube; the pair a=2, b=x is no slice, and gets noise. Card and pages said that it did not."""
    cube = hf.Universe.product({"a": ["1", "2", "3", "4"], "b": ["x", "y", "z"], "c": ["p", "q", "r"]})
    counts = np.full((4, 3, 3), 5)
    counts[0] = counts[1, 0] = 0
    keep = [hf.margin("a", "b"), hf.margin("b", "c"), hf.margin("a", "c")]
    release = hf.release(
        hf.Table(cube, counts.ravel()), keep, hf.GeneralizedGaussian(rho="1/8", per="distance"), key=hf.NoiseKey.for_tests("part")
    )
    zeros, law = release.card.kept.zeros, release.card.mechanism.law
    assert (zeros.cells, zeros.under) == (9, 12)
    assert "9 of the 12 cells under a kept total of 0 take no noise" in zeros.text
    assert "The other 3 are drawn" in zeros.text
    assert law.endswith("z is 0 in the 9 cells of kept.zeros")
    assert release.plan.deviations is not None
    assert np.flatnonzero(release.plan.deviations == 0).tolist() == list(range(9))
    folder = release.save(tmp_path / "out")
    hf.verify(folder)
    for text in ((folder / "report.html").read_text(), (folder / "statement.html").read_text(), release.card.to_json()):
        assert "9 of the 12 cells under a kept total of 0" in text
        assert "9 cells lie under a kept total of 0" not in text
        assert "can only be 0, and take no noise" not in text


def test_the_sentence_where_none_of_the_zero_cells_is_left_out(tmp_path: Path) -> None:
    """Ages have levels, whose axes stay whole: the three counts of age 1, all 0, are drawn."""
    ages = hf.Hierarchy.from_parents({"1": "young", "2": "young", "3": "old", "4": "old"}, levels=["group", "age"])
    universe = hf.Universe.product({"county": ["A", "B", "C"], "age": ages})
    counts = np.array([0, 1, 2, 3] * 3)
    release = hf.release(
        hf.Table(universe, counts),
        [hf.margin("age")],
        hf.GeneralizedGaussian(rho=1, levels={"county": 1}, per="distance"),
        ledger=None,
    )
    zeros = release.card.kept.zeros
    assert (zeros.status, zeros.cells, zeros.under) == ("none", 0, 3)
    assert "3 cells lie under one, and are drawn" in zeros.text
    hf.verify(release.save(tmp_path / "out"))


def test_tables_with_the_same_totals_have_the_same_plan() -> None:
    one, other = (hf.release(hf.Table(UNIVERSE, counts), BOTH, MECHANISMS["gaussian"], ledger=None) for counts in (COUNTS, TWIN))
    assert one.plan.to_fields() == other.plan.to_fields()
    assert one.card == other.card


class TestThePlan:
    def test_without_totals_it_says_that_this_is_decided_at_the_release(self) -> None:
        plan = hf.plan(hf.Table(UNIVERSE, COUNTS), ROUTES, MECHANISMS["laplace"])
        assert plan.to_fields()["kept"]["zeros"]["status"] == "open"
        assert "decided at the release" in str(plan)
        assert plan.deviations is not None
        assert (plan.deviations > 0).all()

    def test_with_totals_it_is_the_plan_of_the_release(self) -> None:
        plan = hf.plan(UNIVERSE, ROUTES, MECHANISMS["laplace"], published_totals=[12, 0, 5, 3])
        release = hf.release(hf.Table(UNIVERSE, COUNTS), ROUTES, MECHANISMS["laplace"], ledger=None)
        assert plan.drawing.channel.identity == release.plan.drawing.channel.identity
        assert plan.to_fields()["kept"] == release.plan.to_fields()["kept"]
        assert "take no noise" in str(plan)

    def test_nothing_is_said_where_no_total_is_kept_or_nothing_is_drawn(self) -> None:
        for keep, mechanism in (([], MECHANISMS["laplace"]), (ROUTES, hf.Suppression())):
            plan = hf.plan(UNIVERSE, keep, mechanism)
            assert plan.to_fields()["kept"]["zeros"]["status"] == "none"
            assert "Zeros" not in str(plan)


class TestAnotherTable:
    """A plan for other totals would leave the noise out of cells that have counts: an infinite loss. It cannot be drawn."""

    WITH_R2 = np.array([5, 0, 7, 0, 1, 0, 2, 3, 0, 1, 1, 1])

    def test_a_plan_for_other_totals_is_refused(self) -> None:
        plan = hf.plan(UNIVERSE, ROUTES, MECHANISMS["laplace"], published_totals=[12, 0, 5, 3])
        with pytest.raises(ContradictingTotals, match="other totals"):
            draw(plan, hf.Table(UNIVERSE, self.WITH_R2), Order("r"))
        with pytest.raises(InvalidParameter, match="cells that are not 0"):
            bind(plan.drawing, hf.Table(UNIVERSE, self.WITH_R2), hf.NoiseKey.for_tests("other"), "r")

    def test_a_wrong_rule_is_caught_before_anything_is_drawn(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def every_first_hour(kept: Any, totals: Any) -> Any:
            return np.arange(12) % 3 == 0

        monkeypatch.setattr("holdfast.channels.drawing.zero_cells", every_first_hour)
        with pytest.raises(InvalidParameter, match="cells that are not 0"):
            hf.release(hf.Table(UNIVERSE, COUNTS), ROUTES, MECHANISMS["laplace"], ledger=None)


class TestVerify:
    def test_a_card_that_tells_other_cells_is_refused(self, tmp_path: Path) -> None:
        release = hf.release(hf.Table(UNIVERSE, COUNTS), ROUTES, MECHANISMS["gaussian"], key=hf.NoiseKey.for_tests("v"))
        folder = release.save(tmp_path / "out")
        card = json.loads((folder / "card.json").read_text())
        other = {"status": "none", "cells": 0, "digest": None, "text": "No cell is left out of the draw because of a kept total of 0."}
        card["kept"]["zeros"].update(other)
        (folder / "card.json").write_text(json.dumps(card, indent=2, ensure_ascii=False) + "\n")
        with pytest.raises(VerificationFailed, match=r"kept\.zeros\.status is 'none'; the rest of the folder gives 'applied'"):
            hf.verify(folder)

    def test_a_release_by_another_rule_is_refused(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Noise on all cells, as before there was a rule."""
        with monkeypatch.context() as patch:
            patch.setattr("holdfast.channels.drawing.zero_cells", lambda kept, totals: np.zeros(12, dtype=np.bool_))
            release = hf.release(hf.Table(UNIVERSE, COUNTS), ROUTES, MECHANISMS["gaussian"], key=hf.NoiseKey.for_tests("w"))
            folder = release.save(tmp_path / "out")
            hf.verify(folder)
        assert release.table.counts[R2].any()
        with pytest.raises(VerificationFailed, match=r"under a kept total of 0 are not 0|mechanism\.identity"):
            hf.verify(folder)

    def test_the_version_of_the_rule_is_part_of_the_identity(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        folder = hf.release(hf.Table(UNIVERSE, COUNTS), ROUTES, MECHANISMS["gaussian"], ledger=None).save(tmp_path / "out")
        monkeypatch.setattr("holdfast.channels.facts.RULE", rule.RULE + 1)
        with pytest.raises(VerificationFailed, match=r"mechanism\.identity"):
            hf.verify(folder)


def test_the_ledger_is_charged_what_the_plan_says(tmp_path: Path) -> None:
    ledger = Ledger.open(tmp_path / "ledger.sqlite", create=True, needs_grants=True)
    ledger.grant("routes", kind="zcdp", rho="10", approver="A", reason="test")
    mechanism = hf.GeneralizedGaussian(epsilon="1/2", delta="1e-6", per="distance")
    table = hf.Table(UNIVERSE, COUNTS, name="routes")
    hf.release(table, ROUTES, mechanism, ledger=ledger, release_id="one").save(tmp_path / "out")
    found = ledger.reservation("routes", "one")
    assert found is not None
    assert found.charge == Charge.of(hf.plan(table, ROUTES, mechanism).guarantee)
    assert hf.verify(tmp_path / "out").cells == 12


def test_an_interrupted_release_goes_on_with_the_same_cells_left_out(tmp_path: Path) -> None:
    ledger = a_ledger(tmp_path)
    table = a_table(COUNTS, UNIVERSE)
    interrupted(ledger, tmp_path / "out", table=table, keep=ROUTES)
    run(ledger, tmp_path / "out", table=table, keep=ROUTES, resume=True)
    assert state(ledger) == "closed"
    assert json.loads((tmp_path / "out" / "card.json").read_text())["kept"]["zeros"]["cells"] == 3
    hf.verify(tmp_path / "out")


class TestFlights:
    """Destinations, hours and carriers of flights from New York in 2013: most pairs of destination and carrier have none."""

    @pytest.mark.parametrize(
        "mechanism",
        [hf.GeneralizedGaussian(rho="1/50", per="distance"), hf.RoundedProjection(epsilon="1/4", per="distance")],
        ids=["gaussian", "rounded"],
    )
    @pytest.mark.parametrize(
        ("keep", "left_out"),
        [
            ([hf.margin("dest", "carrier"), hf.margin("hour")], 175 * 24 + 5 * 105),
            ([hf.margin("dest"), hf.margin("hour"), hf.margin("carrier")], 5 * 280),
        ],
        ids=["routes and hours", "one-way"],
    )
    def test_routes_and_hours_without_flights(self, keep: list[Any], left_out: int, mechanism: Any, shared_data: Path) -> None:
        source = shared_data / "nycflights13_dest_hour_carrier.csv"
        table = hf.Table.from_counts(source, cells=["dest", "hour", "carrier"], count="flights_2013")
        release = hf.release(table, keep, mechanism, key=hf.NoiseKey.for_tests("flights"))
        zero = np.zeros(len(table), dtype=np.bool_)
        for rows, totals in zip(release.plan.facts.kept.rows, release.totals, strict=True):
            zero |= totals[rows.group] == 0  # type: ignore[union-attr]
        assert zero.sum() == left_out
        assert not release.table.counts[zero].any()
        assert release.table.exposed[zero].all()
        deviations = release.table.standard_deviations
        assert deviations is not None
        assert np.array_equal(deviations == 0, zero)
        assert release.table.counts.min() < 0  # elsewhere noise is as before
