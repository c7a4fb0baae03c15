"""Klein's step: an integer vector of the lattice given the variances, from a proposal whose law is known exactly.

Coordinate i of z = B x is drawn from the discrete Gaussian on the integers whose centre and parameter are doubles near the ideal ones, the
parameter stretched by 1 + XI. These doubles ARE the proposal's parameters: its law is exact, and the accept step (sampler.py) corrects for
it exactly. All that has to be proved is that target over proposal stays below a public constant; the margin XI pays for every rounding.

Any matrix [theory T176]: Q = B' T^-1 B is near U D U' in doubles (U unit upper triangular, D diagonal), c_i = -sum_{j < i} U_ji x_j and
s_i^2 = (1 + XI) / D_i.

- |Q - U D U'| is at most E = (d + m + 10) 2^-52 trace Q, and Q >= (least eigenvalue of B'B) / (largest tau), so U D U' <= (1 + XI / 4) Q
  where E (largest tau) trace((B'B)^-1) <= XI / 4: the first certificate;
- a centre that is off by e costs a factor of at most exp(e^2 D_i / XI): the second certificate, e^2 D_i / XI <= 2^-30.

Where the first fails, U and D are found anew in integers with FINE_BITS binary places; where the second does, the centres are rationals
from that coordinate on.

A grid of two axes [theory T178]: cells row by row, each given those before it, by the algebra of one axis (forms.py). K = sum_{k > i}
(diag(tau_k) - tau_k tau_k' / sum tau_k); H = K + the tau of row i not yet drawn; D_l is what column l still needs. With H y = D and H g =
e_j the ideal Gaussian has centre tau y_j and variance tau (1 - tau g_j); residuals D - H y and e_j - H g certify

- the ideal variance s^2 within a relative XI / 8, so that the stretched one is larger;
- a centre that is off by e costs a factor of at most exp(e^2 / (1.7 XI s^2)): e^2 <= 2/5 XI^2 s^2.

Where a certificate fails, rationals take the place of doubles from that cell on.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from flint import arb_mat, fmpq, fmpq_mat
from numpy.typing import NDArray

from holdfast.errors import InternalError
from holdfast.exact.balls import enclosure, float_up, precision
from holdfast.lattices import algebra
from holdfast.randomness import Words
from holdfast.samplers.coupling.conditional import as_doubles, integer_at
from holdfast.samplers.coupling.forms import BITS, GeneralForm, GridForm

Ints = NDArray[np.int64]
Doubles = NDArray[np.float64]

LOST = Fraction(1, 2000)
LOST_WHERE_LARGE = Fraction(1, 50)
"""What stretching costs: a try is accepted less often by a factor of at least exp(-this)."""
LARGE = 64
"""Free dimensions beyond which doubles meet the first certificate only where the margin is wider."""
CENTRE_LOSS = 2.0**-30
FINE_BITS = 256


@dataclass(frozen=True)
class Proposal:
    """z = B x, the parameters of each coordinate, and the logarithm that Klein's step leaves to the accept step, with its error.

    `log_ratio` stands for -sum z^2 / 2 tau + sum (x - c)^2 / 2 s^2 + sum log(theta s) + log(prod tau^-1/2 det(A T A')^1/2) + constants: 0
    for an ideal coordinate whose sum is its integral. `error` is infinite where doubles say nothing.
    """

    z: Ints
    x: Ints
    centres: Sequence[float | Fraction]
    variances: Sequence[float | Fraction]
    log_ratio: float
    error: float


def margin(dimension: int, lost: Fraction) -> float:
    """XI: the power of two at or below lost / dimension, by integers."""
    return 0.5 ** (math.ceil(dimension / lost) - 1).bit_length()


def exact_coordinate(i: int, centre: Fraction, variance: Fraction, taken: NDArray[np.uint32], base: int, words: Words) -> int:
    """The integer that the two words of coordinate i give, exactly."""
    whole = math.floor(centre + Fraction(1, 2))
    cell = (int(taken[2 * i]) << 32) | int(taken[2 * i + 1])
    return whole + integer_at(centre - whole, variance, cell, 64, words, base + 2 * i)


class DenseKlein:
    """Klein's step by dense algebra, for any basis; two words for each coordinate."""

    def __init__(self, form: GeneralForm, slack: float = 0.0) -> None:
        self.form, self.slack = form, slack
        self.xi = margin(form.dimension, LOST if form.dimension <= LARGE else LOST_WHERE_LARGE)
        self.most_off = self.xi / 4
        self.allowance = Fraction(self.xi)
        """Target over proposal passes its ideal bound by a factor of at most exp(this) for each coordinate: XI/2 + XI/6 + 2^-30."""

    @cached_property
    def _spread(self) -> float:
        """At least trace((B'B)^-1), one over which is at most the least eigenvalue of B'B."""
        basis = self.form.basis
        with precision(BITS):
            return float_up(enclosure(arb_mat(basis.transpose() * basis).inv().trace()).upper)

    def propose(self, indices: Ints, taken: NDArray[np.uint32], base: int, words: Words) -> Proposal:
        """The vector that words `taken` give, which begin at position `base`."""
        from holdfast.samplers.coupling import _coupling_compiled as loops

        m = self.form.dimension
        taus, above, precisions, off = self._factors(indices)
        if not off <= self.most_off:
            return self._slowly(0, *self._fine_factors(indices), np.zeros(m, np.int64), [], taken, base, words)
        x, centres, variances = np.zeros(m, dtype=np.int64), np.empty(m), np.empty(m)
        u = as_doubles(taken[0::2], taken[1::2])
        i = 0
        while i < m:
            i, in_doubt = loops.draw_coordinates(
                i, above, precisions, 1 + self.xi, self.xi * CENTRE_LOSS, u, x, centres, variances, self.slack
            )
            if in_doubt:
                factors = [[Fraction(float(entry)) for entry in row] for row in above], [Fraction(float(p)) for p in precisions]
                known = [(Fraction(float(c)), Fraction(float(v))) for c, v in zip(centres[:i], variances[:i], strict=True)]
                return self._slowly(i, *factors, x, known, taken, base, words)
            if i < m:
                x[i] = exact_coordinate(i, Fraction(float(centres[i])), Fraction(float(variances[i])), taken, base, words)
                i += 1
        z = algebra.to_numpy(self.form.basis).astype(np.int64) @ x
        value, error = loops.log_ratio(z, taus, x, centres, variances)
        value += m / 2 * math.log1p(self.xi)
        return Proposal(z, x, centres.tolist(), variances.tolist(), value, error + m * (2 * off + 2.0**-50))

    def _factors(self, indices: Ints) -> tuple[Doubles, Doubles, Doubles, float]:
        """(tau; U and D in doubles; how far they may be off, infinity after the table's last atom)."""
        from holdfast.samplers.coupling import _coupling_compiled as loops

        form, m = self.form, self.form.dimension
        above, precisions = np.empty((m, m)), np.empty(m)
        if indices.max() >= form.mixture.atoms:
            return np.empty(0), above, precisions, math.inf
        taus = form.mixture.taus[indices]
        trace = loops.factorise(form.basis_doubles, taus, above, precisions)
        return taus, above, precisions, (form.cells + m + 10) * 2.0**-52 * trace * float(taus.max()) * self._spread

    def is_slow(self, indices: Ints) -> bool:
        """Whether doubles do not do for these variances, and integers of FINE_BITS bits take their place."""
        return not self._factors(indices)[-1] <= self.most_off

    def _slowly(
        self,
        start: int,
        above: list[list[Fraction]],
        precisions: list[Fraction],
        x: Ints,
        known: list[tuple[Fraction, Fraction]],
        taken: NDArray[np.uint32],
        base: int,
        words: Words,
    ) -> Proposal:
        """Coordinates from `start` on with exact centres."""
        parameters = list(known)
        for i in range(start, len(x)):
            centre = -sum((above[j][i] * int(x[j]) for j in range(i)), Fraction(0))
            parameters.append((centre, Fraction(1 + self.xi) / precisions[i]))
            x[i] = exact_coordinate(i, *parameters[i], taken, base, words)
        z = algebra.to_numpy(self.form.basis).astype(np.int64) @ x
        return Proposal(z, x, [c for c, _ in parameters], [v for _, v in parameters], 0.0, math.inf)

    def _fine_factors(self, indices: Ints) -> tuple[list[list[Fraction]], list[Fraction]]:
        """U and D in fixed point of FINE_BITS bits: the same elimination, with roundings that T176's margin covers; else refused."""
        basis = algebra.to_numpy(self.form.basis).astype(object)
        one = 1 << FINE_BITS
        shares = np.array([int(one / self.form.mixture.tau(int(j))) for j in indices], dtype=object)
        gram = basis.T.dot(basis * shares[:, None])
        m = len(gram)
        trace, longest = Fraction(int(np.trace(gram)), one) + 1, max(int(column @ column) for column in basis.T)
        off = m * (m * (trace + 1) + longest) * self.form.mixture.tau(int(indices.max())) * Fraction(self._spread) / one
        if not off <= Fraction(self.xi) / 4:
            raise InternalError("The factors of a Gaussian are too coarse to bound the accept step: nothing is drawn.")
        for i in range(m - 1, -1, -1):
            column, pivot = gram[:i, i].copy(), gram[i, i]
            factors = (column << FINE_BITS) // pivot
            for j in range(i):
                gram[: j + 1, j] -= (column[: j + 1] * factors[j]) >> FINE_BITS
            gram[:i, i] = factors
        return [[Fraction(int(entry), one) for entry in row] for row in gram], [Fraction(int(gram[i, i]), one) for i in range(m)]


LEAST_XI = 2.0**-24
"""Below this doubles would not certify tables of 150 x 150, and rationals take hours there; it costs 100 x 100 .06 % of its tries."""


class GridKlein:
    """Klein's step for a grid; two words for each coordinate."""

    def __init__(self, form: GridForm, slack: float = 0.0) -> None:
        self.form, self.slack = form, slack
        self.xi = max(margin(form.dimension, LOST), LEAST_XI)
        self.tolerance = 0.4 * self.xi * self.xi
        self.allowance = Fraction(self.xi)
        """Target over proposal passes its ideal bound by a factor of at most exp(this) for each coordinate: XI (1/2 + 1/16 + 1/4)."""

    def propose(self, indices: Ints, taken: NDArray[np.uint32], base: int, words: Words) -> Proposal:
        """The vector that words `taken` give, which begin at position `base`."""
        from holdfast.samplers.coupling import _coupling_compiled, _grid_compiled

        form, m = self.form, self.form.dimension
        x, z, centres, variances = np.zeros(m, np.int64), np.zeros(form.cells, np.int64), np.empty(m), np.empty(m)
        if indices.max() >= form.mixture.atoms:
            return self._slowly(0, indices, x, [], taken, base, words)
        taus = form.mixture.taus[indices]
        u, measured, count = as_doubles(taken[0::2], taken[1::2]), np.zeros(1), 0
        _, suffix, _, _, inverse, lines, *_ = form.workspace()
        scratch = suffix, inverse, lines
        grid = taus.reshape(form.rows, form.columns)
        while True:
            found = u, x, count, centres, variances, z
            n, in_doubt = _grid_compiled.grid_coordinates(grid, 1 + self.xi, self.tolerance, *found, self.slack, *scratch, measured)
            if in_doubt:
                known = [(Fraction(float(c)), Fraction(float(v))) for c, v in zip(centres[:n], variances[:n], strict=True)]
                return self._slowly(n, indices, x, known, taken, base, words)
            if n == m:
                break
            x[n] = exact_coordinate(n, Fraction(float(centres[n])), Fraction(float(variances[n])), taken, base, words)
            count = n + 1
        value, error = _coupling_compiled.log_ratio(z, taus, x, centres, variances)
        value += m / 2 * math.log1p(self.xi)
        return Proposal(z, x, centres.tolist(), variances.tolist(), value, error + 1.01 * float(measured[0]) + m * 2.0**-50)

    def _slowly(
        self, start: int, indices: Ints, x: Ints, known: list[tuple[Fraction, Fraction]], taken: NDArray[np.uint32], base: int, words: Words
    ) -> Proposal:
        """Coordinates from `start` on with exact centres and variances."""
        r, c = self.form.rows, self.form.columns
        taus = [self.form.mixture.tau(int(k)) for k in indices]
        grid = [taus[i * c : (i + 1) * c] for i in range(r)]
        parameters, table = list(known), [[0] * c for _ in range(r)]
        for n in range(len(x)):
            i, j = divmod(n, c - 1)
            if n >= start:
                centre, variance = ideal_parameters(grid, table, i, j)
                parameters.append((centre, variance * Fraction(1 + self.xi)))
                x[n] = exact_coordinate(n, *parameters[n], taken, base, words)
            table[i][j] = int(x[n])
            table[i][c - 1] -= int(x[n])
        table[r - 1] = [-sum(row[j] for row in table[: r - 1]) for j in range(c)]
        z = np.array([entry for row in table for entry in row], dtype=np.int64)
        return Proposal(z, x, [centre for centre, _ in parameters], [v for _, v in parameters], 0.0, math.inf)


def ideal_parameters(taus: list[list[Fraction]], table: list[list[int]], i: int, j: int) -> tuple[Fraction, Fraction]:
    """(centre, variance) of cell (i, j) of the Gaussian on tables with zero sums, given the cells before it; rational."""
    c = len(taus[0])
    left = [taus[i][b] if b >= j else Fraction(0) for b in range(c)]
    matrix = [[left[a] if a == b else Fraction(0) for b in range(c)] for a in range(c)]
    for row in taus[i + 1 :]:
        total = sum(row, Fraction(0))
        for a in range(c):
            matrix[a][a] += row[a]
            for b in range(c):
                matrix[a][b] -= row[a] * row[b] / total
    demand = [-sum((table[k][b] for k in range(i)), 0) - (table[i][b] if b < j else 0) for b in range(c)]
    columns = fmpq_mat(c, 2, [entry for b in range(c) for entry in (fmpq(demand[b]), fmpq(1 if b == j else 0))])
    flat = [fmpq(entry.numerator, entry.denominator) for line in matrix for entry in line]
    found = fmpq_mat(c, c, flat).solve(columns)
    tau = taus[i][j]
    y, g = (Fraction(int(found[j, k].p), int(found[j, k].q)) for k in (0, 1))
    return tau * y, tau * (1 - tau * g)
