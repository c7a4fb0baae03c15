"""A table without its counts: what a plan is made from.

A plan must not read a count, so the command reads no column of counts to make one: of a file or a query with counts the columns of codes
alone, of records with a declared universe nothing at all. Only where the universe is the cells that have records are these looked at.
"""

from __future__ import annotations

import numbers
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import InvalidCount, InvalidParameter, UnknownColumn
from holdfast.tables.columns import COUNT_LIMIT, CountColumn, read_only
from holdfast.tables.counting import observed_cells, read_declared, read_listed, read_totals
from holdfast.tables.hierarchy import Hierarchy
from holdfast.tables.measure import COUNTS, Measure
from holdfast.tables.readers import open_source
from holdfast.tables.sampling import OVER, Over
from holdfast.tables.text_files import Reading
from holdfast.tables.totals import Allow, Totals
from holdfast.tables.universe import Universe

NOBODY = frozenset(("y", "yes", "n", "no", "none", "true", "false"))
"""Answers to questions, which name nobody whose privacy could be promised."""
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
    over:            what was done if somebody had more records than max_records: the table refused, or a sample of them counted.
    """

    universe: Universe
    count_name: str = "count"
    protect: str = "person"
    max_records: int | None = 1
    name: str | None = None
    public_columns: Mapping[str, NDArray[np.int64]] = field(default_factory=dict)
    measure: Measure = COUNTS
    over: Over = "refuse"

    @classmethod
    def of(cls, table: Declarations | Universe) -> Declarations | Universe:
        """What is declared of a table: what goes on from here cannot reach its counts. Anything else as it is."""
        if type(table) is cls or not isinstance(table, Declarations):
            return table
        own = (table.universe, table.count_name, table.protect, table.max_records, table.name, table.public_columns, table.measure)
        return cls(*own, table.over)

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
        allow_total_names: bool = False,
        totals: Totals | None = None,
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
        allow, totals = Allow(allow_similar_codes, allow_total_names), read_totals(totals, columns, universe)
        named = names_list(public_columns, "public_columns")
        numbers = [(column, CountColumn) for column in named]
        made, values = universe, list[NDArray[np.int64]]()
        if made is None or named:
            with open_source(data, query, only=(*columns, *named), reading=Reading(separator, encoding, sheet, query_seconds)) as source:
                if made is not None:
                    values = read_declared(source, made, numbers, totals, counts=False)
                else:
                    made, values = read_listed(
                        source, columns, numbers, hierarchies, public=public, allow=allow, totals=totals, unread=others
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
        allow_total_names: bool = False,
        count: str = "count",
        protect: str = "person",
        max_records: int | None = 1,
        id: str | None = None,
        over: Over = "refuse",
        sample_key: str | os.PathLike[str] | None = None,
        sample_by: Sequence[str] = (),
        record_key: str | None = None,
        name: str | None = None,
        query: str | None = None,
        separator: str | None = None,
        encoding: str | None = None,
        sheet: str | None = None,
        query_seconds: int | None = None,
    ) -> Declarations:
        """As Table.from_records, with the same universe. A source whose universe is declared is not opened."""
        allow = Allow(allow_similar_codes, allow_total_names)
        declared = declared_universe(cells, universe, hierarchies, allow)
        if not isinstance(declared, Universe):
            with open_source(data, query, only=declared, reading=Reading(separator, encoding, sheet, query_seconds)) as source:
                declared = observed_cells(source, declared, allow)
        check_over(over, id, sample_key or sample_by, record_key, observed=universe == "observed")
        return cls(declared, count, checked_protect(protect), checked_max_records(max_records), name, over=over)


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
    allow: Allow,
) -> Universe | tuple[str, ...]:
    """The declared universe, or the columns of an observed one."""
    if universe is None and isinstance(cells, Mapping):
        return Universe.product(cells, hierarchies=hierarchies, allow_similar_codes=allow.similar, allow_total_names=allow.totals)
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
    if not isinstance(protect, str) or not protect.strip() or protect.strip().lower() in NOBODY:
        raise InvalidParameter(
            f"protect must say whose privacy is promised, such as 'person' or 'household'. Got {protect!r}.", field="protect"
        )
    if protect == "distance":  # as in `per`: a budget would be for two things
        raise InvalidParameter(
            "protect='distance' names nobody: per='distance' is a budget for one unit of distance. Say who is, such as 'person'.",
            field="protect",
        )
    return protect


def check_over(over: object, identifier: str | None, how: object, record_key: str | None, *, observed: bool) -> None:
    """Refuse what does not go together with a sample of each person's records."""
    if over not in OVER:
        raise InvalidParameter(f"over must be one of {', '.join(map(repr, OVER))}. Got {over!r}.", field="over")
    if over == "refuse" and how:
        raise InvalidParameter("sample_key= and sample_by= go with over='sample'. Give it too, or leave them out.", field="over")
    if over == "sample" and (identifier is None or record_key is not None):
        raise InvalidParameter(
            "over='sample' takes records with an identifier, and no record_key=: a cell's key is that of all its records. Name the column "
            "that identifies the person: id='person_number'.",
            field="over",
        )
    if over == "sample" and observed:
        raise InvalidParameter(
            "over='sample' takes a declared universe: a list of the cells that occur would have cells whose records are left out, though "
            "each is said to hold one. Declare the cells.",
            field="over",
        )


def checked_max_records(max_records: int | None) -> int | None:
    """The most records of one person, or what is protected."""
    if max_records is None:
        return None
    if isinstance(max_records, bool) or not isinstance(max_records, numbers.Integral) or not 1 <= max_records <= MAX_RECORDS:
        raise InvalidParameter(f"max_records must be a positive whole number, or None. Got {max_records!r}.")
    return int(max_records)
