"""Estimated total variation bounds against sweeps: a line for each kernel and lag.

The vertical axis is logarithmic and ends at 1, above which a bound says nothing. The shape of the marks shows
the kernel, the line shows the lag, and long dashes show that a curve is not a bound: no meaning depends on colour alone, and a text gives
all figures as well.
"""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from holdfast.exact.formatting import format_deviation, format_power
from holdfast.report.chain_facts import CurveFacts, RowFacts
from holdfast.report.figures import svg as draw
from holdfast.report.frame import PageFigure, PageTable, Say, tag

LEFT, RIGHT, TOP, PLOT = 42, 14, 12, 170
END, BASE = draw.WIDTH - RIGHT, TOP + PLOT
AXIS, LINE = 52, 17
"""Room under the plot for its axis, and for each line of the legend."""
LOGARITHMIC = 20
"""Times that the longest curve exceeds the shortest for the horizontal axis to be logarithmic."""
MARKS = 8
FLOOR = {"stroke": "#8c1616", "stroke_width": "1.2", "stroke_dasharray": "1 3 6 3"}

INKS = {"metropolis": "#1b4f8a", "line_gibbs": "#a8530b"}
SHAPES = {
    "metropolis": "m-3.5 0a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0 -7 0z",
    "line_gibbs": "m-3 -3h6v6h-6z",
}


def curve_figure(index: int, title: str, rows: Sequence[RowFacts], say: Say) -> PageFigure:
    """The chart of one shape of block, with its main figures in words. `index` makes names on the page unique.

    Given:       rows with at least one curve each.
    """
    drawn = [(row, curve) for row in rows for curve in row.curves]
    pairs = max(curve.pairs for _, curve in drawn)
    bottom = 1 / (2 * pairs)
    across, ticks, scale = _across([curve.end_sweeps for _, curve in drawn], say)
    up = draw.logarithmic(bottom, 1.0, BASE, TOP)
    legend = [piece for at, (row, curve) in enumerate(drawn) for piece in _legend(row, curve, BASE + AXIS + LINE * at, say)]
    height = BASE + AXIS + LINE * len(drawn) + 8
    text = " ".join(_words(row, curve, say) for row, curve in drawn)
    svg = draw.picture(
        f"curves-{index}",
        say("diagnosis.curve_title", block=title),
        text,
        height,
        *draw.axis_left(up, draw.steps_down(1.0, bottom), LEFT, END, format_power),
        *draw.axis_below(across, ticks, TOP, BASE, scale, END),
        *([draw.line(LEFT, up(3 / pairs), END, up(3 / pairs), **FLOOR)] if pairs > 3 else []),
        *(piece for at, (row, curve) in enumerate(drawn) for piece in _line(row, curve, across, up, (bottom, at), say)),
        *legend,
        *_floor_legend(BASE + AXIS + LINE * len(drawn), pairs, say),
    )
    return PageFigure(f"curve-figure-{index}", draw.on_page(svg), say("diagnosis.curves_note"), _data(drawn, say), title)


def _data(drawn: Sequence[tuple[RowFacts, CurveFacts]], say: Say) -> PageTable:
    """What the words under the chart say of each curve, as numbers."""
    return PageTable(
        say("diagnosis.curve_data"),
        tuple(say(f"diagnosis.curve_{column}") for column in ("name", "start", "tenth", "end")),
        tuple(
            (
                _name(row, curve, say),
                format_deviation(curve.estimate[0]),
                next((format_deviation(s) for s, v in zip(curve.sweeps, curve.estimate, strict=True) if v < 0.1), "-"),
                format_deviation(curve.end_sweeps) if curve.is_bound else say("diagnosis.no_bound"),
            )
            for row, curve in drawn
        ),
        frozenset({1, 2, 3}),
    )


def _name(row: RowFacts, curve: CurveFacts, say: Say) -> Markup:
    """metropolis, lag 12 sweeps; in steps where that is no whole number of sweeps"""
    whole = curve.lag_sweeps * (row.steps_per_sweep or 1) == curve.lag_steps
    which, count = ("diagnosis.curve_sweeps", curve.lag_sweeps) if whole else ("diagnosis.curve_steps", curve.lag_steps)
    return say(which, kernel=row.kernel, count=int(count))


def _words(row: RowFacts, curve: CurveFacts, say: Say) -> Markup:
    sweeps, values = curve.sweeps, curve.estimate
    told = {"curve": _name(row, curve, say), "end": format_deviation(curve.end_sweeps)}
    if not curve.is_bound:
        return say("diagnosis.curve_text_none", met=curve.met, pairs=curve.pairs, **told)
    tenth = next(s for s, v in zip(sweeps, values, strict=True) if v < 0.1)
    if not tenth:
        return say("diagnosis.curve_text_low", start=format_deviation(values[0]), **told)
    return say("diagnosis.curve_text", start=format_deviation(values[0]), tenth=format_deviation(tenth), **told)


def _across(ends: Sequence[float], say: Say) -> tuple[draw.Place, list[float], Markup]:
    """Where sweeps stand, the ticks, and what the axis is called. Logarithmic if one kernel is much slower than another."""
    longest, shortest = max(ends), min(ends)
    if longest > LOGARITHMIC * shortest:
        powers = draw.decades(shortest / 10, longest)
        place = draw.logarithmic(powers[0], longest, LEFT, END)
        return place, [power for power in powers if power <= longest], say("diagnosis.sweeps_logarithmic")
    ticks = [tick for tick in draw.nice_ticks(0.0, longest, 6) if tick <= longest]
    return draw.linear(0.0, longest, LEFT, END), ticks, say("diagnosis.sweeps")


def _floor_legend(y: float, pairs: int, say: Say) -> list[Markup]:
    """3/N: below it nothing can be said from N pairs."""
    if pairs <= 3:
        return [draw.label(say("diagnosis.few_pairs"), LEFT, y)]
    return draw.legend_line(y, say("diagnosis.floor", floor=format_deviation(3 / pairs), pairs=pairs), **FLOOR)


def _style(row: RowFacts, curve: CurveFacts) -> dict[str, str]:
    """The line of a lag: thick if assessed, thin if shorter, dotted if longer; long dashes if no bound."""
    out = {"stroke": INKS.get(row.kernel, draw.INK), "stroke_width": "2.2" if curve.assessed else "1.1"}
    if not curve.is_bound:
        return out | {"stroke_dasharray": "9 5"}
    longer = not curve.assessed and curve.lag_steps > (row.lag_steps or 0)
    return out | ({"stroke_dasharray": "2 3"} if longer else {})


def _mark(row: RowFacts, curve: CurveFacts, x: float, y: float) -> Markup:
    ink = INKS.get(row.kernel, draw.INK)
    shape = f"M{draw.coordinate(x)} {draw.coordinate(y)}{SHAPES.get(row.kernel, SHAPES['metropolis'])}"
    return tag("path", d=shape, fill=ink if curve.assessed else "#fff", stroke=ink)


def _line(row: RowFacts, curve: CurveFacts, across: draw.Place, up: draw.Place, lowest: tuple[float, int], say: Say) -> list[Markup]:
    """`lowest`: the value at the lower edge, where nothing is marked, and the number of the line, so that marks of lines stand apart."""
    bottom, at = lowest
    points = [(across(s), up(min(v, 1.0))) for s, v in zip(curve.sweeps, curve.estimate, strict=True)]
    out = [draw.polyline(points, **_style(row, curve))]
    gap = max(1, len(points) // MARKS)
    visible = [point for point, value in zip(points, curve.estimate, strict=True) if value > bottom]
    out += [_mark(row, curve, x, y) for x, y in visible[at % gap :: gap]]
    if not curve.is_bound:
        x, y = points[-1]
        out.append(draw.label(say("diagnosis.no_bound"), max(x - 4, LEFT + 70), min(y + 16, BASE - 6), "end"))
    return out


def _legend(row: RowFacts, curve: CurveFacts, y: float, say: Say) -> list[Markup]:
    which = "none" if not curve.is_bound else "assessed" if curve.assessed else "other"
    text = say(f"diagnosis.legend_{which}", curve=_name(row, curve, say))
    sample = draw.legend_line(y, text, **_style(row, curve))
    return [*sample, _mark(row, curve, 28, y - 4)]
