"""What pages are made of, as values: tables, figures, tiles. `templates/macros.html.j2` lays them out."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup


@dataclass(frozen=True)
class PageTable:
    """A table whose first column names its rows. `numbers` are the columns that are aligned as numbers."""

    caption: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numbers: frozenset[int] = frozenset()


@dataclass(frozen=True)
class PageFigure:
    """A picture with title and caption, and the numbers it shows as a table. `name` is its id, one of a kind on the page."""

    name: str
    picture: Markup
    caption: str
    data: PageTable | None = None
    title: str = ""


@dataclass(frozen=True)
class Tile:
    """One large number: what it is, its value, what else there is to say. `exact` ones are marked apart from noisy ones."""

    label: str
    value: str
    note: str = ""
    exact: bool = False


@dataclass(frozen=True)
class PageSection:
    """A part of a page under its own heading; its figures are side by side if there is room. What is `after` them, if anything, comes
    last; a single figure is then beside the body.
    """

    name: str
    title: str
    body: Markup
    figures: tuple[PageFigure, ...] = ()
    after: Markup | None = None
