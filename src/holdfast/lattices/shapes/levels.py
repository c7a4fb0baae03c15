"""A product of axes with levels, of which any combinations of levels are kept: county totals together with the sex margin."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import prod
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import InvalidParameter, RequestTooLarge
from holdfast.lattices.norms import Norm
from holdfast.lattices.shapes.general import General
from holdfast.lattices.shapes.shape import MAX_DENSE, Floats, Ints, Shape
from holdfast.lattices.shortest import Shortest
from holdfast.lattices.trees import Tree

LevelVector: TypeAlias = tuple[int, ...]


@dataclass(frozen=True)
class Levels(Shape):
    """Integer tables over a product of axes, each a tree of levels (lattices/trees.py), in row-major order of places. For every kept level
    vector t all sums over units (u_1, ..., u_K), u_k a unit of level t_k of axis k, are kept; so are those of all coarser vectors.

    Legend: a level vector s is kept if s <= t for a kept t, and free otherwise. S(s) are the axes with s_k > 0.

    rank:       cells less the sum over free s of prod_k c_k(s_k), c_k(l) the units of level l less those of level l - 1, c_k(0) = 1.
    basis:      for each free s the products over k of: e_(first place of c) - e_(first place of c's first sibling), for the units c of
                level s_k but first children; e_(first place) where s_k = 0.
    shortest:   2^t, in l1 and in squared l2, t the least number of axes of a free s all of whose levels branch.
    fixed:      a cell is fixed where the vector of the finest levels at which its units have siblings is kept.
    Proofs:     [theory R20].
    """

    name = "product of hierarchies"

    trees: tuple[Tree, ...]
    kept: tuple[LevelVector, ...]
    """The kept level vectors that lie below no other, sorted."""

    def __post_init__(self) -> None:
        if not self.trees or not self.kept:
            raise InvalidParameter("A product of hierarchies has an axis or more, and keeps something.")
        depths = self.depths
        if any(len(t) != len(depths) or any(not 0 <= level <= d for level, d in zip(t, depths, strict=True)) for t in self.kept):
            raise InvalidParameter(f"A kept level vector has one level for each axis, from 0 to {depths}.")
        if self.kept != maximal(self.kept):
            raise InvalidParameter("Kept level vectors are given sorted, and without those below others.")

    @property
    def depths(self) -> LevelVector:
        return tuple(tree.depth for tree in self.trees)

    @property
    def axes(self) -> tuple[int, ...]:
        return tuple(tree.places for tree in self.trees)

    @property
    def size(self) -> int:
        return prod(self.axes)

    @cached_property
    def _dimension(self) -> int:
        return sum(prod(self._contrasts(k, level) for k, level in enumerate(s)) for s in self.free())

    def _contrasts(self, k: int, level: int) -> int:
        return 1 if level == 0 else self.trees[k].units(level) - self.trees[k].units(level - 1)

    @property
    def cells_alike(self) -> bool:
        return all(tree.is_even for tree in self.trees)

    @property
    def rank(self) -> int:
        return self.size - self._dimension

    @property
    def fields(self) -> tuple[Any, ...]:
        return "levels", [[list(counts) for counts in tree.children] for tree in self.trees], [list(t) for t in self.kept]

    def is_kept(self, s: LevelVector) -> bool:
        return any(is_below(s, t) for t in self.kept)

    def vectors(self) -> Iterator[LevelVector]:
        """All level vectors, coarser ones before finer ones."""
        return product(*(range(depth + 1) for depth in self.depths))

    def free(self) -> Iterator[LevelVector]:
        """The level vectors below no kept one, coarser ones before finer ones."""
        return (s for s in self.vectors() if not self.is_kept(s))

    def basis(self) -> Ints:
        if self.size * self.dimension > MAX_DENSE:
            raise RequestTooLarge(f"A basis of {self.size} cells would have {self.size * self.dimension} entries, which is refused.")
        parts = []
        for s in self.free():
            part = np.ones((1, 1), dtype=np.int64)
            for tree, level in zip(self.trees, s, strict=True):
                part = np.kron(part, _contrasts(tree, level))
            parts.append(part)
        return np.concatenate([np.zeros((self.size, 0), dtype=np.int64), *parts], axis=1)

    def matrix(self) -> Ints | None:
        """Independent rows: of every kept level vector the sums over units that are first child of no axis, all axes above level 0. None
        for large blocks, whose rows nobody should list.
        """
        if self.size * self.rank > MAX_DENSE:
            return None
        rows = []
        for s in (s for s in self.vectors() if self.is_kept(s)):
            part = np.ones((1, 1), dtype=np.int64)
            for tree, level in zip(self.trees, s, strict=True):
                indicators = (tree.unit_of(level) == np.arange(tree.units(level))[:, None]).astype(np.int64)
                part = np.kron(part, indicators if level == 0 else np.delete(indicators, tree.starts(level - 1)[:-1], axis=0))
            rows.append(part)
        return np.concatenate(rows)

    def put_last(self, cell: int) -> tuple[Levels, int]:
        """Units under one unit can be exchanged."""
        leaves = zip(self.trees, np.unravel_index(cell, self.axes), strict=True)
        return Levels(tuple(tree.put_last(int(leaf)) for tree, leaf in leaves), self.kept), self.size - 1

    @property
    def as_levels(self) -> Levels:
        return self

    def as_general(self) -> General:
        """The same lattice by its rows, for samplers and chains that take those; NoExactSampler where they are too many to list."""
        rows = self.matrix()
        return General.without_rows(self.size, self.rank) if rows is None else General(tuple(map(tuple, rows.tolist())), (1,) * self.size)

    def shortest(self, norm: Norm) -> Shortest | None:
        fewest = self._fewest_axes
        return None if fewest is None else Shortest(norm.name, 2**fewest, None, "exact")

    @cached_property
    def _fewest_axes(self) -> int | None:
        branching = [[level for level in range(1, tree.depth + 1) if tree.branches(level)] for tree in self.trees]
        finest = [max(levels, default=0) for levels in branching]
        chosen = [used for used in product((False, True), repeat=len(finest)) if all(f or not u for f, u in zip(finest, used, strict=True))]
        free = [sum(used) for used in chosen if not self.is_kept(tuple(f * u for f, u in zip(finest, used, strict=True)))]
        return min(free, default=None)

    def one_can_move(self) -> bool:
        """Where one axis is enough for a move."""
        return self._fewest_axes == 1

    def fixed_cells(self) -> Ints:
        return np.flatnonzero(self._fixed_sums(self.depths).ravel())

    def log_gram_determinant(self) -> float:
        """By the squared Gram-Schmidt lengths ([theory R20]): those of the children of one unit multiply to n_unit / prod n_child."""
        total = 0.0
        for s in self.free():
            dimensions = [self._contrasts(k, level) for k, level in enumerate(s)]
            for k, (tree, level) in enumerate(zip(self.trees, s, strict=True)):
                others = prod(dimensions[:k] + dimensions[k + 1 :])
                own = -np.log(tree.sizes(0)[0]) if level == 0 else np.log(tree.sizes(level - 1)).sum() - np.log(tree.sizes(level)).sum()
                total += others * float(own)
        return total

    def sums(self, table: NDArray[Any], s: LevelVector) -> NDArray[Any]:
        """The sums of one table at a level vector, one entry for each combination of units."""
        out = table.reshape(self.axes)
        for axis, (tree, level) in enumerate(zip(self.trees, s, strict=True)):
            starts = tree.firsts(level)
            out = out if level == tree.depth else np.add.reduceat(out, starts, axis=axis)
        return out

    def project(self, values: Floats) -> Floats:
        table = values.reshape(-1, *self.axes)
        out = table.copy()
        for s, sign in _inclusion_exclusion(self.kept):
            out -= sign * self._means(table, s)
        return np.asarray(out.reshape(values.shape))

    def _means(self, tables: Floats, s: LevelVector) -> Floats:
        """Every value is replaced by the mean over its units at a level vector. Sums come before copies: what is worked on shrinks."""
        out, given = tables, enumerate(zip(self.trees, s, strict=True), start=1)
        coarse = [(axis, tree, level) for axis, (tree, level) in given if level < tree.depth]
        for axis, tree, level in coarse:
            sums = np.add.reduceat(out, tree.firsts(level), axis=axis)
            out = sums / tree.sizes(level).reshape([-1 if k == axis else 1 for k in range(out.ndim)])
        for axis, tree, level in coarse:
            out = np.take(out, tree.unit_of(level), axis=axis)
        return out

    def projection_diagonal(self) -> Floats:
        return self.projected_sums(self.depths).ravel()

    def projected_sums(self, t: LevelVector) -> Floats:
        """What is left of the squared length of each sum at a level vector, one entry for each combination of units; 0 for fixed sums.

        Means at a level keep a unit of a coarser one as it is, and make of a finer one its part of the unit above: so only the minimum of
        two level vectors counts.
        """
        signs: Counter[LevelVector] = Counter()
        for s, sign in _inclusion_exclusion(self.kept):
            signs[tuple(map(min, s, t))] += sign
        out = np.ones([tree.units(level) for tree, level in zip(self.trees, t, strict=True)])
        for s, sign in signs.items():
            part = np.ones(())
            for tree, above, own in zip(self.trees, s, t, strict=True):
                part = np.multiply.outer(part, tree.sizes(own) / tree.sizes(above)[tree.units_above(own, above)])
            out -= sign * part
        for axis, (tree, level) in enumerate(zip(self.trees, t, strict=True)):
            out *= tree.sizes(level).reshape([-1 if k == axis else 1 for k in range(out.ndim)])
        return np.where(self._fixed_sums(t), 0.0, np.maximum(out, 0.0))

    def _fixed_sums(self, t: LevelVector) -> NDArray[np.bool_]:
        """Which sums at a level vector no move changes: those that are sums at a kept one, units without siblings being their parents."""
        finest = [tree.finest_branching(level) for tree, level in zip(self.trees, t, strict=True)]
        out = np.zeros([len(own) for own in finest], dtype=np.bool_)
        for kept in self.kept:
            mask = np.ones((), dtype=np.bool_)
            for own, level in zip(finest, kept, strict=True):
                mask = np.multiply.outer(mask, own <= level)
            out |= mask
        return out

    def are_fixed(self, values: Ints) -> NDArray[np.bool_]:
        """By the products with the basis, without making it.

        Given:  coefficients below 2^62 / 2^axes in size.
        """
        part = values.reshape(-1, *self.axes)
        for axis, tree in enumerate(self.trees, start=1):
            part = _contrast_products(part, axis, tree)
        free = np.array([not self.is_kept(s) for s in self.vectors()]).reshape([depth + 1 for depth in self.depths])
        levels = [np.repeat(range(n + 1), [self._contrasts(k, level) for level in range(n + 1)]) for k, n in enumerate(self.depths)]
        return np.asarray(~((part != 0) & free[np.ix_(*levels)]).reshape(len(values), -1).any(axis=1))

    def gram_schmidt_products(self, values: Floats) -> Floats:
        out = []
        for s in self.free():
            part = values.reshape(-1, *self.axes)
            for axis, (tree, level) in enumerate(zip(self.trees, s, strict=True), start=1):
                part = _gram_schmidt_products(part, axis, tree, level)
            out.append(part.reshape(len(values), -1))
        return np.concatenate(out, axis=1)

    def rounding_diagonal(self) -> Floats:
        out = np.zeros(self.axes)
        for s in self.free():
            part = np.ones(())
            for tree, level in zip(self.trees, s, strict=True):
                part = np.multiply.outer(part, _gram_schmidt_squares(tree, level))
            out += part
        return out.ravel()


def is_below(s: LevelVector, t: LevelVector) -> bool:
    """Whether s is as coarse as t or coarser on every axis."""
    return all(a <= b for a, b in zip(s, t, strict=True))


def maximal(vectors: Iterable[LevelVector]) -> tuple[LevelVector, ...]:
    """Those below no other, each once, sorted."""
    distinct = sorted(set(vectors))
    if not distinct or not distinct[0]:
        return tuple(distinct)
    table = np.array(distinct, dtype=np.int64)
    return tuple(t for t, row in zip(distinct, table, strict=True) if np.count_nonzero((table >= row).all(axis=1)) == 1)


def _contrasts(tree: Tree, level: int) -> Ints:
    """The contrasts of an axis at a level as columns over its places."""
    if level == 0:
        return np.eye(tree.places, 1, dtype=np.int64)
    first = np.flatnonzero(np.diff(tree.unit_of(level), prepend=-1))  # the first place of each unit
    columns = []
    for begin, end in zip(tree.starts(level - 1)[:-1], tree.starts(level - 1)[1:], strict=True):
        for unit in range(int(begin) + 1, int(end)):
            column = np.zeros(tree.places, dtype=np.int64)
            column[first[unit]], column[first[begin]] = 1, -1
            columns.append(column)
    return np.array(columns, dtype=np.int64).reshape(-1, tree.places).T


def _inclusion_exclusion(kept: tuple[LevelVector, ...]) -> list[tuple[LevelVector, int]]:
    """(s, sign) such that the projection on what the kept vectors see is the sum of sign times the means at s.

    The means at s and at t, one after the other, are those at the smaller level on every axis; 1 - prod (1 - means at t) expands to this.
    """
    signs: dict[LevelVector, int] = {}
    for t in kept:
        for s, sign in list(signs.items()):
            lower = tuple(map(min, s, t))
            signs[lower] = signs.get(lower, 0) - sign
        signs[t] = signs.get(t, 0) + 1
    return [(s, sign) for s, sign in signs.items() if sign]


def _contrast_products(table: Ints, axis: int, tree: Tree) -> Ints:
    """Along an axis the products with its contrasts, level after level."""
    parts = [np.take(table, [0], axis=axis)]
    for level in range(1, tree.depth + 1):
        first, begins = tree.firsts(level), tree.starts(level - 1)
        eldest = np.repeat(first[begins[:-1]], np.diff(begins))
        others = first != eldest
        parts.append(np.take(table, first[others], axis=axis) - np.take(table, eldest[others], axis=axis))
    return np.concatenate(parts, axis=axis)


def _gram_schmidt_products(table: Floats, axis: int, tree: Tree, level: int) -> Floats:
    """Along an axis the inner products with its Gram-Schmidt vectors of one level: the mean over a child less that over later siblings."""
    if level == 0:
        return np.asarray(table.mean(axis=axis, keepdims=True))
    first = tree.firsts(level)
    sums = np.moveaxis(np.add.reduceat(table, first, axis=axis), axis, -1)
    weights, begins = tree.sizes(level), tree.starts(level - 1)
    through = np.cumsum(sums, axis=-1)
    family_end = np.repeat(begins[1:] - 1, np.diff(begins))
    later = through[..., family_end] - through
    later_weight = np.cumsum(weights)[family_end] - np.cumsum(weights)
    inner = later_weight > 0
    out = sums[..., inner] / weights[inner] - later[..., inner] / later_weight[inner]
    return np.moveaxis(out, -1, axis)


def _gram_schmidt_squares(tree: Tree, level: int) -> Floats:
    """For each place the sum of the squares of the axis's Gram-Schmidt vectors of one level there.

    That of child c is 1 / n_c on c's places and -1 / (places of later siblings) on those; the last child has none.
    """
    if level == 0:
        return np.full(tree.places, 1 / tree.places**2)
    sizes = tree.sizes(level).astype(np.float64)
    out = np.zeros(len(sizes))
    for begin, end in zip(tree.starts(level - 1)[:-1].tolist(), tree.starts(level - 1)[1:].tolist(), strict=True):
        later = np.cumsum(sizes[begin:end][::-1])[::-1]  # child and later siblings
        out[begin + 1 : end] += np.cumsum(1 / later[1:] ** 2)
        out[begin : end - 1] += 1 / sizes[begin : end - 1] ** 2
    return out[tree.unit_of(level)]
