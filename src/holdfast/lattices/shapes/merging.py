"""Units drawn on other axes: axes that all stated margins treat alike are one, and axes that form a chain are a tree ([theory R23]).

A margin is stated if it is measured, or kept and part of no other kept one. Where all stated margins, at all levels, are by both of two
axes or by neither, the two are one axis. Where those by B are all by A, B divides the places of A: the two are a tree. Where those by B are
all of the finest level, B divides the units. The moves and the quadratic form stay; the coordinates change, and with them the tries.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import prod
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from holdfast.lattices.shapes.units import Units
from holdfast.lattices.trees import Tree

Measured: TypeAlias = tuple[int, int, Fraction]
"""(height of a level above the finest, mask, share)."""
Chain: TypeAlias = list[tuple[frozenset[tuple[int, int]], list[int]]]
"""(the stated margins by some axes, these axes), each with margins of the one before alone."""


@dataclass(frozen=True, eq=False)
class MergedUnits:
    """The same cells on other axes.

    shape:     on these axes; measured: the margins by them.
    chains:    how many of the axes, in order, make each tree. Of a tree no margin has an axis without those before it.
    place_of:  where each cell of a unit stands here; None where all stand where they stood.
    """

    shape: Units
    measured: tuple[Measured, ...]
    chains: tuple[int, ...]
    place_of: NDArray[np.int64] | None


def merge_axes(units: Units, measured: Sequence[Measured]) -> MergedUnits:
    """The units on as few axes as the measured and the kept margins allow."""
    under, *chains = _chains(units, _joint_axes(units, measured))
    below, groups = [axes for _, axes in under[1:]], [axes for chain in chains for _, axes in chain]
    sizes = [prod(units.lengths[k] for k in axes) for axes in groups]
    tree, leaves = units.tree, units.leaves
    for axes in below:
        assert tree is not None
        places = prod(units.lengths[k] for k in axes)
        tree, leaves = Tree((*tree.children, (places,) * leaves)), leaves * places

    def depth(mask: int) -> int:
        """How many levels below the units a margin of the finest level stands."""
        return sum(_holds(mask, axes) for axes in below)

    def narrow(mask: int) -> int:
        return sum(1 << place for place, axes in enumerate(groups) if _holds(mask, axes))

    kept = [{narrow(mask) for mask in family} for family in units.kept]
    kept += [{narrow(mask) for mask in units.kept[-1] if depth(mask) > level} for level in range(len(below))]
    moved = tuple((height + len(below) - depth(mask), narrow(mask), share) for height, mask, share in measured if height <= units.levels)
    order = [k for axes in (*below, *groups) for k in axes]
    place_of = None
    if order != sorted(order):
        place_of = np.arange(prod(units.lengths)).reshape([units.lengths[k] for k in order]).transpose(np.argsort(order)).ravel()
    shape = Units(tree, tuple(sizes), tuple(tuple(sorted(family)) for family in kept))
    return MergedUnits(shape, moved, tuple(map(len, chains)), place_of)


def _holds(mask: int, axes: list[int]) -> bool:
    return all(mask >> k & 1 for k in axes)


def _joint_axes(units: Units, measured: Sequence[Measured]) -> frozenset[tuple[int, int]]:
    """(level, mask) of the margins measured, and of those kept that are part of no other kept one."""
    found = {(units.levels - height, mask) for height, mask, _ in measured if height <= units.levels}
    for level, family in enumerate(units.families):
        finer = units.families[level + 1] if level < units.levels else frozenset()
        axes = [1 << k for k in range(len(units.lengths))]
        found |= {(level, mask) for mask in family - finer if not any(mask | axis in family for axis in axes if not mask & axis)}
    return frozenset(found)


def _chains(units: Units, stated: frozenset[tuple[int, int]]) -> list[Chain]:
    """The axes as chains, the first of them below the units. Axes that more margins are by come first; ties go to the axis named first."""
    alike: dict[frozenset[tuple[int, int]], list[int]] = {}
    for k in range(len(units.lengths)):
        alike.setdefault(frozenset(margin for margin in stated if margin[1] >> k & 1), []).append(k)
    of_leaves = frozenset(margin for margin in stated if margin[0] == units.levels > 0)
    chains: list[Chain] = [[(of_leaves, [])]]
    for margins, axes in sorted(alike.items(), key=lambda found: -len(found[0])):
        home = next((chain for chain in chains if margins <= chain[-1][0]), None)
        if home is None:
            chains.append([(margins, axes)])
        else:
            home.append((margins, axes))
    return chains
