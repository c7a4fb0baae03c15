"""The Gaussian law with a share of the budget for every level and margin, and its variances, in the continuous form, by sums along the
tree.

Legend as in samplers/tree_gaussian.py. Given its parent's margin, a child's has mean (s_c / sum s) times it and covariance s_c - s_c^2 /
sum s with itself, - s_c s_d / sum s with a sibling; so the variance of any linear form is a sum over units. The exact law's variance is
never larger ([theory R7]).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from holdfast.lattices import Lattice
from holdfast.lattices.shapes import Shape, Units
from holdfast.laws.families import ON_THE_LATTICE, Field, Target, Variance, gaussian_log_tail, number_field

Floats = NDArray[np.float64]


class LevelVariances:
    """Variances of linear forms of the noise of one block of units."""

    def __init__(self, shape: Units, weights: Mapping[tuple[int, int], Fraction]) -> None:
        self.shape = shape
        self._s: dict[int, list[Floats]] = {}
        for mask in shape.masks:
            if mask in shape.kept[-1]:
                continue
            levels: list[Floats] = [np.broadcast_to(1 / float(weights[shape.levels, mask]), shape.leaves)]
            for level in range(shape.levels - 1, -1, -1):
                assert shape.tree is not None
                sums = np.add.reduceat(levels[-1], shape.tree.starts(level)[:-1])
                kept = mask in shape.kept[level]
                levels.append(np.zeros_like(sums) if kept else 1 / (float(weights.get((level, mask), 0)) + 1 / sums))
            if shape.levels == 0 and mask in shape.kept[0]:
                levels = [np.zeros(1)]
            self._s[mask] = levels[::-1]

    def of(self, values: Floats) -> Floats:
        """The variance of each row's form: values of shape (n, cells)."""
        return np.asarray((values * self.covariances(values)).sum(axis=1))

    def covariances(self, values: Floats) -> Floats:
        """The covariance of each row's form with every cell."""
        table = values.reshape(len(values), self.shape.leaves, *self.shape.lengths)
        out = np.zeros(table.shape)
        for mask in self._s:
            # The S-component of a form: contrasts along the axes of S, means along the others.
            part = table
            for k in range(len(self.shape.lengths)):
                means = part.mean(axis=k + 2, keepdims=True)
                part = part - means if mask >> k & 1 else means
            over = math.prod(n for k, n in enumerate(self.shape.lengths) if not mask >> k & 1)
            out += self._tree(mask, part.reshape(len(values), self.shape.leaves, -1)).reshape(part.shape) / over
        return out.reshape(values.shape)

    def _tree(self, mask: int, part: Floats) -> Floats:
        """Covariances of the leaves' margins with sum_leaf part[:, leaf] m_leaf, column after column: a parent's share of its own, and what
        a child has beside its siblings.
        """
        apart = []
        for level in range(self.shape.levels, 0, -1):
            assert self.shape.tree is not None
            starts, s = self.shape.tree.starts(level - 1), self._s[mask][level]
            sums, counts = np.add.reduceat(s, starts[:-1]), np.diff(starts)
            share = np.divide(s, np.repeat(sums, counts), out=np.zeros_like(s), where=np.repeat(sums, counts) > 0)
            above = np.add.reduceat(part * share[None, :, None], starts[:-1], axis=1)
            apart.append((counts, share[:, None], s[:, None] * (part - np.repeat(above, counts, axis=1))))
            part = above
        found = self._s[mask][0][0] * part
        for counts, share, own in reversed(apart):
            found = share * np.repeat(found, counts, axis=1) + own
        return np.asarray(found)

    def units(self, level: int, mask: int) -> Floats:
        """The variance of one number of the margin `mask`, for every unit of a level: all numbers of a unit have the same."""
        out = np.zeros(1 if self.shape.tree is None else self.shape.tree.units(level))
        for sub in self._s:
            if sub & ~mask:
                continue
            share = math.prod(1 - 1 / n for k, n in enumerate(self.shape.lengths) if sub >> k & 1)
            over = math.prod(n for k, n in enumerate(self.shape.lengths) if (mask & ~sub) >> k & 1)
            out += share / over**2 * self._marginal(sub, level)
        return out

    def _marginal(self, mask: int, level: int) -> Floats:
        """The variance of the S-contrast of each unit of a level."""
        variance = self._s[mask][0]
        for deeper in range(1, level + 1):
            assert self.shape.tree is not None
            s, counts = self._s[mask][deeper], np.array(self.shape.tree.children[deeper - 1])
            sums = np.add.reduceat(s, self.shape.tree.starts(deeper - 1)[:-1])
            share = np.divide(s, np.repeat(sums, counts), out=np.zeros_like(s), where=np.repeat(sums, counts) > 0)
            variance = s * (1 - share) + share**2 * np.repeat(variance, counts)
        return variance

    def diagonal(self) -> Floats:
        """The variance of every cell."""
        full = (1 << len(self.shape.lengths)) - 1
        return np.repeat(self.units(self.shape.levels, full), math.prod(self.shape.lengths))


@dataclass(frozen=True)
class LevelGaussian(Target):
    """Law:         P[z] proportional to exp(-Q(z) / 2), Q(z) = 2 rho sum over measured margins of share |margin of z|_2^2, for z in L.
    Given:       measured: (height, mask, share): the height of a level above the finest one, the axes of the margin, an exact share above
                 zero. Shares add up to one, or to less where a margin is a kept total. The finest level by all axes is measured.
    Guarantees:  (Q(x - x') / 2)-zCDP for tables x, x' with equal kept totals: what independent Gaussian measurements of those margins
                 with variance 1 / (2 rho share) each would cost, and the law of their best linear unbiased combination, on integers.
    Reference:   [theory R7], [theory R9], [theory R15], [theory R16].
    """

    rho: Fraction
    measured: tuple[tuple[int, int, Fraction], ...]
    names: tuple[str, ...] = ()
    """Names of the measured margins, for the formula; no stream depends on them."""

    def widen(self, factor: Fraction) -> LevelGaussian:
        """The law whose variances are `factor` times as large."""
        return replace(self, rho=self.rho / factor)

    @property
    def fields(self) -> tuple[Field, ...]:
        shares = [f"{height}:{mask}:{number_field(share)}" for height, mask, share in sorted(self.measured)]
        return ("level gaussian", number_field(self.rho), *shares)

    @property
    def formula(self) -> str:
        terms = " + ".join(f"{share} |{name}|^2" for (_, _, share), name in zip(self.measured, self.names, strict=True))
        return f"P[z] proportional to exp(-{self.rho} x ({terms})) {ON_THE_LATTICE}, |.| the Euclidean length of a margin of z"

    def weights(self, shape: Units) -> Mapping[tuple[int, int], Fraction]:
        """lambda by (level, mask): the sum over measured T that hold S of 2 rho share / (numbers of T for one of S) ([theory R15])."""
        found: dict[tuple[int, int], Fraction] = {}
        for height, mask, share in self.measured:
            level = shape.levels - height
            if level < 0:
                continue
            for sub in shape.masks:
                if sub & mask == sub and sub not in shape.kept[level]:
                    over = math.prod(n for k, n in enumerate(shape.lengths) if (mask & ~sub) >> k & 1)
                    found[level, sub] = found.get((level, sub), Fraction(0)) + 2 * self.rho * share / over
        return found

    def log_tail(self, lattice: Lattice, t: float) -> float:
        """The plain law's bound holds for the length in any form Q (laws/families.py: only the scaling of Q enters), and Q(z) >= w |z|_2^2,
        w the weight of the finest table: of the leaves by all axes, whose mask is the largest. Other margins of the leaves may have more,
        but say nothing about moves within a leaf.
        """
        return gaussian_log_tail(lattice.dimension, self._most, t)

    @property
    def _most(self) -> Fraction:
        _, finest = max((mask, share) for height, mask, share in self.measured if height == 0)
        return 1 / (2 * self.rho * finest)

    @property
    def widest_variance(self) -> float:
        """A bound of the variance of a cell: 1 / w."""
        return float(self._most)

    def form(self, shape: Shape) -> LevelVariances:
        """The continuous form of a block's noise. All blocks that this law draws have the shape of units."""
        assert isinstance(shape, Units)
        return LevelVariances(shape, self.weights(shape))

    def block_variance(self, shape: Shape) -> Variance:
        """The continuous form, which is never too small."""
        return Variance(0.0, None, "upper bound", form=self.form(shape))
