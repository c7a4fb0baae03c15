"""The largest numbers of a level as bars, each with its interval."""

from __future__ import annotations

from markupsafe import Markup

from holdfast.card.figure_facts import Bar, Ranked
from holdfast.exact.formatting import format_percent, format_published, format_tick
from holdfast.report.figures import svg as draw
from holdfast.report.figures.svg import Figure
from holdfast.wording.catalogue import Sentences
from holdfast.wording.figures import interval_text, level_text, ranked_caption, ranked_text, ranked_title

TOP, ROW, HIGH = 6, 19, 12
NAMES = 130
"""Room for names beside their bars, at most: longer ones stand above them."""
ABOVE = 13
"""Height of a name above its bar."""


def ranked_figure(say: Sentences, ranked: Ranked, noun: str = "count") -> Figure:
    """Given: one bar or more."""
    title = ranked_title(say, ranked, noun)
    text = ranked_text(say, ranked)
    widest = max(map(draw.width_of, ranked.own_names)) + 10
    ends = [end for bar in ranked.bars for end in (bar.value, bar.low, bar.high) if end is not None]
    ticks = draw.nice_ticks(min(0.0, *ends), max(0.0, *ends))
    left, above = (widest, 0) if widest <= NAMES else (4 + draw.width_of(format_tick(ticks[0])) / 2, ABOVE)
    base = TOP + (ROW + above) * len(ranked.bars)
    across = draw.linear(ticks[0], ticks[-1], left, draw.WIDTH - 8 - draw.width_of(format_tick(ticks[-1])) / 2)
    tops = [TOP + (ROW + above) * place for place in range(len(ranked.bars))]
    names = [
        draw.label(draw.cut(name, draw.WIDTH - left - 6), left + 4, top + ABOVE, **draw.HALO)
        if above
        else draw.label(draw.cut(name, left - 6), left - 6, top + ROW / 2 + 4, "end")
        for name, top in zip(ranked.own_names, tops, strict=True)
    ]
    rows = [piece for bar, top in zip(ranked.bars, tops, strict=True) for piece in _row(bar, top + above, across)]
    axis = draw.axis_below(across, ticks, TOP, base, say("figures.value_axis", **say.nouns(noun)))
    svg = draw.picture("ranked", title, text, base + 36, *axis, *rows, *names, draw.line(across(0), TOP, across(0), base))
    header = (
        level_text(say, ranked.level),
        say("figures.published", **say.nouns(noun)),
        say("figures.interval", level=format_percent(ranked.confidence)),
    )
    data = tuple((bar.name, format_published(bar.value), interval_text(say, bar) or say("page.not_known")) for bar in ranked.bars)
    return Figure("ranked", title, svg, ranked_caption(say, ranked, noun), text, header, data, say.language)


def _row(bar: Bar, y: float, across: draw.Place) -> list[Markup]:
    middle = y + ROW / 2
    start, end = sorted((across(0), across(bar.value)))
    out = [draw.box(start, middle - HIGH / 2, end - start, HIGH, fill=draw.RAMP[2])]
    if bar.low is None or bar.high is None:
        return out
    low, high = across(bar.low), across(bar.high)
    ticks = (draw.line(x, middle - 4, x, middle + 4, stroke=draw.INK, stroke_width="1.3") for x in (low, high))
    return [*out, draw.line(low, middle, high, middle, stroke=draw.INK, stroke_width="1.3"), *ticks]
