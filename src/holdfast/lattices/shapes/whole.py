"""All blocks of a lattice side by side, for laws that do not factorise over them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import RequestTooLarge
from holdfast.lattices.norms import Norm
from holdfast.lattices.shapes.general import General
from holdfast.lattices.shapes.shape import MAX_DENSE, Shape
from holdfast.lattices.shortest import Shortest


@dataclass(frozen=True)
class Whole(Shape):
    """The direct sum of its parts: the cells of the first part, then those of the second, and so on. No block of a lattice has this shape;
    a channel whose law is no product over blocks draws the whole lattice in it.

    basis, rank, determinant: those of the parts side by side. shortest: the shortest of the parts', since a move that is nonzero on two
    parts is longer than its restriction to either.
    """

    name = "general"

    parts: tuple[Shape, ...]

    @property
    def size(self) -> int:
        return sum(part.size for part in self.parts)

    @property
    def axes(self) -> tuple[int, ...]:
        return (self.size,)

    @property
    def rank(self) -> int:
        return sum(part.rank for part in self.parts)

    @property
    def fields(self) -> tuple[Any, ...]:
        return ("whole", *(list(part.fields) for part in self.parts))

    def basis(self) -> NDArray[Any]:
        return self._side_by_side(lambda part: part.basis())

    def reduced_basis(self) -> NDArray[Any]:
        """The same lattice, with a reduced basis of every part that has one."""
        return self._side_by_side(lambda part: part.reduced_basis() if isinstance(part, General) else part.basis())

    def _side_by_side(self, basis: Callable[[Shape], NDArray[Any]]) -> NDArray[Any]:
        if self.size * self.dimension > MAX_DENSE:
            raise RequestTooLarge(f"A basis of {self.size} cells would have {self.size * self.dimension} entries, which is refused.")
        out = np.zeros((self.size, self.dimension), dtype=np.int64)
        row = column = 0
        for part in self.parts:
            out[row : row + part.size, column : column + part.dimension] = basis(part)
            row, column = row + part.size, column + part.dimension
        return out

    def shortest(self, norm: Norm) -> Shortest | None:
        found = [shortest for part in self.parts if (shortest := part.shortest(norm)) is not None]
        return min(found, key=lambda shortest: (shortest.value, shortest.status != "exact"), default=None)

    def log_gram_determinant(self) -> float:
        return sum(part.log_gram_determinant() for part in self.parts)

    def one_can_move(self) -> bool | None:
        found = [part.one_can_move() for part in self.parts]
        return True if any(found) else None if None in found else False
