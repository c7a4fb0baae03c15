"""Conventional diagnostics of chains: effective sample size, autocorrelation time, R-hat, acceptance.

The estimators are ArviZ's, not ours: `arviz-stats`, the part of ArviZ that works on plain arrays and needs only NumPy and SciPy (the whole
of ArviZ would bring plotting and file formats that nothing here uses). It is optional: pip install holdfast[diagnose].

These figures say how fast a chain moves once it is there. They prove nothing about how far it is from its law, and no guarantee rests on
them: that is what chains/meeting.py estimates. Run on the noise law they see no data.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from holdfast.chains.meeting import SLICE_NANOSECONDS, Progress
from holdfast.chains.protocol import Kernel, State
from holdfast.errors import ChainProblem, InvalidParameter
from holdfast.exact.parameters import exact_integer
from holdfast.randomness import NoiseKey, Words

LEAST_DRAWS = 4
"""Draws of each chain, so that both its halves have a variance."""
COLUMNS = ("energy", "first cell", "partial sum")
"""What a kernel's `trace` records."""


class TracedKernel(Kernel, Protocol):
    """A kernel that can record where it goes."""

    def trace(self, state: State, records: int, every: int, words: Words) -> tuple[State, NDArray[np.int64]]:
        """`records` times `every` steps, and after each lot one row of COLUMNS: shape (records, 3)."""


class ColumnSummary(NamedTuple):
    """Figures of one recorded column; nan in a column that never changed, of which nothing can be said."""

    effective_sample_size: float
    autocorrelation_time_sweeps: float
    r_hat: float


@dataclass(frozen=True)
class TraceSummary:
    """How chains of one kernel moved; columns by the names in COLUMNS."""

    kernel: str
    chains: int
    records: int
    every: int
    """Steps between two records."""
    burn_in: int
    """Steps made before the first."""
    acceptance_rate: float
    """Acceptance rate of the second half of the burn-in; 1 for a Gibbs kernel."""
    columns: dict[str, ColumnSummary]


def effective_sample_size(draws: ArrayLike) -> float:
    """How many independent draws would give a mean as good as these: (chains, draws), or one chain as a flat array.

    By Geyer's initial monotone sequence on half chains. nan if no value differs from another.
    Reference:  Vehtari, Gelman, Simpson, Carpenter, Buerkner, Rank-normalization, folding, and localization, 2021; ArviZ, method "mean".
    """
    series = _series(draws, least_chains=1)
    return math.nan if _is_constant(series) else float(_arviz().ess(series, method="mean"))


def autocorrelation_time(draws: ArrayLike) -> float:
    """Draws for one effective draw: 1 + 2 sum of autocorrelations, 1 for independent draws. In units of the distance between draws."""
    return np.asarray(draws).size / effective_sample_size(draws)


def split_r_hat(draws: ArrayLike) -> float:
    """Spread of half chains together against their spread alone, on ranks: near 1 if all look alike; above 1.01 is a warning.

    nan if no value differs from another. Reference: as above; ArviZ, method "rank".
    """
    series = _series(draws, least_chains=2)
    return math.nan if _is_constant(series) else float(_arviz().rhat(series, method="rank"))


def trace_summary(
    kernel: TracedKernel, *, records: int, every: int, chains: int, seed: str, burn_in: int | None = None, progress: Progress | None = None
) -> TraceSummary:
    """Run several chains from the starting law, each after a burn-in (by default half as many steps as are recorded), and summarize.

    Given:       chains >= 2, records >= 4, every >= 1, burn_in >= 2 (checked). `progress` is called with (steps made, steps in all).
    Guarantees:  deterministic and data-free: chain number c reads the test stream of (kernel's name, c).
    """
    records, every, chains = exact_integer(records, "records"), exact_integer(every, "every"), exact_integer(chains, "chains")
    if chains < 2:
        raise InvalidParameter(f"Diagnostics compare chains and cannot be made from fewer than 2 chains. Got {chains}. Use 4.")
    if records < LEAST_DRAWS or every < 1:
        raise InvalidParameter(f"A trace has {LEAST_DRAWS} records or more, 1 step or more apart. Got records {records}, every {every}.")
    before = max(2, records * every // 2) if burn_in is None else exact_integer(burn_in, "burn_in")
    if before < 2:
        raise InvalidParameter(f"burn_in is a number of steps, 2 or more: its second half gives the acceptance rate. Got {before}.")
    _arviz()  # missing packages are told before anything runs
    traces = np.empty((len(COLUMNS), chains, records), dtype=np.int64)
    made = accepted = 0
    told = StepCounter(chains * (before + records * every), progress)
    with NoiseKey.for_tests("chain traces: " + seed) as key:
        for chain in range(chains):
            with key.stream(kernel.name, chain) as words:
                state, _ = run_slices(kernel, kernel.start(words), before // 2, words, told)
                state, moved = run_slices(kernel, state, before - before // 2, words, told)
                for low, count in slices(records, SLICE_NANOSECONDS // (kernel.step_nanoseconds * every)):
                    state, rows = kernel.trace(state, count, every, words)
                    traces[:, chain, low : low + count] = rows.T
                    told.add(count * every)
            made, accepted = made + before - before // 2, accepted + moved
    sweeps = every / kernel.steps_per_sweep
    columns = {
        name: ColumnSummary(effective_sample_size(draws), autocorrelation_time(draws) * sweeps, split_r_hat(draws))
        for name, draws in zip(COLUMNS, traces, strict=True)
    }
    return TraceSummary(kernel.name, chains, records, every, before, accepted / made, columns)


class StepCounter:
    """Counts steps and reports them."""

    def __init__(self, total: int, progress: Progress | None) -> None:
        self.total, self.progress, self.done = total, progress, 0
        self.add(0)

    def add(self, steps: int) -> None:
        self.done += steps
        if self.progress is not None:
            self.progress(self.done, self.total)


def slices(total: int, size: int) -> Iterator[tuple[int, int]]:
    """(first, number) of pieces of at most `size`, and at least one."""
    size = max(1, size)
    return ((low, min(size, total - low)) for low in range(0, total, size))


def run_slices(kernel: Kernel, state: State, steps: int, words: Words, told: StepCounter) -> tuple[State, int]:
    """(state, accepted steps) after so many steps, in slices, so that Ctrl-C is heeded in between; they change no word and no state."""
    accepted = 0
    for _, count in slices(steps, SLICE_NANOSECONDS // kernel.step_nanoseconds):
        state, info = kernel.run(state, count, words)
        accepted += info.accepted
        told.add(count)
    return state, accepted


def _series(draws: ArrayLike, least_chains: int) -> NDArray[np.float64]:
    array = np.asarray(draws)
    if array.ndim == 1:
        array = array[None, :]
    if array.ndim != 2 or array.dtype.kind not in "iuf" or not np.isfinite(array).all():
        raise InvalidParameter(f"Draws are finite numbers, one row for each chain. Got {array.dtype} of shape {np.shape(draws)}.")
    if array.shape[0] < least_chains:
        raise InvalidParameter(f"This compares chains and cannot be made from fewer than {least_chains} chains. Got {array.shape[0]}.")
    if array.shape[1] < LEAST_DRAWS:
        raise InvalidParameter(f"A chain needs {LEAST_DRAWS} draws or more. Got {array.shape[1]}.")
    return array.astype(np.float64)


def _is_constant(series: NDArray[np.float64]) -> bool:
    """ArviZ would call every draw of a chain that does not move an effective one."""
    return bool((series == series[0, 0]).all())


def _arviz() -> Any:
    try:
        from arviz_stats.base import array_stats
    except ImportError:
        raise ChainProblem("Diagnostics of chains need arviz-stats, which is not installed: pip install holdfast[diagnose].") from None
    return array_stats
