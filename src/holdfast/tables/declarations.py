"""A table without its counts: what a plan is made from.

A plan must not read a count, so the command reads no column of counts to make one: of a file or a query with counts the columns of codes
alone, of records with a declared universe nothing at all. Only where the universe is the cells that have records are these looked at.
"""

from __future__ import annotations

import numbers
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import InvalidCount, InvalidParameter, UnknownColumn
from holdfast.tables.columns import COUNT_LIMIT, CountColumn, read_only
from holdfast.tables.counting import observed_cells, read_declared, read_listed
from holdfast.tables.hierarchy import Hierarchy
from holdfast.tables.measure import COUNTS, Measure
from holdfast.tables.readers import open_source
from holdfast.tables.text_files import Reading
from holdfast.tables.universe import Universe

MAX_RECORDS = 2**31 - 1
"""The most records of one person that may be declared."""


@dataclass(frozen=True, eq=False)
class Declarations:
    """The universe and what is declared about a table: public, and all that a plan reads. No count stands here.

    count_name:      the name of the column of counts.
    protect:         whose privacy is promised.
    max_records:     the most records one person (or what is protected) may have; None where the promise is for one record.
    name:            what the office calls the table.
    public_columns:  columns of whole numbers that are public, one number for each cell, read-only.
    measure:         what the numbers are: counts, or steps of the grid of real-valued answers.
    """

    universe: Universe
    count_name: str = "count"
    protect: str = "person"
    max_records: int | None = 1
    name: str | None = None
    public_columns: Mapping[str, NDArray[np.int64]] = field(default_factory=dict)
    measure: Measure = COUNTS

    @classmethod
    def of(cls, table: Declarations | Universe) -> Declarations | Universe:
        """What is declared of a table: what goes on from here cannot reach its counts. Anything else as it is."""
        if type(table) is cls or not isinstance(table, Declarations):
            return table
        own = (table.universe, table.count_name, table.protect, table.max_records, table.name, table.public_columns, table.measure)
        return cls(*own)

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


def checked_columns(given: Mapping[str, NDArray[np.int64]], universe: Universe, count: str) -> Mapping[str, NDArray[np.int64]]:
    """Public columns as read-only arrays; refuses what is no whole number for each cell, and names that are taken."""
    out = {}
    for name, values in given.items():
        if not isinstance(name, str) or name in universe.columns or name == count:
            raise UnknownColumn(f"A public column needs a name of its own. Got {name!r}, which codes or counts have.")
        own = np.array(values)
        if own.dtype.kind not in "iu" or own.shape != (len(universe),) or np.any(own >= COUNT_LIMIT) or np.any(own <= -COUNT_LIMIT):
            raise InvalidCount(f"The public column {name!r} has one whole number below 2^62 in size for each of the {len(universe)} cells.")
        out[name] = read_only(own.astype(np.int64))
    return MappingProxyType(out)


def names_list(given: Sequence[str], what: str) -> Sequence[str]:
    """Names of columns, each once."""
    if isinstance(given, str) or not isinstance(given, Sequence) or not all(isinstance(name, str) for name in given):
        raise InvalidParameter(f"{what} is a list of column names. Got {type(given).__name__}. Write {what}=['facilities'].")
    if len(set(given)) < len(given):
        raise InvalidParameter(f"{what} names a column twice. Name each once.")
    return given


def check_listing(columns: tuple[str, ...], universe: object, public: bool, hierarchies: object) -> None:
    """Which arguments of a table of counts go together."""
    if universe is None:
        return
    if not isinstance(universe, Universe) or universe.columns != columns:
        raise InvalidParameter(
            "universe= declares the cells of a table of counts: a Universe over the columns of cells=, in their order. "
            "Write universe=Universe.listed(...), or leave it out."
        )
    if public or hierarchies is not None:
        raise InvalidParameter("universe= declares the cells already. Leave public= out, and give hierarchies to the Universe.")


def column_list(cells: Sequence[str]) -> tuple[str, ...]:
    """The columns of codes, as a tuple; refuses what is no list of names."""
    if isinstance(cells, str) or not isinstance(cells, Sequence):
        raise InvalidParameter(f"cells must be a list of column names. Got {type(cells).__name__}. Write cells=['state', 'county'].")
    if not cells:
        raise InvalidParameter("cells must name at least one column. Got an empty list. Write cells=['state', 'county'].")
    return tuple(cells)


def declared_universe(
    cells: Mapping[str, Sequence[str] | Hierarchy] | Sequence[str] | None,
    universe: Universe | str | None,
    hierarchies: Mapping[str, Hierarchy] | None,
    allow_similar_codes: bool,
) -> Universe | tuple[str, ...]:
    """The declared universe, or the columns of an observed one."""
    if universe is None and isinstance(cells, Mapping):
        return Universe.product(cells, hierarchies=hierarchies, allow_similar_codes=allow_similar_codes)
    if hierarchies is not None:
        raise InvalidParameter("hierarchies= goes with cells={column: codes}. Give them to the Universe instead.")
    if isinstance(universe, Universe) and (cells is None or (isinstance(cells, Sequence) and tuple(cells) == universe.columns)):
        return universe
    if isinstance(universe, str) and universe == "observed" and cells is not None and not isinstance(cells, Mapping):
        return column_list(cells)
    raise InvalidParameter(
        "The universe of records must be declared. Write cells={'sex': ['F', 'M'], ...} for all combinations, "
        "universe=Universe.listed(...) for certain cells, or universe='observed' with cells=['sex', ...] to take the cells that occur, "
        "which weakens the promise."
    )


def checked_protect(protect: str) -> str:
    """Whose privacy is promised, as a text; raise InvalidParameter for "distance", which `per` has another meaning for."""
    if not isinstance(protect, str) or not protect.strip():
        raise InvalidParameter(
            f"protect must say whose privacy is promised, such as 'person' or 'household'. Got {protect!r}.", field="protect"
        )
    if protect == "distance":  # as in `per`: a budget would be for two things
        raise InvalidParameter(
            "protect='distance' names nobody: per='distance' is a budget for one unit of distance. Say who is, such as 'person'.",
            field="protect",
        )
    return protect


def checked_max_records(max_records: int | None) -> int | None:
    """The most records of one person, or what is protected."""
    if max_records is None:
        return None
    if isinstance(max_records, bool) or not isinstance(max_records, numbers.Integral) or not 1 <= max_records <= MAX_RECORDS:
        raise InvalidParameter(f"max_records must be a positive whole number, or None. Got {max_records!r}.")
    return int(max_records)
