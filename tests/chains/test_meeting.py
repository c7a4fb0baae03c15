"""Meeting times: every word enumerated on a small chain, the known law, and nothing that depends on how the work was divided."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from holdfast.chains.meeting import Meetings, meet_once, meeting_times
from holdfast.chains.protocol import Kernel
from holdfast.chains.target import ChainTarget
from holdfast.errors import InvalidParameter
from holdfast.testing import ListedWords, all_words, check_fit, fits

from .toy import CoupledRefresh, Refresh


@pytest.mark.parametrize("uniform_start", [False, True])
@pytest.mark.parametrize("lag", [1, 2])
def test_all_words_give_the_meeting_law(lag: int, uniform_start: bool) -> None:
    """Words of one bit decide everything when half of all steps refresh and there are two values: run all of them."""
    kernel, most = Refresh(sixteenths=8, values=2, uniform_start=uniform_start), 3
    starts, alone, together = int(uniform_start), 2 * lag, 2 * most
    seen: Counter[tuple[int, bool]] = Counter()
    lists = all_words(1, 2 * starts + alone + together, shift=31)
    for row in lists:
        first, second, rest = np.split(row, [starts + alone, 2 * starts + alone])
        seen[meet_once(kernel.couple(), lag, most, ListedWords(first), ListedWords(second), ListedWords(rest))] += 1
    law = kernel.meeting_law(lag, most)
    expected = {(lag + d, True): mass for d, mass in law.items() if d <= most} | {(lag + most, False): law[most + 1]}
    assert {key: Fraction(count, len(lists)) for key, count in seen.items()} == expected


def test_chains_that_are_equal_before_the_first_coupled_step_meet_with_it() -> None:
    """l > L: the meeting of X_L and Y_0 counts one step later, even if no step would make chains meet."""
    meetings = meeting_times(Refresh(sixteenths=0), lag=5, pairs=3, most=7, seed="still")
    assert meetings.times.tolist() == [6, 6, 6]
    assert meetings.met.all()
    assert meetings.coupled_steps.tolist() == [1, 1, 1]


@pytest.mark.parametrize("lag", [1, 6])
def test_meeting_times_follow_their_law(lag: int) -> None:
    kernel = Refresh(sixteenths=3, values=8)
    meetings = meeting_times(kernel, lag=lag, pairs=4000, most=1000, seed="law")
    law = kernel.meeting_law(lag, 60)
    times = np.minimum(meetings.coupled_steps, 61)
    check_fit(times, law, name=f"meeting times of the toy chain, lag {lag}")
    assert not fits(np.minimum(meetings.coupled_steps + 1, 61), law)  # counted from the wrong step
    assert not fits(times, Refresh(sixteenths=4, values=8).meeting_law(lag, 60))


def test_meeting_times_of_another_lag_are_told_apart() -> None:
    """At lag 1: X_L depends on L still, by stay^L = 13/16. Later it hardly does, and the law hardly changes."""
    kernel = Refresh(sixteenths=3, values=8)
    times = np.minimum(meeting_times(kernel, lag=1, pairs=4000, most=1000, seed="law").coupled_steps, 61)
    assert fits(times, kernel.meeting_law(1, 60))
    assert not fits(times, kernel.meeting_law(3, 60))


def test_output_does_not_depend_on_workers_or_on_how_many_pairs_follow() -> None:
    kernel = Refresh(uniform_start=True)
    one, three, many = (meeting_times(kernel, lag=2, pairs=157, most=30, seed="s", workers=w) for w in (1, 3, 40))
    for other in (three, many):
        assert one.times.tolist() == other.times.tolist()
        assert one.met.tolist() == other.met.tolist()
    fewer = meeting_times(kernel, lag=2, pairs=31, most=30, seed="s")
    assert fewer.times.tolist() == one.times[:31].tolist()


def line_gibbs() -> Kernel:
    from holdfast.chains.line_gibbs import LineGibbs
    from holdfast.chains.moves import Swaps

    return LineGibbs(ChainTarget.laplace(9, "1/4"), Swaps((3, 3)))


def metropolis() -> Kernel:
    from holdfast.chains.metropolis import Metropolis

    return Metropolis(ChainTarget.laplace(3, "1/4"), np.array([[1, 0], [0, 1], [-1, -1]]), Fraction(1))


@pytest.mark.long
@pytest.mark.parametrize("make", [line_gibbs, metropolis])
def test_kernels_share_no_state_between_threads(make: Callable[[], Kernel]) -> None:
    """Compiled loops really run at once: the same times one after another and side by side, and from a kernel that was used before."""
    kernel = make()
    lag, pairs, most = 20 * kernel.steps_per_sweep, 120, 20_000
    beside = meeting_times(kernel, lag=lag, pairs=pairs, most=most, seed="real", workers=8)
    after = meeting_times(make(), lag=lag, pairs=pairs, most=most, seed="real", workers=1)
    assert beside.times.tolist() == after.times.tolist()
    assert beside.met.all()


def test_seed_lag_and_name_each_give_other_pairs() -> None:
    def steps(lag: int = 2, seed: str = "s", **kernel: Any) -> list[int]:
        return [int(d) for d in meeting_times(Refresh(**kernel), lag=lag, pairs=60, most=200, seed=seed).coupled_steps]

    runs = [steps(), steps(seed="t"), steps(lag=3), steps(name="other")]
    assert all(a != b for i, a in enumerate(runs) for b in runs[:i])
    assert steps() == runs[0]


def test_censored_pairs_stay_and_are_counted() -> None:
    kernel = Refresh(sixteenths=0, values=4, uniform_start=True)
    meetings = meeting_times(kernel, lag=3, pairs=200, most=11, seed="never")
    assert meetings.pairs == len(meetings.times) == 200
    assert meetings.unmet == 200 - meetings.met.sum() > 0
    assert set(meetings.times[~meetings.met].tolist()) == {14}
    assert set(meetings.times[meetings.met].tolist()) == {4}


def test_a_meeting_with_the_last_step_allowed_is_none_too_late() -> None:
    kernel = Refresh(uniform_start=True)
    free = meeting_times(kernel, lag=1, pairs=100, most=10_000, seed="cap")
    cap = int(np.sort(free.coupled_steps)[50])
    held = meeting_times(kernel, lag=1, pairs=100, most=cap, seed="cap")
    assert (held.met == (free.coupled_steps <= cap)).all()
    assert (held.times == np.minimum(free.times, 1 + cap)).all()
    assert (free.coupled_steps == cap).any()


def test_progress_comes_from_the_asking_thread_and_ends_at_all() -> None:
    calls: list[tuple[int, int]] = []

    def progress(done: int, total: int) -> None:
        assert threading.current_thread() is threading.main_thread()
        calls.append((done, total))

    meeting_times(Refresh(), lag=1, pairs=250, most=100, seed="p", workers=2, progress=progress)
    done = [call[0] for call in calls]
    assert done[0] == 0
    assert done[-1] == 250
    assert all(a < b for a, b in pairwise(done))
    assert {call[1] for call in calls} == {250}
    assert len(calls) > 50


class Broken(Exception):
    pass


class BrokenPair(CoupledRefresh):
    def run(self, *_: Any) -> Any:
        raise Broken


class BrokenKernel(Refresh):
    def couple(self) -> CoupledRefresh:
        return BrokenPair(self)


def test_an_error_in_a_worker_reaches_the_caller() -> None:
    with pytest.raises(Broken):
        meeting_times(BrokenKernel(), lag=1, pairs=500, most=5, seed="b", workers=2)


def test_an_error_in_progress_stops_the_run() -> None:
    def progress(done: int, total: int) -> None:
        if done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        meeting_times(Refresh(), lag=1, pairs=500, most=5, seed="b", workers=2, progress=progress)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"lag": 0}, r"lag is a number of steps, 1 or more\. Got 0"),
        ({"lag": -3}, "lag"),
        ({"lag": 1.0}, "lag must be an int"),
        ({"lag": True}, "lag must be an int"),
        ({"lag": 2**62 - 5}, r"lag \+ most"),
        ({"pairs": 1}, r"fewer than 2 chains a side\. Got 1 pairs"),
        ({"pairs": 0}, "fewer than 2"),
        ({"pairs": "9"}, "pairs must be an int"),
        ({"most": 0}, r"most is a number of coupled steps, 1 or more\. Got 0"),
        ({"most": 2.5}, "most must be an int"),
        ({"workers": 0}, r"workers is a number of threads, 1 or more\. Got 0"),
        ({"seed": 3}, "seed must be a text"),
    ],
)
def test_bad_input(change: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"lag": 1, "pairs": 10, "most": 9, "seed": "s"} | change
    with pytest.raises(InvalidParameter, match=message):
        meeting_times(Refresh(), **given)


def test_meetings_cannot_be_changed() -> None:
    meetings = Meetings("k", 1, 5, np.array([2, 3]), np.array([True, True]), "s")
    with pytest.raises(ValueError, match="read-only"):
        meetings.times[0] = 9
