"""ArviZ's figures on series whose autocorrelation is known, and what our wrappers refuse."""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from holdfast.errors import ChainProblem, InvalidParameter
from holdfast.randomness import NoiseKey
from holdfast.research.chains.diagnostics import COLUMNS, autocorrelation_time, effective_sample_size, split_r_hat, trace_summary
from tests.chains.toy import Refresh

pytest.importorskip("arviz_stats")


def normal_numbers(shape: tuple[int, ...], name: str) -> NDArray[np.float64]:
    from scipy.special import ndtri

    with NoiseKey.for_tests("diagnostics").stream(name) as words:
        uniform = (words.take(math.prod(shape)).astype(np.float64) + 0.5) / 2**32
    normal: NDArray[np.float64] = ndtri(uniform).reshape(shape)
    return normal


def autoregression(rho: float, chains: int, draws: int, name: str) -> NDArray[np.float64]:
    """x_t = rho x_(t-1) + normal, from its stationary law: autocorrelation rho^k."""
    from scipy.signal import lfilter

    noise = normal_numbers((chains, draws), name)
    noise[:, 0] /= math.sqrt(1 - rho * rho)
    series: NDArray[np.float64] = lfilter([1.0], [1.0, -rho], noise, axis=1)
    return series


def tolerance(time: float, draws: int) -> float:
    """Relative error of an estimated autocorrelation time, exceeded with probability about 1e-9.

    An estimate that sums autocorrelations up to a window of M draws has relative variance 2 (2M + 1) / draws (Madras and Sokal 1988); the
    initial monotone sequence stops where they sink into noise, here before M = 10 times (their sum beyond is below e^-20 of the whole);
    6.11 standard deviations leave 1e-9 of a normal law outside.
    """
    return 6.11 * math.sqrt(2 * (20 * time + 1) / draws)


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.8])
def test_autocorrelation_time_of_an_autoregression(rho: float) -> None:
    chains, draws = 4, 100_000
    series = autoregression(rho, chains, draws, f"rho {rho}")
    time = (1 + rho) / (1 - rho)
    allowed = tolerance(time, chains * draws)
    assert abs(autocorrelation_time(series) / time - 1) < allowed < 1 / 4
    assert abs(effective_sample_size(series) * time / series.size - 1) < allowed / (1 - allowed)


@pytest.mark.parametrize(("rho", "wrong"), [(0.0, 4 / 3), (0.5, 4), (0.5, 2), (0.8, 5)])
def test_a_wrong_autocorrelation_time_is_told(rho: float, wrong: float) -> None:
    """Times one third longer (1 and 3 are right for 0 and .5), and 1 / (1 - rho): the sum of autocorrelations without its factor 2."""
    series = autoregression(rho, 4, 100_000, f"rho {rho}")
    assert abs(autocorrelation_time(series) / wrong - 1) > tolerance(wrong, series.size)


def test_one_chain_may_be_flat() -> None:
    series = autoregression(0.5, 1, 1000, "flat")
    assert effective_sample_size(series[0]) == effective_sample_size(series)
    assert autocorrelation_time(series[0]) == autocorrelation_time(series)


def test_r_hat_is_near_one_for_like_chains_and_not_for_shifted_or_wider_ones() -> None:
    """Of like halves R-hat^2 - 1 is (B/W - 1) / n, and 7 B/W is chi-square with 7 degrees of freedom, n = 500 draws in each of 8 halves:
    R-hat > 1.06 needs 7 B/W > 400, of probability below 1e-80.
    """
    series = normal_numbers((4, 1000), "like")
    assert 0.99 < split_r_hat(series) < 1.06
    assert split_r_hat(series + np.arange(4)[:, None]) > 1.2
    assert split_r_hat(series * np.array([1, 1, 1, 4])[:, None]) > 1.06
    assert split_r_hat(series + np.linspace(0, 3, 1000)) > 1.2  # drifting: halves differ


def test_trace_summary_of_a_chain_with_known_autocorrelation() -> None:
    """The toy's autocorrelation is r^k: at every second step it is that of rho = r^2, and a sweep is 3 steps.

    R-hat^2 = 1 + (B/W - 1) / n for n = 25000 draws in each of 8 halves: never below 1 - 1/n, and above 1.01^2 only where B/W > 503. With
    an autocorrelation time of 25/7 draws, 7 B/W is about 25/7 times a chi-square with 7 degrees of freedom, which then exceeds 985: a
    probability below 1e-200. Ranks of draws and of their distances from the median are no more dependent than the draws are.
    """
    kernel = Refresh(sixteenths=4, values=64, steps_per_sweep=3)
    found = trace_summary(kernel, records=50_000, every=2, chains=4, seed="toy", burn_in=2000)
    rho = float(kernel.stay) ** 2
    time = (1 + rho) / (1 - rho)
    allowed = tolerance(time, 200_000)
    for name in COLUMNS[:2]:
        column = found.columns[name]
        assert abs(column.autocorrelation_time_sweeps / (time * 2 / 3) - 1) < allowed < 1 / 4
        assert column.effective_sample_size * column.autocorrelation_time_sweeps == pytest.approx(200_000 * 2 / 3)
        assert 0.999 < column.r_hat < 1.01
    assert all(math.isnan(figure) for figure in found.columns[COLUMNS[2]])
    # 4000 steps of four second halves, 1/4 each refreshed: Hoeffding, 1e-9
    assert abs(found.acceptance_rate - 1 / 4) < math.sqrt(math.log(2e9) / 8000)
    assert (found.kernel, found.chains, found.records, found.every, found.burn_in) == ("refresh", 4, 50_000, 2, 2000)


def test_trace_of_the_toy_is_its_steps() -> None:
    """The toy's fast trace against its steps, from the same words."""
    kernel = Refresh()
    state = np.array([3])
    key = NoiseKey.for_tests("trace")
    with key.stream("a") as words:
        last, rows = kernel.trace(state, 40, 3, words)
    with NoiseKey.for_tests("trace").stream("a") as words:
        for row in rows:
            state, _ = kernel.run(state, 3, words)
            assert row.tolist() == [int(state[0]), int(state[0]), 0]
    assert (last == state).all()


def test_trace_summary_is_deterministic_and_has_a_burn_in_by_default() -> None:
    kernel = Refresh()
    a, b = (trace_summary(kernel, records=100, every=2, chains=2, seed="same") for _ in range(2))
    assert a.columns["energy"] == b.columns["energy"]
    assert a.burn_in == 100
    assert a.columns["energy"] != trace_summary(kernel, records=100, every=2, chains=2, seed="other").columns["energy"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"chains": 1}, "fewer than 2 chains. Got 1"),
        ({"chains": 2.0}, "chains must be an int"),
        ({"records": 3}, "4 records or more.* Got records 3, every 1"),
        ({"every": 0}, "Got records 10, every 0"),
        ({"burn_in": 1}, "burn_in is a number of steps, 2 or more.* Got 1"),
    ],
)
def test_bad_traces(change: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"records": 10, "every": 1, "chains": 2, "seed": "s"} | change
    with pytest.raises(InvalidParameter, match=message):
        trace_summary(Refresh(), **given)


def test_bad_draws() -> None:
    good = np.arange(10.0)
    with pytest.raises(InvalidParameter, match=r"fewer than 2 chains\. Got 1"):
        split_r_hat(good)
    for bad, message in (
        (np.zeros((2, 2, 9)), "one row for each chain"),
        (np.array([good, good * np.nan]), "finite"),
        (np.array([["a", "b", "c", "d"]]), "finite numbers"),
        (good[:3], "4 draws or more. Got 3"),
    ):
        for ask in (effective_sample_size, autocorrelation_time):
            with pytest.raises(InvalidParameter, match=message):
                ask(bad)


def test_a_chain_that_never_moved_has_no_figures() -> None:
    still = np.full((3, 50), 7)
    assert math.isnan(effective_sample_size(still))
    assert math.isnan(autocorrelation_time(still))
    assert math.isnan(split_r_hat(still))


def test_without_the_package_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "arviz_stats.base", None)
    with pytest.raises(ChainProblem, match=r"pip install holdfast\[diagnose\]"):
        effective_sample_size(np.arange(10))
    with pytest.raises(ChainProblem, match=r"pip install holdfast\[diagnose\]"):
        trace_summary(Refresh(), records=10**9, every=10**9, chains=2, seed="not run")
