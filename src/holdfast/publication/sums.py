"""The sums of a published table over the units of a level: their names, values and standard deviations. Public facts alone.

A level is the whole table, some of its columns, a level of the budget, or the cells. Columns that do not occur in all combinations (state
and county) are nested: their beginnings are levels. Other columns make margins.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from holdfast.channels.covariance import Covariance, ShapeCovariance
from holdfast.channels.layout import LevelLayout
from holdfast.display import shorten
from holdfast.errors import InvalidParameter
from holdfast.exact.formatting import round_figure
from holdfast.lattices.shapes import Levels
from holdfast.lattices.trees import Tree
from holdfast.laws import Target
from holdfast.publication.plan import Plan
from holdfast.tables import Universe
from holdfast.tables.cells import rank_rows
from holdfast.tables.columns import arrow_numbers, numpy_values
from holdfast.wording.figures import CELLS, TOTAL

if TYPE_CHECKING:
    from holdfast.publication.publication import PublishedTable

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

MOST_WORK = 20_000_000
"""Cells looked at for the standard deviations of one level, where no closed form gives them all; the other sums are then left out."""
MOST_COLUMNS = 12
"""Columns up to which nested ones are looked for."""
MOST_PAIRS = 6
"""Columns up to which pairs of them are margins."""
SPARE = 4
"""Pairs of a block and a unit are counted in an array of all pairs if it has at most so many entries for each cell."""
PIECE = 1 << 20
"""Cells that are looked through at once."""


@dataclass(frozen=True)
class Level:
    """Which sums. `columns`: whose codes name a unit; `of_tree`: the level of a column's hierarchy that stands for it."""

    name: str
    columns: tuple[str, ...]
    of_tree: str | None = None


@dataclass(frozen=True, eq=False)
class CellGroups:
    """Cells in `count` units, each of which has one. `above`: the unit of each cell or, where a finer grouping is known, of each unit of
    that. `codes`: for each unit the index of its code, by column; None for units of a tree.
    """

    count: int
    above: NDArray[np.int32]
    codes: NDArray[np.int32] | None = None
    finer: CellGroups | None = None
    _pairs: dict[int, tuple[Ints, Ints, Ints]] = field(default_factory=dict)

    def unit_of(self, cells: Any = slice(None)) -> NDArray[np.int32]:
        """The unit of each of these cells."""
        return self.above[cells if self.finer is None else self.finer.unit_of(cells)]

    def cells_of(self, unit: int) -> Ints:
        """The cells of a unit, in their order."""
        return np.flatnonzero(self._holds(self.above == unit))

    def _holds(self, chosen: Bools) -> Bools:
        return chosen if self.finer is None else self.finer._holds(chosen[self.finer.above])

    @cached_property
    def first_cells(self) -> Ints:
        """The first cell of each unit."""
        first = np.full(self.count, np.iinfo(np.int64).max)
        np.minimum.at(first, self.above, np.arange(len(self.above)) if self.finer is None else self.finer.first_cells)
        return first

    def totals(self, parts: Ints) -> Ints:
        """The sums of numbers of cells or, where a finer grouping is known, of its units."""
        out = np.zeros(self.count, dtype=np.int64)
        np.add.at(out, self.above, parts)
        return out

    def pairs(self, found: ShapeCovariance) -> tuple[Ints, Ints, Ints]:
        """(block, unit, cells in both) wherever a block of this shape and a unit have cells in common, block by block."""
        if id(found) not in self._pairs:
            blocks = len(found.cells)
            if self.finer is None:
                keys, times = self.above[found.cells] + self.count * np.arange(blocks)[:, None], None
            else:
                block, unit, times = self.finer.pairs(found)
                keys = self.above[unit] + self.count * block
            if self.count * blocks <= SPARE * found.cells.size:
                in_all = np.bincount(keys.ravel(), times, self.count * blocks)  # below 2^53
                distinct = np.flatnonzero(in_all)
                counts = in_all[distinct].astype(np.int64)
            else:
                distinct, which = np.unique(keys.ravel(), return_inverse=True)
                counts = np.bincount(which, times).astype(np.int64)
            self._pairs[id(found)] = distinct // self.count, distinct % self.count, counts
        return self._pairs[id(found)]


def group_cells(universe: Universe, columns: Sequence[str]) -> CellGroups:
    """The groups of `Universe.group`, found piece by piece where few combinations are possible, or most cells are in the group of the cell
    before, so that no array of wide numbers is made.
    """
    given, radices, cells = [universe.code_indices(c) for c in columns], [universe.code_count(c) for c in columns], len(universe)
    found = None
    if cells < 2**31:  # numbers of cells are int32
        found = groups_by_combination(given, radices, cells) if math.prod(radices) <= cells else groups_by_run(given, radices, cells)
    if found is None:
        groups, codes = universe.group(columns)
        return CellGroups(len(codes), groups.astype(np.int32, copy=False), codes)
    above, ranks, codes = found
    for low in range(0, cells, PIECE):
        above[low : low + PIECE] = ranks[above[low : low + PIECE]]
    return CellGroups(len(codes), above, codes)


Found: TypeAlias = "tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]"
"""(a number for each cell, the group of each number, the codes of each group)."""


def groups_by_combination(given: Sequence[NDArray[Any]], radices: Sequence[int], cells: int) -> Found:
    """Groups as the numbers of their combinations of codes, of which there are few."""
    above, occurs = np.empty(cells, dtype=np.int32), np.zeros(math.prod(radices), dtype=np.bool_)
    for low in range(0, cells, PIECE):
        key = np.zeros(min(PIECE, cells - low), dtype=np.int64)
        for indices, radix in zip(given, radices, strict=True):
            key = key * radix + indices[low : low + PIECE]
        above[low : low + PIECE] = key
        occurs[key] = True
    kinds = np.flatnonzero(occurs)
    codes = np.stack(np.unravel_index(kinds, radices), axis=1) if radices else np.zeros((1, 0))
    return above, np.cumsum(occurs, dtype=np.int32) - np.int32(1), codes.astype(np.int32)


def groups_by_run(given: Sequence[NDArray[Any]], radices: Sequence[int], cells: int) -> Found | None:
    """Runs of cells of one group are numbered, then ranked. None where there are many runs."""
    above, starts, runs = np.empty(cells, dtype=np.int32), [], 0
    for low in range(0, cells, PIECE):
        new = np.zeros(min(PIECE, cells - low), dtype=np.bool_)
        new[0] = low == 0
        for indices in given:
            own = indices[max(low - 1, 0) : low + PIECE]
            new[low == 0 :] |= own[1:] != own[:-1]
        above[low : low + PIECE] = np.cumsum(new, dtype=np.int32) + np.int32(runs - 1)
        starts.append(low + np.flatnonzero(new))
        runs += len(starts[-1])
        if runs > (low + len(new)) // 2 + 1:
            return None
    first = np.concatenate(starts)
    own_codes = [indices[first] for indices in given]
    ranks, count = rank_rows(own_codes, radices, runs)
    codes = np.empty((count, len(given)), dtype=np.int32)
    for place, indices in enumerate(own_codes):
        codes[ranks, place] = indices
    return above, ranks.astype(np.int32), codes


@dataclass(frozen=True, eq=False)
class LevelSums:
    """The published sums of a level, in the order of their units; standard deviations that are not known are no numbers (nan)."""

    level: Level
    universe: Universe
    grouping: CellGroups | None
    """None where every cell is a unit."""
    values: Floats
    deviations: Floats

    @cached_property
    def tally(self) -> tuple[Floats, Floats, Ints]:
        """(value, standard deviation, how often) of all that occur together."""
        values, deviations, times = tally(self.values, self.deviations)
        return values, deviations, times

    @property
    def title(self) -> str:
        """What the level is called."""
        return level_title(self.universe, self.level)

    def cells_of(self, unit: int) -> Ints:
        """The cells of a unit."""
        return np.array([unit]) if self.grouping is None else self.grouping.cells_of(unit)

    def codes(self, unit: int) -> dict[str, str]:
        """The codes of a unit by column; of a level of a tree, the code of the tree."""
        codes = self.some_codes(unit)
        if self.level.of_tree is not None:
            column = self.level.columns[0]
            return {column: _above(self.universe, column, self.level.of_tree)[codes[column]]}
        return {column: codes[column] for column in self.level.columns}

    def some_codes(self, unit: int) -> dict[str, str]:
        """The codes of one of its cells, by column."""
        return self.universe.cell(unit if self.grouping is None else int(self.grouping.first_cells[unit]))

    def own_columns(self) -> tuple[str, ...]:
        """The columns that name a unit: those that others determine are left out."""
        columns = self.level.columns
        return columns[-1:] if len(columns) > 1 and self.universe.code_count(columns[-1]) == len(self.values) else columns

    def name(self, unit: int) -> str:
        """The labels of a unit, and its codes where they have none."""
        return ", ".join(self.parts(unit)) or TOTAL

    def parts(self, unit: int) -> tuple[str, ...]:
        """Its name, column by column."""
        codes, labels, columns = self.codes(unit), self.universe.labels, self.own_columns()
        if len(columns) == 1 and len(labels.by(columns[0])) > 1:  # two counties of the same name in two states
            columns = self.level.columns
        return tuple(labels.code(column, codes) or codes[column] for column in columns)


def tally(*columns: NDArray[Any]) -> tuple[NDArray[Any], ...]:
    """Columns of numbers of the rows that differ, in no order, and how often each occurs: by hashing, piece by piece, since few differ."""
    pieces = [_tally([column[low : low + PIECE] for column in columns]) for low in range(0, len(columns[0]), PIECE)]
    *rows, times = map(np.concatenate, zip(*pieces, strict=True))
    return (*rows, times) if len(pieces) == 1 else _tally(rows, times)


def _tally(columns: Sequence[NDArray[Any]], times: Ints | None = None) -> tuple[NDArray[Any], ...]:
    key, kinds = np.zeros(len(columns[0]), dtype=np.int64), []
    for column in columns:
        values, place = _distinct(column)
        kinds.append(values)
        key = key * len(values) + place
    keys, place = _distinct(key)
    rows = []
    for values in reversed(kinds):
        rows.append(values[keys % len(values)])
        keys = keys // len(values)
    return *reversed(rows), np.bincount(place, times, len(keys)).astype(np.int64)  # below 2^53


def _distinct(values: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int32]]:
    """The distinct numbers, and the place of each number among them."""
    found = arrow_numbers(values).dictionary_encode()
    return numpy_values(found.dictionary), numpy_values(found.indices)


def level_title(universe: Universe, level: Level) -> str:
    """What a level is called: by the labels of its columns, unless it has a name of its own."""
    label = universe.labels.column
    if level.of_tree is None and level.name == " x ".join(level.columns):
        return " x ".join(map(label, level.columns))
    return label(level.name) if level.of_tree is None and level.name in level.columns else level.name


def _above(universe: Universe, column: str, level: str) -> dict[str, str]:
    tree = universe.hierarchies[column]
    return {leaf: node for node in tree.level(level) for leaf in tree.leaves(node)}


class LevelUnits:
    """The levels of a plan's table, each found once: of a level whose columns a finer one has, from the units of that."""

    def __init__(self, plan: Plan, table: PublishedTable | None = None) -> None:
        if table is not None and not table.published.all():
            raise InvalidParameter("This release leaves counts out: there are no sums of all counts to draw.")
        self.plan, self.table, self.universe = plan, table, plan.facts.universe
        self._groupings: dict[Level, CellGroups] = {}
        self._totals: dict[Level, Ints] = {}
        self._deviations: dict[Level, Floats] = {}

    @cached_property
    def axes(self) -> list[tuple[str, ...]]:
        """Columns apart, and those that are nested together."""
        return nested_columns(self.universe)

    @cached_property
    def levels(self) -> list[Level]:
        """From the whole table to the cells; nested columns only, and levels of the budget where it has shares for them."""
        layout = self.plan.drawing.channel.layout
        if isinstance(layout, LevelLayout):
            inner = [_named_level(self.universe, name) for name in layout.names[1:]]
        else:
            inner = [Level(axis[place], axis[: place + 1]) for axis in self.axes if len(axis) > 1 for place in range(len(axis))]
        return self._with_ends(inner)

    @cached_property
    def margins(self) -> list[Level]:
        """The whole table, columns that are not nested, pairs of them, and the cells."""
        alone = [axis[0] for axis in self.axes if len(axis) == 1 and self.universe.code_count(axis[0]) > 1]
        chosen = [(column,) for column in alone] + (list(combinations(alone, 2)) if len(alone) <= MOST_PAIRS else [])
        return self._with_ends([Level(" x ".join(columns), columns) for columns in chosen])

    def _with_ends(self, inner: list[Level]) -> list[Level]:
        cells = len(self.universe)
        coarser = {level for level in reversed(inner) if self.count(level) < cells}  # finer ones first
        ends = Level(TOTAL, ()), Level(CELLS, self.universe.columns)
        return [ends[0], *(level for level in inner if level in coarser), *(ends[1:] if cells > 1 else ())]

    def count(self, level: Level) -> int:
        """How many units a level has."""
        grouping = self.grouping(level)
        return len(self.universe) if grouping is None else grouping.count

    def grouping(self, level: Level) -> CellGroups | None:
        """The units of a level; None where every cell is one."""
        if level.of_tree is None and level.columns == self.universe.columns:
            return None
        if level not in self._groupings:
            self._groupings[level] = self._tree_units(level) if level.of_tree is not None else self._column_units(level)
        return self._groupings[level]

    def _column_units(self, level: Level) -> CellGroups:
        finer = self._finer(level)
        if finer is None:
            return group_cells(self.universe, level.columns)
        home, grouping = finer, self._groupings[finer]
        assert grouping.codes is not None
        own = [np.ascontiguousarray(grouping.codes[:, home.columns.index(column)]) for column in level.columns]
        above, count = rank_rows(own, [self.universe.code_count(column) for column in level.columns], grouping.count)
        codes = np.empty((count, len(own)), dtype=np.int32)
        for place, indices in enumerate(own):
            codes[above, place] = indices
        return CellGroups(count, above.astype(np.int32), codes, grouping)

    def _finer(self, level: Level) -> Level | None:
        """The level known with the fewest units that has the columns of this one."""
        known = (other for other in self._groupings if other.of_tree is None and set(level.columns) <= set(other.columns))
        return min(known, key=lambda other: self._groupings[other].count, default=None)

    def _tree_units(self, level: Level) -> CellGroups:
        column, name = level.columns[0], level.of_tree
        assert name is not None
        above, codes = _above(self.universe, column, name), self.universe.codes[column]
        place = {node: number for number, node in enumerate(dict.fromkeys(above[code] for code in codes))}
        number = np.array([place[above[code]] for code in codes], dtype=np.int32)
        return CellGroups(len(place), number[self.universe.code_indices(column)])

    def _total(self, level: Level) -> Ints:
        assert self.table is not None
        grouping = self.grouping(level)
        if grouping is None:
            return self.table.counts
        if level not in self._totals:
            finer = next((other for other, found in self._groupings.items() if found is grouping.finer), None)
            self._totals[level] = grouping.totals(self.table.counts if finer is None else self._total(finer))
        return self._totals[level]

    def sums(self, level: Level) -> LevelSums:
        """The published sums of a level, with their standard deviations."""
        assert self.table is not None
        values = self.table.measure.floats(self._total(level))
        return LevelSums(level, self.universe, self.grouping(level), values, self.deviations(level))

    def names(self, level: Level) -> LevelSums:
        """The units of a level before there are numbers: all 0."""
        nothing = np.zeros(self.count(level))
        return LevelSums(level, self.universe, self.grouping(level), nothing, nothing)

    def deviations(self, level: Level) -> Floats:
        """Standard deviations of the sums of a level in values, to six digits, rough estimates to three; nan where none are known."""
        if level not in self._deviations:
            self._deviations[level] = self._find_deviations(level)
        return self._deviations[level]

    def _find_deviations(self, level: Level) -> Floats:
        plan, grouping = self.plan, self.grouping(level)
        if plan.covariance is None:
            return np.full(self.count(level), np.nan)
        if grouping is None and plan.deviations is not None:
            return plan.deviations
        is_bound = plan.covariance.basis == "upper bound"
        layout, target = plan.drawing.channel.layout, plan.drawing.channel.target
        if isinstance(layout, LevelLayout):
            found = _by_layout(layout, target, self.universe, level, grouping)
            if found is not None:
                return _round_values(found, 6, is_bound=is_bound)
        if grouping is None:
            grouping = CellGroups(len(self.universe), np.arange(len(self.universe), dtype=np.int32))
        variances = sum_variances(plan.covariance, grouping)
        return _round_values(np.sqrt(np.maximum(variances, 0.0)) * plan.step, plan.sum_digits, is_bound=is_bound)


def find_level(units: LevelUnits, name: str | Sequence[str] | None) -> Level:
    """By name: a level or margin of the table, a column, several columns, or "cells". None: the first level that carries noise."""
    universe = units.universe
    known = {level.name: level for level in (*units.margins, *units.levels)}
    if name is None:
        return _first_noisy(units)
    if isinstance(name, str) and name in known:
        return known[name]
    if name == CELLS:  # a table of one cell, which is the whole table too
        return Level(CELLS, universe.columns)
    if not isinstance(name, Sequence) or not all(isinstance(column, str) for column in name):
        raise InvalidParameter(f"A level is a name, or a list of columns. Got {shorten(repr(name))}.", field="level")
    columns = (name,) if isinstance(name, str) else tuple(name)
    wrong = next((column for column in columns if column not in universe.columns), None)
    if wrong is not None or not columns:
        raise InvalidParameter(f"There is no level {wrong!r}. Levels: {', '.join(map(repr, known))}; columns work too.", field="level")
    return Level(" x ".join(columns), columns)


def _first_noisy(units: LevelUnits) -> Level:
    for level in units.levels[1:-1]:
        if units.plan.covariance is not None and np.any(units.deviations(level) != 0):
            return level
    return units.levels[-1]


def _round_values(values: Floats, digits: int, *, is_bound: bool) -> Floats:
    distinct, which = np.unique(values, return_inverse=True)
    return np.array([value if np.isnan(value) else round_figure(value, digits, is_bound=is_bound) for value in distinct.tolist()])[which]


def sum_variances(covariance: Covariance, grouping: CellGroups) -> Floats:
    """The variance of the noise of each unit's sum; no number where finding it would take too long."""
    out = np.zeros(grouping.count)
    left = MOST_WORK
    for found in covariance.shapes:
        if _is_plain_sum(found):
            out += _plain_sums(found, grouping)
            continue
        groups = grouping.unit_of(found.cells).astype(np.int64)
        if (groups == groups[:, :1]).all():
            whole = replace(found, cells=found.cells[:1])
            one = whole.variance_of(_inside(covariance.cells, found.cells[:1].ravel()))
            out += np.bincount(groups[:, 0], minlength=grouping.count) * one
        elif (at_levels := _sums_at_levels(found, groups, grouping.count)) is not None:
            out += at_levels
        else:
            left -= _pattern_by_pattern(found, groups, out, left)
    return out


def _inside(cells: int, chosen: Ints) -> Floats:
    query = np.zeros(cells)
    query[chosen] = 1.0
    return query


def _is_plain_sum(found: ShapeCovariance) -> bool:
    variance = found.variance
    plain = variance.matrix is None and variance.form is None and found.rounding is None
    return plain and found.shape.is_plain_sum


def _plain_sums(found: ShapeCovariance, grouping: CellGroups) -> Floats:
    """k of the n cells under one sum: variance scale (k - k^2 / n)."""
    size = found.cells.shape[1]
    _, units, counts = grouping.pairs(found)
    spread = found.variance.scale * (counts - counts**2 / size)
    return np.bincount(units, weights=np.where(counts == size, 0.0, spread), minlength=grouping.count).astype(np.float64)


def _sums_at_levels(found: ShapeCovariance, groups: Ints, units: int) -> Floats | None:
    """Variances for a product of hierarchies whose units are those of a level along each axis; None if they are not, or for another law."""
    shape, variance = found.shape, found.variance
    other = variance.matrix is not None or variance.form is not None or found.rounding is not None or bool(variance.rounding)
    if not isinstance(shape, Levels) or other:
        return None
    out = np.zeros(units)
    for row in groups:
        table = row.reshape(shape.axes)
        level_vector = tuple(_coarsest(table, axis, tree) for axis, tree in enumerate(shape.trees))
        for axis, (tree, level) in enumerate(zip(shape.trees, level_vector, strict=True)):
            table = np.take(table, tree.firsts(level), axis=axis)
        if len(np.unique(table)) < table.size:
            return None
        np.add.at(out, table.ravel(), variance.scale * shape.projected_sums(level_vector).ravel())
    return out


def _coarsest(table: Ints, axis: int, tree: Tree) -> int:
    """The coarsest level inside whose units nothing changes along the axis."""
    found = (np.take(table, tree.firsts(level)[tree.unit_of(level)], axis=axis) for level in range(tree.depth + 1))
    return next(level for level, constant in enumerate(found) if (constant == table).all())


def _pattern_by_pattern(found: ShapeCovariance, groups: Ints, out: Floats, left: int) -> int:
    """Blocks whose cells fall into units in the same way have the same variances. Adds them to `out`; returns the cells looked at."""
    patterns: dict[bytes, list[int]] = {}
    for block, row in enumerate(groups):
        patterns.setdefault(np.unique(row, return_inverse=True)[1].astype(np.int32).tobytes(), []).append(block)
    work = 0
    for blocks in patterns.values():
        units = np.array([np.unique(groups[block]) for block in blocks])
        alone = replace(found, cells=np.arange(groups.shape[1], dtype=np.int64)[None, :])
        which = np.searchsorted(units[0], groups[blocks[0]])
        for place in range(units.shape[1]):
            if work + groups.shape[1] > left:
                out[units[:, place:].ravel()] = np.nan
                break
            np.add.at(out, units[:, place], alone.variance_of((which == place).astype(np.float64)))
            work += groups.shape[1]
    return work


def _by_layout(layout: LevelLayout, target: Target, universe: Universe, level: Level, grouping: CellGroups | None) -> Floats | None:
    """Standard deviations of the units of a level of the budget; 0 for units without noise."""
    names = [_named_level(universe, name) for name in layout.names[1:]]
    here = 0 if not level.columns else names.index(level) + 1 if level in names else None
    if here is None:
        return None
    spreads = next(found for name, margin, found in layout.deviations(target) if (name, margin) == (layout.names[here], "total"))
    whole = layout.whole
    leaves = layout.blocks.order[: whole.size : math.prod(whole.lengths)]  # a cell of each
    out = np.zeros(len(universe) if grouping is None else grouping.count)
    unit = np.zeros(len(leaves), dtype=np.int64) if whole.tree is None else whole.tree.unit_of(here)
    out[leaves if grouping is None else grouping.unit_of(leaves)] = spreads[unit]
    return out


def _named_level(universe: Universe, name: str) -> Level:
    """A level of the budget as its name is shown."""
    if name in universe.columns:
        return Level(name, (name,))
    home = next((column for column, tree in universe.hierarchies.items() if name in tree.levels), None)
    return Level(name, tuple(name.split(":"))) if home is None else Level(name, (home,), name)


def nested_columns(universe: Universe) -> list[tuple[str, ...]]:
    """Columns apart, where all combinations occur; those of which some do not occur together are one axis, in their order."""
    if universe.is_product or len(universe.columns) > MOST_COLUMNS:
        return [(column,) for column in universe.columns]
    home = {column: column for column in universe.columns}
    for one, other in combinations(universe.columns, 2):
        if home[one] != home[other] and not _all_combinations(universe, one, other):
            old, new = home[other], home[one]
            home = {column: new if found == old else found for column, found in home.items()}
    return list(_by_home(home))


def _by_home(home: dict[str, str]) -> Iterator[tuple[str, ...]]:
    for first in dict.fromkeys(home.values()):
        yield tuple(column for column, found in home.items() if found == first)


def _all_combinations(universe: Universe, one: str, other: str) -> bool:
    first, second = universe.code_indices(one), universe.code_indices(other)
    wide = universe.code_count(other)
    if universe.code_count(one) * wide > len(universe):
        return False
    seen = np.zeros(universe.code_count(one) * wide, dtype=np.bool_)
    for low in range(0, len(universe), PIECE):
        seen[first[low : low + PIECE].astype(np.int64) * wide + second[low : low + PIECE]] = True
        if seen.all():
            return True
    return False
