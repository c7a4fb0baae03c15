"""The share of published numbers by their relative standard deviation: one bar for each level, darker where more is noise."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from holdfast.exact.formatting import format_number, format_percent
from holdfast.report.figures.facts import LIMITS, SharesFacts
from holdfast.report.figures.figure import Figure
from holdfast.report.figures.svg import HALO, INK, RAMP, WIDTH, Place, axis_below, box, cut, label, linear, picture
from holdfast.wording.catalogue import Sentences
from holdfast.wording.figures import class_text, level_text, relative_header, relative_text

LEFT, TOP, ROW, HIGH, KEY = 8, 6, 38, 14, 16
END = WIDTH - 16
SHADES = ("#ffffff", *RAMP)
"""Numbers without noise are white."""


def relative_figure(say: Sentences, shares: Sequence[SharesFacts], noun: str = "count") -> Figure:
    """One level or more."""
    told = say.nouns(noun)
    title = say("figures.relative_title", **told)
    text = relative_text(say, shares, LIMITS)
    base = TOP + ROW * len(shares)
    across = linear(0.0, 1.0, LEFT, END)
    rows = [piece for place, found in enumerate(shares) for piece in _row(say, found, TOP + ROW * place, across)]
    axis = axis_below(linear(0, 100, LEFT, END), [0, 25, 50, 75, 100], TOP, base, say("figures.share_axis", **told))
    keys = _keys(say, base + 50)
    svg = picture("relative-errors", title, text, base + 50 + KEY + 8, *axis, *rows, *keys)
    data = tuple(
        (
            level_text(say, found.name),
            format_number(found.numbers),
            *(format_percent(found.above(place) / (found.numbers or 1)) for place in range(len(LIMITS))),
        )
        for found in shares
    )
    return Figure(
        "relative-errors", title, svg, say("figures.relative_caption", **told), text, relative_header(say, LIMITS), data, say.language
    )


def _row(say: Sentences, found: SharesFacts, y: float, across: Place) -> list[Markup]:
    out = [label(cut(say("figures.units", name=level_text(say, found.name), count=found.numbers), WIDTH - LEFT - 8), LEFT, y + 13, **HALO)]
    begin = 0
    for count, shade in zip((found.exact, *found.classes), SHADES, strict=True):
        if count:
            start, end = across(begin / found.numbers), across((begin + count) / found.numbers)
            out.append(box(start, y + 19, end - start, HIGH, fill=shade, stroke=INK, stroke_width="0.6"))
        begin += count
    return out


def _keys(say: Sentences, y: float) -> list[Markup]:
    out: list[Markup] = []
    for place, (shade, text) in enumerate(zip(SHADES, class_text(say, LIMITS), strict=True)):
        x, line = LEFT + 115 * (place % 3), y + KEY * (place // 3)
        out += [box(x, line - 9, 11, 11, fill=shade, stroke=INK, stroke_width="0.6"), label(text, x + 16, line)]
    return out
