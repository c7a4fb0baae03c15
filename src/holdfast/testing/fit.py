"""Goodness of fit with a p-value one can rely on at one in a thousand million.

The statistic is the likelihood-ratio chi-square G = 2 sum O ln(O/E), divided by Williams' factor; its law is close to chi-square with
bins - 1 degrees of freedom. Bins depend on the expected law and on n only, never on the values: neighbouring support points are pooled
until a bin's expected count reaches MIN_EXPECTED.

Why not Pearson's sum (O - E)^2 / E: far out its true tail is much heavier, because a count's upper tail is Poisson rather than normal,
while G has the right exponent. How often each really rejects a right law with two bins, as a multiple of the nominal rate 2.5e-10; worst
case over n from 60 to a million and over expected counts from the smallest allowed up, summed from the binomial law:

    smallest expected count    10    15    20    30    50
    likelihood ratio          7.3   7.3   7.3   2.3   1.5
    Pearson                   985   395   217    97    43

With 3 to 200 bins, of expected count 30 or some of them larger, the ratio of the first is between 0.97 and 1.14. So MIN_EXPECTED is 30,
and every p-value returned here is TAIL_FACTOR = 4 times the chi-square tail (at most 1): for levels from ALPHA up, P[p_value < level] was
below the level in every case computed. That is measured on those cases, not proved for all. tests/testing/test_calibration.py computes
these figures again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

SUITE_FAILURE_BUDGET = 1e-6
"""Probability that a suite whose laws are all right fails somewhere: at most 1000 checks of ALPHA each."""

ALPHA = 1e-9
"""Probability with which one check rejects a right law, at most."""

MIN_EXPECTED = 30
"""Expected count that every bin reaches; see the module's text."""

TAIL_FACTOR = 4
"""How much heavier than chi-square the statistic's tail is allowed to be; see the module's text."""

MASS_TOLERANCE = 1e-9
"""A law given in floating point may miss this much of its mass."""

MAX_SUPPORT = 1_000_000
"""Points at which a law given as a function is evaluated before we give up finding its mass."""

Outcome = TypeVar("Outcome", bound=Hashable)
Number: TypeAlias = float | Fraction
Pmf: TypeAlias = Callable[[int], Number] | Mapping[int, Number] | Sequence[Number] | NDArray[np.float64]


class FitResult(NamedTuple):
    """One check: what was compared, how far apart they are, and the level below which the p-value fails."""

    name: str
    n: int
    bins: int
    statistic: float
    p_value: float
    alpha: float

    @property
    def passed(self) -> bool:
        return self.p_value >= self.alpha

    def __str__(self) -> str:
        return (
            f"{self.name}: n = {self.n}, bins = {self.bins}, statistic = {self.statistic:.6g}, "
            f"p-value = {self.p_value:.3g}, threshold = {self.alpha:.3g}"
        )


CHECKS: list[FitResult] = []
"""Every check made in this process, in order; their number times ALPHA is what has been spent of SUITE_FAILURE_BUDGET."""


class _Score(NamedTuple):
    n: int
    bins: int
    statistic: float
    p_value: float


def check_fit(values: ArrayLike, pmf: Pmf, *, name: str, offset: int = 0, alpha: float = ALPHA) -> FitResult:
    """Raise AssertionError if these integers are too unlikely under this law, and record the check.

    Law given as:  a function of an integer, its mass being searched outwards from `offset`; an array, entry i being P[X = offset + i]; or
                   a mapping that names the whole support. Up to MASS_TOLERANCE of the mass of a function or array may be missing; it is
                   put into the end bins, with the values beyond. A value whose stated probability is zero fails at once.
    Given:         values are independent (trusted); alpha <= ALPHA, since each check is counted as ALPHA.
    Guarantees:    a right law fails with probability at most alpha, as far as the module's text says. A fit that leaves fewer than two
                   bins could not fail, and is a ValueError.
    """
    return _record(name, _score_values(values, pmf, offset), alpha)


def check_fit_categories(
    counts: Mapping[Outcome, int], probabilities: Mapping[Outcome, Number], *, name: str, alpha: float = ALPHA
) -> FitResult:
    """`check_fit` for a law on a finite set of any kind: how often each outcome came, and how probable each is.

    Outcomes too rare to be bins of their own are pooled with their neighbours in the order of `probabilities`, which names them all.
    """
    return _record(name, _score_categories(counts, probabilities), alpha)


def check_p_value(p_value: float, *, name: str, n: int, statistic: float, alpha: float = ALPHA) -> FitResult:
    """Raise AssertionError if a p-value found in another way, such as by a proven bound, is below alpha, and record the check."""
    return _record(name, _Score(n, 1, statistic, p_value), alpha)


def fit_p_value(values: ArrayLike, pmf: Pmf, *, offset: int = 0) -> float:
    """The p-value that `check_fit` would judge; records nothing."""
    return _score_values(values, pmf, offset).p_value


def fits(values: ArrayLike, pmf: Pmf, *, offset: int = 0, alpha: float = ALPHA) -> bool:
    """Whether `check_fit` would pass; records nothing. For tests of power, which spend no budget."""
    return fit_p_value(values, pmf, offset=offset) >= alpha


def chi_square_p_value(observed: ArrayLike, probabilities: ArrayLike, n: int) -> float:
    """The p-value of n counts over consecutive support points with these probabilities, points being pooled as the module's text says."""
    counts = np.asarray(observed, dtype=np.int64)
    if counts.sum() != n:
        raise ValueError(f"The counts must add up to n = {n}. They add up to {counts.sum()}.")
    return _score(counts, np.asarray(probabilities, dtype=np.float64)).p_value


def two_sample_p_value(a: ArrayLike, b: ArrayLike) -> float:
    """The p-value of the hypothesis that two samples of integers come from one law, whatever it is; records nothing.

    Bins come from the pooled sample. That is fair: given the pooled sample, under the hypothesis every way to divide it between a and b
    is equally likely, so the bins are fixed before the division is looked at. Each bin expects MIN_EXPECTED values of the smaller sample.
    """
    first, second = _integers(a), _integers(b)
    points, where = np.unique(np.concatenate([first, second]), return_inverse=True)
    table = np.stack([np.bincount(part, minlength=points.size) for part in np.split(where, [first.size])])
    n, sizes = first.size + second.size, table.sum(axis=1)
    starts = pool(table.sum(axis=0) / n, int(sizes.min()))
    table = np.add.reduceat(table, starts, axis=1)
    columns = table.sum(axis=0)
    williams = 1 + ((n / sizes).sum() - 1) * ((n / columns).sum() - 1) / (6 * n * (columns.size - 1))
    return _tail_probability(_likelihood_ratio(table, np.outer(sizes, columns) / n) / float(williams), columns.size)


def pool(probabilities: NDArray[np.float64], n: int) -> NDArray[np.intp]:
    """Where bins start: support points taken from the left until each bin's expected count is MIN_EXPECTED, the rest joining the last."""
    starts, mass = [0], 0.0
    for point, p in enumerate(probabilities):
        if n * mass >= MIN_EXPECTED:
            starts.append(point)
            mass = 0.0
        mass += float(p)
    if n * mass < MIN_EXPECTED:
        starts.pop()
    if len(starts) < 2:
        raise ValueError(f"{n} values leave fewer than two bins of expected count {MIN_EXPECTED}: this fit could never fail. Draw more.")
    return np.array(starts, dtype=np.intp)


def _score(counts: NDArray[np.int64], probabilities: NDArray[np.float64]) -> _Score:
    """Counts of all values over consecutive support points, against probabilities that add up to one."""
    _check_mass(math.fsum(probabilities), "these probabilities")
    n = int(counts.sum())
    starts = pool(probabilities, n)
    if np.any(counts[probabilities == 0]):
        return _impossible(n, starts.size)
    expected = np.add.reduceat(probabilities, starts) * (n / math.fsum(probabilities))
    williams = 1 + float((n / expected).sum() - 1) / (6 * n * (starts.size - 1))
    statistic = _likelihood_ratio(np.add.reduceat(counts, starts), expected) / williams
    return _Score(n, starts.size, statistic, _tail_probability(statistic, starts.size))


def _likelihood_ratio(observed: NDArray[np.int64], expected: NDArray[np.float64]) -> float:
    """2 sum O ln(O/E), written so that every term is non-negative and small ones are not lost: E h(O/E), h(x) = x ln x - x + 1."""
    ratio = observed / expected
    logs = np.log(ratio, out=np.zeros_like(ratio), where=observed > 0)
    return 2 * math.fsum((expected * (ratio * logs - ratio + 1)).ravel())


def _tail_probability(statistic: float, bins: int) -> float:
    from scipy.stats import chi2

    return min(1.0, TAIL_FACTOR * float(chi2.sf(statistic, bins - 1)))


def _impossible(n: int, bins: int) -> _Score:
    return _Score(n, bins, math.inf, 0.0)


def _record(name: str, score: _Score, alpha: float) -> FitResult:
    if not 0 < alpha <= ALPHA:
        raise ValueError(f"alpha must be above 0 and at most {ALPHA}, as which every check is counted. Got {alpha}. Use fits() for others.")
    result = FitResult(name, *score, alpha)
    CHECKS.append(result)
    if not result.passed:
        raise AssertionError(f"The values do not follow the law. {result}.")
    return result


def _score_values(values: ArrayLike, pmf: Pmf, offset: int) -> _Score:
    sample = _integers(values)
    points, probabilities = _support(pmf, offset)
    seen, times = np.unique(sample, return_counts=True)
    places = np.clip(np.searchsorted(points, seen), 0, points.size - 1)
    counts = np.bincount(places, weights=times, minlength=points.size).astype(np.int64)
    score = _score(counts, probabilities)
    beyond = seen[points[places] != seen]
    impossible = beyond.size > 0 and (isinstance(pmf, Mapping) or (callable(pmf) and any(pmf(int(value)) == 0 for value in beyond)))
    return _impossible(score.n, score.bins) if impossible else score


def _score_categories(counts: Mapping[Outcome, int], probabilities: Mapping[Outcome, Number]) -> _Score:
    known = np.array([counts.get(outcome, 0) for outcome in probabilities], dtype=np.int64)
    strangers = sum(counts[outcome] for outcome in counts.keys() - probabilities.keys())
    if strangers:
        return _impossible(int(known.sum()) + strangers, 0)
    return _score(known, np.array([float(p) for p in probabilities.values()]))


def _integers(values: ArrayLike) -> NDArray[np.int64]:
    array = np.asarray(values)
    if array.ndim != 1 or array.size == 0 or not np.issubdtype(array.dtype, np.integer):
        raise ValueError(f"A fit needs a flat array of integers, at least one. Got {array.dtype} of shape {array.shape}.")
    return array.astype(np.int64)


def _support(pmf: Pmf, offset: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Increasing support points and their probabilities, the mass that is missing (at most MASS_TOLERANCE) put at the two ends."""
    if isinstance(pmf, Mapping):
        points = sorted(pmf)
        return np.array(points, dtype=np.int64), np.array([float(pmf[k]) for k in points])
    first, listed = _walk(pmf, offset) if callable(pmf) else (offset, [float(p) for p in pmf])
    missing = 1 - math.fsum(listed)
    _check_mass(1 - missing, f"this law between {first} and {first + len(listed) - 1}")
    probabilities = np.array(listed)
    probabilities[[0, -1]] += max(missing, 0.0) / 2
    return np.arange(first, first + len(listed), dtype=np.int64), probabilities


def _walk(pmf: Callable[[int], Number], start: int) -> tuple[int, list[float]]:
    """Evaluate a law outwards from `start`, both sides in turn, until at most half of MASS_TOLERANCE is missing."""
    right, left = [float(pmf(start))], list[float]()
    mass = right[0]
    while mass < 1 - MASS_TOLERANCE / 2 and len(right) < MAX_SUPPORT // 2:
        left.append(float(pmf(start - len(left) - 1)))
        right.append(float(pmf(start + len(right))))
        mass += left[-1] + right[-1]
    return start - len(left), left[::-1] + right


def _check_mass(mass: float, what: str) -> None:
    if not abs(mass - 1) <= MASS_TOLERANCE:
        raise ValueError(f"A law has mass 1. Got {mass!r} for {what}. Correct it, or search its mass from another offset.")
