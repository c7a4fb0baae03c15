"""Cells under no kept sum."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from holdfast.lattices.norms import Norm
from holdfast.lattices.shapes.shape import UNBOUNDED, Ints, OneAxis
from holdfast.lattices.shortest import Shortest


@dataclass(frozen=True)
class Free(OneAxis):
    """All integer vectors are moves: the lattice is Z^size, with the unit vectors as its basis and as its shortest vectors."""

    name = "free"

    @property
    def rank(self) -> int:
        return 0

    def basis(self) -> Ints:
        return np.eye(self.size, dtype=np.int64)

    def shortest(self, norm: Norm) -> Shortest:
        return Shortest(norm.name, 1, None, "exact")

    def log_gram_determinant(self) -> float:
        return 0.0

    def bounds_given(self, values: Ints, least: int) -> tuple[Ints, Ints]:
        return np.full_like(values, least), np.full_like(values, UNBOUNDED)

    def one_can_move(self) -> bool:
        return self.size > 1
