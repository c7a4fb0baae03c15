"""delta against epsilon: one line for each law. The vertical axis is logarithmic and ends at 1.

Lines differ by their dashes, not by colour alone, and a text gives their main figures as well.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from markupsafe import Markup

from holdfast.exact.formatting import format_deviation, format_power
from holdfast.report.figures import svg as draw
from holdfast.report.frame import PageFigure, PageTable, Say

LEFT, RIGHT, TOP, PLOT = 42, 14, 24, 150
END, BASE = draw.WIDTH - RIGHT, TOP + PLOT
AXIS, LINE = 52, 17
LOWEST = 1e-20
ROWS = 12
"""Approximate number of rows in the table of data."""
STYLES = (
    {"stroke": draw.INK, "stroke_width": "2.4"},
    {"stroke": draw.MAIN, "stroke_width": "1.6"},
    {"stroke": draw.ACCENT, "stroke_width": "1.6", "stroke_dasharray": "8 4"},
    {"stroke": "#2e5e1e", "stroke_width": "1.6", "stroke_dasharray": "2 3"},
    {"stroke": "#6a1b6a", "stroke_width": "1.6", "stroke_dasharray": "10 3 2 3"},
    {"stroke": "#7a6a00", "stroke_width": "1.6", "stroke_dasharray": "4 2 1 2 1 2"},
)


class DeltaCurve(NamedTuple):
    """(epsilon, delta) points of one law, epsilon increasing, and what is said of it."""

    label: str
    points: Sequence[tuple[float, float]]
    text: str


def delta_figure(title: str, curves: Sequence[DeltaCurve], say: Say) -> PageFigure:
    """The chart; the words of every curve are its description. At most six curves, with the same first and last epsilon."""
    last = max(epsilon for curve in curves for epsilon, _ in curve.points)
    positive = [delta for curve in curves for _, delta in curve.points if delta > 0]
    bottom = max(10.0 ** math.floor(math.log10(min([*positive, 0.5])) - 0.3), LOWEST)
    across, up = draw.linear(0.0, last, LEFT, END), draw.logarithmic(bottom, 1.0, BASE, TOP)
    ticks = [tick for tick in draw.nice_ticks(0.0, last, 6) if tick <= last]
    text = " ".join(f"{curve.label}: {curve.text}." for curve in curves)
    svg = draw.picture(
        "deltas",
        title,
        text,
        BASE + AXIS + LINE * len(curves) - 8,
        draw.label(say("cellkey.delta"), 2, 12),
        *draw.axis_left(up, draw.steps_down(1.0, bottom), LEFT, END, format_power),
        *draw.axis_below(across, ticks, TOP, BASE, say("cellkey.epsilon"), END),
        *(
            draw.polyline([(across(epsilon), up(min(delta, 1.0))) for epsilon, delta in curve.points], **style)
            for curve, style in zip(curves, STYLES, strict=False)
        ),
        *_ends(curves, up),
        *(piece for at, curve in enumerate(curves) for piece in draw.legend_line(BASE + AXIS + LINE * at, curve.label, **STYLES[at])),
    )
    return PageFigure("deltas-figure", draw.on_page(svg), say("cellkey.deltas_note"), _data(title, curves, say), title)


def _ends(curves: Sequence[DeltaCurve], up: draw.Place) -> Iterator[Markup]:
    """The last delta of each curve above its end, rounded up; left out where another number stands."""
    taken: list[float] = []
    for *_, (_, delta) in (curve.points for curve in curves):
        y = up(min(delta, 1.0)) - 4
        if all(abs(y - other) >= 12 for other in taken):
            taken.append(y)
            yield draw.label(format_deviation(delta, is_bound=True), END, y, "end")


def _data(title: str, curves: Sequence[DeltaCurve], say: Say) -> PageTable:
    """delta of every curve, at some of its points."""
    last = max(epsilon for curve in curves for epsilon, _ in curve.points)
    places = [epsilon for epsilon, _ in curves[0].points][:: max(1, len(curves[0].points) // ROWS)]

    def at(curve: DeltaCurve, epsilon: float) -> str:
        return format_deviation(next(delta for given, delta in curve.points if given >= epsilon - 1e-9 * last), is_bound=True)

    return PageTable(
        title,
        (say("cellkey.epsilon"), *(curve.label for curve in curves)),
        tuple((format_deviation(epsilon), *(at(curve, epsilon) for curve in curves)) for epsilon in places),
        frozenset(range(1, len(curves) + 1)),
    )
