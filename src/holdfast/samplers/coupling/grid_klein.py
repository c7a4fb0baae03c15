"""Klein's step on a grid of two axes: cells row by row, each given those before it, by the algebra of one axis (grid_form.py).

Legend: cell (i, j), i < r - 1 and j < c - 1, given the cells before it. K = sum_{k > i} (diag(tau_k) - tau_k tau_k' / sum tau_k); H = K +
the tau of row i not yet drawn; D_l is what column l still needs. With H y = D and H g = e_j the ideal Gaussian has centre tau y_j and
variance tau (1 - tau g_j). Doubles near these are the proposal's parameters, the variance stretched by 1 + XI; as in klein_step.py the
proposal's law is exact, and residuals D - H y and e_j - H g certify that target over proposal stays below a public constant [theory T178]:

- the ideal variance s^2 within a relative XI / 8, so that the stretched one is larger;
- a centre that is off by e costs a factor of at most exp(e^2 / (1.7 XI s^2)): e^2 <= 2/5 XI^2 s^2.

Where a certificate fails, rationals take the place of doubles from that cell on.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from flint import fmpq, fmpq_mat
from numpy.typing import NDArray

from holdfast.randomness import Words
from holdfast.samplers.coupling.grid_form import GridForm
from holdfast.samplers.coupling.klein_step import LOST, Proposal, exact_coordinate, margin
from holdfast.samplers.coupling.uniforms import as_doubles

Ints = NDArray[np.int64]

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
