"""Cells under a single kept sum, with coefficients equal up to sign."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from holdfast.errors import InvalidParameter
from holdfast.lattices.norms import Norm
from holdfast.lattices.shapes.grid import zero_sum_basis, zero_sum_log_determinant
from holdfast.lattices.shapes.shape import UNBOUNDED, Ints, OneAxis
from holdfast.lattices.shortest import Shortest


@dataclass(frozen=True)
class OneSum(OneAxis):
    """One kept row of +1 and -1 over two or more cells. Nested sums give such blocks: each set less the sets inside it.

    basis:      the differences e_i - e_(i+1): z with sum zero is the sum of (z_0 + ... + z_i) (e_i - e_(i+1)). Multiplying cell j by its
                sign s_j turns sums into sums with signs, is its own inverse and changes no length.
    shortest:   s_i e_i - s_j e_j. A single unit vector is no move, and two entries of at least 1 measure 2 in l1 and in squared l2.
    bounds:     a cell of a plain sum holds `least` up to the sum less `least` for each other cell; all counts of that sum attain it. Under
                both signs there is no upper bound: two cells of opposite sign can always grow together.
    """

    name = "one sum"

    signs: tuple[int, ...] | None = None
    """+1 or -1 for each cell, both of them used; None where all coefficients are equal."""

    def __post_init__(self) -> None:
        if self.size < 2:
            raise InvalidParameter(f"One sum needs two cells or more. Got {self.size}: the cell is its own sum, so it is pinned.")
        if self.signs is not None and (len(self.signs) != self.size or set(self.signs) != {1, -1}):
            raise InvalidParameter(f"Signs are +1 and -1, one for each of the {self.size} cells. Leave them out where all are equal.")

    @property
    def rank(self) -> int:
        return 1

    @property
    def fields(self) -> tuple[Any, ...]:
        return super().fields if self.signs is None else (*super().fields, list(self.signs))

    def matrix(self) -> Ints | None:
        return None if self.signs is None else np.array([self.signs], dtype=np.int64)

    def basis(self) -> Ints:
        plain = zero_sum_basis(self.axes)
        return plain if self.signs is None else np.array(self.signs, dtype=np.int64)[:, None] * plain

    def shortest(self, norm: Norm) -> Shortest:
        return Shortest(norm.name, 2, None, "exact")

    def log_gram_determinant(self) -> float:
        return zero_sum_log_determinant(self.axes)

    def bounds_given(self, values: Ints, least: int) -> tuple[Ints, Ints]:
        low = np.full_like(values, least)
        if self.signs is not None:
            return low, np.full_like(values, UNBOUNDED)
        most = values.sum(axis=1, keepdims=True) - (self.size - 1) * least
        return low, np.broadcast_to(most, values.shape)

    def one_can_move(self) -> bool:
        """Two cells of equal sign."""
        return self.signs is None or self.size > 2
