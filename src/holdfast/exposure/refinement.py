"""A common refinement of several tables of one data set: cells so small that every table cell is a set of them.

Same columns: the union of the cells. Different columns: the natural join, every combination of one cell of each table that agree on shared
columns; for full products it is the full product over all columns. A declared hierarchy links coarse codes to the fine ones under them, as
a further column of the finer table. Where the tables cannot be laid over one another `NotComputed` says why: a guess would hide exposure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from holdfast.exposure.facts import Obstacle, WhyNot
from holdfast.tables.cells import rank_rows
from holdfast.tables.hierarchy import Hierarchy
from holdfast.tables.universe import Universe

Ints = NDArray[np.int64]

MAX_REFINED = 1_000_000
"""Cells of a refinement over the columns of several tables, above which nothing is computed."""


class NotComputed(Exception):
    """There is no common refinement; carries the reason. Never leaves this folder."""

    def __init__(self, why_not: WhyNot) -> None:
        super().__init__(why_not)
        self.why_not = why_not


def _refuse(obstacle: Obstacle, *tables: NamedTable, columns: Sequence[str] = (), cells: int = 0, limit: int = 0) -> NoReturn:
    raise NotComputed(WhyNot(obstacle, tuple(table.name for table in tables), tuple(columns), cells, limit))


@dataclass(frozen=True, eq=False)
class NamedTable:
    """A table's cells; its columns under the names and with the code numbers of the refinement."""

    name: str
    universe: Universe
    name_of: dict[str, str]
    """From the table's columns to the refinement's: they differ where a column holds coarser codes."""
    columns: dict[str, Ints]
    """Per column of the refinement that tells something of this table's cells: the code number of each cell."""


def link_tables(universes: Sequence[tuple[str, Universe]]) -> list[NamedTable]:
    """The tables with the columns that declared hierarchies derive from their own, and with one numbering of codes."""
    tables = [_plain(name, universe) for name, universe in universes]
    derived: list[tuple[NamedTable, str, str, dict[str, str]]] = []
    for fine, coarse in ((f, c) for f in tables for c in tables if f is not c):
        for column, tree in fine.universe.hierarchies.items():
            for other in coarse.universe.columns:
                above = _link(column, tree, other, fine.universe, coarse.universe)
                if above is not None:
                    name = other if other != column else f"{column} ({len(coarse.universe.codes[other])} coarser codes)"
                    coarse.name_of[other] = name
                    derived.append((fine, column, name, above))
    _number_codes(tables, derived)
    return tables


def _plain(name: str, universe: Universe) -> NamedTable:
    return NamedTable(name, universe, {column: column for column in universe.columns}, {})


def _link(column: str, tree: Hierarchy, other: str, fine: Universe, coarse: Universe) -> dict[str, str] | None:
    """For each code of `column` the code of `other` above it, where the tree says that `other` is one of its levels."""
    codes = coarse.codes[other]
    if other == column and set(codes) == set(fine.codes[column]):
        return None
    if other != column and (other in fine.columns or column in coarse.columns or other not in tree.levels):
        return None
    if not all(code in tree for code in codes):
        return None
    above = {leaf: code for code in codes for leaf in tree.leaves(code)}
    covered = sum(len(tree.leaves(code)) for code in codes)
    return above if len(above) == covered == len(tree.leaves()) else None


def _number_codes(tables: Sequence[NamedTable], derived: Sequence[tuple[NamedTable, str, str, dict[str, str]]] = ()) -> None:
    """One number for each code of each refined column, in order of first appearance."""
    numbers: dict[str, dict[str, int]] = {}
    for table in tables:
        universe = table.universe
        for column in universe.columns:
            known = numbers.setdefault(table.name_of[column], {})
            of_code = np.array([known.setdefault(code, len(known)) for code in universe.codes[column]], dtype=np.int64)
            table.columns[table.name_of[column]] = of_code[universe.code_indices(column)]
    for fine, column, name, above in derived:
        universe = fine.universe
        of_code = np.array([numbers[name][above[code]] for code in universe.codes[column]], dtype=np.int64)
        fine.columns[name] = of_code[universe.code_indices(column)]


def refine(tables: Sequence[NamedTable], same_coding: bool) -> tuple[Universe, list[Ints]]:
    """(the refinement, per table the table cell of each refined cell, -1 for none); NotComputed where there is none."""
    if len({frozenset(table.columns) for table in tables}) == 1:
        _check_union(tables, same_coding)
        columns, places = _union(tables)
        if all(bool((place >= 0).all()) for place in places):
            return tables[0].universe, places
        return _as_universe(tables, columns), places
    _check_join(tables)
    columns, places = _join(tables)
    for table, place in zip(tables, places, strict=True):
        if len(np.unique(place)) < len(table.universe):
            _refuse(Obstacle.CELLS_APART, table)
    return _as_universe(tables, columns), places


def _check_union(tables: Sequence[NamedTable], same_coding: bool) -> None:
    for a, b in combinations(tables, 2):
        if a.universe == b.universe:
            continue
        if not (a.universe.is_public and b.universe.is_public) and not _same_cells(a, b, list(a.columns)):
            _refuse(Obstacle.OBSERVED_LISTS, a, b)
        if not same_coding and _may_overlap(a, b):
            _refuse(Obstacle.OTHER_CODES, a, b, columns=[next(c for c in a.columns if _only(a, b, c) and _only(b, a, c))])


def _check_join(tables: Sequence[NamedTable]) -> None:
    """Shared columns must hold the same combinations, and columns of one table only must not be coarser codes of another's."""
    for a, b in combinations(tables, 2):
        for table in (a, b):
            universe = table.universe
            if not universe.is_public and not universe.is_product:
                _refuse(Obstacle.OBSERVED_CELLS, table)
        shared = [column for column in a.columns if column in b.columns]
        if set(a.columns) == set(b.columns) and not _same_cells(a, b, list(a.columns)):
            _refuse(Obstacle.OTHER_CELLS, a, b)
        for column in shared:
            if _only(a, b, column) or _only(b, a, column):
                _refuse(Obstacle.OTHER_CODES, a, b, columns=[column])
        if not _same_cells(a, b, shared):
            _refuse(Obstacle.OTHER_COMBINATIONS, a, b, columns=shared)
        for x, y in ((x, y) for x in a.name_of for y in b.name_of if x not in b.columns and y not in a.columns):
            if _prefixes(a.universe.codes[x], b.universe.codes[y]):
                _refuse(Obstacle.LOOKS_NESTED, a, b, columns=[x, y])


def _prefixes(first: Sequence[str], second: Sequence[str]) -> bool:
    """Whether the codes of one list are made by lengthening those of the other, as county codes are in tract codes."""
    short, long = (first, second) if min(map(len, first)) < min(map(len, second)) else (second, first)
    lengths = {len(code) for code in short}
    if min(lengths) < 2 or max(lengths) >= min(map(len, long)):
        return False
    begun = {code[:length] for code in long for length in lengths}
    known = set(short)
    return known <= begun and all(any(code[:length] in known for length in lengths) for code in long)


def _union(tables: Sequence[NamedTable]) -> tuple[dict[str, Ints], list[Ints]]:
    """All cells of any table, those of the first table first and in its order."""
    names = list(tables[0].columns)
    stacked = {name: np.concatenate([table.columns[name] for table in tables]) for name in names}
    n = len(stacked[names[0]])
    ranks, distinct = _rank(list(stacked.values()), n)
    first = np.full(distinct, n, dtype=np.int64)
    np.minimum.at(first, ranks, np.arange(n))
    number = np.empty(distinct, dtype=np.int64)
    number[np.argsort(first)] = np.arange(distinct)
    places, begin = [], 0
    for table in tables:
        cells = len(table.universe)
        place = np.full(distinct, -1, dtype=np.int64)
        place[number[ranks[begin : begin + cells]]] = np.arange(cells)
        places.append(place)
        begin += cells
    first.sort()
    return {name: given[first] for name, given in stacked.items()}, places


def _join(tables: Sequence[NamedTable]) -> tuple[dict[str, Ints], list[Ints]]:
    """The natural join: every combination of one cell of each table that agree on shared columns. For full products the full product."""
    columns = dict(tables[0].columns)
    places: dict[int, Ints] = {0: np.arange(len(tables[0].universe))}
    while len(places) < len(tables):
        # the table with most columns in common first: fewer combinations on the way
        chosen = max((i for i in range(len(tables)) if i not in places), key=lambda i: len(columns.keys() & tables[i].columns.keys()))
        other = tables[chosen]
        shared = [name for name in columns if name in other.columns]
        here, there = len(places[0]), len(other.universe)
        keys, count = _rank([np.concatenate([columns[name], other.columns[name]]) for name in shared], here + there)
        mine, theirs = keys[:here], keys[here:]
        per_key = np.bincount(theirs, minlength=count)
        size = sum(per_key[mine].tolist())
        if size > MAX_REFINED:
            _refuse(Obstacle.TOO_LARGE, cells=size, limit=MAX_REFINED)
        old = np.repeat(np.arange(here), per_key[mine])
        within = np.arange(size) - np.repeat(np.cumsum(per_key[mine]) - per_key[mine], per_key[mine])
        starts = np.cumsum(per_key) - per_key
        new = np.argsort(theirs, kind="stable")[starts[mine[old]] + within]
        columns = {name: given[old] for name, given in columns.items()} | {
            name: given[new] for name, given in other.columns.items() if name not in columns
        }
        places = {i: place[old] for i, place in places.items()} | {chosen: new}
    return columns, [places[i] for i in range(len(tables))]


def _as_universe(tables: Sequence[NamedTable], columns: dict[str, Ints]) -> Universe:
    import pyarrow as pa

    codes: dict[str, dict[str, None]] = {name: {} for name in columns}
    for table in tables:
        for own, name in table.name_of.items():
            codes[name] |= dict.fromkeys(table.universe.codes[own])
    arrays = tuple(pa.array(list(codes[name]), pa.string()) for name in columns)
    indices = tuple(given.astype(np.int32) for given in columns.values())
    return Universe.from_indices(tuple(columns), arrays, indices, "declared", "the common refinement")


def _rank(columns: Sequence[Ints], n: int) -> tuple[Ints, int]:
    """As `rank_rows`; no columns: all rows are alike."""
    return rank_rows([given.astype(np.int32) for given in columns], [int(given.max()) + 1 for given in columns], n)


def _same_cells(a: NamedTable, b: NamedTable, names: Sequence[str]) -> bool:
    """Whether both tables hold the same combinations of these columns."""
    cut = len(a.universe)
    ranks, count = _rank([np.concatenate([a.columns[name], b.columns[name]]) for name in names], cut + len(b.universe))
    return bool((np.bincount(ranks[:cut], minlength=count) > 0).all() and (np.bincount(ranks[cut:], minlength=count) > 0).all())


def _only(a: NamedTable, b: NamedTable, name: str) -> set[str]:
    """Codes that a lists and b does not; none for a derived column, which has its codes from another table."""
    lists = [next((set(t.universe.codes[own]) for own, to in t.name_of.items() if to == name), None) for t in (a, b)]
    return set() if lists[0] is None or lists[1] is None else lists[0] - lists[1]


def _may_overlap(a: NamedTable, b: NamedTable) -> bool:
    """Whether two different cells might hold the same record: they agree where both codes are known to one table, and differ only in codes
    that each table lists alone.
    """
    merged: list[Ints] = []
    open_cells = np.zeros(len(a.universe) + len(b.universe), dtype=np.bool_)
    for name in a.name_of.values():
        first, second = _only(a, b, name), _only(b, a, name)
        merged.append(np.concatenate([_hidden(a, name, first), _hidden(b, name, second)]))
        if first and second:
            open_cells |= merged[-1] == 0
    ranks, _ = _rank(merged, len(open_cells))
    cut = len(a.universe)
    return bool(np.isin(ranks[:cut][open_cells[:cut]], ranks[cut:][open_cells[cut:]]).any())


def _hidden(table: NamedTable, name: str, alone: set[str]) -> Ints:
    """Code numbers from 1, with 0 for the codes that this table lists alone."""
    column = next(own for own, to in table.name_of.items() if to == name)
    mask = np.array([code in alone for code in table.universe.codes[column]], dtype=np.bool_)
    return np.where(mask[table.universe.code_indices(column)], 0, table.columns[name] + 1)
