"""From a wanted (epsilon, delta) to noise: the smallest support by Proposition 3 of [SC22], and the gamma that is best by numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from holdfast.cellkey.loss import Losses
from holdfast.cellkey.max_entropy import LARGEST_D, SymmetricNoise, check_support
from holdfast.cellkey.noise import NoiseLaw
from holdfast.cellkey.rows import LARGEST_ROWS_D, design_rows
from holdfast.cellkey.table import PerturbationTable
from holdfast.errors import InvalidParameter
from holdfast.exact.balls import Enclosure
from holdfast.exact.formatting import format_exact, format_short
from holdfast.exact.parameters import Exact, exact_fraction
from holdfast.privacy.parameters import budget, ordinary, probability

IOTA = Fraction(1, 10)
"""Where gamma lies in its range by default, as a share from the upper end: Example 1 of [SC22]."""

_DOUBT = 1e-9
"""Relative distance from the target within which a double does not decide. Its own error is below 1e-12: the sums have positive terms
exp(-t) with t below 800."""
_GRID = 400
_REFINEMENTS = 12


@dataclass(frozen=True, repr=False)
class Design:
    """Noise for a wanted (epsilon, delta), for both counts at least D.

    Fields:      `noise`: by Proposition 3, on the smallest support on which that proposition reaches delta. `best`: on the same support
                 with the gamma that minimises delta by numbers.
    """

    epsilon: Fraction
    delta: Fraction
    noise: SymmetricNoise
    best: SymmetricNoise

    @property
    def D(self) -> int:
        """Largest noise."""
        return self.noise.D

    @property
    def gamma(self) -> Fraction:
        assert isinstance(self.noise.gamma, Fraction)
        return self.noise.gamma

    @property
    def variance(self) -> float:
        return self.noise.variance()

    def __repr__(self) -> str:
        asked = f"epsilon = {format_short(self.epsilon)}, delta = {format_short(self.delta)}"
        return f"Design({asked}: noise of {-self.D} to {self.D}, gamma = {format_short(self.gamma)}, variance {self.variance:.6g})"

    @cached_property
    def smallest(self) -> SymmetricNoise:
        """Noise on the smallest support found on which any gamma reaches delta at epsilon; never larger than by Proposition 3.

        That it reaches delta is certified. That no smaller support does is by numbers: `best_gamma` is a search, and so is this one.
        """
        low, high, found = 0, self.D, self.noise
        while high - low > 1:
            middle = (low + high) // 2
            made = best_gamma(self.epsilon, middle)
            if made.epsilon_delta().delta_bounds(self.epsilon).upper <= self.delta:
                high, found = middle, made
            else:
                low = middle
        return found

    def delta_bounds(self) -> Enclosure:
        """The delta reached at epsilon: P[Z = D] (Proposition 3)."""
        return self.noise.pmf_bounds(self.D)

    def epsilon_delta(self) -> Losses:
        return self.noise.epsilon_delta()

    def quantised(self, key_size: int, *, allow_lost: bool = False) -> PerturbationTable:
        """The table for keys 0 to key_size - 1, counts from D on. Refused where it would lose a noise value, unless allow_lost."""
        return self.noise.quantised(key_size, allow_lost=allow_lost)

    def table(self, key_size: int) -> PerturbationTable:
        """The table with rows for all counts: below D those of largest entropy with the same variance, or less where there is no more.

        Counts from D on have the (epsilon, delta) of the design; smaller ones do not. Small counts lose noise for which there are too few
        keys; a zero stays zero. Above LARGEST_ROWS_D there are no rows below D.
        """
        table = self.quantised(key_size)
        if not 1 < self.D <= LARGEST_ROWS_D:
            return table
        small = design_rows(self.D, Fraction(self.variance), allow_short=True).quantised(key_size, allow_lost=True)
        return PerturbationTable([*(row for count, row in small.rows.items() if count < self.D), *table.rows.values()])


def design(epsilon: Exact, delta: Exact, *, iota: Exact = IOTA) -> Design:
    """The smallest D for which Proposition 3 reaches (epsilon, delta), with its noise.

    Given:       iota: where gamma lies, as a share of its range (0, 1]: gamma = epsilon / (2 D - 1) - iota 2 epsilon / (4 D^2 - 1).
    Guarantees:  delta at D is at most the one asked for, and at every smaller D above it (up to 2^-60 of it): doubles decide only where
                 they cannot be wrong, else balls.
    Reference:   [SC22, III-C and III-D]; [theory T83].
    """
    loss = wanted_epsilon(epsilon)
    wanted = ordinary(probability(delta, "delta"), "delta")
    share = read_share(iota)
    for D in range(_first_support(loss, wanted), LARGEST_D + 1):
        gamma = proposition_3_gamma(loss, D, share)
        reached = _last_probability(D, float(gamma))
        if abs(reached - float(wanted)) <= _DOUBT * float(wanted):
            bounds = SymmetricNoise(D, gamma).pmf_bounds(D)
            is_enough = bounds.upper <= wanted
        else:
            is_enough = reached < float(wanted)
        if is_enough:
            return Design(loss, wanted, SymmetricNoise(D, gamma), best_gamma(loss, D))
    raise InvalidParameter(
        f"epsilon = {format_exact(loss)} with delta = {format_exact(wanted)} needs noise beyond {LARGEST_D}. "
        "Take a larger epsilon or delta."
    )


def proposition_3_gamma(epsilon: Fraction, D: int, iota: Fraction = IOTA) -> Fraction:
    """gamma in the range (23), exact: iota = 1 is its lower end, iota towards 0 its upper end, which is not reached."""
    return epsilon / (2 * D - 1) - iota * 2 * epsilon / (4 * D * D - 1)


def best_gamma(epsilon: Exact, D: int) -> SymmetricNoise:
    """The gamma with the smallest delta at this epsilon, found by numbers: a finer and finer grid, not a proof of the minimum.

    The gamma returned is exact, and its delta is what `epsilon_delta` encloses. In all cases tried the best gamma is epsilon / (2 k - 1)
    for a whole number k, where a further value starts to count for delta; where that is as good as the grid's best, by balls, it is
    taken. The grid is in doubles: among deltas below 1e-300 it does not choose.
    """
    loss, support = wanted_epsilon(epsilon), check_support(D)
    low, high = float(loss) / (2 * support + 1) / 8, float(loss) / (2 * support - 1) * 8
    for _ in range(_REFINEMENTS):
        gammas = np.geomspace(low, high, _GRID)
        place = int(np.argmin(deltas_in_doubles(support, gammas, float(loss))))
        low, high = gammas[max(place - 1, 0)], gammas[min(place + 1, _GRID - 1)]
        if high / low < 1 + 1e-12:
            break
    found = Fraction(float(gammas[place])).limit_denominator(10**15)
    corner = loss / (2 * max(round((loss / found + 1) / 2), 1) - 1)
    made = [SymmetricNoise(support, gamma) for gamma in (corner, found)]
    return min(made, key=lambda noise: noise.epsilon_delta().delta_bounds(loss).upper)


def deltas_in_doubles(D: int, gammas: NDArray[np.float64], epsilon: float) -> NDArray[np.float64]:
    """delta at this epsilon for many gammas, in doubles: for searches and figures, not for promises."""
    found = []
    for part in np.array_split(gammas, max(1, len(gammas) * D // 1_000_000)):
        weights = np.exp(-part[:, None] * np.arange(-D, D + 1.0)[None, :] ** 2)
        chances = weights / weights.sum(axis=1, keepdims=True)
        # p(z) - e^epsilon p(z - 1) = p(z) (1 - exp(epsilon + gamma (2 z - 1))) for z = 1 - D, ..., 0: nothing overflows, nothing cancels.
        kept = -np.expm1(np.minimum(epsilon + part[:, None] * np.arange(1 - 2 * D, 0, 2.0)[None, :], 0))
        found.append(chances[:, 0] + (chances[:, 1 : D + 1] * kept).sum(axis=1))
    return np.concatenate(found)


def truncated_laplace(epsilon: Exact, D: int | None = None, *, delta: Exact | None = None) -> NoiseLaw:
    """A comparator: P[Z = z] proportional to exp(-epsilon |z|) on -D, ..., D. Its delta at epsilon is P[Z = D].

    Given:       D, or the delta for which the smallest D is taken.
    Reference:   [theory T84].
    """
    loss = wanted_epsilon(epsilon)
    if (D is None) == (delta is None):
        raise InvalidParameter("truncated_laplace takes D or delta, one of them.")
    if D is not None:
        return _laplace(loss, check_support(D))
    wanted = ordinary(probability("0" if delta is None else delta, "delta"), "delta")
    low, high = 0, 1  # P[Z = D] falls with D: double, then halve
    while _laplace(loss, high).pmf_bounds(high).upper > wanted:
        low, high = high, 2 * high
        if high > LARGEST_D:
            raise InvalidParameter(f"This needs noise beyond {LARGEST_D}. Take a larger epsilon or delta.")
    while high - low > 1:
        middle = (low + high) // 2
        if _laplace(loss, middle).pmf_bounds(middle).upper > wanted:
            low = middle
        else:
            high = middle
    return _laplace(loss, high)


def _laplace(epsilon: Fraction, D: int) -> NoiseLaw:
    noise = range(-D, D + 1)
    return NoiseLaw(noise, [-epsilon * abs(z) for z in noise], count=D)


def _first_support(epsilon: Fraction, delta: Fraction) -> int:
    """A D below which no support is enough: P[Z = D] >= exp(-epsilon D^2 / (2 D - 1)) / (2 D + 1), and this bound falls with D."""

    def is_too_small(D: int) -> bool:
        return -float(epsilon * D * D / (2 * D - 1)) - math.log(2 * D + 1) > math.log(delta) + 1e-6

    low, high = 0, LARGEST_D + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if is_too_small(middle) else (low, middle)
    return high


def _last_probability(D: int, gamma: float) -> float:
    weights = np.exp(-gamma * np.arange(1, D + 1.0) ** 2)
    return float(weights[-1] / (2 * weights.sum() + 1))


def wanted_epsilon(epsilon: Exact) -> Fraction:
    """The epsilon of a design, exact and above zero."""
    if exact_fraction(epsilon, "epsilon") == 0:
        raise InvalidParameter(
            "epsilon must be greater than zero: noise in a table cannot make neighbouring counts look the same. Take a small epsilon.",
            field="epsilon",
        )
    return ordinary(budget(epsilon, "epsilon"), "epsilon")


def read_share(iota: Exact) -> Fraction:
    """Where gamma lies in its range, as a share of it."""
    share = exact_fraction(iota, "iota")
    if not 0 < share <= 1:
        raise InvalidParameter(f"iota is a share of the range of gamma: above 0 and at most 1. Got {format_exact(share)}.", field="iota")
    return share
