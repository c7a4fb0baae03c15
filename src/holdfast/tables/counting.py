"""Counting records and summing their keys: DuckDB groups, counts and sums, we match the groups to the cells of the universe."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from holdfast.display import count_of
from holdfast.errors import EmptyTable, InvalidCode, OutsideUniverse, TooManyRecords
from holdfast.tables.cells import Indices
from holdfast.tables.columns import (
    KEY_LIMIT,
    MISSING,
    CountColumn,
    check_code_type,
    check_unicode,
    invalid_record_key,
    numpy_values,
    record_key_sql,
    text_array,
)
from holdfast.tables.hierarchy import Hierarchy
from holdfast.tables.readers import Source, find_columns, read_table
from holdfast.tables.session import Session, private_session, run_guarded
from holdfast.tables.similar import check_similar
from holdfast.tables.text_files import TEXT_SUFFIXES
from holdfast.tables.universe import Universe, check_counts_fit, ranks_of_cells

Ints: TypeAlias = NDArray[np.int64]

logger = logging.getLogger(__name__)

MORE_RECORDS = (
    ", the table's max_records. Raise max_records (the same promise then needs more noise), or leave records out before counting."
)
"""How the refusal of identifiers with too many records ends where a table has max_records."""


class RecordColumns(NamedTuple):
    """The columns of records beside their codes, and what is checked on them."""

    identifier: str | None = None
    max_records: int | None = 1
    record_key: str | None = None


def count_records(source: Source, universe: Universe, others: RecordColumns) -> tuple[Ints, Ints | None]:
    """How many records fall in each cell of a declared universe, and the keys of the cells where records have keys.

    Guarantees:  cells without records get 0, as count and as key; every record is counted, or nothing is: records outside the universe
                 are an error that names columns; how many they are is not told.
    """
    groups, sizes, keys = _count_groups(source, universe.columns, others)
    cells = places_of_groups(source, universe, groups)
    check_counts_fit(universe, 1 if keys is None else 2)

    def spread(values: Ints) -> Ints:
        out = np.zeros(len(universe), dtype=np.int64)
        out[cells] = values
        return out

    return spread(sizes), None if keys is None else spread(keys)


def places_of_groups(source: Source, universe: Universe, groups: list[Any]) -> Ints:
    """The cell of each group of equal records; records outside the universe are an error."""
    indices = [match_codes(array, universe.code_array(column)) for column, array in zip(universe.columns, groups, strict=True)]
    check_known_codes(source, universe, indices)
    cells = universe.find(indices)
    if np.any(cells < 0):
        raise OutsideUniverse(
            f"Records of {source.label} lie outside the universe: each code is declared, but the "
            f"combination of {', '.join(map(repr, universe.columns))} is not listed. List these cells, or recode the records."
        )
    return cells


def count_observed(
    source: Source, columns: tuple[str, ...], others: RecordColumns, *, allow_similar_codes: bool = False
) -> tuple[Universe, Ints, Ints | None]:
    """The cells that have records, with their counts and keys; codes and cells in the order of their texts, so that the order tells
    nothing more.
    """
    groups, sizes, keys = _count_groups(source, columns, others)
    universe, order = observed_universe(source, columns, groups, allow_similar_codes)
    return universe, sizes[order], None if keys is None else keys[order]


def observed_cells(source: Source, columns: tuple[str, ...], *, allow_similar_codes: bool = False) -> Universe:
    """The universe of `count_observed`, without counting."""
    with private_session(source.path) as session:
        places = code_places(source, columns)
        names = ", ".join(f"c{place}" for place in range(len(columns)))
        sql = f"SELECT DISTINCT {names} FROM {source.scan(session, places)}"
        found = run_guarded(source.label, lambda: session.connection.sql(sql).to_arrow_table().combine_chunks())
    return observed_universe(source, columns, code_arrays(source, columns, found), allow_similar_codes)[0]


def observed_universe(source: Source, columns: tuple[str, ...], groups: list[Any], allow_similar_codes: bool) -> tuple[Universe, Ints]:
    """The universe of these cells, and their order in it."""
    for column, array in zip(columns, groups, strict=True):
        if array.null_count:
            raise InvalidCode(
                f"In column {column!r} of {source.label}, records have no code. Recode the column, or leave such records out."
            )
    codes = tuple(array.unique().sort() for array in groups)
    for column, array in zip(columns, codes, strict=True):
        check_similar(column, array, allowed=allow_similar_codes, show=False)
    indices = [match_codes(array, known) for array, known in zip(groups, codes, strict=True)]
    order = np.lexsort(indices[::-1])
    universe = Universe.from_indices(columns, codes, tuple(given[order] for given in indices), "observed", source.label)
    return universe, order


def _count_groups(source: Source, columns: tuple[str, ...], others: RecordColumns) -> tuple[list[Any], Ints, Ints | None]:
    """Per column the codes of the groups of equal records (Arrow arrays of text, missing ones included), and the sizes and keys of the
    groups.
    """
    places = code_places(source, columns)
    types = source.types()
    more = [name for name in (others.identifier, others.record_key) if name is not None]
    places += find_columns(source, more, columns)
    key = None
    if others.record_key is not None:
        key = record_key_sql(types[places[-1]], f"c{len(places) - 1}", others.record_key, source.label)
    with private_session(source.path) as session:
        records = source.scan(session, places)
        if more:
            records = rereadable(source, session, records)
        if others.identifier is not None:
            check_identifier(source, session, records, f"c{len(columns)}", others.identifier, others.max_records or 1)
        names = ", ".join(f"c{place}" for place in range(len(columns)))
        sums = "" if key is None else f", (sum({key}) % {KEY_LIMIT})::BIGINT AS k, count({key}) AS keyed"
        logger.debug("Counting the records of %s by %s", source.label, ", ".join(columns))
        sql = f"SELECT {names}, count(*) AS n{sums} FROM {records} GROUP BY {names}"
        counted = run_guarded(source.label, lambda: session.connection.sql(sql).to_arrow_table().combine_chunks())
        if key is not None and counted.column("keyed") != counted.column("n"):
            first = f"SELECT min(row) FROM (SELECT row_number() OVER () AS row, {key} AS k FROM {records}) WHERE k IS NULL"
            ((row,),) = run_guarded(source.label, lambda: session.connection.sql(first).fetchall())
            raise invalid_record_key(str(others.record_key), row, source.label)
    arrays = code_arrays(source, columns, counted)
    sizes = counted.column("n").to_numpy().astype(np.int64, copy=False)
    keys = None if key is None else counted.column("k").to_numpy().astype(np.int64, copy=False)
    return arrays, sizes, keys


def code_places(source: Source, columns: tuple[str, ...]) -> list[int]:
    """Where the columns of codes stand; refuses what is not text."""
    places = find_columns(source, columns)
    types = source.types()
    for column, place in zip(columns, places, strict=True):
        check_code_type(types[place], column, source.label)
    return places


def code_arrays(source: Source, columns: tuple[str, ...], groups: Any) -> list[Any]:
    """The codes of the groups, column by column."""
    if groups.num_rows == 0:
        raise EmptyTable(
            f"There are no records in {source.label}. Check the file or the query; an empty population can be listed as zeros."
        )
    arrays = [text_array(groups.column(place).combine_chunks()) for place in range(len(columns))]
    for column, array in zip(columns, arrays, strict=True):
        check_unicode(array, column, source.label)
    return arrays


def rereadable(source: Source, session: Session, records: str) -> str:
    """SQL for the same records that can be read more than once: a stream gives them only once."""
    if source.path is not None and records != "input":
        return records
    run_guarded(source.label, lambda: session.connection.execute(f"CREATE TEMP TABLE records AS SELECT * FROM {records}"))
    return "records"


def check_identifier(source: Source, session: Session, records: str, key: str, name: str, limit: int, advice: str = MORE_RECORDS) -> None:
    """Refuse if an identifier has more than `limit` records."""
    absent = f"{key} IS NULL" + (f" OR {key} = ''" if source.path is not None and source.path.suffix.lower() in TEXT_SUFFIXES else "")
    sizes = f"SELECT {key} FROM {records} WHERE NOT ({absent}) GROUP BY {key} HAVING count(*) > {limit}"
    ask = f"SELECT EXISTS (SELECT 1 FROM {records} WHERE {absent}), EXISTS ({sizes})"
    ((missing, exceeding),) = run_guarded(source.label, lambda: session.connection.sql(ask).fetchall())
    if missing:
        raise TooManyRecords(f"In column {name!r} of {source.label}, records have no identifier. Fill it in, so that it can be checked.")
    if exceeding:
        raise TooManyRecords(f"In column {name!r} of {source.label}, identifiers have more than {count_of(limit, 'record')}{advice}")


def match_codes(texts: Any, codes: Any) -> Indices:
    """For each text its place among the codes, or MISSING."""
    import pyarrow.compute as pc

    encoded = texts.dictionary_encode()
    places = pc.fill_null(pc.index_in(encoded.dictionary, value_set=codes), MISSING).to_numpy(zero_copy_only=False)
    chosen = encoded.indices.fill_null(len(places)).to_numpy(zero_copy_only=False)
    matched: Indices = np.append(places, MISSING).astype(np.int32)[chosen]
    return matched


def check_known_codes(source: Source, universe: Universe, indices: list[Indices]) -> None:
    outside = [column for column, given in zip(universe.columns, indices, strict=True) if np.any(given < 0)]
    if outside:
        found = f"column{'s' if len(outside) > 1 else ''} {', '.join(map(repr, outside))}"
        raise OutsideUniverse(
            f"Records of {source.label} have missing codes or codes that were not declared ({found}). "
            "Declare these codes, or recode the records; codes must match exactly, blanks and zeros included."
        )


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
