"""Counting records and summing their keys: DuckDB groups, counts and sums, we match the groups to the cells of the universe."""

from __future__ import annotations

import logging
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from holdfast.display import count_of
from holdfast.errors import EmptyTable, InvalidCode, OutsideUniverse, TooManyRecords
from holdfast.tables.cells import Indices
from holdfast.tables.columns import KEY_LIMIT, MISSING, check_code_type, check_unicode, invalid_record_key, record_key_sql, text_array
from holdfast.tables.readers import Source, find_columns
from holdfast.tables.sampling import left_out
from holdfast.tables.session import Session, private_session, run_guarded
from holdfast.tables.text_files import TEXT_SUFFIXES
from holdfast.tables.totals import Allow, check_codes
from holdfast.tables.universe import Universe, check_counts_fit

Ints: TypeAlias = NDArray[np.int64]

logger = logging.getLogger(__name__)

MORE_RECORDS = (
    ", the table's max_records. Raise max_records (the same promise then needs more noise), or count a sample of max_records of their "
    'records: over = "sample" under [table], over="sample" in Python.'
)
"""How the refusal of identifiers with too many records ends where a table has max_records."""


class RecordColumns(NamedTuple):
    """The columns of records beside their codes, and what is checked on them. `sample_key`: where records beyond the limit are left out."""

    identifier: str | None = None
    max_records: int | None = 1
    record_key: str | None = None
    sample_key: bytes | None = None


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


def count_observed(source: Source, columns: tuple[str, ...], others: RecordColumns, allow: Allow) -> tuple[Universe, Ints, Ints | None]:
    """The cells that have records, with their counts and keys; codes and cells in the order of their texts, so that the order tells
    nothing more.
    """
    groups, sizes, keys = _count_groups(source, columns, others)
    universe, order = observed_universe(source, columns, groups, allow)
    return universe, sizes[order], None if keys is None else keys[order]


def observed_cells(source: Source, columns: tuple[str, ...], allow: Allow) -> Universe:
    """The universe of `count_observed`, without counting."""
    with private_session(source.path) as session:
        places = code_places(source, columns)
        names = ", ".join(f"c{place}" for place in range(len(columns)))
        sql = f"SELECT DISTINCT {names} FROM {source.scan(session, places)}"
        found = run_guarded(source.label, lambda: session.connection.sql(sql).to_arrow_table().combine_chunks())
    return observed_universe(source, columns, code_arrays(source, columns, found), allow)[0]


def observed_universe(source: Source, columns: tuple[str, ...], groups: list[Any], allow: Allow) -> tuple[Universe, Ints]:
    """The universe of these cells, and their order in it."""
    for column, array in zip(columns, groups, strict=True):
        if array.null_count:
            raise InvalidCode(
                f"In column {column!r} of {source.label}, records have no code. Recode the column, or leave such records out."
            )
    codes = tuple(array.unique().sort() for array in groups)
    for column, array in zip(columns, codes, strict=True):
        check_codes(column, array, allow, show=False)
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
            limit = others.max_records or 1
            check_identifier(source, session, records, f"c{len(columns)}", others.identifier, None if others.sample_key else limit)
            if others.sample_key is not None:
                records = _without_left_out(source, session, records, len(columns), limit, others.sample_key)
        names = ", ".join(f"c{place}" for place in range(len(columns)))
        sums = "" if key is None else f", (sum({key}) % {KEY_LIMIT})::BIGINT AS k, count({key}) AS keyed"
        logger.debug("Counting the records of %s by %s", source.label, ", ".join(columns))
        size = "count(*)" if others.sample_key is None else "sum(n)::BIGINT"
        sql = f"SELECT {names}, {size} AS n{sums} FROM {records} GROUP BY {names}"
        counted = run_guarded(source.label, lambda: session.connection.sql(sql).to_arrow_table().combine_chunks())
        if key is not None and counted.column("keyed") != counted.column("n"):
            first = f"SELECT min(row) FROM (SELECT row_number() OVER () AS row, {key} AS k FROM {records}) WHERE k IS NULL"
            ((row,),) = run_guarded(source.label, lambda: session.connection.sql(first).fetchall())
            raise invalid_record_key(str(others.record_key), row, source.label)
    arrays = code_arrays(source, columns, counted)
    sizes = counted.column("n").to_numpy().astype(np.int64, copy=False)
    keys = None if key is None else counted.column("k").to_numpy().astype(np.int64, copy=False)
    return arrays, sizes, keys


def _without_left_out(source: Source, session: Session, records: str, columns: int, limit: int, key: bytes) -> str:
    """SQL for groups of records and their sizes n, negative for records that are left out. Every cell that has records keeps its group, so
    that records outside the universe are refused whether they are left out or not.
    """
    import pyarrow as pa

    names = [f"c{place}" for place in range(columns)]
    texts, identifier = ", ".join(f"{name}::VARCHAR AS {name}" for name in names), f"c{columns}"
    more = f"SELECT {identifier} FROM {records} GROUP BY {identifier} HAVING count(*) > {limit}"
    listed = ", ".join(["id", *names])
    sql = (
        f"SELECT {identifier}::VARCHAR AS id, {texts}, count(*) AS n FROM {records} WHERE {identifier} IN ({more}) "
        f"GROUP BY {listed} ORDER BY {listed}"
    )
    found = run_guarded(source.label, lambda: session.connection.sql(sql).fetchall())
    cut = left_out(((row[0], tuple(code or "" for code in row[1:-1]), row[-1]) for row in found), limit, key)
    arrays = [pa.array([codes[place] for codes in cut], pa.string()) for place in range(columns)]
    session.connection.register("cut", pa.table([*arrays, pa.array([-size for size in cut.values()], pa.int64())], names=[*names, "n"]))
    return f"(SELECT {texts}, 1 AS n FROM {records} UNION ALL SELECT * FROM cut)"


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


def check_identifier(
    source: Source, session: Session, records: str, key: str, name: str, limit: int | None, advice: str = MORE_RECORDS
) -> None:
    """Refuse if a record has no identifier, or an identifier has more than `limit` records."""
    absent = f"{key} IS NULL" + (f" OR {key} = ''" if source.path is not None and source.path.suffix.lower() in TEXT_SUFFIXES else "")
    most = 2**62 if limit is None else limit
    sizes = f"SELECT {key} FROM {records} WHERE NOT ({absent}) GROUP BY {key} HAVING count(*) > {most}"
    ask = f"SELECT EXISTS (SELECT 1 FROM {records} WHERE {absent}), EXISTS ({sizes})"
    ((missing, exceeding),) = run_guarded(source.label, lambda: session.connection.sql(ask).fetchall())
    if missing:
        raise TooManyRecords(f"In column {name!r} of {source.label}, records have no identifier. Fill it in, so that it can be checked.")
    if exceeding:
        raise TooManyRecords(f"In column {name!r} of {source.label}, identifiers have more than {count_of(most, 'record')}{advice}")


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
