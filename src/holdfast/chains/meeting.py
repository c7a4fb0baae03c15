"""Meeting times of two chains a lag apart, and what they say: how far a chain is from its law after t steps, estimated.

Legend: X and Y are two chains of one kernel, started independently from its starting law; L is the lag. X makes L steps alone; from then on
both move together by the coupled kernel, X being L steps ahead. The meeting time is tau = the first l > L with X_l = Y_(l-L), so
tau = L + (coupled steps made). A pair that has not met after `most` coupled steps is censored: its tau is larger than L + most, and that
is all that is known. Censored pairs are kept and counted, never dropped: leaving them out would make any chain look fast. No upper bound
follows from the others then, and the curve refuses.

No data enters: kernels are made from public facts, and the words come from a test key that anyone can recompute from `seed`.

The curve. d_TV(pi_t, pi) <= E[J_t], J_t = max(0, ceil((tau - L - t) / L)), for every t at once [theory T27]. The curve is the average of
J_t over N independent pairs. So it is an ESTIMATE OF AN UPPER BOUND, not a certificate: its mean lies on the safe side, the figure itself
has a Monte Carlo error, and slow pairs too rare to be among the N are not seen. Where no pair is left, P[tau - L > t] <= 3/N holds with 95
% confidence, also at the largest tau - L that was seen, and nothing smaller can be said [theory T28]. E[J_t] is larger where pairs may need
more than one lag beyond t, which is why steps are recommended at twice the largest time (assessment.py).

Reference: [BJV19]; figure 1 of [DGGY22] shows such curves.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from threading import Event
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from holdfast.chains.protocol import CoupledKernel, Kernel, StatePair
from holdfast.errors import InvalidParameter, NoMeeting
from holdfast.exact.parameters import exact_integer
from holdfast.randomness import NoiseKey, Words

Progress: TypeAlias = Callable[[int, int], None]
"""Called with (pairs done, pairs in all). Whatever it raises stops the pairs."""

SLICE_NANOSECONDS = 300_000_000
"""Work between two looks at whether to stop."""
UPDATES = 50
"""Pieces of work for each worker, so that progress is shown about that often and no worker waits long for the last."""


@dataclass(frozen=True, eq=False)
class Meetings:
    """Meeting times of independent pairs, one entry each, in the order of their numbers."""

    kernel: str
    lag: int
    most: int
    """Coupled steps after which a pair was given up."""
    times: NDArray[np.int64]
    """tau; for a censored pair lag + most, which its tau exceeds."""
    met: NDArray[np.bool_]
    seed: str

    def __post_init__(self) -> None:
        assert self.times.shape == self.met.shape == (len(self.times),)
        assert len(self.times) > 1
        for array in (self.times, self.met):
            array.flags.writeable = False

    @property
    def pairs(self) -> int:
        return len(self.times)

    @property
    def unmet(self) -> int:
        """Pairs that did not meet within `most` coupled steps."""
        return self.pairs - int(self.met.sum())

    @property
    def coupled_steps(self) -> NDArray[np.int64]:
        """tau - lag: the steps that a pair made together, at least 1."""
        return self.times - self.lag

    def bound(self, step: int) -> float:
        """The average of J_t: an unbiased estimate of an upper bound of d_TV(pi_t, pi). NoMeeting if a pair is censored."""
        check_all_met(self)
        return int(self.lags_left(step).sum()) / self.pairs  # of whole numbers: rounded once

    def lags_left(self, step: int) -> NDArray[np.int64]:
        """J_t of each pair."""
        step = exact_integer(step, "step")
        if step < 0:
            raise InvalidParameter(f"A step is 0 or more. Got {step}.")
        return np.maximum(0, -((step - self.coupled_steps) // self.lag))


def meeting_times(
    kernel: Kernel, *, lag: int, pairs: int, most: int, seed: str, workers: int | None = None, progress: Progress | None = None
) -> Meetings:
    """Run `pairs` independent pairs until they meet, or for `most` coupled steps.

    Given:       lag, most at least 1, pairs at least 2 (checked); `workers` threads, by default one for each core; `progress` is called
                 from the thread that asks, never from theirs.
    Guarantees:  the same times on every machine and for any number of workers: each pair has streams of its own, labelled by the
                 kernel's name, the lag and the pair's number. Threads run side by side because compiled loops release the interpreter.
    Reference:   [BJV19]; the conventions are those of the module's text.
    """
    lag, most = _at_least(lag, 1, "lag", "steps"), _at_least(most, 1, "most", "coupled steps")
    pairs = exact_integer(pairs, "pairs")
    if pairs < 2:
        raise InvalidParameter(f"A statement about convergence cannot be made from fewer than 2 chains a side. Got {pairs} pairs. Use 100.")
    exact_integer(lag + most, "lag + most")
    count = len(os.sched_getaffinity(0)) if workers is None else _at_least(workers, 1, "workers", "threads")
    if not isinstance(seed, str):
        raise InvalidParameter(f"seed must be a text. Got {type(seed).__name__}. Any text works; the same text gives the same pairs.")
    times, met = np.empty(pairs, dtype=np.int64), np.empty(pairs, dtype=np.bool_)
    size = max(1, pairs // (UPDATES * count))
    pieces = [range(first, min(first + size, pairs)) for first in range(0, pairs, size)]
    coupled, done, stop = kernel.couple(), 0, Event()
    if progress is not None:
        progress(0, pairs)
    with ThreadPoolExecutor(count) as pool:
        waiting = {pool.submit(_piece, coupled, lag, most, seed, piece, stop): piece for piece in pieces}
        try:
            for ready in as_completed(waiting):
                piece = waiting[ready]
                times[piece.start : piece.stop], met[piece.start : piece.stop] = ready.result()
                done += len(piece)
                if progress is not None:
                    progress(done, pairs)
        except BaseException:  # Ctrl-C above all: threads see the flag after their next slice
            stop.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return Meetings(kernel.name, lag, most, times, met, seed)


def meet_once(
    coupled: CoupledKernel, lag: int, most: int, first: Words, second: Words, together: Words, stop: Event | None = None
) -> tuple[int, bool]:
    """One pair: (tau, True), or (lag + most, False) if it did not meet. X starts and advances by `first`, Y starts by `second`.

    Long runs are made in slices, so that `stop` is heeded within a second or so; slices change no word and no state.
    """
    kernel = coupled.kernel
    size = max(1, SLICE_NANOSECONDS // kernel.step_nanoseconds)
    x = kernel.start(first)
    for made in range(0, lag, size):
        _check_stopped(stop)
        x, _ = kernel.run(x, min(size, lag - made), first)
    y = kernel.start(second)
    # X_L = Y_0 does not count, since l > L; the chains then move as one, and l = L + 1 does.
    pair = StatePair(x, x) if np.array_equal(x, y) else StatePair(x, y)
    steps = 0
    while steps < most:
        _check_stopped(stop)
        pair, info = coupled.run(pair, min(size, most - steps), together)
        steps += info.steps
        if info.identical:
            return lag + steps, True
    return lag + most, False


def _check_stopped(stop: Event | None) -> None:
    if stop is not None and stop.is_set():
        raise InterruptedError("stopped")


def _piece(coupled: CoupledKernel, lag: int, most: int, seed: str, numbers: range, stop: Event) -> tuple[list[int], list[bool]]:
    """The pairs of these numbers. Each piece opens the key anew: nothing is shared between threads."""
    times, met = [], []
    with NoiseKey.for_tests("chain meetings: " + seed) as key:
        for number in numbers:
            label = coupled.kernel.name, lag, number
            with key.stream(*label, "first") as first, key.stream(*label, "second") as second, key.stream(*label, "together") as together:
                time, identical = meet_once(coupled, lag, most, first, second, together, stop)
            times.append(time)
            met.append(identical)
    return times, met


def _at_least(value: int, least: int, name: str, unit: str) -> int:
    number = exact_integer(value, name)
    if number < least:
        raise InvalidParameter(f"{name} is a number of {unit}, {least} or more. Got {number}.")
    return number


def check_all_met(meetings: Meetings) -> None:
    """NoMeeting if a pair is censored: no bound follows from the other pairs."""
    if meetings.unmet:
        raise NoMeeting(
            f"{meetings.unmet} of {meetings.pairs} pairs of {meetings.kernel} did not meet within {meetings.most} steps, so no bound "
            "was obtained. Allow more steps, or use another kernel."
        )
