"""A two-way table in shades: darker where the number is larger, its number inside where there is room, a mark where most of it is noise."""

from __future__ import annotations

import math

from markupsafe import Markup

from holdfast.card.figure_facts import GridFacts
from holdfast.exact.formatting import format_deviation, format_percent, format_published, format_tick
from holdfast.report.figures.svg import GREY, INK, RAMP, WIDTH, Figure, box, cut, label, picture, width_of
from holdfast.wording.catalogue import Sentences
from holdfast.wording.figures import deviation_text, has_deviations, heat_caption, heat_text, shade_text

TOP, HIGH, KEY = 34, 20, 16
NAMES, NARROW, SHOWN, WELL = 110, 9.0, 34.0, 60.0
"""Room for names of rows, least width of a column, width from which numbers are shown in it; names take more where columns keep WELL."""
UNSURE = 0.25
"""Above this relative standard deviation a number is marked."""


def heat_figure(say: Sentences, grid: GridFacts, noun: str = "count") -> Figure:
    """Given: one row and one column or more."""
    title = say("figures.heat_title", row=grid.row_title, column=grid.column_title, **say.nouns(noun))
    room = max(NAMES, WIDTH - 4 - WELL * len(grid.columns))
    left = min(max(width_of(row) for row in (*grid.rows, grid.row_title)) + 8, room)
    wide = max((WIDTH - left - 4) / len(grid.columns), NARROW)
    numbers = wide >= SHOWN
    known = [value for row in grid.values for value in row if value is not None]
    edges = shade_edges(known)
    text = heat_text(say, grid, known, UNSURE, noun)
    pieces: list[Markup] = [
        label(cut(grid.column_title, WIDTH - left), left, 12, fill=GREY),
        label(cut(grid.row_title, left - 4), 2, 28, fill=GREY),
    ]
    every = max(1, int(26 / wide) + 1) if wide < 26 else 1
    pieces += [
        label(cut(name, wide * every), left + wide * (place + 0.5), 28, "middle")
        for place, name in enumerate(grid.columns)
        if place % every == 0
    ]
    for row, name in enumerate(grid.rows):
        y = TOP + HIGH * row
        pieces.append(label(cut(name, left - 6), left - 6, y + HIGH / 2 + 4, "end"))
        for column, value in enumerate(grid.values[row]):
            pieces += _cell(value, grid.deviations[row][column], (left + wide * column, y, wide), edges, numbers)
    bottom = TOP + HIGH * len(grid.rows) + 18
    width = max(WIDTH, left + wide * len(grid.columns) + 4)
    keys, end = shade_keys(say, edges, bottom)
    if has_deviations(grid):
        keys += [
            Markup(f'<path d="M9 {end - 8:.1f}h6v6z" fill="{INK}"></path>'),
            label(say("figures.heat_unsure", limit=format_percent(UNSURE)), 23, end),
        ]
        end += KEY
    svg = picture("heat-map", title, text, end - 8, *pieces, *keys, width=width)
    nothing = say("figures.nothing")
    data = tuple(
        (
            f"{name}, {across}",
            nothing if value is None else format_published(value),
            deviation_text(say, deviation, noun),
        )
        for name, values, deviations in zip(grid.rows, grid.values, grid.deviations, strict=True)
        for across, value, deviation in zip(grid.columns, values, deviations, strict=True)
    )
    header = (f"{grid.row_title}, {grid.column_title}", say("figures.published", **say.nouns(noun)), say("figures.sd"))
    return Figure("heat-map", title, svg, heat_caption(say, grid, noun), text, header, data, say.language)


def shade_edges(values: list[float]) -> list[float]:
    """Upper ends of the shades but the last: about equally many distinct numbers in each, so that a few large ones pale no others."""
    distinct = sorted({max(value, 0.0) for value in values})
    shades = len(RAMP)
    return sorted({distinct[len(distinct) * place // shades - 1] for place in range(1, shades) if len(distinct) * place >= shades})


def shade_of(value: float, edges: list[float]) -> int:
    """Which shade a number has: 0 is the palest."""
    below = sum(value > edge for edge in edges)
    return below if len(edges) == len(RAMP) - 1 else below * (len(RAMP) - 1) // max(len(edges), 1)


def is_unsure(value: float, deviation: float | None) -> bool:
    """Whether the standard deviation is above UNSURE of the number."""
    return bool(deviation) and deviation is not None and deviation > UNSURE * max(value, 0.0)


def _cell(
    value: float | None, deviation: float | None, place: tuple[float, float, float], edges: list[float], numbers: bool
) -> list[Markup]:
    x, y, wide = place
    if value is None:
        return [box(x, y, wide, HIGH, fill="#fff", stroke=GREY, stroke_width="0.5", stroke_dasharray="2 2")]
    shade = shade_of(value, edges)
    ink = "#fff" if shade >= len(RAMP) - 2 else INK
    out = [box(x, y, wide, HIGH, fill=RAMP[shade], stroke="#fff", stroke_width="1")]
    if numbers:
        number = format_deviation(value)
        fitting = format_tick(value) if width_of(number) > wide - 8 else number
        out.append(label(fitting, x + wide / 2, y + 14, "middle", fill=ink))
    if is_unsure(value, deviation):
        corner = f"M{x + wide - 7:.1f} {y + 1:.1f}h6v6z"
        out.append(Markup(f'<path d="{corner}" fill="{ink}"></path>'))
    return out


def shade_keys(say: Sentences, edges: list[float], y: float) -> tuple[list[Markup], float]:
    """What each shade stands for, in as many lines as it takes, and where the next line is."""
    shades = [*(shade_of(edge, edges) for edge in edges), shade_of(math.inf, edges)]
    out: list[Markup] = []
    x = 8.0
    for shade, text in zip(shades, shade_text(say, edges), strict=True):
        if x + 15 + width_of(text) > WIDTH:
            x, y = 8.0, y + KEY
        out += [box(x, y - 9, 11, 11, fill=RAMP[shade], stroke=INK, stroke_width="0.6"), label(text, x + 15, y)]
        x += 24 + width_of(text)
    return out, y + KEY
