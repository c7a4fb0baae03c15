"""Rows of a published table, for its report and for notebooks: few, however large the table is."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from holdfast.card.figure_facts import Row, RowGroup, RowsFacts
from holdfast.report.frame import Say
from holdfast.report.rows import first_title, rows_table
from holdfast.tables import Universe

if TYPE_CHECKING:
    from holdfast.publication.plan import Plan
    from holdfast.publication.publication import PublishedTable

FIRST = 6
"""Rows that are open on a page, and all that a notebook shows; of at most twice as many all."""


def first_cells(cells: int) -> int:
    """How many of so many rows come first."""
    return cells if cells <= 2 * FIRST else FIRST


def rows_html(table: PublishedTable) -> str:
    """The first rows of a published table, for notebooks."""
    return _first_html(rows_facts(table.universe, published_rows(table)), table.measure.published_noun)


def planned_html(plan: Plan) -> str:
    """The first rows of a table that is not drawn: the standard deviation of every cell, and what is exposed."""
    universe, exposed = plan.facts.universe, np.zeros(len(plan.facts.universe), dtype=np.bool_)
    exposed[plan.exposure.cells] = True
    deviations = plan.deviations if plan.drawing.channel.target.publishes_cells else None
    rows = _rows(universe, np.arange(first_cells(len(universe))), exposed, deviations, lambda cell: None)
    return _first_html(rows_facts(universe, rows), plan.facts.measure.published_noun, is_planned=True)


def _first_html(facts: RowsFacts, noun: str, *, is_planned: bool = False) -> str:
    say = Say()
    return str(rows_table(say, facts, facts.rows, first_title(say, len(facts.rows), facts.cells), noun, is_planned=is_planned))


def rows_facts(universe: Universe, rows: tuple[Row, ...], groups: tuple[RowGroup, ...] = (), level: str = "") -> RowsFacts:
    """These rows as the first ones of a table over the universe."""
    return RowsFacts(tuple(map(universe.labels.column, universe.columns)), rows, len(universe), groups, level)


def published_rows(table: PublishedTable, cells: NDArray[np.int64] | None = None) -> tuple[Row, ...]:
    """These rows of a table, or the first ones."""
    published = table.published

    def number(cell: int) -> str | None:
        return table.measure.text(int(table.counts[cell])) if published[cell] else None

    chosen = np.arange(first_cells(len(table))) if cells is None else cells
    return _rows(table.universe, chosen, table.exposed, table.standard_deviations if published.all() else None, number)


def _rows(
    universe: Universe,
    cells: NDArray[np.int64],
    exposed: NDArray[np.bool_],
    deviations: NDArray[np.float64] | None,
    number: Callable[[int], str | None],
) -> tuple[Row, ...]:
    rows = []
    for cell in cells.tolist():
        codes = universe.cell(cell)
        named = tuple(universe.labels.code(column, codes) or code for column, code in codes.items())
        deviation = None if deviations is None or np.isnan(deviations[cell]) else float(deviations[cell])
        rows.append(Row(named, number(cell), deviation, bool(exposed[cell])))
    return tuple(rows)
