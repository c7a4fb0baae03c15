"""Finding the head of a mixture: a linear programme in its masses.

The rows say (1 - delta) a^k <= f(k) <= (1 + delta) a^k for chosen k; the objective is the expected lattice correction of a cell,
sum_j m_j sqrt(2 pi tau_j) 2 exp(-2 pi^2 g tau_j), which punishes narrow Gaussians. g stands for the share of a cell's variance that its
totals leave it: near 1 in large tables. Candidates: from SMALLEST_TAU on by a factor of 1.1, from where that passes `step` on by steps.

The masses decide which draw belongs to which random words, so they must be the same on every machine and with every version of the solver.
The solver (SciPy, HiGHS) only suggests which atoms and which rows belong to the solution; balls prove that it is the only one
[theory T162], and its masses are rounded from balls.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache
from itertools import chain, product
from typing import NamedTuple

import numpy as np
from flint import arb, arb_mat

from holdfast.errors import NoExactSampler, PrecisionExhausted
from holdfast.exact.balls import ball, enclosure, precision
from holdfast.samplers.coupling.mixture import Mixture

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
SMALLEST_EPSILON, LARGEST_EPSILON = Fraction(1, 128), Fraction(4)


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


def _rows(epsilon: Fraction) -> list[int]:
    """The k that have rows: all up to 60, then about every thirtieth part."""
    chosen, k = [], 0
    while k <= ROWS_END / epsilon:
        chosen.append(k)
        k += max(1, k // 32)
    return chosen


class Programme(NamedTuple):
    """minimise costs x over matrix x <= bounds, x >= 0; x_j scale_j is the mass of candidate j. Balls of VERTEX_BITS bits."""

    matrix: arb_mat
    bounds: list[arb]
    costs: list[arb]
    scale: list[arb]


def programme(epsilon: Fraction, taus: list[Fraction], step: Fraction, fit: Fit) -> Programme:
    """The linear programme of a fit. Candidates are scaled by what the continuous mixture has in their place, costs by the largest."""
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
    return Programme(matrix, above + below, costs, scale)


def _tail_terms(epsilon: Fraction, cut: Fraction, step: Fraction) -> list[tuple[arb, arb, arb]]:
    """Of each tail atom up to TAIL_END / epsilon^2: mass exp(epsilon^2 tau / 2), epsilon tau, tau. Later ones do not matter."""
    tail = [cut + i * step for i in range(1, math.ceil((TAIL_END / epsilon**2 - cut) / step))]
    unit = ball(step * epsilon) / (2 * arb.pi()).sqrt()
    return [(unit / ball(tau).sqrt(), ball(epsilon * tau), ball(tau)) for tau in tail]


def _solve(epsilon: Fraction, taus: list[Fraction], step: Fraction, fit: Fit) -> list[Fraction]:
    """Masses of the candidates: the unique solution of the programme, with MASS_BITS significant bits; most are 0."""
    with precision(VERTEX_BITS):
        wanted = programme(epsilon, taus, step, fit)
        for columns, rows in suggested_vertices(wanted):
            x = proved_vertex(wanted, columns, rows)
            if x is not None:
                return [_rounded(x[j] * wanted.scale[j]) if j in x else Fraction(0) for j in range(len(taus))]
    raise NoExactSampler(
        f"Coupling from the past needs a mixture of Gaussians, and none was found for epsilon {epsilon}. Change epsilon a little."
    )


def suggested_vertices(wanted: Programme) -> Iterator[tuple[list[int], list[int]]]:
    """Columns and rows of vertices that a solver in doubles takes for the solution, as many rows as columns."""
    from scipy.optimize import linprog

    matrix = np.array([float(entry.mid()) for entry in wanted.matrix.entries()]).reshape(wanted.matrix.nrows(), -1)
    bounds, costs = (np.array([float(value.mid()) for value in values]) for values in (wanted.bounds, wanted.costs))
    for method, tolerance in product(("highs-ds", "highs-ipm"), (1e-10, 1e-9, 1e-8, 1e-7)):
        options = {"primal_feasibility_tolerance": tolerance, "dual_feasibility_tolerance": tolerance}
        found = linprog(costs, A_ub=matrix, b_ub=bounds, method=method, options=options)
        if found.status == 0:
            columns = np.flatnonzero(found.x > 0)
            by_multiplier = np.argsort(found.ineqlin.marginals, kind="stable")  # 0 or below; a tight row has one below 0
            yield columns.tolist(), by_multiplier[: len(columns)].tolist()


def proved_vertex(wanted: Programme, columns: list[int], rows: list[int]) -> dict[int, arb] | None:
    """The x_j > 0 of the vertex where these rows are tight, if balls prove that it is the only solution [theory T162]; else None."""
    a, b, c = wanted.matrix, wanted.bounds, wanted.costs
    square = arb_mat([[a[r, j] for j in columns] for r in rows])
    try:
        x = square.solve(arb_mat([[b[r]] for r in rows])).entries()
        y = square.transpose().solve(arb_mat([[c[j]] for j in columns])).entries()
    except ZeroDivisionError:
        return None
    slacks = (b[r] - sum((a[r, j] * value for j, value in zip(columns, x, strict=True)), arb(0)) for r in _others(a.nrows(), rows))
    reduced = (c[j] - sum((a[r, j] * value for r, value in zip(rows, y, strict=True)), arb(0)) for j in _others(a.ncols(), columns))
    is_solution = all(value > 0 for value in chain(x, slacks, reduced)) and all(value < 0 for value in y)
    return dict(zip(columns, x, strict=True)) if is_solution else None


def _others(n: int, chosen: list[int]) -> list[int]:
    return sorted(set(range(n)) - set(chosen))


def _rounded(value: arb) -> Fraction:
    """The number with MASS_BITS significant bits, rounded down: the same for every ball that holds it and is narrow enough."""
    low, high = (_leading(end) for end in enclosure(value))
    if low != high:
        raise PrecisionExhausted("A mass of the mixture could not be rounded. Change epsilon a little.")
    return low


def _leading(value: Fraction) -> Fraction:
    exponent = math.frexp(float(value))[1] - MASS_BITS
    return Fraction(math.floor(value / Fraction(2) ** exponent)) * Fraction(2) ** exponent
