"""delta against epsilon, as inline SVG: one line for each law. The vertical axis is logarithmic and ends at 1.

Lines differ by their dashes and marks, not by colour alone, and their main figures stand in words as well.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from holdfast.report.curve_chart import AXIS, LEFT, LINE, NAME, PLOT, RIGHT, SAMPLE, TOP, WIDTH, label_at, round_ticks, short, stroke
from holdfast.report.frame import Say
from holdfast.report.html import Html, join, tag
from holdfast.report.parts import Figure, Table

SIDE = LEFT + 18
"""Labels such as 1e-10 are wider than those of other charts."""
LOWEST = 1e-20
ROWS = 12
"""Of the table of data, about."""
STYLES = (
    {"stroke": "#16191d", "stroke_width": "2.4"},
    {"stroke": "#1b4f8a", "stroke_width": "1.6"},
    {"stroke": "#a8530b", "stroke_width": "1.6", "stroke_dasharray": "8 4"},
    {"stroke": "#2e5e1e", "stroke_width": "1.6", "stroke_dasharray": "2 3"},
    {"stroke": "#6a1b6a", "stroke_width": "1.6", "stroke_dasharray": "10 3 2 3"},
    {"stroke": "#7a6a00", "stroke_width": "1.6", "stroke_dasharray": "4 2 1 2 1 2"},
)


class DeltaCurve(NamedTuple):
    """(epsilon, delta) points of one law, epsilon increasing, and what is said of it."""

    label: str
    points: Sequence[tuple[float, float]]
    words: str


def delta_figure(title: str, curves: Sequence[DeltaCurve], say: Say) -> Figure:
    """The chart; the words of every curve are its description. At most six curves, with the same first and last epsilon."""
    last = max(epsilon for curve in curves for epsilon, _ in curve.points)
    positive = [delta for curve in curves for _, delta in curve.points if delta > 0]
    bottom = max(10.0 ** math.floor(math.log10(min([*positive, 0.5])) - 0.3), LOWEST)
    height = TOP + PLOT + AXIS + LINE * len(curves)

    def place(epsilon: float, delta: float) -> tuple[float, float]:
        x = SIDE + (WIDTH - SIDE - RIGHT) * epsilon / last
        return x, TOP + PLOT * math.log(min(max(delta, bottom), 1.0)) / math.log(bottom)

    words = " ".join(f"{curve.label}: {curve.words}." for curve in curves)
    picture = tag(
        "svg",
        tag("title", title, id="deltas"),
        tag("desc", words, id="deltas-words"),
        *_frame(last, bottom, place),
        *(
            tag("polyline", points=" ".join(f"{x:.1f},{y:.1f}" for x, y in (place(*point) for point in curve.points)), fill="none", **style)
            for curve, style in zip(curves, STYLES, strict=False)
        ),
        *(piece for at, curve in enumerate(curves) for piece in _legend(curve, at)),
        role="img",
        aria_labelledby="deltas",
        aria_describedby="deltas-words",
        viewBox=f"0 0 {WIDTH} {height}",
        width=str(WIDTH),
        height=str(height),
    )
    return Figure("deltas-figure", picture, join(title, ". ", say("cellkey.deltas_note")), _data(title, curves, say))


def _data(title: str, curves: Sequence[DeltaCurve], say: Say) -> Table:
    """delta of every curve, at some of its points."""
    last = max(epsilon for curve in curves for epsilon, _ in curve.points)
    places = [epsilon for epsilon, _ in curves[0].points][:: max(1, len(curves[0].points) // ROWS)]

    def at(curve: DeltaCurve, epsilon: float) -> str:
        return short(next(delta for given, delta in curve.points if given >= epsilon - 1e-9 * last))

    return Table(
        title,
        (say("cellkey.epsilon"), *(curve.label for curve in curves)),
        tuple((short(epsilon), *(at(curve, epsilon) for curve in curves)) for epsilon in places),
        frozenset(range(1, len(curves) + 1)),
    )


def _frame(last: float, bottom: float, place: Callable[[float, float], tuple[float, float]]) -> list[Html]:
    base, right = TOP + PLOT, WIDTH - RIGHT
    out = [stroke(SIDE, base, right, base, stroke="#16191d"), stroke(SIDE, TOP, SIDE, base, stroke="#16191d")]
    decades = round(-math.log10(bottom))
    for decade in range(0, decades + 1, max(1, math.ceil(decades / 10))):
        _, y = place(0.0, 10.0**-decade)
        out += [stroke(SIDE, y, right, y, stroke="#c3c9d0"), label_at(f"1e-{decade}" if decade else "1", SIDE - 6, y + 4, "end")]
    for epsilon in round_ticks(last):
        x, _ = place(epsilon, 1.0)
        anchor = "end" if x > right - 12 else "middle"
        out += [stroke(x, base, x, base + 5, stroke="#16191d"), label_at(short(epsilon), x, base + 18, anchor)]
    return [*out, label_at("epsilon; delta upwards, logarithmic", (SIDE + right) / 2, base + 35, "middle")]


def _legend(curve: DeltaCurve, at: int) -> list[Html]:
    y = TOP + PLOT + AXIS + LINE * at
    return [stroke(SAMPLE, y, SAMPLE + 44, y, **STYLES[at]), label_at(curve.label, NAME, y + 4)]
