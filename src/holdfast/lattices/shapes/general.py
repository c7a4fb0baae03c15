"""Any other kept rows on a block."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import log
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import InvalidParameter, NoExactSampler, RequestTooLarge
from holdfast.lattices import algebra
from holdfast.lattices.norms import Norm
from holdfast.lattices.shapes.shape import Ints, Shape
from holdfast.lattices.shortest import Shortest, shortest_vector

MAX_DENSE_DIMENSION = 150
"""Free dimensions beyond which a general block's basis is not reduced for samplers: its exact Gram-Schmidt form would be too large."""


@dataclass(frozen=True)
class General(Shape):
    """Independent integer rows over classes of cells with equal columns, the cells class after class; no cell of it is free.

    basis:      all integer solutions of the rows (algebra.kernel_basis), reduced.
    shortest:   two cells with equal columns: one up, one down, and no unit vector is a move. Else by search in the reduced basis
                (lattices/shortest.py), exact or a proven lower bound.
    not listed: of a block too large to look into the rows are None, `class_sizes` has one entry for all cells, and the rank is given.
                Then no basis is made, and 2 is a lower bound for a shortest move: no unit vector is one.
    """

    name = "general"

    rows: tuple[tuple[int, ...], ...] | None
    class_sizes: tuple[int, ...]
    general_rank: int | None = None
    """Rank of a block whose rows are not listed."""

    def __post_init__(self) -> None:
        if self.rows is not None and any(len(row) != len(self.class_sizes) for row in self.rows):
            raise InvalidParameter(
                f"Every row of a general block has one coefficient for each of its {len(self.class_sizes)} classes of cells."
            )

    @classmethod
    def unlisted(cls, size: int, rank: int) -> General:
        """A block too large to list its rows."""
        return cls(None, (size,), rank)

    @property
    def size(self) -> int:
        return sum(self.class_sizes)

    @property
    def axes(self) -> tuple[int, ...]:
        return (self.size,)

    @property
    def rank(self) -> int:
        return len(self.rows) if self.rows is not None else int(self.general_rank or 0)

    @property
    def fields(self) -> tuple[Any, ...]:
        if self.rows is None:
            return self.name, self.size, self.rank
        return self.name, [list(row) for row in self.rows], list(self.class_sizes)

    def matrix(self) -> Ints | None:
        return None if self.rows is None else np.repeat(np.array(self.rows, dtype=np.int64), self.class_sizes, axis=1)

    def listed_matrix(self) -> Ints:
        """As `matrix`; NoExactSampler where the rows are not listed."""
        rows = self.matrix()
        if rows is None:
            raise NoExactSampler(self._no_exact_sampler())
        return rows

    def basis(self) -> NDArray[Any]:
        rows = self.matrix()
        if rows is None:
            raise RequestTooLarge("A basis of this general block was not computed: it is too large.")
        return algebra.to_numpy(algebra.reduced_basis(algebra.kernel_basis(rows)))

    def reduced_basis(self) -> NDArray[Any]:
        """The basis for samplers, up to MAX_DENSE_DIMENSION; NoExactSampler beyond. Shared by all who ask: not to be written to."""
        return _reduced_basis(self)

    def shortest(self, norm: Norm) -> Shortest | None:
        if self.dimension == 0:
            return None
        if self.rows is None:
            return Shortest(norm.name, 2, None, "lower bound")
        return Shortest(norm.name, 2, None, "exact") if self.one_can_move() else shortest_vector(self.basis(), norm)

    def log_gram_determinant(self) -> float:
        rows = self.matrix()
        if rows is None:
            raise RequestTooLarge("The determinant of this general block was not computed: it is too large.")
        return log(algebra.determinant_squared(algebra.kernel_basis(rows)))

    def one_can_move(self) -> bool | None:
        """Two cells of one class, or of two classes whose columns are equal after all."""
        if self.rows is None:
            return None
        return max(self.class_sizes) > 1 or len(set(zip(*self.rows, strict=True))) < len(self.class_sizes)

    def _no_exact_sampler(self) -> str:
        return (
            f"The kept totals link {self.size} cells in a way that has no exact sampler for this size ({self.dimension} free "
            f"dimensions; up to {MAX_DENSE_DIMENSION} are drawn). Keep fewer totals, nested ones, or all sums along the axes of a product."
        )


@lru_cache(maxsize=256)
def _reduced_basis(shape: General) -> NDArray[Any]:
    if shape.rows is None or shape.dimension > MAX_DENSE_DIMENSION:
        raise NoExactSampler(shape._no_exact_sampler())
    basis = shape.basis()
    basis.flags.writeable = False
    return basis
