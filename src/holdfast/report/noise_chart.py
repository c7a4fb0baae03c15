"""A small bar chart of a cell's noise law, as inline SVG."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from holdfast.report.html import Html, number, tag, text


class NoiseLaw(NamedTuple):
    """The law of a cell's noise: values with their probabilities, at least 99 in 100 together, or their shares in simulated draws."""

    label: str
    law: Sequence[tuple[int, float]]
    draws: int | None = None
    """Cells drawn, where the shares were simulated; None where they were computed."""
    zero_error: float = 0.0
    """Standard error of the share of 0, where it was simulated."""


WIDTH, HEIGHT = 560, 150
LEFT, RIGHT, TOP, BOTTOM = 8, 8, 8, 24
MAX_BARS = 101


def noise_figure(index: int, given: NoiseLaw) -> Html:
    """The chart of one law, with its main figures in words, so that nothing is told by the picture alone.

    Given:       values not listed are taken as (nearly) impossible. `index` makes names on the page unique.
    """
    label, law = given.label, given.law
    if not law:
        return tag("figure", tag("figcaption", label, ": no values were given."))
    width, bars = _bars(law)
    what = "Probability" if given.draws is None else "Share in simulated draws"
    title = tag("title", f"{what} of each value of the noise: {label}", id=f"noise-{index}")
    note = f" Each bar covers {number(width)} neighbouring values." if width > 1 else ""
    picture = tag(
        "svg",
        title,
        *_rectangles(bars),
        *_axis(width, [position for position, _ in bars]),
        role="img",
        aria_labelledby=f"noise-{index}",
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        width=str(WIDTH),
        height=str(HEIGHT),
    )
    return tag("figure", picture, tag("figcaption", label, ". ", _words(given), note))


def _words(given: NoiseLaw) -> Html:
    law = given.law
    zero = math.fsum(p for k, p in law if k == 0)
    reach = _reach(law, 0.95)
    if given.draws is None:
        words = f"The noise is 0 with probability {_percent(zero)}."
        return text(words if not reach else f"{words} At least 95 of 100 values lie from -{number(reach)} to {number(reach)}.")
    words = (
        f"Simulated: of {number(given.draws)} cells drawn from the public law, {_percent(zero)} had noise 0 (standard error "
        f"{_percent(given.zero_error)})."
    )
    return text(words if not reach else f"{words} About 95 of 100 lay from -{number(reach)} to {number(reach)}.")


def _reach(law: Sequence[tuple[int, float]], share: float) -> int | None:
    """The smallest r such that the listed values from -r to r have at least this probability."""
    by_distance: dict[int, list[float]] = {}
    for k, p in law:
        by_distance.setdefault(abs(k), []).append(p)
    total = 0.0
    for distance, probabilities in sorted(by_distance.items()):
        total += math.fsum(probabilities)
        if total >= share:
            return distance
    return None


def _percent(probability: float) -> str:
    """With one decimal, or two digits where that would say too little."""
    return f"{100 * probability:.1f} %" if probability >= 0.01 or not probability else f"{100 * probability:.2g} %"


def _bars(law: Sequence[tuple[int, float]]) -> tuple[int, list[tuple[int, float]]]:
    """Values joined to at most about MAX_BARS bars of equal, odd width, so that one bar is centred at 0. Bars at the ends that the listed
    values fill in part are left out.
    """
    low, high = min(k for k, _ in law), max(k for k, _ in law)
    width = (high - low) // MAX_BARS + 1
    width += 1 - width % 2
    heights: dict[int, float] = {}
    for k, p in law:
        position = (k + width // 2) // width
        heights[position] = heights.get(position, 0.0) + p
    half = width // 2
    whole = {at: height for at, height in heights.items() if width == 1 or (low <= at * width - half and at * width + half <= high)}
    return width, sorted((whole or heights).items())


def _rectangles(bars: Sequence[tuple[int, float]]) -> list[Html]:
    left, step = _scale([position for position, _ in bars])
    top = max(height for _, height in bars) or 1.0
    room = HEIGHT - TOP - BOTTOM
    return [
        tag(
            "rect",
            x=f"{LEFT + (position - left) * step + 0.1 * step:.2f}",
            y=f"{TOP + room * (1 - height / top):.2f}",
            width=f"{0.8 * step:.2f}",
            height=f"{room * height / top:.2f}",
            fill="#1f4e79",
        )
        for position, height in bars
    ]


def _scale(positions: Sequence[int]) -> tuple[int, float]:
    left, right = min(positions), max(positions)
    return left, min((WIDTH - LEFT - RIGHT) / (right - left + 1), 40.0)


def _axis(width: int, positions: Sequence[int]) -> list[Html]:
    left, step = _scale(positions)
    right = max(positions)
    base = HEIGHT - BOTTOM
    end = LEFT + (right - left + 1) * step
    line = tag("line", x1=str(LEFT), y1=str(base), x2=f"{end:.2f}", y2=str(base), stroke="#111")
    marks = sorted({left, right} | ({0} if left <= 0 <= right else set()))
    anchors = {left: "start", right: "end"} if len(marks) > 1 else {}
    labels = [
        tag(
            "text",
            number(mark * width),
            x=f"{LEFT + (mark - left + 0.5) * step:.2f}",
            y=str(HEIGHT - 7),
            text_anchor=anchors.get(mark, "middle") if mark else "middle",
            font_size="12",
            fill="#111",
        )
        for mark in marks
    ]
    return [line, *labels]
