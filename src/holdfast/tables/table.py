"""The table of counts: a universe and one confidential number for each of its cells."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, NoReturn, final

import numpy as np
from numpy.typing import NDArray

from holdfast.display import count_of, html_table, list_names, shorten
from holdfast.errors import ConfidentialTable, InvalidCode, InvalidCount, InvalidParameter, OutOfScope, UnknownColumn
from holdfast.tables.columns import KEY_BITS, KEY_LIMIT, CellKeyColumn, CellKeySums, CountColumn, read_only
from holdfast.tables.counting import RecordColumns, count_observed, count_records, read_declared, read_listed, read_totals
from holdfast.tables.declarations import (
    Declarations,
    check_listing,
    check_over,
    checked_columns,
    checked_max_records,
    checked_protect,
    column_list,
    declared_universe,
    names_list,
)
from holdfast.tables.formats import save_frame
from holdfast.tables.frames import Frames
from holdfast.tables.hierarchy import Hierarchy
from holdfast.tables.labels import Labels
from holdfast.tables.measure import COUNTS, Measure
from holdfast.tables.readers import open_source, source_name
from holdfast.tables.sampling import Over, read_sample_key
from holdfast.tables.text_files import Reading
from holdfast.tables.totals import Allow, Totals
from holdfast.tables.universe import Universe

_SCOPE = (
    "Holdfast protects counts of whole records: survey weights and magnitudes (sums of income, turnover and the like) are out of scope, "
    "because one record can change them by more than one. Count the records unweighted; for answers whose sensitivity you know, use "
    "hf.answer."
)


@final
class Table(Declarations, Frames):
    """Counts over a universe, with what is declared about them. Build one with `from_counts` or `from_records`.

    Guarantees:  counts are int64 from 0 to 2^62 - 1, their total stays below 2^62, and they cannot be written to. They are shown only by
                 `counts`, `frame`, `to_arrow`, `to_pandas`, `to_polars` and `save`: not by repr or str, and a table cannot be pickled.
                 Tables are equal only to themselves.
                 Cell keys, where there are any, are int64 from 0 to 2^32 - 1, 0 in every empty cell, and shown only by `cell_keys`.
                 Where an AnswerGrid is the `measure`, these are real-valued answers in its steps (`hf.answer`): they may be negative.
    """

    __slots__ = ("_counts", "_key_sums", "_source")

    def __init__(
        self,
        universe: Universe,
        counts: NDArray[np.int64],
        *,
        count: str = "count",
        protect: str = "person",
        max_records: int | None = 1,
        name: str | None = None,
        cell_keys: NDArray[np.int64] | CellKeySums | None = None,
        public_columns: Mapping[str, NDArray[np.int64]] | None = None,
        measure: Measure = COUNTS,
    ) -> None:
        # A copy even of a read-only array: it may be a view of one that can be written to.
        own = counts.copy() if isinstance(counts, np.ndarray) else counts
        self._fill(universe, own, cell_keys, count, protect, max_records, name, public_columns, measure)

    def _fill(
        self,
        universe: Universe,
        counts: NDArray[np.int64],
        cell_keys: NDArray[np.int64] | CellKeySums | None,
        count: str,
        protect: str,
        max_records: int | None,
        name: str | None,
        public_columns: Mapping[str, NDArray[np.int64]] | None = None,
        measure: Measure = COUNTS,
        over: Over = "refuse",
    ) -> Table:
        """Take over arrays that nobody else holds."""
        if not isinstance(counts, np.ndarray) or counts.dtype != np.int64 or counts.shape != (len(universe),):
            raise InvalidCount(
                f"Counts must be an int64 array with one number for each of the {len(universe)} cells. Got {_array_kind(counts)}. "
                "Real-valued answers go to hf.answer."
            )
        measure.check(counts)
        if count in universe.columns:
            raise UnknownColumn(f"The counts need a name of their own. Got {count!r}, which is a column of codes.")
        own = checked_columns(public_columns or {}, universe, count)
        super().__init__(universe, count, checked_protect(protect), checked_max_records(max_records), name, own, measure, over)
        self._counts: NDArray[np.int64] = read_only(counts)
        self._key_sums = cell_keys if isinstance(cell_keys, CellKeySums | None) else _key_sums(cell_keys, counts)
        self._source: str | None = None
        return self

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
        weight: object = None,
    ) -> Table:
        """A table from counts that someone else has made.

        Given:       one row per cell; `cells` names the columns of codes, `count` that of the counts. Other columns are not read.
                     `public=True` says that the list of rows is public: the same whatever the counts, zeros included. `universe` declares
                     the cells instead; those that have no row are zeros. With neither, the promise is for tables with the same cells.
                     `max_records` says how much of the count one person (or what `protect` names) can hold; on counts it cannot be checked.
                     `cell_key` names the column of cell keys, whole numbers from 0 to 2^32 - 1 and 0 in empty cells. `public_columns` names
                     columns of whole numbers that are public, such as the number of facilities: bounds may come from them, and are
                     then published; 0 in declared cells that have no row. Codes of a column that differ only in
                     blanks, case or Unicode form are refused, unless `allow_similar_codes`; codes named like totals, unless
                     `allow_total_names`. `totals`, such as {"sex": "_T"}, names codes of total rows: these are compared with the sums
                     of the cells, and left out. A code of a hierarchy's inner unit is the total of that unit.
                     `separator`, `encoding` and `sheet` say how a file is read where it does not tell; `query_seconds` how
                     long a query may take, by default an hour.
        Guarantees:  codes as they are. A list that is public is the universe, in its order. One that is not ("as listed") is taken in
                     the order of its codes, since its own may follow the counts.
        Errors:      name file, column and row (1 is the first row of data); they never show a count.
        """
        _refuse_weight(weight)
        columns = column_list(cells)
        check_listing(columns, universe, public, hierarchies)
        allow, totals = Allow(allow_similar_codes, allow_total_names), read_totals(totals, columns, universe)
        with open_source(data, query, reading=Reading(separator, encoding, sheet, query_seconds)) as source:
            numbers = [(count, CountColumn), *([] if cell_key is None else [(cell_key, CellKeyColumn)])]
            numbers += [(column, CountColumn) for column in names_list(public_columns, "public_columns")]
            if universe is not None:
                made, (counts, *keys) = universe, read_declared(source, universe, numbers, totals)
            else:
                made, (counts, *keys) = read_listed(source, columns, numbers, hierarchies, public=public, allow=allow, totals=totals)
        own = dict(zip(public_columns, keys[len(keys) - len(public_columns) :], strict=True))
        table = cls.__new__(cls)._fill(made, counts, None if cell_key is None else keys[0], count, protect, max_records, name, own)
        table._name_keys(cell_key)
        table._source = source_name(data)
        return table

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
        weight: object = None,
        public_columns: object = None,
    ) -> Table:
        """A table that counts records, one row each.

        Given:       the universe, declared: `cells` as codes per column (all combinations; a hierarchy stands for its leaves), or
                     `universe` as a Universe. universe="observed" with a list of columns takes the cells that occur: the promise then
                     holds only among data with the same cells, and says so. `max_records` is the most records one person (or what `protect`
                     names) may have, checked where `id` names the column of its identifier; with None the promise is for one record.
                     With over="sample" only `max_records` records of everybody are counted. The secret in the file `sample_key`, or
                     HOLDFAST_KEY, says which: it must be the same for all releases of the data. `sample_by` names columns that tell the
                     records of one person apart, so that tables by other columns count the same ones.
                     `record_key` names the column of record keys, whole numbers from 0 to 2^32 - 1: a cell's key is the sum of its records'
                     keys modulo 2^32.
                     `count` is what the column of counts is called in the table.
                     Codes that differ only in blanks, case or Unicode form are refused, unless `allow_similar_codes`; codes named like
                     totals, unless `allow_total_names`.
                     `separator`, `encoding` and `sheet` say how a file is read where it does not tell; `query_seconds` how
                     long a query may take, by default an hour.
        Guarantees:  cells without records are zeros. Records outside the universe are refused; the message names columns, not how many.
                     DuckDB counts; its temporary files are private and removed.
        """
        _refuse_weight(weight)
        if public_columns is not None:
            raise InvalidParameter(
                "public_columns= is for counts: records have no public number for each cell. Make the table of counts with from_counts, or "
                "Table(universe, counts, public_columns={name: numbers})."
            )
        limit = checked_max_records(max_records)
        if id is not None and limit is None:
            raise InvalidParameter("id= is there to check max_records. Got max_records=None. Give a number, or leave id out.")
        allow = Allow(allow_similar_codes, allow_total_names)
        declared = declared_universe(cells, universe, hierarchies, allow)
        check_over(over, id, sample_key or sample_by, record_key, observed=universe == "observed")
        _refuse_published(declared.columns if isinstance(declared, Universe) else declared, (id, record_key))
        key = read_sample_key(sample_key) if over == "sample" else None
        others = RecordColumns(id, limit, record_key, key, names_list(sample_by, "sample_by"))
        with open_source(data, query, reading=Reading(separator, encoding, sheet, query_seconds)) as source:
            if isinstance(declared, Universe):
                counts, keys = count_records(source, declared, others)
            else:
                declared, counts, keys = count_observed(source, declared, others, allow)
        table = cls.__new__(cls)._fill(declared, counts, keys, count, protect, limit, name, over=over)
        table._name_keys(record_key)
        table._source = source_name(data)
        return table

    def _name_keys(self, column: str | None) -> None:
        if self._key_sums is not None and column is not None:
            self._key_sums = replace(self._key_sums, column=column)

    def with_labels(self, codes: Mapping[str, Mapping[str, str]] | Labels, columns: Mapping[str, str] | None = None) -> Table:
        """The same table with words for codes, {"sex": {"F": "women"}}, and for columns, {"sex": "Sex"}: pages and screens show them."""
        made = Table.__new__(Table)
        for slot in Table.__slots__:
            setattr(made, slot, getattr(self, slot))
        named = self.universe.with_labels(codes if isinstance(codes, Labels) else Labels.of(codes, columns))
        made.__dict__.update(self.__dict__, universe=named)
        return made

    @property
    def cells(self) -> list[str]:
        """The names of the columns of codes."""
        return list(self.universe.columns)

    @property
    def counts(self) -> NDArray[np.int64]:
        """One count per cell, read-only. CONFIDENTIAL."""
        return self._counts

    @property
    def cell_keys(self) -> NDArray[Any] | None:
        """One key per cell for the cell key method, read-only; None where no keys were given. CONFIDENTIAL."""
        return None if self._key_sums is None else self._key_sums.sums

    @property
    def key_sums(self) -> CellKeySums | None:
        """The same with where the keys came from, and weights where there are any. CONFIDENTIAL."""
        return self._key_sums

    @property
    def has_test_keys(self) -> bool:
        """Whether cell keys came from a test secret, which anyone can make again."""
        return self._key_sums is not None and not self._key_sums.is_private

    @property
    def dataset(self) -> str | None:
        """The account that a release is charged to where none is named: the table's name, else the name of its file without its ending."""
        return self.name or self._source

    @property
    def frame(self) -> Any:
        """A pyarrow.Table of codes and counts, without cell keys. CONFIDENTIAL."""
        return self.universe.frame().append_column(self.count_name, self.measure.column(self._counts))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write codes and counts to a .csv or .parquet file, whole or not at all; an existing file is refused. Cell keys are left out.
        CONFIDENTIAL.
        """
        save_frame(self.frame, path)

    def __len__(self) -> int:
        return len(self.universe)

    def __repr__(self) -> str:
        keys = "" if self._key_sums is None else " and cell keys"
        columns = list_names(self.universe.columns)
        return f"Table({len(self)} cells by {columns}; {self.universe.support}; protects {shorten(self.protect)}; counts{keys} hidden)"

    def _repr_html_(self) -> str:
        """What is declared, for notebooks; no count and no key."""
        records = "any number of records" if self.max_records is None else f"at most {count_of(self.max_records, 'record')}"
        hidden = "counts" if self._key_sums is None else "counts, cell keys"
        pairs = [("protects", f"{self.protect}, with {records}"), ("column of counts", self.count_name), ("hidden", hidden)]
        return html_table("Table" if self.name is None else f"Table: {self.name}", [*pairs, *self.universe.declarations()])

    def __copy__(self) -> Table:
        return self

    def __deepcopy__(self, memo: object) -> Table:
        return self

    def __getstate__(self) -> NoReturn:
        self.__reduce_ex__(0)

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise ConfidentialTable(
            "A table cannot be pickled: the pickle would hold its confidential counts. Use table.save(path) and protect the file."
        )


def _array_kind(value: object) -> str:
    """What was given in place of an array of whole numbers: its type and shape, no number."""
    if not isinstance(value, np.ndarray):
        return f"{type(value).__name__}: write np.array(..., dtype=np.int64)"
    return f"{value.dtype} with the shape {value.shape}"


def _key_sums(cell_keys: NDArray[np.int64], counts: NDArray[np.int64]) -> CellKeySums:
    if not isinstance(cell_keys, np.ndarray) or cell_keys.dtype != np.int64 or cell_keys.shape != counts.shape:
        raise InvalidCount(
            f"Cell keys must be an int64 array with one key for each of the {len(counts)} cells. Got {_array_kind(cell_keys)}."
        )
    if np.any(cell_keys < 0) or np.any(cell_keys >= KEY_LIMIT):
        raise InvalidCount(f"Cell keys must lie from 0 to 2^{KEY_BITS} - 1; some do not. Sum the record keys modulo 2^{KEY_BITS}.")
    if np.any(cell_keys[counts == 0]):
        raise InvalidCount("The key of an empty cell is 0, a sum of no record keys; some are not. Check how the keys were made.")
    return CellKeySums(read_only(cell_keys.copy()))


def _refuse_weight(weight: object) -> None:
    if weight is not None:
        raise OutOfScope(f"weight= is not supported. {_SCOPE}")


def _refuse_published(cells: Sequence[str], confidential: Sequence[str | None]) -> None:
    """Refuse identifiers or keys of records as a column of cells."""
    found = next((column for column in confidential if column is not None and column in cells), None)
    if found is not None:
        raise InvalidCode(
            f"Column {found!r} holds identifiers or keys of records and is also a column of cells: its values would be published as codes. "
            "Leave it out of the cells."
        )
