"""Coupling from the past for any integer matrix: dense algebra of the size of its rank.

Legend: A is k x d with independent rows a_e as columns; L = {z in Z^d : A z = 0}, a basis of ALL of L as columns of B, in the order in
which coordinates are drawn (an LLL-reduced one from its last vector to its first); T = diag(tau), M = A T A', Q = B' T^-1 B.
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
from holdfast.samplers.coupling.convex_correction import BasisCorrection
from holdfast.samplers.coupling.mixture import Mixture

Ints = NDArray[np.int64]
Doubles = NDArray[np.float64]

BITS = 128
SLACK_UNITS = 128


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
        if largest * self.mixture.tau(self.atoms - 1) / self._unit >= 1 << 53:
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
        return Fraction(int(base), int((without + column * column.transpose()).det() - base)) * self._unit

    def log_determinant(self, indices: list[int]) -> arb:
        """log det(A T A'), as a ball at flint's current precision."""
        return arb(self._integral(indices).det()).log() + len(self.rows) * ball(self._unit).log()

    @cached_property
    def _unit(self) -> Fraction:
        """Every atom is a whole multiple of this."""
        mixture = self.mixture
        return min(Fraction(1, tau.denominator) for tau in (*mixture.head_taus, mixture.cut, mixture.step))

    def _integral(self, indices: list[int], skipped: int = -1) -> fmpz_mat:
        """M in units, without one cell."""
        taus = [0 if e == skipped else int(self.mixture.tau(j) / self._unit) for e, j in enumerate(indices)]
        scaled = [[entry * tau for entry, tau in zip(row, taus, strict=True)] for row in self.rows]
        return algebra.as_matrix(scaled) * algebra.as_matrix(self.rows).transpose()

    def correction(self, indices: list[int]) -> arb:
        """Phi, as a ball at flint's current precision."""
        return ball(self.convex.value(indices))

    def correction_in_doubles(self, indices: Ints) -> tuple[float, float]:
        """(Phi, its error), for atoms in the table."""
        return self.convex.in_doubles(indices)

    @cached_property
    def log_scale(self) -> tuple[int, int]:
        """(det(A A'), det(B'B)): prod s_i^2 is their ratio times prod tau / det(A T A')."""
        rows = algebra.as_matrix(self.rows)
        return int((rows * rows.transpose()).det()), int((self.basis.transpose() * self.basis).det())
