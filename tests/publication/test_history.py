"""What the ledger knows of a release, and what several releases expose together: computed from public facts, or said to be not computed."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import holdfast as hf
from holdfast.exposure.facts import Obstacle, ReleaseExposure
from holdfast.ledger import Ledger
from holdfast.ledger.chain import canonical, checked_facts
from holdfast.ledger.releases import ReleaseFacts
from holdfast.publication import history
from holdfast.publication.history import public_facts, published_totals, read_universe, release_exposure, universe_facts
from holdfast.publication.plan import Plan
from holdfast.wording.exposure import VALUES_LATER
from holdfast.wording.joint import release_sentences
from holdfast.wording.ledger import exposed_text
from tests.exposing import exposing
from tests.snapshot_files import Snapshot

AGES = ["0", "1", "2", "3"]
BY_AGE = hf.Universe.product({"zip": ["z1", "z2"], "age": AGES})
LAPLACE = hf.GeneralizedLaplace(epsilon="1/100", per="distance")

NOTHING = "No cell is fixed by the structure of the kept totals."
ALONE = "The structure of these kept totals alone fixes no cell."


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    made = Ledger.open(tmp_path / "ledger.db", create=True, needs_grants=True)
    made.grant("d", kind="pure", epsilon="3", approver="A. Chief", reason="the census")
    return made


def a_table(universe: hf.Universe = BY_AGE) -> hf.Table:
    return hf.Table(universe, np.arange(len(universe)), name="d")


def a_plan(*keep: Any, universe: hf.Universe = BY_AGE) -> Plan:
    return hf.plan(a_table(universe), keep, LAPLACE)


def release(ledger: Ledger, name: str, *keep: Any, universe: hf.Universe = BY_AGE) -> list[str]:
    """What the ledger then holds that it exposes, in sentences."""
    exposing(hf.release, a_table(universe), keep, LAPLACE, ledger=ledger, release_id=name)
    held = ledger.reservation("d", name)
    assert held is not None
    said: Any = held.facts.exposed
    exposed = ReleaseExposure.from_fields(said)
    assert exposed.to_fields() == said
    return release_sentences(exposed)


def words(ledger: Ledger, *keep: Any, universe: hf.Universe = BY_AGE) -> str:
    """As the command line prints it before the release."""
    return hf.describe(release_exposure(a_plan(*keep, universe=universe), ledger.account("d").releases.values()))


def shown(ledger: Ledger) -> str:
    text = exposed_text(ledger.account("d").releases.values())
    assert text is not None
    return text


class TestLimits:
    """The work grows faster than the releases that are joined: beyond a limit it is said to be not computed."""

    @pytest.mark.parametrize(("name", "limit"), [("MAX_JOINED", 2), ("MAX_JOINED_CELLS", 2 * len(BY_AGE) + 1)])
    def test_the_latest_are_joined(self, ledger: Ledger, monkeypatch: pytest.MonkeyPatch, name: str, limit: int) -> None:
        for number in range(4):
            release(ledger, f"r{number}", hf.margin("zip"))
        monkeypatch.setattr(history, name, limit)
        exposed = release_exposure(a_plan(hf.margin("age")), ledger.account("d").releases.values())
        assert exposed.together is not None
        assert exposed.together.releases[:-1] == ("r2", "r3")
        assert [(one.releases, one.why_not.obstacle) for one in exposed.left_out] == [(("r0", "r1"), Obstacle.TOO_MANY)]
        assert "Not computed together with 'r0', 'r1': only the latest" in hf.describe(exposed)
        assert ReleaseExposure.from_fields(exposed.to_fields()) == exposed


class TestFacts:
    @given(st.data())
    def test_a_universe_comes_back(self, data: st.DataObject) -> None:
        codes = data.draw(st.lists(st.lists(st.text(max_size=3), min_size=1, max_size=4, unique=True), min_size=1, max_size=3))
        allowed: dict[str, Any] = {"allow_similar_codes": True, "allow_total_names": True}
        product = hf.Universe.product({f"c{place}": given_codes for place, given_codes in enumerate(codes)}, **allowed)
        cells = [product.cell(index) for index in range(len(product))]
        some = data.draw(st.lists(st.sampled_from(cells), min_size=1, unique_by=lambda cell: tuple(cell.values())))
        listed = hf.Universe.listed({column: [cell[column] for cell in some] for column in product.columns}, **allowed)
        for universe in (product, listed):
            stored = json.loads(canonical(checked_facts(universe_facts(universe))))
            read = read_universe(stored)
            assert read is not None
            assert read == universe
            assert read.digest() == universe.digest() == stored["digest"]

    def test_cells_that_were_observed_stay_observed(self) -> None:
        """Such a list depends on the data: what is exposed together with another list is not computed."""
        observed = hf.Table.from_records(pa.table({"zip": ["z1", "z2", "z1"]}), ["zip"], universe="observed").universe
        read = read_universe(universe_facts(observed))
        assert read is not None
        assert read.support == observed.support == "observed"

    def test_a_large_universe_is_known_by_its_digest(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(history, "MAX_CODES", 5)
        said = universe_facts(BY_AGE)
        assert (said["codes"], said["cells"]) == (None, None)
        assert read_universe(said) is None
        assert said["digest"] == BY_AGE.digest()

    def test_facts_are_plain_public_and_the_same_for_other_counts(self) -> None:
        keep: list[Any] = [hf.margin("zip"), hf.subset("age", ["0"], by=["zip"]), hf.linear([[1, 0, 0, 0, 0, 0, 0, 0]], ["first"])]
        one, other = (hf.plan(hf.Table(BY_AGE, counts, name="d"), keep, LAPLACE) for counts in (np.arange(8), np.arange(8)[::-1].copy()))
        facts = public_facts(one, {"holdfast": "1"}, (), "r0")
        assert facts == public_facts(other, {"holdfast": "1"}, (), "r0")
        plain = facts.to_fields()
        assert checked_facts(plain) == plain == json.loads(canonical(plain))
        assert ReleaseFacts.read(plain) == facts
        assert plain["revision_of"] == "r0"
        assert "revision_of" not in public_facts(one, {}, (), None).to_fields()

    def test_totals_come_back(self, ledger: Ledger) -> None:
        keep = (hf.margin("zip"), hf.subset("age < 2", by=["zip"]), hf.identity(hf.subset("age = 3"), 10))
        release(ledger, "r1", *keep)
        held = ledger.reservation("d", "r1")
        assert held is not None
        other = hf.Universe.product({"x": ["1"]})
        totals = published_totals(held, other)
        assert totals is not None
        assert totals.universe == BY_AGE
        assert totals.constraints == keep

    @pytest.mark.parametrize(
        ("name", "values"),
        [
            ("universe", [None, {}, {"codes": None, "cells": 3}, {"codes": {}, "columns": ["x"]}]),
            ("constraints", [None, [{}], [{"type": "margin", "kind": "kept", "columns": ["nowhere"]}]]),
        ],
    )
    def test_facts_that_cannot_be_read_are_unknown(self, ledger: Ledger, name: str, values: list[Any]) -> None:
        release(ledger, "r1", hf.margin("zip"))
        held = ledger.reservation("d", "r1")
        assert held is not None
        for wrong in values:
            broken = replace(held, facts=replace(held.facts, **{name: wrong}))
            assert published_totals(broken, hf.Universe.product({"x": ["1"]})) is None
            exposed = release_exposure(a_plan(hf.margin("age")), [broken])
            assert [(one.releases, one.why_not.obstacle) for one in exposed.left_out] == [(("r1",), Obstacle.NOT_HELD)]
            assert hf.describe(exposed).startswith(f"{ALONE} {VALUES_LATER} Not computed together with 'r1'")


class TestExposed:
    def test_the_first_release(self, ledger: Ledger) -> None:
        assert words(ledger, hf.margin("zip")) == f"{NOTHING} {VALUES_LATER}"
        assert release(ledger, "r1", hf.margin("zip")) == [f"{NOTHING} {VALUES_LATER}"]
        assert shown(ledger) == f"r1: {NOTHING} {VALUES_LATER}"

    def test_the_same_table_twice(self, ledger: Ledger, snapshot: Snapshot) -> None:
        release(ledger, "r1", hf.margin("zip"))
        snapshot(words(ledger, hf.margin("zip")), "before")
        snapshot("\n".join(release(ledger, "r2", hf.margin("zip"))), "after")

    def test_nested_sets_that_fix_a_cell_together(self, ledger: Ledger, snapshot: Snapshot) -> None:
        """Ages under 2 by zip code, then ages under 3 by zip code: the difference is one age."""
        release(ledger, "r1", hf.subset("age < 2", by=["zip"]))
        snapshot(words(ledger, hf.subset("age < 3", by=["zip"])), "before")
        snapshot("\n".join(release(ledger, "r2", hf.subset("age < 3", by=["zip"]))), "after")

    def test_three_releases(self, ledger: Ledger, snapshot: Snapshot) -> None:
        release(ledger, "r1", hf.margin("zip"))
        release(ledger, "r2", hf.subset("age", ["0", "1"], by=["zip"]))
        snapshot("\n".join(release(ledger, "r3", hf.subset("age", ["2"], by=["zip"]))), "the third release")
        text = shown(ledger)
        snapshot(text, "the ledger")
        alone = text.index(f"r1, r2: {NOTHING} r3: 2 cells are published exactly")
        assert text.index("'r1', 'r2' and 'r3'") < alone < text.index("Now known") < text.index("'r1' and 'r2'")  # a screen cuts the end

    def test_other_columns_with_a_common_refinement(self, ledger: Ledger, snapshot: Snapshot) -> None:
        by_sex = hf.Universe.product({"zip": ["z1", "z2"], "sex": ["F", "M"]})
        release(ledger, "r1", hf.margin("zip"))
        snapshot(words(ledger, hf.subset("sex", ["F"], by=["zip"]), universe=by_sex))

    def test_without_a_common_refinement_it_is_not_computed(self, ledger: Ledger, snapshot: Snapshot) -> None:
        grouped = hf.Universe.product({"zip": ["z1", "z2"], "age": ["0-1", "2-3"]})
        release(ledger, "r1", hf.margin("zip"))
        said = words(ledger, hf.margin("zip"), universe=grouped)
        snapshot(said)
        assert "fix no cell" not in said

    def test_one_release_that_does_not_fit_hides_nothing_of_the_others(self, ledger: Ledger, snapshot: Snapshot) -> None:
        grouped = hf.Universe.product({"zip": ["z1", "z2"], "age": ["0-1", "2-3"]})
        release(ledger, "r1", hf.subset("age < 2", by=["zip"]))
        release(ledger, "odd", hf.margin("zip"), universe=grouped)
        snapshot(words(ledger, hf.subset("age < 3", by=["zip"])), "before")
        release(ledger, "r2", hf.subset("age < 3", by=["zip"]))
        snapshot(words(ledger, hf.margin("zip"), universe=grouped), "of another table")
        snapshot(shown(ledger), "the ledger")

    def test_a_table_that_the_ledger_does_not_hold(self, ledger: Ledger, monkeypatch: pytest.MonkeyPatch, snapshot: Snapshot) -> None:
        """Its own cells are at hand where the table is the same; another table is not computed."""
        monkeypatch.setattr(history, "MAX_CODES", 5)
        release(ledger, "r1", hf.subset("age < 2", by=["zip"]))
        snapshot(words(ledger, hf.subset("age < 3", by=["zip"])), "the same table")
        by_sex = hf.Universe.product({"zip": ["z1", "z2"], "sex": ["F", "M"]})
        said = words(ledger, hf.margin("zip"), universe=by_sex)
        snapshot(said, "another table")
        assert "fix no cell" not in said

    def test_what_was_given_up_exposes_nothing(self, ledger: Ledger) -> None:
        release(ledger, "r1", hf.subset("age < 2", by=["zip"]))
        held = ledger.reservation("d", "r1")
        assert held is not None
        ledger.void(held, "never published")
        assert words(ledger, hf.subset("age < 3", by=["zip"])) == f"{NOTHING} {VALUES_LATER}"
        assert exposed_text(ledger.account("d").releases.values()) is None

    def test_a_release_that_says_nothing_is_not_computed(self, ledger: Ledger) -> None:
        release(ledger, "r1", hf.margin("zip"))
        held = ledger.reservation("d", "r1")
        assert held is not None
        values: list[Any] = [None, "", [], "text of another version", {}, {"alone": 3}]
        for said in values:
            silent = replace(held, facts=replace(held.facts, exposed=said))
            assert str(exposed_text([silent])).startswith("r1: Not computed: ")
