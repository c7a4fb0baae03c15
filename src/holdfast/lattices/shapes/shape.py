"""What every shape of block can say about itself."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from holdfast.lattices.norms import Norm
from holdfast.lattices.shortest import Shortest

Ints = NDArray[np.int64]

MAX_DENSE = 4_000_000
"""Entries of a basis or Smith form above which it is refused: use the blocks instead."""
UNBOUNDED = int(np.iinfo(np.int64).max)
"""In the place of an upper bound where there is none."""


class Shape(ABC):
    """What blocks with the same kept rows have in common: the lattice of moves on the block's own cells.

    A value (every shape is a frozen dataclass): equal shapes compare equal, have equal hashes, and can be pickled. Cells are in the block's
    own order.
    """

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
    def is_two_way(self) -> bool:
        """Whether this is a grid of two axes: a table whose rows and columns are kept."""
        return False

    def matrix(self) -> Ints | None:
        """Independent integer rows over the block's cells; None where the class says it all, or the rows were too many to list."""
        return None

    @abstractmethod
    def basis(self) -> NDArray[Any]:
        """A Z-basis of the block's moves, as columns over its cells."""

    @abstractmethod
    def shortest(self, norm: Norm) -> Shortest | None:
        """The shortest nonzero move, measured by the norm (in l2 the SQUARE of the length); None where there is no move."""

    @abstractmethod
    def log_gram_determinant(self) -> float:
        """ln det(B^T B) for any basis B: twice the logarithm of the volume of a fundamental cell."""

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
