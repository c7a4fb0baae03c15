"""The cells of a source of counts: as its rows list them, or those of a declared universe.

Total rows that were declared are compared with the sums of the cells, where counts are read, and left out: the table is that without them.

Rows that nobody declared public may be those with a positive count, sorted by size. Then the list itself tells of the data: it is taken in
the order of its codes, and the promise is for tables with the same cells.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from holdfast.display import named_codes
from holdfast.errors import InvalidCount, InvalidParameter, OutsideUniverse, UnknownColumn
from holdfast.tables.cells import Indices, find_rows
from holdfast.tables.columns import CountColumn, arrow_numbers, numpy_values
from holdfast.tables.counting import match_codes
from holdfast.tables.hierarchy import Hierarchy
from holdfast.tables.readers import Source, find_columns, read_table
from holdfast.tables.totals import Allow, check_codes
from holdfast.tables.universe import Universe, check_counts_fit, ranks_of_cells

Ints: TypeAlias = NDArray[np.int64]
Numbers: TypeAlias = Sequence[tuple[str, type[CountColumn]]]
Totals: TypeAlias = Mapping[str, str | Sequence[str]]
"""Codes of total rows, by column."""
NO_TOTALS: Totals = {}


def read_listed(
    source: Source,
    columns: tuple[str, ...],
    numbers: Numbers,
    hierarchies: Mapping[str, Hierarchy] | None,
    *,
    public: bool,
    allow: Allow,
    totals: Totals = NO_TOTALS,
    unread: Sequence[str] = (),
) -> tuple[Universe, list[Ints]]:
    """The universe that a source lists, one row for each cell, and its columns of numbers. Those in `unread` must exist.

    Guarantees:  in the order of the rows where the list is public; else codes and cells are in the order of their texts, so that their
                 order tells nothing.
    """
    if unread:
        find_columns(source, [*columns, *unread])
    (codes, indices, values), rows = _split(source, columns, numbers, totals)
    for column, array in zip(columns, codes, strict=True):
        check_codes(column, array, allow)
    if public or not len(indices[0]):
        universe = Universe.from_indices(columns, codes, indices, "declared", source.label, hierarchies)
        if not unread:
            _check_totals(source, universe, rows, values)
        return universe, values
    sorted_codes, renumbered = zip(*(_in_order(*pair) for pair in zip(codes, indices, strict=True)), strict=True)
    ranks = ranks_of_cells(renumbered, [len(array) for array in codes], source.label)
    order = np.empty_like(ranks)
    order[ranks] = np.arange(len(ranks))
    universe = Universe.from_indices(
        columns, sorted_codes, tuple(given[order] for given in renumbered), "as listed", source.label, hierarchies
    )
    moved = bool((ranks[1:] < ranks[:-1]).any())
    values = [given[order] for given in values]
    if not unread:
        _check_totals(source, universe, rows, values)
    return universe.with_moved_rows() if moved else universe, values


def read_declared(source: Source, universe: Universe, numbers: Numbers, totals: Totals = NO_TOTALS, *, counts: bool = True) -> list[Ints]:
    """The columns of numbers of a source, one for each cell of a declared universe; 0 for cells that have no row.

    Given:  `counts`: whether the first column is that of counts, with which total rows are compared.
    """
    (codes, indices, values), rows = _split(source, universe.columns, numbers, totals)
    ranks_of_cells(indices, [len(array) for array in codes], source.label)  # no cell twice
    known = [match_codes(array, universe.code_array(column)) for column, array in zip(universe.columns, codes, strict=True)]
    if strange := [column for column, places in zip(universe.columns, known, strict=True) if np.any(places < 0)]:
        raise OutsideUniverse(
            f"Rows of {source.label} have codes that were not declared, in {', '.join(map(repr, strange))}. Declare these codes, "
            "or recode the rows; codes must match exactly, blanks and zeros included."
        )
    cells = universe.find([places[given] for places, given in zip(known, indices, strict=True)])
    if np.any(cells < 0):
        raise OutsideUniverse(
            f"Rows of {source.label} lie outside the universe: each code is declared, but the combination of "
            f"{', '.join(map(repr, universe.columns))} is not listed. List these cells, or recode the rows."
        )
    check_counts_fit(universe, len(values))
    spread = [np.zeros(len(universe), dtype=np.int64) for _ in values]
    for out, given in zip(spread, values, strict=True):
        out[cells] = given
    if counts:
        _check_totals(source, universe, rows, spread)
    return spread


def read_totals(totals: Totals | None, columns: tuple[str, ...], universe: Universe | None) -> dict[str, tuple[str, ...]]:
    """The codes of total rows by column; refuses columns that are not there, and codes that are cells of a declared universe."""
    if totals is None:
        return {}
    made = {column: (codes,) if isinstance(codes, str) else tuple(codes) for column, codes in totals.items()}
    for column, codes in made.items():
        if column not in columns:
            raise UnknownColumn(f"totals names {column!r}, which is no column of cells. Columns: {', '.join(map(repr, columns))}.")
        if not codes or not all(isinstance(code, str) for code in codes):
            raise InvalidParameter(f"totals has codes, which are texts. Write totals={{{column!r}: '_T'}}.", field="totals")
        if universe is not None and (found := [code for code in codes if code in universe.codes.places(column)]):
            raise InvalidParameter(f"The code {found[0]!r} of column {column!r} is both a total and a cell. Leave it out of the universe.")
    return made


class _TotalRows(NamedTuple):
    """Rows that add up cells: per column its codes, each row's index among them, and which codes are totals; and the numbers."""

    codes: tuple[Any, ...]
    indices: tuple[Indices, ...]
    is_total: tuple[NDArray[np.bool_], ...]
    values: list[Ints]


def _split(
    source: Source, columns: tuple[str, ...], numbers: Numbers, totals: Totals
) -> tuple[tuple[tuple[Any, ...], tuple[Indices, ...], list[Ints]], _TotalRows | None]:
    """The rows of cells, as a source without total rows would have them, and the total rows."""
    import pyarrow as pa
    import pyarrow.compute as pc

    (codes, indices), values = read_table(source, columns, numbers)
    if not totals:
        return (codes, indices, values), None
    marks = []
    for column, array in zip(columns, codes, strict=True):
        known = pa.array(totals.get(column, ()), pa.string())
        if (absent := known.filter(pc.invert(pc.is_in(known, value_set=array)))) and len(indices[0]):
            raise InvalidParameter(
                f"totals names the code {absent[0].as_py()!r} of column {column!r}, which {source.label} does not have. Codes must match "
                "exactly. Correct it, or leave it out.",
                field="totals",
            )
        marks.append(numpy_values(pc.is_in(array, value_set=known)))
    out = np.any([mark[given] for mark, given in zip(marks, indices, strict=True)], axis=0)
    rows = _TotalRows(codes, tuple(given[out] for given in indices), tuple(marks), [given[out] for given in values])
    left = [_only_used(array, given[~out]) for array, given in zip(codes, indices, strict=True)]
    cells = tuple(array for array, _ in left), tuple(given for _, given in left), [given[~out] for given in values]
    return cells, rows


def _only_used(codes: Any, indices: Indices) -> tuple[Any, Indices]:
    """The codes that occur, in order of first appearance, and the rows' indices among them."""
    used, first = np.unique(indices, return_index=True)
    used = used[np.argsort(first)]
    place = np.zeros(len(codes), dtype=np.int32)
    place[used] = np.arange(len(used), dtype=np.int32)
    return codes.take(arrow_numbers(used)), place[indices]


def _check_totals(source: Source, universe: Universe, rows: _TotalRows | None, values: list[Ints]) -> None:
    """Refuse a total row whose count is not the sum of its cells. A code of a hierarchy's inner unit is the total of that unit."""
    if rows is None or not len(rows.indices[0]):
        return
    patterns = np.stack([np.where(mark[given], given, -1) for mark, given in zip(rows.is_total, rows.indices, strict=True)])
    known = [match_codes(array, universe.code_array(column)) for array, column in zip(rows.codes, universe.columns, strict=True)]
    for pattern in np.unique(patterns, axis=1).T:
        at = np.flatnonzero((patterns == pattern[:, None]).all(axis=0))
        summed = np.ones(len(universe), dtype=np.bool_)
        for column, codes, index in zip(universe.columns, rows.codes, pattern, strict=True):
            tree = universe.hierarchies.get(column)
            if index >= 0 and tree is not None and (unit := codes[int(index)].as_py()) in tree:
                summed &= universe.cells_having(column, np.isin(universe.codes[column], tree.leaves(unit)))
        plain = [place for place, index in enumerate(pattern) if index < 0]
        groups, names = universe.group([universe.columns[place] for place in plain])
        sums = np.zeros(len(names) + 1, dtype=np.int64)  # the last for rows without a cell
        np.add.at(sums, groups[summed], values[0][summed])
        wanted = [known[place][rows.indices[place][at]] for place in plain]
        found = np.zeros(len(at), dtype=np.int64)
        if plain:
            radices = [universe.code_count(universe.columns[place]) for place in plain]
            found = find_rows(tuple(names.T), radices, [np.maximum(given, 0) for given in wanted])
            found[np.any([given < 0 for given in wanted], axis=0)] = -1
        wrong = at[sums[found] != rows.values[0][at]]
        if len(wrong):
            parts = zip(universe.columns, rows.codes, rows.indices, strict=True)
            name = named_codes((column, codes[int(given[wrong[0]])].as_py()) for column, codes, given in parts)
            raise InvalidCount(
                f"The total row {name} of {source.label} is not the sum of its cells. Correct the row or the cells.",
                field="totals",
            )


def _in_order(codes: Any, indices: Indices) -> tuple[Any, Indices]:
    """The codes in the order of their texts, and the rows' indices among them."""
    import pyarrow.compute as pc

    order = pc.sort_indices(codes)
    place = np.empty(len(codes), dtype=np.int32)
    place[numpy_values(order)] = np.arange(len(codes), dtype=np.int32)
    return codes.take(order), place[indices]
