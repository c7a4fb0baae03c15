"""The Gaussian law with a share of the budget for every level and margin."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from holdfast.lattices import Lattice
from holdfast.lattices.shapes import Shape, Units
from holdfast.laws import tails
from holdfast.laws.level_moments import LevelVariances
from holdfast.laws.target import ON_THE_LATTICE, Field, Target, Variance, number_field


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
        """The plain law's bound holds for the length in any form Q (laws/tails.py: only the scaling of Q enters), and Q(z) >= w |z|_2^2,
        w the weight of the finest table: of the leaves by all axes, whose mask is the largest. Other margins of the leaves may have more,
        but say nothing about moves within a leaf.
        """
        _, finest = max((mask, share) for height, mask, share in self.measured if height == 0)
        return tails.gaussian_log_tail(lattice.dimension, 1 / (2 * self.rho * finest), t)

    def block_variance(self, shape: Shape) -> Variance:
        """The continuous form, which is never too small."""
        assert isinstance(shape, Units)
        return Variance(0.0, None, "upper bound", form=LevelVariances(shape, self.weights(shape)))
