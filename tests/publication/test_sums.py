"""Sums over the units of a level: which levels there are, what they are called, how far off each sum is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import holdfast as hf
from holdfast.errors import InvalidParameter
from holdfast.lattices.shapes import Levels
from holdfast.publication import sums as sums_module
from holdfast.publication.publication import Publication
from holdfast.publication.sums import Level, deviations_of, find_level, levels_of, margins_of, sums_of, unit_numbers
from tests.exposing import exposing

NESTED = hf.Universe.listed({"state": list("aaaabbc"), "county": ["1", "1", "2", "3", "1", "2", "1"], "tract": [str(i) for i in range(7)]})
PRODUCT = hf.Universe.product({"area": ["a", "b", "c"], "sex": ["F", "M"], "age": ["0", "1", "2"]})
NESTED_BY_SEX = hf.Universe.listed(
    {
        "state": [state for state in "aaaabbc" for _ in "FM"],
        "county": [county for county in "1123456" for _ in "FM"],
        "tract": [str(i // 2) for i in range(14)],
        "sex": list("FM") * 7,
    }
)
RELEASES: dict[str, tuple[hf.Universe, list[Any], Any]] = {
    "one sum": (NESTED, [hf.margin("state")], hf.GeneralizedLaplace(epsilon="1/2", per="distance")),
    "one sum, l2": (NESTED, [hf.margin("state", "county")], hf.GeneralizedGaussian(rho="1/10", per="distance")),
    "free": (NESTED, [], hf.GeneralizedLaplace(epsilon="1/2", per="distance")),
    "grids": (PRODUCT, [hf.margin("area", "sex"), hf.margin("area", "age")], hf.GeneralizedGaussian(rho="1/10", per="distance")),
    "one grid": (PRODUCT, [hf.margin("sex"), hf.margin("area", "age")], hf.GeneralizedLaplace(epsilon="1/2", per="distance")),
    "rounded": (PRODUCT, [hf.margin("area"), hf.margin("sex", "age")], hf.RoundedProjection(epsilon="1/2", per="distance")),
    "three margins": (PRODUCT, [hf.margin("area"), hf.margin("sex"), hf.margin("age")], hf.GeneralizedGaussian(rho="1/10", per="distance")),
    "hierarchies": (NESTED_BY_SEX, [hf.margin("state"), hf.margin("sex")], hf.GeneralizedGaussian(rho="1/10", per="distance")),
    "levels": (
        NESTED,
        [hf.total()],
        hf.GeneralizedGaussian(rho="1/10", levels={"state": "1/2", ("state", "county"): "1/4", "tract": "1/4"}, per="distance"),
    ),
}


def made(name: str) -> Publication:
    universe, keep, mechanism = RELEASES[name]
    table = hf.Table(universe, np.arange(5, 5 + len(universe)))
    return exposing(hf.release, table, keep, mechanism, key=hf.NoiseKey.for_tests(name), release_id="sums")


@pytest.mark.parametrize("name", RELEASES)
def test_every_sum_and_its_deviation_are_those_found_one_by_one(name: str) -> None:
    """Against `Covariance.of`, one query for each unit; figures have six digits. Cells have the deviations of the table: those of rounded
    ones are known better than sums.
    """
    release = made(name)
    covariance = release.plan.covariance
    assert covariance is not None
    assert release.table.standard_deviations is not None
    for level in (*levels_of(release.plan), *margins_of(release.plan)):
        found = sums_of(release.plan, release.table, level)
        units = unit_numbers(release.plan.facts.universe, level)
        for unit in range(len(found.values)):
            inside = units == unit
            assert found.values[unit] == release.table.counts[inside].sum()
            one = release.table.standard_deviations[inside][0] if level.name == "cells" else covariance.of(inside.astype(float)) ** 0.5
            assert found.deviations[unit] == pytest.approx(one, rel=5.1e-6, abs=1e-9)


def test_nested_columns_are_levels_and_others_are_margins() -> None:
    assert [level.name for level in levels_of(made("one sum").plan)] == ["whole table", "state", "county", "cells"]
    assert [level.name for level in margins_of(made("one sum").plan)] == ["whole table", "cells"]
    assert [level.name for level in levels_of(made("grids").plan)] == ["whole table", "cells"]
    names = ["whole table", "area", "sex", "age", "area x sex", "area x age", "sex x age", "cells"]
    assert [level.name for level in margins_of(made("grids").plan)] == names
    assert [level.name for level in levels_of(made("levels").plan)][:2] == ["whole table", "state"]


def test_units_are_called_by_their_codes() -> None:
    release = made("one sum")
    county = sums_of(release.plan, release.table, find_level(release.plan, "county"))
    assert [county.name(unit) for unit in range(6)] == ["a, 1", "a, 2", "a, 3", "b, 1", "b, 2", "c, 1"]
    tract = sums_of(release.plan, release.table, find_level(release.plan, "cells"))
    assert [tract.name(unit) for unit in range(7)] == [str(i) for i in range(7)]  # a tract's code is its own
    assert sums_of(release.plan, release.table, find_level(release.plan, "whole table")).name(0) == "whole table"


def test_the_first_level_with_noise_is_meant_where_none_is_named() -> None:
    assert find_level(made("one sum").plan, None) == Level("county", ("state", "county"))
    assert find_level(made("grids").plan, None).name == "cells"


def test_what_is_no_level_is_refused_with_those_there_are() -> None:
    with pytest.raises(InvalidParameter, match=r"There is no level 'town'\. Levels: .*'county'"):
        find_level(made("one sum").plan, "town")


def test_what_would_take_too_long_is_left_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """One grid of 18 cells; room for one unit."""
    plan = made("one grid").plan
    assert len(plan.drawing.channel.shapes()) == 1
    whole = deviations_of(plan, Level("area", ("area",)))
    monkeypatch.setattr(sums_module, "MOST_WORK", 20)
    some = deviations_of(plan, Level("area", ("area",)))
    known = ~np.isnan(some)
    assert 0 < known.sum() < len(some)
    assert np.array_equal(some[known], whole[known])


@pytest.mark.parametrize("name", ["three margins", "hierarchies"])
def test_units_of_hierarchies_have_a_closed_form(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """They took the projection of one unit after the other: seconds for a million cells. Counties, of which nothing is kept, still do."""
    plan = made(name).plan
    assert {type(shape) for shape in plan.drawing.channel.shapes()} == {Levels}
    monkeypatch.setattr(sums_module, "MOST_WORK", 0)
    for level in (*levels_of(plan), *margins_of(plan)):
        assert np.isnan(deviations_of(plan, level)).any() == (level.name == "county")
