"""GeoJSON files (RFC 7946): reading the outlines of an office's map, and writing those and their codes, and nothing else of it.

An outline is one polygon or several, of closed rings of four positions or more; a position is a longitude and a latitude, both finite. A
third coordinate, which RFC 7946 allows for a height, is left out: nothing here draws it, and it would be published unseen. Other members,
properties and kinds of geometry are never written.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast.errors import UnreadableInput
from holdfast.publication.given_files import Unfit, parse_json

MAP_FILE = "map.geojson"
"""In an output folder: the areas of a map, their codes, and nothing else of the file that the office named."""
MOST_BYTES = 200_000_000
FARTHEST = 1e9
LEAST_POSITIONS, LEAST_CORNERS = 4, 3
"""Least positions and corners of a ring, whose last position is its first."""
Position = tuple[float, float]
Ring = tuple[Position, ...]
Polygon = tuple[Ring, ...]
"""The outer ring, then the holes."""


@dataclass(frozen=True, eq=False)
class Feature:
    """An area: what the file says of it, and its outline, which has no polygons where the file has none."""

    codes: Mapping[str, str]
    """Its properties that can be codes, as text."""
    polygons: tuple[Polygon, ...]

    @property
    def rings(self) -> tuple[Ring, ...]:
        return tuple(ring for polygon in self.polygons for ring in polygon)

    def code(self, name: str) -> str | None:
        """The code in the property of this name, as text; None where there is none."""
        return self.codes.get(name)


@dataclass(frozen=True, eq=False)
class MapFile:
    """What was read: the features, and whether coordinates are longitudes and latitudes."""

    features: tuple[Feature, ...]
    degrees: bool
    has_heights: bool
    """Whether the file has third coordinates, which were left out."""


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
    return _map_in(_parse_map(content, name), name)


def write_map(given: MapFile, code: str, level: str | None) -> bytes:
    """The public file of a map: for each area its code in the property `code`, and its outline. The same outlines give the same bytes."""
    features = [
        {"type": "Feature", "properties": {code: feature.code(code)}, "geometry": _geometry(feature.polygons)} for feature in given.features
    ]
    made = {"type": "FeatureCollection", "holdfast": {"code": code, "level": level}, "features": features}
    return json.dumps(made, separators=(",", ":"), allow_nan=False).encode()


def read_public_map(content: bytes) -> tuple[MapFile, str, str | None]:
    """(map, property with the codes, level) of what `write_map` wrote; refused where it would write something else."""
    given = _parse_map(content, MAP_FILE)
    said = given.get("holdfast") if isinstance(given, dict) else None
    if not isinstance(said, dict) or not isinstance(said.get("code"), str) or not isinstance(said.get("level"), str | None):
        raise UnreadableInput(f"{MAP_FILE} does not say which property holds the codes.")
    made, code, level = _map_in(given, MAP_FILE), said["code"], said.get("level")
    if write_map(made, code, level) != content:
        raise UnreadableInput(f"{MAP_FILE} holds more than outlines and codes, or is not written as Holdfast writes it.")
    return made, code, level


def _parse_map(content: bytes, name: str) -> Any:
    try:
        return parse_json(content)
    except Unfit as unfit:
        problem = f"The map file {name!r} {unfit}: programs read it differently, or not at all. Export it as GeoJSON again."
    except (ValueError, RecursionError):
        problem = _no_collection(name)
    raise UnreadableInput(problem)


def _no_collection(name: str) -> str:
    return f"The map file {name!r} is no GeoJSON FeatureCollection with features. Export it as GeoJSON."


def _map_in(given: Any, name: str) -> MapFile:
    listed = given.get("features") if isinstance(given, dict) and given.get("type") == "FeatureCollection" else None
    if not isinstance(listed, list) or not listed or not all(isinstance(feature, dict) for feature in listed):
        raise UnreadableInput(_no_collection(name))
    heights: list[float] = []
    features = tuple(_feature(feature, name, heights) for feature in listed)
    corners = [position for feature in features for ring in feature.rings for position in ring]
    if not corners:
        raise UnreadableInput(f"The map file {name!r} has no areas: no Polygon and no MultiPolygon.")
    # RFC 7946 has degrees only; older files name another system of coordinates.
    degrees = all(-360 <= x <= 360 and -90 <= y <= 90 for x, y in corners)
    return MapFile(features, degrees, bool(heights))


def _feature(given: Any, name: str, heights: list[float]) -> Feature:
    properties = given.get("properties")
    try:
        polygons = tuple(_polygons(given.get("geometry"), heights))
    except (KeyError, TypeError, ValueError, OverflowError):
        polygons = None
    if polygons is None:
        raise UnreadableInput(f"The map file {name!r} has an area whose coordinates are no pairs of numbers.")
    if not all(_is_closed(ring) for polygon in polygons for ring in polygon):
        raise UnreadableInput(
            f"The map file {name!r} has an outline that is no ring. A ring has {LEAST_POSITIONS} positions or more, {LEAST_CORNERS} of "
            "them different, and ends where it begins. Repair its outlines."
        )
    return Feature(_codes(properties) if isinstance(properties, dict) else {}, polygons)


def _codes(properties: Mapping[str, object]) -> dict[str, str]:
    return {name: str(value) for name, value in properties.items() if isinstance(value, str | int) and not isinstance(value, bool)}


def _polygons(geometry: Any, heights: list[float]) -> Iterator[Polygon]:
    """The polygons of an outline; none for other kinds of geometry. Third coordinates go to `heights`."""
    if not isinstance(geometry, dict) or geometry.get("type") not in ("Polygon", "MultiPolygon"):
        return
    coordinates = _check_list(geometry["coordinates"])
    for polygon in [coordinates] if geometry["type"] == "Polygon" else coordinates:
        rings = tuple(tuple(_position(point, heights) for point in _check_list(ring)) for ring in _check_list(polygon))
        if rings:
            yield rings


def _check_list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError
    return value


def _position(point: Any, heights: list[float]) -> Position:
    x, y, *more = map(_number, _check_list(point))
    if len(more) > 1:
        raise ValueError
    heights += more
    return x, y


def _number(value: Any) -> float:
    """Return a coordinate. Raise ValueError or TypeError if it cannot be drawn."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError
    if not abs(value) <= FARTHEST:
        raise ValueError
    return float(value) + 0.0  # no minus zero


def _is_closed(ring: Ring) -> bool:
    return len(ring) >= LEAST_POSITIONS and ring[0] == ring[-1] and len(set(ring)) >= LEAST_CORNERS


def _geometry(polygons: tuple[Polygon, ...]) -> dict[str, object] | None:
    if not polygons:
        return None
    one = len(polygons) == 1
    return {"type": "Polygon" if one else "MultiPolygon", "coordinates": polygons[0] if one else polygons}
