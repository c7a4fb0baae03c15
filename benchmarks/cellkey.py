"""Group `cellkey`: ten tables by the cell key method beside the bare counting of the same tables in DuckDB, and record keys in bulk."""

from __future__ import annotations

import tempfile
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.report import Bar, Report, Row, Table, number
from benchmarks.timing import Steps, best_of, load, machine
from holdfast.cellkey import KeySpace, PerturbationTable, RecordKeys, tabulate
from holdfast.mechanisms import CellKey
from holdfast.publication.pipeline import release
from holdfast.tables.columns import arrow_numbers

MOST_TIMES, MOST_KEY_SECONDS = 3, 10
TABLES = 10
HEADERS = ("source", "records", "cells of a table", "bare s", "ours s", "× bare")
KEY_HEADERS = ("keys", "records", "seconds", "ns/record")
SPACES = (KeySpace.bits(32), KeySpace.bits(64), KeySpace.decimals(8))
NOISE = PerturbationTable.from_probabilities({n: {v: Fraction(1, 2 * n + 1) for v in range(-n, n + 1)} for n in range(1, 6)}, 2**16)


def run(*, records: int = 10**7, regions: int = 1000, codes: int = 100, rounds: int = 3) -> Report:
    """Measure tabulation with and without keys, and making keys."""
    load_before = load()
    with Steps("cellkey", 2 + len(SPACES)) as steps, tempfile.TemporaryDirectory() as folder:
        frame = _records(records, regions, codes)
        path = Path(folder) / "records.parquet"
        _write(frame, path)
        rows = []
        for name, source, scan in (("Parquet", path, f"read_parquet('{path}')"), ("Arrow in memory", frame, "frame")):
            best = best_of(rounds, {"bare": partial(_bare, frame, scan), "ours": partial(_ours, source)})
            ratio = best["ours"] / best["bare"]
            figures = (f"{records:,}", f"{regions * codes:,}", number(best["bare"]), number(best["ours"]), number(ratio))
            rows.append(Row(name, figures, (Bar("× bare", ratio, MOST_TIMES),)))
            steps.done(f"cellkey: {name}")
        made = []
        for space in SPACES:
            seconds = _seconds_of_keys(records, space)
            made.append(
                Row(str(space), (f"{records:,}", number(seconds), number(seconds / records * 1e9)), (Bar("s", seconds, MOST_KEY_SECONDS),))
            )
            steps.done(f"cellkey: keys, {space}")
    tables = (Table(f"{TABLES} tables", HEADERS, rows), Table("Record keys from identifiers", KEY_HEADERS, made))
    notes = (
        "Processor time, all threads. Bare is `SELECT codes, count(*) ... GROUP BY codes` in DuckDB for each table, in turns with ours, "
        "which counts, adds up and checks keys, plans the release and looks noise up.",
        "Identifiers are ten digits as text, all different; that they are is checked within the time.",
    )
    return Report("Benchmark group cellkey", f"{machine()}; load {load_before} before, {load()} after", tables, notes)


def _records(records: int, regions: int, codes: int) -> Any:
    import pyarrow as pa

    rng = np.random.default_rng(1)

    def column(size: int) -> Any:
        return pa.DictionaryArray.from_arrays(
            arrow_numbers(rng.integers(0, size, records, dtype=np.int32)), pa.array([f"c{code:04d}" for code in range(size)])
        )

    columns = {"region": column(regions)} | {f"v{place}": column(codes) for place in range(TABLES)}
    return pa.table(columns | {"record_key": arrow_numbers(rng.integers(0, 2**32, records, dtype=np.uint32))})


def _write(frame: Any, path: Path) -> None:
    import pyarrow.parquet as pq

    pq.write_table(frame, path)


def _bare(frame: Any, scan: str) -> list[Any]:
    import duckdb

    with duckdb.connect() as connection:
        connection.register("frame", frame)
        queries = (f"SELECT region, v{place}, count(*) AS n FROM {scan} GROUP BY region, v{place}" for place in range(TABLES))
        return [connection.sql(query).to_arrow_table() for query in queries]


def _ours(source: Any) -> object:
    mechanism = CellKey(table=NOISE)
    tables = tabulate(source, {f"t{place}": ["region", f"v{place}"] for place in range(TABLES)}, mechanism)
    return release(tables, [], mechanism, ledger=None)


def _seconds_of_keys(records: int, space: KeySpace) -> float:
    import pyarrow as pa

    identifiers = pa.array(np.arange(records) + 10**9).cast(pa.string())
    keys = RecordKeys.for_tests("benchmark")
    return best_of(1, {"keys": lambda: keys.keys(identifiers, space)})["keys"]
