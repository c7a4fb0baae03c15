"""What is public of a real-valued answer in floating point: its invariants, and how far one person can move it.

`Query` has that for any answer. `Changes` has, for a linear query, what one neighbour can change in its free part: every vector at once,
without a list of pairs.

A        the query matrix, n x d: one column a_z for each kind z of record; P = Pi_N A, its part in the null space N of the invariants
change   P (e_z - e_y) for two kinds z, y where a neighbour replaces one record; P e_z or its negative where one is added or removed
span     the changes span a subspace of N of dimension m; `basis` (n x m) has orthonormal columns, and a change is basis @ v
weights  one number >= 0 per change, of sum 1: a symmetric d x d matrix (pairs, each half of its weight at both places) or d numbers

With pairs, the sum over z, y of W_zy (p_z - p_y)(p_z - p_y)^T is 2 P (diag(W 1) - W) P^T, and the quadratic forms of all pairs follow
from the d x d matrix P^T X P. So d^2 / 2 changes cost two products of matrices.

For examples and measurements there are prefix sums and ranges over an ordered set of n kinds, one row per answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Self

import numpy as np
from flint import fmpq_mat, fmpz_mat
from numpy.typing import NDArray

from holdfast.errors import InvalidParameter
from holdfast.exact.formatting import round_up
from holdfast.exact.parameters import Exact
from holdfast.lattices import algebra
from holdfast.research.subspace.guarantee import SubspaceGuarantee
from holdfast.research.subspace.spaces import DIGITS, UNIT, Floats, InvariantSpace, linear_sensitivities, to_floats
from holdfast.subspace.sensitivities import Neighbours, Sensitivities
from holdfast.subspace.spaces import read_matrix

RANK_TOLERANCE = 1e-10
"""Singular values below this share of the largest count as zero."""

MAX_ENTRIES = 1 << 28


@dataclass(frozen=True, eq=False)
class Query:
    """Public facts of one answer: n answers under invariants, how far one person moves them, and the matrix where the query is linear."""

    invariants: InvariantSpace
    sensitivities: Sensitivities
    matrix: fmpq_mat | None = None

    @classmethod
    def linear(cls, matrix: Any, invariants: InvariantSpace, neighbours: Neighbours = "replace-one") -> Query:
        """A linear query, its sensitivities computed."""
        exact = read_matrix(matrix, "query_matrix")
        return cls(invariants, linear_sensitivities(exact, invariants, neighbours), exact)

    @property
    def neighbours(self) -> Neighbours:
        return self.sensitivities.neighbours

    @cached_property
    def columns(self) -> Floats:
        """The matrix of a linear query in floats, n x d."""
        if self.matrix is None:
            raise InvalidParameter("This mechanism needs a linear query: give the query matrix and a histogram instead of the answers.")
        return to_floats(self.matrix)

    @property
    def changed_dimensions(self) -> int:
        """Dimension of the span of what one person can change in the free part of a linear query, exact: the rank of Pi_N times the moves.

        The rows of C and the moves together have a rank larger than that of C by just this.
        """
        assert self.matrix is not None
        moves = self.matrix.numer_denom()[0].transpose().tolist()
        if self.neighbours == "replace-one":
            first = moves.pop()
            moves = [[entry - other for entry, other in zip(move, first, strict=True)] for move in moves]
        rows = [*self.invariants.rows.tolist(), *moves]
        return algebra.rank(fmpz_mat(len(rows), self.invariants.cells, [entry for row in rows for entry in row])) - self.invariants.rank

    def neighbour_vectors(self) -> Floats:
        """Every move of one person in floats, as columns, up to sign: a_z, or a_z - a_z' for z < z'."""
        if self.neighbours == "add-remove":
            return self.columns
        first, second = np.triu_indices(self.columns.shape[1], 1)
        return np.asarray(self.columns[:, first] - self.columns[:, second])

    @property
    def l1(self) -> Fraction:
        return self._known_norm("l1", "the l1 sensitivity of the answers")

    @property
    def l2_squared(self) -> Fraction:
        return self._known_norm("l2_squared", "the squared l2 sensitivity of the answers")

    @property
    def projected_l2_squared(self) -> Fraction:
        """Squared l2 sensitivity of Q_N^T A. If it is not known, that of A: projecting moves no two answers apart."""
        known = self.sensitivities.projected_l2_squared
        return self.l2_squared if known is None else known

    @property
    def projected_l1(self) -> Fraction:
        """l1 sensitivity of Q_N^T A; if unknown, that of A times the largest l1 norm of a row of Q_N, which bounds |Q_N^T v|_1 / |v|_1."""
        known = self.sensitivities.projected_l1
        if known is not None:
            return known
        lengths = np.abs(self.invariants.basis).sum(axis=1) * (1 + self.invariants.free * UNIT)
        return round_up(self.l1 * Fraction(float(lengths.max())), DIGITS)

    def promise(self, epsilon: Exact, delta: Exact = 0, *, declared: bool = False) -> SubspaceGuarantee:
        """The guarantee of Definition 2.6 for this query, of a computation in floating point. Without a matrix the sensitivity is what
        somebody declares, and so is the promise.
        """
        return SubspaceGuarantee.induced_by(
            self.invariants,
            epsilon,
            delta,
            neighbours=self.neighbours,
            basis="declared" if declared or self.matrix is None else "proved",
            status="floating point",
        )

    def _known_norm(self, name: str, meaning: str) -> Fraction:
        value: Fraction | None = getattr(self.sensitivities, name)
        if value is None:
            raise InvalidParameter(f"This mechanism needs {meaning}. Give sensitivity=holdfast.subspace.Sensitivities({name}=...).")
        return value


@dataclass(frozen=True, eq=False)
class Changes:
    """The changes of one query, in coordinates of their span: `columns` is m x d, of rank m; with pairs its rows have sum 0.

    Guarantees:  none beyond floating point.
    """

    columns: Floats
    neighbours: Neighbours
    basis: Floats

    @classmethod
    def of_matrix(cls, free: Floats, neighbours: Neighbours) -> Self:
        """From the columns of P = Pi_N A; columns of zeros change nothing where records are added or removed."""
        if neighbours == "add-remove":
            free = free[:, free.any(axis=0)]
        moved = free - free.mean(axis=1, keepdims=True) if neighbours == "replace-one" else free
        left, sizes, right = np.linalg.svd(moved, full_matrices=False)
        rank = int((sizes > RANK_TOLERANCE * sizes[0]).sum()) if sizes.size and sizes[0] > 0 else 0
        if rank == 0:
            raise InvalidParameter(
                "No record changes the free part of the answer: everything that depends on the data is kept exactly. "
                "Keep fewer totals, or ask another query."
            )
        return cls(sizes[:rank, None] * right[:rank], neighbours, left[:, :rank])

    @classmethod
    def of(cls, query: Query) -> Self:
        """Return the changes of a linear query, kinds of equal columns taken as one; other queries have no list of changes.

        Guarantees:  the span has all dimensions in which neighbours differ. Where floats lose one, noise would leave it out: refused.
        """
        found = cls.of_matrix(query.invariants.project(np.unique(query.columns, axis=1).T).T, query.neighbours)
        exact = query.changed_dimensions
        if found.dimension != exact:
            raise InvalidParameter(
                f"One person changes the answers in {exact} dimensions, of which floating point sees {found.dimension}: some answers are "
                "too small beside others. Give the answers in units in which one person changes every answer by about the same amount."
            )
        return found

    @property
    def pairs(self) -> bool:
        return self.neighbours == "replace-one"

    @property
    def dimension(self) -> int:
        return int(self.columns.shape[0])

    @cached_property
    def uniform(self) -> Floats:
        """Equal weights."""
        d = self.columns.shape[1]
        return (1 - np.eye(d)) / (d * (d - 1)) if self.pairs else np.full(d, 1 / d)

    def moment(self, weights: Floats) -> Floats:
        """M(w) = sum of w v v^T over all changes v."""
        if not self.pairs:
            return np.asarray((self.columns * weights) @ self.columns.T)
        sums = weights.sum(axis=1)
        return np.asarray(2 * (self.columns * sums) @ self.columns.T - 2 * self.columns @ weights @ self.columns.T)

    def squares(self, form: Floats) -> Floats:
        """v^T X v for every change v and a symmetric X, in the places of the weights."""
        if not self.pairs:
            return np.asarray(np.einsum("iz,ij,jz->z", self.columns, form, self.columns, optimize=True))
        gram = self.columns.T @ form @ self.columns
        sizes = np.diag(gram)
        return np.asarray(np.maximum(sizes[:, None] + sizes[None, :] - 2 * gram, 0.0))

    def largest_square(self, form: Floats) -> float:
        """The largest v^T X v over all changes."""
        return float(self.squares(form).max())

    def project(self, directions: Floats) -> Changes:
        """The changes of the answers directions^T v; `directions` is m x k with orthonormal columns."""
        return Changes(directions.T @ self.columns, self.neighbours, self.basis @ directions)

    def vectors(self) -> Floats:
        """All changes as columns, m x p, each up to its sign."""
        if not self.pairs:
            return self.columns
        z, y = np.triu_indices(self.columns.shape[1], 1)
        return np.asarray(self.columns[:, z] - self.columns[:, y])


def prefix_sums(n: int) -> NDArray[np.int64]:
    """n x n: answer i counts the records of kinds 0 to i; the last one is the total."""
    _check(n, n)
    return np.tril(np.ones((n, n), dtype=np.int64))


def ranges(n: int) -> NDArray[np.int64]:
    """n (n + 1) / 2 rows: the records of kinds a to b, for all a <= b, by length; the last one is the total."""
    _check(n, n * (n + 1) // 2)
    kinds = np.arange(n)
    starts = [(a, a + length) for length in range(1, n + 1) for a in range(n - length + 1)]
    return np.array([(kinds >= a) & (kinds < b) for a, b in starts], dtype=np.int64)


def ranges_gram(n: int) -> NDArray[np.int64]:
    """ranges(n)^T ranges(n), n x n: how many ranges hold both kinds."""
    _check(n, n)
    kinds = np.arange(n, dtype=np.int64)
    return np.asarray((np.minimum.outer(kinds, kinds) + 1) * (n - np.maximum.outer(kinds, kinds)))


def _check(n: int, rows: int) -> None:
    if not isinstance(n, int) or n < 1 or n * rows > MAX_ENTRIES:
        raise InvalidParameter(f"A workload has from 1 kind up to {MAX_ENTRIES:,} entries in its matrix. Got n = {n}.")
