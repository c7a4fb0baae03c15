"""A release of a 20 x 20 table with Laplace noise, which no rejection reaches: plan, draw, card, folder, verify."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np

import holdfast as hf
from holdfast.samplers.choice import Reason

KEEP = [hf.margin("row"), hf.margin("column")]


def test_a_two_way_table_end_to_end(tmp_path: Path) -> None:
    codes = [str(i) for i in range(20)]
    universe = hf.Universe.product({"row": codes, "column": codes})
    counts = (np.arange(400) * 7919) % 61 + 3
    table = hf.Table(universe, counts, protect="person", max_records=1)
    mechanism = hf.GeneralizedLaplace(epsilon="1/4", per="distance")
    plan = hf.plan(table, KEEP, mechanism)
    (group,) = plan.drawing.sampler_plan.groups
    assert (group.sampler, group.reason) == ("grid 20 x 20: coupling from the past", Reason.COUPLED)
    assert group.compared is not None
    assert group.compared.taken < 1e7 < 1e15 < group.compared.other
    assert plan.guarantee.kind == "pure"

    made = hf.release(table, KEEP, mechanism, key=hf.NoiseKey.for_tests("20 x 20"), release_id="r1")
    noise = (made.table.counts - counts).reshape(20, 20)
    assert noise.any()
    assert not noise.sum(axis=0).any()
    assert not noise.sum(axis=1).any()
    shown = made.card.sampler.groups[0]
    assert made.card.sampler.status == "exact"
    assert "coupling from the past" in shown.sampler
    assert "where rejection would take years" in shown.why
    assert shown.expected_tries is not None
    assert 1 <= shown.expected_tries < 2
    error = made.card.expected_error
    assert error.relative_error is not None
    off = error.cell_standard_deviation.largest / 24.7**0.5 - 1
    assert abs(off) < 6.5 * error.relative_error + 0.002, "the variance that other chains have, known to three digits"
    made.save(tmp_path / "out")
    assert hf.verify(tmp_path / "out").totals == 40
    text = made.card.to_json()
    assert "sweeps" not in text, "how far back a try went is never published"

    again = hf.release(table, KEEP, mechanism, key=hf.NoiseKey.for_tests("20 x 20"), release_id="r1")
    assert np.array_equal(again.table.counts, made.table.counts)
    carried = pickle.loads(pickle.dumps(made.plan.drawing))
    assert carried.sampler_plan == made.plan.drawing.sampler_plan
