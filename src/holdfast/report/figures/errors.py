"""Errors by level or by margin. Standard deviations: a dot at the median, a line from the smallest to the largest; what is exact is black.
Shares of published numbers by their relative standard deviation: one bar for each level, darker where more is noise.
"""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from holdfast.card.figure_facts import LIMITS, SharesFacts, SpreadFacts
from holdfast.exact.formatting import format_number, format_percent
from holdfast.report.figures.svg import (
    HALO,
    INK,
    MAIN,
    RAMP,
    WIDTH,
    Figure,
    Place,
    axis_below,
    box,
    cut,
    dot,
    label,
    line,
    linear,
    picture,
    spread_scale,
    width_of,
)
from holdfast.report.frame import join, tag
from holdfast.wording.catalogue import Sentences
from holdfast.wording.figures import (
    class_text,
    deviation_text,
    error_text,
    level_by_margin,
    level_text,
    relative_header,
    relative_text,
    spread_text,
)

LEFT, TOP, ROW = 8, 6, 30
END = WIDTH - 16
SHARES_ROW, HIGH, KEY = 38, 14, 16
SHADES = ("#ffffff", *RAMP)
"""Numbers without noise are white."""


def error_figure(say: Sentences, kind: str, spreads: Sequence[SpreadFacts], basis: str, noun: str = "count") -> Figure:
    """`kind` is "level" or "margin"; `basis` says how the standard deviations were found. One spread or more."""
    title = say(f"figures.error_{kind}")
    text = error_text(say, spreads)
    base = TOP + ROW * len(spreads)
    positive = [value for spread in spreads for value in (spread.smallest, spread.median, spread.largest) if value]
    across, ticks = spread_scale(min(positive, default=0.0), max(positive, default=0.0), LEFT + 4, END)
    rows = [piece for place, spread in enumerate(spreads) for piece in _row(say, spread, TOP + ROW * place, across)]
    name = f"error-by-{kind}"
    svg = picture(name, title, text, base + 36, *axis_below(across, ticks, TOP, base, say("figures.sd_axis")), *rows)
    caption = say("figures.error_caption", basis=basis, **say.nouns(noun))
    header = tuple(say(f"figures.error_{column}") for column in ("name", "units", "smallest", "median", "largest"))
    return Figure(name, title, svg, caption, text, header, tuple(_data(say, spread, noun) for spread in spreads), say.language)


def _row(say: Sentences, spread: SpreadFacts, y: float, across: Place) -> list[Markup]:
    middle = y + 21
    value = spread_text(say, spread)
    of = say("figures.units", name=level_by_margin(say, spread.name, spread.margin), count=spread.units)
    name = cut(f"{of}: ", WIDTH - LEFT - 12 - 1.15 * width_of(value))
    out = [label(join(name, tag("tspan", value, font_weight="bold")), LEFT, y + 12, **HALO)]
    if spread.median is None or spread.smallest is None or spread.largest is None:
        return out
    if spread.largest > spread.smallest:
        out.append(
            line(across(spread.smallest), middle, across(spread.largest), middle, stroke=MAIN, stroke_width="5", stroke_opacity="0.45")
        )
    return [*out, dot(across(spread.median), middle, 4.5, stroke="#fff", fill=MAIN if spread.largest else INK)]


def _data(say: Sentences, spread: SpreadFacts, noun: str) -> tuple[str, ...]:
    figures = (spread.smallest, spread.median, spread.largest)
    return (
        level_by_margin(say, spread.name, spread.margin),
        format_number(spread.units),
        *(deviation_text(say, value, noun) for value in figures),
    )


def relative_figure(say: Sentences, shares: Sequence[SharesFacts], noun: str = "count") -> Figure:
    """The share of published numbers by their relative standard deviation: one bar for each level, darker where more is noise. One level or
    more.
    """
    told = say.nouns(noun)
    title = say("figures.relative_title", **told)
    text = relative_text(say, shares, LIMITS)
    base = TOP + SHARES_ROW * len(shares)
    across = linear(0.0, 1.0, LEFT, END)
    rows = [piece for place, found in enumerate(shares) for piece in _shares_row(say, found, TOP + SHARES_ROW * place, across)]
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


def _shares_row(say: Sentences, found: SharesFacts, y: float, across: Place) -> list[Markup]:
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
