"""Finding the head of a mixture: a linear programme in its masses.

The rows say (1 - delta) a^k <= f(k) <= (1 + delta) a^k for chosen k; the objective is the expected lattice correction of a cell,
sum_j m_j sqrt(2 pi tau_j) 2 exp(-2 pi^2 g tau_j), which punishes narrow Gaussians. g stands for the share of a cell's variance that its
totals leave it: near 1 in large tables. Candidates: from SMALLEST_TAU on by a factor of 1.1, from where that passes `step` on by steps.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import NoExactSampler
from holdfast.samplers.coupling.mixture import REACH, Mixture

UNIT = Fraction(1, 1 << 12)
"""Atoms are multiples of this."""
SMALLEST_TAU = Fraction(205, 1 << 12)
STEP = Fraction(35, 100)
CUT = 20
MASS_BITS = 40
SMALLEST_EPSILON, LARGEST_EPSILON = Fraction(1, 1 << 10), Fraction(4)


class Fit(NamedTuple):
    """What a mixture is fitted for: the error of f allowed at each k, and g."""

    delta: Fraction
    g: Fraction


def fit_for(cells: int) -> Fit:
    """The more cells, the smaller the error of one may be: cells x delta stays near .1."""
    if cells <= 30:
        return Fit(Fraction(1, 10_000), Fraction(3, 5))
    if cells <= 225:
        return Fit(Fraction(1, 10_000), Fraction(3, 4))
    if cells <= 2_000:
        return Fit(Fraction(3, 100_000), Fraction(17, 20))
    return Fit(Fraction(1, 100_000), Fraction(19, 20))


def mixture_for(epsilon: Fraction, cells: int) -> Mixture:
    """The mixture for a block of so many cells. Deterministic; kept once made."""
    return fitted(epsilon, fit_for(cells))


@lru_cache(maxsize=32)
def fitted(epsilon: Fraction, fit: Fit) -> Mixture:
    """The mixture whose head solves the linear programme."""
    if not SMALLEST_EPSILON <= epsilon <= LARGEST_EPSILON:
        raise NoExactSampler(
            f"Coupling from the past takes epsilon between {SMALLEST_EPSILON} and {LARGEST_EPSILON} per unit. Got {epsilon}."
        )
    step = _rounded_down(STEP / epsilon**2)
    taus = candidates(epsilon, step)
    masses = _solve(epsilon, taus, step, fit)
    kept = [j for j, mass in enumerate(masses) if mass > 0]
    return Mixture(epsilon, tuple(taus[j] for j in kept), tuple(masses[j] for j in kept), taus[-1], step)


def candidates(epsilon: Fraction, step: Fraction) -> list[Fraction]:
    """Rising dyadic candidates up to the cut, the first one at or past CUT / epsilon^2."""
    taus = [SMALLEST_TAU]
    while taus[-1] < CUT / epsilon**2:
        by_factor = Fraction(math.ceil(taus[-1] / 10 / UNIT)) * UNIT
        taus.append(taus[-1] + min(by_factor, step))
    return taus


def _rounded_down(value: Fraction) -> Fraction:
    """A multiple of UNIT with at most eight significant bits, at or below the value."""
    units = math.floor(value / UNIT)
    drop = max(0, units.bit_length() - 8)
    return ((units >> drop) << drop) * UNIT


def _rows(epsilon: Fraction) -> NDArray[np.float64]:
    """The k that have rows: all up to 60, then about every thirtieth part."""
    reach, k = math.ceil(REACH / epsilon), 0
    chosen = []
    while k <= reach:
        chosen.append(k)
        k += max(1, k // 32)
    return np.array(chosen, dtype=np.float64)


def _solve(epsilon: Fraction, taus: list[Fraction], step: Fraction, fit: Fit) -> list[Fraction]:
    from scipy.optimize import linprog

    e, t, h, delta = float(epsilon), np.array([float(tau) for tau in taus]), float(step), float(fit.delta)
    k = _rows(epsilon)[:, None]
    reference = np.diff(t, prepend=0.0) * e / np.sqrt(2 * math.pi * t)  # of the continuous mixture, times exp(epsilon^2 tau / 2)
    head = reference * np.exp(-((k - e * t) ** 2) / (2 * t))
    tail_taus = t[-1] + h * np.arange(1, math.ceil(200 / (e * e * h)))
    tail = (h * e / np.sqrt(2 * math.pi * tail_taus) * np.exp(-((k - e * tail_taus) ** 2) / (2 * tail_taus))).sum(axis=1)
    scale = reference * np.exp(-e * e * t / 2)
    cost = scale * np.sqrt(2 * math.pi * t) * 2 * np.exp(-2 * math.pi**2 * float(fit.g) * t)
    found = linprog(cost, A_ub=np.vstack([head, -head]), b_ub=np.concatenate([1 + delta - tail, delta - 1 + tail]), method="highs")
    if found.status != 0:
        raise NoExactSampler(f"No mixture of Gaussians was found for epsilon {epsilon}.")
    return [_dyadic(float(x * s)) if x > 2.0**-30 else Fraction(0) for x, s in zip(found.x, scale, strict=True)]


def _dyadic(value: float) -> Fraction:
    """The value with MASS_BITS significant bits."""
    mantissa, exponent = math.frexp(value)
    return Fraction(round(mantissa * 2**MASS_BITS)) * Fraction(2) ** (exponent - MASS_BITS)
