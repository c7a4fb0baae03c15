"""Standard deviation against the size of the published number, both logarithmic, with the lines of equal relative error."""

from __future__ import annotations

import math

from markupsafe import Markup

from holdfast.card.figure_facts import LIMITS, SizeClass, Sizes
from holdfast.exact.formatting import format_deviation, format_number, format_percent
from holdfast.report.figures import svg as draw
from holdfast.report.figures.svg import Figure
from holdfast.wording.catalogue import Sentences
from holdfast.wording.figures import between, size_text

LEFT, TOP, PLOT = 48, 34, 150
END = draw.WIDTH - 34
BASE = TOP + PLOT
NAME = 34
"""Width of the name of a line."""
LARGEST, LEAST = 9.0, 2.2
"""Radius of the bubble with the most numbers, and of the smallest."""


def size_figure(say: Sentences, sizes: Sizes, noun: str = "count") -> Figure:
    """Given: one bubble or more."""
    told = say.nouns(noun)
    title = say("figures.size_title", **told)
    text = size_text(say, sizes, noun)
    low, high = min(b.size for b in sizes.bubbles), max(b.size for b in sizes.bubbles)
    least, most = min(b.deviation for b in sizes.bubbles), max(b.deviation for b in sizes.bubbles)
    across_ticks, up_ticks = draw.decades(low, high), draw.decades(least / 1.5, most * 1.5)
    across = draw.logarithmic(across_ticks[0], across_ticks[-1], LEFT, END)
    up = draw.logarithmic(up_ticks[0], up_ticks[-1], BASE, TOP)
    top = max(bubble.numbers for bubble in sizes.bubbles)
    pieces = [
        *draw.axis_below(across, across_ticks, TOP, BASE, say("figures.value_axis", **told)),
        *draw.axis_left(up, up_ticks, LEFT, END),
        draw.label(say("figures.sd_axis"), 2, 12, fill=draw.GREY),
        *_equal_lines(across, up, (across_ticks[0], across_ticks[-1]), (up_ticks[0], up_ticks[-1])),
        *(
            draw.dot(across(b.size), up(b.deviation), max(LARGEST * math.sqrt(b.numbers / top), LEAST), fill=draw.MAIN, fill_opacity="0.7")
            for b in sizes.bubbles
        ),
    ]
    svg = draw.picture("error-by-size", title, text, BASE + 36, *pieces)
    caption = say("figures.size_caption", **told)
    header = tuple(say(f"figures.size_{column}", **told) for column in ("number", "numbers", "sd", "relative"))
    return Figure("error-by-size", title, svg, caption, text, header, tuple(_data(say, found) for found in sizes.classes), say.language)


def _equal_lines(across: draw.Place, up: draw.Place, wide: tuple[float, float], tall: tuple[float, float]) -> list[Markup]:
    """Lines on which the standard deviation is a share of the number, as far as they lie inside; named at the upper end where there is
    room, the outer ones first.
    """
    out: list[Markup] = []
    taken: list[tuple[float, float]] = []
    for limit in (LIMITS[-1], LIMITS[0], *LIMITS[1:-1]):
        begin, end = max(wide[0], tall[0] / limit), min(wide[1], tall[1] / limit)
        if begin >= end:
            continue
        x, y = across(end), up(end * limit)
        out.append(draw.line(across(begin), up(begin * limit), x, y, stroke=draw.ACCENT, stroke_dasharray="4 3"))
        at_side = end == wide[1]
        place = (x + 3, y + 4) if at_side else (x, y - 4)
        if all(abs(place[0] - other[0]) > NAME or abs(place[1] - other[1]) > draw.TEXT for other in taken):
            taken.append(place)
            out.append(draw.label(format_percent(limit), *place, "start" if at_side else "middle", fill=draw.ACCENT))
    return out


def _data(say: Sentences, found: SizeClass) -> tuple[str, ...]:
    of = between(say, format_deviation(found.low), format_deviation(found.high))
    spread = (
        format_deviation(found.median)
        if found.smallest == found.largest
        else say(
            "page.range", middle=format_deviation(found.median), low=format_deviation(found.smallest), high=format_deviation(found.largest)
        )
    )
    middle = math.sqrt(found.low * found.high)
    return of, format_number(found.numbers), spread, format_percent(found.median / middle)
