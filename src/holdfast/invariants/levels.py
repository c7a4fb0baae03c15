"""Levels of hierarchies by name: what margin("state") means if state is not a column but a level of the hierarchy of county."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from holdfast.display import named_codes, nearest, shorten
from holdfast.errors import InvalidConstraint
from holdfast.invariants.constraints import Grouping
from holdfast.tables.hierarchy import Hierarchy
from holdfast.tables.universe import Universe

Ints = NDArray[np.int64]


def groupings(universe: Universe, names: Sequence[str], what: str, given: Sequence[Grouping] = ()) -> tuple[Grouping, ...]:
    """The levels among these names, in full; names of columns are left out, columns go before levels of the same name.

    Given:       `given`: what names mean where no hierarchy says so.
    Guarantees:  every code of the column is in exactly one unit. InvalidConstraint names what is no column and no level.
    """
    known = {grouping.level: grouping for grouping in given}
    return tuple(
        _check_grouping(universe, known.get(name) or _find_level(universe, name, what), what)
        for name in names
        if name not in universe.codes
    )


def _find_level(universe: Universe, name: str, what: str) -> Grouping:
    homes = [column for column, tree in universe.hierarchies.items() if name in named_levels(tree)]
    if len(homes) > 1:
        raise InvalidConstraint(
            f"{what}: {name!r} is a level of the hierarchies of {' and '.join(homes)}. Give the levels different names."
        )
    if not homes:
        raise no_column(universe, name, what)
    tree = universe.hierarchies[homes[0]]
    leaf = tree.leaf_above(name)
    if leaf is not None:
        raise InvalidConstraint(
            f"{what}: code {shorten(leaf)!r} of {homes[0]!r} has no unit at level {name!r}: the hierarchy is uneven there, and the code's "
            "own total would be kept. Give it a unit, if need be one of its own with another name."
        )
    return Grouping(name, homes[0], tuple((node, tree.leaves(node)) for node in tree.level(name)))


def no_column(universe: Universe, name: str, what: str) -> InvalidConstraint:
    """The refusal of a name that is neither a column nor a level; it names the nearest of both."""
    levels = [level for tree in universe.hierarchies.values() for level in named_levels(tree)]
    also = f" Levels of its hierarchies: {', '.join(levels)}." if levels else ""
    near = nearest(name, [*universe.columns, *levels], "{!r}")
    return InvalidConstraint(f"{what}: there is no column {name!r}. {near}The table has {', '.join(universe.columns)}.{also}")


def named_levels(tree: Hierarchy) -> tuple[str, ...]:
    """The names given to levels; none where they are only numbered."""
    return () if tree.levels == tuple(map(str, range(len(tree.levels)))) else tree.levels


def _check_grouping(universe: Universe, grouping: Grouping, what: str) -> Grouping:
    if grouping.column not in universe.codes:
        raise no_column(universe, grouping.column, what)
    codes = [code for _, under in grouping.units for code in under]
    found = set(codes)
    left_out = [code for code in universe.codes[grouping.column] if code not in found]
    if left_out:
        raise InvalidConstraint(
            f"{what}: level {grouping.level!r} leaves out codes of {grouping.column!r}, such as {shorten(left_out[0])!r}: the hierarchy is "
            "uneven there. Give every code a unit at this level."
        )
    if len(codes) > len(found) or len(codes) > universe.code_count(grouping.column):
        raise InvalidConstraint(f"{what}: level {grouping.level!r} names a code twice, or one that {grouping.column!r} does not have.")
    return grouping


def unit_of(universe: Universe, grouping: Grouping) -> Ints:
    """The unit of each cell."""
    home = {code: number for number, (_, codes) in enumerate(grouping.units) for code in codes}
    of_code = np.array([home[code] for code in universe.codes[grouping.column]], dtype=np.int64)
    return of_code[universe.code_indices(grouping.column)]


def combine(universe: Universe, found: Sequence[Grouping]) -> tuple[Ints, tuple[str, ...]]:
    """(a number for each cell, equal where the cells are in the same units; the name of each number), all numbers in use."""
    number = np.zeros(len(universe), dtype=np.int64)
    names: list[list[tuple[str, str]]] = [[]]
    for grouping in found:
        joined = number * len(grouping.units) + unit_of(universe, grouping)
        present, number = np.unique(joined, return_inverse=True)
        units = [name for name, _ in grouping.units]
        names = [[*names[k // len(units)], (grouping.level, units[k % len(units)])] for k in present.tolist()]
    return number.astype(np.int64), tuple(map(named_codes, names))
