"""Estimated total variation bounds against sweeps, as inline SVG: a line for each kernel and lag.

The vertical axis is logarithmic and ends at 1, above which a bound says nothing. Kernels differ by the shape of their marks, lags by the
line, a curve that is no bound by long dashes: nothing is told by colour alone, and all figures stand in words as well.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from holdfast.report.frame import Say
from holdfast.report.html import Html, join, number, tag
from holdfast.report.parts import Figure, Table

Row: TypeAlias = Mapping[str, Any]
Curve: TypeAlias = Mapping[str, Any]
Place: TypeAlias = Callable[[float], float]

WIDTH, PLOT = 420, 210
LEFT, RIGHT, TOP = 42, 14, 12
AXIS, LINE = 60, 18
SAMPLE, NAME = 6, 58
"""Where a line of the legend has its sample, and where its words begin."""
"""Room under the plot for its axis, and for each line of the legend."""
LOGARITHMIC = 20
"""Times that the longest curve exceeds the shortest for the horizontal axis to be logarithmic."""
MARKS = 8

INK = {"metropolis": "#1b4f8a", "line_gibbs": "#a8530b", "block_gibbs": "#2e5e1e"}
SHAPES = {
    "metropolis": "M{x:.1f} {y:.1f}m-3.5 0a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0 -7 0z",
    "line_gibbs": "M{x:.1f} {y:.1f}m-3 -3h6v6h-6z",
    "block_gibbs": "M{x:.1f} {y:.1f}m0 -4.5l4 7h-8z",
}


def curve_figure(index: int, label: str, rows: Sequence[Row], say: Say) -> Figure:
    """The chart of one shape of block, with its main figures in words. `index` makes names on the page unique.

    Given:       rows with at least one curve each, as `Diagnosis.to_fields` gives them.
    """
    drawn = [(row, curve) for row in rows for curve in row["curves"]]
    pairs = max(curve["pairs"] for _, curve in drawn)
    bottom = 1 / (2 * pairs)
    across, ticks, scale = _across([curve["end_sweeps"] for _, curve in drawn])
    down = _down(bottom)
    height = TOP + PLOT + AXIS + LINE * (len(drawn) + 1)
    words = " ".join(_words(row, curve) for row, curve in drawn)
    picture = tag(
        "svg",
        tag("title", f"Estimated bound of the total variation distance against sweeps: {label}", id=f"curves-{index}"),
        tag("desc", words, id=f"curves-{index}-words"),
        *_frame(across, ticks, down, bottom, scale),
        *_floor(3 / pairs, down),
        *(piece for place, (row, curve) in enumerate(drawn) for piece in _line(row, curve, across, down, bottom, place)),
        *(piece for place, (row, curve) in enumerate(drawn) for piece in _legend(row, curve, TOP + PLOT + AXIS + LINE * place)),
        *_floor_legend(TOP + PLOT + AXIS + LINE * len(drawn), pairs),
        role="img",
        aria_labelledby=f"curves-{index}",
        aria_describedby=f"curves-{index}-words",
        viewBox=f"0 0 {WIDTH} {height}",
        width=str(WIDTH),
        height=str(height),
    )
    caption = join(label, ". ", say("diagnosis.curves_note"))
    return Figure(f"curve-figure-{index}", picture, caption, _data(drawn, say))


def _data(drawn: Sequence[tuple[Row, Curve]], say: Say) -> Table:
    """What the words under the chart say of each curve, as numbers."""
    return Table(
        say("diagnosis.curve_data"),
        tuple(say(f"diagnosis.curve_{column}") for column in ("name", "start", "tenth", "end")),
        tuple(
            (
                f"{row['kernel']}, {lag_words(row, curve)}",
                short(curve["estimate"][0]),
                next((short(s) for s, v in zip(curve["sweeps"], curve["estimate"], strict=True) if v < 0.1), "-"),
                short(curve["end_sweeps"]) if curve["is_bound"] else say("diagnosis.no_bound"),
            )
            for row, curve in drawn
        ),
        frozenset({1, 2, 3}),
    )


def lag_words(row: Row, curve: Curve) -> str:
    """lag 12 sweeps, or in steps where it is no whole number of sweeps"""
    if curve["lag_sweeps"] * row["steps_per_sweep"] == curve["lag_steps"]:
        return f"lag {number(curve['lag_sweeps'])} sweep{'' if curve['lag_sweeps'] == 1 else 's'}"
    return f"lag {number(curve['lag_steps'])} step{'' if curve['lag_steps'] == 1 else 's'}"


def _words(row: Row, curve: Curve) -> str:
    head = f"{row['kernel']}, {lag_words(row, curve)}:"
    sweeps, values = curve["sweeps"], curve["estimate"]
    end = short(curve["end_sweeps"])
    if not curve["is_bound"]:
        met = f"{number(curve['met'])} of {number(curve['pairs'])} pairs met within {end} sweeps"
        return f"{head} not a bound, since {met}."
    tenth = next(s for s, v in zip(sweeps, values, strict=True) if v < 0.1)
    middle = f", below 0.1 at {short(tenth)} sweeps" if tenth else ""
    return f"{head} {short(values[0])} at the start{middle}, no pair left at {end} sweeps."


def short(value: float) -> str:
    """Three digits, plain where that is possible."""
    return number(float(f"{value:.3g}"))


def _across(ends: Sequence[float]) -> tuple[Place, list[float], str]:
    """Where sweeps stand, the ticks, and what the axis is called. Logarithmic if one kernel is much slower than another."""
    longest, shortest = max(ends), min(ends)
    room = WIDTH - LEFT - RIGHT
    if longest > LOGARITHMIC * shortest:
        first, last = math.floor(math.log10(shortest)) - 1, math.log10(longest)
        low = 10.0**first
        ticks = [10.0**k for k in range(first, math.floor(last) + 1)]
        return (lambda s: LEFT + room * (math.log10(max(s, low)) - first) / (last - first)), ticks, "sweeps (logarithmic scale)"
    return (lambda s: LEFT + room * s / longest), round_ticks(longest), "sweeps"


def round_ticks(longest: float) -> list[float]:
    """Round numbers from 0 to this one, five to eleven of them."""
    step = 10.0 ** math.floor(math.log10(longest))
    step = next(step * part for part in (1.0, 0.5, 0.2, 0.1) if longest / (step * part) >= 4)
    return [step * k for k in range(math.floor(longest / step + 1e-9) + 1)]


def _down(bottom: float) -> Place:
    return lambda v: TOP + PLOT * math.log(min(max(v, bottom), 1.0)) / math.log(bottom)


def label_at(words: str, x: float, y: float, anchor: str = "start") -> Html:
    """A text of a chart."""
    return tag("text", words, x=f"{x:.1f}", y=f"{y:.1f}", text_anchor=anchor, font_size="12", fill="#16191d")


def stroke(x1: float, y1: float, x2: float, y2: float, **style: str) -> Html:
    """A straight line of a chart."""
    return tag("line", x1=f"{x1:.1f}", y1=f"{y1:.1f}", x2=f"{x2:.1f}", y2=f"{y2:.1f}", **style)


def _frame(across: Place, ticks: Sequence[float], down: Place, bottom: float, scale: str) -> list[Html]:
    base, right = TOP + PLOT, WIDTH - RIGHT
    out = [stroke(LEFT, base, right, base, stroke="#16191d"), stroke(LEFT, TOP, LEFT, base, stroke="#16191d")]
    value = 1.0
    while value > bottom:
        out.append(stroke(LEFT, down(value), right, down(value), stroke="#c3c9d0"))
        out.append(label_at(short(value), LEFT - 6, down(value) + 4, "end"))
        value /= 10
    for tick in ticks:
        x = across(tick)
        out.append(stroke(x, base, x, base + 5, stroke="#16191d"))
        out.append(label_at(short(tick), x, base + 18, "end" if x > right - 12 else "middle"))
    return [*out, label_at(scale, (LEFT + right) / 2, base + 35, "middle")]


def _floor(floor: float, down: Place) -> list[Html]:
    """3/N: below it nothing can be said from N pairs."""
    if floor >= 1:
        return []
    return [stroke(LEFT, down(floor), WIDTH - RIGHT, down(floor), stroke="#8c1616", stroke_width="1.2", stroke_dasharray="1 3 6 3")]


def _floor_legend(y: float, pairs: int) -> list[Html]:
    if pairs <= 3:
        return [label_at("So few pairs say nothing: 3/N is 1 or more.", SAMPLE, y + 4)]
    sample = stroke(SAMPLE, y, SAMPLE + 44, y, stroke="#8c1616", stroke_width="1.2", stroke_dasharray="1 3 6 3")
    return [sample, label_at(f"3/N = {short(3 / pairs)}: less cannot be said from {number(pairs)} pairs", NAME, y + 4)]


def _style(row: Row, curve: Curve) -> dict[str, str]:
    """The line of a lag: thick if assessed, thin if shorter, dotted if longer; long dashes if no bound."""
    out = {"stroke": INK.get(row["kernel"], "#16191d"), "stroke_width": "2.2" if curve["assessed"] else "1.1"}
    if not curve["is_bound"]:
        return out | {"stroke_dasharray": "9 5"}
    longer = not curve["assessed"] and curve["lag_steps"] > row["lag_steps"]
    return out | ({"stroke_dasharray": "2 3"} if longer else {})


def _mark(row: Row, curve: Curve, x: float, y: float) -> Html:
    ink = INK.get(row["kernel"], "#16191d")
    shape = SHAPES.get(row["kernel"], SHAPES["metropolis"]).format(x=x, y=y)
    return tag("path", d=shape, fill=ink if curve["assessed"] else "#fff", stroke=ink)


def _line(row: Row, curve: Curve, across: Place, down: Place, bottom: float, place: int) -> list[Html]:
    points = [(across(s), down(v)) for s, v in zip(curve["sweeps"], curve["estimate"], strict=True)]
    out = [tag("polyline", points=" ".join(f"{x:.1f},{y:.1f}" for x, y in points), fill="none", **_style(row, curve))]
    gap = max(1, len(points) // MARKS)
    visible = [point for point, value in zip(points, curve["estimate"], strict=True) if value > bottom]
    out += [_mark(row, curve, x, y) for x, y in visible[place % gap :: gap]]
    if not curve["is_bound"]:
        x, y = points[-1]
        out.append(label_at("not a bound", min(x, WIDTH - RIGHT) - 4, min(y + 16, TOP + PLOT - 6), "end"))
    return out


def _legend(row: Row, curve: Curve, y: float) -> list[Html]:
    what = f"{row['kernel']}, {lag_words(row, curve)}"
    more = ", not a bound" if not curve["is_bound"] else " (assessed)" if curve["assessed"] else ""
    return [
        stroke(SAMPLE, y, SAMPLE + 44, y, **_style(row, curve)),
        _mark(row, curve, SAMPLE + 22, y),
        label_at(what + more, NAME, y + 4),
    ]
