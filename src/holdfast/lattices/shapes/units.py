"""Units of nested levels times plain axes, drawn together because levels are weighed against each other."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import prod
from typing import Any

from numpy.typing import NDArray

from holdfast.errors import InvalidParameter
from holdfast.lattices.norms import Norm
from holdfast.lattices.shapes.levels import Levels, maximal
from holdfast.lattices.shapes.plain import Free
from holdfast.lattices.shapes.shape import Shape
from holdfast.lattices.shortest import Shortest
from holdfast.lattices.trees import Tree


@dataclass(frozen=True)
class Units(Shape):
    """Integer tables over the leaves of a tree of units times axes, in C order, whose margins are zero wherever they are kept.

    Legend: a mask S is a set of axes (bit k for axis k). `kept`: for every level of the tree from its root the masks of the margins kept
    at that level, sorted; closed under subsets, and under going up. g(S) is the deepest level at which S is kept.

    The lattice is that of a product of hierarchies, the tree and the axes, in which (level, S) is kept for every S of the level's family;
    that of free cells where nothing is kept.
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

    @cached_property
    def _lattice(self) -> Shape:
        trees = (*(() if self.tree is None else (self.tree,)), *map(Tree.plain, self.lengths))
        places = [(level, *(mask >> k & 1 for k in range(len(self.lengths)))) for level, family in enumerate(self.kept) for mask in family]
        return Levels(trees, maximal(place[self.tree is None :] for place in places)) if places else Free(self.size)

    @property
    def rank(self) -> int:
        return self._lattice.rank

    def basis(self) -> NDArray[Any]:
        return self._lattice.basis()

    def shortest(self, norm: Norm) -> Shortest | None:
        return self._lattice.shortest(norm)

    def log_gram_determinant(self) -> float:
        return self._lattice.log_gram_determinant()

    def one_can_move(self) -> bool | None:
        return self._lattice.one_can_move()


def every_pattern(shape: Units) -> list[tuple[int, int]]:
    """(level, mask) for all ways in which two cells can differ: the deepest level at which they are in one unit, the axes that differ."""
    out = []
    for level, mask in product(range(shape.levels + 1), shape.masks):
        same_leaf = level == shape.levels
        apart = not same_leaf and shape.tree is not None and max(shape.tree.children[level]) > 1
        if (same_leaf and mask) or apart:
            out.append((level, mask))
    return out
