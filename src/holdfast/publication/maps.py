"""Maps: a GeoJSON file (RFC 7946) whose features carry the codes of a level in one of their properties."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from holdfast.errors import InvalidParameter, UnreadableInput
from holdfast.publication.plan import Plan
from holdfast.publication.released import ReleasedTable
from holdfast.publication.sums import Level, Sums, find_level, levels_of, names_of, sums_of
from holdfast.report.figures.facts import Area, Areas

MAP_FILE = "map.geojson"
"""In an output folder: the areas of a map, their codes, and nothing else of the file that the office named."""
MOST_BYTES = 200_000_000
MOST_AREAS = 10_000
FARTHEST = 1e9
Ring = tuple[tuple[float, float], ...]


@dataclass(frozen=True, eq=False)
class MapFile:
    """What was read: the features, and whether coordinates are longitudes and latitudes."""

    features: tuple[Mapping[str, Any], ...]
    degrees: bool


def read_map(file: str | os.PathLike[str]) -> MapFile:
    """A FeatureCollection; refused with what is wrong."""
    path = Path(file)
    try:
        if path.stat().st_size > MOST_BYTES:
            raise UnreadableInput(f"The map file {path.name!r} has more than {MOST_BYTES // 10**6} MB. Simplify its outlines.")
        return map_of(path.read_bytes(), path.name)
    except OSError as error:
        raise UnreadableInput(f"The map file {path.name!r} could not be read: {os.strerror(error.errno or 0)}.") from None


def map_of(content: bytes, name: str) -> MapFile:
    """From the bytes of the file."""
    try:
        given = json.loads(content)
        features = tuple(given["features"]) if given["type"] == "FeatureCollection" else None
    except (ValueError, KeyError, TypeError, RecursionError):
        features = None
    if not features or not all(isinstance(feature, dict) for feature in features):
        raise UnreadableInput(f"The map file {name!r} is no GeoJSON FeatureCollection with features. Export it as GeoJSON.")
    # RFC 7946 has degrees only; older files name another system of coordinates.
    found = MapFile(features, degrees=True)
    corners = [point for feature in features for ring in _rings(feature, name) for point in ring]
    if not corners:
        raise UnreadableInput(f"The map file {name!r} has no areas: no Polygon and no MultiPolygon.")
    inside = all(-360 <= x <= 360 and -90 <= y <= 90 for x, y in corners)
    return found if inside else MapFile(features, degrees=False)


@dataclass(frozen=True)
class MapRequest:
    """A map for the report: a GeoJSON file, the property that holds the codes, and the level whose numbers it shows, if named."""

    file: Path
    code: str
    level: str | None = None

    def public(self) -> bytes:
        """What the output folder holds of it: outlines and codes."""
        given = read_map(self.file)
        features = [
            {"type": "Feature", "properties": {self.code: _code(feature, self.code)}, "geometry": feature.get("geometry")}
            for feature in given.features
        ]
        made = {"type": "FeatureCollection", "holdfast": {"code": self.code, "level": self.level}, "features": features}
        return json.dumps(made, separators=(",", ":")).encode()


def map_request(file: str | os.PathLike[str] | None, code: str | None, level: str | None) -> MapRequest | None:
    """From what a caller or a run file names; None where there is no map."""
    if file is None:
        if code is not None or level is not None:
            raise InvalidParameter("map_code and map_level go with a map. Name a GeoJSON file, or leave them out.", field="map")
        return None
    if code is None:
        raise InvalidParameter("A map needs map_code, the property of its areas that holds the codes.", field="map_code")
    return MapRequest(Path(file), code, level)


def check_folder_map(plan: Plan, request: MapRequest | None) -> None:
    """Refuse a map that could not be drawn, before anything is drawn: a bad file, no such property or level, codes of other areas."""
    if request is None:
        return
    if not plan.drawing.channel.target.publishes_cells:
        raise InvalidParameter("This release leaves counts out: there are no numbers of all areas for a map. Leave map out.", field="map")
    _matching(plan, _codes(read_map(request.file), request.code)[1], request.level)


def folder_areas(content: bytes, plan: Plan, table: ReleasedTable) -> Areas:
    """The map of a published folder, from its file."""
    given = map_of(content, MAP_FILE)
    said = json.loads(content).get("holdfast")
    if not isinstance(said, dict) or not isinstance(said.get("code"), str) or not isinstance(said.get("level"), str | None):
        raise UnreadableInput(f"{MAP_FILE} does not say which property holds the codes.")
    return map_facts(plan, table, given, said["code"], said["level"])


def map_facts(plan: Plan, table: ReleasedTable, given: MapFile, code: str, level: str | None) -> Areas:
    """The areas of a map with the numbers of a level: by default the level that has the most codes in common with the map.

    Guarantees:  every area of the file is there, in its order; codes are compared as texts.
    """
    codes, wanted = _codes(given, code)
    found_level, place = _matching(plan, wanted, level)
    sums = sums_of(plan, table, found_level)
    areas = []
    for feature, found in zip(given.features, codes, strict=True):
        unit = None if found is None else place.get(found)
        deviation = None if unit is None or np.isnan(sums.deviations[unit]) else float(sums.deviations[unit])
        value = None if unit is None else float(sums.values[unit])
        name = found or "" if unit is None or not sums.universe.labels.columns else sums.name(unit)
        areas.append(Area(name, tuple(_rings(feature, "map")), value, deviation))
    without = sum(name not in wanted for name in place)
    return Areas(sums.title, tuple(areas), without, given.degrees)


def _codes(given: MapFile, code: str) -> tuple[list[str | None], set[str]]:
    """The code of each area, and those there are."""
    codes = [_code(feature, code) for feature in given.features]
    if not any(found is not None for found in codes):
        known = sorted({name for feature in given.features for name in _properties(feature)})
        raise InvalidParameter(f"No area of the map has a property {code!r}. Properties: {', '.join(map(repr, known)) or 'none'}.")
    if len(codes) > MOST_AREAS:
        raise InvalidParameter(f"The map has {len(codes):,} areas; {MOST_AREAS:,} are drawn at most. Draw a coarser level.")
    return codes, {found for found in codes if found is not None}


def _matching(plan: Plan, wanted: set[str], level: str | None) -> tuple[Level, dict[str, int]]:
    """The level that is drawn, and the place of each of its codes."""
    candidates = [find_level(plan, level)] if level is not None else _candidates(plan)
    best: tuple[int, Level, dict[str, int]] | None = None
    for candidate in candidates:
        place = dict(_places(names_of(plan, candidate)))
        found = len(wanted & place.keys())
        if found and (best is None or found > best[0]):
            best = found, candidate, place
    if best is None:
        raise InvalidParameter("No code of the map is a code of the table. Compare how codes are written: '017' and '17' are two codes.")
    return best[1], best[2]


def _candidates(plan: Plan) -> list[Level]:
    universe = plan.facts.universe
    return [*levels_of(plan)[1:], *(Level(column, (column,)) for column in universe.columns)]


def _places(sums: Sums) -> Iterator[tuple[str, int]]:
    """Codes of units as a map may have them: the code itself, and codes of several columns written together ("17" and "031": "17031")."""
    if len(sums.values) > MOST_AREAS:
        return
    for unit in range(len(sums.values)):
        codes = sums.codes(unit)
        yield "".join(codes[column] for column in sums.own_columns()), unit


def _properties(feature: Mapping[str, Any]) -> Mapping[str, Any]:
    found = feature.get("properties")
    return found if isinstance(found, dict) else {}


def _code(feature: Mapping[str, Any], code: str) -> str | None:
    found = _properties(feature).get(code)
    return found if isinstance(found, str) else str(found) if isinstance(found, int) else None


def _number(value: Any) -> float:
    """A coordinate; ValueError where it is none that can be drawn."""
    found = float(value)
    if not abs(found) <= FARTHEST:
        raise ValueError
    return found


def _rings(feature: Mapping[str, Any], name: str) -> Iterator[Ring]:
    """The outlines of an area, holes among them."""
    geometry = feature.get("geometry")
    if not isinstance(geometry, dict) or geometry.get("type") not in ("Polygon", "MultiPolygon"):
        return
    try:
        polygons = [geometry["coordinates"]] if geometry["type"] == "Polygon" else geometry["coordinates"]
        for polygon in polygons:
            for ring in polygon:
                yield tuple((_number(point[0]), _number(point[1])) for point in ring)
    except (KeyError, TypeError, ValueError, IndexError, OverflowError):
        raise UnreadableInput(f"The map file {name!r} has an area whose coordinates are no pairs of numbers.") from None
