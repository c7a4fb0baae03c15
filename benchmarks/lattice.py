"""Group `lattice`: from a file of counts to classified blocks, in time and memory; tabulating records against the bare DuckDB query."""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.report import Bar, Report, Row, Table, number
from benchmarks.timing import Steps, best_of, fresh_interpreter, load, machine
from holdfast import tables
from holdfast.research.synth import cells_for, synthesize

SIZES = (10**5, 10**6, 10**7)
RECORDS = 10**7
ROW_GROUP = 2**20
LEEWAY = 1.3
"""Ten times the cells may cost 13 times as much and still count as linear."""
MOST_DUCKDB = 2
ABSENT = "absent"

BY = ("county", "sex", "age")
QUERY = f"SELECT {', '.join(BY)}, count(*) AS n FROM read_parquet(?) GROUP BY {', '.join(BY)}"

HEADERS = (
    "table",
    "cells",
    "file MB",
    "read s",
    "compile s",
    "blocks s",
    "all s",
    "user s",
    "system s",
    "CPU µs/cell",
    "MB",
    "bytes/cell",
    "blocks by kind",
)
GROWTH = ("from, to", "× cells", "× read", "× compile", "× blocks", "× all", "× user", "× CPU", "× MB", "CPU × per cell", "MB × per cell")

_CHILD = """
import json, resource, sys, time
from holdfast.invariants import margin
from holdfast.invariants.rows import compile_rows
from holdfast.lattices import Lattice
from holdfast.tables import Table

def classify(path):
    used, began = usage(), time.perf_counter()
    table = Table.from_counts(path, {columns!r}, {count!r})
    read = time.perf_counter()
    kept = compile_rows(table.universe, [margin(column) for column in {keep!r}])
    compiled = time.perf_counter()
    found = Lattice.from_kept(kept)
    found.rank, found.blocks.kinds()
    ended, now = time.perf_counter(), usage()
    seconds = [read - began, compiled - read, ended - compiled]
    return found, seconds, now.ru_utime - used.ru_utime, now.ru_stime - used.ru_stime

def usage():
    return resource.getrusage(resource.RUSAGE_SELF)

def peak():
    return usage().ru_maxrss * (1 if sys.platform == "darwin" else 1024)

classify({warm!r})
before = peak()
found, seconds, user, system = classify({path!r})
print(json.dumps([found.cells, seconds, user, system, peak() - before, found.blocks.kinds()]))
"""


@dataclass(frozen=True)
class Case:
    """A file of counts, its columns, and those whose margins are kept; `warm` is a small file of the same kind. No file: no path."""

    name: str
    columns: Sequence[str]
    count: str
    keep: Sequence[str]
    path: Path | None
    warm: Path

    def program(self) -> str:
        given = {"columns": list(self.columns), "count": self.count, "keep": list(self.keep)}
        return _CHILD.format(**given, path=str(self.path), warm=str(self.warm))


@dataclass(frozen=True)
class Figures:
    """One run of one case in a process of its own: wall time by stage, processor time, and by how many bytes its peak memory grew."""

    cells: int
    seconds: tuple[float, ...]
    user: float
    system: float
    grown: int
    kinds: Mapping[str, int]

    @property
    def total(self) -> float:
        return sum(self.seconds)

    @property
    def processor(self) -> float:
        return self.user + self.system

    def row(self, case: Case) -> Row:
        assert case.path is not None
        times = (*self.seconds, self.total, self.user, self.system, 1e6 * self.processor / self.cells)
        kinds = ", ".join(f"{count:,} {kind}" for kind, count in self.kinds.items())
        memory = (number(self.grown / 1e6), number(self.grown / self.cells))
        file_mb = number(case.path.stat().st_size / 1e6)
        return Row(case.name, (f"{self.cells:,}", file_mb, *(f"{value:.3f}" for value in times), *memory, kinds))


def measure(case: Case) -> Figures:
    """A fresh process, so that its peak is its own. Libraries load, and the allocator warms up, on the small file."""
    cells, seconds, user, system, grown, kinds = json.loads(fresh_interpreter(case.program(), small_parent=True))
    return Figures(cells, tuple(seconds), user, system, grown, kinds)


def growth(small: Figures, large: Figures, judged: bool) -> Row:
    """How much more the larger table costs; where it is judged, against the cells it has more."""
    cells, total, user = large.cells / small.cells, large.total / small.total, _ratio(large.user, small.user)
    processor, memory = _ratio(large.processor, small.processor), _ratio(large.grown, small.grown)
    stages = [b / a for a, b in zip(small.seconds, large.seconds, strict=True)]
    limit = LEEWAY * round(cells)
    bars = (Bar("× all", total, limit), Bar("× CPU", processor, limit), Bar("× MB", memory, limit)) if judged else ()
    per_cell = (None if processor is None else processor / cells, None if memory is None else memory / cells)
    figures = (cells, *stages, total, user, processor, memory, *per_cell)
    return Row(f"{small.cells:,} to {large.cells:,} cells", tuple(map(number, figures)), bars)


def _ratio(large: float, small: float) -> float | None:
    """None where the smaller figure is below what the system counts in."""
    return large / small if small > 0 else None


def synthetic_case(n: int, folder: Path, warm: Path) -> Case:
    """At least n cells, blocks by sex and age, with the totals of states, counties and tracts."""
    frame = cells_for(n)
    path = folder / f"cells {n}.parquet"
    write_in_groups(frame, path)
    return Case(f"synthetic, {n:,}", frame.column_names[:-1], "count", ("state", "county", "tract"), path, warm)


def tract_case(folder: Path) -> Case:
    """The tracts of the shared data with the totals of states and counties."""
    shared = os.environ.get("HOLDFAST_SHARED")
    path = (Path(shared) if shared else Path(__file__).parents[2] / "shared") / "data" / "tract_pop_2010.csv"
    warm = folder / "few tracts.csv"
    if path.is_file():
        with path.open(encoding="utf-8") as lines:
            warm.write_text("".join(islice(lines, 20)), encoding="utf-8")
    keep = ("state_fips", "county_fips")
    return Case("tracts of 2010", (*keep, "tract_geoid"), "pop2010", keep, path if path.is_file() else None, warm)


def write_in_groups(frame: Any, path: Path) -> None:
    """Parquet whose bytes per row do not depend on the size: each group of rows gets a dictionary of the codes it has, not of them all."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    plain = pa.schema([(field.name, getattr(field.type, "value_type", field.type)) for field in frame.schema])
    with pq.ParquetWriter(path, plain) as writer:
        for low in range(0, frame.num_rows, ROW_GROUP):
            writer.write_table(frame.slice(low, ROW_GROUP).cast(plain))


def tabulating(records: int, rounds: int, folder: Path, steps: Steps) -> Row:
    """`Table.from_records` against the query alone, over the same file, each with a connection of its own."""
    import duckdb

    population = synthesize(records)
    path = population.save(folder / "records.parquet", what="records")
    expected = population.counts("county", by=BY[1:])
    universe = tables.Universe.listed(expected, BY)
    steps.done("lattice: records made")

    def ours() -> Any:
        return tables.Table.from_records(path, universe=universe)

    def bare() -> Any:
        with duckdb.connect(":memory:") as connection:
            return connection.sql(QUERY, params=[str(path)]).to_arrow_table()

    assert np.array_equal(ours().counts, expected["count"].to_numpy())
    groups = bare()
    assert sum(groups["n"].to_pylist()) == records
    best = best_of(rounds, {"ours": ours, "bare": bare}, lambda: steps.done("lattice: tabulating"), clock=time.perf_counter)
    ratio = best["ours"] / best["bare"]
    figures = (f"{len(universe):,}", f"{groups.num_rows:,}", f"{best['ours']:.3f}", f"{best['bare']:.3f}", f"{ratio:.2f}")
    return Row(f"{records:,} records by {', '.join(BY)}", figures, (Bar("× DuckDB", ratio, MOST_DUCKDB),))


def run(*, sizes: Sequence[int] = SIZES, records: int = RECORDS, rounds: int = 3) -> Report:
    """Measure everything; files are made in a temporary folder that is removed."""
    load_before = load()
    total_steps = len(sizes) + rounds * (len(sizes) + 1) + 1 + rounds
    with tempfile.TemporaryDirectory(prefix="holdfast-bench-") as made, Steps("lattice", total_steps) as steps:
        folder = Path(made)
        warm = folder / "few cells.parquet"
        write_in_groups(cells_for(1), warm)
        cases = [tract_case(folder)]
        for n in sizes:
            cases.append(synthetic_case(n, folder, warm))
            steps.done(f"lattice: {n:,} cells made")
        best: dict[str, Figures] = {}
        for _ in range(rounds):  # in turns, so that a slow spell of the machine meets all sizes
            for case in cases:
                if case.path is not None:
                    found = measure(case)
                    best[case.name] = min(best.get(case.name, found), found, key=lambda figures: figures.total)
                steps.done(f"lattice: {case.name}")
        absent = (ABSENT, *[""] * (len(HEADERS) - 2))
        rows = [best[case.name].row(case) if case.name in best else Row(case.name, absent) for case in cases]
        synthetic = [best[case.name] for case in cases[1:]]
        pairs = list(pairwise(synthetic))
        counted = tabulating(records, rounds, folder, steps)
    shown = (
        Table("From file to classified blocks", HEADERS, rows),
        Table("Growth", GROWTH, [growth(*pair, judged=pair is pairs[-1]) for pair in pairs]),
        Table("Tabulating records", ("records", "cells", "groups", "ours s", "DuckDB s", "× DuckDB"), [counted]),
    )
    packages = ", ".join(f"{package} {metadata.version(package)}" for package in ("duckdb", "pyarrow", "scipy"))
    return Report("Benchmark group lattice", f"{machine()}; {packages}; load {load_before} before, {load()} after", shown, _notes(rounds))


def _notes(rounds: int) -> list[str]:
    return [
        f"read, compile, blocks and their sum, all: wall time, the best of {rounds} rounds. In a round each table is read once, by a "
        "process of its own that has loaded all libraries on a small table of the same kind. A row shows one round, that with the least "
        "time in all. user, system: processor time of the same, all threads. Beside other work wall time favours the smaller tables, "
        "processor time does not; system time is mostly the kernel's, for handing out fresh memory.",
        "read: `Table.from_counts` (duplicate cells looked for). compile: `compile_rows` of the margins kept, states and counties, in the "
        "synthetic tables also tracts. blocks: `Lattice.from_kept`, rank and kinds. Together they are what `lattice()` does after a read.",
        "MB, bytes/cell: the peak memory of the process (`ru_maxrss`) less its peak after the small table; beside few cells it is mostly "
        "buffers that do not grow.",
        f"Synthetic: `holdfast.research.synth.cells_for`, blocks by sex and age, saved as Parquet in groups of {ROW_GROUP:,} rows with a "
        "dictionary each, so that bytes per cell in the file are alike at all sizes. Tracts: the CSV file of the shared data; "
        f"`{ABSENT}` where there is none (HOLDFAST_SHARED names the folder that holds data/).",
        f"Growth: the bar on the largest step, {LEEWAY:g} times the growth in cells (13 for ten times the cells), is our own reading of "
        '"linearly": small tables stay in caches and in memory the process already holds, large ones do not. CPU is user and system.',
        "Tabulating: `Table.from_records` over a declared universe, from opening the file to checked counts, against the same GROUP BY "
        f"alone, fetched as Arrow. Both open a DuckDB of their own with its default threads ({os.cpu_count()} here) and take turns; wall "
        f"time, best of {rounds}, after one run of each whose counts are checked against the population's.",
    ]
