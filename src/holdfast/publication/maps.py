"""Maps: the areas of a GeoJSON file (map_files.py) that carry the codes of a level in one of their properties, with its numbers."""

from __future__ import annotations

import logging
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from holdfast.card.figure_facts import Area, AreasFacts
from holdfast.display import shorten
from holdfast.errors import InvalidParameter
from holdfast.publication.map_files import MapFile, read_map, read_public_map, write_map
from holdfast.publication.plan import Plan
from holdfast.publication.sums import Level, LevelUnits, find_level

if TYPE_CHECKING:
    from holdfast.publication.publication import PublishedTable

logger = logging.getLogger(__name__)

MOST_AREAS = 10_000


@dataclass(frozen=True)
class MapRequest:
    """A map for the report: a GeoJSON file, the property that holds the codes, and the level whose numbers it shows, if named."""

    file: Path
    code: str
    level: str | None = None

    def public(self) -> bytes:
        """What the output folder holds of it: outlines and codes."""
        given = read_map(self.file)
        if given.has_heights:
            logger.info("The map file %r has third coordinates, such as heights. They are left out: a map has two.", self.file.name)
        return write_map(given, self.code, self.level)


def map_request(file: str | os.PathLike[str] | None, code: str | None, level: str | None) -> MapRequest | None:
    """From what a caller or a run file names; None where there is no map."""
    if file is None:
        if code is not None or level is not None:
            raise InvalidParameter("map_code and map_level go with a map. Name a GeoJSON file, or leave them out.", field="map")
        return None
    if code is None:
        raise InvalidParameter("A map needs map_code, the property of its areas that holds the codes.", field="map_code")
    return MapRequest(Path(file), code, level)


def check_folder_map(plan: Plan, request: MapRequest) -> None:
    """Refuse a map that could not be drawn, before anything is drawn: a bad file, no such property or level, codes of other areas."""
    if not plan.drawing.channel.target.publishes_cells:
        raise InvalidParameter("This release leaves counts out: there are no numbers of all areas for a map. Leave map out.", field="map")
    _matching(LevelUnits(plan), _codes(read_map(request.file), request.code)[0], request.level)


def folder_areas(content: bytes, plan: Plan, table: PublishedTable, level: str | None = None) -> AreasFacts:
    """The map of a published folder, from its file; of another level than the folder's where one is given."""
    given, code, own_level = read_public_map(content)
    return map_facts(plan, table, given, code, level or own_level)


def map_facts(plan: Plan, table: PublishedTable, given: MapFile, code: str, level: str | None) -> AreasFacts:
    """The areas of a map with the numbers of a level: by default the level that has the most codes in common with the map.

    Guarantees:  every area of the file is there, in its order; codes are compared as texts. A code that could mean two units, or a unit
                 that could be two areas, is refused: county 001 is in many states.
    """
    codes, wanted = _codes(given, code)
    units = LevelUnits(plan, table)
    found_level, place = _matching(units, codes, level)
    sums = units.sums(found_level)
    areas = []
    for feature, found in zip(given.features, codes, strict=True):
        unit = None if found is None else place.get(found)
        deviation = None if unit is None or np.isnan(sums.deviations[unit]) else float(sums.deviations[unit])
        value = None if unit is None else float(sums.values[unit])
        name = found or "" if unit is None or not sums.universe.labels.columns else sums.name(unit)
        areas.append(Area(name, feature.rings, value, deviation))
    without = len(set(place.values()) - {unit for name, unit in place.items() if name in wanted})
    return AreasFacts(sums.title, tuple(areas), without, given.degrees)


def _codes(given: MapFile, code: str) -> tuple[list[str | None], set[str]]:
    """The code of each area, and those there are."""
    codes = [feature.code(code) for feature in given.features]
    if not any(found is not None for found in codes):
        known = sorted({name for feature in given.features for name in feature.codes})
        raise InvalidParameter(f"No area of the map has a property {code!r}. Properties: {', '.join(map(repr, known)) or 'none'}.")
    if len(codes) > MOST_AREAS:
        raise InvalidParameter(f"The map has {len(codes):,} areas; {MOST_AREAS:,} are drawn at most. Draw a coarser level.")
    return codes, {found for found in codes if found is not None}


def _matching(units: LevelUnits, codes: Sequence[str | None], level: str | None) -> tuple[Level, dict[str, int]]:
    """The level that is drawn, and the unit of each code that a map may have for it: the level with the most codes of the map."""
    areas = Counter(code for code in codes if code is not None)
    best: tuple[int, Level, list[Written]] | None = None
    for candidate in [_told_apart(units, find_level(units, level))] if level is not None else _candidates(units):
        written = list(_written(units, candidate))
        found = len(areas.keys() & {one.code for one in written})
        if found and (best is None or found > best[0]):
            best = found, candidate, written
    if best is None:
        raise InvalidParameter("No code of the map is a code of the table. Compare how codes are written: '017' and '17' are two codes.")
    _, chosen, written = best
    place: dict[str, int] = {}
    for one in written:
        if one.code in areas and (place.get(one.code, one.unit) != one.unit or (one.short and areas[one.code] > 1)):
            columns = (*_above(units, chosen), *chosen.columns)
            raise InvalidParameter(_ambiguous(one, columns), field="map_code")
        place[one.code] = one.unit
    return chosen, place


def _candidates(units: LevelUnits) -> list[Level]:
    columns = units.universe.columns
    return [*units.levels[1:], *(_told_apart(units, Level(column, (column,))) for column in columns)]


def _told_apart(units: LevelUnits, level: Level) -> Level:
    """The level itself; where its codes repeat under those of other columns, with these."""
    whole = Level(level.name, (*_above(units, level), *level.columns))
    return level if level.of_tree is not None or units.count(whole) == units.count(level) else whole


def _above(units: LevelUnits, level: Level) -> tuple[str, ...]:
    """The columns that the last one of a level is nested in, but for those of the level."""
    if level.of_tree is not None or not level.columns:
        return ()
    axis = next(axis for axis in units.axes if level.columns[-1] in axis)
    return tuple(column for column in axis[: axis.index(level.columns[-1])] if column not in level.columns)


class Written(NamedTuple):
    """A code that a map may have for a unit. `short`: it does not say under which codes of other columns the unit lies."""

    code: str
    unit: int
    short: bool
    joined: str
    """The code that says it."""


def _written(units: LevelUnits, level: Level) -> Iterator[Written]:
    """Codes of units as a map may have them: the code itself ("031"), and behind those of the columns it is nested in ("17031")."""
    if units.count(level) > MOST_AREAS:
        return
    sums, above = units.names(level), _above(units, level)
    nested = above or _above(units, Level(level.name, level.columns[-1:])) == level.columns[:-1] != ()
    for unit in range(len(sums.values)):
        own = sums.codes(unit)
        codes = [sums.some_codes(unit)[column] for column in above] + list(own.values())
        joined, last = "".join(codes), codes[-1]
        if nested:
            full = last.startswith(joined[: -len(last)])
            yield Written(last, unit, not full, last if full else joined)
        yield Written(joined, unit, False, joined)


def _ambiguous(one: Written, columns: Sequence[str]) -> str:
    *above, last = columns
    return (
        f"The code {shorten(one.code)!r} of the map could mean several areas: codes of {last!r} are unique within {' and '.join(above)}. "
        f"Name with map_code a property that holds them together, such as {shorten(one.joined)!r}."
    )
