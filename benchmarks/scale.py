"""Group `scale`: census tables of a million cells and more, from a Parquet file to a verified folder, stage by stage, beside DuckDB."""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from benchmarks.report import Bar, Report, Row, Table, number
from benchmarks.scale_input import run_file, write_input
from benchmarks.timing import Steps, fresh_interpreter, load, machine

SIZES = (10**6, 10**7)
LARGE = 10**8
"""Measured, too, where HOLDFAST_BENCH_LARGE is set."""
WARM = 100_000
"""Cells of a table that every process releases first, with levels and without, to load libraries and compiled loops."""
MOST_RELEASE, MOST_VERIFY = 6, 4
"""Times what DuckDB takes to read and rewrite the same file."""
MOST_MB = {10**7: 1_500, 10**8: 8_000}
MOST_SIZE, MOST_BYTES = 1.5, 2
"""The released file: times the input, and bytes a cell beside that."""
SLOWER, LEAST = 1.2, 0.1
"""A stage is slower if it takes more than so many times what it took, over DuckDB's time, and this part of that time more."""
RESULTS = Path(__file__).parent / "results" / "scale.md"

RELEASE = ("read", "plan", "draw", "table", "pages", "rest")
VERIFY = ("read again", "promise", "compare")
TOTALS = ("all s", "CPU s", "DuckDB s", "× DuckDB", "peak MB")
STEPS = {"Drawing": "draw", "Writing the table": "table", "Writing the pages": "pages", "Recomputing the promise": "promise"}
COPY = "COPY (FROM read_parquet('{}')) TO '{}' (FORMAT parquet)"


class Slower(RuntimeError):
    """Some stage takes longer than it did when the committed file was written."""


@dataclass(frozen=True)
class Measured:
    """What one process found: seconds by stage, of the processor in all, and its peak memory in bytes."""

    seconds: Mapping[str, float]
    processor: float
    peak: int

    @property
    def all(self) -> float:
        return sum(self.seconds.values())


class Stages:
    """Seconds by stage. What is done inside a step of Holdfast counts for the stage of that step, other time for the current stage."""

    def __init__(self, first: str) -> None:
        self.seconds: dict[str, float] = {}
        self._stage, self._since, self._around = first, time.perf_counter(), [first]
        self._processor = time.process_time()

    def begin(self, stage: str) -> None:
        """The current stage is over; the next one begins."""
        now = time.perf_counter()
        self.seconds[self._stage] = self.seconds.get(self._stage, 0.0) + now - self._since
        self._stage, self._since = stage, now

    def watch(self, name: str, done: int, total: int) -> None:
        """As `display.watching` calls it: a step begins, moves on, or is over."""
        stage = STEPS.get(name)
        if stage is None:
            return
        if done == 0 and self._stage != stage:
            self.begin(stage)
        elif done == total and self._stage == stage:
            self.begin("compare" if stage == "promise" else "rest")

    def measured(self) -> Measured:
        self.begin("")
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        return Measured({name: found for name, found in self.seconds.items() if name}, time.process_time() - self._processor, peak)


def release(run: Path, folder: Path) -> Measured:
    """What the command does from the run file to the folder, without a ledger."""
    from holdfast.display import watching
    from holdfast.publication.folder import Output
    from holdfast.publication.order import Order
    from holdfast.publication.pipeline import carry_out, plan_release
    from holdfast.runfiles.runfile import load_run

    stages = Stages("read")
    with watching(stages.watch):
        given = load_run(run)
        table = given.read_table()
        stages.begin("plan")
        plan = plan_release(table, given.keep, given.mechanism, None, order := Order(given.id))
        plan.expected_error  # noqa: B018  # as the command does before it draws
        stages.begin("rest")
        carry_out(plan, table, order, Output(folder, given.formats))
    return stages.measured()


def verify(folder: Path) -> Measured:
    """What anyone does with the folder."""
    from holdfast.display import watching
    from holdfast.verification.verify import verify as verify_folder

    stages = Stages("read again")
    with watching(stages.watch):
        verify_folder(folder)
    return stages.measured()


def duckdb(source: Path, target: Path) -> Measured:
    """Read and rewrite a Parquet file."""
    from duckdb import connect

    with connect() as connection:
        connection.execute("SET enable_progress_bar = false")  # it would stand among the figures
        stages = Stages("copy")
        connection.execute(COPY.format(source, target))
        return stages.measured()


def child(what: str, *paths: str) -> None:
    """Run one of these in this process, after a small table, and print what it measured."""
    work: dict[str, Callable[..., Measured]] = {"release": release, "verify": verify, "duckdb": duckdb}
    if what != "duckdb":
        with tempfile.TemporaryDirectory(prefix="holdfast-bench-") as made:
            place = Path(made)
            write_input(place / "few.parquet", WARM)
            for levels in (False, True):
                (place / "run.toml").write_text(run_file("few.parquet", "few", levels=levels), encoding="utf-8")
                release(place / "run.toml", folder := place / f"out {levels}")
                verify(folder)
    found = work[what](*map(Path, paths))
    print(json.dumps([dict(found.seconds), found.processor, found.peak]))


def _measure(what: str, *paths: Path) -> Measured:
    """In a process of its own."""
    program = f"from benchmarks.scale import child; child({what!r}, *{[str(path) for path in paths]!r})"
    return Measured(*json.loads(fresh_interpreter(program, small_parent=True)))


def _least(measures: Sequence[Measured]) -> Measured:
    return min(measures, key=lambda found: found.all)


def measure(cells: int, levels: bool, rounds: int, place: Path, done: Callable[[], None]) -> tuple[Row, Row]:
    """One table, in turns with DuckDB: the rows of its release and of its check."""
    source, run, folder, copy = place / f"{cells}.parquet", place / "run.toml", place / "out", place / "copy.parquet"
    if not source.exists():
        write_input(source, cells)
    run.write_text(run_file(source.name, f"scale-{cells}", levels=levels), encoding="utf-8")
    found: dict[str, list[Measured]] = {"release": [], "duckdb in": [], "verify": [], "duckdb out": []}
    for _ in range(rounds):
        shutil.rmtree(folder, ignore_errors=True)
        found["duckdb in"].append(_measure("duckdb", source, copy))
        found["release"].append(_measure("release", run, folder))
        found["duckdb out"].append(_measure("duckdb", folder / "table.parquet", copy))
        found["verify"].append(_measure("verify", folder))
    released = (folder / "table.parquet").stat().st_size
    shutil.rmtree(folder)
    copy.unlink()
    done()
    best = {name: _least(measures) for name, measures in found.items()}
    name = f"{cells:,} cells{', with levels' if levels else ''}"
    room = MOST_SIZE * source.stat().st_size + MOST_BYTES * cells
    size = Bar("× the room of its file", released / room, 1)
    return (
        _row(name, RELEASE, best["release"], best["duckdb in"], MOST_RELEASE, cells, [f"{released / 1e6:.1f}"], [size]),
        _row(name, VERIFY, best["verify"], best["duckdb out"], MOST_VERIFY, cells, [], []),
    )


def _row(
    name: str, stages: Sequence[str], ours: Measured, rival: Measured, most: float, cells: int, more: Sequence[str], bars: Sequence[Bar]
) -> Row:
    ratio, peak = ours.all / rival.all, ours.peak / 1e6
    totals = (f"{ours.all:.2f}", f"{ours.processor:.2f}", f"{rival.all:.2f}", number(ratio), f"{peak:,.0f}")
    memory = [Bar("MB", peak, MOST_MB[cells])] if cells in MOST_MB else []
    parts = (f"{ours.seconds.get(stage, 0.0):.2f}" for stage in stages)
    return Row(name, (*parts, *totals, *more), (Bar("× DuckDB", ratio, most), *memory, *bars))


def stage_ratios(page: str) -> dict[tuple[str, str], float]:
    """(table, stage) and its seconds over those of DuckDB, from a page of results."""
    found: dict[tuple[str, str], float] = {}
    for block in page.split("\n## ")[1:]:
        lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in block.splitlines() if line.startswith("|")]
        if not lines or "DuckDB s" not in (header := lines[0]):
            continue
        for row in lines[2:]:
            values: dict[str, Any] = dict(zip(header, row, strict=True))
            for stage in (*RELEASE, *VERIFY):
                if re.fullmatch(r"[0-9.]+", values.get(f"{stage} s", "")):
                    found[row[0], stage] = float(values[f"{stage} s"]) / float(values["DuckDB s"])
    return found


def slower_stages(before: str, now: str) -> list[str]:
    """What takes longer on the second page than on the first, over DuckDB's time in the same run."""
    known = stage_ratios(before)
    return [
        f"{stage} of {name}: {ratio:.2f} times DuckDB, {known[name, stage]:.2f} before"
        for (name, stage), ratio in stage_ratios(now).items()
        if (name, stage) in known and ratio > SLOWER * known[name, stage] and ratio - known[name, stage] > LEAST
    ]


def run(*, sizes: Sequence[int] | None = None, rounds: int = 3, results: Path = RESULTS) -> Report:
    """Measure every size with and without levels. Slower is raised before the page of results is replaced."""
    chosen = (*SIZES, *([LARGE] if os.environ.get("HOLDFAST_BENCH_LARGE") else [])) if sizes is None else sizes
    load_before = load()
    releases, checks = [], []
    with tempfile.TemporaryDirectory(prefix="holdfast-bench-") as made, Steps("scale", 2 * len(chosen)) as steps:
        for cells in chosen:
            for levels in (False, True):
                name = f"scale: {cells:,} cells"
                own = rounds if cells <= SIZES[-1] else 1
                one, other = measure(cells, levels, own, Path(made), lambda name=name: steps.done(name))  # type: ignore[misc]
                releases.append(one)
                checks.append(other)
    shown = (
        Table("Release", ("table", *(f"{stage} s" for stage in RELEASE), *TOTALS, "file MB"), releases),
        Table("Verify", ("table", *(f"{stage} s" for stage in VERIFY), *TOTALS), checks),
    )
    packages = ", ".join(f"{package} {metadata.version(package)}" for package in ("duckdb", "pyarrow"))
    about = f"{machine()}; {packages}; load {load_before} before, {load()} after"
    report = Report("Benchmark group scale", about, shown, _notes(rounds))
    if results.exists() and (slower := slower_stages(results.read_text(encoding="utf-8"), report.markdown())):
        raise Slower(f"{'; '.join(slower)}. Find out why; if it has to be, remove {results.name} and measure again.")
    return report


def _notes(rounds: int) -> list[str]:
    return [
        "Made-up census tables (benchmarks/scale_input.py): blocks in tracts in counties in states, ten cells of sex by age in each block. "
        "State totals are kept, with Gaussian noise of rho 1/10 a person; with levels: with shares for each of them.",
        f"Wall time, all cores, the best of {rounds} rounds by its sum (one above {SIZES[-1]:,} cells); in every round DuckDB and we take "
        "turns, each in a process of its own, ours after it released small tables. CPU s: of all threads. peak MB: of the whole process.",
        "Release, as the command does it without a ledger, from the run file to the folder: read (the input), plan (with all its figures), "
        "draw, table (writing it), pages (facts and pages), rest (exposure, checks, kept totals, card, checksums). Formats: Parquet.",
        "Verify: read again (checksums, the table), promise (the plan made again), compare (what card, table, lists and pages say).",
        "DuckDB s: read_parquet and COPY of the same file, of the input for the release and of the released table for its check. The room "
        f"of the released file: {MOST_SIZE:g} times the input and {MOST_BYTES} bytes a cell.",
        f"The group fails if a stage takes over {SLOWER:g} times as long as on the page before, in units of DuckDB's time, and over "
        f"{LEAST:g} of that time longer. HOLDFAST_BENCH_LARGE=1 adds {LARGE:,} cells.",
    ]
