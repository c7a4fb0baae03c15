"""The facts that figures are drawn from, of a release or of a published folder: plan and published table, nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from holdfast.accuracy.error_laws import ErrorLaws
from holdfast.accuracy.interval import Interval, around
from holdfast.channels.layout import LevelError
from holdfast.errors import InvalidParameter
from holdfast.exact.formatting import round_figure
from holdfast.publication.plan import Plan
from holdfast.publication.sums import Level, Sums, deviations_of, level_title, sums_of
from holdfast.report.figures.facts import LIMITS, Bar, Bubble, Example, GridFacts, Ranked, SharesFacts, SizeClass, Sizes, SpreadFacts
from holdfast.tables import Universe

if TYPE_CHECKING:
    from holdfast.publication.publication import PublishedTable

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Ends = tuple[float | None, float | None]

CONFIDENCE = 0.95
NORMAL = 1.959964
"""Standard deviations that hold 95 of 100 of normal noise."""
MOST_ROWS, MOST_COLUMNS = 60, 60
PER_DECADE, DEVIATIONS_PER_DECADE = 6, 8
"""Bubbles of the figure of sizes."""


def spreads(plan: Plan, levels: Iterable[Level]) -> tuple[SpreadFacts, ...]:
    """The standard deviations of every level, in short."""
    return tuple(_spread(level_title(plan.facts.universe, level), deviations_of(plan, level)) for level in levels)


def spread(sums: Sums) -> SpreadFacts:
    """The same of sums."""
    return _spread(sums.title, sums.deviations)


def _spread(title: str, found: Floats) -> SpreadFacts:
    known = np.sort(found[~np.isnan(found)])
    low, middle, high = (float(known[place]) if len(known) else None for place in (0, len(known) // 2, -1))
    return SpreadFacts(title, len(found), low, middle, high, looked_at=len(known))


def level_spread(found: LevelError) -> SpreadFacts:
    """A margin of a level of the budget, as the card has it."""
    low, middle, high = (round_figure(value, 3, is_bound=True) for value in (found.smallest, found.median, found.largest))
    return SpreadFacts(found.level, found.units, low, middle, high, looked_at=found.units, margin=found.margin)


def shares(sums: Sums) -> SharesFacts | None:
    """How many sums of a level are how uncertain; None where not all standard deviations are known."""
    if np.isnan(sums.deviations).any():
        return None
    noisy = sums.deviations > 0
    size = np.maximum(sums.values[noisy], 0.0)
    above = [int(np.count_nonzero(sums.deviations[noisy] > limit * size)) for limit in LIMITS]
    edges = [int(noisy.sum()), *above]
    classes = (*(edges[place] - edges[place + 1] for place in range(len(LIMITS))), above[-1])
    return SharesFacts(sums.title, int(np.count_nonzero(~noisy)), classes)


def sizes(sums: Sums, whole: bool) -> Sizes | None:
    """Standard deviation against size; None where no positive number has noise of a known size. `whole`: of counts."""
    known = ~np.isnan(sums.deviations) & (sums.deviations > 0)
    drawn = known & (sums.values > 0)
    if not drawn.any():
        return None
    value, deviation = sums.values[drawn], sums.deviations[drawn]
    places = np.floor(np.log10(value) + 1e-12).astype(np.int64)
    classes = []
    for place in np.unique(places).tolist():
        inside = np.sort(deviation[places == place])
        high = 10.0 ** (place + 1) - 1 if whole else 10.0 ** (place + 1)
        three = float(inside[0]), float(inside[len(inside) // 2]), float(inside[-1])
        classes.append(SizeClass(10.0**place, high, len(inside), *three))
    exact = int(np.count_nonzero(sums.deviations == 0))
    return Sizes(sums.title, tuple(classes), _bubbles(value, deviation), exact, int(np.count_nonzero(known & (sums.values <= 0))))


def _bubbles(value: Floats, deviation: Floats) -> tuple[Bubble, ...]:
    across = np.floor(np.log10(value) * PER_DECADE + 1e-9).astype(np.int64)
    up = np.rint(np.log10(deviation) * DEVIATIONS_PER_DECADE).astype(np.int64)
    pairs, which, counts = np.unique(np.stack((across, up), axis=1), axis=0, return_inverse=True, return_counts=True)
    which = which.reshape(-1)
    middle = np.exp(np.bincount(which, weights=np.log(deviation)) / counts)  # where all are alike, their own value
    size = np.exp(np.bincount(which, weights=np.log(value)) / counts)
    rows = zip(size.tolist(), middle.tolist(), counts.tolist(), strict=True)
    assert len(pairs) == len(counts)
    return tuple(Bubble(float(f"{a:.4g}"), float(f"{b:.4g}"), n) for a, b, n in rows)


def rank_sums(plan: Plan, table: PublishedTable, sums: Sums, most: int) -> Ranked:
    """The largest sums of a level with the ends of their intervals; equal ones in the order of the table."""
    order = np.argsort(-sums.values, kind="stable")[:most].tolist()
    ends, kind = _ends(plan, table, sums, order)
    bars = (Bar(sums.name(unit), float(sums.values[unit]), *pair, sums.parts(unit)) for unit, pair in zip(order, ends, strict=True))
    return Ranked(sums.title, tuple(bars), len(sums.values), kind, CONFIDENCE)


def _ends(plan: Plan, table: PublishedTable, sums: Sums, units: Sequence[int]) -> tuple[list[Ends], str]:
    """(low and high for each of these sums, how they were found: a key of wording/figures.py)."""
    found = computed_intervals(plan, table, [np.flatnonzero(sums.unit_of == unit) for unit in units])
    if found is not None:
        exact = all(interval.method == "kept" for interval in found)
        return [(interval.doubles["low"], interval.doubles["high"]) for interval in found], "exact" if exact else "law"
    deviations = sums.deviations[units]
    if np.isnan(deviations).any():
        return [(None, None)] * len(units), "none" if plan.covariance is None else "unknown"
    return [_normal(plan, float(value), float(sd)) for value, sd in zip(sums.values[units], deviations, strict=True)], "normal"


def _normal(plan: Plan, value: float, deviation: float) -> tuple[float, float]:
    far = float(np.ceil(NORMAL * deviation)) if plan.facts.measure.whole else NORMAL * deviation
    return float(f"{value - far:.12g}"), float(f"{value + far:.12g}")


def computed_intervals(plan: Plan, table: PublishedTable, sums: Sequence[Ints]) -> list[Interval] | None:
    """What `interval` says of the sums over these cells; None where one of them would have to be simulated, which is too long for a page,
    or where there is none, because the noise depends on the counts or comes from a chain.
    """
    laws, out = ErrorLaws(plan.drawing), []
    for cells in sums:
        law = laws.without_draws(cells)
        if law is None:
            return None
        published = cells, np.ones(len(cells), dtype=np.int64), int(table.counts[cells].sum())
        out.append(around(plan.facts, published, law.reach(1 - CONFIDENCE), CONFIDENCE, False))
    return out


def grid_of(plan: Plan, table: PublishedTable, columns: Sequence[str] | None) -> GridFacts:
    """The two-way table by two columns: by default those of a table that has two. Refused where it would have too many rows or columns."""
    universe = plan.facts.universe
    if len(universe.columns) == 1:
        raise InvalidParameter(f"A heat map is by two columns. This table has one: {universe.columns[0]}.", field="columns")
    if not isinstance(columns, Sequence | None):
        raise InvalidParameter("The columns of a heat map are a list of two names.", field="columns")
    wanted = tuple(universe.columns if columns is None else columns)
    if len(wanted) != 2 or any(column not in universe.columns for column in wanted):
        raise InvalidParameter(f"A heat map is by two of the columns {', '.join(universe.columns)}.", field="columns")
    shape = tuple(universe.code_count(column) for column in wanted)
    if shape[0] > MOST_ROWS or shape[1] > MOST_COLUMNS:
        raise InvalidParameter(f"A heat map has at most {MOST_ROWS} rows and {MOST_COLUMNS} columns. Here are {shape[0]} and {shape[1]}.")
    sums = sums_of(plan, table, Level(" x ".join(wanted), wanted))
    codes = universe.group(wanted)[1]
    values: list[list[float | None]] = [[None] * shape[1] for _ in range(shape[0])]
    deviations: list[list[float | None]] = [[None] * shape[1] for _ in range(shape[0])]
    for (row, column), value, deviation in zip(codes.tolist(), sums.values.tolist(), sums.deviations.tolist(), strict=True):
        values[row][column] = value
        deviations[row][column] = None if np.isnan(deviation) else deviation
    rows, across = (tuple(_label(universe, column, code) for code in universe.codes[column]) for column in wanted)
    titles = tuple(map(universe.labels.column, wanted))
    return GridFacts(rows, across, titles[0], titles[1], values, deviations)


def _label(universe: Universe, column: str, code: str) -> str:
    return universe.labels.code(column, {column: code}) or code


def example_of(plan: Plan, table: PublishedTable) -> Example | None:
    """A cell of middle size with noise, and the next cell with noise; None where there are no two, or no standard deviations."""
    deviations, covariance = plan.deviations, plan.covariance
    if deviations is None or covariance is None:
        return None
    noisy = np.flatnonzero((deviations > 0) & (table.values > 0))
    if len(noisy) < 2:
        return None
    cell = int(noisy[np.argsort(table.values[noisy], kind="stable")[len(noisy) // 2]])
    after = noisy[noisy > cell]
    other = int(after[0]) if len(after) else int(noisy[noisy < cell][-1])
    query = np.zeros(len(table))
    query[[cell, other]] = 1.0, 1.0
    both = covariance.of(query)
    query[other] = -1.0
    apart = covariance.of(query)
    found = computed_intervals(plan, table, [np.array([cell])])
    value = float(table.values[cell])
    low, high = _normal(plan, value, float(deviations[cell])) if found is None else (found[0].doubles[end] for end in ("low", "high"))
    names = plan.facts.universe.cell_name(cell), plan.facts.universe.cell_name(other)
    numbers = (float(f"{max(v, 0.0) ** 0.5 * plan.step:.{plan.sum_digits}g}") for v in (both, apart))
    own = float(deviations[cell]), low, high, found is not None
    return Example(names[0], value, *own, names[1], float(table.values[other]), float(deviations[other]), *numbers)
