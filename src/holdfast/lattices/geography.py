"""A table as units times axes: a chain of nested levels on one side, all combinations of the other columns on the other.

A level is named by a level of a column's hierarchy, by a column, by a tuple of columns whose codes together name its units, or by "total"
for the whole table. What weights by level need is here: the tree of units, where each cell stands, which margins are kept at which level.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, product
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from holdfast.display import nearest
from holdfast.errors import InvalidConstraint, InvalidParameter, NothingLeft
from holdfast.invariants.rows import Kept, RowFamily
from holdfast.lattices.trees import Tree
from holdfast.tables.columns import BATCH, Indices, index_type
from holdfast.tables.universe import Universe

Ints = NDArray[np.int64]
LevelName: TypeAlias = str | tuple[str, ...]

TOTAL = "total"
"""The level that is the whole table, and the margin that is one number a unit."""
DETAILED = "detailed"
"""The margin by all other columns."""


@dataclass(frozen=True, eq=False)
class Geography:
    """Units times axes.

    names:    of the levels, coarse to fine; the first is "total", whether named or not.
    tree:     the units; None where "total" is the only level.
    columns:  for each column beside the units, what margins may be by: (its levels and itself, coarse to fine, each with its
              axes as a mask).
    lengths:  of the axes. A column is one axis, or one for each level of its hierarchy where all units of a level have equally many parts.
    cells:    the number of each cell, one row a unit of the finest level, in the order of the tree; columns in C order of the axes.
    """

    names: tuple[LevelName, ...]
    tree: Tree | None
    columns: tuple[tuple[tuple[str, int], ...], ...]
    lengths: tuple[int, ...]
    cells: Ints

    @property
    def depth(self) -> int:
        return len(self.names) - 1

    @property
    def full(self) -> int:
        """The mask of all axes."""
        return (1 << len(self.lengths)) - 1

    @property
    def margins(self) -> dict[str, int]:
        """What margins may be by, with their masks."""
        return {name: mask for column in self.columns for name, mask in column}

    def units(self, level: int) -> int:
        return 1 if self.tree is None else self.tree.units(level)

    def level(self, name: LevelName) -> int:
        """Where it stands. Levels with the same units are one: the finest of them stands for all."""
        return bisect_right(range(self.depth + 1), self.units(self.names.index(name)), key=self.units) - 1

    def margin_names(self) -> dict[int, str]:
        """The margins that can be named, by mask, small ones first: each column, one of its levels, or not at all."""
        out = {}
        for chosen in product(*(((None, 0), *column) for column in self.columns)):
            mask = sum(mask for _, mask in chosen)
            out[mask] = " x ".join(name for name, _ in chosen if name is not None) or TOTAL
        return dict(sorted(out.items(), key=lambda item: (item[0].bit_count(), item[0])))

    def without(self, zero: NDArray[np.bool_]) -> tuple[Geography, Ints, tuple[int, ...]]:
        """(the same without units of the finest level, and without codes of columns, all of whose cells are zero; the cells taken out;
        the axes that are left, by their places here: `narrow_mask` gives the masks).

        The axes of a column with levels, which must divide evenly, stay whole. A column of one code is no axis any more. One unit or more
        is left: NothingLeft where all are zero.
        """
        table = zero[self.cells].reshape(len(self.cells), *self.lengths)
        units: NDArray[np.bool_] = np.asarray((~table.reshape(len(table), -1)).any(axis=1))
        if not units.any():
            raise NothingLeft("Every unit is zero, so that nothing is left to protect.")
        table, cells = table[units], self.cells.reshape(table.shape)[units]
        for axis in (column[0][1].bit_length() - 1 for column in self.columns if len(column) == 1):
            others = tuple(k for k in range(table.ndim) if k != axis + 1)
            codes = np.flatnonzero(~table.all(axis=others))
            table, cells = np.take(table, codes, axis=axis + 1), np.take(cells, codes, axis=axis + 1)
        tree = None if self.tree is None else self.tree.prune(units)
        axes = tuple(place for place, length in enumerate(cells.shape[1:]) if length > 1)
        lengths = tuple(cells.shape[place + 1] for place in axes)
        narrow = [tuple((name, narrow_mask(mask, axes)) for name, mask in column) for column in self.columns]
        columns = tuple(column for column in narrow if column[-1][1])
        made = replace(self, tree=tree, columns=columns, lengths=lengths, cells=cells.reshape(len(cells), -1))
        return made, np.setdiff1d(self.cells, cells), axes

    def sizes(self, mask: int) -> int:
        """How many numbers a unit has in this margin."""
        return math.prod(length for place, length in enumerate(self.lengths) if mask >> place & 1)


def narrow_mask(mask: int, axes: Sequence[int]) -> int:
    """The mask of a margin once only these axes are left: a margin by a column of one code is the margin without it."""
    return sum(1 << place for place, axis in enumerate(axes) if mask >> axis & 1)


def geography(universe: Universe, names: Sequence[LevelName]) -> Geography:
    """The table as units of these levels times its other columns.

    Guarantees:  every level is nested in the coarser ones, and every unit of the finest has the same cells; InvalidParameter
                 tells what is not.
    """
    taken = next((column for column in universe.columns if column in (TOTAL, DETAILED)), None)
    if taken is not None:
        raise InvalidParameter(
            f"levels: a column is called {taken!r}, which has another meaning among levels and margins. Rename the column."
        )
    levels = [_partition(universe, name) for name in dict.fromkeys(names) if name != TOTAL]
    levels.sort(key=lambda found: (int(found[1].max()), _place(universe, found[0], found[2])))  # the order of naming says nothing
    for (_, coarse, above), (_, fine, below) in pairwise(levels):
        _check_nested(coarse, fine, above, below)
    own = {column for columns, _, _ in levels for column in columns}
    leaf = levels[-1][1] if levels else np.zeros(len(universe), dtype=np.int8)
    first = np.empty(int(leaf.max()) + 1, dtype=np.int64)
    for low in reversed(range(0, len(universe), BATCH)):
        piece = leaf[low : low + BATCH]
        first[piece[::-1]] = np.arange(low, low + len(piece))[::-1]
    columns, lengths, places = [], list[int](), {}
    for column in universe.columns:
        if column in own or universe.code_count(column) == 1 or _by_unit(universe.code_indices(column), leaf) is not None:
            continue
        parts, places[column] = _axes(universe, column)
        begin = len(lengths)
        lengths += [length for _, length in parts]
        columns.append(tuple((name, ((1 << (place + 1)) - 1) << begin) for place, (name, _) in enumerate(parts)))
    tree, order = (None, np.zeros(1, dtype=np.int64)) if not levels else Tree.of_partitions([p[first] for _, p, _ in levels])
    cells = _arrange(universe, places, leaf, order, levels[-1][2] if levels else TOTAL)
    return Geography((TOTAL, *(name for _, _, name in levels)), tree, tuple(columns), tuple(lengths), cells)


def finer_columns(universe: Universe, names: Sequence[LevelName]) -> list[str]:
    """The columns each of whose codes lies in one unit of the finest of these levels, which has more codes than units: levels below it."""
    partitions = [_partition(universe, name)[1] for name in names if name != TOTAL]
    finest = max(partitions, key=lambda found: int(found.max()), default=np.zeros(1, dtype=np.int8))
    units = int(finest.max()) + 1
    if units == 1:  # every column is finer than the whole table
        return []
    out = []
    for column in universe.columns:
        codes = universe.code_indices(column)
        if np.count_nonzero(np.bincount(codes)) > units and _by_unit(finest, codes) is not None:
            out.append(column)
    return out


def _axes(universe: Universe, column: str) -> tuple[list[tuple[str, int]], Ints]:
    """(the axes of a column, each a name and a length, coarse to fine; for each code its place in their order).

    The column alone, unless it has a hierarchy all of whose levels divide evenly.
    """
    count = universe.code_count(column)
    hierarchy = universe.hierarchies.get(column)
    plain = [(column, count)], np.arange(count, dtype=np.int64)
    if hierarchy is None:
        return plain
    partitions = []
    for name in hierarchy.levels:
        unit_of = {leaf: number for number, node in enumerate(hierarchy.level(name)) for leaf in hierarchy.leaves(node)}
        if len(unit_of) < count:
            return plain
        partitions.append((name, np.array([unit_of[code] for code in universe.codes[column]], dtype=np.int64)))
    inner = [(name, found) for name, found in partitions if len(np.unique(found)) < count]
    tree, order = Tree.of_partitions([*(found for _, found in inner), np.arange(count, dtype=np.int64)])
    if any(min(counts) != max(counts) for counts in tree.children):
        return plain
    lengths = [counts[0] for counts in tree.children]
    names = [*(_margin_name(universe, column, name) for name, _ in inner), column]
    place = np.empty(count, dtype=np.int64)
    place[order] = np.arange(count)
    return [(name, length) for name, length in zip(names, lengths, strict=True) if length > 1], place


def _margin_name(universe: Universe, column: str, level: str) -> str:
    """What a level beside the units is called: its name, or "group of age" where the name has another meaning too."""
    others = [tree for other, tree in universe.hierarchies.items() if other != column]
    taken = level in (TOTAL, DETAILED, *universe.columns) or any(level in tree.levels for tree in others)
    return f"{level} of {column}" if taken else level


def _partition(universe: Universe, name: LevelName) -> tuple[tuple[str, ...], Indices, LevelName]:
    """(the columns a level is made of, the unit of each cell, its name)."""
    if isinstance(name, tuple):
        for column in name:
            if column not in universe.codes:
                near, columns = nearest(column, universe.columns, "{!r}"), ", ".join(map(repr, universe.columns))
                raise InvalidParameter(f"levels: there is no column {column!r}. {near}Columns: {columns}.")
        return name, _units(universe, name), name
    if name in universe.codes:
        return (name,), _units(universe, [name]), name
    homes = [column for column, hierarchy in universe.hierarchies.items() if name in hierarchy.levels]
    if len(homes) > 1:
        raise InvalidParameter(f"levels: {name!r} is a level of the hierarchies of {' and '.join(homes)}. Give the levels different names.")
    for column, hierarchy in universe.hierarchies.items():
        if name in hierarchy.levels:
            place = {code: number for number, code in enumerate(hierarchy.level(name))}
            of_leaf = {leaf: number for node, number in place.items() for leaf in hierarchy.leaves(node)}
            missing = next((code for code in universe.codes[column] if code not in of_leaf), hierarchy.leaf_above(name))
            if missing is not None:
                raise InvalidParameter(
                    f"levels: code {missing!r} of {column!r} has no parent at level {name!r}. Every code must lie under a unit of a "
                    "level that has a share; give it one in the hierarchy, if need be one of its own with another name."
                )
            unit = np.array([of_leaf[code] for code in universe.codes[column]], dtype=np.int64)
            found = unit[universe.code_indices(column)]
            return (column,), np.unique(found, return_inverse=True)[1].astype(np.int64), name
    known = dict.fromkeys([*universe.columns, *(level for tree in universe.hierarchies.values() for level in tree.levels), TOTAL])
    near = nearest(name, known, "{!r}")
    raise InvalidParameter(
        f"levels: there is no level {name!r}. {near}Known: {', '.join(map(repr, known))}; several columns are a tuple, "
        "with --target a:b/=5."
    )


def _units(universe: Universe, columns: Sequence[str]) -> Indices:
    group, codes = universe.group(columns)
    return group.astype(index_type(len(codes)))


def _place(universe: Universe, columns: tuple[str, ...], name: LevelName) -> tuple[int, int, tuple[str, ...], bool]:
    """For levels with equally many units: by column, then by depth in its hierarchy, the column itself last."""
    tree = universe.hierarchies.get(columns[0])
    depth = tree.levels.index(name) if tree is not None and name in tree.levels and name not in universe.codes else len(universe)
    return max(map(universe.columns.index, columns)), depth, columns, isinstance(name, tuple)


def _by_unit(values: Indices, unit: Indices) -> Indices | None:
    """The value that all cells of a unit have, unit by unit; None where some unit has two."""
    found = np.zeros(int(unit.max()) + 1, dtype=values.dtype)
    pieces = [slice(low, low + BATCH) for low in range(0, len(unit), BATCH)]
    for piece in pieces:
        found[unit[piece]] = values[piece]
    return found if all(np.array_equal(found[unit[piece]], values[piece]) for piece in pieces) else None


def _check_nested(coarse: Indices, fine: Indices, above: LevelName, below: LevelName) -> None:
    if _by_unit(coarse, fine) is None:
        raise InvalidParameter(
            f"levels: {below!r} is not nested in {above!r}: a unit of {below!r} lies in two units of {above!r}. Levels with "
            "shares are nested. If codes repeat from one unit to the next, name the level by a tuple of columns: ('state', 'county')."
        )


def _repeats(universe: Universe, finest: LevelName) -> str:
    """What to do where codes of the finest level repeat under those of another column, as county 001 in many states; else nothing."""
    if not isinstance(finest, str) or finest not in universe.columns:
        return ""
    for column in universe.columns[: universe.columns.index(finest)]:
        if len(universe.group((column, finest))[1]) < universe.code_count(column) * universe.code_count(finest):
            both = f"({column!r}, {finest!r}), on the command line '{column} x {finest}'"
            return f"Codes of {finest!r} repeat under those of {column!r}: name the level by both columns, {both}."
    return ""


def _arrange(universe: Universe, places: dict[str, Ints], leaf: Indices, order: Ints, finest: LevelName) -> Ints:
    """Cell numbers, units in the order of the tree."""
    size = math.prod(map(len, places.values()))
    if size * len(order) != len(universe):
        advice = _repeats(universe, finest) or "Declare all combinations (zeros included), or leave levels out."
        raise InvalidParameter(
            f"levels: every unit of {finest!r} must have the same {size} cells by {', '.join(map(repr, places)) or 'no other column'}; "
            f"{len(order)} units have {len(universe)} cells. {advice}"
        )
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    cells = np.empty(len(universe), dtype=np.int64)
    columns = [(own, universe.code_indices(column)) for column, own in places.items()]
    for low in range(0, len(cells), BATCH):
        where = place[leaf[low : low + BATCH]]
        for own, codes in columns:
            where = where * len(own) + own[codes[low : low + BATCH]]
        cells[where] = np.arange(low, low + len(where))
    return cells.reshape(len(order), size)


def kept_margins(kept: Kept, found: Geography) -> tuple[frozenset[int], ...]:
    """For each level from "total" to the finest the masks of the margins kept there, closed under subsets and under going up.

    InvalidConstraint where a kept total is no margin of units of a level.
    """
    families: list[set[int]] = [set() for _ in found.names]
    for rows in kept.rows:
        match = _match_margin(rows, found) if isinstance(rows, RowFamily) else None
        if match is None:
            raise InvalidConstraint(
                f"{rows.constraint} is no margin at one of the levels {', '.join(map(repr, found.names))}, and weights by level "
                "are drawn exactly for such totals only. Keep a margin of all units of a level, or leave levels out."
            )
        level, mask = match
        families[level] |= {sub for sub in range(mask + 1) if sub & mask == sub}
    for level in range(found.depth - 1, -1, -1):
        families[level] |= families[level + 1]
    return tuple(map(frozenset, families))


def _match_margin(rows: RowFamily, found: Geography) -> tuple[int, int] | None:
    """(level, mask) of rows that are all the numbers of one margin of all units of one level."""
    if (rows.group < 0).any() or not np.bincount(rows.group, minlength=rows.count).all():
        return None
    lengths = found.lengths
    group = rows.group[found.cells].reshape(len(found.cells), *lengths)
    mask = sum(1 << k for k in range(len(lengths)) if bool((np.diff(group, axis=k + 1) != 0).any()))
    reduced = group[(slice(None), *(slice(None) if mask >> k & 1 else slice(0, 1) for k in range(len(lengths))))]
    if not np.array_equal(np.broadcast_to(reduced, group.shape), group):
        return None
    for level in range(found.depth, -1, -1):  # of levels with the same units the finest, whose totals are those of all
        if found.units(level) * found.sizes(mask) != rows.count:
            continue
        units = np.zeros(len(found.cells), dtype=np.int64) if found.tree is None else found.tree.unit_of(level)
        heads = np.searchsorted(units, np.arange(found.units(level)))
        every = bool(np.bincount(reduced[heads].ravel(), minlength=rows.count).all())  # so each number of the margin is one row
        if every and np.array_equal(reduced[heads][units], reduced):
            return level, mask
    return None
