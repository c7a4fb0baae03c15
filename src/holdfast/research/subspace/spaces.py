"""Linear subspaces, and the space that invariants leave, with a basis in floats: for mechanisms in floating point.

Legend: as in holdfast/subspace/spaces.py; R is the span of the rows; Pi_N projects on N, orthogonally. Q_N is n x (n - n_c), its columns an
orthonormal basis of N.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from flint import fmpq, fmpq_mat
from numpy.typing import NDArray

from holdfast.errors import InvalidParameter, NothingLeft
from holdfast.exact.formatting import round_up
from holdfast.exact.parameters import exact_fraction
from holdfast.lattices import algebra
from holdfast.subspace.sensitivities import ALIKE, Neighbours, Sensitivities, farthest, largest_gram, moves, read_linear, sums
from holdfast.subspace.spaces import Invariants, read_matrix

Floats: TypeAlias = NDArray[np.float64]

BASIS_NAME = "Gram-Schmidt of the echelon basis of the null space, in the order of the answers"
"""How Q_N is chosen. The l1 sensitivity of Q_N^T A depends on it, so it is recorded with every answer."""
DIGITS = 12
"""Significant digits of an l1 sensitivity in the basis Q_N, which is irrational; rounded up."""
UNIT = 2.0**-52
"""The distance of 1 to the next float."""


def to_floats(matrix: fmpq_mat) -> Floats:
    """The nearest floats."""
    entries = [int(entry.p) / int(entry.q) for entry in matrix.entries()]
    return np.array(entries, dtype=np.float64).reshape(matrix.nrows(), matrix.ncols())


@dataclass(frozen=True, eq=False, repr=False)
class Subspace:
    """V = {v in R^n : H v = 0}, by the reduced echelon form of H: equal subspaces have equal rows.

    Given:       `normals`: rational rows that span the orthogonal complement of V; dependent rows disappear.
    """

    cells: int
    normals: fmpq_mat

    def __post_init__(self) -> None:
        echelon, rank = self.normals.rref() if self.normals.nrows() else (self.normals, 0)
        object.__setattr__(self, "normals", fmpq_mat(rank, self.cells, echelon.entries()[: rank * self.cells]))

    @classmethod
    def whole(cls, cells: int) -> Subspace:
        """R^n itself."""
        return cls(cells, fmpq_mat(0, cells))

    @classmethod
    def span(cls, rows: Any, cells: int) -> Subspace:
        """The subspace that these rational rows span."""
        return Subspace(cells, cls(cells, read_matrix(rows, "rows", cells)).vectors)

    @property
    def dimension(self) -> int:
        return int(self.cells - self.normals.nrows())

    @cached_property
    def vectors(self) -> fmpq_mat:
        """Rows that span V: for each cell without a pivot the vector that has 1 there and 0 at the other cells without one."""
        table = self.normals.tolist()
        pivots = [next(i for i, entry in enumerate(row) if entry) for row in table]
        others = sorted(set(range(self.cells)) - set(pivots))
        out = fmpq_mat(len(others), self.cells)
        for place, cell in enumerate(others):
            out[place, cell] = 1
            for row, pivot in zip(table, pivots, strict=True):
                out[place, pivot] = -row[cell]
        return out

    @property
    def fixed_cells(self) -> tuple[int, ...]:
        """Cells whose value is 0 for every vector of V: the rows of the echelon form with one entry."""
        filled = [[i for i, entry in enumerate(row) if entry] for row in self.normals.tolist()]
        return tuple(places[0] for places in filled if len(places) == 1)

    def contains(self, other: Subspace) -> bool:
        """Whether `other` lies in this one."""
        return (self & other).dimension == other.dimension

    def __and__(self, other: Subspace) -> Subspace:
        """The intersection."""
        self._check_cells(other)
        return Subspace(self.cells, _stack_rows(self.normals, other.normals))

    def beside(self, other: Subspace) -> Subspace:
        """V x W in R^(n + n')."""
        cells = self.cells + other.cells
        rows = fmpq_mat(self.normals.nrows() + other.normals.nrows(), cells)
        for space, row0, column0 in ((self, 0, 0), (other, self.normals.nrows(), self.cells)):
            for i, row in enumerate(space.normals.tolist()):
                for j, entry in enumerate(row):
                    rows[row0 + i, column0 + j] = entry
        return Subspace(cells, rows)

    def complement(self) -> Subspace:
        """All vectors at a right angle to V."""
        return Subspace(self.cells, self.vectors)

    def pulled_back(self, matrix: fmpq_mat) -> Subspace:
        """{w : T^T w in V} for a k x n matrix T: the combinations of T y that look at the part of y in V only."""
        return Subspace(matrix.nrows(), self.normals * matrix.transpose())

    def project(self, vector: Sequence[Fraction]) -> tuple[Fraction, ...]:
        """Pi_V v, in rationals."""
        v = fmpq_mat(self.cells, 1, [fmpq(x.numerator, x.denominator) for x in vector])
        if self.normals.nrows():
            h = self.normals
            v = v - h.transpose() * (h * h.transpose()).solve(h * v)
        return tuple(Fraction(int(x.p), int(x.q)) for x in v.entries())

    def _check_cells(self, other: Subspace) -> None:
        if self.cells != other.cells:
            raise InvalidParameter(f"Subspaces of {self.cells} and of {other.cells} answers cannot be compared. Take the same answers.")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Subspace) and self.cells == other.cells and bool(self.normals == other.normals)

    def __hash__(self) -> int:
        return hash((self.cells, tuple(str(entry) for entry in self.normals.entries())))

    def __repr__(self) -> str:
        return f"Subspace({self.dimension} of {self.cells} dimensions)"


class InvariantSpace(Invariants):
    """Invariants with their null space N, its basis Q_N in floats, and the projection on it."""

    @cached_property
    def space(self) -> Subspace:
        """N, the null space."""
        return Subspace(self.cells, fmpq_mat(self.rows))

    @cached_property
    def basis(self) -> Floats:
        """Q_N in floating point, chosen as `basis_name` says."""
        return _orthonormal(to_floats(self.space.vectors).T)

    basis_name = BASIS_NAME

    @cached_property
    def _row_basis(self) -> Floats:
        return _orthonormal(algebra.to_numpy(self.rows).astype(np.float64).T)

    def project(self, vectors: Floats) -> Floats:
        """Pi_N applied along the last axis; no n x n matrix is made."""
        if self.free <= self.rank:
            return np.asarray((vectors @ self.basis) @ self.basis.T)
        return np.asarray(vectors - (vectors @ self._row_basis) @ self._row_basis.T)

    def differing_row(self, first: Sequence[Any], second: Sequence[Any]) -> tuple[int, ...] | None:
        """A kept row whose value is not the same for these two exact answers: c with c first != c second; None where all agree.

        Guarantees:  every mechanism that keeps C publishes {y : c y = c first} with probability 1 for the first answers and 0 for the
                     second: a ratio that no (epsilon, delta) with delta < 1 bounds ([GGY22] section 2.1). Definition 2.5 looks at N alone.
        """
        a, b = ([exact_fraction(value, "an answer") for value in answers] for answers in (first, second))
        if len(a) != self.cells or len(b) != self.cells:
            raise InvalidParameter(f"The invariants are over {self.cells} answers. Give two lists of so many exact numbers.")
        for row in self.rows.tolist():
            if sum(int(c) * (x - y) for c, x, y in zip(row, a, b, strict=True)):
                return tuple(int(c) for c in row)
        return None


def linear_sensitivities(matrix: Any, invariants: InvariantSpace, neighbours: Neighbours = "replace-one") -> Sensitivities:
    """All four sensitivities of the linear query A(x) = matrix times histogram, exact (projected_l1: rounded up).

    Given:       a rational n x d matrix, one column for each kind of person.
    """
    A = read_linear(matrix, invariants)
    gram = fmpq_mat(A.transpose() * A)
    l1, l2_squared = farthest(A, gram, range(A.ncols()), neighbours)
    if not l1:
        raise InvalidParameter(ALIKE)
    kept = fmpq_mat(invariants.rows) * A
    if invariants.rank:
        rows = invariants.rows
        gram = gram - kept.transpose() * fmpq_mat(rows * rows.transpose()).solve(kept)
    projected = largest_gram(gram, neighbours)
    if not projected:
        raise NothingLeft("The invariants publish all that one person can change: nothing is left to protect. Keep fewer rows.")
    in_basis = _largest_in_basis(to_floats(A), invariants, neighbours)
    return Sensitivities(l1, l2_squared, round_up(Fraction(in_basis), DIGITS), projected, neighbours)


def _largest_in_basis(columns: Floats, invariants: InvariantSpace, neighbours: Neighbours) -> float:
    """The largest l1 length of Q_N^T v over moves v, with the rounding errors of this computation added on.

    A sum of k products of floats in any order is off by at most k 2^-53 / (1 - k 2^-53) times the sum of their sizes; columns are rounded
    once, differences and sums of m terms again. Twice that is added.
    """
    in_basis = invariants.basis.T @ columns
    sizes = np.abs(invariants.basis).T @ np.abs(columns)
    bound = (invariants.cells + invariants.free + 8) * UNIT
    slack = (sizes * bound).sum(axis=0)
    worst = slack.max(initial=0.0) * (1 if neighbours == "add-remove" else 2)
    found = max((float(sums(moves).max()) for moves in moves(in_basis, neighbours) if moves.size), default=0.0)
    return math.nextafter(found * (1 + bound) + worst * (1 + bound), math.inf)


def _stack_rows(first: fmpq_mat, second: fmpq_mat) -> fmpq_mat:
    return fmpq_mat(first.nrows() + second.nrows(), first.ncols(), [*first.entries(), *second.entries()])


def _orthonormal(columns: Floats) -> Floats:
    """Gram-Schmidt of independent columns."""
    found, triangle = np.linalg.qr(columns)
    return np.asarray(found * np.sign(np.diagonal(triangle)))  # LAPACK chooses signs; Gram-Schmidt has none to choose
