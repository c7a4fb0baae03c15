"""Units of nested levels times plain axes, drawn together because levels are weighed against each other."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import log, prod
from typing import Any

import numpy as np

from holdfast.errors import InvalidParameter, RequestTooLarge
from holdfast.lattices.norms import Norm
from holdfast.lattices.shapes.shape import MAX_DENSE, Ints, Shape
from holdfast.lattices.shortest import Shortest
from holdfast.lattices.trees import Tree


@dataclass(frozen=True)
class Units(Shape):
    """Integer tables over the leaves of a tree of units times axes, in C order, whose margins are zero wherever they are kept.

    Legend: a mask S is a set of axes (bit k for axis k). `kept`: for every level of the tree from its root the masks of the margins kept
    at that level, sorted; closed under subsets, and under going up. g(S) is the deepest level at which S is kept.

    rank:       cells less the sum over S of (leaves - units of level g(S)) prod_S (n_k - 1); all leaves where S is kept nowhere.
    basis:      for each S: (one leaf less the first of its unit of level g(S), or a leaf alone) x (a place less the first) for the axes
                in S x (the first place) for the others.
    shortest:   2^|S|, doubled where S is kept, over the S that leave a move; in l1 and in squared l2.
    Proofs:     [theory R16], [theory R20].
    """

    name = "units of nested levels"

    tree: Tree | None
    lengths: tuple[int, ...]
    kept: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        if len(self.kept) != self.levels + 1 or min(self.lengths, default=2) < 2:
            raise InvalidParameter("Units have kept margins for every level, and axes of two places or more.")

    @property
    def levels(self) -> int:
        return 0 if self.tree is None else self.tree.depth

    @property
    def leaves(self) -> int:
        return 1 if self.tree is None else self.tree.places

    @property
    def axes(self) -> tuple[int, ...]:
        return self.leaves, *self.lengths

    @property
    def size(self) -> int:
        return prod(self.axes)

    @property
    def masks(self) -> range:
        return range(1 << len(self.lengths))

    @property
    def families(self) -> tuple[frozenset[int], ...]:
        return tuple(map(frozenset, self.kept))

    @property
    def fields(self) -> tuple[Any, ...]:
        children = [] if self.tree is None else [list(counts) for counts in self.tree.children]
        return "units", children, list(self.lengths), [list(family) for family in self.kept]

    def deepest(self, mask: int) -> int | None:
        """g(S), or None where S is kept nowhere."""
        return max((level for level, family in enumerate(self.kept) if mask in family), default=None)

    def _units(self, mask: int) -> Ints:
        """How many leaves lie in each unit whose sum of S is zero; empty where S is kept nowhere."""
        level = self.deepest(mask)
        if level is None:
            return np.zeros(0, dtype=np.int64)
        return np.ones(1, dtype=np.int64) if self.tree is None else self.tree.sizes(level)

    def _corner(self, mask: int) -> int:
        return prod(n - 1 for k, n in enumerate(self.lengths) if mask >> k & 1)

    @cached_property
    def _dimension(self) -> int:
        return sum((self.leaves - len(self._units(mask))) * self._corner(mask) for mask in self.masks)

    @property
    def rank(self) -> int:
        return self.size - self._dimension

    def basis(self) -> Ints:
        if self.size * self.dimension > MAX_DENSE:
            raise RequestTooLarge(f"A basis of {self.size} cells would have {self.size * self.dimension} entries, which is refused.")
        parts = [np.zeros((self.size, 0), dtype=np.int64)]
        for mask in self.masks:
            part = np.eye(self.leaves, dtype=np.int64)
            if len(self._units(mask)):
                first = np.repeat(np.cumsum(self._units(mask)) - self._units(mask), self._units(mask))
                part[first, np.arange(self.leaves)] -= 1
                part = part[:, first != np.arange(self.leaves)]
            for k, n in enumerate(self.lengths):
                contrasts = np.eye(n, dtype=np.int64)
                contrasts[0, 1:] -= 1
                part = np.kron(part, contrasts[:, 1:] if mask >> k & 1 else contrasts[:, :1])
            parts.append(part)
        return np.concatenate(parts, axis=1)

    def shortest(self, norm: Norm) -> Shortest | None:
        moves = [
            2 ** mask.bit_count() * (2 if len(self._units(mask)) else 1) for mask in self.masks if len(self._units(mask)) < self.leaves
        ]
        return Shortest(norm.name, min(moves), None, "exact") if moves else None

    def log_gram_determinant(self) -> float:
        """By the squared Gram-Schmidt lengths, which multiply: n for each contrast lattice of n places, 1/n for a first place alone."""
        total = 0.0
        for mask in self.masks:
            units, corner = self._units(mask), self._corner(mask)
            free = self.leaves - len(units)
            total += corner * float(np.log(units).sum())
            for k, n in enumerate(self.lengths):
                total += free * (corner // (n - 1) * log(n) if mask >> k & 1 else -corner * log(n))
        return total

    def one_can_move(self) -> bool:
        """Within a leaf where some axis is in no kept margin; else between two leaves of a unit below which nothing is kept."""
        used = 0
        for mask in self.kept[0]:
            used |= mask
        if used != (1 << len(self.lengths)) - 1:
            return True
        deepest = max((level for level, family in enumerate(self.kept) if family), default=0)
        return self.tree is not None and int(self.tree.sizes(deepest).max()) > 1


def every_pattern(shape: Units) -> list[tuple[int, int]]:
    """(level, mask) for all ways in which two cells can differ: the deepest level at which they are in one unit, the axes that differ."""
    out = []
    for level, mask in product(range(shape.levels + 1), shape.masks):
        same_leaf = level == shape.levels
        apart = not same_leaf and shape.tree is not None and max(shape.tree.children[level]) > 1
        if (same_leaf and mask) or apart:
            out.append((level, mask))
    return out
