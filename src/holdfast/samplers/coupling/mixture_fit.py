"""Finding the head of a mixture: a linear programme in its masses.

The rows say (1 - delta) a^k <= f(k) <= (1 + delta) a^k for chosen k; the objective is the expected lattice correction of a cell,
sum_j m_j sqrt(2 pi tau_j) 2 exp(-2 pi^2 g tau_j), which punishes narrow Gaussians. g stands for the share of a cell's variance that its
totals leave it: near 1 in large tables. Candidates: from SMALLEST_TAU on by a factor of 1.1, from where that passes `step` on by steps.

The masses decide which draw belongs to which random words, so they must be the same on every machine and with every version of the solver.
The solver (SciPy, HiGHS) only suggests which atoms and which rows belong to the solution; balls go on from there and prove that what they
found is the only one (vertex.py, [theory T162]), and its masses are rounded from balls.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

from flint import arb, arb_mat

from holdfast.errors import NoExactSampler, PrecisionExhausted
from holdfast.exact.balls import ball, enclosure, precision
from holdfast.samplers.coupling.mixture import Mixture
from holdfast.samplers.coupling.vertex import Programme, solution

UNIT = Fraction(1, 1 << 12)
"""Atoms are multiples of this."""
SMALLEST_TAU = Fraction(205, 1 << 12)
STEP = Fraction(35, 100)
CUT = 20
MASS_BITS = 40
VERTEX_BITS = 128
TAIL_END, ROWS_END = 200, 45
TIE_BREAK = 1 << 10
"""Wide Gaussians cost nothing; a small cost of their own, sum m / sqrt(tau), decides between solutions that differ in these alone."""
SMALLEST_EPSILON, LARGEST_EPSILON = Fraction(1, 1024), Fraction(4)


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
    return fit_mixture(epsilon, fit_for(cells))


@lru_cache(maxsize=32)
def fit_mixture(epsilon: Fraction, fit: Fit) -> Mixture:
    """The mixture whose head solves the linear programme."""
    if not SMALLEST_EPSILON <= epsilon <= LARGEST_EPSILON:
        raise NoExactSampler(
            f"Coupling from the past takes epsilon between {SMALLEST_EPSILON} and {LARGEST_EPSILON} per unit, and this is {epsilon}."
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


def _rows(epsilon: Fraction) -> list[int]:
    """The k that have rows: all up to 60, then about every thirtieth part."""
    chosen, k = [], 0
    while k <= ROWS_END / epsilon:
        chosen.append(k)
        k += max(1, k // 32)
    return chosen


def programme(epsilon: Fraction, taus: list[Fraction], step: Fraction, fit: Fit) -> tuple[Programme, list[arb]]:
    """The linear programme of a fit, in balls of VERTEX_BITS bits, and `scale`: x_j scale_j is the mass of candidate j, which is what the
    continuous mixture has in its place where x_j = 1. Costs are divided by the largest.
    """
    e, t = ball(epsilon), [ball(tau) for tau in taus]
    widths = [ball(tau - before) for before, tau in zip([Fraction(0), *taus], taus, strict=False)]
    density = [e * width / (2 * arb.pi() * tau).sqrt() for width, tau in zip(widths, t, strict=True)]
    tail = _tail_terms(epsilon, taus[-1], step)
    upper, above, below = [], [], []
    for k in _rows(epsilon):
        upper.append([d * (-((k - e * tau) ** 2) / (2 * tau)).exp() for d, tau in zip(density, t, strict=True)])
        rest = sum((mass * (-((k - centre) ** 2) / (2 * tau)).exp() for mass, centre, tau in tail), arb(0))
        above.append(1 + ball(fit.delta) - rest)
        below.append(ball(fit.delta) - 1 + rest)
    scale = [d * (-(e * e * tau) / 2).exp() for d, tau in zip(density, t, strict=True)]
    narrow = [s * (2 * arb.pi() * tau).sqrt() * (-2 * arb.pi() ** 2 * ball(fit.g) * tau).exp() for s, tau in zip(scale, t, strict=True)]
    largest = max(narrow, key=lambda cost: float(cost.mid()))
    costs = [cost / largest + s / (e * tau.sqrt()) / TIE_BREAK for cost, s, tau in zip(narrow, scale, t, strict=True)]
    matrix = arb_mat(upper + [[-entry for entry in row] for row in upper])
    return Programme(matrix, above + below, costs), scale


def _tail_terms(epsilon: Fraction, cut: Fraction, step: Fraction) -> list[tuple[arb, arb, arb]]:
    """Of each tail atom up to TAIL_END / epsilon^2: mass exp(epsilon^2 tau / 2), epsilon tau, tau. Later ones do not matter."""
    tail = [cut + i * step for i in range(1, math.ceil((TAIL_END / epsilon**2 - cut) / step))]
    unit = ball(step * epsilon) / (2 * arb.pi()).sqrt()
    return [(unit / ball(tau).sqrt(), ball(epsilon * tau), ball(tau)) for tau in tail]


def _solve(epsilon: Fraction, taus: list[Fraction], step: Fraction, fit: Fit) -> list[Fraction]:
    """Masses of the candidates: the unique solution of the programme, with MASS_BITS significant bits; most are 0."""
    with precision(VERTEX_BITS):
        wanted, scale = programme(epsilon, taus, step, fit)
        x = solution(wanted)
        if x is not None:
            return [_round_down(x[j] * scale[j]) if j in x else Fraction(0) for j in range(len(taus))]
    raise NoExactSampler(
        f"Coupling from the past needs a mixture of Gaussians, and none was found for epsilon {epsilon}. Change epsilon a little."
    )


def _round_down(value: arb) -> Fraction:
    """The number with MASS_BITS significant bits, rounded down: the same for every ball that holds it and is narrow enough."""
    low, high = (_leading(end) for end in enclosure(value))
    if low != high:
        raise PrecisionExhausted("A mass of the mixture could not be rounded. Change epsilon a little.")
    return low


def _leading(value: Fraction) -> Fraction:
    exponent = math.frexp(float(value))[1] - MASS_BITS
    return Fraction(math.floor(value / Fraction(2) ** exponent)) * Fraction(2) ** exponent
