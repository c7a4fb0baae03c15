"""Many tables of the same records: counts, sums of keys and of weights, in DuckDB. Everything here is CONFIDENTIAL."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from holdfast.cellkey.keys import CellKeys, KeySpace, do_not_fill
from holdfast.cellkey.perturb import LARGEST_COUNT, WEIGHT_DIGITS, add_noise, fit_table
from holdfast.cellkey.record_keys import RecordKeys
from holdfast.cellkey.table import PerturbationTable
from holdfast.errors import EmptyTable, InvalidCode, InvalidCount, InvalidParameter, OutOfScope
from holdfast.tables import Table, Universe
from holdfast.tables.columns import KEY_COLUMN, UNKNOWN, CellKeySums, arrow_numbers, free_name, record_key_sql
from holdfast.tables.counting import check_identifier, code_arrays, code_places, observed_universe, places_of_groups
from holdfast.tables.readers import ParquetSource, Source, find_columns, open_source
from holdfast.tables.session import Session, private_session, run_guarded
from holdfast.tables.text_files import Reading
from holdfast.tables.totals import Allow

logger = logging.getLogger(__name__)

Ints: TypeAlias = NDArray[np.int64]
Tables: TypeAlias = Mapping[str, Sequence[str] | Mapping[str, Sequence[str]] | Universe]

COUNT = "count"
TOTAL, ALL = "total", "all"
"""The column and the code of a table that counts all records in one cell."""
_MADE_KEYS = "keys made from identifiers"
"""Column of the records in memory. The data may have a column record_key, which is not read then."""
_NAME = re.compile(r"\A(?!(?:tables|card)\.json\Z)[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}\Z")
ONE_RECORD = ". Give every record an identifier of its own; where a person has several records, join it with a number."


@dataclass(frozen=True)
class Columns:
    """The columns of the input beside its codes: record keys; or counts with cell keys, where rows are cells."""

    key: str
    count: str | None = None
    weight: str | None = None
    identifier: str | None = None


class CellKeyMechanism(Protocol):
    """What `hf.CellKey` says of the noise that cells will have."""

    @property
    def table(self) -> PerturbationTable: ...
    @property
    def rule(self) -> CellKeys: ...


def tabulate(
    data: Any,
    tables: Tables,
    mechanism: CellKeyMechanism,
    *,
    key: str = KEY_COLUMN,
    id: str | None = None,
    secret: RecordKeys | None = None,
    count: str | None = None,
    weight: str | None = None,
    query: str | None = None,
    reading: Reading | None = None,
    allow_similar_codes: bool = False,
) -> dict[str, Table]:
    """Count records into tables by name, for `hf.release` with this `hf.CellKey`.

    Given:       data: a file, frame or query with one record a row and its key in column `key`; with `count`, one cell a row, its count
                 there and the sum of its records' keys, not folded, in `key`; or a Table with cell keys.
                 tables: by name, columns (cells as they occur), or columns with all their codes, or a Universe. No column: one cell of
                 all records, in a column "total". weight: a column of weights, for a mechanism that is `weighted`.
                 id: a column of identifiers, of which no two may be equal. secret: keys are made from them, and no column of keys is
                 read. allow_similar_codes: codes may differ in blanks, case or Unicode form only.
    Guarantees:  the noise of a cell will be a function of the set of its records: not of the table it is in, of the order or number of
                 files, nor of the day. Of cells as they occur, those that come out as 0 are left out: listed, they would be known to have
                 records.
    Refused:     missing or invalid keys, with the row of the first; keys that do not fill their declared space; an identifier that two
                 records share; records outside a universe.
    """
    rule, noise = mechanism.rule, fit_table(mechanism.table, mechanism.rule)
    check_names(tables)
    asked = {name: columns_of(name, given) for name, given in tables.items()}
    source_name = data.dataset if isinstance(data, Table) else Path(data).stem if isinstance(data, str | os.PathLike) else None
    column = key
    if isinstance(data, Table):
        data, column, key, count = _with_keys(data, rule, secret)
    elif count is not None:
        rule.check_sums(CellKeySums(np.zeros(0), modulus=rule.records.size, space=str(rule.records)))
    if secret is not None:
        if id is None:
            raise InvalidParameter("Keys are made from identifiers, and id is missing. Name their column (--id).", field="id")
        check_published_columns(asked, [key, id])
        data = secret.add(data, id, rule.records, name=_MADE_KEYS, query=query, reading=reading)
        column, key, query, reading = id, _MADE_KEYS, None, None
    columns = Columns(key, count, weight, id)
    keys = CellKeySums(
        np.zeros(0),
        modulus=rule.modulus,
        space=str(rule.records),
        column=column,
        secret=UNKNOWN if secret is None else secret.fingerprint,
        is_private=secret is None or secret.is_private,
    )
    wanted = list(dict.fromkeys(column for given in asked.values() for column in given))
    others = [name for name in (columns.key, columns.count, columns.weight, columns.identifier) if name is not None]
    check_published_columns(asked, others)
    found = {}
    with open_source(data, query, reading=reading) as source, private_session(source.path) as session:
        rows = _rows(source, session, wanted, others, columns, rule.records)
        _check_all(source, session, rows, columns, rule.records)
        for name, given in tables.items():
            logger.debug("Counting the records of %s for the table %s", source.label, name)
            places = [wanted.index(column) for column in asked[name]]
            declared = _declared_universe(given, allow_similar_codes)
            universe, counts, sums = _count(
                source, session, rows, tuple(asked[name]), places, declared, rule, noise, columns, keys, allow_similar_codes
            )
            count_name = free_name(COUNT, universe.columns, "published")
            found[name] = Table(universe, counts, count=count_name, name=source_name, cell_keys=sums)
    return found


def check_names(tables: object) -> None:
    """Refuse what is no mapping of names that folders can have."""
    if not isinstance(tables, Mapping) or not tables:
        raise InvalidParameter('Tables are given by name: {"ages": ["region", "age"], "regions": ["region"]}.', field="tables")
    for name in tables:
        if not isinstance(name, str) or not _NAME.match(name):
            raise InvalidParameter(
                f"The name of a table is the name of its folder: letters, digits, '_', '-' and '.', at most 100. Got {name!r}.",
                field="tables",
            )


def check_published_columns(tables: Mapping[str, Sequence[str]], confidential: Sequence[str]) -> None:
    """Refuse a table of record keys, identifiers, counts or weights: they would be published as codes."""
    for name, columns in tables.items():
        found = next((column for column in columns if column in confidential), None)
        if found is not None:
            raise InvalidCode(
                f"Table {name!r} names column {found!r}, which holds keys, identifiers, counts or weights: they would be published as "
                "codes. Leave it out of the table."
            )


def columns_of(name: str, given: Sequence[str] | Mapping[str, Sequence[str]] | Universe) -> list[str]:
    if isinstance(given, str):
        raise InvalidParameter(f"A table is a list of columns. Got the text {given!r}. Write [{given!r}].")
    if isinstance(given, set | frozenset):
        raise InvalidParameter(f"Table {name!r} has a set of columns, which has no order. Give a list.", field="tables")
    columns = list(given.columns if isinstance(given, Universe) else given)
    twice = next((column for place, column in enumerate(columns) if column in columns[:place]), None)
    if twice is not None:
        raise InvalidParameter(f"Table {name!r} names column {twice!r} twice. Name it once.", field="tables")
    return columns


def _with_keys(table: Table, rule: CellKeys, secret: RecordKeys | None) -> tuple[Any, str, str, str]:
    """The cells of a table, the column that its keys came from, and the columns of keys and counts here."""
    if table.key_sums is None:
        raise InvalidParameter("The table has no cell keys. Name their column when it is read: record_key or cell_key.")
    if secret is not None:
        raise InvalidParameter(
            "A Table has cell keys, and no identifiers to make keys from. Leave secret out, or give records.", field="secret"
        )
    rule.check_sums(table.key_sums)
    frame = table.universe.frame().append_column("count", arrow_numbers(table.counts))
    return frame.append_column("key", arrow_numbers(table.key_sums.sums)), table.key_sums.column, "key", "count"


def _rows(source: Source, session: Session, wanted: list[str], others: list[str], columns: Columns, space: KeySpace) -> str:
    """SQL for the input with columns c0, c1, ... of codes, k the key, and n and w where there are counts and weights.

    Whatever is slow to read again is read once, into a table of the session; a Parquet file with integer keys is read in place.
    """
    import pyarrow as pa

    places = [*code_places(source, tuple(wanted)), *find_columns(source, others, wanted)]
    types = source.types()
    kinds = {name: (f"c{len(wanted) + at}", types[places[len(wanted) + at]]) for at, name in enumerate(others)}
    column, kind = kinds[columns.key]
    key = record_key_sql(kind, column, columns.key, source.label, size=space.size, digits=space.digits, advice=space.rule)
    fields = [f"c{at}" for at in range(len(wanted))]
    if columns.count is not None:
        count = _count_sql(*kinds[columns.count], columns.count, source.label)
        key = f"CASE WHEN {count} > 0 OR {key} = 0 THEN {key} END"  # the sum of no keys is 0
        fields.append(f"{count} AS n")
    fields.append(f"{key} AS k")
    if columns.weight is not None:
        fields.append(f"{_weight_sql(*kinds[columns.weight], columns.weight, source.label)} AS w")
    if columns.identifier is not None:
        fields.append(f"{kinds[columns.identifier][0]} AS i")
    sql = f"SELECT {', '.join(fields)} FROM {source.scan(session, places)}"
    rows = f"({sql})"
    if not (isinstance(source, ParquetSource) and pa.types.is_integer(kind)):
        run_guarded(source.label, lambda: session.connection.execute(f"CREATE TEMP TABLE records AS {sql}"))
        rows = "records"
    if columns.identifier is not None:
        check_identifier(source, session, rows, "i", columns.identifier, 1, ONE_RECORD)
    return rows


def _check_all(source: Source, session: Session, rows: str, columns: Columns, space: KeySpace) -> None:
    """What is asked of all rows together: counts that add up within 64 bits, and keys that fill their space. Sums of keys of separate
    cells are uniform as keys are, so that both are held against the declared space.
    """
    filled = "" if columns.count is None else " FILTER (n > 0)"
    total = "count(*)" if columns.count is None else "coalesce(sum(n), 0)"
    asked = f"max(k)::VARCHAR, (min(k){filled})::VARCHAR, count(k){filled}, count(k) = count(*), {total}::VARCHAR"
    found = run_guarded(source.label, lambda: session.connection.sql(f"SELECT {asked} FROM {rows}").fetchall())
    ((largest, smallest, members, is_whole, records),) = found
    if int(records) > LARGEST_COUNT:
        raise InvalidCount(
            f"The counts in column {columns.count!r} of {source.label} add up to more than {LARGEST_COUNT}. Check that it is the column "
            "of counts."
        )
    if not (is_whole and members):
        return
    if any(do_not_fill(reach, members, space.size) for reach in (int(largest), space.size - 1 - int(smallest))):
        raise InvalidCount(
            f"The keys in column {columns.key!r} of {source.label} do not fill 0 to {space.size - 1}: all lie nearer to one end than such "
            "keys can be expected to, and most cells would get the same noise. Say what the keys are, for example keys=KeySpace(256) (on "
            "the command line: --keys 256), or make new ones with RecordKeys."
        )


def _count(
    source: Source,
    session: Session,
    rows: str,
    columns: tuple[str, ...],
    places: list[int],
    declared: Universe | None,
    rule: CellKeys,
    noise: PerturbationTable,
    others: Columns,
    keys: CellKeySums,
    allow_similar_codes: bool,
) -> tuple[Universe, Ints, CellKeySums]:
    """The cells of a declared universe; or of those that occur the ones that are published as another number than 0: a cell that is
    listed with 0 would be known to have records.
    """
    names = ", ".join(f"c{place}" for place in places)
    size = "count(*)" if others.count is None else "sum(n)::BIGINT"
    sums = [f"{size} AS n", f"{rule.sum_sql('k')} AS k", "count(k) AS keyed", "count(*) AS found"]
    sums += [] if others.count is None else ["count(n) AS counted"]
    sums += [] if others.weight is None else ["sum(w)::HUGEINT::VARCHAR AS w", "count(w) AS weighed"]
    selected = ", ".join([*(f"c{place} AS c{at}" for at, place in enumerate(places)), *sums])
    sql = f"SELECT {selected} FROM {rows}{' GROUP BY ' + names if names else ''}"
    counted = run_guarded(source.label, lambda: session.connection.sql(sql).to_arrow_table().combine_chunks())
    # Counts before keys: a row without a count has no key either.
    for found, what, column in (("counted", "n", others.count), ("keyed", "k", others.key), ("weighed", "w", others.weight)):
        if found in counted.column_names and counted.column(found) != counted.column("found"):
            raise _first_invalid(source, session, rows, what, str(column), rule.records)
    if not counted.num_rows or (not columns and counted.column("found")[0].as_py() == 0):
        raise EmptyTable(f"There are no records in {source.label}. Check the file or the query.")
    counts = counted.column("n").to_numpy().astype(np.int64)
    weights = None if others.weight is None else np.array([int(total) for total in counted.column("w").to_pylist()], dtype=object)
    own = replace(keys, sums=counted.column("k").to_numpy().astype(np.uint64), weights=weights)
    if not columns:
        return Universe.product({TOTAL: [ALL]}, allow_total_names=True), counts, own
    groups = code_arrays(source, columns, counted)
    if declared is not None:
        cells = places_of_groups(source, declared, groups)
        spread = np.zeros(len(declared), np.int64)
        spread[cells] = counts
        return declared, spread, own.spread(cells, len(declared))
    allow = Allow(allow_similar_codes, totals=True)
    universe, order = observed_universe(source, columns, groups, allow)
    shown = np.flatnonzero(add_noise(counts, own, noise, rule))
    if not len(shown):
        raise EmptyTable(f"Every cell by {', '.join(columns)} is published as 0, so the table would be empty. Leave it out.")
    if len(shown) < len(counts):
        universe, order = observed_universe(source, columns, [array.take(shown) for array in groups], allow)
    return universe, counts[shown][order], own.of(shown[order])


def _declared_universe(given: Sequence[str] | Mapping[str, Sequence[str]] | Universe, allow_similar_codes: bool) -> Universe | None:
    """The cells that are known before any record is seen; None for a list of columns."""
    if isinstance(given, Mapping):
        return Universe.product(given, allow_similar_codes=allow_similar_codes, allow_total_names=True)
    return given if isinstance(given, Universe) else None


def _count_sql(column: str, kind: Any, name: str, source: str) -> str:
    """SQL for counts, or NULL where none stands. A cell's key is a sum of its records' keys: an empty cell adds none."""
    import pyarrow as pa

    if pa.types.is_integer(kind):
        return f"CASE WHEN {column} BETWEEN 0 AND {LARGEST_COUNT} THEN {column}::BIGINT END"
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        number = f"CASE WHEN regexp_full_match({column}, '0|[1-9][0-9]{{0,18}}') THEN {column}::HUGEINT END"
        return f"CASE WHEN {number} <= {LARGEST_COUNT} THEN {number}::BIGINT END"
    raise InvalidCount(f"Counts must be whole numbers. Column {name!r} of {source} has type {kind}. Cast it to integers at the source.")


def _weight_sql(column: str, kind: Any, name: str, source: str) -> str:
    """SQL for weights times 10^6, or NULL where none stands."""
    import pyarrow as pa

    scale = 10**WEIGHT_DIGITS
    if pa.types.is_integer(kind):
        return f"CASE WHEN {column} >= 0 THEN {column}::HUGEINT * {scale} END"
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    if not (is_text or pa.types.is_decimal(kind)):
        raise OutOfScope(
            f"Weights must be integers, exact decimals or text, so that they add up exactly. Column {name!r} of {source} has type {kind}. "
            f"Write them as text or decimals, with at most {WEIGHT_DIGITS} digits after the point."
        )
    digits = f"'[0-9]{{1,18}}(\\.[0-9]{{1,{WEIGHT_DIGITS}}}0*)?'"
    text = f"{column}::VARCHAR"
    return f"CASE WHEN regexp_full_match({text}, {digits}) THEN ({text}::DECIMAL(38, {WEIGHT_DIGITS}) * {scale})::HUGEINT END"


def _first_invalid(source: Source, session: Session, rows: str, what: str, column: str, space: KeySpace) -> InvalidCount:
    """The error for the first row where no valid key, count or weight stands."""
    first = f"SELECT min(row) FROM (SELECT row_number() OVER () AS row, {what} FROM {rows}) WHERE {what} IS NULL"
    ((row,),) = run_guarded(source.label, lambda: session.connection.sql(first).fetchall())
    kinds = {
        "k": ("a key", f"{space.rule} The key of an empty cell is 0, a sum of no keys."),
        "n": ("a count", "A count is a whole number from 0 to 2^62 - 1 in plain digits."),
        "w": ("a weight", f"A weight is a number of zero or more, with at most {WEIGHT_DIGITS} digits after the point."),
    }
    name, advice = kinds[what]
    return InvalidCount(f"This is not {name}: column {column!r}, row {row} of {source.label}. {advice}")
