"""`release.plot` and `hf.load(folder).plot`: the figures of the report, and more of their kind, as SVG that shows itself in notebooks."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from holdfast.display import shorten
from holdfast.errors import InvalidParameter
from holdfast.publication import report_facts as facts
from holdfast.publication.map_files import MAP_FILE, read_map
from holdfast.publication.maps import folder_areas, map_facts
from holdfast.publication.report_facts import margin_spreads, noise_charts, relative_shares
from holdfast.publication.sums import LevelUnits, find_level
from holdfast.report.figures.area_map import map_figure
from holdfast.report.figures.errors import error_figure, relative_figure
from holdfast.report.figures.heat_map import heat_figure
from holdfast.report.figures.noise import noise_figure
from holdfast.report.figures.ranked import ranked_figure
from holdfast.report.figures.sizes import size_figure
from holdfast.report.figures.svg import Figure
from holdfast.wording.catalogue import ENGLISH, Sentences

if TYPE_CHECKING:
    from holdfast.card.figure_facts import SpreadFacts
    from holdfast.publication.plan import Plan
    from holdfast.publication.publication import PublishedTable

MOST_BARS = 100


class Plot:
    """Figures of one publication. Each is made from public facts alone, so that a release and its folder give the same bytes.

    A level is named as `error_by_level` and `error_by_margin` name it: "cells", "whole table", a column, columns joined by " x ", a level
    of the budget; several columns may be given as a list.
    """

    def __init__(self, plan: Plan, table: PublishedTable, language: str = ENGLISH, area_map: bytes | None = None) -> None:
        self._plan, self._table, self._say, self._area_map = plan, table, Sentences(language), area_map

    def error_by_level(self) -> Figure:
        """Standard deviations from the whole table over nested columns, or levels of the budget, to the cells."""
        return self._errors("level", facts.spreads(units := LevelUnits(self._plan), units.levels))

    def error_by_margin(self) -> Figure:
        """Standard deviations of the sums by each column that is not nested, and by pairs of them."""
        units = LevelUnits(self._plan)
        return self._errors("margin", margin_spreads(units) or facts.spreads(units, units.margins))

    def error_by_size(self, level: str | Sequence[str] = "cells") -> Figure:
        """Standard deviation against the size of the published number, with lines of equal relative error."""
        units = LevelUnits(self._plan, self._table)
        found = facts.sizes(units.sums(find_level(units, level)), self._table.measure.whole)
        if found is None:
            raise _unknown()
        return size_figure(self._say, found, self._noun)

    def relative_errors(self) -> Figure:
        """The share of published numbers whose standard deviation is above 5, 10, 25 and 50 % of the number, for every level."""
        units = LevelUnits(self._plan, self._table)
        found = relative_shares([units.sums(level) for level in units.levels])
        if not found:
            raise _unknown()
        return relative_figure(self._say, found, self._noun)

    def ranked(self, level: str | Sequence[str] | None = None, most: int = 20) -> Figure:
        """The largest numbers of a level with 95 % intervals; by default of the coarsest level that carries noise."""
        if not isinstance(most, int) or not 1 <= most <= MOST_BARS:
            raise InvalidParameter(f"most is a number of bars from 1 to {MOST_BARS}.", field="most")
        units = LevelUnits(self._plan, self._table)
        sums = units.sums(find_level(units, level))
        return ranked_figure(self._say, facts.rank_sums(self._plan, self._table, sums, most), self._noun)

    def heat_map(self, columns: Sequence[str] | None = None) -> Figure:
        """A two-way table in shades; `columns` are needed where the table has more than two."""
        return heat_figure(self._say, facts.grid_of(self._plan, self._table, columns), self._noun)

    def map(self, file: str | os.PathLike[str] | None = None, code: str | None = None, level: str | None = None) -> Figure:
        """Numbers on a map: a GeoJSON file whose features hold the codes of the level in the property `code`; by default the map of the
        folder that was loaded.
        """
        if not isinstance(level, str | None):
            raise InvalidParameter(f"The level of a map is a name. Got {shorten(repr(level))}.", field="level")
        if file is None and code is None and self._area_map is not None:
            found = folder_areas(self._area_map, self._plan, self._table, level)
        elif isinstance(file, str | os.PathLike) and isinstance(code, str):
            found = map_facts(self._plan, self._table, read_map(file), code, level)
        else:
            raise InvalidParameter(
                'A map needs a GeoJSON file and the property of its areas that holds the codes: plot.map("areas.geojson", "code"). '
                f"Only a loaded folder that holds {MAP_FILE} needs neither.",
                field="file",
            )
        return map_figure(self._say, found, self._noun)

    def noise(self, kind: int = 0) -> Figure:
        """The law of a cell's noise: of the first kind of block, or of another."""
        laws = noise_charts(self._plan.drawing)
        if not laws:
            raise InvalidParameter(
                "This release has no noise to draw: it adds none, its noise depends on the counts, its values are answers on a grid, or "
                "draws of its noise take too long."
            )
        if not isinstance(kind, int) or not 0 <= kind < len(laws):
            known = "is one kind of noise to draw: 0" if len(laws) == 1 else f"are {len(laws)} kinds of noise to draw: 0 to {len(laws) - 1}"
            raise InvalidParameter(f"There {known}. Got {shorten(repr(kind))}.", field="kind")
        return noise_figure(self._say, kind + 1, laws[kind])

    @property
    def _noun(self) -> str:
        return self._table.measure.published_noun

    def _errors(self, kind: str, spreads: Sequence[SpreadFacts]) -> Figure:
        if self._plan.covariance is None:
            raise _unknown()
        basis = self._plan.info.expected_error.basis
        return error_figure(self._say, kind, spreads, basis, self._noun)


def _unknown() -> InvalidParameter:
    return InvalidParameter("This release has no standard deviations to draw: it adds no noise, or its noise depends on the counts.")
