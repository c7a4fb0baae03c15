"""A map of areas in shades of their numbers, as in the heat map; a dot where much of the number is noise.

Longitudes are narrowed by the cosine of the middle latitude: shapes look right in the middle of the map, sizes do not compare exactly.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from markupsafe import Markup

from holdfast.card.figure_facts import Area, AreasFacts
from holdfast.exact.formatting import format_percent, format_published
from holdfast.report.figures.heat_map import KEY, UNSURE, is_unsure, shade_edges, shade_keys, shade_of
from holdfast.report.figures.svg import GREY, INK, RAMP, WIDTH, Figure, box, dot, label, picture
from holdfast.report.frame import tag
from holdfast.wording.catalogue import Sentences
from holdfast.wording.figures import deviation_text, map_caption, map_text

MARGIN, TALLEST = 4, 420
Point = tuple[float, float]


def map_figure(say: Sentences, areas: AreasFacts, noun: str = "count") -> Figure:
    """Given: one area or more with two points or more."""
    title = say("figures.map_title", level=areas.level, **say.nouns(noun))
    known = [area.value for area in areas.areas if area.value is not None]
    edges = shade_edges(known)
    text = map_text(say, areas, known, sum(_unsure(area) for area in areas.areas), UNSURE, noun)
    place, height = _projection(areas)
    shapes = [piece for area in areas.areas for piece in _area(area, place, edges)]
    marks = [_mark(*middle) for area in areas.areas if _unsure(area) and (middle := _middle(area, place)) is not None]
    keys, end = shade_keys(say, edges, height + 20)
    keys += [_mark(13.5, end - 4), label(say("figures.map_unsure", limit=format_percent(UNSURE)), 23, end)]
    if any(area.value is None for area in areas.areas):
        end += KEY
        keys += [box(8, end - 9, 11, 11, fill="#fff", stroke=GREY, stroke_dasharray="1 1"), label(say("figures.map_missing"), 23, end)]
    svg = picture("map", title, text, end + 8, *shapes, *marks, *keys)
    nothing = say("figures.nothing")
    data = tuple(
        (
            area.name,
            nothing if area.value is None else format_published(area.value),
            deviation_text(say, area.deviation, noun),
        )
        for area in areas.areas
    )
    header = (areas.level, say("figures.published", **say.nouns(noun)), say("figures.sd"))
    return Figure("map", title, svg, map_caption(say, areas, noun), text, header, data, say.language)


def _unsure(area: Area) -> bool:
    return area.value is not None and is_unsure(area.value, area.deviation)


def _projection(areas: AreasFacts) -> tuple[tuple[float, float, float, float], float]:
    """(x of the left edge, y of the upper edge, units across and down for one unit of the file), and the height of the map."""
    xs = [x for area in areas.areas for ring in area.rings for x, _ in ring]
    ys = [y for area in areas.areas for ring in area.rings for _, y in ring]
    left, right, low, high = min(xs), max(xs), min(ys), max(ys)
    narrowing = max(math.cos(math.radians((low + high) / 2)), 0.05) if areas.degrees else 1.0
    wide, tall = (right - left) * narrowing or 1.0, high - low or 1.0
    scale = min((WIDTH - 2 * MARGIN) / wide, TALLEST / tall)
    indent = (WIDTH - wide * scale) / 2
    return (left - indent / (scale * narrowing), high + MARGIN / scale, scale * narrowing, scale), tall * scale + 2 * MARGIN


def _area(area: Area, place: tuple[float, float, float, float], edges: list[float]) -> list[Markup]:
    drawn = "".join(_ring(ring, place) for ring in area.rings)
    if not drawn:
        return []
    style = {"stroke": "#fff", "stroke_width": "0.4", "fill_rule": "evenodd"}
    if area.value is None:
        return [tag("path", d=drawn, fill="#fff", **(style | {"stroke": GREY, "stroke_dasharray": "1 1"}))]
    return [tag("path", d=drawn, fill=RAMP[shade_of(area.value, edges)], **style)]


def _middle(area: Area, place: tuple[float, float, float, float]) -> Point | None:
    """The middle of the box around the longest outline."""
    ring = max(area.rings, key=len, default=())
    if not ring:
        return None
    left, top, across, down = place
    xs, ys = [x for x, _ in ring], [y for _, y in ring]
    return ((min(xs) + max(xs)) / 2 - left) * across, (top - (min(ys) + max(ys)) / 2) * down


def _mark(x: float, y: float) -> Markup:
    return dot(x, y, 2.0, fill="#fff", stroke=INK, stroke_width="0.8")


def _ring(ring: Sequence[Point], place: tuple[float, float, float, float]) -> str:
    """The outline to a tenth of a unit; points that fall together are one, and an outline of fewer than three is a dot."""
    left, top, across, down = place
    points: list[tuple[str, str]] = []
    for x, y in ring:
        point = f"{(x - left) * across:.1f}", f"{(top - y) * down:.1f}"
        if not points or points[-1] != point:
            points.append(point)
    if len(points) > 1 and points[0] == points[-1]:
        points.pop()
    if not points:
        return ""
    if len(points) < 3:
        return f"M{points[0][0]} {points[0][1]}h.4v.4h-.4z"
    return "M" + "L".join(" ".join(point) for point in points) + "z"
