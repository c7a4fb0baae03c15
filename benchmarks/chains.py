"""Group `chains`: what a move costs, how fast chains move, effective draws a second, and when coupled chains meet."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from importlib import metadata

import numpy as np

import holdfast as hf
from benchmarks.report import Bar, Report, Row, Table, number
from benchmarks.timing import Call, Steps, best_of, load, machine
from holdfast.chains.assessment import pilot
from holdfast.chains.line_gibbs import LineGibbs
from holdfast.chains.meeting import meeting_times
from holdfast.chains.moves import Swaps
from holdfast.chains.protocol import Kernel
from holdfast.chains.target import ChainTarget
from holdfast.errors import NoMeeting
from holdfast.lattices import Lattice
from holdfast.randomness import NoiseKey
from holdfast.research.chains.diagnostics import COLUMNS, TracedKernel, trace_summary
from holdfast.research.chains.lattices import line_gibbs_on, metropolis_on

QUARTER, CENSUS = Fraction(1, 4), Fraction(24, 125)
GRIDS = ((4, 4), (20, 20), (100, 100), (300, 300))
JUDGED_CELLS = 400
"""A move is held to its bar from so many cells up."""
MOST_NORMALS, MOST_SWEEPS, LEAST_GAIN, FACTOR = 5, 6, 5, 3
JUMP_RATES = tuple(Fraction(q, 4) for q in (2, 3, 4, 5, 6, 8, 10))

MOVE = ("table", "ns/move", "bytes/move", "NumPy normal ns", "× NumPy")
TIMES = ("table", *COLUMNS, "largest")
GAIN = ("kernel", "ns/iteration", "accepted", *(f"IAT {c}" for c in COLUMNS), *(f"{c}/s" for c in COLUMNS))
MEETINGS = ("law", "kernel", "lag", "met", "median", "largest", "the paper", "largest / paper", "sweeps", "exact draw µs")

THREE_SETS = np.repeat(np.array([[1, 0, 0, 1, 1, 0, 1], [0, 1, 0, 1, 0, 1, 1], [0, 0, 1, 0, 1, 1, 1]]), 2, axis=1)
"""Three sets that overlap in every way, two records in each of the seven regions. The paper's own matrix was not found: a stand-in."""


def grid_kernel(shape: tuple[int, int]) -> LineGibbs:
    return LineGibbs(ChainTarget.laplace(shape[0] * shape[1], QUARTER), Swaps(shape))


def move_cost(shape: tuple[int, int], rounds: int, done: Call) -> Row:
    """One move of line_gibbs against one NumPy normal, in turns."""
    kernel = grid_kernel(shape)
    moves = max(200_000, kernel.steps_per_sweep)
    generator = np.random.default_rng(1)
    normals = np.empty(moves)
    with NoiseKey.for_tests("bench move").stream(*shape) as words:
        state, _ = kernel.run(kernel.start(words), 20 * kernel.steps_per_sweep, words)
        before = words.bytes_read
        kernel.run(state, moves, words)
        bytes_a_move = (words.bytes_read - before) / moves
        contenders = {"ours": lambda: kernel.run(state, moves, words), "numpy": lambda: generator.standard_normal(out=normals)}
        best = best_of(rounds, contenders)
    done()
    ours, numpy_ns = (best[name] / moves * 1e9 for name in ("ours", "numpy"))
    ratio = ours / numpy_ns
    bars = [Bar("× NumPy", ratio, MOST_NORMALS)] if shape[0] * shape[1] >= JUDGED_CELLS else []
    return Row(f"{shape[0]} x {shape[1]}", [number(v) for v in (ours, bytes_a_move, numpy_ns, ratio)], bars)


def autocorrelation(shape: tuple[int, int], most: int, done: Call) -> Row:
    """Autocorrelation times in sweeps."""
    kernel = grid_kernel(shape)
    records = min(most, 20_000 if shape[0] <= 20 else 2_000)
    found = trace_summary(
        kernel, records=records, every=kernel.steps_per_sweep, chains=2, seed="bench", burn_in=100 * kernel.steps_per_sweep
    )
    done()
    times = [found.columns[name].autocorrelation_time_sweeps for name in COLUMNS]
    return Row(f"{shape[0]} x {shape[1]}", [number(v) for v in (*times, max(times))], [Bar("sweeps", max(times), MOST_SWEEPS)])


@dataclass(frozen=True)
class Speed:
    """A kernel's effective draws a second, by column."""

    row: Row
    per_second: tuple[float, ...]


def speed(name: str, kernel: TracedKernel, every: int, records: int, rounds: int, done: Call) -> Speed:
    """Effective draws a second: the trace is summarized once, and the same number of iterations timed on its own."""
    found = trace_summary(kernel, records=records, every=every, chains=4, seed="bench", burn_in=20_000)
    iterations = 200_000
    with NoiseKey.for_tests("bench speed").stream(name) as words:
        state, _ = kernel.run(kernel.start(words), 1000, words)
        best = best_of(rounds, {"run": lambda: kernel.run(state, iterations, words)})
    done()
    seconds = best["run"] / iterations
    times = [found.columns[c].autocorrelation_time_sweeps * kernel.steps_per_sweep for c in COLUMNS]
    per_second = tuple(1 / (t * seconds) for t in times)
    shown = [number(seconds * 1e9), number(found.acceptance_rate), *(number(t) for t in times), *(number(p) for p in per_second)]
    return Speed(Row(name, shown), per_second)


def gains(rounds: int, records: int, done: Call) -> list[Row]:
    """line_gibbs against metropolis with the best of several jump rates, on 4 x 4."""
    target = ChainTarget.laplace(16, QUARTER)
    lattice = Lattice(_margins(4, 4))
    line = speed("line_gibbs", grid_kernel((4, 4)), 9, records, rounds, done)
    others = [
        speed(f"metropolis, a = exp(-{float(rate):g})", metropolis_on(target, lattice, rate), 20, records, rounds, done)
        for rate in JUMP_RATES
    ]
    best = [max(other.per_second[c] for other in others) for c in range(len(COLUMNS))]
    ratios = [ours / theirs for ours, theirs in zip(line.per_second, best, strict=True)]
    blanks = [""] * (2 + len(COLUMNS))
    bars = [Bar(f"× {COLUMNS[c]}", ratios[c], LEAST_GAIN, at_least=True) for c in (0, 1)]
    return [line.row, *(other.row for other in others), Row("line_gibbs over the best of each", [*blanks, *map(number, ratios)], bars)]


def counties(rounds: int, records: int, done: Call) -> list[Row]:
    """Both kernels on 102 cells with one total, at the census's epsilon."""
    target = ChainTarget.laplace(102, CENSUS)
    metropolis = metropolis_on(target, Lattice(np.ones((1, 102), dtype=np.int64)), Fraction(5, 2))
    return [
        speed("line_gibbs", LineGibbs(target, Swaps((102,))), 101, records, rounds, done).row,
        speed("metropolis, a = exp(-2.5)", metropolis, 200, records, rounds, done).row,
    ]


@dataclass(frozen=True)
class Case:
    """Coupled chains of one kernel under one law."""

    law: str
    kernel: Kernel
    pairs: int
    lag: int | None = None
    """None: by a pilot."""
    most_sweeps: int = 20_000
    paper: float | None = None
    exact: Callable[[], float] | None = None
    """Seconds of an exact draw."""


def meetings(case: Case, done: Call) -> Row:
    """When the pairs met, beside what the paper says."""
    sweep = case.kernel.steps_per_sweep
    most = case.most_sweeps * sweep
    try:
        lag = pilot(case.kernel, seed="bench", most=most).lag if case.lag is None else case.lag
        found = meeting_times(case.kernel, lag=lag, pairs=case.pairs, most=most, seed="bench")
    except NoMeeting:
        done()
        return Row(case.law, [case.kernel.name, "-", "no bound: pilot pairs did not meet", *["-"] * 6])
    times = np.sort(found.coupled_steps)
    largest = int(times[-1]) if not found.unmet else None
    ratio = None if largest is None or case.paper is None else largest / case.paper
    bars = [] if case.paper is None else [Bar("largest / paper", ratio, FACTOR), Bar("largest / paper", ratio, 1 / FACTOR, at_least=True)]
    exact = "-" if case.exact is None else number(case.exact() * 1e6)
    done()
    figures = [
        case.kernel.name,
        f"{found.lag:,}",
        f"{case.pairs - found.unmet} of {case.pairs}",
        f"{int(times[(len(times) - 1) // 2]):,}",
        f"{largest:,}" if largest is not None else f"above {most:,}",
        "-" if case.paper is None else f"{case.paper:,.0f}",
        "-" if ratio is None else number(ratio),
        number(int(times[-1]) / sweep),
        exact,
    ]
    return Row(case.law, figures, bars)


def exact_seconds(mechanism: hf.GeneralizedLaplace, lattice: Lattice) -> Callable[[], float]:
    """Processor time of one draw of the exact sampler, tables prepared."""

    def seconds() -> float:
        law = mechanism.law(lattice)
        with NoiseKey.for_tests("bench exact") as key:
            law.sample(1000, key, label="first")
            began = time.process_time()
            law.sample(1000, key, label="timed")
        return (time.process_time() - began) / 1000

    return seconds


def cases(pairs: int) -> list[Case]:
    """The paper's three examples and line Gibbs beside them."""
    table = Lattice(_margins(4, 4))
    sets = Lattice(THREE_SETS)
    one_total = Lattice(np.ones((1, 102), dtype=np.int64))
    l1, l2 = ChainTarget.laplace(16, QUARTER), ChainTarget.laplace(16, QUARTER, "l2")
    drawn = {
        "4 x 4, l1": exact_seconds(hf.GeneralizedLaplace(epsilon=QUARTER, per="distance"), table),
        "4 x 4, l2": exact_seconds(hf.GeneralizedLaplace(epsilon=QUARTER, norm="l2", per="distance"), table),
        "14 cells, l1": exact_seconds(hf.GeneralizedLaplace(epsilon=QUARTER, per="distance"), sets),
        "14 cells, l2": exact_seconds(hf.GeneralizedLaplace(epsilon=QUARTER, norm="l2", per="distance"), sets),
        "102 counties, l1": exact_seconds(hf.GeneralizedLaplace(epsilon=CENSUS, per="distance"), one_total),
    }
    made = [Case("4 x 4, l1", metropolis_on(l1, table, Fraction(1)), pairs, lag, paper=1e4) for lag in (1000, 2000, 5000, 10_000)]
    made += [
        Case("4 x 4, l1", grid_kernel((4, 4)), pairs, exact=drawn["4 x 4, l1"]),
        Case("4 x 4, l2", metropolis_on(l2, table, Fraction(3, 2)), pairs, 20_000, most_sweeps=10**7),
        Case("4 x 4, l2", LineGibbs(l2, Swaps((4, 4))), pairs, exact=drawn["4 x 4, l2"]),
    ]
    for norm, rate, paper, lag in (("l1", Fraction(1), 1e5, 20_000), ("l2", Fraction(3, 2), 1e6, 200_000)):
        target = ChainTarget.laplace(14, QUARTER, norm)  # type: ignore[arg-type]
        made.append(Case(f"14 cells, {norm}", metropolis_on(target, sets, rate), pairs, lag, most_sweeps=2 * 10**7, paper=paper))
        made.append(Case(f"14 cells, {norm}", line_gibbs_on(target, sets), pairs, exact=drawn[f"14 cells, {norm}"]))
    target = ChainTarget.laplace(102, CENSUS)
    made.append(Case("102 counties, l1", metropolis_on(target, one_total, Fraction(5, 2)), pairs, most_sweeps=500_000))
    made.append(Case("102 counties, l1", LineGibbs(target, Swaps((102,))), pairs, exact=drawn["102 counties, l1"]))
    return made


def _margins(rows: int, columns: int) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    return np.vstack([np.kron(np.eye(rows, dtype=np.int64), np.ones(columns, dtype=np.int64)),
                      np.kron(np.ones(rows, dtype=np.int64), np.eye(columns, dtype=np.int64))])  # fmt: skip


def run(*, grids: Sequence[tuple[int, int]] = GRIDS, rounds: int = 15, pairs: int = 200, records: int = 50_000) -> Report:
    """Measure everything."""
    load_before = load()
    listed = cases(pairs)
    with Steps("chains", 2 * len(grids) + 3 + len(JUMP_RATES) + len(listed)) as steps:

        def done(what: str) -> Call:
            return lambda: steps.done(f"chains: {what}")

        moved = [move_cost(shape, rounds, done("moves")) for shape in grids]
        correlated = [autocorrelation(shape, records, done("autocorrelation")) for shape in grids]
        gained = gains(max(1, rounds // 3), records, done("effective draws"))
        in_counties = counties(max(1, rounds // 3), records // 10, done("counties"))
        met = [meetings(case, done(case.law)) for case in listed]
    tables = (
        Table("One move of line_gibbs, l1, epsilon 1/4", MOVE, moved),
        Table("Autocorrelation time of line_gibbs, in sweeps", TIMES, correlated),
        Table("Effective draws a second, 4 x 4, l1, epsilon 1/4", GAIN, gained),
        Table("Effective draws a second, 102 counties with one total, l1, epsilon 0.192", GAIN, in_counties),
        Table(f"When coupled chains meet, {pairs} pairs", MEETINGS, met),
    )
    about = f"{machine()}; arviz-stats {metadata.version('arviz-stats')}; load {load_before} before, {load()} after"
    return Report("Benchmark group chains", about, tables, _notes(rounds))


def _notes(rounds: int) -> list[str]:
    return [
        f"One move: `LineGibbs.run` of 200,000 moves or a sweep, and `standard_normal` of as many doubles, in turns; processor time, best "
        f"of {rounds} rounds. Keystream is included. The bar holds from {JUDGED_CELLS} cells up.",
        "A sweep of line_gibbs is as many moves as there are free dimensions; an iteration of metropolis moves all coordinates "
        "and counts as a sweep.",
        'Autocorrelation times by ArviZ (method "mean") of the energy |z|_1, of one cell, and of a partial sum (about a quarter '
        "of the cells); recorded every sweep (20 iterations for metropolis), two to four chains after a burn-in. Shown in sweeps in the "
        "second table, in steps in the third and fourth. The paper kept every 10,000th iteration on the counties, with jumps exp(-5/2).",
        "Coupled chains: `largest` is the largest tau - lag, where the estimated total variation bound reaches 0; `sweeps` is the same in "
        "sweeps of its kernel. The paper states 10^4 iterations for 4 x 4 (l1), 10^5 and 10^6 for the 14 cells (l1, l2), read off its "
        "figures; its 14-cell matrix was not found and is replaced by the seven regions of three sets, two records in each. It states no "
        "figure for the counties. Jump parameters are the paper's: exp(-1), exp(-3/2) for l2.",
        "exact draw: one draw of the exact sampler that `auto` takes, processor time over 1,000 draws, tables prepared.",
    ]
