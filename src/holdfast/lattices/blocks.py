"""Blocks: the pieces into which the lattice of moves splits, each of a kind that has its own sampler.

    free      cells under no kept sum
    pinned    cells whose value the kept rows fix
    one sum   cells under a single row with coefficients equal up to sign
    grid      a product of axes with the sums over each axis kept (two axes: rows and columns of a table)
    general   anything else

Blocks of equal shape share one template. Nested sums come out as one-sum blocks: each set minus its children.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Kind: TypeAlias = Literal["free", "pinned", "one sum", "grid", "general"]


@dataclass(frozen=True)
class Template:
    """What blocks of one shape have in common."""

    kind: Kind
    shape: tuple[int, ...]
    """Free, pinned, general: (cells,). One sum: (cells,). Grid: the length of each axis, each at least 2."""
    rows: tuple[tuple[int, ...], ...] | None = None
    """General blocks and one sum with signs: independent integer rows over the classes of cells with equal columns; None where the shape
    says it all, or the block is too large to look into."""
    class_sizes: tuple[int, ...] | None = None
    """Cells in each class; the block's cells are listed class after class."""
    general_rank: int | None = None
    """Rank of a general block too large to list its rows."""

    @property
    def rank(self) -> int:
        """Independent kept rows on this block."""
        if self.kind == "free":
            return 0
        if self.kind == "pinned":
            return self.shape[0]
        if self.kind == "one sum":
            return 1
        if self.kind == "grid":
            return prod(self.shape) - prod(n - 1 for n in self.shape)
        return len(self.rows) if self.rows is not None else int(self.general_rank or 0)

    def matrix(self) -> NDArray[np.int64] | None:
        """The block's independent rows over its own cells, where they are listed."""
        if self.rows is None or self.class_sizes is None:
            return None
        return np.repeat(np.array(self.rows, dtype=np.int64), self.class_sizes, axis=1)

    @property
    def size(self) -> int:
        """Number of cells."""
        return prod(self.shape)

    @property
    def dimension(self) -> int:
        """Free dimensions left."""
        return self.size - self.rank


@dataclass(frozen=True, eq=False)
class Block:
    """One block: its template and its cells; for a grid the cells have the grid's shape."""

    template: Template
    cells: Ints

    @property
    def kind(self) -> Kind:
        return self.template.kind


@dataclass(frozen=True, eq=False)
class Blocks(Sequence[Block]):
    """All blocks of a lattice, stored as arrays: a block is made when asked for."""

    order: Ints
    """Cells, block after block."""
    starts: Ints
    """Where each block begins in `order`, and the end."""
    template_of: NDArray[np.int32]
    templates: tuple[Template, ...]
    finest: bool
    """Whether the split is proved to be the finest there is; False where a block was too large to look into."""

    def __len__(self) -> int:
        return len(self.template_of)

    def __getitem__(self, index):  # type: ignore[no-untyped-def]
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        if not -len(self) <= index < len(self):
            raise IndexError(index)
        index %= len(self)
        template = self.templates[self.template_of[index]]
        cells = self.order[self.starts[index] : self.starts[index + 1]]
        return Block(template, cells.reshape(template.shape) if template.kind == "grid" else cells)

    def __iter__(self) -> Iterator[Block]:
        return (self[i] for i in range(len(self)))

    def kinds(self) -> dict[Kind, int]:
        """How many blocks of each kind there are."""
        counts = np.bincount(self.template_of, minlength=len(self.templates))
        out: dict[Kind, int] = {}
        for template, count in zip(self.templates, counts, strict=True):
            out[template.kind] = out.get(template.kind, 0) + int(count)
        return out

    @property
    def rank(self) -> int:
        counts = np.bincount(self.template_of, minlength=len(self.templates))
        return sum(template.rank * int(count) for template, count in zip(self.templates, counts, strict=True))
