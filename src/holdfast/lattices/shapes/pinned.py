"""Cells whose value the kept rows fix."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from holdfast.lattices.norms import Norm
from holdfast.lattices.shapes.shape import Ints, OneAxis


@dataclass(frozen=True)
class Pinned(OneAxis):
    """As many independent kept rows as cells: zero is the only move, and the published totals tell every cell."""

    name = "pinned"

    @property
    def rank(self) -> int:
        return self.size

    def basis(self) -> Ints:
        return np.zeros((self.size, 0), dtype=np.int64)

    def shortest(self, norm: Norm) -> None:
        return None

    def log_gram_determinant(self) -> float:
        return 0.0

    def bounds_given(self, values: Ints, least: int) -> tuple[Ints, Ints]:
        return values, values

    def fixed_cells(self) -> Ints:
        return np.arange(self.size, dtype=np.int64)

    def one_can_move(self) -> bool:
        return False
