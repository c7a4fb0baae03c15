"""What charts are made of: scales, ticks, lines, labels. One size of text, dark ink on white; nothing depends on colour alone.

Charts are drawn for a column of 360 units, so that their text stays readable where two stand side by side, on a telephone and on paper.

`Figure` is a chart with what it says in words, and the numbers it was drawn from, as a table. It shows itself in notebooks.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from markupsafe import Markup

from holdfast.errors import InvalidParameter
from holdfast.exact.formatting import format_tick
from holdfast.report.frame import PageFigure, PageTable, Piece, paragraph, shorten_name, table, tag
from holdfast.wording.catalogue import ENGLISH, Sentences

Place: TypeAlias = Callable[[float], float]

WIDTH = 360
TEXT = 11
"""Size of all labels."""
LETTER = 7.0
WIDTHS = dict.fromkeys("mwMW%@—…", 10.9) | dict.fromkeys("ABCDEFGHKNOPQRUVXYZ_&<>=+", 8.6) | dict.fromkeys("fijlrtIJ.,:;'|!()[]/ -", 4.6)
"""Widths of letters of this size in a wide font: of most, and of those that differ."""

LATIN = 0x250
"""Letters below are Latin ones."""

INK = "#16191d"
GREY = "#4c5560"
GRID = "#d8dde2"
MAIN = "#1b4f8a"
ACCENT = "#a8530b"
RAMP = ("#dde8f4", "#c2d5e9", "#8fb1d6", "#5484b8", "#1b4f8a")
"""From little to much: each step darker than the one before, so that grey print keeps the order."""
MUCH = 12
"""Times by which values differ for their axis to be logarithmic."""
HALO = {"stroke": "#fff", "stroke_width": "3", "stroke_linejoin": "round", "paint_order": "stroke"}
"""Space around a label on lines: they stop before it."""
FONT = "'Noto Sans', 'Liberation Sans', Arial, sans-serif"


def picture(name: str, title: str, text: str, height: float, *pieces: Piece, width: float = WIDTH) -> Markup:
    """The drawing with its title and a description in words for those who do not see it. `name` is unique on the page."""
    return tag(
        "svg",
        tag("title", title, id=f"{name}-title"),
        tag("desc", text, id=f"{name}-words"),
        *pieces,
        xmlns="http://www.w3.org/2000/svg",
        role="img",
        aria_labelledby=f"{name}-title",
        aria_describedby=f"{name}-words",
        viewBox=f"0 0 {coordinate(width)} {coordinate(height)}",
        width=coordinate(width),
        height=coordinate(height),
        font_family=FONT,
        font_size=str(TEXT),
        fill=INK,
    )


def on_page(svg: str) -> Markup:
    """The drawing as an element of a page, which does not need what a file of its own needs."""
    return Markup(str(svg).replace(' xmlns="http://www.w3.org/2000/svg"', "", 1))


def coordinate(value: float) -> str:
    """With two decimals at most, without a minus before a zero."""
    shown = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if shown == "-0" else shown


def label(text: str, x: float, y: float, anchor: str = "start", **style: str) -> Markup:
    return tag("text", text, x=coordinate(x), y=coordinate(y), text_anchor=anchor, **style)


def line(x1: float, y1: float, x2: float, y2: float, **style: str) -> Markup:
    return tag("line", x1=coordinate(x1), y1=coordinate(y1), x2=coordinate(x2), y2=coordinate(y2), **({"stroke": INK} | style))


def box(x: float, y: float, width: float, height: float, **style: str) -> Markup:
    """A filled rectangle."""
    return tag("rect", x=coordinate(x), y=coordinate(y), width=coordinate(width), height=coordinate(height), **({"fill": MAIN} | style))


def dot(x: float, y: float, radius: float, **style: str) -> Markup:
    return tag("circle", cx=coordinate(x), cy=coordinate(y), r=coordinate(radius), **({"fill": MAIN} | style))


def polyline(points: Sequence[tuple[float, float]], **style: str) -> Markup:
    return tag("polyline", points=" ".join(f"{coordinate(x)},{coordinate(y)}" for x, y in points), fill="none", **style)


def legend_line(y: float, text: str, **style: str) -> list[Markup]:
    """A line of a legend: a piece of the line it explains, and its words."""
    return [line(6, y - 4, 50, y - 4, **style), label(text, 58, y)]


def cut(text: str, room: float) -> str:
    """A text, shortened where it does not fit."""
    return shorten_name(text, room, width_of)


def width_of(text: str) -> float:
    """About how wide a text is, rather too much than too little; letters of other scripts count double."""
    return sum(WIDTHS.get(letter, LETTER if ord(letter) < LATIN else 2 * LETTER) for letter in text)


def nice_ticks(low: float, high: float, about: int = 4) -> list[float]:
    """Round numbers from at most `low` to at least `high`, about so many steps of 1, 2 or 5 times a power of ten."""
    span = high - low or abs(high) or 1.0
    step = 10.0 ** math.floor(math.log10(span / about))
    step = next(step * part for part in (1.0, 2.0, 5.0, 10.0) if span / (step * part) <= about * 1.25)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [float(f"{step * k:.12g}") for k in range(first, max(last, first + 1) + 1)]


def decades(low: float, high: float) -> list[float]:
    """Powers of ten from at most `low` to at least `high`; both positive."""
    first, last = math.floor(math.log10(low) + 1e-9), math.ceil(math.log10(high) - 1e-9)
    return [10.0**k for k in range(first, max(last, first + 1) + 1)]


def steps_down(high: float, low: float) -> list[float]:
    """Powers of ten from `high`, one itself, down to `low`, ten of them at most; with 2 and 5 times them where there are only two."""
    last = math.floor(-math.log10(low / high) + 1e-9)
    if last < 2:
        return [high * part / 10**k for k in range(last + 1) for part in ((1.0,) if k == 0 else (5.0, 2.0, 1.0))]
    return [high / 10**k for k in range(0, last + 1, math.ceil((last + 1) / 10))]


def linear(low: float, high: float, start: float, end: float) -> Place:
    return lambda value: start + (end - start) * (value - low) / ((high - low) or 1.0)


def logarithmic(low: float, high: float, start: float, end: float) -> Place:
    """Return a logarithmic scale; values below `low` are drawn at `low`."""
    return lambda value: start + (end - start) * math.log(max(value, low) / low) / (math.log(high / low) or 1.0)


def spread_scale(smallest: float, largest: float, start: float, end: float) -> tuple[Place, list[float]]:
    """(where values from 0 on stand, the ticks). Logarithmic where the largest is much more than the smallest positive one: 0 then stands
    at the start, a little before the others.
    """
    if largest <= MUCH * smallest or smallest <= 0:
        ticks = nice_ticks(0.0, largest or 1.0)
        return linear(0.0, ticks[-1], start, end), ticks
    powers = decades(smallest, largest)
    begin = start + (end - start) / (len(powers) + 1)
    upwards = logarithmic(powers[0], powers[-1], begin, end)
    return (lambda value: upwards(value) if value > 0 else start), [0.0, *powers]


def axis_below(place: Place, ticks: Sequence[float], top: float, base: float, text: str, end: float | None = None) -> list[Markup]:
    """Lines upwards from each tick with its number under it, and what the numbers are. `end`: where the last tick is not the end."""
    ends = place(ticks[0]), place(ticks[-1]) if end is None else end
    out = [line(place(tick), top, place(tick), base, stroke=GRID) for tick in ticks]
    room = (place(ticks[-1]) - ends[0]) / max(len(ticks) - 1, 1)
    every = max(1, math.ceil(max(width_of(format_tick(tick)) + 6 for tick in ticks) / room)) if room > 0 else 1
    out += [label(format_tick(tick), place(tick), base + 14, "middle") for tick in ticks[::every]]
    return [*out, line(ends[0], base, ends[1], base), label(text, ends[1], base + 29, "end", fill=GREY)]


def axis_left(place: Place, ticks: Sequence[float], left: float, end: float, text: Callable[[float], str] = format_tick) -> list[Markup]:
    """Lines across from each tick, with its number before it."""
    lines = [line(left, place(tick), end, place(tick), stroke=GRID) for tick in ticks]
    return [*lines, *(label(text(tick), left - 6, place(tick) + 4, "end") for tick in ticks)]


MOST_ROWS = 400
"""Most rows of the data on a page; files have all of them."""


@dataclass(frozen=True)
class Figure:
    """A drawing with its words and its data. Equal facts give equal bytes.

    svg:      one element, without links, scripts or outside fonts; its description holds `text`.
    caption:  how the drawing is read.
    text:     what the drawing tells, for those who do not see it.
    header:   of the table of data; `rows`: its rows, as they are shown. `language`: of all of it.
    """

    name: str
    title: str
    svg: str
    caption: str
    text: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    language: str = ENGLISH

    @property
    def heading(self) -> str:
        """The title as it stands above the drawing."""
        return self.title.removesuffix(".")

    def part(self) -> PageFigure:
        """The same for the frame of a page, which lays it out; of a long table the first rows."""
        some = Sentences(self.language)("figures.first_rows", shown=MOST_ROWS, rows=len(self.rows))
        caption = self.title if len(self.rows) <= MOST_ROWS else f"{self.title} {some}"
        data = PageTable(caption, self.header, self.rows[:MOST_ROWS], frozenset(range(1, len(self.header))))
        return PageFigure(self.name, on_page(self.svg), self.caption, data, self.heading)

    def html(self) -> Markup:
        """Drawing, title and caption, and the table, which opens on demand."""
        data = tag("details", tag("summary", Sentences(self.language)("page.data")), table(self.title, self.header, self.rows))
        title = paragraph(tag("strong", self.heading))
        return tag("figure", title, on_page(self.svg), tag("figcaption", self.caption), data)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the drawing to an .svg file, and give its path; an existing file is refused, and so is another ending."""
        if not isinstance(path, str | os.PathLike) or Path(path).suffix.lower() != ".svg":
            raise InvalidParameter(f"A figure is saved as SVG, under a name that ends in .svg. Got {str(path)[:100]!r}.", field="path")
        place = Path(path)
        with open(place, "x", encoding="utf-8") as file:
            file.write(self.svg)
        return place

    def _repr_svg_(self) -> str:
        return self.svg

    def _repr_html_(self) -> str:
        return str(self.html())

    def __repr__(self) -> str:
        return f"Figure({self.title!r}, {len(self.rows)} rows of data)"
