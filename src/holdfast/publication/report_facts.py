"""What the report of a release is made from beside its card: the facts of its figures, from plan and published table and nothing else. The
same from a release and from its folder.

Pictures of the noise show how often a cell is off by how much. From the law where a cell's law can be computed, else from
draws of the public law with a public key, and then with their standard error.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from holdfast.accuracy.cell_laws import cell_law
from holdfast.accuracy.error_laws import ErrorLaws
from holdfast.accuracy.interval import Interval, around
from holdfast.card.figure_facts import (
    LIMITS,
    AreasFacts,
    Bar,
    Bubble,
    Example,
    GridFacts,
    NoiseLawFacts,
    Ranked,
    ReportFacts,
    RowGroup,
    RowsFacts,
    SharesFacts,
    SizeClass,
    Sizes,
    SpreadFacts,
)
from holdfast.card.parts import ViewInfo
from holdfast.chains.sampler import ChainSampler
from holdfast.channels import Drawing
from holdfast.channels.covariance import BATCHES, COSTLY_CELLS, public_draws, standard_error
from holdfast.channels.layout import LevelError
from holdfast.errors import InvalidParameter
from holdfast.exact.formatting import round_figure
from holdfast.lattices.shapes import Shape
from holdfast.laws import Reads
from holdfast.publication.plan import Plan
from holdfast.publication.rows import published_rows, rows_facts
from holdfast.publication.sums import PIECE, Level, LevelSums, LevelUnits, level_title, tally
from holdfast.samplers.protocol import BlockSampler, InputSampler, cell_draws
from holdfast.tables import Universe
from holdfast.wording.figures import is_nil

if TYPE_CHECKING:
    from holdfast.publication.publication import PublishedTable

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

CELLS = 4_000
"""About so many cell draws a picture: few enough that a small release never loads the compiled loops."""
MOST = 3
LOOKED_AT, SEEN = 12, 0.01
"""Shapes of blocks looked at, and the part of the highest bar by which two pictures must differ."""
NOT_SEEN = 1e-6
"""Errors of computed probabilities that are not told: so small a part of the highest bar."""
SHOWN = 0.9975
"""Share of the draws that the picture shows, at least."""


def noise_charts(drawing: Drawing, most: int = MOST) -> list[NoiseLawFacts]:
    """Up to three kinds of blocks, those that most cells are in first; a function of public facts, the same on every machine. None where
    the noise depends on the data, nor of blocks whose draws would take too long, nor of answers on a grid.
    """
    channel, left = drawing.channel, float(COSTLY_CELLS)
    if channel.target.reads is not Reads.NOTHING or not channel.facts.measure.whole:  # steps of a grid are too fine for bars
        return []
    charts: dict[tuple[str, int], NoiseLawFacts] = {}
    cells: dict[Shape, int] = {}
    for task in channel.tasks():
        cells[task.shape] = cells.get(task.shape, 0) + task.cells.size
    for shape in sorted(cells, key=lambda found: -cells[found])[:LOOKED_AT]:
        sampler = drawing.choice(shape).sampler
        assert not isinstance(sampler, InputSampler)
        kind = (sampler.name, sampler.cells)
        if kind in charts or len(charts) == most:
            continue
        found = _exact(drawing, shape, sampler)
        cost = 0.0 if found is not None or isinstance(sampler, ChainSampler) else _count(sampler) * cell_draws(sampler)
        if found is not None and any(_alike(found, other) for other in charts.values()):
            continue
        if cost <= left:
            left -= cost
            charts[kind] = found or _simulate_law(drawing, shape, sampler)
    return list(charts.values())


def _alike(one: NoiseLawFacts, other: NoiseLawFacts) -> bool:
    """Whether two computed laws make the same picture: no bar differs by more than a hundredth of the highest."""
    if one.draws is not None or other.draws is not None:
        return False
    first, second = dict(one.law), dict(other.law)
    return all(abs(first.get(k, 0.0) - second.get(k, 0.0)) <= SEEN * first[0] for k in first.keys() | second.keys())


def _count(sampler: BlockSampler) -> int:
    return max(2, CELLS // sampler.cells)


def _exact(drawing: Drawing, shape: Shape, sampler: BlockSampler) -> NoiseLawFacts | None:
    """From the law; of a chain, whose law is not the one it aims at, from its draws."""
    found = None if isinstance(sampler, ChainSampler) else cell_law(drawing.channel.target, shape)
    if found is None:
        return None
    law, half = found.probabilities, len(found.probabilities) // 2
    inside = law[half] + np.concatenate(([0.0], np.cumsum(law[half + 1 :] + law[:half][::-1])))
    reach = int(np.searchsorted(inside, SHOWN))
    shown = [(k, float(f"{law[half + k]:.9g}")) for k in range(-reach, reach + 1)]
    return NoiseLawFacts(sampler.cells, shown, most_off=found.error if found.share > NOT_SEEN else 0.0)


def _simulate_law(drawing: Drawing, shape: Shape, sampler: BlockSampler) -> NoiseLawFacts:
    names = ("noise chart", json.dumps(drawing.channel.target.fields), json.dumps(shape.fields))
    count = _count(sampler)
    draws = public_draws(sampler, names, -(-count // BATCHES) * BATCHES if isinstance(sampler, ChainSampler) else count)
    values, times = np.unique(draws, return_counts=True)
    reach = int(np.sort(np.abs(draws), axis=None)[int(np.ceil(SHOWN * draws.size)) - 1])
    law = [(k, n / draws.size) for k, n in zip(values.tolist(), times.tolist(), strict=True) if abs(k) <= reach]
    errors = [float(f"{float(standard_error((draws == k).mean(axis=1), sampler)):.3g}") for k, _ in law]
    return NoiseLawFacts(sampler.cells, law, draws.size, errors)


Ends = tuple[float | None, float | None]

CONFIDENCE = 0.95
NORMAL = 1.959964
"""Standard deviations that hold 95 of 100 of normal noise."""
MOST_ROWS, MOST_COLUMNS = 60, 60
PER_DECADE, DEVIATIONS_PER_DECADE = 6, 8
"""Bubbles of the figure of sizes."""


def spreads(units: LevelUnits, levels: Iterable[Level]) -> tuple[SpreadFacts, ...]:
    """The standard deviations of every level, in short."""
    return tuple(_spread(units.plan, level_title(units.universe, level), units.deviations(level)) for level in levels)


def _spread(plan: Plan, title: str, found: Floats) -> SpreadFacts:
    known, times = tally(found)
    order = np.argsort(known)[: np.count_nonzero(~np.isnan(known))]  # nan comes last
    known, times = known[order], times[order]
    looked_at = int(times.sum())
    places = np.searchsorted(np.cumsum(times), (0, looked_at // 2, looked_at - 1), side="right")
    low, middle, high = known[places].tolist() if looked_at else (None, None, None)
    if plan.expected_error.basis == "upper bound":  # the caption says that they are proved bounds
        low, middle, high = (None if value is None else round_figure(value, 3, is_bound=True) for value in (low, middle, high))
    return SpreadFacts(title, len(found), low, middle, high, looked_at=looked_at)


def level_spread(found: LevelError) -> SpreadFacts:
    """A margin of a level of the budget, as the card has it."""
    low, middle, high = (round_figure(value, 3, is_bound=True) for value in (found.smallest, found.median, found.largest))
    return SpreadFacts(found.level, found.units, low, middle, high, looked_at=found.units, margin=found.margin)


def shares(sums: LevelSums) -> SharesFacts | None:
    """How many sums of a level are how uncertain; None where not all standard deviations are known."""
    values, deviations, times = sums.tally
    if np.isnan(deviations).any():
        return None
    noisy = deviations > 0
    size = np.maximum(values, 0.0)
    edges = [int(times[noisy].sum()), *(int(times[noisy & (deviations > limit * size)].sum()) for limit in LIMITS)]
    classes = (*(edges[place] - edges[place + 1] for place in range(len(LIMITS))), edges[-1])
    return SharesFacts(sums.title, int(times[~noisy].sum()), classes)


def sizes(sums: LevelSums, whole: bool) -> Sizes | None:
    """Standard deviation against size; None where no positive number has noise of a known size. `whole`: of counts."""
    values, deviations, times = sums.tally
    known = ~np.isnan(deviations) & (deviations > 0)
    drawn = known & (values > 0)
    if not drawn.any():
        return None
    value, deviation, number = values[drawn], deviations[drawn], times[drawn]
    places = np.floor(np.log10(value) + 1e-12).astype(np.int64)
    classes = []
    for place in np.unique(places).tolist():
        inside = np.flatnonzero(places == place)
        inside = inside[np.argsort(deviation[inside], kind="stable")]
        high = 10.0 ** (place + 1) - 1 if whole else 10.0 ** (place + 1)
        up_to = np.cumsum(number[inside])
        middle = inside[np.searchsorted(up_to, up_to[-1] // 2, side="right")]
        three = (float(deviation[at]) for at in (inside[0], middle, inside[-1]))
        classes.append(SizeClass(10.0**place, high, int(up_to[-1]), *three))
    exact = int(times[deviations == 0].sum())
    return Sizes(sums.title, tuple(classes), _bubbles(value, deviation, number), exact, int(times[known & (values <= 0)].sum()))


def _bubbles(value: Floats, deviation: Floats, number: Ints) -> tuple[Bubble, ...]:
    across = np.floor(np.log10(value) * PER_DECADE + 1e-9).astype(np.int64)
    up = np.rint(np.log10(deviation) * DEVIATIONS_PER_DECADE).astype(np.int64)
    pairs, which = np.unique(np.stack((across, up), axis=1), axis=0, return_inverse=True)
    which = which.reshape(-1)
    counts = np.bincount(which, weights=number)
    middle = np.exp(np.bincount(which, weights=np.log(deviation) * number) / counts)  # where all are alike, their own value
    size = np.exp(np.bincount(which, weights=np.log(value) * number) / counts)
    rows = zip(size.tolist(), middle.tolist(), counts.tolist(), strict=True)
    assert len(pairs) == len(counts)
    return tuple(Bubble(float(f"{a:.4g}"), float(f"{b:.4g}"), int(n)) for a, b, n in rows)


def rank_sums(plan: Plan, table: PublishedTable, sums: LevelSums, most: int) -> Ranked:
    """The largest sums of a level with the ends of their intervals; equal ones in the order of the table."""
    values, most = sums.values, min(most, len(sums.values))
    large = np.flatnonzero(values >= np.partition(values, len(values) - most)[len(values) - most])
    order = large[np.argsort(-values[large], kind="stable")[:most]].tolist()
    ends, kind = _ends(plan, table, sums, order)
    bars = (Bar(sums.name(unit), float(sums.values[unit]), *pair, sums.parts(unit)) for unit, pair in zip(order, ends, strict=True))
    return Ranked(sums.title, tuple(bars), len(sums.values), kind, CONFIDENCE)


def _ends(plan: Plan, table: PublishedTable, sums: LevelSums, units: Sequence[int]) -> tuple[list[Ends], str]:
    """(low and high for each of these sums, how they were found: a key of wording/figures.py)."""
    found = computed_intervals(plan, table, list(map(sums.cells_of, units)))
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
    sums = LevelUnits(plan, table).sums(Level(" x ".join(wanted), wanted))
    codes = np.stack([universe.code_indices(c) for c in wanted], axis=1) if sums.grouping is None else sums.grouping.codes
    assert codes is not None
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
    """A cell of middle size with noise, and the next one; None where there are no two, or no standard deviations. No exposed cell: what is
    said of its true count would be less than anyone can compute.
    """
    deviations, covariance = plan.deviations, plan.covariance
    if deviations is None or covariance is None:
        return None
    noisy = (deviations > 0) & (table.counts > 0) & ~table.exposed
    counts, used, times = tally(table.counts, noisy.view(np.uint8))
    order = np.flatnonzero(used)[np.argsort(counts[used > 0])]
    up_to = np.cumsum(times[order])
    if not len(order) or up_to[-1] < 2:
        return None
    half = up_to[-1] // 2
    middle = order[np.searchsorted(up_to, half, side="right")]
    before = int(times[(used > 0) & (counts < counts[middle])].sum())
    cell = int(np.flatnonzero(noisy & (table.counts == counts[middle]))[half - before])
    after = noisy[cell + 1 :]
    other = cell + 1 + int(after.argmax()) if after.any() else cell - 1 - int(noisy[:cell][::-1].argmax())
    query = np.zeros(len(table))
    query[[cell, other]] = 1.0, 1.0
    both = covariance.of(query)
    query[other] = -1.0
    apart = covariance.of(query)
    found = computed_intervals(plan, table, [np.array([cell])])
    value, other_value = table.measure.floats(table.counts[[cell, other]]).tolist()
    low, high = _normal(plan, value, float(deviations[cell])) if found is None else (found[0].doubles[end] for end in ("low", "high"))
    names = plan.facts.universe.cell_name(cell), plan.facts.universe.cell_name(other)
    numbers = (float(f"{max(v, 0.0) ** 0.5 * plan.step:.{plan.sum_digits}g}") for v in (both, apart))
    own = float(deviations[cell]), low, high, found is not None
    return Example(names[0], value, *own, names[1], other_value, float(deviations[other]), *numbers)


SHOWN_BARS, FEWER_BARS = 10, 6
"""Fewer beside a heat map, which has all numbers."""
SHOWN_MARGINS = 6
SHOWN_LAWS = 1
"""Rows of the figure of margins, and charts of noise: `release.plot` draws all."""


WHOLE = 200
"""Rows up to which a page has the whole table; of a larger one it has at most so many."""
MOST_GROUPS = 60
"""Groups of rows that a page lists: the states of a country, not its counties."""


def table_rows(units: LevelUnits, table: PublishedTable) -> RowsFacts:
    """The first rows, and all rows of a table that is short; of another the first of every group."""
    universe = units.universe
    candidates = (*reversed(units.levels[1:-1]), *(Level(column, (column,)) for column in universe.columns))
    level = next((level for level in candidates if 1 < units.count(level) <= MOST_GROUPS), None)
    if len(table) <= WHOLE or level is None:
        whole = RowGroup("", published_rows(table, np.arange(min(WHOLE, len(table)))), len(table))
        return rows_facts(universe, published_rows(table), (whole,))
    named, grouping = units.names(level), units.grouping(level)
    unit_of = np.arange(len(table), dtype=np.int32) if grouping is None else grouping.unit_of()
    sizes = np.bincount(unit_of)
    groups = (
        RowGroup(named.name(unit), published_rows(table, cells), int(sizes[unit]))
        for unit, cells in enumerate(_first_cells(unit_of, sizes, WHOLE // len(sizes)))
    )
    return rows_facts(universe, published_rows(table), tuple(groups), named.title)


def _first_cells(unit_of: NDArray[np.int32], sizes: Ints, most: int) -> list[Ints]:
    """The first cells of every unit, at most so many, found piece by piece."""
    found: list[list[Ints]] = [[] for _ in sizes]
    left = np.minimum(sizes, most)
    for low in range(0, len(unit_of), PIECE):
        piece = unit_of[low : low + PIECE]
        for unit in np.flatnonzero((left > 0) & (np.bincount(piece, minlength=len(sizes)) > 0)).tolist():
            found[unit].append(low + np.flatnonzero(piece == unit)[: left[unit]])
            left[unit] -= len(found[unit][-1])
        if not left.any():
            break
    return list(map(np.concatenate, found))


def report_facts(plan: Plan, table: PublishedTable, areas: AreasFacts | None = None, view: ViewInfo | None = None) -> ReportFacts:
    """Figures that this release can have: none of them where counts are left out. `view`: what view.json says, if there is one."""
    if not table.published.all():
        return ReportFacts(table_rows(LevelUnits(plan), table))
    units = LevelUnits(plan, table)
    rows, sums = table_rows(units, table), [units.sums(level) for level in units.levels]
    is_nil_noise = is_nil(plan.expected_error.largest or 0.0, table.measure.published_noun)  # its figures would look like accuracy
    heat = _two_way(plan, table)
    first = next((found for found in sums[1:] if plan.covariance is not None and np.any(found.deviations != 0)), sums[-1])
    return ReportFacts(
        rows,
        levels=_level_spreads(plan, sums) if plan.covariance is not None and len(sums) > 2 and not is_nil_noise else (),
        margins=() if is_nil_noise else _some(margin_spreads(units)),
        relative=() if is_nil_noise else tuple(relative_shares(sums)),
        sizes=None if is_nil_noise else sizes(sums[-1], table.measure.whole),
        ranked=rank_sums(plan, table, first, SHOWN_BARS if heat is None else FEWER_BARS),
        heat=heat,
        areas=areas,
        example=None if is_nil_noise else example_of(plan, table),
        noise=tuple(noise_charts(plan.drawing, SHOWN_LAWS)),
        view=view,
    )


def _level_spreads(plan: Plan, sums: Iterable[LevelSums]) -> tuple[SpreadFacts, ...]:
    return tuple(_spread(plan, found.title, found.deviations) for found in sums)


def _some(spreads: tuple[SpreadFacts, ...]) -> tuple[SpreadFacts, ...]:
    """The first margins, and the cells."""
    return spreads if len(spreads) <= SHOWN_MARGINS else (*spreads[: SHOWN_MARGINS - 1], spreads[-1])


def margin_spreads(units: LevelUnits) -> tuple[SpreadFacts, ...]:
    """Errors of the margins of the whole table; where the budget has shares for levels, of the margins of every level."""
    plan = units.plan
    if plan.covariance is None:
        return ()
    if plan.expected_error.levels:
        rows = (found for found in plan.expected_error.levels if found.margin != "total")
        return tuple(level_spread(found) for found in rows)
    return spreads(units, units.margins) if len(units.margins) > 2 or len(units.levels) <= 2 else ()


def relative_shares(sums: Sequence[LevelSums]) -> list[SharesFacts]:
    """Shares of every level below the whole table, without those whose standard deviations are not all known."""
    found = map(shares, sums[1:] or sums)
    return [shares for shares in found if shares is not None]


def _two_way(plan: Plan, table: PublishedTable) -> GridFacts | None:
    universe = plan.facts.universe
    if len(universe.columns) != 2:
        return None
    rows, columns = (universe.code_count(column) for column in universe.columns)
    fits = 2 <= rows <= MOST_ROWS and 2 <= columns <= MOST_COLUMNS and 2 * len(universe) >= rows * columns
    return grid_of(plan, table, None) if fits else None
