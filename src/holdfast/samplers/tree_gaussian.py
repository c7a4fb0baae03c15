"""Gaussian noise on a tree of units times a product of axes, with a weight for every level and margin: exact, linear time.

Law: P[z] proportional to exp(-Q(z) / 2), Q = sum over g, S of lambda_{g,S} sum over units u of level g of |P_S m_{u,S}|^2, on integer
tables with m_{u,S} = 0 wherever S is in D_g, the margins kept at level g. Legend, centres and variances: [theory R16]. s_{u,S} is 1 /
lambda at a leaf, 1 / s_u = lambda_{g,S} + 1 / (sum of s over the children) above, and 0 where S is kept.

It is the sequence of a product of hierarchies, the tree and the axes, with the weights s_{u,S} among the units under one unit in place of
numbers of places. At the root the S-margin is a grid by itself, of variance s_{root,S}. Where the s of a level are multiples of one number
by small integers, as at the leaves, those are the weights. Elsewhere they are doubles; the units are then the last axis of the walk, since
only along that axis w / W need not be a quotient of integers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from itertools import pairwise, product
from typing import Any

import numpy as np
from flint import fmpq
from numpy.typing import NDArray

from holdfast.errors import InvalidParameter
from holdfast.lattices.trees import Tree
from holdfast.samplers.level_sequence import LevelSequence, Stage, Weights
from holdfast.samplers.sequence_gaussian import SequenceGaussian, check_reach

Ints = NDArray[np.int64]
LARGEST_INTEGERS = 1 << 31


class TreeGaussian(SequenceGaussian):
    """Gaussian noise on units times axes, with weights for levels and margins.

    Law:         see the module's text.
    Given:       `tree`: the units, None for a single one. `axes`: the lengths of the axes, each 2 or more. `chains`: how many of the axes,
                 in order, make each tree of axes; alone if left out. `kept`: for every level from 0 to G the masks of the margins kept
                 there (bit k for axis k), closed under subsets and under going up. `weights`: lambda by (level, mask), not negative;
                 positive at the leaves for every margin that is free there. Of a tree of axes margins have the first ones, or none: other
                 masks are passed over.
    Guarantees:  those of SequenceGaussian. Cells in C order: leaf, then axes.
    Reference:   [theory R9], [theory R15], [theory R16].
    """

    name = "level by level, one cell after the other"
    small_draw = 0

    def __init__(
        self,
        tree: Tree | None,
        axes: tuple[int, ...],
        kept: tuple[frozenset[int], ...],
        weights: Mapping[tuple[int, int], Fraction],
        chains: tuple[int, ...] | None = None,
        **others: Any,
    ) -> None:
        self.tree, self.axes, self.kept = tree, tuple(axes), tuple(kept)
        self.chains = (1,) * len(self.axes) if chains is None else chains
        self.levels = 0 if tree is None else tree.depth
        self.leaves = 1 if tree is None else tree.places
        self.masks = sorted(self._vectors, key=lambda mask: (mask.bit_count(), mask))
        self.weights = {key: Fraction(value) for key, value in weights.items() if value}
        self._check()
        # A cell of a margin S of any unit is a linear form of the noise, whose variance in the continuous law is at most this.
        proxy = sum((self.leaves / self.weights[self.levels, mask] for mask in self.masks if mask not in self.kept[-1]), Fraction(0))
        cells, unit_cells = self.leaves * math.prod(self.axes), math.prod(self.axes)
        self._largest = min(LARGEST_INTEGERS, (1 << 59) // (unit_cells * check_reach(cells, len(self.axes), unit_cells, proxy)))
        sequence = LevelSequence(*self._trees_and_stages())
        error = 0.0
        if not sequence.is_exact and self.tree is not None:
            error = 4 * (max(max(counts) for counts in self.tree.children[:-1]) + 8) * 2.0**-53
        super().__init__(sequence, Fraction(1), error=error, **others)
        check_reach(cells, len(self.axes), self.sequence.largest_scale, proxy)

    def _check(self) -> None:
        if min(self.axes, default=2) < 2:
            raise InvalidParameter(f"Every axis must have at least two places. Got {self.axes}.")
        if len(self.kept) != self.levels + 1:
            raise InvalidParameter(f"Kept margins are listed for {self.levels + 1} levels. Got {len(self.kept)}.")
        for level, family in enumerate(self.kept):
            closed = all(sub in family for mask in family for sub in self.masks if sub & mask == sub)
            if not closed or (level and not family <= self.kept[level - 1]):
                raise InvalidParameter("Kept margins are closed under subsets, and what is kept at a level is kept above it.")
        for mask in self.masks:
            if mask not in self.kept[-1] and self.weights.get((self.levels, mask), 0) <= 0:
                raise InvalidParameter("Every margin that is free at the leaves needs a positive weight there.")
        if self.kept[-1].issuperset(self.masks):
            raise InvalidParameter("Everything is kept: nothing is left to draw.")
        if any(value < 0 for value in self.weights.values()):
            raise InvalidParameter("Weights are not negative.")

    def __repr__(self) -> str:
        return f"TreeGaussian({self.leaves} leaves on {self.levels + 1} levels, axes {self.axes})"

    @cached_property
    def _vectors(self) -> dict[int, tuple[int, ...]]:
        """The masks of the margins, each with its level on every tree of axes."""
        found: dict[int, tuple[int, ...]] = {0: ()}
        begin = 0
        for length in self.chains:
            own = [(((1 << level) - 1) << begin, level) for level in range(length + 1)]
            found = {mask | more: (*vector, level) for mask, vector in found.items() for more, level in own}
            begin += length
        return found

    def _trees_and_stages(self) -> tuple[tuple[Tree, ...], list[Stage]]:
        """Level after level from the root, small margins before large ones."""
        above, ends = () if self.tree is None else (self.tree,), np.cumsum((0, *self.chains)).tolist()
        evens = [_even_tree(self.axes[begin:end]) for begin, end in pairwise(ends)]
        plain = [[Weights(np.ones(t.units(level), dtype=np.int64), t.starts(level - 1)) for level in range(1, t.depth + 1)] for t in evens]
        stages = []
        for level, mask in product(range(self.levels + 1), self.masks):
            if mask in self.kept[level]:
                continue
            inside = self._vectors[mask]
            vector, own = (*[level][: len(above)], *inside), [k for k, finest in enumerate(inside) if finest]
            axes, weights = tuple(k + len(above) for k in own), tuple(plain[k][inside[k] - 1] for k in own)
            if level == 0:
                stages.append(Stage(vector, axes, _fraction(self._exact[0][mask][0]), weights))
                continue
            among, base = self._among(level, mask)
            assert among.is_exact or level < self.levels, "cells are written in the order of the last stage's walk"
            in_order = ((0, *axes), (among, *weights)) if among.is_exact else ((*axes, 0), (*weights, among))
            stages.append(Stage(vector, in_order[0], base, in_order[1]))
        if self.tree is None and not self.axes:  # one number, which is its own single child
            return (Tree.plain(1),), [
                replace(stages[0], vector=(0,)),
                Stage((1,), (0,), Fraction(1), (Weights(np.ones(1, dtype=np.int64), np.array([0, 1])),)),
            ]
        return (*above, *evens), stages

    def _among(self, level: int, mask: int) -> tuple[Weights, Fraction]:
        """(weights of the units of a level among their siblings, what they are multiples of)."""
        assert self.tree is not None
        exact, of, starts = [_fraction(s) for s in self._exact[level][mask]], self._classes[level][0], self.tree.starts(level - 1)
        unit, most = exact[0], max(exact)
        for s in exact:
            unit = Fraction(math.gcd(unit.numerator * s.denominator, s.numerator * unit.denominator), unit.denominator * s.denominator)
            if most / unit > LARGEST_INTEGERS:
                break
        else:
            multiples = np.array([int(s / unit) for s in exact], dtype=np.int64)[of]
            if level == self.levels or np.add.reduceat(multiples, starts[:-1]).max() < self._largest:
                return Weights(multiples, starts), unit
        return Weights.real(np.array([float(s) for s in exact])[of], [exact[c] for c in of.tolist()], starts), Fraction(1)

    # s, exactly

    @cached_property
    def _classes(self) -> list[tuple[Ints, list[tuple[int, ...]]]]:
        """For every level the class of each unit, and for each class those of its children, sorted: s depends on these alone."""
        found: list[tuple[Ints, list[tuple[int, ...]]]] = [(np.broadcast_to(np.int64(0), self.leaves), [()])]
        for level in range(self.levels - 1, -1, -1):
            assert self.tree is not None
            below = found[-1][0]
            counts = np.array(self.tree.children[level], dtype=np.int64)
            if len(found[-1][1]) == 1:
                distinct, of = np.unique(counts, return_inverse=True)
                found.append((of.astype(np.int64), [(0,) * int(n) for n in distinct]))
                continue
            starts = self.tree.starts(level)
            numbers: dict[tuple[int, ...], int] = {}
            of = np.empty(len(counts), dtype=np.int64)
            for unit in range(len(counts)):
                key = tuple(np.sort(below[starts[unit] : starts[unit + 1]]).tolist())
                of[unit] = numbers.setdefault(key, len(numbers))
            found.append((of, list(numbers)))
        return found[::-1]

    @cached_property
    def _exact(self) -> list[dict[int, list[fmpq]]]:
        """s by level, mask and class, as exact rationals; 0 where the margin is kept."""
        found: list[dict[int, list[fmpq]]] = []
        for level in range(self.levels, -1, -1):
            here: dict[int, list[fmpq]] = {}
            for mask in self.masks:
                weight = _rational(self.weights.get((level, mask), Fraction(0)))
                if mask in self.kept[level]:
                    here[mask] = [fmpq(0)] * len(self._classes[level][1])
                elif level == self.levels:
                    here[mask] = [1 / weight]
                else:
                    below = found[-1][mask]
                    sums = [sum((below[c] * n for c, n in _count_classes(children)), fmpq(0)) for children in self._classes[level][1]]
                    here[mask] = [1 / (weight + 1 / total) for total in sums]
            found.append(here)
        return found[::-1]


def _even_tree(lengths: Sequence[int]) -> Tree:
    """The tree whose units are divided into so many, level by level."""
    return Tree(tuple((length,) * math.prod(lengths[:level]) for level, length in enumerate(lengths)))


def _rational(value: Fraction) -> fmpq:
    return fmpq(value.numerator, value.denominator)


def _fraction(value: fmpq) -> Fraction:
    return Fraction(int(value.p), int(value.q))


def _count_classes(children: tuple[int, ...] | Ints) -> list[tuple[int, int]]:
    """(class, how often)."""
    values, counts = np.unique(np.array(children, dtype=np.int64), return_counts=True)
    return list(zip(values.tolist(), counts.tolist(), strict=True))
