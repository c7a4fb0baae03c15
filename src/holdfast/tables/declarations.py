"""A table without its counts: what a plan is made from.

A plan must not read a count, so the command reads no column of counts to make one: of a file or a query with counts the columns of codes
alone, of records with a declared universe nothing at all. Only where the universe is the cells that have records are these looked at.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from holdfast.tables.columns import CountColumn
from holdfast.tables.counting import observed_cells
from holdfast.tables.hierarchy import Hierarchy
from holdfast.tables.listing import read_declared, read_listed
from holdfast.tables.measure import COUNTS, Measure
from holdfast.tables.readers import open_source
from holdfast.tables.table import (
    check_listing,
    checked_columns,
    checked_max_records,
    checked_protect,
    column_list,
    declared_universe,
    names_list,
)
from holdfast.tables.text_files import Reading
from holdfast.tables.universe import Universe


@dataclass(frozen=True)
class Declarations:
    """The universe and what is declared about a table; no count stands here, and none was read."""

    universe: Universe
    count_name: str = "count"
    protect: str = "person"
    max_records: int | None = 1
    name: str | None = None
    public_columns: Mapping[str, NDArray[np.int64]] = field(default_factory=dict)
    """They are public: a plan reads them."""
    measure: Measure = COUNTS

    @classmethod
    def from_counts(
        cls,
        data: Any,
        cells: Sequence[str],
        count: str,
        *,
        universe: Universe | None = None,
        public: bool = False,
        cell_key: str | None = None,
        public_columns: Sequence[str] = (),
        hierarchies: Mapping[str, Hierarchy] | None = None,
        allow_similar_codes: bool = False,
        protect: str = "person",
        max_records: int | None = 1,
        name: str | None = None,
        query: str | None = None,
        separator: str | None = None,
        encoding: str | None = None,
        sheet: str | None = None,
        query_seconds: int | None = None,
    ) -> Declarations:
        """As Table.from_counts, with the same universe. The columns of counts and cell keys must be there; they are not read. A source
        whose universe is declared is not opened, unless it has public columns.
        """
        others = [count, *([] if cell_key is None else [cell_key])]
        columns = column_list(cells)
        check_listing(columns, universe, public, hierarchies)
        named = names_list(public_columns, "public_columns")
        numbers = [(column, CountColumn) for column in named]
        made, values = universe, list[NDArray[np.int64]]()
        if made is None or named:
            with open_source(data, query, only=(*columns, *named), reading=Reading(separator, encoding, sheet, query_seconds)) as source:
                if made is not None:
                    values = read_declared(source, made, numbers)
                else:
                    made, values = read_listed(
                        source, columns, numbers, hierarchies, public=public, allow_similar_codes=allow_similar_codes, unread=others
                    )
        own = checked_columns(dict(zip(named, values, strict=True)), made, count)
        return cls(made, count, checked_protect(protect), checked_max_records(max_records), name, own)

    @classmethod
    def from_records(
        cls,
        data: Any,
        cells: Mapping[str, Sequence[str] | Hierarchy] | Sequence[str] | None = None,
        *,
        universe: Universe | Literal["observed"] | None = None,
        hierarchies: Mapping[str, Hierarchy] | None = None,
        allow_similar_codes: bool = False,
        count: str = "count",
        protect: str = "person",
        max_records: int | None = 1,
        id: str | None = None,
        record_key: str | None = None,
        name: str | None = None,
        query: str | None = None,
        separator: str | None = None,
        encoding: str | None = None,
        sheet: str | None = None,
        query_seconds: int | None = None,
    ) -> Declarations:
        """As Table.from_records, with the same universe. A source whose universe is declared is not opened."""
        declared = declared_universe(cells, universe, hierarchies, allow_similar_codes)
        if not isinstance(declared, Universe):
            with open_source(data, query, only=declared, reading=Reading(separator, encoding, sheet, query_seconds)) as source:
                declared = observed_cells(source, declared, allow_similar_codes=allow_similar_codes)
        return cls(declared, count, checked_protect(protect), checked_max_records(max_records), name)
