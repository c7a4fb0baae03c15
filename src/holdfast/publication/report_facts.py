"""What the report of a release is made from beside its card: the facts of its figures. The same from a release and from its folder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from holdfast.card.view import ViewInfo
from holdfast.publication import figure_facts as facts
from holdfast.publication.figure_facts import MOST_COLUMNS, MOST_ROWS
from holdfast.publication.noise_charts import noise_charts
from holdfast.publication.plan import Plan
from holdfast.publication.sums import Sums, levels_of, margins_of, sums_of
from holdfast.report.figures.facts import AreasFacts, GridFacts, ReportFacts, SharesFacts, SpreadFacts

if TYPE_CHECKING:
    from holdfast.publication.publication import PublishedTable

SHOWN_BARS, FEWER_BARS = 10, 6
"""Fewer beside a heat map, which has all numbers."""
SHOWN_MARGINS = 6
SHOWN_LAWS = 1
"""Rows of the figure of margins, and charts of noise: `release.plot` draws all."""


def report_facts(plan: Plan, table: PublishedTable, areas: AreasFacts | None = None, view: ViewInfo | None = None) -> ReportFacts:
    """Figures that this release can have: none of them where counts are left out. `view`: what view.json says, if there is one."""
    if not table.published.all():
        return ReportFacts()
    sums = [sums_of(plan, table, level) for level in levels_of(plan)]
    heat = _two_way(plan, table)
    first = next((found for found in sums[1:] if plan.covariance is not None and np.any(found.deviations != 0)), sums[-1])
    return ReportFacts(
        levels=tuple(map(facts.spread, sums)) if plan.covariance is not None and len(sums) > 2 else (),
        margins=_some(margin_spreads(plan)),
        relative=tuple(relative_shares(sums)),
        sizes=facts.sizes(sums[-1], table.measure.whole),
        ranked=facts.rank_sums(plan, table, first, SHOWN_BARS if heat is None else FEWER_BARS),
        heat=heat,
        areas=areas,
        example=facts.example_of(plan, table),
        noise=tuple(noise_charts(plan.drawing, SHOWN_LAWS)),
        view=view,
    )


def _some(spreads: tuple[SpreadFacts, ...]) -> tuple[SpreadFacts, ...]:
    """The first margins, and the cells."""
    return spreads if len(spreads) <= SHOWN_MARGINS else (*spreads[: SHOWN_MARGINS - 1], spreads[-1])


def margin_spreads(plan: Plan) -> tuple[SpreadFacts, ...]:
    """Errors of the margins of the whole table; where the budget has shares for levels, of the margins of every level."""
    if plan.covariance is None:
        return ()
    if plan.expected_error.levels:
        rows = (found for found in plan.expected_error.levels if found.margin != "total")
        return tuple(facts.level_spread(found) for found in rows)
    levels = margins_of(plan)
    return facts.spreads(plan, levels) if len(levels) > 2 or len(levels_of(plan)) <= 2 else ()


def relative_shares(sums: Sequence[Sums]) -> list[SharesFacts]:
    """Shares of every level below the whole table, without those whose standard deviations are not all known."""
    found = map(facts.shares, sums[1:] or sums)
    return [shares for shares in found if shares is not None]


def _two_way(plan: Plan, table: PublishedTable) -> GridFacts | None:
    universe = plan.facts.universe
    if len(universe.columns) != 2:
        return None
    rows, columns = (universe.code_count(column) for column in universe.columns)
    fits = 2 <= rows <= MOST_ROWS and 2 <= columns <= MOST_COLUMNS and 2 * len(universe) >= rows * columns
    return facts.grid_of(plan, table, None) if fits else None
