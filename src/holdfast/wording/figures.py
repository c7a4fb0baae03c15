"""Titles, captions and heads of the figures: what a drawing tells, in words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

EXACT = "exact"
NOT_KNOWN = "not known"
NOT_PUBLISHED = "none"
TOTAL = "whole table"
CELLS = "cells"
DATA = "Data of this figure"

SD_AXIS = "standard deviation"
SHARE_AXIS = "% of the {noun}s"
SIZE_AXIS = "published {noun}"
SIZE_UPWARDS = "standard deviation"
VALUE_AXIS = "published {noun}"
NOISE_AXIS = "noise"

ERROR_TITLES = {"level": "Standard deviation of the noise, by level.", "margin": "Standard deviation of the noise, by margin."}
ERROR_HEADER = ("Sums over", "Sums", "Smallest", "Median", "Largest")


class _Spread(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def units(self) -> int: ...
    @property
    def smallest(self) -> float | None: ...
    @property
    def median(self) -> float | None: ...
    @property
    def largest(self) -> float | None: ...
    @property
    def looked_at(self) -> int: ...


def first_rows(shown: int, rows: int) -> str:
    """Under the table of a large figure."""
    return f"The first {shown:,} of {rows:,} rows; the table of the release has all."


def level_by_margin(level: str, margin: str) -> str:
    """ "county, by sex"; "county, by all other columns"."""
    return f"{level}, by {'all other columns' if margin == 'detailed' else margin}"


def units_word(units: int) -> str:
    return f"{units:,} number" if units == 1 else f"{units:,} numbers"


def three(value: float) -> str:
    """Three digits: 12,300, 7.21, 0.0125."""
    rounded = float(f"{value:.3g}")
    return f"{int(rounded):,}" if rounded == int(rounded) else f"{rounded:,.10g}"


def percent(share: float) -> str:
    """Two digits, one decimal at most: 5 %, 0.4 %, 0.012 %; what is more than 1,000 % is not told."""
    value = 100 * share
    if value > 1000:
        return "over 1,000 %"
    return f"{value:.1f}".removesuffix(".0") + " %" if value >= 1 or not value else f"{value:.2g} %"


def error_caption(basis: str, noun: str) -> str:
    """How the chart is read."""
    return f"How far the noise moves a {noun} (standard deviations: {basis}). Dot: the median; bar: from the smallest to the largest."


def error_words(spreads: Sequence[_Spread]) -> str:
    """Every row of the chart."""
    return "; ".join(f"{spread.name}: {spread_words(spread)}" for spread in spreads) + "."


def spread_words(spread: _Spread) -> str:
    """3.15 (0 to 3.16); one number where all are alike."""
    if spread.median is None or spread.smallest is None or spread.largest is None:
        return NOT_KNOWN
    if spread.largest == 0:
        return EXACT
    some = "" if spread.looked_at == spread.units else f", of the first {spread.looked_at:,}"
    if three(spread.smallest) == three(spread.largest):
        return three(spread.median) + some
    return f"{three(spread.median)} ({three(spread.smallest)} to {three(spread.largest)}{some})"


RELATIVE_TITLE = "How uncertain the {noun}s are."


class _Shares(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def numbers(self) -> int: ...
    def above(self, limit: int, /) -> int: ...


def relative_header(limits: Sequence[float]) -> tuple[str, ...]:
    return ("Level", "Numbers", *(f"Above {percent(limit)}" for limit in limits))


def class_words(limits: Sequence[float]) -> tuple[str, ...]:
    """No noise; up to 5 %; ...; above 50 %."""
    return ("no noise", *(f"up to {percent(limit)}" for limit in limits), f"above {percent(limits[-1])}")


RELATIVE_CAPTION = (
    "The standard deviation as a share of the published {noun}, darker where it is larger. A {noun} of zero or less that carries noise "
    "counts as above 50 %."
)


def relative_words(shares: Sequence[_Shares], limits: Sequence[float]) -> str:
    """For every level the shares above each limit."""
    told = "; ".join(f"{found.name}: {_shares(found, limits)}" for found in shares)
    return f"{told}."


def _shares(found: _Shares, limits: Sequence[float]) -> str:
    count = found.numbers or 1
    return ", ".join(f"{percent(found.above(place) / count)} above {percent(limit)}" for place, limit in enumerate(limits))


SIZE_TITLE = "Standard deviation against the size of the published {noun}."
SIZE_HEADER = ("Published number", "Numbers", "Standard deviation (range)", "Relative, in the middle")


class _SizeClass(Protocol):
    @property
    def numbers(self) -> int: ...
    @property
    def median(self) -> float: ...


class _Sizes(Protocol):
    @property
    def classes(self) -> Sequence[_SizeClass]: ...
    @property
    def exact(self) -> int: ...
    @property
    def not_positive(self) -> int: ...


def size_words(sizes: _Sizes, noun: str) -> str:
    """Dots and dashed lines, and what has no dot."""
    first, last = sizes.classes[0], sizes.classes[-1]
    told = (
        f"about {three(first.median)} for the smallest and {three(last.median)} for the largest {noun}s"
        if three(first.median) != three(last.median)
        else f"about {three(first.median)} whatever the size"
    )
    left = [
        *([f"{sizes.exact:,} without noise"] if sizes.exact else []),
        *([f"{sizes.not_positive:,} of zero or less"] if sizes.not_positive else []),
    ]
    rest = f" Not drawn: {' and '.join(left)}." if left else ""
    return f"The standard deviation is {told}.{rest}"


SIZE_CAPTION = (
    "Each dot stands for {noun}s of about one size, larger where they are more. On a dashed line the standard deviation is 5, 10, 25 or "
    "50 % of the {noun}; to the left of it more, to the right less."
)


INTERVALS = {
    "law": "Each line covers the true {noun} with probability {level} or more, whatever it is, computed from the law of the noise",
    "normal": "Each line reaches {factor} standard deviations each way, which is {level} for normal noise; `holdfast interval` goes by the "
    "law itself",
    "none": "How far a {noun} may be off depends on the true ones, so no intervals are shown",
    "unknown": "How far the noise moves these {noun}s was not estimated, because that would take too long, so no intervals are shown",
    "exact": "These {noun}s carry no noise",
}


class _Bar(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def value(self) -> float: ...
    @property
    def low(self) -> float | None: ...
    @property
    def high(self) -> float | None: ...


class _Ranked(Protocol):
    @property
    def level(self) -> str: ...
    @property
    def bars(self) -> Sequence[_Bar]: ...
    @property
    def units(self) -> int: ...
    @property
    def intervals(self) -> str: ...
    @property
    def confidence(self) -> float: ...


def plain_number(value: float) -> str:
    """A published number: whole ones in full."""
    return f"{int(value):,}" if value == int(value) else three(value)


def interval_text(low: float, high: float) -> str:
    return plain_number(low) if low == high else f"{plain_number(low)} to {plain_number(high)}"


def ranked_title(ranked: _Ranked, noun: str) -> str:
    lines = "" if ranked.intervals in ("none", "unknown") else ", with intervals"
    return f"The largest {noun}s by {ranked.level}{lines}."


def ranked_header(ranked: _Ranked, noun: str) -> tuple[str, ...]:
    return ranked.level, f"Published {noun}", f"Interval ({percent(ranked.confidence)})"


def ranked_words(ranked: _Ranked) -> str:
    """The bars in words."""
    return "; ".join(f"{bar.name}: {plain_number(bar.value)}{_ends(bar)}" for bar in ranked.bars) + "."


def _ends(bar: _Bar) -> str:
    return "" if bar.low is None or bar.high is None else f" ({interval_text(bar.low, bar.high)})"


def ranked_caption(ranked: _Ranked, noun: str) -> str:
    """What the lines are, and how many bars are not shown."""
    shown = len(ranked.bars)
    of = f"All {ranked.units:,} are shown" if shown == ranked.units else f"{shown:,} of {ranked.units:,} are shown; the table has all"
    how = INTERVALS[ranked.intervals].format(noun=noun, level=percent(ranked.confidence), factor="1.96")
    return f"{how}. {of}."


HEAT_TITLE = "Published {noun}s by {row} and {column}."
HEAT_UNSURE_KEY = "corner: standard deviation above 25 % of the number"


class _Grid(Protocol):
    @property
    def rows(self) -> Sequence[str]: ...
    @property
    def columns(self) -> Sequence[str]: ...
    @property
    def row_title(self) -> str: ...
    @property
    def column_title(self) -> str: ...
    @property
    def values(self) -> Sequence[Sequence[float | None]]: ...
    @property
    def deviations(self) -> Sequence[Sequence[float | None]]: ...


def heat_caption(grid: _Grid, noun: str) -> str:
    corner = " A dark corner warns of much noise." if has_deviations(grid) else ""
    return f"Darker where the {noun} is larger; about equally many in each shade.{corner}"


def has_deviations(grid: _Grid) -> bool:
    """Whether any standard deviation is known: without one nothing is marked."""
    return any(deviation is not None for row in grid.deviations for deviation in row)


def heat_header(grid: _Grid, noun: str) -> tuple[str, ...]:
    return f"{grid.row_title}, {grid.column_title}", f"Published {noun}", "Standard deviation"


def heat_words(grid: _Grid, known: Sequence[float], limit: float, noun: str) -> str:
    """Size, range and how many are marked."""
    pairs = [pair for values, spreads in zip(grid.values, grid.deviations, strict=True) for pair in zip(values, spreads, strict=True)]
    marked = sum(value is not None and bool(sd) and (sd or 0.0) > limit * max(value, 0.0) for value, sd in pairs)
    size = f"{len(grid.rows):,} rows and {len(grid.columns):,} columns"
    if not known:
        return f"{size}; nothing is published."
    marks = _marked(marked, len(known), limit) if has_deviations(grid) else "Standard deviations are not known."
    spread = f"{noun}s from {plain_number(min(known))} to {plain_number(max(known))}"
    return f"{size}, {spread}, darker where larger. {marks}"


def _marked(marked: int, numbers: int, limit: float) -> str:
    if not marked:
        return f"No standard deviation is above {percent(limit)} of its number."
    return f"Marked: {marked:,} of {numbers:,}, whose standard deviation is above {percent(limit)} of the number."


def shade_words(edges: Sequence[float]) -> tuple[str, ...]:
    """Up to 12; up to 40; above 40."""
    return (*(f"to {_size(edge)}" for edge in edges), f"above {_size(edges[-1])}" if edges else "all alike")


def _size(value: float) -> str:
    if value >= 1e6:
        return f"{three(value / 1e6)}M"
    return f"{three(value / 1e3)}k" if value >= 1e4 else three(value)


MAP_TITLE = "Published {noun}s by {level}, on the map."
MAP_UNSURE_KEY = "dot: standard deviation above 25 % of the number"
MAP_NONE_KEY = "not in the table"


class _Areas(Protocol):
    @property
    def areas(self) -> Sequence[object]: ...
    @property
    def without_area(self) -> int: ...


def map_header(level: str, noun: str) -> tuple[str, ...]:
    return level, f"Published {noun}", "Standard deviation"


def map_caption(areas: _Areas, noun: str) -> str:
    """How the map is read, and what it lacks."""
    rest = f" {areas.without_area:,} of the table have no area in the map file." if areas.without_area else ""
    return f"Darker where the {noun} is larger; about equally many in each shade. A dot warns of much noise.{rest}"


def map_words(areas: _Areas, known: Sequence[float], marked: int, limit: float, noun: str) -> str:
    """Number of areas, range, how many are hatched, what has no area."""
    count = f"{len(areas.areas):,} areas"
    if not known:
        return f"{count}; none of them is in the table."
    spread = f"{noun}s from {plain_number(min(known))} to {plain_number(max(known))}"
    return f"{count}, {spread}, darker where larger. {_marked(marked, len(known), limit)}"


NOISE_COMPUTED = "Probability of each value of the noise: {place}."
NOISE_SIMULATED = "Simulated shares of the values of the noise: {place}."


def noise_place(cells: int) -> str:
    """Where a cell stands, for the title of its chart."""
    return "a cell under no kept total" if cells == 1 else f"a cell of a block of {cells:,}"


def noise_header(simulated: bool) -> tuple[str, ...]:
    return ("Noise", "Share of draws", "Standard error") if simulated else ("Noise", "Probability")


def noise_picture(low: int, high: int, highest: int, share: float) -> str:
    """What the bars show, for those who do not see them."""
    return f"Bars from {low:,} to {high:,}; the highest is at {highest:,}, with {percent(share)}."


def noise_words(law: Sequence[tuple[int, float]], draws: int | None, error: float, width: int, reach: int | None) -> str:
    """Probability of no noise, the values that hold 95 of 100, and what a bar is; for simulated shares their error too."""
    zero = math.fsum(p for k, p in law if k == 0)
    bars = f" Each bar covers {width:,} neighbouring values." if width > 1 else ""
    inside = "" if reach is None else f"95 of 100 values lie from {-reach:,} to {reach:,}."
    if draws is None:
        return f"Computed from the law. The noise is 0 with probability {percent(zero)}.{inside and f' At least {inside}'}{bars}"
    return (
        f"Not computed: {draws:,} cells drawn from the public law. {percent(zero)} of them had noise 0 (standard error {percent(error)}). "
        f"Thin lines: one standard error each way.{inside and f' About {inside}'}{bars}"
    )
