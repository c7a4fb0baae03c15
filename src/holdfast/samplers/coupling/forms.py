"""The law of the variances in coupling from the past, as tables that compiled loops read and as exact laws of one cell.

`GridForm`, two axes with the sums along both kept: tau_ij for r rows and c columns. Cells are edges of the graph of rows and columns, of
conductance tau. For the cells of row i the other rows are eliminated and node i is grounded: H = sum_{k != i} (diag(tau_k) - tau_k tau_k' /
sum tau_k) + diag(tau_i), c x c, and (H^-1)_jj is the resistance between row i and column j. A change of tau_ij changes one diagonal entry
of H. [theory T175]

`GeneralForm`, any integer matrix: A is k x d with independent rows, a_e its columns; L = {z in Z^d : A z = 0}, a basis of ALL of L as
columns of B, in the order in which coordinates are drawn (an LLL-reduced one from its last vector to its first); T = diag(tau), M = A T A'.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from flint import arb, arb_mat, fmpz_mat
from numpy.typing import NDArray

from holdfast.errors import InvalidParameter, NoExactSampler
from holdfast.exact.balls import ball, enclosure, float_down, float_up, precision
from holdfast.lattices import algebra
from holdfast.lattices.gram_schmidt import gram_schmidt
from holdfast.samplers.coupling.conditional import ConditionalLaw
from holdfast.samplers.coupling.convex_correction import WINDOW, BasisCorrection, GridCorrection
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
        if max(self.rows, self.columns) * m.tau(n - 1) / m.unit >= 1 << 53:
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
        """For every cell: at or below C where every variance is tau_0; what it adds to Phi at every near atom, where the others are least
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
        return Fraction(int(base), int(self._laplacian(state).det() - base)) * self.mixture.unit

    def log_determinant(self, indices: list[int]) -> arb:
        """log det(A T A') for A without the last column's row, as a ball at flint's current precision."""
        size = self.rows + self.columns - 1
        return arb(self._laplacian(self._taus(indices)).det()).log() + size * ball(self.mixture.unit).log()

    @property
    def log_scale(self) -> tuple[int, int]:
        """(det(A A'), det(B'B)): equal, since A is totally unimodular [theory T171]."""
        return 1, 1

    def _taus(self, indices: list[int]) -> list[list[int]]:
        units = [int(self.mixture.tau(j) / self.mixture.unit) for j in indices]
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


@dataclass(frozen=True)
class GeneralForm:
    """The law of the variances for a matrix, as tables; see the module's text.

    Given:       independent rows; no column zero, and no cell that the rows pin (checked).
    """

    rows: tuple[tuple[int, ...], ...]
    mixture: Mixture

    def __post_init__(self) -> None:
        if len(algebra.independent_rows(self.rows)) < len(self.rows):
            raise InvalidParameter("The rows of a coupled block must be independent. Leave out rows that follow from the others.")

    @property
    def cells(self) -> int:
        return len(self.rows[0])

    @property
    def dimension(self) -> int:
        return self.cells - len(self.rows)

    # What is prepared once, from public facts.

    @property
    def atoms(self) -> int:
        """Atoms that compiled loops know."""
        return self.mixture.atoms

    @cached_property
    def columns(self) -> Doubles:
        """a_e as rows of an array: integers so small that doubles hold every sum of tau a a' (checked; [theory T174] needs it)."""
        largest = max(sum(entry * entry for entry in row) for row in self.rows)
        if largest * self.mixture.tau(self.atoms - 1) / self.mixture.unit >= 1 << 53:
            raise NoExactSampler("Coupling from the past takes rows of smaller integers than these.")
        return np.ascontiguousarray(np.array(self.rows, dtype=np.float64).T)

    @cached_property
    def tables(self) -> tuple[Doubles, Doubles]:
        """(tau, weights) of the atoms; copies, so that loops are compiled once for arrays that may be written to and others."""
        return self.mixture.taus.copy(), self.mixture.weights.copy()

    @cached_property
    def basis(self) -> fmpz_mat:
        reduced = algebra.to_numpy(algebra.reduced_basis(algebra.kernel_basis(self.rows)))
        return algebra.as_matrix(reduced[:, ::-1])

    @cached_property
    def basis_doubles(self) -> Doubles:
        return np.ascontiguousarray(algebra.to_numpy(self.basis).astype(np.float64))

    @cached_property
    def convex(self) -> BasisCorrection:
        reversed_basis = algebra.to_numpy(self.basis)[:, ::-1]  # Gram-Schmidt takes out what comes earlier; here, what is drawn later
        return BasisCorrection(gram_schmidt(np.ascontiguousarray(reversed_basis)), self.mixture)

    @cached_property
    def beyond(self) -> float:
        """At or above the weight of all atoms after the table."""
        with precision(BITS):
            return float_up(enclosure(self.mixture.weight_from(self.mixture.atoms)).upper)

    @property
    def slack(self) -> float:
        """Relative error of shares of sums over the table, twice over; see choose in the compiled loops."""
        return float((2 * self.mixture.atoms + SLACK_UNITS) * 2.0**-51)

    @cached_property
    def _gram_inverse(self) -> arb_mat:
        matrix = algebra.as_matrix(self.rows)
        with precision(BITS):
            return arb_mat(matrix * matrix.transpose()).inv()

    @cached_property
    def floor(self) -> float:
        """At most the least eigenvalue of every M: tau_0 over the trace of (A A')^-1."""
        with precision(BITS):
            return float_down(enclosure(ball(self.mixture.tau(0)) / self._gram_inverse.trace()).lower)

    @cached_property
    def least(self) -> Doubles:
        """At or below the conductance of the other cells where every variance is tau_0: tau_0 (1 / leverage - 1)."""
        found = np.empty(self.cells)
        with precision(BITS):
            for e in range(self.cells):
                column = arb_mat(len(self.rows), 1, [arb(row[e]) for row in self.rows])
                leverage = (column.transpose() * self._gram_inverse * column)[0, 0]
                if not (leverage > 0 and leverage < 1):
                    raise InvalidParameter("A coupled block has no cell that its rows leave out or pin. Take those out first.")
                found[e] = float_down(enclosure(ball(self.mixture.tau(0)) * (1 / leverage - 1)).lower)
        return found

    @cached_property
    def first(self) -> tuple[Doubles, Doubles]:
        """What each cell adds to Phi at every near atom, and the error of that: where the others are least, and where they are infinite."""
        from holdfast.samplers.coupling import _coupling_compiled as loops

        convex = self.convex
        found = np.empty((2, self.cells, convex.near)), np.empty((2, self.cells))
        loops.exponents_of_ends(convex.ends, convex.lists, convex.curve, *found)
        return found

    # The compiled side.

    def back(self, u: Doubles, known: Ints, slack: float) -> tuple[int, Ints, tuple[int, int]]:
        """Both chains from time -T on, T = len(u): (how it ended, the state of the lower chain, where it stopped)."""
        from holdfast.samplers.coupling import _coupling_compiled as loops

        k, d, columns, convex = len(self.rows), self.cells, self.columns, self.convex
        lower, upper, stop = np.zeros(d, np.int64), np.zeros(d, np.int64), np.zeros(2, np.int64)
        scalars = np.array([self.beyond, self.floor, self.slack + slack])
        public = columns, *self.tables, scalars, convex.lists, convex.curve
        squares = np.empty((k, k)), np.empty((k, k)), np.empty((k, k))
        lines = np.empty((2, k)), np.empty(self.dimension, np.int64), np.empty(convex.near), np.empty(self.mixture.atoms)
        ended = loops.run_back(u, known, public, (self.least, *self.first), lower, upper, stop, (*squares, *lines))
        return ended, lower, (int(stop[0]), int(stop[1]))

    # The exact side.

    def law(self, indices: list[int], cell: int) -> ConditionalLaw:
        """The conditional law of one cell given the others."""
        return ConditionalLaw(self.mixture, self.convex.exponents(indices, cell), self.conductance(indices, cell))

    def top_law(self, cell: int) -> ConditionalLaw:
        """A law above every conditional of the cell."""
        return ConditionalLaw(self.mixture, self.convex.flattest(cell), None)

    def conductance(self, indices: list[int], cell: int) -> Fraction:
        """C = det(M_-e) / (det(M_-e + a a') - det(M_-e)), M_-e the matrix without cell e: rational."""
        without = self._integral(indices, skipped=cell)
        column = fmpz_mat(len(self.rows), 1, [row[cell] for row in self.rows])
        base = without.det()
        return Fraction(int(base), int((without + column * column.transpose()).det() - base)) * self.mixture.unit

    def log_determinant(self, indices: list[int]) -> arb:
        """log det(A T A'), as a ball at flint's current precision."""
        return arb(self._integral(indices).det()).log() + len(self.rows) * ball(self.mixture.unit).log()

    def _integral(self, indices: list[int], skipped: int = -1) -> fmpz_mat:
        """M in units, without one cell."""
        taus = [0 if e == skipped else int(self.mixture.tau(j) / self.mixture.unit) for e, j in enumerate(indices)]
        scaled = [[entry * tau for entry, tau in zip(row, taus, strict=True)] for row in self.rows]
        return algebra.as_matrix(scaled) * algebra.as_matrix(self.rows).transpose()

    @cached_property
    def log_scale(self) -> tuple[int, int]:
        """(det(A A'), det(B'B)): prod s_i^2 is their ratio times prod tau / det(A T A')."""
        rows = algebra.as_matrix(self.rows)
        return int((rows * rows.transpose()).det()), int((self.basis.transpose() * self.basis).det())
