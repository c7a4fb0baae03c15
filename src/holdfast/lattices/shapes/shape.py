"""What every shape of block can say about itself."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import RequestTooLarge
from holdfast.lattices.norms import Norm
from holdfast.lattices.shortest import Shortest

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

MAX_DENSE = 4_000_000
"""Entries of a basis or Smith form above which it is refused: use the blocks instead."""
UNBOUNDED = int(np.iinfo(np.int64).max)
"""In the place of an upper bound where there is none."""


class Shape(ABC):
    """What blocks with the same kept rows have in common: the lattice of moves on the block's own cells.

    A value (every shape is a frozen dataclass): equal shapes compare equal, have equal hashes, and can be pickled. Cells are in the block's
    own order. What follows from the basis alone is said here; shapes with a closed form say it in their own way.
    """

    is_free: ClassVar[bool] = False
    """Whether no kept sum holds any of the cells: each moves by itself."""
    is_pinned: ClassVar[bool] = False
    """Whether the kept rows fix every cell, as the class says."""
    keeps_axis_sums: ClassVar[bool] = False
    """Whether the sums along each axis are what is kept, up to signs of the cells: one axis is one sum, two are rows and columns."""

    if TYPE_CHECKING:  # fields of some shapes, properties of others; a property inherited here would be taken as a field's default

        @property
        def name(self) -> str:
            """For people: cards and plans show it."""

        @property
        def size(self) -> int:
            """Number of cells."""

        @property
        def axes(self) -> tuple[int, ...]:
            """The lengths of the axes; (size,) where there is one."""

    @property
    @abstractmethod
    def rank(self) -> int:
        """Number of independent kept rows on this block."""

    @property
    @abstractmethod
    def fields(self) -> tuple[Any, ...]:
        """The shape as plain values (texts, integers, nested lists), the same for equal shapes and different for different ones.

        Part of the stream format: random streams are labelled with it, so changing it changes noise and needs a new stream version. It
        depends on no class name and no `repr`.
        """

    @property
    def dimension(self) -> int:
        """Number of free dimensions left: cells minus rank."""
        return self.size - self.rank

    @property
    def is_one_sum(self) -> bool:
        """Whether one sum is kept, with coefficients equal up to sign."""
        return self.keeps_axis_sums and len(self.axes) == 1

    @property
    def is_two_way(self) -> bool:
        """Whether this is a grid of two axes: a table whose rows and columns are kept."""
        return self.keeps_axis_sums and len(self.axes) == 2

    @property
    def is_network(self) -> bool:
        """Whether a cell lies under two kept sums at most: corners are whole, and cells can be rounded up or down with whole sums kept."""
        return self.is_one_sum or self.is_two_way or self.is_free or self.is_pinned

    @property
    def is_irreducible(self) -> bool:
        """Whether a covariance that exchanges along the axes leave as it is must be a multiple of the projection, by Schur's lemma."""
        return self.is_free or self.keeps_axis_sums

    @property
    def is_plain_sum(self) -> bool:
        """Whether one sum with equal coefficients is all that is kept: the cells can be exchanged."""
        return self.is_one_sum and self.matrix() is None

    @property
    def is_listed(self) -> bool:
        """Whether the kept rows are known; False for blocks too large to look into. Not for blocks made of others: ask those."""
        return True

    @property
    def cells_alike(self) -> bool:
        """Whether permutations of cells that map moves to moves take each cell to each other one."""
        return self.is_irreducible

    @property
    def dense_dimension(self) -> int:
        """Free dimensions of blocks of which only the rows are known, so that dense algebra has to deal with them; 0 for other blocks."""
        return 0

    def apply_signs(self, values: NDArray[Any]) -> NDArray[Any]:
        """Rows of values with the signs of the cells multiplied in, where kept sums have coefficients of -1."""
        return values

    def direct_sum(self) -> tuple[Shape, ...]:
        """The shapes of the blocks that this one is made of, side by side."""
        return (self,)

    def class_ends(self) -> Ints:
        """Where each class of cells with equal columns of kept sums ends, as far as the shape lists its cells by classes."""
        return np.arange(1, self.size + 1, dtype=np.int64)

    def put_last(self, cell: int) -> tuple[Shape, int]:
        """An equal lattice and the place of a cell in it: the last one, where cells can be exchanged so that most moves leave it alone."""
        return self, cell

    def matrix(self) -> Ints | None:
        """Independent integer rows over the block's cells; None where the class says it all, or the rows were too many to list."""
        return None

    @abstractmethod
    def basis(self) -> NDArray[Any]:
        """A Z-basis of the block's moves, as columns over its cells."""

    def reduced_basis(self) -> NDArray[Any]:
        """A basis for samplers and chains; NoExactSampler where there is none of reasonable size."""
        return self.basis()

    def short_basis(self) -> NDArray[Any]:
        """A basis of short moves that is made without search."""
        return self.basis()

    @abstractmethod
    def shortest(self, norm: Norm) -> Shortest | None:
        """The shortest nonzero move, measured by the norm (in l2 the SQUARE of the length); None where there is no move."""

    @abstractmethod
    def log_gram_determinant(self) -> float:
        """ln det(B^T B) for any basis B: twice the logarithm of the volume of a fundamental cell."""

    def kept_rows(self) -> Ints:
        """The kept sums as rows over the cells, which may depend on each other; RequestTooLarge where they are not listed."""
        rows = self.matrix()
        if rows is None:
            raise RequestTooLarge(f"The kept rows of a block of {self.size} cells are not listed: it is too large.")
        return rows

    def longest_move(self) -> int | None:
        """The l1 length of the longest elementary move: any two tables with the same totals, both within bounds of the cells, are joined by
        elementary moves that stay within these bounds and whose lengths add up to the distance. None where it is not known. [theory T71]
        """
        return 1 if self.is_free else None

    @cached_property
    def _frame(self) -> tuple[Floats, Floats]:
        """(an orthonormal basis of the real span of the moves, the Gram-Schmidt vectors of the basis)."""
        frame, upper = np.linalg.qr(self.basis().astype(np.float64))
        return frame, frame * np.abs(np.diag(upper))

    def project(self, values: Floats) -> Floats:
        """Each row of values projected on the real span of the moves, in floating point."""
        return np.asarray(values @ self._frame[0] @ self._frame[0].T)

    def projection_diagonal(self) -> Floats:
        """The diagonal of the projection: the share of a cell's own variance that it leaves."""
        return np.asarray((self._frame[0] ** 2).sum(axis=1))

    def are_fixed(self, values: Ints) -> NDArray[np.bool_]:
        """For each row of whole coefficients, below 2^31 in size, whether every move leaves its sum as it is."""
        moves = self.basis().astype(object)
        return np.array([not any(row @ moves) for row in values.astype(object)], dtype=np.bool_)

    def gram_schmidt_products(self, values: Floats) -> Floats:
        """Each row's inner products with the Gram-Schmidt vectors b*_i of the moves, in floating point. Rounding by nearest plane adds to
        the variance of a row's sum at most a quarter of their squares.
        """
        return np.asarray(values @ self._frame[1])

    def rounding_diagonal(self) -> Floats:
        """The diagonal of sum b*_i b*_i^T: four times what nearest-plane rounding adds at most."""
        return np.asarray((self._frame[1] ** 2).sum(axis=1))

    def rounding_square(self) -> float:
        """A bound of the square of how far rounding the projection to the moves can take it."""
        return float(self.rounding_diagonal().sum())

    def bounds_given(self, values: Ints, least: int) -> tuple[Ints, Ints] | None:
        """(lower, upper) bounds of every cell, from what the kept rows say together; None where the shape has no sharp ones.

        Given:       `values`: one block a row, any integer tables with the published totals; every count is known to be `least` or more.
        Guarantees:  sharp, and the same for all such tables: only the kept sums of `values` enter.
        """
        return None

    def fixed_cells(self) -> Ints:
        """Cells of the block that no move changes; where a block can have some, it can say which."""
        return np.zeros(0, dtype=np.int64)

    @abstractmethod
    def one_can_move(self) -> bool | None:
        """Whether e_i - e_j is a move for some two cells of a block, that is, whether their columns of kept sums are equal.

        None where the rows are not listed: ask the lattice (`Lattice.one_can_move`), which has them.
        """


@dataclass(frozen=True)
class OneAxis(Shape):
    """Shapes whose cells lie on one axis, told by their number."""

    size: int

    @property
    def axes(self) -> tuple[int, ...]:
        return (self.size,)

    @property
    def fields(self) -> tuple[Any, ...]:
        return self.name, self.size

    def log_gram_determinant(self) -> float:
        """0: there is no move, or single cells are moves."""
        return 0.0
