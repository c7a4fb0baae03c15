"""The law of a cell's noise as bars: computed, or the shares in simulated draws with the error of each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from holdfast.card.figure_facts import NoiseLawFacts
from holdfast.exact.formatting import format_number, format_percent, format_tick
from holdfast.report.figures.svg import GREY, MAIN, RAMP, WIDTH, Figure, Place, axis_left, box, label, line, linear, nice_ticks, picture
from holdfast.wording.catalogue import Sentences
from holdfast.wording.figures import between, noise_header, noise_place, noise_text

TOP, PLOT, LEFT = 8, 84, 44
END = WIDTH - 16
BASE = TOP + PLOT
MAX_BARS = 81
WIDEST = 40.0
ROWS = 41
"""Rows of the table of data: this many bars around 0."""


@dataclass(frozen=True)
class NoiseBar:
    """Neighbouring values in one bar: its number from the middle, its share, the standard error of that."""

    position: int
    share: float
    error: float


def noise_figure(say: Sentences, index: int, given: NoiseLawFacts) -> Figure:
    """Given: `index` tells the charts of a page apart; one value or more."""
    width, bars = _bars(given)
    place = given.place if isinstance(given.place, str) else noise_place(say, given.place)
    title = say("figures.noise_computed" if given.draws is None else "figures.noise_simulated", place=place)
    caption = noise_text(say, given.law, given.draws, given.zero_error, width, reach(given.law, 0.95), given.most_off)
    highest = max(bars, key=lambda bar: bar.share)
    ends = {name: bar.position * width for name, bar in (("low", bars[0]), ("high", bars[-1]), ("highest", highest))}
    text = say("figures.noise_picture", share=format_percent(highest.share), **ends)
    across, step = _scale(bars, width)
    top = max((bar.share + bar.error for bar in bars), default=0.0) or 1.0
    up = linear(0.0, top, BASE, TOP)
    drawn = [piece for bar in bars for piece in _bar(bar, across(bar.position * width), step, up, given.draws is not None)]
    svg = picture(f"noise-{index}", title, text, BASE + 36, *_axes(say, across, up, bars, width, top), *drawn, line(LEFT, BASE, END, BASE))
    middle = sorted(bars, key=lambda bar: abs(bar.position))[:ROWS]
    rows = tuple(_data(say, bar, width, given.draws is not None) for bar in sorted(middle, key=lambda bar: bar.position))
    return Figure(f"noise-{index}", title, svg, caption, text, noise_header(say, given.draws is not None), rows, say.language)


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


def _bars(given: NoiseLawFacts) -> tuple[int, list[NoiseBar]]:
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


def _scale(bars: Sequence[NoiseBar], width: int) -> tuple[Place, float]:
    """(where a value of the noise stands, the width of a bar): in the middle of the room where few bars do not fill it."""
    first, last = bars[0].position, bars[-1].position
    step = min((END - LEFT) / (last - first + 1), WIDEST)
    start = (LEFT + END - step * (last - first)) / 2
    return linear(0, width, start - first * step, start - (first - 1) * step), step


def _bar(bar: NoiseBar, x: float, step: float, up: Place, simulated: bool) -> list[Markup]:
    """Computed bars are dark; simulated ones pale, with a line for their error."""
    out = [box(x - 0.4 * step, up(bar.share), 0.8 * step, BASE - up(bar.share), fill=RAMP[2] if simulated else MAIN)]
    if not bar.error:
        return out
    return [*out, line(x, up(max(bar.share - bar.error, 0.0)), x, up(bar.share + bar.error), stroke_width="1.3")]


def _axes(say: Sentences, across: Place, up: Place, bars: Sequence[NoiseBar], width: int, top: float) -> list[Markup]:
    low, high = bars[0].position * width, bars[-1].position * width
    values = [tick for tick in nice_ticks(low, high, 6) if low <= tick <= high and tick == int(tick)] or [float(low)]
    shares = [tick for tick in nice_ticks(0.0, top, 4) if tick <= top]
    return [
        *axis_left(up, shares, LEFT, END, format_percent),
        *(label(format_tick(tick), across(tick), BASE + 14, "middle") for tick in values),
        label(say("figures.noise_axis"), END, BASE + 29, "end", fill=GREY),
    ]


def _data(say: Sentences, bar: NoiseBar, width: int, simulated: bool) -> tuple[str, ...]:
    middle, half = bar.position * width, width // 2
    of = format_number(middle) if width == 1 else between(say, format_number(middle - half), format_number(middle + half))
    return (of, format_percent(bar.share), *((format_percent(bar.error),) if simulated else ()))
