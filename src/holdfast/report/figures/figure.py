"""A figure: a drawing, what it says in words, and the numbers it was drawn from, as a table. Shows itself in notebooks."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup

from holdfast.errors import InvalidParameter
from holdfast.report import parts
from holdfast.report.figures.svg import on_page
from holdfast.report.markup import paragraph, table, tag
from holdfast.wording.catalogue import ENGLISH, Sentences

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

    def part(self) -> parts.PageFigure:
        """The same for the frame of a page, which lays it out; of a long table the first rows."""
        some = Sentences(self.language)("figures.first_rows", shown=MOST_ROWS, rows=len(self.rows))
        caption = self.title if len(self.rows) <= MOST_ROWS else f"{self.title} {some}"
        data = parts.PageTable(caption, self.header, self.rows[:MOST_ROWS], frozenset(range(1, len(self.header))))
        return parts.PageFigure(self.name, on_page(self.svg), self.caption, data, self.heading)

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
