"""The cell law of l1 Laplace noise as a mixture of Gaussians whose variances stay away from 0 [theory T160].

Legend: a = exp(-epsilon); atoms tau_j > 0, rising, with masses m_j > 0; f(k) = sum_j m_j exp(-k^2 / (2 tau_j)) for integers k.

    head   finitely many atoms with dyadic masses, found by a linear programme (`fit_mixture`); nothing it says is trusted;
    tail   tau_j = cut + i step for i = 1, 2, ..., without end, m_j = step epsilon / sqrt(2 pi tau_j) exp(-epsilon^2 tau_j / 2).

What is proved of a mixture: every m_j > 0, and a^|k| / f(k) <= exp(loss) for EVERY integer k. A sampler of the law prod f(z_i) becomes one
of prod a^|z_i| by an accept step of probability prod a^|z_i| exp(-loss) / f(z_i).

The programme. Its rows say (1 - delta) a^k <= f(k) <= (1 + delta) a^k for chosen k; the objective is the expected lattice correction of a
cell, sum_j m_j sqrt(2 pi tau_j) 2 exp(-2 pi^2 g tau_j), which punishes narrow Gaussians. g stands for the share of a cell's variance that
its totals leave it: near 1 in large tables. Candidates: from SMALLEST_TAU on by a factor of 1.1, from where that passes `step` on by steps.

The masses decide which draw belongs to which random words, so they must be the same on every machine and with every version of the solver.
The solver (SciPy, HiGHS) only suggests a vertex: columns B, whose x may be above 0, and as many rows R, which are tight. Where two
solutions nearly tie it ends at a neighbour of the right one. From there steps of the simplex method, each decided by the middles of balls,
lead to a vertex that is proved to be the only solution of the programme [theory T162]; its masses are rounded from balls.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import product
from typing import NamedTuple

import numpy as np
from flint import arb, arb_mat, ctx
from numpy.typing import NDArray

from holdfast.errors import NoExactSampler, PrecisionExhausted
from holdfast.exact.balls import ball, enclosure, float_up, precision

Doubles = NDArray[np.float64]

REACH = 60
"""Checked one by one up to k = REACH / epsilon; beyond that a formula bounds the error."""
TABLE_BITS = 128
LEFT_OUT_BITS = 96
"""The table of atoms ends where all later ones together have less than 2^-this of the weight m sqrt(tau)."""
EXCESS_ERROR = 2.0**-40
"""Proved error of `excess_table`."""
WEIGHT_BOUND = 16.0
"""Bound on the sum of m exp(epsilon^2 tau / 2) over the table's atoms: the proof of EXCESS_ERROR uses it."""


@dataclass(frozen=True)
class Mixture:
    """f(k) = sum_j m_j exp(-k^2 / (2 tau_j)), near exp(-epsilon |k|).

    Given:       head_taus rising and at most cut, head_masses > 0, all dyadic; step > 0 dyadic.
    Guarantees:  `loss` >= log(exp(-epsilon |k|) / f(k)) for every integer k; see `excess`. Immutable; equal fields, equal law.
    """

    epsilon: Fraction
    head_taus: tuple[Fraction, ...]
    head_masses: tuple[Fraction, ...]
    cut: Fraction
    step: Fraction

    @property
    def head(self) -> int:
        """Atoms before the tail."""
        return len(self.head_taus)

    @cached_property
    def unit(self) -> Fraction:
        """Every atom is a whole multiple of this."""
        return min(Fraction(1, tau.denominator) for tau in (*self.head_taus, self.cut, self.step))

    def tau(self, j: int) -> Fraction:
        return self.head_taus[j] if j < self.head else self.cut + (j - self.head + 1) * self.step

    def mass(self, j: int) -> arb:
        """m_j, as a ball at flint's current precision."""
        return ball(self.head_masses[j]) if j < self.head else self.weight(j) / ball(self.tau(j)).sqrt()

    def weight(self, j: int) -> arb:
        """m_j sqrt(tau_j): from atom to atom of the tail it falls by the factor `ratio`."""
        tau = ball(self.tau(j))
        if j < self.head:
            return ball(self.head_masses[j]) * tau.sqrt()
        return self._density * (-(ball(self.epsilon**2) * tau) / 2).exp()

    @property
    def ratio(self) -> arb:
        return (-ball(self.epsilon**2 * self.step) / 2).exp()

    def weight_from(self, j: int) -> arb:
        """The sum of m sqrt(tau) over atoms j, j + 1, ... of the tail."""
        if j < self.head:
            raise ValueError(f"Atom {j} is before the tail, which begins at {self.head}.")
        return self.weight(j) / (1 - self.ratio)

    @property
    def _density(self) -> arb:
        return ball(self.step * self.epsilon) / (2 * arb.pi()).sqrt()

    def excess(self, k: int) -> arb:
        """log(f(k) exp(epsilon |k|)), as a ball at flint's current precision."""
        k, epsilon = abs(k), ball(self.epsilon)
        last = self._last(k)
        total = arb(0)
        for j in range(last):
            total += self.mass(j) * (epsilon * k - arb(k * k) / (2 * ball(self.tau(j)))).exp()
        left_out = (epsilon * k).exp() * self.weight_from(last) / ball(self.tau(last)).sqrt()
        return (total + arb(0).union(left_out)).log()

    def _last(self, k: int) -> int:
        """Atoms from here on give less than 2^-prec of f(k): epsilon^2 tau / 2 > epsilon k + prec log 2."""
        tau = (2 * self.epsilon * k + 2 * ctx.prec) / self.epsilon**2
        return self.head + max(1, math.ceil((tau - self.cut) / self.step))

    @cached_property
    def reach(self) -> int:
        return math.ceil(REACH / self.epsilon)

    @cached_property
    def far_error(self) -> float:
        """A bound of |log(f(k) exp(epsilon |k|))| for all |k| > reach, by Poisson summation over the tail [theory T160]."""
        with precision(TABLE_BITS):
            epsilon, k, cut = ball(self.epsilon), arb(self.reach), ball(self.cut)
            head = arb(0)
            for tau, mass in zip(self.head_taus, self.head_masses, strict=True):
                head += ball(mass) * (ball(self.epsilon**2 * tau) / 2).exp()
            tau = self.cut
            while tau > 0:
                head += self._density / ball(tau).sqrt()
                tau -= self.step
            error = aliasing(epsilon * k, self.epsilon**2 * self.step) + head * (-((k - epsilon * cut) ** 2) / (2 * cut)).exp()
            if not (k > epsilon * cut and error < 0.25):
                raise ValueError("The tail begins too late for its error to be bounded.")
            return float_up(enclosure(2 * error).upper)  # |log(1 + e)| <= 2 |e| for |e| <= 1/2

    @cached_property
    def excess_table(self) -> Doubles:
        """log(f(k) exp(epsilon k)) for k = 0, ..., reach, off by at most EXCESS_ERROR. Beyond it is 0, off by at most far_error."""
        table = np.empty(self.reach + 1)
        taus, epsilon = self.taus, float(self.epsilon)
        with precision(TABLE_BITS):
            growth = [(ball(self.epsilon**2 * self.tau(j)) / 2).exp() for j in range(self.atoms)]
            scaled = np.array([enclosure(self.mass(j) * growth[j]).nearest() for j in range(self.atoms)])
        # What is left of exp(epsilon k - k^2 / (2 tau)) has the exponent -(k - epsilon tau)^2 / (2 tau): no cancellation.
        for begin in range(0, len(table), 1 << 10):
            k = np.arange(begin, min(begin + (1 << 10), len(table)), dtype=np.float64)[:, None]
            distance = k - epsilon * taus
            table[begin : begin + len(k)] = np.log((scaled * np.exp(-(distance * distance) / (2 * taus))).sum(axis=1))
        if not (scaled.sum() < WEIGHT_BOUND and table.min() > -0.5):
            raise ValueError("These masses are too far from the Laplace law for the error of the table to be bounded.")
        table.setflags(write=False)
        return table

    @cached_property
    def loss(self) -> Fraction:
        """At least log sup over all integers k of exp(-epsilon |k|) / f(k); dyadic, and 0 or more."""
        largest = max(0.0, -float(self.excess_table.min()), self.far_error)
        # Rounded up coarsely, so that the last bits of a machine's exp and log do not show.
        return Fraction(math.ceil((largest + EXCESS_ERROR) * 2.0**26), 1 << 26)

    @cached_property
    def atoms(self) -> int:
        """Atoms in the tables; all later ones together have less than 2^-LEFT_OUT_BITS of the weight."""
        log_share = LEFT_OUT_BITS * math.log(2) + 10
        tau = Fraction(math.ceil(2 * log_share)) / self.epsilon**2
        return self.head + max(1, math.ceil((tau - self.cut) / self.step))

    @cached_property
    def taus(self) -> Doubles:
        """tau_j of the table's atoms: exact, and so are the sums of them that are needed, which the forms check."""
        return _frozen([float(self.tau(j)) for j in range(self.atoms)])

    @cached_property
    def weights(self) -> Doubles:
        """m_j sqrt(tau_j) of the table's atoms, each the double nearest to it or next to that."""
        with precision(TABLE_BITS):
            return _frozen([enclosure(self.weight(j)).nearest() for j in range(self.atoms)])


def aliasing(x: arb, step: Fraction) -> arb:
    """A bound of |exp(x) S - 1|, S the sum of the tail's formula for epsilon = 1 over all tau = c + i step > 0, for any c and at every
    point from x on: part (i) of the proof of [theory T160], in units where epsilon is 1.
    """
    y = 4 * arb.pi() / ball(step)
    root = (((1 + y * y).sqrt() + 1) / 2).sqrt()
    b = x * (y / 2).sqrt()
    return 2 * ((x * (1 - root)).exp() + 2 * (x - b).exp() * (b + 1) / (b * b))


def _frozen(values: list[float]) -> Doubles:
    array = np.array(values, dtype=np.float64)
    array.setflags(write=False)
    return array


MOST_PIVOTS = 400
"""From one suggestion; 179 is the most that was seen to lead to the end."""


class Programme(NamedTuple):
    """minimise costs x over matrix x <= bounds, x >= 0, all of them balls."""

    matrix: arb_mat
    bounds: list[arb]
    costs: list[arb]


def solution(wanted: Programme) -> dict[int, arb] | None:
    """The x_j > 0 of the only solution, if one is found and proved."""
    for columns, rows in suggested_vertices(wanted):
        for _ in range(MOST_PIVOTS):
            vertex = Vertex.at(wanted, columns, rows)
            if vertex is None:
                break
            if vertex.is_the_only_solution:
                return dict(zip(columns, vertex.x, strict=True))
            neighbour = vertex.neighbour()
            if neighbour is None:
                break
            columns, rows = neighbour
    return None


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
            tightest = np.lexsort((found.slack, found.ineqlin.marginals >= 0))  # a tight row has a multiplier below 0, if not a tiny one
            yield columns.tolist(), tightest[: len(columns)].tolist()


@dataclass(frozen=True)
class Vertex:
    """The vertex of some columns and rows: x of these columns, multipliers y of these rows; slacks and reduced costs of all."""

    wanted: Programme
    columns: list[int]
    rows: list[int]
    inverse: arb_mat
    x: list[arb]
    y: list[arb]
    slacks: list[arb]
    reduced: list[arb]

    @classmethod
    def at(cls, wanted: Programme, columns: list[int], rows: list[int]) -> Vertex | None:
        """None where the rows do not determine the columns, as far as balls tell."""
        matrix, bounds, costs = wanted
        try:
            inverse = _part(matrix, rows, columns).inv()
        except ZeroDivisionError:
            return None
        x = inverse * arb_mat([[bounds[r]] for r in rows])
        y = arb_mat([[costs[j] for j in columns]]) * inverse
        used = (_part(matrix, range(matrix.nrows()), columns) * x).entries()
        priced = (y * _part(matrix, rows, range(matrix.ncols()))).entries()
        slacks = [bound - value for bound, value in zip(bounds, used, strict=True)]
        reduced = [cost - value for cost, value in zip(costs, priced, strict=True)]
        return cls(wanted, columns, rows, inverse, x.entries(), y.entries(), slacks, reduced)

    @property
    def is_the_only_solution(self) -> bool:
        """The four conditions of [theory T162]."""
        slacks = all(self.slacks[r] > 0 for r in _others(len(self.slacks), self.rows))
        reduced = all(self.reduced[j] > 0 for j in _others(len(self.reduced), self.columns))
        return slacks and reduced and all(value > 0 for value in self.x) and all(value < 0 for value in self.y)

    def neighbour(self) -> tuple[list[int], list[int]] | None:
        """One step of the simplex method: the column, or the slack of a tight row, that lowers the costs fastest enters; the column or row
        that stops it first takes its place. None at an end. Row i of `rows` goes by the number -1 - i.
        """
        loosened = [(-_middle(value), -1 - i) for i, value in enumerate(self.y)]
        entering = [(_middle(self.reduced[j]), j) for j in _others(len(self.reduced), self.columns)]
        cost, which = min(loosened + entering)
        if cost >= 0:
            return None
        matrix, columns, rows = self.wanted.matrix, list(self.columns), list(self.rows)
        moved = [matrix[r, which] for r in rows] if which >= 0 else [arb(int(-1 - which == i)) for i in range(len(rows))]
        falls = self.inverse * arb_mat([[entry] for entry in moved])  # of x, where `which` grows by 1
        kept = _part(matrix, range(matrix.nrows()), columns) * falls
        falling = enumerate(zip(self.x, falls.entries(), strict=True))
        stops = [(_middle(value) / _middle(fall), 0, i) for i, (value, fall) in falling if fall > 0]
        for r in _others(len(self.slacks), rows):
            fills = (matrix[r, which] if which >= 0 else arb(0)) - kept[r, 0]
            if fills > 0:
                stops.append((_middle(self.slacks[r]) / _middle(fills), 1, r))
        if not stops:
            return None
        _, is_row, last = min(stops)
        if which < 0:
            rows.pop(-1 - which)
        else:
            columns.append(which)
        if is_row:
            rows.append(last)
        else:
            columns.pop(last)
        return columns, rows


def _part(matrix: arb_mat, rows: range | list[int], columns: range | list[int]) -> arb_mat:
    return arb_mat([[matrix[r, j] for j in columns] for r in rows])


def _middle(value: arb) -> float:
    return float(value.mid())


def _others(n: int, chosen: list[int]) -> list[int]:
    return sorted(set(range(n)) - set(chosen))


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
    """For each tail atom up to TAIL_END / epsilon^2: mass exp(epsilon^2 tau / 2), epsilon tau, tau. Later ones do not matter."""
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
