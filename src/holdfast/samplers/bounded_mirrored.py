"""Grids with bounds and axes of length two: what stands at one end of such an axis is minus what stands at the other.

With k such axes |z|_1 = 2^k |v|_1 for the changes v of one end, which keep the sums along the other axes; a cell of v is bounded by all 2^k
cells that follow from it. So a 2 x C table with rows and columns kept is C cells under one sum, at twice the rate.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from holdfast.lattices.shapes import Bounded, Free, Grid, OneSum
from holdfast.randomness import Words
from holdfast.samplers.bounded_block import BoundedBlock, Room
from holdfast.samplers.bounded_classes import BoundedClasses
from holdfast.samplers.bounded_small import BoundedSmall
from holdfast.samplers.protocol import Ints

Beneath: TypeAlias = BoundedClasses | BoundedSmall


@dataclass(frozen=True)
class FoldedBlock(BoundedBlock):
    """The changes of one end of every axis of length two; its room is that of the whole table."""

    whole: BoundedBlock | None = None
    axes: tuple[int, ...] = ()

    @classmethod
    def of_grid(cls, shape: Bounded) -> FoldedBlock:
        """Given:  a grid with an axis of length two, and no inequalities among cells."""
        axes = shape.axes
        others = tuple(length for length in axes if length != 2)
        beneath = Free(1) if not others else OneSum(others[0]) if len(others) == 1 else Grid(others)
        folded = BoundedBlock.of(Bounded(beneath, None, None))
        return cls(folded.equalities, folded.lower, folded.upper, (), (), BoundedBlock.of(shape), axes)

    def room(self, counts: Ints) -> Room:
        """CONFIDENTIAL."""
        assert self.whole is not None
        least, most, slack = self.whole.room(counts)
        least, most = (part.reshape(-1, *self.axes) for part in (least, most))
        for axis, length in enumerate(self.axes, 1):
            if length == 2:
                (low, low_mirrored), (high, high_mirrored) = (np.split(part, 2, axis=axis) for part in (least, most))
                least, most = np.maximum(low, -high_mirrored), np.minimum(high, -low_mirrored)
        return Room(least.reshape(len(counts), -1), most.reshape(len(counts), -1), slack)


@dataclass(frozen=True, eq=False)
class BoundedMirrored:
    """The double geometric law of a grid with axes of length two, given its kept sums and bounds.

    Law:         P[y] proportional to exp(-rate |y - x|_1) over integer tables y with the sums of x along every axis and within the bounds.
    Given:       `beneath` draws the folded block at 2^k times the rate.
    Guarantees:  exact, as `beneath` is.
    Reference:   [theory T65].
    """

    beneath: Beneath
    axes: tuple[int, ...]

    @property
    def name(self) -> str:
        return f"{self.beneath.name}, mirrored"

    @property
    def cells(self) -> int:
        return math.prod(self.axes)

    @property
    def expected_tries(self) -> float:
        return self.beneath.expected_tries

    def publish(self, counts: Ints, cell_keys: Ints | None, words: Words) -> Ints:
        """One draw for each row of counts. CONFIDENTIAL input."""
        z = self.beneath.changes(counts, words).reshape(len(counts), *(1 if length == 2 else length for length in self.axes))
        for axis, length in enumerate(self.axes, 1):
            if length == 2:
                z = np.concatenate([z, -z], axis=axis)
        published: Ints = counts + z.reshape(counts.shape)
        return published


def fold_block(shape: Bounded, beneath: Callable[[BoundedBlock, int], Beneath]) -> BoundedMirrored:
    """`beneath(block, times)` makes the sampler of the folded block at `times` the rate."""
    return BoundedMirrored(beneath(FoldedBlock.of_grid(shape), 2 ** sum(length == 2 for length in shape.axes)), shape.axes)
