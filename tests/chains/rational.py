"""The Metropolis kernel with jumps whose probabilities are fractions, so that a whole chain can be computed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from flint import arb

from holdfast.chains.metropolis import Metropolis
from holdfast.exact.balls import ball
from holdfast.exact.table import TableSampler
from holdfast.exact.weights import FixedWeights


@dataclass(frozen=True)
class RationalJumps:
    """Law:  P[e] proportional to base^|e| for a rational base. Implements `weights.WeightSource`."""

    base: Fraction

    def fixed_weights(self, bits: int, guard: int) -> FixedWeights:
        unit = 1 << (bits + guard + 64)
        arm, weight = [], self.base
        while weight * (1 << (bits + 1)) >= 1:
            arm.append(weight)
            weight *= self.base
        lows = [math.floor(w * unit) for w in arm]
        highs = [math.ceil(w * unit) for w in arm]
        beyond = weight / (1 - self.base) * unit
        tail = (math.floor(beyond), math.ceil(beyond))
        return FixedWeights(-len(arm), [*lows[::-1], unit, *lows], [*highs[::-1], unit, *highs], tail, tail)


@dataclass(frozen=True, eq=False)
class RationalMetropolis(Metropolis):
    """`jump_base`, a fraction between 0 and 1, in place of exp(-jump_rate)."""

    jump_base: Fraction = Fraction(1, 3)

    def power(self, exponent: int) -> arb:
        return ball(self.jump_base) ** exponent

    @cached_property
    def sampler(self) -> TableSampler:
        return TableSampler(RationalJumps(self.jump_base))
