"""A block of any shape with bounds of its cells and inequalities among them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import InvalidParameter
from holdfast.lattices.norms import Norm
from holdfast.lattices.shapes.shape import UNBOUNDED, Ints, Shape
from holdfast.lattices.shortest import Shortest

Bound: TypeAlias = int | None
"""None: there is no bound."""


@dataclass(frozen=True)
class Bounded(Shape):
    """The tables y of a block with lower <= y <= upper in every cell and rows y >= least.

    Given:       bounds of all cells alike as one number, else one for each cell in the block's order; None where there is none. Integer
                 rows over the block's cells. Both are public: they are part of the shape, and so of the stream's label.
    The lattice is that of `shape`: basis, rank and determinant are its own. Its shortest move is a lower bound: bounds may forbid it.
    """

    shape: Shape
    lower: Bound | tuple[Bound, ...]
    upper: Bound | tuple[Bound, ...]
    rows: tuple[tuple[int, ...], ...] = ()
    least: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        size = self.shape.size
        wrong = any(isinstance(bound, tuple) and len(bound) != size for bound in (self.lower, self.upper))
        if wrong or len(self.rows) != len(self.least) or any(len(row) != size for row in self.rows):
            raise InvalidParameter(f"A bounded block of {size} cells has one bound, or one for each cell, and rows of {size} coefficients.")
        for name in ("lower", "upper"):  # one value for one meaning
            bound = getattr(self, name)
            if isinstance(bound, tuple) and len(set(bound)) == 1:
                object.__setattr__(self, name, bound[0])

    @classmethod
    def of(cls, shape: Shape) -> Bounded:
        """A shape as it is if it has bounds already, else without any."""
        return shape if isinstance(shape, Bounded) else cls(shape, None, None)

    @property
    def name(self) -> str:
        return f"{self.shape.name} with bounds"

    @property
    def size(self) -> int:
        return self.shape.size

    @property
    def axes(self) -> tuple[int, ...]:
        return self.shape.axes

    @property
    def rank(self) -> int:
        return self.shape.rank

    @property
    def has_bounds(self) -> bool:
        """Whether there is any inequality at all."""
        return bool(self.rows) or self.lower is not None or self.upper is not None

    @property
    def fields(self) -> tuple[Any, ...]:
        bounds = [list(bound) if isinstance(bound, tuple) else bound for bound in (self.lower, self.upper)]
        return "bounded", list(self.shape.fields), *bounds, [list(row) for row in self.rows], list(self.least)

    def lower_cells(self) -> Ints:
        """The lower bound of every cell; -UNBOUNDED where there is none."""
        return self._cells(self.lower, -UNBOUNDED)

    def upper_cells(self) -> Ints:
        """The upper bound of every cell; UNBOUNDED where there is none."""
        return self._cells(self.upper, UNBOUNDED)

    def _cells(self, bound: Bound | tuple[Bound, ...], none: int) -> Ints:
        given = bound if isinstance(bound, tuple) else (bound,) * self.size
        return np.array([none if value is None else value for value in given], dtype=np.int64)

    def row_matrix(self) -> Ints:
        """The rows, one inequality each."""
        return np.array(self.rows, dtype=np.int64).reshape(len(self.rows), self.size)

    def holds(self, tables: Ints) -> NDArray[np.bool_]:
        """For each row of counts, one block, whether it lies within the bounds."""
        inside = (tables >= self.lower_cells()) & (tables <= self.upper_cells())
        rows = tables @ self.row_matrix().T >= np.array(self.least, dtype=np.int64)
        return np.asarray(inside.all(axis=1)) & np.asarray(rows.all(axis=1))

    def matrix(self) -> Ints | None:
        return self.shape.matrix()

    def kept_rows(self) -> Ints:
        return self.shape.kept_rows()

    def basis(self) -> NDArray[Any]:
        return self.shape.basis()

    def shortest(self, norm: Norm) -> Shortest | None:
        return self.shape.shortest(norm)

    def log_gram_determinant(self) -> float:
        return self.shape.log_gram_determinant()

    def fixed_cells(self) -> Ints:
        return self.shape.fixed_cells()

    def one_can_move(self) -> bool | None:
        return self.shape.one_can_move()
