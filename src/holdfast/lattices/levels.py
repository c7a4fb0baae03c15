"""Recognising a product of hierarchies: kept sums of a component that are sums at level vectors ([theory R20]).

A component's cells are looked at as a product of axes: columns that depend on one another (state, county, tract) are one axis. Every family
of kept sums must be a product of partitions, one of each axis. A family may lack some of its sums (85 and over, without the others) where
other kept sums tell the rest. Per axis the partitions of all families must form a chain, each finer than the one before; nested SETS are
not enough. What does not fit is named: two families, and the axis on which neither partition is finer than the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import prod

import numpy as np
from numpy.typing import NDArray

from holdfast.lattices.columns import number_codes
from holdfast.lattices.shapes import Grid, OneSum, Pinned, Shape
from holdfast.lattices.shapes.levels import Levels, LevelVector, maximal
from holdfast.lattices.trees import Tree

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Piece = tuple[Shape, Ints]
"""A shape, and the places of its cells in the component, in the shape's order."""

MOST_VECTORS = 4096
"""Level vectors up to which a component is drawn level by level."""
MOST_JOINS = 30_000
"""Pairs of families looked at to complete one by another: some 170 families that do not fit as they are, about a second."""


@dataclass(frozen=True)
class Misfit:
    """Why kept sums are no product of hierarchies: two families of which, on the axis made of `columns`, neither divides finer than the
    other; or one family alone whose sums are no product of partitions, or do not tell what they leave out. No family: the cells are no
    product of columns.
    """

    families: tuple[int, ...]
    columns: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class _Family:
    """Sums over products of classes: a partition of each axis, and which of the products are kept."""

    number: int
    partitions: tuple[Ints, ...]
    kept: Bools

    @property
    def complete(self) -> bool:
        return bool(self.kept.all())


def level_pieces(families: Sequence[Ints], coordinates: Sequence[Ints]) -> list[Piece] | Misfit:
    """The component as blocks whose sums are kept at level vectors, or what does not fit.

    Given:       per family the group of each cell, -1 for none; per column the code of each cell, no two cells with all codes alike.
    Guarantees:  the lattice of moves of the families is the direct sum over the pieces.
    """
    cells = len(families[0])
    axes = product_axes(coordinates, cells)
    if axes is None:
        return Misfit((), ())
    lengths = tuple(int(own.max()) + 1 for _, own in axes)
    if 2 ** sum(length > 1 for length in lengths) > MOST_VECTORS:  # the whole axis and its places are levels of each
        return Misfit((), ())
    order = np.empty(cells, dtype=np.int64)
    order[np.ravel_multi_index([own for _, own in axes], lengths)] = np.arange(cells)
    in_order = bool((order[1:] > order[:-1]).all())
    found = []
    for number, group in enumerate(families):
        if (group >= 0).any():
            family = _product_of_partitions(number, (group if in_order else group[order]).reshape(lengths))
            if family is None:
                return Misfit((number,), ())
            found.append(family)
    found = _complete(found)
    for family in found:
        if not family.complete:
            return Misfit((family.number,), ())
    chains = []
    for axis, length in enumerate(lengths):
        chain = _chain([(family.number, family.partitions[axis]) for family in found], length)
        if isinstance(chain, tuple):
            return Misfit(chain, axes[axis][0])
        chains.append(chain)
    if prod(map(len, chains)) > MOST_VECTORS:
        return Misfit((), ())
    kept = maximal(tuple(map(_level_of, chains, family.partitions)) for family in found)
    trees, orders = zip(*(Tree.of_partitions(chain[1:]) if len(chain) > 1 else (None, None) for chain in chains), strict=True)
    at = order.reshape(lengths)
    for axis, places in enumerate(orders):
        if places is not None and (places[1:] < places[:-1]).any():
            at = np.take(at, places, axis=axis)
    return list(_pieces(list(trees), kept, at))


def product_axes(coordinates: Sequence[Ints], cells: int) -> list[tuple[tuple[int, ...], Ints]] | None:
    """(columns, place of each cell) of each axis, such that the cells are the product of the axes; None where they are not.

    Two columns depend on one another where not all pairs of their codes occur; columns linked by dependence are one axis.
    """
    compact = [(number, number_codes(own)) for number, own in enumerate(coordinates)]
    varied = [(number, own, int(own.max()) + 1) for number, own in compact if own.max() > 0]
    if prod(n for _, _, n in varied) == cells:
        return [((number,), own) for number, own, _ in varied]
    groups: list[list[int]] = []
    for place, (_, own, n) in enumerate(varied):
        linked = [group for group in groups if any(_depend(own, n, *varied[other][1:], cells) for other in group)]
        groups = [group for group in groups if group not in linked] + [[*(k for group in linked for k in group), place]]
    axes = []
    for group in sorted(map(sorted, groups)):
        joined = np.zeros(cells, dtype=np.int64)
        for place in group:
            joined = number_codes(joined * varied[place][2] + varied[place][1])
        axes.append((tuple(varied[place][0] for place in group), joined))
    return axes if prod(int(own.max()) + 1 for _, own in axes) == cells else None


def _depend(first: Ints, n: int, second: Ints, m: int, cells: int) -> bool:
    if n * m > cells:
        return True
    present = np.zeros(n * m, dtype=np.bool_)
    present[first * m + second] = True
    return not present.all()


def _product_of_partitions(number: int, group: Ints) -> _Family | None:
    """Return the family as a product of partitions; None if it is not a product.

    The classes of an axis are read off along one line through a cell that is in a sum, and then checked for all cells.
    """
    start = np.unravel_index(int(np.argmax(group.ravel() >= 0)), group.shape)
    partitions = []
    for axis in range(group.ndim):
        place: list[int | slice] = [int(i) for i in start]
        place[axis] = slice(None)
        line = group[tuple(place)]
        partitions.append(_by_first(line))
    firsts = [np.unique(own, return_index=True)[1] for own in partitions]
    small = group[np.ix_(*firsts)]
    kept = small >= 0
    if len(np.unique(small[kept])) < int(kept.sum()) or not np.array_equal(small[np.ix_(*partitions)], group):
        return None
    return _Family(number, tuple(partitions), kept)


def _by_first(labels: Ints) -> Ints:
    """Numbers in the order of first appearance."""
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[inverse].astype(np.int64)


def _complete(families: list[_Family]) -> list[_Family]:
    """Families that lack sums, or whose partition fits in no chain, with what other kept sums add to them.

    Sums at (t, P) and at (t, Q), P and Q partitions of one axis, tell those at (t, P and Q together) where the graph of the classes of P
    and Q, joined where they meet, is a forest, and of every tree at most one class is not kept ([theory R20]).
    """
    found, changed = list(families), True
    if all(family.complete for family in found) and _are_chains(found):  # nothing crosses
        return found
    alone: set[tuple[int, int]] = set()  # pairs that were looked at, by the numbers that families have now
    numbers, tries = list(range(len(found))), 0
    while changed:
        changed = False
        for place, family in enumerate(found):
            for at, other in enumerate(found):
                if (numbers[place], numbers[at]) in alone:
                    continue
                tries += 1
                if tries > MOST_JOINS:
                    return found
                finer = None if family.complete and not _crosses(family, other) else _refine_family(family, other)
                if finer is not None:
                    found[place], numbers[place], changed = finer, len(families) + tries, True
                    break
                alone.add((numbers[place], numbers[at]))
            if changed:
                break
    return found


def _are_chains(families: list[_Family]) -> bool:
    """Whether on every axis each partition is finer than the next, in some order."""
    axes = zip(*(family.partitions for family in families), strict=True)
    return not any(isinstance(_chain([(0, own) for own in partitions], len(partitions[0])), tuple) for partitions in axes)


def _crosses(family: _Family, other: _Family) -> bool:
    """Whether on some axis neither partition is finer."""
    pairs = zip(family.partitions, other.partitions, strict=True)
    return any(not _refines(p, q) and not _refines(q, p) for p, q in pairs)


def _refine_family(family: _Family, other: _Family) -> _Family | None:
    """The family with its partition of one axis made finer by another family's, where that tells all its sums; None where it does not."""
    if not other.complete or other is family:
        return None
    for axis, own in enumerate(family.partitions):
        rest = [k for k in range(len(family.partitions)) if k != axis]
        if not all(_refines(other.partitions[k], family.partitions[k]) for k in rest):
            continue
        lacking = np.asarray(~family.kept.all(axis=tuple(rest)) if rest else ~family.kept)
        whole = np.broadcast_to(np.expand_dims(~lacking, tuple(rest)) if rest else ~lacking, family.kept.shape)
        if not np.array_equal(whole, family.kept):  # what is not kept is not the same everywhere
            continue
        for coarse in (other.partitions[axis], np.zeros_like(own)):
            finer = _by_first(coarse * (int(own.max()) + 1) + own)
            if family.complete and np.array_equal(finer, own):
                continue
            if _is_told(coarse, own, lacking):
                partitions = (*family.partitions[:axis], finer, *family.partitions[axis + 1 :])
                return replace(family, partitions=partitions, kept=np.ones([int(p.max()) + 1 for p in partitions], dtype=np.bool_))
    return None


def _is_told(coarse: Ints, own: Ints, lacking: Bools) -> bool:
    """Whether the classes of both partitions of an axis form a forest, with at most one class not kept in every tree."""
    n = int(coarse.max()) + 1
    edges = np.unique(coarse * len(lacking) + own)
    parent = list(range(n + len(lacking)))

    def root(node: int) -> int:
        while parent[node] != node:
            parent[node] = parent[parent[node]]
            node = parent[node]
        return node

    for edge in edges.tolist():
        a, b = root(edge // len(lacking)), root(n + edge % len(lacking))
        if a == b:
            return False
        parent[a] = b
    missing = [root(n + int(c)) for c in np.flatnonzero(lacking)]
    return len(set(missing)) == len(missing)


def _refines(fine: Ints, coarse: Ints) -> bool:
    """Whether every class of the first lies in one class of the second."""
    _, first, inverse = np.unique(fine, return_index=True, return_inverse=True)
    return np.array_equal(coarse[first][inverse], coarse)


def _chain(partitions: list[tuple[int, Ints]], length: int) -> list[Ints] | tuple[int, int]:
    """All different partitions, from the whole axis to single places, each finer than the one before; or two families that do not fit."""
    whole, single = np.zeros(length, dtype=np.int64), np.arange(length, dtype=np.int64)
    chain: list[tuple[int, Ints]] = [(-1, whole)]
    for number, own in [*sorted(partitions, key=lambda pair: int(pair[1].max())), (-1, single)]:
        if np.array_equal(own, chain[-1][1]):
            continue
        if not _refines(own, chain[-1][1]):
            return chain[-1][0], number
        chain.append((number, own))
    return [own for _, own in chain]


def _level_of(chain: list[Ints], partition: Ints) -> int:
    return next(level for level, own in enumerate(chain) if np.array_equal(own, partition))


def _pieces(trees: list[Tree | None], kept: tuple[LevelVector, ...], at: Ints) -> list[Piece]:
    """Blocks of a product: axes of one place are left out, units below which everything is kept apart are blocks of their own."""
    used = [k for k, tree in enumerate(trees) if tree is not None]
    kept = maximal(tuple(t[k] for k in used) for t in kept)
    cells = at.reshape([at.shape[k] for k in used])
    own = [tree for tree in trees if tree is not None]
    if not own:
        return [(Pinned(1), cells.ravel())]
    common = tuple(min(levels) for levels in zip(*kept, strict=True))
    if any(common):
        return _split(own, kept, common, cells)
    if kept == (common,):
        return [(OneSum(cells.size), np.sort(cells.ravel()))]
    return [_block(*_merge_axes([_reduce_tree(tree, {t[k] for t in kept}) for k, tree in enumerate(own)], kept, cells))]


def _split(trees: list[Tree], kept: tuple[LevelVector, ...], common: LevelVector, cells: Ints) -> list[Piece]:
    """One product for every combination of units of the levels that all kept vectors have."""
    pieces: list[Piece] = []
    pinned = []
    inner = tuple(tuple(a - b for a, b in zip(t, common, strict=True)) for t in kept)
    bounds = [np.concatenate([[0], np.cumsum(tree.sizes(level))]).tolist() for tree, level in zip(trees, common, strict=True)]
    for units in product(*(range(len(b) - 1) for b in bounds)):
        own = cells[tuple(slice(b[u], b[u + 1]) for b, u in zip(bounds, units, strict=True))]
        for shape, order in _pieces([tree.below(level, u) for tree, level, u in zip(trees, common, units, strict=True)], inner, own):
            if shape.is_pinned:
                pinned.append(order)
            else:
                pieces.append((shape, order))
    if pinned:
        together = np.sort(np.concatenate(pinned))
        pieces.append((Pinned(len(together)), together))
    return pieces


def _reduce_tree(tree: Tree, levels: set[int]) -> tuple[Tree, dict[int, int]]:
    """The tree with the levels that are used, and the new number of each: levels that divide nothing further, or that no sum uses, go."""
    chosen = [level for level in range(1, tree.depth + 1) if level in levels or level == tree.depth]
    distinct = [level for i, level in enumerate(chosen) if tree.units(level) > tree.units(chosen[i - 1] if i else 0)]
    new, _ = Tree.of_partitions([tree.unit_of(level) for level in distinct])
    return new, {level: sum(tree.units(d) <= tree.units(level) for d in distinct) if level else 0 for level in {0, *levels}}


@dataclass(frozen=True, eq=False)
class _Axis:
    """Axes that are drawn as one: their numbers, the partitions of their places at each level, the level of each kept vector."""

    members: tuple[int, ...]
    partitions: tuple[Ints, ...]
    levels: LevelVector

    def divide(self, below: _Axis) -> _Axis:
        """Every place divided by the axis below."""
        places = len(below.partitions[-1])
        over, inside = np.divmod(np.arange(len(self.partitions[-1]) * places), places)
        own = (partition[over] for partition in self.partitions)
        more = (over * places + partition[inside] for partition in below.partitions)
        levels = tuple(t + u for t, u in zip(self.levels, below.levels, strict=True))
        return _Axis((*self.members, *below.members), (*own, *more), levels)

    def can_divide(self, below: _Axis) -> bool:
        """Whether kept sums by the axis below are by all places of this one."""
        return all(u == 0 or t == len(self.partitions) for t, u in zip(self.levels, below.levels, strict=True))


def _join(members: list[int], trees: Sequence[Tree], levels: LevelVector) -> _Axis:
    """Axes that have the same level in every kept vector, as one; where one has no finer level, its places stand for it."""
    partitions = []
    for level in range(1, max(trees[k].depth for k in members) + 1):
        own = np.meshgrid(*(trees[k].unit_of(min(level, trees[k].depth)) for k in members), indexing="ij")
        partitions.append(np.ravel_multi_index([unit.ravel() for unit in own], [int(unit.max()) + 1 for unit in own]))
    return _Axis(tuple(members), tuple(partitions), levels)


def _merge_axes(
    reduced: list[tuple[Tree, dict[int, int]]], kept: tuple[LevelVector, ...], cells: Ints
) -> tuple[list[Tree], tuple[LevelVector, ...], Ints]:
    """Axes that every kept vector treats alike become one, and chains of axes one tree ([theory R23]); axes with the longest families last,
    where lines are drawn.
    """
    trees = [tree for tree, _ in reduced]
    alike: dict[LevelVector, list[int]] = {}
    for k, (_, numbers) in enumerate(reduced):
        alike.setdefault(tuple(numbers[t[k]] for t in kept), []).append(k)
    axes: list[_Axis] = []
    for below in (_join(members, trees, levels) for levels, members in sorted(alike.items(), reverse=True)):
        chain = next((axis for axis in axes if axis.can_divide(below) or below.can_divide(axis)), None)
        if chain is None:
            axes.append(below)
        else:
            axes[axes.index(chain)] = chain.divide(below) if chain.can_divide(below) else below.divide(chain)
    joined = [(axis, *Tree.of_partitions(axis.partitions)) for axis in axes]
    joined.sort(key=lambda found: (max(map(max, found[1].children)), found[1].places, found[0].members))
    axes, made, orders = map(list, zip(*joined, strict=True))
    at = cells.transpose([k for axis in axes for k in axis.members]).reshape([len(order) for order in orders])
    for place, order in enumerate(orders):
        at = at if (order[1:] > order[:-1]).all() else np.take(at, order, axis=place)
    return list(made), maximal(zip(*(axis.levels for axis in axes), strict=True)), at


def _block(trees: list[Tree], kept: tuple[LevelVector, ...], cells: Ints) -> Piece:
    order = np.ascontiguousarray(cells).ravel()
    if len(trees) == 1:  # all axes became one
        return (OneSum(len(order)), np.sort(order)) if kept == ((0,),) else (Pinned(len(order)), np.sort(order))
    depths = tuple(tree.depth for tree in trees)
    if depths == (1,) * len(trees) and kept == maximal(tuple(int(k != axis) for k in range(len(trees))) for axis in range(len(trees))):
        return Grid(tuple(tree.places for tree in trees)), order
    shape = Levels(tuple(trees), kept)
    if shape.dimension == 0:
        return Pinned(len(order)), np.sort(order)
    return shape, order
