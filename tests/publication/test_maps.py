"""Maps publish the outlines that were read and their codes, and nothing else of the office's file."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import holdfast as hf
from holdfast.errors import InvalidParameter, UnreadableInput, VerificationFailed
from holdfast.publication.map_files import MAP_FILE, map_of, read_public_map, write_map
from holdfast.publication.maps import MapRequest
from holdfast.publication.publication import Publication
from tests.examples import examples
from tests.publication.test_closed_list import list_files

SQUARE = [[0, 0], [1, 0], [1, 1], [0, 1], [0, 0]]
HOLE = [[0.25, 0.25], [0.25, 0.5], [0.5, 0.5], [0.25, 0.25]]
SECRET = "secret"
"""What stands in the office's file and is neither outline nor code."""


@pytest.fixture(scope="module")
def release() -> Publication:
    table = hf.Table(hf.Universe.product({"area": ["a", "7"]}), np.array([120, 3]))
    return hf.release(
        table, [hf.total()], hf.GeneralizedLaplace(epsilon="1/2", per="distance"), key=hf.NoiseKey.for_tests("maps"), release_id="maps"
    )


def feature(code: Any = "a", coordinates: Any = (SQUARE,), kind: str = "Polygon", **more: Any) -> dict[str, Any]:
    return {"type": "Feature", "properties": {"id": code}, "geometry": {"type": kind, "coordinates": coordinates}} | more


def collection(*features: Any, **more: Any) -> bytes:
    return json.dumps({"type": "FeatureCollection", "features": features} | more).encode()


def public(content: bytes, folder: Path) -> bytes:
    (folder / "m.geojson").write_bytes(content)
    return MapRequest(folder / "m.geojson", "id").public()


OUTLINE = {"type": "Polygon", "coordinates": [SQUARE]}
CARRIERS: dict[str, bytes] = {
    "member of the file": collection(feature(), name=SECRET, crs={"type": SECRET}),
    "member named as ours": collection(feature(), holdfast={"code": SECRET, "level": SECRET}),
    "member of a feature": collection(feature(id=SECRET, bbox=[1, 2], note=SECRET)),
    "property": collection(feature(properties={"id": "a", "respondent": SECRET})),
    "member of the outline": collection(feature(geometry=OUTLINE | {"note": SECRET, "bbox": SECRET})),
    "outline of another kind": collection(feature(), feature("7", geometry={"type": "Point", "coordinates": [1, 2], "note": SECRET})),
    "collection of outlines": collection(feature(), feature("7", geometry={"type": "GeometryCollection", "geometries": [SECRET]})),
    "code that is none": collection(feature(), feature({"note": SECRET}), feature([SECRET]), feature(True)),
}


class TestWhatIsWritten:
    @pytest.mark.parametrize("name", CARRIERS)
    def test_only_outlines_and_codes(self, tmp_path: Path, name: str) -> None:
        made = public(CARRIERS[name], tmp_path)
        assert SECRET.encode() not in made
        assert made == public(collection(*json.loads(made)["features"]), tmp_path)
        whole = json.loads(made)
        assert whole.keys() == {"type", "holdfast", "features"}
        for one in whole["features"]:
            assert one.keys() == {"type", "properties", "geometry"}
            assert one["properties"].keys() == {"id"}
            assert one["geometry"] is None or one["geometry"] == {"type": "Polygon", "coordinates": [SQUARE]}

    def test_third_coordinates_are_left_out_and_said(self, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.INFO)
        made = public(collection(feature(coordinates=[[[*point, 1234.5] for point in SQUARE]])), tmp_path)
        assert made == public(collection(feature()), tmp_path)
        assert [record.getMessage() for record in caplog.records if "third coordinates" in record.getMessage()] == [
            "The map file 'm.geojson' has third coordinates, such as heights. They are left out: a map has two."
        ]

    def test_digits_beyond_a_float_are_left_out(self, tmp_path: Path) -> None:
        text = json.dumps([[0.1, 0.0], *SQUARE[1:-1], [0.1, 0.0]]).replace("0.1,", "0.1000000000000000000001,")
        whole = collection(feature(coordinates="here")).decode().replace('"here"', f"[{text}]")
        assert b"0.1,0.0" in public(whole.encode(), tmp_path)

    def test_codes_are_texts(self, tmp_path: Path) -> None:
        made = json.loads(public(collection(feature("a"), feature(7), feature(None), feature(1.5)), tmp_path))
        assert [one["properties"]["id"] for one in made["features"]] == ["a", "7", None, None]


def replaced(old: str, new: str) -> bytes:
    text = collection(feature()).decode()
    assert old in text
    return text.replace(old, new, 1).encode()


BAD: dict[str, tuple[bytes, str]] = {
    "NaN": (replaced("[1, 1]", "[1, NaN]"), "has NaN, Infinity or a number beyond"),
    "infinity": (replaced("[1, 1]", "[1, -Infinity]"), "has NaN, Infinity or a number beyond"),
    "beyond the floats": (replaced("[1, 1]", "[1, 1e999]"), "has NaN, Infinity or a number beyond"),
    "NaN as height": (replaced("[1, 1]", "[1, 1, NaN]"), "has NaN, Infinity or a number beyond"),
    "1e999 as height": (replaced("[1, 1]", "[1, 1, 1e999]"), "has NaN, Infinity or a number beyond"),
    "NaN as a property": (replaced('"a"', '"a", "x": NaN'), "has NaN, Infinity or a number beyond"),
    "name twice": (replaced('"id": "a"', '"id": "a", "id": "7"'), "a name twice in one object"),
    "whole number too far": (replaced("[1, 1]", f"[1, {10**400}]"), "no pairs of numbers"),
    "text for a number": (replaced("[1, 1]", '[1, "1"]'), "no pairs of numbers"),
    "text for a height": (replaced("[1, 1]", '[1, 1, "secret"]'), "no pairs of numbers"),
    "four coordinates": (replaced("[1, 1]", "[1, 1, 1, 1]"), "no pairs of numbers"),
    "one coordinate": (replaced("[1, 1]", "[1]"), "no pairs of numbers"),
    "a truth value": (replaced("[1, 1]", "[1, true]"), "no pairs of numbers"),
    "an object for a ring": (collection(feature(coordinates=[{"0": 1, "1": 2}])), "no pairs of numbers"),
    "texts for rings": (collection(feature(coordinates=["12", "34"])), "no pairs of numbers"),
    "open ring": (collection(feature(coordinates=[SQUARE[:-1]])), "no ring"),
    "short ring": (collection(feature(coordinates=[[[0, 0], [1, 1], [0, 0]]])), "no ring"),
    "ring without an area": (collection(feature(coordinates=[[[0, 0], [1, 1], [1, 1], [0, 0]]])), "no ring"),
    "empty ring": (collection(feature(coordinates=[SQUARE, []])), "no ring"),
    "no outline": (collection(feature(coordinates=[])), "has no areas"),
    "features as an object": (b'{"type": "FeatureCollection", "features": {"0": {}}}', "no GeoJSON FeatureCollection"),
    "nested too deep": (b"[" * 100_000, "no GeoJSON FeatureCollection"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_no_outline_is_refused_before_anything_is_written(release: Publication, tmp_path: Path, name: str) -> None:
    content, words = BAD[name]
    (tmp_path / "bad.geojson").write_bytes(content)
    with pytest.raises(UnreadableInput, match=words):
        release.save(tmp_path / "out", map=tmp_path / "bad.geojson", map_code="id")
    with pytest.raises(UnreadableInput, match=words):
        release.plot.map(tmp_path / "bad.geojson", "id")
    assert not (tmp_path / "out").exists()


def with_member(whole: dict[str, Any]) -> None:
    whole["note"] = SECRET


def with_member_of_a_feature(whole: dict[str, Any]) -> None:
    whole["features"][0]["id"] = SECRET


def with_property(whole: dict[str, Any]) -> None:
    whole["features"][0]["properties"]["note"] = SECRET


def with_height(whole: dict[str, Any]) -> None:
    whole["features"][0]["geometry"]["coordinates"][0][1].append(12.0)


def with_word_of_ours(whole: dict[str, Any]) -> None:
    whole["holdfast"]["note"] = SECRET


def with_whole_number(whole: dict[str, Any]) -> None:
    whole["features"][0]["geometry"]["coordinates"][0][1][0] = 1


def with_other_order(whole: dict[str, Any]) -> None:
    whole["type"] = whole.pop("type")


@pytest.mark.parametrize("other_version", [False, True])
@pytest.mark.parametrize(
    "change", [with_member, with_member_of_a_feature, with_property, with_height, with_word_of_ours, with_whole_number, with_other_order]
)
def test_a_published_map_holds_nothing_else(release: Publication, tmp_path: Path, change: Any, other_version: bool) -> None:
    """Also on a card that says another version of Holdfast made it, whose pages are not compared."""
    (tmp_path / "m.geojson").write_bytes(collection(feature("a"), feature("7")))
    folder = release.save(tmp_path / "out", map=tmp_path / "m.geojson", map_code="id")
    if other_version:
        card = (folder / "card.json").read_text()
        (folder / "card.json").write_text(card.replace(f'"holdfast": "{json.loads(card)["software"]["holdfast"]}"', '"holdfast": "0.0.1"'))
    hf.verify(folder)
    whole = json.loads((folder / MAP_FILE).read_text())
    change(whole)
    (folder / MAP_FILE).write_text(json.dumps(whole, separators=(",", ":")))
    list_files(folder)
    for check in (hf.verify, hf.load):
        with pytest.raises(VerificationFailed, match=r"map\.geojson is no map of this release, or holds more"):
            check(folder)


def test_the_map_of_a_folder_is_drawn_from_its_file(release: Publication, tmp_path: Path) -> None:
    several = feature("7", [[SQUARE, HOLE], [[[x + 3, y] for x, y in SQUARE]]], "MultiPolygon")
    (tmp_path / "m.geojson").write_bytes(collection(feature("a"), several, feature("none", geometry=None)))
    folder = release.save(tmp_path / "out", map=tmp_path / "m.geojson", map_code="id")
    assert hf.verify(folder, strict=True)
    assert hf.load(folder).plot.map() == release.plot.map(tmp_path / "m.geojson", "id")
    made, code, level = read_public_map((folder / MAP_FILE).read_bytes())
    assert ([len(one.rings) for one in made.features], code, level) == ([1, 3, 0], "id", None)
    with pytest.raises(InvalidParameter, match="has a property 'other'"):
        release.plot.map(folder / MAP_FILE, "other")


NUMBERS = st.integers(-(10**9), 10**9) | st.floats(-1e9, 1e9) | st.sampled_from([-0.0, 5e-324, 1e-7])
RINGS = st.lists(st.tuples(NUMBERS, NUMBERS), min_size=3, max_size=6, unique=True).map(lambda ring: [*ring, ring[0]])
POLYGONS = st.lists(RINGS, min_size=1, max_size=3)
FEATURES = st.builds(feature, st.text() | st.integers() | st.none(), POLYGONS) | st.builds(
    feature, st.text(), st.lists(POLYGONS, min_size=1, max_size=3), st.just("MultiPolygon")
)


@settings(max_examples=examples(150))
@given(st.lists(FEATURES, min_size=1, max_size=4), st.text(), st.text() | st.none())
def test_writing_what_was_read_is_a_fixed_point(features: list[Any], code: str, level: str | None) -> None:
    """What verify compares: reading a public map and writing it again gives its bytes, and the outlines are those of the office's file."""
    read = map_of(collection(*features), "m")
    made = write_map(read, code, level)
    again, *said = read_public_map(made)
    assert said == [code, level]
    assert [one.polygons for one in again.features] == [one.polygons for one in read.features]
    assert write_map(again, code, level) == made
