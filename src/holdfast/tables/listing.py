"""The cells of a source of counts: as its rows list them, or those of a declared universe.

Rows that nobody declared public may be those with a positive count, sorted by size. Then the list itself tells of the data: it is taken in
the order of its codes, and the promise is for tables with the same cells.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import OutsideUniverse
from holdfast.tables.cells import Indices
from holdfast.tables.columns import CountColumn, numpy_values
from holdfast.tables.counting import match_codes
from holdfast.tables.hierarchy import Hierarchy
from holdfast.tables.readers import Source, find_columns, read_table
from holdfast.tables.similar import check_similar
from holdfast.tables.universe import Universe, check_counts_fit, ranks_of_cells

Ints: TypeAlias = NDArray[np.int64]
Numbers: TypeAlias = Sequence[tuple[str, type[CountColumn]]]


def read_listed(
    source: Source,
    columns: tuple[str, ...],
    numbers: Numbers,
    hierarchies: Mapping[str, Hierarchy] | None,
    *,
    public: bool,
    allow_similar_codes: bool,
    unread: Sequence[str] = (),
) -> tuple[Universe, list[Ints]]:
    """The universe that a source lists, one row for each cell, and its columns of numbers. Those in `unread` must exist.

    Guarantees:  in the order of the rows where the list is public; else codes and cells are in the order of their texts, so that their
                 order tells nothing.
    """
    if unread:
        find_columns(source, [*columns, *unread])
    (codes, indices), values = read_table(source, columns, numbers)
    for column, array in zip(columns, codes, strict=True):
        check_similar(column, array, allowed=allow_similar_codes)
    if public or not len(indices[0]):
        return Universe.from_indices(columns, codes, indices, "declared", source.label, hierarchies), values
    sorted_codes, renumbered = zip(*(_in_order(*pair) for pair in zip(codes, indices, strict=True)), strict=True)
    ranks = ranks_of_cells(renumbered, [len(array) for array in codes], source.label)
    order = np.empty_like(ranks)
    order[ranks] = np.arange(len(ranks))
    universe = Universe.from_indices(
        columns, sorted_codes, tuple(given[order] for given in renumbered), "as listed", source.label, hierarchies
    )
    moved = bool((ranks[1:] < ranks[:-1]).any())
    return universe.with_moved_rows() if moved else universe, [given[order] for given in values]


def read_declared(source: Source, universe: Universe, numbers: Numbers) -> list[Ints]:
    """The columns of numbers of a source, one for each cell of a declared universe; 0 for cells that have no row."""
    (codes, indices), values = read_table(source, universe.columns, numbers)
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
    return spread


def _in_order(codes: Any, indices: Indices) -> tuple[Any, Indices]:
    """The codes in the order of their texts, and the rows' indices among them."""
    import pyarrow.compute as pc

    order = pc.sort_indices(codes)
    place = np.empty(len(codes), dtype=np.int32)
    place[numpy_values(order)] = np.arange(len(codes), dtype=np.int32)
    return codes.take(order), place[indices]
