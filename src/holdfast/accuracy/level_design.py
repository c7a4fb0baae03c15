"""Variances of Gaussian noise with weights for levels and margins as functions of the weights, with derivatives: for choosing shares.

Legend as in laws/level_gaussian.py, whose figures these are. Units that every choice of weights treats alike are one class: two units of
one parent whose parts have the same sizes. The 73,057 tracts of the United States make a few thousand classes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from holdfast.lattices.shapes.units import Units
from holdfast.lattices.trees import Tree

Floats: TypeAlias = NDArray[np.float64]
Numbers: TypeAlias = NDArray[np.complex128]
Ints: TypeAlias = NDArray[np.int64]
Margin: TypeAlias = tuple[int, int]
"""(level, mask): a margin of the units of a level."""
Scalar = TypeVar("Scalar", np.int64, np.complex128)

STEP = 1e-30
"""Length of the imaginary step, relative to the weights: its error is of the order of its square, so that derivatives have all digits."""


@dataclass(frozen=True, eq=False)
class UnitClasses:
    """Classes of the units of every level, in the order of their parents' classes.

    first:  for every level but the finest, where the classes inside each class of it begin among those of the next.
    count:  how many units of each class lie in one unit of its parent's class.
    """

    first: tuple[Ints, ...]
    count: tuple[Ints, ...]

    @classmethod
    def of(cls, tree: Tree | None) -> UnitClasses:
        """From the sizes of parts, found from the leaves up; then classes from the root down."""
        if tree is None:
            return cls((), (np.ones(1, dtype=np.int64),))
        kinds: list[Ints] = [np.zeros(tree.places, dtype=np.int64)]
        for level in reversed(range(tree.depth)):
            bounds, known = tree.starts(level).tolist(), dict[bytes, int]()
            parts = [np.sort(kinds[-1][a:b]).tobytes() for a, b in pairwise(bounds)]
            kinds.append(np.array([known.setdefault(part, len(known)) for part in parts], dtype=np.int64))
        kinds.reverse()
        first, count, members = [], [np.ones(1, dtype=np.int64)], np.zeros(1, dtype=np.int64)
        for level in range(tree.depth):
            starts, begin, new, counts = tree.starts(level), [0], list[Ints](), list[Ints]()
            for unit in members.tolist():  # one unit stands for its class
                inside = kinds[level + 1][starts[unit] : starts[unit + 1]]
                _, places, many = np.unique(inside, return_index=True, return_counts=True)
                new.append(starts[unit] + places)
                counts.append(many)
                begin.append(begin[-1] + len(many))
            members = np.concatenate(new)
            first.append(np.array(begin[:-1], dtype=np.int64))
            count.append(np.concatenate(counts).astype(np.int64))
        return cls(tuple(first), tuple(count))

    def units(self, level: int) -> Ints:
        """How many units of a level are in each class."""
        whole = self.count[0]
        for deeper in range(1, level + 1):
            whole = self.parents(deeper, whole) * self.count[deeper]
        return whole

    def parents(self, level: int, values: NDArray[Scalar]) -> NDArray[Scalar]:
        """Values of the classes of the level above (last axis), one for each class of this level."""
        sizes = np.diff(np.append(self.first[level - 1], len(self.count[level])))
        return np.repeat(values, sizes, axis=-1)

    def sums(self, level: int, values: Numbers) -> Numbers:
        """For each class of a level the sum over all units inside one of its units."""
        return np.asarray(np.add.reduceat(values * self.count[level + 1], self.first[level], axis=-1))


class MarginVariances:
    """The variances of some margins as functions of the weights of others.

    Given:       the shape of the whole table; `measured`, which may have weights, with the finest table among them; `wanted`, whose
                 variances are asked for. None of either is kept.
    """

    def __init__(self, shape: Units, measured: Sequence[Margin], wanted: Sequence[Margin]) -> None:
        self.shape, self.measured, self.wanted = shape, tuple(measured), tuple(wanted)
        self.classes = UnitClasses.of(shape.tree)
        subsets = {sub for _, mask in wanted for sub in range(mask + 1) if sub & mask == sub}
        self._masks = sorted(sub for sub in subsets if sub not in shape.kept[-1])

    def numbers(self, wanted: int) -> Ints:
        """How many numbers the wanted margin of this place has, in each class of units."""
        level, mask = self.wanted[wanted]
        return np.asarray(self.classes.units(level) * self._size(mask))

    def _size(self, mask: int) -> int:
        return math.prod(n for k, n in enumerate(self.shape.lengths) if mask >> k & 1)

    def at(self, weights: Floats) -> list[Floats]:
        """For each wanted margin the variance of one of its numbers, in each class of units."""
        return [values[0].real for values in self._at(weights[None, :].astype(np.complex128))]

    def with_slopes(self, weights: Floats) -> list[tuple[Floats, Floats]]:
        """(the variances, minus their derivatives by each weight: one row a weight), by steps into the complex plane."""
        steps = STEP * np.maximum(weights, weights.max() * 1e-12)
        moved = self._at(weights[None, :] + 1j * np.diag(steps))
        return [(values[0].real, -values.imag / steps[:, None]) for values in moved]

    def _at(self, weights: Numbers) -> list[Numbers]:
        out: list[Numbers] = [np.zeros((len(weights), len(self.classes.count[level])), dtype=np.complex128) for level, _ in self.wanted]
        deepest = max(level for level, _ in self.wanted)
        for sub in self._masks:
            variances = self._component(sub, weights, deepest)
            share = math.prod(1 - 1 / n for k, n in enumerate(self.shape.lengths) if sub >> k & 1)
            for place, (level, mask) in enumerate(self.wanted):
                if sub & mask == sub:
                    out[place] += share / self._size(mask & ~sub) ** 2 * variances[level]
        return out

    def _component(self, sub: int, weights: Numbers, deepest: int) -> list[Numbers]:
        """The variance of the contrast `sub` in a unit of each class, level by level ([theory R9])."""
        classes, shape = self.classes, self.shape
        own = [np.zeros((len(weights), 1), dtype=np.complex128) for _ in range(shape.levels + 1)]
        for place, (level, mask) in enumerate(self.measured):
            if sub & mask == sub:
                own[level][:, 0] += weights[:, place] / self._size(mask & ~sub)
        s = [np.broadcast_to(1 / own[-1], (len(weights), len(classes.count[-1])))]
        below: list[Numbers] = []
        for level in range(shape.levels - 1, -1, -1):
            sums = classes.sums(level, s[-1])
            below.append(sums)
            s.append(np.zeros_like(sums) if sub in shape.kept[level] else 1 / (own[level] + 1 / sums))
        s.reverse()
        below.reverse()
        out = [s[0]]
        for level in range(1, deepest + 1):
            above = classes.parents(level, below[level - 1])
            share = np.divide(s[level], above, out=np.zeros_like(above), where=above != 0)
            out.append(s[level] * (1 - share) + share**2 * classes.parents(level, out[-1]))
        return out
