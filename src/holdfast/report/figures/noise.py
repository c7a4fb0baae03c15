"""The law of a cell's noise as bars: computed, or the shares in simulated draws with the error of each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.report.figures.facts import NoiseLaw
from holdfast.report.figures.figure import Figure
from holdfast.report.figures.svg import ACCENT, GREY, MAIN, WIDTH, box, label, line, picture, tick_words
from holdfast.report.html import Html, number
from holdfast.wording.figures import NOISE_AXIS, NOISE_COMPUTED, NOISE_SIMULATED, noise_header, noise_picture, noise_words, percent

TOP, PLOT, LEFT = 8, 84, 8
BASE = TOP + PLOT
MAX_BARS = 81
WIDEST = 40.0
ROWS = 41
"""Of the table of data: as many bars around 0."""


@dataclass(frozen=True)
class NoiseBar:
    """Neighbouring values in one bar: its number from the middle, its share, the standard error of that."""

    position: int
    share: float
    error: float


def noise_figure(index: int, given: NoiseLaw) -> Figure:
    """Given: `index` tells the charts of a page apart; one value or more."""
    width, bars = _bars(given)
    title = (NOISE_COMPUTED if given.draws is None else NOISE_SIMULATED).format(place=given.place)
    caption = noise_words(given.law, given.draws, given.zero_error, width, reach(given.law, 0.95))
    highest = max(bars, key=lambda bar: bar.share)
    words = noise_picture(bars[0].position * width, bars[-1].position * width, highest.position * width, highest.share)
    left, step = _scale(bars)
    top = max((bar.share + bar.error for bar in bars), default=0.0) or 1.0
    pieces = [piece for bar in bars for piece in _bar(bar, LEFT + (bar.position - left) * step, step, top)]
    svg = picture(f"noise-{index}", title, words, BASE + 36, *pieces, *_axis(width, bars))
    middle = sorted(bars, key=lambda bar: abs(bar.position))[:ROWS]
    rows = tuple(_data(bar, width, given.draws is not None) for bar in sorted(middle, key=lambda bar: bar.position))
    return Figure(f"noise-{index}", title, svg, caption, words, noise_header(given.draws is not None), rows)


def reach(law: Sequence[tuple[int, float]], share: float) -> int | None:
    """The smallest r such that the listed values from -r to r have at least this probability; None where all listed have less."""
    by_distance: dict[int, list[float]] = {}
    for k, p in law:
        by_distance.setdefault(abs(k), []).append(p)
    total = 0.0
    for distance, probabilities in sorted(by_distance.items()):
        total += math.fsum(probabilities)
        if total >= share:
            return distance
    return None


def _bars(given: NoiseLaw) -> tuple[int, list[NoiseBar]]:
    """Values joined to at most about MAX_BARS bars of equal, odd width, so that one bar is centred at 0. Bars at the ends that the listed
    values fill in part are left out. Errors of joined bars are added: that is on the safe side.
    """
    low, high = min(k for k, _ in given.law), max(k for k, _ in given.law)
    width = (high - low) // MAX_BARS + 1
    width += 1 - width % 2
    shares: dict[int, float] = {}
    errors: dict[int, float] = {}
    for (k, p), error in zip(given.law, given.errors or [0.0] * len(given.law), strict=True):
        position = (k + width // 2) // width
        shares[position] = shares.get(position, 0.0) + p
        errors[position] = errors.get(position, 0.0) + error
    half = width // 2
    whole = [at for at in shares if width == 1 or (low <= at * width - half and at * width + half <= high)]
    return width, [NoiseBar(at, shares[at], errors[at]) for at in sorted(whole or shares)]


def _scale(bars: Sequence[NoiseBar]) -> tuple[int, float]:
    left, right = bars[0].position, bars[-1].position
    return left, min((WIDTH - 2 * LEFT) / (right - left + 1), WIDEST)


def _bar(bar: NoiseBar, x: float, step: float, top: float) -> list[Html]:
    high = PLOT * bar.share / top
    out = [box(x + 0.1 * step, BASE - high, 0.8 * step, high, fill=MAIN)]
    if not bar.error:
        return out
    low, up = (BASE - PLOT * max(bar.share + way * bar.error, 0.0) / top for way in (-1, 1))
    return [*out, line(x + step / 2, low, x + step / 2, up, stroke=ACCENT, stroke_width="1.5")]


def _axis(width: int, bars: Sequence[NoiseBar]) -> list[Html]:
    left, step = _scale(bars)
    right = bars[-1].position
    end = LEFT + (right - left + 1) * step
    marks = sorted({left, right} | ({0} if left <= 0 <= right else set()))
    anchors = {left: "start", right: "end"} if len(marks) > 1 else {}
    labels = [
        label(tick_words(mark * width), LEFT + (mark - left + 0.5) * step, BASE + 14, anchors.get(mark, "middle") if mark else "middle")
        for mark in marks
    ]
    return [line(LEFT, BASE, end, BASE), *labels, label(NOISE_AXIS, max(end, 120.0), BASE + 29, "end", fill=GREY)]


def _data(bar: NoiseBar, width: int, simulated: bool) -> tuple[str, ...]:
    middle, half = bar.position * width, width // 2
    of = number(middle) if width == 1 else f"{number(middle - half)} to {number(middle + half)}"
    return (of, percent(bar.share), *((percent(bar.error),) if simulated else ()))
