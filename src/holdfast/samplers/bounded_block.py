"""What is public of a block with bounds: kept sums, bounds of cells, inequalities; and what a table leaves of them.

Legend: x is the confidential table of the block's d cells, z = y - x what publication adds. A z = 0 for the kept sums A; lower - x <= z <=
upper - x; B z >= floors - B x for the inequalities B y >= floors. The table itself keeps all bounds, so z = 0 is always a point.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from holdfast.lattices import algebra
from holdfast.lattices.shapes import Bounded
from holdfast.lattices.shapes.shape import UNBOUNDED
from holdfast.samplers.protocol import Ints

Bound: TypeAlias = int | None

FAR = UNBOUNDED


class Room(NamedTuple):
    """What tables leave, a row each: least and greatest change of every cell (-FAR, FAR for none), least change of every inequality.
    CONFIDENTIAL.
    """

    least: Ints
    most: Ints
    slack: Ints


@dataclass(frozen=True)
class BoundedBlock:
    """Kept sums and bounds of one block, as plain integers: a value.

    Given:  equalities and inequalities as rows over the cells; one lower and one upper bound for each cell, None for none; one floor for
            each inequality.
    """

    equalities: tuple[tuple[int, ...], ...]
    lower: tuple[Bound, ...]
    upper: tuple[Bound, ...]
    inequalities: tuple[tuple[int, ...], ...] = ()
    floors: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        rows = (*self.equalities, *self.inequalities)
        assert all(len(entries) == len(self.lower) for entries in (self.upper, *rows)), "one entry for each cell"
        assert len(self.floors) == len(self.inequalities), "one floor for each inequality"

    @classmethod
    def plain(cls, equalities: Any, lower: Bound | Sequence[Bound] = 0, upper: Bound | Sequence[Bound] = None) -> BoundedBlock:
        """From a matrix of kept sums, and bounds that are one number for all cells or one for each."""
        rows = np.asarray(equalities)
        spread = [tuple(bound) if isinstance(bound, Sequence) else (bound,) * rows.shape[1] for bound in (lower, upper)]
        return cls(tuple(tuple(int(v) for v in row) for row in rows), spread[0], spread[1])

    @classmethod
    def of(cls, shape: Bounded) -> BoundedBlock:
        """Return the bounded block of any shape: its kept sums are those that all its moves leave unchanged."""
        moves = algebra.as_matrix(shape.basis()).transpose()
        kept = algebra.to_numpy(algebra.reduced_basis(algebra.kernel_basis(moves))).T
        lower, upper = (tuple(b) if isinstance(b, tuple) else (b,) * shape.size for b in (shape.lower, shape.upper))
        return cls(tuple(tuple(int(v) for v in row) for row in kept), lower, upper, shape.rows, shape.least)

    @property
    def cells(self) -> int:
        return len(self.lower)

    @cached_property
    def kept_matrix(self) -> Ints:
        """The kept sums as a matrix."""
        return np.array(self.equalities, dtype=np.int64).reshape(len(self.equalities), self.cells)

    @cached_property
    def cuts(self) -> Ints:
        """The inequalities as a matrix."""
        return np.array(self.inequalities, dtype=np.int64).reshape(len(self.inequalities), self.cells)

    def basis(self) -> NDArray[Any]:
        """A reduced basis of the moves, as columns."""
        if not self.equalities:
            return np.eye(self.cells, dtype=np.int64)
        return algebra.to_numpy(algebra.reduced_basis(algebra.kernel_basis(self.kept_matrix)))

    def room(self, counts: Ints) -> Room:
        """What these tables leave, one table a row."""
        least = np.stack([np.full(len(counts), -FAR) if b is None else b - counts[:, i] for i, b in enumerate(self.lower)], axis=1)
        most = np.stack([np.full(len(counts), FAR) if b is None else b - counts[:, i] for i, b in enumerate(self.upper)], axis=1)
        slack = np.array(self.floors, dtype=np.int64) - counts @ self.cuts.T
        assert all((part <= 0).all() for part in (least, -most, slack)), "a table lies outside the bounds: to be refused before"
        return Room(least, most, slack)
