"""Sums that the kept totals give are known exactly, whatever the mechanism: every query of small tables, against the lattice."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import holdfast as hf
from holdfast.accuracy import kept_sums as module
from holdfast.accuracy.kept_sums import KeptSums
from holdfast.channels import Facts
from holdfast.errors import InvalidParameter
from holdfast.exposure.cells import zero_cells
from holdfast.tables import Declarations

GRID = hf.Universe.product({"sex": ["F", "M"], "age": ["0", "1", "2"]})
TABLE = hf.Table(GRID, np.array([5, 3, 2, 0, 0, 4]))
MARGINS = [hf.margin("sex"), hf.margin("age")]


def facts_of(keep: Any, table: hf.Table = TABLE) -> Facts:
    found = Facts.of(Declarations.of(table), keep)
    return found.with_totals(np.concatenate([rows.totals(table.counts) for rows in found.kept.rows]))


@pytest.mark.parametrize(
    "keep",
    [
        [hf.total()],
        [hf.margin("age")],
        MARGINS,
        [hf.subset("age", ["0", "1"]), hf.subset("age", ["1", "2"])],
        [hf.linear([[1, 1, 0, 0, 0, 2], [0, 2, 0, 2, 0, 0]]), hf.margin("sex")],
    ],
    ids=["total", "margin", "grid", "overlapping", "any rows"],
)
@pytest.mark.parametrize("counts", [[5, 3, 2, 1, 7, 4], [0, 3, 0, 0, 7, 0]], ids=["positive", "zeros"])
def test_every_query_of_a_small_table(keep: Any, counts: list[int]) -> None:
    """Known where no move between tables with these totals changes it: a move that leaves out cells that are 0 by a total."""
    table = hf.Table(GRID, np.array(counts))
    facts = facts_of(keep, table)
    assert facts.published_totals is not None
    known = KeptSums(facts)
    zero = zero_cells(facts.kept, facts.published_totals)
    moves = np.array(hf.Lattice(np.vstack([facts.kept.matrix().toarray(), np.eye(6, dtype=np.int64)[zero]])).basis, dtype=np.int64)
    found = 0
    for wanted in product((-1, 0, 1), repeat=6):
        row = np.array(wanted)
        still = not (row @ moves.reshape(6, -1)).any()
        value = known.value(np.arange(6), row)
        assert value == (int(row @ table.counts) if still else None)
        found += still
    assert found >= 3


def test_rows_of_several_constraints_are_refused_where_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "distinct_columns", lambda matrix: None)
    known = KeptSums(facts_of(MARGINS))
    assert known.value(np.arange(3), np.ones(3, dtype=np.int64)) == 10
    assert known.value(np.arange(4), np.array([2, 1, 1, 1])) is None  # a row and a column


@pytest.mark.ordinary("suppressed", "conditional", "noise")
@pytest.mark.parametrize(
    "mechanism",
    [
        hf.Suppression(),
        hf.Conditional(epsilon=1, per="distance"),
        hf.GeneralizedLaplace(epsilon="1/2", sampler="line_gibbs", eta="3/100", per="distance"),
        hf.GeneralizedLaplace(epsilon=1, per="distance"),
    ],
    ids=["suppressed", "conditional", "chain", "noise"],
)
class TestEveryMechanism:
    def test_releases_and_folders(self, mechanism: Any, tmp_path: Path) -> None:
        release = hf.release(TABLE, MARGINS, mechanism, key=hf.NoiseKey.for_tests("kept sums"))
        for source in (release, hf.load(release.save(tmp_path / "out"))):
            for query, value in (({"sex": "F"}, 10), ("age = '2'", 6), ({}, 14), ([2, 1, 1, 1, 0, 0], 15)):
                found = source.interval(query)
                assert (found.low, found.high, found.published, found.method, found.covered) == (value, value, value, "kept", 1.0)
            assert source.interval({"sex": "F"}, minus={"age": "0"}).low == 5
            assert source.interval({"sex": "F"}, percent_of={}).high == pytest.approx(100 * 10 / 14)
            several = source.intervals(by="age")
            assert [(one.low, one.high) for one in several] == [(5, 5), (3, 3), (6, 6)]
            assert [one.low for one in source.intervals(["sex = 'M'", {"age": ["0", "1"]}])] == [4, 8]

    def test_all_else_is_refused_where_there_is_no_law(self, mechanism: Any) -> None:
        release = hf.release(TABLE, MARGINS, mechanism, key=hf.NoiseKey.for_tests("kept sums"))
        if isinstance(mechanism, hf.GeneralizedLaplace) and mechanism.request.sampler == "auto":
            assert release.interval(0).method != "kept"
            return
        for ask in (lambda: release.interval(0), lambda: release.intervals(by=["sex", "age"]), lambda: release.interval(0, over={})):
            with pytest.raises(InvalidParameter, match="kept totals"):
                ask()
