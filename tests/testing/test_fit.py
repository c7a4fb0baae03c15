from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from holdfast.testing import fit

RNG_SEED = 20240611


@pytest.fixture
def unrecorded() -> Iterator[None]:
    """Checks made to test the checker itself: expected failures, which spend nothing."""
    before = list(fit.CHECKS)
    yield
    fit.CHECKS[:] = before


def gaussian(sigma_squared: float, reach: int = 150) -> NDArray[np.float64]:
    """Weights exp(-k^2 / 2 sigma_squared) for |k| <= reach, normalised; entry 0 is k = -reach."""
    weights = np.exp(-(np.arange(-reach, reach + 1) ** 2) / (2 * sigma_squared))
    return weights / math.fsum(weights)


def draws(pmf: NDArray[np.float64], n: int, seed: int, reach: int = 150) -> NDArray[np.int64]:
    return np.random.default_rng(seed).choice(pmf.size, size=n, p=pmf) - reach


def counted(pmf: NDArray[np.float64], n: int, seed: int) -> NDArray[np.int64]:
    """The counts of n draws, without the draws."""
    return np.random.default_rng(seed).multinomial(n, pmf)


# Power, with the size of the error named. A variance 1 % off at sigma_squared = 100 adds n / 20000 to the statistic's mean, on 80 to 90
# bins. By the non-central chi-square law such an error is missed with probability 0.996 at n = 10^6, 1e-6 at 5 * 10^6 and 3e-27 at 10^7;
# 3 % is missed with probability 1e-23 at 10^6. Even a test of the variance alone would miss 1 % at 10^6 one time in five.


@pytest.mark.parametrize("n", [1_000_000, 10_000_000])
def test_the_right_variance_passes(n: int):
    law = gaussian(100)
    assert fit.chi_square_p_value(counted(law, n, RNG_SEED), law, n) > fit.ALPHA


@pytest.mark.parametrize("wrong", [99, 101])
def test_a_variance_one_percent_off_fails_from_ten_million_draws_on(wrong: float):
    n = 10_000_000
    assert fit.chi_square_p_value(counted(gaussian(wrong), n, RNG_SEED), gaussian(100), n) < fit.ALPHA


def test_a_variance_three_percent_off_fails_from_a_million_draws_on():
    values = draws(gaussian(103), 1_000_000, RNG_SEED)
    assert not fit.fits(values, gaussian(100), offset=-150)
    assert fit.fits(values, gaussian(103), offset=-150)


def test_a_mean_off_by_a_hundredth_of_a_standard_deviation_fails_from_four_million_draws_on():
    n, reach = 4_000_000, np.arange(-150, 151)
    shifted = np.exp(-((reach - 0.1) ** 2) / 200)
    assert fit.chi_square_p_value(counted(shifted / math.fsum(shifted), n, RNG_SEED), gaussian(100), n) < fit.ALPHA


def test_zero_counted_twice_fails():
    """The classic slip of the discrete Laplace sampler: both signs of zero kept."""
    ratio = math.exp(-1 / 10)
    wrong = np.array([ratio ** abs(k) * (2 if k == 0 else 1) for k in range(-150, 151)])
    values = draws(wrong / math.fsum(wrong), 20_000, RNG_SEED)
    assert not fit.fits(values, lambda k: (1 - ratio) / (1 + ratio) * ratio ** abs(k))


# The p-value itself.


def test_statistic_by_hand():
    observed, n = np.array([60, 40, 100]), 200
    expected = np.array([50.0, 50.0, 100.0])
    by_hand = 2 * (60 * math.log(60 / 50) + 40 * math.log(40 / 50) + 0)
    williams = 1 + ((200 / expected).sum() - 1) / (6 * 200 * 2)
    assert fit.chi_square_p_value(observed, expected / n, n) == pytest.approx(4 * stats.chi2.sf(by_hand / williams, 2))


def test_p_values_of_a_right_law_are_small_no_more_often_than_they_say():
    """2000 p-values: how many lie below 0.04 is binomial with probability at most 0.04, checked at one in a thousand million."""
    law, rng = gaussian(4, reach=15), np.random.default_rng(RNG_SEED)
    p_values = [fit.chi_square_p_value(rng.multinomial(1000, law), law, 1000) for _ in range(2000)]
    small = sum(p < 0.04 for p in p_values)
    assert stats.binom.sf(small - 1, 2000, 0.04) > 1e-9
    assert small > 0  # and not absurdly conservative: 20 are expected, none has probability 2e-9


def test_bins_depend_on_the_law_only_and_reach_the_expected_count():
    law, n = gaussian(100), 20_000
    starts = fit.pool(law, n)
    expected = n * np.add.reduceat(law, starts)
    assert starts[0] == 0
    assert expected.min() >= fit.MIN_EXPECTED
    assert expected.sum() == pytest.approx(n)
    assert starts.size > 50


def test_two_samples():
    one, other = draws(gaussian(100), 50_000, 1), draws(gaussian(100), 80_000, 2)
    assert fit.two_sample_p_value(one, other) > fit.ALPHA
    assert fit.two_sample_p_value(one, draws(gaussian(120), 80_000, 3)) < fit.ALPHA
    assert fit.two_sample_p_value(one, one) == 1.0


# The ways to state a law agree.


def test_function_array_and_mapping_give_the_same_p_value():
    law, values = gaussian(9, reach=60), draws(gaussian(9, reach=60), 5000, RNG_SEED, reach=60)
    by_array = fit.fit_p_value(values, law, offset=-60)
    by_mapping = fit.fit_p_value(values, {k: law[k + 60] for k in range(-60, 61)})
    by_function = fit.fit_p_value(values, lambda k: float(law[k + 60]) if abs(k) <= 60 else 0.0)
    shifted = fit.fit_p_value(values + 10**6, lambda k: float(law[k - 10**6 + 60]) if abs(k - 10**6) <= 60 else 0.0, offset=10**6 + 3)
    assert by_array == pytest.approx(by_mapping)
    assert by_array == pytest.approx(by_function)
    assert by_array == pytest.approx(shifted)


def test_values_beyond_the_listed_mass_join_the_end_bins_unless_impossible():
    law = gaussian(9, reach=60)
    values = np.append(draws(law, 5000, RNG_SEED, reach=60), 61)
    assert fit.fits(values, law, offset=-60)
    assert not fit.fits(values, {k: law[k + 60] for k in range(-60, 61)})
    assert not fit.fits(values, lambda k: float(law[k + 60]) if abs(k) <= 60 else 0.0)


def test_a_value_of_probability_zero_inside_fails():
    even = {-2: 0.25, -1: 0.0, 0: 0.5, 2: 0.25}
    assert fit.fits(np.repeat([-2, 0, 2], [250, 500, 250]), even)
    assert not fit.fits(np.repeat([-2, -1, 0, 2], [250, 1, 499, 250]), even)
    assert not fit.fits(np.repeat([-2, 0, 1, 2], [250, 499, 1, 250]), even)


# Recording and refusing.


def test_importing_the_tools_does_not_need_scipy():
    program = "import sys; sys.modules['scipy'] = None; import holdfast.testing"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")


@pytest.mark.usefixtures("unrecorded")
def test_a_failure_says_everything_and_is_recorded():
    before = len(fit.CHECKS)
    with pytest.raises(AssertionError, match=r"coin: n = 1000, bins = 2, statistic = .*, p-value = .*, threshold = 1e-09"):
        fit.check_fit(np.repeat([0, 1], [700, 300]), [0.5, 0.5], name="coin")
    result = fit.check_fit(np.repeat([0, 1], [510, 490]), [0.5, 0.5], name="coin")
    assert result.passed
    assert [check.passed for check in fit.CHECKS[before:]] == [False, True]


def test_asking_records_nothing():
    before = len(fit.CHECKS)
    fit.fits(np.repeat([0, 1], [700, 300]), [0.5, 0.5])
    fit.fit_p_value(np.repeat([0, 1], [700, 300]), [0.5, 0.5])
    assert len(fit.CHECKS) == before


@pytest.mark.usefixtures("unrecorded")
def test_categories():
    thirds = {(1, 0): Fraction(1, 3), (0, 1): Fraction(1, 3), (1, 1): Fraction(1, 3)}
    assert fit.check_fit_categories({(1, 0): 95, (0, 1): 105, (1, 1): 100}, thirds, name="even").bins == 3
    with pytest.raises(AssertionError, match="uneven"):
        fit.check_fit_categories({(1, 0): 200, (0, 1): 100}, thirds, name="uneven")
    with pytest.raises(AssertionError, match="p-value = 0"):
        fit.check_fit_categories({(1, 0): 100, (0, 1): 100, (1, 1): 99, (2, 0): 1}, thirds, name="stranger")


@pytest.mark.parametrize(
    ("values", "pmf", "message"),
    [
        ([0, 1] * 20, [0.5, 0.5], "could never fail"),
        ([0] * 100, [1.0], "could never fail"),
        ([0, 1] * 100, [0.5, 0.4], "mass 1"),
        ([0, 1] * 100, lambda k: 0.1 * 2.0 ** -abs(k), "mass 1"),
        ([0.0, 1.0] * 100, [0.5, 0.5], "flat array of integers"),
        ([], [0.5, 0.5], "flat array of integers"),
    ],
)
def test_a_fit_that_means_nothing_is_refused(values, pmf, message: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(fit, "MAX_SUPPORT", 1000)
    with pytest.raises(ValueError, match=message):
        fit.fits(values, pmf)


def test_a_level_that_would_overspend_is_refused():
    with pytest.raises(ValueError, match="alpha must be"):
        fit.check_fit([0, 1] * 100, [0.5, 0.5], name="coin", alpha=0.01)
    with pytest.raises(ValueError, match="add up to"):
        fit.chi_square_p_value([50, 50], [0.5, 0.5], 101)
