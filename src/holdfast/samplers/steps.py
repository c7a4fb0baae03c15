"""The steps of a block's sequence, by their variances: the price of the sequential law, and how far it is from the lattice law.

Legend: steps i of variances v_i; kappa, b_m, e as in laws/sequential.py; theta_i and theta4_i are the largest and the smallest value of
theta_(s_i)(c) / (sqrt(2 pi v_i)), at c = 0 and c = 1/2. All that is summed falls in v, so variances may be taken from below; sums of
doubles are raised by MARGIN, far above their errors. Public facts alone are read, and no pilot is drawn.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from holdfast.laws import kappa_bound
from holdfast.samplers.theta import log_theta3, log_theta_ratio

Floats = NDArray[np.float64]
MARGIN = 1 + 1e-9
NEXT_BELOW = 1 - Fraction(1, 1 << 40)
"""Takes a variance found by doubles, or the first one of several that doubles cannot tell apart, from below."""


@dataclass(frozen=True)
class Steps:
    """What is certain about a block's steps; without any, the two laws are one: no centre moves.

    least:         the smallest variance of a step. times: how many steps of a block have it. level: whose sums they are, as a level
                   vector; () where coefficients of a basis are drawn.
    log_tries:     bound of sum log theta_i: the logarithm of the lattice law's expected tries ([theory R7] (e)).
    log_distance:  bound of sum log(theta_i / theta4_i).
    drift:         bound of sum e(v_i)^2 / v_i.
    """

    least: Fraction | None = None
    times: int = 0
    level: tuple[int, ...] = ()
    log_tries: float = 0.0
    log_distance: float = 0.0
    drift: float = 0.0

    @property
    def kappa(self) -> Fraction:
        """The price: the sequential law is (1 + kappa) rho-zCDP where the lattice law is rho-zCDP ([theory R22])."""
        return Fraction(0) if self.least is None else kappa_bound(self.least * NEXT_BELOW)

    @property
    def total_variation(self) -> float:
        """A bound of the total variation distance of the two laws."""
        return min(1.0, math.expm1(min(self.log_distance, 2.0)) / 4 * MARGIN)

    def shift(self, variance: float) -> float:
        """E of the tail bound of a linear form with this variance in the continuous law: P[|form| > t + E] <= 2 exp(-t^2 / (2 (1 + kappa)
        variance)).
        """
        return math.sqrt(variance * self.drift) * MARGIN


def steps_with(variances: ArrayLike, counts: ArrayLike, least: Fraction, times: int, level: tuple[int, ...] = ()) -> Steps:
    """The steps with so many of each variance, which are bounds from below; `least` is exact, or off by less than NEXT_BELOW."""
    low, count = np.asarray(variances, dtype=np.float64) * (1 - 1e-9), np.asarray(counts, dtype=np.float64)
    tries = float((log_theta3(low) * count).sum()) * MARGIN
    distance = float((-log_theta_ratio(low, 0.5) * count).sum()) * MARGIN
    return Steps(least, times, level, tries, distance, float((step_bounds(low)[0] ** 2 / low * count).sum()) * MARGIN)


def together(parts: Iterable[tuple[Steps, int]]) -> Steps:
    """The steps of so many blocks of each kind."""
    moving = [(steps, blocks) for steps, blocks in parts if steps.least is not None]
    if not moving:
        return Steps()
    first = min((steps for steps, _ in moving), key=lambda steps: steps.least or 0)
    times = sum(steps.times * blocks for steps, blocks in moving if steps.least == first.least)
    tries = math.fsum(steps.log_tries * blocks for steps, blocks in moving)
    distance = math.fsum(steps.log_distance * blocks for steps, blocks in moving)
    return Steps(first.least, times, first.level, tries, distance, math.fsum(steps.drift * blocks for steps, blocks in moving))


TERMS = 40
NARROWEST = 0.02


def step_bounds(variances: Floats) -> tuple[Floats, Floats]:
    """(e(v), kappa(v)), from above, by the leading bits of v. For the narrowest: 1/2, and 1 / (4 v), as all but the two nearest integers
    have a share below 10^-20.
    """
    mantissa, exponent = np.frexp(variances)
    variances, where = np.unique(np.ldexp(np.floor(np.ldexp(mantissa, 12)), exponent - 12), return_inverse=True)
    safe = np.maximum(variances, NARROWEST)
    b = np.exp(-2 * math.pi**2 * safe[:, None] * (2 * np.arange(1, TERMS + 1) - 1))  # what is left out is below 1e-12
    rest = np.minimum(1e-12, b[:, 0])
    means = 4 * math.pi * safe * (b / (1 - b**2)).sum(axis=1) * MARGIN + rest
    kappas = 8 * math.pi**2 * safe * (b / (1 - b) ** 2).sum(axis=1) * MARGIN + rest
    is_narrow = variances < NARROWEST
    return np.where(is_narrow, 0.5, np.minimum(means, 0.5))[where], np.where(is_narrow, 0.25 / variances, kappas)[where]
