"""Blocks: the pieces into which the lattice of moves splits, each with the shape that says how it is sampled (lattices/shapes).

Blocks of equal shape share one value. Nested sums come out as one-sum blocks: each set minus its children.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from holdfast.lattices.levels import Misfit
from holdfast.lattices.shapes import Shape

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Block:
    """One block: its shape and its cells, as an array with the shape's axes."""

    shape: Shape
    cells: Ints


@dataclass(frozen=True, eq=False)
class Blocks(Sequence[Block]):
    """All blocks of a lattice, stored as arrays: a block is made when asked for."""

    order: NDArray[np.signedinteger]
    """Cells, block after block; kept in four bytes each if that is enough."""
    starts: Ints
    """Where each block begins in `order`, and the end."""
    shape_of: NDArray[np.int32]
    """The number of each block's shape in `shapes`."""
    shapes: tuple[Shape, ...]
    finest: bool
    """Whether all that the kept rows fix is known; False where a block was too large to look into."""
    misfits: tuple[Misfit, ...] = ()
    """What kept general blocks from being products of hierarchies, where that was looked for."""

    def __post_init__(self) -> None:
        if len(self.order) < 2**31:
            object.__setattr__(self, "order", self.order.astype(np.int32, copy=False))

    def __len__(self) -> int:
        return len(self.shape_of)

    def __getitem__(self, index):  # type: ignore[no-untyped-def]
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        if not -len(self) <= index < len(self):
            raise IndexError(index)
        index %= len(self)
        shape = self.shapes[self.shape_of[index]]
        return Block(shape, self.order[self.starts[index] : self.starts[index + 1]].reshape(shape.axes))

    def __iter__(self) -> Iterator[Block]:
        return (self[i] for i in range(len(self)))

    @cached_property
    def counts(self) -> tuple[int, ...]:
        """How many blocks of each shape there are."""
        return tuple(np.bincount(self.shape_of, minlength=len(self.shapes)).tolist())

    def used_shapes(self) -> Iterator[tuple[int, Shape, int]]:
        """(number, shape, how many blocks) of every shape that has blocks."""
        return ((number, shape, count) for number, (shape, count) in enumerate(zip(self.shapes, self.counts, strict=True)) if count)

    def moving_shapes(self) -> Iterator[tuple[int, Shape, int]]:
        """The same of every shape with blocks that move."""
        return (found for found in self.used_shapes() if not found[1].is_pinned)

    def cells_of(self, number: int) -> Ints:
        """The cells of all blocks of one shape, one block a row, in the order of the blocks."""
        first = self.starts[:-1][self.shape_of == number]
        if len(first) == 1:  # as they lie: a block of millions of cells is not copied
            return self.order[None, first[0] : first[0] + self.shapes[number].size]
        cells: Ints = self.order[first[:, None] + np.arange(self.shapes[number].size)]
        return cells

    def block_of(self) -> Ints:
        """The number of the block of each cell."""
        out = np.empty(len(self.order), dtype=np.int64)
        out[self.order] = np.repeat(np.arange(len(self)), np.diff(self.starts))
        return out

    def kinds(self) -> dict[str, int]:
        """How many blocks there are of shapes of each name."""
        out: dict[str, int] = {}
        for _, shape, count in self.used_shapes():
            out[shape.name] = out.get(shape.name, 0) + count
        return out

    @property
    def rank(self) -> int:
        """Number of independent kept rows."""
        return sum(shape.rank * count for _, shape, count in self.used_shapes())
