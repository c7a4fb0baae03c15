"""Linear subspaces and linear invariants, exact: everything is decided on rational rows, floats are for drawing only.

Legend: C is n_c x n with independent rational rows; N = {v : C v = 0}; R is the span of the rows; Pi_N projects on N, orthogonally. Q_N
is n x (n - n_c), its columns an orthonormal basis of N.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from flint import fmpq, fmpq_mat, fmpz_mat
from numpy.typing import NDArray

from holdfast.errors import InvalidParameter, NothingLeft, RequestTooLarge
from holdfast.exact.parameters import exact_fraction
from holdfast.lattices import algebra

Floats: TypeAlias = NDArray[np.float64]

MAX_ENTRIES = 1_000_000
"""Entries of a dense exact matrix; more is refused."""
BASIS_NAME = "Gram-Schmidt of the echelon basis of the null space, in the order of the answers"
"""How Q_N is chosen. The l1 sensitivity of Q_N^T A depends on it, so it is recorded with every answer."""


def read_matrix(rows: Any, name: str, columns: int | None = None) -> fmpq_mat:
    """A rational matrix: lists of int, Fraction or text ("1/2"), or a NumPy array of integers. Floats are refused."""
    if isinstance(rows, fmpq_mat | fmpz_mat) and columns in (None, rows.ncols()):
        return fmpq_mat(rows)
    listed = rows.tolist() if isinstance(rows, np.ndarray) else rows
    if isinstance(listed, Sequence) and not isinstance(listed, str | bytes):
        listed = [row.tolist() if isinstance(row, np.ndarray) else row for row in listed]
    if not isinstance(listed, list) or not all(isinstance(row, Sequence) and not isinstance(row, str | bytes) for row in listed):
        raise InvalidParameter(f"{name} is a matrix of exact numbers: a list of rows, or an array. Got {type(rows).__name__}.")
    width = columns if columns is not None else len(listed[0]) if listed else 0
    wrong = next((number for number, row in enumerate(listed, 1) if len(row) != width or not width), None)
    if wrong is not None or not width:
        found = "There are none" if wrong is None else f"Row {wrong} has {len(listed[wrong - 1])}"
        wanted = f"{width} numbers each, one for each column" if width else "one number for each column"
        raise InvalidParameter(f"{name} needs rows of one length: {wanted}. {found}.")
    if len(listed) * width > MAX_ENTRIES:
        raise RequestTooLarge(
            f"{name} has {len(listed):,} rows of {width:,} numbers, more than {MAX_ENTRIES:,} in all: too many for exact algebra on a "
            "dense matrix. State kept margins as hf.margin(...), and answers with their sensitivity: neither needs a matrix."
        )
    if all(type(entry) is int for row in listed for entry in row):
        return fmpq_mat(fmpz_mat(len(listed), width, [entry for row in listed for entry in row]))
    entries = [exact_fraction(entry, f"an entry of {name[:1].lower()}{name[1:]}") for row in listed for entry in row]
    return fmpq_mat(len(listed), width, [fmpq(entry.numerator, entry.denominator) for entry in entries])


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


class Invariants:
    """C f(x) is published as it is: exact rational rows over n answers.

    Given:       rows of exact numbers; floats are refused. Rows that follow from earlier ones are dropped. `cells`: n, needed where there
                 are no rows.
    Guarantees:  something is left to protect: rows that fix every answer are refused.
    """

    def __init__(self, rows: Any, cells: int | None = None) -> None:
        given = read_matrix(rows, "invariants", cells)
        self.cells: int = int(given.ncols())
        scaled = [_whole(row) for row in given.tolist()]
        every = fmpz_mat(len(scaled), self.cells, [entry for row in scaled for entry in row])
        self.rows: fmpz_mat = algebra.take_rows(every, algebra.independent_rows(every)) if scaled else every
        """The independent rows, scaled to whole numbers without a common factor."""
        self.space = Subspace(self.cells, fmpq_mat(self.rows))
        """N, the null space."""
        if not self.free:
            raise NothingLeft(
                f"The invariants fix all {self.cells} answers: C has {self.rank} independent rows, and no null space is left for noise. "
                "Keep fewer rows."
            )

    @property
    def rank(self) -> int:
        """n_c."""
        return int(self.rows.nrows())

    @property
    def free(self) -> int:
        """n - n_c, the dimension of N."""
        return self.cells - self.rank

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

    def __repr__(self) -> str:
        return f"Invariants({self.rank} independent rows over {self.cells} answers; {self.free} free dimensions)"


def _stack_rows(first: fmpq_mat, second: fmpq_mat) -> fmpq_mat:
    return fmpq_mat(first.nrows() + second.nrows(), first.ncols(), [*first.entries(), *second.entries()])


def _whole(row: Sequence[fmpq]) -> list[int]:
    """The row scaled to whole numbers without a common factor."""
    bottom = math.lcm(*(int(entry.q) for entry in row))
    entries = [int(entry.p) * (bottom // int(entry.q)) for entry in row]
    common = math.gcd(*entries) or 1
    return [entry // common for entry in entries]


def _orthonormal(columns: Floats) -> Floats:
    """Gram-Schmidt of independent columns."""
    found, triangle = np.linalg.qr(columns)
    return np.asarray(found * np.sign(np.diagonal(triangle)))  # LAPACK chooses signs; Gram-Schmidt has none to choose
