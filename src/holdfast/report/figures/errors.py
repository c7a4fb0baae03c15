"""Standard deviations by level or by margin: a dot at the median, a line from the smallest to the largest; what is exact is black."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from holdfast.exact.formatting import format_deviation, format_number
from holdfast.report.figures.facts import SpreadFacts
from holdfast.report.figures.figure import Figure
from holdfast.report.figures.svg import HALO, INK, MAIN, WIDTH, Place, axis_below, cut, dot, label, line, picture, spread_scale, width_of
from holdfast.report.markup import join, tag
from holdfast.wording.catalogue import Sentences
from holdfast.wording.figures import error_text, level_by_margin, spread_text

LEFT, TOP, ROW = 8, 6, 30
END = WIDTH - 16


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
    return Figure(name, title, svg, caption, text, header, tuple(_data(say, spread) for spread in spreads), say.language)


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


def _data(say: Sentences, spread: SpreadFacts) -> tuple[str, ...]:
    figures = (spread.smallest, spread.median, spread.largest)
    return (
        level_by_margin(say, spread.name, spread.margin),
        format_number(spread.units),
        *(say("page.not_known") if value is None else format_deviation(value) if value else say("page.exact") for value in figures),
    )
