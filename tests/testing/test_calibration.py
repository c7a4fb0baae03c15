"""How often the goodness-of-fit check rejects a right law, computed rather than simulated; the figures stand in holdfast/testing/fit.py."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import special, stats

from holdfast.testing.fit import ALPHA, MIN_EXPECTED, SUITE_FAILURE_BUDGET, TAIL_FACTOR

LEVELS = (ALPHA, 1e-7, 1e-4, 1e-2)
"""Levels at which a p-value is compared; the tail is heaviest, relative to chi-square's, at the smallest."""

Floats = NDArray[np.float64]


def terms(counts: NDArray[Any], expected: float, kind: str) -> Any:
    """What one bin adds to the statistic: twice E h(O/E) with h(x) = x ln x - x + 1, or Pearson's (O - E)^2 / E."""
    if kind == "pearson":
        return (counts - expected) ** 2 / expected
    return 2 * (special.xlogy(counts, counts / expected) - counts + expected)


def threshold(expected: Floats, level: float, kind: str = "likelihood ratio") -> float:
    """The statistic above which a check at this level fails."""
    n, bins = expected.sum(), expected.size
    williams = 1 + ((n / expected).sum() - 1) / (6 * n * (bins - 1)) if kind != "pearson" else 1.0
    return float(stats.chi2.isf(level / TAIL_FACTOR, bins - 1) * williams)


def two_bins(n: int, small: float, level: float, kind: str = "likelihood ratio") -> float:
    """Probability of a false alarm with expected counts (small, n - small): a sum over the binomial law."""
    counts = np.arange(n + 1) if n <= 5000 else np.arange(min(n, int(small + 25 * small**0.5 + 100)) + 1)
    alarms = terms(counts, small, kind) + terms(n - counts, n - small, kind) > threshold(np.array([small, n - small]), level, kind)
    beyond = stats.binom.sf(counts[-1], n, small / n)
    return float(stats.binom.pmf(counts[alarms], n, small / n).sum() + beyond)


def three_bins(expected: Floats, level: float) -> float:
    """The same for three bins, the last the largest: a sum over the trinomial law."""
    n = round(expected.sum())
    ends = [min(n, int(e + 25 * e**0.5 + 100)) for e in expected[:2]]
    x, y = np.meshgrid(*(np.arange(end + 1) for end in ends), indexing="ij")
    x, y = x[x + y <= n], y[x + y <= n]
    statistic = sum(terms(c, e, "likelihood ratio") for c, e in zip((x, y, n - x - y), expected, strict=True))
    alarms = statistic > threshold(expected, level)
    rows = np.stack([x, y, n - x - y], axis=1)[alarms]
    beyond = sum(stats.binom.sf(end, n, e / n) for end, e in zip(ends, expected[:2], strict=True))
    return float(stats.multinomial.pmf(rows, n, expected / n).sum() + beyond)


def many_bins(expected: Floats, level: float, steps: int = 2048) -> float:
    """The same for any number of bins: the law of (sum of counts, statistic) over independent Poisson counts, at the row sum = n.

    The statistic lives on a grid of `steps` below the threshold; a bin's term is split between its two grid neighbours, which keeps its
    mean and can only widen it. Sums wrap around at twelve standard deviations of the count and at twice the threshold: both negligible.
    """
    n, edge = round(expected.sum()), threshold(expected, level)
    rows, columns = 1 << int(24 * n**0.5).bit_length(), 2 * steps + 2
    spectrum = np.ones((rows, columns // 2 + 1), dtype=complex)
    for mean, times in zip(*np.unique(expected, return_counts=True), strict=True):
        counts = np.arange(max(0, int(mean - 14 * mean**0.5 - 40)), int(mean + 14 * mean**0.5 + 90))
        place = np.minimum(terms(counts, mean, "likelihood ratio") / edge * steps, steps)
        whole, law = np.floor(place).astype(int), stats.poisson.pmf(counts, mean)
        grid = np.zeros((rows, columns))
        np.add.at(grid, ((counts - round(mean)) % rows, whole), law * (1 - place + whole))
        np.add.at(grid, ((counts - round(mean)) % rows, whole + 1), law * (place - whole))
        spectrum *= np.fft.rfft2(grid) ** times
    centre = n - sum(round(e) for e in expected)
    return float(np.fft.irfft2(spectrum, s=(rows, columns))[centre % rows, steps:].sum() / stats.poisson.pmf(n, n))


def worst_of_two_bins(least: float, level: float, kind: str = "likelihood ratio") -> float:
    """The largest false-alarm rate over sample sizes and small bins of at least `least`, in units of the nominal rate."""
    sizes = [n for n in (60, 100, 300, 1000, 10_000, 1_000_000) if n >= 2 * least]
    cases = [(n, e) for n in sizes for e in (*np.linspace(least, 2.5 * least, 91), *np.geomspace(least, n / 2, 30)) if e <= n / 2]
    return max(two_bins(n, e, level, kind) for n, e in cases) / (level / TAIL_FACTOR)


def test_budget_is_a_thousand_checks():
    assert pytest.approx(SUITE_FAILURE_BUDGET) == 1000 * ALPHA


@pytest.mark.parametrize("level", LEVELS)
def test_two_bins_alarm_no_more_often_than_stated(level: float):
    assert worst_of_two_bins(MIN_EXPECTED, level) <= TAIL_FACTOR


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("shape", ["equal", "one small", "two small", "unequal"])
def test_three_bins_alarm_no_more_often_than_stated(level: float, shape: str):
    for small in (MIN_EXPECTED, MIN_EXPECTED + 1.4, 1.5 * MIN_EXPECTED):
        e = float(small)
        expected = {"equal": [e, e, e], "one small": [e, 300, 300], "two small": [e, e, 5000], "unequal": [e, 2 * e, 4 * e]}[shape]
        expected[-1] += -sum(expected) % 1
        assert three_bins(np.array(expected), level) <= level


def test_lattice_sum_agrees_with_enumeration():
    """The two ways of computing the same probability share nothing but the statistic."""
    for expected in (np.array([30.0, 30.0, 30.0]), np.array([30.0, 70.0, 900.0])):
        for level in (1e-2, 1e-4):
            assert many_bins(expected, level) == pytest.approx(three_bins(expected, level), rel=0.05)


@pytest.mark.long
@pytest.mark.parametrize("bins", [5, 10, 50, 200])
@pytest.mark.parametrize("rest", ["equal", "one large", "one small"])
def test_many_bins_alarm_no_more_often_than_stated(bins: int, rest: str):
    expected = np.full(bins, float(MIN_EXPECTED))
    if rest == "one large":
        expected[-1] = 5000
    if rest == "one small":
        expected[1:] = 300
    assert many_bins(expected, ALPHA) <= ALPHA


@pytest.mark.long
def test_figures_in_the_text():
    """The table in holdfast/testing/fit.py, and why Pearson's statistic is not used."""
    rows = {"likelihood ratio": (7.3, 7.3, 7.3, 2.3, 1.5), "pearson": (985, 395, 217, 97, 43)}
    for kind, stated in rows.items():
        assert [worst_of_two_bins(least, ALPHA, kind) for least in (10, 15, 20, 30, 50)] == pytest.approx(stated, rel=0.03)


@pytest.mark.ordinary("60-", "100-100", "500-", "10000-1e-09")
@pytest.mark.parametrize("level", [ALPHA, 1e-4])
@pytest.mark.parametrize(("first", "second"), [(60, 60), (100, 100), (60, 1000), (500, 2000), (1000, 10_000)])
def test_two_samples_alarm_no_more_often_than_stated(level: float, first: int, second: int):
    """Two bins of the pooled sample, the first of many sizes: a sum over the hypergeometric law of the division."""
    n, williams_rows = first + second, (first + second) / first + (first + second) / second - 1
    for column in np.unique(np.geomspace(np.ceil(MIN_EXPECTED * n / first), n // 2, 40).astype(int)):
        counts = np.arange(max(0, column - second), min(column, first) + 1)
        cells = ((counts, first, column), (column - counts, second, column), (first - counts, first, n - column))
        parts = (*cells, (second - column + counts, second, n - column))
        statistic = sum(terms(c, row * total / n, "likelihood ratio") for c, row, total in parts)
        williams = 1 + williams_rows * (n / column + n / (n - column) - 1) / (6 * n)
        alarms = statistic > stats.chi2.isf(level / TAIL_FACTOR, 1) * williams
        assert stats.hypergeom.pmf(counts[alarms], n, column, first).sum() <= level
