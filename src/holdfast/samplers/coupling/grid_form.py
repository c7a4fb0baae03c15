"""Coupling from the past on a grid of two axes that keeps the sums along both: algebra of the size of one axis, correction in form P.

Legend: tau_ij for r rows and c columns. Cells are edges of the graph of rows and columns, of conductance tau. For the cells of row i the
other rows are eliminated and node i is grounded: H = sum_{k != i} (diag(tau_k) - tau_k tau_k' / sum tau_k) + diag(tau_i), c x c, and
(H^-1)_jj is the resistance between row i and column j. A change of tau_ij changes one diagonal entry of H. [theory T175]
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from flint import arb, fmpz_mat
from numpy.typing import NDArray

from holdfast.errors import NoExactSampler
from holdfast.exact.balls import ball, enclosure, float_down, float_up, precision
from holdfast.samplers.coupling.conditional import ConditionalLaw
from holdfast.samplers.coupling.mixture import Mixture
from holdfast.samplers.coupling.pair_correction import PairCorrection

Ints = NDArray[np.int64]
Doubles = NDArray[np.float64]

BITS = 128
SLACK_UNITS = 128
LEFT_OUT = 2.0**-62
"""Share of the weight that compiled loops leave to the reference."""


@dataclass(frozen=True)
class GridForm:
    """The law of the variances on a grid, as tables. Given: two axes of length 2 or more."""

    rows: int
    columns: int
    mixture: Mixture

    @property
    def cells(self) -> int:
        return self.rows * self.columns

    @property
    def dimension(self) -> int:
        return (self.rows - 1) * (self.columns - 1)

    # What is prepared once, from public facts.

    @cached_property
    def pairs(self) -> PairCorrection:
        return PairCorrection(self.rows, self.columns, self.mixture)

    @cached_property
    def atoms(self) -> int:
        """Atoms that compiled loops know."""
        rest = np.cumsum(self.mixture.weights[::-1])[::-1]
        return max(self.pairs.near + 1, int(np.searchsorted(-rest, -rest[0] * LEFT_OUT)))

    @cached_property
    def tables(self) -> Doubles:
        """Rows: tau, 1 / tau, weights of cells with a coordinate, weights of the others. Doubles hold the sum of a line [theory T175]."""
        m, n = self.mixture, self.atoms
        if max(self.rows, self.columns) * m.tau(n - 1) / self._unit >= 1 << 53:
            raise NoExactSampler("Coupling from the past takes shorter axes than these at so small an epsilon.")
        taus, weights = m.taus[:n], m.weights[:n]
        return np.ascontiguousarray(np.stack([taus, 1.0 / taus, weights * np.exp(self.pairs.own[:n]), weights]))

    @cached_property
    def scalars(self) -> Doubles:
        """At or above the weight of all atoms after the table; relative slack; at or below C where every variance is tau_0."""
        with precision(BITS):
            rest = float_up(enclosure(self.mixture.weight_from(max(self.atoms, self.mixture.head))).upper)
        if self.atoms < self.mixture.head:
            rest += float(self.mixture.weights[self.atoms : self.mixture.head].sum()) * 1.001
        least = self.mixture.tau(0) * Fraction(self.dimension, self.rows + self.columns - 1)
        return np.array([rest * math.exp(self.pairs.own[0]), (2 * self.atoms + SLACK_UNITS) * 2.0**-51, float_down(least)])

    @cached_property
    def starts(self) -> tuple[Doubles, Doubles]:
        """((Y, S) of every cell at or above their values where every variance is tau_0; S at or below where all are infinite)."""
        pairs, zero = self.pairs, np.zeros(self.cells, dtype=np.int64)
        margin = 1 + 2.0**-40
        below = pairs.below(np.full((self.rows, self.columns), 1.0 / self.mixture.taus[0])).ravel() * margin
        above = pairs.above(pairs.cell_slopes(zero)).ravel() * margin
        top = pairs.above(pairs.cell_slopes(zero + self.mixture.atoms)).ravel() / margin
        return np.stack([below, above]), top

    # The compiled side.

    def back(self, u: Doubles, known: Ints, slack: float) -> tuple[int, Ints, tuple[int, int]]:
        """Both chains from time -T on, T = len(u): (how it ended, the state of the lower chain, where it stopped)."""
        from holdfast.samplers.coupling import _grid_compiled as loops

        lower, upper, stop = np.zeros(self.cells, np.int64), np.zeros(self.cells, np.int64), np.zeros(2, np.int64)
        scalars = self.scalars + np.array([0.0, slack, 0.0])
        bottom, top = self.starts
        ended = loops.grid_back(u, known, self.tables, self.pairs.slopes, scalars, bottom, top, lower, upper, stop, *self.workspace())
        return ended, lower, (int(stop[0]), int(stop[1]))

    def workspace(self) -> tuple[Doubles, ...]:
        """tau; matrices of the rows below, and 1 / tau summed over them; of the rows above; K; the inverse of H; lines; a table's sums."""
        r, c = self.rows, self.columns
        lines = np.empty((7, c)), np.empty(self.atoms)
        return np.empty((r, c)), np.empty((r, c, c)), np.empty((r, c)), np.empty((c, c)), np.empty((c, c)), np.empty((c, c)), *lines

    # The exact side.

    def law(self, indices: list[int], cell: int) -> ConditionalLaw:
        """The conditional law of one cell given the others."""
        i, j = divmod(cell, self.columns)
        state = np.array(indices)
        below = lambda: self.pairs.below(self._inverses(indices))[i, j] + arb(0)  # noqa: E731
        above = lambda: self.pairs.above(_balls(self.pairs.cell_slopes(state)))[i, j] + arb(0)  # noqa: E731
        return self._law(cell, self.conductance(indices, cell), below, above)

    def top_law(self, cell: int) -> ConditionalLaw:
        """A law above every conditional of the cell."""
        return self._law(cell, None, arb, lambda: arb(self.starts[1][cell]))

    def _law(self, cell: int, conductance: Fraction | None, below: Any, above: Any) -> ConditionalLaw:
        i, j = divmod(cell, self.columns)
        pairs, last = self.pairs, self.mixture.atoms - 1
        if i == self.rows - 1 or j == self.columns - 1:
            return ConditionalLaw(self.mixture, lambda _: Fraction(0), lambda _: Fraction(0), conductance, arb, above)
        line = pairs.slopes[i * (self.columns - 1) + j]
        own = lambda k: Fraction(float(pairs.own[min(k, last)]))  # noqa: E731
        slope = lambda k: Fraction(float(line[min(k, pairs.near - 1)]))  # noqa: E731
        return ConditionalLaw(self.mixture, own, slope, conductance, below, above)

    def conductance(self, indices: list[int], cell: int) -> Fraction:
        """C = det(M_-e) / (det(M_-e + a a') - det(M_-e)), M_-e the matrix of the graph without the cell: rational."""
        state = self._taus(indices)
        i, j = divmod(cell, self.columns)
        state[i][j] = 0
        base = self._laplacian(state).det()
        state[i][j] = 1
        return Fraction(int(base), int(self._laplacian(state).det() - base)) * self._unit

    def log_determinant(self, indices: list[int]) -> arb:
        """log det(A T A') for A without the last column's row, as a ball at flint's current precision."""
        size = self.rows + self.columns - 1
        return arb(self._laplacian(self._taus(indices)).det()).log() + size * ball(self._unit).log()

    def correction(self, indices: list[int]) -> arb:
        """Phi, as a ball at flint's current precision."""
        state = np.array(indices)
        slopes = _balls(self.pairs.cell_slopes(state))
        own = _balls(self.pairs.own[np.minimum(state, self.mixture.atoms - 1)].reshape(self.rows, self.columns))
        phi: arb = (slopes * self.pairs.below(self._inverses(indices))).sum() + own[:-1, :-1].sum()
        return phi

    def correction_in_doubles(self, indices: Ints) -> tuple[float, float]:
        """(Phi, its error), for atoms in the table."""
        inverses = (1.0 / self.mixture.taus[indices]).reshape(self.rows, self.columns)
        own = self.pairs.own[indices].reshape(self.rows, self.columns)[:-1, :-1]
        value = float((self.pairs.cell_slopes(indices) * self.pairs.below(inverses)).sum() + own.sum())
        return value, value * (self.cells + self.rows + self.columns + 32) * 2.0**-52

    @property
    def log_scale(self) -> tuple[int, int]:
        """(det(A A'), det(B'B)): equal, since A is totally unimodular [theory T171]."""
        return 1, 1

    @cached_property
    def _unit(self) -> Fraction:
        """Every atom is a whole multiple of this."""
        mixture = self.mixture
        return min(Fraction(1, tau.denominator) for tau in (*mixture.head_taus, mixture.cut, mixture.step))

    def _taus(self, indices: list[int]) -> list[list[int]]:
        units = [int(self.mixture.tau(j) / self._unit) for j in indices]
        return [units[i : i + self.columns] for i in range(0, self.cells, self.columns)]

    def _laplacian(self, taus: list[list[int]]) -> fmpz_mat:
        """A T A' in units: rows, then columns but the last."""
        r, c = self.rows, self.columns - 1
        matrix = fmpz_mat(r + c, r + c)
        for i in range(r):
            matrix[i, i] = sum(taus[i])
            for j in range(c):
                matrix[i, r + j] = matrix[r + j, i] = taus[i][j]
        for j in range(c):
            matrix[r + j, r + j] = sum(row[j] for row in taus)
        return matrix

    def _inverses(self, indices: list[int]) -> NDArray[Any]:
        """1 / tau as an array of balls."""
        found = np.empty(self.cells, dtype=object)
        found[:] = [1 / ball(self.mixture.tau(j)) for j in indices]
        return found.reshape(self.rows, self.columns)


def _balls(values: Doubles) -> NDArray[Any]:
    """Doubles as exact balls."""
    found = np.empty(values.size, dtype=object)
    found[:] = [arb(float(value)) for value in values.ravel()]
    return found.reshape(values.shape)
