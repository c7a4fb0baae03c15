"""Sums over the units of a level: which levels there are, what they are called, how far off each sum is."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pytest

import holdfast as hf
from holdfast.errors import InvalidParameter
from holdfast.lattices.shapes import Levels
from holdfast.publication import sums as sums_module
from holdfast.publication.publication import Publication
from holdfast.publication.sums import CellGroups, Level, LevelUnits, find_level
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
    units = LevelUnits(release.plan, release.table)
    for level in (*units.levels, *units.margins):
        found, own = units.sums(level), units.grouping(level)
        unit_of = np.arange(len(release.table)) if own is None else own.unit_of()
        for unit in range(len(found.values)):
            inside = unit_of == unit
            assert np.array_equal(found.cells_of(unit), np.flatnonzero(inside))
            assert found.values[unit] == release.table.counts[inside].sum()
            one = release.table.standard_deviations[inside][0] if level.name == "cells" else covariance.of(inside.astype(float)) ** 0.5
            assert found.deviations[unit] == pytest.approx(one, rel=5.1e-6, abs=1e-9)


def test_nested_columns_are_levels_and_others_are_margins() -> None:
    assert [level.name for level in LevelUnits(made("one sum").plan).levels] == ["whole table", "state", "county", "cells"]
    assert [level.name for level in LevelUnits(made("one sum").plan).margins] == ["whole table", "cells"]
    assert [level.name for level in LevelUnits(made("grids").plan).levels] == ["whole table", "cells"]
    names = ["whole table", "area", "sex", "age", "area x sex", "area x age", "sex x age", "cells"]
    assert [level.name for level in LevelUnits(made("grids").plan).margins] == names
    assert [level.name for level in LevelUnits(made("levels").plan).levels][:2] == ["whole table", "state"]


def test_units_are_called_by_their_codes() -> None:
    release = made("one sum")
    units = LevelUnits(release.plan, release.table)
    county = units.sums(find_level(units, "county"))
    assert [county.name(unit) for unit in range(6)] == ["a, 1", "a, 2", "a, 3", "b, 1", "b, 2", "c, 1"]
    tract = units.sums(find_level(units, "cells"))
    assert [tract.name(unit) for unit in range(7)] == [str(i) for i in range(7)]  # a tract's code is its own
    assert units.sums(find_level(units, "whole table")).name(0) == "whole table"


def test_the_first_level_with_noise_is_meant_where_none_is_named() -> None:
    assert find_level(LevelUnits(made("one sum").plan), None) == Level("county", ("state", "county"))
    assert find_level(LevelUnits(made("grids").plan), None).name == "cells"


def test_what_is_no_level_is_refused_with_those_there_are() -> None:
    with pytest.raises(InvalidParameter, match=r"There is no level 'town'\. Levels: .*'county'"):
        find_level(LevelUnits(made("one sum").plan), "town")


def test_what_would_take_too_long_is_left_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """One grid of 18 cells; room for one unit."""
    plan = made("one grid").plan
    assert len(plan.drawing.channel.shapes()) == 1
    whole = LevelUnits(plan).deviations(Level("area", ("area",)))
    monkeypatch.setattr(sums_module, "MOST_WORK", 20)
    some = LevelUnits(plan).deviations(Level("area", ("area",)))
    known = ~np.isnan(some)
    assert 0 < known.sum() < len(some)
    assert np.array_equal(some[known], whole[known])


@pytest.mark.parametrize("name", ["three margins", "hierarchies"])
def test_units_of_hierarchies_have_a_closed_form(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """They took the projection of one unit after the other: seconds for a million cells. Counties, of which nothing is kept, still do."""
    plan = made(name).plan
    assert {type(shape) for shape in plan.drawing.channel.shapes()} == {Levels}
    monkeypatch.setattr(sums_module, "MOST_WORK", 0)
    units = LevelUnits(plan)
    for level in (*units.levels, *units.margins):
        assert np.isnan(units.deviations(level)).any() == (level.name == "county")


@pytest.mark.parametrize("name", ["one sum", "grids", "hierarchies"])
def test_a_coarser_level_is_found_from_a_finer_one(name: str) -> None:
    """The units of one found before, whichever it is, give the same units, sums and pairs with blocks as the cells do."""
    release = made(name)
    universe, covariance = release.plan.facts.universe, release.plan.covariance
    assert covariance is not None
    for fine in (columns[: k + 1] for columns in (universe.columns, universe.columns[::-1]) for k in range(len(universe.columns) - 1)):
        for coarse in {fine[:k] for k in range(len(fine))} | {fine[k:] for k in range(1, len(fine))}:
            units = LevelUnits(release.plan, release.table)
            units.grouping(Level("fine", fine))
            found, (groups, codes) = units.grouping(Level("coarse", coarse)), universe.group(coarse)
            alone = CellGroups(len(codes), groups.astype(np.int32), codes)
            assert found is not None
            assert found.finer is not None
            assert np.array_equal(found.unit_of(), groups)
            assert found.codes is not None
            assert np.array_equal(found.codes, codes)
            assert np.array_equal(found.first_cells, alone.first_cells)
            assert units.sums(Level("coarse", coarse)).values.tolist() == alone.totals(release.table.counts).tolist()
            for shape in covariance.shapes:
                assert all(map(np.array_equal, found.pairs(shape), alone.pairs(shape)))


def test_pairs_of_blocks_and_units_are_counted_alike_in_an_array_and_by_sorting(monkeypatch: pytest.MonkeyPatch) -> None:
    release = made("one sum, l2")
    covariance = release.plan.covariance
    assert covariance is not None
    grouping = CellGroups(3, np.array([0, 1, 1, 2, 0, 0, 2], dtype=np.int32))
    found = [grouping.pairs(shape) for shape in covariance.shapes]
    monkeypatch.setattr(sums_module, "SPARE", 0)
    grouping = CellGroups(3, grouping.above)
    for shape, before in zip(covariance.shapes, found, strict=True):
        assert all(map(np.array_equal, grouping.pairs(shape), before))
        for block, unit, count in zip(*before, strict=True):
            assert count == np.count_nonzero(grouping.above[shape.cells[block]] == unit)


SCATTERED = hf.Universe.listed({"a": list("xyxyzxzy"), "b": list("11122233"), "c": list("pqrpqrpq")})


@pytest.mark.parametrize("piece", [1, 3, 100])
@pytest.mark.parametrize("universe", [NESTED, NESTED_BY_SEX, PRODUCT, SCATTERED])
def test_cells_are_grouped_piece_by_piece_as_a_universe_groups_them(
    universe: hf.Universe, piece: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every list of columns, in every order; by each of the two ways that can be taken, too."""
    monkeypatch.setattr(sums_module, "PIECE", piece)
    for columns in (chosen for k in range(len(universe.columns) + 1) for chosen in permutations(universe.columns, k)):
        groups, codes = universe.group(columns)
        found = sums_module.group_cells(universe, columns)
        assert np.array_equal(found.above, groups)
        assert np.array_equal(found.codes, codes)  # type: ignore[arg-type]
        given, radices = [universe.code_indices(c) for c in columns], [universe.code_count(c) for c in columns]
        for way in (sums_module.groups_by_combination, sums_module.groups_by_run):
            if (made := way(given, radices, len(universe))) is not None:
                assert np.array_equal(made[1][made[0]], groups)
                assert np.array_equal(made[2], codes)


@pytest.mark.parametrize("piece", [1, 3, 100])
def test_nested_columns_are_told_piece_by_piece(piece: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sums_module, "PIECE", piece)
    assert sums_module.nested_columns(NESTED_BY_SEX) == [("state", "county", "tract"), ("sex",)]
