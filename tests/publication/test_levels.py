"""A release that keeps totals at named levels: written, and verified by someone who has no hierarchy."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import holdfast as hf
from holdfast.invariants.constraints import Constraint
from holdfast.mechanisms import Mechanism


@pytest.mark.parametrize(
    "mechanism", [hf.GeneralizedGaussian(sigma_squared=4), hf.RoundedProjection(epsilon=1, per="distance")], ids=lambda m: m.name
)
def test_totals_at_levels_are_published_and_add_up(mechanism: Mechanism, tmp_path: Path) -> None:
    regions = hf.Hierarchy.from_parents({"01": "north", "02": "north", "03": "south"}, levels=["region", "county"])
    ages = hf.Hierarchy.from_parents({"0-17": "minor", "18-64": "adult", "65+": "adult"}, levels=["adult or not", "age"])
    universe = hf.Universe.product({"county": regions, "sex": ["F", "M"], "age": ages})
    cells = universe.frame()
    counts = pa.table({**{column: cells[column].cast(pa.string()) for column in universe.columns}, "n": list(range(len(universe)))})
    table = hf.Table.from_counts(counts, ["county", "sex", "age"], "n", universe=universe)
    keep: list[Constraint] = [hf.margin("county", "adult or not"), hf.margin("region", "sex"), hf.subset("age", ["65+"], by=["region"])]
    hf.release(table, keep, mechanism, hf.NoiseKey.for_tests("levels"), release_id="levels").save(tmp_path / "out")
    assert "12 kept totals add up over 18 cells" in str(hf.verify(tmp_path / "out"))
    kept = (tmp_path / "out" / "kept.csv").read_text(encoding="utf-8").splitlines()
    assert kept[1] == '"margin(county, adult or not)","adult or not=minor, county=01","01",,,3'
    assert kept[-1] == '"subset(age in [65+]) by region","subset(age in [65+]) by region: region=south",,,,31'
