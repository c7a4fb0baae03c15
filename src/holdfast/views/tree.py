"""Sums made non-negative, or multiples of a base, from the top down: the parts of a sum are the nearest that add up to it.

One step: given the sum K b of some parts and their published values c_i, find whole numbers u_i (zero or more, if asked for) with
sum u_i = K and the least sum of (b u_i - c_i)^2. The u-th unit of part i costs b (2 (b u - c_i) - b), which grows with u: so the K cheapest
units are an optimum ([theory T150]). Of part i, floor((t + c_i) / b) units have b u - c_i <= t. The largest t that takes no more than K of
all is found by bisection; what is left goes to parts whose next unit costs the same, in an order that is public and fixed. Whole numbers
throughout.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from holdfast.randomness import NoiseKey

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Step:
    """Nodes and the parts each is split into. Parts of one node stand together, the preferred ones first."""

    starts: Ints
    """Where the parts of each node begin."""
    node: Ints
    """The node of each part."""


class TopDown:
    """Cells under roots, with levels between them, each nested in the one before within a root.

    Given:       `root`: for each cell the number of its root, all numbers in use; `levels`: for each cell its unit, coarse to fine.
    Guarantees:  what `made` gives depends on its arguments alone: ties go by a public order.
    """

    def __init__(self, root: Ints, levels: Sequence[Ints]) -> None:
        own = np.asarray(root, dtype=np.int64)
        place = np.arange(int(own.max()) + 1)  # where the node of each number stands
        steps: list[Step] = []
        for number, unit in enumerate((*levels, np.arange(len(own)))):
            finer = np.arange(len(own)) if number == len(levels) else refine_groups(own, unit)
            if number < len(levels) and finer.max() == own.max():
                continue  # the level splits nothing
            above = np.empty(int(finer.max()) + 1, dtype=np.int64)
            above[finer] = place[own]
            order = np.lexsort((public_words(number, len(above)), above))
            node = above[order]
            steps.append(Step(np.searchsorted(node, np.arange(len(place))), node))
            place, own = np.empty_like(order), finer
            place[order] = np.arange(len(order))
        self.steps = tuple(steps)
        self.order = order
        """The cells in the order of the parts of the last step."""

    def sums(self, counts: Ints) -> list[Ints]:
        """The sums at every step, from the roots to the cells, in the order of the parts."""
        found = [counts[self.order]]
        for step in reversed(self.steps):
            found.append(np.add.reduceat(found[-1], step.starts))
        return found[::-1]

    def make_cells(self, counts: Ints, roots: Ints, base: int, *, nonnegative: bool) -> Ints:
        """Cells that are multiples of the base, and not negative if asked for, with these sums of the roots, nearest from the top down.

        Given:       roots: multiples of the base; not negative where the cells are not to be.
        """
        units = roots // base
        for step, values in zip(self.steps, self.sums(counts)[1:], strict=True):
            units = nearest_parts(values, step, units, base, nonnegative=nonnegative)
        out = np.empty_like(counts)
        out[self.order] = units * base
        return out


def nearest_parts(values: Ints, step: Step, units: Ints, base: int, *, nonnegative: bool) -> Ints:
    """u with the least sum of (base u_i - values_i)^2 whose sums over the parts of each node are `units` ([theory T150])."""
    starts, node = step.starts, step.node

    def take_units(threshold: Ints, parts: slice | NDArray[np.bool_] = slice(None), of: Ints | None = None) -> Ints:
        reach = threshold[node if of is None else of] + values[parts]
        whole = reach if base == 1 else reach // base
        return np.maximum(whole, 0) if nonnegative else whole

    low, high = _bracket(values, step, units, base)
    guess = np.clip(np.full_like(low, base // 2), low, high - 1)
    for trial in (guess, guess + 1):  # nothing was cut off, as in most nodes: then bisection has nothing to do
        fits = np.add.reduceat(take_units(trial), starts) <= units
        low, high = np.where(fits, np.maximum(low, trial), low), np.where(fits, high, np.minimum(high, trial))
    while (open_nodes := high - low > 1).any():
        parts = open_nodes[node]
        mine = node[parts]
        middle = low + (high - low) // 2
        sums = np.add.reduceat(take_units(middle, parts, mine), np.flatnonzero(np.diff(mine, prepend=-1)))
        fits = np.zeros(len(low), dtype=np.bool_)
        fits[open_nodes] = sums <= units[open_nodes]
        low = np.where(open_nodes & fits, middle, low)
        high = np.where(open_nodes & ~fits, middle, high)
    found = take_units(low)
    tied = take_units(low + 1) > found  # by one unit, each of which costs the same
    rank = np.cumsum(tied)
    before: Ints = rank[starts] - tied[starts]
    left = units - np.add.reduceat(found, starts)
    return found + (tied & (rank - before[node] <= left[node]))


def _bracket(values: Ints, step: Step, units: Ints, base: int) -> tuple[Ints, Ints]:
    """(a threshold that takes no more units than there are, one that takes more), for each node.

    With k = floor(units / parts): at base (k + 1) - 1 - max c every part has at most k units, at base (k + 1) - min c at least k + 1. Where
    parts are cut off at 0, units and k are not negative, and both still hold.
    """
    sizes = np.diff(step.starts, append=len(values))
    reach = base * (units // sizes + 1)
    return reach - 1 - np.maximum.reduceat(values, step.starts), reach - np.minimum.reduceat(values, step.starts)


def nearest_multiple(value: int, base: int, *, nonnegative: bool) -> int:
    """The nearest multiple of the base; of two the even one, in units of the base."""
    units, rest = divmod(value, base)
    units += 2 * rest > base or (2 * rest == base and units % 2 == 1)
    return base * (max(units, 0) if nonnegative else units)


def refine_groups(own: Ints, unit: Ints) -> Ints:
    """A number for each cell, equal where both numbers are; all numbers in use."""
    joined = own.astype(np.int64) * (int(unit.max()) + 1) + unit
    return np.asarray(np.unique(joined, return_inverse=True)[1], dtype=np.int64)


def public_words(number: int, count: int) -> Ints:
    """Random words that everybody has: the order in which parts are preferred if two are equally near."""
    with NoiseKey.for_tests("publication view") as key, key.stream("order", number, count) as words:
        return words.take(count).astype(np.int64)
