"""The sums of a published table over the units of a level: their names, values and standard deviations. Public facts alone.

A level is the whole table, some of its columns, a level of the budget, or the cells. Columns that do not occur in all combinations (state
and county) are nested: their beginnings are levels. Other columns make margins.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING

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
from holdfast.wording.figures import CELLS, TOTAL

if TYPE_CHECKING:
    from holdfast.publication.publication import PublishedTable

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

MOST_WORK = 20_000_000
"""Cells looked at for the standard deviations of one level, where no closed form gives them all; the other sums are then left out."""
MOST_COLUMNS = 12
"""Columns up to which nested ones are looked for."""
MOST_PAIRS = 6
"""Columns up to which pairs of them are margins."""


@dataclass(frozen=True)
class Level:
    """Which sums. `columns`: whose codes name a unit; `of_tree`: the level of a column's hierarchy that stands for it."""

    name: str
    columns: tuple[str, ...]
    of_tree: str | None = None


@dataclass(frozen=True, eq=False)
class LevelSums:
    """The published sums of a level, in the order of their units; standard deviations that are not known are no numbers (nan)."""

    level: Level
    universe: Universe
    unit_of: Ints
    """The unit of each cell."""
    values: Floats
    deviations: Floats

    @cached_property
    def _some_cell(self) -> Ints:
        cells = np.empty(len(self.values), dtype=np.int64)
        cells[self.unit_of[::-1]] = np.arange(len(self.unit_of))[::-1]
        return cells

    @property
    def title(self) -> str:
        """What the level is called."""
        return level_title(self.universe, self.level)

    def codes(self, unit: int) -> dict[str, str]:
        """The codes of a unit by column; of a level of a tree, the code of the tree."""
        codes = self.some_codes(unit)
        if self.level.of_tree is not None:
            column = self.level.columns[0]
            return {column: _above(self.universe, column, self.level.of_tree)[codes[column]]}
        return {column: codes[column] for column in self.level.columns}

    def some_codes(self, unit: int) -> dict[str, str]:
        """The codes of one of its cells, by column."""
        return self.universe.cell(int(self._some_cell[unit]))

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


def level_title(universe: Universe, level: Level) -> str:
    """What a level is called: by the labels of its columns, unless it has a name of its own."""
    label = universe.labels.column
    if level.of_tree is None and level.name == " x ".join(level.columns):
        return " x ".join(map(label, level.columns))
    return label(level.name) if level.of_tree is None and level.name in level.columns else level.name


def _above(universe: Universe, column: str, level: str) -> dict[str, str]:
    tree = universe.hierarchies[column]
    return {leaf: node for node in tree.level(level) for leaf in tree.leaves(node)}


def levels_of(plan: Plan) -> list[Level]:
    """From the whole table to the cells; nested columns only, and levels of the budget where it has shares for them."""
    universe, layout = plan.facts.universe, plan.drawing.channel.layout
    whole, cells = Level(TOTAL, ()), Level(CELLS, universe.columns)
    if isinstance(layout, LevelLayout):
        inner = [_named_level(universe, name) for name in layout.names[1:]]
    else:
        inner = [Level(axis[place], axis[: place + 1]) for axis in nested_columns(universe) if len(axis) > 1 for place in range(len(axis))]
    return [whole, *(level for level in inner if _units(universe, level) < len(universe)), *([cells] if len(universe) > 1 else [])]


def margins_of(plan: Plan) -> list[Level]:
    """The whole table, columns that are not nested, pairs of them, and the cells."""
    universe = plan.facts.universe
    alone = [axis[0] for axis in nested_columns(universe) if len(axis) == 1 and universe.code_count(axis[0]) > 1]
    chosen = [(column,) for column in alone] + (list(combinations(alone, 2)) if len(alone) <= MOST_PAIRS else [])
    inner = [Level(" x ".join(columns), columns) for columns in chosen]
    inner = [level for level in inner if _units(universe, level) < len(universe)]
    return [Level(TOTAL, ()), *inner, *([Level(CELLS, universe.columns)] if len(universe) > 1 else [])]


def find_level(plan: Plan, name: str | Sequence[str] | None) -> Level:
    """By name: a level or margin of the table, a column, several columns, or "cells". None: the first level that carries noise."""
    universe = plan.facts.universe
    known = {level.name: level for level in (*margins_of(plan), *levels_of(plan))}
    if name is None:
        return _first_noisy(plan)
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


def _first_noisy(plan: Plan) -> Level:
    levels = levels_of(plan)
    for level in levels[1:-1]:
        if plan.covariance is not None and np.any(deviations_of(plan, level) != 0):
            return level
    return levels[-1]


def sums_of(plan: Plan, table: PublishedTable, level: Level) -> LevelSums:
    """Refused where the table has cells that are not published."""
    if not table.published.all():
        raise InvalidParameter("This release leaves counts out: there are no sums of all counts to draw.")
    unit_of = unit_numbers(plan.facts.universe, level)
    totals = np.zeros(int(unit_of.max()) + 1, dtype=np.int64)
    np.add.at(totals, unit_of, table.counts)
    return LevelSums(level, plan.facts.universe, unit_of, table.measure.floats(totals), deviations_of(plan, level))


def names_of(plan: Plan, level: Level) -> LevelSums:
    """The units of a level before there are numbers: all 0."""
    unit_of = unit_numbers(plan.facts.universe, level)
    nothing = np.zeros(int(unit_of.max()) + 1)
    return LevelSums(level, plan.facts.universe, unit_of, nothing, nothing)


def unit_numbers(universe: Universe, level: Level) -> Ints:
    """The unit of each cell."""
    if level.of_tree is None:
        return np.asarray(universe.group(level.columns)[0], dtype=np.int64)
    column = level.columns[0]
    above, codes = _above(universe, column, level.of_tree), universe.codes[column]
    place = {node: number for number, node in enumerate(dict.fromkeys(above[code] for code in codes))}
    return np.array([place[above[code]] for code in codes], dtype=np.int64)[universe.code_indices(column)]


def deviations_of(plan: Plan, level: Level) -> Floats:
    """Standard deviations of the sums of a level to six digits, rough estimates to three, in values; no numbers where none are known."""
    universe = plan.facts.universe
    count = _units(universe, level)
    if plan.covariance is None:
        return np.full(count, np.nan)
    if level.columns == universe.columns and level.of_tree is None and plan.deviations is not None:
        out = np.empty(count)
        out[unit_numbers(universe, level)] = plan.deviations
        return out
    layout, target = plan.drawing.channel.layout, plan.drawing.channel.target
    if isinstance(layout, LevelLayout):
        found = _by_layout(layout, target, universe, level)
        if found is not None:
            return _round_values(found, 6, is_bound=plan.covariance.basis == "upper bound")
    variances = sum_variances(plan.covariance, unit_numbers(universe, level), count)
    return _round_values(np.sqrt(np.maximum(variances, 0.0)) * plan.step, plan.sum_digits, is_bound=plan.covariance.basis == "upper bound")


def _round_values(values: Floats, digits: int, *, is_bound: bool) -> Floats:
    distinct, which = np.unique(values, return_inverse=True)
    return np.array([value if np.isnan(value) else round_figure(value, digits, is_bound=is_bound) for value in distinct.tolist()])[which]


def sum_variances(covariance: Covariance, unit_of: Ints, units: int) -> Floats:
    """The variance of the noise of each unit's sum; no number where finding it would take too long."""
    out = np.zeros(units)
    left = MOST_WORK
    for found in covariance.shapes:
        groups = unit_of[found.cells]
        if (groups == groups[:, :1]).all():
            whole = replace(found, cells=found.cells[:1])
            one = whole.variance_of(_inside(covariance.cells, found.cells[:1].ravel()))
            out += np.bincount(groups[:, 0], minlength=units) * one
        elif _is_plain_sum(found):
            out += _plain_sums(found, groups, units)
        elif (at_levels := _sums_at_levels(found, groups, units)) is not None:
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


def _plain_sums(found: ShapeCovariance, groups: Ints, units: int) -> Floats:
    """k of the n cells under one sum: variance scale (k - k^2 / n)."""
    blocks, size = groups.shape
    keys, counts = np.unique(groups + units * np.arange(blocks)[:, None], return_counts=True)
    spread = found.variance.scale * (counts - counts**2 / size)
    sums: Floats = np.bincount(keys % units, weights=np.where(counts == size, 0.0, spread), minlength=units).astype(np.float64)
    return sums


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


def _by_layout(layout: LevelLayout, target: Target, universe: Universe, level: Level) -> Floats | None:
    """Standard deviations of the units of a level of the budget, in the order of `unit_numbers`; 0 for units without noise."""
    names = [_named_level(universe, name) for name in layout.names[1:]]
    here = 0 if not level.columns else names.index(level) + 1 if level in names else None
    if here is None:
        return None
    spreads = next(found for name, margin, found in layout.deviations(target) if (name, margin) == (layout.names[here], "total"))
    whole = layout.whole
    leaf = np.arange(whole.size) // math.prod(whole.lengths)
    unit = np.zeros(whole.size, dtype=np.int64) if whole.tree is None else whole.tree.unit_of(here)[leaf]
    out = np.zeros(_units(universe, level))
    out[unit_numbers(universe, level)[layout.blocks.order[: whole.size]]] = spreads[unit]
    return out


def _named_level(universe: Universe, name: str) -> Level:
    """A level of the budget as its name is shown."""
    if name in universe.columns:
        return Level(name, (name,))
    home = next((column for column, tree in universe.hierarchies.items() if name in tree.levels), None)
    return Level(name, tuple(name.split(":"))) if home is None else Level(name, (home,), name)


def _units(universe: Universe, level: Level) -> int:
    if level.of_tree is not None:
        return int(unit_numbers(universe, level).max()) + 1
    if level.columns == universe.columns:
        return len(universe)
    return len(universe.group(level.columns)[1])


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
    return len(universe.group((one, other))[1]) == universe.code_count(one) * universe.code_count(other)
