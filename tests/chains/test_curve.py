"""The total variation curve: against its definition, against a chain whose distance is known, and refusing what is not known."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.chains.meeting import Meetings, meeting_times
from holdfast.errors import InvalidParameter, NoMeeting
from holdfast.research.chains.curve import TotalVariationCurve

from .toy import Refresh


def curve_of(coupled_steps: list[int], lag: int, most: int = 10**6, met: list[bool] | None = None) -> TotalVariationCurve:
    times = np.array(coupled_steps, dtype=np.int64) + lag
    return TotalVariationCurve(Meetings("toy", lag, most, times, np.array([True] * len(times) if met is None else met), "by hand"))


@given(st.lists(st.integers(1, 60), min_size=2, max_size=12), st.integers(1, 20), st.integers(0, 70))
def test_the_bound_counts_lags_that_are_left(steps: list[int], lag: int, t: int) -> None:
    """J_t is the number of j >= 0 with tau - L > t + j L."""
    counts = [sum(d > t + j * lag for j in range(100)) for d in steps]
    mean = Fraction(sum(counts), len(steps))
    curve = curve_of(steps, lag)
    assert curve.bound(t) == float(mean)
    variance = sum((c - mean) ** 2 for c in counts) / (len(steps) - 1) / len(steps)
    assert curve.standard_error(t) == pytest.approx(math.sqrt(variance), rel=1e-12, abs=1e-15)
    upper = curve.upper(t)
    assert upper >= 3 / len(steps)
    assert upper == max(3 / len(steps), curve.bound(t) + 1.645 * curve.standard_error(t))
    assert curve.lower_envelope_if_met_at_cap(t) == curve.bound(t)
    assert curve.bound(0) >= 1
    assert curve.bound(t + 1) <= curve.bound(t)
    assert curve.bound(max(steps)) == 0
    assert curve.bound(max(steps) - 1) > 0


@pytest.mark.parametrize("lag", [1, 3, 10])
def test_the_bound_of_the_toy_is_its_distance(lag: int) -> None:
    """As fractions: the expectation of J_t under the meeting law, against the distance of the chain's law, listed, from the uniform one."""
    kernel = Refresh(sixteenths=5, values=4)
    r, m = kernel.stay, kernel.values
    last = 40 * lag
    law = kernel.meeting_law(lag, last)
    for t in (1, 2, 7):
        listed = sum(mass * max(0, -((t - d) // lag)) for d, mass in law.items() if d <= last)
        # beyond `last` the law is geometric: D = last + G, and J = whole lags up to there + those of G
        whole, rest = divmod(last - t, lag)
        tail = law[last + 1] * (whole + r ** (0 if rest == 0 else lag - rest) / (1 - r**lag) + (1 if rest else 0))
        chain = [(1 - r**t) / m + (r**t if value == 0 else 0) for value in range(m)]
        distance = sum(abs(p - Fraction(1, m)) for p in chain) / 2
        assert listed + tail == distance == r**t * (1 - Fraction(1, m))


def chernoff_range(law: dict[int, Fraction], n: int, alpha: float, largest_s: float) -> tuple[float, float]:
    """Values between which the mean of n draws lies, outside with probability at most alpha on each side: no normal approximation.

    For any s > 0, P[mean >= (log E[e^(sJ)] + log(1/alpha) / n) / s] <= alpha, and likewise below with s < 0. E[e^(sJ)] must be finite, and
    what the listed law leaves out must not matter, up to largest_s.
    """

    def edge(s: float) -> float:
        return (math.log(math.fsum(float(mass) * math.exp(s * j) for j, mass in law.items())) + math.log(1 / alpha) / n) / s

    grid = [largest_s * 2.0 ** (-k / 2) for k in range(20)]
    return max(edge(-s) for s in grid), min(edge(s) for s in grid)


@pytest.mark.ordinary("1-1]", "4-9", "12-6")
@pytest.mark.parametrize(("lag", "t"), [(1, 1), (4, 2), (4, 9), (12, 1), (12, 6)])
def test_the_estimate_is_near_its_expectation(lag: int, t: int) -> None:
    """False alarm at most 2e-10 each, by Chernoff's bound. Before the tail, distances one step off lie outside: a shift would be seen."""
    kernel, pairs = Refresh(sixteenths=6, values=8), 6000
    curve = TotalVariationCurve(meeting_times(kernel, lag=lag, pairs=pairs, most=5000, seed="expectation"))
    meeting = kernel.meeting_law(lag, 400)
    law: dict[int, Fraction] = {}
    for d, mass in meeting.items():
        j = max(0, -((t - d) // lag))
        law[j] = law.get(j, Fraction(0)) + mass
    # P[D > d] falls like r^d, so that E[e^(sJ)] is finite for s < L ln(1/r); at half of that what lies beyond d = 400 adds r^200 < 1e-40
    low, high = chernoff_range(law, pairs, 1e-10, largest_s=-lag * math.log(kernel.stay) / 2)
    distance = float(kernel.stay**t * Fraction(kernel.values - 1, kernel.values))
    assert low < distance < high
    assert low <= curve.bound(t) <= high
    if t < 9:
        assert distance * float(kernel.stay) < low
        assert distance / float(kernel.stay) > high


def test_rule_of_three_is_what_is_left_when_all_have_met() -> None:
    curve = curve_of([4, 7, 9, 9], 5)
    assert curve.bound(9) == curve.standard_error(9) == 0
    assert curve.upper(9) == curve.upper(10**9) == 3 / 4
    assert (1 - 3 / 1000) ** 1000 < math.exp(-3) < 0.05
    wide = curve_of([5] * 1000, 5)
    assert wide.bound(4) == 1
    assert wide.upper(4) == 1
    assert wide.upper(5) == 0.003


def test_upper_covers_the_distance_about_as_often_as_it_says() -> None:
    """100 curves of 60 pairs at a step where about 6 pairs are left; the false alarm rate is 1e-9, from the exact binomial law."""
    kernel, pairs, t = Refresh(sixteenths=8, values=8, uniform_start=True), 60, 3
    meetings = meeting_times(kernel, lag=20, pairs=100 * pairs, most=400, seed="coverage")
    curves = [curve_of(part.tolist(), 20) for part in np.split(meetings.coupled_steps, 100)]
    expected = float((1 - Fraction(1, 8)) * kernel.stay**t / (1 - kernel.stay**20))
    covered = sum(curve.upper(t) >= expected for curve in curves)
    # Coverage of the interval itself, summed over the binomial law of pairs left (a second lag has probability below 1e-6).
    p = float((1 - Fraction(1, 8)) * kernel.stay**t)
    chance = math.fsum(
        math.comb(pairs, k) * p**k * (1 - p) ** (pairs - k)
        for k in range(pairs + 1)
        if curve_of([t + 1] * k + [1] * (pairs - k), 20).upper(t) >= expected
    )
    assert chance > 0.9
    wrong = math.fsum(math.comb(100, k) * chance**k * (1 - chance) ** (100 - k) for k in range(covered + 1))
    assert wrong > 1e-9, (covered, chance)


def test_censored_pairs_refuse_every_bound() -> None:
    curve = curve_of([3, 8, 8, 2], 2, most=8, met=[True, False, False, True])
    for ask in (curve.bound, curve.standard_error, curve.upper):
        for step in (0, 8, 1000):
            with pytest.raises(
                NoMeeting, match=r"2 of 4 pairs of toy did not meet within 8 steps, so no bound was obtained\. Allow more steps"
            ):
                ask(step)
    assert curve.lower_envelope_if_met_at_cap(0) == (2 + 4 + 4 + 1) / 4
    assert curve.points(5).tolist() == [0, 2, 4, 6, 8]


@given(st.lists(st.integers(1, 10**6), min_size=2, max_size=5), st.integers(2, 300))
def test_points_run_from_start_to_zero(steps: list[int], count: int) -> None:
    points = curve_of(steps, 3).points(count)
    assert points[0] == 0
    assert points[-1] == max(steps)
    assert (np.diff(points) > 0).all()
    assert len(points) == min(count, max(steps) + 1)


@pytest.mark.parametrize(("step", "message"), [(-1, "0 or more. Got -1"), (1.5, "must be an int"), (True, "must be an int")])
def test_bad_steps(step: Any, message: str) -> None:
    with pytest.raises(InvalidParameter, match=message):
        curve_of([1, 2], 1).bound(step)


@pytest.mark.parametrize("count", [1, 0, -4, 2.0])
def test_bad_counts(count: Any) -> None:
    with pytest.raises(InvalidParameter, match="count"):
        curve_of([1, 2], 1).points(count)
