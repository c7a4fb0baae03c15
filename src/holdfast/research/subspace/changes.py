"""What one neighbour can change in the free part of a linear query: every vector at once, without a list of pairs.

A        the query matrix, n x d: one column a_z for each kind z of record; P = Pi_N A, its part in the null space N of the invariants
change   P (e_z - e_y) for two kinds z, y where a neighbour replaces one record; P e_z or its negative where one is added or removed
span     the changes span a subspace of N of dimension m; `basis` (n x m) has orthonormal columns, and a change is basis @ v
weights  one number >= 0 per change, of sum 1: a symmetric d x d matrix (pairs, each half of its weight at both places) or d numbers

With pairs, the sum over z, y of W_zy (p_z - p_y)(p_z - p_y)^T is 2 P (diag(W 1) - W) P^T, and the quadratic forms of all pairs follow
from the d x d matrix P^T X P. So d^2 / 2 changes cost two products of matrices.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from holdfast.errors import InvalidParameter
from holdfast.research.subspace.query import Query
from holdfast.subspace.sensitivities import Neighbours
from holdfast.subspace.spaces import Floats

RANK_TOLERANCE = 1e-10
"""Singular values below this share of the largest count as zero."""


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

    def projected(self, directions: Floats) -> Changes:
        """The changes of the answers directions^T v; `directions` is m x k with orthonormal columns."""
        return Changes(directions.T @ self.columns, self.neighbours, self.basis @ directions)

    def vectors(self) -> Floats:
        """All changes as columns, m x p, each up to its sign."""
        if not self.pairs:
            return self.columns
        z, y = np.triu_indices(self.columns.shape[1], 1)
        return np.asarray(self.columns[:, z] - self.columns[:, y])
