"""Group `conditional`: noise within bounds. The paper's table by its own chain, by line_gibbs and exactly; all counties in one release."""

from __future__ import annotations

import csv
import os
import time
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from importlib import metadata
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import holdfast as hf
from benchmarks.paper_table import AGES, BLOCK, MINORS, SOLVED, TABLE, class_moves, sexes_and_ages
from benchmarks.report import NOT_RUN, Bar, Report, Row, Table, number
from benchmarks.timing import Call, Steps, best_of, load, machine
from holdfast.chains.line_gibbs import LineGibbs
from holdfast.chains.moves import ListedMoves
from holdfast.chains.target import ChainTarget
from holdfast.invariants.constraints import Constraint
from holdfast.randomness import NoiseKey
from holdfast.research.chains.diagnostics import autocorrelation_time
from holdfast.research.chains.independent_metropolis import IndependentMetropolis
from holdfast.samplers.bounded_block import BoundedBlock
from holdfast.samplers.bounded_classes import BoundedClasses

HALF = Fraction(1, 2)
PAPER_RATE = Fraction(3, 5)
GRID = tuple(Fraction(percent, 100) for percent in (40, 50, 55, 60, 65, 70, 80, 90))
LEAST_EXACT, LEAST_LINE = 50, 10
FLAT = Fraction(14, 1000), Fraction(18, 1000)
SIZES = (0, 1, 5, 20, 100, 1000, 10**9)
RUNS = 5

SPEED = ("method", "ns/step", "IAT l1", "IAT cell 1", "IAT cell 2", "µs/effective l1", "µs/effective cell 1", "× l1", "× cell 1")
ACCEPTANCE = ("proposal parameter", "accepted %", "standard error %")
COUNTIES = ("true count", "cells", "bias", "bias, no bounds", "standard error", "mean error", "mean error, no bounds", "below 0, no bounds")


def paper_kernel(rate: Fraction = PAPER_RATE) -> IndependentMetropolis:
    """The paper's chain on the paper's table."""
    return IndependentMetropolis(BLOCK, TABLE, HALF, rate, SOLVED)


def line_kernel() -> LineGibbs:
    return LineGibbs(ChainTarget.laplace(len(TABLE), HALF).within(lower=-TABLE), ListedMoves(class_moves()))


def effective(steps: int, records: int, rounds: int, done: Call) -> list[Row]:
    """Effective draws of all three methods, against the median of the paper's runs, which stick now and then."""
    paper, line, exact = paper_kernel(), line_kernel(), BoundedClasses(BLOCK, HALF)
    key = NoiseKey.for_tests("bench conditional")
    sweep = line.steps_per_sweep
    tables = np.tile(TABLE, (20_000, 1))
    with key.stream("time") as words:
        state = line.run(line.start(words), 20 * sweep, words)[0]
        z = paper.run(paper.at_the_table(), 20_000, words)[0]
        exact.publish(tables[:300], None, words)
        best = best_of(
            rounds,
            {
                "paper": lambda: paper.run(z, 100_000, words),
                "line": lambda: line.run(state, 100_000, words),
                "exact": lambda: exact.publish(tables, None, words),
            },
        )
    done()
    times = []
    for run in range(RUNS):
        with key.stream("paper", run) as words:
            begun = paper.run(paper.at_the_table(), steps // 20, words)[0]
            times.append([autocorrelation_time(column) for column in paper.trace(begun, steps, 1, words)[1].T])
        done()
    middle = np.median(np.array(times), axis=0)
    with key.stream("line") as words:
        record = line.trace(state, records, sweep, words)[1]
    lines = [autocorrelation_time(record[:, c]) * sweep for c in (0, 1)]
    done()
    speed = {"paper": best["paper"] / 1e5, "line": best["line"] / 1e5, "exact": best["exact"] / len(tables)}
    cost = {
        "paper": [speed["paper"] * t for t in middle[:2]],
        "line": [speed["line"] * t for t in lines],
        "exact": [speed["exact"]] * 2,
    }

    def row(name: str, method: str, iat: Sequence[str], bars: Sequence[Bar] = ()) -> Row:
        ratios = [p / own for p, own in zip(cost["paper"], cost[method], strict=True)]
        return Row(name, [number(speed[method] * 1e9), *iat, *(number(c * 1e6) for c in cost[method]), *map(number, ratios)], bars)

    gain = {method: float(cost["paper"][0] / cost[method][0]) for method in cost}
    spread = f"{min(t[0] for t in times):,.0f} to {max(t[0] for t in times):,.0f}"
    return [
        row(f"independent_metropolis, median of {RUNS} runs ({spread})", "paper", [number(t) for t in middle]),
        row("line_gibbs within bounds", "line", [*map(number, lines), "-"], [Bar("× l1", gain["line"], LEAST_LINE, at_least=True)]),
        row("exact", "exact", ["1", "1", "1"], [Bar("× l1", gain["exact"], LEAST_EXACT, at_least=True)]),
    ]


def acceptance(runs: int, steps: int, done: Call) -> list[Row]:
    """How often proposals are taken, from independent exact draws, a few steps each."""
    key = NoiseKey.for_tests("bench acceptance")
    with key.stream("begun") as words:
        begun = BoundedClasses(BLOCK, HALF).publish(np.tile(TABLE, (runs, 1)), None, words) - TABLE
    rows = []
    for rate in GRID:
        kernel = replace(paper_kernel(), proposal_rate=rate)
        with key.stream(str(rate)) as words:
            rates = np.array([kernel.run(z, steps, words)[1].accepted / steps for z in begun])
        mean, error = float(rates.mean()), float(rates.std()) / runs**0.5
        flat = Fraction(3, 5) <= rate <= Fraction(7, 10)
        bars = [Bar("accepted", mean, float(FLAT[0]), at_least=True), Bar("accepted", mean, float(FLAT[1]))] if flat else []
        rows.append(Row(f"{float(rate):.2f}", [f"{100 * mean:.3f}", f"{100 * error:.3f}"], bars))
        done()
    return rows


def county_file() -> Path:
    """The 2010 census table P12 by county; HOLDFAST_SHARED names the folder that holds data/."""
    shared = os.environ.get("HOLDFAST_SHARED")
    return (Path(shared) if shared else Path(__file__).parents[2] / "shared") / "data" / "county_p12_sex_age_2010.csv"


def county_table(path: Path, most: int | None = None) -> tuple[hf.Table, list[Constraint]]:
    """Counties x two sexes x 23 ages, with totals, sexes and voting age of every county kept."""
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    counties, ages = (list(dict.fromkeys(row[name] for row in rows)) for name in ("county_fips", "age"))
    counts = np.array([int(row["total"]) for row in rows], dtype=np.int64)[: None if most is None else most * 2 * AGES]
    grown = hf.Hierarchy.from_parents({age: "minor" if i < MINORS else "adult" for i, age in enumerate(ages)}, levels=["voting", "age"])
    universe = hf.Universe.product({"county": counties[:most], "sex": ["M", "F"], "age": ages}, hierarchies={"age": grown})
    return hf.Table(universe, counts), [hf.margin("county"), hf.margin("county", "sex"), hf.margin("county", "voting")]


def counties(path: Path, most: int | None = None) -> tuple[list[Row], str]:
    """One release of all counties, and the errors of their cells by size beside those without bounds at the same rate."""
    table, kept = county_table(path, most)
    began, clock = time.process_time(), time.perf_counter()
    made = hf.release(table, kept, hf.Conditional(epsilon=1, per="distance"), key=NoiseKey.for_tests("bench counties"))
    seconds, wall = time.process_time() - began, time.perf_counter() - clock
    x, y = (counts.reshape(-1, 2 * AGES) for counts in (table.counts, made.table.counts))
    free = BoundedClasses(BoundedBlock.plain(sexes_and_ages(MINORS, AGES - MINORS), None), HALF)
    with NoiseKey.for_tests("bench counties").stream("free") as words:
        without = free.publish(np.ascontiguousarray(x), None, words)
    drawn = ", ".join(sorted({group.sampler for group in made.card.sampler.groups}))
    note = (
        f"All counties: {len(x):,} tables of {2 * AGES} cells, totals, sexes and voting age kept, counts >= 0, epsilon 1 (rate 1/2): one "
        f"release in {seconds:.1f} seconds of processor time, {wall:.1f} on the clock, plan, checks and card included. Sampler: {drawn}. "
        f"Status: {made.guarantee.status}. Smallest published count {int(y.min())}."
    )
    return [_errors(x, y, without, low, high) for low, high in pairwise(SIZES)], note


def _errors(x: NDArray[np.int64], y: NDArray[np.int64], without: NDArray[np.int64], low: int, high: int) -> Row:
    chosen = (x >= low) & (x < high)
    if not chosen.any():
        return Row(_named(low, high), ["0", *["-"] * 6])
    bounded, free = (y - x)[chosen], (without - x)[chosen]
    figures = [
        f"{chosen.sum():,}",
        f"{bounded.mean():+.3f}",
        f"{free.mean():+.3f}",
        f"{bounded.std() / chosen.sum() ** 0.5:.3f}",
        number(float(abs(bounded).mean())),
        number(float(abs(free).mean())),
        f"{100 * float((without[chosen] < 0).mean()):.1f} %",
    ]
    return Row(_named(low, high), figures)


def _named(low: int, high: int) -> str:
    return str(low) if high == low + 1 else f"{low:,} and more" if high == SIZES[-1] else f"{low:,} to {high - 1:,}"


def run(*, steps: int = 1_500_000, records: int = 40_000, runs: int = 4000, rounds: int = 7, most: int | None = None) -> Report:
    """Measure everything. `most` counties instead of all, for tests."""
    load_before = load()
    path = county_file()
    with Steps("conditional", RUNS + 2 + len(GRID) + 1) as progress:

        def done(what: str) -> Call:
            return lambda: progress.done(f"conditional: {what}")

        speeds = effective(steps, records, rounds, done("effective draws"))
        taken = acceptance(runs, 150, done("acceptance"))
        by_size, note = counties(path, most) if path.is_file() else ([], f"All counties: {NOT_RUN}, no file of the shared data.")
        progress.done("conditional: counties")
    tables = (
        Table("The paper's 2 x 23 table, epsilon 1/2 a cell: effective draws", SPEED, speeds),
        Table("Acceptance of independent_metropolis on it", ACCEPTANCE, taken),
        Table("All counties: errors of cells by their true count", COUNTIES, by_size),
    )
    about = f"{machine()}; arviz-stats {metadata.version('arviz-stats')}; load {load_before} before, {load()} after"
    return Report("Benchmark group conditional", about, tables, [*_notes(steps, runs), note])


def _notes(steps: int, runs: int) -> list[str]:
    return [
        "Effective draws of l1 = |y - x|_1 and of cells: processor time of a step, best of several rounds in turns, times the "
        f"autocorrelation time by ArviZ. The paper's chain: {steps:,} steps a run after a twentieth of that, proposal parameter .6; single "
        "runs stick, so the median counts. line_gibbs: pairs inside the four classes and squares through them, recorded every sweep. "
        "Exact: independent draws of one table, prepared anew every few thousand draws. Keystream is included everywhere.",
        f"Acceptance: {runs:,} independent exact draws, 150 steps each, so that no run sticks; the bars are those of the flat maximum.",
        "By size: bias is the mean of published less true count over the cells whose true count is in the row, mean error that of its "
        "size; `no bounds` has the same rate and kept totals. Bounds push small counts up and, since totals are kept, others down.",
    ]
