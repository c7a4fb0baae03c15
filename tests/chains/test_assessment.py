"""The recommended number of steps: what it rests on, when it is refused, what it says."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from holdfast.chains.assessment import MAX_MINUTES, PILOT_PAIRS, SHARP_ENOUGH, Assessment, Pilot, assess, assess_all, pilot
from holdfast.chains.meeting import Meetings, meeting_times
from holdfast.chains.protocol import State
from holdfast.errors import InexactParameter, InvalidParameter, NoMeeting, RequestTooLarge
from holdfast.randomness import Stream, Words
from holdfast.research.chains.curve import TotalVariationCurve
from holdfast.research.chains.diagnose import stability, steps_allowed
from holdfast.wording import describe
from tests.snapshot_files import Snapshot

from .toy import Refresh

SLOW = Refresh(sixteenths=1, values=8, uniform_start=True, steps_per_sweep=3)
NEVER = Refresh(sixteenths=0, values=4, uniform_start=True)


def test_the_pilot_finds_a_lag_that_most_pairs_meet_within() -> None:
    """P[D <= lag] is known exactly. The 48th of 50 lies below the 60 % point, and above that of 1 - 1e-4, with probability below 2e-8 each
    (binomial; three rounds at most).
    """
    found = pilot(SLOW, seed="lag", most=10_000)
    law = SLOW.meeting_law(found.lag, 2000)
    assert sum(law[d] for d in range(1, found.lag + 1)) > Fraction(3, 5)
    assert sum(law[d] for d in range(1, found.lag - 2)) < 1 - Fraction(1, 10**4)  # less what was rounded up
    assert found.lag % 3 == 0
    assert found.lag == pilot(SLOW, seed="lag", most=10_000).lag
    assert found.meetings.pairs == PILOT_PAIRS
    assert 1 <= Fraction(found.meetings.bound(0)) <= SHARP_ENOUGH
    assert found.meetings.seed == "lag: pilot 2"


def test_the_pilot_takes_the_48th_of_50_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """Times 1 .. 50 at every lag: 95 % of them lie at or below 48 (47.5 rounded up), and the next round finds that sharp enough."""
    lags: list[int] = []

    def counted(kernel: Refresh, *, lag: int, pairs: int, most: int, seed: str, **_: Any) -> Meetings:
        lags.append(lag)
        return Meetings(kernel.name, lag, most, lag + np.arange(pairs, 0, -1), np.array([True] * pairs), seed)

    monkeypatch.setattr("holdfast.chains.assessment.meeting_times", counted)
    assert pilot(Refresh(), seed="counted", most=99).lag == 48
    assert lags == [1, 1, 48]
    assert pilot(Refresh(steps_per_sweep=7), seed="counted", most=99).lag == 49


def test_the_pilot_stays_at_one_sweep_where_that_is_enough() -> None:
    quick = Refresh(sixteenths=16, steps_per_sweep=7)
    assert pilot(quick, seed="q", most=100).lag == 7


def test_pilot_cost_counts_both_chains() -> None:
    meetings = Meetings("k", 2, 99, np.array([3, 5, 12]), np.array([True] * 3), "s")
    assert Pilot(10, meetings).steps_for(6) == 6 * (10 + 2 * (1 + 3 + 10) // 3)


def test_assessment_rests_on_its_pairs() -> None:
    calls: list[tuple[int, int]] = []
    found = assess(SLOW, eta="1/100", seed="a", progress=lambda done, total: calls.append((done, total)))
    assert found.lag == pilot(SLOW, seed="a", most=60_000).lag
    again = meeting_times(SLOW, lag=found.lag, pairs=300, most=60_000, seed="a")
    steps = sorted(again.coupled_steps.tolist())
    assert (found.kernel, found.pairs, found.met, found.eta) == ("refresh", 300, 300, Fraction(1, 100))
    assert (found.median, found.largest) == (steps[149], steps[-1])
    assert 2 * steps[-1] <= found.steps < 2 * steps[-1] + 3
    assert found.steps == 3 * found.sweeps
    assert found.steps_per_sweep == 3
    assert found.meetings.bound(found.largest) == found.meetings.bound(found.steps) == 0
    assert TotalVariationCurve(found.meetings).upper(found.steps) == pytest.approx(float(found.eta))
    assert calls[-1] == (300, 300)
    assert {total for _, total in calls} == {2, PILOT_PAIRS, 300}
    same = assess(SLOW, eta=Fraction(1, 100), seed="a", workers=1)
    assert (same.steps, same.lag, same.median) == (found.steps, found.lag, found.median)
    assert assess(SLOW, eta="1/100", seed="b").meetings.times.tolist() != again.times.tolist()


@pytest.mark.parametrize(("eta", "pairs"), [("1/2", 100), ("3/100", 100), ("0.0299", 101), (Fraction(2, 301), 452)])
def test_pairs_make_the_eta_that_was_asked_for(eta: Any, pairs: int) -> None:
    found = assess(Refresh(sixteenths=12), eta=eta, seed="n")
    assert found.pairs == pairs
    assert found.eta == Fraction(3, pairs) <= Fraction(eta)


def test_pilot_pairs_are_not_used_again() -> None:
    """A kernel that keeps the lag of the pilot still gets pairs of its own."""
    kernel = Refresh(sixteenths=2, values=8, uniform_start=True, steps_per_sweep=64)
    tried, found = pilot(kernel, seed="own", most=10**5), assess(kernel, eta="1/2", seed="own")
    assert tried.lag == found.lag == 64
    assert tried.meetings.times.tolist() != found.meetings.times[:PILOT_PAIRS].tolist()


def test_words(snapshot: Snapshot) -> None:
    meetings = Meetings("k", 9, 99, np.array([10, 11]), np.array([True, True]), "s")
    found = Assessment("line_gibbs", 82, 738, 90, 3000, 3000, 120, 365, Fraction(1, 1000), 1, meetings)
    snapshot(describe(found), "many sweeps")
    snapshot(describe(replace(found, sweeps=1, steps=9, largest=4)), "one sweep")
    snapshot(describe(replace(found, shapes=4)), "four shapes")


def test_chains_that_never_meet_are_told_by_the_pilot() -> None:
    with pytest.raises(NoMeeting, match=rf"of (2|{PILOT_PAIRS}) pairs of refresh did not meet within 40 steps, so no bound") as caught:
        assess(NEVER, eta="1/100", seed="never", most=40)
    assert "max_steps" not in str(caught.value)
    with pytest.raises(NoMeeting):
        pilot(NEVER, seed="never", most=40)


class Apart(Refresh):
    """Two chains that start at different values and stay there."""

    def start(self, words: Words) -> State:
        assert isinstance(words, Stream)
        return np.array([int(words.label[-1] == "first")])


def test_two_pairs_that_do_not_meet_end_the_pilot() -> None:
    totals: list[int] = []
    with pytest.raises(NoMeeting, match="2 of 2 pairs of refresh did not meet within 30 steps"):
        assess(Apart(sixteenths=0), eta="1/100", seed="apart", most=30, progress=lambda _, total: totals.append(total))
    assert set(totals) == {2}


def test_a_pair_that_does_not_meet_in_the_main_run_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind a pilot that saw nothing of it: a quarter of these pairs start equal, the others never meet."""
    quick = Meetings("refresh", 4, 90, np.array([5] * 50), np.array([True] * 50), "s")
    monkeypatch.setattr("holdfast.chains.assessment.pilot", lambda *_, **__: Pilot(4, quick))
    kernel = replace(NEVER, steps_per_sweep=2)
    met = int(meeting_times(kernel, lag=4, pairs=100, most=90, seed="late").met.sum())
    told = rf"{met} of 100 coupled pairs of refresh met within 90 steps \(45 sweeps\), {100 - met} did not, so no bound was obtained\."
    with pytest.raises(NoMeeting, match=told):
        assess(kernel, eta="3/100", seed="late", most=90)


def test_what_takes_too_long_is_refused_before_it_is_made() -> None:
    calls: list[int] = []
    slow = replace(SLOW, step_nanoseconds=2 * 10**7)
    with pytest.raises(
        RequestTooLarge, match=r"3000 coupled pairs of refresh would take \d+ minutes .* and 30 are allowed\. Use a larger eta"
    ):
        assess(slow, eta="1/1000", seed="cost", progress=lambda _, total: calls.append(total))
    assert set(calls) == {2, PILOT_PAIRS}
    assert steps_allowed(SLOW) * SLOW.step_nanoseconds == MAX_MINUTES * 60 * 10**9


def test_the_pilot_itself_keeps_within_the_time_allowed() -> None:
    never = replace(NEVER, step_nanoseconds=6 * 10**6)
    with pytest.raises(NoMeeting, match=r"did not meet within 99 steps, .* because of the time allowed\."):
        assess(never, eta="1/100", seed="never", max_minutes=1)
    with pytest.raises(RequestTooLarge, match="300 coupled pairs of refresh would take 300 minutes"):  # a few sweeps of each pair already
        assess(replace(NEVER, step_nanoseconds=10**10), eta="1/100", seed="never", max_minutes=1)


def test_many_shapes_share_the_time_and_too_many_pairs_are_refused_at_once() -> None:
    calls: list[int] = []
    many = [(SLOW, str(number)) for number in range(45)]
    with pytest.raises(RequestTooLarge, match=r"340150 coupled pairs of refresh for each of 45 shapes of blocks .* Use a larger eta"):
        assess_all(many, eta="1/50000", progress=lambda _, total: calls.append(total))
    assert not calls
    together = [(replace(SLOW, step_nanoseconds=10**7), str(number)) for number in range(3)]
    assert len(assess_all(together[:1], eta="1/50", max_minutes=4)) == 1
    with pytest.raises(RequestTooLarge, match="for each of 3 shapes"):
        assess_all(together, eta="1/50", max_minutes=4)
    found = assess_all([(SLOW, "a"), (SLOW, "b")], eta="1/50")
    alone = assess(SLOW, eta="1/50", seed="a")
    assert (alone.pairs, found[0].pairs) == (150, 185)  # ln 40 = 3.689 in place of 3
    assert found[0].meetings.times[:150].tolist() == alone.meetings.times.tolist()


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"eta": 0}, InvalidParameter, "eta must be greater than zero"),
        ({"eta": 1}, InvalidParameter, "must be below 1. Got 1"),
        ({"eta": 0.01}, InexactParameter, "0.01"),
        ({"most": 0}, InvalidParameter, "most"),
        ({"most": 1.5}, InvalidParameter, "most must be an int"),
        ({"workers": 0}, InvalidParameter, "workers"),
    ],
)
def test_bad_input(change: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        assess(Refresh(), **({"eta": "1/100", "seed": "s"} | change))


def test_curves_of_several_lags_agree_with_the_distance_where_they_can() -> None:
    """At every lag the expectation is the same distance (toy.py); each estimate within 6.5 standard errors (1e-10 of a normal law)."""
    kernel = Refresh(sixteenths=6, values=8)
    curves = stability(kernel, [1, 3, 9], pairs=2000, most=1000, seed="lags")
    assert [curve.meetings.lag for curve in curves] == [1, 3, 9]
    for t in (1, 4):
        distance = float(kernel.stay**t * Fraction(7, 8))
        for curve in curves:
            assert abs(curve.bound(t) - distance) < 6.5 * curve.standard_error(t)


def test_stability_gives_curves_that_refuse_and_refuses_no_lags() -> None:
    (curve,) = stability(NEVER, [2], pairs=20, most=5, seed="s")
    assert curve.lower_envelope_if_met_at_cap(0) > 1
    with pytest.raises(NoMeeting):
        curve.bound(0)
    with pytest.raises(InvalidParameter, match="one lag or more"):
        stability(NEVER, [], pairs=20, most=5, seed="s")
    with pytest.raises(InvalidParameter, match="lag is a number of steps"):
        stability(NEVER, [0], pairs=20, most=5, seed="s")
