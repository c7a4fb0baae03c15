"""Coupling from the past on a grid of two axes that keeps the sums along both: algebra of the size of one axis.

Legend: tau_ij for r rows and c columns. Cells are edges of the graph of rows and columns, of conductance tau. For the cells of row i the
other rows are eliminated and node i is grounded: H = sum_{k != i} (diag(tau_k) - tau_k tau_k' / sum tau_k) + diag(tau_i), c x c, and
(H^-1)_jj is the resistance between row i and column j. A change of tau_ij changes one diagonal entry of H. [theory T175]
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from flint import arb, fmpz_mat
from numpy.typing import NDArray

from holdfast.errors import NoExactSampler
from holdfast.exact.balls import ball, enclosure, float_down, float_up, precision
from holdfast.samplers.coupling.conditional import ConditionalLaw
from holdfast.samplers.coupling.convex_correction import WINDOW, GridCorrection
from holdfast.samplers.coupling.mixture import Mixture

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
    def convex(self) -> GridCorrection:
        return GridCorrection(self.rows, self.columns, self.mixture)

    @cached_property
    def atoms(self) -> int:
        """Atoms that compiled loops know."""
        rest = np.cumsum(self.mixture.weights[::-1])[::-1]
        return max(self.convex.near, int(np.searchsorted(-rest, -rest[0] * LEFT_OUT)))

    @cached_property
    def tables(self) -> tuple[Doubles, Doubles]:
        """(tau, weights) of the atoms that loops know. Doubles hold the sum of a line [theory T175]."""
        m, n = self.mixture, self.atoms
        if max(self.rows, self.columns) * m.tau(n - 1) / self._unit >= 1 << 53:
            raise NoExactSampler("Coupling from the past takes shorter axes than these at so small an epsilon.")
        return m.taus[:n].copy(), m.weights[:n].copy()

    @cached_property
    def scalars(self) -> Doubles:
        """At or above the weight of all atoms after the table; relative slack."""
        with precision(BITS):
            rest = float_up(enclosure(self.mixture.weight_from(max(self.atoms, self.mixture.head))).upper)
        if self.atoms < self.mixture.head:
            rest += float(self.mixture.weights[self.atoms : self.mixture.head].sum()) * 1.001
        return np.array([rest, (2 * self.atoms + SLACK_UNITS) * 2.0**-51])

    @cached_property
    def starts(self) -> tuple[Doubles, Doubles, Doubles]:
        """Of every cell: at or below C where every variance is tau_0; what it adds to Phi at every near atom, where the others are least
        and where they are infinite, and the error of that.
        """
        from holdfast.samplers.coupling import _grid_compiled as loops

        least = float_down(self.mixture.tau(0) * Fraction(self.dimension, self.rows + self.columns - 1))
        first, off = np.empty((2, self.cells, self.convex.near)), np.empty((2, self.cells))
        ends = self._by_column(self.convex.ends[0]), self._by_column(self.convex.ends[1])
        loops.grid_exponents_of_ends(ends, self.squares, self.convex.curve, first, off)
        return np.full(self.cells, least), first, off

    @property
    def squares(self) -> tuple[Ints, Ints, Doubles, int, int]:
        """What loops read of the correction: factors of w by column and by row, the latter as doubles too, 1, and how far they reach."""
        rows = self.convex.row_squares
        return self.convex.column_squares, rows, rows.astype(np.float64), self.convex.one, WINDOW

    def _by_column(self, sums: Ints) -> Ints:
        return np.ascontiguousarray(sums.reshape(self.rows - 1, self.columns - 1).T)

    # The compiled side.

    def back(self, u: Doubles, known: Ints, slack: float) -> tuple[int, Ints, tuple[int, int]]:
        """Both chains from time -T on, T = len(u): (how it ended, the state of the lower chain, where it stopped)."""
        from holdfast.samplers.coupling import _grid_compiled as loops

        lower, upper, stop = np.zeros(self.cells, np.int64), np.zeros(self.cells, np.int64), np.zeros(2, np.int64)
        public = *self.tables, self.scalars + np.array([0.0, slack]), self.squares, self.convex.curve
        ended = loops.grid_back(u, known, public, self.starts, lower, upper, stop, self.workspace())
        return ended, lower, (int(stop[0]), int(stop[1]))

    def workspace(self) -> tuple[Doubles, Doubles, Doubles, Doubles, Doubles, Doubles, Ints, Ints, Doubles, Doubles]:
        """tau; matrices of the rows below; of those above; K; the inverse of H; lines; x summed; X; exponents; a table's sums."""
        r, c = self.rows, self.columns
        squares = np.empty((r, c)), np.empty((r, c, c)), np.empty((c, c)), np.empty((c, c)), np.empty((c, c)), np.empty((7, c))
        return *squares, np.empty((2, c), np.int64), np.empty((c - 1, r - 1), np.int64), np.empty(self.convex.near), np.empty(self.atoms)

    # The exact side.

    def law(self, indices: list[int], cell: int) -> ConditionalLaw:
        """The conditional law of one cell given the others."""
        return ConditionalLaw(self.mixture, self.convex.exponents(indices, cell), self.conductance(indices, cell))

    def top_law(self, cell: int) -> ConditionalLaw:
        """A law above every conditional of the cell."""
        return ConditionalLaw(self.mixture, self.convex.flattest(cell), None)

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
        return ball(self.convex.value(indices))

    def correction_in_doubles(self, indices: Ints) -> tuple[float, float]:
        """(Phi, its error), for atoms in the table."""
        return self.convex.in_doubles(indices)

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
