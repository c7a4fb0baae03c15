"""Real public tables, released and verified end to end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import holdfast as hf
from holdfast.invariants.constraints import Constraint
from tests.exposing import exposing

CASES: dict[str, tuple[str, list[str], str, list[Constraint], Any]] = {
    "counties under state totals": (
        "county_pop_2010.csv",
        ["state_fips", "county_fips"],
        "pop2010",
        [hf.margin("state_fips")],
        hf.GeneralizedLaplace(epsilon="24/125", per="distance"),
    ),
    "tracts under county totals": (
        "tract_pop_2010.csv",
        ["state_fips", "county_fips", "tract_geoid"],
        "pop2010",
        [hf.margin("county_fips")],
        hf.GeneralizedGaussian(epsilon="1/4", delta="1/100000", per="distance"),
    ),
    "place x hour x group, both margins of every place": (
        "nycflights13_dest_hour_carrier.csv",
        ["dest", "hour", "carrier"],
        "flights_2013",
        [hf.margin("dest", "hour"), hf.margin("dest", "carrier")],
        hf.GeneralizedGaussian(rho="1/50", per="distance"),
    ),
    "the same by rounded projection": (
        "nycflights13_dest_hour_carrier.csv",
        ["dest", "hour", "carrier"],
        "flights_2013",
        [hf.margin("dest", "hour"), hf.margin("dest", "carrier"), hf.margin("hour", "carrier")],
        hf.RoundedProjection(epsilon="1/4", per="distance"),
    ),
    "4 x 4": (
        "fcsm_wp22_delinquent_children.csv",
        ["county", "education"],
        "count",
        [hf.margin("county"), hf.margin("education")],
        hf.GeneralizedLaplace(epsilon="1/4", per="distance"),
    ),
}


@pytest.mark.ordinary("counties", "place", "4 x 4")
@pytest.mark.parametrize("case", CASES)
def test_released_and_verified(case: str, shared_data: Path, tmp_path: Path) -> None:
    name, cells, count, keep, mechanism = CASES[case]
    table = hf.Table.from_counts(shared_data / name, cells=cells, count=count)
    release = exposing(hf.release, table, keep, mechanism, key=hf.NoiseKey.for_tests(case), release_id="real")
    found = hf.verify(release.save(tmp_path / "out"), against=table)
    assert found.cells == len(table)
    assert found.official_totals == found.totals == len(release.kept_rows)
    assert not np.array_equal(release.table.counts, table.counts)
    noise = release.table.counts - table.counts
    # Standardised, a cell's noise is of order one: twenty would have probability below 1e-80 under a Gaussian, 1e-11 under Laplace noise.
    deviations = release.table.standard_deviations
    assert deviations is not None
    assert np.abs(noise[deviations > 0] / deviations[deviations > 0]).max() < 20
    assert not noise[deviations == 0].any()
