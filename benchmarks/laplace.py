"""Group `laplace`: exact l1 Laplace noise on two-way tables by coupling from the past, beside the same loop in plain doubles and beside
what else draws such tables.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from benchmarks import laplace_doubles
from benchmarks.report import Bar, Report, Row, Table, number
from benchmarks.timing import Call, Steps, load, machine
from holdfast.chains.line_gibbs import LineGibbs
from holdfast.chains.moves import Swaps
from holdfast.chains.target import ChainTarget
from holdfast.channels.covariance import of_shape
from holdfast.lattices.shapes import Grid
from holdfast.laws import Rounded
from holdfast.randomness import NoiseKey
from holdfast.research.chains.diagnostics import COLUMNS, trace_summary
from holdfast.samplers.choice import CELL_SECONDS
from holdfast.samplers.coupling.sampler import CouplingLaplace
from holdfast.samplers.laplace_rejection import GridLaplace, rule_of_thumb_tries
from holdfast.samplers.rejection import average
from holdfast.samplers.table import choose

SIZES = (4, 10, 20, 50, 100)
EPSILONS = (Fraction(1, 20), Fraction(1, 4), Fraction(1, 2), Fraction(1))
JUDGED = Fraction(1, 4)
MOST_PLAIN = 4
MOST_SECONDS = {4: 1e-3, 10: 1e-2, 20: 5e-2, 100: 15.0}
"""Targets for a mean draw at the epsilon that is judged."""
ETA = Fraction(1, 1000)
"""Total variation error that a chain would be given."""
SHOWN_TIME = 3.0
"""Seconds of rejection draws at most; beyond that the time is computed."""
NEVER = 1e6
"""Milliseconds of a draw, and tries, that a few tries can only guess at."""

TRIES = ("table, epsilon", "prepare s", "ms/try", "tries/draw", "ms/draw", "plain ms/try", "plain tries/draw", "plain ms/draw", "x plain")
OTHERS = (
    "table, epsilon",
    "coupling ms",
    "rejection ms",
    "line_gibbs sweeps",
    "line_gibbs ms",
    "rounded ms",
    "variance",
    "rounded variance",
)


@dataclass(frozen=True)
class Measured:
    """Seconds of a try, the estimated chance that it is accepted, its relative standard error, and the variance of a cell."""

    seconds: float
    chance: float
    error: float = 0.0
    variance: float = math.nan
    prepared: float = 0.0

    @property
    def draw_seconds(self) -> float:
        return self.seconds / self.chance if self.chance > 0 else math.inf


def coupling(size: int, epsilon: Fraction, tries: int) -> Measured:
    """Our sampler: processor time of whole tries, after it was prepared."""
    began = time.process_time()
    sampler = CouplingLaplace.of_grid((size, size), epsilon)
    with NoiseKey.for_tests("bench laplace").stream(size, str(epsilon)) as words:
        sampler.pilot_exponents(1, words)
        prepared = time.process_time() - began
        began = time.process_time()
        exponents = sampler.pilot_exponents(tries, words)
        seconds = (time.process_time() - began) / tries
    found = average(exponents, sampler.exponent_unit)
    return Measured(seconds, found.estimate, found.standard_error, prepared=prepared)


def plain(size: int, epsilon: Fraction, tries: int) -> Measured:
    """The same loop in plain doubles."""
    prepared = laplace_doubles.prepare((size, size), epsilon)
    laplace_doubles.run(prepared, 1)
    began = time.process_time()
    chance, variance, _ = laplace_doubles.run(prepared, tries)
    return Measured((time.process_time() - began) / tries, chance, variance=variance)


def rejection_seconds(size: int, epsilon: Fraction) -> str:
    """Of one draw by rejection; computed from the tries expected where it would take long."""
    tries = rule_of_thumb_tries((size, size))
    sampler = GridLaplace((size, size), epsilon)
    if tries < 1e12:
        tries = sampler.expected_tries
    seconds = tries * size * size * CELL_SECONDS
    if seconds > SHOWN_TIME / 10:
        return f"about {seconds * 1e3:.0e}"
    draws = max(2, int(SHOWN_TIME / 10 / seconds))
    with NoiseKey.for_tests("bench rejection").stream(size, str(epsilon)) as words:
        sampler.draw(2, words)
        began = time.process_time()
        sampler.draw(draws, words)
    return number((time.process_time() - began) / draws * 1e3)


def chain(size: int, epsilon: Fraction, records: int) -> tuple[float, float]:
    """(sweeps, seconds) of line_gibbs until its slowest column has forgotten its start up to ETA, by its autocorrelation time."""
    kernel = LineGibbs(ChainTarget.laplace(size * size, epsilon), Swaps((size, size)))
    sweep = kernel.steps_per_sweep
    found = trace_summary(kernel, records=records, every=sweep, chains=2, seed="bench laplace", burn_in=50 * sweep)
    sweeps = math.ceil(max(found.columns[name].autocorrelation_time_sweeps for name in COLUMNS) * math.log(1 / ETA))
    with NoiseKey.for_tests("bench line_gibbs").stream(size, str(epsilon)) as words:
        state = kernel.start(words)
        kernel.run(state, sweep, words)
        began = time.process_time()
        kernel.run(state, 5 * sweep, words)
        seconds = (time.process_time() - began) / 5
    return sweeps, sweeps * seconds


def rounded(size: int, epsilon: Fraction) -> tuple[float, float]:
    """(seconds, variance of a cell) of rounded projection."""
    shape, target = Grid((size, size)), Rounded(epsilon)
    sampler = choose(shape, target).noise
    variance = float(of_shape(target, sampler, shape, np.zeros((0, 0), dtype=np.int64)).diagonal().max())
    draws = max(2, 20_000 // (size * size))
    with NoiseKey.for_tests("bench rounded").stream(size, str(epsilon)) as words:
        sampler.draw(2, words)
        began = time.process_time()
        sampler.draw(draws, words)
        return (time.process_time() - began) / draws, variance


def amount(value: float) -> str:
    """A figure; of one that nobody waited for only its size."""
    return number(value) if value < NEVER else f"about {value:.0e}"


def case(size: int, epsilon: Fraction, seconds: float, records: int, done: Call) -> tuple[Row, Row]:
    """Both rows of one table and epsilon; about so many seconds go into tries, each contender's half."""
    name = f"{size} x {size}, {epsilon}"
    prepared = coupling(size, epsilon, 2).prepared  # before the rival, which uses the same mixture
    first = plain(size, epsilon, 2)
    tries = max(2, min(2000, int(seconds / 4 / first.seconds)))
    theirs, ours = plain(size, epsilon, tries), coupling(size, epsilon, tries)
    ratio = ours.draw_seconds / theirs.draw_seconds
    bars = []
    if epsilon == JUDGED:
        bars.append(Bar("x plain", ratio, MOST_PLAIN))
        if size in MOST_SECONDS:
            bars.append(Bar("ms/draw", ours.draw_seconds * 1e3, MOST_SECONDS[size] * 1e3))
    figures = [prepared, ours.seconds * 1e3, 1 / ours.chance if ours.chance else math.inf, ours.draw_seconds * 1e3]
    figures += [theirs.seconds * 1e3, 1 / theirs.chance if theirs.chance else math.inf, theirs.draw_seconds * 1e3, ratio]
    sweeps, chain_seconds = chain(size, epsilon, records)
    rounded_seconds, rounded_variance = rounded(size, epsilon)
    other = [amount(ours.draw_seconds * 1e3), rejection_seconds(size, epsilon), number(sweeps), number(chain_seconds * 1e3)]
    other += [number(rounded_seconds * 1e3), number(theirs.variance), number(rounded_variance)]
    done()
    return Row(name, [amount(figure) for figure in figures], bars), Row(name, other)


def run(*, sizes: Sequence[int] = SIZES, epsilons: Sequence[Fraction] = EPSILONS, seconds: float = 20.0, records: int = 2_000) -> Report:
    """Measure everything."""
    load_before = load()
    listed = [(size, epsilon) for size in sizes for epsilon in epsilons]
    with Steps("laplace", len(listed)) as steps:
        rows = [case(size, e, seconds, records, lambda n=size, e=e: steps.done(f"laplace: {n} x {n}, {e}")) for size, e in listed]  # type: ignore[misc]
    tables = (
        Table("Coupling from the past, and the same loop in plain doubles", TRIES, [row for row, _ in rows]),
        Table("What else draws such tables, and the variance of a cell", OTHERS, [row for _, row in rows]),
    )
    return Report("Benchmark group laplace", f"{machine()}; load {load_before} before, {load()} after", tables, _notes())


def _notes() -> list[str]:
    return [
        "Processor time of whole tries (chains, Klein's step, the chance to be accepted) with tables prepared, over the mean chance to be "
        "accepted. How far back a try must go depends on its result, so that tries are timed together, never singly.",
        "plain: the same method in plain doubles (benchmarks/laplace_doubles.py) as it was first tried: an inverse of rows and columns is "
        "kept and changed, nothing is certified, atoms are cut off at 2^-60. Ours works with matrices of the shorter axis, which pays on "
        "larger tables.",
        "rejection: one draw of GridLaplace; `about` where it is computed from the expected tries.",
        f"line_gibbs: sweeps until its slowest column has forgotten its start up to {ETA}, by its autocorrelation time; it has no proof, "
        "and its promise would be an estimate.",
        "variance: of one cell under the law, from the tries in plain doubles weighed by their chances; rounded variance: of rounded "
        "projection at the same epsilon, which is another law.",
    ]
