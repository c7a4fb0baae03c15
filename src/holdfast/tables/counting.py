"""Counting records and summing their keys: DuckDB groups, counts and sums, we match the groups to the cells of the universe."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from holdfast.display import count_of, named_codes
from holdfast.errors import EmptyTable, InvalidCode, InvalidCount, InvalidParameter, OutsideUniverse, TooManyRecords, UnknownColumn
from holdfast.tables.cells import find_rows, rows_ascend
from holdfast.tables.columns import (
    KEY_LIMIT,
    MISSING,
    CountColumn,
    Indices,
    arrow_numbers,
    check_code_type,
    check_unicode,
    invalid_record_key,
    numpy_values,
    record_key_sql,
    text_array,
)
from holdfast.tables.hierarchy import Hierarchy
from holdfast.tables.readers import Source, find_columns, read_table
from holdfast.tables.sampling import left_out
from holdfast.tables.session import Session, private_session, run_guarded
from holdfast.tables.text_files import TEXT_SUFFIXES
from holdfast.tables.totals import Allow, Totals, check_codes
from holdfast.tables.universe import Universe, check_counts_fit, ranks_of_cells

Ints: TypeAlias = NDArray[np.int64]

logger = logging.getLogger(__name__)

MORE_RECORDS = (
    ", the table's max_records. Raise max_records (the same promise then needs more noise), or count a sample of max_records of their "
    'records: over = "sample" under [table] and as an argument of from_records.'
)
"""How the refusal of identifiers with too many records ends where a table has max_records."""


class RecordColumns(NamedTuple):
    """The columns of records beside their codes, and what is checked on them. `sample_key`: where records beyond the limit are left out."""

    identifier: str | None = None
    max_records: int | None = 1
    record_key: str | None = None
    sample_key: bytes | None = None
    sample_by: Sequence[str] = ()


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
    more = [name for name in (others.identifier, others.record_key, *others.sample_by) if name is not None]
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
                records = _without_left_out(source, session, records, len(columns), limit, others.sample_key, len(others.sample_by))
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


def _without_left_out(source: Source, session: Session, records: str, columns: int, limit: int, key: bytes, more: int) -> str:
    """SQL for groups of records and their sizes n, negative for records that are left out. Every cell that has records keeps its group, so
    that records outside the universe are refused whether they are left out or not.
    """
    import pyarrow as pa

    names = [f"c{place}" for place in range(columns)]
    texts, identifier = ", ".join(f"{name}::VARCHAR AS {name}" for name in names), f"c{columns}"
    others = [f"c{columns + 1 + place}" for place in range(more)]
    values = ", ".join(f"coalesce({name}::VARCHAR, '') AS {name}" for name in [*others, *names])
    exceeding = f"SELECT {identifier} FROM {records} GROUP BY {identifier} HAVING count(*) > {limit}"
    listed = ", ".join(["id", *others, *names])
    sql = (
        f"SELECT {identifier}::VARCHAR AS id, {values}, count(*) AS n FROM {records} WHERE {identifier} IN ({exceeding}) "
        f"GROUP BY {listed} ORDER BY {listed}"
    )
    found = run_guarded(source.label, lambda: session.connection.sql(sql).fetchall())
    cut = left_out(((row[0], row[1 : 1 + more], row[1 + more : -1], row[-1]) for row in found), limit, key)
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


Numbers: TypeAlias = Sequence[tuple[str, type[CountColumn]]]
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
    if not public:
        codes, indices = zip(*(_in_order(*pair) for pair in zip(codes, indices, strict=True)), strict=True)
    moved = not public and not rows_ascend(indices)
    if moved:
        ranks = ranks_of_cells(indices, [len(array) for array in codes], source.label)
        order = np.empty_like(ranks)
        order[ranks] = np.arange(len(ranks))
        indices, values = tuple(given[order] for given in indices), [given[order] for given in values]
    universe = Universe.from_indices(columns, codes, indices, "declared" if public else "as listed", source.label, hierarchies)
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
            raise UnknownColumn(f"totals names {column!r}, which is not a column of cells. Columns: {', '.join(map(repr, columns))}.")
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
    place = np.zeros(len(codes), dtype=indices.dtype)
    place[used] = np.arange(len(used))
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
    place = np.empty(len(codes), dtype=indices.dtype)
    place[numpy_values(order)] = np.arange(len(codes))
    return codes.take(order), place[indices]
