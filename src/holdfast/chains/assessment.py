"""How many steps a chain should make, from coupled pairs that see no data.

    pilot      two pairs, to see whether chains meet at all; then few, to find a lag that 95 % of meeting times keep within
    assess     N = 3 / eta pairs at that lag; steps = twice the largest meeting time, in whole sweeps
    stability  curves at several lags: they should agree

The lag changes how sharp the curve is, not whether it holds: E[J_t] bounds the distance for every lag. With a small lag J_0 is large (the
curve starts above 1, where it says nothing); J_0 is at least 1 always, since a pair makes at least one coupled step.

What is claimed: all N pairs met within the largest tau - L, so with 95 % confidence P[tau - L > that] <= 3/N = eta (meeting.py; where
several kernels are assessed together `confidence_factor` takes the place of 3). Twice as many steps are then made. The distance is bounded
by a sum of such probabilities, one for each further lag; the second half of the steps makes that sum smaller than eta, if meeting times
have a tail that falls like a geometric one. That is usual and was not proved here: the result is "estimated", never "exact".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from holdfast.chains.meeting import Meetings, Progress, check_all_met, meeting_times
from holdfast.chains.protocol import Kernel
from holdfast.errors import InvalidParameter, NoMeeting, RequestTooLarge
from holdfast.exact.balls import ball, enclosure, precision
from holdfast.exact.parameters import Exact, exact_integer, positive_fraction

DEFAULT_SWEEPS = 20_000
"""Sweeps after which a pair is given up, unless said otherwise."""
MAX_MINUTES = 30
"""Processor time that the pairs may take in all, by the kernel's own rough figure, unless said otherwise."""
PAIR_NANOSECONDS = 300_000
"""What a pair costs before its first step: streams and states."""
FEW_SWEEPS = 3
"""No pair of a block worth the trouble is expected to meet in fewer."""
LEAST_PAIRS = 100
PILOT_PAIRS = 50
PILOT_ROUNDS = 3
SHARP_ENOUGH = Fraction(5, 4)
"""A pilot stops when the curve starts below this; it never starts below 1."""


class Pilot(NamedTuple):
    """The lag that a pilot chose, and its last pairs (at that lag, or at one that was too small)."""

    lag: int
    meetings: Meetings

    def steps_for(self, pairs: int) -> int:
        """Steps that so many pairs are expected to take: a pair makes L steps alone and tau - L steps of both chains."""
        return pairs * (self.lag + 2 * int(self.meetings.coupled_steps.sum()) // self.meetings.pairs)


@dataclass(frozen=True, eq=False)
class Assessed:
    """A recommended number of steps, and what it rests on, in numbers. Times are in steps, tau - L of the pairs."""

    kernel: str
    sweeps: int
    steps: int
    """Steps to make: twice `largest`, rounded up to whole sweeps."""
    lag: int
    pairs: int
    met: int
    median: int
    """The lower median."""
    largest: int
    eta: Fraction
    """confidence_factor(shapes) / pairs: 3 / pairs where one shape is assessed."""
    shapes: int
    """Kernels assessed together: the confidence is for all of them."""

    @property
    def steps_per_sweep(self) -> int:
        return self.steps // self.sweeps

    @property
    def largest_sweeps(self) -> int:
        """`largest` in sweeps, rounded up."""
        return -(-self.largest // self.steps_per_sweep)


@dataclass(frozen=True, eq=False)
class Assessment(Assessed):
    """The same with the pairs themselves."""

    meetings: Meetings


class Said(NamedTuple):
    """What a card says of pairs that were coupled elsewhere; everything else of an assessment follows."""

    lag: int
    median: int
    largest: int


def as_said(kernel: Kernel, *, eta: Fraction, shapes: int, said: Said) -> Assessed:
    """The assessment of a kernel to eta whose pairs met as somebody says. Nothing is run: whether they did is not known here."""
    pairs = _pairs_for(eta, shapes)
    steps = whole_sweeps(2 * said.largest, kernel)
    if not 0 < said.median <= said.largest:
        raise InvalidParameter("Half of the pairs of a chain cannot take longer to meet than all of them.")
    return Assessed(
        kernel=kernel.name,
        sweeps=steps // kernel.steps_per_sweep,
        steps=steps,
        lag=said.lag,
        pairs=pairs,
        met=pairs,
        median=said.median,
        largest=said.largest,
        eta=confidence_factor(shapes) / pairs,
        shapes=shapes,
    )


def _pairs_for(eta: Fraction, shapes: int) -> int:
    return max(LEAST_PAIRS, math.ceil(confidence_factor(shapes) / eta))


def pilot(
    kernel: Kernel, *, seed: str, most: int, pairs: int = PILOT_PAIRS, workers: int | None = None, progress: Progress | None = None
) -> Pilot:
    """A lag, in whole sweeps, at which about 95 % of pairs meet within one lag, with the pairs it rests on; NoMeeting if none meets at all.

    Where neither of two pairs meets it ends there: chains that do not meet would cost the most. The first round has a lag of one sweep.
    While the curve starts above SHARP_ENOUGH, the next lag is the 95 % quantile of tau - L, in whole sweeps; at most PILOT_ROUNDS rounds,
    each with pairs of its own.
    """
    lag = kernel.steps_per_sweep
    probe = meeting_times(kernel, lag=lag, pairs=2, most=most, seed=f"{seed}: probe", workers=workers, progress=progress)
    if probe.unmet == 2:
        check_all_met(probe)
    for number in range(1, PILOT_ROUNDS + 1):
        meetings = meeting_times(
            kernel, lag=lag, pairs=pairs, most=most, seed=f"{seed}: pilot {number}", workers=workers, progress=progress
        )
        check_all_met(meetings)
        if Fraction(meetings.bound(0)) <= SHARP_ENOUGH:
            break
        ordered = np.sort(meetings.coupled_steps)
        lag = whole_sweeps(int(ordered[-(-95 * pairs // 100) - 1]), kernel)
    return Pilot(lag, meetings)


class Planned(NamedTuple):
    """Pairs to be coupled: how many, at which lag, given up after how many coupled steps, and what a pilot says they take."""

    pairs: int
    lag: int
    cap: int
    nanoseconds: int


def assess(
    kernel: Kernel,
    *,
    eta: Exact,
    seed: str,
    most: int | None = None,
    max_minutes: int = MAX_MINUTES,
    workers: int | None = None,
    progress: Progress | None = None,
) -> Assessment:
    """Couple ceil(3 / eta) pairs, at least 100, and recommend a number of steps.

    Given:       0 < eta < 1; `most` coupled steps a pair, by default 20 000 sweeps. `progress` sees the pilot's rounds and the main run,
                 each with its own total.
    Guarantees:  deterministic and data-free. NoMeeting if any pair did not meet; RequestTooLarge if the pilot says that all pairs together
                 would take more than `max_minutes` of processor time. The module's text says what the result claims.
    """
    (found,) = assess_all([(kernel, seed)], eta=eta, most=most, max_minutes=max_minutes, workers=workers, progress=progress)
    return found


def assess_all(
    kernels: Sequence[tuple[Kernel, str]],
    *,
    eta: Exact,
    most: int | None = None,
    max_minutes: int = MAX_MINUTES,
    workers: int | None = None,
    progress: Progress | None = None,
) -> list[Assessment]:
    """`assess` for several kernels, each with its seed and to the same eta; the time allowed is for all of them together."""
    wanted = positive_fraction(eta, "eta")
    if wanted >= 1:
        raise InvalidParameter(f"eta is a total variation distance and must be below 1. Got {wanted}. Use for example '1/1000'.")
    factor = confidence_factor(len(kernels))
    pairs = _pairs_for(wanted, len(kernels))
    limit = exact_integer(max_minutes, "max_minutes") * 60 * 10**9
    _check_time(len(kernels) * pairs * PAIR_NANOSECONDS, limit, pairs, kernels)
    plans = []
    for kernel, seed in kernels:
        cap = DEFAULT_SWEEPS * kernel.steps_per_sweep if most is None else exact_integer(most, "most")
        plans.append(_plan_pairs(kernel, pairs, cap, limit, seed, workers, progress))
        _check_time(sum(plan.nanoseconds for plan in plans), limit, pairs, kernels)
    return [
        _assess_pairs(kernel, plan, factor / pairs, len(kernels), seed, workers, progress)
        for (kernel, seed), plan in zip(kernels, plans, strict=True)
    ]


def confidence_factor(shapes: int) -> Fraction:
    """c such that c / N bounds, for each of so many shapes, what N pairs that all met leave open; all of it with 95 % confidence together.

    (1 - c / N)^N < e^-c, and K e^-c <= 1/20 for c = ln(20 K), here rounded up to a thousandth; for one shape the customary 3.
    """
    if shapes == 1:
        return Fraction(3)
    with precision(64):
        return Fraction(math.ceil(1000 * enclosure(ball(20 * shapes).log()).upper), 1000)


def largest_eta(shapes: int) -> Fraction:
    """The largest error of one block that can be asked for: what LEAST_PAIRS leave open."""
    return confidence_factor(shapes) / LEAST_PAIRS


def _plan_pairs(kernel: Kernel, pairs: int, cap: int, limit: int, seed: str, workers: int | None, progress: Progress | None) -> Planned:
    """The pilot's lag and cost. A round of the pilot stays within the limit too: its pairs get a smaller cap if need be."""
    # Chains that meet take several sweeps at the least: what cannot be paid even then is not tried.
    _check_time(pairs * 2 * FEW_SWEEPS * kernel.steps_per_sweep * kernel.step_nanoseconds, limit, pairs, [(kernel, seed)])
    allowed = limit // (2 * PILOT_PAIRS * kernel.step_nanoseconds) - kernel.steps_per_sweep
    try:
        tried = pilot(kernel, seed=seed, most=min(cap, allowed), workers=workers, progress=progress)
    except NoMeeting as problem:
        if allowed >= cap:
            raise
        raise NoMeeting(f"{problem} Pairs of the pilot were given up that early because of the time allowed.") from None
    return Planned(pairs, tried.lag, cap, tried.steps_for(pairs) * kernel.step_nanoseconds + pairs * PAIR_NANOSECONDS)


def _assess_pairs(
    kernel: Kernel, plan: Planned, eta: Fraction, shapes: int, seed: str, workers: int | None, progress: Progress | None
) -> Assessment:
    pairs = plan.pairs
    meetings = meeting_times(kernel, lag=plan.lag, pairs=pairs, most=plan.cap, seed=seed, workers=workers, progress=progress)
    _check_met(kernel, meetings)
    ordered = np.sort(meetings.coupled_steps)
    steps = whole_sweeps(2 * int(ordered[-1]), kernel)
    return Assessment(
        kernel=kernel.name,
        sweeps=steps // kernel.steps_per_sweep,
        steps=steps,
        lag=plan.lag,
        pairs=pairs,
        met=pairs - meetings.unmet,
        median=int(ordered[(pairs - 1) // 2]),
        largest=int(ordered[-1]),
        eta=eta,
        shapes=shapes,
        meetings=meetings,
    )


def _check_time(nanoseconds: int, limit: int, pairs: int, kernels: Sequence[tuple[Kernel, str]]) -> None:
    """Refuse what would take longer than is allowed, as far as is known by now."""
    if nanoseconds > limit:
        names = ", ".join(dict.fromkeys(kernel.name for kernel, _ in kernels))
        where = "" if len(kernels) == 1 else f" for each of {len(kernels)} shapes of blocks"
        raise RequestTooLarge(
            f"{pairs} coupled pairs of {names}{where} would take {math.ceil(nanoseconds / 60e9)} minutes of processor time or more, and "
            f"{limit // (60 * 10**9)} are allowed. Use a larger eta, which takes fewer pairs, or another sampler."
        )


def whole_sweeps(steps: int, kernel: Kernel) -> int:
    """The number of steps, rounded up to whole sweeps."""
    return -(-steps // kernel.steps_per_sweep) * kernel.steps_per_sweep


def _check_met(kernel: Kernel, meetings: Meetings) -> None:
    """NoMeeting, with all that is known, if a pair of the main run is censored."""
    if meetings.unmet:
        raise NoMeeting(
            f"{meetings.pairs - meetings.unmet} of {meetings.pairs} coupled pairs of {kernel.name} met within "
            f"{meetings.most} steps ({sweeps_phrase(meetings.most // kernel.steps_per_sweep)}), {meetings.unmet} did not, so no bound was "
            "obtained. Allow more steps with `most`, or use another kernel."
        )


def sweeps_phrase(count: int) -> str:
    """For example "1 sweep" or "12 sweeps"."""
    return f"{count} sweep{'' if count == 1 else 's'}"
