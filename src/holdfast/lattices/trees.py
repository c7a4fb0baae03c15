"""An axis with a chain of partitions: its places divided ever finer, from one unit that holds all of them to the single places.

Legend: level 0 is the whole axis, level `depth` are its places (leaves). `children[l]` says for each unit of level l into how many units of
level l + 1 it is divided. Places are in the order of the tree, so that the units of every level are runs of places.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import InvalidParameter

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Tree:
    """A value: equal trees are equal divisions. A plain axis of n places has one level below the whole, `Tree(((n,),))`."""

    children: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        units = 1
        for counts in self.children:
            if len(counts) != units or min(counts, default=0) < 1:
                raise InvalidParameter("Every unit of an axis is divided into one unit or more of the next level.")
            units = sum(counts)
        if not self.children:
            raise InvalidParameter("An axis has one level or more below the whole.")

    @classmethod
    def plain(cls, places: int) -> Tree:
        return cls(((places,),))

    @classmethod
    def of_partitions(cls, partitions: Sequence[Ints]) -> tuple[Tree, Ints]:
        """(the tree, the places in its order) of partitions of one axis, each finer than the one before, the last into single places.

        Units stand in the order of their first places, so that an axis whose units are runs keeps its order.
        """
        order = np.arange(len(partitions[-1]), dtype=np.int64)
        keys = [_by_first_place(partition) for partition in partitions]
        order = np.lexsort(keys[::-1]).astype(np.int64)
        children, parent = [], np.zeros(len(order), dtype=np.int64)
        for key in keys:
            unit = _runs(key[order])
            counts = np.bincount(parent[np.flatnonzero(np.diff(unit, prepend=-1))])
            children.append(tuple(counts.tolist()))
            parent = unit
        return cls(tuple(children)), order

    def put_last(self, leaf: int) -> Tree:
        """The tree with the units that hold a leaf last among the children of their unit."""
        order, out = [0], []
        for level, children in enumerate(self.children):
            out.append(tuple(children[unit] for unit in order))
            starts, path = self.starts(level).tolist(), int(self.unit_of(level + 1)[leaf])
            below = [range(starts[unit], starts[unit + 1]) for unit in order]
            order = [child for group in below for child in (*(one for one in group if one != path), *([path] if path in group else []))]
        return Tree(tuple(out))

    @property
    def depth(self) -> int:
        return len(self.children)

    @property
    def places(self) -> int:
        return sum(self.children[-1])

    @property
    def is_even(self) -> bool:
        """Whether the units of each level are divided alike, so that every place can be exchanged with every other."""
        return all(len(set(counts)) == 1 for counts in self.children)

    def units(self, level: int) -> int:
        """How many units a level has."""
        return 1 if level == 0 else sum(self.children[level - 1])

    def starts(self, level: int) -> Ints:
        """Where the children of each unit of this level begin among the units of the next, and the end."""
        return _starts(self)[level]

    def sizes(self, level: int) -> Ints:
        """How many places lie in each unit of a level."""
        return _sizes(self)[level]

    def unit_of(self, level: int) -> Ints:
        """The unit of a level in which each place lies."""
        return np.repeat(np.arange(self.units(level), dtype=np.int64), self.sizes(level))

    def firsts(self, level: int) -> Ints:
        """The first place of each unit of a level."""
        return np.concatenate([[0], np.cumsum(self.sizes(level))[:-1]])

    def siblings(self, level: int) -> Ints:
        """For each unit of a level (1 or more) how many children its parent has, itself included."""
        counts = np.array(self.children[level - 1], dtype=np.int64)
        return np.repeat(counts, counts)

    def branches(self, level: int) -> bool:
        """Whether some unit of the level above has two children or more at this level."""
        return max(self.children[level - 1]) > 1

    def units_above(self, level: int, above: int) -> Ints:
        """For each unit of a level the unit of a level above, or of the same, in which it lies."""
        return self.unit_of(above)[self.firsts(level)]

    def finest_branching(self, level: int) -> Ints:
        """For each unit of a level the finest level, up to this one, at which its unit has a sibling; 0 where it has none at any level."""
        out = np.zeros(self.units(level), dtype=np.int64)
        for above in range(1, level + 1):
            out[(self.siblings(above) > 1)[self.units_above(level, above)]] = above
        return out

    def class_of(self, places: Ints) -> tuple[Any, ...]:
        """Equal for two sets of places just where one becomes the other when units that are divided alike are exchanged."""
        if len(places) == self.places:
            return ()
        classes: dict[int, tuple[Any, ...]] = dict.fromkeys(places.tolist(), ())
        for level in reversed(range(self.depth)):
            kinds, above = _kinds(self)[level + 1], np.searchsorted(self.starts(level), list(classes), side="right") - 1
            inside: defaultdict[int, Counter[tuple[Any, ...]]] = defaultdict(Counter)
            for parent, (unit, own) in zip(above.tolist(), classes.items(), strict=True):
                inside[parent][kinds[unit], own] += 1
            classes = {parent: tuple(sorted(found.items())) for parent, found in inside.items()}
        return classes[0]

    def prune(self, kept: NDArray[np.bool_]) -> Tree:
        """Without the places that are not kept, and without units that then have none. One place or more is kept."""
        children: list[tuple[int, ...]] = []
        for level in reversed(range(self.depth)):
            counts = np.add.reduceat(kept.astype(np.int64), self.starts(level)[:-1])
            kept = counts > 0
            children.append(tuple(counts[kept].tolist()))
        return Tree(tuple(children[::-1]))

    def below(self, level: int, unit: int) -> Tree | None:
        """The part under one unit of a level; None for a unit of one place."""
        if self.sizes(level)[unit] == 1:
            return None
        children, first, end = [], unit, unit + 1
        for deeper in range(level, self.depth):
            children.append(self.children[deeper][first:end])
            first, end = int(self.starts(deeper)[first]), int(self.starts(deeper)[end])
        return Tree(tuple(children))


@lru_cache(maxsize=256)
def _starts(tree: Tree) -> tuple[Ints, ...]:
    return tuple(np.concatenate([[0], np.cumsum(np.array(counts, dtype=np.int64))]) for counts in tree.children)


@lru_cache(maxsize=256)
def _kinds(tree: Tree) -> list[list[int]]:
    """For each level a number for each unit, equal where units are divided alike all the way down."""
    out = [[0] * tree.places]
    for level in reversed(range(tree.depth)):
        known: dict[tuple[int, ...], int] = {}
        parts = [tuple(sorted(out[-1][begin:end])) for begin, end in pairwise(tree.starts(level).tolist())]
        out.append([known.setdefault(part, len(known)) for part in parts])
    return out[::-1]


@lru_cache(maxsize=256)
def _sizes(tree: Tree) -> tuple[Ints, ...]:
    out = [np.ones(tree.places, dtype=np.int64)]
    for level in reversed(range(tree.depth)):
        out.append(np.add.reduceat(out[-1], tree.starts(level)[:-1]))
    return tuple(out[::-1])


def _by_first_place(partition: Ints) -> Ints:
    """The units' numbers in the order of their first places."""
    _, first, unit = np.unique(partition, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[unit].astype(np.int64)


def _runs(numbers: Ints) -> Ints:
    """Equal neighbours share a number, counted from 0."""
    return np.cumsum(np.diff(numbers, prepend=numbers[0]) != 0).astype(np.int64)
