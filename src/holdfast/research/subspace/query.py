"""What is public of a real-valued answer in floating point: its invariants, and how far one person can move it."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from flint import fmpq_mat, fmpz_mat

from holdfast.errors import InvalidParameter
from holdfast.exact.formatting import round_up
from holdfast.exact.parameters import Exact
from holdfast.lattices import algebra
from holdfast.research.subspace.guarantee import SubspaceGuarantee
from holdfast.subspace.sensitivities import DIGITS, UNIT, Neighbours, Sensitivities, linear_sensitivities
from holdfast.subspace.spaces import Floats, Invariants, read_matrix, to_floats


@dataclass(frozen=True, eq=False)
class Query:
    """Public facts of one answer: n answers under invariants, how far one person moves them, and the matrix where the query is linear."""

    invariants: Invariants
    sensitivities: Sensitivities
    matrix: fmpq_mat | None = None

    @classmethod
    def linear(cls, matrix: Any, invariants: Invariants, neighbours: Neighbours = "replace-one") -> Query:
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
        return self._known("l1", "the l1 sensitivity of the answers")

    @property
    def l2_squared(self) -> Fraction:
        return self._known("l2_squared", "the squared l2 sensitivity of the answers")

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

    def _known(self, name: str, meaning: str) -> Fraction:
        value: Fraction | None = getattr(self.sensitivities, name)
        if value is None:
            raise InvalidParameter(f"This mechanism needs {meaning}. Give sensitivity=holdfast.subspace.Sensitivities({name}=...).")
        return value
